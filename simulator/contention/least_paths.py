"""Least congested paths: the jobs that run are spread over equal paths, those with the highest intensity first.

Source: Crux (Cao et al., SIGCOMM'24), known by a summary only: "from the highest intensity down, each job takes the
least congested of its equal-cost paths". Ours are:

* Equal-cost paths are all shortest ones (cluster/routes.py); each flow, from one NIC of a job to another, takes one, in
  the order of the workers.
* The intensity is that on the paths of the network's table; ties go to the job that arrived first.
* The load of a link is the part of its built capacity that the flows on it take on average at their speed alone. A path
  is as congested as its fullest link; ties go by the next fullest, and so on, then by the order of the links.
* All running jobs are placed anew when one comes or goes, or a link fails; bytes sent of a phase stay sent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..cluster.links import LinkGraph
from ..cluster.routes import EqualPaths, LinkUse
from ..cluster.traffic import streams_of
from ..profiles.phases import Phases

WHOLE = 2.0**30  # loads are whole parts of a capacity, so that their sums are exact and equal ones are equal

Flow = tuple[int, int]


@dataclass(frozen=True)
class Sender:
    """A job that sends: W, GPU-seconds of computing an iteration, its phases alone, its links' least bytes/s a flow."""

    work: float
    phases: Phases
    room: float

    @classmethod
    def on(cls, gpus: int, phases: Phases, use: LinkUse, capacity: np.ndarray) -> Sender:
        """A job of so many GPUs on those of all links; `capacity`: bytes per second of each, (L,)."""
        return cls(gpus * (phases.iteration_s - phases.up_s), phases, float((capacity[use.links] / use.flows).min()))

    @property
    def intensity(self) -> float:
        """I = W / t, Eq. 2."""
        return self.work * self.room / self.phases.bytes


def flows_of(traffic: Iterable[tuple[str, float]], workers: Sequence[int], nics: int, rings: int) -> dict[Flow, float]:
    """The streams of a job from NIC to NIC, of all its patterns together; arguments are those of `link_use`."""
    found: defaultdict[Flow, float] = defaultdict(float)
    for pattern, part in traffic:
        for flow, many in streams_of(pattern, workers, nics).items():
            found[flow] += part * rings * many
    return dict(found)


def least_congested(
    links: LinkGraph, paths: EqualPaths, senders: Mapping[int, Sender], flows: Mapping[int, Mapping[Flow, float]]
) -> dict[int, dict[Flow, list[int]]]:
    """By job, the links of the path of each flow; none where no path is up.

    `senders`: the jobs, as by the table. `flows`: in streams, of these jobs. Paper: crux, path selection.
    """
    load, capacity = [0] * links.num_links, links.capacity.tolist()
    found: dict[int, dict[Flow, list[int]]] = {}
    for job in sorted(senders, key=lambda job: (-senders[job].intensity, job)):
        phases, found[job] = senders[job].phases, {}
        rate = phases.bytes / phases.iteration_s * WHOLE
        for ends, many in flows[job].items():
            path = found[job][ends] = paths.least(*ends, load)
            for link in path:
                load[link] += max(1, round(rate * many / capacity[link]))
    return found
