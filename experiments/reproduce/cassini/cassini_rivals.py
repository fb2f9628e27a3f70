"""CASSINI beside its rivals: Crux and MLTCP, which leave jobs where Themis puts them, and say who goes first.

Crux (SIGCOMM'24) and MLTCP (HotNets'24) compare themselves with CASSINI, each on a testbed of its own; here all play
the same traces on the same links, on placements of the same scheduler. simulator/contention/crux.py and link_network.py
say what is from their papers and what is ours. MLTCP's two numbers, the weight of a flow at the beginning of an
iteration and its growth until the end, are varied.

Workloads: paper cassini's Poisson and dynamic traces; jobs of one period (cassini_equal_periods.py), where shifts have
most to win; and gangs of 8 to 64 GPUs on the network of a production cluster, Alibaba's Lingjun of 847 hosts, whose
table of hosts and switches is read where it is found (`lingjun/topo.csv` of the folder of traces). The table has
neither GPUs a host nor speeds: 8 GPUs, 100 Gbps and an oversubscription of 2 are taken. Some gangs leave a host
half full, and the load is above what the cluster has; Themis still finds places where they are in nobody's way, as a
host's ring has 45 Gbps and its part of the uplinks is 50. Every phase is carried on, which takes less than averages do.

Crux also chooses among equal paths (least_paths.py). The testbed has few, so that is shown on a fat tree that is not
oversubscribed, with gangs of 8 to 24: paths by destination, by a hash whose seed is that of the trace, and the least
congested ones, each with and without Crux's priorities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...comparing.intervals import paired_ratio
from ...storing.run_files import short_hash
from ..case import Case
from ..case_runs import Runs
from ..findings import Findings, Options
from ..rows import Row, printed
from ..sweep import sweep_by
from .cassini_equal_periods import FIRST
from .cassini_on_links import ON_LINKS, mean_s, p99_s, slowdown
from .cassini_traces import (
    CASSINI,
    DYNAMIC,
    IDEAL,
    LEAST,
    POISSON,
    QUICK_JOBS,
    RANDOM,
    THEMIS,
    conditions,
    said_of_meetings,
)

SEEDS = 10
CRUX, MLTCP = "themis+crux", "themis+mltcp"
GROWTHS = ((1.0, 1.0), (0.25, 0.75), (0.25, 4.0), (0.5, 1.5))  # base and slope, beside those of the paper
VARIED = tuple(f"{MLTCP}:base={base:g},slope={slope:g}" for base, slope in GROWTHS)
POLICIES = (RANDOM, LEAST, CASSINI, CRUX, MLTCP, *VARIED, IDEAL)  # against themis
TABLE = Path("lingjun") / "topo.csv"
HOSTS = "hosts:gpus=8,nic_gbps=100,oversubscription=2,file="
GANGS = "8/12/16/20/24/32/40/48/64"
LINGJUN_JOBS = 400, 30  # and with --quick
ROUTES = {"table": "table", "hash": "hash,route_seed={seed}", "least": "least"}
FAT_TREE, FAT_TREE_GANGS = "fat-tree:k=8", "8/12/16/20/24"
FAT_TREE_JOBS = 60, 12  # and with --quick


@dataclass(frozen=True)
class Place:
    """A workload and the cluster that it is played on.

    Attributes:
        name: as the rows call it.
        workload, topology, network: words; `{seed}` in the network's is that of the trace.
        options: of Themis, and what is built on it.
        quick: what `--quick` adds to the workload.
        table: hash of the file that the topology names; "": none.
        policies: that are played against themis.
    """

    name: str
    workload: str
    topology: str = "cassini-testbed"
    network: str = "contention"
    options: str = ""
    quick: str = f",jobs={QUICK_JOBS}"
    table: str = ""
    policies: tuple[str, ...] = POLICIES

    def case(self, policy: str, seed: int, quick: bool) -> Case:
        """One run."""
        workload = self.workload + self.quick * quick
        word = policy
        if self.options and policy != RANDOM:
            word += ("," if ":" in policy else ":") + self.options
        network = self.network.format(seed=seed)
        case = ON_LINKS.on(word, seed, topology=self.topology, workload=workload, network=network)
        return replace(case, given=(("table", self.table),)) if self.table else case


PLACES = (
    Place("Poisson", POISSON.workload),
    Place("dynamic", DYNAMIC.workload, quick=""),
    Place("one period", FIRST.workload, network=FIRST.network, options=FIRST.options),
)


def lingjun(table: Path, quick: bool) -> Place:
    """Gangs of 8 to 64 GPUs on the hosts of a table."""
    jobs = LINGJUN_JOBS[1 if quick else 0]
    return Place(
        "Lingjun",
        f"cassini-poisson:load=1.5,gangs={GANGS},gpus_per_machine=8,jobs={jobs}",
        HOSTS + str(table),
        "contention",
        "workers=fixed",
        quick="",
        table=short_hash(table.read_text(encoding="utf-8")),
        policies=tuple(policy for policy in POLICIES if policy != RANDOM),
    )


def equal_paths(quick: bool) -> list[Place]:
    """Gangs of 8 to 24 GPUs on a fat tree, by which of the equal paths they take."""
    jobs = FAT_TREE_JOBS[1 if quick else 0]
    workload = f"cassini-poisson:load=1.2,gangs={FAT_TREE_GANGS},jobs={jobs}"
    return [
        Place(name, workload, FAT_TREE, f"contention:routes={routes}", "workers=fixed", quick="")
        for name, routes in ROUTES.items()
    ]


def table_of_hosts(options: Options) -> Path | None:
    """Lingjun's table of hosts in the folder of traces; None: it is not at hand."""
    path = None if options.traces is None else options.traces / TABLE
    return path if path is not None and path.is_file() else None


def rivals(options: Options) -> Findings:
    """Everybody against Themis, and CASSINI's rivals against it, workload by workload."""
    table, seeds = table_of_hosts(options), options.seeds(SEEDS)
    places = [*PLACES, *([] if table is None else [lingjun(table, options.quick)])]
    cases = {
        (policy, place.name): [place.case(policy, seed, options.quick) for seed in seeds]
        for place in places
        for policy in (THEMIS, *place.policies)
    }
    for place in equal_paths(options.quick):
        for policy in (THEMIS, CRUX):
            cases[policy, place.name] = [place.case(policy, seed, options.quick) for seed in seeds]
    runs = Runs(sweep_by("cassini-rivals", cases, options))
    rows = [row for place in places for row in _rows(place, runs)]
    why = [said for place in places for said in said_of_meetings(place.name, runs)]
    return Findings([*rows, *_rows_of_paths(runs)], [*why, *_notes(options, seeds, table)])


def _rows(place: Place, runs: Runs) -> list[Row]:
    name = place.name
    rows = [printed(f"{name}: slowdown of jobs, {THEMIS}", runs.mean(slowdown, THEMIS, name), "x")]
    rows += conditions(runs, name)
    counted = (
        ("slowdown of jobs", slowdown),
        ("mean iteration time", mean_s),
        ("P99 iteration time", p99_s),
        ("mean JCT", "jct_mean"),
        ("GPU utilisation", "gpu_utilisation"),  # what Crux is for
    )
    for what, number in counted:
        rows += [
            printed(f"{name}: {what}, {policy} / {THEMIS}", runs.ratio(number, policy, THEMIS, name), "x")
            for policy in place.policies
        ]
        rows += [
            printed(f"{name}: {what}, {rival} / {CASSINI}", runs.ratio(number, rival, CASSINI, name), "x")
            for rival in (LEAST, CRUX, MLTCP)
        ]
    return rows


def _rows_of_paths(runs: Runs) -> list[Row]:
    rows = [
        printed(f"{FAT_TREE}: slowdown of jobs, {policy}, routes={name}", runs.mean(slowdown, policy, name), "x")
        for policy in (THEMIS, CRUX)
        for name in ROUTES
    ]
    for what, number in (("slowdown of jobs", slowdown), ("mean iteration time", mean_s), ("mean JCT", "jct_mean")):
        for policy in (THEMIS, CRUX):
            least = runs.each(number, policy, "least")
            rows += [
                printed(
                    f"{FAT_TREE}: {what}, {policy}, routes=least / routes={name}",
                    paired_ratio(least, runs.each(number, policy, name)),
                    "x",
                )
                for name in ("hash", "table")
            ]
    return rows


def _notes(options: Options, seeds: Sequence[int], table: Path | None) -> list[str]:
    told = [
        f"means and 95 % intervals over {len(seeds)} drawn traces, the same for all; ratios are of means, in pairs"
        + ("; --quick: short traces" if options.quick else ""),
        "mltcp by itself has base 0.25 and slope 1.75; crux has 8 levels",
        f"one period: as the first reading of cassini-equal-periods ({FIRST.name})",
        f"{FAT_TREE}: gangs of {FAT_TREE_GANGS} GPUs, whole; a slowdown is over the iteration alone on the same links, "
        "so what the flows of one job take from each other is in mean iteration times and JCTs only",
    ]
    if table is None:
        where = "it is looked for in ../shared/traces, or in the folder that --traces names"
        told.append(f"Lingjun is left out: no {TABLE.as_posix()} at hand; {where}")
    else:
        told.append(f"Lingjun: gangs of {GANGS} GPUs, whole, on {HOSTS.rpartition(',')[0]}, at load 1.5")
        told.append("Lingjun: random is left out: it joins all jobs by their links, and a run takes many minutes")
    return told
