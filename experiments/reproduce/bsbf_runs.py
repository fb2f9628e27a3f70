"""Runs of paper sjf-bsbf's policies over sampled workloads, their means and ratios, and what the paper leaves open.

Where the paper is silent, all policies are played alike, so that they differ in their order and in sharing alone: gangs
lie as close together as they can (`placer=tier`; "as consolidated on the nodes as possible", Sec. V-B), a stopped job
pays `cost_s` when it starts anew, and memory, gradient accumulation and the network are the same for all. What may
decide an order is a field of `Cell`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ..estimates import Estimate, estimate, paired_ratio
from .bsbf_case import SharedCase, SharedOutcome
from .bsbf_published import COLUMNS, LARGE_GPUS
from .compare import improvement
from .registry import Options
from .sweep import sweep

POLICIES = ("fifo", "sjf", "tiresias", "pollux", "sjf-ffs", "sjf-bsbf")
SHARING = ("sjf-ffs", "sjf-bsbf")
WORKLOADS = 20
# Pollux searches at every round: a run takes two minutes where the others take milliseconds.
POLLUX_WORKLOADS = 5
QUICK_JOBS = 8  # an eighth of the jobs
LARGE_SHARE = 0.123  # of jobs: what Tables III and IV imply; see `philly_sample`

Column = Literal["all", "large", "small"]
Number = Callable[[SharedOutcome], float]


@dataclass(frozen=True)
class Cell:
    """What the paper leaves open.

    Attributes:
        gpu: whose measurements: t4 (Pollux's, whose settings the simulations follow) or 2080ti (the paper's testbed).
        interference: preset; the paper's own measurements are not published.
        head: whether a job that does not fit blocks those behind it (`strict`) or not (`skip`), for all but Pollux.
        thresholds: GPU-seconds, of Tiresias' queues: its own code's, or Pollux's simulator's.
        cost_s: seconds that a job loses that Tiresias stopped: its own simulator says 0, Pollux's 30. Pollux, whose
            search counts with it, always pays the 30 s of its own simulator.
    """

    gpu: str = "t4"
    interference: str = "measured"
    head: str = "skip"
    thresholds: str = "3250/7200"
    cost_s: int = 30

    def word(self, policy: str) -> str:
        """The policy with its parameters."""
        if policy == "pollux":
            return "pollux:preemption_cost=30"
        parameters = f"{policy}:head={self.head},placer=tier"
        if policy != "tiresias":
            return parameters
        return f"{parameters},thresholds={self.thresholds},preemption_cost={self.cost_s}"


@dataclass(frozen=True)
class Experiment:
    """What policies are played on: a number of jobs, the cluster, and a cell."""

    jobs: int
    cell: Cell = Cell()
    physical: bool = False

    def case(self, policy: str, seed: int) -> SharedCase:
        """One run; policies that do not share have the same for every interference."""
        kind = "physical" if self.physical else "simulation"
        drawn = f"jobs={self.jobs},gpu={self.cell.gpu},seed={seed}"
        workload = f"bsbf-physical:{drawn}" if self.physical else f"philly-sample:{drawn},large_share={LARGE_SHARE}"
        interference = self.cell.interference if policy in SHARING else "measured"
        return SharedCase(self.cell.word(policy), f"bsbf-{kind}", workload, self.cell.gpu, interference, seed)


@dataclass(frozen=True)
class Runs:
    """Outcomes by policy and experiment, one a workload; some policies have been played on the first workloads only."""

    outcomes: Mapping[tuple[str, Hashable], Sequence[SharedOutcome]]

    def of(self, policy: str, experiment: Hashable) -> Sequence[SharedOutcome]:
        """The outcomes of a policy, one a workload."""
        return self.outcomes[policy, experiment]

    def each(self, number: Number, policy: str, experiment: Hashable) -> list[float]:
        """One number a workload."""
        return [number(outcome) for outcome in self.of(policy, experiment)]

    def mean(self, number: Number, policy: str, experiment: Hashable) -> Estimate:
        """Its mean over workloads; those that have no such number (no large job) are left out."""
        return estimate(self.each(number, policy, experiment))

    def ratio(self, number: Number, policy: str, other: str, experiment: Hashable) -> Estimate:
        """The policy's mean over the other's, on the workloads that both were played on."""
        return paired_ratio(*self._pair(number, policy, other, experiment))

    def improvement(self, number: Number, policy: str, other: str, experiment: Hashable) -> Estimate:
        """By how many percent the policy is below the other, on the workloads that both were played on."""
        return improvement(*self._pair(number, policy, other, experiment))

    def _pair(self, number: Number, policy: str, other: str, experiment: Hashable) -> tuple[list[float], list[float]]:
        ours, theirs = (self.each(number, name, experiment) for name in (policy, other))
        both = min(len(ours), len(theirs))
        return ours[:both], theirs[:both]


def play(
    what: str,
    options: Options,
    experiments: Sequence[Experiment],
    policies: Sequence[str] = POLICIES,
    workloads: int = WORKLOADS,
) -> Runs:
    """Play every policy on every experiment's workloads, Pollux on the first few (`workloads_of`).

    Args:
        what: for the progress bar.
        workloads: how many, unless the options say it.
    """
    cases = {
        (policy, experiment): [
            (_quick(experiment) if options.quick else experiment).case(policy, seed)
            for seed in workloads_of(policy, options, workloads)
        ]
        for experiment in experiments
        for policy in policies
    }
    found = sweep(what, [case for some in cases.values() for case in some], options)
    return Runs({place: [found[case] for case in some] for place, some in cases.items()})


def workloads_of(policy: str, options: Options, usual: int = WORKLOADS) -> Sequence[int]:
    """The seeds of the workloads that a policy is played on."""
    seeds = options.seeds(usual)
    return seeds[: 1 if options.quick else POLLUX_WORKLOADS] if policy == "pollux" else seeds


def _quick(experiment: Experiment) -> Experiment:
    return experiment if experiment.physical else replace(experiment, jobs=experiment.jobs // QUICK_JOBS)


def said(options: Options, usual: int = WORKLOADS, *, with_pollux: bool = True) -> str:
    """How many workloads there are, for a note."""
    number, few = (len(workloads_of(policy, options, usual)) for policy in ("fifo", "pollux"))
    bounded = f"; pollux, the slowest by far, over the first {few}" if with_pollux and few < number else ""
    quick = f"; --quick: simulations have {QUICK_JOBS} times fewer jobs than it says" if options.quick else ""
    return f"means and 95 % intervals over {number} sampled workloads{bounded}{quick}"


def jct_h(column: Column = "all") -> Number:
    """Average completion time of the jobs of a column of Tables III and IV, hours."""
    return lambda outcome: _mean_h(outcome.jct_s, outcome, column)


def queue_h(column: Column = "all") -> Number:
    """Average time without GPUs, hours."""
    return lambda outcome: _mean_h(outcome.queued_s, outcome, column)


def alone_h(column: Column = "all") -> Number:
    """Average isolated run time, hours."""
    return lambda outcome: _mean_h(outcome.alone_s, outcome, column)


def queue_of_model_s(model: str) -> Number:
    """Average time without GPUs of the jobs of a model, seconds."""
    return lambda outcome: _mean(outcome.queued_s[outcome.model == model])


def shortest_jct_h(share: float) -> Number:
    """Average completion time of the `share` of the jobs that completed soonest, hours."""
    return lambda outcome: _mean(np.sort(outcome.jct_s)[: round(share * len(outcome.jct_s))]) / 3600.0


def metric(name: str) -> Number:
    """A metric of the run."""
    return lambda outcome: outcome.metrics[name]


def _mean_h(values: np.ndarray, outcome: SharedOutcome, column: Column) -> float:
    large = outcome.gpus > LARGE_GPUS
    chosen = dict(zip(COLUMNS, (np.ones_like(large), large, ~large), strict=True))[column]
    return _mean(values[chosen]) / 3600.0


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else float("nan")
