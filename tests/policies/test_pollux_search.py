"""Pollux's genetic search: what it returns can be carried out, is the best where that is known, and is repeatable."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from clustergym.policies.pollux.pollux_search import Problem, Search


def drawn(rng, jobs, room, most=8):
    """A problem with concave speed-ups, worse over several machines."""
    sizes = np.arange(most + 1.0)
    power = rng.uniform(0.4, 1.0, size=(jobs, 1))
    alone = sizes**power
    spread = alone * rng.uniform(0.5, 1.0, size=(jobs, 1))
    held = np.zeros((jobs, len(room)), dtype=np.int8)
    caps = rng.integers(1, most + 1, size=jobs)
    kept = rng.uniform(0.0, 1.0, size=jobs)
    return Problem(held, np.array(room, dtype=np.int8), caps, np.stack([alone, spread], axis=1), kept)


def is_feasible(problem, allocation):
    spread = (allocation > 0).sum(axis=1) > 1
    return (
        np.all(allocation >= 0)
        and np.all(allocation.sum(axis=0) <= problem.room)
        and np.all(allocation.sum(axis=1) <= problem.most)
        and np.all((allocation[spread] > 0).sum(axis=0) <= 1)
    )


@pytest.mark.parametrize("seed", range(5))
def test_what_it_finds_can_be_carried_out_and_is_no_worse_than_staying(seed):
    rng = np.random.default_rng(seed)
    problem = drawn(rng, 12, [4, 4, 2, 4])
    search = Search(np.random.default_rng(seed), individuals=30, generations=20)
    jobs = list(range(12))
    for _ in range(3):
        found = search.best(problem, jobs)
        assert is_feasible(problem, found)
        score = problem.fitness(np.stack([found, problem.held], axis=2))
        assert score[0] >= score[1]
        problem = Problem(found, problem.room, problem.most, problem.speedups, problem.kept)


@pytest.mark.parametrize("seed", range(3))
def test_it_finds_the_best_of_all_allocations(seed):
    problem = drawn(np.random.default_rng(seed), 3, [2, 2], most=4)
    cells = [range(3)] * 6
    every = np.array(list(itertools.product(*cells)), dtype=np.int8).reshape(-1, 3, 2)
    feasible = np.array([one for one in every if is_feasible(problem, one)])
    best = problem.fitness(np.moveaxis(feasible, 0, 2)).max()
    found = Search(np.random.default_rng(seed)).best(problem, [0, 1, 2])
    assert problem.fitness(found[:, :, None])[0] == pytest.approx(best)


def test_the_same_seed_finds_the_same():
    problem = drawn(np.random.default_rng(0), 10, [4] * 4)
    found = [Search(np.random.default_rng(7), generations=10).best(problem, list(range(10))) for _ in range(2)]
    assert np.array_equal(*found)


def test_jobs_that_come_and_go_keep_their_rows():
    rng = np.random.default_rng(1)
    search = Search(np.random.default_rng(1), individuals=20, generations=10)
    search.best(drawn(rng, 4, [4, 4]), [3, 5, 7, 9])
    problem = drawn(rng, 3, [4, 4])
    assert is_feasible(problem, search.best(problem, [9, 11, 5]))
    problem = drawn(rng, 2, [4, 4, 4])  # and the cluster may grow
    assert is_feasible(problem, search.best(problem, [9, 11]))
