"""Reference of link contention: jobs that iterate on links, as docs/concepts/network.md says, in plain numpy.

Written from that page by somebody who has not read the kernels, and it shares no code with them; what the page left
open was asked of the simulator, and is on the page now. Rates are real numbers here and whole bytes per second there:
two plays of one case are about 1e-10 apart at first. Who comes first where two jobs nearly miss each other hangs on the
last digits, so they part in the end, as two plays of this one do whose capacities differ by 1e-9.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np


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
    """

    iteration_s: float
    ups: tuple[tuple[float, float, float], ...]
    flows: tuple[float, ...]
    shift_s: float | None = None
    period_s: float | None = None
    begin_s: float = 0.0
    rounds: float = math.inf

    def alone(self, capacity: np.ndarray) -> FluidJob:
        """The same where it is alone on its links: Up phases that have too little room are longer, and slower."""
        flows = np.array(self.flows)
        room = float(min(capacity[flows > 0] / flows[flows > 0], default=math.inf))
        ups, longer = [], 0.0
        for start, duration, rate in self.ups:
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
        waited: bytes of each job that had to wait: offered above what it got, at the one link that held it back, (J,).
        carried: bytes that crossed each link, (L,).
    """

    begins: list[list[float]]
    adjustments: list[int]
    waited: np.ndarray
    carried: np.ndarray

    def durations(self, job: int) -> np.ndarray:
        """Seconds from the beginning of an iteration to that of the next: a wait for a slot is of the one before."""
        return np.diff(self.begins[job])


@dataclass
class _Present:
    """Where a job is: in a step until `until`, or with `left` bytes of a flow; step -1: it has yet to begin."""

    steps: list[tuple[float, float]]
    shift_s: float | None
    period_s: float
    until: float
    step: int = -1
    left: float = 0.0
    slot: int | None = None  # of its last iteration; None: none was at a slot of this shift


def max_min(demand: np.ndarray, flows: np.ndarray, capacity: np.ndarray) -> np.ndarray:
    """Max-min fair rates: those of all flows grow alike until a job has what it wants or a link of its is full.

    Args:
        demand: bytes per second that a flow of each job would send, (J,).
        flows: how many of them cross each link, (J, L).
        capacity: bytes per second, (L,).
    """
    rate, growing, room = np.zeros(len(demand)), demand > 0, capacity.astype(float)
    while growing.any():
        load = flows[growing].sum(axis=0)
        each = np.full(len(capacity), math.inf)
        each[load > 0] = room[load > 0] / load[load > 0]
        step = min((demand - rate)[growing].min(), each.min())
        rate[growing] += step
        room = room - step * load
        full = each <= step * (1 + 1e-12)
        growing = growing & (demand - rate > 1e-12 * demand) & ~(flows[:, full] > 0).any(axis=1)
    return rate


def held_back(demand: np.ndarray, rate: np.ndarray, flows: np.ndarray, capacity: np.ndarray) -> np.ndarray:
    """How many flows of each job cross the link that holds it back, (J,); 0: none does.

    That link is full, and nobody's flows are faster there; of several the first.
    """
    full = rate @ flows >= capacity * (1 - 1e-9)
    fastest = np.max(rate[:, None] * (flows > 0), axis=0)
    holds = (flows > 0) & full & (rate[:, None] >= fastest * (1 - 1e-9)) & (demand > rate * (1 + 1e-9))[:, None]
    return np.where(holds.any(axis=1), flows[np.arange(len(rate)), holds.argmax(axis=1)], 0)


class FluidPlay:
    """Jobs on links, from time 0 on.

    Args:
        capacity: bytes per second of each link.
        pacing: a job with a shift begins every iteration at a slot; False: only the first.
        adjust: an iteration that would begin later than its slot by more than this part of an iteration alone waits
            for the next slot.
        carried: what a link to which more is offered than fits has left of its capacity.
    """

    def __init__(
        self,
        capacity: np.ndarray,
        jobs: list[FluidJob],
        pacing: bool = True,
        adjust: float = math.inf,
        carried: float = 1.0,
    ):
        self.capacity, self.pacing, self.adjust, self.now = np.asarray(capacity, float), pacing, adjust, 0.0
        self.part = carried
        self.jobs = [job.alone(self.capacity) for job in jobs]
        self.flows = np.array([job.flows for job in jobs])
        self.waiting = np.zeros(len(jobs))
        self.played = Played([[] for _ in jobs], [0] * len(jobs), np.zeros(len(jobs)), np.zeros(len(self.capacity)))
        self.at = [_Present(job.steps(), job.shift_s, job.period_s, job.begin_s) for job in self.jobs]
        for number, job in enumerate(self.jobs):
            self.shift(number, job.shift_s, job.period_s)

    def shift(self, number: int, seconds: float | None, period_s: float) -> None:
        """From its next iteration on a job begins at `seconds` modulo its period, or None: whenever it can.

        The next one is that which it waits to begin, if it does.
        """
        at = self.at[number]
        at.shift_s, at.period_s, at.slot = seconds, period_s, None
        if at.step < 0:
            at.until = self._slot(number, max(self.now, self.jobs[number].begin_s))

    def play(self, until_s: float) -> Played:
        """Let time pass until then; what happens at that instant still does."""
        while True:
            rate, ends = self._rates()
            then = min(*ends, until_s)
            self._send(rate, then)
            due = [number for number, end in enumerate(ends) if end <= then]
            if not due:
                return self.played
            for number in due:
                self._enter(number)

    def _rates(self) -> tuple[np.ndarray, list[float]]:
        """The rate of a flow of each job, and when each is through with its step."""
        demand = np.array([at.steps[at.step][1] if at.left > 0 else 0.0 for at in self.at])
        crowded = demand @ self.flows > self.capacity * (1 + 1e-9)
        capacity = np.where(crowded, self.part * self.capacity, self.capacity)
        rate = max_min(demand, self.flows, capacity)
        self.waiting = (demand - rate) * held_back(demand, rate, self.flows, capacity)
        return rate, [self.now + at.left / r if r else at.until for at, r in zip(self.at, rate, strict=True)]

    def _send(self, rate: np.ndarray, then: float) -> None:
        """Send at these rates until then."""
        seconds = then - self.now
        self.played.waited += self.waiting * seconds
        self.played.carried += rate @ self.flows * seconds
        for at, r in zip(self.at, rate, strict=True):
            at.left = max(0.0, at.left - r * seconds)
        self.now = then

    def _enter(self, number: int) -> None:
        """A job is through with its step, and takes up the next, if it need not wait."""
        at, begins = self.at[number], self.played.begins[number]
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
        size, rate = at.steps[at.step]
        at.until, at.left = (math.inf, size) if rate else (self.now + size, 0.0)

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
