"""The charts of a section: ratios, box over seeds, distribution of JCT, use and queue over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...simulator.base.durations import duration
from ..charts import axes
from ..charts.chart import Chart, Label, Shape, box, grid, segment, upright
from ..charts.plots import Styles, curves, distribution
from ..playing.over_time import bin_means
from ..playing.recording import Timeline
from .episodes import Episodes, same_stretches
from .gantt import gantts, span_s
from .load import Entry, Section

ROW_PX = 27
TIME_BINS = 110
MOST_DOTS = 60
WIDEST = 3.0  # an interval reaches at most so many times beyond its mean on the page


def ratios(section: Section, styles: Styles) -> Chart | None:
    """Mean JCT over the baseline's, with the paired interval; a dot a seed."""
    rows = [(entry, ratio) for entry in section.entries if (ratio := section.ratio(entry)) is not None]
    if len(rows) < 2:
        return None
    dots = {entry.label: _ratio_per_seed(section, entry) for entry, _ in rows}
    means = [ratio.mean for _, ratio in rows]
    low = min(max(ratio.low, ratio.mean / WIDEST) for _, ratio in rows)  # of few seeds an interval may be no picture
    high = max(min(ratio.high, ratio.mean * WIDEST) for _, ratio in rows)
    x = axes.log_ratios(0.96 * min(low, *means), 1.04 * max(high, *means))
    shapes = [grid(x, None), Shape("one", [upright(float(x.at(1.0)), 0.0, 1.0)])]
    for number, (entry, ratio) in enumerate(rows):
        y, classes = _row(number, len(rows)), styles[entry.label].classes
        inside = dots[entry.label][(dots[entry.label] >= x.low) & (dots[entry.label] <= x.high)]
        if entry.label != section.baseline:
            shapes.append(Shape(f"seed {classes}", [segment(at, at, y) for at in x.at(_few(inside)).tolist()]))
            shapes.append(Shape(f"interval {classes}", [segment(float(x.at(ratio.low)), float(x.at(ratio.high)), y)]))
        place = float(x.at(ratio.mean))
        shapes.append(Shape(f"mean {classes}", [segment(place, place, y)]))
    title, x_label = f"Mean JCT as a ratio to {section.baseline}", "left of 1 is better (log scale)"
    summary = "; ".join(f"{entry.label} {r.mean:.3f} ({r.low:.3f} to {r.high:.3f})" for entry, r in rows)
    note = "Large dot: mean over seeds. Bar: paired 95 % interval. Small dots: one seed each."
    labels = _row_labels([entry for entry, _ in rows], styles)
    return Chart(title, summary, ROW_PX * len(rows), x, None, x_label, "", shapes, labels, note=note, name="jct-ratio")


def _ratio_per_seed(section: Section, entry: Entry) -> np.ndarray:
    mine, base = section.pairs(entry)
    return mine[base > 0.0] / base[base > 0.0]


def box_over_seeds(section: Section, styles: Styles) -> Chart | None:
    """Spread of the mean JCT over seeds: quartiles, median, and lines to the lowest and highest seed."""
    rows = [(entry, _finite(entry.values("jct_mean"))) for entry in section.entries]
    rows = [(entry, values) for entry, values in rows if len(values) >= 2 and values.max() > values.min()]
    if not rows:
        return None
    every = np.concatenate([values for _, values in rows])
    x = axes.log_durations(0.95 * float(every.min()), 1.05 * float(every.max()))
    shapes = [grid(x, None)]
    for number, (entry, values) in enumerate(rows):
        y, classes, half = _row(number, len(rows)), styles[entry.label].classes, 0.3 / len(rows)
        low, first, middle, third, high = x.at(np.quantile(values, (0.0, 0.25, 0.5, 0.75, 1.0))).tolist()
        shapes.append(Shape(f"whisker {classes}", [segment(low, first, y), segment(third, high, y)]))
        shapes.append(Shape(f"box {classes}", [box(first, third, y - half, y + half)], closed=True))
        shapes.append(Shape(f"median {classes}", [upright(middle, y - half, y + half)]))
    title, x_label, height = "Mean JCT over seeds", "mean JCT of a seed (log scale)", ROW_PX * len(rows)
    summary = "; ".join(f"{entry.label}: median {duration(float(np.median(v)))}" for entry, v in rows)
    note = "Box: the middle half of the seeds, with the median. Lines: to the lowest and the highest seed."
    labels = _row_labels([entry for entry, _ in rows], styles)
    return Chart(title, summary, height, x, None, x_label, "", shapes, labels, note=note, name="jct-by-seed")


def jct_cdf(entries: Sequence[Entry], styles: Styles) -> Chart | None:
    """Share of jobs done within a time, over all seeds of a policy."""
    times_s = {entry.label: np.concatenate([run.jct_s for run in entry.runs]) for entry in entries}
    about = {"x_label": "job completion time (log scale)", "y_label": "finished jobs within it", "name": "jct-cdf"}
    return distribution(times_s, styles, title="Distribution of job completion time", **about)


def over_time(section: Section, styles: Styles) -> list[Chart]:
    """Use (GPUs held; of job groups CPU and network) and jobs waiting over time, of one seed."""
    seed, timelines = one_seed(section)
    return over_time_of(seed, timelines, styles) if timelines else []


def over_time_of(seed: int, timelines: Mapping[str, Timeline], styles: Styles) -> list[Chart]:
    """Use and jobs waiting over time in one seed; label -> timeline, at least one."""
    stop_s = span_s(timelines.values())
    x = axes.durations(0.0, stop_s)
    edges = {label: np.linspace(line.begin_s, line.stop_s, _bins(line, stop_s)) for label, line in timelines.items()}
    used = {label: line.in_use() for label, line in timelines.items()}
    percent = axes.linear(0.0, 100.0, "{:g} %".format)
    shown = []
    for number, use in enumerate(next(iter(used.values()))):
        shares = {label: 100.0 * bin_means(*some[number][2:], edges[label]) for label, some in used.items()}
        shown.append((use.title, shares, percent, use.label))
    queue = {label: bin_means(*line.queue_length(), edges[label]) for label, line in timelines.items()}
    most = max(1.0, *(float(values.max()) for values in queue.values()))
    shown.append(("queue", queue, axes.linear(0.0, 1.03 * most), "jobs waiting"))
    found = []
    for title, values, y, y_label in shown:
        lines = {label: (edges[label] - line.begin_s, values[label]) for label, line in timelines.items()}
        summary = f"seed {seed}; " + "; ".join(f"{label}: mean {values[label].mean():.3g}" for label in timelines)
        about: Any = {"title": f"{title[0].upper()}{title[1:]} over time", "summary": summary, "y_label": y_label}
        about |= {"x_label": f"time since the first arrival, seed {seed}", "name": title.lower().replace(" ", "-")}
        found.append(curves(lines, styles, x, y, height=250, **about))
    return found


def of_episodes(found: Episodes, styles: Styles) -> list[Chart]:
    """Jobs in the system under two policies, then their Gantt charts, on one time axis; a line marks the parting."""
    lines = dict(zip(found.labels, found.timelines, strict=True))
    same = same_stretches(*found.timelines)
    charts = [_in_system(lines, styles, span_s(lines.values()), found.seed), *gantts(found.seed, lines, same)]
    if found.parting is None:
        return charts
    line = Shape("parting", [upright(float(charts[0].x.at(found.parting.time_s)), 0.0, 1.0)])
    return [chart.with_shapes(line) for chart in charts]


def _in_system(timelines: Mapping[str, Timeline], styles: Styles, stop_s: float, seed: int) -> Chart:
    """Jobs that have come and not ended; the area between two curves is the difference of the sums of their JCTs."""
    edges = np.linspace(0.0, stop_s, 2 * TIME_BINS + 1)
    values = {label: bin_means(*line.in_system(), edges + line.begin_s) for label, line in timelines.items()}
    y = axes.linear(0.0, 1.03 * max(1.0, *(float(some.max()) for some in values.values())))
    summary = "; ".join(f"{label}: mean {some.mean():.3g}" for label, some in values.items())
    note = "The area between the curves is the difference of the sums of their completion times."
    about: Any = {"title": "Jobs in the system", "summary": summary, "note": note, "name": f"episodes-{seed}-jobs"}
    about |= {"x_label": "time since the first arrival", "y_label": "jobs that have come and not ended"}
    lines = {label: (edges, some) for label, some in values.items()}
    return curves(lines, styles, axes.durations(0.0, stop_s), y, height=170, **about)


def one_seed(section: Section) -> tuple[int, dict[str, Timeline]]:
    """The seed with most timelines, and these by label; -1 and none if there is no timeline."""
    recorded: dict[int, dict[str, Timeline]] = {}
    for entry in section.entries:
        for run in entry.runs:
            if run.timeline is not None:
                recorded.setdefault(run.seed, {})[entry.label] = run.timeline
    return max(recorded.items(), key=lambda item: (len(item[1]), -item[0]), default=(-1, {}))


def _bins(timeline: Timeline, stop_s: float) -> int:
    return max(2, round(TIME_BINS * (timeline.stop_s - timeline.begin_s) / max(stop_s, 1e-9)) + 1)


def _row(number: int, count: int) -> float:
    return 1.0 - (number + 0.5) / count


def _row_labels(entries: Sequence[Entry], styles: Styles) -> list[Label]:
    short = short_labels([entry.label for entry in entries])
    places = (round(100.0 * (number + 0.5) / len(short), 2) for number in range(len(short)))
    named = zip(places, short.items(), strict=True)
    return [Label(styles[name].classes, at, shown, name) for at, (name, shown) in named]


def short_labels(labels: Sequence[str]) -> dict[str, str]:
    """Label -> short label: of an agent's path as much of its end as is unique."""
    parts = {label: label.partition(":")[2].split("/") for label in labels if "/" in label.partition(":")[2]}
    for count in range(2, max(map(len, parts.values()), default=0) + 2):
        ends = {label: "…/" * (len(path) > count) + "/".join(path[-count:]) for label, path in parts.items()}
        if len(set(ends.values())) == len(ends):
            return {label: ends.get(label, label) for label in labels}
    return {label: label for label in labels}


def _few(values: np.ndarray) -> np.ndarray:
    ordered = np.sort(values)
    return ordered if len(ordered) <= MOST_DOTS else ordered[np.linspace(0, len(ordered) - 1, MOST_DOTS).astype(int)]


def _finite(values: np.ndarray) -> np.ndarray:
    return values[np.isfinite(values)]
