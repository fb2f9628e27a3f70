"""Muri's interleaving by hand: rounds, efficiency, and which pairs a matching takes."""

import numpy as np
import pytest

from clustergym.experiments.reproduce.harmony.harmony_solvers import harmony_like_problem
from clustergym.policies.harmony.muri import efficiency, muri, round_s
from clustergym.policies.harmony.problem import Problem
from clustergym.simulator.base.errors import InputError

STAGES = np.array([[0.0, 2.0, 1.0], [0.0, 1.0, 2.0], [3.0, 1.0, 2.0]])  # load, COMP, COMM


def test_a_round_is_the_sum_of_the_longest_stages_in_the_best_order():
    """The second job one stage behind the first: 2 + 2 + 1 = 5. The first behind the second: 1 + 1 + 2 = 4."""
    assert round_s(STAGES, (0,)) == 3.0
    assert round_s(STAGES, (0, 1)) == round_s(STAGES, (1, 0)) == 4.0


def test_efficiency_is_the_time_in_use_over_three_resources():
    """Alone a third; two jobs of 3 s each in rounds of 4 s: 6 / 12."""
    assert efficiency(STAGES, (0,)) == pytest.approx(1 / 3)
    assert efficiency(STAGES, (0, 1)) == pytest.approx(0.5)


def test_a_matching_pairs_those_that_interleave():
    """Two that compute and two that send, on two groups of 4 machines: each pair has one of both."""
    problem = Problem(np.array([40.0, 40.0, 4.0, 4.0]), np.array([1.0, 1.0, 10.0, 10.0]), machines=8)
    groups = muri(problem, machines_each=4).groups()
    assert [machines for _, machines in groups] == [4, 4]
    assert all(len(members) == 2 and min(members) < 2 <= max(members) for members, _ in groups)


def test_jobs_are_merged_only_while_they_do_not_fit():
    """Five jobs, four groups of 25 machines: one pair."""
    groups = muri(harmony_like_problem(0, jobs=5), machines_each=25).groups()
    assert sorted(len(members) for members, _ in groups) == [1, 1, 1, 2]


def test_no_more_than_three_jobs_share_a_group():
    """80 jobs, six groups of 16 machines: two rounds leave groups of two and three, of the first 18 jobs."""
    plan = muri(harmony_like_problem(1))
    assert plan.machines.tolist() == [16] * 6
    assert plan.running.max() < 18 and max(len(members) for members, _ in plan.groups()) <= 3


def test_groups_whose_models_exceed_memory_are_not_formed():
    problem = Problem(np.ones(3) * 16, np.ones(3), 16, model_bytes=np.array([1.0, 1.0, 20.0]), ram_bytes=0.1)
    assert muri(problem).groups() == [((0,), 16)]


def test_wrong_sizes_are_refused():
    problem = harmony_like_problem(0, jobs=3, machines=8)
    with pytest.raises(InputError, match="machines_each=16: expected 1 to the 8"):
        muri(problem)
    with pytest.raises(InputError, match="load_s has shape"):
        muri(problem, load_s=np.ones(2), machines_each=4)
