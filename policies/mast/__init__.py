"""MAST, the fast path of paper mast: the placement of workloads, and preemption."""

from .hardware import Hardware
from .regional_scheduler import Plan, RegionalScheduler

__all__ = ["Hardware", "Plan", "RegionalScheduler"]
