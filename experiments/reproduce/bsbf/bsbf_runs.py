"""Runs of paper sjf-bsbf's policies over sampled workloads, their means and ratios, and what the paper leaves open.

What the paper leaves open is a field of `Cell`; its defaults are the base cell. Policies that share lie as close
together as they can (`placer=tier`; "as consolidated on the nodes as possible", Sec. V-B) and pass a job that does not
fit (Algorithm 1). FIFO, SJF and Tiresias block behind it and wait for one machine, or for wholly free ones: with that,
and with no other reading, exclusive jobs wait as published, and public code of a co-author, for the testbed, does so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ....simulator.cluster.topology import Topology
from ....simulator.workloads import Workload
from ..case import Case, Outcome
from ..case_runs import Runs, Take
from ..findings import Options
from ..loads import offered_load_note
from ..sweep import sweep_by
from .bsbf_case import shared_case
from .bsbf_published import COLUMNS, LARGE_GPUS, Column

EXCLUSIVE = ("fifo", "sjf", "tiresias")
SHARING = ("sjf-ffs", "sjf-bsbf")
POLICIES = (*EXCLUSIVE, "pollux", *SHARING)
WITHOUT_POLLUX = (*EXCLUSIVE, *SHARING)
# Ours, for comparison: SJF that queues and places as the policies that share do, and shares nothing.
PASSED = "sjf:head=skip"
# Ours: SJF-BSBF whose jobs get their whole batch back when a partner has left.
RESTORED = "sjf-bsbf:restore=on"
WORKLOADS = 40  # seeds 0 to 39; the workloads were fitted on others
# Pollux searches at every round: a run takes minutes where the others take milliseconds.
POLLUX_WORKLOADS = 1
OWN_BATCHES = "of the fit"
QUICK_JOBS = 8  # an eighth of the jobs


@dataclass(frozen=True)
class Cell:
    """What the paper leaves open.

    Attributes:
        gpu: whose measurements: 2080ti (the paper's) or t4 (Pollux's).
        interference: preset; the paper's own measurements are not published.
        memory: what models need whose memory was not measured (`Sharing`), or `none`: GPUs have memory without limit.
        net: whether a gang pays for lying spread: `paper`, not, as Eq. 4 has no tiers; or `measured`.
        exclusive_head, exclusive_placer: of FIFO, SJF, Tiresias: whether a job that does not fit blocks those behind
            it (`strict`) or not (`skip`), and where gangs lie.
        sharing_head, sharing_placer: of SJF-FFS and SJF-BSBF.
        thresholds: GPU-seconds, of Tiresias' queues: Pollux's simulator's, or its own code's, 3250/7200.
        cost_s: seconds that a job loses that Tiresias stopped: its own simulator says 0, Pollux's 30. Pollux, whose
            search counts with it, always pays the 30 s of its own simulator.
        models: of the simulations: by a job's own GPU-hours, as in Pollux' artifact, whose settings the paper follows,
            or by those of its submission in Philly.
        batches: per GPU: the largest measured one (`1`), or that or half of it (`1/2`), in Table II too;
            OWN_BATCHES: there, those that the fit has.
        fit: which of the five best fits of the workload, 1 to 5; 0: philly-sample, fitted to nothing.
    """

    gpu: str = "2080ti"
    interference: str = "constant:xi=1.25"
    memory: str = "assumed"
    net: str = "paper"
    exclusive_head: str = "strict"
    exclusive_placer: str = "consolidated"
    sharing_head: str = "skip"
    sharing_placer: str = "tier"
    thresholds: str = "57600"
    cost_s: int = 30
    models: str = "gpu-hours"
    batches: str = "1/2"
    fit: int = 1

    def word(self, policy: str) -> str:
        """The policy with its parameters."""
        if policy == "pollux":
            return "pollux:preemption_cost=30"
        if policy == PASSED:
            return f"{policy},placer={self.sharing_placer}"
        name, _, own = policy.partition(":")
        if name in SHARING:
            return f"{name}:head={self.sharing_head},placer={self.sharing_placer}{',' * bool(own)}{own}"
        parameters = f"{policy}:head={self.exclusive_head},placer={self.exclusive_placer}"
        if policy != "tiresias":
            return parameters
        return f"{parameters},thresholds={self.thresholds},preemption_cost={self.cost_s}"


@dataclass(frozen=True)
class Experiment:
    """What policies are played on: a number of jobs, the cluster, and a cell."""

    jobs: int
    cell: Cell = Cell()
    physical: bool = False

    def case(self, policy: str, seed: int) -> Case:
        """One run, by what touches its policy alone, so that cells that differ elsewhere have it in common.

        Every batch fits an empty GPU, so memory, like interference, touches those alone that share.
        """
        cell = self.cell
        shares = policy.partition(":")[0] in SHARING
        return shared_case(
            cell.word(policy),
            "bsbf-physical" if self.physical else "bsbf-simulation",
            self._workload(seed),
            cell.gpu,
            cell.interference if shares else "constant:xi=1",
            cell.memory if shares else "assumed",
            "paper" if policy == "pollux" else cell.net,  # elastic jobs have times of their own
            seed,
        )

    def _workload(self, seed: int) -> str:
        cell = self.cell
        drawn = f"jobs={self.jobs},gpu={cell.gpu},seed={seed}"
        if self.physical:
            drawn = f"bsbf-table2:{drawn},fit={cell.fit}"
            return drawn if cell.batches == OWN_BATCHES else f"{drawn},batches={cell.batches}"
        if cell.fit == 0:
            return f"philly-sample:{drawn},large_share={LARGE_SHARE}"
        return f"bsbf-tables:{drawn},fit={cell.fit},models={cell.models},batches={cell.batches}"


LARGE_SHARE = 0.123  # of jobs: what Tables III and IV imply; see `philly_sample`


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
            quick(experiment, options).case(policy, seed) for seed in workloads_of(policy, options, workloads)
        ]
        for experiment in experiments
        for policy in policies
    }
    return Runs(sweep_by(what, cases, options))


def workloads_of(policy: str, options: Options, usual: int = WORKLOADS) -> Sequence[int]:
    """The seeds of the workloads that a policy is played on."""
    seeds = options.seeds(usual)
    return seeds[: 1 if options.quick else POLLUX_WORKLOADS] if policy == "pollux" else seeds


def quick(experiment: Experiment, options: Options) -> Experiment:
    """The experiment, with fewer jobs if the options want it quick; the testbed has few already."""
    fewer = options.quick and not experiment.physical
    return replace(experiment, jobs=experiment.jobs // QUICK_JOBS) if fewer else experiment


def said(options: Options, usual: int = WORKLOADS, *, with_pollux: bool = True) -> str:
    """How many workloads there are, for a note."""
    number, few = (len(workloads_of(policy, options, usual)) for policy in ("fifo", "pollux"))
    bounded = f"; pollux, the slowest by far, over the first {few}" if with_pollux and few < number else ""
    quicker = f"; --quick: simulations have {QUICK_JOBS} times fewer jobs than it says" if options.quick else ""
    return f"means and 95 % intervals over {number} sampled workloads that no fit has seen{bounded}{quicker}"


def offered(options: Options, experiments: Sequence[Experiment], usual: int = WORKLOADS) -> list[str]:
    """The offered load of every experiment, for notes: one a cluster."""
    clusters: dict[int, dict[str, list[Workload]]] = {}
    for one in experiments:
        cases = [quick(one, options).case("fifo", seed) for seed in options.seeds(usual)]
        gpus = Topology.load(cases[0].setting.topology).num_gpus
        clusters.setdefault(gpus, {})[f"{one.jobs} jobs"] = [case.workload for case in cases]
    return [offered_load_note(workloads, gpus) for gpus, workloads in clusters.items()]


def jct_h(column: Column = "all") -> Take:
    """Average completion time of the jobs of a column of Tables III and IV, hours."""
    return lambda outcome: _mean_h(outcome["jct_s"], outcome, column)


def queue_h(column: Column = "all") -> Take:
    """Average time without GPUs, hours."""
    return lambda outcome: _mean_h(outcome["queued_s"], outcome, column)


def alone_h(column: Column = "all") -> Take:
    """Average isolated run time, hours."""
    return lambda outcome: _mean_h(outcome["alone_s"], outcome, column)


def stretch(column: Column = "all") -> Take:
    """How many times longer jobs hold GPUs than they would run alone, in the mean."""
    return lambda outcome: (jct_h(column)(outcome) - queue_h(column)(outcome)) / alone_h(column)(outcome)


def queue_of_model_s(model: str) -> Take:
    """Average time without GPUs of the jobs of a model, seconds."""
    return lambda outcome: _mean(outcome["queued_s"][outcome["model"] == model])


def shortest_jct_h(share: float) -> Take:
    """Average completion time of the `share` of the jobs that completed soonest, hours."""
    return lambda outcome: _mean(np.sort(outcome["jct_s"])[: round(share * len(outcome["jct_s"]))]) / 3600.0


def _mean_h(values: np.ndarray, outcome: Outcome, column: Column) -> float:
    large = outcome["gpus"] > LARGE_GPUS
    chosen = dict(zip(COLUMNS, (np.ones_like(large), large, ~large), strict=True))[column]
    return _mean(values[chosen]) / 3600.0


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else float("nan")
