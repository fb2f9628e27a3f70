"""Paper cassini, Sec. 5.2 to 5.4 and 5.6: whole traces under Random, Themis, Themis with CASSINI, and Ideal.

The traces are drawn as the paper says (workloads/cassini_jobs.py), as its own are not published: every number is over
drawn traces, the same for all schedulers, with its interval. Ratios are those of means over the traces, so a gain of
1.6x is a mean iteration time of Themis that is 1.6 times that of the augmented one. `ideal` bounds them all: no
placement and no shift makes jobs faster than with all links to themselves, so beside each published gain stands the
most that there was to gain.

The first rows are slowdowns: each job's mean iteration time over that alone. In the paper's own number, the mean of all
iteration times, models weigh by how long their iterations are, and under elastic workers jobs iterate with other
numbers of workers; so who is ahead of whom is judged by slowdowns, and only where `ideal` has room above ROOM. Where it
has not, the row says so, and a note who meets whom, for how long (cassini_on_links.py).

Cables carry 50 Gbps, what is written on them, and in a second reading of every trace 45: the text has two jobs at
"roughly 22 Gbps (i.e., half of l1's capacity)" (Sec. 2.2), 44 in all, which is what one of them sends alone.

Congestion is what jobs offer to links above their capacity, in bytes of all traces together: the paper counts packets
that are marked for it (ECN).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ....simulator.cluster.topology import Topology
from ....simulator.profiles.cassini_models import cassini_models
from ...comparing.intervals import Estimate
from ..case_runs import Runs, Take
from ..findings import Findings, Options
from ..loads import offered_load_note
from ..rows import Row, clear_order, printed, ratio
from ..sweep import sweep_by
from .cassini_on_links import (
    ON_LINKS,
    congestion_of,
    jobs_at_once,
    load,
    mean_s,
    p99_s,
    part_of_time,
    partners,
    slowdown,
    slowdown_of,
    slowdown_of_newcomer,
)

TRACES = 10
RANDOM, THEMIS, LEAST, CASSINI, IDEAL = "random", "themis", "least-shared", "themis+cassini", "ideal"
ORDER = (RANDOM, THEMIS, CASSINI, IDEAL)
POLICIES = (RANDOM, THEMIS, LEAST, CASSINI, IDEAL)
POLLUX, POLLUX_CASSINI = "pollux", "pollux+cassini"
ROOM = 1.03  # of the slowdown under themis over that under ideal: less is nothing to win
MET_MOST = 3  # pairs of models that the note of such a trace names
QUICK_JOBS = 12
MEASURED_GBPS = 45.0  # of a cable, in the second reading
PACKET_BYTES = 1500.0  # of an Ethernet frame: what a congestion of 0 is taken to be less than


@dataclass(frozen=True)
class Gain:
    """Published: by how many times the augmented scheduler is better than the plain one."""

    plain: str
    augmented: str
    mean: float
    p99: float


@dataclass(frozen=True)
class Marks:
    """Published: how many times fewer marked packets; of a model's jobs, or of all (None)."""

    plain: str
    augmented: str
    times: float
    model: str | None = None
    up_to: bool = False


@dataclass(frozen=True)
class Trace:
    """A kind of trace, and what is published of it."""

    name: str
    workload: str
    gains: tuple[Gain, ...]
    marks: tuple[Marks, ...] = ()
    topology: str = "cassini-testbed"
    policies: tuple[str, ...] = POLICIES
    newcomers: tuple[str, ...] = ()

    def word(self, quick: bool) -> str:
        """The workload; a shorter one where it has a length and `quick`."""
        return f"{self.workload},jobs={QUICK_JOBS}" if quick and self.is_poisson else self.workload

    def measured(self) -> Trace:
        """The same on cables of 45 Gbps."""
        name = f"{self.name}, cables of {MEASURED_GBPS:g} Gbps"
        return replace(self, name=name, topology=f"{self.topology}:link_gbps={MEASURED_GBPS:g}")

    @property
    def is_poisson(self) -> bool:
        """Whether jobs arrive at a rate."""
        return self.workload.startswith("cassini-poisson")


# Figure 11 has a mix of models, Figure 12 model parallel ones; the load is 80 to 100 %, not said which.
POISSON = Trace("all models", "cassini-poisson:load=0.9", (Gain(THEMIS, CASSINI, 1.6, 1.8),))
POISSON_MP = Trace("model parallel", "cassini-poisson:load=0.9,parallel=model", (Gain(THEMIS, CASSINI, 1.2, 1.6),))
# Figure 13; "27x and 33x more ECN marks" of DLRM.
DYNAMIC = Trace(
    "dynamic",
    "cassini-dynamic",
    (Gain(THEMIS, CASSINI, 1.5, 2.2), Gain(POLLUX, POLLUX_CASSINI, 1.6, 2.5)),
    (Marks(THEMIS, CASSINI, 27.0, "DLRM"), Marks(POLLUX, POLLUX_CASSINI, 33.0, "DLRM")),
    policies=(*POLICIES, POLLUX, POLLUX_CASSINI),
    newcomers=("DLRM", "ResNet50"),
)
# Figure 14; 29x of one model, which the text does not name.
DYNAMIC_MP = Trace(
    "dynamic, model parallel",
    "cassini-dynamic-mp",
    (Gain(THEMIS, CASSINI, 1.2, 1.6),),
    (Marks(THEMIS, CASSINI, 29.0, up_to=True),),
)
# Figure 16.
MULTI_GPU = Trace(
    "two GPUs a server", "cassini-multigpu", (Gain(THEMIS, CASSINI, 1.4, 1.9),), topology="cassini-two-gpu"
)


def _play(name: str, options: Options, traces: Sequence[Trace]) -> Runs:
    cases = {
        (policy, trace.name): [
            ON_LINKS.on(policy, seed, topology=trace.topology, workload=trace.word(options.quick))
            for seed in options.seeds(TRACES)
        ]
        for trace in traces
        for policy in trace.policies
    }
    return Runs(sweep_by(name, cases, options))


def _total(runs: Runs, number: Take, policy: str, trace: Trace) -> float:
    """Sum over the traces."""
    return float(sum(runs.each(number, policy, trace.name)))


def _mean(runs: Runs, number: Take, policy: str, trace: Trace) -> float:
    """Mean over the traces."""
    return _total(runs, number, policy, trace) / len(runs.of(policy, trace.name))


def _models(trace: Trace, runs: Runs) -> list[str]:
    """The models that were played, in the order of Table 3."""
    played = {str(model) for outcome in runs.of(THEMIS, trace.name) for model in outcome["model"]}
    return [model for model in cassini_models() if model in played]


def _slowdowns(trace: Trace, runs: Runs) -> list[Row]:
    """The headline: how much longer jobs take than alone, of all and model by model."""
    counted: list[tuple[str, Take]] = [("jobs", slowdown)]
    counted += [(model, slowdown_of(model)) for model in _models(trace, runs)]
    rows = []
    for what, number in counted:
        head = f"{trace.name}: slowdown of {what}, {THEMIS}"
        rows.append(printed(head, runs.mean(number, THEMIS, trace.name), "x"))
        for other in (LEAST, CASSINI) if what == "jobs" else (CASSINI, IDEAL):
            rows.append(printed(f"{head} / {other}", runs.ratio(number, THEMIS, other, trace.name), "x"))
    return rows


def bound(runs: Runs, place: str) -> Estimate:
    """The most that there is to win: how slow jobs are under themis, over that where nobody meets."""
    return runs.ratio(slowdown, THEMIS, IDEAL, place)


def _orders(trace: Trace, runs: Runs) -> list[Row]:
    """Who is ahead of whom, judged where there is something to win."""
    room = bound(runs, trace.name)
    head = f"{trace.name}: slowdown of jobs,"
    said = None if room.mean > ROOM else "nothing to win"
    rows = [printed(f"{head} {THEMIS} / {IDEAL}: the bound", room, "x", said)]
    for worse, better in pairwise(ORDER):
        quantity, over = f"{head} {better} / {worse}", runs.ratio(slowdown, better, worse, trace.name)
        rows.append(clear_order(quantity, "clearly below 1", over) if said is None else printed(quantity, over, "x"))
    return rows


def conditions(runs: Runs, place: str) -> list[Row]:
    """How full the cluster is under themis, and how much jobs are in each other's way."""
    of = (THEMIS, place)
    return [
        printed(f"{place}: realised load, {THEMIS}", runs.mean(load, *of), "%"),
        printed(f"{place}: jobs at once, {THEMIS}", runs.mean(jobs_at_once, *of)),
        printed(f"{place}: part of their time that jobs share links", runs.mean(part_of_time("shared_s"), *of), "%"),
        printed(f"{place}: the same, crowded links", runs.mean(part_of_time("crowded_s"), *of), "%"),
        printed(f"{place}: others on a job's crowded links", runs.mean(partners, *of)),
    ]


def _by_model(trace: Trace, runs: Runs) -> list[Row]:
    """Which models are in the way of others, or others in theirs."""
    rows = []
    for model in _models(trace, runs):
        part = runs.mean(part_of_time("crowded_s", model), THEMIS, trace.name)
        rows.append(printed(f"{trace.name}: part of its time on crowded links, {model}", part, "%"))
    return rows


def said_of_meetings(place: str, runs: Runs) -> list[str]:
    """Why there is nothing to win, one sentence; none where there is something."""
    room = bound(runs, place)
    if room.mean > ROOM:
        return []
    together: Counter[str] = Counter()
    for outcome in runs.of(THEMIS, place):
        for first, second, seconds in zip(
            outcome["pair_first"].tolist(), outcome["pair_second"].tolist(), outcome["pair_s"].tolist(), strict=True
        ):
            pair = sorted(str(outcome["model"][job]) for job in (first, second))
            together[" with ".join(pair)] += seconds
    shared, crowded = (runs.mean(part_of_time(name), THEMIS, place).mean for name in ("shared_s", "crowded_s"))
    most = ", ".join(f"{pair} ({seconds / together.total():.0%})" for pair, seconds in together.most_common(MET_MOST))
    who = f"; most together are {most}" if together else ""
    some = f", then with {runs.mean(partners, THEMIS, place).mean:.2g} others" if together else ""
    return [
        f"{place}: nothing to win, since jobs are only {100 * (room.mean - 1):.2g} % slower than where nobody "
        f"meets: they share links {shared:.3g} % of their time, crowded ones {crowded:.3g} %{some}{who}"
    ]


def _rows(trace: Trace, runs: Runs) -> list[Row]:
    def over(number: Take, policy: str, other: str) -> Estimate:
        return runs.ratio(number, policy, other, trace.name)

    rows = [*_slowdowns(trace, runs), *_orders(trace, runs), *conditions(runs, trace.name)]
    rows += _by_model(trace, runs)
    rows.append(printed(f"{trace.name}: mean iteration time, {RANDOM} / {THEMIS}", over(mean_s, RANDOM, THEMIS), "x"))
    for gain in trace.gains:
        for what, number, value in (("mean", mean_s, gain.mean), ("P99", p99_s, gain.p99)):
            head = f"{trace.name}: {what} iteration time, {gain.plain} /"
            rows.append(ratio(f"{head} {gain.augmented}", value, over(number, gain.plain, gain.augmented), "x"))
            rows.append(printed(f"{head} ideal: the bound", over(number, gain.plain, IDEAL), "x"))
            if gain.plain == THEMIS:
                rows.append(printed(f"{head} least-shared", over(number, THEMIS, LEAST), "x"))
    rows += [
        printed(
            f"{trace.name}: slowdown of newcomer {model}, {THEMIS} / {CASSINI}",
            over(slowdown_of_newcomer(model), THEMIS, CASSINI),
            "x",
        )
        for model in trace.newcomers
    ]
    rows += _congestion(trace, runs)
    for policy in trace.policies:
        told = [("mean iteration time", mean_s, "s")]
        told += [("realised load", load, "%"), ("jobs at once", jobs_at_once, "")] if policy != THEMIS else []
        rows += [
            printed(f"{trace.name}: {what}, {policy}", _mean(runs, number, policy, trace), unit)
            for what, number, unit in told
        ]
    return rows


def _congestion(trace: Trace, runs: Runs) -> list[Row]:
    rows = [_marked(trace, runs, marks) for marks in trace.marks]
    if not any(marks.model is None for marks in trace.marks):
        rows.append(_pooled(trace, runs, THEMIS, CASSINI, None))
    return [*rows, _pooled(trace, runs, THEMIS, LEAST, None)]


def _marked(trace: Trace, runs: Runs, marks: Marks) -> Row:
    """A published ratio of marked packets. No congestion at all where it is augmented meets it."""
    row = _pooled(trace, runs, marks.plain, marks.augmented, marks.model)
    if _total(runs, congestion_of(marks.model), marks.augmented, trace) == 0.0:
        return Row(f"{row.quantity}, at least", marks.times, row.ours, (0.0, float("inf")), unit="x")
    said = ratio(f"{row.quantity}{', up to' if marks.up_to else ''}", marks.times, row.ours, "x")
    return Row(said.quantity, said.paper, said.ours, said.within, row.low, row.high, "x")


def _pooled(trace: Trace, runs: Runs, plain: str, augmented: str, model: str | None) -> Row:
    number = congestion_of(model)
    quantity = f"{trace.name}: congestion{'' if model is None else f' of {model}'}, {plain} / {augmented}"
    if _total(runs, number, augmented, trace) == 0.0:
        return printed(quantity, _total(runs, number, plain, trace) / PACKET_BYTES, "x")
    return printed(quantity, runs.ratio(number, plain, augmented, trace.name), "x")


def _reproduction(name: str, *as_written: Trace) -> Callable[[Options], Findings]:
    traces = [*as_written, *(trace.measured() for trace in as_written)]

    def run(options: Options) -> Findings:
        runs = _play(name, options, traces)
        rows = [row for trace in traces for row in _rows(trace, runs)]
        why = [said for trace in traces for said in said_of_meetings(trace.name, runs)]
        return Findings(rows, [_said(options), *why, *_loads(options, as_written), *NOTES])

    return run


def _said(options: Options) -> str:
    quick = f"; --quick: Poisson traces have {QUICK_JOBS} jobs" if options.quick else ""
    return f"means and 95 % intervals over {len(options.seeds(TRACES))} drawn traces{quick}"


def _loads(options: Options, traces: Sequence[Trace]) -> list[str]:
    """One line a topology, of traces with arrivals; in the others one or two jobs come to a busy cluster."""
    loads: dict[str, dict[str, list[str]]] = {}
    for trace in (trace for trace in traces if trace.is_poisson):
        words = [f"{trace.word(options.quick)},seed={seed}" for seed in options.seeds(TRACES)]
        loads.setdefault(trace.topology, {})[trace.name] = words
    return [offered_load_note(some, Topology.load(topology).num_gpus) for topology, some in loads.items()]


NOTES = (
    "in a model where links are shared fairly nobody is faster than with all links to himself: `ideal` bounds every "
    "gain, and a published one above the bound cannot come out; that congestion lost more on the testbed than sharing "
    "does is no reason, as cassini-congestion shows",
    "congestion: bytes that had to wait, all traces together; the paper counts marked packets per iteration",
    f"cables of {MEASURED_GBPS:g} Gbps: two jobs together get what one has alone, as Sec. 2.2 measured; a job alone "
    "sends at its profile's rate on both",
    "all jobs start at once when they are placed, pacing keeps shifts (network contention, defaults)",
    "themis and those on it tune the number of workers (workers=elastic), and their candidates are equal in fairness; "
    "random and pollux give jobs the workers that they ask. So iterations under ideal are of other numbers of workers "
    "than under themis: the bound is one of slowdowns, over iterations alone of the same workers, and not strictly one "
    "of mean iteration times",
    'realised load: "the average fraction of GPUs that are serving active jobs" (Sec. 5.1), until the last job ends',
)

poisson = _reproduction("cassini-poisson", POISSON, POISSON_MP)
dynamic = _reproduction("cassini-dynamic", DYNAMIC)
model_parallel = _reproduction("cassini-model-parallel", DYNAMIC_MP)
multi_gpu = _reproduction("cassini-multigpu", MULTI_GPU)
