"""Runs of policies on paper dally's cluster sizes, over job sets and machine orders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...settings.evaluation_setting import Setting
from ..case import Case
from ..case_runs import Runs
from ..findings import Options
from ..sweep import sweep_by
from .dally_jobs import JobSet

RACK_GPUS = 64  # of a rack of `dally`
ENVIRONMENT = "clustergym/Delay-v0"
AS_THE_PAPER = Case("", Setting.of(ENVIRONMENT, "", "", "allreduce:calibration=artist", semantics="artist-sim"))
NATIVE = Case("", Setting.of(ENVIRONMENT, "", "", "none"))


@dataclass(frozen=True)
class Grid(Runs):
    """Runs by policy and racks; each number is of a machine order, the average over its job sets.

    Attributes:
        policies, racks: what the grid spans.
    """

    policies: tuple[str, ...] = ()
    racks: tuple[int, ...] = ()


def grid(
    what: str,
    options: Options,
    policies: Sequence[str],
    racks: Sequence[int],
    sets: Sequence[JobSet],
    common: Case = AS_THE_PAPER,
) -> Grid:
    """Play it, on `dally` clusters; the machine order's seed is the run's seed too.

    Args:
        what: for the progress bar.
        common: the case that all runs share but for policy, topology, job set and seed.
    """
    cases = {
        (policy, size): [
            common.on(policy, seed, one.digest, topology=f"dally:racks={size},machine_order={seed}", workload=one.path)
            for seed in options.order_seeds
            for one in sets
        ]
        for size in racks
        for policy in policies
    }
    return Grid(sweep_by(what, cases, options), len(sets), tuple(policies), tuple(racks))
