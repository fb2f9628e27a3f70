"""A logarithm that a processor takes of many numbers at once, the same to the last bit with and without compilation."""

from ..compiler.jit import kernel
from .instructions import bits_of, number_of

LOG_2 = 0.6931471805599453
ROOT_HALF = 0x3FE6A09E667F3BCD  # the bits of sqrt(1 / 2)


@kernel
def log_from_one(value):
    """Natural logarithm of a number from 1 on, to twelve digits; infinity reads 709.8.

    value = 2^power x rest with rest from sqrt(1/2) to sqrt(2), and log(rest) = 2 artanh((rest - 1) / (rest + 1)).
    Without branches and calls, a loop over an array takes several at a time, unlike the C library's log.
    """
    bits = bits_of(value)
    power = (bits - ROOT_HALF) >> 52
    rest = number_of(bits - (power << 52))
    t = (rest - 1.0) / (rest + 1.0)
    square = t * t
    series = 1.0 / 11.0 + square * (1.0 / 13.0)
    series = 1.0 / 9.0 + square * series
    series = 1.0 / 7.0 + square * series
    series = 1.0 / 5.0 + square * series
    series = 1.0 / 3.0 + square * series
    return power * LOG_2 + 2.0 * t * (1.0 + square * series)
