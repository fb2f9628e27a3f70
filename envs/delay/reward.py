"""Rewards: what an agent is paid for a step, from two numbers of the record, before and after.

| name | over the whole episode it sums to |
| --- | --- |
| `jct` | minus the mean JCT, in mean isolated run times |
| `makespan` | minus the makespan, in units of its lower bound (all work on all GPUs) |
| `slowdown` | minus the mean slowdown (JCT / isolated run time) |
| `slo` | minus the share of jobs with a deadline that finish late |
"""

from __future__ import annotations

import numpy as np

from ...simulator.kernels.jit import kernel

JCT, MAKESPAN, SLOWDOWN, SLO = 0, 1, 2, 3
REWARDS = {"jct": JCT, "makespan": MAKESPAN, "slowdown": SLOWDOWN, "slo": SLO}


@kernel
def total_cost(s, kind):
    """The growing cost whose increase a step is charged, before scaling."""
    if kind == JCT:
        return s.active_integral
    if kind == MAKESPAN:
        return s.now_s
    if kind == SLOWDOWN:
        return s.slowdown_integral
    return float(s.late)


def reward_scale(s: np.record, kind: int) -> float:
    """What the increase is divided by, so that returns mean the same on any workload."""
    n = int(s.n_jobs)
    isolated_s = s.iterations[:n] * s.base_iteration_s[:n]
    if kind == JCT:
        return float(isolated_s.sum())
    if kind == MAKESPAN:
        return float((isolated_s * s.gpus[:n]).sum() / s.n_gpus)
    if kind == SLOWDOWN:
        return float(n)
    return float(max(1, np.isfinite(s.deadline_s[:n]).sum()))
