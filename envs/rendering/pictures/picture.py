"""A cluster as pixels: racks, machines, slots and GPUs on the left, the queue and the running jobs on the right."""

from __future__ import annotations

from functools import lru_cache
from itertools import product

import numpy as np

from ....simulator.base.codes import DOWN
from ....simulator.base.tiers import UNPLACED
from ....simulator.engine.simulator import Simulator
from ..drawing import palette
from ..drawing.palette import job_colour
from ..drawing.pen import SIZE, Pen, checked_size, scale_of
from ..scenes.link_scene import has_contention
from ..scenes.region_scene import has_regions
from ..scenes.scene import ClusterShape, Scene, read_scene
from ..scenes.seen import Seen, draw_run
from .floor import Box, FloorPlan, plan_floor
from .network_picture import draw_network
from .panels import TIERS_LABEL, draw_queue, draw_running, draw_tiers, draw_totals
from .region_map import draw_regions


def draw_rgb(simulator: Simulator, size: tuple[int, int] = SIZE, seen: Seen | None = None) -> np.ndarray:
    """The cluster now, as a picture.

    Args:
        simulator: a simulator after `reset`.
        size: width and height in pixels, (640, 420) to (7680, 4320).
        seen: memory of earlier frames of the run, which is updated.

    Returns:
        uint8 (height, width, 3), a fresh array; the same state and memory give the same pixels.

    Raises:
        MissingExtra: the extra [render] is not installed.
        InputError: a size out of range.
    """
    size = checked_size(size)
    if has_regions(simulator):
        return draw_regions(simulator, size, seen)
    if has_contention(simulator):
        return draw_network(simulator, size, seen)
    return draw_scene(read_scene(simulator), size, seen)


def draw_scene(scene: Scene, size: tuple[int, int] = SIZE, seen: Seen | None = None) -> np.ndarray:
    """A scene as a picture; see `draw_rgb`."""
    width, height = checked_size(size)
    stage = stage_of(scene.shape, scene.name, (width, height))
    pen = Pen.over(stage.base, stage.scale)
    _draw_items(pen, stage, scene)
    draw_totals(pen, stage.margin, stage.size[0], scene)
    draw_run(pen, scene.jct_s, seen, round(stage.size[0] * 0.36))
    if len(scene.partners) and not stage.plan.by_machine:
        _split_shared(pen, stage.plan, scene)
        _draw_shared_legend(pen, stage)
    _draw_labels(pen, stage.plan, scene)
    draw_queue(pen, stage.queue, scene)
    draw_running(pen, stage.running, scene)
    return pen.pixels()


class Stage:
    """The constant part of all frames: boxes of three cards, places of GPUs, picture of an empty cluster."""

    def __init__(self, shape: ClusterShape, name: str, size: tuple[int, int]) -> None:
        self.size = size
        self.scale = scale_of(size)
        u = self.unit
        self.margin, self.head, self.foot = u(14), u(74), u(34)
        right, bottom, side = size[0] - self.margin, size[1] - self.foot, u(256)
        middle = self.head + round((bottom - self.head) * 0.56)
        self.cluster = (self.margin, self.head, right - side - u(10), bottom)
        self.queue = (right - side, self.head, right, middle)
        self.running = (right - side, middle + u(10), right, bottom)
        inner = (self.cluster[0] + u(10), self.cluster[1] + u(10), self.cluster[2] - u(10), self.cluster[3] - u(10))
        self.plan = plan_floor(shape, inner, self.scale)
        pen = Pen.page(size)
        self._draw(pen, shape, name)
        self.base = pen.pixels()

    def unit(self, units: float) -> int:
        """Pixels of so many units, at least 1."""
        return max(1, round(units * self.scale))

    def _draw(self, pen: Pen, shape: ClusterShape, name: str) -> None:
        pen.panels(self.cluster, self.queue, self.running)
        gaps = self.plan.gaps
        for rack, box in enumerate(self.plan.racks):
            if gaps.rack_pad > 1:
                pen.card(box, palette.CARD, palette.CARD_EDGE, 5 if gaps.title else 2)
            if gaps.title:
                pen.text((box[0] + gaps.rack_pad, box[1] + gaps.title // 4), f"rack {rack}", 11, palette.FAINT)
        for box in self.plan.machines if gaps.machine_pad else ():
            pen.card(box, palette.MACHINE, None, 3)
        if gaps.label:
            self._number_machines(pen, shape)
        counts = (len(shape.rack_machines), len(shape.machine_slots), shape.gpus)
        words = [f"{n:,} {noun}{'s' * (n != 1)}" for n, noun in zip(counts, ("rack", "machine", "GPU"), strict=True)]
        pen.text((self.margin + 2, self.unit(44)), f"{name} · {' · '.join(words)}", 10, palette.FAINT)
        self._draw_legend(pen)

    def _number_machines(self, pen: Pen, shape: ClusterShape) -> None:
        boxes = iter(self.plan.machines)
        for machines in shape.rack_machines:
            for number in range(machines):
                box = next(boxes)
                place = (box[0] + self.plan.gaps.label - 1, (box[1] + box[3]) // 2)
                pen.text(place, str(number), 9, palette.FAINT, anchor="rm")

    def _draw_legend(self, pen: Pen) -> None:
        u, side = self.unit, self.unit(15)
        x, y = self.margin, self.size[1] - u(25) + side // 2
        if self.plan.by_machine:
            label = "a box: a machine, the darker the more GPUs used; band: its widest gang"
            x = pen.text((x, y), label, 10, palette.FAINT, anchor="lm") + u(14)
        x = draw_tiers(pen, (x, y), "within one" if self.plan.by_machine else TIERS_LABEL)
        for word, fill in (("free", palette.GPU_FREE), ("down", palette.GPU_DOWN)):
            box = (x, y - side // 2, x + side, y - side // 2 + side)
            pen.box(box, fill)
            if word == "down":
                pen.cross(box, palette.GPU_CROSS)
            x = pen.text((x + side + u(5), y), word, 10, palette.FAINT, anchor="lm") + u(14)
        self.legend_end = x, y


@lru_cache(maxsize=4)
def stage_of(shape: ClusterShape, name: str, size: tuple[int, int]) -> Stage:
    """The stage of a cluster, cached for the next frame."""
    return Stage(shape, name, size)


def _draw_items(pen: Pen, stage: Stage, scene: Scene) -> None:
    items = stage.plan.items
    bodies, tiers = _machine_colours(scene) if stage.plan.by_machine else _gpu_colours(scene)
    below = stage.base[items[0][1], items[0][0]]
    ground, *colours = ((red, green, blue) for red, green, blue in [below.tolist(), *bodies.tolist()])
    for box, body, tier in zip(items, colours, tiers.tolist(), strict=True):
        left, top, right, bottom = box
        pen.box(box, body)
        if tier > UNPLACED and bottom - top >= 4:
            band = bottom - _band(bottom - top, tier + 1)
            if bottom - top >= 7:
                pen.box((left, band - 1, right, band), palette.WHITE)
            pen.box((left, band, right, bottom), palette.TIER_COLOURS[tier])
        side = min(right - left, bottom - top)
        radius = 0 if side < 9 else 1 if side < 20 else 2
        for row in range(radius):
            for first, y in product((left, right - radius + row), (top + row, bottom - 1 - row)):
                pen.box((first, y, first + radius - row, y + 1), ground)


def _gpu_colours(scene: Scene) -> tuple[np.ndarray, np.ndarray]:
    colours = np.array([*palette.JOB_COLOURS, palette.GPU_FREE, palette.GPU_DOWN], np.uint8)
    jobs = len(palette.JOB_COLOURS)
    index = np.where(scene.owner >= 0, scene.owner % jobs, np.where(scene.owner == DOWN, jobs + 1, jobs))
    return colours[index], scene.tier


def _machine_colours(scene: Scene) -> tuple[np.ndarray, np.ndarray]:
    firsts = np.array([machine.gpus.start for rack in scene.racks() for machine in rack.machines])
    sizes = np.diff(np.append(firsts, scene.gpus))
    share = np.add.reduceat((scene.owner >= 0).astype(np.int64), firsts) / sizes
    low, high = np.array(palette.GPU_FREE), np.array(palette.USED)
    body = np.round(low + share[:, None] * (high - low)).astype(np.uint8)
    body[np.minimum.reduceat(scene.owner, firsts) == DOWN] = palette.GPU_DOWN
    return body, np.maximum.reduceat(scene.tier, firsts)


def _split_shared(pen: Pen, plan: FloorPlan, scene: Scene) -> None:
    for gpu in np.flatnonzero((scene.partners >= 0).any(axis=0)).tolist():
        for job, stripe in _stripes(scene, plan, gpu)[1:]:
            pen.box(stripe, job_colour(job))
            if stripe[2] - stripe[0] > 3:
                pen.box((stripe[0], stripe[1], stripe[0] + 1, stripe[3]), palette.WHITE)


def _draw_shared_legend(pen: Pen, stage: Stage) -> None:
    (x, y), side = stage.legend_end, pen.unit(15)
    for number, job in enumerate((1, 3)):
        left, top = x + number * side // 2, y - side // 2
        pen.box((left, top, left + side // 2, top + side), job_colour(job))
    pen.text((x + side + pen.unit(5), y), "jobs share a GPU", 10, palette.FAINT, anchor="lm")


def _stripes(scene: Scene, plan: FloorPlan, gpu: int) -> list[tuple[int, Box]]:
    jobs = [int(job) for job in (scene.owner[gpu], *scene.partners[:, gpu]) if job >= 0]
    left, top, right, bottom = plan.items[gpu]
    bounds = [left + (right - left) * i // len(jobs) for i in range(len(jobs) + 1)] if jobs else []
    floor = bottom - _band(plan.grid.height, int(scene.tier[gpu]) + 1) - 1
    return [(job, (bounds[i], top, bounds[i + 1], floor)) for i, job in enumerate(jobs)]


def _band(height: int, levels: int = len(palette.TIER_COLOURS)) -> int:
    if height >= 18:
        return levels * max(2, round(height / 15))
    return max(1, height // 5) if height >= 4 else 0


def _draw_labels(pen: Pen, plan: FloorPlan, scene: Scene) -> None:
    if plan.by_machine or min(plan.grid.width, plan.grid.height) < 9:
        return
    for gpu in np.flatnonzero(scene.owner == DOWN).tolist():
        pen.cross(plan.items[gpu], palette.GPU_CROSS)
    if plan.grid.height < 14 or plan.grid.width < 14:
        return
    label = {job.job: job.label for job in scene.running}
    width, height = plan.grid.width, plan.grid.height
    band = _band(height) if height >= 18 else 3
    size = min(12 * pen.scale, (height - band) * 0.6, width * 0.42) / pen.scale
    first_of_slot = {slot.start for rack in scene.racks() for machine in rack.machines for slot in machine.slots}
    before: dict[int, Box] = {}  # the stripe of each job on the GPU to the left
    for gpu in range(len(plan.items)):
        stripes = _stripes(scene, plan, gpu)
        for job, box in stripes:
            if gpu not in first_of_slot and job in before and before[job][1] == box[1]:
                continue
            fitting = pen.fitting_size(label[job], size, box[2] - box[0] - 1)
            if fitting * pen.scale >= 6.5:
                middle = ((box[0] + box[2]) // 2, (box[1] + plan.items[gpu][3] - band) // 2)
                pen.text(middle, label[job], fitting, palette.ink_on(job_colour(job)), anchor="mm")
        before = dict(stripes)
