"""The numbers behind the jobs of a generated workload: those of numpy's `default_rng(seed)`, in a kernel where it can.

Environments draw a workload an episode, of some hundred jobs, and half of what numpy takes for it is calls. A kernel
draws the same numbers, but for those in the tails of the distributions (a workload of 128 jobs in ten has one): then,
and where it does not give what numpy does, numpy draws. Neither depends on the other's way of rounding.

Source: G. Marsaglia, W. W. Tsang, The ziggurat method (2000); numpy/random/src/distributions/distributions.c.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numba
import numpy as np

from ..compiler.jit import entry, kernel
from ..numerics.pcg64 import MASK53, STATE, next_below, next_unit, next_word, seed_state

MOST_JOBS = 512  # above it hardly a workload is without tails
MOST_SEED = 2**32
LAYERS = 256
NEAR = 1e-12  # of a comparison that rounding might decide
TRIED = range(32)


class Draws(NamedTuple):
    """What is drawn, in this order.

    Attributes:
        uniform: float64 (jobs,), from 0 to 1. normal: float64 (jobs,), standard. code: int64 (jobs,), below `kinds`.
        exponential: float64 (jobs,), standard.
    """

    uniform: np.ndarray
    normal: np.ndarray
    code: np.ndarray
    exponential: np.ndarray


def draws_of(seed: int, jobs: int, kinds: int) -> Draws:
    """The numbers for so many jobs, whose codes are below `kinds`: always those of numpy."""
    is_short = jobs <= MOST_JOBS and isinstance(seed, int) and 0 <= seed < MOST_SEED
    drawn = _by_kernel(seed, jobs, kinds) if is_short and _agrees() else None
    return _by_numpy(seed, jobs, kinds) if drawn is None else drawn


def _by_numpy(seed: int, jobs: int, kinds: int) -> Draws:
    rng = np.random.default_rng(seed)
    uniform, normal, code = rng.random(jobs), rng.standard_normal(jobs), rng.integers(0, kinds, jobs)
    return Draws(uniform, normal, code, rng.standard_exponential(jobs))


def _by_kernel(seed: int, jobs: int, kinds: int) -> Draws | None:
    """None where numpy has to draw."""
    drawn = Draws(np.empty(jobs), np.empty(jobs), np.empty(jobs, np.int64), np.empty(jobs))
    return drawn if draw(seed, kinds, np.empty(STATE, np.int64), *_tables(), *drawn) else None


@cache
def _tables() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The layers of the two ziggurats: bounds int64 (2, LAYERS), widths and heights float64 (2, LAYERS)."""
    from numba.np.random import _constants as known

    bounds = np.array([known.ki_double, known.ke_double]).astype(np.int64)
    widths, heights = np.array([known.wi_double, known.we_double]), np.array([known.fi_double, known.fe_double])
    return bounds, widths, heights


@cache
def _agrees() -> bool:
    """Whether the kernel draws what this numpy does; the interpreter, which warns of words that wrap, need not try."""
    if numba.config.DISABLE_JIT:
        return False
    try:
        _tables()
    except (ImportError, AttributeError):  # numba keeps the tables for itself
        return False
    both = [(_by_kernel(seed, 64, 5), _by_numpy(seed, 64, 5)) for seed in TRIED]
    pairs = [pair for found, expected in both if found is not None for pair in zip(found, expected, strict=True)]
    return bool(pairs) and all(np.array_equal(*pair) for pair in pairs)


@entry
def draw(seed, kinds, state, bounds, widths, heights, uniform, normal, code, exponential):
    """Modify `uniform`, `normal`, `code` and `exponential`: see `Draws`; `state` is room for that of the generator.

    Args:
        seed, kinds: from 0 to 2^32 - 1, and how many codes there are.
        bounds, widths, heights: see `_tables`.

    Returns:
        False: it has left off, at a number of a tail or one that rounding might decide.
    """
    seed_state(state, seed)
    for job in range(uniform.size):
        uniform[job] = next_unit(state)
    for job in range(normal.size):
        normal[job] = _next_normal(state, bounds, widths, heights)
        if normal[job] == math.inf:
            return False
    for job in range(code.size):
        code[job] = next_below(state, kinds)
    for job in range(exponential.size):
        exponential[job] = _next_exponential(state, bounds, widths, heights)
        if exponential[job] == math.inf:
            return False
    return True


@kernel
def _next_normal(state, bounds, widths, heights):
    """Modify `state`; a standard normal number, or infinity where the kernel leaves off."""
    while True:
        word = next_word(state)
        layer, place = word & 255, (word >> 9) & (MASK53 >> 1)
        found = place * widths[0, layer]
        if (word >> 8) & 1:
            found = -found
        if place < bounds[0, layer]:
            return found
        if layer == 0:
            return math.inf
        step = heights[0, layer - 1] - heights[0, layer]
        below = math.exp(-0.5 * found * found) - (step * next_unit(state) + heights[0, layer])
        if abs(below) < NEAR:
            return math.inf
        if below > 0.0:
            return found


@kernel
def _next_exponential(state, bounds, widths, heights):
    """Modify `state`; a standard exponential number, or infinity where the kernel leaves off."""
    while True:
        word = next_word(state)
        layer, place = (word >> 3) & 255, (word >> 11) & MASK53
        found = place * widths[1, layer]
        if place < bounds[1, layer]:
            return found
        if layer == 0:
            return math.inf
        step = heights[1, layer - 1] - heights[1, layer]
        below = math.exp(-found) - (step * next_unit(state) + heights[1, layer])
        if abs(below) < NEAR:
            return math.inf
        if below > 0.0:
            return found


@entry
def lay_lognormal(uniform, values, edges, growth, median_s, longest_s, sizes, duration_s):
    """Modify `sizes` and `duration_s`: gang sizes with given probabilities, and lognormal durations.

    Args:
        uniform: float64 (jobs,), drawn from 0 to 1.
        values: int64 (values,), gang sizes.
        edges: float64 (values,), the sums of their probabilities, of each and those before it.
        growth: float64 (jobs,), durations in medians.
        median_s, longest_s: seconds; durations go from 1 s to the second.
        sizes: int64 (jobs,). duration_s: float64 (jobs,).
    """
    last = values.size - 1
    for job in range(uniform.size):
        drawn, place = uniform[job] * edges[last], 0
        while place < last and edges[place] <= drawn:
            place += 1
        sizes[job] = values[place]
        duration_s[job] = min(max(median_s * growth[job], 1.0), longest_s)
