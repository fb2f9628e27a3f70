"""`Outline`: the type of a record whose arrays may have any size, so that a kernel is compiled once for all sizes.

Where a field lies and how long it is are constants that a kernel only names. Making an entry ready to run for
records of one size gives their values before the code is optimised (linking.py), so they cost nothing at run time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import cache
from math import prod
from types import SimpleNamespace
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typeconv import Conversion
from numba.extending import lower_cast, lower_setattr_generic, models, register_model

from .fields import INDEX, Fields

PREFIX = "clustergym."  # of the names of constants


class Outline(Fields):
    """Records with the same fields.

    Attributes:
        answers: what questions (type_queries.py) come to, by name: records that answer otherwise are of another type.
    """

    def __init__(self, digest: str, fields: Mapping[str, tuple[types.Type, int]], answers: Mapping[str, bool]) -> None:
        self.digest, self.fields, self.answers = digest, fields, answers
        said = "".join(f"_{name}_{int(answer)}" for name, answer in sorted(answers.items()))
        super().__init__(f"Outline_{digest}{said}")

    def asked(self, questions: Iterable[str]) -> Outline:
        """The same, which tells only so much."""
        answers = {name: self.answers[name] for name in questions if name in self.answers}
        return self if answers == self.answers else Outline(self.digest, self.fields, answers)

    def constant(self, field: str, axis: int | None = None) -> str:
        """Name of the constant that says where a field begins, or how long it is along an axis."""
        return f"{PREFIX}{self.digest}.{field}.{'at' if axis is None else f'n{axis}'}"

    def first(self, context: Any, builder: Any, value: Any, field: str) -> Any:
        """Pointer to the first entry of a field."""
        record = builder.bitcast(value, cgutils.voidptr_t)
        at = builder.gep(record, [constant(builder, self.constant(field))], inbounds=True)
        return builder.bitcast(at, context.get_data_type(self.fields[field][0]).as_pointer())

    def length(self, builder: Any, value: Any, field: str, axis: int) -> Any:
        """How long a field is along an axis."""
        return constant(builder, self.constant(field, axis))

    def can_convert_from(self, _context: Any, other: types.Type) -> Conversion | None:
        """Numba's hook: whether a record of one size, or one that tells more, can be given for it."""
        if isinstance(other, types.Record):
            return Conversion.safe if _digest(other) == self.digest else None
        tells = isinstance(other, Outline) and other.digest == self.digest
        return Conversion.safe if tells and self.answers.items() <= other.answers.items() else None


def outline_of(record: types.Record, questions: Mapping[str, Any]) -> Outline:
    """The type of records like `record`, and what they answer to those questions that are about such records."""
    answers = {}
    for name, question in questions.items():
        try:
            answers[name] = bool(question(_Sizes(record)))
        except KeyError:  # it has no such field
            continue
    return Outline(_digest(record), _fields(record), answers)


def constants_of(record: types.Record) -> dict[str, int]:
    """The constants of all fields."""
    outline, values = outline_of(record, {}), {}
    for name, field in record.fields.items():
        values[outline.constant(name)] = field.offset
        for axis, length in enumerate(getattr(field.type, "shape", ())):
            values[outline.constant(name, axis)] = length
    return values


class _Sizes:
    """What a question may look at: `s.FIELD.size` of a record type."""

    def __init__(self, record: types.Record) -> None:
        self._record: Any = record

    def __getattr__(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(size=prod(self._record.typeof(name).shape))


@cache
def _fields(record: types.Record) -> dict[str, tuple[types.Type, int]]:
    return {
        name: (field.type.dtype, field.type.ndim) if isinstance(field.type, types.NestedArray) else (field.type, 0)
        for name, field in record.fields.items()
    }


@cache
def _digest(record: types.Record) -> str:
    assert record.aligned
    text = ",".join(f"{name}:{entry}:{axes}" for name, (entry, axes) in _fields(record).items())
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@register_model(Outline)
class _Model(models.OpaqueModel):
    """A pointer to the first byte."""


@lower_cast(types.Record, Outline)
@lower_cast(Outline, Outline)
def _cast(context: Any, builder: Any, _from: types.Type, to: types.Type, value: Any) -> Any:
    return builder.bitcast(value, context.get_value_type(to))


def constant(builder: Any, name: str) -> Any:
    """The value of a constant whose value is given later."""
    module = builder.module
    known = module.globals.get(name)
    if known is None:
        known = ir.GlobalVariable(module, INDEX, name)
        known.global_constant = True
    return builder.load(known)


@lower_setattr_generic(Outline)
def _setattr(context: Any, builder: Any, signature: Any, arguments: Any, field: str) -> None:
    outline, kind = signature.args
    record, value = arguments
    entry, axes = outline.fields[field]
    if axes:
        raise TypeError(f"{field}: a whole array is written entry by entry")
    value = context.cast(builder, value, kind, entry)
    context.pack_value(builder, entry, value, outline.first(context, builder, record, field))
