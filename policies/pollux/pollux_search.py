"""The genetic search of Pollux (OSDI'21, Sec. 4.2): the number of GPUs of each machine for each job.

An individual is a matrix (jobs, machines) of GPU counts; a population is an int8 array (jobs, machines, individuals).
The details are close to the published code:

* Parents win tournaments of two. A child takes the jobs before a random point from one, the others from the other.
* Mutation: one job in ten goes back to its present GPUs; one in ten loses each of its entries with probability 1/10; on
  every machine with free GPUs one job of all, and one of those there, get a random count between their present one and
  the whole machine.
* Repair, jobs with the least service first: a machine keeps one job that spans machines, and at most its GPUs; a job
  keeps at most its limit of GPUs, on machines in random order.
* The best of parents and children survive, each individual once.
* The search ends after `generations`, or after `patience` of them without improvement.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

BACK = 0.1  # chance of a job to go back to its present GPUs
SHRINK, DROP = 0.1, 0.1  # chance of a job to shrink, and of each of its entries to be dropped then
TINY = 1e-3  # added to every speed-up, for a finite share of jobs without GPUs
SLIGHT = 1e-9  # relative; less is no improvement


@dataclass(frozen=True)
class Problem:
    """Jobs to allocate, in the order of repair."""

    held: np.ndarray  # int8 (jobs, machines), present GPUs
    room: np.ndarray  # int8 (machines,), GPUs of each machine
    most: np.ndarray  # int64 (jobs,), most GPUs of each
    speedups: np.ndarray  # float64 (jobs, 2, n), speed-up on 0 to n - 1 GPUs of one machine, and of several; n > most
    kept: np.ndarray  # float64 (jobs,), share of its speed-up that a job keeps if its GPUs change
    exponent: float = -1.0  # of the power mean of the speed-ups, not 0; lower is fairer

    def fitness(self, population: np.ndarray) -> np.ndarray:
        """Power mean of the speed-ups of each individual, float64 (individuals,). Paper: pollux, Eq. 14."""
        gpus = population.sum(axis=1, dtype=np.int16)
        spread = (population > 0).sum(axis=1, dtype=np.int8) > 1
        jobs, _, sizes = self.speedups.shape
        first = np.arange(0, 2 * jobs * sizes, 2 * sizes)[:, None]
        speedup = self.speedups.ravel()[first + sizes * spread + gpus]
        changed = (population != self.held[:, :, None]).any(axis=1)
        speedup = np.where(changed, speedup * self.kept[:, None], speedup)
        return ((speedup + TINY) ** self.exponent).mean(axis=0) ** (1.0 / self.exponent)


class Search:
    """The search, which keeps its last population for the next call. Paper: pollux, Sec. 4.2.

    Args:
        rng: of all draws.
        individuals: kept after each generation, and as many children; >= 2.
        generations: at most, >= 1.
        patience: generations without improvement before it ends, >= 1.
    """

    def __init__(
        self, rng: np.random.Generator, individuals: int = 100, generations: int = 100, patience: int = 10
    ) -> None:
        self.rng = rng
        self.individuals, self.generations, self.patience = individuals, generations, patience
        self._jobs: dict[int, int] = {}
        self._population = np.zeros((0, 0, 0), dtype=np.int8)

    def best(self, problem: Problem, jobs: list[int]) -> np.ndarray:
        """The best allocation found, int8 (jobs, machines); `jobs` identifies the rows between calls."""
        return self.best_few(problem, jobs, 1)[0]

    def best_few(self, problem: Problem, jobs: list[int], n: int) -> list[np.ndarray]:
        """The allocation of `best`, and up to n - 1 others of the last population with the same fitness."""
        population, fitness = self._evolved(problem, self._first(problem, jobs))
        self._jobs = {job: row for row, job in enumerate(jobs)}
        self._population = population
        order = np.argsort(-fitness, kind="stable")
        as_good = fitness[order] >= fitness[order[0]] * (1.0 - SLIGHT)
        return [population[:, :, one] for one in order[as_good][:n]]

    def _evolved(self, problem: Problem, population: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The last population, without duplicates, and its fitness."""
        population = self._repaired(problem, population)
        fitness = problem.fitness(population)
        weights = self.rng.integers(1, 2**62, size=problem.held.shape, dtype=np.int64)
        names = _names(population, weights)
        best, since = fitness.max(), 0
        for _ in range(self.generations):
            children = self._repaired(problem, self._mutated(problem, self._children(population, fitness)))
            names = np.concatenate([names, _names(children, weights)])
            fitness = np.concatenate([fitness, problem.fitness(children)])
            _, unique = np.unique(names, return_index=True)
            kept = unique[np.argsort(-fitness[unique], kind="stable")[: self.individuals]]
            population = np.concatenate([population, children], axis=2)[:, :, kept]
            names, fitness = names[kept], fitness[kept]
            since = 0 if fitness[0] > best * (1.0 + SLIGHT) else since + 1
            best = fitness[0]
            if since >= self.patience:
                break
        return population, fitness

    def _first(self, problem: Problem, jobs: list[int]) -> np.ndarray:
        """The last population, new jobs without GPUs; and the present allocation."""
        same_cluster = self._population.shape[1] == len(problem.room)
        first = np.zeros((*problem.held.shape, self._population.shape[2] * same_cluster + 1), dtype=np.int8)
        first[:, :, -1] = problem.held
        if same_cluster:
            known = [row for row, job in enumerate(jobs) if job in self._jobs]
            first[known, :, :-1] = self._population[[self._jobs[jobs[row]] for row in known]]
        return first

    def _children(self, population: np.ndarray, fitness: np.ndarray) -> np.ndarray:
        jobs = len(population)
        one, other, third, fourth = self.rng.integers(len(fitness), size=(4, self.individuals))
        mother = np.where(fitness[one] >= fitness[other], one, other)
        father = np.where(fitness[third] >= fitness[fourth], third, fourth)
        before = np.arange(jobs)[:, None] < self.rng.integers(jobs, size=self.individuals)
        return np.where(before[:, None, :], population[:, :, mother], population[:, :, father])

    def _mutated(self, problem: Problem, children: np.ndarray) -> np.ndarray:
        jobs, machines, individuals = children.shape
        job, child = np.nonzero(self.rng.random((jobs, individuals), dtype=np.float32) < BACK)
        children[job, :, child] = problem.held[job]
        job, child = np.nonzero(self.rng.random((jobs, individuals), dtype=np.float32) < SHRINK)
        children[job, :, child] *= self.rng.random((len(job), machines), dtype=np.float32) >= DROP
        used = children.sum(axis=0, dtype=np.int16)
        machine, child = np.nonzero(used < problem.room[:, None])
        some = self.rng.integers(jobs, size=len(machine))
        shared = np.flatnonzero(used[machine, child] > 0)
        there = children[:, machine[shared], child[shared]] > 0
        chance = self.rng.random(there.shape, dtype=np.float32) + 1e-6
        present = (there * chance).argmax(axis=0)
        job = np.concatenate([some, present])
        machine = np.concatenate([machine, machine[shared]])
        child = np.concatenate([child, child[shared]])
        now = children[job, machine, child]
        more = (self.rng.random(len(job), dtype=np.float32) * (problem.room[machine] + 1 - now)).astype(np.int8)
        children[job, machine, child] = now + more
        return children

    def _repaired(self, problem: Problem, population: np.ndarray) -> np.ndarray:
        """Modify `population`: make every individual legal."""
        self._keep_one_spread(population)
        self._keep_most(problem, population)
        machine, one = np.nonzero(population.sum(axis=0, dtype=np.int16) > problem.room[:, None])
        if len(machine):
            served = population[:, machine, one].cumsum(axis=0, dtype=np.int16)
            served = np.minimum(served, problem.room[machine])
            population[:, machine, one] = np.diff(served, axis=0, prepend=np.int16(0))
        return population

    def _keep_one_spread(self, population: np.ndarray) -> None:
        there = population > 0
        spread = there & (there.sum(axis=1, dtype=np.int8) > 1)[:, None, :]
        machine, one = np.nonzero(spread.sum(axis=0, dtype=np.int16) > 1)
        if len(machine):
            rivals = spread[:, machine, one]
            rivals[rivals.argmax(axis=0), np.arange(len(machine))] = False
            population[:, machine, one] *= ~rivals

    def _keep_most(self, problem: Problem, population: np.ndarray) -> None:
        job, one = np.nonzero(population.sum(axis=1, dtype=np.int16) > problem.most[:, None])
        if not len(job):
            return
        counts = population[job, :, one]
        order = np.argsort(self.rng.random(counts.shape, dtype=np.float32), axis=1, kind="stable")
        kept = np.take_along_axis(counts, order, axis=1).cumsum(axis=1, dtype=np.int16)
        kept = np.minimum(kept, problem.most[job][:, None])
        np.put_along_axis(counts, order, np.diff(kept, axis=1, prepend=np.int16(0)).astype(np.int8), axis=1)
        population[job, :, one] = counts


def _names(population: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """A hash of each individual, int64 with wrap-around."""
    return np.einsum("jmi,jm->i", population, weights)
