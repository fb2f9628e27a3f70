"""Measured tables of one application (Pollux, OSDI'21 artifact), or of a user's folder in the same formats.

Source: github petuum/adaptdl, branch osdi21-artifact, simulator/traces/APPLICATION/:
* placements.csv: placement (a digit a node: its GPUs), local_bsz (samples per GPU), step_time and sync_time (s; the
  synchronisation that is not hidden behind computing);
* scalability.csv: num_nodes, num_replicas, local_bsz, step_time, sync_time, on more nodes;
* validation-B.csv, one for each validated batch size B: after each epoch the progress (in steps of the smallest batch)
  and the squared norm and variance of the gradient (grad_sqr, grad_var).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..base.errors import InputError
from ..files.file_marks import A_FOLDER, read_by
from ..files.regular_files import Stamp
from ..jobs.trace_columns import Table, read_csv
from ..numerics.float_sums import sum_in_order
from .goodput import gain, steps_at

if TYPE_CHECKING:
    from scipy.interpolate import LinearNDInterpolator

# Epochs after which a job of the artifact ends; applications that are not listed end with their tables.
EPOCHS = {"bert": 2, "cifar10": 100, "ncf": 10, "imagenet": 90, "deepspeech2": 80, "yolov3": 50}
# Larger than any memory allows on a T4, though placements.csv has it (the artifact's own limit).
LARGEST_LOCAL = {"yolov3": 8}
WIDEST = 16  # nodes; nothing was measured beyond, and wider placements are taken for this one
HUGE = 1e30  # of squared gradients; they overflow nothing here

_VALIDATION = re.compile(r"validation-(\d{1,9})\.csv")
_TIMES = ("step_time", "sync_time")


class MeasuredTables:
    """Step times, progress and gradient noise of one application, of the files in `folder`, whose name it has.

    Attributes:
        batches: the validated batch sizes, ascending, samples over all GPUs.
        smallest_local, largest_local: bounds of the samples per GPU and pass.
        progress: float64 (epochs,), at which each epoch has been passed: the least over batches, in smallest batches.

    Raises:
        InputError: a file is missing or malformed; names file, line, column, value and what was expected.
    """

    def __init__(self, folder: str | Path) -> None:
        folder = Path(folder)
        self.name = folder.name
        self._read_validation(folder)
        self._read_times(folder)
        self._scattered: LinearNDInterpolator | None = None
        self._known: dict[tuple[tuple[int, ...], int], tuple[float, float]] = {}

    @property
    def smallest_batch(self) -> int:
        """The batch size that progress and gain are relative to."""
        return self.batches[0]

    @property
    def largest_batch(self) -> int:
        """The largest batch size that was validated."""
        return self.batches[-1]

    @property
    def epochs(self) -> int:
        """Epochs of a job."""
        return len(self.progress)

    def _read_validation(self, folder: Path) -> None:
        files = sorted((int(found[1]), path) for path in _listed(folder) if (found := _VALIDATION.fullmatch(path.name)))
        if not files:
            raise InputError(f"{folder}: no validation-B.csv; expected one for each validated batch size B")
        tables = [read_csv(path) for _, path in files]
        epochs = EPOCHS.get(self.name, min(map(len, tables)))
        for table in tables:
            if len(table) < epochs:
                raise InputError(f"{table.path}: {len(table)} epochs; expected at least {epochs}")
        self.batches = [batch for batch, _ in files]
        self.progress = np.min([table.number("progress", low=0, above=True)[:epochs] for table in tables], axis=0)
        if np.any(np.diff(self.progress) <= 0.0):
            raise InputError(f"{folder}: the least progress over validation-*.csv must grow from epoch to epoch")
        self._sqr = np.array([table.number("grad_sqr", low=0, high=HUGE)[:epochs] for table in tables])
        self._var = np.array([table.number("grad_var", low=0, high=HUGE)[:epochs] for table in tables])
        for table, sqr, var in zip(tables, self._sqr, self._var, strict=True):
            for row in np.flatnonzero(sqr + var == 0.0):
                raise table.error(int(row), "grad_var", "more than 0 where grad_sqr is 0")
        self._steps = {batch: self._whole_steps(batch) for batch in self.batches}

    def _whole_steps(self, batch: int) -> float:
        """Steps of a training at a validated batch, to a tenth as in data/pollux.json: by epoch progress / gain."""
        passed = np.diff(self.progress, prepend=0.0)
        scale = batch / self.smallest_batch
        return round(sum_in_order(part / gain(self.noise(batch, epoch), scale) for epoch, part in enumerate(passed)), 1)

    def steps_of(self, batch: float) -> float:
        """Optimiser steps of a whole training at a batch, log-log between the validated ones; at least 1."""
        return steps_at(self._steps, batch)

    def _read_times(self, folder: Path) -> None:
        placed = read_csv(folder / "placements.csv")
        digits = placed.text("placement")
        for row, word in enumerate(digits):
            if not re.fullmatch("[1-9]{1,99}", word):
                raise placed.error(row, "placement", "a digit from 1 to 9 for each node")
        local = placed.number("local_bsz", low=1, whole=True)
        times = _times(placed)
        keys = np.array([(len(word), sum(map(int, word)), size) for word, size in zip(digits, local, strict=True)])
        self.smallest_local = int(local.min())
        self.largest_local = min(int(local.max()), LARGEST_LOCAL.get(self.name, int(local.max())))
        self._by_placement = {}
        for word in sorted(set(digits)):
            rows = [row for row, other in enumerate(digits) if other == word]
            order = np.array(rows)[np.argsort(local[rows], kind="stable")]
            self._by_placement[tuple(map(int, word))] = local[order].astype(float), times[order]
        scaled = read_csv(folder / "scalability.csv")
        columns = [scaled.number(name, low=1, whole=True) for name in ("num_nodes", "num_replicas", "local_bsz")]
        points, where = np.unique(keys, axis=0, return_inverse=True)
        means = np.zeros((len(points), 2))
        np.add.at(means, where.ravel(), times)
        means /= np.bincount(where.ravel())[:, None]
        self._points = np.vstack([points, np.column_stack(columns)]).astype(float)
        self._values = np.vstack([means, _times(scaled)])

    def times_s(self, placement: Sequence[int], local: int) -> tuple[float, float]:
        """Seconds of one step, and of its synchronisation that is not hidden; InputError: no measurements around it.

        By `placements.csv`, linear in `local`, samples per GPU and pass, where it has the placement (GPUs on each node,
        in any rotation); else linear between the nearest measured (nodes, GPUs, local), over a Delaunay triangulation.
        """
        counts = tuple(int(count) for count in placement if count)
        key = min(counts[i:] + counts[:i] for i in range(len(counts))), int(local)
        if key not in self._known:
            self._known[key] = self._look_up(*key)
        return self._known[key]

    def _look_up(self, counts: tuple[int, ...], local: int) -> tuple[float, float]:
        if counts in self._by_placement:
            sizes, times = self._by_placement[counts]
            if sizes[0] <= local <= sizes[-1]:
                step_s, sync_s = (float(np.interp(local, sizes, times[:, column])) for column in (0, 1))
                return step_s, sync_s
        else:
            if self._scattered is None:
                from scipy.interpolate import LinearNDInterpolator

                self._scattered = LinearNDInterpolator(self._points, self._values)
            step_s, sync_s = self._scattered([min(len(counts), WIDEST), sum(counts), local])[0].tolist()
            if step_s == step_s:
                return step_s, sync_s
        nodes = "".join(map(str, counts))
        raise InputError(
            f"tables of {self.name}: {local} samples per GPU on placement {nodes}: beyond what was measured"
        )

    def noise(self, batch: int, epoch: int) -> tuple[float, float]:
        """Squared norm and variance of the gradient in an epoch from 0, linear in batch; InputError: outside."""
        above = int(np.searchsorted(self.batches, batch))
        if above == len(self.batches) or batch < self.batches[0]:
            raise InputError(
                f"tables of {self.name}: batch size {batch}: expected {self.smallest_batch} to {self.largest_batch}"
            )
        if self.batches[above] == batch:
            return float(self._sqr[above, epoch]), float(self._var[above, epoch])
        low, high = self.batches[above - 1], self.batches[above]
        share = (batch - low) / (high - low)
        sqr, var = ((1.0 - share) * table[above - 1, epoch] + share * table[above, epoch] for table in self._both)
        return float(sqr), float(var)

    @property
    def _both(self) -> tuple[np.ndarray, np.ndarray]:
        return self._sqr, self._var


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror}); expected a folder of tables") from None


def _times(table: Table) -> np.ndarray:
    """Step and sync time of every row, seconds, (n, 2)."""
    times = np.column_stack([table.number(name, low=0) for name in _TIMES])
    for row in np.flatnonzero(times[:, 0] <= times[:, 1]):
        raise table.error(int(row), "sync_time", "less than step_time")
    return times


def read_tables(folder: str | Path, application: str) -> MeasuredTables:
    """The tables in FOLDER/APPLICATION/, read again after changes; InputError: there are none, or malformed ones."""
    path = Path(folder) / application
    if not application or not path.is_dir():
        there = sorted(entry.name for entry in _listed(Path(folder)) if entry.is_dir())
        raise InputError(f"{folder}: no tables of {application!r}; there are: {', '.join(there) or 'none'}")
    return _read(path, read_by(path, A_FOLDER, "tables").stamps)


@lru_cache(maxsize=64)
def _read(path: Path, _stamps: tuple[tuple[str, Stamp], ...]) -> MeasuredTables:
    return MeasuredTables(path)
