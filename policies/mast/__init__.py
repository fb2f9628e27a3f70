"""MAST, the fast path of paper mast: which region, which cluster, which machines, and who has to leave."""

from .rms import Plan, RegionalScheduler

__all__ = ["Plan", "RegionalScheduler"]
