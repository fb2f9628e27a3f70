"""Which links a job uses: routes by destination, the flows of its collectives, and who shares which links.

Everything is deterministic: the same graph and the same GPUs give the same links.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ..numerics.rounding import GRAIN
from .links import LinkGraph
from .topology import Topology
from .traffic import Streams, streams_of

Job = TypeVar("Job", bound=Hashable)


@dataclass(frozen=True, eq=False)
class LinkUse:
    """The links of one job, and how often its collective crosses each.

    Attributes:
        links: int64 (k,), ascending, each once; empty for a job on one machine.
        flows: float64 (k,), how many streams of one worker cross the link, > 0, in whole GRAINs. A ring of g GPUs that
            all-reduces B bytes sends 2 (g - 1) / g x B bytes over a link per flow; a tree sends B.
    """

    links: np.ndarray
    flows: np.ndarray

    def bytes(self, flow_bytes: float) -> np.ndarray:
        """Bytes on each of `links` in one iteration, float64 (k,), if every flow carries `flow_bytes`."""
        return self.flows * float(flow_bytes)


NO_LINKS = LinkUse(np.zeros(0, np.int64), np.zeros(0, np.float64))


def route(links: LinkGraph, start: int, end: int) -> list[int]:
    """The links from machine `start` to machine `end`, in order; none if they are the same."""
    node, goal = int(links.machine_node[start]), int(links.machine_node[end])
    path = []
    while node != goal:
        link = int(links.next_link[node, end])
        path.append(link)
        node = int(links.target[link])
    return path


def machines_of(topology: Topology, gpus: Sequence[int] | np.ndarray, ordered: bool = True) -> list[int]:
    """The machines of a gang, each once: ascending, which keeps racks together, or as the gang names its GPUs.

    Rings over machines in another order than that of the racks cross the fabric more often than needed, and are mostly
    in their own way. Network contention has them ascending, by choice (docs/concepts/network.md).
    """
    machines = topology.gpu_machine[np.asarray(gpus, np.int64)]
    if ordered:
        return np.unique(machines).tolist()
    return list(dict.fromkeys(machines.tolist()))


def link_use(
    links: LinkGraph,
    workers: Sequence[int],
    traffic: str | Mapping[str, float] = "ring",
    table: np.ndarray | None = None,
) -> LinkUse:
    """The links of a job, and how many of its streams cross each, rounded to GRAINs and at least one.

    Args:
        links: the network.
        workers: the machine of each worker, in order; of a ring or a tree each machine once does.
        traffic: who sends to whom: a pattern of traffic.py, or several with the part of the job's bytes that each
            sends. A link has the mean of them then, in all phases: its bytes in an iteration are what they are, but
            not when in the iteration they come.
        table: on which link each node sends on, int32 (N, M) (`detours`); None: `links.next_link`.

    Returns:
        No links where the table has no way for one of the streams.

    Raises:
        InputError: no such pattern.
    """
    parts = {traffic: 1.0} if isinstance(traffic, str) else traffic
    total = np.zeros(links.num_links)
    for pattern, part in parts.items():
        found = crossings(links, streams_of(pattern, workers), links.next_link if table is None else table)
        if found is None:
            return NO_LINKS
        total += part * found
    used = np.flatnonzero(total)
    return LinkUse(used, np.maximum(1.0, np.rint(total[used] / GRAIN)) * GRAIN)


def crossings(links: LinkGraph, streams: Streams, table: np.ndarray) -> np.ndarray | None:
    """How many streams cross each link, float64 (L,), by a forwarding table; None: it has no way for one of them."""
    total = np.zeros(links.num_links)
    if not streams:
        return total
    ends = np.array(list(streams), np.int64)
    node, goal = links.machine_node[ends[:, 0]], links.machine_node[ends[:, 1]]
    left, many = ends[:, 1], np.array(list(streams.values()), np.float64)
    while len(node):
        link = table[node, left].astype(np.int64)
        if (link < 0).any():
            return None
        total += np.bincount(link, many, links.num_links)
        node = links.target[link]
        on = node != goal
        node, goal, left, many = node[on], goal[on], left[on], many[on]
    return total


def sharing(uses: Mapping[Job, LinkUse]) -> dict[int, list[Job]]:
    """The jobs on every link that carries more than one, by link in ascending order; jobs in the order of `uses`."""
    jobs: dict[int, list[Job]] = {}
    for job, use in uses.items():
        for link in use.links.tolist():
            jobs.setdefault(link, []).append(job)
    return {link: jobs[link] for link in sorted(jobs) if len(jobs[link]) > 1}
