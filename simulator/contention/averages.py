"""Network contention:mode=averaged: jobs that share links run at the average rates of their steady state.

A component of jobs that share links is played alone until it is steady (phase_run.steady_state), when its jobs, places
or shifts change. Results are remembered by phases, links, shifts and periods, and by the run's seed where the network
draws offsets or jitter. Jobs without shifts all begin at once, or with offsets=random anywhere in an iteration.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from ..cluster.routes import LinkUse
from ..network.simulated import Simulated
from ..numerics.random import draw_seed, uniform
from ..profiles.phases import Phases
from .crux import priorities
from .link_network import Joined, LinkNetwork
from .phase_run import Contender, steady_state

OFFSETS = 1 << 26  # stream of random numbers
REMEMBERED = 20_000  # components

Shift = tuple[float, float] | None  # seconds, period
Crossing = tuple[float, tuple[tuple[int, float], ...]]  # capacity of a link; (place of the job, its flows)
Signature = tuple[tuple[tuple[Phases, Shift, int], ...], tuple[Crossing, ...]]  # the number: priority
Average = tuple[tuple[float, ...], float]  # seconds per iteration of each job; congestion, bytes per second


@dataclass
class Averages:
    """The steady states of a network's components; `played`: how many have been played so far."""

    network: LinkNetwork
    played: int = 0
    _known: OrderedDict[tuple[Signature, int], Average] = field(default_factory=OrderedDict)

    def rates(self, simulator: Simulated) -> tuple[dict[int, float], float]:
        """Seconds per iteration of every running job on the network, and bytes of congestion per second of them all."""
        joined = self.network.joined(simulator)
        crux = self.network.rates == "crux"
        first = priorities(simulator, joined, self.network.levels) if crux else dict.fromkeys(joined.phases, 0)
        seconds: dict[int, float] = {}
        congestion = 0.0
        for jobs in joined.groups():
            rates, more = self._average(simulator, joined, jobs, first)
            seconds.update(zip(jobs, rates, strict=True))
            congestion += more
        return seconds, congestion

    def _average(self, simulator: Simulated, joined: Joined, jobs: list[int], first: dict[int, int]) -> Average:
        shifts = {job: _shift(simulator, job) for job in jobs}
        if len(jobs) == 1:
            alone_s, shift = joined.phases[jobs[0]].iteration_s, shifts[jobs[0]]
            paced = shift is not None and self.network.pacing
            return (max(alone_s, shift[1]) if paced and shift else alone_s,), 0.0
        # In an order by their phases and shifts, not by their numbers.
        order = sorted(
            range(len(jobs)),
            key=lambda place: (*_key(joined.phases[jobs[place]], shifts[jobs[place]]), (first[jobs[place]],)),
        )
        ordered = [jobs[place] for place in order]
        signature = (
            tuple((joined.phases[job], shifts[job], first[job]) for job in ordered),
            tuple(sorted(_crossings(simulator, joined, ordered))),
        )
        draws = self.network.offsets == "random" or self.network.jitter > 0.0
        key = signature, draw_seed(simulator.state) if draws else 0
        if key in self._known:
            self._known.move_to_end(key)
        else:
            self._known[key] = self._play(*key)
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        rates, congestion = self._known[key]
        back = dict(zip(ordered, rates, strict=True))
        return tuple(back[job] for job in jobs), congestion

    def _play(self, signature: Signature, seed: int) -> Average:
        jobs, crossings = signature
        uses: list[list[tuple[int, float]]] = [[] for _ in jobs]
        for link, (_, users) in enumerate(crossings):
            for place, many in users:
                uses[place].append((link, many))
        contenders = []
        for place, ((phases, shift, priority), used) in enumerate(zip(jobs, uses, strict=True)):
            links, flows = np.array(used, np.float64).reshape(-1, 2).T
            begin_s = 0.0
            if self.network.offsets == "random" and shift is None:
                begin_s = float(uniform(seed, OFFSETS, place)) * phases.iteration_s
            seconds, period_s = shift or (None, None)
            use = LinkUse(links.astype(np.int64), flows)
            contenders.append(Contender(phases, use, seconds, period_s, begin_s, priority=priority))
        network = self.network
        found = steady_state(
            [capacity for capacity, _ in crossings],
            contenders,
            pacing=network.pacing,
            adjust=math.inf if network.adjust == "off" else network.adjust,
            jitter=network.jitter,
            carried=network.carried,
            growth=network.growth,
            seed=seed,
        )
        self.played += 1
        return tuple(found.iteration_s.tolist()), float(found.link_congestion.sum())


def _shift(simulator: Simulated, job: int) -> Shift:
    seconds = simulator.view.shift_s(job)
    period_s = None if seconds is None else simulator.view.shift_period_s(job)
    return None if seconds is None or period_s is None else (seconds % period_s, period_s)


def _key(phases: Phases, shift: Shift) -> tuple[Iterable[float], ...]:
    return (phases.iteration_s,), phases.start_s, phases.duration_s, phases.rate, shift or ()


def _crossings(simulator: Simulated, joined: Joined, jobs: list[int]) -> Iterator[Crossing]:
    users: dict[int, list[tuple[int, float]]] = {}
    for place, job in enumerate(jobs):
        use = joined.uses[job]
        for link, flows in zip(use.links.tolist(), use.flows.tolist(), strict=True):
            users.setdefault(link, []).append((place, flows))
    capacity = simulator.state.link_capacity
    for link, crossing in users.items():
        if len(crossing) > 1:
            yield float(capacity[link]), tuple(crossing)
