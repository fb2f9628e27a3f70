"""A topology from a graph of machines, switches and links: any networkx graph, or its node-link form in JSON or YAML.

docs/concepts/topologies.md has the attributes; others are ignored. Machines are numbered rack by rack, in listed order.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Hashable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.errors import InputError
from ..files.yaml_files import validated
from .links import LinkGraph
from .topology import MAX_GPUS, NO_USER_NUMBERS, Topology, UserNumbers, builder, check_gpu_count

if TYPE_CHECKING:
    import networkx
import math

from .links import GBPS
from .topology import Tier

OWN = "capacity_gbps"  # of an edge in a graph that the user wrote


@builder("graph")
def topology_from_graph(
    graph: networkx.Graph, name: str = "custom", *, source: str | None = None, capacities: str = OWN, about: str = ""
) -> Topology:
    """The topology of a graph with the attributes of this module's schema; its links are `Topology.links`.

    Args:
        graph: any networkx graph, directed or not, with parallel edges or not.
        name: of the topology. source: its name in errors. about: the assumptions of a preset.
        capacities: the name of the user's link capacities; "": the whole graph is a preset's. With another name than
            `capacity_gbps` the rest of it is a preset's.

    Raises:
        InputError: errors of `LinkGraph.from_graph`, gpus that are no whole number of at least 1, or too many.
    """
    what = source or f"topology {name!r}"
    gpus = {node: data["gpus"] for node, data in graph.nodes(data=True) if data.get("gpus") is not None}
    for node, count in gpus.items():
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or not 1 <= count <= MAX_GPUS:
            raise InputError(f"{what}: node {node!r}: gpus = {count!r}, expected a whole number of at least 1")
    check_gpu_count(sum(int(count) for count in gpus.values()), what)
    racks: dict[Hashable, list[Hashable]] = {}
    for node in gpus:
        racks.setdefault(_rack_of(graph, node, gpus), []).append(node)
    machines = [node for members in racks.values() for node in members]
    links = LinkGraph.from_graph(graph, machines, what)
    tiers = tiers_of_links(links, np.repeat(np.arange(len(racks)), [len(members) for members in racks.values()]))
    gpu_type = str(graph.graph.get("gpu_type", ""))
    topology = Topology.from_counts(
        name,
        slot_gpus=[int(gpus[node]) for node in machines],
        machine_slots=np.ones(len(machines), np.int64),
        rack_machines=[len(members) for members in racks.values()],
        cluster_gpu_type=[gpu_type],
        tiers=tiers,
        links=links,
        written=UserNumbers(tiers, bool(gpu_type) and capacities == OWN, capacities) if capacities else NO_USER_NUMBERS,
    )
    return dataclasses.replace(topology, about=about)


def _rack_of(graph: networkx.Graph, machine: Hashable, gpus: Mapping[Hashable, int]) -> Hashable:
    given = graph.nodes[machine].get("rack")
    if given is not None:
        return "rack", str(given)
    switches = (neighbour for neighbour in graph[machine] if neighbour not in gpus)
    return "switch", next(switches, machine)


@builder("node-link")
def topology_from_node_link(mapping: Mapping[str, Any], source: str, name: str = "custom") -> Topology:
    """The topology of a mapping in this module's schema; `source` is its name in errors, `name` the topology's default.

    Raises:
        InputError: source, place, value and what was expected; also an edge of an unlisted node, a node listed twice.
    """
    import networkx

    spec = validated(_models().NodeLink, mapping, source)
    if spec.edges is not None and spec.links is not None:
        raise InputError(f"{source} has both edges and links, expected one of them")
    edges = spec.edges if spec.edges is not None else spec.links
    if edges is None:
        raise InputError(f"{source}: edges is missing")
    kind = networkx.MultiDiGraph if spec.directed else networkx.MultiGraph
    graph: networkx.MultiGraph = kind(gpu_type=spec.graph.gpu_type)
    for position, node in enumerate(spec.nodes):
        if node.id in graph:
            raise InputError(f"{source}: nodes[{position}].id = {node.id!r} is given twice")
        graph.add_node(node.id, **node.model_dump(exclude={"id"}, exclude_none=True))
    key = "edges" if spec.edges is not None else "links"
    pairs = set()
    for position, edge in enumerate(edges):
        place = f"{source}: {key}[{position}]"
        for end in (edge.source, edge.target):
            if end not in graph:
                raise InputError(f"{place}: there is no node {end!r}")
        pair = (edge.source, edge.target) if spec.directed else frozenset((edge.source, edge.target))
        if pair in pairs and not spec.multigraph:
            raise InputError(
                f"{place}: a second edge {edge.source!r} - {edge.target!r}, expected one, or multigraph: true"
            )
        pairs.add(pair)
        graph.add_edge(edge.source, edge.target, capacity_gbps=edge.capacity_gbps)
    return topology_from_graph(graph, spec.graph.name or name, source=source)


@functools.cache
def _models() -> SimpleNamespace:
    from typing import Annotated

    from pydantic import BaseModel, ConfigDict, Field

    Id = Annotated[str, Field(strict=True, min_length=1, max_length=200)] | Annotated[int, Field(strict=True)]
    Text = Annotated[str, Field(strict=True, max_length=100)]

    class Loose(BaseModel):
        model_config = ConfigDict(extra="ignore", frozen=True)

    class About(Loose):
        name: Text | None = None
        gpu_type: Text = ""

    class Node(Loose):
        id: Id
        gpus: Any = None  # checked by `topology_from_graph`, as those of a graph that was built in Python
        rack: Text | int | None = None
        forwards: Annotated[bool, Field(strict=True)] | None = None
        nic_of: Id | None = None

    class Edge(Loose):
        source: Id
        target: Id
        capacity_gbps: Any = None  # checked by `LinkGraph.from_graph`

    class NodeLink(BaseModel):
        model_config = ConfigDict(extra="forbid", frozen=True)

        directed: Annotated[bool, Field(strict=True)] = False
        multigraph: Annotated[bool, Field(strict=True)] = False
        graph: About = About()
        nodes: Annotated[list[Node], Field(min_length=1)]
        edges: list[Edge] | None = None
        links: list[Edge] | None = None

    return SimpleNamespace(NodeLink=NodeLink, Node=Node, Edge=Edge)


SWITCH = -1


def tiers_of_links(links: LinkGraph, machine_rack: np.ndarray) -> tuple[Tier, ...]:
    """Slot, machine, rack and network as far as links tell; latencies are unknown. `machine_rack`: int64 (M,).

    A rack has the slowest link inside it that starts or ends at a machine; the network has the slowest of all others,
    or, without others, of these. The oversubscription of the network is the largest ratio, over switches, of what
    machines can send in to what goes on to other switches.
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
