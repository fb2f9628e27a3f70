"""Rewards `slo` and `queueing` in regions, all levels alike and by level: worked by hand, and telescoping."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import clustergym
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.workloads import Workload
from clustergym.tests.support.geo_small import A100, demands, random_workload, small_topology

GEO, TABLES = "clustergym/Geo-v0", "clustergym/DataPlacement-v0"
ALL = [1.0] * 7
ONLY = {level: [float(level == one) for one in range(7)] for level in range(7)}


def in_line():
    """Three that need the whole south, at 0, 60 and 120 s, of 600, 300 and 300 s, levels 0, 2 and 6.

    They run at 0 to 600, 600 to 900 and 900 to 1200 s: they wait 0, 540 and 780 s, 1320 s in 1200 s of run times.
    Level 0 may wait 300 s, level 2 1200 s, level 6 as long as it likes: no job is late.
    """
    rows = [([(A100, 16)], [4], level, 0, 0.0) for level in (0, 2, 6)]
    asked = demands(rows)
    return Workload.from_arrays("line", [0.0, 60.0, 120.0], asked.units, [600.0, 300.0, 300.0]).with_geo(asked)


def total(env_id, workload, seed=0, **options):
    """The return where all that can start starts and no job is stopped, and the metrics."""
    given = {"topology": small_topology(), "workload": workload, **options}
    geo = {"brings": 0, "tables": None, "round": 0.0, "preempts": "lower"}
    given |= geo if env_id == GEO else {"scheduler": "mast:scan_s=0"}
    env = gymnasium.make(env_id, **given).unwrapped
    _, info = env.reset(seed=seed)
    found, ended = 0.0, False
    while not ended:
        legal = np.flatnonzero(info["action_mask"]).tolist()
        starts = [c for c in legal if c and env_id == GEO and env.interface.choice(c)[1:] != (-1, 0)]
        starts = [c for c in starts if env.interface.choice(c)[2] == 0]  # in place of none
        _, reward, terminated, truncated, info = env.step((starts or legal)[0])
        found, ended = found + reward, terminated or truncated
    return found, info["metrics"]


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        (None, 1320 / 1200),
        (ALL, 1320 / 1200),
        (ONLY[0], 0.0),
        (ONLY[2], 540 / 300),
        (ONLY[6], 780 / 300),
        ([2.0, 0, 1.0, 0, 0, 0, 3.0], (540 + 3 * 780) / (1200 + 300 + 900)),
    ],
)
def test_queueing_is_the_time_without_units_by_level(weights, expected):
    found, metrics = total(GEO, in_line(), reward="queueing", level_weights=weights)
    assert metrics["queueing_delay_mean"] == 440.0 and found == pytest.approx(-expected, abs=1e-12)


def test_a_workload_that_is_stopped_waits_again():
    """A lower one begins at 0, a higher one takes its place at 60 s for 300 s: 300 s of 900 s of run times."""
    rows = [([(A100, 16)], [4], 6, 0, 0.0), ([(A100, 16)], [4], 0, 1, 0.0)]
    asked = demands(rows, checkpoint_s=0.0)
    workload = Workload.from_arrays("two", [0.0, 60.0], asked.units, [600.0, 300.0]).with_geo(asked)
    for weights, expected in ((None, 300 / 900), (ONLY[6], 300 / 600), (ONLY[0], 0.0)):
        options = {"tables": None, "round": 0.0, "brings": 0, "reward": "queueing", "level_weights": weights}
        env = gymnasium.make(GEO, topology=small_topology(), workload=workload, **options).unwrapped
        _, info = env.reset(seed=0)
        found, ended = 0.0, False
        while not ended:
            legal = np.flatnonzero(info["action_mask"]).tolist()
            starts = [c for c in legal if c and env.interface.choice(c)[1] >= 0]
            _, reward, ended, _, info = env.step(int(starts[0]))
            found += reward
        assert info["metrics"]["preemptions"] == 1.0 and found == pytest.approx(-expected)


@pytest.mark.parametrize(("env_id", "seed"), [(GEO, 1), (GEO, 2), (TABLES, 3)])
def test_a_return_is_what_the_jobs_say(env_id, seed):
    """By the table of jobs: times without units and late starts, level by level, of a random workload."""
    workload = random_workload(seed, jobs=60, span_s=1200.0)
    weights = [4.0, 2.0, 1.0, 0.5, 0.25, 0.0, 0.125]
    level, weight = workload.geo.level, np.array(weights)[workload.geo.level]
    queueing, metrics = total(env_id, workload, reward="queueing", level_weights=weights)
    alike, same = total(env_id, workload, reward="queueing")
    assert same == metrics
    assert alike == pytest.approx(-metrics["queueing_delay_mean"] * 60 / workload.duration_s.sum(), rel=1e-9)
    by_level = [total(env_id, workload, reward="queueing", level_weights=ONLY[one])[0] for one in np.unique(level)]
    parts = [workload.duration_s[level == one].sum() for one in np.unique(level)]
    assert alike == pytest.approx(np.dot(by_level, parts) / sum(parts), rel=1e-9)
    of_levels = np.array([weights[one] for one in np.unique(level)]) * parts
    assert queueing == pytest.approx(np.dot(by_level, of_levels) / (weight * workload.duration_s).sum(), rel=1e-9)
    late, _ = total(env_id, workload, reward="slo")
    assert late == pytest.approx(-metrics["slo_violation_rate"]) and late < 0.0
    limits = [one for one in range(3) if (level == one).any()]
    each = [total(env_id, workload, reward="slo", level_weights=ONLY[one])[0] for one in limits]
    counts = [int((level == one).sum()) for one in limits]
    assert late == pytest.approx(np.dot(each, counts) / sum(counts), rel=1e-9)


def test_an_episode_that_is_cut_off_is_charged_for_waiting_jobs():
    """At 700 s one has ended, the second runs, and the third, which waits since 120 s, would start at once."""
    found, _ = total(GEO, in_line(), reward="queueing", horizon_s=700.0)
    assert found == pytest.approx(-(540 + 580) / 1200)
    late = total(GEO, in_line(), reward="queueing", max_decisions=1)[0]
    assert late < found


def test_a_batch_is_paid_by_level_as_one():
    options = {"topology": small_topology(), "workload": random_workload(4)}
    options |= {"reward": "queueing", "level_weights": ONLY[3]}
    envs = clustergym.make_vec(GEO, 2, **options)
    envs.reset(seed=[5, 6])
    one = gymnasium.make(GEO, **options).unwrapped
    one.reset(seed=6)
    for _ in range(40):
        rewards = envs.step(np.zeros(2, np.int64))[1]
        _, reward, terminated, truncated, _ = one.step(0)
        assert rewards[1] == reward
        if terminated or truncated:
            break


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"reward": "slo", "level_weights": [1.0] * 6}, "expected 7 numbers of at least 0"),
        ({"reward": "slo", "level_weights": [0.0] * 7}, "expected 7 numbers of at least 0"),
        ({"reward": "slo", "level_weights": [-1.0] + [1.0] * 6}, "expected 7 numbers of at least 0"),
        ({"reward": "slo", "level_weights": 3}, "level_weights = 3: expected numbers in a tuple"),
        ({"level_weights": ALL}, "expected a reward of slo, queueing"),
        ({"reward": "slo", "level_weights": ONLY[6]}, "no job of workload 'line' has a level that limits its wait"),
        ({"reward": "queueing", "level_weights": ONLY[5]}, "no job of workload 'line' has a level that counts"),
    ],
)
@pytest.mark.parametrize("env_id", [GEO, TABLES])
def test_weights_that_mean_nothing_are_refused(env_id, options, told):
    with pytest.raises(InputError, match=told):
        gymnasium.make(env_id, topology=small_topology(), workload=in_line(), **options).reset(seed=0)


def test_queueing_is_a_reward_of_regions_alone():
    with pytest.raises(InputError, match="queueing"):
        gymnasium.make("clustergym/Delay-v0", reward="queueing")
