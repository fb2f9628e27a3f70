"""`resampled:file=T.csv,block_h=3`: a log whose blocks of time are drawn anew, with replacement, for each seed.

Source: Politis and Romano, A circular block-resampling procedure for stationary data, in: Exploring the Limits of
Bootstrap, Wiley, 1992. It is the moving-block bootstrap (Kuensch, The jackknife and the bootstrap for general
stationary observations, Annals of Statistics 17(3), 1989) on a circle, so that each job comes once on average.

Departure: blocks are stretches of time, not numbers of jobs, so the jobs of a block keep their gaps. The circle is the
time from the first arrival to the last and one mean gap. Blocks begin anywhere on it, uniformly, and are put one after
the other until they are as long as the circle; the last is cut. Hours of the day are not kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Annotated, Any

import numpy as np

from ..base.errors import InputError
from ..files.file_marks import read_by
from ..jobs.workload import COLUMNS, Workload
from .draws import check_parameters
from .log_slices import LOG, later
from .readers import read_trace

NAME = "resampled"
BLOCK_H = 3.0  # of 3, 6 and 24 h the one whose intervals hold the truth most often (docs/concepts/workloads.md)


@dataclass(frozen=True, eq=False)
class Resampled:
    """A log in blocks of `block_h` hours, > 0 and shorter than the log."""

    log: Workload
    block_h: float

    has_hours = False  # hours of day are not the log's

    @property
    def parts(self) -> str:
        """What the log is cut into."""
        return f"blocks of {self.block_h:g} h"

    @cached_property
    def length_s(self) -> float:
        """Of the circle; 0: all jobs arrive at once."""
        count, (first_s, last_s) = len(self.log), self.log.arrival_s[[0, -1]]
        return float(last_s - first_s) * count / max(count - 1, 1)

    def workload(self, seed: int) -> Workload:
        """The jobs of the drawn blocks; one that comes again is `ID#2`, `ID#3`, .... `window_s` is the whole length."""
        rows, arrival_s = self._draw(np.random.default_rng(seed))
        columns: dict[str, Any] = {column: getattr(self.log, column)[rows] for column in COLUMNS}
        columns["job_id"] = _unique(self.log.job_id, rows)
        geo = None if self.log.geo is None else self.log.geo.take(rows)
        ps = None if self.log.ps is None else self.log.ps.take(rows)
        name = f"{self.log.name}, resample {seed}"
        jobs = replace(self.log, **columns, name=name, geo=geo, ps=ps, window_s=self.length_s)
        return later(jobs, arrival_s - columns["arrival_s"])

    def describe(self, seed: int | None = None) -> str:
        """How blocks are drawn, and by which seed."""
        by = "anew for each seed" if seed is None else f"by seed {seed}"
        return f"{self.parts} of a log, drawn {by} (circular block bootstrap)"

    def _draw(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Jobs as rows of the log and their arrivals, ascending from 0 to `length_s`; at least one job."""
        position_s = self.log.arrival_s - self.log.arrival_s[0]
        twice_s = np.concatenate([position_s, position_s + self.length_s])
        put_s = np.arange(0.0, self.length_s, 3600.0 * self.block_h)
        long_s = np.diff(np.append(put_s, self.length_s))
        counts = np.zeros(1, np.int64)
        while not counts.any():
            begin_s = rng.uniform(0.0, self.length_s, len(put_s))
            first = np.searchsorted(twice_s, begin_s)
            counts = np.searchsorted(twice_s, begin_s + long_s) - first
        block = np.repeat(np.arange(len(put_s)), counts)
        index = np.arange(counts.sum()) + (first - np.cumsum(counts) + counts)[block]
        arrival_s = np.maximum.accumulate(twice_s[index] - begin_s[block] + put_s[block])  # rounding
        return index % len(self.log), arrival_s


def resampled(file: Annotated[str, LOG], block_h: float = BLOCK_H, format: str = "", seed: int = 0) -> Workload:
    """Blocks of a log's arrivals, drawn with replacement: as long as the log, another for each seed.

    Args:
        file: of the log. block_h: hours of a block, > 0, shorter than the log; much longer than jobs depend on others.
        format: of the file, with one option at most (`philly:bad_rows=error`); none: recognised.
        seed: of the draws.
    """
    return open_resampled(file, block_h, format).workload(seed)


def open_resampled(file: str, block_h: float = BLOCK_H, format: str = "") -> Resampled:
    """The log in blocks; arguments as of `resampled`."""
    check_parameters(NAME, block_h=block_h)
    found = Resampled(_read(file, format, read_by(file, LOG, "file").stamps), block_h)
    if found.length_s <= 3600.0 * block_h:
        raise InputError(
            f"workload {NAME}: block_h={block_h:g}, but jobs of {found.log.name} arrive within "
            f"{found.length_s / 3600.0:.3g} h; expected blocks that are shorter, at best by far"
        )
    return found


@lru_cache(maxsize=8)
def _read(file: str, format: str, _stamps: tuple[Any, ...]) -> Workload:
    return read_trace(file, format or None)


def _unique(job_id: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Ids of the jobs at `rows`: the second time `ID#2`, with more `#` if an id of the log has as many."""
    mark = "#"
    while any(mark in one for one in job_id):
        mark += "#"
    found, times = [], np.zeros(len(job_id), np.int64)
    for row in rows.tolist():
        times[row] += 1
        found.append(job_id[row] if times[row] == 1 else f"{job_id[row]}{mark}{times[row]}")
    return np.array(found, dtype=object)
