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
from typing import Any

import numpy as np

from ....simulator.cluster.topology import Topology
from ...comparing.intervals import Estimate
from ...settings.evaluation_setting import Setting
from ..case import Case, Outcome
from ..case_runs import Runs, Take
from ..findings import Findings, Options
from ..loads import offered_load_note
from ..rows import Row, order, printed, ratio
from ..sweep import sweep_by

TRACES = 10
RANDOM, THEMIS, LEAST, CASSINI, IDEAL = "random", "themis", "least-shared", "themis+cassini", "ideal"
ORDER = (RANDOM, THEMIS, CASSINI, IDEAL)
POLICIES = (RANDOM, THEMIS, LEAST, CASSINI, IDEAL)
POLLUX, POLLUX_CASSINI = "pollux", "pollux+cassini"
QUICK_JOBS = 12
PACKET_BYTES = 1500.0  # of an Ethernet frame: what a congestion of 0 is taken to be less than


ON_LINKS = Case("", Setting.of("clustergym/TimeShift-v0", "", "", "contention"), how="cassini.cassini_traces:on_links")


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


def on_links(case: Case) -> Mapping[str, Any]:
    """Play it; arrays of shape (jobs,), in order of arrival.

    `slowdown`: each job's mean iteration time, over that alone at its best placement; `congestion_bytes`: its part of
    the congestion; `model`: names, without how they are parallelised.
    """
    simulator, policy = case.begun()
    simulator.run(policy.decider(simulator))
    s, workload = simulator.state, simulator.workload
    jobs = len(workload)
    rounds = s.job_rounds[:jobs]
    # Of a job that never was in the network no iterations are counted: it ran as if alone.
    mean_s = np.where(rounds > 0, s.job_rounds_s[:jobs] / np.maximum(rounds, 1), workload.iteration_s)
    return {
        "metrics": simulator.metrics(),
        "slowdown": mean_s / workload.iteration_s,
        "congestion_bytes": s.job_congestion[:jobs].copy(),
        "model": [str(name).partition("/")[0] for name in workload.model],
    }


def mean_s(outcome: Outcome) -> float:
    """Mean iteration time, seconds."""
    return outcome.metrics["iteration_time_mean"]


def p99_s(outcome: Outcome) -> float:
    """99th percentile of iteration times, seconds."""
    return outcome.metrics["iteration_time_p99"]


def slowdown(outcome: Outcome) -> float:
    """Iteration time over that alone, mean over jobs: short iterations and long ones count alike."""
    return float(outcome["slowdown"].mean())


def slowdown_of(model: str) -> Take:
    """The same of the last job of a model: a newcomer of a dynamic trace."""
    return lambda outcome: float(outcome["slowdown"][outcome["model"] == model][-1])


def congestion_of(model: str | None) -> Take:
    """Bytes of congestion of a model's jobs, or of all."""
    if model is None:
        return lambda outcome: float(outcome["congestion_bytes"].sum())
    return lambda outcome: float(outcome["congestion_bytes"][outcome["model"] == model].sum())


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


def _rows(trace: Trace, runs: Runs) -> list[Row]:
    def over(number: Take, policy: str, other: str) -> Estimate:
        return runs.ratio(number, policy, other, trace.name)

    rows = [
        order(
            f"{trace.name}: mean iteration time, {better} / {worse}",
            "below 1",
            over(mean_s, better, worse),
        )
        for worse, better in pairwise(ORDER)
    ]
    for gain in trace.gains:
        for what, number, value in (("mean", mean_s, gain.mean), ("P99", p99_s, gain.p99)):
            head = f"{trace.name}: {what} iteration time, {gain.plain} /"
            rows.append(ratio(f"{head} {gain.augmented}", value, over(number, gain.plain, gain.augmented), "x"))
            rows.append(printed(f"{head} ideal: the bound", over(number, gain.plain, IDEAL), "x"))
            if gain.plain == THEMIS:
                rows.append(printed(f"{head} least-shared", over(number, THEMIS, LEAST), "x"))
    rows += [
        printed(
            f"{trace.name}: mean slowdown of jobs, {THEMIS} / {other}",
            over(slowdown, THEMIS, other),
            "x",
        )
        for other in (LEAST, CASSINI, IDEAL)
    ]
    rows += [
        printed(
            f"{trace.name}: slowdown of newcomer {model}, {THEMIS} / {CASSINI}",
            over(slowdown_of(model), THEMIS, CASSINI),
            "x",
        )
        for model in trace.newcomers
    ]
    rows += [_marked(trace, runs, marks) for marks in trace.marks]
    if not any(marks.model is None for marks in trace.marks):
        rows.append(_pooled(trace, runs, THEMIS, CASSINI, None))
    rows.append(_pooled(trace, runs, THEMIS, LEAST, None))
    rows += [
        printed(
            f"{trace.name}: mean iteration time, {policy}",
            _total(runs, mean_s, policy, trace) / len(runs.of(policy, trace.name)),
            "s",
        )
        for policy in trace.policies
    ]
    return rows


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


def _reproduction(name: str, *traces: Trace) -> Callable[[Options], Findings]:
    def run(options: Options) -> Findings:
        runs = _play(name, options, traces)
        rows = [row for trace in traces for row in _rows(trace, runs)]
        return Findings(rows, [_said(options), *_loads(options, traces), *NOTES])

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
    "gangs are whole, all jobs start at once when they are placed, pacing keeps shifts (network contention, defaults)",
)

poisson = _reproduction("cassini-poisson", POISSON, POISSON_MP)
dynamic = _reproduction("cassini-dynamic", DYNAMIC)
model_parallel = _reproduction("cassini-model-parallel", DYNAMIC_MP)
multi_gpu = _reproduction("cassini-multigpu", MULTI_GPU)
