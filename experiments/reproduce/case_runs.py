"""Runs by policy and setting: their means, ratios, how sure both are, and the load that their workloads offer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ...simulator.workloads import Workload, open_workload
from ..comparing.intervals import Estimate, estimate, paired_ratio
from .case import Outcome

Take = Callable[[Outcome], float]


def improvement(ours: Sequence[float], others: Sequence[float]) -> Estimate:
    """By how many percent of the others' mean ours is lower; negative: it is higher."""
    ratio = paired_ratio(ours, others)
    mean, low, high = (100.0 * (1.0 - value) for value in (ratio.mean, ratio.high, ratio.low))
    return Estimate(mean, low, high, ratio.runs)


@dataclass(frozen=True)
class Runs:
    """Outcomes by policy and setting; some policies have been played on the first workloads only.

    Attributes:
        outcomes: (policy, setting) -> the outcomes, in the same order of workloads for all.
        together: by setting, how many neighbours each number is the average of, if not of one.
    """

    outcomes: Mapping[Any, Sequence[Outcome]]
    together: Mapping[str, int] = field(default_factory=dict)

    def of(self, policy: str, at: str) -> Sequence[Outcome]:
        """The outcomes of a policy."""
        return self.outcomes[policy, at]

    def each(self, take: Take, policy: str, at: str) -> list[float]:
        """One number a workload, or the average over neighbours."""
        numbers = list(map(take, self.of(policy, at)))
        together = self.together.get(at, 1)
        if together == 1:
            return numbers
        return [float(np.mean(numbers[i : i + together])) for i in range(0, len(numbers), together)]

    def mean(self, take: Take, policy: str, at: str) -> Estimate:
        """Its mean over workloads; those that have no such number (no large job) are left out."""
        return estimate(self.each(take, policy, at))

    def pair(self, take: Take, policy: str, at: str, over: str, over_at: str) -> tuple[list[float], list[float]]:
        """A number under two policies, or in two settings, on the workloads that both were played on."""
        ours, theirs = self.each(take, policy, at), self.each(take, over, over_at)
        both = min(len(ours), len(theirs))
        return ours[:both], theirs[:both]

    def ratio(self, take: Take, policy: str, over: str, at: str) -> Estimate:
        """The policy's mean over the other's."""
        return paired_ratio(*self.pair(take, policy, at, over, at))

    def improvement(self, take: Take, policy: str, over: str, at: str) -> Estimate:
        """By how many percent the policy is below the other."""
        return improvement(*self.pair(take, policy, at, over, at))


def offered_load_note(workloads: Mapping[str, Iterable[Workload | str | Path]], gpus: int | Sequence[int]) -> str:
    """What the workloads that were played ask of their clusters (`Workload.offered_load`), in one line.

    Args:
        workloads: by a name, the workloads, or the words or paths that open them: their mean is said, and their range.
        gpus: of the cluster, or of each cluster that they are played on.

    Raises:
        InputError: a workload that cannot be opened.
    """
    sizes = [gpus] if isinstance(gpus, int) else list(gpus)
    busy = {name: [open_workload(one).offered_load(1) for one in some] for name, some in workloads.items()}
    loads = "; ".join(f"{name} {_load_text(some, sizes)}" for name, some in busy.items())
    return f"offered load (durations x GPUs of what arrives in a second, over the GPUs): {loads}"


def _load_text(busy: Sequence[float], sizes: Sequence[int]) -> str:
    if not all(map(math.isfinite, busy)):
        return "all jobs at once"
    return ", ".join(_on(busy, gpus) for gpus in sizes)


def _on(busy: Sequence[float], gpus: int) -> str:
    mean = f"{sum(busy) / len(busy) / gpus:.3g} of {gpus} GPUs"
    if len(busy) == 1:
        return mean
    return f"{mean} ({min(busy) / gpus:.3g} to {max(busy) / gpus:.3g} over {len(busy)} workloads)"
