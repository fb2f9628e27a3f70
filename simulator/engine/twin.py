"""A second simulator beside one: for what a policy would do, or what another one does with the same jobs."""

from __future__ import annotations

import inspect
import re
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


CHANGING = ("rule", "pace")  # whoever decides may bring these


def terms_of(simulator: Any) -> dict[str, str]:
    """What a simulator was made of, argument by argument, in words by which one on other terms can be told."""
    names = (name for name in inspect.signature(type(simulator)).parameters if name not in CHANGING)
    return {name: _told(getattr(simulator, name)) for name in names}


def _told(value: Any) -> str:
    if hasattr(value, "machine_rack"):
        return f"{value.name} ({value.num_gpus} GPUs, {value.num_machines} machines, {value.num_racks} racks)"
    found = value.describe() if hasattr(value, "describe") else repr(value)
    return re.sub(r" at 0x[0-9a-f]+", "", str(found))  # which differs from process to process
