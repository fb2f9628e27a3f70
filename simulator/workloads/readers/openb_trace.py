"""Alibaba openb pod list (2023): GPU pods of a shared production cluster.

Schema published at github alibaba/clusterdata, cluster-trace-gpu-v2023 (csv/openb_pod_list_*.csv): name,
cpu_milli, memory_mib, num_gpu, gpu_milli (share of one GPU in thousandths), gpu_spec, qos, pod_phase,
creation_time, deletion_time, scheduled_time (s). Our mapping: arrival is creation_time, run time is
deletion_time - scheduled_time, a fraction of a GPU takes a whole one, the tenant is the qos class; pods
without GPUs, and pods that were never scheduled, are dropped.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...jobs.trace_columns import read_csv
from ...jobs.trace_head import Head
from ...jobs.workload import LARGEST_GANG, Workload

NAME = "openb"
SUMMARY = "Alibaba openb pod list (cluster-trace-gpu-v2023)"


def recognises(head: Head) -> bool:
    """Whether a file that begins like this is in the format."""
    return head.has("gpu_milli") or head.has("num_gpu", "creation_time")


def read(path: str | Path) -> Workload:
    """Read an openb pod list; pods that are no GPU job are dropped with one warning.

    Raises:
        InputError: naming file, line, column, value and what was expected.
    """
    table = read_csv(path, keep={"name", "num_gpu", "qos", "creation_time", "deletion_time", "scheduled_time"})
    gpus = table.number("num_gpu", low=0, high=LARGEST_GANG, whole=True)
    run_s = table.number("deletion_time", low=0, blank=np.nan) - table.number("scheduled_time", low=0, blank=np.nan)
    return table.workload(
        job_id="name",
        arrival_s=table.number("creation_time", low=0),
        gpus=gpus,
        duration_s=run_s,
        kept=table.where((gpus > 0) & (run_s > 0), "no GPU, or never scheduled"),
        tenant=table.text("qos", ""),
    )
