"""Grouping-v0, many at once."""

from __future__ import annotations

from ..vector import ClusterVectorEnv
from .env import GroupingEnv


class GroupingVectorEnv(ClusterVectorEnv):
    """N environments `GroupingEnv`, stepped by one kernel call."""

    env_class = GroupingEnv
