"""`Bundle`: the type of a named tuple of arrays as kernels get it: a pointer to where each begins and how long it is.

By value such a tuple is seven arguments for every array, two hundred and fifty for the regions of Geo-v0, of every
kernel and of every call: they cost more to compile than what the kernels do.
"""

from __future__ import annotations

import hashlib
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typeconv import Conversion
from numba.extending import lower_cast, models, register_model
from numba.np.arrayobj import make_array

from .fields import INDEX, Fields

WORD_BYTES = 8


class Bundle(Fields):
    """A named tuple of arrays, each in one piece.

    Attributes:
        whole: its type by value.
        place: number of the word with the address of the first entry, by field; how long it is along each axis follows.
        words: how many there are.
    """

    def __init__(self, whole: types.NamedTuple) -> None:
        self.whole = whole
        self.fields = {name: (kind.dtype, kind.ndim) for name, kind in _members(whole)}
        self.place, self.words = {}, 0
        for name, (_, axes) in self.fields.items():
            self.place[name] = self.words
            self.words += 1 + axes
        digest = hashlib.sha256(name_of(whole).encode()).hexdigest()[:12]
        super().__init__(f"Bundle_{whole.instance_class.__name__}_{digest}")

    def typeof(self, field: str) -> types.Type | None:
        """What kernels get that ask for a field."""
        return dict(_members(self.whole)).get(field)

    def can_convert_from(self, _context: Any, other: types.Type) -> Conversion | None:
        """Numba's hook: whether a tuple by value can be given for it."""
        return Conversion.safe if other == self.whole else None

    def first(self, context: Any, builder: Any, value: Any, field: str) -> Any:
        """Pointer to the first entry of a field."""
        first = context.get_data_type(self.fields[field][0]).as_pointer()
        return builder.load(_word(builder, value, self.place[field], first))

    def length(self, builder: Any, value: Any, field: str, axis: int) -> Any:
        """How long a field is along an axis."""
        return builder.load(_word(builder, value, self.place[field] + 1 + axis, INDEX))

    def mark(self, argument: Any) -> None:
        """Modify the argument of a kernel: nothing writes what it points to, so it need not be read anew."""
        argument.add_attribute("noalias")
        argument.attributes.dereferenceable = WORD_BYTES * self.words


def bundled(kind: types.Type) -> types.Type:
    """What a kernel gets for an argument of a type: a bundle for a named tuple of arrays in one piece, else itself."""
    if not isinstance(kind, types.NamedTuple) or not all(_can_go(member) for _, member in _members(kind)):
        return kind
    return Bundle(kind)


def name_of(kind: types.Type) -> str:
    """What tells a type from others; numba's own name of a named tuple leaves out the names of its fields."""
    if not isinstance(kind, types.BaseTuple):
        return str(kind)
    return f"{kind} {getattr(kind, 'fields', '')} {[name_of(member) for member in kind]}"


def _members(whole: types.NamedTuple) -> list[tuple[str, Any]]:
    return list(zip(whole.fields, whole.types, strict=True))


def _can_go(kind: types.Type) -> bool:
    is_whole = isinstance(kind, types.Array) and kind.layout == "C" and kind.aligned
    return is_whole and isinstance(kind.dtype, types.Number | types.Boolean)


@register_model(Bundle)
class _Model(models.OpaqueModel):
    """A pointer to the first word."""


def _word(builder: Any, bundle: Any, place: int, kind: Any) -> Any:
    at = builder.gep(bundle, [INDEX(WORD_BYTES * place)], inbounds=True)
    return builder.bitcast(at, kind.as_pointer())


@lower_cast(types.NamedTuple, Bundle)
def _cast(context: Any, builder: Any, _from: types.Type, to: Bundle, value: Any) -> Any:
    words = cgutils.alloca_once(builder, ir.ArrayType(INDEX, to.words))
    bundle = builder.bitcast(words, cgutils.voidptr_t)
    for number, (name, kind) in enumerate(_members(to.whole)):
        array = make_array(kind)(context, builder, builder.extract_value(value, number))
        builder.store(array.data, _word(builder, bundle, to.place[name], array.data.type))
        for axis, length in enumerate(cgutils.unpack_tuple(builder, array.shape)):
            builder.store(length, _word(builder, bundle, to.place[name] + 1 + axis, INDEX))
    return bundle
