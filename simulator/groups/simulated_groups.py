"""A simulator of job groups as its own parts see it, so that they can be written below it."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ..cluster.topology import Topology
from ..jobs.estimates import Estimates
from ..jobs.workload import Workload
from ..rules.semantics import Semantics
from .group_config import GroupClusterConfig, GroupTerms
from .group_fields import GroupPlain


class SimulatedGroups(Protocol):
    """`GroupSimulator` (group_simulator.py) is one, and says what its attributes are."""

    runs: int

    @property
    def topology(self) -> Topology:
        """The machines."""

    @property
    def config(self) -> GroupClusterConfig:
        """What the cluster is like."""

    @property
    def estimates(self) -> Estimates:
        """What is known of run times."""

    @property
    def workload(self) -> Workload:
        """The jobs."""

    @property
    def records(self) -> np.recarray:
        """Array of one record."""

    @property
    def state(self) -> Any:
        """That record."""

    @property
    def plain(self) -> GroupPlain:
        """The same record for those who write or read many fields."""

    @property
    def ended(self) -> bool:
        """Nothing more can be decided."""

    @property
    def rule(self) -> GroupTerms:
        """What holds whoever decides."""

    @property
    def semantics(self) -> Semantics:
        """That of events."""
