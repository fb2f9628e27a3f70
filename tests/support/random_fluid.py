"""Random cases of link contention, played by our simulator and by the reference, and how far the two are apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from clustergym.simulator.cluster.routes import LinkUse
from clustergym.simulator.contention import network_calls as rows
from clustergym.simulator.contention.phase_run import Contender, Growth, PhaseRun
from clustergym.simulator.profiles.phases import Phases
from clustergym.tests.support.fluid_reference import FluidJob, FluidPlay, Played

GBPS = 1e9 / 8  # bytes per second

Change = tuple[float, str, int, tuple[Any, ...]]  # at, what: a method of FluidPlay, of which job or link, with what


@dataclass
class Case:
    """Jobs on links of so many bytes per second, what changes on the way, and the terms of the play."""

    capacity: np.ndarray
    jobs: list[FluidJob]
    changes: tuple[Change, ...] = ()
    terms: dict[str, Any] = field(default_factory=dict)

    def by_us(self, until_s: float, **terms: Any) -> PhaseRun:
        """Play it by our simulator."""
        terms = self.terms | terms
        if "growth" in terms:
            terms["growth"] = Growth(*terms["growth"])
        run = Ours(self.capacity, [contender(job) for job in self.jobs], log=True, **terms)
        return self._play(run, until_s)

    def by_reference(self, until_s: float, **terms: Any) -> Played:
        """Play it by the reference."""
        return self._play(FluidPlay(self.capacity, self.jobs, **(self.terms | terms)), until_s).played

    def _play(self, play: Any, until_s: float) -> Any:
        for at_s, what, number, given in self.changes:
            play.play(at_s)
            getattr(play, what)(number, *given)
        play.play(until_s)
        return play

    def in_order(self, order: Sequence[int]) -> Case:
        """The same jobs in other rows: first that which is `order[0]` here."""
        row = {job: place for place, job in enumerate(order)}
        changes = tuple(
            (at_s, what, number if what == "scale" else row[number], given)
            for at_s, what, number, given in self.changes
        )
        return replace(self, jobs=[self.jobs[job] for job in order], changes=changes)


class Ours(PhaseRun):
    """Our simulator, with the changes of a case by the names that the reference has for them."""

    def scale(self, link: int, part: float) -> None:
        """See FluidPlay."""
        now = max(1.0, float(np.floor(self.capacity[link] * part)))
        rows.set_capacity(self.records, 0, link, now, max(1.0, float(np.floor(now * self.carried))))

    def lead(self, job: int, flows: tuple[float, ...]) -> None:
        """See FluidPlay."""
        if self.state.first_use[job] >= 0 or self.state.cut_off[job]:
            used = use_of(flows)
            assert rows.reroute(self.records, 0, job, used.links, used.flows)

    def rank(self, job: int, weight: float, priority: int) -> None:
        """See FluidPlay."""
        rows.set_importance(self.records, 0, job, weight, priority)


def use_of(flows: tuple[float, ...]) -> LinkUse:
    """Streams on all links as our simulator takes them."""
    streams = np.array(flows, float)
    return LinkUse(np.flatnonzero(streams), streams[streams > 0])


def contender(job: FluidJob) -> Contender:
    """A job as our simulator takes it."""
    starts, durations, rates = zip(*job.ups, strict=True)
    return Contender(
        Phases(job.iteration_s, starts, durations, rates),
        use_of(job.flows),
        job.shift_s,
        job.period_s,
        job.begin_s,
        job.rounds,
        job.weight,
        job.priority,
    )


def draw(seed: int, links: int = 6) -> Case:
    """2 to 8 jobs of 1 to 3 Up phases on up to so many links of 25 to 100 Gbps, by 1/3 to 2 streams on a link.

    Iterations are free (100 to 500 ms) or harmonic (100, 200, 300 or 400 ms), and all jobs run free, or shifted at
    their own period, or at one that is padded: by up to a tenth, or to whole tenths of a second where harmonic.
    """
    rng = np.random.default_rng(seed)
    capacity = rng.uniform(25, 100, rng.integers(1, links + 1)) * GBPS
    harmonic, shifts = bool(rng.integers(2)), rng.choice(["free", "shifted", "padded"])
    jobs = []
    for _ in range(rng.integers(2, 9)):
        iteration_s = 0.1 * float(rng.integers(1, 5)) if harmonic else float(rng.uniform(0.1, 0.5))
        job = FluidJob(iteration_s, draw_ups(rng, iteration_s), draw_flows(rng, len(capacity)))
        alone_s = job.alone(capacity).iteration_s
        padded_s = 0.1 * math.ceil(10 * alone_s - 1e-9) if harmonic else alone_s * float(rng.uniform(1.0, 1.1))
        period_s = padded_s if shifts == "padded" else alone_s
        shift_s = None if shifts == "free" else float(rng.uniform(0, period_s))
        jobs.append(replace(job, shift_s=shift_s, period_s=period_s, begin_s=float(rng.uniform(0, iteration_s))))
    return Case(capacity, jobs)


def draw_ups(rng: np.random.Generator, iteration_s: float) -> tuple[tuple[float, float, float], ...]:
    """1 to 3 Up phases of 15 to 50 Gbps; of three iterations in ten the first begins with the iteration."""
    edges = np.sort(rng.uniform(0, iteration_s, 2 * rng.integers(1, 4)))
    edges[0] *= rng.random() >= 0.3
    return tuple(
        (float(start), float(end - start), float(rng.uniform(15, 50) * GBPS))
        for start, end in zip(edges[::2], edges[1::2], strict=True)
    )


def draw_flows(rng: np.random.Generator, links: int) -> tuple[float, ...]:
    """Streams on some of the links, at least one; of an all-to-all of 4 a third, as a whole number of 4096ths."""
    used = rng.random(links) < rng.uniform(0.2, 0.8)
    used[rng.integers(links)] = True
    streams = rng.choice([1.0, 1.0, 1.0, 2.0, 0.5, 1365 / 4096], links)
    return tuple(float(each) for each in used * streams)


def with_departures(case: Case, seed: int) -> Case:
    """Jobs come within 3 s, and leave after 1 to 14 iterations."""
    rng = np.random.default_rng(seed)
    jobs = [replace(j, begin_s=float(rng.uniform(0, 3)), rounds=float(rng.integers(1, 15))) for j in case.jobs]
    return replace(case, jobs=jobs)


def with_decisions(case: Case, seed: int) -> Case:
    """Every half second a job gets another shift, at a period that is shorter or longer than its iteration alone."""
    rng = np.random.default_rng(seed)
    given = []
    for at_s in np.arange(0.5, 6.0, 0.5):
        job = int(rng.integers(len(case.jobs)))
        period_s = case.jobs[job].alone(case.capacity).iteration_s * float(rng.uniform(0.5, 1.5))
        given.append((float(at_s), "shift", job, (float(rng.uniform(0, 2 * period_s)), period_s)))
    return replace(case, changes=tuple(given))


@dataclass
class Apart:
    """How far two plays of a case are apart.

    Attributes:
        iterations: how many there were. near_misses: see `Played`.
        worst: the largest relative difference of one of them; inf: one play has more of them.
        carried, waited: bytes that crossed a link, and those of a job that had to wait, between the least and the most
            that they can be: the largest difference as a part of what the largest link could carry.
        stalled_s: by how much the seconds differ in which jobs had no way.
        adjustments: how often jobs waited for the slot after theirs: ours, and by the reference.
    """

    iterations: int
    near_misses: int
    worst: float
    carried: float
    waited: float
    stalled_s: float
    adjustments: tuple[int, int]


def compare(case: Case, until_s: float, **terms: Any) -> Apart:
    """Our play of a case against that of the reference."""
    run, played = case.by_us(until_s, **terms), case.by_reference(until_s, **terms)
    pairs = [(ours, played.durations(job)) for job, ours in enumerate(run.durations)]
    could = until_s * case.capacity.max()
    return Apart(
        sum(len(theirs) for _, theirs in pairs),
        played.near_misses(),
        max(relative(ours, theirs) for ours, theirs in pairs),
        float(np.abs(run.link_bytes - played.carried).max() / could),
        float(np.maximum(played.waited - run.job_congestion, run.job_congestion - played.waited_most).max() / could),
        float(abs(run.state.stalled_s - played.stalled_s)),
        (int(run.adjustments), sum(played.adjustments)),
    )


def relative(ours: np.ndarray, theirs: np.ndarray) -> float:
    """By what part of it one of them differs at most."""
    return float(np.abs(ours / theirs - 1).max(initial=0.0)) if len(ours) == len(theirs) else math.inf
