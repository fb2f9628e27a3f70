"""`Fields`: the type of what has arrays by name and goes to kernels as one pointer: records, tuples of arrays."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import lower_getattr_generic
from numba.np.arrayobj import make_array, populate_array

INDEX = ir.IntType(64)


class Fields(types.Type):
    """What has arrays, and maybe numbers, by name.

    Attributes:
        fields: (type of one entry, axes) by name; no axes: a number.
    """

    mutable = True
    fields: Mapping[str, tuple[types.Type, int]]

    def typeof(self, field: str) -> types.Type | None:
        """What kernels get that ask for a field."""
        if field not in self.fields:
            return None
        entry, axes = self.fields[field]
        return types.Array(entry, axes, "C") if axes else entry

    @abstractmethod
    def first(self, context: Any, builder: Any, value: Any, field: str) -> Any:
        """Pointer to the first entry of a field."""

    @abstractmethod
    def length(self, builder: Any, value: Any, field: str, axis: int) -> Any:
        """How long a field is along an axis."""


@infer_getattr
class _Attributes(AttributeTemplate):
    key = Fields

    def generic_resolve(self, kind: Fields, field: str) -> types.Type | None:
        """Numba's hook."""
        return kind.typeof(field)


@lower_getattr_generic(Fields)
def _getattr(context: Any, builder: Any, kind: Fields, value: Any, field: str) -> Any:
    entry, axes = kind.fields[field]
    first = kind.first(context, builder, value, field)
    if not axes:
        return impl_ret_borrowed(context, builder, entry, context.unpack_value(builder, entry, first))
    array = make_array(kind.typeof(field))(context, builder)
    size = context.get_abi_sizeof(context.get_data_type(entry))
    lengths = [kind.length(builder, value, field, axis) for axis in range(axes)]
    steps = [INDEX(size)]
    for length in reversed(lengths[1:]):
        steps.insert(0, builder.mul(steps[0], length))
    populate_array(
        array,
        data=first,
        shape=cgutils.pack_array(builder, lengths),
        strides=cgutils.pack_array(builder, steps),
        itemsize=INDEX(size),
        meminfo=None,
        parent=None,
    )
    return impl_ret_borrowed(context, builder, kind.typeof(field), array._getvalue())
