"""Which workers change hands where jobs get more or fewer of them: nobody else moves, so that gangs fragment.

A job that gives some up keeps those in the racks, then on the machines, of which it holds most; one that gets more
takes free ones on its machines, then in its racks, then as close together as others lie; one that starts is placed as
any gang. Paper cassini (Sec. 4.1) says that fragmented placements come from such changes: "no scheduler guarantees it
can maintain perfect placement throughout time without continuously migrating jobs". Which workers are given up it
leaves open, and makes other placements of that (Sec. 4.2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..simulator.cluster.topology import Topology
from ..simulator.engine.plans import Plan
from .equivalent_placements import TRIES, locality, place

Gang = tuple[int, ...]


@dataclass(frozen=True)
class Exchange:
    """Who is to have how many GPUs, and who has which.

    Attributes:
        counts: job -> GPUs, > 0, in the order in which jobs choose; there must be as many. Who runs and is not here
            stops.
        held: the GPUs of every running job. leased: those whose lease runs, who keep all that they are to have.
        free: GPUs that nobody holds.
    """

    counts: Mapping[int, int]
    held: Mapping[int, Gang]
    leased: Collection[int]
    free: Collection[int]

    def plan(self, topology: Topology) -> Plan:
        """The placement in which as few workers change as can be."""
        return self._plan(topology, None)

    def plans(self, topology: Topology, n: int, rng: np.random.Generator, same_span: bool) -> list[Plan]:
        """Up to n placements with these counts, all distinct: that one, then others.

        In the others any workers are given up, jobs choose in any order, and those whose lease is over are anywhere.

        Args:
            n: at least 1.
            rng: draws them.
            same_span: only those in which every gang spans as many racks and machines as in the first.
        """
        first = self.plan(topology)
        spans = {job: locality(topology, gpus) for job, gpus in first.gangs.items()}
        found = {first.placement: first}
        for _ in range(TRIES * (n - 1) if self._has_choice else 0):
            if len(found) == n:
                break
            other = self._plan(topology, rng)
            if not same_span or all(locality(topology, gpus) == spans[job] for job, gpus in other.gangs.items()):
                found.setdefault(other.placement, other)
        return list(found.values())

    @property
    def _has_choice(self) -> bool:
        """Whether any job has other GPUs than now, or could have."""
        return any(job not in self.leased or count != len(self.held[job]) for job, count in self.counts.items())

    def _plan(self, topology: Topology, rng: np.random.Generator | None) -> Plan:
        gangs: dict[int, Gang] = {}
        for job, own in self.held.items():
            count = min(self.counts.get(job, 0), len(own))
            gangs[job] = () if rng is not None and job not in self.leased else kept(topology, own, count, rng)
        free = set(self.free).union(*self.held.values()).difference(*gangs.values())
        order: Sequence[int] = list(self.counts)
        for job in order if rng is None else [order[index] for index in rng.permutation(len(order))]:
            own = gangs.get(job, ())
            gangs[job] = tuple(sorted((*own, *taken(topology, own, free, self.counts[job] - len(own), rng))))
            free.difference_update(gangs[job])
        starts = [job for job in self.counts if job not in self.held]
        return Plan({job: gangs[job] for job in (*self.held, *starts) if job in self.counts})


def kept(topology: Topology, own: Gang, count: int, rng: np.random.Generator | None = None) -> Gang:
    """`count` of a job's GPUs, ascending: those that lie closest together; any of them, as `rng` draws."""
    if count == len(own):
        return tuple(sorted(own))
    if rng is not None:
        return tuple(sorted(rng.choice(own, count, replace=False).tolist()))
    machine = topology.gpu_machine[list(own)].tolist()
    rack = topology.machine_rack[machine].tolist()
    in_rack, on_machine = Counter(rack), Counter(machine)
    places = zip(rack, machine, own, strict=True)
    order = sorted(places, key=lambda at: (-in_rack[at[0]], at[0], -on_machine[at[1]], at))
    return tuple(sorted(gpu for _, _, gpu in order[:count]))


def taken(
    topology: Topology, own: Gang, free: Collection[int], count: int, rng: np.random.Generator | None = None
) -> Gang:
    """`count` of the free GPUs for a job that has `own`: the nearest; of those that are as near any, as `rng` draws."""
    if count == 0:
        return ()
    if not own:
        return place(topology, free, count, rng)
    machine = topology.gpu_machine[list(own)].tolist()
    on_machine, in_rack = Counter(machine), Counter(topology.machine_rack[machine].tolist())
    near = []
    gpus = sorted(free)
    for gpu in gpus if rng is None else rng.permutation(gpus).tolist():
        there = int(topology.gpu_machine[gpu])
        rack = int(topology.machine_rack[there])
        if rack in in_rack:
            near.append(((-on_machine[there], -in_rack[rack]), gpu))
    first = [gpu for _, gpu in sorted(near, key=lambda at: at[0])[:count]]
    rest = count - len(first)
    return (*first, *(place(topology, set(free).difference(first), rest, rng) if rest else ()))
