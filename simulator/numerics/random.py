"""Counter-based random numbers: a pure function of (seed, stream, counter), so that order of calls never matters.

Every draw takes the seed from its record by `seed_of`, in Python by `draw_seed`. So a run whose record has `is_drawn` 0
does not depend on the seed.
"""

import math
from typing import Any

from ..compiler.jit import entry, kernel

MASK32 = 0xFFFFFFFF


@kernel
def seed_of(s):
    """Modify `s`, the record of a run: a number is drawn for it. Returns its seed."""
    s.is_drawn = 1
    return s.seed


def draw_seed(s: Any) -> int:
    """`seed_of` in Python."""
    s["is_drawn"] = 1
    return int(s["seed"])


@entry
def _mix(word):
    # Two rounds of a 32-bit finaliser with odd multipliers (the "lowbias32" constants, C. Wellons 2018). Products are
    # taken in two halves of 16 bits, so that they fit an int64 with and without JIT.
    word = (word ^ (word >> 16)) & MASK32
    word = ((word & 0xFFFF) * 0x7FEB352D + (((word >> 16) * 0x352D) << 16)) & MASK32
    word = (word ^ (word >> 15)) & MASK32
    word = ((word & 0xFFFF) * 0x846CA68B + (((word >> 16) * 0xA68B) << 16)) & MASK32
    return (word ^ (word >> 16)) & MASK32


@entry
def random_word(seed, stream, counter):
    """A uniform integer in [0, 2**32)."""
    word = _mix((int(seed) + 0x9E3779B9) & MASK32)
    word = _mix(word ^ (int(stream) & MASK32))
    word = _mix((word + int(counter)) & MASK32)
    return _mix(word ^ ((int(seed) >> 32) & MASK32))


@entry
def uniform(seed, stream, counter):
    """A uniform float64 in (0, 1)."""
    return (random_word(seed, stream, counter) + 0.5) / 4294967296.0


@entry
def exponential(seed, stream, counter, mean):
    """An exponential float64 with the given mean."""
    return -mean * math.log(uniform(seed, stream, counter))


@entry
def fill_uniform(seed, stream, drawn):
    """Modify `drawn`, float64 (n,): the first n uniforms of a stream."""
    for i in range(drawn.size):
        drawn[i] = uniform(seed, stream, i)
