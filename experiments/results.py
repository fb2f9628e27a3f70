"""Results on disk: one row a run as parquet, every decision as csv. A file appears whole or not at all."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path

from .evaluate import DECISION_COLUMNS, Run, Setting
from .terminal import written_whole


def write_decisions(runs: Sequence[Run], path: Path) -> None:
    """Write the decisions of all runs, in order of application within each."""
    with written_whole(path) as draft, open(draft, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(DECISION_COLUMNS)
        for run in runs:
            writer.writerows((run.policy, run.seed, *row) for row in run.decisions)


def write_parquet(runs: Sequence[Run], setting: Setting, path: Path) -> None:
    """Write one row a run: policy, seed, the setting, and a column a metric."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = list(dict.fromkeys(name for run in runs for name in run.metrics))
    columns: dict[str, list[object]] = {
        "policy": [run.policy for run in runs],
        "seed": [run.seed for run in runs],
        **{key: [getattr(setting, key)] * len(runs) for key in ("environment", "topology", "workload", "network")},
        **{name: [run.metrics.get(name, math.nan) for run in runs] for name in names},
    }
    with written_whole(path) as draft:
        pq.write_table(pa.table(columns), draft)
