"""Which links a job uses: routes by destination, the flows of its collective, and who shares which links.

Everything is deterministic: the same graph and the same GPUs give the same links.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ..base.names import choose
from .links import LinkGraph
from .topology import Topology

Job = TypeVar("Job", bound=Hashable)
Flow = tuple[int, int]


@dataclass(frozen=True, eq=False)
class LinkUse:
    """The links of one job, and how often its collective crosses each.

    Attributes:
        links: int64 (k,), ascending, each once; empty for a job on one machine.
        flows: int64 (k,), how many of the collective's flows cross the link, >= 1. A ring of g GPUs that all-reduces
            B bytes sends 2 (g - 1) / g x B bytes over a link per flow; a tree sends B.
    """

    links: np.ndarray
    flows: np.ndarray

    def bytes(self, flow_bytes: float) -> np.ndarray:
        """Bytes on each of `links` in one iteration, float64 (k,), if every flow carries `flow_bytes`."""
        return self.flows * float(flow_bytes)


NO_LINKS = LinkUse(np.zeros(0, np.int64), np.zeros(0, np.int64))


def route(links: LinkGraph, start: int, end: int) -> list[int]:
    """The links from machine `start` to machine `end`, in order; none if they are the same."""
    node, goal = int(links.machine_node[start]), int(links.machine_node[end])
    path = []
    while node != goal:
        link = int(links.next_link[node, end])
        path.append(link)
        node = int(links.target[link])
    return path


def ring_flows(machines: Sequence[int]) -> list[Flow]:
    """A ring through the machines in the given order: each sends to the next one, the last to the first."""
    if len(machines) < 2:
        return []
    return list(zip(machines, [*machines[1:], machines[0]], strict=True))


def tree_flows(machines: Sequence[int]) -> list[Flow]:
    """A binary tree over the machines in the given order; every edge carries a reduction up and a broadcast down.

    The tree of NCCL (src/graph/trees.cc, ncclGetBtree): machine 0 is the root, odd ones are leaves, and the parent of
    another one is found at its lowest set bit, so neighbours in the order are near in the tree.
    """
    flows: list[Flow] = []
    for rank in range(1, len(machines)):
        bit = rank & -rank
        parent = (rank ^ bit) | (bit << 1)
        parent = rank ^ bit if parent >= len(machines) else parent
        flows += [(machines[rank], machines[parent]), (machines[parent], machines[rank])]
    return flows


COLLECTIVES: dict[str, Callable[[Sequence[int]], list[Flow]]] = {"ring": ring_flows, "tree": tree_flows}


def machines_of(topology: Topology, gpus: Sequence[int] | np.ndarray, ordered: bool = True) -> list[int]:
    """The machines of a gang, each once: ascending, which keeps racks together, or as the gang names its GPUs.

    Rings over machines in another order than that of the racks cross the fabric more often than needed, and are mostly
    in their own way. Network contention has them ascending, by choice (docs/concepts/network.md).
    """
    machines = topology.gpu_machine[np.asarray(gpus, np.int64)]
    if ordered:
        return np.unique(machines).tolist()
    return list(dict.fromkeys(machines.tolist()))


def link_use(links: LinkGraph, machines: Sequence[int], collective: str = "ring") -> LinkUse:
    """The links of a job on these machines, whose flows follow a `ring` or a `tree` over them in the given order.

    Raises:
        InputError: no such collective.
    """
    flows = COLLECTIVES[choose(collective, COLLECTIVES, "collective")](list(machines))
    crossed = [link for start, end in flows for link in route(links, start, end)]
    found, times = np.unique(np.array(crossed, np.int64), return_counts=True)
    return LinkUse(found, times.astype(np.int64))


def sharing(uses: Mapping[Job, LinkUse]) -> dict[int, list[Job]]:
    """The jobs on every link that carries more than one, by link in ascending order; jobs in the order of `uses`."""
    jobs: dict[int, list[Job]] = {}
    for job, use in uses.items():
        for link in use.links.tolist():
            jobs.setdefault(link, []).append(job)
    return {link: jobs[link] for link in sorted(jobs) if len(jobs[link]) > 1}
