"""Pictures of the kinds of paper sjf-bsbf's Figures 4, 5 and 6."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...charts import axes, plots
from ..case_runs import Runs
from ..findings import Options
from ..paper_pictures import bars_of_times, if_asked, in_seconds, looks, means_of_times, picture
from .bsbf_runs import PASSED, SHARING, Experiment, jct_h, queue_of_model_s


@if_asked
def of_table(options: Options, name: str, runs: Runs, experiment: Experiment, policies: Sequence[str]) -> list[Path]:
    """Figure 5: completion times, and queueing time by model."""
    return _jobs(options, name, runs, experiment, policies, f"{experiment.jobs} jobs on 64 GPUs (Figure 5)")


@if_asked
def of_testbed(options: Options, runs: Runs, experiment: Experiment, policies: Sequence[str]) -> list[Path]:
    """Figure 4: the same on the testbed."""
    return _jobs(options, "bsbf-table2", runs, experiment, policies, "30 jobs on the testbed's 16 GPUs (Figure 4)")


def _jobs(
    options: Options, name: str, runs: Runs, experiment: Experiment, policies: Sequence[str], title: str
) -> list[Path]:
    times = {policy: np.concatenate([one["jct_s"] for one in runs.of(policy, experiment)]) for policy in policies}
    models = sorted({str(model) for one in runs.of(policies[0], experiment) for model in one["model"]})
    queues = {
        policy: [runs.mean(queue_of_model_s(model), policy, experiment) for model in models] for policy in policies
    }
    about: dict[str, Any] = {"x_label": "job completion time (log scale)", "y_label": "jobs done within it"}
    charts = (
        plots.distribution(times, looks(policies), title="(a) all workloads together", **about),
        bars_of_times(models, queues, "(b) by model", "average queueing time"),
    )
    return picture(options, name, charts, f"{name}: {title}", columns=2)


@if_asked
def of_load(options: Options, runs: Runs, experiments: Mapping[int, Experiment], policies: Sequence[str]) -> list[Path]:
    """Figure 6a: average completion time by number of jobs."""
    lines = {
        policy: [in_seconds(runs.mean(jct_h(), policy, one)) for one in experiments.values()] for policy in policies
    }
    about: dict[str, Any] = {"x_label": "jobs within 8 hours", "y_label": "average completion time (log scale)"}
    chart = means_of_times(list(experiments), lines, title="Average completion time by load (Figure 6a)", **about)
    return picture(options, "bsbf-load", [chart])


@if_asked
def of_interference(
    options: Options, runs: Runs, experiments: Mapping[str, Mapping[float, Experiment]], limits: Mapping[str, str]
) -> list[Path]:
    """Figure 6b: average completion time by the xi of all pairs, by memory; without sharing for comparison."""
    found = {
        memory: {
            policy: [in_seconds(runs.mean(jct_h(), policy, one)) for one in some.values()]
            for policy in (*SHARING, PASSED)
        }
        for memory, some in experiments.items()
    }
    most_s = max(one.high for lines in found.values() for line in lines.values() for one in line)
    about: dict[str, Any] = {
        "x_label": "xi of all pairs",
        "y_label": "average completion time",
        "y": axes.durations(0.0, 1.03 * most_s),
    }
    charts = [
        means_of_times(list(experiments[memory]), lines, title=limits[memory], **about)
        for memory, lines in found.items()
    ]
    title = "Average completion time by interference (Figure 6b)"
    return picture(options, "bsbf-interference", charts, title, columns=2)
