"""Job groups as plain text: a line a group, and two of its next subtasks on CPU and network, a character a job."""

from __future__ import annotations

import math
import string

from ...simulator.groups.group_simulator import GroupSimulator
from .drawing.picture_words import clock, cut, span
from .scenes.group_scene import GroupLane, GroupScene, read_groups
from .scenes.seen import done_words

SYMBOLS = string.digits + string.ascii_uppercase + string.ascii_lowercase
MOST_GROUPS, MOST_JOBS = 24, 16


def draw_group_text(simulator: GroupSimulator, width: int = 100) -> str:
    """The groups now, as lines of at most `width` columns (at least 40), without a line break at the end."""
    scene, width = read_groups(simulator), max(40, width)
    down = f", {scene.down} down" if scene.down else ""
    done = done_words(scene.done, scene.jobs, scene.jct_s)
    lines = [
        f"t = {clock(scene.now_s)} | machines {scene.machines - scene.free - scene.down}/{scene.machines} used, "
        f"{scene.free} free{down} | CPU {scene.cpu:.0%}, network {scene.net:.0%}",
        f"jobs {scene.running} in groups, {len(scene.waiting)} waiting, {done}; the next {span(scene.seconds)}:",
    ]
    lines += [line for lane in scene.lanes[:MOST_GROUPS] for line in ("", *_group_lines(scene, lane, width))]
    if len(scene.lanes) > MOST_GROUPS:
        lines += ["", f"and {len(scene.lanes) - MOST_GROUPS} more groups"]
    lines += ["", "waiting " + _jobs(scene.waiting)] if scene.waiting else []
    return "\n".join(cut(line, width).rstrip() for line in lines)


def symbol(job: int) -> str:
    """The character of a job."""
    return SYMBOLS[job % len(SYMBOLS)]


def _group_lines(scene: GroupScene, lane: GroupLane, width: int) -> list[str]:
    lasts = f"round {span(lane.round_s)}" if math.isfinite(lane.round_s) else "not measured"
    loading = f", {len(lane.loading)} load" if lane.loading else ""
    head = f"group {lane.group}: {lane.machines} machines, {lasts}, CPU {lane.cpu:.0%}, network {lane.net:.0%}, "
    cpu, net = ["."] * (width - 6), ["."] * (width - 6)
    for subtask in lane.subtasks:
        ends = [(at_s - scene.now_s) / scene.seconds * (width - 6) for at_s in (subtask.begin_s, subtask.end_s)]
        first, last = (math.ceil(end - 0.5) for end in ends)  # of each mark the middle counts
        for place in range(max(0, first), min(width - 6, last)):
            (cpu if subtask.kind == "COMP" else net)[place] = symbol(subtask.job)
    heading = f"{head}memory {lane.memory:.0%}, jobs {_jobs(lane.members)}{loading}"
    return [heading, "  cpu " + "".join(cpu), "  net " + "".join(net)]


def _jobs(jobs: tuple[int, ...]) -> str:
    shown = " ".join(f"{job}[{symbol(job)}]" for job in jobs[:MOST_JOBS])
    return shown + (f" and {len(jobs) - MOST_JOBS} more" if len(jobs) > MOST_JOBS else "")
