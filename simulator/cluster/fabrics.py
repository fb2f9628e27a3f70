"""Topologies with links, by name: the testbed of paper cassini, fat trees, leaves and spines. Presets of `presets.py`.

Every cable is full duplex, two links of `LinkGraph`, of 50 Gbps by default. Racks are the leaf (edge) switches.
Machines may have several network cards (NICs), a cable each; GPU i is on NIC i mod N. All NICs go to one leaf, or with
rails NIC k to the k-th leaf of as many (NVIDIA's rail-optimised design), and the machines of these leaves are a rack.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..base.errors import InputError
from .graph_files import topology_from_graph
from .links import MOST_GBPS, check_routes
from .topology import Topology, check_gpu_count, preset

if TYPE_CHECKING:
    import networkx

CABLE_GBPS = 50.0  # of every cable whose capacity is not given: those of paper cassini's testbed


@preset("cassini-testbed")
def cassini_testbed(link_gbps: float | None = None) -> Topology:
    """24 servers of one A100, 13 switches, 48 cables of 50 Gbps, 2:1: paper cassini's testbed (Figure 10, Sec. 5.1).

    The wiring is only in a picture. Assumed: 6 leaves of 4 servers with 2 uplinks each, 6 aggregation switches with 2
    cables down and 2 parallel ones up, 1 core; leaves and aggregation switches are wired two by two.
    """
    graph, gbps = new_graph("A100"), _capacity("cassini-testbed", "link_gbps", link_gbps)
    for leaf in range(6):
        _servers(graph, [f"leaf{leaf}"], 4, 1, gbps, first=4 * leaf)
        for aggregation in (leaf // 2 * 2, leaf // 2 * 2 + 1):
            graph.add_edge(f"leaf{leaf}", f"agg{aggregation}", capacity_gbps=gbps)
    for aggregation in range(6):
        for _ in range(2):
            graph.add_edge(f"agg{aggregation}", "core0", capacity_gbps=gbps)
    return _topology("cassini-testbed", graph, link_gbps=link_gbps)


@preset("cassini-two-gpu")
def cassini_two_gpu(link_gbps: float | None = None) -> Topology:
    """6 servers of two A100 on 3 leaves and a core, 9 cables of 50 Gbps, 2:1: paper cassini, Figure 16(a).

    Sec. 5.6 gives only the servers. Assumed: the testbed cut down, leaves of 2 servers with 1 uplink each.
    """
    graph, gbps = new_graph("A100"), _capacity("cassini-two-gpu", "link_gbps", link_gbps)
    for leaf in range(3):
        _servers(graph, [f"leaf{leaf}"], 2, 2, gbps, first=2 * leaf)
        graph.add_edge(f"leaf{leaf}", "core0", capacity_gbps=gbps)
    return _topology("cassini-two-gpu", graph, link_gbps=link_gbps)


@preset("fat-tree")
def fat_tree(
    k: int = 4, gpus_per_machine: int = 1, link_gbps: float | None = None, nics: int = 1, rails: bool = False
) -> Topology:
    """A fat tree of k-port switches: k pods, k^3 / 4 machines, all cables equal, no oversubscription.

    Al-Fares, Loukissas, Vahdat (SIGCOMM'08), Sec. 3: each pod has k / 2 edge switches of k / 2 machines and k / 2
    aggregation switches; aggregation switch i of each pod is linked to cores i k / 2 to (i + 1) k / 2 - 1.

    Args:
        k: ports of a switch, even, >= 2. gpus_per_machine: at least 1. link_gbps: of each cable, > 0; None: 50.
        nics: of each machine, a divisor of k / 2, at most its GPUs; there are k^3 / 4 / nics machines then.
        rails: NIC k of a machine on the k-th edge switch of its group of `nics` edge switches.

    Raises:
        InputError: an argument out of range, or too large a network.
    """
    check_counts("fat-tree", k=k, gpus_per_machine=gpus_per_machine, nics=nics)
    if k % 2:
        raise InputError(f"topology fat-tree: k = {k!r}, expected an even number")
    _check_nics("fat-tree", nics, gpus_per_machine, "k / 2", k // 2)
    cards = k**3 // 4
    check_gpu_count(cards // nics * gpus_per_machine, "topology fat-tree")
    check_routes(cards + 5 * k**2 // 4, cards, "topology fat-tree")
    graph, half, gbps, first = new_graph(), k // 2, _capacity("fat-tree", "link_gbps", link_gbps), 0
    for pod in range(k):
        edges = [f"edge{switch}" for switch in range(pod * half, (pod + 1) * half)]
        for group in _groups(edges, nics, rails):
            leaves = list(dict.fromkeys(group))
            first = _servers(graph, group, half * len(leaves) // nics, gpus_per_machine, gbps, first)
            for leaf in leaves:
                for aggregation in range(half):
                    graph.add_edge(leaf, f"agg{pod * half + aggregation}", capacity_gbps=gbps)
        for aggregation in range(half):
            for core in range(half):
                ends = f"agg{pod * half + aggregation}", f"core{aggregation * half + core}"
                graph.add_edge(*ends, capacity_gbps=gbps)
    return _topology("fat-tree", graph, link_gbps=link_gbps)


@preset("leaf-spine")
def leaf_spine(
    leaves: int = 8,
    spines: int = 2,
    machines: int = 4,
    gpus_per_machine: int = 1,
    link_gbps: float | None = None,
    uplink_gbps: float | None = None,
    nics: int = 1,
    rails: bool = False,
) -> Topology:
    """Leaf switches of `machines` machines each, one uplink from every leaf to every spine; 2:1 by default.

    Args:
        leaves, spines, machines, gpus_per_machine: at least 1 of each; machines are those of one leaf.
        link_gbps, uplink_gbps: of a cable to a machine, and to a spine; None: 50.
        nics: of each machine, at most its GPUs; a leaf has `machines` x `nics` cables to machines.
        rails: NIC k of a machine on the k-th leaf of its group of `nics` leaves, `machines` x `nics` machines.

    Raises:
        InputError: an argument out of range, with rails NICs that do not divide the leaves, or too large a network.
    """
    counts = {"leaves": leaves, "spines": spines, "machines": machines, "gpus_per_machine": gpus_per_machine}
    check_counts("leaf-spine", **counts, nics=nics)
    _check_nics("leaf-spine", nics, gpus_per_machine, "leaves", leaves if rails else nics)
    check_gpu_count(leaves * machines * gpus_per_machine, "topology leaf-spine")
    check_routes(leaves * machines * nics + leaves + spines, leaves * machines * nics, "topology leaf-spine")
    graph, first = new_graph(), 0
    gbps, up_gbps = (_capacity("leaf-spine", *one) for one in (("link_gbps", link_gbps), ("uplink_gbps", uplink_gbps)))
    for group in _groups([f"leaf{leaf}" for leaf in range(leaves)], nics, rails):
        own = list(dict.fromkeys(group))
        first = _servers(graph, group, machines * len(own), gpus_per_machine, gbps, first)
        for leaf in own:
            for spine in range(spines):
                graph.add_edge(leaf, f"spine{spine}", capacity_gbps=up_gbps)
    return _topology("leaf-spine", graph, link_gbps=link_gbps, uplink_gbps=uplink_gbps)


def new_graph(gpu_type: str = "") -> networkx.MultiGraph:
    """A graph without nodes, that may have parallel cables."""
    import networkx

    return networkx.MultiGraph(gpu_type=gpu_type)


def _groups(leaves: Sequence[str], nics: int, rails: bool) -> list[list[str]]:
    """The leaf of each NIC of a machine, for every group of machines that are wired alike."""
    if rails:
        return [list(leaves[first : first + nics]) for first in range(0, len(leaves), nics)]
    return [[leaf] * nics for leaf in leaves]


def _servers(
    graph: networkx.MultiGraph, group: Sequence[str], count: int, gpus: int, link_gbps: float, first: int
) -> int:
    for server in range(first, first + count):
        add_server(graph, f"server{server}", gpus, group, link_gbps)
    return first + count


def add_server(graph: networkx.MultiGraph, name: str, gpus: int, leaves: Sequence[str], link_gbps: float) -> None:
    """Add a machine with a NIC, and a cable of its own, at each of `leaves`; its rack is the first of them."""
    graph.add_node(name, gpus=gpus, rack=leaves[0])
    graph.add_edge(name, leaves[0], capacity_gbps=link_gbps)
    for card, leaf in enumerate(leaves[1:], start=1):
        graph.add_node(f"{name}.nic{card}", nic_of=name)
        graph.add_edge(f"{name}.nic{card}", leaf, capacity_gbps=link_gbps)


def _topology(name: str, graph: networkx.MultiGraph, **given: float | None) -> Topology:
    words = [key for key, value in given.items() if value is not None]
    return topology_from_graph(graph, name, source=f"topology {name}", capacities=" and ".join(words))


def _capacity(name: str, key: str, value: float | None) -> float:
    if value is None:
        return CABLE_GBPS
    check_capacity(name, key, value)
    return value


def check_counts(name: str, **counts: object) -> None:
    """Raise an InputError if an argument of preset `name` is no whole number of at least 1."""
    for key, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
            raise InputError(f"topology {name}: {key} = {count!r}, expected a whole number of at least 1")


def _check_nics(name: str, nics: int, gpus: int, what: str, divided: int) -> None:
    if nics > gpus or divided % nics:
        expected = f"at most gpus_per_machine = {gpus}" if nics > gpus else f"a divisor of {what} = {divided}"
        raise InputError(f"topology {name}: nics = {nics}, expected {expected}")


def check_capacity(name: str, key: str, value: float) -> None:
    """Raise an InputError if the argument `key` of preset `name` is no capacity in Gbps."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value <= MOST_GBPS:
        raise InputError(f"topology {name}: {key} = {value!r}, expected more than 0 and at most {MOST_GBPS:g}")
