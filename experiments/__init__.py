"""The command line, evaluation and reports; from Python: `evaluate` policies on a `Setting`, compare `against` one."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the names of __getattr__, for type checkers and editors
    from .comparing.intervals import against as against
    from .playing.evaluation import evaluate as evaluate
    from .playing.runs import Run as Run
    from .settings.evaluation_setting import Setting as Setting
    from .storing.store import open_store as open_store
    from .storing.store import read as read_evaluation  # noqa: F401

# Public name -> module, relative to this package, and name there.
_LAZY = {
    "Run": ".playing.runs:Run",
    "Setting": ".settings.evaluation_setting:Setting",
    "against": ".comparing.intervals:against",
    "evaluate": ".playing.evaluation:evaluate",
    "open_store": ".storing.store:open_store",
    "read_evaluation": ".storing.store:read",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        module, _, attribute = _LAZY[name].partition(":")
        return getattr(importlib.import_module(module, __name__), attribute)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
