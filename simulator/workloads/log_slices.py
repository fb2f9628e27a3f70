"""`slices:file=T.csv,hours=24`: the slices of a log in time, all of one length and disjoint, as seeds.

A slice begins at a multiple of its length on the log's arrival clock and holds the jobs that arrive in it; their times
count from its beginning. A slice without jobs is left out, and so is one at an end of the log of which the log covers
less than half, as it is another load and a shorter run; one warning counts them. The others are numbered from 0.

Warm-up: each slice begins on an empty cluster, unlike the log's own, so its first jobs wait less than they did.
Censoring: none. A job runs to its end, beyond its slice too; nothing arrives there, so the last jobs wait less as well.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any

import numpy as np

from ..base.errors import InputError
from ..files.file_marks import path_mark, read_by
from ..jobs.region_columns import siblings
from ..jobs.workload import Workload, WorkloadWarning
from .draws import check_parameters
from .readers import read_trace

NAME = "slices"
LEAST = 0.5  # of a slice that the log covers
MOST = 1e9  # slices


def beside(path: str) -> Iterable[str]:
    """The files that are read with the one at `path`."""
    return map(str, siblings(path).values())


LOG = path_mark(beside)


@dataclass(frozen=True, eq=False)
class Slices:
    """The slices of a log, numbered from 0.

    Attributes:
        log: all its jobs.
        hours: the length of a slice, > 0.
        begin_s: float64 (slices,), on the log's arrival clock.
        covered_s: float64 (slices,), seconds of each between the log's first arrival and its last.
        first, end: int64 (slices,), its jobs are those from `first` to before `end`.
    """

    log: Workload
    hours: float
    begin_s: np.ndarray
    covered_s: np.ndarray
    first: np.ndarray
    end: np.ndarray

    @property
    def parts(self) -> str:
        """What the log is cut into."""
        return f"slices of {self.hours:g} h"

    @property
    def has_hours(self) -> bool:
        """Whether hours of day are the log's on the clock of a slice."""
        return self.hours % 24.0 == 0.0

    def __len__(self) -> int:
        return len(self.begin_s)

    def workload(self, number: int) -> Workload:
        """The jobs of a slice on its own clock; `window_s` is its length, or as much of it as the log covers."""
        jobs = self.log.take(np.arange(self.first[number], self.end[number]))
        jobs = replace(jobs, name=f"{self.log.name}, slice {number}", window_s=float(self.covered_s[number]) or None)
        return later(jobs, -self.begin_s[number])

    def describe(self, seed: int | None = None) -> str:
        """How many there are, or which one `seed` plays, and what a run of one is."""
        which = f"{self._count()}, one a seed"
        if seed is not None:
            which = f"slice {seed % len(self)} of {len(self)}, {self.hours:g} h each"
        return f"{which}; a slice begins on an empty cluster, and its jobs run to their ends"

    def _count(self) -> str:
        return f"{len(self):,} slice{'s' * (len(self) > 1)} of {self.hours:g} h"

    def expect_seeds(self, seeds: Iterable[int]) -> None:
        """InputError: a seed would play the slice of another again."""
        beyond = [seed for seed in seeds if seed >= len(self)]
        if beyond:
            raise InputError(
                f"seed {beyond[0]}: {self.log.name} has {self._count()}, and one that is played again tells nothing "
                f"new; expected --seeds {f'0-{len(self) - 1}' if len(self) > 1 else 0}"
            )


def slices(file: Annotated[str, LOG], hours: float = 24.0, format: str = "", seed: int = 0) -> Workload:
    """Slices of a log in time: seed k is the k-th stretch of so many hours, on an empty cluster.

    Args:
        file: of the log. hours: the length of a slice, > 0.
        format: of the file, with one option at most (`philly:bad_rows=error`); none: recognised.
        seed: the number of the slice, modulo how many there are.
    """
    found = open_slices(file, hours, format)
    return found.workload(seed % len(found))


def later(jobs: Workload, by_s: Any) -> Workload:
    """The jobs so many seconds later: a number, or one for each; arrivals of about 0 are 0."""
    times = {name: getattr(jobs, name) + by_s for name in ("arrival_s", "deadline_s", "start_s")}
    times["arrival_s"] = np.maximum(times["arrival_s"], 0.0)  # rounding
    origin_s = None if jobs.origin_s is None or np.ndim(by_s) else jobs.origin_s - float(by_s)
    return replace(jobs, **times, origin_s=origin_s)


def open_slices(file: str, hours: float = 24.0, format: str = "") -> Slices:
    """The slices of a log; arguments as of `slices`."""
    check_parameters(NAME, hours=hours)
    return _cut(file, hours, format, read_by(file, LOG, "file").stamps)


@lru_cache(maxsize=8)
def _cut(file: str, hours: float, format: str, _stamps: tuple[Any, ...]) -> Slices:
    log = read_trace(file, format or None)
    length_s, (first_s, last_s) = 3600.0 * hours, log.arrival_s[[0, -1]]
    if (last_s - first_s) / length_s >= MOST:
        raise InputError(f"{log.name}: slices of {hours:g} h are more than {MOST:,.0f}; expected longer ones")
    number, first = np.unique(np.floor(log.arrival_s / length_s), return_index=True)
    begin_s, end = number * length_s, np.append(first[1:], len(log))
    covered_s = np.minimum(begin_s + length_s, last_s) - np.maximum(begin_s, first_s)
    kept = covered_s >= min(LEAST * length_s, covered_s.max())
    empty, jobs = int(number[-1] - number[0]) + 1 - len(number), int((end - first)[~kept].sum())
    without = [f"{empty:,} without a job"] if empty else []
    without += [f"{(~kept).sum()} at its ends of which it covers less than half ({jobs:,} jobs)"] if jobs else []
    if without:
        said = f"{log.name}: slices of {hours:g} h: {' and '.join(without)} are left out, {kept.sum():,} stay"
        warnings.warn(said, WorkloadWarning, stacklevel=2)
    return Slices(log, hours, begin_s[kept], covered_s[kept], first[kept], end[kept])
