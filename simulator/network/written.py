"""The user's numbers of a topology (`Topology.written`) under a network: they act, or one sentence says they do not.

A bandwidth, a latency and an oversubscription are those of the traffic between the members that the tier joins: GPUs of
a slot, slots of a machine, machines of a rack, racks. An oversubscription divides the bandwidth of its own tier alone,
as if all members sent at once. Presets write nothing, so published runs rest on the network's own numbers.
"""

from __future__ import annotations

import math
from typing import Protocol, runtime_checkable

from ..base.said_once import say_once
from ..cluster.topology import NO_USER_NUMBERS, Tier, Topology, UserNumbers
from .network_model import Network

NUMBERS = {"bandwidth_gbps": "bandwidth_gbps", "latency_us": "latency_s", "oversubscription": "oversubscription"}
Used = frozenset[tuple[str, str]]  # tier and attribute of `Tier`
EVERYTHING: Used = frozenset((t, n) for t in ("slot", "machine", "rack", "network") for n in NUMBERS.values())


@runtime_checkable
class TieredNetwork(Network, Protocol):
    """A network that goes by numbers of the tiers."""

    def on(self, tiers: tuple[Tier, ...]) -> tuple[Network, Used]:
        """The network with these numbers, nan where it keeps its own original ones, and the ones that it uses.

        Raises:
            InputError: a number that it cannot compute with.
        """


def on_topology(network: Network, topology: Topology) -> Network:
    """The network with the user's topology numbers; warns once of unused ones; InputError: a bad number."""
    written = topology.written
    if written == NO_USER_NUMBERS:
        return network
    used: Used = frozenset()
    if isinstance(network, TieredNetwork):
        network, used = network.on(written.tiers)
    names = _unused(written, used, uses_links=hasattr(network, "dedicated"))
    if names:
        say_once(f"topology {topology.name!r}: network {_called(network)} does not use {', '.join(names)}")
    return network


def _called(network: Network) -> str:
    if not isinstance(network, TieredNetwork):
        return network.name
    return ",".join(word for word in network.describe().split(",") if not word.endswith("=none"))


def _unused(written: UserNumbers, used: Used, uses_links: bool) -> list[str]:
    names = ["gpu_type"] if written.gpu_type else []
    if written.capacities and not used:
        return names if uses_links else [*names, written.capacities]
    for name, attribute in NUMBERS.items():
        tiers = [
            tier.name
            for tier in written.tiers
            if not math.isnan(getattr(tier, attribute)) and (tier.name, attribute) not in used
        ]
        if tiers:
            names.append(f"{name} of {' and '.join(tiers)}")
    return names
