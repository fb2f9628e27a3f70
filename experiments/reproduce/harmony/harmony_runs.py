"""Runs of paper harmony's policies over drawn workloads, their means and ratios, and what the paper leaves open.

What the paper leaves open is a field of `Cell` or a word of the policy; the defaults are the base reading. Baselines
were calibrated on seeds 1000 to 1009 (`harmony_calibration.py`); everything else is on seeds 0 to 9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ....simulator.workloads import Workload
from ...comparing.intervals import Estimate
from ..case import Case, Outcome
from ..case_runs import Number, Runs, metric
from ..findings import Options
from ..loads import offered_load_note
from ..sweep import sweep_by
from .harmony_case import group_case

WORKLOADS = 10  # seeds 0 to 9
MACHINES = 100
QUICK_JOBS = 24
Select = Literal["all", "compute", "communication"]
# Machines of an isolated job that needs no more: the CPU use that the paper's numbers imply, by workload.
DOP: Mapping[Select, int] = {"all": 5, "compute": 7, "communication": 5}
LOSS = 0.0
HARMONY, BEST_KNOWN, BEST_BLIND = "harmony", "greedy:remaining=known", "greedy"
UNAWARE = "harmony:alpha=1"  # Algorithm 1 as printed, which does not look at memory
NO_LIMIT = "ram_gb=100000"  # words of `GroupConfig`: nobody lacks memory


@dataclass(frozen=True)
class Cell:
    """What the paper leaves open of jobs and machines.

    Attributes:
        select: all 80 jobs, or the 60 that compute or communicate more.
        ratio_sigma, length_sigma: spreads of the jobs' COMP/COMM ratios and run times.
        mean_hours: of the run times alone on 16 machines.
        kappa: COMM time over that of the model at the links' speed.
        gap_min: mean minutes between arrivals; 0: all at once.
        arrivals: how they come.
        config: words of `GroupConfig`, beside the base ones.
        dop: of `isolated`; None: as calibrated.
    """

    select: Select = "all"
    ratio_sigma: float = 0.3
    length_sigma: float = 0.3
    mean_hours: float = 2.0
    kappa: float = 1.1
    gap_min: float = 0.0
    arrivals: Literal["poisson", "bursts", "google"] = "poisson"
    config: str = ""
    dop: int | None = None

    def workload(self, seed: int, jobs: int = 80) -> str:
        """The generator's words."""
        return (
            f"harmony-like:jobs={jobs},ratio_sigma={self.ratio_sigma:g},length_sigma={self.length_sigma:g},"
            f"mean_hours={self.mean_hours:g},kappa={self.kappa:g},gap_min={self.gap_min:g},select={self.select},"
            f"arrivals={self.arrivals},seed={seed}"
        )

    def drawn(self, seed: int, jobs: int = 80) -> Workload:
        """The jobs."""
        return self.case(HARMONY, seed, jobs).workload

    def word(self, policy: str) -> str:
        """The policy with its parameters: `isolated` has as many machines as were calibrated for the workload."""
        name, _, own = policy.partition(":")
        if name != "isolated" or "dop=" in own:
            return policy
        dop = DOP[self.select] if self.dop is None else self.dop
        return f"isolated:dop={dop}{',' * bool(own)}{own}"

    def case(self, policy: str, seed: int, jobs: int = 80) -> Case:
        """One run."""
        word = self.word(policy)
        naive = word.startswith("naive-colocation") and "loss=" not in self.config
        config = ",".join(filter(None, (self.config, f"loss={LOSS:g}" * naive)))
        return group_case(word, self.workload(seed, jobs), config, MACHINES, seed)


class GroupRuns(Runs):
    """Outcomes by policy and cell, one a workload."""

    def speedup(self, number: Number, policy: str, cell: Cell) -> Estimate:
        """How many times shorter the policy's mean is than that of `isolated`."""
        return self.ratio(number, "isolated", policy, cell)


def jobs_of(options: Options) -> int:
    """How many jobs a workload has."""
    return QUICK_JOBS if options.quick else 80


def play(
    what: str,
    options: Options,
    cells: Sequence[Cell],
    policies: Sequence[str],
    usual: int = WORKLOADS,
    seeds: Sequence[int] | None = None,
) -> GroupRuns:
    """Play every policy on every cell's workloads.

    Args:
        what: for the progress bar.
        usual: how many workloads, unless the options say it.
        seeds: of the workloads; None: as many as `usual` says.
    """
    chosen = options.seeds(usual) if seeds is None else seeds
    return play_pairs(what, options, [(policy, cell) for cell in cells for policy in policies], chosen)


def play_pairs(what: str, options: Options, pairs: Sequence[tuple[str, Cell]], seeds: Sequence[int]) -> GroupRuns:
    """Play each policy on the workloads of its cell."""
    jobs = jobs_of(options)
    cases = {(policy, cell): [cell.case(policy, seed, jobs) for seed in seeds] for policy, cell in pairs}
    return GroupRuns(sweep_by(what, cases, options))


def said(options: Options, usual: int = WORKLOADS) -> str:
    """How many workloads there are, for a note."""
    quicker = f"; --quick: {QUICK_JOBS} jobs, not 80" if options.quick else ""
    return (
        f"means and 95 % intervals over {len(options.seeds(usual))} drawn workloads (harmony-like) on {MACHINES} "
        "machines; ratios are of means; "
        f"isolated's and naive's one constant each were calibrated on others{quicker}"
    )


def offered(options: Options, cells: Mapping[str, Cell], usual: int = WORKLOADS) -> str:
    """What the workloads ask of the machines, alone on 16 each, for a note."""
    jobs = jobs_of(options)
    drawn: dict[str, list[Workload | str]] = {
        name: [cell.drawn(seed, jobs) for seed in options.seeds(usual)] for name, cell in cells.items()
    }
    return offered_load_note(drawn, MACHINES).replace("GPUs", "machines")


def under(cell: Cell, words: str) -> Cell:
    """The same with further words of `GroupConfig`."""
    return replace(cell, config=",".join(filter(None, (cell.config, words))))


def gain(runs: GroupRuns, number: Number, policy: str, cell: Cell) -> float:
    """By how many percent `isolated`'s mean is above the policy's."""
    return 100.0 * (runs.speedup(number, policy, cell).mean - 1.0)


def jct_h(outcome: Outcome) -> float:
    """Average completion time, hours."""
    return outcome.metrics["jct_mean"] / 3600.0


def makespan_h(outcome: Outcome) -> float:
    """Makespan, hours."""
    return outcome.metrics["makespan"] / 3600.0


WORK = metric("gpu_utilisation", 100.0)
CPU, NETWORK = metric("cpu_utilisation", 100.0), metric("network_utilisation", 100.0)
