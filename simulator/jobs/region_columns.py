"""The columns of our own schema for workloads over regions, and the files beside it.

A row with `parts` is a gang of several kinds of units in one region (warehouse/demands.py). Further columns of NAME.csv
or NAME.parquet:

| column        | needed | is |
| ------------- | ------ | -- |
| `parts`       | yes    | `A100:16 CPU:72`: one to four TYPE:UNITS, each for one cluster; `gpus` is the sum. |
|               |        | `A100|H100:16`: it accepts several types, and gets one of them |
| `tables`      | no     | names of the tables that it reads; empty: none |
| `level`       | no     | priority, 0 (highest) to 6 (the default) |
| `recurring`   | no     | 1: ran before, so the slow path knows it; 0 (the default) |
| `container_s` | no     | seconds that every start takes, >= 0; 0 |
| `fresh`       | no     | 1: needs the newest data, so it runs only where its tables have their home; 0 (the default) |

The type CPU is that of machines without GPUs. Names are separated by spaces.

Beside it lie, with the same NAME (only the first is needed):

* NAME.tables.csv: `table`, `size_tb`, `home`, and `replicas` (further regions that hold it at time 0), `partitions`
  (1), `read_share` (1), the share of its partitions that is read: replicas hold only those.
* NAME.regions.json: `regions` and `gpu_types`, names in the order of the topology (else in the order in which the files
  mention them); `slo_s`, seconds until the first start by level, null for any; `checkpoint_s`, to save one when
  preempted (0); `app_cpu_hours`, a list by region for each application.
* NAME.tenants.csv: `tenant`, `gpus` and `cpu_machines` that it may have at once; a tenant without a row, an empty
  cell: any number.
  A quota is over all levels of a tenant: name a team at each level as a tenant of its own.
* NAME.history.csv: what the slow path knows, a day's jobs: `kind` (training or analytics), `team`, `gpu_type` (of
  several that it accepts `A100|H100`), `gpus`, `gpu_hours`, `cpu_hours`, `level`, `app`, `recurring`, `tables`;
  `from_s` and `until_s`, from when and until when it counts on the job (empty: always). None: the recurring rows of the
  first day.
"""

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
    """Write the files beside a workload's at `path`.

    Raises:
        InputError: a name with a space, which the files could not hold.
        OSError: a file cannot be written.
    """
    _expect_plain_names(geo)
    beside = siblings(path)
    _write_csv(beside["tables.csv"], _table_columns(geo))
    gpus, machines = geo.quota.T.tolist()
    tenants = {"tenant": geo.tenant_names, "gpus": gpus, "cpu_machines": machines}
    _write_csv(beside["tenants.csv"], tenants)
    _write_csv(beside["history.csv"], _history_columns(geo))
    whole = {
        "regions": list(geo.regions),
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
    named: Mapping[str, Iterable[str]] = {
        "table": geo.table_names,
        "region": geo.regions,
        "GPU type": geo.gpu_types,
    }
    for what, names in named.items():
        for name in names:
            if not name or name.split() != [name] or (what == "GPU type" and set(":|") & set(name)):
                raise InputError(
                    f"{what} {name!r} cannot be saved; expected a name without spaces (GPU types: or ':' or '|')"
                )


def _write_csv(path: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        write_csv(file, list(columns), zip(*columns.values(), strict=True))
