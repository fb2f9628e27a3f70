"""Workload: the jobs of one run as arrays sorted by arrival, and our own file schema (csv and parquet).

docs/concepts/workloads.md has the columns; those of regions are in region_columns.py, of parameter-server jobs in
ps_jobs.py. Unsorted rows and other columns give a warning. `Workload.save` writes every column (`iterations` only where
known, `iteration_s` only where not the quotient); numbers come back bit for bit. A parquet file also keeps the
workload's name, a csv takes it from the file name; it is sealed (sealed_parquet.py) against damage.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..base.errors import InputError
from ..base.names import choose, numbered
from ..files import sealed_parquet
from ..files.csv_cells import write_csv
from . import ps_jobs
from .part_gangs import PartGangs
from .ps_jobs import PsJobs
from .region_columns import columns_of, write_siblings

if TYPE_CHECKING:
    from ..warehouse.demands import Demands

REQUIRED = ("job_id", "arrival_s", "gpus", "duration_s")
OPTIONAL = (
    *("iterations", "iteration_s", "model", "batch_size", "user", "tenant"),
    *("priority", "deadline_s", "estimate_s", "level", "gpu_type", "start_s", "hosts"),
)
COLUMNS = REQUIRED + OPTIONAL
TEXT = ("job_id", "model", "user", "tenant", "gpu_type", "hosts")
WHOLE = ("gpus", "batch_size", "priority", "level")
OF_LOGS = ("level", "gpu_type", "start_s", "hosts")  # what few sources have: a file holds them where any is known

AGREEMENT = 1e-6  # relative, between iteration_s x iterations and duration_s
LARGEST_GANG = 10**9
LONGEST_S = 1e15  # no time or iteration count beyond it: sums over a million jobs stay exact enough to mean something
PARQUET_NAME_KEY = b"clustergym.workload"

# Would not survive a csv file (C0, surrogates), or lets a terminal show something else: C1, separators of lines, and
# what turns the direction of writing.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class WorkloadWarning(UserWarning):
    """Something in a trace was changed to make it usable: rows were sorted, dropped or capped."""


@dataclass(frozen=True, eq=False)
class Workload:
    """Jobs sorted by arrival (stable). All arrays have shape (n,), n >= 1, and are read-only.

    Attributes:
        name: where it came from; a label for tables and pictures.
        job_id: str objects, unique, not empty.
        arrival_s: float64 seconds >= 0, ascending.
        gpus: int64 >= 1, the gang size.
        duration_s: float64 seconds > 0, run time alone on its GPUs, placed best on the empty cluster; or computing
            alone, if the network takes it so (network/isolated.py).
        iterations: float64 > 0; `duration_s` itself where the source has none (then 1 iteration = 1 s).
        iteration_s: float64 > 0, seconds per iteration on its GPUs, placed best, as exact as the source has it;
            `duration_s / iterations` where the source has none.
        model, user, tenant (the virtual cluster): str objects, "" unknown.
        batch_size: int64 >= 0, 0 unknown.
        priority: int64, 0 default, larger is more important.
        deadline_s: float64 > 0, absolute seconds on the arrival clock, inf = none.
        estimate_s: float64 > 0, its user's estimate of `duration_s` (simulator/jobs/estimates.py), inf = unknown.
        level: int64 >= 0, how important: 0, the default, is the most; of a workload over regions that of its demands.
        gpu_type: str objects, the types of GPU that a job accepts, `|` between them; "" any. Over regions: `geo`.
        start_s: float64 seconds on the arrival clock, when the job started according to the log; inf unknown.
        hosts: str objects, the machines that it ran on according to the log, spaces between them; "" unknown.
        geo: demands of regions: parts of several unit types, tables, levels; `gpus` is then all units; or None.
        ps: demands as parameter-server jobs: COMP, COMM, bytes, epochs; `gpus` are then machines; or None.
        iterations_known: the source gives the iterations of every job; else an iteration of some is but a second.
        window_s: seconds within which the jobs were submitted, as their generator says, perhaps beyond the last
            arrival; None: unknown. Files do not hold it.
        origin_s: time 0 of the arrival clock in seconds since 1970; None: unknown. Our own files do not hold it.

    Build one with `from_arrays`, which checks; the constructor does not.
    """

    name: str
    job_id: np.ndarray
    arrival_s: np.ndarray
    gpus: np.ndarray
    duration_s: np.ndarray
    iterations: np.ndarray
    iteration_s: np.ndarray
    model: np.ndarray
    batch_size: np.ndarray
    user: np.ndarray
    tenant: np.ndarray
    priority: np.ndarray
    deadline_s: np.ndarray
    estimate_s: np.ndarray
    level: np.ndarray
    gpu_type: np.ndarray
    start_s: np.ndarray
    hosts: np.ndarray
    geo: Demands | None = None
    ps: PsJobs | None = None
    iterations_known: bool = True
    window_s: float | None = None
    origin_s: float | None = None

    def __post_init__(self) -> None:
        if self.geo is not None:
            object.__setattr__(self, "level", np.array(self.geo.level, np.int64))
        for column in COLUMNS:
            getattr(self, column).setflags(write=False)
        if self.geo is not None and not np.array_equal(self.geo.units, self.gpus):
            raise InputError(f"workload {self.name!r}: the units of its jobs' parts do not add up to their gpus")
        if self.ps is not None and self.geo is not None:
            raise InputError(f"workload {self.name!r}: PS jobs have no regions; expected geo or ps, not both")
        if self.ps is not None:
            self.ps.check_agrees(self.name, self.job_id, self.gpus, self.duration_s, self.iterations)

    def __len__(self) -> int:
        return len(self.arrival_s)

    def __repr__(self) -> str:
        return f"Workload({self.name!r}, {len(self)} jobs, {int(self.gpus.max())} GPUs at most)"

    @classmethod
    def from_arrays(cls, name: str, arrival_s: Any, gpus: Any, duration_s: Any, **optional: Any) -> Workload:
        """Check the columns, sort them by arrival (stable; a warning if they were not), fill in the rest.

        Args:
            arrival_s, gpus, duration_s: array-likes of one length n >= 1.
            optional: `job_id` (default "0", "1", ...) and any optional column of the schema; None means absent.

        Raises:
            InputError: naming the job, the column, the value and what was expected.
        """
        unknown = set(optional) - {"job_id", *OPTIONAL}
        if unknown:
            choose(sorted(unknown)[0], ("job_id", *OPTIONAL), f"column of workload {name!r}:")
        given = {"arrival_s": arrival_s, "gpus": gpus, "duration_s": duration_s, **optional}
        given = {key: value for key, value in given.items() if value is not None}
        columns = _complete(name, given)
        _check(name, columns, given)
        if np.any(np.diff(columns["arrival_s"]) < 0):
            warnings.warn(f"{name}: arrivals were not in order; sorted by arrival", WorkloadWarning, stacklevel=2)
            order = np.argsort(columns["arrival_s"], kind="stable")
            columns = {key: value[order] for key, value in columns.items()}
        return cls(
            name, **columns, geo=None, ps=None, iterations_known="iterations" in given, window_s=None, origin_s=None
        )

    @classmethod
    def drawn(
        cls,
        name: str,
        arrival_s: np.ndarray,
        gpus: np.ndarray,
        duration_s: np.ndarray,
        model_names: tuple[str, ...],
        model_code: np.ndarray,
    ) -> Workload:
        """Take over a generator's columns unchecked: typed, in range, sorted, unshared. The last two: attributes."""
        model = _options(model_names)[model_code]
        given = {"arrival_s": arrival_s, "gpus": gpus, "duration_s": duration_s, "model": model}
        for column in given.values():
            column.setflags(write=False)
        n = len(arrival_s)
        workload = cls.__new__(cls)  # without `__init__`, which takes as long as the draws
        vars(workload).update(_defaults(n), name=name, iterations=duration_s, iteration_s=_ones(n), **given)
        vars(workload).update(geo=None, ps=None, iterations_known=False, window_s=None)
        vars(workload).update(model_names=model_names, model_code=model_code)
        return workload

    @cached_property
    def model_code(self) -> np.ndarray:
        """The number of each job's model among `model_names`, int64 (n,)."""
        return numbered(self.model.tolist())

    @cached_property
    def model_names(self) -> tuple[str, ...]:
        """The models by `model_code`; of a generator all that it draws from."""
        return tuple(dict.fromkeys(self.model.tolist()))

    @property
    def gpus_asked(self) -> np.ndarray:
        """GPUs of each job, int64 (n,): over regions without its CPU machines; of PS jobs machines."""
        return self.gpus if self.geo is None else self.geo.asked[:, 0]

    @cached_property
    def largest_gang(self) -> int:
        """The most GPUs that a job asks."""
        return int(self.gpus_asked.max())

    @cached_property
    def gangs(self) -> Workload | PartGangs:
        """What networks are asked about: the jobs; over regions their parts with GPUs."""
        return self if self.geo is None else PartGangs.of(self)

    def offered_load(self, gpus: float, run_s: np.ndarray | None = None) -> float:
        """GPU-seconds of work that arrive per second, over `gpus`: above 1 the queue grows while jobs arrive.

        With a known `window_s`, the work of all jobs over it. Else the work of all but the jobs of the first arrival,
        over the time from the first arrival to the last; inf where all arrive at once.

        Args:
            gpus: of the cluster, above 0; 1 gives the GPUs that the work would keep busy.
            run_s: isolated run times, seconds, (n,), where `duration_s` is something else (see `offered.offered_load`).
        """
        work_s = self.work_s(run_s)
        if self.window_s is not None:
            return float(work_s.sum() / (gpus * self.window_s))
        span_s = float(self.arrival_s[-1] - self.arrival_s[0])
        later = self.arrival_s > self.arrival_s[0]
        return float(work_s[later].sum() / (gpus * span_s)) if span_s > 0 else math.inf

    def work_s(self, run_s: np.ndarray | None = None) -> np.ndarray:
        """GPU-seconds that each job asks, float64 (n,), with run times as for `offered_load`.

        Over regions only GPUs count. Of PS jobs it is the machine-seconds of COMP, on any number of machines.
        """
        if self.ps is not None:
            return self.iterations * self.ps.comp_machine_s
        return self.gpus_asked * (self.duration_s if run_s is None else run_s)

    def take(self, indices: Any) -> Workload:
        """The jobs at `indices` (integers or a boolean mask), in order of arrival; InputError: none, or one twice."""
        chosen = np.arange(len(self))[np.asarray(indices)]
        chosen.sort()
        if not len(chosen):
            raise InputError(f"workload {self.name!r}: no job is left of {len(self)}")
        if np.any(np.diff(chosen) == 0):
            raise InputError(f"workload {self.name!r}: a job is taken twice; job ids must stay unique")
        geo = None if self.geo is None else self.geo.take(chosen)
        ps = None if self.ps is None else self.ps.take(chosen)
        columns: dict[str, Any] = {column: getattr(self, column)[chosen] for column in COLUMNS}
        return replace(self, **columns, geo=geo, ps=ps)

    def with_geo(self, geo: Demands) -> Workload:
        """The same jobs with demands of regions; InputError: another number of rows, or units that are not `gpus`."""
        return replace(self, geo=geo)

    def with_ps(self, ps: PsJobs) -> Workload:
        """The same jobs as parameter-server jobs; rows of `ps` in the order of these jobs.

        InputError: another number of rows, iterations that are not whole, or a `duration_s` that is not `iterations`
        times `comp_machine_s / gpus + comm_s`.
        """
        return replace(self, ps=ps)

    def oversize(self, cluster_gpus: int, action: Literal["error", "drop", "cap"] = "error") -> Workload:
        """Deal with jobs that ask more than `cluster_gpus`: refuse, drop, or cap the gang (same duration).

        A capped PS job gets its run time, and estimate, on `cluster_gpus` machines. InputError: with `error`, the first
        such job; with `drop`, nothing is left; with `cap`, jobs of several parts.
        """
        choose(action, ("error", "drop", "cap"), "value of oversize")
        if self.largest_gang <= cluster_gpus:
            return self
        asked = self.gpus_asked
        too_big = asked > cluster_gpus
        count, first = int(too_big.sum()), int(np.argmax(too_big))
        if action == "error":
            more = f" (and {count - 1} more like it)" if count > 1 else ""
            raise InputError(
                f"workload {self.name!r}: job {self.job_id[first]} asks {asked[first]} GPUs but the "
                f"cluster has {cluster_gpus}{more}; use --oversize drop or cap, or a larger topology"
            )
        if action == "cap" and self.geo is not None:
            raise InputError(f"workload {self.name!r}: jobs of parts cannot be capped; expected --oversize drop")
        left = self.take(~too_big) if action == "drop" else self._capped(cluster_gpus)
        before, after = (float(one.work_s().sum() / 3600.0) for one in (self, left))
        lost = "" if after == before else f": {before - after:,.4g} of {before:,.4g} GPU-hours are gone"
        warnings.warn(
            f"{self.name}: {'dropped' if action == 'drop' else 'capped'} {count} of {len(self)} jobs that ask more "
            f"than {cluster_gpus} GPUs{lost}",
            WorkloadWarning,
            stacklevel=2,
        )
        return left

    def _capped(self, most: int) -> Workload:
        gpus = np.minimum(self.gpus, most)
        if self.ps is None:
            return replace(self, gpus=gpus)
        iteration_s = self.ps.iteration_s(gpus)
        duration_s = self.iterations * iteration_s
        estimate_s = self.estimate_s * (duration_s / self.duration_s)
        return replace(self, gpus=gpus, iteration_s=iteration_s, duration_s=duration_s, estimate_s=estimate_s)

    def save(self, path: str | Path) -> None:
        """Write the workload in our own schema, csv or parquet by the path's ending, with the files beside it.

        Raises:
            InputError: another ending, or the file cannot be written.
        """
        path = Path(path)
        writers = {".csv": _write_csv, ".parquet": _write_parquet}
        if path.suffix.lower() not in writers:
            raise InputError(
                f"{path}: cannot tell how to write {path.suffix or 'a file without ending'!r}; "
                "expected .csv or .parquet"
            )
        try:
            writers[path.suffix.lower()](self, path)
            if self.geo is not None:
                write_siblings(self.geo, path)
        except OSError as error:
            raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None


def _complete(name: str, given: dict[str, Any]) -> dict[str, np.ndarray]:
    columns = {key: _convert(name, key, value) for key, value in given.items()}
    n = len(columns["arrival_s"])
    if n == 0:
        raise InputError(f"workload {name!r}: it holds no jobs; expected at least one")
    for key, value in columns.items():
        if len(value) != n:
            raise InputError(f"workload {name!r}, column {key}: {len(value)} values; expected {n}, as in arrival_s")
    columns = {**_defaults(n), "iterations": columns["duration_s"].copy(), **columns}
    if "iteration_s" not in columns:
        with np.errstate(all="ignore"):  # values out of range are refused by the check that follows
            columns["iteration_s"] = columns["duration_s"] / columns["iterations"]
    return {column: columns[column] for column in COLUMNS}


@lru_cache(maxsize=16)
def _defaults(n: int) -> dict[str, np.ndarray]:
    """Read-only columns of `n` jobs of which nothing is known; all such workloads share them."""
    blank, zeros = np.full(n, "", dtype=object), np.zeros(n, dtype=np.int64)
    columns = {
        "job_id": text_array([str(i) for i in range(n)]),
        "model": blank,
        "batch_size": zeros,
        "user": blank,
        "tenant": blank,
        "priority": zeros,
        "deadline_s": np.full(n, np.inf),
        "estimate_s": np.full(n, np.inf),
        "level": zeros,
        "gpu_type": blank,
        "start_s": np.full(n, np.inf),
        "hosts": blank,
    }
    for column in columns.values():
        column.setflags(write=False)
    return columns


@lru_cache(maxsize=64)
def _options(names: tuple[str, ...]) -> np.ndarray:
    return np.array(names, dtype=object)


@lru_cache(maxsize=16)
def _ones(n: int) -> np.ndarray:
    ones = np.ones(n)
    ones.setflags(write=False)
    return ones


def _convert(name: str, column: str, values: Any) -> np.ndarray:
    if column in TEXT:
        return text_array(values)
    try:
        array = np.asarray(values)
        if column in WHOLE and array.dtype.kind == "f" and np.all(np.floor(array) == array):
            array = array.astype(np.int64)
        if array.ndim != 1 or array.dtype.kind not in ("iu" if column in WHOLE else "iuf"):
            raise ValueError
        return array.astype(np.int64 if column in WHOLE else np.float64, copy=True)
    except (ValueError, TypeError, OverflowError):
        noun = "whole numbers" if column in WHOLE else "numbers"
        raise InputError(f"workload {name!r}, column {column}: expected a flat list of {noun}") from None


def _check(name: str, columns: dict[str, np.ndarray], given: Collection[str]) -> None:
    """Ranges, uniqueness and text of given and calculated columns; InputError names the first bad job."""
    numbers = {column: columns[column] for column in RANGES if column in given or column in _CALCULATED}
    for column, bad, expected in bad_values(numbers):
        i = int(np.argmax(bad))
        raise InputError(
            f"workload {name!r}, job {columns['job_id'][i]!r} (number {i + 1}), "
            f"{column}: {columns[column][i]} is not {expected}"
        )
    _check_agreement(name, columns)
    for column in (column for column in TEXT if column in given):
        if len(found := bad_texts(columns[column])):
            raise InputError(
                f"workload {name!r}, job number {found[0] + 1}, {column}: "
                f"{clip(columns[column][found[0]])} holds a control character; expected plain text"
            )
    if "job_id" not in given:
        return
    ids = columns["job_id"]
    if (twice := first_duplicate(ids)) is not None:
        raise InputError(
            f"workload {name!r}: job_id {ids[twice[1]]!r} is given twice "
            f"(jobs number {twice[0] + 1} and {twice[1] + 1}); expected unique ids"
        )
    if "" in ids:
        raise InputError(f"workload {name!r}: job number {list(ids).index('') + 1} has an empty job_id")


def _check_agreement(name: str, columns: dict[str, np.ndarray]) -> None:
    """Seconds per iteration must give the duration: two clocks in one job would make every metric ambiguous."""
    expected_s = columns["duration_s"] / columns["iterations"]
    bad = np.abs(columns["iteration_s"] - expected_s) > AGREEMENT * expected_s
    if bad.any():
        i = int(np.argmax(bad))
        raise InputError(
            f"workload {name!r}, job {columns['job_id'][i]!r} (number {i + 1}), "
            f"iteration_s: {columns['iteration_s'][i]} does not agree with duration_s / iterations = {expected_s[i]}; "
            f"expected at most {AGREEMENT:g} of it apart"
        )


# column: (low, strictly above, high, what was expected)
RANGES: dict[str, tuple[float, bool, float, str]] = {
    "arrival_s": (0, False, LONGEST_S, "a time in seconds from 0 to 1e15"),
    "gpus": (1, False, LARGEST_GANG, "a whole number of GPUs from 1 to 10^9"),
    "duration_s": (0, True, LONGEST_S, "a time in seconds above 0, up to 1e15"),
    "iterations": (0, True, LONGEST_S, "a number above 0, up to 1e15"),
    "iteration_s": (0, True, LONGEST_S, "a time in seconds above 0, up to 1e15"),
    "batch_size": (0, False, 2**62, "a whole number >= 0"),
    "deadline_s": (0, True, np.inf, "a time in seconds above 0"),
    "estimate_s": (0, True, np.inf, "a time in seconds above 0"),
    "level": (0, False, 2**31, "a whole number >= 0"),
    "start_s": (0, False, np.inf, "a time in seconds >= 0"),
}


_CALCULATED = ("iterations", "iteration_s")  # where they are not given


def bad_values(columns: Mapping[str, np.ndarray]) -> Iterator[tuple[str, np.ndarray, str]]:
    """Of columns by name, those with values that they must not hold: the name, which (bool (n,)), what was expected."""
    for name, values in columns.items():
        low, above, high, expected = RANGES[name]
        bad = ~((values > low if above else values >= low) & (values <= high))
        if bad.any():
            yield name, bad, expected
    if "deadline_s" in columns and "arrival_s" in columns:
        bad = columns["deadline_s"] < columns["arrival_s"]
        if bad.any():
            yield "deadline_s", bad, "a time at or after the job's arrival, as deadlines are absolute"
    if "start_s" in columns and "arrival_s" in columns:
        bad = columns["start_s"] < columns["arrival_s"]
        if bad.any():
            yield "start_s", bad, "a time at or after the job's arrival"


def text_array(values: Any) -> np.ndarray:
    """`values` as a fresh 1-D object array of str."""
    array = np.empty(len(values), dtype=object)
    array[:] = [value if type(value) is str else str(value) for value in values]
    return array


def bad_texts(values: Sequence[str] | np.ndarray) -> np.ndarray:
    """Indices of the texts with a control character or a lone surrogate, ascending."""
    if not _CONTROL.search("".join(values)):
        return np.zeros(0, np.int64)
    return np.flatnonzero([_CONTROL.search(value) is not None for value in values])


def first_duplicate(values: Sequence[str] | np.ndarray) -> tuple[int, int] | None:
    """(first, second) index of the first value that comes twice, or None."""
    if len(set(values)) == len(values):
        return None
    seen: dict[str, int] = {}
    return next((seen[value], i) for i, value in enumerate(values) if seen.setdefault(value, i) != i)


def clip(value: object, length: int = 60) -> str:
    """`repr(value)`, shortened for a message."""
    shown = repr(value if not isinstance(value, str) else value[: 2 * length])
    return shown if len(shown) <= length else shown[: length - 4] + "...'"


def _saved_columns(workload: Workload) -> dict[str, Any]:
    """The columns worth a place in a file: iteration_s if not derived, estimates, iterations (nan: unknown) if any."""
    derived = np.array_equal(workload.iteration_s, workload.duration_s / workload.iterations)
    columns = {name: getattr(workload, name) for name in COLUMNS if name != "iteration_s" or not derived}
    if np.isinf(workload.estimate_s).all():
        del columns["estimate_s"]
    unknown = _defaults(len(workload))
    for name in OF_LOGS:
        if np.array_equal(columns[name], unknown[name]):
            del columns[name]
    if not workload.iterations_known:
        assumed = workload.iterations == workload.duration_s
        columns["iterations"] = np.where(assumed, np.nan, workload.iterations)
        if assumed.all():
            del columns["iterations"]
    if workload.geo is not None:
        columns |= columns_of(workload.geo)
    if workload.ps is not None:
        columns |= ps_jobs.columns_of(workload.ps)
    return columns


def _write_csv(workload: Workload, path: Path) -> None:
    saved = _saved_columns(workload).items()
    columns = {name: values.tolist() if isinstance(values, np.ndarray) else values for name, values in saved}
    # an empty cell reads better than inf or nan
    for name in columns.keys() & {"deadline_s", "iterations", "estimate_s", "start_s"}:
        columns[name] = [value if math.isfinite(value) else "" for value in columns[name]]
    with open(path, "w", encoding="utf-8", newline="") as file:
        write_csv(file, list(columns), zip(*columns.values(), strict=True))


def _write_parquet(workload: Workload, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = {
        name: pa.array(values, type=pa.string() if name in (*TEXT, "parts", "tables") else None)
        for name, values in _saved_columns(workload).items()
    }
    table = pa.table(arrays).replace_schema_metadata({PARQUET_NAME_KEY: workload.name.encode("utf-8", "replace")})
    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer, write_page_checksum=True)
    path.write_bytes(sealed_parquet.sealed(buffer.getvalue().to_pybytes()))


assert tuple(field.name for field in fields(Workload))[1:-5] == COLUMNS


def name_of_job(workload: Any, job: int) -> str:
    """How an error calls a job: by its id, or by its number where the workload has no ids."""
    job_ids = getattr(workload, "job_id", None)
    return f"job {job_ids[job]}" if job_ids is not None else f"job number {job}"
