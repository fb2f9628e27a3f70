"""Priorities on full links under any scheduler: `themis+crux`, `dally+crux`, `themis+cassini+mltcp`.

Crux and MLTCP are options of network contention (`rates=`) while the policy plays. Sources and choices stand in
crux.py, least_paths.py and link_network.py of simulator/contention.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from .base import Policy
from .joined_parameters import takes

LEVELS = 8  # Crux: "compressed to 8 levels"
BASE, SLOPE = 0.25, 1.75  # of MLTCP


def crux(levels: int = LEVELS, paths: bool = False) -> dict[str, Any]:
    """Options of the network: strict priorities in `levels` >= 1 levels; `paths`: with Crux's path selection."""
    return {"rates": "crux", "levels": levels} | ({"routes": "least"} if paths else {})


def mltcp(base: float = BASE, slope: float = SLOPE) -> dict[str, Any]:
    """Options of the network: weights of base + slope x the sent part of the iteration's bytes."""
    return {"rates": "mltcp", "base": base, "slope": slope}


TRANSPORTS: Mapping[str, Callable[..., dict[str, Any]]] = {"crux": crux, "mltcp": mltcp}


def with_transport(make: Callable[..., Policy], transport: str, taken: Callable[..., Any]) -> Callable[..., Policy]:
    """A maker of a scheduler under a transport (crux or mltcp), with the parameters of both, as `taken` has them."""
    options = TRANSPORTS[transport]
    own = inspect.signature(options).parameters

    @takes(options, taken)
    def made(**params: Any) -> Policy:
        policy = make(**{key: value for key, value in params.items() if key not in own})
        policy.on_links = options(**{key: value for key, value in params.items() if key in own})
        policy.name = f"{policy.name}+{transport}"
        return policy

    return made
