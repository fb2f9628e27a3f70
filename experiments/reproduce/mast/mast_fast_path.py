"""Paper mast's fast path, Sec. 4.1, 4.3 and 5: who starts in time, how full the GPUs are, what the cache saves.

Nothing of the paper's own trace is published. A trace is generated data (`mast-like`, at its own load) in regions whose
tables Tetris V2 has placed; see mast_case.py. Every number is a mean over traces, one a seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from ....simulator.base.codes import HIGH_LEVELS
from ...comparing.intervals import Estimate, estimate
from ..case import Outcome
from ..case_runs import Take, metric
from ..findings import Findings, Options
from ..rows import Row, order, printed, ratio
from ..sweep import sweep_by
from .mast_case import HOUR_S, fast_case
from .mast_weeks import CANDIDATES

WEEKS, WEEK_H, QUICK_H = 5, 168.0, 12.0
REGIONS, GPUS, LOAD, LIGHTER, HEAVIER, FULL = 8, 4096, 1.1, 0.9, 1.3, 2.0
MANY_GPUS = 16_384  # where a single late workload is less than a per cent of its hour
CPUS = 1.2  # machines a GPU at load 1.1: Sec. 5.2, "slight overprovisioning"; then about four in five are allocated
QUICK_REGIONS, QUICK_GPUS = 4, 208  # with its CPU machines a size class that all tests share
TRACE_H = 21.0
QUOTA_LOADS, QUOTA_FACTORS, QUOTA_TRACES = (1.1, 2.0, 3.0), (1.0, 3.0, 250.0), 3
BUSY_H = (11.0, 19.0)  # the eight hours around the peak of a day's arrivals; two more to see who starts late
PROMISED = 4  # levels 0 to 3 have a time to start in
PENDING = (0.0, 20.0, 50.0, 100.0, 200.0, np.inf)
WARM_H = 2.0  # what is there at the beginning comes all at once
CELLS = {
    "(1)": "scope:queue=cluster,allocation=cluster,slow=none",
    "(2)": "scope:queue=region,allocation=cluster,slow=none",
    "(3)": "scope:queue=global,allocation=cluster,slow=none",
    "(5)": "federated:slow=none",
    "(6)": "mast:slow=none",
}
PREFERENCE = ("(6)", "(3)", "(5)", "(2)", "(1)")
MAST, FEDERATED = CELLS["(6)"], CELLS["(5)"]
DAILY, BLIND = "federated:slow=none,demand=day", "federated:slow=none,bind=any"
JOINTLY, ONE_AT_A_TIME = "global:slow=none", "global:slow=none,joint=1"


class _Traces:
    """The same traces under several schedulers."""

    def __init__(
        self,
        name: str,
        options: Options,
        policies: Sequence[str],
        hours: float = WEEK_H,
        tables: str = "tetris-v2",
        load: float = LOAD,
        raised: bool = False,
        gpus: int = GPUS,
        traces: int = WEEKS,
        quotas: float = 1.0,
        copies: str = "bandwidth",
    ) -> None:
        self.seeds = options.seeds(traces)
        self.regions, self.gpus = (QUICK_REGIONS, QUICK_GPUS) if options.quick else (REGIONS, gpus)
        self.hours = min(hours, QUICK_H) if options.quick else hours
        cpus = round(CPUS * self.gpus * max(load, LOAD) / LOAD)
        case = partial(
            fast_case, regions=self.regions, gpus=self.gpus, cpus=cpus, hours=self.hours, load=load, tables=tables
        )
        cases = {
            policy: [case(policy, seed=seed, raised=raised, quotas=quotas, copies=copies) for seed in self.seeds]
            for policy in policies
        }
        self.outcomes = sweep_by(name, cases, options)

    @property
    def busy(self) -> tuple[float, float]:
        """From which hour to which starts are looked at: those that are due by the end."""
        return BUSY_H if self.hours > BUSY_H[1] else (WARM_H, self.hours - 1.0)

    def each(self, policy: str, how: Take) -> list[float]:
        """A number of every trace under a scheduler."""
        return list(map(how, self.outcomes[policy]))

    def mean(self, policy: str, how: Take) -> Estimate:
        """Its mean over the traces."""
        return estimate(self.each(policy, how))

    def over(self, policy: str, base: str, how: Take) -> Estimate:
        """Its ratio under two schedulers, trace by trace."""
        pairs = zip(self.each(policy, how), self.each(base, how), strict=True)
        return estimate([ours / theirs if theirs else float("nan") for ours, theirs in pairs])

    def said(self) -> str:
        """What was played, for a note."""
        demand = self.each(next(iter(self.outcomes)), metric("demand"))
        return (
            f"means and 95 % intervals over {len(self.seeds)} generated traces of {self.hours:g} h: {self.regions} "
            f"regions, {self.gpus:,} GPUs, {CPUS:g} CPU machines a GPU, load {LOAD:g} (mast-like's own), tables placed "
            "by Tetris V2, a pass over the queue every 34 s; what they ask until the end is "
            f"{np.mean(demand):.3g} of the GPU time ({min(demand):.3g} to {max(demand):.3g})"
        )


def late_share(outcome: Outcome, levels: range, hours: tuple[float, float], within: bool = True) -> float:
    """Workloads of these levels that came within some hours and started too late, % of all of them; nan: none came.

    Only those that were within quota when they came, or only those that were not.
    """
    from ....simulator.workloads.mast_jobs import SLO_S

    counted = (outcome["arrival_s"] >= hours[0] * HOUR_S) & (outcome["arrival_s"] < hours[1] * HOUR_S)
    counted &= np.isin(outcome["level"], list(levels)) & (outcome["within"].astype(bool) == within)
    late = outcome["wait_s"] > np.array(SLO_S)[outcome["level"].astype(np.int64)]
    return 100.0 * float(late[counted].mean()) if counted.any() else float("nan")


def slo(options: Options) -> Findings:
    """Workloads within quota that do not start in time, in the eight busiest hours of a day."""
    traces = _Traces("mast-slo", options, (MAST, FEDERATED), TRACE_H)
    promised, high = range(PROMISED), range(HIGH_LEVELS)
    rows: list[Row] = []
    for policy, name in ((MAST, "mast"), (FEDERATED, "federated")):
        late = [
            traces.mean(policy, partial(late_share, levels=levels, hours=traces.busy)) for levels in (promised, high)
        ]
        worst, worst_high = (
            traces.mean(policy, partial(_worst_hour, levels=levels, hours=traces.busy)) for levels in (promised, high)
        )
        over = traces.mean(policy, partial(late_share, levels=promised, hours=traces.busy, within=False))
        words = [
            f"start too late, within quota, {name}",
            f"start too late, within quota and high priority, {name}",
            f"start too late, within quota, in the worst hour of each trace, {name}",
            f"the same of high priority, {name}",
        ]
        if policy == MAST:
            rows += [printed(word, one, "%") for word, one in zip(words, late, strict=False)]
            rows += [ratio(word, (0.0, 1.3), one) for word, one in zip(words[2:], (worst, worst_high), strict=True)]
        else:
            said = "much higher than mast"
            rows += [printed(word, one, "%", said) for word, one in zip(words, (*late, worst), strict=False)]
            rows.append(ratio(words[3], 50.0, worst_high))
        rows.append(printed(f"start too late, over quota, {name}", over, "%"))
    third = traces.mean(MAST, partial(late_share, levels=range(PROMISED - 1, PROMISED), hours=traces.busy))
    rows.append(printed("start too late, within quota, level 3 alone, mast", third, "%"))
    for policy, name in ((MAST, "mast"), (FEDERATED, "federated")):
        fullest = traces.mean(policy, metric("fullest", 100.0))
        rows.append(printed(f"GPUs held by high priority where that is most, {name}", fullest, "%"))
    lighter = _Traces("mast-slo, lighter", options, (MAST,), TRACE_H, load=LIGHTER)
    light = lighter.mean(MAST, partial(late_share, levels=promised, hours=lighter.busy))
    rows.append(printed(f"start too late, within quota, mast, load {LIGHTER:g}", light, "%"))
    rows += _slo_evidence(options)
    everybody = traces.over(MAST, FEDERATED, partial(late_share, levels=promised, hours=traces.busy))
    rows.append(order("start too late, within quota, mast / federated", "below 1", everybody))
    return Findings(rows, [traces.said(), SLO_NOTE, SLO_WHY])


def _slo_evidence(options: Options) -> list[Row]:
    """What the worst hours depend on."""
    rows: list[Row] = []
    if not options.quick:
        many = _Traces("mast-slo, more GPUs", options, (MAST, FEDERATED), TRACE_H, gpus=MANY_GPUS)
        for policy, name in ((MAST, "mast"), (FEDERATED, "federated")):
            for levels, whose in ((range(PROMISED), ""), (range(HIGH_LEVELS), " of high priority")):
                worst = many.mean(policy, partial(_worst_hour, levels=levels, hours=many.busy))
                rows.append(printed(f"worst hour{whose}, {MANY_GPUS:,} GPUs, {name}", worst, "%"))
    raised = _Traces("mast-slo, level 3 raised", options, (MAST, FEDERATED), TRACE_H, raised=True)
    for policy, name in ((MAST, "mast"), (FEDERATED, "federated")):
        worst = raised.mean(policy, partial(_worst_hour, levels=range(HIGH_LEVELS), hours=raised.busy))
        rows.append(printed(f"worst hour of high priority, were level 3 of it too, {name}", worst, "%"))
        fullest = raised.mean(policy, metric("fullest", 100.0))
        rows.append(
            printed(f"GPUs held by high priority where that is most, were level 3 of it too, {name}", fullest, "%")
        )
    daily = _Traces("mast-slo, demand of a day", options, (DAILY,), TRACE_H)
    worst = daily.mean(DAILY, partial(_worst_hour, levels=range(HIGH_LEVELS), hours=daily.busy))
    rows.append(printed("worst hour of high priority, federated by the slow path's demand of a day", worst, "%"))
    gpus = daily.mean(DAILY, metric("allocation_rate", 100.0))
    rows.append(printed("GPUs allocated, federated by the slow path's demand of a day", gpus, "%"))
    return rows + _without_regard_to_data(options)


def _without_regard_to_data(options: Options) -> list[Row]:
    """Federated bound to any region with the hardware, where copies take what links allow and where they take hours."""
    rows: list[Row] = []
    names = {MAST: "mast", FEDERATED: "federated", BLIND: "federated without regard to data"}
    for copies, where, policies in (
        ("bandwidth", "", (BLIND,)),
        ("published", ", copies of tables that take hours", tuple(names)),
    ):
        traces = _Traces(f"mast-slo, bind=any{where}", options, policies, TRACE_H, copies=copies)
        for policy in policies:
            name = names[policy]
            late, worst = (
                traces.mean(policy, partial(how, levels=range(HIGH_LEVELS), hours=traces.busy))
                for how in (late_share, _worst_hour)
            )
            rows.append(printed(f"start too late, within quota and high priority, {name}{where}", late, "%"))
            told = f"worst hour of high priority, {name}{where}"
            rows.append(ratio(told, 50.0, worst) if policy == BLIND else printed(told, worst, "%"))
        gpus = traces.mean(BLIND, metric("allocation_rate", 100.0))
        rows.append(printed(f"GPUs allocated, federated without regard to data{where}", gpus, "%"))
    return rows


def _worst_hour(outcome: Outcome, levels: range, hours: tuple[float, float]) -> float:
    each = [late_share(outcome, levels, (hour, hour + 1.0)) for hour in np.arange(*hours)]
    return float(np.nanmax(each)) if np.isfinite(each).any() else float("nan")


SLO_NOTE = (
    "levels 0 to 3 are to start within 10, 20, 30 and 60 minutes (mast-like's; the paper gives no times), high "
    "priority is 0 to 2; within quota is who GMS counted so when it saw them first. The minute to save who is "
    "preempted for a start is part of its wait (Sec. 5.5), the time to set up its containers is not. The published 1.3 "
    "% are of all priorities, all the time: the worst hour is compared with it, not the mean over the busy ones. Some "
    "30 come an hour within quota, so one that is late is 3 % of them; with four times the GPUs, at the same load, it "
    "is less than 1 %, and the worst hour stays below the published rate"
)
SLO_WHY = (
    "federated does not reach 50 %: it knows exactly here what is asked of each region now, quotas promise no more "
    "than there is, and high priorities hold only a part of any region. Where users put the tables, what recurs of "
    "them asks nearly half of the worst region's GPUs, as the load has it (published: 2.63 times them, 0.98 under V1). "
    "That they hold a part alone is not why: were level 3 of high priority too, they would hold nearly all of one, and "
    "the rate would be 8 %. What demand means is why: by the demand of a day that the slow path knows (the paper's "
    "word in Sec. 3.3), federated binds all that may go there to the same region, and comes near the published rate, "
    "but leaves most GPUs idle. The paper does not say which it took, nor the load of its trace and its quotas. Nor "
    "does it name data: bound without regard to them workloads wait for copies, and where these take hours federated "
    "comes half of the way, with the GPUs in use. Such a copy, for who could run elsewhere, takes the whole drawn time"
)


def designspace(options: Options) -> Findings:
    """Table 1: the cells by the GPUs that they keep allocated; and (9), one at a time and jointly."""
    traces = _Traces("mast-designspace", options, (*CELLS.values(), JOINTLY, ONE_AT_A_TIME))
    allocation, rows = metric("allocation_rate", 100.0), []
    for name in PREFERENCE:
        rows.append(printed(f"GPUs allocated, {name}", traces.mean(CELLS[name], allocation), "%"))
    rows.append(printed("GPUs allocated, (9) jointly", traces.mean(JOINTLY, allocation), "%"))
    for better, worse in pairwise(PREFERENCE):
        change = traces.over(CELLS[better], CELLS[worse], allocation)
        rows.append(order(f"GPUs allocated, {better} / {worse}", f"{better} > {worse}", change, below=False))
    rows.append(_sameness(traces))
    late = partial(late_share, levels=range(PROMISED), hours=(WARM_H, traces.hours - 1.0))
    for name in (*PREFERENCE, "(9) jointly"):
        rows.append(printed(f"start too late, within quota, {name}", traces.mean(CELLS.get(name, JOINTLY), late), "%"))
    for name in (*PREFERENCE, "(9) jointly"):
        rows.append(printed(f"preemptions, {name}", traces.mean(CELLS.get(name, JOINTLY), metric("preemptions"))))
    return Findings(rows, [traces.said(), DESIGN_NOTE])


DESIGN_NOTE = (
    "the paper orders the cells by scheduling quality without a measure: here it is the share of GPUs that are "
    "allocated, its measure of MAST; (9) is the same with one workload at a time in every start of every workload"
)


def _sameness(traces: _Traces) -> Row:
    """Whether (9) with one workload at a time starts every workload when (6) does."""
    pairs = zip(traces.outcomes[MAST], traces.outcomes[ONE_AT_A_TIME], strict=True)
    same = [np.array_equal(one["wait_s"], other["wait_s"]) for one, other in pairs]
    return Row(
        "traces on which (9), one at a time, starts all as (6) does",
        100.0,
        100.0 * float(np.mean(same)),
        (100.0, 100.0),
        unit="%",
    )


def allocation(options: Options) -> Findings:
    """GPU-hours and machine-hours that are allocated over those that there are."""
    rows: list[Row] = []
    traces = _Traces("mast-allocation", options, (MAST,))
    gpus, cpus, demand = metric("allocation_rate", 100.0), metric("cpu_allocation_rate", 100.0), metric("demand")
    rows.append(ratio("GPU allocation rate, mast", 98.0, traces.mean(MAST, gpus)))
    rows.append(printed("CPU allocation rate, mast (fitted)", traces.mean(MAST, cpus), "%", "72 to 87 %"))
    rows.append(printed("GPU-hours asked over those that there are", traces.mean(MAST, demand), "x", "above 1"))
    rows.append(printed("the same in the trace that asks least", min(traces.each(MAST, demand)), "x", "above 1"))
    heavier = _Traces("mast-allocation, heavier", options, (MAST,), load=HEAVIER)
    rows.append(printed(f"GPU allocation rate, mast, load {HEAVIER:g}", heavier.mean(MAST, gpus), "%"))
    rows.append(printed(f"CPU allocation rate, mast, load {HEAVIER:g}", heavier.mean(MAST, cpus), "%"))
    least = min(heavier.each(MAST, demand))
    rows.append(printed(f"GPU-hours asked in the trace that asks least, load {HEAVIER:g}", least, "x", "above 1"))
    full = _Traces("mast-allocation, full", options, (MAST,), load=FULL)
    rows.append(printed(f"GPU allocation rate, mast, load {FULL:g}", full.mean(MAST, gpus), "%", "98 %"))
    for load, those in ((LOAD, traces), (HEAVIER, heavier), (FULL, full)):
        rows.append(ratio(f"preemptions a workload, load {load:g}", 1.0, those.mean(MAST, preemptions), ""))
    return Findings(rows, [traces.said(), ALLOCATION_NOTE])


def quotas(options: Options) -> Findings:
    """Preemptions, allocation and late starts by load and quotas: which figures a combination of them reaches."""
    rows: list[Row] = []
    most: dict[str, float] = {}
    high = partial(_worst_hour, levels=range(HIGH_LEVELS))
    for load in QUOTA_LOADS:
        for factor in QUOTA_FACTORS:
            traces = _Traces(
                "mast-quotas", options, (MAST, FEDERATED), TRACE_H, load=load, traces=QUOTA_TRACES, quotas=factor
            )
            asked = (
                ("preemptions a workload, mast", "", "1", MAST, preemptions),
                ("GPUs allocated, mast", "%", "98", MAST, metric("allocation_rate", 100.0)),
                ("worst hour of high priority, mast", "%", "below 1.3", MAST, partial(high, hours=traces.busy)),
                ("worst hour of high priority, federated", "%", "50", FEDERATED, partial(high, hours=traces.busy)),
            )
            for what, unit, paper, policy, how in asked:
                told = traces.mean(policy, how)
                most[what] = max(most.get(what, 0.0), told.mean)
                rows.append(printed(f"load {load:g}, quotas x {factor:g}: {what}", told, unit, paper))
    rows += [
        ratio("most preemptions a workload of all, mast", 1.0, most["preemptions a workload, mast"], ""),
        ratio("most GPUs allocated of all, mast", 98.0, most["GPUs allocated, mast"]),
        ratio("highest worst hour of all, federated", 50.0, most["worst hour of high priority, federated"]),
    ]
    said = traces.said().replace(f"load {LOAD:g} (mast-like's own)", "loads as named")
    return Findings(rows, [said, QUOTA_NOTE])


QUOTA_NOTE = (
    "what is asked is that of the last combination; quotas are so many times those of mast-like, "
    "which share the supply out by what tenants ask. Beyond its quota a workload has the lowest priority and stops "
    "nobody, so that few are stopped where quotas are small, and where they are large fewer are left to be stopped"
)


def preemptions(outcome: Outcome) -> float:
    """How often a workload was preempted, in the mean over all that came (Sec. 5.1)."""
    return outcome.metrics["preemptions"] / len(outcome["arrival_s"])


ALLOCATION_NOTE = (
    "the paper's 87 % are of dedicated CPU machines, 72 % of borrowed ones, which are not told apart here: their "
    "number is chosen, in proportion to the load, so that no GPU waits for one. Where more is asked than there is, as "
    f"in the paper, more is allocated: load {LOAD:g} is a mean, and not every trace asks so much, so that it cannot "
    f"fill 98 %; one of {FULL:g} is printed for that. Nobody is preempted for a workload beyond its tenant's quota"
)


def noncollocated(options: Options) -> Findings:
    """Workloads that no region could run when they came, as their tables lay nowhere together."""
    rows: list[Row] = []
    for version, name in (("tetris-v2", "V2"), ("tetris-v1", "V1"), ("static", "V0")):
        traces = _Traces(f"mast-noncollocated, {name}", options, (MAST,), tables=version)
        waits = traces.mean(MAST, metric("data_wait_rate", 100.0))
        moved = traces.mean(MAST, metric("bytes_moved", 1e-12))
        if version == "tetris-v2":
            rows.append(ratio("workloads that wait for data, tables placed by V2", (0.0, 0.1), waits))
        else:
            rows.append(printed(f"workloads that wait for data, tables placed by {name}", waits, "%"))
        rows.append(printed(f"copied on demand, TB, tables placed by {name}", moved))
        for least, paper in CANDIDATES.items():
            share = traces.mean(MAST, partial(candidate_share, least=least))
            words = f"workloads with {least} candidate regions or more, {name}"
            rows.append(ratio(words, paper, share) if version == "tetris-v2" else printed(words, share, "%"))
    note = (
        "70 % of the workloads come for the first time: Tetris knows the others' tables alone. Candidate regions have "
        "a workload's tables and hardware when the run begins (Figure 7); storage is five times the tables here, so "
        "that nothing limits replicas but the share of a region for hot ones"
    )
    return Findings(rows, [traces.said().replace("Tetris V2", "the version named"), note])


def candidate_share(outcome: Outcome, least: int) -> float:
    """Workloads with so many candidate regions or more, % (Figure 7)."""
    return 100.0 * float((outcome["candidates"] >= least).mean())


def negative_cache(options: Options) -> Findings:
    """How many attempts to place a workload in a region the negative cache answers."""
    traces = _Traces("mast-negative-cache", options, (MAST,))
    rows = [
        ratio("hit rate of the negative cache", 80.0, traces.mean(MAST, hit_share)),
        printed(
            "attempts to place a workload in a region, a start",
            traces.mean(MAST, lambda one: one.metrics["asked"] / one.metrics["starts"]),
        ),
    ]
    for low, high in pairwise(PENDING):
        words = f"{low:g} to {high - 1:g}" if high < np.inf else f"{low:g} or more"
        share = traces.mean(MAST, partial(hit_share, low=low, high=high))
        rows.append(printed(f"hit rate where {words} workloads are pending", share, "%"))
    return Findings(rows, [traces.said(), CACHE_NOTE])


def hit_share(outcome: Outcome, low: float = 0.0, high: float = np.inf) -> float:
    """Attempts that the cache answered, % of those of passes with so many pending workloads; nan: there were none."""
    these = (outcome["pass_pending"] >= low) & (outcome["pass_pending"] < high)
    asked = float(outcome["pass_asked"][these].sum())
    return 100.0 * float(outcome["pass_spared"][these].sum()) / asked if asked else float("nan")


CACHE_NOTE = (
    "an attempt is one workload and one region with its tables; a hit is one that is refused without a search. The "
    "cache is empty at the start of every pass, and the first to ask for so many units of a type in a region searches: "
    "so a longer queue has a higher rate. The paper does not say how many workloads its passes offer a region"
)
