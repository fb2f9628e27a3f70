"""Which links a job uses: deterministic routes by destination or by hash, its flows, and shared links."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from ..base.errors import InputError
from ..numerics.random import random_word
from ..numerics.rounding import GRAIN
from .crossings import cross
from .links import LinkGraph
from .topology import Topology
from .traffic import Streams, streams_of

Job = TypeVar("Job", bound=Hashable)
Fan = Sequence[tuple[int, Sequence[tuple[int, int]]]]  # nodes, and the links by which each is left: (link, to which)
Paths = Callable[[int, int], Sequence[Sequence[int]]]  # from NIC to NIC -> the paths that share a flow evenly

ROUTES = 1 << 27  # stream of random numbers, of the first job; contention/entering.py has the ones below
MOST_WAYS = 1 << 31  # what is counted of equal paths; of more, not all are drawn
MOST_COUNTED = 1 << 22  # numbers that are remembered of ways to NICs
MOST_FANS = 1 << 14  # ways from NIC to NIC that are remembered, a few kB each


@dataclass(frozen=True, eq=False)
class LinkUse:
    """The links of one job, and how often its collective crosses each.

    Attributes:
        links: int64 (k,), ascending, each once; empty for a job on one machine.
        flows: float64 (k,), streams of one worker that cross the link, > 0, in whole GRAINs. A ring of g GPUs that
            all-reduces B bytes sends 2 (g - 1) / g x B bytes over a link per flow; a tree sends B.
    """

    links: np.ndarray
    flows: np.ndarray

    def bytes(self, flow_bytes: float) -> np.ndarray:
        """Bytes on each of `links` in one iteration, float64 (k,), if every flow carries `flow_bytes`."""
        return self.flows * float(flow_bytes)


NO_LINKS = LinkUse(np.zeros(0, np.int64), np.zeros(0, np.float64))


def route(links: LinkGraph, start: int, end: int) -> list[int]:
    """The links from NIC `start` to NIC `end`, in order; none if they are the same."""
    nodes = links.nic_node.reshape(-1)
    node, goal = int(nodes[start]), int(nodes[end])
    path = []
    while node != goal:
        link = int(links.next_link[node, end])
        path.append(link)
        node = int(links.target[link])
    return path


@dataclass(frozen=True, eq=False)
class EqualPaths:
    """All shortest paths between NICs; parallel cables are several. Inner nodes forward.

    `up`: bool (L,), the links that paths may take; None: all.
    """

    links: LinkGraph
    up: np.ndarray | None = None
    _ways: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict, init=False, repr=False)
    _fans: dict[tuple[int, int], Fan] = field(default_factory=dict, init=False, repr=False)

    @property
    def _nodes(self) -> np.ndarray:
        return self.links.nic_node.reshape(-1)

    def count(self, start: int, end: int) -> int:
        """How many there are from NIC to NIC: 1 from one to itself, 0 where none is up, MOST_WAYS at most."""
        return int(self._ways_to(end)[0][self._nodes[start]])

    def path(self, start: int, end: int, rank: int) -> list[int]:
        """The links, in order, of path `rank`, 0 to `count` - 1, by the order of links; InputError: no such path."""
        links = self.links
        ways, before = self._ways_to(end)
        node, goal = int(self._nodes[start]), int(self._nodes[end])
        if not 0 <= rank < ways[node]:
            ends = f"{links.node_names[node]!r} to {links.node_names[goal]!r}"
            raise InputError(f"path {rank} from {ends}: there are {int(ways[node])} of equal length")
        found = []
        while node != goal:
            rank += int(before[np.searchsorted(links.source, node)])
            link = int(np.searchsorted(before, rank, side="right")) - 1
            rank -= int(before[link])
            found.append(link)
            node = int(links.target[link])
        return found

    def least(self, start: int, end: int, load: Sequence[int]) -> list[int]:
        """The links, in order, of the path whose fullest link has the least `load`, (L,); none if no path is up.

        Ties go by the next fullest link, and so on, then by rank. The time follows the links, not the number of paths.
        """
        best: dict[int, tuple[list[int], list[int]]] = {int(self._nodes[end]): ([], [])}
        for node, options in self._fan(start, end):
            best[node] = min(_before(link, load[link], *best[target]) for link, target in options)
        return best.get(int(self._nodes[start]), ([], []))[1]

    def _fan(self, start: int, end: int) -> Fan:
        """The nodes on paths from NIC to NIC but for the last, each after those that its links lead to; and these."""
        found = self._fans.get((start, end))
        if found is not None:
            return found
        links, (ways, before) = self.links, self._ways_to(end)
        nodes, goal = [int(self._nodes[start])], int(self._nodes[end])
        onto: dict[int, list[tuple[int, int]]] = {}
        while nodes != [goal] and ways[nodes[0]]:
            for node in nodes:
                first, last = np.searchsorted(links.source, [node, node + 1])
                taken = (first + np.flatnonzero(np.diff(before[first : last + 1]))).tolist()
                onto[node] = list(zip(taken, links.target[taken].tolist(), strict=True))
            nodes = list(dict.fromkeys(target for node in nodes for _, target in onto[node]))
        if len(self._fans) >= MOST_FANS:
            self._fans.clear()
        self._fans[start, end] = list(reversed(onto.items()))
        return self._fans[start, end]

    def _ways_to(self, end: int) -> tuple[np.ndarray, np.ndarray]:
        """Paths to a NIC from each node, int64 (N,), and those over all links before each one, int64 (L + 1,)."""
        if end not in self._ways:
            if (len(self._ways) + 1) * (self.links.num_nodes + self.links.num_links) > MOST_COUNTED:
                self._ways.clear()
            self._ways[end] = self._counted(int(self._nodes[end]))
        return self._ways[end]

    def _counted(self, home: int) -> tuple[np.ndarray, np.ndarray]:
        links = self.links
        passable = links.forwards[links.target] | (links.target == home)
        if self.up is not None:
            passable &= self.up
        hops, ways = np.full(links.num_nodes, -1, np.int64), np.zeros(links.num_nodes, np.int64)
        hops[home], ways[home] = 0, 1
        over, distance = np.zeros(links.num_links, np.int64), 0
        while (onto := np.flatnonzero(passable & (hops[links.target] == distance) & (hops[links.source] < 0))).size:
            over[onto] = ways[links.target[onto]]
            np.add.at(ways, links.source[onto], over[onto])
            np.minimum(ways, MOST_WAYS, out=ways)
            distance += 1
            hops[links.source[onto]] = distance
        return ways, np.concatenate([[0], np.cumsum(over)])


def _before(link: int, load: int, loads: list[int], path: list[int]) -> tuple[list[int], list[int]]:
    """A link and then a path: the loads of its links, the largest first, and its links in order."""
    return sorted([load, *loads], reverse=True), [link, *path]


def drawn_path(paths: EqualPaths, seed: int, job: int, start: int, end: int, channel: int = 0) -> list[int]:
    """The path of a flow among equal ones, each as likely: a hash of the arguments; InputError: none is up.

    Hardware hashes addresses and ports at every switch (RFC 2992); one hash for the whole path makes all paths as
    likely. The channel is a queue pair with its own ports.
    """
    nics = paths.links.nic_node.size
    word = int(random_word(seed, ROUTES + job, (channel * nics + start) * nics + end))
    return paths.path(start, end, word * paths.count(start, end) >> 32)


def machines_of(topology: Topology, gpus: Sequence[int] | np.ndarray, ordered: bool = True) -> list[int]:
    """The machines of a gang, each once: ascending, so that rings cross racks seldom, or in the order of its GPUs."""
    machines = topology.gpu_machine[np.asarray(gpus, np.int64)]
    if ordered:
        return np.unique(machines).tolist()
    return list(dict.fromkeys(machines.tolist()))


def nics_of(topology: Topology, gpus: Sequence[int] | np.ndarray) -> list[int]:
    """The NIC of each GPU of a gang, in ascending order of GPUs: GPU i of a machine of C NICs is on NIC i mod C."""
    return topology.gpu_nic[sorted(gpus)].tolist()


def link_use(
    links: LinkGraph,
    workers: Sequence[int],
    traffic: str | Mapping[str, float] = "ring",
    rings: int = 1,
    paths: Paths | None = None,
    table: np.ndarray | None = None,
) -> LinkUse:
    """The links of a job and its streams on each, rounded to GRAINs, at least one; no links where a stream has no way.

    Args:
        workers: the NIC of each worker, in order.
        traffic: a pattern of traffic.py, or several with the part of the job's bytes of each. A link has their mean in
            all phases: its bytes in an iteration are right, but not their times.
        rings: a stream is one of so many parts of what a worker sends.
        paths: those of a flow, none where no way is left; None: the one by destination, of the table.
        table: the next link of each node, int32 (N, M C) (`links.detours`); None: `LinkGraph.next_link`.
    """
    parts = {traffic: 1.0} if isinstance(traffic, str) else traffic
    total = np.zeros(links.num_links)
    for pattern, part in parts.items():
        streams = streams_of(pattern, workers, links.nics)
        if paths is None:
            found = crossings(links, streams, links.next_link if table is None else table)
        else:
            found = crossings_on(links, streams, paths)
        if found is None:
            return NO_LINKS
        total += part * rings * found
    used = np.flatnonzero(total)
    return LinkUse(used, np.maximum(1.0, np.rint(total[used] / GRAIN)) * GRAIN)


def crossings(links: LinkGraph, streams: Streams, table: np.ndarray) -> np.ndarray | None:
    """How many streams cross each link, float64 (L,), by a forwarding table; None: it has no way for one of them."""
    total = np.zeros(links.num_links)
    if not streams:
        return total
    ends, nodes = np.array(list(streams), np.int64), links.nic_node.reshape(-1)
    many, level = np.array(list(streams.values()), np.float64), np.zeros(links.num_links)
    found = cross(table, links.target, nodes[ends[:, 0]], nodes[ends[:, 1]], ends[:, 1].copy(), many, level, total)
    return total if found else None


def crossings_on(links: LinkGraph, streams: Streams, paths: Paths) -> np.ndarray | None:
    """As `crossings`, where each flow is split evenly over paths of its own, which are none where no way is left."""
    total = np.zeros(links.num_links)
    for (start, end), many in streams.items():
        split = paths(start, end)
        if not split:
            return None
        for path in split:
            total[list(path)] += many / len(split)
    return total


def sharing(uses: Mapping[Job, LinkUse]) -> dict[int, list[Job]]:
    """The jobs on every link that carries more than one, by link in ascending order; jobs in the order of `uses`."""
    jobs: dict[int, list[Job]] = {}
    for job, use in uses.items():
        for link in use.links.tolist():
            jobs.setdefault(link, []).append(job)
    return {link: jobs[link] for link in sorted(jobs) if len(jobs[link]) > 1}
