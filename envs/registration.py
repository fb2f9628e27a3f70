"""The environments by id: registered with Gymnasium, listed for people."""

from __future__ import annotations

from dataclasses import dataclass

import gymnasium

from ..simulator.names import choose
from .delay import defaults as delay


@dataclass(frozen=True)
class Entry:
    """What the lists and the command line know of an environment."""

    summary: str
    paper: str
    entry_point: str
    defaults: dict[str, str]


ENVIRONMENTS: dict[str, Entry] = {
    "clustergym/Delay-v0": Entry(
        summary="place waiting jobs at a tier of the network, or hold them for a better one",
        paper="dally",
        entry_point="clustergym.envs.delay.env:DelayEnv",
        defaults={"topology": delay.TOPOLOGY, "workload": delay.WORKLOAD, "network": delay.NETWORK},
    ),
}


def register() -> None:
    """Register every environment with Gymnasium; those that are registered already stay as they are."""
    for env_id, entry in ENVIRONMENTS.items():
        if env_id not in gymnasium.registry:
            gymnasium.register(env_id, entry_point=entry.entry_point)


def resolve(name: str) -> str:
    """The full id of an environment given by id or by its short name (`Delay`); InputError if there is none."""
    short = {env_id.removeprefix("clustergym/").removesuffix("-v0"): env_id for env_id in ENVIRONMENTS}
    if name in ENVIRONMENTS:
        return name
    return short[choose(name, short, "environment")]
