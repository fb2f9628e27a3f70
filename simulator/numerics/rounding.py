"""Equality but for rounding: other units of work must not change orders or instants by the last bits of sums."""

from ..compiler.jit import kernel

SAME_INSTANT = 1e-12  # relative: events so near to each other are one instant; far above rounding, far below any clock
NEAR = 1e-9  # of a period of a clock: so near to a tick is on it
EQUAL = 1.0 + 1e-12  # sums that differ by rounding only are equal
GRAIN = 2.0**-12  # of flows on a link: sums of rates times these are exact in any order, up to 17 Tbps
_SPLIT = 2.0**23 + 1.0  # leaves 30 of the 53 bits: a billionth


@kernel
def rounded(value):
    """A finite number to 30 bits: equal but for rounding comes out equal, but for one in a million such pairs."""
    product = value * _SPLIT
    return product - (product - value)
