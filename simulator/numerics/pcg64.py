"""The bits of numpy's `default_rng(seed)`, drawn in kernels: PCG64 (XSL-RR), seeded by a `SeedSequence`.

Source: M. E. O'Neill, PCG (2014); numpy/random: bit_generator.pyx, pcg64.h. Words of 64 bits are int64 with the same
bits, products wrap around; so nothing here is for the interpreter, where numpy is the one to ask.

The state is int64 (STATE,): the halves of 128 bits, those of the increment, and the half of a word that is left over.
"""

from ..compiler.jit import kernel

HIGH, LOW, INCREMENT_HIGH, INCREMENT_LOW, HAS_HALF, HALF, POOL = range(7)
STATE = POOL + 4  # beside it room for the pool of entropy

MASK32, MASK53 = 0xFFFFFFFF, (1 << 53) - 1
SIGN = -(1 << 63)
MULTIPLIER_HIGH, MULTIPLIER_LOW = 0x2360ED051FC65DA4, 0x4385DF649FCCF645
FIRST, SECOND = MULTIPLIER_LOW & MASK32, MULTIPLIER_LOW >> 32
TO_UNIT = 1.0 / (1 << 53)

# Of `SeedSequence`.
INIT_A, MULT_A, INIT_B, MULT_B = 0x43B0D7E5, 0x931E8875, 0x8B51F9DD, 0x58F38DED
MIX_LEFT, MIX_RIGHT = 0xCA01F9DD, 0x4973F715


@kernel
def seed_state(state, seed):
    """Modify `state`: that of a new generator with this seed, 0 to 2^32 - 1."""
    constant = INIT_A
    for i in range(4):
        state[POOL + i] = _hashed(seed if i == 0 else 0, constant, MULT_A)
        constant = (constant * MULT_A) & MASK32
    for source in range(4):
        for other in range(4):
            if source != other:
                mixed = MIX_LEFT * state[POOL + other] - MIX_RIGHT * _hashed(state[POOL + source], constant, MULT_A)
                mixed &= MASK32
                state[POOL + other] = mixed ^ (mixed >> 16)
                constant = (constant * MULT_A) & MASK32
    start_high, constant = _seed_word(state, 0, INIT_B)
    start_low, constant = _seed_word(state, 2, constant)
    high, constant = _seed_word(state, 0, constant)
    low, constant = _seed_word(state, 2, constant)
    state[INCREMENT_HIGH], state[INCREMENT_LOW] = (high << 1) | ((low >> 63) & 1), (low << 1) | 1
    state[HIGH], state[LOW] = _sum(start_high, start_low, state[INCREMENT_HIGH], state[INCREMENT_LOW])
    _step(state)
    state[HAS_HALF] = 0


@kernel
def _hashed(value, constant, multiplier):
    """One round of the hash of a `SeedSequence`, 32 bits."""
    value = ((value ^ constant) * ((constant * multiplier) & MASK32)) & MASK32
    return value ^ (value >> 16)


@kernel
def _seed_word(state, place, constant):
    """64 bits from two places of the pool on, and the next constant."""
    low = _hashed(state[POOL + place], constant, MULT_B)
    constant = (constant * MULT_B) & MASK32
    high = _hashed(state[POOL + place + 1], constant, MULT_B)
    return low | (high << 32), (constant * MULT_B) & MASK32


@kernel
def _sum(high, low, other_high, other_low):
    """The sum of two numbers of 128 bits."""
    total = low + other_low
    carry = 1 if (total ^ SIGN) < (low ^ SIGN) else 0  # compared as if they had no sign
    return high + other_high + carry, total


@kernel
def _step(state):
    """Modify `state`: times the multiplier, plus the increment."""
    high, low = state[HIGH], state[LOW]
    first, second = low & MASK32, (low >> 32) & MASK32
    lowest, middle, other = first * FIRST, first * SECOND, second * FIRST
    carried = ((lowest >> 32) & MASK32) + (middle & MASK32) + (other & MASK32)
    above = second * SECOND + ((middle >> 32) & MASK32) + ((other >> 32) & MASK32) + (carried >> 32)
    above += high * MULTIPLIER_LOW + low * MULTIPLIER_HIGH
    below = (lowest & MASK32) | (carried << 32)
    state[HIGH], state[LOW] = _sum(above, below, state[INCREMENT_HIGH], state[INCREMENT_LOW])


@kernel
def next_word(state):
    """Modify `state`; the next 64 bits."""
    _step(state)
    turned, word = (state[HIGH] >> 58) & 63, state[HIGH] ^ state[LOW]
    if turned == 0:
        return word
    return ((word >> turned) & ~(-1 << (64 - turned))) | (word << (64 - turned))


@kernel
def next_half(state):
    """Modify `state`; the next 32 bits: the upper ones of a word follow its lower ones."""
    if state[HAS_HALF]:
        state[HAS_HALF] = 0
        return state[HALF]
    word = next_word(state)
    state[HAS_HALF], state[HALF] = 1, (word >> 32) & MASK32
    return word & MASK32


@kernel
def next_unit(state):
    """Modify `state`; a float64 from 0 to below 1."""
    return ((next_word(state) >> 11) & MASK53) * TO_UNIT


@kernel
def next_below(state, count):
    """Modify `state`; an integer from 0 to `count` - 1, `count` below 2^32; by Lemire (2019)."""
    if count == 1:
        return 0
    product = next_half(state) * count
    if product & MASK32 < count:
        least = (MASK32 - (count - 1)) % count
        while product & MASK32 < least:
            product = next_half(state) * count
    return (product >> 32) & MASK32
