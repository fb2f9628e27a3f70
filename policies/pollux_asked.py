"""Pollux's search for jobs that are not elastic: each has as many GPUs as it asks, or none.

For the models of paper cassini nobody has published the gradient noise that Pollux tunes sizes and batches by, so both
stay what jobs ask. Goodput is throughput then: iterations per second alone at the placement, over those at the job's
best placement. The rest is the search of pollux_search.py, with two differences:

* Repair goes through the jobs in order of attained service and gives each the GPUs that it asks: of machines on which
  it has some first, then of any others, in random order; or none, if there are too few. As there, a machine keeps one
  job that spans machines.
* Each round's search begins at the present allocation and is drawn from the seed and the instant: candidates depend on
  the present alone (simulator/protocols.py).

Throughput tells gangs that span machines from those that do not; it knows no racks and no links. So on servers of one
GPU any placement of a job is as good as any other, and the population is full of candidates.
"""

from __future__ import annotations

import numpy as np

from ..simulator.plans import Plan
from ..simulator.view import ClusterView
from .links import network_of
from .pollux_search import Problem, Search


def allocations(
    view: ClusterView, n: int, exponent: float, cost_s: float, individuals: int, generations: int, patience: int
) -> list[Plan]:
    """Up to n plans of the same, best fitness found; see the module."""
    s, machine_of = view.simulator.state, view.topology.gpu_machine
    jobs = np.concatenate([view.queue, view.running])
    if not len(jobs):
        return [Plan({})]
    served_s = np.array([view.attained_gpu_s(int(job)) for job in jobs])
    jobs = jobs[np.lexsort((jobs, s.arrival_s[jobs], served_s))]
    gpus_of = {int(job): view.gpus_of(int(job)) for job in view.running}
    held = np.zeros((len(jobs), view.topology.num_machines), dtype=np.int8)
    for row, job in enumerate(jobs.tolist()):
        np.add.at(held[row], machine_of[gpus_of.get(job, [])], 1)
    rng = np.random.default_rng([int(s.seed), view.instant])
    search = AskedSearch(rng, individuals, generations, patience)
    found = search.best_few(_problem(view, jobs, held, exponent, cost_s), jobs.tolist(), n)
    plans = [_plan(view, jobs, held, wanted, gpus_of) for wanted in found]
    return list({plan.placement: plan for plan in plans}.values())


def _problem(view: ClusterView, jobs: np.ndarray, held: np.ndarray, exponent: float, cost_s: float) -> Problem:
    network, topology, s = network_of(view), view.topology, view.simulator.state
    room = view.free_by_machine + held.sum(axis=0, dtype=np.int64)
    asked = s.gpus[jobs].astype(np.int64)
    largest = int(topology.machine_gpus.max())
    scattered = topology.machine_first_gpu.tolist()  # one GPU of each machine: a gang that spans as many as can be
    every = range(topology.num_gpus)
    speedups = np.zeros((len(jobs), 2, int(asked.max()) + 1))
    for row, (job, gpus) in enumerate(zip(jobs.tolist(), asked.tolist(), strict=True)):
        over = scattered[:gpus] if gpus <= len(scattered) else every[:gpus]
        spread_s = network.alone(topology, view.workload, job, over)[0].iteration_s
        best_s = float(s.base_iteration_s[job])
        speedups[row, 1, gpus] = best_s / spread_s
        speedups[row, 0, gpus] = 1.0 if gpus <= largest else best_s / spread_s
    age_s = view.now_s - s.arrival_s[jobs]
    restarts = np.maximum(s.starts[jobs] - 1, 0)
    kept = np.maximum(age_s - restarts * cost_s, 0.0) / np.maximum(age_s + cost_s, 1e-3)
    return Problem(held, room.astype(np.int8), asked, speedups, kept, exponent)


def _plan(
    view: ClusterView, jobs: np.ndarray, held: np.ndarray, wanted: np.ndarray, gpus_of: dict[int, list[int]]
) -> Plan:
    """GPUs for an allocation: jobs whose machines do not change keep theirs, the others take the lowest free ones."""
    kept = [row for row in range(len(jobs)) if wanted[row].any() and np.array_equal(held[row], wanted[row])]
    gangs = {int(jobs[row]): tuple(gpus_of[int(jobs[row])]) for row in kept}
    free = set(view.free_gpus.tolist()).union(*gpus_of.values()).difference(*gangs.values())
    for row in range(len(jobs)):
        if row not in kept and wanted[row].any():
            gangs[int(jobs[row])] = tuple(take(free, wanted[row], view.topology.gpu_machine))
    return Plan(gangs)


def take(free: set[int], counts: np.ndarray, machine_of: np.ndarray) -> list[int]:
    """Modify `free`: so many GPUs of each machine, lowest index first."""
    left = counts.copy()
    taken = []
    for gpu in sorted(free):
        if left[machine_of[gpu]] > 0:
            left[machine_of[gpu]] -= 1
            taken.append(gpu)
    free.difference_update(taken)
    return taken


class AskedSearch(Search):
    """The search with jobs of fixed size; `Problem.most` is what they ask."""

    def _repaired(self, problem: Problem, population: np.ndarray) -> np.ndarray:
        """Modify `population`: every job has what it asks, or nothing."""
        individuals = population.shape[2]
        room = np.repeat(problem.room[:, None], individuals, axis=1).astype(np.int16)
        spanned = np.zeros(room.shape, dtype=np.bool_)
        for row, asked in enumerate(problem.most.tolist()):
            has = population[row].astype(np.int16)
            must_span = asked > int(problem.room.max())
            open_room = np.where(spanned, 0, room) if must_span else room
            # Machines on which it has GPUs come first, and there at most so many; then any room.
            order = np.argsort(self.rng.random(room.shape, dtype=np.float32) - (has > 0), axis=0, kind="stable")
            first = _up_to(np.minimum(has, open_room), order, np.full(individuals, asked))
            more = _up_to(open_room - first, order, asked - first.sum(axis=0))
            given = first + more
            spans = (given > 0).sum(axis=0) > 1
            bad = (given.sum(axis=0) < asked) | (has.sum(axis=0) == 0) | (spans & ((given > 0) & spanned).any(axis=0))
            given[:, bad] = 0
            room -= given
            spanned |= (given > 0) & spans
            population[row] = given
        return population


def _up_to(counts: np.ndarray, order: np.ndarray, most: np.ndarray) -> np.ndarray:
    """At most `most` (individuals,) of the counts (machines, individuals), taken in `order`."""
    along = np.take_along_axis(counts, order, axis=0).cumsum(axis=0)
    along = np.diff(np.minimum(along, most[None, :]), axis=0, prepend=0)
    found = np.zeros_like(counts)
    np.put_along_axis(found, order, along.astype(counts.dtype), axis=0)
    return found
