"""Asking the processor for memory ahead of its use; it changes no result."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from ..compiler.jit import kernel

LINE = 64  # bytes that come together


def prefetch(array: Any, index: int, offset: int) -> None:
    """Ask for the line of the byte `offset` bytes behind entry `index` of an array without gaps; it may lie outside."""


@intrinsic
def _ask(_context: Any, array: Any, index: Any, offset: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if "nvptx" in builder.module.triple:  # a GPU waits otherwise
            return context.get_dummy_value()
        kind = signature.args[0]
        data = cgutils.create_struct_proxy(kind)(context, builder, value=arguments[0]).data
        itemsize = context.get_abi_sizeof(context.get_data_type(kind.dtype))
        place = builder.add(builder.mul(arguments[1], ir.Constant(ir.IntType(64), itemsize)), arguments[2])
        byte = builder.gep(builder.bitcast(data, cgutils.voidptr_t), [place])
        flag = ir.IntType(32)
        ask = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, flag, flag, flag]), "llvm.prefetch.p0"
        )
        builder.call(ask, [byte, ir.Constant(flag, 0), ir.Constant(flag, 3), ir.Constant(flag, 1)])
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), generate


@overload(prefetch)
def _compiled_prefetch(array: Any, index: Any, offset: Any) -> Any:
    def implementation(array: Any, index: Any, offset: Any) -> Any:
        _ask(array, index, offset)

    return implementation


@kernel
def prefetch_lines(array, index, lines):
    """Ask for so many lines from entry `index` of an array on."""
    for line in range(lines):
        prefetch(array, index, LINE * line)
