"""Two policies on the same workload, decision by decision: their first difference, and all later ones.

Decisions of one instant are a set without order. Of GPUs only their machines count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...simulator.base.errors import InputError
from ..playing.recording import Timeline
from ..playing.runs import Run
from .load import Section

GPU = re.compile(r"(.*\d+\.\d+)\.\d+")  # a label, without the GPU's own number the machine's
OPENING = ("start", "migrate", "resize")  # decisions that open a stretch of a timeline, in its order


class Decision(NamedTuple):
    """One recorded decision."""

    time_s: float  # by the run's clock
    job: str  # its name, or another subject of the decision
    kind: str  # `start`, `preempt`, ...
    place: str  # the machines and the number of GPUs of each, or another place
    shift: str = ""  # seconds, of a shift
    why: str = ""  # the policy's reason

    @property
    def what(self) -> tuple[str, str, str, str]:
        """All but time and reason: equal for the same decision."""
        return self.job, self.kind, self.place, self.shift

    @property
    def words(self) -> str:
        """In words: `start 17 on 0.1 x 8`."""
        where = f" on {self.place}" if self.place else ""
        return f"{self.kind} {self.job}{where}{f' by {float(self.shift):g} s' if self.shift else ''}"


@dataclass(frozen=True)
class Instant:
    """The decisions of two policies at one time."""

    time_s: float  # since the first arrival
    common: int  # number of decisions that are the same
    first: tuple[Decision, ...]  # the other decisions of each
    second: tuple[Decision, ...]

    @property
    def differs(self) -> bool:
        """Whether not all are the same."""
        return bool(self.first or self.second)


class KindCount(NamedTuple):
    """Counts of decisions of a kind: a job's first start is compared with its first start, and so on."""

    kind: str
    same: int  # at the same time, in the same place
    other_time: int
    other_place: int
    other_both: int
    only_first: int  # the other policy made no such decision
    only_second: int

    @property
    def differing(self) -> int:
        """All that are not the same."""
        return sum(self[2:])


class JobDifference(NamedTuple):
    """A job's completion time under both policies, seconds; inf: it did not finish. `gain_s`: first - second."""

    job: str
    first_s: float
    second_s: float
    gain_s: float


@dataclass(frozen=True)
class Episodes:
    """Two runs of one workload."""

    labels: tuple[str, str]  # of the two policies
    seed: int  # of both runs
    runs: tuple[Run, Run]
    same_for: int  # decisions until the first that differs, or all
    instants: tuple[Instant, ...]  # times of differences, in order
    kinds: tuple[KindCount, ...]  # of all decisions, most differing first
    jobs: tuple[JobDifference, ...]  # that end at another time, the largest difference first
    sooner: tuple[int, int, int]  # jobs that end sooner under the first policy, under the second, and at the same time

    @property
    def parting(self) -> Instant | None:
        """The first instant that differs."""
        return self.instants[0] if self.instants else None

    @property
    def has_reasons(self) -> bool:
        """Whether some decision has a reason."""
        return any(one.why for instant in self.instants for one in (*instant.first, *instant.second))

    @property
    def timelines(self) -> tuple[Timeline, Timeline]:
        """The timelines of both."""
        return _timelines(self.runs)


def chosen(section: Section, wanted: tuple[str, str] | None = None, seed: int | None = None) -> Episodes | None:
    """Two recorded runs of a section, compared: of `wanted` labels or words, or of the best and the baseline.

    They are of `seed`, or of the first seed of both. None: no two policies were recorded on the same seed, or a wanted
    one was not played. InputError: a wanted policy was played, but not recorded.
    """
    entries = section.entries
    recorded = {one.label: {run.seed: run for run in one.runs if run.timeline is not None} for one in entries}
    one, other = _usual(section, recorded) if wanted is None else (_label(section, word) for word in wanted)
    if one is None or other is None:
        return None
    both = sorted(recorded[one].keys() & recorded[other].keys())
    if not both or (seed is not None and seed not in both):
        if wanted is None and seed is None:
            return None
        raise InputError(_not_recorded((one, other), [sorted(recorded[label]) for label in (one, other)], seed))
    at = both[0] if seed is None else seed
    return compared((one, other), (recorded[one][at], recorded[other][at]))


def _label(section: Section, word: str) -> str | None:
    return next((entry.label for entry in section.entries if word in (entry.label, entry.policy)), None)


def _usual(section: Section, recorded: Mapping[str, Mapping[int, Run]]) -> tuple[str | None, str | None]:
    labels = [entry.label for entry in section.entries if recorded[entry.label]]
    for one in labels:
        others = [label for label in labels if label != one and recorded[one].keys() & recorded[label].keys()]
        if others:
            return one, section.baseline if section.baseline in others else others[0]
    return None, None


def _not_recorded(labels: tuple[str, str], seeds: Sequence[Sequence[int]], wanted: int | None) -> str:
    both = zip(labels, seeds, strict=True)
    has = "; ".join(f"{label} on {', '.join(map(str, some)) or 'none'}" for label, some in both)
    what = "no seed of both" if wanted is None else f"seed {wanted} of both is not among those that"
    verb = "was recorded" if wanted is None else "were recorded"
    return (
        f"--episodes {' '.join(labels)}: {what} {verb} decision by decision ({has}); the first seed of a command is: "
        "clustergym evaluate ... --seed N --logdir DIR"
    )


def compared(labels: tuple[str, str], runs: tuple[Run, Run]) -> Episodes:
    """The differences between two recorded runs of the same workload."""
    first, second = (decisions_of(run) for run in runs)
    instants = aligned(first, second, _timelines(runs)[0].begin_s)
    same_for = 0
    for instant in instants:
        same_for += instant.common
        if instant.differs:
            break
    jobs, sooner = _jobs(runs, (first, second))
    differing = tuple(instant for instant in instants if instant.differs)
    by_kind = tuple(sorted(kinds(first, second), key=lambda one: -one.differing))
    return Episodes(labels, runs[0].seed, runs, same_for, differing, by_kind, jobs, sooner)


def _timelines(runs: tuple[Run, Run]) -> tuple[Timeline, Timeline]:
    one, other = (run.timeline for run in runs)
    assert one is not None and other is not None, "only recorded runs are compared"
    return one, other


def decisions_of(run: Run) -> list[Decision]:
    """The recorded decisions of a run, in order."""
    found = []
    for time_s, job, kind, where, shift, *more in run.decisions:
        found.append(Decision(float(time_s), job, kind, place_of(where), shift, more[0] if more else ""))
    return found


def place_of(where: str) -> str:
    """GPU labels by machine, `0.1 x 8, 1.0 x 4`; other words as they are."""
    matches = [GPU.fullmatch(label) for label in where.split()]
    if not matches or None in matches:
        return where
    counts = Counter(match[1] for match in matches if match is not None)
    return ", ".join(f"{machine} x {count}" for machine, count in sorted(counts.items()))


def aligned(first: Iterable[Decision], second: Iterable[Decision], begin_s: float = 0.0) -> list[Instant]:
    """Every time at which one of two policies decided, in order."""
    by_time: dict[float, tuple[list[Decision], list[Decision]]] = {}
    for number, decisions in enumerate((first, second)):
        for one in decisions:
            by_time.setdefault(one.time_s, ([], []))[number].append(one)
    instants = []
    for time_s, (ours, theirs) in sorted(by_time.items()):
        common = Counter(one.what for one in ours) & Counter(one.what for one in theirs)
        others = (tuple(_without(some, common)) for some in (ours, theirs))
        instants.append(Instant(time_s - begin_s, common.total(), *others))
    return instants


def _without(decisions: Iterable[Decision], common: Mapping[tuple[str, str, str, str], int]) -> list[Decision]:
    left = dict(common)
    found = []
    for one in decisions:
        if left.get(one.what, 0):
            left[one.what] -= 1
        else:
            found.append(one)
    return found


def kinds(first: Iterable[Decision], second: Iterable[Decision]) -> list[KindCount]:
    """Decisions of each kind compared, by the job and the number of its earlier decisions of that kind."""
    ours, theirs = _numbered(first), _numbered(second)
    found = []
    for kind in dict.fromkeys(key[0] for key in (*ours, *theirs)):
        mine, other = ({key for key in some if key[0] == kind} for some in (ours, theirs))
        both = [(ours[key], theirs[key]) for key in mine & other]
        shapes = Counter((one.time_s == two.time_s, one[3:5] == two[3:5]) for one, two in both)
        counts = shapes[True, True], shapes[False, True], shapes[True, False], shapes[False, False]
        found.append(KindCount(kind, *counts, len(mine - other), len(other - mine)))
    return found


def _numbered(decisions: Iterable[Decision]) -> dict[tuple[str, str, int], Decision]:
    times: Counter[tuple[str, str]] = Counter()
    found = {}
    for one in decisions:
        times[one.kind, one.job] += 1
        found[one.kind, one.job, times[one.kind, one.job]] = one
    return found


def _jobs(
    runs: tuple[Run, Run], decisions: tuple[list[Decision], list[Decision]]
) -> tuple[tuple[JobDifference, ...], tuple[int, int, int]]:
    """The jobs that end at different times, the largest difference first; and the counts `sooner`."""
    one, other = _timelines(runs)
    with np.errstate(invalid="ignore"):
        first_s, second_s = one.leave_s - one.arrival_s, other.leave_s - other.arrival_s
        gain_s = np.nan_to_num(first_s - second_s, nan=0.0, posinf=np.inf, neginf=-np.inf)
    names = _names(one, decisions[0]) | _names(other, decisions[1])
    order = np.argsort(-np.abs(gain_s), kind="stable")
    differing = tuple(
        JobDifference(names.get(job, f"#{job}"), *(float(times_s[job]) for times_s in (first_s, second_s, gain_s)))
        for job in order.tolist()
        if gain_s[job] != 0.0
    )
    return differing, (int((gain_s < 0).sum()), int((gain_s > 0).sum()), int((gain_s == 0).sum()))


def _names(timeline: Timeline, decisions: Iterable[Decision]) -> dict[int, str]:
    """Job -> its name, where the stretches of a timeline are those that decisions opened, in their order."""
    opened = [one.job for one in decisions if one.kind in OPENING]
    return dict(zip(timeline.job.tolist(), opened, strict=True)) if len(opened) == len(timeline.job) else {}


def same_stretches(one: Timeline, other: Timeline) -> dict[int, list[tuple[float, float]]]:
    """Job -> begin and end of its stretches on the same machines at the same time in both runs."""

    def machines_of(line: Timeline) -> dict[tuple[int, float, float], bytes]:
        bounds = zip(line.job.tolist(), line.start_s.tolist(), line.end_s.tolist(), strict=True)
        machines = (np.bincount(line.gpu_machine[list(gpus)]).tobytes() for gpus in line.gpus)
        return dict(zip(bounds, machines, strict=True))

    ours, theirs = machines_of(one), machines_of(other)
    found: dict[int, list[tuple[float, float]]] = {}
    for key, machines in ours.items():
        if theirs.get(key) == machines:
            found.setdefault(key[0], []).append(key[1:])
    return found
