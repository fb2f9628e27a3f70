"""Who held which GPU when, one chart a policy, all on the same time axis."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from ..gantt_boxes import gantt_boxes
from ..over_time import MOST_GPU_ROWS, shares_in_use
from ..playing.recording import Timeline
from ..tensorboard_log import folder_name
from . import axes
from .charts import HEIGHT, WIDTH, Chart, Label, Shape, segment
from .colours import JOB_COLOURS

Stretches = Mapping[int, Sequence[tuple[float, float]]]
JOB_HUES = len(JOB_COLOURS)  # classes j0.. of the style sheet; a job has the same one under every policy
MOST_BOXES = 6000
LEVELS = 8
TIME_BINS = 240
MOST_ROWS = 64


def gantt(label: str, timeline: Timeline, stop_s: float, seed: int, same: Stretches | None = None) -> Chart:
    """The chart of one run; large clusters and long runs have a row a machine, shaded by its share of GPUs in use.

    Args:
        label: of the policy.
        timeline: of its run.
        stop_s: where the time axis ends, seconds after the first arrival.
        seed: of the run.
        same: job -> begin and end of stretches that are to be pale.
    """
    by_gpu = timeline.num_gpus <= MOST_GPU_ROWS and len(gantt_boxes(timeline)) <= MOST_BOXES
    x = axes.durations(0.0, stop_s)
    drawn, rows = _jobs(timeline, x, same or {}) if by_gpu else _shades(timeline, x)
    stretches_s = timeline.end_s - timeline.start_s
    each = axes.duration(float(stretches_s.mean())) if len(stretches_s) else "no time"
    jobs, stop = len(set(timeline.job.tolist())), axes.duration(timeline.stop_s - timeline.begin_s)
    return Chart(
        title=label,
        summary=f"{label}, seed {seed}: {jobs} jobs in {len(stretches_s)} stretches of {each} each; ends after {stop}",
        height=int(np.clip(7 * (timeline.num_gpus if by_gpu else len(rows)), 120, 320)),
        x=x,
        y=None,
        x_label="time since the first arrival",
        y_label=_row_words(timeline.unit) if by_gpu else "one row a machine, full colour: all its GPUs in use",
        shapes=drawn,
        rows=rows if len(rows) <= 20 else (),
        name=f"gantt-{folder_name(label)}",
        is_gantt=True,
    )


def _row_words(unit: str) -> str:
    return "one row a GPU, lines between machines" if unit == "GPU" else f"one row a {unit}"


def _jobs(timeline: Timeline, x: axes.Axis, same: Stretches) -> tuple[list[Shape], list[Label]]:
    row = HEIGHT / timeline.num_gpus
    parts: dict[str, list[str]] = {}
    boxes = gantt_boxes(timeline)
    lefts, rights = (
        np.rint(WIDTH * x.at(np.array(times_s) - timeline.begin_s)).astype(int).tolist()
        for times_s in ([box.start_s for box in boxes], [box.end_s for box in boxes])
    )
    for box, left, right in zip(boxes, lefts, rights, strict=True):
        top, height = round(box.top * row), round(box.bottom * row) - round(box.top * row)
        pale = any(begin_s <= box.start_s and box.end_s <= end_s for begin_s, end_s in same.get(box.job, ()))
        parts.setdefault(f"job j{box.job % JOB_HUES}{' same' * pale}", []).append(
            f"M{left} {top}h{max(right - left, 1)}v{height}h{-max(right - left, 1)}z"
        )
    starts = np.flatnonzero(np.diff(timeline.gpu_machine, prepend=-1))
    lines = "".join(segment(0.0, 1.0, 1.0 - start / timeline.num_gpus) for start in starts[1:].tolist())
    ends = np.append(starts[1:], timeline.num_gpus)
    rows = [
        Label("machine", round(50.0 * (start + end) / timeline.num_gpus, 2), timeline.machine_name(number))
        for number, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True))
    ]
    shapes = [Shape(classes, "".join(part)) for classes, part in sorted(parts.items())]
    return [*shapes, Shape("machines", lines)], rows


def _shades(timeline: Timeline, x: axes.Axis) -> tuple[list[Shape], list[Label]]:
    bins = max(2, round(TIME_BINS * float(x.at(timeline.stop_s - timeline.begin_s))))
    share = shares_in_use(timeline, bins)
    groups = np.array_split(np.arange(len(share)), min(MOST_ROWS, len(share)))
    level = np.stack([np.rint(LEVELS * share[group].mean(axis=0)) for group in groups]).astype(int)
    place = np.rint(WIDTH * x.at(np.linspace(0.0, timeline.stop_s - timeline.begin_s, bins + 1))).astype(int)
    row = HEIGHT / len(groups)
    parts: dict[int, list[str]] = {number: [] for number in range(1, LEVELS + 1)}
    for number, values in enumerate(level):
        top, height = round(number * row), round((number + 1) * row) - round(number * row)
        cuts = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), bins]
        for first, end in itertools.pairwise(cuts):
            if values[first]:
                width = int(place[end] - place[first])
                parts[int(values[first])].append(f"M{place[first]} {top}h{width}v{height}h{-width}z")
    shapes = [Shape(f"shade s{number}", "".join(part)) for number, part in parts.items() if part]
    return shapes, [
        Label("machine", round(100.0 * (number + 0.5) / len(groups), 2), timeline.machine_name(int(group[0])))
        for number, group in enumerate(groups)
    ]
