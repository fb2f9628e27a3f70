"""Time-shifts in whole steps of a job's period, so that policies and environments name the same ones, bit for bit."""

from __future__ import annotations

BUCKETS = 72  # 5 degrees of the job's own circle


def bucket_s(bucket: int, period_s: float) -> float:
    """The time-shift of a bucket, 0 to 71: seconds in [0, period)."""
    return bucket * period_s / BUCKETS


def nearest_bucket(seconds: float, period_s: float) -> int:
    """The bucket whose time-shift is nearest to `seconds`, around the circle."""
    return round(seconds / period_s * BUCKETS) % BUCKETS
