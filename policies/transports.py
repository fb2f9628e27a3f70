"""Who goes first on full links, under any scheduler: `themis+crux`, `dally+crux`, `themis+cassini+mltcp`.

Crux and MLTCP place nobody and shift nobody: they are options of network contention (`rates=`), which hold while such a
policy plays; crux.py and link_network.py of simulator/contention say what is from their papers and what is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..simulator.base.names import bind
from .base import Policy

LEVELS = 8  # Crux: "compressed to 8 levels"
BASE, SLOPE = 0.25, 1.75  # of MLTCP


def crux(levels: int = LEVELS) -> dict[str, Any]:
    """Options of the network: strict priorities, in so many levels, >= 1."""
    return {"rates": "crux", "levels": levels}


def mltcp(base: float = BASE, slope: float = SLOPE) -> dict[str, Any]:
    """Options of the network: weights of base + slope x the part of the iteration's bytes that is sent."""
    return {"rates": "mltcp", "base": base, "slope": slope}


TRANSPORTS: Mapping[str, tuple[Callable[..., dict[str, Any]], tuple[str, ...]]] = {
    "crux": (crux, ("levels",)),
    "mltcp": (mltcp, ("base", "slope")),
}


def with_transport(make: Callable[..., Policy], scheduler: str, transport: str, params: Mapping[str, Any]) -> Policy:
    """A scheduler whose jobs share full links so.

    Args:
        make: gives a scheduler by its name and parameters.
        transport: crux or mltcp.
        params: of the transport, and the others of the scheduler.

    Raises:
        InputError: an unknown scheduler or parameter.
    """
    options, own = TRANSPORTS[transport]
    name = f"{scheduler}+{transport}"
    policy = make(scheduler, **{key: value for key, value in params.items() if key not in own})
    given = {key: value for key, value in params.items() if key in own}
    policy.on_links = bind(options, given, f"policy {name}")
    policy.name = name + (":" + ",".join(f"{key}={value}" for key, value in params.items()) if params else "")
    policy.given = frozenset(params)
    return policy
