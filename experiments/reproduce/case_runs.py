"""Means of runs over workloads or machine orders, their ratios, and how sure both are."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..comparing.intervals import Estimate, estimate, paired_ratio
from .case import Outcome

Take = Callable[[Outcome], float]
Number = str | Take  # a metric's name, or a function of the outcome


def metric(name: str, factor: float = 1.0) -> Take:
    """A metric of the run."""
    return lambda outcome: factor * outcome.metrics[name]


def improvement(ours: Sequence[float], others: Sequence[float]) -> Estimate:
    """By how many percent of the others' mean ours is lower; negative: it is higher."""
    ratio = paired_ratio(ours, others)
    mean, low, high = (100.0 * (1.0 - value) for value in (ratio.mean, ratio.high, ratio.low))
    return Estimate(mean, low, high, ratio.runs)


@dataclass(frozen=True)
class Runs:
    """Outcomes by policy and by what they were played on; some policies have been played on the first workloads only.

    Attributes:
        outcomes: (policy, place) -> the outcomes, in the same order of workloads for all.
        together: how many neighbours each number is the average of.
    """

    outcomes: Mapping[Any, Sequence[Outcome]]
    together: int = 1

    def of(self, policy: str, place: Hashable) -> Sequence[Outcome]:
        """The outcomes of a policy."""
        return self.outcomes[policy, place]

    def each(self, number: Number, policy: str, place: Hashable) -> list[float]:
        """One number a workload."""
        take = number if callable(number) else metric(number)
        numbers = [take(outcome) for outcome in self.of(policy, place)]
        if self.together == 1:
            return numbers
        return [float(np.mean(numbers[i : i + self.together])) for i in range(0, len(numbers), self.together)]

    def mean(self, number: Number, policy: str, place: Hashable) -> Estimate:
        """Its mean over workloads; those that have no such number (no large job) are left out."""
        return estimate(self.each(number, policy, place))

    def ratio(self, number: Number, policy: str, other: str, place: Hashable) -> Estimate:
        """The policy's mean over the other's, on the workloads that both were played on."""
        return paired_ratio(*self._pair(number, policy, other, place))

    def improvement(self, number: Number, policy: str, other: str, place: Hashable) -> Estimate:
        """By how many percent the policy is below the other, on the workloads that both were played on."""
        return improvement(*self._pair(number, policy, other, place))

    def _pair(self, number: Number, policy: str, other: str, place: Hashable) -> tuple[list[float], list[float]]:
        ours, theirs = (self.each(number, name, place) for name in (policy, other))
        both = min(len(ours), len(theirs))
        return ours[:both], theirs[:both]
