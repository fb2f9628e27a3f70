"""clustergym: scheduling deep-learning jobs on GPU clusters, as a fast simulator and Gymnasium environments.

Importing this package registers the environments with Gymnasium and is cheap: a room is imported at its first use,
e.g. `clustergym.policies`.
"""

from __future__ import annotations

import importlib
from typing import Any

from .envs.registration import register as _register

__version__ = "0.1.0"

_ROOMS = ("simulator", "policies", "envs", "agents", "experiments")
# Public name -> the module that defines it, relative to this package.
_LAZY = {
    "Simulator": ".simulator.engine",
    "Topology": ".simulator.topology",
    "Workload": ".simulator.workloads",
    "action_masks": ".envs.masks",
    "open_workload": ".simulator.workloads",
}

_register()


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f".{name}", __name__)
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_ROOMS, *_LAZY})
