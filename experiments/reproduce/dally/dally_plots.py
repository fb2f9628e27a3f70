"""Pictures of the kinds of paper dally's Figures 4 and 7 to 13. Without a folder to write to, nothing is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...charts import axes, plots
from ...charts.chart import Chart
from ..findings import Options
from ..paper_pictures import DAY_S, HOUR_S, bars_of_times, if_asked, looks, picture
from .dally_grid import Grid

SHARE, WITHIN = "jobs [%]", "jobs done within it"


@if_asked
def of_table(options: Options, name: str, runs: Grid, policies: Mapping[str, str]) -> list[Path]:
    """JCT distribution of the runs behind Table II (Figure 9's kind) or III."""
    title = f"{name}: job completion time, 8 racks, all machine orders"
    return picture(options, f"{name}-jct-cdf", [_cdf(runs, policies, 8, title)])


@if_asked
def of_gains(options: Options, batch: Grid, weeks: Grid, policies: Mapping[str, str]) -> list[Path]:
    """Figures 7, 8a, 9, 10 and 13."""
    labels = {name: word for name, word in policies.items() if word in batch.policies}
    p95, p99 = (
        _bars(batch, f"queueing_delay_{metric.lower()}", labels, metric, "queueing delay", log=True)
        for metric in ("P95", "P99")
    )
    of_batch, of_weeks = (
        _bars(runs, "jct_mean", labels, name, "average JCT", log=True)
        for runs, name in ((batch, "(a) batch"), (weeks, "(b) Poisson"))
    )
    cdfs = [_cdf(batch, labels, size, f"{size} racks") for size in batch.racks]
    histograms = [_histogram(weeks, labels, size) for size in weeks.racks]
    return [
        *_improvements(options, batch, labels),
        *picture(options, "dally-gains-queueing", [p95, p99], "Batch: tail queueing delay (Figure 8a)", 2),
        *picture(options, "dally-gains-jct-cdf", cdfs, "Batch: job completion time (Figure 9)", 2),
        *picture(
            options, "dally-gains-jct-histogram", histograms, "Poisson: completion times up to P95 (Figure 10)", 2
        ),
        *picture(
            options, "dally-gains-average-jct", [of_batch, of_weeks], "Average job completion time (Figure 13)", 2
        ),
    ]


@if_asked
def of_variants(options: Options, runs: Grid, policies: Mapping[str, str]) -> list[Path]:
    """Makespan by cluster size (Figure 7's runs), a bar a variant."""
    title = "Batch: makespan, mean over machine orders and 95 % interval"
    chart = _bars(runs, "makespan", policies, title, "makespan")
    return picture(options, "dally-variants-makespan", [chart])


@if_asked
def of_communication(options: Options, runs: Grid, policies: Mapping[str, str]) -> list[Path]:
    """Figure 8b: exposed communication per job by cluster size."""
    shown = {name: word for name, word in policies.items() if word in runs.policies}
    about = ("Batch: communication latency (Figure 8b)", "exposed communication per job")
    return picture(options, "dally-communication", [_bars(runs, "comm_time_mean", shown, *about, log=True)])


@if_asked
def of_utilisation(options: Options, runs: Grid, policies: Mapping[str, str]) -> list[Path]:
    """Figures 11 and 12: GPUs held and jobs left over time, every machine order thin, their mean bold."""
    outcomes = {name: runs.of(word, 8) for name, word in policies.items()}
    # gandiva's tail is tens of times as long as the others' runs: a log axis
    stop_s = max(float(one["time_s"][-1]) for some in outcomes.values() for one in some)
    most = max(float(one["jobs_left"].max()) for some in outcomes.values() for one in some)
    x, grid_s = axes.log_durations(0.1 * DAY_S, stop_s), np.geomspace(0.1 * DAY_S, stop_s, 600)
    charts = []
    for what, scale, y, title, y_label in (
        ("held_gpus", 100.0 / 512.0, axes.linear(0.0, 102.0), "GPU use (Figure 11)", "GPUs held by jobs [%]"),
        (
            "jobs_left",
            1.0,
            axes.log_numbers(0.5, 1.1 * max(most, 1.0)),
            "jobs left (Figure 12)",
            "jobs (log scale)",
        ),
    ):
        thin = {
            name: [(grid_s, scale * np.interp(grid_s, one["time_s"], one[what], right=0.0)) for one in some]
            for name, some in outcomes.items()
        }
        bold = {name: (grid_s, np.mean([values for _, values in some], axis=0)) for name, some in thin.items()}
        about: dict[str, Any] = {
            "title": f"Batch, 8 racks: {title}",
            "x_label": "time since the start (log scale)",
            "y_label": y_label,
        }
        charts.append(plots.curves(bold, looks(policies), x, y, thin, **about))
    return picture(options, "dally-utilisation", charts)


def _improvements(options: Options, runs: Grid, labels: Mapping[str, str]) -> list[Path]:
    series = {
        f"against {name}": [runs.improvement("makespan", labels["dally"], word, size) for size in runs.racks]
        for name, word in labels.items()
        if name != "dally"
    }
    every = [one for values in series.values() for one in values]
    y = axes.widened(min(0.0, *(one.low for one in every)), max(0.0, *(one.high for one in every)))
    title = "Batch: makespan of dally (Figure 7); below 0: it is longer"
    chart = plots.bars(_sizes(runs), series, looks(series), y, title=title, y_label="makespan lower by [%]")
    return picture(options, "dally-gains-makespan", [chart])


def _histogram(runs: Grid, labels: Mapping[str, str], size: int) -> Chart:
    """JCTs up to the largest of the policies' 95th percentiles, as the paper cuts them."""
    values = {label: _jct_s(runs, word, size) for label, word in labels.items()}
    edges_s = np.geomspace(
        min(float(one.min()) for one in values.values()),
        max(float(np.quantile(one, 0.95)) for one in values.values()),
        31,
    )
    lines = {label: (edges_s, 100.0 * np.histogram(one, edges_s)[0] / len(one)) for label, one in values.items()}
    x = axes.log_durations(float(edges_s[0]), float(edges_s[-1]))
    y = axes.linear(0.0, 1.03 * max(float(share.max()) for _, share in lines.values()))
    about: dict[str, Any] = {"title": f"{size} racks", "x_label": "job completion time (log scale)", "y_label": SHARE}
    return plots.curves(lines, looks(labels), x, y, **about)


@if_asked
def timers(options: Options, curves: Mapping[int, tuple[np.ndarray, Sequence[np.ndarray]]], gang: int) -> list[Path]:
    """Figure 4: the rack timer of one GPU demand over time, a curve a cluster size.

    Args:
        options: the folder to write to.
        curves: racks -> (times in seconds, the timer in hours at those times, one array a machine order; nan once
            the cluster is no longer crowded). Thin: each machine order, bold: their median.
        gang: the GPU demand.
    """
    thin, bold, most_s = {}, {}, 0.0
    for racks, (time_s, orders) in curves.items():
        label, seen = f"{racks} racks", [~np.isnan(one) for one in orders]
        thin[label] = [
            (time_s[there], HOUR_S * one[there]) for one, there in zip(orders, seen, strict=True) if any(there)
        ]
        shown = np.any(seen, axis=0)
        bold[label] = (time_s[shown], HOUR_S * np.nanmedian(np.array(orders)[:, shown], axis=0))
        most_s = max(most_s, HOUR_S * float(np.nanquantile(orders, 0.99)))
    x = axes.durations(0.0, max(float(time_s[-1]) for time_s, _ in bold.values()))
    title = f"Batch: tuned rack timer of {gang} GPUs until half of the jobs are done (Figure 4)"
    about: dict[str, Any] = {"title": title, "x_label": "time since the start", "y_label": "rack timer"}
    chart = plots.curves(bold, looks(bold), x, axes.durations(0.0, 1.05 * most_s), thin, **about)
    return picture(options, "dally-autotuner", [chart])


def _cdf(runs: Grid, labels: Mapping[str, str], size: int, title: str) -> Chart | None:
    values = {label: _jct_s(runs, word, size) for label, word in labels.items()}
    about: dict[str, Any] = {"x_label": "job completion time (log scale)", "y_label": WITHIN}
    return plots.distribution(values, looks(labels), title=title, **about)


def _bars(runs: Grid, metric: str, labels: Mapping[str, str], title: str, y_label: str, *, log: bool = False) -> Chart:
    series = {label: [runs.mean(metric, word, size) for size in runs.racks] for label, word in labels.items()}
    return bars_of_times(_sizes(runs), series, title, y_label, log=log)


def _sizes(runs: Grid) -> list[str]:
    return [f"{size} racks" for size in runs.racks]


def _jct_s(runs: Grid, word: str, size: int) -> np.ndarray:
    return np.concatenate([outcome["jct_s"] for outcome in runs.of(word, size)])
