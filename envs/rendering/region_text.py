"""Regions as lines of text: demand over supply by type, storage, and the tables on their way."""

from __future__ import annotations

from .drawing.picture_words import amount, clock, cut
from .scenes.region_scene import Region, RegionScene, Supply
from .scenes.seen import done_words

WIDE = 12  # marks of a bar
USED, ASKED, FREE, DOWN = "#", "+", ".", "x"


def region_lines(world: RegionScene) -> list[str]:
    """The regions, a line for each type of units: `#` used, `+` asked by who waits, `x` down, `.` free."""
    scene = world.scene
    held = f", {scene.held_jobs} held" if scene.held_jobs else ""
    data = f", {world.homeless} for data" if world.homeless else ""
    done = done_words(scene.done, scene.jobs, scene.jct_s)
    jobs = f"jobs {len(scene.running)} running, {scene.waiting} waiting{held}{data}, {done}"
    use = f"GPUs {world.gpus[0]}/{world.gpus[1]} used | CPU machines {world.cpus[0]}/{world.cpus[1]} used"
    lines = [f"t = {clock(scene.now_s)} | {use}", f"{jobs}, {world.late} started too late", ""]
    for region in world.regions:
        lines += _of_region(region)
    names = [region.name for region in world.regions]
    for flow in world.flows:
        tables = f"{flow.tables} table{'s' * (flow.tables != 1)}"
        lines.append(f"{names[flow.source]} -> {names[flow.target]}  {tables}, {amount(flow.left_bytes)} left")
    if world.stuck:
        lines.append(f"{world.stuck} copies wait for a source")
    return lines


def _of_region(region: Region) -> list[str]:
    share = 100 * region.stored_bytes / max(1.0, region.storage_bytes)
    data = f"data {share:.0f} % of {amount(region.storage_bytes)}" + ("" if region.is_up else "  DOWN")
    lines = []
    for number, supply in enumerate(region.supplies):
        name = cut(region.name, 12) if number == 0 else ""
        told = f"{name:<12} {cut(supply.kind, 6):<6} [{_bar(supply)}] {supply.used:>5}/{supply.units:<5}"
        lines.append(f"{told} {supply.load:5.2f}x" + (f"  {data}" if number == 0 else ""))
    return lines


def _bar(supply: Supply) -> str:
    """All units, or all that is asked where that is more."""
    whole = max(float(supply.units), supply.used + supply.down + supply.asked)
    ends = [round(WIDE * upto / whole) for upto in (supply.used, supply.used + supply.down)]
    asked = round(WIDE * min(whole, supply.used + supply.down + supply.asked) / whole)
    marks = USED * ends[0] + DOWN * (ends[1] - ends[0]) + ASKED * max(0, asked - ends[1])
    return marks + FREE * (WIDE - len(marks))
