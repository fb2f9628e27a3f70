"""Published tables and figures beside ours: what `clustergym reproduce` runs, a folder a paper."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def named(place: str) -> Any:
    """A function of this folder by its `module:function`."""
    module, _, function = place.partition(":")
    return getattr(import_module(f".{module}", __name__), function)
