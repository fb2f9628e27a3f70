"""Phases and links of jobs by themselves, as rows of an array that kernels read; it changes no result."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...simulator.contention.link_memo import Own
from ...simulator.engine.simulator import Simulator
from .timeshift_record import place_dtype
from .unified_circles import NONE

MOST_PLACES = 4096
Gangs = Mapping[int, tuple[int, ...]]  # the GPUs of jobs


class Places:
    """The rows of a network with room for so many links; `meet`: jobs meet there.

    Attributes:
        array: `timeshift_record.place_dtype`, (rows,).
        links: as given.
    """

    def __init__(self, links: int, meet: bool) -> None:
        self.array, self.links, self._meet = _rows(256, links), links, meet
        self._rows: dict[int, tuple[int, Own]] = {}  # by identity of what the network remembers, which is kept
        self._known: dict[tuple[int, tuple[int, ...], bytes | None], int] = {}  # of jobs of the run on their GPUs

    def forget_jobs(self) -> None:
        """Another run begins."""
        self._known.clear()
        if len(self._rows) > MOST_PLACES:
            self._rows.clear()

    def rows_of(self, simulator: Simulator, gangs: Gangs) -> list[int]:
        """The row of each gang, in their order; NONE: it sends nothing."""
        network, outage = simulator.network, simulator.view.outage
        at = simulator.topology, simulator.workload
        if getattr(network, "routes", "") == "least":
            found = network.together(*at, gangs, outage)  # type: ignore[attr-defined]
            return [self._row(found[job]) for job in gangs]
        known, key = self._known, outage.key if outage else None
        rows = []
        for job, gpus in gangs.items():
            row = known.get((job, gpus, key))
            if row is None:
                row = known[job, gpus, key] = self._row(network.alone(*at, job, gpus, outage))  # type: ignore[attr-defined]
            rows.append(row)
        return rows

    def _row(self, own: Own) -> int:
        phases, use = own
        if not phases.rate and not len(use.links):
            return NONE
        if id(own) in self._rows:
            return self._rows[id(own)][0]
        row = len(self._rows)
        self._rows[id(own)] = row, own
        if row == len(self.array):
            self.array = np.concatenate([self.array, _rows(row, self.links)]).view(np.recarray)
        place, count = self.array.view(np.ndarray)[row], len(phases.rate)
        place["iteration_s"], place["up_s"] = phases.iteration_s, phases.up_s
        place["bytes"], place["peak"] = phases.bytes, phases.peak
        place["n_phases"], place["n_links"] = count, len(use.links) if self._meet else 0
        place["start_s"][:count], place["duration_s"][:count] = phases.start_s, phases.duration_s
        place["rate"][:count] = phases.rate
        place["flows"][:] = 0.0
        if self._meet:
            place["flows"][use.links] = use.flows
        return row


def _rows(count: int, links: int) -> np.recarray:
    return np.zeros(count, place_dtype(links)).view(np.recarray)
