"""The first use of a size class makes the kernels ready for it: what the user is told meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..compiler.compile_messages import about
from .protocols import Room


@contextmanager
def announced(part: str, capacity: Room) -> Iterator[None]:
    """Around kernel calls of a part (`the simulator`, `Delay-v0`) on records of this capacity.

    Where something has to be compiled first, the user is told for what, and how long it has taken so far.
    """
    with about(f"{part} for up to {capacity.words}"):
        yield
