"""The same jobs in other rows, and decisions that are bound to ids: what becomes of a job stays the same."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from clustergym.simulator.base.decisions import Advance, Decision, Start
from clustergym.simulator.base.errors import InvalidDecision, Stalled
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.workloads import Workload
from clustergym.tests.support.invariance import drawn_rows
from clustergym.tests.support.random_fluid import GBPS, draw_ups
from clustergym.tests.support.random_groups import random_simulator as random_groups
from clustergym.tests.support.worlds import Contended, Groups, Regions, World, make_world

TURNS = 60  # of random decisions, before all is only brought to its end
FABRICS = (
    "cassini-testbed",
    "cassini-two-gpu",
    "leaf-spine:leaves=2,spines=2,machines=3,gpus_per_machine=4",
    "leaf-spine:leaves=4,spines=2,machines=2,gpus_per_machine=4,nics=2,rails=on",
    "fat-tree:k=4,gpus_per_machine=2",
)
RATES = ("rates=fair", "rates=crux", "rates=crux,levels=2", "rates=mltcp")


def on_fabric(seed: int, folder: Path) -> World:
    """4 to 10 jobs, all of other phases, on a shipped topology, with any rates; their phases are written to `folder`.

    What chance gives to a row is left out: jitter, offsets=random and routes=hash.
    """
    rng = np.random.default_rng([seed, 12])
    count = int(rng.integers(4, 11))
    alone_s, gpus = rng.uniform(0.1, 0.5, count), rng.integers(2, 6, count)
    models = {}
    for job, seconds in enumerate(alone_s.tolist()):
        phases = [
            {"start_s": start, "duration_s": duration, "gbps": rate / GBPS}
            for start, duration, rate in draw_ups(rng, seconds)
        ]
        models[f"model{job}"] = [{"iteration_s": seconds, "phases": phases}]
    path = folder / f"phases {seed}.json"
    path.write_text(json.dumps({"models": models}))
    words = [str(rng.choice(RATES)), f"models={path}"]
    words += [f"carried={rng.choice([0.5, 0.88])}"] * int(rng.random() < 0.3)
    words += ["routes=least"] * int(rng.random() < 0.3)
    words += ["link_mtbf_s=60,link_mttr_s=3"] * int(rng.random() < 0.2)
    words += [str(rng.choice(["pacing=off", "adjust=0.05"]))] * int(rng.random() < 0.2)
    rounds = rng.integers(1, 60, count).astype(float)
    simulator = Simulator(str(rng.choice(FABRICS)), f"contention:{','.join(words)}")
    jobs = Workload.from_arrays(
        "on a fabric",
        np.sort(rng.uniform(0, 20, count)),
        gpus,
        alone_s * rounds,
        iterations=rounds,
        iteration_s=alone_s,
        model=list(models),
        batch_size=gpus * 32,
    )
    simulator.reset(jobs, seed)
    return Contended(simulator)


def others(seed: int, folder: Path) -> World:
    """A random simulator of any other kind, with any options."""
    kinds = {"gangs": 3, "shared": 3, "regions": 2, "elastic": 1, "groups": 3}
    kind = np.random.default_rng([seed, 13]).choice([kind for kind, often in kinds.items() for _ in range(often)])
    if kind != "groups":
        return make_world(str(kind), seed)
    # Jitter and errors are drawn by row; after a failure all of a group begin at once, and the row says which is first.
    return Groups(random_groups(seed, jitter=0.0, model_error=0.0, failures=None))


def at_once(workload: Workload, rng: np.random.Generator) -> Workload:
    """The same jobs, arriving at one to four instants only."""
    count = min(int(rng.integers(1, 5)), len(workload))
    instants = np.sort(rng.choice(workload.arrival_s, count, replace=False))
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
    verbs = [verb for verb in world.verbs if verb != "hold"]  # which of those that are held starts, the row decides
    most = 1 if isinstance(world, Groups) else 4  # and which goes first of those that enter a group at once
    for _ in range(TURNS):
        for _ in range(int(rng.integers(most + 1))):
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


class InPlace:
    """Starts every job on its own GPUs, by id, in the order of the queue."""

    def __init__(self, places: Mapping[str, Sequence[int]]) -> None:
        self.places = places

    def decide(self, view: Any) -> Decision:
        for job in view.queue.tolist():
            return Start(job, self.places[view.workload.job_id[job]])
        return Advance()


def random_places(workload: Workload, gpus: int, rng: np.random.Generator) -> dict[str, list[int]]:
    """GPUs of their own for the first jobs, as many as there is room for."""
    free, found = rng.permutation(gpus).tolist(), {}
    for job, size in zip(workload.job_id.tolist(), workload.gpus.tolist(), strict=True):
        if size > len(free):
            break
        found[job], free = free[:size], free[size:]
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
