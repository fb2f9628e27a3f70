"""Shorter ways for a few parts of numba, in force while one of our kernels is compiled: what they give is the same.

Numba's lock is held meanwhile, so that nothing else is compiled; afterwards numba is as it was, whatever went wrong.

A fifth of what compiling takes goes into looking for the variables of statements, into colours for messages of errors
that numba catches itself, and into telling of events that nobody listens to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import errors, event, ir

_PLAIN, _VARIABLE, _STATEMENT, _SEVERAL, _NAMED = range(5)
_KINDS: dict[type, int] = {}


def _kind_of(found: type) -> int:
    """What of values of a type is looked at; as numba asks it of each value."""
    ways = ((ir.Var, _VARIABLE), (ir.Inst, _STATEMENT), ((list, tuple), _SEVERAL), (dict, _NAMED))
    kind = next((way for classes, way in ways if issubclass(found, classes)), _PLAIN)
    _KINDS[found] = kind
    return kind


def _collect(value: Any, variables: list[Any]) -> None:
    """Add the variables in a value, in order."""
    kind = _KINDS.get(type(value))
    if kind is None:
        kind = _kind_of(type(value))
    if kind == _VARIABLE:
        variables.append(value)
    elif kind == _STATEMENT:
        variables += value.list_vars()
    elif kind == _SEVERAL:
        for one in value:
            _collect(one, variables)
    elif kind == _NAMED:
        for one in value.values():
            _collect(one, variables)


def _variables_in(_statement: Any, value: Any) -> list[Any]:
    variables: list[Any] = []
    _collect(value, variables)
    return variables


def _as_it_is(_scheme: Any, message: str, *_colours: Any, **_named: Any) -> str:
    return message


def _if_heard(tell: Callable[..., None]) -> Callable[..., None]:
    """Numba's `start_event` or `end_event`, called only for those that listen."""

    def told(kind: str, *arguments: Any, **named: Any) -> None:
        if event._registered.get(kind):
            tell(kind, *arguments, **named)

    return told


SHORTER: list[tuple[Any, str, Callable[..., Any]]] = [
    (ir.Inst, "_rec_list_vars", _variables_in),
    (event, "start_event", _if_heard(event.start_event)),
    (event, "end_event", _if_heard(event.end_event)),
]
if hasattr(errors, "HighlightColorScheme"):  # colorama is installed
    SHORTER.append((errors.HighlightColorScheme, "_markup", _as_it_is))


@contextmanager
def hastened() -> Iterator[None]:
    """Put them in place of numba's, and put numba's back."""
    before = [(place, name, getattr(place, name)) for place, name, _ in SHORTER]
    try:
        for place, name, way in SHORTER:
            setattr(place, name, way)
        yield
    finally:
        for place, name, way in before:
            setattr(place, name, way)
