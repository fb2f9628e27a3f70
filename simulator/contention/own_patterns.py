"""A user's own Up and Down phases, from a file: network contention:models=PATH; see docs/concepts/network.md."""

from __future__ import annotations

import csv
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from ..base.errors import InputError
from ..files.yaml_files import load_mapping, read_text, validated
from ..profiles.cassini_models import GBPS
from ..profiles.phases import Phases
from ..record.contention_fields import MOST_PHASES

COLUMNS = ("model", "workers", "batch", "iteration_s", "local_s", "start_s", "duration_s", "gbps")
_Key = tuple[int | None, int | None]


@dataclass(frozen=True)
class OwnPattern:
    """The rows of one model: (workers, batch) -> phases, and seconds of an iteration on one machine."""

    name: str
    rows: Mapping[_Key, tuple[Phases, float]]

    def of(self, workers: int, batch: int) -> tuple[Phases, float]:
        """The best row: of these workers and batch, of these workers, of this batch, of any; InputError: none."""
        for key in ((workers, batch), (workers, None), (None, batch), (None, None)):
            if key in self.rows:
                return self.rows[key]
        raise InputError(f"model {self.name!r}: no phases for {workers} workers and batch {batch} per GPU")


@dataclass(frozen=True, eq=False)
class OwnPatterns:
    """The models of a file, by name; one is equal to itself alone."""

    models: Mapping[str, OwnPattern]

    def __contains__(self, model: object) -> bool:
        return model in self.models


NO_PATTERNS = OwnPatterns({})


def read_patterns(path: str) -> OwnPatterns:
    """The models of a file, "" has none; one object while the text is the same. InputError names place and value."""
    return _parsed(path, read_text(path, "phases")) if path else NO_PATTERNS


@functools.lru_cache(maxsize=64)
def _parsed(path: str, text: str) -> OwnPatterns:
    what = f"phases {path!r}"
    mapping = _from_csv(text, what) if path.lower().endswith(".csv") else load_mapping(path, "phases")
    found = {}
    for name, rows in validated(_models().File, mapping, what).models.items():
        table: dict[_Key, tuple[Phases, float]] = {}
        for position, given in enumerate(rows):
            place = f"{what}: models.{name}[{position}]"
            if not isinstance(given, Mapping):
                raise InputError(f"{place} is not a mapping; expected iteration_s, phases, ...")
            row = validated(_models().Row, given, place)
            if (row.workers, row.batch) in table:
                raise InputError(f"{place}: workers {row.workers} and batch {row.batch} are given twice")
            table[row.workers, row.batch] = _pattern(row, place)
        found[name] = OwnPattern(name, table)
    return OwnPatterns(found)


def _pattern(row: Any, place: str) -> tuple[Phases, float]:
    ups = sorted(row.phases, key=lambda up: up.start_s)
    try:
        phases = Phases(
            row.iteration_s,
            tuple(up.start_s for up in ups),
            tuple(up.duration_s for up in ups),
            tuple(up.gbps * GBPS for up in ups),
        )
    except InputError:
        raise InputError(f"{place}: expected phases apart from each other and inside the iteration") from None
    local_s = phases.iteration_s - phases.up_s if row.local_s is None else row.local_s
    if not local_s > 0.0:
        raise InputError(f"{place}: the phases fill the whole iteration, expected local_s, its seconds on one machine")
    return phases, local_s


def _from_csv(text: str, what: str) -> dict[str, Any]:
    reader = csv.DictReader(text.splitlines())
    missing = [column for column in COLUMNS if column not in (reader.fieldnames or ())]
    if missing:
        raise InputError(f"{what}: column {missing[0]!r} is missing; expected {', '.join(COLUMNS)}")
    models: dict[str, dict[tuple[str, str], dict[str, Any]]] = {}
    for line, cells in enumerate(reader, start=2):
        place = f"{what}, line {line}"
        given = {key: (cells[key] or "").strip() for key in COLUMNS}
        if not given["model"]:
            raise InputError(f"{place}: model is missing")
        row = {key: _number(given[key], f"{place}: {key}") for key in COLUMNS[1:5] if given[key]}
        phase = {key: _number(given[key], f"{place}: {key}") for key in COLUMNS[5:] if given[key]}
        rows = models.setdefault(given["model"], {})
        first = rows.setdefault((given["workers"], given["batch"]), {**row, "phases": []})
        if {key: value for key, value in first.items() if key != "phases"} != row:
            raise InputError(f"{place}: iteration_s or local_s is not that of the rows before")
        first["phases"] += [phase] if phase else []
    return {"models": {name: list(rows.values()) for name, rows in models.items()}}


def _number(text: str, place: str) -> float:
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        raise InputError(f"{place} = {text!r}: expected a number") from None


@functools.cache
def _models() -> SimpleNamespace:
    from typing import Annotated

    from pydantic import BaseModel, ConfigDict, Field

    Seconds = Annotated[float, Field(strict=True, gt=0, le=1e6, allow_inf_nan=False)]
    Count = Annotated[int, Field(strict=True, ge=1, le=10**9)]

    class Strict(BaseModel):
        model_config = ConfigDict(extra="forbid", frozen=True)

    class Up(Strict):
        start_s: Annotated[float, Field(strict=True, ge=0, le=1e6, allow_inf_nan=False)]
        duration_s: Seconds
        gbps: Annotated[float, Field(strict=True, gt=0, le=1e6, allow_inf_nan=False)]

    class Row(Strict):
        workers: Count | None = None
        batch: Count | None = None
        iteration_s: Seconds
        local_s: Seconds | None = None
        phases: Annotated[list[Up], Field(max_length=MOST_PHASES, default_factory=list)]

    class File(Strict):
        models: Annotated[
            dict[Annotated[str, Field(min_length=1, max_length=200)], Annotated[list[Any], Field(min_length=1)]],
            Field(min_length=1),
        ]

    return SimpleNamespace(File=File, Row=Row, Up=Up)
