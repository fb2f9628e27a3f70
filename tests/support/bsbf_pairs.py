"""Pairs of jobs on the same GPUs, as SJF-BSBF looks at them: drawn at random, and what a fit says of one."""

from __future__ import annotations

import math

import numpy as np


def random_pairs(count, seed=0):
    """(new_s, xi_new, running_s, xi_running): work over four decades, xi from 1 to 6, often equal, or halves."""
    rng = np.random.default_rng(seed)
    works = 10.0 ** rng.uniform(0, 4, (count, 2))
    xis = rng.uniform(1.0, 6.0, (count, 2)) ** rng.choice([0.3, 1.0], (count, 1))
    equal = rng.random(count)
    xis[equal < 0.3, 1] = xis[equal < 0.3, 0]
    works[equal > 0.8] = np.ceil(works[equal > 0.8])
    xis[equal > 0.8] = np.ceil(2 * xis[equal > 0.8]) / 2
    return [(a, x, b, y) for (a, b), (x, y) in zip(works.tolist(), xis.tolist(), strict=True)]


def step_s(fit, gpus, batch, sub_batch):
    """Eq. 7 inside a machine or across machines, whichever is faster; one GPU has a line of its own."""
    a, b, ai, bi, an, bn, d, one_a, one_b = fit
    passes = math.ceil(batch / sub_batch)
    if gpus == 1:
        return passes * (one_a + one_b * batch / passes)
    computed = a + b * batch / passes
    exchanged = min(ai + bi * (gpus - 2), an + bn * (gpus - 2))
    return (passes - 1) * computed + (computed**d + exchanged**d) ** (1 / d)


def stretch_of(fit, s, job, b):
    """Iteration time of a job in the record with a sub-batch, over that with its whole batch."""
    gpus, batch = int(s.gpus[job]), int(s.batch[job])
    return step_s(fit, gpus, batch, b) / step_s(fit, gpus, batch, batch)
