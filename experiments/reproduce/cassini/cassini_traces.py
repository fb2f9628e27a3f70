"""Paper cassini, Sec. 5.2 to 5.4 and 5.6: whole traces under Random, Themis, Themis with CASSINI, and Ideal.

The traces are drawn as the paper says (workloads/cassini_jobs.py), as its own are not published: every number is over
drawn traces, the same for all schedulers, with its interval. Ratios are those of means over the traces, so a gain of
1.6x is a mean iteration time of Themis that is 1.6 times that of the augmented one. `ideal` bounds them all: no
placement and no shift makes jobs faster than with all links to themselves, so beside each published gain stands the
most that there was to gain.

The first rows are slowdowns: each job's mean iteration time over that alone. In the paper's own number, the mean of all
iteration times, models weigh by how long their iterations are.

Cables carry 50 Gbps, what is written on them, and in a second reading of every trace 45: the text has two jobs at
"roughly 22 Gbps (i.e., half of l1's capacity)" (Sec. 2.2), 44 in all, which is what one of them sends alone.

Congestion is what jobs offer to links above their capacity, in bytes of all traces together: the paper counts packets
that are marked for it (ECN).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from ....simulator.cluster.topology import Topology
from ....simulator.profiles.cassini_models import cassini_models
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
MEASURED_GBPS = 45.0  # of a cable, in the second reading
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


def on_links(case: Case) -> Mapping[str, Any]:
    """Play it; arrays of shape (jobs,), in order of arrival.

    `slowdown`: each job's mean iteration time, over that alone with as many workers; `congestion_bytes`: its part of
    the congestion; `model`: names, without how they are parallelised. One number: `jobs_at_once`, how many hold GPUs on
    average until the last has finished.
    """
    simulator, policy = case.begun()
    simulator.run(policy.decider(simulator))
    s, workload = simulator.state, simulator.workload
    jobs = len(workload)
    rounds = s.job_rounds[:jobs]
    # Of a job that never was in the network no iterations are counted: it ran as if alone.
    alone_s = np.where(rounds > 0, s.job_alone_s[:jobs], 1.0)
    metrics, played = simulator.metrics(), simulator.jobs()
    running_s = float((played["jct_s"] - played["queueing_delay_s"]).sum())
    return {
        "metrics": {**metrics, "jobs_at_once": running_s / metrics["makespan"]},
        "slowdown": np.where(rounds > 0, s.job_rounds_s[:jobs], 1.0) / alone_s,
        "congestion_bytes": s.job_congestion[:jobs].copy(),
        "model": [str(name).partition("/")[0] for name in workload.model],
    }


def mean_s(outcome: Outcome) -> float:
    """Mean iteration time, seconds."""
    return outcome.metrics["iteration_time_mean"]


def p99_s(outcome: Outcome) -> float:
    """99th percentile of iteration times, seconds."""
    return outcome.metrics["iteration_time_p99"]


def load(outcome: Outcome) -> float:
    """Sec. 5.1: "the average fraction of GPUs that are serving active jobs", until the last has finished, %."""
    return 100.0 * outcome.metrics["allocation_rate"]


def jobs_at_once(outcome: Outcome) -> float:
    """Jobs that hold GPUs, on average."""
    return outcome.metrics["jobs_at_once"]


def slowdown(outcome: Outcome) -> float:
    """Iteration time over that alone, mean over jobs: short iterations and long ones count alike."""
    return float(outcome["slowdown"].mean())


def slowdown_of(model: str) -> Take:
    """The same of the jobs of a model; nan: the trace has none."""

    def mean(outcome: Outcome) -> float:
        found = outcome["slowdown"][outcome["model"] == model]
        return float(found.mean()) if len(found) else float("nan")

    return mean


def slowdown_of_newcomer(model: str) -> Take:
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


def _mean(runs: Runs, number: Take, policy: str, trace: Trace) -> float:
    """Mean over the traces."""
    return _total(runs, number, policy, trace) / len(runs.of(policy, trace.name))


def _slowdowns(trace: Trace, runs: Runs) -> list[Row]:
    """The headline: how much longer jobs take than alone, of all and model by model."""
    played = {str(model) for outcome in runs.of(THEMIS, trace.name) for model in outcome["model"]}
    counted: list[tuple[str, Take]] = [("jobs", slowdown)]
    counted += [(model, slowdown_of(model)) for model in cassini_models() if model in played]
    rows = []
    for what, number in counted:
        head = f"{trace.name}: slowdown of {what}, {THEMIS}"
        rows.append(printed(head, runs.mean(number, THEMIS, trace.name), "x"))
        for other in (LEAST, CASSINI, IDEAL) if what == "jobs" else (CASSINI,):
            rows.append(printed(f"{head} / {other}", runs.ratio(number, THEMIS, other, trace.name), "x"))
    return rows


def _rows(trace: Trace, runs: Runs) -> list[Row]:
    def over(number: Take, policy: str, other: str) -> Estimate:
        return runs.ratio(number, policy, other, trace.name)

    rows = _slowdowns(trace, runs)
    rows += [
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
            f"{trace.name}: slowdown of newcomer {model}, {THEMIS} / {CASSINI}",
            over(slowdown_of_newcomer(model), THEMIS, CASSINI),
            "x",
        )
        for model in trace.newcomers
    ]
    rows += [_marked(trace, runs, marks) for marks in trace.marks]
    if not any(marks.model is None for marks in trace.marks):
        rows.append(_pooled(trace, runs, THEMIS, CASSINI, None))
    rows.append(_pooled(trace, runs, THEMIS, LEAST, None))
    for policy in trace.policies:
        told = (("mean iteration time", mean_s, "s"), ("realised load", load, "%"), ("jobs at once", jobs_at_once, ""))
        rows += [
            printed(f"{trace.name}: {what}, {policy}", _mean(runs, number, policy, trace), unit)
            for what, number, unit in told
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


def _reproduction(name: str, *as_written: Trace) -> Callable[[Options], Findings]:
    traces = [*as_written, *(trace.measured() for trace in as_written)]

    def run(options: Options) -> Findings:
        runs = _play(name, options, traces)
        rows = [row for trace in traces for row in _rows(trace, runs)]
        return Findings(rows, [_said(options), *_loads(options, as_written), *NOTES])

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
