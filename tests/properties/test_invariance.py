"""What must not change a run: the unit of an iteration, the hour at which the clock is set, and the ids of equal jobs.

Every registered policy is played in every environment that it is registered for, so that a new one is covered when it
is registered. It must obey all three laws unless `EXCLUDED` names it with the reason, and its second law is the strict
one, any amount, unless `CLOCKS` names its clocks.

The third law looks empty, as equal jobs that change places leave the arrays as they were; it says that nothing looks at
the ids themselves, and that reading a trace keeps its order.
"""

from __future__ import annotations

import math
from fnmatch import fnmatch

import numpy as np
import pytest

from clustergym.experiments.settings.evaluation_setting import workload_of
from clustergym.policies import make
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.workloads import Workload
from clustergym.tests.support import invariance
from clustergym.tests.support.invariance import (
    UNITS,
    Player,
    exchanged,
    has_units,
    in_units,
    later,
    pairs,
)

UNIT, ORIGIN, IDS = "unit", "origin", "ids"
LAWS = (UNIT, ORIGIN, IDS)
DAY_S = 86_400
ANY_S = 1_234.567

# Policy: seconds of its clocks, that stand at multiples of them whenever the first job arrives.
CLOCKS = {
    "las": (1,),  # demotions are noticed every second
    "tiresias": (1,),
    "tiresias-rounds": (60,),
    "pollux": (60,),
    "pollux+cassini": (60,),
    "mast": (34, DAY_S),  # passes; credits and the slow path count in days
    "federated": (34, DAY_S),
    "global": (34, DAY_S),
    "scope": (34, DAY_S),
    "static": (34, DAY_S),  # the scheduler under the slow paths is mast
    "tetris-v1": (34, DAY_S),
    "tetris-v2": (34, DAY_S),
    "milp": (34, DAY_S),
    "everywhere": (34, DAY_S),
}
# The same of policies that have these clocks in regions alone: the passes and the slow path of mast.
IN_REGIONS = dict.fromkeys(("random-start", "greedy", "sjf", "srtf", "srsf", "bring"), (34, DAY_S))

# Environment, policy (with wildcards), law: why it does not hold.
EXCLUDED = {
    ("clustergym/TimeShift-v0", "*", UNIT): "contention: an iteration is what a job sends and computes, not a unit",
    ("clustergym/TimeShift-v0", "*", ORIGIN): (
        "contention: every model's period is a clock of its own, time-shifts stand on its multiples, and the periods "
        "have no common one; of phases that begin together it is a matter of rounding which is the first to send"
    ),
    ("clustergym/Sharing-v0", "pollux", UNIT): "goodput: an iteration is a batch of samples that trains the model",
}

# Of the workloads that the others play, those that slow policies do: one in so many.
ONE_IN = {
    ("clustergym/TimeShift-v0", "best-rotations"): 100,
    ("clustergym/TimeShift-v0", "lookahead"): 100,
    ("clustergym/TimeShift-v0", "*"): 20,
    ("clustergym/Sharing-v0", "pollux"): 20,
    ("clustergym/DataPlacement-v0", "milp"): 20,
}


def reason_for(env_id: str, policy: str, law: str) -> str:
    """Why the law is not asked of a policy; empty: it is."""
    found = [why for (env, name, of), why in EXCLUDED.items() if of == law and env == env_id and fnmatch(policy, name)]
    return found[0] if found else ""


def one_in(env_id: str, policy: str) -> int:
    return next((n for (env, name), n in ONE_IN.items() if env == env_id and fnmatch(policy, name)), 1)


def shift_s(env_id: str, policy: str, seed: int) -> float:
    """By how much the clock is set: any amount, or a common multiple of the policy's clocks."""
    clocks = {**CLOCKS, **IN_REGIONS} if env_id == "clustergym/Geo-v0" else CLOCKS
    if policy in clocks:
        return float(math.lcm(*clocks[policy]) * (1 + seed % 3))
    return ANY_S * (1 + seed % 3)


def violations(player, policy: str, seed: int, units) -> list[str]:
    """What changes in the run of one random workload that must not."""
    env_id, workload = player.env_id, player.workload(seed)
    laws = [law for law in LAWS if not reason_for(env_id, policy, law)]
    expected, found = player.play(workload, seed), []
    if UNIT in laws:
        for factor in units:
            found.append((f"unit x {factor:g}", expected.differs(player.play(in_units(workload, factor), seed))))
    if ORIGIN in laws:
        by_s = shift_s(env_id, policy, seed)
        found.append((f"origin + {by_s:g} s", expected.differs(player.play(later(workload, by_s), seed))))
    if IDS in laws:
        other = player.play(exchanged(workload, np.random.default_rng(seed)), seed)
        found.append(("ids", expected.sorted().differs(other.sorted())))
    return [f"{env_id} {policy}, workload {seed}, {what}: {how}" for what, how in found if how]


@pytest.mark.parametrize(
    ("env_id", "policy"),
    # They play so much out that one workload takes a minute.
    [pytest.param(*pair, marks=[pytest.mark.slow] * (pair[1] in ("best-rotations", "lookahead"))) for pair in pairs()],
)
def test_a_few_random_workloads(env_id, policy):
    player = Player(env_id, policy)
    few = 1 if one_in(env_id, policy) > 1 else 4
    found = [text for seed in range(few) for text in violations(player, policy, seed, [UNITS[seed % len(UNITS)]])]
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("env_id", dict(pairs()))
def test_two_hundred_random_workloads(env_id, capsys):
    found, runs = [], 0
    for policy in [name for env, name in pairs() if env == env_id]:
        player = Player(env_id, policy)
        for seed in range(0, 200, one_in(env_id, policy)):
            found += violations(player, policy, seed, UNITS)
            runs += 1
    with capsys.disabled():
        print(f"\n{env_id}: {len(found)} violations in {runs} pairs of a policy and one of 200 random workloads")
        for (env, policy, law), why in EXCLUDED.items():
            if env == env_id:
                print(f"  not asked: {law} of {policy}: {why}")
        for policy in [name for env, name in pairs() if env == env_id and one_in(env, name) > 1]:
            print(f"  {policy}: {200 // one_in(env_id, policy)} of the 200")
    assert not found, "\n".join(found)


def test_exclusions_and_clocks_are_of_registered_policies():
    known = pairs()
    for env_id, policy, law in EXCLUDED:
        assert law in LAWS
        assert any(env == env_id and fnmatch(name, policy) for env, name in known), (env_id, policy)
    for env_id, policy in ONE_IN:
        assert any(env == env_id and fnmatch(name, policy) for env, name in known), (env_id, policy)
    assert set(CLOCKS) <= {name for _, name in known}


def test_contention_is_where_iterations_are_no_unit():
    """An environment on a network where iterations are played must say so above, and only such a one."""
    excluded = {env_id for env_id, policy, law in EXCLUDED if (policy, law) == ("*", UNIT)}
    assert excluded == {env_id for env_id, _ in pairs() if not has_units(env_id)}


def test_ends_that_coincide_are_one_instant_in_every_unit():
    """Sharing-v0's default, fifo, seed 0: two jobs end together; a gang of 16 must find the GPUs of both.

    In another unit their ends differ by 1e-12 s. Jobs of 6 GPUs that passed it meanwhile made the mean JCT 9,112 s.
    """
    player = Player("clustergym/Sharing-v0", "fifo")
    workload = workload_of(invariance.setting_of("clustergym/Sharing-v0"), 0)
    expected = player.play(workload, 0)
    for factor in UNITS:
        assert not expected.differs(player.play(in_units(workload, factor), 0))
    assert float((expected.end_s - (workload.arrival_s - workload.arrival_s[0])).mean()) == pytest.approx(24_986, abs=1)


def test_a_round_is_met_by_what_ends_a_rounding_behind_it():
    """Rounds of 0.3 s; three iterations of 0.1 s end at 0.30000000000000004 s: the next job starts then, not at 0.6."""
    simulator = Simulator("flat:machines=1,gpus_per_machine=1", rule=make("fifo:round=0.3").rule)
    jobs = Workload.from_arrays("two", [0.0] * 2, [1, 1], [0.3, 0.3], iterations=[3.0, 3.0], iteration_s=[0.1, 0.1])
    simulator.reset(jobs)
    simulator.run()
    assert simulator.state.first_start_s[:2].tolist() == [0.0, pytest.approx(0.3)]


def test_durations_that_are_equal_but_for_rounding_are_a_tie():
    """0.3 s as 3 x 0.1 s is 0.30000000000000004 s, but the first of two such jobs is the first, also under sjf."""
    simulator = Simulator("flat:machines=1,gpus_per_machine=1", rule=make("sjf").rule)
    jobs = Workload.from_arrays("two", [0.0, 0.0], [1, 1], [0.3, 0.3], iterations=[3.0, 1.0], iteration_s=[0.1, 0.3])
    simulator.reset(jobs)
    simulator.run()
    assert simulator.state.first_start_s[:2].tolist() == [0.0, pytest.approx(0.3)]
