"""Jobs that iterate on shared links without a queue, GPUs or, unless given, an end.

It is the simulator's `contention`, on a record of those fields alone: for closed forms, pictures, and steady states.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from ..base.arguments import checked_seed
from ..base.errors import InputError
from ..cluster.routes import LinkUse
from ..numerics.rounding import GRAIN
from ..profiles.phases import Phases
from ..record.contention_fields import MOST_PHASES, contention_fields
from ..record.field_axes import CHANCE, dtype_of
from . import network_calls as rows

# (jobs, links, uses): every shape compiles once.
SIZES = ((40, 264, 2056), (520, 4104, 32_776), (8200, 65_544, 524_296))
TRACE = 8192  # entries of the log, at least as many as jobs and some
SHORTEST_S = 1e-6
WARM_UP, AVERAGED = 10, 200  # iterations of `steady_state`
STEPS = 32  # of a weight that grows, in an iteration: an Up phase is within 0.2 % of none at all


@dataclass(frozen=True)
class Contender:
    """A job on a network.

    Attributes:
        phases: what it does alone; its rates are those of one flow, if links have room for them.
        use: its links and flows.
        shift_s: its iterations begin at this, modulo `period_s`, >= 0; None: as soon as they can.
        period_s: seconds, > 0; None: its iteration time alone on its links.
        begin_s: its first iteration may begin then, >= 0.
        rounds: iterations until it leaves, > 0; a fraction is run whole.
        weight: its rate beside that of others on a full link, > 0; rounded to whole 2^-20ths.
        priority: the highest goes first on a full link.
    """

    phases: Phases
    use: LinkUse
    shift_s: float | None = None
    period_s: float | None = None
    begin_s: float = 0.0
    rounds: float = math.inf
    weight: float = 1.0
    priority: int = 0


@dataclass(frozen=True)
class Growth:
    """Weights that grow with the bytes sent of an iteration: base + slope x that part, in `steps` equal steps, >= 1.

    base > 0, slope >= 0 (flows/max_min_weighted.py).
    """

    base: float
    slope: float
    steps: int = STEPS

    def write_into(self, state: np.void) -> None:
        """Modify the record: all weights grow so."""
        state["is_weighted"] = 1
        state["weight_base"], state["weight_slope"], state["weight_steps"] = self.base, self.slope, self.steps


class PhaseRun:
    """Jobs on links, from time 0 on, numbered as in the sequence; the lower number goes first."""

    def __init__(
        self,
        capacity: Sequence[float] | np.ndarray,
        jobs: Sequence[Contender],
        *,
        pacing: bool = True,
        adjust: float = math.inf,
        jitter: float = 0.0,
        carried: float = 1.0,
        growth: Growth | None = None,
        seed: int = 0,
        log: bool = False,
    ) -> None:
        """Nothing has happened yet.

        Args:
            capacity: bytes per second of each link, at least 1; rounded down to whole ones.
            pacing: a job with a shift begins every iteration at a slot; False: the first, then it runs free.
            adjust: an iteration later than its slot by more than this part of an iteration waits for the next slot;
                paper cassini has 0.05 (Sec. 5.7); inf: never.
            jitter: coefficient of variation of Down times, >= 0. seed: of the jitter.
            carried: what arrives of a link to which jobs offer more than fits, a part of its capacity, in (0, 1].
            growth: of the weights of all jobs; None: they have their own.
            log: keep every rate and duration, for `durations` and `timeline`.

        Raises:
            InputError: a number out of range, a link that is not there, or more than the largest record holds.
        """
        checked_seed(seed)
        self.jobs = tuple(jobs)
        self.capacity = np.floor(np.asarray(capacity, np.float64))
        self.carried = carried
        if self.capacity.ndim != 1 or not np.isfinite(self.capacity).all() or (self.capacity < 1).any():
            raise InputError(f"capacity {list(capacity)}: expected one finite number of at least 1 byte/s per link")
        if not adjust >= 0 or not 0 <= jitter < math.inf:
            raise InputError(f"adjust = {adjust!r}, jitter = {jitter!r}: expected numbers of at least 0")
        if not 0 < carried <= 1:
            raise InputError(f"carried = {carried!r}: expected a part above 0, at most 1")
        uses = sum(len(job.use.links) for job in self.jobs)
        self.records = np.zeros(1, _fitting(len(self.jobs), len(self.capacity), uses)).view(np.recarray)
        self._log: list[np.ndarray] = []
        rows.clear_links(self.records, 0, len(self.capacity), len(self.records["first_use"][0]))
        state = self.state
        state["link_capacity"][: len(self.capacity)] = state["link_whole"][: len(self.capacity)] = self.capacity
        state["link_overload_capacity"][: len(self.capacity)] = np.maximum(1.0, np.floor(self.capacity * carried))
        for name, value in {"pacing": pacing, "adjust": adjust, "jitter": jitter, "seed": seed, "tracing": log}.items():
            state[name] = value
        if growth is not None:
            growth.write_into(state)
        for number, job in enumerate(self.jobs):
            self._enter(number, job)

    def _enter(self, number: int, job: Contender) -> None:
        links, flows = job.use.links.astype(np.int64), job.use.flows.astype(np.float64)
        if len(links) and (links.min() < 0 or links.max() >= len(self.capacity) or not flows.min() >= GRAIN):
            raise InputError(f"job {number}: a link that is not there, or no flow on one")
        if not 0 <= job.begin_s < math.inf or not job.rounds > 0:
            raise InputError(f"job {number}: begin_s = {job.begin_s!r}, rounds = {job.rounds!r}, expected >= 0 and > 0")
        if not 0 < job.weight < math.inf:
            raise InputError(f"job {number}: weight = {job.weight!r}: expected a finite number above 0")
        write_phases(self.records[0], number, job.phases)
        rows.enter_links(self.records, 0, number, links, flows)
        if (job.weight, job.priority) != (1.0, 0):
            rows.set_importance(self.records, 0, number, float(job.weight), int(job.priority))
        self.state["rounds_left"][number] = job.rounds
        if job.shift_s is not None:
            self.shift(number, job.shift_s, job.period_s)
        rows.begin(self.records, 0, number, float(job.begin_s), 0.0)

    @property
    def state(self) -> np.record:
        """The record; see contention_fields.py."""
        return self.records[0]

    @property
    def now_s(self) -> float:
        """Until when it was played."""
        return float(self.state.phase_now_s)

    def shift(self, job: int, seconds: float, period_s: float | None = None) -> None:
        """From its next iteration on the job begins at `seconds` modulo its period; see `Contender`."""
        period_s = float(self.alone_s[job] if period_s is None else period_s)
        if not 0 <= seconds < math.inf or not 0 < period_s < math.inf:
            raise InputError(f"job {job}: shift = {seconds!r}, period = {period_s!r}, expected >= 0 and > 0 seconds")
        rows.set_shift(self.records, 0, job, float(seconds), period_s)

    def play(self, until_s: float) -> None:
        """Let time pass until then; jobs whose iterations are over leave. InputError: jobs that iterate for ever."""
        if not until_s < math.inf and any(job.rounds == math.inf for job in self.jobs):
            raise InputError(f"play until {until_s!r} s: expected a finite time, since there are jobs without an end")
        state = self.state
        while True:
            reached_s = rows.play(self.records, 0, float(until_s))
            ended, logged = int(state.ended_job), int(state.trace_count)
            if ended >= 0:
                rows.leave_links(self.records, 0, ended)
            elif logged == 0 and reached_s >= until_s:
                return
            self._take_log(logged)

    def _take_log(self, count: int) -> None:
        state = self.state
        columns = ("trace_s", "trace_job", "trace_rate", "trace_offered")
        self._log.append(np.array([state[column][:count] for column in columns], np.float64))
        state["trace_count"] = 0

    def _mine(self, name: str) -> np.ndarray:
        return np.array(self.state[name][: len(self.jobs)])

    @property
    def alone_s(self) -> np.ndarray:
        """Seconds of an iteration of each job with no other job on its links, float64 (n,)."""
        return self._mine("alone_s")

    @property
    def iterations(self) -> np.ndarray:
        """Whole iterations of each job so far, with their waits for slots, int64 (n,)."""
        return self._mine("job_rounds")

    @property
    def iteration_s(self) -> np.ndarray:
        """Mean seconds from the beginning of an iteration to that of the next, float64 (n,); nan: none is over."""
        return self._mean("job_rounds_s")

    @property
    def communication_s(self) -> np.ndarray:
        """Mean seconds in Up phases per iteration, float64 (n,); nan: no iteration is over."""
        return self._mean("job_up_s")

    def _mean(self, name: str) -> np.ndarray:
        count = self.iterations
        return np.divide(self._mine(name), count, out=np.full(len(count), np.nan), where=count > 0)

    @property
    def congestion_bytes(self) -> float:
        """Bytes offered above capacity, of all links."""
        return float(rows.congestion_now(self.records, 0))

    @property
    def job_congestion(self) -> np.ndarray:
        """Each job's part of them, float64 (n,)."""
        return np.array([rows.job_congestion_now(self.records, 0, job) for job in range(len(self.jobs))])

    @property
    def link_bytes(self) -> np.ndarray:
        """Bytes that have crossed each link, float64 (L,)."""
        return self._link_totals()[0]

    @property
    def link_congestion(self) -> np.ndarray:
        """Bytes offered to each link above its capacity, float64 (L,)."""
        return self._link_totals()[1]

    def _link_totals(self) -> tuple[np.ndarray, np.ndarray]:
        sent, congestion = np.zeros(len(self.capacity)), np.zeros(len(self.capacity))
        rows.link_totals(self.records, 0, sent, congestion)
        return sent, congestion

    @property
    def adjustments(self) -> int:
        """How often a job waited for the slot after; see `adjust`."""
        return int(self.state.adjustments)

    def log(self) -> np.ndarray:
        """Float64 (4, k), in order: seconds, job, rate of a flow and of its phase; -1: an iteration ended, duration."""
        return np.concatenate([np.zeros((4, 0)), *self._log], axis=1)

    @property
    def durations(self) -> list[np.ndarray]:
        """Seconds of the whole iterations of each job, in order; needs the log."""
        _, job, rate, seconds = self.log()
        return [seconds[(job == number) & (rate < 0)] for number in range(len(self.jobs))]

    def timeline(self, link: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Steps of a link: (seconds, offered, carried), float64 (k,) each, bytes per second; needs the log."""
        flows = np.array([job.use.flows[job.use.links == link].sum() for job in self.jobs], np.float64)
        when, job, rate, top = self.log()
        mine = (rate >= 0) & (flows[job.astype(int)] > 0)
        when, job, rate, top = when[mine], job[mine].astype(int), rate[mine], top[mine]
        carried, offered = np.zeros(len(when)), np.zeros(len(when))
        for number in np.unique(job):
            here = np.flatnonzero(job == number)
            carried[here] = flows[number] * np.diff(rate[here], prepend=0.0)
            offered[here] = flows[number] * np.diff(top[here], prepend=0.0)
        last = np.append(np.diff(when) > 0, True)[: len(when)]
        return when[last], offered.cumsum()[last], carried.cumsum()[last]


def write_phases(s: np.void, job: int, phases: Phases) -> None:
    """Modify `s`: the phases of a job, rates in whole bytes per second, durations as they are.

    InputError: more than MOST_PHASES Up phases, or an iteration shorter than a microsecond.
    """
    count = len(phases.rate)
    if count > MOST_PHASES:
        raise InputError(f"{phases}: {count} Up phases, expected at most {MOST_PHASES}")
    if phases.iteration_s < SHORTEST_S:
        raise InputError(f"{phases}: expected an iteration of at least {SHORTEST_S:g} seconds")
    starts, durations = np.array(phases.start_s, np.float64), np.array(phases.duration_s, np.float64)
    ends = starts + durations
    rates = np.maximum(1.0, np.rint(np.array(phases.rate, np.float64)))
    s["n_phases"][job] = count
    s["phase_down_s"][job, :count] = np.maximum(0.0, starts - np.concatenate([[0.0], ends])[:count])
    s["phase_rate"][job, :count] = rates
    s["phase_bytes"][job, :count] = rates * durations
    s["tail_s"][job] = max(0.0, phases.iteration_s - (ends[-1] if count else 0.0))


@cache
def _dtype(size: tuple[int, int, int]) -> np.dtype:
    return dtype_of([*CHANCE, *contention_fields(*size, trace=max(TRACE, 2 * size[0]))])


def _fitting(jobs: int, links: int, uses: int) -> np.dtype:
    for size in SIZES:
        if jobs <= size[0] and links <= size[1] and uses <= size[2]:
            return _dtype(size)
    raise InputError(f"{jobs} jobs on {links} links, {uses} uses: one run holds at most {SIZES[-1]}")


@dataclass(frozen=True)
class SteadyState:
    """Averages of jobs that go on together; arrays of n jobs and L links.

    Attributes:
        iteration_s, communication_s: mean seconds of an iteration, and of its Up phases, (n,).
        job_congestion, link_congestion: bytes per second, (n,) and (L,).
    """

    iteration_s: np.ndarray
    communication_s: np.ndarray
    job_congestion: np.ndarray
    link_congestion: np.ndarray


def steady_state(
    capacity: Sequence[float] | np.ndarray,
    jobs: Sequence[Contender],
    warm_up: int = WARM_UP,
    averaged: int = AVERAGED,
    *,
    pacing: bool = True,
    adjust: float = math.inf,
    jitter: float = 0.0,
    carried: float = 1.0,
    growth: Growth | None = None,
    seed: int = 0,
) -> SteadyState:
    """The averages over `averaged` iterations of the job with the longest ones, after `warm_up` of them.

    200 iterations give mean iteration times of free jobs to 0.3 %, of harmonic ones to 1.2 %. Jobs must run for ever.
    """
    run = PhaseRun(
        capacity, jobs, pacing=pacing, adjust=adjust, jitter=jitter, carried=carried, growth=growth, seed=seed
    )
    if any(job.rounds < math.inf for job in run.jobs):
        raise InputError("steady state: expected jobs without an end")
    _play_rounds(run, warm_up)
    state = run.state
    names = ("job_rounds", "job_rounds_s", "job_up_s")
    before = [np.array(state[name][: len(run.jobs)]) for name in names]
    congestion = run.now_s, run.job_congestion, run.link_congestion
    _play_rounds(run, averaged + int(before[0].min(initial=0)))
    count, seconds, up_s = (np.array(state[key][: len(run.jobs)]) - old for key, old in zip(names, before, strict=True))
    spent_s = max(run.now_s - congestion[0], math.ulp(1.0))
    return SteadyState(
        iteration_s=seconds / count,
        communication_s=up_s / count,
        job_congestion=(run.job_congestion - congestion[1]) / spent_s,
        link_congestion=(run.link_congestion - congestion[2]) / spent_s,
    )


def _sums(run: PhaseRun) -> np.ndarray:
    return np.array([run.state[name][: len(run.jobs)] for name in ("job_rounds", "job_rounds_s", "job_up_s")])


def _play_rounds(run: PhaseRun, rounds: int) -> None:
    step_s = float(run.alone_s.max(initial=0.0))
    while run.iterations.min(initial=rounds) < rounds:
        run.play(run.now_s + step_s * max(1, rounds - int(run.iterations.min())))
