"""Metrics as TensorBoard scalars, under tags that heuristics and agents share, so that their curves overlay."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..simulator.errors import MissingExtra
from .estimates import by_policy
from .evaluate import Run

TAGS: Mapping[str, str] = {
    "jct_mean": "jct/mean_s",
    "jct_median": "jct/median_s",
    "jct_p95": "jct/p95_s",
    "jct_p99": "jct/p99_s",
    "makespan": "makespan_s",
    "queueing_delay_mean": "queueing_delay/mean_s",
    "queueing_delay_p95": "queueing_delay/p95_s",
    "queueing_delay_p99": "queueing_delay/p99_s",
    "comm_time_mean": "comm_time/mean_s",
    "slowdown_mean": "slowdown/mean",
    "finish_time_fairness_mean": "finish_time_fairness/mean",
    "finish_time_fairness_max": "finish_time_fairness/max",
    "gpu_utilisation": "gpu_utilisation",
    "allocation_rate": "allocation_rate",
    "fragmentation": "fragmentation",
    "jobs_finished": "jobs_finished",
    "preemptions": "preemptions",
    "migrations": "migrations",
    "failures": "failures",
    "gpu_hours_lost": "gpu_hours_lost",
    "slo_violation_rate": "slo_violation_rate",
    "congestion_bytes": "congestion_bytes",
    "bytes_moved": "bytes_moved",
}
# A heuristic does not learn: its scalar is a level line, from the start to where agents' curves usually end.
STEPS = (0, 1_000_000)
SUFFIX = ".evaluate"


def expect_installed() -> None:
    """Raise MissingExtra, naming the command that helps, where TensorBoard is not installed."""
    try:
        import tensorboard  # noqa: F401
    except ImportError:
        raise MissingExtra(
            'TensorBoard logs need tensorboard; install it with: pip install "clustergym[agents]"'
        ) from None


def tag(metric: str) -> str:
    """The tag of a metric; one that an environment adds keeps its name."""
    return TAGS.get(metric, metric)


def folder_name(policy: str) -> str:
    """The policy's word as the name of a folder or file: `las:head=skip` -> `las,head=skip`."""
    return re.sub(r"[^A-Za-z0-9.,=_+-]", ",", policy)[:150]


def folder_names(policies: Sequence[str]) -> dict[str, str]:
    """One folder name a policy, all different."""
    names: dict[str, str] = {}
    for policy in policies:
        name, number = folder_name(policy), 2
        while name in names.values():
            name, number = f"{folder_name(policy)}-{number}", number + 1
        names[policy] = name
    return names


def write(runs: Sequence[Run], logdir: Path) -> None:
    """Write one TensorBoard run a policy, `logdir`/<policy>: the mean over seeds of every metric as a level line.

    What an earlier evaluation wrote for the same policy there is replaced.
    """
    estimates = by_policy(runs)
    names = folder_names(list(estimates))
    for policy, row in estimates.items():
        folder = logdir / names[policy]
        folder.mkdir(parents=True, exist_ok=True)
        old = list(folder.glob(f"events.out.tfevents.*{SUFFIX}"))
        _write_events(folder, {tag(name): value.mean for name, value in row.items()})
        for path in old:
            path.unlink(missing_ok=True)


def _write_events(folder: Path, scalars: Mapping[str, float]) -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # where TensorFlow is installed, it has much to say
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(folder), filename_suffix=SUFFIX)
    values = [Summary.Value(tag=name, simple_value=value) for name, value in scalars.items() if value == value]
    for step in STEPS:
        writer.add_event(Event(wall_time=time.time(), step=step, summary=Summary(value=values)))
    writer.close()
