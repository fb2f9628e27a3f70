"""Topologies with links, by name: the testbed of paper cassini, fat trees, leaves and spines. Presets of `presets.py`.

Every cable is full duplex, so it is two links of `LinkGraph`, and has 50 Gbps where its capacity is not given (none).
Racks are the leaf (edge) switches.
"""

from __future__ import annotations

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
    """24 servers of one A100, 13 switches, 48 cables of 50 Gbps, 2:1: the testbed of paper cassini (Figure 10).

    Sec. 5.1. The wiring is only in a picture. Assumed, and consistent with every count of the text: 6 leaves of 4
    servers with 2 uplinks each (2:1), 6 aggregation switches with 2 cables down and 2 up, 1 core: 24 + 12 + 12 cables.
    Leaves and aggregation switches are wired two by two, as in the pods of a fat tree; the two cables of an aggregation
    switch to the core are parallel.

    Raises:
        InputError: a capacity that is not more than 0.
    """
    graph, gbps = _graph("A100"), _capacity("cassini-testbed", "link_gbps", link_gbps)
    for leaf in range(6):
        _servers(graph, f"leaf{leaf}", 4, 1, gbps, first=4 * leaf)
        for aggregation in (leaf // 2 * 2, leaf // 2 * 2 + 1):
            graph.add_edge(f"leaf{leaf}", f"agg{aggregation}", capacity_gbps=gbps)
    for aggregation in range(6):
        for _ in range(2):
            graph.add_edge(f"agg{aggregation}", "core0", capacity_gbps=gbps)
    return _topology("cassini-testbed", graph, link_gbps=link_gbps)


@preset("cassini-two-gpu")
def cassini_two_gpu(link_gbps: float | None = None) -> Topology:
    """6 servers of two A100 on 3 leaves and a core, 9 cables of 50 Gbps, 2:1: paper cassini, Figure 16(a).

    Sec. 5.6. The text has the servers only. Assumed: the testbed cut down, leaves of 2 servers with 1 uplink each.

    Raises:
        InputError: a capacity that is not more than 0.
    """
    graph, gbps = _graph("A100"), _capacity("cassini-two-gpu", "link_gbps", link_gbps)
    for leaf in range(3):
        _servers(graph, f"leaf{leaf}", 2, 2, gbps, first=2 * leaf)
        graph.add_edge(f"leaf{leaf}", "core0", capacity_gbps=gbps)
    return _topology("cassini-two-gpu", graph, link_gbps=link_gbps)


@preset("fat-tree")
def fat_tree(k: int = 4, gpus_per_machine: int = 1, link_gbps: float | None = None) -> Topology:
    """A fat tree of k-port switches: k pods, k^3 / 4 machines, all cables equal, no oversubscription.

    Al-Fares, Loukissas, Vahdat (SIGCOMM'08), Sec. 3: each pod has k / 2 edge switches of k / 2 machines and k / 2
    aggregation switches; aggregation switch i of each pod is linked to cores i k / 2 to (i + 1) k / 2 - 1.

    Raises:
        InputError: k that is odd or below 2, another count below 1, a capacity that is not more than 0, or too large.
    """
    _check_counts("fat-tree", k=k, gpus_per_machine=gpus_per_machine)
    if k % 2:
        raise InputError(f"topology fat-tree: k = {k!r}, expected an even number")
    servers = k**3 // 4
    check_gpu_count(servers * gpus_per_machine, "topology fat-tree")
    check_routes(servers + 5 * k**2 // 4, servers, "topology fat-tree")
    graph, half, gbps = _graph(), k // 2, _capacity("fat-tree", "link_gbps", link_gbps)
    for pod in range(k):
        for edge in range(half):
            switch = pod * half + edge
            _servers(graph, f"edge{switch}", half, gpus_per_machine, gbps, first=switch * half)
            for aggregation in range(half):
                graph.add_edge(f"edge{switch}", f"agg{pod * half + aggregation}", capacity_gbps=gbps)
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
) -> Topology:
    """Leaf switches of `machines` machines each, one uplink from every leaf to every spine.

    The defaults are 2:1 oversubscribed (4 x 50 Gbps below a leaf, 2 x 50 above).

    Raises:
        InputError: a count below 1, a capacity that is not more than 0, or too large.
    """
    _check_counts("leaf-spine", leaves=leaves, spines=spines, machines=machines, gpus_per_machine=gpus_per_machine)
    check_gpu_count(leaves * machines * gpus_per_machine, "topology leaf-spine")
    check_routes(leaves * machines + leaves + spines, leaves * machines, "topology leaf-spine")
    graph = _graph()
    gbps, up_gbps = (_capacity("leaf-spine", *one) for one in (("link_gbps", link_gbps), ("uplink_gbps", uplink_gbps)))
    for leaf in range(leaves):
        _servers(graph, f"leaf{leaf}", machines, gpus_per_machine, gbps, first=leaf * machines)
        for spine in range(spines):
            graph.add_edge(f"leaf{leaf}", f"spine{spine}", capacity_gbps=up_gbps)
    return _topology("leaf-spine", graph, link_gbps=link_gbps, uplink_gbps=uplink_gbps)


def _graph(gpu_type: str = "") -> networkx.MultiGraph:
    import networkx

    return networkx.MultiGraph(gpu_type=gpu_type)


def _servers(graph: networkx.MultiGraph, switch: str, count: int, gpus: int, link_gbps: float, first: int) -> None:
    for server in range(first, first + count):
        graph.add_node(f"server{server}", gpus=gpus, rack=switch)
        graph.add_edge(f"server{server}", switch, capacity_gbps=link_gbps)


def _topology(name: str, graph: networkx.MultiGraph, **given: float | None) -> Topology:
    """`given`: the capacities that are arguments of the preset; None: the user left one out."""
    words = [key for key, value in given.items() if value is not None]
    return topology_from_graph(graph, name, source=f"topology {name}", capacities=" and ".join(words))


def _capacity(name: str, key: str, value: float | None) -> float:
    if value is None:
        return CABLE_GBPS
    _check_capacity(name, key, value)
    return value


def _check_counts(name: str, **counts: object) -> None:
    for key, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
            raise InputError(f"topology {name}: {key} = {count!r}, expected a whole number of at least 1")


def _check_capacity(name: str, key: str, value: float) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value <= MOST_GBPS:
        raise InputError(f"topology {name}: {key} = {value!r}, expected more than 0 and at most {MOST_GBPS:g}")
