"""The members of each group and its machines over time, in one run of job groups.

The simulator counts machines; here they get numbers, the lowest free ones first, so that a chart can have a row for
each. A group returns the machines first that it got last.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import numpy as np

from ...simulator.base.codes import ASSIGN, JOINED, LEFT, MACHINES, SIZED, SPILL
from .recording import HAPPENINGS, Recorded, Timeline, timeline_of


class _Machines:
    def __init__(self, count: int) -> None:
        self._free = list(range(count))
        self._of: dict[int, tuple[int, ...]] = {}

    def of(self, group: int) -> tuple[int, ...]:
        return self._of.get(group, ())

    def resize(self, sizes: dict[int, int]) -> None:
        """Change the sizes of groups; machines are returned before others take them."""
        for group, size in sizes.items():
            for machine in self.of(group)[size:]:
                heapq.heappush(self._free, machine)
            self._of[group] = self.of(group)[:size]
        for group, size in sizes.items():
            self._of[group] += tuple(heapq.heappop(self._free) for _ in range(size - len(self.of(group))))


class _Stretches:
    def __init__(self) -> None:
        self.job: list[int] = []
        self.start_s: list[float] = []
        self.end_s: list[float] = []
        self.machines: list[tuple[int, ...]] = []
        self._open: dict[int, int] = {}

    def set(self, job: int, machines: tuple[int, ...], now_s: float) -> None:
        """From now on a job is on these machines; none: its stretch ends."""
        place = self._open.get(job)
        if place is not None and self.machines[place] == machines:
            return
        if place is not None:
            self.end_s[place] = now_s
            del self._open[job]
        if machines:
            self._open[job] = len(self.job)
            self.job.append(job)
            self.start_s.append(now_s)
            self.end_s.append(np.nan)
            self.machines.append(machines)

    def close(self, now_s: float) -> None:
        for job in list(self._open):
            self.set(job, (), now_s)


def group_timeline(simulator: Any, entries: Iterable[Recorded]) -> Timeline:
    """The timeline of a `GroupSimulator` from its log; a job that joins and leaves at one instant does not count."""
    machines, found = _Machines(simulator.topology.num_machines), _Stretches()
    group_of: dict[int, int] = {}
    for now_s, touched in _instants(entries):
        sizes: dict[int, int] = {}
        jobs = {entry.job for entry in touched if entry.kind != SIZED}
        for entry in touched:
            group = entry.gpus[0]
            if entry.kind == SIZED:
                sizes[group] = entry.gpus[1]
            elif entry.kind == JOINED:
                group_of[entry.job] = group
            elif entry.kind == LEFT and group_of.get(entry.job) == group:
                del group_of[entry.job]
        machines.resize(sizes)
        jobs |= {job for job, group in group_of.items() if group in sizes} if sizes else set()
        for job in sorted(jobs):
            found.set(job, machines.of(group_of[job]) if job in group_of else (), now_s)
    s = simulator.state
    found.close(float(s.now_s))
    use = simulator.meter.over_time()
    shares = {"use_s": use.time_s, "cpu_use": use.cpu, "network_use": use.network}
    stretches = (found.job, found.start_s, found.end_s, found.machines)
    return timeline_of(s, stretches, np.arange(simulator.topology.num_machines), unit="machine", **shares)


def group_words(kind: int, numbers: tuple[int, ...], value: float | None) -> str:
    """A decision about groups beside its job: `numbers` are the group and, where they matter, its machines."""
    parts = [f"group={numbers[0]}"]
    if kind == SPILL:
        parts.append("ratio=climbing" if value is None else f"ratio={value:g}")
    elif kind == MACHINES or (kind == ASSIGN and numbers[1] > 0):
        parts.append(f"machines={numbers[1]}")
    return " ".join(parts)


def _instants(entries: Iterable[Recorded]) -> Iterator[tuple[float, list[Recorded]]]:
    happened = (entry for entry in entries if entry.kind in HAPPENINGS)
    for now_s, together in groupby(happened, key=lambda entry: entry.time_s):
        yield now_s, list(together)
