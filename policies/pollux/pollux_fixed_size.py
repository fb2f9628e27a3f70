"""Pollux's search for jobs that are not elastic (`adapt=off`): each has as many GPUs as it requests, or none.

Goodput is then throughput: iterations per second alone at the placement, over those at the job's best placement. The
search differs from pollux_search.py in three points:

* Repair gives each job, in order of attained service, the GPUs of its request: from its present machines first, then
  from others, in random order; or none, if there are too few.
* Each round's search begins at the present allocation and is drawn from the seed and the instant, so candidates depend
  on the present alone.
* A job whose GPUs change counts for less by at least a millionth, so a change without gain is not made.

Decision points are rounds in which a job waits. Throughput depends on whether a gang spans machines, not on racks or
links.
"""

from __future__ import annotations

import numpy as np

from ...simulator.base.decisions import Decision, Preempt, Start
from ...simulator.base.tiers import MACHINE, NETWORK, RACK
from ...simulator.configuration.network_choice import Contention
from ...simulator.engine.plans import Plan
from ...simulator.engine.view import ClusterView
from ..planning import rng_of
from .pollux_search import Problem, Search

STAYS = 1e-6  # least loss of its speed-up of a job whose GPUs change


def allocations(
    view: ClusterView, n: int, exponent: float, cost_s: float, *, counts_first: bool, **bounds: int
) -> list[Plan]:
    """Up to n plans of the same, best fitness; see the module.

    `counts_first`: the first start of a job counts as a change too, as it costs in Pollux's simulator. The other
    parameters are as of `Pollux` and `Search`.
    """
    jobs, held, gpus_of = present(view)
    if not len(jobs):
        return [Plan({})]
    rng = rng_of(view)
    problem = _problem(view, jobs, held, exponent, _kept(view, jobs, cost_s, counts_first))
    found = AskedSearch(rng, **bounds).best_few(problem, jobs.tolist(), n)
    plans = [_plan(view, jobs, held, wanted, gpus_of) for wanted in found]
    return list({plan.placement: plan for plan in plans}.values())


def present(view: ClusterView) -> tuple[np.ndarray, np.ndarray, dict[int, list[int]]]:
    """Jobs by attained service, then arrival; their GPUs, int8 (jobs, machines); the GPUs of running ones."""
    jobs = np.concatenate([view.queue, view.running])
    served_s = np.array([view.attained_gpu_s(int(job)) for job in jobs])
    jobs = jobs[np.lexsort((jobs, view.record["arrival_s"][jobs], served_s))]
    gpus_of = {int(job): view.gpus_of(int(job)) for job in view.running}
    held = np.zeros((len(jobs), view.topology.num_machines), dtype=np.int8)
    for row, job in enumerate(jobs.tolist()):
        np.add.at(held[row], view.topology.gpu_machine[gpus_of.get(job, [])], 1)
    return jobs, held, gpus_of


def stops_and_starts(view: ClusterView, plan: Plan) -> list[Decision]:
    """Decisions that lead to a plan: a moving job is stopped, and starts at the same instant."""
    held = {job: view.gpus_of(job) for job in view.running.tolist()}
    stay = {job for job, own in held.items() if set(own) == set(plan.gangs.get(job, ()))}
    stops: list[Decision] = [Preempt(job) for job in held if job not in stay]
    return [*stops, *(Start(job, gpus) for job, gpus in plan.gangs.items() if job not in stay)]


def _kept(view: ClusterView, jobs: np.ndarray, cost_s: float, counts_first: bool) -> np.ndarray:
    """Share of its speed-up that each job keeps if its GPUs change (pollux.py)."""
    s = view.record
    age_s, starts = view.now_s - s["arrival_s"][jobs], s["starts"][jobs]
    restarts = np.maximum(starts - 1, 0)
    kept = np.maximum(age_s - restarts * cost_s, 0.0) / np.maximum(age_s + cost_s, 1e-3)
    if not counts_first:
        kept[starts == 0] = 1.0
    return np.minimum(kept, 1.0 - STAYS)


def _problem(view: ClusterView, jobs: np.ndarray, held: np.ndarray, exponent: float, kept: np.ndarray) -> Problem:
    room = view.free_by_machine + held.sum(axis=0, dtype=np.int64)
    asked = view.workload.gpus[jobs].astype(np.int64)
    speedups = np.zeros((len(jobs), 2, int(asked.max()) + 1))
    for row, (job, gpus) in enumerate(zip(jobs.tolist(), asked.tolist(), strict=True)):
        speedups[row, :, gpus] = _speeds(view, job, gpus)
    return Problem(held, room.astype(np.int8), asked, speedups, kept, exponent)


def _speeds(view: ClusterView, job: int, gpus: int) -> tuple[float, float]:
    """Speed in one machine (if it suffices), and over as many as possible, relative to the best placement."""
    topology, network = view.topology, view.network
    largest = int(topology.machine_gpus.max())
    scattered = topology.machine_first_gpu.tolist()  # one GPU of each machine
    over = scattered[:gpus] if gpus <= len(scattered) else list(range(gpus))
    if isinstance(network, Contention):
        spread = view.record["base_iteration_s"][job] / view.phases_of(job, over).iteration_s
        return (1.0 if gpus <= largest else spread), spread
    across = RACK if len(set(topology.gpu_rack[over].tolist())) == 1 else NETWORK
    spread = 1.0 / view.slowdown(job, across)
    return (1.0 / view.slowdown(job, MACHINE) if gpus <= largest else spread), spread


def _plan(
    view: ClusterView, jobs: np.ndarray, held: np.ndarray, wanted: np.ndarray, gpus_of: dict[int, list[int]]
) -> Plan:
    """GPUs for an allocation: unchanged jobs keep their GPUs, the others take the lowest free ones."""
    kept = [row for row in range(len(jobs)) if wanted[row].any() and np.array_equal(held[row], wanted[row])]
    gangs = {int(jobs[row]): tuple(gpus_of[int(jobs[row])]) for row in kept}
    free = set(view.free_gpus.tolist()).union(*gpus_of.values()).difference(*gangs.values())
    for row in range(len(jobs)):
        if row not in kept and wanted[row].any():
            gangs[int(jobs[row])] = tuple(take(free, wanted[row], view.topology.gpu_machine))
    return Plan(gangs)


def take(free: set[int], counts: np.ndarray, machine_of: np.ndarray) -> list[int]:
    """Modify `free`: take `counts` GPUs of each machine, lowest index first."""
    left = counts.copy()
    taken = []
    for gpu in sorted(free):
        if left[machine_of[gpu]] > 0:
            left[machine_of[gpu]] -= 1
            taken.append(gpu)
    free.difference_update(taken)
    return taken


class AskedSearch(Search):
    """The search with jobs of fixed size; `Problem.most` is their request."""

    def _repaired(self, problem: Problem, population: np.ndarray) -> np.ndarray:
        """Modify `population`: every job has its request, or nothing."""
        individuals = population.shape[2]
        room = np.repeat(problem.room[:, None], individuals, axis=1).astype(np.int16)
        spanned = np.zeros(room.shape, dtype=np.bool_)
        for row, asked in enumerate(problem.most.tolist()):
            has = population[row].astype(np.int16)
            must_span = asked > int(problem.room.max())
            open_room = np.where(spanned, 0, room) if must_span else room
            # First its present machines, up to its present GPUs there; then any room.
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
