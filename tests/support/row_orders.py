"""The same jobs in other rows, and plays whose decisions are bound to ids: what must not change what becomes of a job."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from clustergym.simulator.base.decisions import Advance, Decision, Start
from clustergym.simulator.base.errors import InvalidDecision, Stalled
from clustergym.simulator.workloads import Workload
from clustergym.tests.support.invariance import drawn_rows
from clustergym.tests.support.worlds import Groups, Regions, World

TURNS = 60


def at_once(workload: Workload, rng: np.random.Generator) -> Workload:
    """The same jobs, arriving at up to four instants only."""
    instants = np.sort(rng.choice(workload.arrival_s, min(4, len(workload)), replace=False))
    instants[0] = workload.arrival_s[0]
    arrival_s = instants[np.searchsorted(instants, workload.arrival_s, side="right") - 1]
    return replace(workload, arrival_s=arrival_s)


def in_rows(workload: Workload, rows: np.ndarray) -> Workload:
    """The same jobs, job `rows[i]` in row i; its id and all that is known of it go with it."""
    moved = drawn_rows(workload, rows)
    return moved if workload.ps is None else replace(moved, ps=workload.ps.take(rows))


def permuted(workload: Workload, rng: np.random.Generator) -> np.ndarray:
    """Any rows that are still in order of arrival."""
    return np.lexsort((rng.random(len(workload)), workload.arrival_s))


def scripted(world: World, rng: np.random.Generator) -> list[Decision]:
    """Play a world to its end at random: every decision, one that lets time pass included."""
    simulator, made = world.simulator, []

    def apply(decision: Decision) -> None:
        type(simulator).apply(simulator, decision)
        made.append(decision)

    def advance() -> None:
        made.append(Advance())  # if nothing can come, too
        type(simulator).advance(simulator)

    simulator.apply, simulator.advance = apply, advance
    world.careful = False
    verbs = [verb for verb in world.verbs if verb != "hold"]
    for _ in range(TURNS):
        for _ in range(int(rng.integers(5))):
            world.do(verbs[rng.integers(len(verbs))], rng)
        if world.ended:
            break
        world.advance()
    end(world, rng)
    del simulator.apply, simulator.advance
    return made


def end(world: World, rng: np.random.Generator) -> None:
    """Start what can be started until all is over."""
    if isinstance(world, Groups | Regions):
        world.finish()
        return
    while not world.ended:
        view = world.simulator.view
        for job in [*view.queue.tolist(), *view.held.tolist()]:
            if "resize" in world.verbs:
                world.do("start", rng)
            elif view.gpus(job) <= len(view.free_gpus):
                world.simulator.apply(Start(job, view.free_gpus[: view.gpus(job)].tolist()))
        world.advance()


def replayed(simulator: Any, decisions: Iterable[Decision], row: np.ndarray) -> str:
    """Carry the same decisions out where job i is in `row[i]`; what is refused, or empty."""
    for decision in decisions:
        try:
            if isinstance(decision, Advance):
                with contextlib.suppress(Stalled):
                    simulator.advance()
            else:
                simulator.apply(bound(decision, row))
        except InvalidDecision as error:
            return f"{decision} is refused: {error}"
    return ""


def bound(decision: Decision, row: np.ndarray) -> Decision:
    """The same for the job where it is now."""
    if not hasattr(decision, "job"):
        return decision
    found = copy.copy(decision)
    object.__setattr__(found, "job", int(row[decision.job]))
    return found


def told_apart(one: Any, other: Any, rows: np.ndarray) -> str:
    """What became of the jobs of two simulators, of which the second has job `rows[i]` of the first in row i."""
    expected, found = one.jobs(), other.jobs()
    for name, column in expected.items():
        if column.dtype.kind != "f":
            same = column[rows] == found[name]
        else:
            same = np.isclose(column[rows], found[name], rtol=1e-9, atol=1e-9, equal_nan=True)
        if not np.all(same):
            at = int(np.argmin(same))
            return f"{name} of {int((~same).sum())} jobs, one from {column[rows][at]!r} to {found[name][at]!r}"
    return ""
