"""A cluster as plain text: one character a GPU, and from some size on one character a machine."""

from __future__ import annotations

import math
import string
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ...simulator.base.codes import DOWN, FREE
from ...simulator.base.tiers import TIER_NAMES
from ...simulator.engine.simulator import Simulator
from .drawing.palette import GPU_DOWN, TIER_COLOURS, Colour, ink_on, job_colour
from .drawing.picture_words import clock, cut, span
from .region_text import region_lines
from .scenes.link_scene import NetworkScene, has_contention, read_network
from .scenes.region_scene import has_regions, read_regions
from .scenes.scene import Machine, Rack, RunningJob, Scene, WaitingJob, read_scene
from .scenes.seen import done_words

SYMBOLS = string.digits + string.ascii_uppercase + string.ascii_lowercase.replace("x", "") + "@&%$*+=?!~^:;<>"
FREE_MARK, DOWN_MARK, OTHER_MARK = ".", "x", "#"
MOST_LINES = 40  # of GPUs; a taller cluster is drawn by machines
MOST_MACHINES = 16  # one above the other
SHOWN_RUNNING, SHOWN_QUEUE = 16, 10


def draw_ansi(simulator: Simulator, width: int = 100, colour: bool = False) -> str:
    """The cluster now, as text.

    Args:
        simulator: a simulator after `reset`.
        width: columns, at least 40; lines are cut there.
        colour: whether to use escape codes (24-bit colours).

    Returns:
        Lines without a line break at the end; without `colour` only printable characters.
    """
    if has_regions(simulator):
        world, most = read_regions(simulator), max(40, width)
        lines = [*region_lines(world), "", *_running_lines(world.scene, {}, False), "", *_queue_lines(world.scene)]
        return "\n".join(cut(line, most).rstrip() for line in lines)
    text = draw_text(read_scene(simulator), width, colour)
    if not has_contention(simulator):
        return text
    return "\n".join([text, "", *(cut(line, max(40, width)) for line in _link_lines(read_network(simulator)))])


def _link_lines(network: NetworkScene) -> list[str]:
    """How loaded the network is, and the jobs on the link where most is wanted."""
    shared, fullest = int((network.sharers > 1).sum()), float(network.load.max())
    told = f"links {shared} of {len(network.load)} shared, {network.contending} jobs meet on them"
    lines = [f"{told}; the fullest is loaded to {fullest:.2f}"]
    crossing = network.crossing
    if crossing is not None:
        at_once, turned = crossing.scores
        jobs = " ".join(f"#{job}" for job in crossing.jobs)
        lines.append(f"{crossing.link}: jobs {jobs}; score {at_once:.2f} at once, {turned:.2f} as they are turned")
    return lines


def draw_text(scene: Scene, width: int = 100, colour: bool = False) -> str:
    """A scene as text; see `draw_ansi`."""
    width = max(40, width)
    symbols = _symbols(scene.running)
    lines = [*_totals(scene, width), ""]
    blocks = _gpu_blocks(scene, symbols, colour)
    tall = sum(max(map(len, row)) + 1 for row in _rows(blocks, width))
    if tall > MOST_LINES or any(_length(line) > width for block in blocks for line in block):
        lines += _machine_lines(scene, width)
        symbols = {}
    else:
        for row in _rows(blocks, width):
            lines += [*_side_by_side(row), ""]
    lines += ["", *_running_lines(scene, symbols, colour), "", *_queue_lines(scene)]
    return "\n".join(line if "\x1b" in line else cut(line, width).rstrip() for line in _no_double_gaps(lines))


def _totals(scene: Scene, width: int) -> list[str]:
    gpus = f"GPUs {scene.used}/{scene.gpus} used, {scene.free} free"
    gpus += (f", {scene.shared} shared" if len(scene.partners) else "") + (f", {scene.down} down" if scene.down else "")
    held = f", {scene.held_jobs} held" if scene.held_jobs else ""
    done = done_words(scene.done, scene.jobs, scene.jct_s)
    jobs = f"{len(scene.running)} running, {scene.waiting} waiting{held}, {done}"
    parts = [f"t = {clock(scene.now_s)}", gpus, f"jobs {jobs}"]
    line = " | ".join(parts)
    return [line] if len(line) <= width else parts


def _symbols(running: Iterable[RunningJob]) -> dict[int, str]:
    """One character a job, its own as long as there are enough: by its index, or the next that is free.

    Large jobs choose first, so those that are left with `OTHER_MARK` are small.
    """
    symbols: dict[int, str] = {}
    free = set(SYMBOLS)
    for job in sorted(running, key=lambda job: (-job.gpus, job.job)):
        if not free:
            symbols[job.job] = OTHER_MARK
            continue
        place = job.job % len(SYMBOLS)
        symbols[job.job] = next(c for c in SYMBOLS[place:] + SYMBOLS[:place] if c in free)
        free.discard(symbols[job.job])
    return symbols


def _gpu_blocks(scene: Scene, symbols: Mapping[int, str], colour: bool) -> list[list[str]]:
    """One block a rack, or several for a rack of many machines: a title, and a line a machine."""
    if scene.gpus > MOST_LINES * 200:
        return [[""] * (MOST_LINES + 1)]  # too many for any width
    blocks = []
    for rack in scene.racks():
        columns = math.ceil(len(rack.machines) / MOST_MACHINES)
        height = math.ceil(len(rack.machines) / columns)
        for first in range(0, len(rack.machines), height):
            machines = rack.machines[first : first + height]
            rows = [
                f"{first + number:>2} " + _cells(scene, machine, symbols, colour)
                for number, machine in enumerate(machines)
            ]
            blocks.append([f"   rack {rack.index}" if first == 0 else "", *rows])
    return blocks


def _cells(scene: Scene, machine: Machine, symbols: Mapping[int, str], colour: bool) -> str:
    marks = {FREE: FREE_MARK, DOWN: DOWN_MARK, **symbols}
    slots, between = [], " " if len(scene.partners) else ""
    for slot in machine.slots:
        cells = [_cell(scene, gpu, marks, colour) for gpu in range(slot.first, slot.stop)]
        slots.append(between.join(cells))
    return (" " + between).join(slots)


def _cell(scene: Scene, gpu: int, marks: Mapping[int, str], colour: bool) -> str:
    """One GPU; where GPUs are shared, a character for each job that it has room for."""
    owner = int(scene.owner[gpu])
    holders = [owner, *(owner if owner == DOWN else int(job) for job in scene.partners[:, gpu])]
    return "".join(_painted(marks[holder], holder) if colour else marks[holder] for holder in holders)


def _painted(mark: str, owner: int) -> str:
    if owner == FREE:
        return f"\x1b[2m{mark}\x1b[0m"
    return _on(GPU_DOWN if owner == DOWN else job_colour(owner), mark)


def _on(background: Colour, text: str) -> str:
    ink = ";".join(map(str, ink_on(background)))
    return f"\x1b[48;2;{';'.join(map(str, background))};38;2;{ink}m{text}\x1b[0m"


def _length(line: str) -> int:
    """Columns that a line takes."""
    return len(line) if "\x1b" not in line else sum(len(part.partition("m")[2]) for part in ("m" + line).split("\x1b["))


def _rows(blocks: list[list[str]], width: int) -> list[list[list[str]]]:
    """Blocks dealt out to as few rows as the width allows, evenly."""
    widest = max(_length(line) for block in blocks for line in block) + 3
    most = max(1, (width + 3) // widest)
    each = math.ceil(len(blocks) / math.ceil(len(blocks) / most))
    return [blocks[first : first + each] for first in range(0, len(blocks), each)]


def _side_by_side(blocks: list[list[str]]) -> list[str]:
    widest = max(_length(line) for block in blocks for line in block)
    lines = []
    for number in range(max(map(len, blocks))):
        parts = [block[number] if number < len(block) else "" for block in blocks]
        lines.append("   ".join(part + " " * (widest - _length(part)) for part in parts).rstrip())
    return lines


def _machine_lines(scene: Scene, width: int) -> list[str]:
    """One character a machine, by how many of its GPUs are used; racks as wide as they need, side by side."""
    entries = []
    for rack in scene.racks():
        marks = "".join(_machine_mark(scene, machine) for machine in rack.machines)
        used = int(np.count_nonzero(scene.owner[rack.gpus.start : rack.gpus.stop] >= 0))
        room = max(8, width - 30)
        for first in range(0, len(marks), room):
            name = f"rack {rack.index}" if first == 0 else ""
            count = f"{used}/{len(rack.gpus)}" if first + room >= len(marks) else ""
            entries.append((name, marks[first : first + room], count))
    sizes = [max(len(entry[i]) for entry in entries) for i in range(3)]
    texts = [f"{name:<{sizes[0]}} {marks:<{sizes[1]}} {count:>{sizes[2]}}" for name, marks, count in entries]
    each = max(1, (width + 3) // (len(texts[0]) + 3))
    lines = ["   ".join(texts[first : first + each]) for first in range(0, len(texts), each)]
    left = _left_out(scene.racks(), len(lines), each, room)
    if left:
        lines = [*lines[:MOST_LINES], left]
    return ["GPUs used of each machine: . none, 1-9 tenths, # all, x down", *lines]


def _left_out(racks: tuple[Rack, ...], lines: int, each: int, room: int) -> str:
    if lines <= MOST_LINES:
        return ""
    shown = rest = 0
    for rack in racks:
        shown += math.ceil(len(rack.machines) / room)
        rest += len(rack.machines) if shown > MOST_LINES * each else 0
    return f"... and about {rest} machines more" if rest else "..."


def _machine_mark(scene: Scene, machine: Machine) -> str:
    owners = scene.owner[machine.gpus.start : machine.gpus.stop]
    if (owners == DOWN).any():
        return DOWN_MARK
    used = int(np.count_nonzero(owners >= 0))
    if used in (0, len(owners)):
        return OTHER_MARK if used else FREE_MARK
    return str(min(9, max(1, round(10 * used / len(owners)))))


def _running_lines(scene: Scene, symbols: Mapping[int, str], colour: bool) -> list[str]:
    jobs = scene.running
    if len(jobs) > SHOWN_RUNNING:
        largest = sorted(jobs, key=lambda job: (-job.gpus, job.job))[:SHOWN_RUNNING]
        jobs = tuple(sorted(largest, key=lambda job: job.job))
    rows = [("", "job", "model", "GPUs", "tier", "progress", "left", "beside" if len(scene.partners) else "")]
    for job in jobs:
        bar = "[" + "=" * round(10 * job.progress) + " " * (10 - round(10 * job.progress)) + "]"
        done = f"{bar} {math.floor(100 * job.progress):3d} %"
        mark = symbols.get(job.job, "")
        tier = TIER_NAMES[job.tier]
        beside = cut(" ".join(job.beside), 24)
        names = mark, cut(job.name, 20), cut(job.model, 20)
        rows.append((*names, str(job.gpus), tier, done, span(job.remaining_s), beside))
    lines = _columns(rows, right=(3, 6)) if jobs else ["nothing runs"]
    if colour:
        painted = [_on(job_colour(job.job), symbols.get(job.job, " ")) for job in jobs]
        tiers = [TIER_COLOURS[job.tier] for job in jobs]
        lines[1:] = [
            paint + line[1:].replace(TIER_NAMES[job.tier], _ink(tier, TIER_NAMES[job.tier]), 1)
            for job, paint, tier, line in zip(jobs, painted, tiers, lines[1:], strict=True)
        ]
    more = len(scene.running) - len(jobs)
    return [*lines, f"and {more} more that run, none larger"] if more else lines


def _ink(ink: Colour, text: str) -> str:
    return f"\x1b[38;2;{';'.join(map(str, ink))}m{text}\x1b[0m"


def _queue_lines(scene: Scene) -> list[str]:
    jobs: list[WaitingJob] = [*scene.queue[:SHOWN_QUEUE]]
    jobs += scene.held[: SHOWN_QUEUE - len(jobs)]
    if not jobs:
        return ["nobody waits"]
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


def _no_double_gaps(lines: list[str]) -> list[str]:
    return [line for number, line in enumerate(lines) if line or (number and lines[number - 1])]
