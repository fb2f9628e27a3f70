"""Interference: how much slower a job runs beside another one on its GPUs (paper sjf-bsbf, Eq. 5, 6).

xi[victim, partner] = time per iteration beside the partner / alone, at least 1. The words, of docs/concepts/models.md:
`gavel` (OSDI'20, MIT licence; data/interference_gavel.csv), `measured` (gavel:gpu=v100,quantile=p50), `lucid`
(ASPLOS'23, LUCID_STEPS and LUCID_UTILISATION) and its former name `light`, `constant:xi=1.5`, `mig:slices=2`
(mig_slices.py), PATH.csv (interference_table.py) or csv:PATH with `mode=`.

An unknown model is an error, unless the word has `default=1.47`, the xi of its pairs (1.47 is the median of all pairs
that were measured on V100 GPUs).
"""

from __future__ import annotations

import csv
import functools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from ..base.errors import InputError
from ..base.names import bind, choose, parse_name
from ..files.file_marks import MayBeFile, See, alone, path_unless
from ..jobs.job_kinds import Load
from ..profiles.model_names import plain
from .interference_table import MAX_XI, Rows, Table, read_table
from .mig_slices import SLICES, Slice

GAVEL = Path(__file__).resolve().parent / "data" / "interference_gavel.csv"
QUANTILES = ("p10", "p50", "p90")

# Lucid's published pairs, mixed and full precision: median slowdown by the sum of the GPU utilisations (percent) of the
# two jobs when alone; each step holds up to its first number.
LUCID_STEPS = ((75.0, 1.00), (100.0, 1.03), (125.0, 1.07), (150.0, 1.18), (float("inf"), 1.38))
# GPU utilisation alone, percent: Lucid's single runs (single_data.csv, full precision, largest batch of the model).
# deepspeech2 has its LSTM as stand-in, yolov3 its ResNet50 (both convolutional, both fill the GPU): assumptions.
LUCID_UTILISATION: Mapping[str, float] = {
    "bert": 99.689,  # BERT, SQuAD, batch 32
    "cifar10": 96.25,  # ResNet18, CIFAR-10, batch 128
    "deepspeech2": 76.2,  # LSTM, Wikitext2, batch 128
    "imagenet": 100.0,  # ResNet50, ImageNet, batch 128
    "ncf": 10.483,  # NeuMF, MovieLens, batch 128
    "yolov3": 100.0,  # ResNet50, ImageNet, batch 128
}


class Interference:
    """Slowdowns by ordered pair of jobs.

    Args:
        word: see the module; all but constant and mig take `default=X` too.
        default: xi of pairs with a model that the table does not know, 1 to 1000; None: such a model is an error.

    Attributes:
        tells_apart: what the table asks of a job beside its model: some of "gpus", "batch", "sub_batch".
        slice: the instances that GPUs are cut in; None: whole ones, which jobs share.

    Raises:
        InputError: no such preset, a bad parameter, or a csv that cannot be used: one sentence with file, line,
            column, value and what was expected.
    """

    def __init__(self, word: str = "measured", default: float | None = None) -> None:
        self.word = word
        found = _found(word, default)
        self._table, self._everywhere, self._spread = found.table, found.everywhere, found.spread
        self.default = None if found.default is None else _checked(found.default, "default")
        self._place = {plain(name): i for i, name in enumerate(found.table.names)}
        self.tells_apart = found.table.tells_apart
        self.slice = found.slice
        # Environments write a table at every reset: what knows models only is looked up by their places.
        models = [] if self.tells_apart else [Load(name) for name in found.table.names]
        self._square = found.table.matrix(models)

    @property
    def models(self) -> list[str]:
        """The models that the table knows; none for a constant, which holds for all."""
        return list(self._table.names)

    def matrix(self, models: Sequence[str]) -> np.ndarray:
        """(n, n) float64: entry [i, j] is the slowdown of models[i] beside models[j], at least 1.

        InputError: an unknown model without a default; or the table knows more of a job than its model.
        """
        if self.tells_apart:
            raise InputError(
                f"interference {self.word!r} tells jobs of a model apart by {', '.join(self.tells_apart)}; "
                "expected these too (load_matrix)"
            )
        if self._everywhere is not None:
            return np.full((len(models), len(models)), self._everywhere)
        place = np.array([self._place_of(str(model)) for model in models], np.int64)
        found = self._square[np.ix_(place, place)]
        if self.default is None:
            return found
        known = place >= 0
        return np.where(known[:, None] & known[None, :], found, self.default)

    def load_matrix(self, loads: Sequence[Load]) -> np.ndarray:
        """(n, n) float64: as `matrix`, for all that the table tells apart; InputError: an unknown model, no default."""
        if not self.tells_apart:
            return self.matrix([load.model for load in loads])
        places = [i for i, load in enumerate(loads) if self._place_of(load.model) >= 0]
        matrix = np.full((len(loads), len(loads)), 1.0 if self.default is None else self.default)
        matrix[np.ix_(places, places)] = self._table.matrix([loads[i] for i in places])
        return matrix

    def xi(self, victim: str, partner: str) -> float:
        """Slowdown of `victim` beside `partner`; raises as `matrix` does."""
        return float(self.matrix([victim, partner])[0, 1])

    def percentiles(self, victim: str, partner: str) -> tuple[float, float]:
        """P10 and P90 of the slowdown over batch sizes of a measured pair; InputError: not of `gavel`'s table."""
        pair = plain(victim), plain(partner)
        if pair not in self._spread:
            raise InputError(f"interference {self.word!r} has no percentiles of {victim!r} beside {partner!r}")
        p10, _, p90 = self._spread[pair]
        return p10, p90

    def _place_of(self, model: str) -> int:
        """Of a model in the table; -1 for one that takes the default; raises InputError for one that may not."""
        place = self._place.get(plain(model))
        if place is not None:
            return place
        if self.default is not None:
            return -1
        raise InputError(
            f"interference {self.word!r} does not know model {model or '(empty)'!r}; known: "
            f"{', '.join(self._table.names)}; or give the slowdown of all others as default=X"
        )


Pairs = Mapping[tuple[str, str], tuple[float, ...]]  # by plain names
NO_TABLE = Table((), {}, ())


@dataclass(frozen=True)
class _Found:
    """What a word stands for: a table, or a number that holds everywhere."""

    table: Table = NO_TABLE
    everywhere: float | None = None
    default: float | None = None
    slice: Slice | None = None
    spread: Pairs = field(default_factory=dict)


def _by_model(pairs: Mapping[tuple[str, str], float]) -> Table:
    open_numbers = np.full((1, 6), np.nan)
    rows = {(plain(a), plain(b)): Rows(open_numbers, np.array([xi])) for (a, b), xi in pairs.items()}
    return Table(tuple(dict.fromkeys(a for a, _ in pairs)), rows, ())


def _gavel(
    *,
    gpu: Literal["v100", "p100", "k80"] = "v100",
    quantile: Literal["p10", "p50", "p90"] = "p50",
    default: float | None = None,
) -> _Found:
    spread = _gavel_pairs(gpu)
    at = QUANTILES.index(quantile)
    return _Found(_by_model({pair: values[at] for pair, values in spread.items()}), default=default, spread=spread)


def _measured(*, default: float | None = None) -> _Found:
    return _gavel(default=default)


@functools.cache
def _gavel_pairs(gpu: str) -> Pairs:
    with GAVEL.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return {
            (row["victim"], row["with"]): tuple(float(row[name]) for name in QUANTILES)
            for row in rows
            if row["gpu"] == gpu
        }


def _lucid(*, default: float | None = None) -> _Found:
    limits, factors = (np.array(column) for column in zip(*LUCID_STEPS, strict=True))
    pairs = {
        (a, b): float(factors[np.searchsorted(limits, used + other, side="right")])
        for a, used in LUCID_UTILISATION.items()
        for b, other in LUCID_UTILISATION.items()
    }
    return _Found(_by_model(pairs), default=default)


def _constant(*, xi: float) -> _Found:
    return _Found(everywhere=_checked(xi, "constant: xi"))


def _mig(*, slices: int) -> _Found:
    if slices not in SLICES:
        raise InputError(f"interference mig: slices = {slices}: expected {', '.join(map(str, SLICES))}")
    return _Found(everywhere=1.0, slice=SLICES[slices])


PRESETS: Mapping[str, Callable[..., _Found]] = {
    "measured": _measured,
    "gavel": _gavel,
    "lucid": _lucid,
    "light": _lucid,
    "constant": _constant,
    "mig": _mig,
}


def _found(word: str, default: float | None) -> _Found:
    name, colon, rest = word.partition(":") if isinstance(word, str) else (word, "", "")
    if colon and name.strip() == "csv":
        return _of_file(word, rest, default)
    if isinstance(word, str) and _is_path(word):
        return _Found(read_table(word), default=default)
    name, params = parse_name(word, "interference")
    if name == "csv":
        raise InputError(f"interference {word!r}: expected the path of the file, csv:PATH")
    preset = PRESETS[_chosen(name)]
    if default is not None:
        params = {"default": str(default), **params}
    return bind(preset, params, f"interference {name}")


def _of_file(word: str, rest: str, default: float | None) -> _Found:
    """csv:PATH[,mode=MODE][,default=X]; a path may have commas."""
    path, params = _parted(rest)
    if not path:
        raise InputError(f"interference {word!r}: expected the path of the file, csv:PATH")
    if default is not None:
        params = {"default": str(default), **params}

    def table(*, mode: str | None = None, default: float | None = None) -> _Found:
        return _Found(read_table(path, mode), default=default)

    return bind(table, params, "interference csv")


def _parted(rest: str) -> tuple[str, dict[str, str]]:
    path, *given = re.split(r",(?=\s*\w+\s*=)", rest)
    return path.strip(), parse_name(f"csv:{','.join(given)}", "interference")[1]


def _checked(value: float, what: str) -> float:
    if not 1.0 <= value <= MAX_XI:
        raise InputError(f"interference {what} = {value:g}: expected a slowdown from 1 to {MAX_XI:g}")
    return float(value)


def _is_path(word: str) -> bool:
    if word.partition(":")[0].strip() in PRESETS:
        return False
    return os.sep in word or "/" in word or word.lower().endswith(".csv") or os.path.exists(word)


def _replaced(word: str, see: See) -> str:
    name, colon, rest = word.partition(":")
    if not (colon and name.strip() == "csv"):
        return A_WORD.replaced(word, see)
    path, params = _parted(rest)
    return f"csv:{see(path, alone)},{params}"


A_WORD = path_unless(PRESETS.keys())
AN_INTERFERENCE = MayBeFile(_replaced)


def _chosen(name: str) -> str:
    try:
        return choose(name, PRESETS, "interference")
    except InputError as error:
        raise InputError(f"{error}; or the path of a csv file") from None
