"""Directed links between machines and switches as flat arrays, in bytes per second, with a networkx view."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.errors import InputError

if TYPE_CHECKING:
    import networkx

GBPS = 1e9 / 8  # bytes per second in one gigabit per second
MOST_GBPS = 1e6
MOST_ROUTES = 2**25  # nodes x machines: the routing table of a fat tree of 4,000 machines still fits


@dataclass(frozen=True, eq=False, repr=False)
class LinkGraph:
    """Nodes and directed links of a network, read-only arrays. Build one with `from_graph`.

    Shapes: N nodes, M machines of C network cards (NICs) each, L links. NIC c of machine m is NIC m C + c.

    Attributes:
        node_names: N names, those of the graph that it was built from.
        nic_node: int64 (M, C), the node of each NIC; that of the first one stands for the machine.
        forwards: bool (N,), whether foreign traffic may pass: through switches, through machines if given.
        source, target: int64 (L,), the nodes that each link leads from and to; links are in ascending order of source.
        capacity: float64 (L,), bytes per second, > 0.
    """

    node_names: tuple[str, ...]
    nic_node: np.ndarray
    forwards: np.ndarray
    source: np.ndarray
    target: np.ndarray
    capacity: np.ndarray

    @classmethod
    def from_graph(cls, graph: networkx.Graph, machines: list[Hashable], what: str = "link graph") -> LinkGraph:
        """The links of any networkx graph, directed or not, with parallel edges or not.

        Args:
            graph: every edge has `capacity_gbps` (each way, where the graph is undirected); a node may have `forwards`.
                A node with `nic_of` is another NIC of that machine, whose own node is its first; ways join NICs.
            machines: the nodes that are machines, in the order in which the topology numbers them.

        Raises:
            InputError: no machine, a bad or missing capacity, a loop, an unreachable machine, a switch without links, a
                bad `nic_of`, machines of unequal numbers of NICs, or too large a graph.
        """
        if not machines:
            raise InputError(f"{what} has no machines: expected a node with gpus of at least 1")
        names = {node: position for position, node in enumerate(graph.nodes)}
        nics = _nics(graph, machines, what)
        inside = {node for own in nics for node in own}
        check_routes(len(names), len(inside), what)
        rows = []
        for start, end, data in graph.edges(data=True):
            capacity = checked_capacity(data.get("capacity_gbps"), f"{what}: link {start!r} - {end!r}") * GBPS
            if start == end:
                raise InputError(f"{what}: link {start!r} - {end!r} leads from a node to itself")
            rows.append((names[start], names[end], capacity))
            if not graph.is_directed():
                rows.append((names[end], names[start], capacity))
        rows.sort(key=lambda row: row[0])  # stable: links of a node stay in the order in which they were given
        forwards = [bool(data.get("forwards", node not in inside)) for node, data in graph.nodes(data=True)]
        links = cls(
            node_names=tuple(str(node) for node in graph.nodes),
            nic_node=_frozen([[names[node] for node in own] for own in nics], np.int64),
            forwards=_frozen(forwards, np.bool_),
            source=_frozen([row[0] for row in rows], np.int64),
            target=_frozen([row[1] for row in rows], np.int64),
            capacity=_frozen([row[2] for row in rows], np.float64),
        )
        links._check_connected(what)
        return links

    @property
    def num_nodes(self) -> int:
        """Nodes, N."""
        return len(self.node_names)

    @property
    def num_machines(self) -> int:
        """Machines, M."""
        return len(self.nic_node)

    @property
    def nics(self) -> int:
        """NICs of each machine, C."""
        return self.nic_node.shape[1]

    @property
    def machine_node(self) -> np.ndarray:
        """The node of each machine, int64 (M,): that of its first NIC."""
        return self.nic_node[:, 0]

    @property
    def num_links(self) -> int:
        """Directed links, L: two per full-duplex cable."""
        return len(self.source)

    @cached_property
    def link_names(self) -> tuple[str, ...]:
        """L names, "leaf0->agg1"; the second and later ones of parallel links have "#2", "#3" behind."""
        seen: dict[str, int] = {}
        names = []
        for start, end in zip(self.source.tolist(), self.target.tolist(), strict=True):
            name = f"{self.node_names[start]}->{self.node_names[end]}"
            seen[name] = seen.get(name, 0) + 1
            names.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
        return tuple(names)

    @cached_property
    def hops(self) -> np.ndarray:
        """Links on the shortest way, through forwarding nodes, from each node to each NIC, int16 (N, M C); -1: none."""
        return _frozen(self.hops_over(np.ones(self.num_links, np.bool_)), np.int16)

    def hops_over(self, up: np.ndarray) -> np.ndarray:
        """`hops` where only the links in `up`, bool (L,), are there."""
        from scipy.sparse import csr_matrix

        shape = (self.num_nodes, self.num_nodes)
        ones = np.ones(np.count_nonzero(up), np.float32)
        step = csr_matrix((ones, (self.source[up], self.target[up])), shape=shape)
        hops = np.full((self.num_nodes, self.nic_node.size), -1, np.int16)
        hops[self.nic_node.reshape(-1), np.arange(self.nic_node.size)] = 0
        reached = (hops == 0).astype(np.float32)
        for distance in range(1, self.num_nodes):
            new = (step @ reached > 0) & (hops < 0)
            if not new.any():
                break
            hops[new] = distance
            reached = (new & self.forwards[:, None]).astype(np.float32)
        return hops

    @cached_property
    def next_link(self) -> np.ndarray:
        """The link from each node towards each NIC, int32 (N, M C); -1 at the NIC itself. See `forwarding_table`."""
        return _frozen(forwarding_table(self), np.int32)

    @cached_property
    def whole_capacity(self) -> np.ndarray:
        """`capacity` as records have it, float64 (L,)."""
        return _frozen(whole_capacity(self.capacity), np.float64)

    @cached_property
    def cable(self) -> np.ndarray:
        """The first link of the cable of each link, int64 (L,): the i-th of parallel links and the i-th back."""
        seen: dict[tuple[int, int, int], int] = {}
        count: dict[tuple[int, int], int] = {}
        first = []
        for link, ends in enumerate(zip(self.source.tolist(), self.target.tolist(), strict=True)):
            count[ends] = count.get(ends, 0) + 1
            seen[(*ends, count[ends])] = link
            first.append(seen.get((*ends[::-1], count[ends]), link))
        return _frozen(first, np.int64)

    def graph(self) -> networkx.MultiDiGraph:
        """The network as a networkx.MultiDiGraph, for checking and drawing (not for speed).

        Nodes are names with `kind` ("machine", "nic" or "switch"), `machine` (its index, or -1) and `forwards`; edges
        have `link` (its index) and `capacity_gbps`.
        """
        import networkx

        graph: networkx.MultiDiGraph = networkx.MultiDiGraph()
        nic_at = {node: nic for nic, node in enumerate(self.nic_node.reshape(-1).tolist())}
        for node, name in enumerate(self.node_names):
            machine, card = divmod(nic_at[node], self.nics) if node in nic_at else (-1, 0)
            kind = "switch" if machine < 0 else "nic" if card else "machine"
            graph.add_node(name, kind=kind, machine=machine, forwards=bool(self.forwards[node]))
        ends = zip(self.source.tolist(), self.target.tolist(), self.capacity.tolist(), strict=True)
        for link, (start, end, capacity) in enumerate(ends):
            names = self.node_names[start], self.node_names[end]
            graph.add_edge(*names, link=link, capacity_gbps=capacity / GBPS)
        return graph

    def _check_connected(self, what: str) -> None:
        touched = np.zeros(self.num_nodes, np.bool_)
        touched[self.source] = touched[self.target] = True
        if self.num_nodes > 1 and not touched.all():
            raise InputError(f"{what}: node {self.node_names[int(np.argmin(touched))]!r} has no links")
        nodes = self.nic_node.reshape(-1)
        missing = np.argwhere(self.hops[nodes] < 0)
        if len(missing):
            start, end = (self.node_names[nodes[nic]] for nic in missing[0].tolist())
            raise InputError(f"{what}: machine {start!r} cannot reach machine {end!r}, expected a connected network")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LinkGraph):
            return NotImplemented
        arrays = ("nic_node", "forwards", "source", "target", "capacity")
        return self.node_names == other.node_names and all(
            np.array_equal(getattr(self, array), getattr(other, array)) for array in arrays
        )

    def __hash__(self) -> int:
        return hash((self.node_names, self.num_machines, self.num_links))

    def __repr__(self) -> str:
        switches = self.num_nodes - self.nic_node.size
        return f"<LinkGraph: {self.num_machines} machines, {switches} switches, {self.num_links} links>"


def check_routes(nodes: int, nics: int, what: str) -> None:
    """Raise an InputError if the routing table of such a network would be too large; `nics`: of all machines."""
    if nodes * nics > MOST_ROUTES:
        counts = f"{nodes} nodes and {nics} NICs of machines"
        raise InputError(f"{what} has {counts}, expected at most {MOST_ROUTES} routes (nodes x NICs)")


def _nics(graph: networkx.Graph, machines: list[Hashable], what: str) -> list[list[Hashable]]:
    nics: dict[Hashable, list[Hashable]] = {machine: [machine] for machine in machines}
    for node, data in graph.nodes(data=True):
        if (machine := data.get("nic_of")) is None:
            continue
        if node in nics or machine not in nics:
            raise InputError(f"{what}: node {node!r}: nic_of = {machine!r}, expected another node that has gpus")
        nics[machine].append(node)
    first = nics[machines[0]]
    for machine, own in nics.items():
        if len(own) != len(first):
            raise InputError(
                f"{what}: machine {machine!r} has {len(own)} NICs, and {first[0]!r} {len(first)}; expected as many"
            )
    return list(nics.values())


def checked_capacity(value: Any, what: str) -> float:
    """A capacity in gigabits per second; InputError where it is none, `what` names the link."""
    number = not isinstance(value, bool) and isinstance(value, int | float | np.integer | np.floating)
    if value is None:
        raise InputError(f"{what}: capacity_gbps is missing")
    if not number or not math.isfinite(value) or not 0 < value <= MOST_GBPS:
        raise InputError(f"{what}: capacity_gbps = {value!r}, expected more than 0 and at most {MOST_GBPS:g}")
    return float(value)


def _frozen(values: Any, kind: Any) -> np.ndarray:
    array = np.asarray(values, kind)
    array.setflags(write=False)
    return array


def whole_capacity(capacity: np.ndarray) -> np.ndarray:
    """Whole bytes per second, at least 1, as records have them; float64."""
    return np.maximum(1.0, np.floor(capacity))


def forwarding_table(links: LinkGraph) -> np.ndarray:
    """The link on which each node sends what goes to each NIC of a machine: int32 (N, M C), -1 at the NIC itself.

    By destination, as the flow rules of the CASSINI testbed (paper cassini, Sec. 5.1). Only shortest ways; of several
    links a node takes the one with the routes of the fewest NICs so far, NICs in ascending order, the first on a tie:
    OpenSM's Min Hop rule, where the paper is silent.
    """
    table = np.full((links.num_nodes, links.nic_node.size), -1, np.int32)
    nodes, first = np.unique(links.source, return_index=True)
    carried = np.zeros(links.num_links, np.int64)
    position = np.arange(links.num_links, dtype=np.int64)
    never = np.iinfo(np.int64).max
    for nic, home in enumerate(links.nic_node.reshape(-1).tolist()):
        hops = links.hops[:, nic].astype(np.int64)
        after = hops[links.target]
        passable = links.forwards[links.target] | (links.target == home)
        usable = passable & (after >= 0) & (after + 1 == hops[links.source])
        key = np.where(usable, carried * links.num_links + position, never)
        best = np.minimum.reduceat(key, first)
        known = best < never
        table[nodes[known], nic] = best[known] % links.num_links
        carried[_used(links, table[:, nic], home)] += 1
    return table


def detours(links: LinkGraph, up: np.ndarray) -> np.ndarray:
    """The forwarding table with only the links in `up`, bool (L,): int32 (N, M C), -1: no way is left.

    A node keeps its link of the whole network while that is on a shortest remaining way; else it takes the link with
    the fewest ways so far, as in `forwarding_table`. The table depends only on `up`, and no intact way changes.
    """
    hops = links.hops_over(up).astype(np.int64)
    home = links.nic_node.reshape(-1)
    table = np.array(links.next_link)
    nics = np.arange(home.size)
    kept = np.maximum(table, 0)
    stays = (table >= 0) & up[kept] & (hops[links.target[kept], nics] + 1 == hops) & (hops > 0)
    table[~stays] = -1
    carried = np.bincount(table[stays], minlength=links.num_links)
    nodes, first = np.unique(links.source, return_index=True)
    position, never = np.arange(links.num_links), np.iinfo(np.int64).max
    for nic in np.flatnonzero((~stays & (hops > 0)).any(axis=0)).tolist():
        passable = up & (links.forwards[links.target] | (links.target == home[nic]))
        left = hops[links.source, nic]
        usable = passable & (left > 0) & (hops[links.target, nic] + 1 == left)
        key = np.where(usable, carried * links.num_links + position, never)
        best = np.minimum.reduceat(key, first)
        open_ = (best < never) & (table[nodes, nic] < 0)
        table[nodes[open_], nic] = best[open_] % links.num_links
        np.add.at(carried, table[nodes[open_], nic], 1)
    return table


def _used(links: LinkGraph, next_link: np.ndarray, home: int) -> np.ndarray:
    """The links on the ways of all NICs to the one at node `home`, bool (L,)."""
    used = np.zeros(links.num_links, np.bool_)
    at = links.nic_node[links.nic_node != home]
    while len(at):
        taken = np.unique(next_link[at])
        used[taken] = True
        at = np.unique(links.target[taken])
        at = at[at != home]
    return used
