"""Functions that take what others take, and hand it on: their signatures name the parameters of these, too.

Words (`bind`), tables and help texts read from a signature what a policy takes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def takes(*others: Callable[..., Any]) -> Callable[[F], F]:
    """A decorator of a function with `**rest`: instead of that its signature has the parameters of `others`.

    Of two with one name the first counts.
    """

    def joined(function: F) -> F:
        named = {one.name: one for one in _named(function)}
        for other in others:
            for one in _named(other):
                named.setdefault(one.name, one.replace(kind=inspect.Parameter.KEYWORD_ONLY))
        function.__signature__ = inspect.Signature(list(named.values()))  # type: ignore[attr-defined]
        return function

    return joined


def _named(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Its parameters but for `*` and `**`, with annotations as objects where their names are known."""
    try:
        found = inspect.signature(function, eval_str=True)
    except NameError:  # a user's, of what only type checkers import
        found = inspect.signature(function)
    return [one for one in found.parameters.values() if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)]
