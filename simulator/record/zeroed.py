"""Arrays of zeroed records, most of whose room nobody uses: what is not used takes no memory."""

from __future__ import annotations

import mmap
import sys
from contextlib import suppress

import numpy as np

SPARSE_BYTES = 1 << 22  # from here on numpy would ask for pages of 2 MB, each of which holds something that is used
NORESERVE = 0x4000  # of Linux: promise no memory for it; Python 3.11 has no name for it


def zeroed(n: int, dtype: np.dtype) -> np.recarray:
    """`n` zeroed records."""
    size = n * dtype.itemsize
    if size < SPARSE_BYTES or sys.platform != "linux":
        return np.zeros(n, dtype).view(np.recarray)
    room = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE)
    with suppress(OSError, AttributeError):  # a kernel, or a Python, that knows none
        room.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(room, np.uint8).view(dtype).view(np.recarray)
