"""Grouping problems drawn at random, to measure solvers on; the simulator's workloads come from elsewhere.

The ratio of a job's COMP and COMM times is lognormal with median 1; the paper shows both in a figure only, without
numbers.
"""

from __future__ import annotations

import numpy as np

from ...simulator.workloads.harmony_jobs import LINK_BYTES_S
from ...simulator.workloads.trace_statistics import HARMONY_GB
from .problem import REFERENCE_MACHINES, Problem

GB = 1e9
COMM_SPREAD = (0.7, 1.4)  # of the COMM time about that of moving the model twice, a hyper-parameter's doing


def harmony_like_problem(seed: int, jobs: int = 80, machines: int = 100, ratio_sigma: float = 0.3) -> Problem:
    """Jobs with the paper's eight pairs of application and data set, in random order.

    COMM is the time in which 16 machines send and receive the model, times 0.7 to 1.4. Memory is no limit here.

    Args:
        seed: of everything drawn.
        jobs: how many, >= 1.
        machines: of the cluster, >= 1.
        ratio_sigma: spread of the logarithm of COMP over COMM on 16 machines, >= 0.
    """
    rng = np.random.default_rng(seed)
    sizes = np.array(list(HARMONY_GB.values()))[np.arange(jobs) % len(HARMONY_GB)][rng.permutation(jobs)] * GB
    comm = rng.uniform(*COMM_SPREAD, jobs) * 2.0 * sizes[:, 1] / (REFERENCE_MACHINES * LINK_BYTES_S)
    comp = REFERENCE_MACHINES * rng.lognormal(0.0, ratio_sigma, jobs) * comm
    return Problem(comp, comm, machines, input_bytes=sizes[:, 0])


def small_problem(
    seed: int,
    jobs: int | None = None,
    machines: int = 32,
    ratio_sigma: float = 0.4,
    beta: float = 0.5,
    even_machines: int = 8,
) -> Problem:
    """A problem that `exact` can solve: COMM of 1 to 10 s, COMP about as long on a quarter of the machines.

    Args:
        seed: of everything drawn.
        jobs: how many; None = 4 to 8, drawn.
        machines: of the cluster, >= 1.
        ratio_sigma: spread of the logarithm of COMP over COMM, >= 0.
        beta: worth of the network's utilisation.
        even_machines: on so many the median job's COMP and COMM take equally long.
    """
    rng = np.random.default_rng(seed)
    jobs = int(rng.integers(4, 9)) if jobs is None else jobs
    comm = rng.uniform(1.0, 10.0, jobs)
    comp = even_machines * rng.lognormal(0.0, ratio_sigma, jobs) * comm
    return Problem(comp, comm, machines, beta=beta)
