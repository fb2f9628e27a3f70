"""A second simulator beside one: for what a policy would do, or what another one does with the same jobs."""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

T = TypeVar("T")


def twin(simulator: T, **instead: Any) -> T:
    """A simulator of the same kind, on the same terms, that has not run yet.

    A simulator keeps what it was made of under the names of the arguments, and that is what the twin is made of.

    Args:
        simulator: which.
        instead: arguments that differ.
    """
    names = inspect.signature(type(simulator)).parameters
    return type(simulator)(**{**{name: getattr(simulator, name) for name in names}, **instead})
