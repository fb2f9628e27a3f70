"""The window of DataPlacement-v0: nothing but what all have."""

from __future__ import annotations

from functools import cache

import numpy as np

from ..window import common_fields


@cache
def window_dtype() -> np.dtype:
    """One window."""
    return np.dtype(common_fields(), align=True)
