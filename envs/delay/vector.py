"""Delay-v0, many at once."""

from __future__ import annotations

from ..vector import ClusterVectorEnv
from .env import DelayEnv


class DelayVectorEnv(ClusterVectorEnv):
    """N environments `DelayEnv`, stepped by one kernel call."""

    env_class = DelayEnv
