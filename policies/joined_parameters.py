"""Signatures that join the parameters of several functions; words, tables and help texts read them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def takes(*others: Callable[..., Any]) -> Callable[[F], F]:
    """Decorate a function with `**rest`: its signature gets the parameters of `others`; the first of a name counts."""

    def joined(function: F) -> F:
        named = {one.name: one for one in _named(function)}
        for other in others:
            for one in _named(other):
                named.setdefault(one.name, one.replace(kind=inspect.Parameter.KEYWORD_ONLY))
        function.__signature__ = inspect.Signature(list(named.values()))  # type: ignore[attr-defined]
        return function

    return joined


def _named(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Its parameters without `*` and `**`, with evaluated annotations where possible."""
    try:
        found = inspect.signature(function, eval_str=True)
    except NameError:  # names that only type checkers import
        found = inspect.signature(function)
    return [one for one in found.parameters.values() if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)]
