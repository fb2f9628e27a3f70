"""An episode that is cut off pays in its last step for the jobs that it leaves; one that ends by itself does not.

Worked by hand on one GPU, with jobs of 10, 20 and 30 s that come at 0, 0 and 40, 60 s of work in all.
"""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
import pytest

from clustergym import policies
from clustergym.envs.registration import ENVIRONMENTS
from clustergym.simulator.workloads import Workload

ONE_GPU = "flat:machines=1,gpus_per_machine=1"
SIZES = {  # small, with deadlines where a workload has some
    "Delay": {"topology": "dally:racks=2,machines=2", "workload": "poisson:jobs=30,backlog=10,deadlines=0.5/3"},
    "Sharing": {"workload": "philly-sample:jobs=20,hours=1,deadlines=0.5/3"},
    "TimeShift": {"workload": "cassini-poisson:jobs=8,load=1.5,deadlines=0.5/3"},
    "Geo": {
        "topology": "mast:regions=4,gpus=256",
        "workload": "mast-like:jobs=30,days=0.2,tables=20",
        "tables_every_s": 7200.0,
    },
    "DataPlacement": {
        "topology": "mast:regions=4,gpus=256",
        "workload": "mast-like:jobs=30,days=0.2,tables=20",
        "tables_every_s": 7200.0,
    },
    "Grouping": {"workload": "harmony-like:jobs=6,gap_min=15"},
}


def three(deadline_s=(math.inf,) * 3, **options: Any) -> Any:
    """The environment of the three jobs, reset."""
    jobs = Workload.from_arrays("three", [0.0, 0.0, 40.0], [1] * 3, [10.0, 20.0, 30.0], deadline_s=list(deadline_s))
    env = gymnasium.make("clustergym/Delay-v0", topology=ONE_GPU, workload=jobs, network="none", **options).unwrapped
    env.reset(seed=0)
    return env


def cut_by_hand(env: Any) -> float:
    """The return of: start the job of 10 s at 0, that of 20 s at 10, and so on, until the episode ends."""
    total, ended = 0.0, False
    while not ended:
        _, reward, terminated, truncated, _ = env.step((1, 0, 0))
        total, ended = total + reward, terminated or truncated
    return total


@pytest.mark.parametrize(
    ("reward", "at_horizon", "after_one"),
    [
        ("jct", -(10 + 30 + 30) / 60, -(10 + 30 + 30) / 60),
        ("makespan", -70 / 60, -70 / 60),
        ("slowdown", -(1 + 30 / 20 + 1) / 3, -(1 + 30 / 20 + 1) / 3),
        ("slo", -1 / 2, -1 / 2),
    ],
)
def test_what_is_left_is_charged_under_every_reward(reward, at_horizon, after_one):
    """Cut at 20, 10 s of the second job left: it would end at 30, the third at 70. One decision: cut at 10, the same.

    Due at 29 and at 70: the second job misses its deadline, the third does not.
    """
    due = (math.inf, 29.0, 70.0)
    assert cut_by_hand(three(due, reward=reward, horizon_s=20.0)) == pytest.approx(at_horizon)
    assert cut_by_hand(three(due, reward=reward, max_decisions=1)) == pytest.approx(after_one)


def test_at_the_horizon_each_ends_by_itself_but_after_too_many_decisions_one_after_another():
    """Three jobs of 10 s at 0, one GPU. Horizon 5: ends at 10, 15 and 15. One decision, so cut at 10: 10, 20 and 30."""
    jobs = Workload.from_arrays("three", [0.0] * 3, [1] * 3, [10.0] * 3)
    make = {"topology": ONE_GPU, "workload": jobs, "network": "none"}
    for cut, ends in (({"horizon_s": 5.0}, (10, 15, 15)), ({"max_decisions": 1}, (10, 20, 30))):
        env = gymnasium.make("clustergym/Delay-v0", **make, **cut).unwrapped
        env.reset(seed=0)
        assert cut_by_hand(env) == pytest.approx(-sum(ends) / 30)


def test_the_horizon_wins_where_both_cut():
    """Three jobs of 10 s on one GPU, horizon 5, one decision: each ends by itself, not one after another."""
    jobs = Workload.from_arrays("three", [0.0] * 3, [1] * 3, [10.0] * 3)
    make = {"topology": ONE_GPU, "workload": jobs, "network": "none"}
    env = gymnasium.make("clustergym/Delay-v0", **make, horizon_s=5.0, max_decisions=1).unwrapped
    env.reset(seed=0)
    assert cut_by_hand(env) == pytest.approx(-(10 + 15 + 15) / 30)


def ends_s(env: Any, is_horizon: bool) -> np.ndarray:
    """When the jobs of an episode that is over end, those that it leaves as reward.py has it."""
    view, work = env.view, env.simulator.workload
    found, free_s = np.array(env.simulator.jobs()["finish_s"], float), view.now_s
    for job in np.flatnonzero(~(found >= 0.0)).tolist():
        start_s = max(view.now_s, float(work.arrival_s[job]), -math.inf if is_horizon else free_s)
        found[job] = free_s = start_s + view.remaining_s(job)
    return found


@pytest.mark.parametrize("cut", [{"horizon_s": 4000.0}, {"max_decisions": 7}, {}])
@pytest.mark.parametrize("reward", ["jct", "makespan", "slowdown"])
@pytest.mark.parametrize("name", SIZES)
def test_the_return_is_that_of_these_ends(name, reward, cut):
    """Always 0, in every environment: the return is minus the metric of the ends, in plain Python."""
    env: Any = gymnasium.make(f"clustergym/{name}-v0", reward=reward, **SIZES[name], **cut).unwrapped
    env.reset(seed=3)
    total, ended = 0.0, False
    while not ended:
        _, paid, terminated, truncated, _ = env.step([0] * env.form.outer_parts)
        total, ended = total + paid, terminated or truncated
    work, s = env.simulator.workload, env.simulator.state
    alone_s = np.array([env.view.isolated_s(job) for job in range(len(work))])
    end_s = ends_s(env, "horizon_s" in cut)
    jct_s = end_s - work.arrival_s
    expected = {
        "jct": jct_s.sum() / alone_s.sum(),
        "makespan": (end_s.max() - work.arrival_s.min()) / ((alone_s * work.gpus).sum() / s.n_gpus),
        "slowdown": (jct_s / alone_s).mean(),
    }
    assert total == pytest.approx(-expected[reward], rel=1e-9)


@pytest.mark.parametrize("cut", [{"horizon_s": 20_000.0}, {"max_decisions": 7}])
def test_a_reference_is_let_off_as_the_player_is(cut):
    """Return: 1 - own mean JCT / that of the reference; at the horizon both end as if alone. FIFO against itself: 0."""
    options = {**SIZES["Delay"], **cut}
    env: Any = gymnasium.make("clustergym/Delay-v0", reference="fifo", **options).unwrapped
    env.reset(seed=3)
    policy, total, ended = policies.make("fifo"), 0.0, False
    while not ended:
        _, paid, terminated, truncated, _ = env.step(env.act_of(policy))
        total, ended = total + paid, terminated or truncated
    if "horizon_s" in cut:
        assert total == pytest.approx(0.0, abs=1e-9)
        return
    work = env.simulator.workload
    whole: Any = gymnasium.make("clustergym/Delay-v0", **SIZES["Delay"]).unwrapped
    whole.reset(seed=3)
    policy, ended = policies.make("fifo"), False
    while not ended:
        ended = whole.step(whole.act_of(policy))[2]
    jct_s, theirs_s = ends_s(env, False) - work.arrival_s, whole.simulator.jobs()["finish_s"] - work.arrival_s
    assert total == pytest.approx(1.0 - jct_s.sum() / theirs_s.sum(), rel=1e-9)


def test_every_environment_is_here():
    assert {f"clustergym/{name}-v0" for name in SIZES} == set(ENVIRONMENTS)


# Of the version before anything was charged at a cut: the policy, and the returns of seeds 0 and 1, to the bit.
# Sharing: of the version in which `sjf-bsbf` was mended. TimeShift: of the one with profiles from Table 3's low ends.
WHOLE_GANGS = "themis+cassini:workers=fixed,equal=locality"
BEFORE = {
    ("Delay", "srtf", "jct"): [-2.198083111739821, -1.7529170535323344],
    ("Delay", "srtf", "makespan"): [-2.8832910090921384, -2.0251613024077373],
    ("Delay", "srtf", "slowdown"): [-1.770858239880146, -1.4623172489581775],
    ("Delay", "srtf", "slo"): [-0.43333333333333335, -0.4],
    ("Sharing", "sjf-bsbf", "jct"): [-1.522103484262733, -1.1616110093886804],
    ("Sharing", "sjf-bsbf", "makespan"): [-1.0692653886320198, -1.424333172828797],
    ("Sharing", "sjf-bsbf", "slowdown"): [-1.7254547005881824, -1.1689510700476975],
    ("Sharing", "sjf-bsbf", "slo"): [-0.35, -0.25],
    ("TimeShift", WHOLE_GANGS, "jct"): [-1.155022178002421, -1.6628433576461448],
    ("TimeShift", WHOLE_GANGS, "makespan"): [-1.4664078680874202, -1.3201578365273365],
    ("TimeShift", WHOLE_GANGS, "slowdown"): [-1.3233204641238412, -2.4584242914838517],
    ("TimeShift", WHOLE_GANGS, "slo"): [-0.125, -0.625],
}
WINDOWS = {"TimeShift": {"slots": 4, "running_slots": 6, "scheduler": "themis:workers=fixed,equal=locality"}}


@pytest.mark.parametrize(("name", "word", "reward"), BEFORE)
def test_an_episode_that_ends_by_itself_returns_what_it_did(name, word, reward):
    window = WINDOWS.get(name, {"slots": 8, "running_slots": 4})
    env: Any = gymnasium.make(f"clustergym/{name}-v0", reward=reward, **SIZES[name], **window).unwrapped
    found = []
    for seed in (0, 1):
        env.reset(seed=seed)
        policy, total, terminated = policies.make(word), 0.0, False
        while not terminated:
            _, paid, terminated, *_ = env.step(env.act_of(policy))
            total += paid
        found.append(total)
    assert found == BEFORE[name, word, reward]
