"""What the links between machines say of the tiers: numbers for networks that know tiers and no links."""

from __future__ import annotations

import math

import numpy as np

from .links import GBPS, LinkGraph
from .topology import Tier

SWITCH = -1


def tiers_of_links(links: LinkGraph, machine_rack: np.ndarray) -> tuple[Tier, ...]:
    """Slot, machine, rack and network, as far as links tell; latencies are unknown.

    A rack has the slowest link between a machine and a switch or another machine of its rack; the network the slowest
    of all others, or, where there are none, of these. The oversubscription of the network is what machines can send
    into a switch over what it can send on to other switches, at the switch where that is largest.

    Args:
        links: of the topology.
        machine_rack: int64 (M,), the rack of each machine.
    """
    rack = np.full(links.num_nodes, SWITCH)
    rack[links.nic_node] = machine_rack[:, None]
    start, end = rack[links.source], rack[links.target]
    gbps = links.capacity / GBPS
    is_inside = (start == SWITCH) != (end == SWITCH)
    is_inside |= (start != SWITCH) & (start == end)
    inside, beyond = gbps[is_inside], gbps[~is_inside]
    return (
        Tier("slot"),
        Tier("machine"),
        Tier("rack", bandwidth_gbps=_least(inside, beyond)),
        Tier("network", bandwidth_gbps=_least(beyond, inside), oversubscription=_oversubscription(links, start, end)),
    )


def _least(gbps: np.ndarray, otherwise: np.ndarray) -> float:
    chosen = gbps if len(gbps) else otherwise
    return float(chosen.min()) if len(chosen) else math.nan


def _oversubscription(links: LinkGraph, start: np.ndarray, end: np.ndarray) -> float:
    gbps = links.capacity / GBPS
    is_up = (start == SWITCH) & (end == SWITCH)
    enters = (start != SWITCH) & (end == SWITCH)
    into = np.bincount(links.target[enters], gbps[enters], links.num_nodes)
    onwards = np.bincount(links.source[is_up], gbps[is_up], links.num_nodes)
    both = (into > 0) & (onwards > 0)
    return float(max(1.0, (into[both] / onwards[both]).max())) if both.any() else math.nan
