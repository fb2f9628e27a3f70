"""Who goes first on full links, under any scheduler: `themis+crux`, `dally+crux`, `themis+cassini+mltcp`.

Crux and MLTCP place nobody and shift nobody: they are options of network contention (`rates=`), which hold while such a
policy plays; crux.py, least_paths.py and link_network.py of simulator/contention say what is from their papers and what
is ours.
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
    """Options of the network: strict priorities, in so many levels, >= 1; `paths`: and its path selection.

    Without that jobs have the paths that the network gives, so that those who share links are the same as without Crux.
    """
    return {"rates": "crux", "levels": levels} | ({"routes": "least"} if paths else {})


def mltcp(base: float = BASE, slope: float = SLOPE) -> dict[str, Any]:
    """Options of the network: weights of base + slope x the part of the iteration's bytes that is sent."""
    return {"rates": "mltcp", "base": base, "slope": slope}


TRANSPORTS: Mapping[str, Callable[..., dict[str, Any]]] = {"crux": crux, "mltcp": mltcp}


def with_transport(make: Callable[..., Policy], transport: str, taken: Callable[..., Any]) -> Callable[..., Policy]:
    """What makes a scheduler whose jobs share full links so, from its parameters and those of the transport.

    Args:
        make: makes the scheduler.
        transport: crux or mltcp.
        taken: whose parameters the scheduler has.
    """
    options = TRANSPORTS[transport]
    own = inspect.signature(options).parameters

    @takes(options, taken)
    def made(**params: Any) -> Policy:
        policy = make(**{key: value for key, value in params.items() if key not in own})
        policy.on_links = options(**{key: value for key, value in params.items() if key in own})
        policy.name = f"{policy.name}+{transport}"
        return policy

    return made
