"""The bytes of a record that are in use, one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np


def packed(raw: Any, extent: Any) -> np.ndarray:
    """The bytes of a record (raw_record.py) that are in use, uint8 (size,)."""
    return np.concatenate([part.ravel() for part in raw.running_parts(extent)])


def unpack(raw: Any, extent: Any, data: np.ndarray) -> None:
    """Modify the record: as `packed` gave it."""
    for part in raw.running_parts(raw.extent):
        part.fill(0)
    at = 0
    for part in raw.running_parts(extent):
        part[...] = data[at : at + part.size].reshape(part.shape)
        at += part.size
