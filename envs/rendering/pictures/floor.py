"""The places of all GPUs: racks, machines, slots and GPUs fitted into a rectangle, from 1 GPU to 100,000."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from ....simulator.base.errors import InputError
from ..scenes.scene import ClusterShape, Machine

Box = tuple[int, int, int, int]  # left, top, right, bottom; right and bottom not included

MOST_GPU_SIDE = 60  # units
LONGEST_SIDE = 1.7  # times the shorter one


LINE_COST = {1: 1.0, 2: 0.92, 4: 0.75, 8: 0.6}  # a machine is easier to read in one line


class Gaps(NamedTuple):
    """Units between things, at one density; `least` is the smallest side of a GPU that it is used for."""

    least: int
    rack: int
    rack_pad: int
    title: int
    machine: int
    machine_pad: int
    label: int
    slot: int
    gpu: int


DENSITIES = (
    Gaps(13, rack=12, rack_pad=8, title=22, machine=5, machine_pad=4, label=15, slot=6, gpu=2),
    Gaps(7, rack=8, rack_pad=5, title=17, machine=3, machine_pad=2, label=0, slot=3, gpu=1),
    Gaps(4, rack=5, rack_pad=3, title=0, machine=2, machine_pad=0, label=0, slot=1, gpu=1),
    Gaps(3, rack=4, rack_pad=1, title=0, machine=1, machine_pad=0, label=0, slot=1, gpu=0),
)
SMALLEST = Gaps(1, rack=1, rack_pad=0, title=0, machine=0, machine_pad=0, label=0, slot=0, gpu=0)


class Counts(NamedTuple):
    """Racks, machines of the largest rack, and GPUs and slots of the largest machine."""

    racks: int
    machines: int
    gpus: int
    slots: int

    @classmethod
    def of(cls, shape: ClusterShape) -> Counts:
        """The counts of a cluster."""
        gpus = max(len(machine.gpus) for rack in shape.racks() for machine in rack.machines)
        return cls(len(shape.rack_machines), max(shape.rack_machines), gpus, max(shape.machine_slots))


class Grid(NamedTuple):
    """Racks side by side, machines of a rack side by side, lines of GPUs in a machine, and the size of a GPU."""

    rack_columns: int
    machine_columns: int
    lines: int
    width: int
    height: int


@dataclass(frozen=True)
class FloorPlan:
    """Places in pixels of the whole picture."""

    by_machine: bool  # whether items are machines, since GPUs are too small to be seen
    gaps: Gaps
    grid: Grid
    racks: tuple[Box, ...]
    machines: tuple[Box, ...]
    items: tuple[Box, ...]  # GPUs or machines


@lru_cache(maxsize=8)
def plan_floor(shape: ClusterShape, area: Box, scale: float) -> FloorPlan:
    """Fit the cluster into the middle of `area` of a picture, at so many pixels a unit."""
    size = (area[2] - area[0], area[3] - area[1])
    for by_machine in (False, True):
        machines = len(shape.machine_slots)
        items = ClusterShape((1,) * machines, (1,) * machines, shape.rack_machines) if by_machine else shape
        counts = Counts.of(items)
        for gaps in (*DENSITIES, *([SMALLEST] if by_machine else [])):
            gaps = Gaps(gaps.least, *(math.ceil(gap * scale) for gap in gaps[1:]))
            grid = _best_grid(counts, gaps, size, scale)
            if min(grid.width, grid.height) >= gaps.least:
                return _floor_plan(items, gaps, grid, area, by_machine)
    gpus = f"{shape.gpus:,} GPUs on {len(shape.machine_slots):,} machines"
    raise InputError(f"{gpus} do not fit a picture whose cluster has {size[0]}x{size[1]} pixels; draw a larger one")


def _best_grid(counts: Counts, gaps: Gaps, size: tuple[int, int], scale: float) -> Grid:
    best, best_score = Grid(1, 1, 1, 0, 0), -math.inf
    for rack_columns in _columns(counts.racks):
        for machine_columns in _columns(counts.machines):
            for lines, cost in LINE_COST.items():
                if lines > counts.gpus:
                    continue
                grid = Grid(rack_columns, machine_columns, lines, 0, 0)
                width, height = _gpu_size(counts, gaps, grid, size)
                shorter = min(width, height)
                score = (shorter + 0.1 * min(max(width, height), LONGEST_SIDE * shorter)) * cost
                if score > best_score:
                    best, best_score = grid._replace(width=width, height=height), score
    shorter = min(best.width, best.height, round(MOST_GPU_SIDE * scale))
    longest = int(shorter * LONGEST_SIDE)
    return best._replace(width=min(best.width, longest), height=min(best.height, longest))


def _columns(count: int) -> list[int]:
    """Numbers of columns worth trying: for each number of rows the smallest that suffices."""
    few = range(1, math.isqrt(count) + 1)
    return sorted({*few, *(math.ceil(count / rows) for rows in few)})


def _gpu_size(counts: Counts, gaps: Gaps, grid: Grid, size: tuple[int, int]) -> tuple[int, int]:
    rack_rows = math.ceil(counts.racks / grid.rack_columns)
    machine_rows = math.ceil(counts.machines / grid.machine_columns)
    per_line, slot_gaps = _line(counts, grid)
    rack_width = (size[0] + gaps.rack) // grid.rack_columns - gaps.rack - 2 * gaps.rack_pad
    rack_height = (size[1] + gaps.rack) // rack_rows - gaps.rack - 2 * gaps.rack_pad - gaps.title
    machine_width = (rack_width + gaps.machine) // grid.machine_columns - gaps.machine - 2 * gaps.machine_pad
    machine_height = (rack_height + gaps.machine) // machine_rows - gaps.machine - 2 * gaps.machine_pad
    across = machine_width - gaps.label - slot_gaps * (gaps.slot - gaps.gpu) - (per_line - 1) * gaps.gpu
    down = machine_height - (grid.lines - 1) * gaps.gpu
    return across // per_line, down // grid.lines


def _line(counts: Counts, grid: Grid) -> tuple[int, int]:
    """GPUs in one line of a machine, and the most gaps between slots in it."""
    per_line = math.ceil(counts.gpus / grid.lines)
    return per_line, min(per_line, counts.slots) - 1


def _floor_plan(shape: ClusterShape, gaps: Gaps, grid: Grid, area: Box, by_machine: bool) -> FloorPlan:
    counts, racks = Counts.of(shape), shape.racks()
    per_line, slot_gaps = _line(counts, grid)
    line_width = per_line * (grid.width + gaps.gpu) - gaps.gpu + slot_gaps * (gaps.slot - gaps.gpu)
    height = grid.lines * (grid.height + gaps.gpu) - gaps.gpu + 2 * gaps.machine_pad
    machine_size = (gaps.label + line_width + 2 * gaps.machine_pad, height)
    inside = _extent(counts.machines, grid.machine_columns, machine_size, gaps.machine)
    rack_size = (inside[0] + 2 * gaps.rack_pad, inside[1] + 2 * gaps.rack_pad + gaps.title)
    whole = _extent(counts.racks, grid.rack_columns, rack_size, gaps.rack)
    left, top = area[0] + (area[2] - area[0] - whole[0]) // 2, area[1] + (area[3] - area[1] - whole[1]) // 2
    rack_boxes = _tile(counts.racks, grid.rack_columns, rack_size, gaps.rack, left, top)
    machine_boxes: list[Box] = []
    items: list[Box] = []
    for rack, box in zip(racks, rack_boxes, strict=True):
        left, top = box[0] + gaps.rack_pad, box[1] + gaps.rack_pad + gaps.title
        boxes = _tile(len(rack.machines), grid.machine_columns, machine_size, gaps.machine, left, top)
        machine_boxes += boxes
        for machine, place in zip(rack.machines, boxes, strict=True):
            items += _gpu_boxes(machine, place, per_line, gaps, grid)
    return FloorPlan(by_machine, gaps, grid, tuple(rack_boxes), tuple(machine_boxes), tuple(items))


def _extent(count: int, columns: int, size: tuple[int, int], gap: int) -> tuple[int, int]:
    rows = math.ceil(count / columns)
    return columns * (size[0] + gap) - gap, rows * (size[1] + gap) - gap


def _tile(count: int, columns: int, size: tuple[int, int], gap: int, left: int, top: int) -> list[Box]:
    boxes = []
    for i in range(count):
        row, column = divmod(i, columns)
        x, y = left + column * (size[0] + gap), top + row * (size[1] + gap)
        boxes.append((x, y, x + size[0], y + size[1]))
    return boxes


def _gpu_boxes(machine: Machine, box: Box, per_line: int, gaps: Gaps, grid: Grid) -> list[Box]:
    boxes = []
    first = machine.gpus.start
    for number, slot in enumerate(machine.slots):
        for gpu in slot:
            line, column = divmod(gpu - first, per_line)
            if column == 0:
                first_slot = number
            x = box[0] + gaps.machine_pad + gaps.label + column * (grid.width + gaps.gpu)
            x += (number - first_slot) * (gaps.slot - gaps.gpu)
            y = box[1] + gaps.machine_pad + line * (grid.height + gaps.gpu)
            boxes.append((x, y, x + grid.width, y + grid.height))
    return boxes
