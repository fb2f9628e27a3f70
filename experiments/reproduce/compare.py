"""Means of runs over machine orders, their ratios, and how sure both are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..estimates import Estimate, estimate, paired_ratio
from .jobs import JobSet
from .registry import Options
from .sweep import Case, Outcome, sweep

RACK_GPUS = 64  # of a rack of `dally`, the topology of a grid


def improvement(ours: Sequence[float], others: Sequence[float]) -> Estimate:
    """By how many percent of the others' mean ours is lower; negative: it is higher."""
    ratio = paired_ratio(ours, others)
    mean, low, high = (100.0 * (1.0 - value) for value in (ratio.mean, ratio.high, ratio.low))
    return Estimate(mean, low, high, ratio.runs)


@dataclass(frozen=True)
class Grid:
    """Runs of every policy x cluster size x job set x machine order.

    Attributes:
        outcomes: by (policy, racks, name of the job set, seed of the machine order).
        policies, racks, sets, orders: what the grid spans.
    """

    outcomes: dict[tuple[str, int, str, int], Outcome]
    policies: tuple[str, ...]
    racks: tuple[int, ...]
    sets: tuple[str, ...]
    orders: tuple[int, ...]

    def of(self, policy: str, racks: int) -> list[Outcome]:
        """The outcomes of one policy on one cluster size, all job sets and machine orders."""
        return [self.outcomes[policy, racks, one, seed] for seed in self.orders for one in self.sets]

    def each(self, number: str | Callable[[Outcome], float], policy: str, racks: int) -> list[float]:
        """One number a machine order, averaged over the job sets: a metric's name, or a function of the outcome."""
        take = number if callable(number) else lambda outcome: outcome.metrics[number]
        return [
            float(np.mean([take(self.outcomes[policy, racks, one, seed]) for one in self.sets])) for seed in self.orders
        ]

    def mean(self, number: str | Callable[[Outcome], float], policy: str, racks: int) -> Estimate:
        """Its mean over machine orders."""
        return estimate(self.each(number, policy, racks))

    def ratio(self, number: str | Callable[[Outcome], float], policy: str, other: str, racks: int) -> Estimate:
        """The policy's mean over the other's."""
        return paired_ratio(self.each(number, policy, racks), self.each(number, other, racks))

    def improvement(self, number: str | Callable[[Outcome], float], policy: str, other: str, racks: int) -> Estimate:
        """By how many percent the policy is below the other."""
        return improvement(self.each(number, policy, racks), self.each(number, other, racks))


def grid(
    what: str,
    options: Options,
    common: Case,
    policies: Sequence[str],
    racks: Sequence[int],
    sets: Sequence[JobSet],
) -> Grid:
    """Play it, on `dally` clusters; the machine order's seed is the run's seed too.

    Args:
        what: for the progress bar.
        common: the case that all runs share but for policy, topology, job set and seed.
    """
    cases = {
        (policy, size, one.name, seed): replace(
            common,
            policy=policy,
            topology=f"dally:racks={size},machine_order={seed}",
            workload=one.path,
            digest=one.digest,
            seed=seed,
        )
        for seed in options.order_seeds
        for size in racks
        for one in sets
        for policy in policies
    }
    outcomes = sweep(what, list(cases.values()), options)
    return Grid(
        {place: outcomes[case] for place, case in cases.items()},
        tuple(policies),
        tuple(racks),
        tuple(one.name for one in sets),
        options.order_seeds,
    )
