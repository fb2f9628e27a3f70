"""Made-up tables of pods by the hour, as Alibaba's gpu-v2026 documents them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

# pod, workload, hours since day 0, kind of job, class, GPUs, seconds from submission to scheduling, state
PODS = (
    ("p1", "w1", (21, 22, 23), "training", "HP", 8.0, None, "Unknown"),
    ("p2", "w1", (21, 22, 23), "training", "HP", 8.0, None, "Unknown"),
    ("p3", "w1", (22,), "training", "LP", 8.0, None, "Unknown"),
    ("p4", "w2", (21, 22, 23, 24), "online_inference", "LP", 0.5, 1800, "Running"),
    ("p5", "w2", (21, 22, 23, 24), "online_inference", "LP", 0.0, None, "Running"),
    ("p6", None, (22, 23), "training", "HP", 1.0, None, "Pending"),
    ("p7", None, (22, 24), "dev", "Other", 1.0, None, "Running"),
    ("p7", None, (21,), "dev", "Other", 1.0, None, "Pending"),
)


def pod_hours(pods: Iterable[tuple[Any, ...]] = PODS) -> dict[str, list[Any]]:
    """Columns of the table by name, with `day` and `hour` as texts, as its folders are named."""
    rows = [(hour, *pod) for pod in pods for hour in pod[2]]
    rows.sort(key=lambda row: row[0])
    names = ("at", "pod_id", "workload_id", "", "job_type_public", "priority_class", "gpu_request")
    columns = dict(zip((*names, "schedule_delay_sec", "state_public"), map(list, zip(*rows, strict=True)), strict=True))
    del columns[""]
    hours = columns.pop("at")
    columns |= {"gpu_spec_public": ["H20"] * len(rows), "server_id": ["s1"] * len(rows)}
    return columns | {"day": [str(at // 24) for at in hours], "hour": [f"{at % 24:02d}" for at in hours]}


def write_pod_hours(path: Path, columns: dict[str, list[Any]] | None = None) -> Path:
    """Write a table as one parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(pod_hours() if columns is None else columns), path)
    return path


def write_pod_folders(folder: Path) -> Path:
    """Write the table in folders day=D/hour=HH, as it is published."""
    columns = pod_hours()
    days, hours = columns.pop("day"), columns.pop("hour")
    for day, hour in dict.fromkeys(zip(days, hours, strict=True)):
        within = [i for i, at in enumerate(zip(days, hours, strict=True)) if at == (day, hour)]
        place = folder / f"day={day}" / f"hour={hour}"
        place.mkdir(parents=True)
        write_pod_hours(place / "part-000.parquet", {name: [all_[i] for i in within] for name, all_ in columns.items()})
    return folder
