"""The affinity graph of paper cassini (Sec. 4.1): which jobs meet on which links, and one time-shift for each job.

Vertices are ("job", j) and ("link", l), edges carry `flows` and, once rotations are found, `shift_s` (t_j^l, Eq. 5).
Links that carry the same set of jobs are one vertex: as separate vertices they would be a loop, which a ring over two
racks makes at every turn. The vertex stands for the one of them that is loaded most: the largest sum of the jobs' peak
demands as a fraction of its capacity, the lowest number on a tie.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from ...simulator.cluster.routes import LinkUse
from ...simulator.profiles.phases import Phases

if TYPE_CHECKING:
    import networkx

Job = Hashable


def affinity_graph(uses: Mapping[Job, LinkUse], phases: Mapping[Job, Phases], capacity: np.ndarray) -> networkx.Graph:
    """The affinity graph of a placement: jobs that share a link, and the links that are shared.

    Args:
        uses: the links of every job.
        phases: of every job, under this placement.
        capacity: bytes per second of every link, (L,).

    Returns:
        Link vertices have `members` (all links that they stand for, ascending) and `capacity`.
    """
    import networkx

    flows_on: dict[int, dict[Job, int]] = {}
    for job, use in uses.items():
        for link, flows in zip(use.links.tolist(), use.flows.tolist(), strict=True):
            flows_on.setdefault(link, {})[job] = flows
    alike: dict[frozenset[Job], list[int]] = {}
    for link in sorted(flows_on):
        if len(flows_on[link]) > 1:
            alike.setdefault(frozenset(flows_on[link]), []).append(link)

    def load(link: int) -> float:
        peaks = (flows * phases[job].peak for job, flows in flows_on[link].items())
        return sum(peaks) / float(capacity[link])

    graph: networkx.Graph = networkx.Graph()
    for members in alike.values():
        chosen = max(members, key=load)  # the first of those that are loaded most
        vertex = ("link", chosen)
        graph.add_node(vertex, members=tuple(members), capacity=float(capacity[chosen]))
        for job, flows in flows_on[chosen].items():
            graph.add_edge(("job", job), vertex, flows=flows)
    return graph


def has_loop(graph: networkx.Graph) -> bool:
    """Whether any component of the graph has a loop, so that Theorem 1 does not hold for it."""
    import networkx

    return graph.number_of_edges() > graph.number_of_nodes() - networkx.number_connected_components(graph)


def time_shifts(graph: networkx.Graph, period_s: Mapping[Job, float]) -> dict[Job, float]:
    """Algorithm 1: one time-shift for every job from the shifts that it has on each link, seconds in [0, its period).

    In every component the first job of `period_s` is the reference, with shift 0 (the paper takes a random one).
    Correct for graphs without loops (Theorem 1): on every link all jobs keep their relative shifts, up to whole
    iterations of theirs. Eq. 6 holds to the letter before `% iter_time` in line 23; a whole iteration more or less
    changes no overlap.
    """
    shifts: dict[Job, float] = {}
    for first in period_s:
        if first in shifts or ("job", first) not in graph:
            continue
        shifts[first] = 0.0
        waiting = deque([first])
        while waiting:
            job = waiting.popleft()
            for link in graph[("job", job)]:
                own = graph.edges[("job", job), link]["shift_s"]
                for _, other in graph[link]:
                    if other not in shifts:
                        waiting.append(other)
                        there = graph.edges[link, ("job", other)]["shift_s"]
                        shifts[other] = (shifts[job] - own + there) % period_s[other]
    return shifts
