"""TimeShift-v0, many at once."""

from __future__ import annotations

from ..vector import ClusterVectorEnv
from .env import TimeShiftEnv


class TimeShiftVectorEnv(ClusterVectorEnv):
    """N environments `TimeShiftEnv`, stepped one after the other: their schedulers decide in Python."""

    env_class = TimeShiftEnv
