"""MAST, the fast path of paper mast: which workload, which region, which cluster, which machines, and who leaves."""

from .hardware import Hardware
from .regional_scheduler import Plan, RegionalScheduler

__all__ = ["Hardware", "Plan", "RegionalScheduler"]
