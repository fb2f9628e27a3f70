"""Numba's type inference, with a memory: it tries some twenty rules for every `+` of two integers, each time anew."""

from __future__ import annotations

from functools import cache
from typing import Any

from numba import types
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NopythonTypeInference

from .fields import Fields

PLAIN = (
    types.Number,
    types.Boolean,
    types.Array,
    types.Record,
    types.Literal,
    types.NoneType,
    types.SliceType,
    Fields,
)


class _Remembering:
    """A typing context that remembers what the functions of numba return, and what the attributes of a type are."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._calls: dict[Any, tuple[Any, Any]] = {}
        self._attributes: dict[Any, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def resolve_function_type(self, function: Any, args: Any, named: Any) -> Any:
        """Numba's hook: the signature of a call."""
        is_numbas = not isinstance(function, types.Type) or type(function) is types.Function
        if named or not is_numbas or not all(isinstance(arg, PLAIN) for arg in args):
            return self._context.resolve_function_type(function, args, named)
        key = function, *args
        if key not in self._calls:
            signature = self._context.resolve_function_type(function, args, named)
            has_key = isinstance(function, types.Type) and signature is not None
            self._calls[key] = signature, function.get_impl_key(signature) if has_key else None
        signature, implementation = self._calls[key]
        if implementation is not None:
            function._impl_keys[signature.args] = implementation
        return signature

    def resolve_getattr(self, value: Any, name: str) -> Any:
        """Numba's hook: the type of an attribute."""
        if not isinstance(value, types.Record | types.Module | Fields):
            return self._context.resolve_getattr(value, name)
        key = value, name
        if key not in self._attributes:
            self._attributes[key] = self._context.resolve_getattr(value, name)
        return self._attributes[key]


@cache
def remembering(context: Any) -> Any:
    """A typing context of numba that remembers; one for each."""
    return _Remembering(context)


@register_pass(mutates_CFG=True, analysis_only=False)
class InferTypes(NopythonTypeInference):
    """Numba's, in a context that remembers."""

    _name = "clustergym_infer_types"

    def run_pass(self, state: Any) -> bool:
        """Numba's hook."""
        context = state.typingctx
        state.typingctx = remembering(context)
        try:
            return super().run_pass(state)
        finally:
            state.typingctx = context
