"""A logarithm that a processor takes of many numbers at once, the same to the last bit with and without compilation."""

from __future__ import annotations

import struct
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from ..compiler.jit import kernel

LOG_2 = 0.6931471805599453
ROOT_HALF = 0x3FE6A09E667F3BCD  # the bits of sqrt(1 / 2)


def bits_of(value: float) -> int:
    """The 64 bits of a number >= 0, as a whole number."""
    return int.from_bytes(struct.pack("<d", value), "little")


def number_of(bits: int) -> float:
    """The number with these bits."""
    return float(struct.unpack("<d", int(bits).to_bytes(8, "little"))[0])


@intrinsic
def _as_bits(_context: Any, value: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def _as_number(_context: Any, bits: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


@overload(bits_of)
def _compiled_bits_of(value: Any) -> Any:
    def implementation(value: Any) -> Any:
        return _as_bits(value)

    return implementation


@overload(number_of)
def _compiled_number_of(bits: Any) -> Any:
    def implementation(bits: Any) -> Any:
        return _as_number(bits)

    return implementation


@kernel
def log_from_one(value):
    """Natural logarithm of a number from 1 on, to twelve digits; infinity reads 709.8.

    value = 2^power x rest with rest from sqrt(1/2) to sqrt(2), and log(rest) = 2 artanh((rest - 1) / (rest + 1)). No
    branch and no call, so a loop over an array takes several at a time, which the C library's log does not let it.
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
