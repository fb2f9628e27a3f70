"""Greedy, written to be read: jobs and machines as plain lists, every prediction made anew. No code is shared."""

from __future__ import annotations

import math

MACHINE, RACK, NETWORK = 0, 1, 2


def fill(taken: list[int], free: dict[int, int], need: int) -> None:
    """Fill `taken`: the tightest place that suffices, else all of the most free one, and so on for the rest.

    `free` maps place to free GPUs; ties go to the lowest place.
    """
    rest = dict(free)
    while need > 0:
        enough = [place for place in rest if rest[place] >= need]
        chosen = min(enough, key=lambda p: (rest[p], p)) if enough else min(rest, key=lambda p: (-rest[p], p))
        taken[chosen] = min(rest.pop(chosen), need)
        need -= taken[chosen]


def place(racks: list[list[int]], free: list[int], need: int) -> tuple[int, dict[int, int]] | None:
    """(tier, GPUs by machine) of the best tier that has room, by best fit; None if there are not enough GPUs."""
    if sum(free) < need:
        return None
    fits = [machine for machine in range(len(free)) if free[machine] >= need]
    if fits:
        return MACHINE, {min(fits, key=lambda m: (free[m], m)): need}
    rack_free = {rack: sum(free[m] for m in machines) for rack, machines in enumerate(racks)}
    suffices = [rack for rack in rack_free if rack_free[rack] >= need]
    chosen: dict[int, int] = {}
    if suffices:
        shares = {min(suffices, key=lambda r: (rack_free[r], r)): need}
    else:
        by_rack = [0] * len(racks)
        fill(by_rack, rack_free, need)
        shares = {rack: share for rack, share in enumerate(by_rack) if share}
    for rack, share in shares.items():
        by_machine = [0] * len(free)
        fill(by_machine, {machine: free[machine] for machine in racks[rack]}, share)
        chosen |= {machine: gpus for machine, gpus in enumerate(by_machine) if gpus}
    return (RACK if len(shares) == 1 else NETWORK), chosen


def room_at(
    groups: list[list[int]], free: list[int], running: list[tuple[float, dict[int, int]]], need: int, now: float
) -> float:
    """The earliest instant at which one group of machines has `need` free GPUs, if no other job takes them."""
    for instant in sorted({now, *(end for end, _ in running)}):
        then = list(free)
        for end, held in running:
            if end <= instant:
                for machine, gpus in held.items():
                    then[machine] += gpus
        if any(sum(then[m] for m in group) >= need for group in groups):
            return instant
    return math.inf


def simulate(
    jobs: list[tuple[float, int, float, tuple[float, float, float]]], racks: list[list[int]], sizes: list[int],
    margin: float,
) -> list[tuple[float, int, dict[int, int]]]:  # fmt: skip
    """Every start, in order of decision: (time, job, GPUs by machine).

    Args:
        jobs: (arrival, GPUs, isolated run time, slowdowns in a machine, in a rack, across racks), by arrival.
        racks: the machines of each rack.
        sizes: GPUs of each machine.
        margin: see policies/greedy/greedy.py.
    """
    free, starts = list(sizes), []
    machines = [[machine] for machine in range(len(sizes))]
    running: dict[int, tuple[float, dict[int, int]]] = {}
    waiting: list[int] = []
    to_come = list(range(len(jobs)))
    while to_come or running:
        now = min([*(jobs[job][0] for job in to_come), *(end for end, _ in running.values())])
        while to_come and jobs[to_come[0]][0] <= now:
            waiting.append(to_come.pop(0))
        for job in [job for job, (end, _) in running.items() if end <= now]:
            for machine, gpus in running.pop(job)[1].items():
                free[machine] += gpus
        for job in sorted(waiting, key=lambda j: (jobs[j][2], j)):
            _, need, left, slowdown = jobs[job]
            found = place(racks, free, need)
            if found is None:
                continue
            tier, held = found
            patient = False
            for better in range(tier):
                groups = machines if better == MACHINE else racks
                wait = room_at(groups, free, list(running.values()), need, now) - now
                if slowdown[better] < slowdown[tier] and wait < math.inf:
                    patient |= left * slowdown[tier] > margin * (wait + left * slowdown[better])
            if patient:
                continue
            waiting.remove(job)
            for machine, gpus in held.items():
                free[machine] -= gpus
            running[job] = (now + left * slowdown[tier], held)
            starts.append((now, job, held))
    return starts
