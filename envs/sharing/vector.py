"""Sharing-v0, many at once."""

from __future__ import annotations

from ..vector import ClusterVectorEnv
from .env import SharingEnv


class SharingVectorEnv(ClusterVectorEnv):
    """N environments `SharingEnv`, stepped by one kernel call."""

    env_class = SharingEnv
