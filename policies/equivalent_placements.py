"""Compact gangs on free GPUs, and other placements of a plan that are equal to its scheduler.

Equal by locality: each gang spans as many racks and machines as in the scheduler's own plan; penalties by tier, as of
Themis and Dally, cannot tell more. Otherwise equal means the same number of GPUs for each job.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice

import numpy as np

from ..simulator.cluster.topology import Topology
from ..simulator.engine.plans import Plan
from .placing_gangs import FREE, MARKS, SCRATCH, TOO_FEW_WORDS, draw_placements, place_gang

TRIES = 12  # draws per wanted candidate; with few free GPUs most repeat one
WORDS = 1024  # random words that are made at first
NO_WORDS = np.empty(0, np.int64)


def locality(topology: Topology, gpus: Sequence[int]) -> tuple[int, int]:
    """(racks, machines) that a gang spans: less is better, racks first."""
    machines = list(set(topology.gpu_machine[np.asarray(gpus)].tolist()))
    return len(set(topology.machine_rack[machines].tolist())), len(machines)


def place(
    topology: Topology, free: Collection[int], size: int, rng: np.random.Generator | None = None
) -> tuple[int, ...]:
    """`size` of the free GPUs, ascending, as close together as possible; there must be as many.

    Best fit: the machine, else the rack, with the fewest free GPUs that suffice. A larger gang fills the racks with the
    most free GPUs, and takes the rest by best fit; inside a rack likewise with machines. Ties: lowest index. With `rng`
    any machine or rack that suffices is drawn, and the filled racks come in any order.
    """
    floor, gang = _floor(topology), np.empty(size, np.int64)
    if rng is None:
        place_gang(floor, _scratch(topology, free), False, NO_WORDS, np.zeros(1, np.int64), gang)
        return tuple(gang.tolist())
    before, most = rng.bit_generator.state, WORDS
    while True:
        words, used = _words(rng, most), np.zeros(1, np.int64)
        place_gang(floor, _scratch(topology, free), True, words, used, gang)
        rng.bit_generator.state = before
        if used[0] <= most:
            _words(rng, int(used[0]))
            return tuple(gang.tolist())
        most *= 4


def _floor(topology: Topology) -> np.ndarray:
    """The machine and the rack of each GPU, as the kernels of placing_gangs.py take them."""
    return np.array([topology.gpu_machine, topology.gpu_rack])


def _scratch(topology: Topology, free: Collection[int]) -> np.ndarray:
    """Scratch of these kernels, with the GPUs that are free."""
    scratch = np.zeros((SCRATCH, topology.num_gpus), np.int64)
    scratch[MARKS, list(free)] = FREE
    return scratch


def _words(rng: np.random.Generator, count: int) -> np.ndarray:
    """Random words of 32 bits, as the methods of a generator use them up."""
    return rng.integers(0, 1 << 32, count, np.uint32).astype(np.int64)


def equivalent_placements(
    topology: Topology,
    plan: Plan,
    movers: Sequence[int],
    pool: Collection[int],
    n: int,
    rng: np.random.Generator,
    same_span: bool = True,
) -> list[Plan]:
    """Up to n >= 1 distinct plans: `plan`, then others in which the movers have other GPUs of the pool.

    The movers' GPUs in the plan all lie in the pool, which no other job uses. `rng` draws their order and GPUs.
    `same_span`: every gang spans as many racks and machines as in the plan.
    """
    if n == 1 or not movers:
        return [plan]
    gangs = [sorted(plan.gangs[job]) for job in movers]
    wanted = [(len(gang), *(locality(topology, gang) if same_span else (0, 0))) for gang in gangs]
    found = np.empty((n, sum(map(len, gangs))), np.int64)
    found[0] = np.concatenate(gangs)
    floor, scratch, numbers = _floor(topology), _scratch(topology, pool), np.array(wanted).T.copy()
    free, words, number = scratch[MARKS].copy(), np.empty(0, np.int64), TOO_FEW_WORDS
    while number == TOO_FEW_WORDS:
        words, used = np.concatenate([words, _words(rng, max(WORDS, len(words)))]), np.zeros(1, np.int64)
        number = draw_placements(floor, scratch, free, numbers, TRIES * (n - 1), words, used, found)
    plans = [plan]
    for row in found[1:number].tolist():
        gpus = iter(row)
        drawn = {job: tuple(islice(gpus, len(gang))) for job, gang in zip(movers, gangs, strict=True)}
        plans.append(Plan({**plan.gangs, **drawn}, plan.sub_batch, plan.held))
    return plans
