"""Geo-v0, many at once."""

from __future__ import annotations

from ..vector import ClusterVectorEnv
from .env import GeoEnv


class GeoVectorEnv(ClusterVectorEnv):
    """N environments `GeoEnv`, stepped one after the other: what happens to tables is decided in Python."""

    env_class = GeoEnv
