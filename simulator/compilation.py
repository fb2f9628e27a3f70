"""The first use of a size class compiles the kernels: tell the user, and let only one process do it at a time."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numba

from .kernels.jit import cache_folder
from .protocols import Room

try:
    import fcntl
except ImportError:  # not a POSIX system: two processes may then compile the same code, which is only slower
    fcntl = None  # type: ignore[assignment]

_known: set[tuple[str, Room]] = set()


@contextmanager
def announced(part: str, capacity: Room) -> Iterator[None]:
    """Around the first kernel calls of a part (`the simulator`, `Delay-v0`) on records of this capacity.

    Quiet where the cache is warm; else a line on stderr, and other processes wait at this point.
    """
    if (part, capacity) in _known:
        yield
        return
    marker = cache_folder() / f"{part.replace(' ', '-')}-{capacity.slug}.ready"
    if numba.config.DISABLE_JIT or marker.exists():
        _known.add((part, capacity))
        yield
        return
    marker.parent.mkdir(parents=True, exist_ok=True)  # it may have been removed: see `cache_folder`
    with open(marker.with_suffix(".lock"), "w") as lock:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)
        if not marker.exists():
            print(
                f"clustergym: compiling {part} for up to {capacity.words} (once; up to half a minute) ...",
                file=sys.stderr,
                flush=True,
            )
        began = time.monotonic()
        yield
        _known.add((part, capacity))
        marker.write_text(f"{time.monotonic() - began:.1f} s\n")
