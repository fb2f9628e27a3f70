"""Compact gangs on free GPUs, and other placements of a plan that are equal to its scheduler.

Equal by locality: each gang spans as many racks and machines as in the scheduler's own plan; penalties by tier, as of
Themis and Dally, cannot tell more. Otherwise equal means the same number of GPUs for each job.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from ..simulator.cluster.topology import Topology
from ..simulator.engine.plans import Plan

TRIES = 12  # draws per wanted candidate; with few free GPUs most repeat one


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
    gpus = np.array(sorted(free))
    machine = topology.gpu_machine[gpus]
    whole = _fewest(np.bincount(machine), size, rng)
    if whole is not None:
        return tuple(gpus[machine == whole][:size].tolist())
    rack = topology.machine_rack[machine]
    taken: list[int] = []
    for region, count in _filled(rack, size, rng):
        inside = gpus[rack == region]
        at = topology.gpu_machine[inside]
        for one, share in _filled(at, count, rng):
            taken += inside[at == one][:share].tolist()
    return tuple(sorted(taken))


def _filled(owner: np.ndarray, size: int, rng: np.random.Generator | None) -> list[tuple[int, int]]:
    """(group, its share) of a gang; `owner`: the group of each free GPU."""
    counts = np.bincount(owner)
    taken = []
    while size > 0:
        chosen = _fewest(counts, size, rng)
        if chosen is None:
            chosen = int(counts.argmax()) if rng is None else _any_of(counts.nonzero()[0], rng)
        taken.append((chosen, min(int(counts[chosen]), size)))
        size -= taken[-1][1]
        counts[chosen] = 0
    return taken


def _fewest(counts: np.ndarray, size: int, rng: np.random.Generator | None) -> int | None:
    """The group with the fewest that suffice, with `rng` any that suffices; None if none does."""
    enough = (counts >= size).nonzero()[0]
    if not len(enough):
        return None
    return int(enough[counts[enough].argmin()]) if rng is None else _any_of(enough, rng)


def _any_of(groups: np.ndarray, rng: np.random.Generator) -> int:
    """As `rng.choice`, in a fifth of the time."""
    return int(groups[rng.integers(len(groups))])


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
    wanted = {job: locality(topology, plan.gangs[job]) for job in movers}
    found = {plan.placement: plan}
    for _ in range(TRIES * (n - 1) if movers else 0):
        if len(found) == n:
            break
        gangs = _drawn(topology, wanted if same_span else {}, plan.gangs, movers, pool, rng)
        if gangs is not None:
            other = Plan({job: gangs.get(job, gpus) for job, gpus in plan.gangs.items()}, plan.sub_batch, plan.held)
            found.setdefault(other.placement, other)
    return list(found.values())


def _drawn(
    topology: Topology,
    wanted: Mapping[int, tuple[int, int]],
    gangs: Mapping[int, tuple[int, ...]],
    movers: Sequence[int],
    pool: Collection[int],
    rng: np.random.Generator,
) -> dict[int, tuple[int, ...]] | None:
    """GPUs of the movers; None if a gang in `wanted` would span otherwise."""
    free, drawn = set(pool), {}
    for position in rng.permutation(len(movers)).tolist():
        job = movers[position]
        gpus = place(topology, free, len(gangs[job]), rng)
        if job in wanted and locality(topology, gpus) != wanted[job]:
            return None
        drawn[job] = gpus
        free.difference_update(gpus)
    return drawn
