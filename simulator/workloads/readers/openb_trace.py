"""Alibaba openb pod list (2023): GPU pods of a shared production cluster.

Schema published at github alibaba/clusterdata, cluster-trace-gpu-v2023 (csv/openb_pod_list_*.csv): name, cpu_milli,
memory_mib, num_gpu, gpu_milli (share of one GPU in thousandths), gpu_spec, qos, pod_phase, creation_time,
deletion_time, scheduled_time (s). Our mapping: arrival is creation_time, run time is deletion_time - scheduled_time, a
share of a GPU takes a whole one (one warning says how many GPU-hours that adds), the tenant is the qos class; pods
without GPUs, never scheduled, or without an end are dropped.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...jobs.left_out import BadRows, whole_gpus
from ...jobs.trace_columns import read_csv
from ...jobs.trace_head import Head
from ...jobs.workload import LARGEST_GANG, Workload

NAME = "openb"
SUMMARY = "Alibaba openb pod list (cluster-trace-gpu-v2023)"

_READ = ("name", "num_gpu", "gpu_milli", "qos", "creation_time", "deletion_time", "scheduled_time")
_HARMLESS = {
    **dict.fromkeys(("cpu_milli", "memory_mib"), "no part of a workload"),
    "pod_phase": "a pod that failed held its GPUs as well",
}
KNOWN = (*_READ, *_HARMLESS)


def recognises(head: Head) -> bool:
    """Whether a file that begins like this is in the format."""
    return head.has("gpu_milli") or head.has("num_gpu", "creation_time")


def read(path: str | Path, *, bad_rows: BadRows = "drop") -> Workload:
    """Read an openb pod list; pods that are no GPU job are dropped."""
    table = read_csv(path, keep=_READ, harmless=_HARMLESS, bad_rows=bad_rows)
    milli = table.number("gpu_milli", low=0, high=1000, default=1000, blank=1000)
    asked = table.number("num_gpu", low=0, high=LARGEST_GANG, whole=True) * milli / 1000.0
    start_s, end_s = (table.number(name, low=0, blank=np.nan) for name in ("scheduled_time", "deletion_time"))
    table.drop(asked == 0, "without a GPU")
    table.drop(np.isnan(start_s), "never scheduled")
    table.drop(np.isnan(end_s), "without an end")
    table.drop(end_s <= start_s, "that end when they start, or before")
    arrival_s, tenant = table.number("creation_time", low=0), table.text("qos", "")
    shares = asked if (milli < 1000).any() else None
    return table.workload("name", arrival_s, whole_gpus(asked), end_s - start_s, asked_gpus=shares, tenant=tenant)
