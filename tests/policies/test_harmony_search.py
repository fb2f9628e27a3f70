"""Local search for a grouping: objectives by hand, what moves cost, memory, seeds."""

import os
import subprocess
import sys

import numpy as np
import pytest

from clustergym.experiments.reproduce.harmony.harmony_solvers import harmony_like_problem, small_problem
from clustergym.policies.harmony.harmony import algorithm1
from clustergym.policies.harmony.local_search import gains_of, local_search, searched, worth, worth_of_moves
from clustergym.policies.harmony.oracle import exact
from clustergym.policies.harmony.problem import Plan, Problem
from clustergym.simulator.base.errors import InputError

PAIR = Problem(np.array([16.0, 16.0]), np.array([1.0, 3.0]), machines=16)  # alone on 16 machines 2 s and 4 s


def groups_of(plan: Plan) -> set[tuple[tuple[int, ...], int]]:
    return set(plan.groups())


def test_it_finds_what_algorithm_1_does_not():
    """Algorithm 1 puts all three into one group, 1.0455; {A, B} and {C} on 6 machines each are the best, 1.0873."""
    problem = Problem(np.array([24.0, 8.0, 40.0]), np.array([2.0, 4.0, 5.0]), machines=12)
    assert groups_of(local_search(problem)) == {((0, 1), 6), ((2,), 6)}


def test_rates_are_speeds_over_those_alone():
    """Both in a group of 16 machines: cycle 1 + 3 = 4 s, rates 2/4 and 4/4; apart on 8 each: 2/3 and 4/5."""
    gains = gains_of(PAIR, "rates")
    together, apart = Plan.of(2, [((0, 1), 16)]), Plan.of(2, [((0,), 8), ((1,), 8)])
    assert worth(PAIR, together, gains) == pytest.approx(1.5)
    assert worth(PAIR, apart, gains) == pytest.approx(2 / 3 + 4 / 5)
    assert groups_of(local_search(PAIR, "rates")) == groups_of(exact(PAIR, "rates")) == {((0, 1), 16)}


def test_with_known_remaining_times_a_job_about_to_end_comes_first():
    """Two jobs of 1 s COMM and 1 s COMP on 16 machines: with a minute and 100 hours left the first has the machines."""
    problem = Problem(np.array([160.0, 160.0]), np.array([0.1, 0.1]), machines=16)
    left_s = np.array([60.0, 360_000.0])
    plan = local_search(problem, "known", remaining_s=left_s, power=1.0)
    assert plan.members(int(plan.group_of[0])) == [0] and plan.machines[plan.group_of[0]] >= 15
    gains = gains_of(problem, "known", left_s, power=1.0)
    assert gains[0, 0] / gains[1, 0] == pytest.approx(6000.0)


@pytest.mark.parametrize("objective", ["utilisation", "rates", "known"])
def test_it_never_ends_below_its_start_and_the_same_seed_gives_the_same_plan(objective):
    left_s = np.linspace(100.0, 10_000.0, 30)
    for seed in range(5):
        problem = harmony_like_problem(seed, jobs=30, machines=40, ratio_sigma=0.5)
        gains = gains_of(problem, objective, left_s)
        for start in (Plan.empty(30), algorithm1(problem, stop="printed")):
            found = searched(problem, objective, start, steps=1_000, seed=seed, remaining_s=left_s)
            again = searched(problem, objective, start, steps=1_000, seed=seed, remaining_s=left_s)
            assert found.worth >= worth(problem, start, gains)
            assert found.worth == pytest.approx(worth(problem, found.plan, gains))
            assert problem.is_legal(found.plan) and found.plan.machines.min() >= 1
            assert found.plan.group_of.tolist() == again.plan.group_of.tolist()
            assert found.plan.machines.tolist() == again.plan.machines.tolist()


def test_it_comes_near_the_optimum_of_small_problems():
    ratios = []
    for seed in range(20):
        problem = small_problem(seed)
        ratios.append(problem.score(local_search(problem)) / problem.score(exact(problem)))
    assert max(ratios) <= 1.0 + 1e-12 and np.mean(ratios) > 0.99


def test_models_that_exceed_memory_are_kept_apart():
    """Each model needs 1.36 bytes: on 16 machines of 0.16 both fit on none, one on 9 or more."""
    problem = Problem(PAIR.comp, PAIR.comm, 16, model_bytes=np.ones(2), ram_bytes=0.16)
    plan = local_search(problem, "rates")
    assert problem.is_legal(plan) and len(plan.running) == 1
    with pytest.raises(InputError, match="exceed memory"):
        local_search(problem, start=Plan.of(2, [((0, 1), 16)]))


def test_a_move_that_costs_more_than_it_brings_is_not_made():
    """From two groups of 8, worth 1.4667, one group of 16 is worth 1.5; both jobs move, so not for 5 % of that."""
    apart = Plan.of(2, [((0,), 8), ((1,), 8)])
    assert groups_of(local_search(PAIR, "rates", apart, move_worth=0.01)) == {((0, 1), 16)}
    assert groups_of(local_search(PAIR, "rates", apart, move_worth=0.05)) == {((0,), 8), ((1,), 8)}


def test_dearer_moves_are_fewer():
    """Jobs that still run, but in another group or on other machines: none where a move costs all."""
    problem = harmony_like_problem(4, jobs=24, machines=32, ratio_sigma=0.4)
    start = algorithm1(problem)
    moved = []
    for move_worth in (0.0, 0.05, 0.3, 1.0):
        plan = local_search(problem, "rates", start, seed=1, move_worth=move_worth)
        moves = 0
        for job in start.running.tolist():
            group = int(plan.group_of[job])
            begun = int(start.group_of[job])
            stays = plan.continues[group] == begun and plan.machines[group] == start.machines[begun]
            moves += group >= 0 and not stays
        moved.append(moves)
    assert moved[0] > moved[1] >= moved[2] >= moved[3] == 0


def test_the_worth_of_moves_is_their_share_of_the_time():
    assert worth_of_moves(60.0, 600.0) == pytest.approx(0.1)
    assert worth_of_moves(60.0, 30.0) == 1.0
    with pytest.raises(InputError):
        worth_of_moves(60.0, 0.0)


def test_a_plan_says_which_groups_go_on():
    plan = local_search(PAIR, "rates", Plan.of(2, [((0,), 8), ((1,), 8)]), steps=0)
    assert plan.continues is not None and plan.continues.tolist() == [0, 1]
    assert local_search(PAIR, steps=0).continues is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"objective": "speed"}, "objective=speed: expected one of utilisation, rates, known"),
        ({"objective": "known"}, "needs remaining_s"),
        ({"move_worth": 2.0}, "move_worth=2.0"),
    ],
)
def test_wrong_words_are_refused(words, said):
    with pytest.raises(InputError) as error:
        local_search(PAIR, **words)
    assert said in str(error.value)


FOUND = """
from clustergym.experiments.reproduce.harmony.harmony_solvers import harmony_like_problem
from clustergym.policies.harmony.local_search import searched
from clustergym.policies.harmony.oracle import exact
for seed in range(3):
    problem = harmony_like_problem(seed, jobs=20, machines=30, ratio_sigma=0.5)
    found = searched(problem, "rates", steps=800, seed=seed)
    print(found.plan.groups(), found.worth.hex(), found.taken)
problem = harmony_like_problem(0, jobs=4, machines=8)
print(exact(problem).groups())
"""


def test_it_finds_the_same_compiled_or_not():
    """Bit for bit."""

    def found(**flags: str) -> str:
        outcome = subprocess.run(
            [sys.executable, "-c", FOUND],
            check=True,
            capture_output=True,
            text=True,
            env=os.environ | flags,
            timeout=300,
        )
        return outcome.stdout

    assert found(NUMBA_DISABLE_JIT="1") == found(NUMBA_DISABLE_JIT="0") != ""
