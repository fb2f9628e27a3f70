"""A csv of slowdowns: pairs of models, perhaps with their GPUs, batches and sub-batches.

    victim,with,xi[,gpus][,batch][,sub_batch][,with_gpus][,with_batch][,with_sub_batch][,mode]

`gpus` are those of the whole job, `batch` the samples of an iteration on each of them, `sub_batch` those of one pass;
without `with_` of the victim, with it of the partner. An empty cell fits any number. Lines with # and other columns:
remarks.

For two jobs the fitting row with the most numbers holds; without any, the one with the least product of the ratios (the
larger over the smaller) between its numbers and theirs. Ties go to the row with more numbers, then to smaller numbers,
in the order of the columns above.

`mode` says how the jobs shared the GPU (time-slicing, mps, ...). A file with several has a table for each.
"""

from __future__ import annotations

import csv
import functools
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..base.errors import InputError
from ..files.yaml_files import read_text
from ..jobs.job_kinds import Load
from ..profiles.model_names import plain

MAX_XI = 1e3
NUMBERS = ("gpus", "batch", "sub_batch")  # fields of Load
COLUMNS = (*NUMBERS, *(f"with_{name}" for name in NUMBERS))
MODE = "mode"


@dataclass(frozen=True)
class Rows:
    """The rows of one pair of models: numbers, float64 (rows, len(COLUMNS)), nan: any, ties in order; xi (rows,)."""

    numbers: np.ndarray
    xi: np.ndarray

    def between(self, victims: np.ndarray, partners: np.ndarray) -> np.ndarray:
        """(v, p) slowdowns of jobs with these numbers, (v, 3) and (p, 3), each beside each."""
        half = len(NUMBERS)
        far = _distances(victims, self.numbers[:, :half])[:, None] + _distances(partners, self.numbers[:, half:])[None]
        return self.xi[np.round(far, 9).argmin(axis=-1)]


def _distances(jobs: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(jobs, rows): logarithm of the product of ratios; what a row leaves open does not count."""
    ratios = np.abs(np.log(jobs[:, None, :]) - np.log(np.where(np.isnan(rows), 1.0, rows))[None])
    return np.where(np.isnan(rows)[None], 0.0, ratios).sum(axis=-1)


@dataclass(frozen=True)
class Table:
    """Slowdowns of every ordered pair of some models.

    Attributes:
        names: the models as the file spells them. pairs: rows by plain names of victim and partner.
        tells_apart: fields of `Load` that some row has a number for, in the order of NUMBERS.
    """

    names: tuple[str, ...]
    pairs: Mapping[tuple[str, str], Rows]
    tells_apart: tuple[str, ...]

    def matrix(self, loads: Sequence[Load]) -> np.ndarray:
        """(n, n) float64: the slowdown of each load beside each; all of their models must be in the table."""
        numbers = np.array([[max(1, getattr(load, name)) for name in NUMBERS] for load in loads], np.float64)
        places: dict[str, list[int]] = {}
        for place, load in enumerate(loads):
            places.setdefault(plain(load.model), []).append(place)
        found = np.empty((len(loads), len(loads)))
        for victim, rows in places.items():
            for partner, columns in places.items():
                found[np.ix_(rows, columns)] = self.pairs[victim, partner].between(numbers[rows], numbers[columns])
        return found


def read_table(path: str | Path, mode: str | None = None) -> Table:
    """The table of a csv, of that mode where it has several; InputError names file, line, column and value."""
    try:
        status = os.stat(path)
        stamp = (status.st_mtime_ns, status.st_size)
    except (OSError, ValueError):
        stamp = (0, 0)  # read_text says what is wrong
    return _file(os.fspath(path), stamp, mode)


@functools.lru_cache(maxsize=16)
def _file(path: str, stamp: tuple[int, int], mode: str | None) -> Table:
    del stamp  # of the file: read again when it has changed
    place = f"interference {path!r}"
    reader = _Reader(place)
    reader.read(read_text(path, "interference"))
    return reader.table(mode)


def slowdown_of(text: str, column: str, line: str) -> float:
    """A slowdown from its text; raises InputError."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 1.0 <= value <= MAX_XI:  # also refuses nan
        raise InputError(f"{line}, column {column}: {_shown(text)}; expected a slowdown from 1 to {MAX_XI:g}")
    return value


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")


Key = tuple[str, str, tuple[float, ...]]  # plain names of victim and partner, numbers (nan: any)


class _Reader:
    """What has been read of a file."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.spelling: dict[str, str] = {}
        self.modes: dict[str, dict[Key, float]] = {}

    def read(self, text: str) -> None:
        lines = ["" if line.startswith("#") else line for line in text.splitlines()]
        head = next((i for i, line in enumerate(lines) if line.strip()), len(lines))
        reader = csv.DictReader(lines[head:], strict=True, skipinitialspace=True)
        try:
            names = [name.strip() for name in reader.fieldnames or []]
            _check_header(names, f"{self.place}, line {head + 1}")
            reader.fieldnames = names
            for row in reader:
                line = f"{self.place}, line {head + reader.line_num}"
                if None in row or None in row.values():
                    raise InputError(f"{line}: expected {len(names)} values, one per column")
                self._add(row, line)
        except csv.Error as error:
            message = f"{self.place}, line {head + reader.line_num}: not readable as csv ({error})"
            raise InputError(message) from None

    def _add(self, row: Mapping[str, str], line: str) -> None:
        victim, partner = (self._model(row, column, line) for column in ("victim", "with"))
        numbers = tuple(_number(row[column], column, line) if column in row else math.nan for column in COLUMNS)
        mode = _mode(row, line)
        rows = self.modes.setdefault(mode, {})
        # nan is not equal to itself: as a key it is 0, which is no number that a job has
        key = victim, partner, tuple(0.0 if math.isnan(number) else number for number in numbers)
        if key in rows:
            same = ", the same numbers" if any(key[2]) else ""
            where = f" in mode {mode!r}" if mode else ""
            raise InputError(f"{line}: {row['victim']!r} with {row['with']!r}{same} is there twice{where}")
        rows[key] = slowdown_of(row["xi"], "xi", line)

    def _model(self, row: Mapping[str, str], column: str, line: str) -> str:
        name = row[column].strip()
        if not plain(name):
            raise InputError(f"{line}, column {column}: {name!r}; expected a model's name")
        self.spelling.setdefault(plain(name), name)
        return plain(name)

    def table(self, mode: str | None) -> Table:
        found = self.modes[self._chosen(mode)]
        pairs: dict[tuple[str, str], list[tuple[tuple[float, ...], float]]] = {}
        for (victim, partner, numbers), xi in found.items():
            pairs.setdefault((victim, partner), []).append((numbers, xi))
        known = {name: spelt for name, spelt in self.spelling.items() if any(name in pair for pair in pairs)}
        for victim, spelt in known.items():
            for partner, spelt_partner in known.items():
                if (victim, partner) not in pairs:
                    raise InputError(
                        f"{self.place}: the pair {spelt!r} with {spelt_partner!r} is missing; "
                        "expected every ordered pair of its models"
                    )
        given = {column for _, _, numbers in found for column, number in zip(COLUMNS, numbers, strict=True) if number}
        asked = tuple(name for name in NUMBERS if name in given or f"with_{name}" in given)
        return Table(tuple(known.values()), {pair: _rows(rows) for pair, rows in pairs.items()}, asked)

    def _chosen(self, mode: str | None) -> str:
        if not self.modes:
            raise InputError(f"{self.place} has a header and no rows; expected at least one pair")
        named = ", ".join(sorted(name for name in self.modes if name))
        if mode is None and len(self.modes) == 1:
            return next(iter(self.modes))
        if mode is None:
            raise InputError(f"{self.place} has several modes: {named}; choose one as csv:PATH,mode=MODE")
        if mode not in self.modes:
            known = f"its modes: {named}" if named else "it has no column 'mode'"
            raise InputError(f"{self.place} has no mode {mode!r}; {known}")
        return mode


def _rows(rows: list[tuple[tuple[float, ...], float]]) -> Rows:
    order = sorted(rows, key=lambda row: (-sum(number > 0.0 for number in row[0]), row[0]))
    numbers = np.array([row for row, _ in order])
    return Rows(np.where(numbers == 0.0, math.nan, numbers), np.array([xi for _, xi in order]))


def _check_header(names: list[str], line: str) -> None:
    for name in ("victim", "with", "xi", *COLUMNS, MODE):
        count = names.count(name)
        if count > 1 or (count == 0 and name in ("victim", "with", "xi")):
            many = "is missing" if count == 0 else "is given twice"
            raise InputError(f"{line}: column {name!r} {many}; expected victim, with, xi")


def _number(text: str, column: str, line: str) -> float:
    if not text.strip():
        return math.nan
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (value >= 1.0 and value.is_integer()):
        raise InputError(f"{line}, column {column}: {_shown(text)}; expected a whole number of at least 1, or nothing")
    return value


def _mode(row: Mapping[str, str], line: str) -> str:
    if MODE not in row:
        return ""
    mode = row[MODE].strip()
    if not mode or "," in mode or "=" in mode:
        raise InputError(f"{line}, column {MODE}: {_shown(mode)}; expected a word, e.g. time-slicing or mps")
    return mode
