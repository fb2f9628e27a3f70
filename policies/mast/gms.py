"""GMS: which pending workload is served next, by <priority, credit>, and whose quota is used up (paper mast, Sec. 4.2).

The kernels are in mast/gms_scan.py. What the paper leaves open:

* The weights of Expressions 10 and 11, its cap of the age and its window are not given. Here a workload gains one
  credit while it waits for a day, at most that, and loses up to one as its tenant's share of all that was used in the
  last day grows: both count alike.
* A tenant's resources are its GPUs and its CPU machines: the larger of the two shares counts.
* In the paper a tenant has one priority level. Here a workload has one, and a tenant's quota is over all its levels: a
  team that works at several is named as a tenant of its own at each.
* The age counts from the last preemption, as Sec. 5.5 counts latency.
* Whether a workload that runs beyond its tenant's quota counts within it later is not said: a tenant's running
  workloads are within quota in the order in which they started, as far as it goes. So a level is a function of who
  runs now.
"""

from __future__ import annotations

import math

import numpy as np

from ...simulator.base.errors import InputError
from ...simulator.cluster.region_hardware import LEVELS
from ...simulator.warehouse.demands import Demands
from . import gms_scan

DAY_S = 86_400.0


def lay_ranking(
    demands: Demands,
    age_weight: float = 1.0,
    age_cap_s: float = DAY_S,
    fair_weight: float = 1.0,
    window_s: float = DAY_S,
) -> gms_scan.Ranking:
    """The arrays of a scan pass for these workloads.

    Args:
        demands: their tenants, levels and units; the tenants' quotas.
        age_weight: credits for a wait of a day, >= 0.
        age_cap_s: a longer wait earns no more, seconds, C_age_cap.
        fair_weight: credits between a tenant that uses nothing and one that uses everything, >= 0.
        window_s: over which resources are averaged, seconds, > 0.

    Raises:
        InputError: a number out of range.
    """
    for name, value in (("age_weight", age_weight), ("age_cap_s", age_cap_s), ("fair_weight", fair_weight)):
        if not 0.0 <= value < math.inf:
            raise InputError(f"{name} = {value:g}: expected a finite number of at least 0")
    if not 0.0 < window_s < math.inf:
        raise InputError(f"window_s = {window_s:g}: expected seconds > 0")
    jobs, tenants = len(demands), len(demands.quota)
    return gms_scan.Ranking(
        own=np.array(demands.level, np.int64),
        tenant=np.array(demands.tenant, np.int64),
        asked=np.array(demands.asked, np.int64),
        quota=np.array(demands.quota, np.int64),
        weight=np.array([age_weight / DAY_S, age_cap_s, fair_weight, window_s]),
        level=np.array(demands.level, np.int64),
        credit=np.zeros(jobs),
        order=np.zeros(jobs, np.int64),
        key=np.zeros(jobs),
        spare=np.zeros(jobs, np.int64),
        used=np.zeros((tenants, gms_scan.KINDS), np.int64),
        within=np.zeros((tenants, gms_scan.KINDS), np.int64),
        average=np.zeros((tenants, gms_scan.KINDS)),
        whole=np.zeros(gms_scan.KINDS),
        place=np.zeros(LEVELS + 1, np.int64),
    )
