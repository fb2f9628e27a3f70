"""Pictures of an evaluation: JCT distribution, GPU use and queue over time, and who held which GPUs."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..simulator.errors import MissingExtra
from .evaluate import Run
from .gantt_boxes import gantt_boxes
from .recording import Timeline
from .tensorboard_log import folder_names
from .terminal import written_whole
from .workload_report import seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart by everyone; black is for text, yellow is too light for lines.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
JOB_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#8C8C8C")
LINES = ("-", "--", ":", "-.")
MOST_GPU_ROWS = 64
TIME_BINS = 800
DPI = 120


def expect_installed() -> None:
    """Raise MissingExtra, naming the command that helps, where matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingExtra('pictures need matplotlib; install it with: pip install "clustergym[render]"') from None


def write_all(runs: Sequence[Run], folder: Path) -> list[Path]:
    """Draw every picture of an evaluation into `folder`; timelines are those of the first run of each policy.

    Returns:
        jct-cdf.png, over-time.png and one gantt-<policy>.png a policy.
    """
    policies = list(dict.fromkeys(run.policy for run in runs))
    names = folder_names(policies)
    timelines = {run.policy: run.timeline for run in reversed(runs) if run.timeline is not None}
    pictures: dict[str, Callable[[], Figure]] = {"jct-cdf.png": lambda: jct_cdf(runs)}
    if timelines:
        pictures["over-time.png"] = lambda: over_time({name: timelines[name] for name in policies if name in timelines})
    for policy in policies:
        if (timeline := timelines.get(policy)) is not None:
            pictures[f"gantt-{names[policy]}.png"] = lambda p=policy, t=timeline: gantt(p, t)  # type: ignore[misc]
    paths = []
    for name, draw in pictures.items():
        with written_whole(folder / name) as draft:
            draft.write_bytes(png(draw(), DPI))
        paths.append(folder / name)
    return paths


def png(figure: Figure, dpi: float) -> bytes:
    """A figure as the content of a png file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=dpi, format="png")
    return buffer.getvalue()


def jct_cdf(runs: Sequence[Run]) -> Figure:
    """Share of jobs that are done within a time, one line a policy, over all its seeds."""
    figure = _figure(8.0, 5.0)
    axis = figure.subplots()
    by_policy: dict[str, list[np.ndarray]] = {}
    for run in runs:
        by_policy.setdefault(run.policy, []).append(run.jct_s)
    for number, (policy, parts) in enumerate(by_policy.items()):
        jct_s = np.sort(np.concatenate(parts))
        if len(jct_s):
            share = 100.0 * np.arange(1, len(jct_s) + 1) / len(jct_s)
            pick = np.unique(np.linspace(0, len(jct_s) - 1, 3000).astype(np.int64))
            axis.step(jct_s[pick], share[pick], where="post", label=_label(policy), **_style(number))
    axis.set_xscale("log")
    axis.set(xlabel="job completion time [s]", ylabel="finished jobs within it [%]", ylim=(0, 100.5))
    axis.set_title("Job completion time", fontweight="bold")
    _finish(axis)
    if axis.lines:
        axis.legend(loc="lower right", frameon=False)
    else:
        axis.text(0.5, 0.5, "no job has finished", ha="center", transform=axis.transAxes)
    return figure


def over_time(timelines: dict[str, Timeline]) -> Figure:
    """What is in use (GPUs held; of job groups CPU and network) and jobs waiting over time, one line a policy."""
    used = {policy: timeline.in_use() for policy, timeline in timelines.items()}
    panels = next(iter(used.values()))
    figure = _figure(10.0, 0.5 + 3.0 * (len(panels) + 1))
    *above, below = figure.subplots(len(panels) + 1, 1, sharex=True)
    unit_s, unit = _unit(max(timeline.stop_s - timeline.begin_s for timeline in timelines.values()))
    for number, (policy, timeline) in enumerate(timelines.items()):
        edges = np.linspace(timeline.begin_s, timeline.stop_s, 201)
        x = (edges - timeline.begin_s) / unit_s
        for axis, use in zip(above, used[policy], strict=True):
            share = 100.0 * bin_means(use.time_s, use.share, edges)
            axis.stairs(share, x, baseline=None, label=_label(policy), **_style(number))
        times, waiting = timeline.queue_length()
        below.stairs(bin_means(times, waiting, edges), x, baseline=None, **_style(number))
    for axis, use in zip(above, panels, strict=True):
        axis.set(ylabel=f"{use.label} [%]", ylim=(0, 102))
    below.set(ylabel="jobs waiting", xlabel=f"time since the first arrival [{unit}]")
    below.set_ylim(bottom=0)
    below.set_xlim(left=0)
    words = ", ".join(use.title for use in panels)
    above[0].set_title(f"{_first_upper(words)} and queue over time (first seed)", fontweight="bold")
    for axis in (*above, below):
        _finish(axis)
    above[0].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    return figure


def gantt(policy: str, timeline: Timeline) -> Figure:
    """Who held which GPU when: a row a GPU; for large clusters a row a machine, with the share of its GPUs in use."""
    by_gpu = timeline.num_gpus <= MOST_GPU_ROWS
    rows = timeline.num_gpus if by_gpu else int(timeline.gpu_machine[-1]) + 1
    figure = _figure(11.0, float(np.clip(1.6 + 0.11 * rows, 3.0, 9.0)))
    axis = figure.subplots()
    unit_s, unit = _unit(timeline.stop_s - timeline.begin_s)
    (_gantt_gpus if by_gpu else _gantt_machines)(figure, axis, timeline, unit_s)
    axis.set(xlabel=f"time since the first arrival [{unit}]", xlim=(0, (timeline.stop_s - timeline.begin_s) / unit_s))
    axis.invert_yaxis()
    what = f"who held which {timeline.unit}" if by_gpu else f"{timeline.unit}s in use by machine"
    axis.set_title(f"{_label(policy)}: {what} (first seed)", fontweight="bold")
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def _gantt_gpus(figure: Figure, axis: Axes, timeline: Timeline, unit_s: float) -> None:
    from matplotlib.collections import PolyCollection

    boxes, colours, colour = [], [], _job_colours(timeline)
    for job, start_s, end_s, top, bottom in gantt_boxes(timeline):
        left, right = (start_s - timeline.begin_s) / unit_s, (end_s - timeline.begin_s) / unit_s
        boxes.append([(left, top - 0.5), (right, top - 0.5), (right, bottom - 0.5), (left, bottom - 0.5)])
        colours.append(JOB_COLOURS[colour[job]])
    axis.add_collection(PolyCollection(boxes, facecolors=colours, edgecolors="white", linewidths=0.3))
    axis.set(ylabel=timeline.unit, ylim=(-0.5, timeline.num_gpus - 0.5))
    first_of_machine = np.flatnonzero(np.diff(timeline.gpu_machine, prepend=-1))
    if len(first_of_machine) > 1 and timeline.unit == "GPU":
        axis.set_yticks(first_of_machine)
        for place in first_of_machine[1:]:
            axis.axhline(place - 0.5, color="black", linewidth=0.6)
        axis.set_ylabel("GPU (lines: machines)")


def _job_colours(timeline: Timeline) -> dict[int, int]:
    """One colour a job, different from that of the jobs that held its GPUs, or their neighbours, just before."""
    last = np.full(timeline.num_gpus, -1)
    colour: dict[int, int] = {}
    for job, gpus in zip(timeline.job.tolist(), timeline.gpus, strict=True):
        held = np.array(gpus)
        if job not in colour:
            near = np.clip(np.concatenate([held - 1, held, held + 1]), 0, timeline.num_gpus - 1)
            taken = set(last[near].tolist())
            choices = [(job + step) % len(JOB_COLOURS) for step in range(len(JOB_COLOURS))]
            colour[job] = next((choice for choice in choices if choice not in taken), choices[0])
        last[held] = colour[job]
    return colour


def _gantt_machines(figure: Figure, axis: Axes, timeline: Timeline, unit_s: float) -> None:
    share = 100.0 * shares_in_use(timeline, TIME_BINS)
    stop = (timeline.stop_s - timeline.begin_s) / unit_s
    image = axis.imshow(
        share,
        aspect="auto",
        interpolation="nearest",
        cmap="cividis",
        vmin=0,
        vmax=100,
        origin="lower",
        extent=(0.0, stop, -0.5, len(share) - 0.5),
    )
    figure.colorbar(image, ax=axis, label=f"{timeline.unit}s of the machine in use [%]", pad=0.01)
    axis.set(ylabel="machine")


def _first_upper(word: str) -> str:
    return word[0].upper() + word[1:]


def shares_in_use(timeline: Timeline, bins: int) -> np.ndarray:
    """Share of each machine's GPUs that jobs held, (machines, bins) from 0 to 1; bins of equal time over the run."""
    sizes = np.bincount(timeline.gpu_machine)
    edges = np.linspace(timeline.begin_s, timeline.stop_s, bins + 1)
    held_s = np.zeros((len(sizes), bins))
    for _, start_s, end_s, top, bottom in gantt_boxes(timeline):
        first, last = np.clip(np.searchsorted(edges, (start_s, end_s), side="right") - 1, 0, bins - 1)
        covered_s = np.minimum(end_s, edges[first + 1 : last + 2]) - np.maximum(start_s, edges[first : last + 1])
        machines, counts = np.unique(timeline.gpu_machine[int(top) : math.ceil(bottom)], return_counts=True)
        each = min(1.0, bottom - top)  # of a GPU that is shared each job has its part
        held_s[machines, first : last + 1] += np.outer(each * counts, np.maximum(covered_s, 0.0))
    return held_s / (sizes[:, None] * np.maximum(np.diff(edges), 1e-300))


def bin_means(times: np.ndarray, values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Mean of a step function (value i from times[i] on) between neighbouring `edges`."""
    integral = np.concatenate([[0.0], np.cumsum(values[:-1] * np.diff(times))])
    place = np.clip(np.searchsorted(times, edges, side="right") - 1, 0, len(times) - 1)
    until = integral[place] + values[place] * (edges - times[place])
    return np.diff(until) / np.maximum(np.diff(edges), 1e-300)


def _figure(width: float, height: float) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)  # no pyplot: no window, no global state
    return figure


def _style(number: int) -> dict[str, Any]:
    return {
        "color": COLOURS[number % len(COLOURS)],
        "linestyle": LINES[number // len(COLOURS) % len(LINES)],
        "linewidth": 1.6,
    }


def _finish(axis: Axes) -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(True, which="major", color="0.9")
    axis.set_axisbelow(True)


def _label(policy: str) -> str:
    shortened = policy if len(policy) <= 60 else policy[:57] + "..."
    return shortened.replace("$", r"\$")


def _unit(span_s: float) -> tuple[float, str]:
    """The unit that a person would use for a span: its seconds and its sign."""
    sign = seconds(span_s).split()[-1]
    return {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}[sign], sign
