"""Results on disk: one row a run as parquet; decisions, jobs, stretches on GPUs and copies as csv.

A file appears whole or not at all.

The metadata of the parquet file marks it as ours (`is_ours`), so that no other table is replaced.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np

from ...simulator.cluster.region_network import CPU_TYPE
from ...simulator.cluster.topology import Topology
from ...simulator.engine.together import ground_of
from ...simulator.files.csv_cells import write_csv
from ...simulator.workloads import Workload
from ..console.terminal import written_whole
from ..playing.by_group import column_of
from ..playing.copy_rows import COPY_COLUMNS
from ..playing.runs import DECISION_COLUMNS, Run
from ..settings.evaluation_setting import Setting, workload_of

Rows = Callable[[Run], Iterable[Sequence[Any]]]
KEY, PARQUET = b"clustergym.results", ".parquet"
STRETCH_COLUMNS = ("job_id", "region", "gpu_type", "gpus", "start_s", "end_s")
TEXTS, COUNTS = ("user", "tenant", "model", "gpu_type", "region"), ("gpus", "preemptions")
JOB_COLUMNS = (
    *("job_id", "user", "tenant", "model", "gpus", "gpu_type", "region", "arrival_s", "first_start_s", "end_s"),
    *("wait_s", "jct_s", "slowdown", "preemptions", "gpu_seconds"),
)


def write_decisions(runs: Sequence[Run], path: Path) -> None:
    """Write the decisions of all runs, in order of application within each; shifts only where jobs were shifted."""
    shifts = DECISION_COLUMNS.index("shift_s")
    has_shifts = any(row[shifts - 2] for run in runs for row in run.decisions)
    kept = [place for place in range(len(DECISION_COLUMNS) - 2) if has_shifts or place != shifts - 2]
    columns = [DECISION_COLUMNS[place + 2] for place in kept]
    _write(path, runs, columns, lambda run: ([row[place] for place in kept] for row in run.decisions))


def write_stretches(runs: Sequence[Run], setting: Setting, path: Path) -> None:
    """Write the jobs on GPUs over time, by type and region: a row for each stretch and type."""

    def rows(run: Run) -> Iterator[tuple[Any, ...]]:
        names = _workload(run, setting).job_id
        return ((names[job], *held) for job, *held in _stretches(run, setting))

    _write(path, runs, STRETCH_COLUMNS, rows)


def write_jobs(runs: Sequence[Run], setting: Setting, path: Path) -> None:
    """Write a row for each job, as csv, or parquet by the path's ending; what has not happened is empty there."""
    _write(path, runs, JOB_COLUMNS, lambda run: _jobs(run, setting))


def _write(path: Path, runs: Sequence[Run], columns: Sequence[str], rows_of: Rows) -> None:
    about = {run.policy: (run.policy, run.label or run.policy) for run in runs}
    names = ("policy", "label") if any(run.label for run in runs) else ("policy",)
    header = (*names, "seed", *columns)
    rows = ((*about[run.policy][: len(names)], run.seed, *row) for run in runs for row in rows_of(run))
    with written_whole(path) as draft:
        if path.suffix.lower() == PARQUET:
            _write_parquet(header, rows, draft)
            return
        with open(draft, "w", encoding="utf-8", newline="") as file:
            write_csv(file, header, rows)


def _write_parquet(header: Sequence[str], rows: Iterable[Sequence[Any]], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts, counts = ("policy", "label", "job_id", *TEXTS), ("seed", *COUNTS)
    kinds = dict.fromkeys(texts, pa.string()) | dict.fromkeys(counts, pa.int64())
    columns = zip(header, zip(*rows, strict=True), strict=True)
    pq.write_table(pa.table({name: pa.array(some, kinds.get(name, pa.float64())) for name, some in columns}), path)


def _workload(run: Run, setting: Setting) -> Workload:
    return workload_of(setting, run.seed if setting.is_drawn else 0)


def _jobs(run: Run, setting: Setting) -> Iterator[tuple[Any, ...]]:
    """The rows of JOB_COLUMNS; CPU machines of regions are no GPUs."""
    workload, line = _workload(run, setting), run.timeline
    assert line is not None
    places: list[dict[tuple[str, str], float]] = [{} for _ in range(len(workload))]
    for job, region, kind, count, start_s, end_s in _stretches(run, setting):
        seconds = 0.0 if kind == CPU_TYPE else count * (end_s - start_s)
        places[job][kind, region] = places[job].get((kind, region), 0.0) + seconds
    facts = [column_of(workload, name).tolist() for name in ("user", "tenant", "model", "gpus")]
    ended = np.where(np.isfinite(line.leave_s), line.leave_s, np.nan)
    times = (line.arrival_s, line.first_start_s, ended, line.queueing_delay_s, ended - line.arrival_s, line.slowdown)
    numbers = zip(*([None if one != one else one for one in column.tolist()] for column in times), strict=True)
    about = zip(workload.job_id, zip(*facts, strict=True), places, numbers, line.preemptions.tolist(), strict=True)
    for name, fact, held, number, stopped in about:
        kinds, regions = (dict.fromkeys(part) for part in zip(*held, strict=True)) if held else ((), ())
        on = "|".join(kind for kind in kinds if kind != CPU_TYPE), "|".join(regions) if workload.geo else ""
        yield str(name), *fact, *on, *number, stopped, sum(held.values(), 0.0)


def _stretches(run: Run, setting: Setting) -> Iterator[tuple[Any, ...]]:
    """Job (index), region, type, GPUs, start and end, seconds, of each stretch and type."""
    topology, line = Topology.load(setting.topology), run.timeline
    assert line is not None
    topology = ground_of(topology, _workload(run, setting))
    bounds = zip(line.job.tolist(), line.start_s.tolist(), line.end_s.tolist(), line.gpus, strict=True)
    for job, start_s, end_s, gpus in bounds:
        if start_s == end_s:  # it was stopped at once, and never ran
            continue
        clusters = topology.gpu_cluster[list(gpus)].tolist()
        regions = (topology.region_names[topology.cluster_region[cluster]] for cluster in clusters)
        held = Counter(zip(regions, (topology.cluster_gpu_type[cluster] for cluster in clusters), strict=True))
        for (region, kind), count in held.items():
            yield job, region, kind, count, start_s, end_s


def write_copies(runs: Sequence[Run], path: Path) -> None:
    """Write the bytes of every table in every region, and over links: a row for each copy."""
    _write(path, runs, COPY_COLUMNS, lambda run: run.copies)


def write_parquet(runs: Sequence[Run], setting: Setting, path: Path) -> None:
    """Write one row a run: policy, seed, fields of the setting, what it knew and drew, jobs, and a column a metric."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = list(dict.fromkeys(name for run in runs for name in run.metrics))
    text, number = pa.string(), pa.float64()
    kinds = {key: text if _is_text(one.kind) else number for key, one in setting.config.options().items()}
    labels = [run.label or run.policy for run in runs]
    columns: dict[str, pa.Array] = {
        "policy": pa.array([run.policy for run in runs], text),
        **({"label": pa.array(labels, text)} if any(run.label for run in runs) else {}),
        "seed": pa.array([run.seed for run in runs], pa.int64()),
        **{key: pa.array([value] * len(runs), kinds.get(key, text)) for key, value in setting.words().items()},
        "knows_run_times": pa.array([run.knows_run_times for run in runs], text),
        "depends_on_seed": pa.array([run.is_drawn for run in runs], pa.bool_()),
        "jobs": pa.array([run.jobs for run in runs], pa.int64()),
        **{name: pa.array([run.metrics.get(name, math.nan) for run in runs], number) for name in names},
    }
    with written_whole(path) as draft:
        pq.write_table(pa.table(columns).replace_schema_metadata({KEY: b"1"}), draft, write_page_checksum=True)


def _is_text(kind: Any) -> bool:
    return not {int, float, bool} & {kind, *get_args(kind)}


def is_torn(path: Path) -> bool:
    """Whether a full disk or a lost machine left this of a table: nothing, zeros, parquet without end."""
    import pyarrow.parquet as pq

    data = path.read_bytes()
    if not data.strip(b"\0"):
        return True
    try:
        pq.read_metadata(path)
    except Exception:  # see `is_ours`
        return data.startswith(b"PAR1")
    return False


def is_ours(path: Path, older: bool = False) -> bool:
    """Whether `write_parquet` wrote a table; `older`: or an older version, which left no mark."""
    import pyarrow.parquet as pq

    try:
        about = pq.read_metadata(path)
        return KEY in (about.metadata or {}) or (older and about.schema.names[:2] == ["policy", "seed"])
    except Exception:  # pyarrow raises a dozen kinds for other files
        return False
