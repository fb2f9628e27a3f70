"""Alibaba openb pod list (2023): GPU pods of a shared production cluster.

Schema published at github alibaba/clusterdata, cluster-trace-gpu-v2023 (csv/openb_pod_list_*.csv): name, cpu_milli,
memory_mib, num_gpu, gpu_milli (share of one GPU in thousandths), gpu_spec (the types that it accepts, | between them;
empty: any), qos, pod_phase, creation_time, deletion_time, scheduled_time (s). Our mapping: arrival is creation_time,
start scheduled_time, run time from there to deletion_time. A share of a GPU is rounded up (`share=whole`), or to the
nearest (`round`). Levels are qos classes, those first that Kubernetes evicts last: Guaranteed, Burstable, best effort;
Alibaba's latency-sensitive LS comes before Burstable, an assumption. Pods without GPUs, never scheduled, or without an
end are dropped.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...jobs.left_out import BadRows, Share
from ...jobs.trace_columns import Table, read_csv
from ...jobs.trace_head import Head
from ...jobs.workload import LARGEST_GANG, Workload

NAME = "openb"
SUMMARY = "Alibaba openb pod list (cluster-trace-gpu-v2023)"

_TIMES = ("creation_time", "deletion_time", "scheduled_time")
_READ = ("name", "num_gpu", "gpu_milli", "gpu_spec", "qos", *_TIMES)
_CLASSES = ("Guaranteed", "LS", "Burstable", "BE")  # by level, the most important first
_HARMLESS = {
    **dict.fromkeys(("cpu_milli", "memory_mib"), "no part of a workload"),
    "pod_phase": "a pod that failed held its GPUs as well",
}
KNOWN = (*_READ, *_HARMLESS)


def recognises(head: Head) -> bool:
    """Whether a file that begins like this is in the format."""
    return head.has("gpu_milli") or head.has("num_gpu", "creation_time")


def read(path: str | Path, *, share: Share = "whole", bad_rows: BadRows = "drop") -> Workload:
    """Read an openb pod list; pods that are no GPU job are dropped."""
    table = read_csv(path, keep=_READ, harmless=_HARMLESS, bad_rows=bad_rows)
    milli = table.number("gpu_milli", low=0, high=1000, default=1000, blank=1000)
    asked = table.number("num_gpu", low=0, high=LARGEST_GANG, whole=True) * milli / 1000.0
    arrival_s = table.number("creation_time", low=0)
    start_s, end_s = (table.number(name, low=0, blank=np.nan) for name in ("scheduled_time", "deletion_time"))
    table.drop(asked == 0, "without a GPU")
    table.drop(np.isnan(start_s), "never scheduled")
    table.mark_bad(start_s < arrival_s, "scheduled_time", "a time not before creation_time")
    table.drop(np.isnan(end_s), "without an end")
    table.drop(end_s <= start_s, "that end when they start, or before")
    return table.workload(
        "name",
        arrival_s,
        asked,
        end_s - start_s,
        share=share if (milli < 1000).any() else None,
        level=_levels(table),
        gpu_type=table.text("gpu_spec", ""),
        start_s=start_s,
    )


def _levels(table: Table) -> np.ndarray:
    """The place of each pod's class among `_CLASSES`, int64 (rows,); 0 where the file has no classes."""
    code = {name: level for level, name in enumerate(_CLASSES)}
    found = np.array([code.get(word, -1) for word in table.text("qos", _CLASSES[0])], np.int64)
    table.mark_bad(found < 0, "qos", f"one of {', '.join(_CLASSES)}")
    return np.maximum(found, 0)
