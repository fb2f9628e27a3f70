"""Step functions and timelines averaged over bins of time, as charts show them."""

from __future__ import annotations

import math

import numpy as np

from .gantt_boxes import gantt_boxes
from .recording import Timeline

MOST_GPU_ROWS = 64  # a Gantt chart of more has a row a machine


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
