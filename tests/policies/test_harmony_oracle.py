"""The exact grouping equals enumeration; above ten jobs the oracle says that it searched."""

from itertools import combinations

import numpy as np
import pytest

from clustergym.experiments.reproduce.harmony.harmony_solvers import (
    NEAR,
    harmony_like_problem,
    shares,
    small_problem,
    timed,
)
from clustergym.policies.harmony.harmony import algorithm1
from clustergym.policies.harmony.local_search import local_search
from clustergym.policies.harmony.oracle import exact, oracle
from clustergym.policies.harmony.problem import Plan, Problem
from clustergym.simulator.base.errors import InputError
from clustergym.tests.support.harmony_reference import best_grouping


def tiny(seed: int) -> Problem:
    """2 to 4 jobs on 4 to 8 machines."""
    rng = np.random.default_rng(seed)
    jobs, machines = int(rng.integers(2, 5)), int(rng.integers(4, 9))
    comm = rng.uniform(1.0, 10.0, jobs)
    return Problem(rng.lognormal(0.0, 0.8, jobs) * comm * machines / 2.0, comm, machines)


def test_it_equals_enumeration_of_all_groupings_of_all_jobs():
    """30 problems: all partitions, all splits of the machines."""
    for seed in range(30):
        problem = tiny(seed)
        best, _ = best_grouping(list(zip(problem.comp.tolist(), problem.comm.tolist(), strict=True)), problem.machines)
        plan = exact(problem, everyone=True)
        assert len(plan.running) == problem.jobs
        assert problem.score(plan) == pytest.approx(float(best), rel=1e-12)


def test_it_equals_enumeration_of_all_groupings_of_any_jobs():
    """30 problems, all subsets of their jobs."""
    left_out = 0
    for seed in range(30):
        problem = tiny(100 + seed)
        jobs = list(zip(problem.comp.tolist(), problem.comm.tolist(), strict=True))
        subsets = [list(some) for n in range(1, len(jobs) + 1) for some in combinations(jobs, n)]
        best = max(float(best_grouping(some, problem.machines)[0]) for some in subsets)
        plan = exact(problem)
        left_out += len(plan.running) < problem.jobs
        assert problem.score(plan) == pytest.approx(best, rel=1e-12)
    assert left_out > 0


def test_the_best_grouping_of_three_jobs():
    """{A, C} on 5 machines and {B} on 3: 1.09821."""
    plan = exact(Problem(np.array([12.0, 6.0, 18.0]), np.array([4.0, 4.0, 3.0]), machines=8), everyone=True)
    assert plan.groups() == [((0, 2), 5), ((1,), 3)]


def test_only_legal_groups_count():
    """Models of 1.36 bytes on machines of 0.5: one job needs 3 machines, two 6; three do not fit on 8."""
    comp, comm = np.array([12.0, 6.0, 18.0]), np.array([4.0, 4.0, 3.0])
    problem = Problem(comp, comm, 8, model_bytes=np.ones(3), ram_bytes=0.5)
    assert problem.is_legal(exact(problem)) and len(exact(problem).running) == 2
    assert exact(problem, everyone=True).groups() == []


def test_the_oracle_says_how_it_answered():
    small, large = harmony_like_problem(0, jobs=8, machines=32), harmony_like_problem(0, jobs=11, machines=32)
    assert oracle(small).how == "exact"
    answer = oracle(large, steps=2_000)
    assert answer.how == "local search"
    assert large.score(answer.plan) >= large.score(algorithm1(large))
    with pytest.raises(InputError, match="at most 10 jobs on 256 machines"):
        exact(large)


def test_no_job_runs_where_there_is_none():
    problem = Problem(np.zeros(0), np.zeros(0), 4)
    assert exact(problem).groups() == algorithm1(problem).groups() == Plan.empty(0).groups() == []


@pytest.mark.reproduction
def test_algorithm_1_is_not_within_2_percent_of_the_optimum_of_small_problems():
    """Paper, Sec. V-F: "up to around 2 %". Here .85 of the optimum on 4 to 8 jobs, and all but few are further off."""
    problems = [small_problem(seed) for seed in range(100)]
    best = [problem.score(exact(problem)) for problem in problems]
    every, printed = (shares(way, problems, best) for way in ("all prefixes", "as printed"))
    assert every.mean() == pytest.approx(0.85, abs=0.03) and (every >= NEAR).mean() < 0.1
    assert printed.mean() < every.mean()
    searched = [problem.score(local_search(problem)) / one for problem, one in zip(problems, best, strict=True)]
    assert np.mean(searched) > 0.99


@pytest.mark.reproduction
def test_8000_jobs_on_10000_machines_take_less_than_half_a_second():
    """Paper: within 5 s. 277 prefixes are tried."""
    timed(small_problem(0))  # compiles
    seconds, found = timed(harmony_like_problem(0, 8_000, 10_000), 1)
    assert found.prefixes == 277 and seconds < 0.5
