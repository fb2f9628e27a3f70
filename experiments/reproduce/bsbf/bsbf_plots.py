"""Pictures of the kinds of paper sjf-bsbf's Figures 4, 5 and 6."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..case_runs import Runs
from ..findings import Options
from ..paper_pictures import HOUR_S, bars, cdf, figure, finish, save, style
from .bsbf_runs import PASSED, SHARING, Experiment, jct_h, queue_of_model_s

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ...comparing.intervals import Estimate


def of_table(options: Options, name: str, runs: Runs, experiment: Experiment, policies: Sequence[str]) -> list[Path]:
    """Figure 5: completion times, and queueing time by model."""
    return _jobs(options, name, runs, experiment, policies, f"{experiment.jobs} jobs on 64 GPUs (Figure 5)")


def of_testbed(options: Options, runs: Runs, experiment: Experiment, policies: Sequence[str]) -> list[Path]:
    """Figure 4: the same on the testbed."""
    return _jobs(options, "bsbf-table2", runs, experiment, policies, "30 jobs on the testbed's 16 GPUs (Figure 4)")


def _jobs(
    options: Options, name: str, runs: Runs, experiment: Experiment, policies: Sequence[str], title: str
) -> list[Path]:
    if options.out is None:
        return []
    drawn = figure(12.0, 4.5)
    left, right = drawn.subplots(1, 2)
    times = {policy: np.concatenate([one["jct_s"] for one in runs.of(policy, experiment)]) for policy in policies}
    cdf(left, times, HOUR_S)
    left.set(xlabel="job completion time [h]", ylabel="jobs done within it [%]", title="(a) all workloads together")
    left.legend(loc="upper left", frameon=False)
    models = sorted({str(model) for one in runs.of(policies[0], experiment) for model in one["model"]})
    queues = {
        policy: [runs.mean(queue_of_model_s(model), policy, experiment) for model in models] for policy in policies
    }
    bars(right, models, queues, HOUR_S)
    right.set(ylabel="average queueing time [h]", title="(b) by model")
    drawn.suptitle(f"{name}: {title}", fontweight="bold")
    return [save(drawn, options.out, name)]


def of_load(options: Options, runs: Runs, experiments: Mapping[int, Experiment], policies: Sequence[str]) -> list[Path]:
    """Figure 6a: average completion time by number of jobs."""
    if options.out is None:
        return []
    drawn = figure(7.0, 4.5)
    axis = drawn.subplots()
    for number, policy in enumerate(policies):
        _curve(
            axis, list(experiments), [runs.mean(jct_h(), policy, one) for one in experiments.values()], policy, number
        )
    axis.set(xlabel="jobs within 8 hours", ylabel="average completion time [h]", yscale="log")
    axis.set_xticks(list(experiments))
    axis.yaxis.set_major_formatter("{x:g}")
    axis.yaxis.set_minor_formatter("{x:g}")
    axis.legend(frameon=False)
    axis.set_title("Average completion time by load (Figure 6a)", fontweight="bold")
    return [save(drawn, options.out, "bsbf-load")]


def of_interference(
    options: Options, runs: Runs, experiments: Mapping[str, Mapping[float, Experiment]], limits: Mapping[str, str]
) -> list[Path]:
    """Figure 6b: average completion time by the xi of all pairs, by memory; without sharing for comparison."""
    if options.out is None:
        return []
    drawn = figure(11.0, 4.5)
    axes = drawn.subplots(1, 2, sharey=True)
    for axis, (memory, some) in zip(axes, experiments.items(), strict=True):
        for number, policy in enumerate((*SHARING, PASSED)):
            _curve(axis, list(some), [runs.mean(jct_h(), policy, one) for one in some.values()], policy, number)
        axis.set(xlabel="xi of all pairs", ylabel="average completion time [h]", title=limits[memory])
    axes[0].set_ylim(bottom=0)  # when both are drawn: they share it
    axes[1].legend(frameon=False, loc="lower right")
    drawn.suptitle("Average completion time by interference (Figure 6b)", fontweight="bold")
    return [save(drawn, options.out, "bsbf-interference")]


def _curve(axis: Axes, x: Sequence[float], means: Sequence[Estimate], label: str, number: int) -> None:
    axis.plot(x, [one.mean for one in means], label=label, marker="o", markersize=4, **style(number))
    low, high = [one.low for one in means], [one.high for one in means]
    axis.fill_between(x, low, high, color=style(number)["color"], alpha=0.15, linewidth=0)
    finish(axis)
