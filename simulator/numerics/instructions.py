"""One-instruction functions for kernels on a CPU and, compiled for one, on a GPU, where numpy's scalar ones fail."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from ..compiler.jit import kernel

F64_TO_F64, I64_TO_I64 = types.float64(types.float64), types.int64(types.int64)
F64_TO_I64, I64_TO_F64 = types.int64(types.float64), types.float64(types.int64)


def instruction(signature: Any, emit: Callable[[Any, Any], Any]) -> Callable[[Callable[..., Any]], Any]:
    """A decorator: kernels get what `emit` builds of an argument; without compilation the function itself is called."""

    def decorate(function: Callable[..., Any]) -> Any:
        if numba.config.DISABLE_JIT:
            return function

        def typed(_context: Any, value: Any) -> Any:
            return signature, lambda _context, builder, _signature, arguments: emit(builder, arguments[0])

        typed.__name__ = function.__name__
        return _called(typed, function)

    return decorate


def _called(typed: Callable[..., Any], function: Callable[..., Any]) -> Any:
    """An intrinsic that Python calls too, where the function of a kernel may be tried out: numba's own refuses."""
    made = intrinsic(typed)
    made.__class__ = type("Instruction", (type(made),), {"__call__": staticmethod(function)})
    return made


def _llvm(name: str) -> Callable[[Any, Any], Any]:
    return lambda builder, value: builder.call(builder.module.declare_intrinsic(name, [value.type]), [value])


@instruction(I64_TO_I64, lambda builder, word: builder.cttz(word, ir.Constant(ir.IntType(1), 1)))
def trailing_zeros(word):
    """Index of the lowest set bit of `word` > 0."""
    word = int(word)
    return (word & -word).bit_length() - 1


@instruction(F64_TO_I64, lambda builder, value: builder.bitcast(value, ir.IntType(64)))
def bits_of(value):
    """The 64 bits of a number >= 0, as a whole number."""
    return int.from_bytes(struct.pack("<d", value), "little")


@instruction(I64_TO_F64, lambda builder, bits: builder.bitcast(bits, ir.DoubleType()))
def number_of(bits):
    """The number >= 0 with these bits."""
    return float(struct.unpack("<d", int(bits).to_bytes(8, "little"))[0])


@instruction(F64_TO_F64, _llvm("llvm.floor"))
def floor(value):
    """The largest whole number up to `value`, as a float."""
    return np.floor(value)


@instruction(F64_TO_F64, _llvm("llvm.ceil"))
def ceil(value):
    """The smallest whole number from `value` on, as a float."""
    return np.ceil(value)


@instruction(F64_TO_F64, _llvm("llvm.rint"))
def nearest(value):
    """The whole number that is nearest, as a float; of two the even one."""
    return np.rint(value)


@kernel
def next_above(value):
    """The next float64 above a finite number >= 0."""
    return number_of(bits_of(value) + 1)


def _part(_context: Any, array: Any, first: Any, size: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        whole, taken = make_array(array)(context, builder, arguments[0]), make_array(array)(context, builder)
        data, same = builder.gep(whole.data, [arguments[1]]), ("strides", "itemsize", "meminfo", "parent")
        populate_array(taken, data, [arguments[2]], **{name: getattr(whole, name) for name in same})
        return impl_ret_borrowed(context, builder, array, taken._getvalue())

    return array(array, types.int64, types.int64), generate


def _sliced(array, first, size):
    return array[first : first + size]


# `array[first : first + size]` of a 1-d array without gaps that has all of it: its ends are not tested.
part = _sliced if numba.config.DISABLE_JIT else _called(_part, _sliced)
