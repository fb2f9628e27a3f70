"""Results on disk: one row a run as parquet, every decision as csv. A file appears whole or not at all.

The metadata of the parquet file marks it as ours (`is_ours`), so that no other table is replaced.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

from ...simulator.cluster.topology import Topology
from ...simulator.engine.together import ground_of
from ...simulator.files.csv_cells import write_csv
from ..console.terminal import written_whole
from ..playing.copy_rows import COPY_COLUMNS
from ..playing.runs import DECISION_COLUMNS, Run
from ..settings.evaluation_setting import Setting, workload_of

KEY = b"clustergym.results"
JOB_COLUMNS = ("policy", "seed", "job_id", "region", "gpu_type", "gpus", "start_s", "end_s")


def write_decisions(runs: Sequence[Run], path: Path) -> None:
    """Write the decisions of all runs, in order of application within each; shifts only where jobs were shifted."""
    shifts = DECISION_COLUMNS.index("shift_s")
    has_shifts = any(row[shifts - 2] for run in runs for row in run.decisions)
    kept = [place for place in range(len(DECISION_COLUMNS)) if has_shifts or place != shifts]
    rows = ((run.policy, run.seed, *row) for run in runs for row in run.decisions)
    _write(path, [DECISION_COLUMNS[place] for place in kept], ([row[place] for place in kept] for row in rows))


def write_jobs(runs: Sequence[Run], setting: Setting, path: Path) -> None:
    """Write the jobs on GPUs over time, by type and region: a row for each stretch and type."""
    _write(path, JOB_COLUMNS, (row for run in runs for row in _stretches(run, setting)))


def _write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with written_whole(path) as draft, open(draft, "w", encoding="utf-8", newline="") as file:
        write_csv(file, columns, rows)


def _stretches(run: Run, setting: Setting) -> Iterator[tuple[Any, ...]]:
    topology, line = Topology.load(setting.topology), run.timeline
    assert line is not None
    workload = workload_of(setting, run.seed if setting.is_drawn else 0)
    if workload.ps is None:
        topology = ground_of(topology, workload)
    names = workload.job_id
    bounds = zip(line.job.tolist(), line.start_s.tolist(), line.end_s.tolist(), line.gpus, strict=True)
    for job, start_s, end_s, gpus in bounds:
        if start_s == end_s:  # it was stopped at once, and never ran
            continue
        clusters = topology.gpu_cluster[list(gpus)].tolist()
        regions = (topology.region_names[topology.cluster_region[cluster]] for cluster in clusters)
        held = Counter(zip(regions, (topology.cluster_gpu_type[cluster] for cluster in clusters), strict=True))
        for (region, kind), count in held.items():
            yield run.policy, run.seed, names[job], region, kind, count, repr(start_s), repr(end_s)


def write_copies(runs: Sequence[Run], path: Path) -> None:
    """Write the bytes of every table in every region, and over links: a row for each copy."""
    rows = ((run.policy, run.seed, *row) for run in runs for row in run.copies)
    _write(path, ("policy", "seed", *COPY_COLUMNS), rows)


def write_parquet(runs: Sequence[Run], setting: Setting, path: Path) -> None:
    """Write one row a run: policy, seed, fields of the setting, what it knew and drew, jobs, and a column a metric."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = list(dict.fromkeys(name for run in runs for name in run.metrics))
    text, number = pa.string(), pa.float64()
    kinds = {key: text if _is_text(one.kind) else number for key, one in setting.config.options().items()}
    columns: dict[str, pa.Array] = {
        "policy": pa.array([run.policy for run in runs], text),
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
