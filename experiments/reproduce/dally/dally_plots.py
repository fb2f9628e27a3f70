"""Pictures of the kinds of paper dally's Figures 4, 7 and 10 to 12, and of `dally-waiting`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ...charts import axes, plots
from ...charts.chart import Chart, Shape, segment, upright
from ...comparing.intervals import Estimate, paired_ratio
from ..engine import Play
from ..paper_pictures import DAY_S, looks, picture
from .dally_runs import crowded

LOWEST, HIGHEST = 0.25, 4.0  # of the pictures of waiting
POLICIES = ("gandiva", "tiresias", "dally")


def gains_drawn(play: Play) -> list[Path]:
    """Figures 7 and 10: makespans lower by so much, and completion times up to P95."""
    batch, weeks = play.group(["batch"]), play.group(["weeks"])
    makespan = play.number("makespan")
    series = {
        f"against {other}": [play.runs.improvement(makespan, "dally", other, at) for at in batch]
        for other in POLICIES[:2]
    }
    every = [one for values in series.values() for one in values]
    y = axes.widened(min(0.0, *(one.low for one in every)), max(0.0, *(one.high for one in every)))
    title = "Batch: makespan of dally (Figure 7); below 0: it is longer"
    chart = plots.bars(
        [*map(play.label, batch)], series, looks(series), y, title=title, y_label="makespan lower by [%]"
    )
    about = ("Poisson: completion times up to P95 (Figure 10)", 2)
    return [
        *picture(play.options, "dally-gains-makespan", [chart]),
        *picture(play.options, "dally-gains-jct-histogram", [_histogram(play, at) for at in weeks], *about),
    ]


def _histogram(play: Play, at: str) -> Chart:
    """JCTs up to the largest of the policies' 95th percentiles, as the paper cuts them."""
    values = {policy: np.concatenate([one["jct_s"] for one in play.runs.of(policy, at)]) for policy in POLICIES}
    first_s = min(float(one.min()) for one in values.values())
    edges_s = np.geomspace(first_s, max(float(np.quantile(one, 0.95)) for one in values.values()), 31)
    lines = {policy: (edges_s, 100.0 * np.histogram(one, edges_s)[0] / len(one)) for policy, one in values.items()}
    x = axes.log_durations(float(edges_s[0]), float(edges_s[-1]))
    y = axes.linear(0.0, 1.03 * max(float(share.max()) for _, share in lines.values()))
    about: dict[str, Any] = {"x_label": "job completion time (log scale)", "y_label": "jobs [%]"}
    return plots.curves(lines, looks(values), x, y, title=play.label(at), **about)


def utilisation_drawn(play: Play) -> list[Path]:
    """Figures 11 and 12: GPUs held and jobs left over time, every machine order thin, their mean bold."""
    policies = ("gandiva", "tiresias", "dally-manual", "dally")
    outcomes = {policy: play.runs.of(policy, "over time") for policy in policies}
    # gandiva's tail is tens of times as long as the others' runs: a log axis
    stop_s = max(float(one["time_s"][-1]) for some in outcomes.values() for one in some)
    most = max(float(one["jobs_left"].max()) for some in outcomes.values() for one in some)
    x, grid_s = axes.log_durations(0.1 * DAY_S, stop_s), np.geomspace(0.1 * DAY_S, stop_s, 600)
    charts = []
    for what, scale, y, title, y_label in (
        ("held_gpus", 100.0 / 512.0, axes.linear(0.0, 102.0), "GPU use (Figure 11)", "GPUs held by jobs [%]"),
        ("jobs_left", 1.0, axes.log_numbers(0.5, 1.1 * max(most, 1.0)), "jobs left (Figure 12)", "jobs (log scale)"),
    ):
        thin = {
            name: [(grid_s, scale * np.interp(grid_s, one["time_s"], one[what], right=0.0)) for one in some]
            for name, some in outcomes.items()
        }
        bold = {name: (grid_s, np.mean([values for _, values in some], axis=0)) for name, some in thin.items()}
        about = {"title": f"Batch, 8 racks: {title}", "x_label": "time since the start (log scale)", "y_label": y_label}
        charts.append(plots.curves(bold, looks(policies), x, y, thin, **about))
    return picture(play.options, "dally-utilisation", charts)


def timers_drawn(play: Play) -> list[Path]:
    """Figure 4: the rack timer over time, a curve a cluster size, until half of the jobs are done.

    Thin: each machine order; bold: their median.
    """
    thin, bold, every = {}, {}, []
    for at in play.group(play.entry.at):
        label, orders = play.label(at), []
        for one in play.runs.of("dally:history=24", at):
            then = crowded(one)
            if then.any():
                orders.append((one["time_s"][then], one["timer_s"][then]))
        grid_s = np.linspace(0.0, max((float(time_s[-1]) for time_s, _ in orders), default=0.0), 400)
        on_grid = np.array([np.interp(grid_s, *one, right=np.nan) for one in orders])
        thin[label] = [(grid_s[~np.isnan(one)], one[~np.isnan(one)]) for one in on_grid]
        bold[label] = (grid_s, np.nanmedian(on_grid, axis=0))
        every.append(float(np.nanquantile(on_grid, 0.99)))
    x = axes.durations(0.0, max(float(time_s[-1]) for time_s, _ in bold.values()))
    title = "Batch: tuned rack timer of 16 GPUs until half of the jobs are done (Figure 4)"
    about = {"title": title, "x_label": "time since the start", "y_label": "rack timer"}
    chart = plots.curves(bold, looks(bold), x, axes.durations(0.0, 1.05 * max(every)), thin, **about)
    return picture(play.options, "dally-autotuner", [chart])


def waiting_drawn(play: Play) -> list[Path]:
    """A picture a semantics, a panel a mix: average JCT over that of not waiting by wait, a curve a load."""
    waits, take, paths = ["wait 0", *play.entry.rows[0].policies], play.number("jct_mean"), []
    found: dict[str, dict[str, dict[str, list[Estimate]]]] = {}
    for at in play.group(play.entry.at):
        semantics, mix, load = play.label(at).split(", ")
        line = [paired_ratio(*play.runs.pair(take, one, at, "wait 0", at)) for one in waits]
        found.setdefault(semantics, {}).setdefault(mix, {})[load] = line
    for semantics, mixes in found.items():
        charts = [_panel(mix, [one.removeprefix("wait ") for one in waits], lines) for mix, lines in mixes.items()]
        title = f"Where waiting for a better tier pays: below 1 (semantics={semantics})"
        paths += picture(play.options, f"dally-waiting-{semantics}", charts, title, columns=3)
    return paths


def _panel(title: str, waits: list[str], lines: Mapping[str, list[Estimate]]) -> Chart:
    """Fixed timers are joined by a line; the tuned one, the last, stands apart."""
    y, styles = axes.log_ratios(LOWEST, HIGHEST), looks(lines)
    joined: dict[str, list[Estimate | None]] = {label: [*line[:-1], None] for label, line in lines.items()}
    about: dict[str, Any] = {"title": title, "x_label": "machine timer", "y_label": "JCT / not waiting (log scale)"}
    chart = plots.means(waits, joined, styles, y, "{:.3f}".format, **about)
    tuned = []
    for number, (label, line) in enumerate(lines.items()):
        last, classes = line[-1], styles[label].classes
        x, (low, mean, high) = 1.0 - 0.01 * number, y.at(np.array([last.low, last.mean, last.high])).tolist()
        tuned += [Shape(f"whisker {classes}", [upright(x, low, high)]), Shape(f"dot {classes}", [segment(x, x, mean)])]
    return replace(chart, ends=()).with_shapes(Shape("one", [segment(0.0, 1.0, float(y.at(1.0)))]), *tuned)
