"""Metrics as TensorBoard scalars, under tags that heuristics and agents share, so that their curves overlay.

Every run has a folder of its own: an agent one that grows while it learns (`AgentLog`), a heuristic one with level
lines (`write_heuristics`). Each carries the layout of the Custom Scalars page and a row of the HParams page.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .estimates import by_policy
from .evaluate import Run
from .event_file import EventFile, expect_installed

if TYPE_CHECKING:
    from tensorboard.compat.proto.summary_pb2 import Summary

__all__ = ["TAGS", "AgentLog", "expect_installed", "folder_name", "folder_names", "tag", "write_heuristics"]

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
    "cpu_allocation_rate": "cpu_allocation_rate",
    "fragmentation": "fragmentation",
    "jobs_finished": "jobs_finished",
    "preemptions": "preemptions",
    "migrations": "migrations",
    "failures": "failures",
    "gpu_hours_lost": "gpu_hours_lost",
    "slo_violation_rate": "slo_violation_rate",
    "congestion_bytes": "congestion_bytes",
    "bytes_moved": "bytes_moved",
    "data_wait_rate": "data_wait/rate",
    "data_wait_mean": "data_wait/mean_s",
    "iteration_time_mean": "iteration_time/mean_s",
    "iteration_time_p99": "iteration_time/p99_s",
    "shift_adjustments": "shift_adjustments",
}
# What the Custom Scalars page shows: category -> chart -> tags. A chart draws its tags for every run.
LAYOUT: Mapping[str, Mapping[str, Sequence[str]]] = {
    "Agents and heuristics": {
        "mean JCT [s]": ("jct/mean_s",),
        "99th percentile of JCT [s]": ("jct/p99_s",),
        "makespan [s]": ("makespan_s",),
        "mean queueing delay [s]": ("queueing_delay/mean_s",),
        "GPU utilisation": ("gpu_utilisation",),
        "preemptions": ("preemptions",),
    },
    "Learning": {
        "return of training episodes": ("rollout/ep_rew_mean",),
        "loss": ("train/loss",),
        "explained variance": ("train/explained_variance",),
        "entropy loss": ("train/entropy_loss",),
    },
}
# And what it shows beside that where runs have a metric: metric -> category -> chart -> tags.
MORE_LAYOUT: Mapping[str, Mapping[str, Mapping[str, Sequence[str]]]] = {
    "cpu_utilisation": {
        "Job groups": {
            "CPU and network utilisation": ("cpu_utilisation", "network_utilisation"),
            "jobs in groups, and groups": ("jobs_running_mean", "groups_mean"),
            "moves": ("moves",),
        },
    },
}
# The columns of the HParams page that are no parameters.
HEADLINES = ("jct/mean_s", "jct/p99_s", "makespan_s", "queueing_delay/mean_s", "gpu_utilisation")
FINAL = "final/"
# A heuristic does not learn: its scalar is a level line, from the start to where agents' curves usually end.
LAST_STEP = 1_000_000
HEURISTIC = ".evaluate"
AGENT = ".agent"
AGENT_WORDS = ("ppo", "maskable-ppo", "zoo")


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


class AgentLog:
    """The TensorBoard run of an agent that learns: curves over training steps, pictures, its row of HParams.

    What is written is on disk when the call returns: after a kill at any moment the log can be opened again.

    Args:
        folder: of the run, by custom `DIR/agent`.
        resume_at: go on from this training step: what an earlier log holds up to it stays, what lies beyond it
            (written after the checkpoint that training resumes from) goes. None: an earlier log there is replaced.
    """

    def __init__(self, folder: Path, resume_at: int | None = None) -> None:
        self._file = EventFile(folder, resume_at, AGENT)
        if self._file.last_step < 0:
            self._file.write(0, summary=_layout())

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Write {tag: value} at a training step; nan values are left out."""
        self._file.write(step, summary=_scalars(values))

    def evaluation(self, step: int, runs: Sequence[Run], beside: Sequence[Run] = ()) -> None:
        """Write what an agent reached at a training step: mean metrics over seeds, and pictures.

        Args:
            step: training steps so far.
            runs: of the agent alone, one a seed; the first that has a timeline gives the Gantt chart.
            beside: runs of heuristics on the same workloads, drawn into the picture of the distribution.
        """
        means = next(iter(by_policy(runs).values()))
        self.scalars(step, {tag(name): value.mean for name, value in means.items()})
        for name, png in _pictures(runs, beside):
            self._file.write(step, summary=_image(name, png))

    def hparams(self, config: Mapping[str, Any], metrics: Mapping[str, float]) -> None:
        """Write the run's row of the HParams page.

        Args:
            config: parameters, nested or not; what is neither number, text nor truth value is shown as text.
            metrics: final results by their names in `simulator/metrics.py` or others; tags `final/...`.
        """
        flat = {"kind": "agent", "policy": self._file.path.parent.name} | flattened(config)
        finals = {FINAL + tag(name): value for name, value in metrics.items()}
        step = max(self._file.last_step, 0)
        self._file.write(step, summary=_experiment(flat, (*finals, *HEADLINES)))
        self._file.write(step, summary=_session(flat, self._file.path.parent.name))
        self._file.write(step, summary=_scalars(finals))

    def close(self) -> None:
        """Nothing is written after this."""
        self._file.close()


def write_heuristics(runs: Sequence[Run], logdir: Path, last_step: int = LAST_STEP) -> None:
    """Write one TensorBoard run a policy, `logdir`/<policy>: the mean over seeds of every metric as a level line.

    What was written for the same policy there before is replaced.

    Args:
        runs: of any policies, trained agents included, on any seeds.
        logdir: of the agents beside which they are seen.
        last_step: where the lines end: the last training step of those agents.
    """
    estimates = by_policy(runs)
    names = folder_names(list(estimates))
    for policy, row in estimates.items():
        file = EventFile(logdir / names[policy], None, HEURISTIC)
        file.write(0, summary=_layout(row))
        kind = "agent" if policy.partition(":")[0] in AGENT_WORDS else "heuristic"
        file.write(0, summary=_session({"policy": policy, "kind": kind}, policy))
        summary = _scalars({tag(name): value.mean for name, value in row.items()})
        for step in (0, max(last_step, 1)):
            file.write(step, summary=summary)
        file.close()


def flattened(config: Mapping[str, Any], prefix: str = "") -> dict[str, bool | float | str]:
    """Nested parameters with names joined by "/"; lists and other values as text."""
    flat: dict[str, bool | float | str] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            flat |= flattened(value, f"{prefix}{key}/")
        else:
            flat[f"{prefix}{key}"] = value if isinstance(value, bool | int | float | str) else _as_text(value)
    return flat


def _as_text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return "none" if value is None else str(value)


def _scalars(values: Mapping[str, float]) -> Summary:
    from tensorboard.compat.proto.summary_pb2 import Summary

    return Summary(
        value=[Summary.Value(tag=name, simple_value=value) for name, value in values.items() if not math.isnan(value)]
    )


def _image(name: str, png: bytes) -> Summary:
    from tensorboard.compat.proto.summary_pb2 import Summary

    width, height = (int.from_bytes(png[at : at + 4], "big") for at in (16, 20))  # of the IHDR chunk
    picture = Summary.Image(width=width, height=height, colorspace=4, encoded_image_string=png)
    return Summary(value=[Summary.Value(tag=name, image=picture)])


def _pictures(runs: Sequence[Run], beside: Sequence[Run]) -> list[tuple[str, bytes]]:
    """The distribution of JCT and the Gantt chart; none where matplotlib, which the page of images needs, is absent."""
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        return []
    from .report.pictures import of_runs

    return [(f"pictures/{name.replace('-', '_')}", png) for name, png in of_runs(runs, beside).items()]


def _layout(metrics: Collection[str] = ()) -> Summary:
    """The layout of the Custom Scalars page of a run with these metrics; TensorBoard merges those of all runs."""
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
    from tensorboard.compat.proto.types_pb2 import DT_STRING
    from tensorboard.plugins.custom_scalar import layout_pb2, metadata

    more = [charts for metric, charts in MORE_LAYOUT.items() if metric in metrics]
    shown = {title: charts for part in (LAYOUT, *more) for title, charts in part.items()}
    categories = [
        layout_pb2.Category(
            title=title,
            chart=[
                layout_pb2.Chart(
                    title=chart,
                    multiline=layout_pb2.MultilineChartContent(tag=[f"^{re.escape(name)}$" for name in tags]),
                )
                for chart, tags in charts.items()
            ],
        )
        for title, charts in shown.items()
    ]
    content = layout_pb2.Layout(category=categories).SerializeToString()
    tensor = TensorProto(dtype=DT_STRING, string_val=[content], tensor_shape=TensorShapeProto())
    return Summary(
        value=[
            Summary.Value(tag=metadata.CONFIG_SUMMARY_TAG, tensor=tensor, metadata=metadata.create_summary_metadata())
        ]
    )


def _session(config: Mapping[str, bool | float | str], name: str) -> Summary:
    """A run's parameters for the HParams page; `name` keeps runs of equal parameters apart."""
    from tensorboard.plugins.hparams.summary_v2 import hparams_pb

    return hparams_pb(dict(config), trial_id=name, start_time_secs=time.time())


def _experiment(config: Mapping[str, bool | float | str], metrics: Sequence[str]) -> Summary:
    """The columns of the HParams page."""
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2

    kinds = {bool: api_pb2.DATA_TYPE_BOOL, str: api_pb2.DATA_TYPE_STRING}
    columns = [
        api_pb2.HParamInfo(name=name, type=kinds.get(type(value), api_pb2.DATA_TYPE_FLOAT64))
        for name, value in config.items()
    ]
    shown = [api_pb2.MetricInfo(name=api_pb2.MetricName(tag=name)) for name in dict.fromkeys(metrics)]
    experiment = api_pb2.Experiment(hparam_infos=columns, metric_infos=shown, time_created_secs=time.time())
    about = metadata.create_summary_metadata(plugin_data_pb2.HParamsPluginData(experiment=experiment))
    return Summary(value=[Summary.Value(tag=metadata.EXPERIMENT_TAG, tensor=metadata.NULL_TENSOR, metadata=about)])
