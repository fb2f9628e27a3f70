"""Reference of link contention: jobs that iterate on links, as docs/concepts/network.md says, in plain numpy.

Written from that page without reading the kernels, and it shares no code with them; what the page left
open was asked of the simulator, and is on the page now. Rates are whole bytes per second, rounded down where a link
fills; of links that fill at once the first is rounded first.

It plays shifts, links that carry less for a while, jobs whose ways change or are gone, weights (given, or growing as
MLTCP's do) and priorities (given, as those of Crux are). Where ways lead is routes.py's, which priorities Crux gives is
crux.py's: both have tests of their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

NEAR_S = 1e-6
PARTS = 32  # of an iteration's bytes, in which a weight that grows is taken as constant


@dataclass(frozen=True)
class FluidJob:
    """A job on links.

    Attributes:
        iteration_s: seconds of an iteration with room on every link.
        ups: (start_s, duration_s, bytes per second of a flow) of each Up phase, ascending; the rest is Down.
        flows: how many streams of the job cross each link, (L,); 0: it does not use it.
        shift_s: its iterations begin at this modulo its period; None: as soon as the one before is over.
        period_s: seconds from slot to slot; None: those of its iteration alone.
        begin_s: not before this.
        rounds: iterations until it leaves.
        weight: its rate beside that of others on a full link, if weights do not grow.
        priority: the highest goes first on a full link.
    """

    iteration_s: float
    ups: tuple[tuple[float, float, float], ...]
    flows: tuple[float, ...]
    shift_s: float | None = None
    period_s: float | None = None
    begin_s: float = 0.0
    rounds: float = math.inf
    weight: float = 1.0
    priority: int = 0

    def alone(self, capacity: np.ndarray) -> FluidJob:
        """The same where it is alone on its links: Up phases that have too little room are longer, and slower."""
        flows = np.array(self.flows)
        room = float(min(capacity[flows > 0] // flows[flows > 0], default=math.inf))
        ups, longer = [], 0.0
        for start, duration, asked in self.ups:
            rate = max(1.0, round(asked))
            takes = duration * max(1.0, rate / room)
            ups.append((start + longer, takes, min(rate, room)))
            longer += takes - duration
        period = self.iteration_s + longer if self.period_s is None else self.period_s
        return replace(self, iteration_s=self.iteration_s + longer, ups=tuple(ups), period_s=period)

    def steps(self) -> list[tuple[float, float]]:
        """What an iteration does in turn: (Down seconds, 0) or (bytes of a flow, their top rate)."""
        steps, now = [], 0.0
        for start, duration, rate in self.ups:
            steps += [(start - now, 0.0), (duration * rate, rate)]
            now = start + duration
        return [(size, rate) for size, rate in (*steps, (self.iteration_s - now, 0.0)) if size > 0]


@dataclass
class Played:
    """What came of a play.

    Attributes:
        begins: of each job, when its iterations began; of one that left, its end is the last.
        adjustments: how often each job was too late for its slot and waited for the next.
        waited: bytes of each job that had to wait: offered above what it got, at the one link that held it back, (J,);
            where several do at once that of the fewest flows. waited_most: that of the most.
        carried: bytes that crossed each link, (L,).
        stalled_s: seconds in which jobs would have sent and had no way, of all together.
        edges: when a job began or ended to send, and which, in order.
    """

    begins: list[list[float]]
    adjustments: list[int]
    waited: np.ndarray
    waited_most: np.ndarray
    carried: np.ndarray
    stalled_s: float = 0.0
    edges: list[tuple[float, int]] = field(default_factory=list)

    def near_misses(self) -> int:
        """How often two jobs began or ended to send within `NEAR_S`, but not at once."""
        return sum(1e-12 < b[0] - a[0] < NEAR_S and a[1] != b[1] for a, b in pairwise(self.edges))

    def durations(self, job: int) -> np.ndarray:
        """Seconds from the beginning of an iteration to that of the next: a wait for a slot is of the one before."""
        return np.diff(self.begins[job])


@dataclass
class _Present:
    """Where a job is: in a step until `until`, or with `left` bytes of a flow; step -1: it has yet to begin.

    Of the equal parts of an iteration's bytes it is in number `part`, of which `of_part` bytes are left.
    """

    steps: list[tuple[float, float]]
    shift_s: float | None
    period_s: float
    until: float
    step: int = -1
    left: float = 0.0
    slot: int | None = None  # of its last iteration; None: none was at a slot of this shift
    part: int = 0
    of_part: float = math.inf
    has_way: bool = True


def max_min(
    demand: np.ndarray, flows: np.ndarray, capacity: np.ndarray, weight: Any = 1.0, priority: Any = 0
) -> np.ndarray:
    """Weighted max-min fair rates in whole bytes per second, at least 1, of those with the highest priority first.

    The rates of all flows grow in proportion to their weights until a job has what it wants or a link of its is full.

    Args:
        demand: bytes per second that a flow of each job would send, (J,).
        flows: how many of them cross each link, (J, L).
        capacity: bytes per second, (L,).
        weight, priority: of each job, (J,), or of all.
    """
    weight, priority = np.broadcast_to(weight, demand.shape), np.broadcast_to(priority, demand.shape)
    rate, room = np.zeros(len(demand)), capacity.astype(float)
    for each in np.unique(priority)[::-1]:
        growing = (priority == each) & (demand > 0)
        while growing.any():
            load = (weight * growing) @ flows
            fills = np.divide(np.maximum(room, 0.0), load, out=np.full(len(room), math.inf), where=load > 0)
            fills = np.floor(fills)
            level = fills.min(initial=math.inf)
            has_all = growing & (np.floor(demand / weight) <= level)
            if has_all.any():
                stopping, rate = has_all, np.where(has_all, demand, rate)
            else:
                stopping = growing & (flows[:, fills.argmin()] > 0)
                rate = np.where(stopping, np.maximum(1.0, np.floor(weight * level)), rate)
            room = room - (rate * stopping) @ flows
            growing &= ~stopping
    return rate


def held_back(
    demand: np.ndarray,
    rate: np.ndarray,
    flows: np.ndarray,
    capacity: np.ndarray,
    weight: np.ndarray,
    priority: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """How many flows of each job cross the link that holds it back, (J,) at least and at most; 0: none does.

    That link is full, and no job sends there that is behind it, or whose flows are faster for their weight.
    """
    full = rate @ flows >= capacity * (1 - 1e-7)
    least, most = np.zeros(len(rate)), np.zeros(len(rate))
    for job in np.flatnonzero(demand > rate * (1 + 1e-8)):
        behind = (priority < priority[job]) & (rate > 1e-6 * demand)  # others have what rounding leaves
        faster = (priority == priority[job]) & (rate / weight > rate[job] / weight[job] * (1 + 1e-8) + 8)
        holds = (flows[job] > 0) & full & ~(flows[behind | faster] > 0).any(axis=0)
        least[job] = flows[job][holds].min() if holds.any() else 0.0
        most[job] = flows[job][holds].max() if holds.any() else 0.0
    return least, most


class FluidPlay:
    """Jobs on links, from time 0 on.

    Args:
        capacity: bytes per second of each link.
        pacing: a job with a shift begins every iteration at a slot; False: only the first.
        adjust: an iteration that would begin later than its slot by more than this part of an iteration alone waits
            for the next slot.
        carried: what a link to which more is offered than fits has left of its capacity.
        growth: (base, slope): weights are base + slope x the part of an iteration's bytes that is sent, in place of
            the jobs' own: that in the middle of each of 32 equal parts; None: they are the jobs' own.
    """

    def __init__(
        self,
        capacity: np.ndarray,
        jobs: Sequence[FluidJob],
        pacing: bool = True,
        adjust: float = math.inf,
        carried: float = 1.0,
        growth: tuple[float, float] | None = None,
    ):
        self.built = np.floor(np.asarray(capacity, float))
        self.capacity, self.pacing, self.adjust, self.now = self.built.copy(), pacing, adjust, 0.0
        self.carried, self.growth = carried, growth
        self.given, self.jobs = list(jobs), [job.alone(self.built) for job in jobs]
        self.flows = np.array([job.flows for job in jobs], float)
        self.own = np.array([job.weight for job in jobs])
        self.priority = np.array([job.priority for job in jobs])
        self.waiting = np.zeros((2, len(jobs)))
        waited, carried = np.zeros((2, len(jobs))), np.zeros(len(self.capacity))
        self.played = Played([[] for _ in jobs], [0] * len(jobs), *waited, carried)
        self.at = [_Present(job.steps(), job.shift_s, job.period_s, job.begin_s) for job in self.jobs]
        for number, job in enumerate(self.jobs):
            self.shift(number, job.shift_s, job.period_s)

    def shift(self, number: int, seconds: float | None, period_s: float) -> None:
        """From its next iteration on a job begins at `seconds` modulo its period, or None: whenever it can.

        The next one is that which it waits to begin, if it does.
        """
        at = self.at[number]
        at.shift_s, at.period_s, at.slot = seconds, period_s, None
        if at.step < 0 and at.until < math.inf:
            at.until = self._slot(number, max(self.now, self.jobs[number].begin_s))

    def scale(self, link: int, part: float) -> None:
        """From now on a link has this part of its capacity as built, > 0."""
        self.capacity[link] = max(1.0, math.floor(self.built[link] * part))

    def lead(self, number: int, flows: tuple[float, ...]) -> None:
        """From now on a job goes these ways; nowhere: there is no way, and it waits when it would send."""
        at = self.at[number]
        at.has_way = any(flows)
        if at.has_way:
            self.flows[number] = flows
            self.jobs[number] = replace(self.given[number], flows=flows).alone(self.built)
            at.steps = self.jobs[number].steps()

    def rank(self, number: int, weight: float, priority: int) -> None:
        """From now on a job has this weight, if weights do not grow, and this priority."""
        self.own[number], self.priority[number] = weight, priority

    def play(self, until_s: float) -> Played:
        """Let time pass until then; what happens at that instant still does."""
        while True:
            rate, ends = self._rates()
            then = min(*ends, until_s)
            parts = [self.now + at.of_part / r if r else math.inf for at, r in zip(self.at, rate, strict=True)]
            if self.growth is not None and min(parts) < then:
                then = min(parts)
            self._send(rate, then)
            grown = [number for number, end in enumerate(parts) if end <= then]
            for number in grown:
                self._grow(number)
            due = [number for number, end in enumerate(ends) if end <= then]
            if not due and not grown and then >= until_s:
                return self.played
            for number in due:
                self._enter(number)

    def _weights(self) -> np.ndarray:
        """What the rates of a full link are in proportion to."""
        if self.growth is None:
            return self.own
        base, slope = self.growth
        return np.array([base + slope * (at.part + 0.5) / PARTS for at in self.at])

    def _rates(self) -> tuple[np.ndarray, list[float]]:
        """The rate of a flow of each job, and when each is through with its step."""
        demand = np.array([at.steps[at.step][1] if at.left > 0 and at.has_way else 0.0 for at in self.at])
        crowded = demand @ self.flows > self.capacity
        less = np.maximum(1.0, np.floor(self.carried * self.capacity))
        capacity = np.where(crowded, less, self.capacity)
        weight = self._weights()
        rate = max_min(demand, self.flows, capacity, weight, self.priority)
        self.waiting = (demand - rate) * np.array(held_back(demand, rate, self.flows, capacity, weight, self.priority))
        return rate, [self.now + at.left / r if r else at.until for at, r in zip(self.at, rate, strict=True)]

    def _send(self, rate: np.ndarray, then: float) -> None:
        """Send at these rates until then."""
        seconds = then - self.now
        self.played.waited += self.waiting[0] * seconds
        self.played.waited_most += self.waiting[1] * seconds
        self.played.carried += rate @ self.flows * seconds
        self.played.stalled_s += seconds * sum(at.left > 0 and not at.has_way for at in self.at)
        for at, r in zip(self.at, rate, strict=True):
            at.left, at.of_part = max(0.0, at.left - r * seconds), at.of_part - r * seconds
        self.now = then

    def _grow(self, number: int) -> None:
        """The next part of an iteration's bytes begins."""
        at = self.at[number]
        at.part, at.of_part = at.part + 1, self._part_bytes(number) if at.part < PARTS - 2 else math.inf

    def _part_bytes(self, number: int) -> float:
        return sum(size for size, rate in self.at[number].steps if rate) / PARTS

    def _enter(self, number: int) -> None:
        """A job is through with its step, and takes up the next, if it need not wait."""
        at, begins = self.at[number], self.played.begins[number]
        if at.step >= 0 and at.steps[at.step][1]:
            self.played.edges.append((self.now, number))
        at.step, at.left, at.until = at.step + 1, 0.0, math.inf
        if at.step == len(at.steps):
            at.step = -1
            if len(begins) >= self.jobs[number].rounds:
                begins.append(self.now)
                return
            at.until = self._slot(number, self.now)
            if at.until > self.now:
                return
            at.step = 0
        if at.step == 0:
            begins.append(self.now)
            at.part, at.of_part = 0, self._part_bytes(number)
        size, rate = at.steps[at.step]
        at.until, at.left = (math.inf, size) if rate else (self.now + size, 0.0)
        if rate:
            self.played.edges.append((self.now, number))

    def _slot(self, number: int, ready: float) -> float:
        """When an iteration begins that could begin at `ready`.

        The first at a new shift begins at the first slot that is not over. The next one's slot is the one after: a job
        that is early waits for it, one that is late begins at once. The slots that a job misses by a period or more
        are lost: its slot is the last that was.
        """
        at = self.at[number]
        if at.shift_s is None or (not self.pacing and at.slot is not None):
            return ready
        turns = (ready - at.shift_s) / at.period_s
        if at.slot is None:
            at.slot = math.ceil(turns - 1e-9)
        else:
            at.slot = max(at.slot + 1, math.floor(turns + 1e-9))
            late = ready - at.shift_s - at.slot * at.period_s
            if late > self.adjust * self.jobs[number].iteration_s:
                at.slot += 1
                self.played.adjustments[number] += 1
        return max(ready, at.shift_s + at.slot * at.period_s)
