"""Paper cassini, Sec. 5.2 to 5.4 and 5.6: whole traces under Random, Themis, Themis with CASSINI, and Ideal.

The traces are drawn as the paper says (workloads/cassini_jobs.py), as its own are not published: every number is over
drawn traces, the same for all schedulers, with its interval. Ratios are those of means over the traces, so a gain of
1.6x is a mean iteration time of Themis that is 1.6 times that of the augmented one. `ideal` bounds them all: no
placement and no shift makes jobs faster than with all links to themselves, so beside each published gain stands the
most that there was to gain.

Congestion is what jobs offer to links above their capacity, in bytes of all traces together: the paper counts packets
that are marked for it (ECN).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ...simulator.cluster.topology import Topology
from ..estimates import Estimate, paired_ratio
from .cassini_case import TraceCase, TraceOutcome
from .loads import offered_load_note
from .registry import Findings, Options, Reproduction
from .rows import Row, order, printed, ratio
from .sweep import sweep

TRACES = 10
RANDOM, THEMIS, LEAST, CASSINI, IDEAL = "random", "themis", "least-shared", "themis+cassini", "ideal"
ORDER = (RANDOM, THEMIS, CASSINI, IDEAL)
POLICIES = (RANDOM, THEMIS, LEAST, CASSINI, IDEAL)
POLLUX, POLLUX_CASSINI = "pollux", "pollux+cassini"
QUICK_JOBS = 12
PACKET_BYTES = 1500.0  # of an Ethernet frame: what a congestion of 0 is taken to be less than

Number = Callable[[TraceOutcome], float]


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


@dataclass(frozen=True)
class Played:
    """Outcomes by policy, one a trace."""

    outcomes: Mapping[str, Sequence[TraceOutcome]]

    def ratio(self, number: Number, policy: str, other: str) -> Estimate:
        """The policy's number over the other's, means over the traces."""
        ours, theirs = ([number(one) for one in self.outcomes[name]] for name in (policy, other))
        return paired_ratio(ours, theirs)

    def total(self, number: Number, policy: str) -> float:
        """Sum over the traces."""
        return float(sum(number(one) for one in self.outcomes[policy]))


def mean_s(outcome: TraceOutcome) -> float:
    """Mean iteration time, seconds."""
    return outcome.metrics["iteration_time_mean"]


def p99_s(outcome: TraceOutcome) -> float:
    """99th percentile of iteration times, seconds."""
    return outcome.metrics["iteration_time_p99"]


def slowdown(outcome: TraceOutcome) -> float:
    """Iteration time over that alone, mean over jobs: short iterations and long ones count alike."""
    return float(outcome.slowdown.mean())


def slowdown_of(model: str) -> Number:
    """The same of the last job of a model: a newcomer of a dynamic trace."""
    return lambda outcome: float(outcome.slowdown[outcome.model == model][-1])


def congestion_of(model: str | None) -> Number:
    """Bytes of congestion of a model's jobs, or of all."""
    if model is None:
        return lambda outcome: float(outcome.congestion_bytes.sum())
    return lambda outcome: outcome.congestion_of(model)


def _play(name: str, options: Options, traces: Sequence[Trace]) -> dict[str, Played]:
    cases = {
        (trace.name, policy): [
            TraceCase(policy, trace.topology, trace.word(options.quick), seed=seed) for seed in options.seeds(TRACES)
        ]
        for trace in traces
        for policy in trace.policies
    }
    found = sweep(name, [case for some in cases.values() for case in some], options)
    return {
        trace.name: Played({policy: [found[case] for case in cases[trace.name, policy]] for policy in trace.policies})
        for trace in traces
    }


def _rows(trace: Trace, played: Played) -> list[Row]:
    rows = [
        order(f"{trace.name}: mean iteration time, {better} / {worse}", "below 1", played.ratio(mean_s, better, worse))
        for worse, better in pairwise(ORDER)
    ]
    for gain in trace.gains:
        for what, number, value in (("mean", mean_s, gain.mean), ("P99", p99_s, gain.p99)):
            head = f"{trace.name}: {what} iteration time, {gain.plain} /"
            rows.append(ratio(f"{head} {gain.augmented}", value, played.ratio(number, gain.plain, gain.augmented), "x"))
            rows.append(printed(f"{head} ideal: the bound", played.ratio(number, gain.plain, IDEAL), "x"))
            if gain.plain == THEMIS:
                rows.append(printed(f"{head} least-shared", played.ratio(number, THEMIS, LEAST), "x"))
    rows += [
        printed(f"{trace.name}: mean slowdown of jobs, {THEMIS} / {other}", played.ratio(slowdown, THEMIS, other), "x")
        for other in (LEAST, CASSINI, IDEAL)
    ]
    rows += [
        printed(
            f"{trace.name}: slowdown of newcomer {model}, {THEMIS} / {CASSINI}",
            played.ratio(slowdown_of(model), THEMIS, CASSINI),
            "x",
        )
        for model in trace.newcomers
    ]
    rows += [_marked(trace, played, marks) for marks in trace.marks]
    if not any(marks.model is None for marks in trace.marks):
        rows.append(_pooled(trace, played, THEMIS, CASSINI, None))
    rows.append(_pooled(trace, played, THEMIS, LEAST, None))
    rows += [
        printed(f"{trace.name}: mean iteration time, {policy}", played.total(mean_s, policy) / len(outcomes), "s")
        for policy, outcomes in played.outcomes.items()
    ]
    return rows


def _marked(trace: Trace, played: Played, marks: Marks) -> Row:
    """A published ratio of marked packets. No congestion at all where it is augmented meets it."""
    row = _pooled(trace, played, marks.plain, marks.augmented, marks.model)
    if played.total(congestion_of(marks.model), marks.augmented) == 0.0:
        return Row(f"{row.quantity}, at least", marks.times, row.ours, (0.0, float("inf")), unit="x")
    said = ratio(f"{row.quantity}{', up to' if marks.up_to else ''}", marks.times, row.ours, "x")
    return Row(said.quantity, said.paper, said.ours, said.within, row.low, row.high, "x")


def _pooled(trace: Trace, played: Played, plain: str, augmented: str, model: str | None) -> Row:
    number = congestion_of(model)
    quantity = f"{trace.name}: congestion{'' if model is None else f' of {model}'}, {plain} / {augmented}"
    if played.total(number, augmented) == 0.0:
        return printed(quantity, played.total(number, plain) / PACKET_BYTES, "x")
    return printed(quantity, played.ratio(number, plain, augmented), "x")


def _reproduction(name: str, traces: Sequence[Trace], summary: str) -> Reproduction:
    def run(options: Options) -> Findings:
        played = _play(name, options, traces)
        rows = [row for trace in traces for row in _rows(trace, played[trace.name])]
        return Findings(rows, [_said(options), *_loads(options, traces), *NOTES])

    return Reproduction(name, "cassini", "ratio", summary, run)


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
    "gain, and a published one above the bound cannot come out; the testbed's own protocol may lose more to congestion",
    "congestion: bytes offered above capacity, all traces together; the paper counts marked packets per iteration",
    "gangs are whole, all jobs start at once when they are placed, pacing keeps shifts (network contention, defaults)",
)

REPRODUCTIONS = (
    _reproduction("cassini-poisson", (POISSON, POISSON_MP), "Figures 11 and 12: Poisson arrivals"),
    _reproduction("cassini-dynamic", (DYNAMIC,), "Figure 13: DLRM and ResNet50 come to a busy cluster"),
    _reproduction("cassini-model-parallel", (DYNAMIC_MP,), "Figure 14: GPTs and DLRM come to a cluster busy with such"),
    _reproduction("cassini-multigpu", (MULTI_GPU,), "Figure 16: six servers of two GPUs"),
)
