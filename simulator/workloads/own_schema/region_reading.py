"""Reads what region_columns.py describes: rows of a workload over regions and the files beside it, into Demands."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...base.codes import LEVELS
from ...base.errors import InputError
from ...base.names import choose
from ...cluster.region_hardware import NO_GPU
from ...cluster.region_network import CPU_TYPE, MOST_REGIONS
from ...jobs.left_out import warn_of_unread
from ...jobs.region_columns import ANY, TERABYTE, siblings
from ...jobs.trace_columns import Table, read_csv
from ...jobs.workload import LARGEST_GANG, LONGEST_S, clip, first_duplicate
from ...warehouse.demands import MOST_CHOICES, MOST_CODES, MOST_PARTS, NO_TYPE, Demands
from ...warehouse.warehouse import LARGEST_TABLE, NO_APP, Jobs, Tables

_PART = re.compile(r"([^\s:|]+(?:\|[^\s:|]+)*):([0-9]{1,10})")
Part = tuple[tuple[str, ...], int]  # the types that it accepts, as they are written; its units
_MOST_TB = LARGEST_TABLE / TERABYTE
_DAY_S = 86400.0
# Columns of the files beside a workload, and whether a file must have them. Without its limits a quota is none, so both
# must be there: an empty cell is the one that means any number.
TABLE_COLUMNS = {
    **dict.fromkeys(("table", "size_tb", "home"), True),
    **dict.fromkeys(("replicas", "partitions", "read_share"), False),
}
TENANT_COLUMNS = dict.fromkeys(("tenant", "gpus", "cpu_machines"), True)
HISTORY_COLUMNS = {
    **dict.fromkeys(("kind", "tables"), True),
    **dict.fromkeys(("team", "gpu_type", "gpus", "gpu_hours", "cpu_hours", "level", "app", "recurring"), False),
    **dict.fromkeys(("from_s", "until_s"), False),
}


def read_demands(table: Table, path: str | Path) -> Demands:
    """The rows' demands of regions, in order; InputError names file, place, value and what was expected."""
    beside = siblings(path)
    whole = _whole(beside["regions.json"])
    needed = f"the tables that the jobs of {path} read" if any(map(str.split, table.text("tables", ""))) else None
    stored = _sibling(beside["tables.csv"], TABLE_COLUMNS, needed)
    parts = [_parts(table, row, word) for row, word in enumerate(table.text("parts"))]
    regions = _in_order(whole["regions"], [] if stored is None else _mentioned(stored), str(beside["tables.csv"]))
    mentioned = [kind for row in parts for kinds, _ in row for kind in kinds if kind != CPU_TYPE]
    types = _in_order(whole["gpu_types"], mentioned, table.path)
    names, tables = _tables(stored, regions)
    first, reads = _reads(table, {name: row for row, name in enumerate(names)})
    part_type, part_units, accepts = _grids(table, parts, (*types, CPU_TYPE))
    _check_units(table, part_units.sum(axis=1))
    tenants, tenant, quota = _tenants(table, beside["tenants.csv"])
    rows: dict[str, Any] = {
        "regions": regions,
        "gpu_types": (*types, CPU_TYPE),
        "level": table.number("level", low=0, high=LEVELS - 1, whole=True, default=LEVELS - 1, blank=LEVELS - 1),
        "tenant": tenant,
        "recurring": table.number("recurring", low=0, high=1, whole=True, default=0, blank=0).astype(bool),
        "part_type": part_type,
        "part_units": part_units,
        "accepts": accepts,
        "container_s": table.number("container_s", low=0, high=LONGEST_S, default=0.0, blank=0.0),
        "fresh": table.number("fresh", low=0, high=1, whole=True, default=0, blank=0).astype(bool),
        "first": first,
        "table": reads,
    }
    jobs, known = _history(beside["history.csv"], types, names, len(whole["app_cpu_hours"]))
    return Demands(
        **rows,
        tenant_names=tenants,
        table_names=names,
        tables=tables,
        quota=quota,
        slo_s=np.array([np.inf if limit is None else limit for limit in whole["slo_s"]], np.float64),
        checkpoint_s=whole["checkpoint_s"],
        history=jobs if jobs is not None else _recurring(table, rows),
        app_cpu_hours=np.array(whole["app_cpu_hours"], np.float64).reshape(len(whole["app_cpu_hours"]), len(regions)),
        known_s=known,
    )


def _whole(path: Path) -> dict[str, Any]:
    from typing import Annotated

    from pydantic import BaseModel, ConfigDict, Field

    from ...files.yaml_files import load_mapping, validated

    Name = Annotated[str, Field(strict=True, pattern=r"^\S+$", max_length=100)]
    Amount = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0, le=LONGEST_S)]
    Limit = Annotated[float, Field(strict=True, gt=0, le=LONGEST_S)]

    class Regions(BaseModel):
        model_config = ConfigDict(extra="forbid", frozen=True)
        regions: Annotated[list[Name], Field(min_length=1, max_length=MOST_REGIONS)] | None = None
        gpu_types: list[Annotated[Name, Field(pattern=r"^[^\s:|]+$")]] | None = None
        slo_s: Annotated[list[Limit | None], Field(min_length=LEVELS, max_length=LEVELS)] = [None] * LEVELS
        checkpoint_s: Amount = 0.0
        app_cpu_hours: list[list[Amount]] = []

    what = f"regions {str(path)!r}"
    spec = validated(Regions, load_mapping(path, "regions") if path.exists() else {}, what)
    for key in ("regions", "gpu_types"):
        names = getattr(spec, key) or []
        if (twice := first_duplicate(names)) is not None:
            raise InputError(f"{what}: {key} has {names[twice[1]]!r} twice; expected each name once")
    if CPU_TYPE in (spec.gpu_types or []):
        raise InputError(f"{what}: gpu_types has {CPU_TYPE!r}; expected GPUs; machines without are known")
    for row, hours in enumerate(spec.app_cpu_hours):
        if spec.regions is None or len(hours) != len(spec.regions):
            raise InputError(
                f"{what}: app_cpu_hours[{row}] has {len(hours)} values; expected one for each of its regions"
            )
    return spec.model_dump()


def _sibling(path: Path, columns: Mapping[str, bool], what: str | None) -> Table | None:
    """The table in a file with `columns`, name -> whether it must have it; None: none, and not needed for `what`."""
    if what is None and not path.exists():
        return None
    if not path.exists():
        raise InputError(f"{path}: no such file; expected {what}, one a row: table, size_tb, home")
    table = read_csv(path, may_be_empty=True, is_guarded=True)
    for name, is_needed in columns.items():
        if is_needed:
            table.column(name)
    warn_of_unread(table.path, table.header, columns)
    return table


def _in_order(given: Sequence[str] | None, mentioned: Sequence[str], path: str) -> tuple[str, ...]:
    """The names in the given order, else in that of their mention; InputError: one is not among those given."""
    if given is None:
        return tuple(dict.fromkeys(mentioned))
    for name in dict.fromkeys(mentioned):
        choose(name, given, f"name in {path}:")
    return tuple(given)


def _mentioned(stored: Table) -> list[str]:
    homes, replicas = stored.text("home"), stored.text("replicas", "")
    return [*homes, *(name for row in replicas for name in row.split())]


def _parts(table: Table, row: int, word: str) -> list[Part]:
    found = [_PART.fullmatch(part) for part in word.split()]
    if not 1 <= len(found) <= MOST_PARTS or not all(found):
        raise table.error(
            row, "parts", f"one to {MOST_PARTS} of TYPE:UNITS, separated by spaces; TYPE may be A100|H100"
        )
    parts = [(tuple(part[1].split("|")), int(part[2])) for part in found if part is not None]
    if not all(1 <= units <= LARGEST_GANG for _, units in parts):
        raise table.error(row, "parts", "parts of at least 1 unit each, at most 10^9")
    if any(len(set(kinds)) < len(kinds) for kinds, _ in parts):
        raise table.error(row, "parts", "each type of a part once")
    if any(CPU_TYPE in kinds and len(kinds) > 1 for kinds, _ in parts):
        raise table.error(row, "parts", f"{CPU_TYPE} with no other type in its part")
    if math.prod(len(kinds) for kinds, _ in parts) > MOST_CHOICES:
        raise table.error(row, "parts", f"at most {MOST_CHOICES} ways to choose types for all parts")
    return parts


def _grids(table: Table, parts: list[list[Part]], types: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """First type, units and set of accepted types of each part, see `Demands`."""
    code = {name: number for number, name in enumerate(types)}
    part_type = np.full((len(parts), MOST_PARTS), NO_TYPE, np.int64)
    part_units, accepts = np.zeros((2, len(parts), MOST_PARTS), np.int64)
    if len(types) > MOST_CODES:
        raise InputError(
            f"{table.path}: its parts name {len(types) - 1} types of GPUs; expected at most {MOST_CODES - 1}"
        )
    for row, own in enumerate(parts):
        for place, (kinds, units) in enumerate(own):
            codes = [code[kind] for kind in kinds]
            part_type[row, place], part_units[row, place] = min(codes), units
            accepts[row, place] = sum(1 << one for one in codes)
    return part_type, part_units, accepts


def _check_units(table: Table, units: np.ndarray) -> None:
    wrong = np.flatnonzero(table.number("gpus", low=1, high=LARGEST_GANG, whole=True) != units)
    if len(wrong):
        row = int(wrong[0])
        raise table.error(row, "gpus", f"{units[row]}, the units of its parts")


def _tables(stored: Table | None, regions: tuple[str, ...]) -> tuple[tuple[str, ...], Tables]:
    if stored is None:
        return (), Tables.none(len(regions))
    names = stored.text("table")
    for row, name in enumerate(names):
        if name.split() != [name]:
            raise stored.error(row, "table", "a name without spaces")
    if (twice := first_duplicate(names)) is not None:
        first = stored.places[twice[0]]
        raise stored.error(twice[1], "table", f"a name of its own ({stored.unit} {first} has it too)")
    code = {name: number for number, name in enumerate(regions)}
    home = np.array([_code(stored, row, "home", name, code) for row, name in enumerate(stored.text("home"))], np.int64)
    size = stored.number("size_tb", low=0, above=True, high=_MOST_TB)
    plain = Tables.at(np.maximum(np.rint(size * TERABYTE), 1.0).astype(np.int64), home, len(regions))
    for row, words in enumerate(stored.text("replicas", "")):
        for name in words.split():
            plain.copies[row, _code(stored, row, "replicas", name, code)] = True
    partitions = stored.number("partitions", low=1, high=LARGEST_GANG, whole=True, default=1, blank=1)
    share = stored.number("read_share", low=0, above=True, high=1, default=1.0, blank=1.0)
    return tuple(names), Tables(plain.size_bytes, home, plain.copies, partitions, share)


def _code(table: Table, row: int, column: str, name: str, code: Mapping[str, int]) -> int:
    if name not in code:
        raise table.error(row, column, f"one of {', '.join(list(code)[:8])}", name)
    return code[name]


def _reads(table: Table, code: Mapping[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """What each row reads: first (rows + 1,) and table (uses,)."""
    found: list[int] = []
    first = [0]
    for row, words in enumerate(table.text("tables", "")):
        own = words.split()
        for name in own:
            if name not in code:
                raise table.error(row, "tables", "names of tables in the file of tables beside it", name)
            found.append(code[name])
        if len(set(own)) < len(own):
            raise table.error(row, "tables", "each table once")
        first.append(len(found))
    return np.array(first, np.int64), np.array(found, np.int64)


def _tenants(table: Table, path: Path) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    given = _sibling(path, TENANT_COLUMNS, None)
    named = given.text("tenant") if given is not None else []
    if given is not None and (twice := first_duplicate(named)) is not None:
        raise given.error(twice[1], "tenant", f"a name of its own ({given.unit} {given.places[twice[0]]} has it too)")
    own = table.text("tenant", "")
    names = tuple(dict.fromkeys((*named, *own)))
    code = {name: number for number, name in enumerate(names)}
    quota = np.full((len(names), 2), ANY, np.int64)
    if given is not None:
        for column, name in enumerate(("gpus", "cpu_machines")):
            quota[: len(named), column] = given.number(name, low=0, high=ANY, whole=True, blank=ANY)
        limited: list[bool] = np.any(quota[: len(named)] < ANY, axis=1).tolist()
        idle = [name for name, has_limit in zip(named, limited, strict=True) if has_limit and name not in set(own)]
        if idle and not set(own) - {""} <= set(named):  # else every tenant has its row, and some have no jobs
            given.warn(f"no job is of tenant {clip(', '.join(idle), 200)}, whose quota limits nothing")
    return names, np.array([code[name] for name in own], np.int64), quota


def _history(path: Path, types: tuple[str, ...], names: tuple[str, ...], apps: int) -> tuple[Jobs | None, np.ndarray]:
    """The jobs, and from when until when each is known; without a row: always."""
    given = _sibling(path, HISTORY_COLUMNS, None)
    if given is None:
        return None, np.zeros((0, 2))
    kinds, codes = given.text("kind"), {name: number for number, name in enumerate(types)}
    for row, kind in enumerate(kinds):
        if kind not in ("training", "analytics"):
            raise given.error(row, "kind", "training or analytics")
    accepts = [
        sum({1 << _code(given, row, "gpu_type", kind, codes) for kind in name.split("|")}) if name else 0
        for row, name in enumerate(given.text("gpu_type", ""))
    ]
    gpu = [(bits & -bits).bit_length() - 1 for bits in accepts]  # without any NO_GPU
    first, reads = _reads(given, {name: row for row, name in enumerate(names)})
    if (np.diff(first) == 0).any():
        raise given.error(int((np.diff(first) == 0).argmax()), "tables", "one table at least")
    jobs = Jobs(
        training=np.array([kind == "training" for kind in kinds], bool),
        gpu_type=np.array(gpu, np.int64),
        gpus=given.number("gpus", low=0, high=LARGEST_GANG, whole=True, default=0, blank=0),
        gpu_hours=given.number("gpu_hours", low=0, default=0.0, blank=0.0),
        cpu_hours=given.number("cpu_hours", low=0, default=0.0, blank=0.0),
        level=given.number("level", low=0, high=LEVELS - 1, whole=True, default=LEVELS - 1, blank=LEVELS - 1),
        app=given.number("app", low=NO_APP, high=apps - 1, whole=True, default=NO_APP, blank=NO_APP),
        team=given.number("team", low=0, high=LARGEST_GANG, whole=True, default=0, blank=0),
        recurring=given.number("recurring", low=0, high=1, whole=True, default=1, blank=1).astype(bool),
        first=first,
        table=reads,
        accepts=np.array(accepts, np.int64),
    )
    since = given.number("from_s", default=-np.inf, blank=-np.inf)
    until = given.number("until_s", default=np.inf, blank=np.inf)
    limited = bool(np.isfinite(since).any() or np.isfinite(until).any())
    return jobs, np.stack([since, until], axis=1) if limited else np.zeros((0, 2))


def _recurring(table: Table, rows: Mapping[str, Any]) -> Jobs:
    """A day of each recurring row of the first day that reads a table."""
    arrival_s = table.number("arrival_s", low=0)
    first: np.ndarray = rows["first"]
    counts = np.diff(first)
    row = np.flatnonzero(rows["recurring"] & (arrival_s < arrival_s.min() + _DAY_S) & (counts > 0))
    hours = np.minimum(table.number("duration_s", low=0, above=True)[row] / 3600.0, 24.0)
    kind, units = rows["part_type"][row], rows["part_units"][row]
    is_gpu = (kind != NO_TYPE) & (kind != len(rows["gpu_types"]) - 1)
    gpus = np.where(is_gpu, units, 0).sum(axis=1)
    at = is_gpu.argmax(axis=1)
    reads = [rows["table"][first[one] : first[one + 1]] for one in row.tolist()]
    return Jobs(
        training=np.ones(len(row), bool),
        gpu_type=np.where(gpus > 0, kind[np.arange(len(row)), at], NO_GPU),
        gpus=gpus,
        gpu_hours=gpus * hours,
        cpu_hours=(units.sum(axis=1) - gpus) * hours,
        level=rows["level"][row],
        app=np.full(len(row), NO_APP),
        team=rows["tenant"][row],
        recurring=np.ones(len(row), bool),
        first=np.concatenate([[0], np.cumsum(counts[row])]).astype(np.int64),
        table=np.concatenate([*reads, np.zeros(0, np.int64)]),
        accepts=np.where(gpus > 0, rows["accepts"][row, at], 0),
    )
