"""No network: every placement is as good as any other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.tiers import TIERS
from .isolated import ISOLATED, Duration
from .network_model import Jobs

if TYPE_CHECKING:
    from ..cluster.topology import Topology


@dataclass(frozen=True)
class NoNetwork:
    """Every placement runs at full speed, so `duration_s` means the same either way (isolated.py)."""

    duration: Duration = ISOLATED
    name: str = "none"

    def describe(self) -> str:
        """Its text, for `load_network`."""
        return self.name

    def tier_factors(self, workload: Jobs | Any, topology: Topology | None = None) -> tuple[np.ndarray, np.ndarray]:
        """One profile, 1 on every tier; see `base.Network`."""
        return np.zeros(len(workload.gpus), np.int64), np.ones((1, TIERS))
