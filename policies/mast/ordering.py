"""The order of a queue of regions, and preemption in it: MAST's, or by run times.

MAST serves by <priority, credit> and stops lower priorities (global_scheduler.py, regional_scheduler.py). The others,
baselines of our own, order the same global queue by known run times, and RMS places them:

* `sjf`: isolated run time; `srtf`: time left; `srsf`: time left x GPUs; `greedy`: time left x GPUs^exponent. A workload
  without GPUs counts as one with one.
* `levels=on`: within priority classes, the priority falling where a quota is used up, as in MAST; `off`: without
  priorities and quotas.
* `preempts`: `off`: none; `lower`: workloads of a lower priority; `any`: those with more than `theta` times as much
  time left x GPUs (to the order's exponent) as the new one; with `levels=on` these of the same priority, and all of a
  lower one (victims.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...simulator.base.errors import InputError
from ...simulator.base.names import choose
from ...simulator.warehouse.demands import Demands

ORDERS = ("credit", "sjf", "srtf", "srsf", "greedy")
BY_CREDIT, BY_WHOLE, BY_LEFT = 0, 1, 2
PREEMPTS = ("off", "lower", "any")
MOST_EXPONENT = 8.0


@dataclass(frozen=True)
class Ordering:
    """See the module. Raises InputError for a value out of range."""

    name: str = "credit"  # one of ORDERS
    levels: bool = True  # whether priorities and quotas come first
    preempts: str = "lower"  # one of PREEMPTS
    exponent: float = 1.0  # of the GPUs, 0 to 8, of `greedy`
    theta: float = 1.0  # least ratio of a victim's time left x GPUs, >= 0

    def __post_init__(self) -> None:
        choose(self.preempts, PREEMPTS, f"preempts of policy {self.name}")
        if not 0.0 <= self.theta < math.inf:
            raise InputError(f"policy {self.name}: theta = {self.theta:g}: expected a finite number of at least 0")
        if not 0.0 <= self.exponent <= MOST_EXPONENT:
            raise InputError(f"policy {self.name}: exponent = {self.exponent:g}: expected 0 to {MOST_EXPONENT:g}")

    @property
    def by_time(self) -> bool:
        """Whether run times decide."""
        return self.name != "credit"

    @property
    def stops(self) -> int:
        """Its index in PREEMPTS."""
        return PREEMPTS.index(self.preempts)

    @property
    def code(self) -> np.ndarray:
        """Kind of keys, and whether levels come first, int64 (2,)."""
        by = {"credit": BY_CREDIT, "sjf": BY_WHOLE}.get(self.name, BY_LEFT)
        return np.array([by, self.levels], np.int64)

    def sizes(self, demands: Demands, exponent: float) -> np.ndarray:
        """GPUs of each workload, one where it has none, to a power, float64 (jobs,)."""
        found: Any = np.maximum(demands.asked[:, 0], 1).astype(np.float64) ** exponent
        return np.asarray(found)

    @property
    def key_exponent(self) -> float:
        """Of the GPUs in the keys."""
        return {"srsf": 1.0, "greedy": self.exponent}.get(self.name, 0.0)
