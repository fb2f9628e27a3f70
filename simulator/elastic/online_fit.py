"""Throughput parameters of one job, fitted to the step times that it has seen so far (Pollux, OSDI'21, Sec. 4.1).

The model is that of paper sjf-bsbf, Eq. 3, 4 and 7 (which took it from Pollux): a pass computes for a + b x samples per
GPU; synchronising takes ai + bi x max(GPUs - 2, 0) in one node, an + bn x max(GPUs - 2, 0) between nodes; a step takes
(compute^d + synchronisation^d)^(1/d). Unseen terms are almost nothing: a job seems to scale perfectly until tried.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

START = np.array([0.1, 0.01, 0.1, 0.01, 0.1, 0.01, 1.001])  # a b ai bi an bn d
LEAST = np.array([1e-8] * 6 + [1.0])
MOST = np.array([1e4] * 6 + [10.0])  # at d = 10, a step is nearly the larger of the two
NOTHING = 1e-8  # seconds: no synchronisation, but its logarithm is finite
STEEP = 1e-2  # penalty on bi / ai and bn / an: an optimistic model is tried, and corrected
OVERLAP = 1e-3  # penalty on d away from 1
SMALL = 1e-3  # relative error that counts as none, so that what is minimised has a gradient everywhere
PRECISION = 1e-5  # relative, of what is minimised: measurements are worth no more
BEYOND_NODE = 1.1  # between nodes a job is taken to be at least so much slower than inside one, until it was tried

Seen = Mapping[tuple[int, int, int], tuple[float, float]]  # (nodes, GPUs, samples per GPU): (step s, sync s)


def fit_throughput(seen: Seen) -> np.ndarray:
    """Parameters a, b, ai, bi, an, bn, d (7,) that fit the step times seen, at least one.

    Minimised (L-BFGS-B, over the logarithms of all but d): the root mean squares of the errors of log compute and of
    log step time, plus small penalties on steep synchronisation and on d.
    """
    from scipy.optimize import minimize

    configurations = np.array(list(seen), dtype=np.float64)
    step_s, sync_s = np.array(list(seen.values())).T
    nodes, gpus, local = configurations.T
    compute_s = step_s - sync_s
    start, low, high = START.copy(), LEAST.copy(), MOST.copy()
    if np.all(local == local[0]):  # one size seen: half of it is taken as the constant
        start[0] = low[0] = high[0] = compute_s.mean() / 2.0
    between, inside = nodes > 1, (nodes == 1) & (gpus > 1)
    unseen = [*([2, 3] if not inside.any() else []), *([4, 5] if not between.any() else [])]
    unseen += [3, 5] if not np.any(gpus > 2) else []
    start[unseen] = high[unseen] = low[unseen]
    error = _Error(local, gpus, inside, between, compute_s, step_s)
    for bound in (start, low, high):
        bound[:6] = np.log(bound[:6])
    bounds = list(zip(low, high, strict=True))
    fit = minimize(error, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": PRECISION}).x
    fit[:6] = np.exp(fit[:6])
    if not between.any():
        fit[4:6] = np.maximum(fit[4:6], BEYOND_NODE * fit[2:4])
    return fit


class _Error:
    """What is minimised, and its gradient, for the logarithms of a to bn, and d (7,)."""

    def __init__(
        self,
        local: np.ndarray,
        gpus: np.ndarray,
        inside: np.ndarray,
        between: np.ndarray,
        compute_s: np.ndarray,
        step_s: np.ndarray,
    ) -> None:
        n = len(local)
        more = np.maximum(gpus - 2.0, NOTHING)
        # Compute and synchronisation are linear in the parameters: rows a b ai bi an bn, columns first all the
        # computing times, then all the synchronisation times.
        self.design = np.zeros((6, 2 * n))
        self.design[0, :n], self.design[1, :n] = 1.0, local
        self.design[2, n:], self.design[3, n:] = inside, inside * more
        self.design[4, n:], self.design[5, n:] = between, between * more
        self.constant = np.concatenate([np.zeros(n), np.where(inside | between, 0.0, NOTHING)])
        self.seen = np.log(np.stack([compute_s, step_s]))

    def __call__(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        fit, d = np.exp(point[:6]), point[6]
        n = self.seen.shape[1]
        times = fit @ self.design + self.constant
        logs = np.log(times)
        powers = np.exp(d * logs)
        both = powers[:n] + powers[n:]
        log_both = np.log(both)
        off_compute = logs[:n] - self.seen[0]
        off_step = log_both / d - self.seen[1]
        rms_compute = math.sqrt(off_compute @ off_compute / n + SMALL**2)
        rms_step = math.sqrt(off_step @ off_step / n + SMALL**2)
        push_step = off_step / (n * rms_step)
        share = powers / np.concatenate([both, both])
        slope = np.concatenate([push_step, push_step]) * share
        slope[:n] += off_compute / (n * rms_compute)
        gradient = np.empty(7)
        gradient[:6] = fit * (self.design @ (slope / times))
        weighed = share * logs
        gradient[6] = push_step @ ((weighed[:n] + weighed[n:]) / d - log_both / d**2) + 2.0 * OVERLAP * (d - 1.0)
        penalty = OVERLAP * (d - 1.0) ** 2
        for first in (2, 4):
            steep = fit[first + 1] / fit[first]
            penalty += STEEP * steep * steep
            gradient[first] -= 2.0 * STEEP * steep * steep
            gradient[first + 1] += 2.0 * STEEP * steep * steep
        return rms_compute + rms_step + penalty, gradient
