"""Learning agents: training, saving and playing them. Modules are imported at first use: torch and SB3 are heavy."""

from __future__ import annotations

import importlib
from typing import Any

# Public name -> the module that defines it, relative to this package.
_LAZY = {
    "ClusterVecEnv": ".vec_env",
    "MetricsCallback": ".training.metrics_callback",
    "load_agent": ".files.saved",
    "save_agent": ".files.saved",
    "save_sb3": ".playing.sb3_saving",
    "sb3_vec_env": ".vec_env",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        from .installed import ALL, expect_installed

        expect_installed(f"clustergym.agents.{name}", ALL)
        return getattr(importlib.import_module(_LAZY[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
