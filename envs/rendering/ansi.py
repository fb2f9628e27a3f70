"""A cluster as plain text: a character a GPU, or how many are used of each rack where those would be too many lines."""

from __future__ import annotations

import math
import string
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ...simulator.base.codes import DOWN, FREE
from ...simulator.base.tiers import TIER_NAMES
from ...simulator.engine.simulator import Simulator
from .drawing.picture_words import amount, clock, cut, span
from .scenes.link_scene import NetworkScene, has_contention, read_network
from .scenes.region_scene import Region, RegionScene, Supply, has_regions, read_regions
from .scenes.scene import Machine, RunningJob, Scene, WaitingJob, read_scene
from .scenes.seen import done_words

SYMBOLS = string.digits + string.ascii_uppercase + string.ascii_lowercase.replace("x", "") + "@&%$*+=?!~^:;<>"
FREE_MARK, DOWN_MARK, OTHER_MARK = ".", "x", "#"
MOST_LINES = 40  # of GPUs; a taller cluster is shown by racks
MOST_MACHINES = 16  # one above the other
SHOWN_RUNNING, SHOWN_QUEUE = 16, 10
BAR = 12  # marks of a bar of a region


def draw_ansi(simulator: Simulator, width: int = 100) -> str:
    """The cluster now, as text.

    Args:
        simulator: a simulator after `reset`.
        width: columns, at least 40; lines are cut there.

    Returns:
        Lines of printable characters without a line break at the end.
    """
    width = max(40, width)
    symbols: Mapping[int, str] = {}
    if has_regions(simulator):
        region_scene = read_regions(simulator)
        scene, lines = region_scene.scene, _region_lines(region_scene)
    else:
        scene = read_scene(simulator)
        symbols, lines = _cluster_lines(scene, width)
    lines += ["", *_running_lines(scene, symbols), "", *_queue_lines(scene)]
    if not has_regions(simulator) and has_contention(simulator):
        lines += ["", *_link_lines(read_network(simulator))]
    return "\n".join(cut(line, width).rstrip() for line in lines)


def _cluster_lines(scene: Scene, width: int) -> tuple[Mapping[int, str], list[str]]:
    """The clock, counts, and the GPUs; the character of each job that stands for it there."""
    gpus = f"GPUs {scene.used}/{scene.gpus} used, {scene.free} free"
    gpus += (f", {scene.shared} shared" if len(scene.partners) else "") + (f", {scene.down} down" if scene.down else "")
    held = f", {scene.held_jobs} held" if scene.held_jobs else ""
    done = done_words(scene.done, scene.jobs, scene.jct_s)
    jobs = f"{len(scene.running)} running, {scene.waiting} waiting{held}, {done}"
    parts = [f"t = {clock(scene.now_s)}", gpus, f"jobs {jobs}"]
    line = " | ".join(parts)
    head = [line] if len(line) <= width else parts
    symbols = _symbols(scene.running)
    blocks = _gpu_blocks(scene, symbols) if scene.gpus <= MOST_LINES * 200 else []
    rows = _rows(blocks, width)
    tall = sum(max(map(len, row)) + 1 for row in rows) > MOST_LINES
    if not blocks or tall or any(len(line) > width for block in blocks for line in block):
        return {}, [*head, "", *_rack_lines(scene, width)]
    lines = [line for row in rows for line in ("", *_side_by_side(row))]
    return symbols, [*head, *lines]


def _symbols(running: Iterable[RunningJob]) -> dict[int, str]:
    """One character a job, its own as long as there are enough: by its index, or the next that is free.

    Large jobs choose first, so those that are left with `OTHER_MARK` are small.
    """
    symbols: dict[int, str] = {}
    free = set(SYMBOLS)
    for job in sorted(running, key=lambda job: (-job.gpus, job.job)):
        place = job.job % len(SYMBOLS)
        symbols[job.job] = next((c for c in SYMBOLS[place:] + SYMBOLS[:place] if c in free), OTHER_MARK)
        free.discard(symbols[job.job])
    return symbols


def _gpu_blocks(scene: Scene, symbols: Mapping[int, str]) -> list[list[str]]:
    """One block a rack, or several for a rack of many machines: a title, and a line a machine."""
    blocks = []
    for rack in scene.racks():
        columns = math.ceil(len(rack.machines) / MOST_MACHINES)
        height = math.ceil(len(rack.machines) / columns)
        for first in range(0, len(rack.machines), height):
            machines = rack.machines[first : first + height]
            rows = [f"{first + i:>2} " + _cells(scene, machine, symbols) for i, machine in enumerate(machines)]
            blocks.append([f"   rack {rack.index}" if first == 0 else "", *rows])
    return blocks


def _cells(scene: Scene, machine: Machine, symbols: Mapping[int, str]) -> str:
    """The GPUs of a machine by slots; where GPUs are shared, a character for each job that a GPU has room for."""
    marks = {FREE: FREE_MARK, DOWN: DOWN_MARK, **symbols}
    between = " " if len(scene.partners) else ""
    slots = []
    for slot in machine.slots:
        held = np.vstack([scene.owner, scene.partners])[:, slot.start : slot.stop]
        held = np.where(held[0] == DOWN, DOWN, held).T
        slots.append(between.join("".join(marks[job] for job in gpu) for gpu in held.tolist()))
    return (" " + between).join(slots)


def _rows(blocks: list[list[str]], width: int) -> list[list[list[str]]]:
    """Blocks dealt out to as few rows as the width allows, evenly."""
    widest = max((len(line) for block in blocks for line in block), default=0) + 3
    most = max(1, (width + 3) // widest)
    each = math.ceil(len(blocks) / max(1, math.ceil(len(blocks) / most)))
    return [blocks[first : first + each] for first in range(0, len(blocks), each)]


def _side_by_side(blocks: list[list[str]]) -> list[str]:
    widest = max(len(line) for block in blocks for line in block)
    lines = []
    for number in range(max(map(len, blocks))):
        parts = [block[number] if number < len(block) else "" for block in blocks]
        lines.append("   ".join(f"{part:<{widest}}" for part in parts).rstrip())
    return lines


def _rack_lines(scene: Scene, width: int) -> list[str]:
    """How many GPUs of each rack are used, side by side, in at most `MOST_LINES` lines."""
    cells = []
    for rack in scene.racks():
        used = int(np.count_nonzero(scene.owner[rack.gpus.start : rack.gpus.stop] >= 0))
        cells.append(f"rack {rack.index}: {used}/{len(rack.gpus)}")
    widest = max(map(len, cells))
    each = max(1, (width + 3) // (widest + 3))
    shown = cells[: each * MOST_LINES]
    rows = [shown[first : first + each] for first in range(0, len(shown), each)]
    more = [f"and {len(cells) - len(shown)} racks more"] if len(cells) > len(shown) else []
    return ["GPUs used of each rack", *("   ".join(f"{one:<{widest}}" for one in row) for row in rows), *more]


def _running_lines(scene: Scene, symbols: Mapping[int, str]) -> list[str]:
    jobs = scene.running
    if len(jobs) > SHOWN_RUNNING:
        largest = sorted(jobs, key=lambda job: (-job.gpus, job.job))[:SHOWN_RUNNING]
        jobs = tuple(sorted(largest, key=lambda job: job.job))
    rows = [("", "job", "model", "GPUs", "tier", "progress", "left", "beside" if len(scene.partners) else "")]
    for job in jobs:
        bar = "[" + "=" * round(10 * job.progress) + " " * (10 - round(10 * job.progress)) + "]"
        done = f"{bar} {math.floor(100 * job.progress):3d} %"
        names = symbols.get(job.job, ""), cut(job.name, 20), cut(job.model, 20)
        beside = cut(" ".join(job.beside), 24)
        rows.append((*names, str(job.gpus), TIER_NAMES[job.tier], done, span(job.remaining_s), beside))
    more = len(scene.running) - len(jobs)
    rest = [f"and {more} more that run, none larger"] if more else []
    return [*_columns(rows, right=(3, 6)), *rest] if jobs else ["nothing runs"]


def _queue_lines(scene: Scene) -> list[str]:
    jobs: list[WaitingJob] = [*scene.queue[:SHOWN_QUEUE]]
    jobs += scene.held[: SHOWN_QUEUE - len(jobs)]
    if not jobs:
        return ["no job waits"]
    rows = [("queue", "model", "GPUs", "waited", "")]
    for job in jobs:
        held = "held" if job.is_held else ""
        rows.append((cut(job.name, 20), cut(job.model, 20), str(job.gpus), span(job.waited_s), held))
    more = scene.waiting + scene.held_jobs - len(jobs)
    return [*_columns(rows, right=(2, 3)), *([f"and {more} more that wait"] if more else [])]


def _columns(rows: Sequence[tuple[str, ...]], right: tuple[int, ...]) -> list[str]:
    sizes = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            f"{text:>{size}}" if i in right else f"{text:<{size}}"
            for i, (text, size) in enumerate(zip(row, sizes, strict=True))
            if size
        )
        for row in rows
    ]


def _link_lines(network: NetworkScene) -> list[str]:
    """How loaded the network is, and the jobs on the link where most is wanted."""
    shared, fullest = int((network.sharers > 1).sum()), float(network.load.max())
    summary = f"links {shared} of {len(network.load)} shared, {network.contending} jobs meet on them"
    lines = [f"{summary}; the fullest is loaded to {fullest:.2f}"]
    crossing = network.crossing
    if crossing is not None:
        at_once, turned = crossing.scores
        jobs = " ".join(f"#{job}" for job in crossing.jobs)
        lines.append(f"{crossing.link}: jobs {jobs}; score {at_once:.2f} at once, {turned:.2f} as they are turned")
    return lines


def _region_lines(region_scene: RegionScene) -> list[str]:
    """The regions, a line for each type of units: `#` used, `+` asked by waiting jobs, `x` down, `.` free."""
    scene = region_scene.scene
    held = f", {scene.held_jobs} held" if scene.held_jobs else ""
    data = f", {region_scene.n_unplaceable} for data" if region_scene.n_unplaceable else ""
    done = done_words(scene.done, scene.jobs, scene.jct_s)
    jobs = f"jobs {len(scene.running)} running, {scene.waiting} waiting{held}{data}, {done}"
    gpus, cpus = region_scene.gpus, region_scene.cpus
    use = f"GPUs {gpus[0]}/{gpus[1]} used | CPU machines {cpus[0]}/{cpus[1]} used"
    lines = [f"t = {clock(scene.now_s)} | {use}", f"{jobs}, {region_scene.late} started too late", ""]
    lines += [line for region in region_scene.regions for line in _of_region(region)]
    names = [region.name for region in region_scene.regions]
    for flow in region_scene.flows:
        tables = f"{flow.tables} table{'s' * (flow.tables != 1)}"
        lines.append(f"{names[flow.source]} -> {names[flow.target]}  {tables}, {amount(flow.left_bytes)} left")
    return [*lines, *([f"{region_scene.stuck} copies wait for a source"] if region_scene.stuck else [])]


def _of_region(region: Region) -> list[str]:
    share = 100 * region.stored_bytes / max(1.0, region.storage_bytes)
    data = f"  data {share:.0f} % of {amount(region.storage_bytes)}" + ("" if region.is_up else "  DOWN")
    lines = []
    for number, supply in enumerate(region.supplies):
        name = cut(region.name, 12) if number == 0 else ""
        usage = f"{name:<12} {cut(supply.kind, 6):<6} [{_bar(supply)}] {supply.used:>5}/{supply.units:<5}"
        lines.append(f"{usage} {supply.load:5.2f}x" + data * (number == 0))
    return lines


def _bar(supply: Supply) -> str:
    """All units, or all that is asked where that is more."""
    whole = max(float(supply.units), supply.used + supply.down + supply.asked)
    ends = [round(BAR * upto / whole) for upto in (supply.used, supply.used + supply.down)]
    asked = round(BAR * min(whole, supply.used + supply.down + supply.asked) / whole)
    marks = "#" * ends[0] + "x" * (ends[1] - ends[0]) + "+" * max(0, asked - ends[1])
    return f"{marks:.<{BAR}}"
