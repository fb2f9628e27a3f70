"""clustergym: scheduling deep-learning jobs on GPU clusters, as a fast simulator and Gymnasium environments.

Importing this package registers the environments with Gymnasium and is cheap: a room is imported at its first use,
e.g. `clustergym.policies`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .envs.registration import register as _register
from .simulator.engine.protocols import install_policies as _install_policies

if TYPE_CHECKING:  # what __getattr__ brings, for type checkers and editors
    from . import agents as agents
    from . import envs as envs
    from . import experiments as experiments
    from . import policies as policies
    from . import simulator as simulator
    from .envs.masks import action_masks as action_masks
    from .envs.registration import make_vec as make_vec
    from .simulator.cluster.topology import Topology as Topology
    from .simulator.engine.simulator import Simulator as Simulator
    from .simulator.workloads import Workload as Workload
    from .simulator.workloads import open_workload as open_workload

__version__ = "0.1.0"

_ROOMS = ("simulator", "policies", "envs", "agents", "experiments")
# Public name -> the module that defines it, relative to this package.
_LAZY = {
    "Simulator": ".simulator.engine.simulator",
    "Topology": ".simulator.cluster.topology",
    "Workload": ".simulator.workloads",
    "action_masks": ".envs.masks",
    "make_vec": ".envs.registration",
    "open_workload": ".simulator.workloads",
}


def _make_policy(name: str) -> Any:
    return importlib.import_module(".policies", __name__).make(name)


_register()
_install_policies(_make_policy)


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f".{name}", __name__)
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_ROOMS, *_LAZY})
