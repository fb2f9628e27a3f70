"""Paper mast, Sec. 3.4: how long copies of tables take, and what that costs who waits for them.

Copies take drawn times (`copy_time=published`), those on demand and for high priority go first (`copy_order=urgent`),
and a region sends and receives no more than its caps allow. `mast` schedules; V0, V1 and V2 place tables, twice a day,
beginning with the homes that users chose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ....simulator.regions.copy_times import BULK, HIGH, HOURS, KINDS, ON_DEMAND, SHARES
from ....simulator.regions.region_metrics import seconds_within
from ...comparing.intervals import Estimate, estimate, paired_ratio
from ...settings.evaluation_setting import Setting
from ..case import Case
from ..findings import Findings, Options
from ..rows import Row, bounded, clear_order, order, printed, ratio
from ..sweep import sweep_by

HOUR_S, DAY_S = 3600.0, 86_400.0
TRACES, DAYS, REGIONS, GPUS, LOAD, CAP_GBPS = 20, 2.0, 8, 1024, 0.6, 2.0
QUICK_DAYS, QUICK_REGIONS, QUICK_GPUS = 0.5, 4, 208  # with its CPU machines a size class that all tests share
LOOK_S = 43_200.0
CPUS = 1.2  # machines a GPU
STATIC, V1, V2 = "mast:slow=static", "mast:slow=tetris-v1", "mast:slow=tetris-v2"
BY_BANDWIDTH = "as fast as the links allow"
PUBLISHED = [(f"P{round(100 * share)}", share, hours) for share, hours in zip(SHARES, HOURS, strict=True)][1:-1]


def transfer(case: Case) -> Mapping[str, Any]:
    """Play a case: its metrics; `fullest`, of what regions might have sent by their caps the most that one did.

    And `copies_0` to `copies_2`, how many complete copies of a kind (regions/copy_times.py) took how long, by bin.
    """
    simulator, policy = case.begun()
    metrics = simulator.run(policy)
    s, n = simulator.state, simulator.topology.num_regions
    sent = s.wan_bytes[:n, :n].sum(axis=1) / (float(s.now_s - s.start_s) * s.egress_rate[:n])
    times = {f"copies_{kind}": s.copy_times[kind].astype(np.float64) for kind in range(len(KINDS))}
    return {"metrics": {**metrics, "fullest": float(sent.max())}, **times}


def _case(policy: str, seed: int, days: float, regions: int, gpus: int, **copies: Any) -> Case:
    size = f"regions={regions},gpus={gpus},cpu_machines={round(CPUS * gpus)}"
    setting = Setting.of(
        "clustergym/Geo-v0",
        f"mast:{size},egress_gbps={CAP_GBPS:g},ingress_gbps={CAP_GBPS:g}",
        f"mast-like:days={days!r},{size},load={LOAD!r}",
        "none",
        horizon_s=days * DAY_S,
        tables_every_s=LOOK_S,
        **copies,
    )
    return Case(policy, setting, seed, "mast.mast_transfer:transfer")


class _Traces:
    """The same traces under V0, V1 and V2, with copies as published, and under V0 and V2 with copies by bandwidth."""

    def __init__(self, options: Options) -> None:
        self.seeds = options.seeds(TRACES)
        size = (QUICK_DAYS, QUICK_REGIONS, QUICK_GPUS) if options.quick else (DAYS, REGIONS, GPUS)
        self.days, self.regions, self.gpus = size
        cases: dict[tuple[str, str], list[Case]] = {}
        for time, policies in (("published", (STATIC, V1, V2)), ("bandwidth", (STATIC, V2))):
            for policy in policies:
                cases[time, policy] = [
                    _case(policy, seed, *size, copy_time=time, copy_order="urgent") for seed in self.seeds
                ]
        self.outcomes = sweep_by("mast-transfer", cases, options)

    def hours(self, kinds: Sequence[int], share: float) -> float:
        """A percentile of the copies of V2 of some kinds, all traces together."""
        counts = sum(run[f"copies_{kind}"] for kind in kinds for run in self.outcomes["published", V2])
        return seconds_within(np.asarray(counts), [share])[0] / HOUR_S

    def count(self, kind: int) -> int:
        """How many copies of a kind V2 has, all traces together."""
        return int(sum(run[f"copies_{kind}"].sum() for run in self.outcomes["published", V2]))

    def each(self, field: str, policy: str, time: str = "published") -> list[float]:
        """A metric of each trace."""
        return [run.metrics[field] for run in self.outcomes[time, policy]]

    def over(self, policy: str, time: str = "published") -> Estimate:
        """Queueing under a policy over that under V0, on the same traces."""
        return paired_ratio(*(self.each("queueing_delay_mean", one, time) for one in (policy, STATIC)))


def transfers(options: Options) -> Findings:
    """Times of copies by kind beside the published ones, and queueing where tables move and where they do not."""
    traces = _Traces(options)
    rows: list[Row] = []
    for what, kinds in (("all copies", (ON_DEMAND, HIGH, BULK)), ("high priority", (HIGH,)), ("bulk", (BULK,))):
        rows += [ratio(f"{what}, {name}", hours, traces.hours(kinds, at), "h") for name, at, hours in PUBLISHED]
    rows += [printed(f"on demand, {name}", traces.hours((ON_DEMAND,), at), "h") for name, at, _ in PUBLISHED]
    first = traces.hours((ON_DEMAND,), 0.9) / traces.hours((BULK,), 0.5)
    rows.append(order("on demand, P90 / bulk, P50", "below 1: those on demand go first", first))
    fullest = max(max(traces.each("fullest", policy)) for policy in (STATIC, V1, V2))
    rows.append(bounded("most that a region sent / its cap", "at most 1", fullest, (0.0, 1.0)))
    rows += [
        clear_order("queueing, V2 / V0", "below 1", traces.over(V2)),
        printed("queueing, V1 / V0", traces.over(V1), "x"),
        printed(f"queueing, V2 / V0, copies {BY_BANDWIDTH}", traces.over(V2, "bandwidth"), "x"),
    ]
    for name, policy in (("V0", STATIC), ("V1", V1), ("V2", V2)):
        waits = estimate([100.0 * share for share in traces.each("data_wait_rate", policy)])
        rows += [
            printed(f"queueing, {name}", estimate(traces.each("queueing_delay_mean", policy)), "s"),
            printed(f"workloads that wait for data, {name}", waits, "%"),
        ]
    counts = ", ".join(f"{traces.count(kind)} {name}" for kind, name in enumerate(KINDS))
    played = (
        f"{len(traces.seeds)} generated traces of {traces.days:g} days: {traces.regions} regions, {traces.gpus:,} "
        f"GPUs, load {LOAD:g}, a look at tables every {LOOK_S / HOUR_S:g} h; a region sends and receives {CAP_GBPS:g} "
        f"Gbps at most. Percentiles are of all copies under V2 that are complete ({counts}), from the decision on"
    )
    assumed = (
        "published is one distribution of times; ours are drawn from it, so that they meet it where nothing waits is "
        "no result: what caps and queues add is. That copies on demand get half the time is assumed"
    )
    return Findings(rows, [played, assumed])
