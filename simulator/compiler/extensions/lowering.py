"""Numba's lowering of kernels to LLVM, with a short way for what they do most: `s.FIELD[index]`.

Numba makes an array object of `s.FIELD` first: forty instructions, which LLVM takes away again.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from numba import types
from numba.core import config, ir
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering
from numba.np.arrayobj import fix_integer_index

from .bundle import Bundle
from .fields import Fields
from .type_inference import remembering


class _Lower(Lower):
    """Numba's.

    Attributes:
        columns: record and field by the name of the variable that stands for `s.FIELD`, of which only single entries
            are read and written.
    """

    columns: dict[str, tuple[Any, str]]

    def lower_normal_function(self, fndesc: Any) -> None:
        """Numba's hook."""
        self.columns = {} if config.BOUNDSCHECK else self._find_columns()
        super().lower_normal_function(fndesc)

    def extract_function_arguments(self) -> Any:
        """Numba's hook."""
        values = super().extract_function_arguments()
        for kind, value in zip(self.fndesc.argtypes, values, strict=True):
            if isinstance(kind, Bundle):
                kind.mark(value)
        return values

    def _find_columns(self) -> dict[str, tuple[Any, str]]:
        blocks = list(self.blocks.values())
        times = Counter(made.target.name for block in blocks for made in block.find_insts(ir.Assign))
        columns: dict[str, tuple[Any, str]] = {}
        others = set()  # used whole, or in another block, where the record may be gone
        for block in blocks:
            here = set()
            for statement in block.body:
                entry, whole = self._uses(statement)
                others.update(whole)
                if entry is not None and entry not in here:
                    others.add(entry)
                column = self._column(statement)
                if column is not None and times[statement.target.name] == times[column[0].name] == 1:
                    columns[statement.target.name] = column
                    here.add(statement.target.name)
        return {name: column for name, column in columns.items() if name not in others}

    def _column(self, statement: Any) -> tuple[Any, str] | None:
        """Record and field, of a statement that gives such an array a name."""
        value = getattr(statement, "value", None)
        if not isinstance(statement, ir.Assign) or not isinstance(value, ir.Expr) or value.op != "getattr":
            return None
        is_array = isinstance(self.typeof(statement.target.name), types.Array)
        return (value.value, value.attr) if is_array and isinstance(self.typeof(value.value.name), Fields) else None

    def _uses(self, statement: Any) -> tuple[str | None, list[str]]:
        """The variable of which a statement reads or writes one entry, and the others that it reads."""
        array, index, value = None, None, getattr(statement, "value", None)
        if isinstance(statement, ir.Del):
            return None, []
        used = statement.list_vars()
        if isinstance(statement, ir.SetItem):
            array, index = statement.target, statement.index
        elif isinstance(statement, ir.StaticSetItem):
            array, index = statement.target, statement.index_var
        elif isinstance(statement, ir.Assign):
            used = value.list_vars() if isinstance(value, ir.Expr) else [value] if isinstance(value, ir.Var) else []
            if isinstance(value, ir.Expr) and value.op in ("getitem", "static_getitem"):
                array, index = value.value, value.index if value.op == "getitem" else value.index_var
        names = [variable.name for variable in used]
        if array is None or index is None or not self._is_entry(array, index):
            return None, names
        return array.name, [name for name in names if name != array.name]

    def _index_types(self, index: Any) -> tuple[types.Type, ...]:
        kind = self.typeof(index.name)
        return tuple(kind) if isinstance(kind, types.BaseTuple) else (kind,)

    def _is_entry(self, array: Any, index: Any) -> bool:
        kinds, array_type = self._index_types(index), self.typeof(array.name)
        is_whole_number = all(isinstance(types.unliteral(kind), types.Integer) for kind in kinds)
        return is_whole_number and len(kinds) == getattr(array_type, "ndim", 0)

    def _place(self, array: Any, index: Any) -> tuple[Any, types.Type]:
        """Pointer to an entry, and its type."""
        record, field = self.columns[array.name]
        all_fields, builder, context = self.typeof(record.name), self.builder, self.context
        entry, axes = all_fields.fields[field]
        whole, value = self.loadvar(record.name), self.loadvar(index.name)
        is_tuple = isinstance(self.typeof(index.name), types.BaseTuple)
        parts = [builder.extract_value(value, axis) for axis in range(axes)] if is_tuple else [value]
        place = None
        for axis, (kind, part) in enumerate(zip(self._index_types(index), parts, strict=True)):
            plain = types.unliteral(kind)
            length = all_fields.length(builder, whole, field, axis)
            part = fix_integer_index(context, builder, plain, context.cast(builder, part, kind, plain), length)
            place = part if place is None else builder.add(builder.mul(place, length), part)
        first = all_fields.first(context, builder, whole, field)
        return builder.gep(first, [place]), entry

    def lower_assign(self, ty: types.Type, inst: Any) -> Any:
        """Numba's hook."""
        if inst.target.name in self.columns:
            return None
        return super().lower_assign(ty, inst)

    def storevar(self, value: Any, name: str, argidx: int | None = None) -> None:
        """Numba's hook."""
        if name not in self.columns:
            super().storevar(value, name, argidx)

    def delvar(self, name: str) -> None:
        """Numba's hook; a record stays known for its columns, and of none are references counted."""
        if name not in self.columns and not isinstance(self.typeof(name), Fields):
            super().delvar(name)

    def _cast_var(self, var: Any, ty: types.Type) -> Any:
        """Numba's hook: an argument of a call; an entry may hand a field of a record to a kernel for any such array."""
        is_column = isinstance(var, ir.Var) and isinstance(self.typeof(var.name), types.NestedArray)
        if is_column and type(ty) is types.Array:
            return self.loadvar(var.name)
        return super()._cast_var(var, ty)

    def lower_getitem(self, resty: types.Type, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        """Numba's hook."""
        if value.name not in self.columns:
            return super().lower_getitem(resty, expr, value, index, signature)
        place, entry = self._place(value, index)
        read = self.context.unpack_value(self.builder, entry, place)
        return self.context.cast(self.builder, read, entry, resty)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        """Numba's hook."""
        if target_var.name not in self.columns:
            return super().lower_setitem(target_var, index_var, value_var, signature)
        place, entry = self._place(target_var, index_var)
        value = self.context.cast(self.builder, self.loadvar(value_var.name), self.typeof(value_var.name), entry)
        return self.context.pack_value(self.builder, entry, value, place)

    def lower_binop(self, resty: types.Type, expr: Any, op: Any) -> Any:
        """Numba's hook: as there, but for operands that are known beforehand; what it comes to is remembered."""
        if not (expr.static_lhs is ir.UNDEFINED and expr.static_rhs is ir.UNDEFINED):
            return super().lower_binop(resty, expr, op)
        context, builder = self.context, self.builder
        typing = remembering(context.typing_context)
        function = typing.resolve_value_type(op)
        wanted = self.fndesc.calltypes[expr].args
        operands = [
            context.cast(builder, self.loadvar(operand.name), self.typeof(operand.name), kind)
            for operand, kind in zip((expr.lhs, expr.rhs), wanted, strict=True)
        ]
        signature = typing.resolve_function_type(function, wanted, {})
        result = context.get_function(function, signature)(builder, operands)
        return context.cast(builder, result, self.fndesc.calltypes[expr].return_type, resty)


@register_pass(mutates_CFG=True, analysis_only=False)
class LowerKernel(NativeLowering):
    """Numba's, with our `Lower`."""

    _name = "clustergym_lower"

    @property
    def lowering_class(self) -> type:
        """Numba's hook."""
        return _Lower
