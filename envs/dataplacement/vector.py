"""DataPlacement-v0, many at once."""

from __future__ import annotations

from ..vector import ClusterVectorEnv
from .env import DataPlacementEnv


class DataPlacementVectorEnv(ClusterVectorEnv):
    """N environments `DataPlacementEnv`, stepped one after the other: schedulers and tables are decided in Python."""

    env_class = DataPlacementEnv
