"""Measurements of iteration times from csv files, as `clustergym workload fit-profile` takes them.

One row a measurement; a header names the columns, in any order (in parentheses what other simulators call them):
`model` and `gpu` (`gpu_type`), which may be given for the whole file instead; `gpus` (`num_replicas`) and `nodes`
(`num_nodes`), or `placement`: GPUs per machine as digits ("244", "1") or joined by "+" ("8+8"); `local_batch`
(`local_bsz`), samples on each GPU in one pass; `step_s` (`step_time`), seconds of one iteration without accumulation;
optional `sync_s` (`sync_time`), the part of it that waits for communication, and `memory_bytes` on each GPU.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..base.errors import InputError
from ..files.yaml_files import read_text
from ..jobs.trace_columns import Table
from ..jobs.workload import LARGEST_GANG, first_duplicate
from .model_names import plain

_NAMES = {
    "gpu_type": "gpu",
    "num_replicas": "gpus",
    "num_nodes": "nodes",
    "local_bsz": "local_batch",
    "step_time": "step_s",
    "sync_time": "sync_s",
}
_KNOWN = ("model", "gpu", "gpus", "nodes", "placement", "local_batch", "step_s", "sync_s", "memory_bytes")
_LONGEST_S = 1e6  # an iteration of eleven days is a slip of the unit


@dataclass(frozen=True, eq=False)
class Measurements:
    """Rows of one model on one GPU type; arrays of shape (n,), nan where something was not measured."""

    model: str
    gpu: str
    gpus: np.ndarray
    nodes: np.ndarray
    batch: np.ndarray
    step_s: np.ndarray
    sync_s: np.ndarray
    memory_bytes: np.ndarray

    def __len__(self) -> int:
        return len(self.gpus)


def read_measurements(
    paths: Sequence[str | os.PathLike[str]], model: str | None = None, gpu: str | None = None
) -> list[Measurements]:
    """The rows of the files by model and GPU type (`model`, `gpu`: of files without); InputError names the place."""
    groups: dict[tuple[str, str], list[np.ndarray]] = {}
    spelling: dict[str, str] = {}
    for path in paths:
        table = _table(path)
        models, gpus = (_labels(table, name, given) for name, given in (("model", model), ("gpu", gpu)))
        for row, name in enumerate(models):
            if not plain(name):
                raise table.error(row, "model", "a model's name", name)
        keys = [(spelling.setdefault(plain(name), name), kind) for name, kind in zip(models, gpus, strict=True)]
        values = _values(table)
        for key in dict.fromkeys(keys):
            rows = np.array([other == key for other in keys])
            groups.setdefault(key, []).append(values[:, rows])
    joined = {key: np.concatenate(parts, axis=1) for key, parts in groups.items()}
    return [Measurements(model, gpu, *columns) for (model, gpu), columns in joined.items()]


def _values(table: Table) -> np.ndarray:
    """(6, n): gpus, nodes, batch, step_s, sync_s, memory_bytes."""
    gpus, nodes = _places(table)
    step_s = table.number("step_s", low=0, above=True, high=_LONGEST_S)
    sync_s = np.full(len(table), np.nan)
    if "sync_s" in table:
        sync_s = table.number("sync_s", low=0, high=_LONGEST_S, blank=np.nan)
        if (late := sync_s > step_s).any():
            row = int(np.argmax(late))
            raise table.error(row, "sync_s", f"at most the whole iteration, {step_s[row]:g}")
    memory = np.full(len(table), np.nan)
    if "memory_bytes" in table:
        memory = table.number("memory_bytes", low=0, above=True, high=1e15, blank=np.nan)
    batch = table.number("local_batch", low=1, high=1e9, whole=True).astype(np.float64)
    return np.stack([gpus, nodes, batch, step_s, sync_s, memory])


def _places(table: Table) -> tuple[np.ndarray, np.ndarray]:
    """(GPUs, machines) of every row."""
    if "placement" not in table:
        gpus = table.number("gpus", low=1, high=LARGEST_GANG, whole=True).astype(np.float64)
        nodes = table.number("nodes", low=1, high=LARGEST_GANG, whole=True, default=1).astype(np.float64)
        if "nodes" not in table and (gpus > 1).any():
            raise table.error(int(np.argmax(gpus > 1)), "gpus", "1, for there is no column 'nodes' or 'placement'")
        if (bad := nodes > gpus).any():
            row = int(np.argmax(bad))
            raise table.error(row, "nodes", f"at most the job's {gpus[row]:g} GPUs")
        return gpus, nodes
    gpus, nodes = np.empty(len(table)), np.empty(len(table))
    for row, text in enumerate(table.text("placement")):
        parts = text.split("+") if "+" in text else list(text.strip())
        counts = [int(part) if part.strip().isascii() and part.strip().isdigit() else 0 for part in parts]
        if not counts or min(counts) < 1 or sum(counts) > LARGEST_GANG:
            raise table.error(row, "placement", 'GPUs per machine, each at least 1, as "244" or "8+8"')
        gpus[row], nodes[row] = sum(counts), len(counts)
    return gpus, nodes


def _labels(table: Table, column: str, given: str | None) -> list[str]:
    if column not in table:
        if given is None:
            raise InputError(f"{table.path}: column {column!r} is missing; or say it for the whole file: --{column}")
        return [given] * len(table)
    if given is not None:
        raise InputError(f"{table.path}: has a column {column!r}, and --{column} is given too; one of them is enough")
    labels = [label.strip() for label in table.text(column)]
    if "" in labels:
        raise table.error(labels.index(""), column, "a name")
    return labels


def _table(path: str | os.PathLike[str]) -> Table:
    lines = ["" if line.startswith("#") else line for line in read_text(path, "measurements").splitlines()]
    head = next((i for i, line in enumerate(lines) if line.strip()), len(lines))
    reader = csv.reader(lines[head:], strict=True)
    rows: list[list[str]] = []
    places: list[int] = []
    try:
        shown = [name.strip() for name in next(reader, [])]
        names = [_NAMES.get(name, name) for name in shown]
        if (twice := first_duplicate(names)) is not None:
            raise InputError(f"{path}, line {head + 1}: column {names[twice[1]]!r} is given twice in the header")
        for row in reader:
            line = head + reader.line_num
            if row and len(row) != len(names):
                raise InputError(f"{path}, line {line}: {len(row)} fields; expected {len(names)}, as in the header")
            if row:
                rows.append(row)
                places.append(line)
    except csv.Error as error:
        raise InputError(f"{path}, line {head + reader.line_num}: not readable as csv ({error})") from None
    if not rows:
        raise InputError(f"{path}: a header but no rows; expected at least one measurement")
    columns = {name: list(cells) for name, cells in zip(names, zip(*rows, strict=True), strict=True) if name in _KNOWN}
    return Table(os.fspath(path), columns, np.array(places), "line", tuple(shown), dict(zip(names, shown, strict=True)))
