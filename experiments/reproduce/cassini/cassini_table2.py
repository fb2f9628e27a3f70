"""Paper cassini: Table 2 and Figure 17: five snapshots of jobs on one link, and how often their shifts are adjusted.

The table has neither iteration times nor numbers of workers. Communication follows the ring of four workers, as the job
of Figure 1(a) has. Computing follows one rule for all snapshots, in proportion to batch and GFLOPS, anchored at the 141
ms that VGG16 computes of 255 ms in Figure 3 (profiles/cassini_models.py). `at_iteration` replaces it by one iteration
time for all jobs of a snapshot, which the rows with "chosen" have: of the widest interval of times at which all
communication times with shifts are within 10 %, the one nearest to the longest of the rule. `at_published_times` is a
third reading: two workers a job, and an Up phase that takes the published time with shifts, so that its rate is the
ring's bytes over that. It computes by the rule; its times with shifts are no result where no jobs meet, and what is
compared are those without.

`congestion` asks whether a contended link carries less than its capacity: the option `carried` of network contention is
the part that arrives when more is offered than fits. Losses to congestion (marks, slow senders, retransmissions) would
be such a part below 1; "roughly 22 Gbps (i.e., half of l1's capacity)" for each of two jobs (Sec. 2.2) is 0.88 of our
50 Gbps. The iteration times of a snapshot are those that are chosen by its times with shifts, where nothing is lost.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ....simulator.contention.circle import Circle, unify
from ....simulator.contention.phase_run import PhaseRun
from ....simulator.profiles.cassini_models import GBPS, phases_of
from ....simulator.profiles.phases import Phases, in_order
from ...comparing.intervals import estimate
from ..engine import Play, RowContext
from ..rows import Row, bounded, order, printed, table
from ..schema import Line
from .cassini_links import (
    LINK,
    MEASURED,
    PAIR_BATCH,
    PAIR_GAIN,
    PAIR_WORKERS,
    from_random_offsets,
    pair_gain,
    rotated,
    shifted,
    steady,
)

WORKERS, FEWER_WORKERS = 4, 2
PADDING = 0.15  # what a job may wait for its slot: the least at which the two of snapshot 1 have one period by the rule
TOLERANCE = 0.10
SHORTEST_MS, LONGEST_MS = 200, 600  # iteration times that are tried
CLAIMED = (1, 2, 3, 4)  # snapshots whose communication times are compared; of the fifth only what shifts gain
WITH, WITHOUT, GAIN = "with", "without", "gain"  # shifts: which times of a snapshot are compared, or what they gain
FREE = "ResNet50"  # whose communication time is only printed
LITTLE = 5.0  # per cent that shifts gain at most in snapshot 5
QUICK_OFFSETS = {"cassini-table2": 10, "cassini-congestion": 5}
ADJUSTED = 3  # the first snapshots
MINUTES = 30.0
JITTERS = (0.001, 0.005, 0.01)
HEADROOMS = (0.0, 0.02, 0.05)
CLAIMED_JITTER, CLAIMED_HEADROOM = 0.01, 0.02
TRIGGER, ADJUSTMENTS = 0.05, 2.0  # Figure 17: of the iteration; adjustments a minute, at most
PARTS = (1.0, 0.95, 0.88, 0.7, 0.5, 0.45)  # 0.45: about what a bound of 1.6 on the paper's traces would take


@dataclass(frozen=True)
class SnapshotJob:
    """A row of Table 2: mean communication time of an iteration, seconds, with time-shifts and without."""

    model: str
    batch: int
    shift_s: float
    with_s: float
    without_s: float


@dataclass(frozen=True)
class Snapshot:
    """Jobs that share a link from the start (Table 2), and their compatibility score."""

    number: int
    score: float
    jobs: tuple[SnapshotJob, ...]

    @property
    def names(self) -> list[str]:
        """What to call its jobs: by model and batch, and where several have the same by their place, too."""
        names = [f"{job.model} ({job.batch})" for job in self.jobs]
        return [name if names.count(name) == 1 else f"{name}, job {i}" for i, name in enumerate(names, 1)]


def snapshots(play: Play) -> list[Snapshot]:
    """Those that the paper's file has."""
    rows = play.paper.reproductions["cassini-table2"].rows[0].paper
    return [
        Snapshot(number, score, tuple(SnapshotJob(*job[:2], *(ms / 1e3 for ms in job[2:])) for job in jobs))
        for number, (score, *jobs) in enumerate(rows, 1)
    ]


def by_rule(snapshot: Snapshot) -> list[Phases]:
    """The phases of its jobs alone, by the rule."""
    return [phases_of(job.model, WORKERS, job.batch) for job in snapshot.jobs]


def at_iteration(snapshot: Snapshot, iteration_s: float) -> list[Phases]:
    """The same Up phases, and as much computing as makes every iteration so long."""
    return [in_order([(iteration_s - one.up_s, 0.0), (one.up_s, one.rate[0])]) for one in by_rule(snapshot)]


def at_published_times(snapshot: Snapshot) -> list[Phases]:
    """The jobs on two workers, computing by the rule, their rings' bytes sent in the published times with shifts."""
    jobs = [(phases_of(job.model, FEWER_WORKERS, job.batch), job.with_s) for job in snapshot.jobs]
    return [in_order([(one.iteration_s - one.up_s, 0.0), (up_s, one.bytes / up_s)]) for one, up_s in jobs]


@dataclass(frozen=True)
class Shifted:
    """A snapshot with time-shifts: score, shifts, periods and communication times, seconds."""

    phases: tuple[Phases, ...]
    periods_s: tuple[float, ...]
    score: float
    shifts_s: tuple[float, ...]
    communication_s: tuple[float, ...]


def play(phases: Sequence[Phases]) -> Shifted:
    """The best rotations of jobs on one link, and what they do then."""
    circle = unify([one.iteration_s for one in phases], PADDING)
    found = rotated(phases, circle)
    spent_s = steady(shifted(phases, found, circle)).communication_s
    return Shifted(tuple(phases), circle.periods_s, found.scores[0], found.shifts_s, tuple(spent_s.tolist()))


def misses(snapshot: Snapshot, played: Shifted) -> int:
    """How many of its communication times with shifts are off by more than 10 %; ResNet50's does not count."""
    return sum(
        abs(ours / job.with_s - 1.0) > TOLERANCE
        for job, ours in zip(snapshot.jobs, played.communication_s, strict=True)
        if job.model != FREE
    )


@functools.cache
def satisfying_ms(snapshot: Snapshot, step_ms: int = 1) -> tuple[int, ...]:
    """The iteration times, whole milliseconds, at which a snapshot's communication times are all within 10 %."""
    tried = range(SHORTEST_MS, LONGEST_MS + 1, step_ms)
    return tuple(time for time in tried if not misses(snapshot, play(at_iteration(snapshot, time / 1e3))))


def longest_ms(snapshot: Snapshot) -> float:
    """The longest iteration time of a snapshot by the rule."""
    return 1e3 * max(one.iteration_s for one in by_rule(snapshot))


def chosen_ms(snapshot: Snapshot, step_ms: int = 1) -> tuple[int, int, int]:
    """The chosen iteration time, and the interval that it is of: the widest of those that satisfy.

    Where none does, the longest of the rule, rounded, three times.
    """
    runs: list[list[int]] = []
    for time in satisfying_ms(snapshot, step_ms) or (round(longest_ms(snapshot)),):
        if runs and time == runs[-1][-1] + step_ms:
            runs[-1].append(time)
        else:
            runs.append([time])
    widest = max(runs, key=len)
    return min(widest, key=lambda time: abs(time - longest_ms(snapshot))), widest[0], widest[-1]


def table2(play: Play, line: Line, here: RowContext) -> Iterator[Row]:
    """Scores, shifts and communication times of the five snapshots."""
    seeds, step_ms = _seeds(play), 10 if play.options.quick else 1
    for snapshot in snapshots(play):
        claimed, name = snapshot.number in CLAIMED, f"snapshot {snapshot.number}"
        yield from _rows_of(snapshot, "rule", by_rule(snapshot), WITH if claimed else GAIN, seeds)
        if claimed:
            chosen, low, high = chosen_ms(snapshot, step_ms)
            more = " (the longest tried)" if high + step_ms > LONGEST_MS else ""
            yield printed(f"{name}: iteration time, longest by the rule", longest_ms(snapshot), "ms")
            yield printed(f"{name}: iteration time, shortest that satisfies", low, "ms")
            yield printed(f"{name}: iteration time, longest that satisfies{more}", high, "ms")
            yield from _rows_of(snapshot, f"chosen {chosen} ms", at_iteration(snapshot, chosen / 1e3), WITH, seeds)
        fewer = at_published_times(snapshot)
        for job, one in zip(snapshot.names, fewer, strict=True):
            yield printed(f"{name}, two workers: {job}, rate", one.rate[-1] / GBPS, "Gbps")
        yield from _rows_of(snapshot, "two workers", fewer, WITHOUT if claimed else GAIN, seeds)


def _seeds(play: Play) -> tuple[int, ...]:
    return play.options.seeds(QUICK_OFFSETS[play.name] if play.options.quick else play.count)


def _rows_of(
    snapshot: Snapshot, how: str, phases: Sequence[Phases], compared: str, seeds: Sequence[int]
) -> Iterator[Row]:
    played = play(phases)
    free = np.array([one.communication_s for one in from_random_offsets(phases, seeds)])
    name = f"snapshot {snapshot.number}, {how}"
    measured = rotated(phases, unify([one.iteration_s for one in phases], PADDING), MEASURED).scores[0]
    yield Row(f"{name}: score", snapshot.score, played.score)
    yield Row(f"{name}: score on a link of 45 Gbps", snapshot.score, measured)
    for place, job in enumerate(snapshot.jobs):
        what = f"{name}: {snapshot.names[place]}"
        with_s, without_s = played.communication_s[place], free[:, place]
        yield Row(f"{what}, time-shift", 1e3 * job.shift_s, 1e3 * played.shifts_s[place], unit="ms")
        for kind, time, paper_s, ours in (
            (WITH, "communication with shifts", job.with_s, 1e3 * with_s),
            (WITHOUT, "without", job.without_s, estimate((1e3 * without_s).tolist())),
        ):
            found = table(f"{what}, {time}", 1e3 * paper_s, ours, "ms", TOLERANCE)
            found = replace(found, cell=(name, snapshot.names[place], time))
            yield found if kind == compared and job.model != FREE else replace(found, within=None)
        yield printed(f"{what}, without: least", 1e3 * float(without_s.min()), "ms")
        yield printed(f"{what}, without: most", 1e3 * float(without_s.max()), "ms")
        if compared == GAIN:
            gain = 100.0 * (float(without_s.mean()) / with_s - 1.0)
            yield Row(f"{what}, what shifts gain", "under 5", gain, (-math.inf, LITTLE), unit="%")


def adjustments(play: Play) -> Iterator[Row]:
    """How often a job waits for the slot after, a minute, when Down times jitter."""
    quick = play.options.quick
    minutes, step_ms = 2.0 if quick else MINUTES, 10 if quick else 1
    for snapshot in snapshots(play)[:ADJUSTED]:
        chosen, _, _ = chosen_ms(snapshot, step_ms)
        for headroom in HEADROOMS:
            for jitter in JITTERS:
                found, slower = _adjusted(snapshot, chosen / 1e3, headroom, jitter, minutes, play.options.seed)
                what = f"snapshot {snapshot.number}, headroom {100 * headroom:g} %, jitter {100 * jitter:g} %"
                claimed = (headroom, jitter) == (CLAIMED_HEADROOM, CLAIMED_JITTER)
                within = (0.0, ADJUSTMENTS) if claimed else None
                yield Row(f"{what}: adjustments a minute", "under 2", found, within)
                yield printed(f"{what}: iteration over that alone", slower, "x")


def _adjusted(
    snapshot: Snapshot, iteration_s: float, headroom: float, jitter: float, minutes: float, seed: int
) -> tuple[float, float]:
    """Adjustments a minute and job, and the mean iteration over that alone."""
    phases = at_iteration(snapshot, iteration_s)
    circle = Circle((1.0 + headroom) * iteration_s, (1,) * len(phases))
    jobs = shifted(phases, rotated(phases, circle), circle)
    run = PhaseRun([LINK], jobs, adjust=TRIGGER, jitter=jitter, seed=seed)
    run.play(60.0 * minutes)
    return run.adjustments / minutes / len(jobs), float(run.iteration_s.mean()) / iteration_s


def congestion(play: Play) -> Iterator[Row]:
    """Figure 2's gain and Table 2's communication times without shifts, by how much of a contended link arrives."""
    seeds, step_ms, known = _seeds(play), 20 if play.options.quick else 2, snapshots(play)
    misses: dict[float, float] = {}
    for part in PARTS:
        gain = pair_gain(PAIR_WORKERS, PAIR_BATCH, part)
        yield Row(f"carried {part:g}: Figure 2, at once over shifted", PAIR_GAIN, gain, unit="x")
        off = []
        for snapshot in known:
            spent_s = without_shifts_s(snapshot, step_ms, seeds, part)
            for job, name, ours_s in zip(snapshot.jobs, snapshot.names, spent_s.tolist(), strict=True):
                what = f"carried {part:g}: snapshot {snapshot.number}, {name}, without shifts"
                yield Row(what, 1e3 * job.without_s, 1e3 * ours_s, unit="ms")
                off += [] if job.model == FREE else [ours_s / job.without_s - 1.0]
        misses[part] = math.sqrt(float(np.mean(np.square(off))))
        yield printed(f"carried {part:g}: root mean square of the misses of Table 2", 100.0 * misses[part], "%")
    for part in PARTS[1:]:
        what = f"Table 2's misses, carried {part:g} / carried 1"
        yield order(what, "none fits better", misses[part] / misses[1.0], below=False)
    bounds = tuple(1.0 + by * (PAIR_GAIN - 1.0) for by in (0.75, 1.25))
    yield bounded("Figure 2, carried 1", "1.26", pair_gain(PAIR_WORKERS, PAIR_BATCH, 1.0), (bounds[0], bounds[1]))


def without_shifts_s(snapshot: Snapshot, step_ms: int, seeds: tuple[int, ...], carried: float) -> np.ndarray:
    """Mean communication time of each job of a snapshot at random start offsets, seconds, float64 (jobs,)."""
    phases = at_iteration(snapshot, chosen_ms(snapshot, step_ms)[0] / 1e3)
    return np.array([one.communication_s for one in from_random_offsets(phases, seeds, carried)]).mean(axis=0)
