"""Interference: how much slower a job runs beside another one on its GPUs, by their models (paper sjf-bsbf, Eq. 5, 6).

xi[victim, partner] = time per iteration beside the partner / alone, at least 1. The words:

    measured         medians on V100 GPUs (Gavel, OSDI'20, MIT licence; data/interference_measured.csv has the pairs,
                     their P10 and P90 over batch sizes, and which of its jobs stands for which model): 1.0 to 6.0,
                     the scale of the paper's own measurements ("up to 6"). Heavy: the median of the 36 pairs is
                     1.66.
    light            Lucid (ASPLOS'23): modern GPU, light jobs. Its table by the sum of the two utilisations that the
                     jobs have alone; see LIGHT_STEPS and LIGHT_UTILISATION.
    constant:xi=1.5  one number for every pair of any models: what the paper injects for its Figure 6b (1.0 to 2.0).
    PATH.csv         columns victim, with, xi; every ordered pair of its models once; other columns are remarks.

`measured` and `light` know bert, cifar10, deepspeech2, imagenet, ncf and yolov3. A model that a table does not know is
an error, unless the word has `default=1.47`: then that is the xi of its pairs (1.47 is the median of all pairs that
were measured on V100 GPUs).
"""

from __future__ import annotations

import csv
import functools
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from ..errors import InputError
from ..names import bind, choose, parse_name
from ..specs import read_text
from .model_names import plain

MAX_XI = 1e3
MEASURED = Path(__file__).resolve().parent / "data" / "interference_measured.csv"

# Lucid's published pairs, mixed and full precision: median slowdown by the sum of the GPU utilisations (percent) of the
# two jobs when alone; each step holds up to its first number.
LIGHT_STEPS = ((75.0, 1.00), (100.0, 1.03), (125.0, 1.07), (150.0, 1.18), (math.inf, 1.38))
# GPU utilisation alone, percent: Lucid's single runs (single_data.csv, full precision, largest batch of the model).
# deepspeech2 has its LSTM as stand-in, yolov3 its ResNet50 (both convolutional, both fill the GPU): assumptions.
LIGHT_UTILISATION: Mapping[str, float] = {
    "bert": 99.689,  # BERT, SQuAD, batch 32
    "cifar10": 96.25,  # ResNet18, CIFAR-10, batch 128
    "deepspeech2": 76.2,  # LSTM, Wikitext2, batch 128
    "imagenet": 100.0,  # ResNet50, ImageNet, batch 128
    "ncf": 10.483,  # NeuMF, MovieLens, batch 128
    "yolov3": 100.0,  # ResNet50, ImageNet, batch 128
}


class Interference:
    """Slowdowns by ordered pair of models.

    Args:
        word: measured, light, constant:xi=X, or the path of a csv; the first three take `default=X` too.
        default: xi of pairs with a model that the table does not know, 1 to 1000; None: such a model is an error.

    Raises:
        InputError: no such preset, a bad parameter, or a csv that cannot be used: one sentence with file, line,
            column, value and what was expected.
    """

    def __init__(self, word: str = "measured", default: float | None = None) -> None:
        self.word = word
        self._names: dict[str, int] = {}
        self._spellings: list[str] = []
        self._percentiles: np.ndarray | None = None
        if _is_path(word):
            names, table = _read(word, ("xi",))
            self._use(names, table[..., 0], default)
            return
        name, params = parse_name(word, "interference")
        preset = PRESETS[_chosen(name)]
        if default is not None:
            params = {"default": str(default), **params}
        names, table, default = bind(preset, params, f"interference {name}")
        self._use(names, table[..., 0], default)
        if table.shape[2] == 3:
            self._percentiles = table[..., 1:]

    def _use(self, names: Sequence[str], table: np.ndarray, default: float | None) -> None:
        self._spellings = list(names)
        self._names = {plain(name): i for i, name in enumerate(names)}
        self._table = table
        self.default = None if default is None else _checked(default, "default")

    @property
    def models(self) -> list[str]:
        """The models that the table knows; none for a constant, which holds for all."""
        return list(self._spellings)

    def matrix(self, models: Sequence[str]) -> np.ndarray:
        """(n, n) float64: entry [i, j] is the slowdown of models[i] beside models[j], at least 1.

        Raises:
            InputError: a model that the table does not know, where there is no default.
        """
        index = np.array([self._index(str(model)) for model in models], dtype=np.int64)
        if not self._names:
            return np.full((len(index), len(index)), float(self._table[0, 0]))
        known = index >= 0
        found = self._table[np.ix_(np.maximum(index, 0), np.maximum(index, 0))]
        return np.where(known[:, None] & known[None, :], found, 1.0 if self.default is None else self.default)

    def xi(self, victim: str, partner: str) -> float:
        """Slowdown of `victim` beside `partner`; raises as `matrix` does."""
        return float(self.matrix([victim, partner])[0, 1])

    def percentiles(self, victim: str, partner: str) -> tuple[float, float]:
        """P10 and P90 of the slowdown over the batch sizes of a measured pair.

        Raises:
            InputError: no spread is known: the word is not `measured`, or a model is not in its table.
        """
        rows = self._index(victim), self._index(partner)
        if self._percentiles is None or min(rows) < 0:
            raise InputError(f"interference {self.word!r} has no percentiles of {victim!r} beside {partner!r}")
        p10, p90 = self._percentiles[rows]
        return float(p10), float(p90)

    def _index(self, model: str) -> int:
        """Row of a model, -1 for one that takes the default."""
        found = self._names.get(plain(model))
        if found is not None:
            return found
        if not self._names or self.default is not None:
            return -1
        shown = model or "(empty)"
        raise InputError(
            f"interference {self.word!r} does not know model {shown!r}; known: {', '.join(self._spellings)}; "
            "or give the slowdown of all others as default=X"
        )


Loaded = tuple[list[str], np.ndarray, float | None]  # models, (n, n, 1 or 3) of xi[, P10, P90], default


def _measured(*, default: float | None = None) -> Loaded:
    names, table = _read(MEASURED, ("xi", "p10", "p90"))
    return names, table, default


def _light(*, default: float | None = None) -> Loaded:
    used = np.array(list(LIGHT_UTILISATION.values()))
    limits, factors = (np.array(column) for column in zip(*LIGHT_STEPS, strict=True))
    table = factors[np.searchsorted(limits, used[:, None] + used[None, :], side="right")]
    return list(LIGHT_UTILISATION), table[..., None], default


def _constant(*, xi: float) -> Loaded:
    return [], np.full((1, 1, 1), _checked(xi, "constant: xi")), None


PRESETS: Mapping[str, Callable[..., Loaded]] = {"measured": _measured, "light": _light, "constant": _constant}


def _checked(value: float, what: str) -> float:
    if not 1.0 <= value <= MAX_XI:
        raise InputError(f"interference {what} = {value:g}: expected a slowdown from 1 to {MAX_XI:g}")
    return float(value)


def _is_path(word: str) -> bool:
    return os.sep in word or "/" in word or word.lower().endswith(".csv") or os.path.exists(word)


def _chosen(name: str) -> str:
    try:
        return choose(name, PRESETS, "interference")
    except InputError as error:
        raise InputError(f"{error}; or the path of a csv file") from None


@functools.lru_cache(maxsize=16)
def _file(path: str, stamp: tuple[int, int], columns: tuple[str, ...]) -> tuple[list[str], np.ndarray]:
    del stamp  # of the file: read again when it has changed
    place = f"interference {path!r}"
    lines = ["" if line.startswith("#") else line for line in read_text(path, "interference").splitlines()]
    head = next((i for i, line in enumerate(lines) if line.strip()), len(lines))
    reader = csv.DictReader(lines[head:], strict=True, skipinitialspace=True)
    pairs: dict[tuple[str, str], list[float]] = {}
    spelling: dict[str, str] = {}
    try:
        _check_header([name.strip() for name in reader.fieldnames or []], columns, f"{place}, line {head + 1}")
        for row in reader:
            line = f"{place}, line {head + reader.line_num}"
            if None in row or None in row.values():
                raise InputError(f"{line}: expected {len(reader.fieldnames or [])} values, one per column")
            victim, partner = (_model(row, column, line, spelling) for column in ("victim", "with"))
            if (victim, partner) in pairs:
                raise InputError(f"{line}: {row['victim']!r} with {row['with']!r} is there twice")
            pairs[victim, partner] = [_slowdown(row[column], column, line) for column in columns]
    except csv.Error as error:
        raise InputError(f"{place}, line {head + reader.line_num}: not readable as csv ({error})") from None
    return list(spelling.values()), _square(pairs, spelling, place, len(columns))


def _read(path: str | Path, columns: tuple[str, ...]) -> tuple[list[str], np.ndarray]:
    """(models, (n, n, columns) array) of a csv."""
    try:
        status = os.stat(path)
        stamp = (status.st_mtime_ns, status.st_size)
    except (OSError, ValueError):
        stamp = (0, 0)  # read_text says what is wrong
    return _file(os.fspath(path), stamp, columns)


def _check_header(names: list[str], columns: tuple[str, ...], line: str) -> None:
    for name in ("victim", "with", *columns):
        if names.count(name) != 1:
            many = "is missing" if name not in names else "is given twice"
            raise InputError(f"{line}: column {name!r} {many}; expected victim, with, {', '.join(columns)}")


def _model(row: Mapping[str, str], column: str, line: str, spelling: dict[str, str]) -> str:
    name = row[column].strip()
    if not plain(name):
        raise InputError(f"{line}, column {column}: {name!r}; expected a model's name")
    spelling.setdefault(plain(name), name)
    return plain(name)


def _slowdown(text: str, column: str, line: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 1.0 <= value <= MAX_XI:  # also refuses nan
        shown = repr(text if len(text) <= 40 else text[:37] + "...")
        raise InputError(f"{line}, column {column}: {shown}; expected a slowdown from 1 to {MAX_XI:g}")
    return value


def _square(
    pairs: Mapping[tuple[str, str], list[float]], spelling: Mapping[str, str], place: str, depth: int
) -> np.ndarray:
    if not pairs:
        raise InputError(f"{place} has a header and no rows; expected at least one pair")
    table = np.empty((len(spelling), len(spelling), depth))
    for i, victim in enumerate(spelling):
        for j, partner in enumerate(spelling):
            if (victim, partner) not in pairs:
                raise InputError(
                    f"{place}: the pair {spelling[victim]!r} with {spelling[partner]!r} is missing; "
                    "expected every ordered pair of its models"
                )
            table[i, j] = pairs[victim, partner]
    table.flags.writeable = False
    return table
