"""Pictures of the kinds of paper dally's Figures 4 and 7 to 13. Without a folder to write to, nothing is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ..findings import Options
from ..paper_pictures import DAY_S, bars, cdf, figure, finish, save, style
from .dally_grid import Grid


def of_table(options: Options, name: str, runs: Grid, policies: Mapping[str, str]) -> list[Path]:
    """JCT distribution of the runs behind Table II (Figure 9's kind) or III."""
    if options.out is None:
        return []
    drawn = figure(7.0, 4.5)
    axis = drawn.subplots()
    cdf(axis, {label: _jct_s(runs, word, 8) for label, word in policies.items()})
    axis.set(xlabel="job completion time [days]", ylabel="jobs done within it [%]")
    axis.legend(loc="lower right", frameon=False)
    axis.set_title(f"{name}: job completion time, 8 racks, all machine orders", fontweight="bold")
    return [save(drawn, options.out, f"{name}-jct-cdf")]


def of_gains(options: Options, batch: Grid, weeks: Grid, policies: Mapping[str, str]) -> list[Path]:
    """Figures 7, 8a, 9, 10 and 13."""
    if options.out is None:
        return []
    labels = {name: word for name, word in policies.items() if word in batch.policies}
    return [
        _improvements(options.out, batch, labels),
        _tail_queueing(options.out, batch, labels),
        _cdfs(options.out, batch, labels),
        _histograms(options.out, weeks, labels),
        _average_jct(options.out, batch, weeks, labels),
    ]


def of_variants(options: Options, runs: Grid, policies: Mapping[str, str]) -> list[Path]:
    """Makespan by cluster size (Figure 7's runs), a bar a variant."""
    if options.out is None:
        return []
    drawn = figure(8.5, 4.5)
    axis = drawn.subplots()
    bars(axis, _sizes(runs), {name: _means(runs, "makespan", word) for name, word in policies.items()}, DAY_S)
    axis.set(ylabel="makespan [days]")
    axis.legend(frameon=False, ncols=2)
    axis.set_title("Batch: makespan, mean over machine orders and 95 % interval", fontweight="bold")
    return [save(drawn, options.out, "dally-variants-makespan")]


def of_communication(options: Options, runs: Grid, policies: Mapping[str, str]) -> list[Path]:
    """Figure 8b: exposed communication per job by cluster size."""
    if options.out is None:
        return []
    drawn = figure(7.0, 4.5)
    axis = drawn.subplots()
    shown = {name: word for name, word in policies.items() if word in runs.policies}
    series = {name: _means(runs, "comm_time_mean", word) for name, word in shown.items()}
    bars(axis, _sizes(runs), series, 3600.0, log=True)
    axis.set(ylabel="exposed communication per job [h]")
    axis.legend(frameon=False)
    axis.set_title("Batch: communication latency (Figure 8b)", fontweight="bold")
    return [save(drawn, options.out, "dally-communication")]


def of_utilisation(options: Options, runs: Grid, policies: Mapping[str, str]) -> list[Path]:
    """Figures 11 and 12: GPUs held and jobs left over time, every machine order thin, their mean bold."""
    if options.out is None:
        return []
    drawn = figure(9.0, 7.0)
    above, below = drawn.subplots(2, 1, sharex=True)
    for number, (name, word) in enumerate(policies.items()):
        outcomes = runs.of(word, 8)
        stop_s = max(outcome["time_s"][-1] for outcome in outcomes)
        grid_s = np.geomspace(0.1 * DAY_S, stop_s, 600)  # gandiva's tail is tens of times as long as the others' runs
        for axis, what, scale in ((above, "held_gpus", 100.0 / 512.0), (below, "jobs_left", 1.0)):
            curves = [np.interp(grid_s, one["time_s"], one[what], right=0.0) * scale for one in outcomes]
            for curve in curves:
                axis.plot(grid_s / DAY_S, curve, color=style(number)["color"], linewidth=0.4, alpha=0.35)
            axis.plot(grid_s / DAY_S, np.mean(curves, axis=0), label=name, **style(number))
    above.set(ylabel="GPUs held by jobs [%]", ylim=(0, 102))
    below.set(ylabel="jobs remaining", xlabel="time since the start [days]", yscale="symlog", xscale="log")
    below.set_ylim(bottom=0)
    above.set_title("Batch, 8 racks: GPU use and jobs remaining (Figures 11, 12)", fontweight="bold")
    above.legend(frameon=False)
    finish(above)
    finish(below)
    return [save(drawn, options.out, "dally-utilisation")]


def _improvements(folder: Path, runs: Grid, labels: Mapping[str, str]) -> Path:
    drawn = figure(7.0, 4.5)
    axis = drawn.subplots()
    series = {
        f"against {name}": [runs.improvement("makespan", labels["dally"], word, size) for size in runs.racks]
        for name, word in labels.items()
        if name != "dally"
    }
    bars(axis, _sizes(runs), series)
    axis.set(ylabel="makespan lower by [%]")
    axis.legend(frameon=False)
    axis.set_title("Batch: makespan of dally (Figure 7); below 0: it is longer", fontweight="bold")
    return save(drawn, folder, "dally-gains-makespan")


def _tail_queueing(folder: Path, runs: Grid, labels: Mapping[str, str]) -> Path:
    drawn = figure(10.0, 4.2)
    for axis, (metric, name) in zip(
        drawn.subplots(1, 2), (("queueing_delay_p95", "P95"), ("queueing_delay_p99", "P99")), strict=True
    ):
        series = {label: _means(runs, metric, word) for label, word in labels.items()}
        bars(axis, _sizes(runs), series, DAY_S, log=True)
        axis.set(ylabel=f"{name} queueing delay [days]")
    drawn.axes[1].legend(frameon=False)
    drawn.suptitle("Batch: tail queueing delay (Figure 8a)", fontweight="bold")
    return save(drawn, folder, "dally-gains-queueing")


def _cdfs(folder: Path, runs: Grid, labels: Mapping[str, str]) -> Path:
    drawn = figure(10.0, 3.2 * ((len(runs.racks) + 1) // 2))
    for axis, size in zip(drawn.subplots(-(-len(runs.racks) // 2), 2, squeeze=False).flat, runs.racks, strict=False):
        cdf(axis, {label: _jct_s(runs, word, size) for label, word in labels.items()})
        axis.set(xlabel="job completion time [days]", ylabel="jobs done within it [%]", title=f"{size} racks")
    drawn.axes[0].legend(loc="lower right", frameon=False)
    drawn.suptitle("Batch: job completion time (Figure 9)", fontweight="bold")
    return save(drawn, folder, "dally-gains-jct-cdf")


def _histograms(folder: Path, runs: Grid, labels: Mapping[str, str]) -> Path:
    """JCTs up to the largest of the policies' 95th percentiles, as the paper cuts them."""
    drawn = figure(10.0, 3.2 * ((len(runs.racks) + 1) // 2))
    for axis, size in zip(drawn.subplots(-(-len(runs.racks) // 2), 2, squeeze=False).flat, runs.racks, strict=False):
        values = {label: _jct_s(runs, word, size) for label, word in labels.items()}
        least = min(float(one.min()) for one in values.values())
        most = max(float(np.quantile(one, 0.95)) for one in values.values())
        edges = np.geomspace(least, most, 31)
        for number, (label, one) in enumerate(values.items()):
            share = 100.0 * np.histogram(one, edges)[0] / len(one)
            axis.stairs(share, edges / DAY_S, baseline=None, label=label, **style(number))
        axis.set(
            xlabel="job completion time [days]", ylabel="jobs [%]", title=f"{size} racks", ylim=(0, None), xscale="log"
        )
        finish(axis)
    drawn.axes[0].legend(frameon=False)
    drawn.suptitle("Poisson: job completion times up to P95 (Figure 10)", fontweight="bold")
    return save(drawn, folder, "dally-gains-jct-histogram")


def _average_jct(folder: Path, batch: Grid, weeks: Grid, labels: Mapping[str, str]) -> Path:
    drawn = figure(10.0, 4.2)
    for axis, (runs, name) in zip(drawn.subplots(1, 2), ((batch, "(a) batch"), (weeks, "(b) Poisson")), strict=True):
        series = {label: _means(runs, "jct_mean", word) for label, word in labels.items()}
        bars(axis, _sizes(runs), series, DAY_S, log=True)
        axis.set(ylabel="average JCT [days]", title=name)
    drawn.axes[1].legend(frameon=False)
    drawn.suptitle("Average job completion time (Figure 13)", fontweight="bold")
    return save(drawn, folder, "dally-gains-average-jct")


def timers(options: Options, curves: Mapping[int, tuple[np.ndarray, Sequence[np.ndarray]]], gang: int) -> list[Path]:
    """Figure 4: the rack timer of one GPU demand over time, a curve a cluster size.

    Args:
        curves: racks -> (times in seconds, the timer in hours at those times, one array a machine order; nan once
            the cluster is no longer crowded). Thin: each machine order, bold: their median.
        gang: the GPU demand.
    """
    if options.out is None:
        return []
    drawn = figure(8.0, 4.5)
    axis = drawn.subplots()
    most = 0.0
    for number, (racks, (time_s, orders)) in enumerate(curves.items()):
        for one in orders:
            axis.plot(time_s / DAY_S, one, color=style(number)["color"], linewidth=0.5, alpha=0.4)
        shown = ~np.isnan(orders).all(axis=0)
        middle = np.nanmedian(np.array(orders)[:, shown], axis=0)
        axis.plot(time_s[shown] / DAY_S, middle, label=f"{racks} racks", **{**style(number), "linewidth": 2.4})
        most = max(most, float(np.nanquantile(orders, 0.99)))
    axis.set(xlabel="time since the start [days]", ylabel="rack timer [h]", xlim=(0, None), ylim=(0, 1.05 * most))
    axis.legend(frameon=False)
    title = f"Batch: tuned rack timer of {gang} GPUs until half of the jobs are done (Figure 4)"
    axis.set_title(title, fontweight="bold")
    finish(axis)
    return [save(drawn, options.out, "dally-autotuner")]


def _sizes(runs: Grid) -> list[str]:
    return [f"{size} racks" for size in runs.racks]


def _means(runs: Grid, metric: str, word: str) -> list:
    return [runs.mean(metric, word, size) for size in runs.racks]


def _jct_s(runs: Grid, word: str, size: int) -> np.ndarray:
    return np.concatenate([outcome["jct_s"] for outcome in runs.of(word, size)])
