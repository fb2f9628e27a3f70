"""Arrays of zeroed records. Of large ones most of the room is not used, and then takes no memory."""

from __future__ import annotations

import mmap
import sys
from contextlib import suppress

import numpy as np

SPARSE_BYTES = 1 << 22  # from here on numpy would ask for pages of 2 MB
DENSE_BYTES = 1 << 20  # smaller records are mostly in use, and with large pages a processor finds them sooner
NORESERVE = 0x4000  # of Linux: promise no memory for it; Python 3.11 has no name for it


def zeroed(n: int, dtype: np.dtype) -> np.recarray:
    """`n` zeroed records."""
    size = n * dtype.itemsize
    if size < SPARSE_BYTES or dtype.itemsize < DENSE_BYTES or sys.platform != "linux":
        return np.zeros(n, dtype).view(np.recarray)
    room = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE)
    with suppress(OSError, AttributeError):  # a kernel, or a Python, that knows none
        room.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(room, np.uint8).view(dtype).view(np.recarray)
