"""Our own experiments on native Dally (`semantics=events`): how long a lease should be, and how near it is to theirs.

`dally-leases`: Delay-v0's default setting, leases from 5 minutes to 4 hours, against `greedy` and against the same
policy at an hour. Shorter leases are finer time slicing; what they cost here is not the stops, which are free, but that
a gang which lost its machine has to find another.

`dally-semantics`: average JCT of Dally over `greedy`'s under the two semantics, on the networks of the paper and on
measured ones, the durations read as the paper's authors do. A definition of leases that were no longer Dally would show
as a ratio that is many times that of the authors' simulator.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from ....envs.registration import ENVIRONMENTS
from ....simulator.cluster.topology import Topology
from ...comparing.intervals import paired_ratio
from ..case import Case
from ..findings import Findings, Options
from ..loads import offered_load_note
from ..rows import Row, printed
from ..sweep import sweep_by
from .dally_grid import NATIVE

HOUR_S = 3600.0
TOPOLOGY, WORKLOAD, NETWORK = ENVIRONMENTS["clustergym/Delay-v0"].defaults.values()
LEASES_S = (300.0, 900.0, 1800.0, HOUR_S, 7200.0, 14400.0)
POLICIES = ("dally-nowait", "dally-manual", "dally", "dally-consolidated")
SEEDS_AN_ORDER = 5  # workloads of its own for every machine order
SLICING_COSTS = 1.1  # of who never waits: the most that a shorter lease may cost it

DALLY_LIKE = "dally-like:jobs=128,arrivals=poisson,jobs_per_day=40"
NETWORKS: Mapping[str, str] = {
    "allreduce artist": "allreduce:calibration=artist,duration=compute",
    "allreduce measured": "allreduce:calibration=measured,duration=compute",
    "penalty dally-table1": "penalty:table=dally-table1,duration=compute",
}
SEMANTICS = ("events", "artist-sim")
APART, MOST = 1.8, 3.0  # of the ratio under the authors' semantics, and of the ratio itself


def leases(options: Options) -> Findings:
    """Average JCT by policy and lease."""
    chosen = (300.0, HOUR_S) if options.quick else LEASES_S
    words = {(name, lease): f"{name}:lease={lease:g}" for name in POLICIES for lease in chosen}
    cases = {
        word: [
            NATIVE.on(
                word,
                order,
                topology=f"{TOPOLOGY},machine_order={order}",
                workload=f"{WORKLOAD},seed={SEEDS_AN_ORDER * order + number}",
                network=NETWORK,
            )
            for order in options.order_seeds
            for number in range(SEEDS_AN_ORDER)
        ]
        for word in (*words.values(), "greedy")
    }
    jct = _jct("dally-leases", cases, options)
    rows = [
        printed(f"average JCT, {name} / greedy, lease {lease:g} s", paired_ratio(jct[word], jct["greedy"]), "x")
        for (name, lease), word in words.items()
    ]
    rows += [
        _at_most(
            f"average JCT, dally-nowait, lease {lease:g} s / {HOUR_S:g} s",
            SLICING_COSTS,
            jct[words["dally-nowait", lease]],
            jct[words["dally-nowait", HOUR_S]],
        )
        for lease in chosen
        if lease in (300.0, 900.0)
    ]
    runs = len(options.order_seeds) * SEEDS_AN_ORDER
    notes = [
        f"Delay-v0's default setting: {TOPOLOGY}, {WORKLOAD}, {NETWORK}; stops cost nothing",
        f"mean and 95 % interval over {runs} workloads, {SEEDS_AN_ORDER} for each of {len(options.order_seeds)} "
        "machine orders, the same for all policies and leases",
        "timers of dally-manual are hours and begin anew at each stop; those of dally count in leases",
        _offered(WORKLOAD, cases, TOPOLOGY),
    ]
    return Findings(rows, notes)


def semantics(options: Options) -> Findings:
    """Average JCT of dally over greedy's, by network, under both semantics."""
    two = "dally:racks=2"
    cases = {
        f"{network}, {name}, {policy}": [
            NATIVE.on(policy, seed, topology=two, workload=f"{DALLY_LIKE},seed={seed}", network=word, semantics=name)
            for seed in options.seeds(20)
        ]
        for network, word in NETWORKS.items()
        for name in SEMANTICS
        for policy in ("dally", "greedy")
    }
    jct = _jct("dally-semantics", cases, options)
    rows = []
    for network in NETWORKS:
        found = {name: (jct[f"{network}, {name}, dally"], jct[f"{network}, {name}, greedy"]) for name in SEMANTICS}
        rows += [
            printed(f"average JCT, dally / greedy, {network}, {name}", paired_ratio(*found[name]), "x")
            for name in SEMANTICS
        ]
        native, theirs = (paired_ratio(*found[name]).mean for name in SEMANTICS)
        rows.append(Row(f"dally / greedy, {network}, events", None, native, (-math.inf, MOST), unit="x"))
        what = f"dally / greedy, {network}, events over artist-sim"
        rows.append(Row(what, None, native / theirs, (-math.inf, APART), unit="x"))
    notes = [
        f"{DALLY_LIKE} on dally:racks=2, durations as the paper's authors read them (duration=compute)",
        f"mean and 95 % interval over {len(options.seeds(20))} drawn job sets; dally is `dally` under both semantics",
        _offered("jobs", cases, two),
    ]
    return Findings(rows, notes)


def _offered(name: str, cases: Mapping[str, Sequence[Case]], topology: str) -> str:
    words = sorted({case.setting.workload for some in cases.values() for case in some})
    return offered_load_note({name: words}, Topology.load(topology).num_gpus)


def _jct(what: str, cases: Mapping[str, Sequence[Case]], options: Options) -> dict[str, list[float]]:
    """Average JCTs, one a case."""
    found = sweep_by(what, cases, options)
    return {word: [outcome.metrics["jct_mean"] for outcome in some] for word, some in found.items()}


def _at_most(quantity: str, bound: float, ours: Iterable[float], others: Iterable[float]) -> Row:
    ratio = paired_ratio(list(ours), list(others))
    return Row(quantity, None, ratio.mean, (-math.inf, bound), ratio.low, ratio.high, "x")
