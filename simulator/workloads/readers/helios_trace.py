"""Helios csv (SC'21): cluster_log.csv, Lucid's cluster_full_log.csv, and the re-based slice with `num_chips`.

Schema published at github S-Lab-System-Group/HeliosData (README): job_id, user, vc, gpu_num, cpu_num, node_num, state,
submit_time, start_time, end_time (dates), duration (s), queue (s); Lucid's files add jobname and the like. The slice
(felivalencia3/mini-compute-simulator, helios_venus_2vc_sept.csv, CC-BY-4.0) has job_id, user, tenant, submit_time in
MICROSECONDS from the slice's first day, num_chips (GPUs), duration_s, and "#" lines before its header.
"""

from __future__ import annotations

from pathlib import Path

from ...jobs.left_out import BadRows
from ...jobs.trace_columns import read_csv
from ...jobs.trace_head import Head
from ...jobs.workload import LARGEST_GANG, LONGEST_S, Workload

NAME = "helios"
SUMMARY = "Helios cluster_log.csv, Lucid's variant, and the re-based slice"

_READ = ("job_id", "user", "vc", "gpu_num", "submit_time", "duration", "tenant", "num_chips", "duration_s")
_HARMLESS = {
    "cpu_num": "no part of a workload",
    **dict.fromkeys(("node_num", "num_nodes"), "on how many machines it lay there; here the scheduler says"),
    **dict.fromkeys(("state", "final_status"), "a job that failed held its GPUs as well"),
    **dict.fromkeys(("start_time", "queue"), "what became of it there"),
    "end_time": "start_time + duration",
}
KNOWN = (*_READ, *_HARMLESS)


def recognises(head: Head) -> bool:
    """Whether a file that begins like this is in the format."""
    return head.has("job_id", "gpu_num") or head.has("num_chips")


def read(path: str | Path, *, bad_rows: BadRows = "drop") -> Workload:
    """Read a Helios log; CPU jobs and jobs without run time are dropped."""
    table = read_csv(path, keep=_READ, harmless=_HARMLESS, bad_rows=bad_rows)
    slice_ = "num_chips" in table
    gpus = table.number("num_chips" if slice_ else "gpu_num", low=0, high=LARGEST_GANG, whole=True)
    duration_s = table.number("duration_s" if slice_ else "duration", low=0)
    table.drop(gpus == 0, "without a GPU")
    table.drop(duration_s == 0, "without a run time")
    name = "submit_time"
    arrival_s = table.number(name, low=0, high=LONGEST_S) / 1e6 if slice_ else table.date_s(name)
    user, tenant = table.text("user", ""), table.text("tenant" if slice_ else "vc", "")
    return table.workload("job_id", arrival_s, gpus, duration_s, from_start=not slice_, user=user, tenant=tenant)
