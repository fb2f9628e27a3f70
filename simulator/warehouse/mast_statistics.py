"""What paper mast publishes of its workloads and data, as numbers; Sec. 2, 3.4, 4.2, 5.1, 5.6, Figures 2 and 3.

Quantiles are pairs (probability, value). `lognormal` fits mu to the median, sigma to the mean of what P90 and P99 give.
Setting: mast, Sec. 2, 3.4, 4.2, 5.1 and 5.6; Figures 2 and 3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

Z90, Z99 = 1.2815515655446004, 2.3263478740408408  # quantiles of the normal distribution

# highest to lowest, %; "the remaining 6 % do not specify a priority" and are treated as the lowest (sum: 99.72)
PRIORITIES = (3.0, 20.0, 16.0, 54.0, 0.2, 0.5, 0.02 + 6.0)
GPU_SHARE = 0.7  # of the workloads train on GPUs, the others on CPUs
RECURRING_SHARE = 0.3
GPUS: Mapping[float, float] = {0.5: 16.0, 0.9: 64.0, 0.99: 128.0}  # of a GPU workload
MACHINES: Mapping[float, float] = {0.5: 72.0, 0.9: 180.0, 0.99: 205.0}  # of a workload
GPU_DURATION_S: Mapping[float, float] = {0.5: 1200.0, 0.9: 24_120.0, 0.99: 237_600.0}
CPU_DURATION_S: Mapping[float, float] = {0.5: 2280.0, 0.9: 28_440.0, 0.99: 136_800.0}
SHARING: Mapping[float, float] = {0.5: 3.0, 0.9: 17.0, 0.99: 45.0}  # ML workloads that read a partition
CONTAINER_S: Mapping[float, float] = {0.5: 150.0, 0.9: 278.0, 0.99: 449.0}  # to set up all containers, Sec. 5.5
REPLICATION_BYTES: Mapping[float, float] = {0.5: 565e6, 0.9: 103e9, 0.99: 7.5e12}

# Sec. 5.6, high-priority jobs: demand over supply of the worst region, its standard deviation over the regions; the
# rate of training at the home region, %
OVERLOAD = {"V0": 2.63, "V1": 0.98}
OVERLOAD_DEVIATION = {"V0": 0.76, "V1": 0.30}
HOME_RATE = {"V0": 90.82, "V1": 93.02}
COLLOCATED = {"V1": 78.0, "V2": 96.0}  # % of the GPU-hours of high-priority workloads
EXTRA_STORAGE = (75.0, 125.0)  # % more storage for replicas, Sec. 3.5


def lognormal(quantiles: Mapping[float, float]) -> tuple[float, float]:
    """(mu, sigma) of a distribution given by its P50, P90 and P99."""
    mu = math.log(quantiles[0.5])
    sigmas = [(math.log(quantiles[p]) - mu) / z for p, z in ((0.9, Z90), (0.99, Z99))]
    return mu, sum(sigmas) / 2.0


def through(quantiles: Mapping[float, float], normal: np.ndarray) -> np.ndarray:
    """Values with the exact P50, P90 and P99, for standard normal draws `normal`: log-normal, one sigma from P90 on."""
    p50, p90, p99 = (math.log(quantiles[p]) for p in (0.5, 0.9, 0.99))
    low, high = (p90 - p50) / Z90, (p99 - p90) / (Z99 - Z90)
    return np.exp(np.where(normal < Z90, p50 + low * normal, p90 + high * (normal - Z90)))
