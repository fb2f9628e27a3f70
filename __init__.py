"""clustergym: scheduling deep-learning jobs on GPU clusters, as a fast simulator and Gymnasium environments.

Importing this package is cheap: a room is imported at its first use, e.g. `clustergym.policies`.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_ROOMS = ("simulator", "policies", "envs", "agents", "experiments")
_LAZY: dict[str, str] = {}  # public name -> the module that defines it, relative to this package


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f".{name}", __name__)
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_ROOMS, *_LAZY})
