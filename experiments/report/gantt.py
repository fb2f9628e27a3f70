"""The GPUs of each job over time, one chart a policy, all on the same time axis."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...simulator.base.durations import duration
from ..charts import axes
from ..charts.chart import WIDTH, Chart, Label, Shape, box, chart_name, segment
from ..charts.marks import JOB_COLOURS, SHADES
from ..playing.gantt_boxes import gantt_boxes
from ..playing.over_time import MOST_GPU_ROWS, shares_in_use
from ..playing.recording import Timeline

Stretches = Mapping[int, Sequence[tuple[float, float]]]
JOB_HUES = len(JOB_COLOURS)  # classes j0.. of the style sheet; a job has the same one under every policy
MOST_BOXES = 6000
TIME_BINS = 240
MOST_ROWS = 64
LEAST = 1.0 / WIDTH  # how wide the shortest stretch is drawn


def span_s(timelines: Iterable[Timeline]) -> float:
    """The longest of some runs, from the first arrival to the end; 0 of none."""
    return max((line.stop_s - line.begin_s for line in timelines), default=0.0)


def gantts(seed: int, timelines: Mapping[str, Timeline], same: Stretches | None = None) -> list[Chart]:
    """The charts of several runs of a seed, by the labels of their policies, on one time axis; `same` as `gantt`."""
    stop_s = span_s(timelines.values())
    return [gantt(label, line, stop_s, seed, same) for label, line in timelines.items()]


def gantt(label: str, timeline: Timeline, stop_s: float, seed: int, same: Stretches | None = None) -> Chart:
    """The chart of one run; large clusters and long runs have a row a machine, shaded by its share of GPUs in use.

    The time axis ends `stop_s` seconds after the first arrival. `same`: job -> begin and end of pale stretches.
    """
    by_gpu = timeline.num_gpus <= MOST_GPU_ROWS and len(gantt_boxes(timeline)) <= MOST_BOXES
    x = axes.durations(0.0, stop_s)
    drawn, rows = _jobs(timeline, x, same or {}) if by_gpu else _shades(timeline, x)
    unit = timeline.unit
    label_of_rows = "one row a GPU, lines between machines" if unit == "GPU" else f"one row a {unit}"
    stretches_s = timeline.end_s - timeline.start_s
    each = duration(float(stretches_s.mean())) if len(stretches_s) else "no time"
    jobs, stop = len(set(timeline.job.tolist())), duration(timeline.stop_s - timeline.begin_s)
    summary = f"{label}, seed {seed}: {jobs} jobs in {len(stretches_s)} stretches of {each} each; ends after {stop}"
    height = int(np.clip(7 * (timeline.num_gpus if by_gpu else len(rows)), 120, 320))
    y_label = label_of_rows if by_gpu else "one row a machine, full colour: all its GPUs in use"
    labels, name = rows if len(rows) <= 20 else (), chart_name("gantt", label)
    about: Any = {"y_label": y_label, "shapes": drawn, "rows": labels, "name": name, "is_gantt": True}
    return Chart(label, summary, height, x, None, "time since the first arrival", **about)


def _jobs(timeline: Timeline, x: axes.Axis, same: Stretches) -> tuple[list[Shape], list[Label]]:
    parts: dict[str, list[np.ndarray]] = {}
    boxes = gantt_boxes(timeline)
    bounds_s = ([one.start_s for one in boxes], [one.end_s for one in boxes])
    lefts, rights = (x.at(np.array(times_s) - timeline.begin_s).tolist() for times_s in bounds_s)
    for one, left, right in zip(boxes, lefts, rights, strict=True):
        top, bottom = (1.0 - row / timeline.num_gpus for row in (one.top, one.bottom))
        pale = any(begin_s <= one.start_s and one.end_s <= end_s for begin_s, end_s in same.get(one.job, ()))
        drawn = parts.setdefault(f"job j{one.job % JOB_HUES}{' same' * pale}", [])
        drawn.append(box(left, max(right, left + LEAST), bottom, top))
    starts = np.flatnonzero(np.diff(timeline.gpu_machine, prepend=-1))
    lines = [segment(0.0, 1.0, 1.0 - start / timeline.num_gpus) for start in starts[1:].tolist()]
    ends = np.append(starts[1:], timeline.num_gpus)
    rows = [
        Label("machine", round(50.0 * (start + end) / timeline.num_gpus, 2), timeline.machine_name(number))
        for number, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True))
    ]
    shapes = [Shape(classes, part, closed=True) for classes, part in sorted(parts.items())]
    return [*shapes, Shape("machines", lines)], rows


def _shades(timeline: Timeline, x: axes.Axis) -> tuple[list[Shape], list[Label]]:
    bins = max(2, round(TIME_BINS * float(x.at(timeline.stop_s - timeline.begin_s))))
    share = shares_in_use(timeline, bins)
    groups = np.array_split(np.arange(len(share)), min(MOST_ROWS, len(share)))
    level = np.stack([np.rint(SHADES * share[group].mean(axis=0)) for group in groups]).astype(int)
    place = x.at(np.linspace(0.0, timeline.stop_s - timeline.begin_s, bins + 1)).tolist()
    parts: dict[int, list[np.ndarray]] = {number: [] for number in range(1, SHADES + 1)}
    for number, values in enumerate(level):
        top, bottom = (1.0 - row / len(groups) for row in (number, number + 1))
        cuts = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), bins]
        for first, end in itertools.pairwise(cuts):
            if values[first]:
                parts[int(values[first])].append(box(place[first], place[end], bottom, top))
    shapes = [Shape(f"shade s{number}", part, closed=True) for number, part in parts.items() if part]
    names = [timeline.machine_name(int(group[0])) for group in groups]
    places = (round(100.0 * (number + 0.5) / len(groups), 2) for number in range(len(groups)))
    return shapes, [Label("machine", at, name) for at, name in zip(places, names, strict=True)]
