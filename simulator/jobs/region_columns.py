"""Columns of workloads over regions (docs/concepts/workloads.md), and the files beside; `parts`: 1 to 4 TYPE:UNITS."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import InputError
from ..files.csv_cells import write_csv
from ..warehouse.demands import Demands
from ..warehouse.warehouse import NO_APP, Jobs

COLUMNS = ("parts", "tables", "level", "recurring", "container_s", "fresh")
SIBLINGS = ("tables.csv", "regions.json", "tenants.csv", "history.csv")
TERABYTE = 1e12
ANY = 10**9  # of a quota that is none


def siblings(path: str | Path) -> dict[str, Path]:
    """The files beside a workload's, by the ending that follows its name."""
    path = Path(path)
    return {ending: path.parent / f"{path.stem}.{ending}" for ending in SIBLINGS}


def columns_of(geo: Demands) -> dict[str, list[Any]]:
    """The further columns of a workload, as a csv holds them."""
    parts = [
        " ".join(f"{name}:{count}" for name, count in zip(geo.type_names(job), row, strict=False))
        for job, row in enumerate(geo.part_units.tolist())
    ]
    return {
        "parts": parts,
        "tables": _names(geo.first, geo.table, geo.table_names),
        "level": geo.level.tolist(),
        "recurring": geo.recurring.astype(np.int64).tolist(),
        "container_s": geo.container_s.tolist(),
        **({"fresh": geo.fresh.astype(np.int64).tolist()} if geo.fresh.any() else {}),
    }


def write_siblings(geo: Demands, path: str | Path) -> None:
    """Write the files beside a workload's at `path`; InputError: a name with a space; OSError: no write."""
    _expect_plain_names(geo)
    beside = siblings(path)
    _write_csv(beside["tables.csv"], _table_columns(geo))
    gpus, machines = geo.quota.T.tolist()
    tenants = {"tenant": geo.tenant_names, "gpus": gpus, "cpu_machines": machines}
    _write_csv(beside["tenants.csv"], tenants)
    _write_csv(beside["history.csv"], _history_columns(geo))
    whole = {
        "regions": list(geo.regions) or None,
        "gpu_types": list(geo.gpu_types[:-1]),
        "slo_s": [None if np.isinf(limit) else limit for limit in geo.slo_s.tolist()],
        "checkpoint_s": float(geo.checkpoint_s),
        "app_cpu_hours": geo.app_cpu_hours.tolist(),
    }
    beside["regions.json"].write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


def _table_columns(geo: Demands) -> dict[str, Sequence[Any]]:
    tables = geo.tables
    replicas = tables.copies.copy()
    replicas[np.arange(len(tables)), tables.home] = False
    first = np.concatenate([[0], np.cumsum(replicas.sum(axis=1))])
    return {
        "table": geo.table_names,
        "size_tb": (tables.size_bytes / TERABYTE).tolist(),
        "home": [geo.regions[home] for home in tables.home.tolist()],
        "replicas": _names(first, np.nonzero(replicas)[1], geo.regions),
        "partitions": tables.partitions.tolist(),
        "read_share": tables.read_share.tolist(),
    }


def _history_columns(geo: Demands) -> dict[str, Sequence[Any]]:
    jobs: Jobs = geo.history
    return {
        "kind": ["training" if trains else "analytics" for trains in jobs.training.tolist()],
        "team": jobs.team.tolist(),
        "gpu_type": [
            "|".join(name for code, name in enumerate(geo.gpu_types[:-1]) if bits >> code & 1)
            for bits in jobs.accepts.tolist()
        ],
        "gpus": jobs.gpus.tolist(),
        "gpu_hours": jobs.gpu_hours.tolist(),
        "cpu_hours": jobs.cpu_hours.tolist(),
        "level": jobs.level.tolist(),
        "app": ["" if app == NO_APP else app for app in jobs.app.tolist()],
        "recurring": jobs.recurring.astype(np.int64).tolist(),
        "tables": _names(jobs.first, jobs.table, geo.table_names),
        **({"from_s": _finite(geo.known_s[:, 0]), "until_s": _finite(geo.known_s[:, 1])} if len(geo.known_s) else {}),
    }


def _finite(times: np.ndarray) -> list[Any]:
    return [time_s if np.isfinite(time_s) else "" for time_s in times.tolist()]


def _names(first: np.ndarray, item: np.ndarray, names: Sequence[str]) -> list[str]:
    """Row by row the names of `item[first[row] : first[row + 1]]`, with spaces between them."""
    words = [names[one] for one in item.tolist()]
    return [" ".join(words[low:high]) for low, high in pairwise(first.tolist())]


def _expect_plain_names(geo: Demands) -> None:
    named: Mapping[str, Iterable[str]] = {"table": geo.table_names, "region": geo.regions, "GPU type": geo.gpu_types}
    for what, names in named.items():
        for name in names:
            if not name or name.split() != [name] or (what == "GPU type" and set(":|") & set(name)):
                raise InputError(
                    f"{what} {name!r} cannot be saved; expected a name without spaces (GPU types: or ':' or '|')"
                )


def _write_csv(path: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        write_csv(file, list(columns), zip(*columns.values(), strict=True))
