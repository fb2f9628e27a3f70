"""How placement slows a job down: network models by name (`base.py` has the interface)."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..errors import InputError
from ..names import bind, choose, parse_name
from .allreduce import AllReduce, allreduce
from .base import Network
from .none import NoNetwork
from .penalty import Penalty, penalty


def none() -> NoNetwork:
    """Every placement runs at full speed."""
    return NoNetwork()


NETWORKS: dict[str, Callable[..., Network]] = {"none": none, "penalty": penalty, "allreduce": allreduce}

__all__ = [
    "NETWORKS",
    "AllReduce",
    "Network",
    "NoNetwork",
    "Penalty",
    "allreduce",
    "list_networks",
    "load_network",
    "penalty",
]


def load_network(source: str | Network) -> Network:
    """A network from its text, e.g. "penalty:table=gavel,default=1/1.2/1.5", or an object that is one.

    Raises:
        InputError: an unknown name, an unknown or bad parameter, or an object of another kind.
    """
    if isinstance(source, str):
        name, params = parse_name(source, "network")
        return bind(NETWORKS[choose(name, NETWORKS, "network")], params, f"network {name}")
    if not isinstance(source, Network):
        raise InputError(f"network {source!r}: expected a name, or an object with name, describe and tier_factors")
    return source


def list_networks() -> list[dict[str, Any]]:
    """One dict per network: name, summary (one line) and parameters (name -> default)."""
    return [
        {
            "name": name,
            "summary": (inspect.getdoc(factory) or "").splitlines()[0],
            "parameters": {key: value.default for key, value in inspect.signature(factory).parameters.items()},
        }
        for name, factory in NETWORKS.items()
    ]
