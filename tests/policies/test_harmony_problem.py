"""Harmony's grouping problem and Algorithm 1 by hand; what is no problem is refused in one sentence."""

import numpy as np
import pytest

from clustergym.experiments.reproduce.harmony.harmony_solvers import harmony_like_problem
from clustergym.policies.harmony.harmony import algorithm1, counted
from clustergym.policies.harmony.problem import Plan, Problem
from clustergym.simulator.base.errors import InputError

BALANCED = Problem(np.array([12.0, 6.0, 18.0]), np.array([4.0, 4.0, 3.0]), machines=8)  # A, B, C
FAILING = Problem(np.array([24.0, 8.0, 40.0]), np.array([2.0, 4.0, 5.0]), machines=12)


def first(problem: Problem, jobs: int) -> Problem:
    return Problem(problem.comp[:jobs], problem.comm[:jobs], problem.machines)


def test_a_job_bound_group_goes_round_in_the_time_of_its_longest_job():
    """On 4 machines C takes 18/4 + 3 = 7.5 s, the COMPs of C and B 4.5 + 1.5, their COMMs 3 + 4; A alone 3 + 4.

    CPU: (24 / 7.5 + 12 / 7) / 8; network: (4 x 7 / 7.5 + 4 x 4 / 7) / 8.
    """
    plan = Plan.of(3, [((2, 1), 4), ((0,), 4)])
    assert BALANCED.cycles(plan).tolist() == [7.5, 7.0]
    assert BALANCED.utilisation(plan) == pytest.approx((0.6142857, 0.7523810))
    assert BALANCED.score(plan) == pytest.approx(0.9904762)
    assert BALANCED.speeds(plan).tolist() == [1 / 7, 1 / 7.5, 1 / 7.5]
    assert BALANCED.rates(plan)[0] == pytest.approx((12 / 16 + 4) / 7)


def test_a_job_that_does_not_run_has_no_speed():
    plan = Plan.of(3, [((1,), 8)])
    assert BALANCED.speeds(plan).tolist() == [0.0, 1 / 4.75, 0.0]
    assert BALANCED.score(Plan.empty(3)) == 0.0


def test_algorithm_1_groups_three_jobs():
    """Two groups (imbalances 6.5, 5.0, 6.0 for 1, 2, 3): C takes A, a swap makes it {C, B}, {A}; 4 machines each."""
    plan = algorithm1(BALANCED)
    assert plan.groups() == [((1, 2), 4), ((0,), 4)]
    assert BALANCED.score(plan) == pytest.approx(0.9904762)
    assert BALANCED.score(Plan.of(3, [((0, 2), 5), ((1,), 3)])) == pytest.approx(1.0982143)  # the optimum


@pytest.mark.parametrize(
    ("jobs", "groups", "score"), [(1, [((0,), 8)], 0.6363636), (2, [((0,), 5), ((1,), 3)], 0.6796875)]
)
def test_algorithm_1_scores_the_prefixes(jobs, groups, score):
    """A alone: cycle 12/8 + 4 = 5.5. A and B: two groups; the machines go by COMP over COMM, 3 and 1.5."""
    plan = algorithm1(first(BALANCED, jobs))
    assert plan.groups() == groups
    assert first(BALANCED, jobs).score(plan) == pytest.approx(score)


def test_algorithm_1_is_not_optimal():
    """One group of three: cycle 11, score 1.0455. {A, B} and {C} on 6 machines each: cycles 6 and 11.667, 1.0873."""
    plan = algorithm1(FAILING)
    assert plan.groups() == [((0, 1, 2), 12)]
    assert FAILING.score(plan) == pytest.approx(1.0454545)
    assert FAILING.score(Plan.of(3, [((0, 1), 6), ((2,), 6)])) == pytest.approx(1.0873016)


def test_as_printed_the_last_job_never_runs():
    """Of A, B, C it ends with the prefix A, B. One job in all runs, on all machines."""
    assert algorithm1(BALANCED, stop="printed").groups() == [((0,), 5), ((1,), 3)]
    assert algorithm1(first(BALANCED, 1), stop="printed").groups() == [((0,), 8)]


def test_as_printed_the_grouping_that_failed_is_returned():
    """A alone is busy for 9 of 10 s, and sends for 1: .95. With B, 20 s of COMM, 9.1 and 21 of 21 s: .9333, the end."""
    problem = Problem(np.array([72.0, 0.8, 32.0]), np.array([1.0, 20.0, 1.0]), machines=8)
    scheduled = counted(problem, stop="printed")
    assert scheduled.prefixes == 2
    assert scheduled.plan.groups() == [((0, 1), 8)]
    assert problem.score(scheduled.plan) == pytest.approx(0.9333333)
    assert problem.score(Plan.of(3, [((0,), 8)])) == pytest.approx(0.95)


def test_balancing_sums_makes_another_number_of_groups():
    """8 x 11 / 36 = 2.4 groups for A, B, C; of 10 + 100 machine-seconds and 10 + 1 s on 10 machines, 1."""
    assert len(algorithm1(BALANCED, balance="group").machines) == 2
    problem = Problem(np.array([10.0, 100.0]), np.array([10.0, 1.0]), machines=10)
    assert len(algorithm1(problem, balance="group").machines) == 1


def test_groups_whose_models_exceed_memory_are_not_taken():
    """A model of 2 bytes is 2.72 in memory: 8 machines of 1 byte hold A and B on 5 and 3, but not C with B on 4."""
    problem = Problem(BALANCED.comp, BALANCED.comm, 8, model_bytes=np.array([2.0, 2.0, 2.0]), ram_bytes=1.0)
    plan = algorithm1(problem)
    assert plan.groups() == [((0,), 5), ((1,), 3)]
    assert problem.is_legal(plan) and not problem.is_legal(algorithm1(BALANCED))
    assert (
        algorithm1(Problem(BALANCED.comp, BALANCED.comm, 8, model_bytes=np.full(3, 9.0), ram_bytes=1.0)).groups() == []
    )


def test_every_machine_is_given_out_and_every_job_is_in_one_group():
    problem = harmony_like_problem(3, jobs=400, machines=333)
    plan = algorithm1(problem)
    assert plan.machines.sum() == 333 and plan.machines.min() >= 1
    assert sorted(set(plan.group_of.tolist()) - {-1}) == list(range(len(plan.machines)))


def test_beyond_200_jobs_prefixes_grow_by_a_twentieth():
    """1 to 200, then 210, 220, 231, 242, 254, 266, 279, 292 and 300."""
    assert counted(harmony_like_problem(0, jobs=300)).prefixes == 209


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"comp": np.array([1.0, 0.0])}, "comp of job 1 is 0.0: expected more than 0"),
        ({"comm": np.array([1.0])}, "comm has shape (1,): expected one value for each of 2 jobs"),
        ({"machines": 0}, "machines=0"),
        ({"beta": -1.0}, "beta=-1.0"),
        ({"ram_bytes": 0.0}, "ram_bytes=0.0"),
        ({"model_bytes": np.array([1.0, -1.0])}, "model_bytes of job 1 is -1.0: expected at least 0"),
    ],
)
def test_what_is_no_problem_is_refused(change, said):
    right = {"comp": np.ones(2), "comm": np.ones(2), "machines": 4}
    with pytest.raises(InputError) as error:
        Problem(**(right | change))
    assert said in str(error.value)


@pytest.mark.parametrize("words", [{"stop": "never"}, {"balance": "none"}])
def test_unknown_words_are_refused(words):
    with pytest.raises(InputError, match="expected one of"):
        algorithm1(BALANCED, **words)
