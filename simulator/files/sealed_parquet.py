"""Parquet files that carry a checksum over all their bytes, so that no damage is read as other numbers.

Parquet's own checksums are of pages and leave out the footer. The seal lies between the last page and the footer, which
readers of parquet skip: a mark and the sha256 of the file without both.
"""

from __future__ import annotations

import hashlib
from typing import Literal

MARK = b"clustergym-sha256:"
MAGIC = b"PAR1"
_DIGEST_BYTES = hashlib.sha256().digest_size
_TAIL_BYTES = 8  # the length of the footer in 4 bytes, and the magic


def sealed(data: bytes) -> bytes:
    """The parquet file with a seal; `data`: a whole file, as pyarrow writes it."""
    at = _footer(data)
    assert at >= len(MAGIC)
    return b"".join((data[:at], MARK, hashlib.sha256(data).digest(), data[at:]))


def state(data: bytes) -> Literal["whole", "damaged", "unsealed"]:
    """Whether a file is as it was when it was sealed; `unsealed` where it has no seal, whatever else is wrong."""
    at = _footer(data)
    digest_at = at - _DIGEST_BYTES
    mark_at = digest_at - len(MARK)
    if mark_at < len(MAGIC) or data[mark_at:digest_at] != MARK:
        return "damaged" if MARK in data else "unsealed"
    view = memoryview(data)
    found = hashlib.sha256(view[:mark_at])
    found.update(view[at:])
    return "whole" if found.digest() == data[digest_at:at] else "damaged"


def _footer(data: bytes) -> int:
    return len(data) - _TAIL_BYTES - int.from_bytes(data[-_TAIL_BYTES:-4], "little")
