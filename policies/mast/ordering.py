"""In which order a queue of regions is served, and who may be stopped for whom: MAST's, or by run times.

MAST serves by <priority, credit> and stops lower priorities (global_scheduler.py, regional_scheduler.py). The others,
baselines of our own, order the same global queue by run times as far as they are known, and RMS places them:

* `sjf`: isolated run time; `srtf`: what is left of it; `srsf`: what is left x GPUs; `greedy`: what is left x
  GPUs^exponent. A workload without GPUs counts as one with one.
* `levels=on`: so within priority classes, the priority falling where a quota is used up, as in MAST; `off`: priorities
  and quotas count for nothing.
* `preempts`: `off`, nobody is stopped; `lower`, those of a lower priority; `any`, those with more than `theta` times as
  much time left x GPUs as the newcomer needs, the exponent being that of the order where it has one; with `levels=on`
  of the same priority, and anybody of a lower one (victims.py).
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
    """See the module.

    Args:
        name: one of ORDERS.
        levels: whether priorities and quotas come first.
        preempts: one of PREEMPTS.
        exponent: of the GPUs, 0 to 8, of `greedy`.
        theta: how many times as much time left x GPUs a victim has, >= 0.

    Raises:
        InputError: a value out of range.
    """

    name: str = "credit"
    levels: bool = True
    preempts: str = "lower"
    exponent: float = 1.0
    theta: float = 1.0

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
        """Its place in PREEMPTS."""
        return PREEMPTS.index(self.preempts)

    @property
    def code(self) -> np.ndarray:
        """What the keys are and whether levels come first, int64 (2,)."""
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
