"""The boxes of a Gantt chart whose rows are GPUs: jobs that share a GPU split its row."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import NamedTuple

from .recording import Timeline


class GanttBox(NamedTuple):
    """A job on GPUs from `start_s` to `end_s`; it fills the rows from `top` to `bottom`, GPU g from g to g + 1."""

    job: int
    start_s: float
    end_s: float
    top: float
    bottom: float


def gantt_boxes(timeline: Timeline) -> list[GanttBox]:
    """All boxes, in order of the stretches; neighbouring GPUs that a job has to itself are one."""
    shared = _overlaps(timeline)
    boxes = []
    spans = zip(timeline.job.tolist(), timeline.start_s.tolist(), timeline.end_s.tolist(), strict=True)
    for stretch, (job, start_s, end_s) in enumerate(spans):
        own = [gpu for gpu in sorted(timeline.gpus[stretch]) if (stretch, gpu) not in shared]
        boxes += [GanttBox(job, start_s, end_s, first, last + 1) for first, last in neighbours(own)]
        for gpu in sorted(timeline.gpus[stretch]):
            boxes += _split(timeline, stretch, gpu, shared.get((stretch, gpu), []))
    return boxes


def _overlaps(timeline: Timeline) -> dict[tuple[int, int], list[int]]:
    """By stretch and GPU the stretches of other jobs that overlap it there; only where there are any."""
    on_gpu: dict[int, list[int]] = defaultdict(list)
    found: dict[tuple[int, int], list[int]] = defaultdict(list)
    start_s, end_s = timeline.start_s.tolist(), timeline.end_s.tolist()
    for stretch in sorted(range(len(start_s)), key=lambda i: start_s[i]):
        for gpu in timeline.gpus[stretch]:
            present = [other for other in on_gpu[gpu] if end_s[other] > start_s[stretch]]
            for other in present:
                found[stretch, gpu].append(other)
                found[other, gpu].append(stretch)
            on_gpu[gpu] = [*present, stretch]
    return found


def _split(timeline: Timeline, stretch: int, gpu: int, others: list[int]) -> list[GanttBox]:
    """A stretch on one GPU, in pieces: its part of the row changes with the jobs there."""
    if not others:
        return []
    start_s, end_s = float(timeline.start_s[stretch]), float(timeline.end_s[stretch])
    cuts = {start_s, end_s}
    for other in others:
        cuts |= {t for t in (float(timeline.start_s[other]), float(timeline.end_s[other])) if start_s < t < end_s}
    job = int(timeline.job[stretch])
    boxes = []
    for left, right in pairwise(sorted(cuts)):
        beside = [int(timeline.job[i]) for i in others if timeline.start_s[i] < right and timeline.end_s[i] > left]
        place, count = sum(other < job for other in beside), len(beside) + 1
        boxes.append(GanttBox(job, left, right, gpu + place / count, gpu + (place + 1) / count))
    return boxes


def neighbours(gpus: list[int]) -> list[tuple[int, int]]:
    """First and last of each stretch of neighbours in ascending `gpus`."""
    stretches: list[tuple[int, int]] = []
    for gpu in gpus:
        if stretches and gpu == stretches[-1][1] + 1:
            stretches[-1] = (stretches[-1][0], gpu)
        else:
            stretches.append((gpu, gpu))
    return stretches
