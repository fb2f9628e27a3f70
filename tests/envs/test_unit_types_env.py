"""Geo-v0 where workloads accept several types of GPUs that differ in speed."""

from __future__ import annotations

import math
from functools import partial

import gymnasium
import numpy as np
import pytest

from clustergym import policies
from clustergym.envs.geo.columns import CANDIDATES, QUEUE
from clustergym.simulator.workloads import Workload
from clustergym.tests.support.env_terms import differences
from clustergym.tests.support.geo_small import A100, V100, choosing_workload, demands, small_topology
from clustergym.tests.support.paths import ROOT

GEO = "clustergym/Geo-v0"
SPEEDS = str(ROOT / "tests" / "data" / "unit_speeds.csv")  # fast: A100 2, V100 4; others: V100 .5
SMALL = {"topology": small_topology(), "tables": None, "round": 0.0, "slots": 4, "running_slots": 4, "brings": 0}
EAST_A, EAST_B, EAST_CPU, WEST_V, WEST_CPU, WEST_A, SOUTH = range(7)


def by_hand(rows, speeds=SPEEDS, **options):
    asked = demands(rows, quota=np.full((2, 2), 10**9))
    model = np.full(len(rows), "fast", object)
    told = np.zeros(len(rows)), asked.units, np.full(len(rows), 1000.0)
    workload = Workload.from_arrays("by hand", *told, model=model).with_geo(asked)
    env = gymnasium.make(GEO, **{**SMALL, "workload": workload, "speeds": speeds, **options}).unwrapped
    return env, env.reset(seed=0)[0]


def shown(env, observation):
    """The row of each legal start by workload, cluster and way."""
    rows = observation["candidates"].reshape(-1, len(CANDIDATES))
    places = np.flatnonzero(env.action_masks()).tolist()
    return {env.interface.choice(place): rows[place] for place in places if env.interface.choice(place) is not None}


def test_a_start_is_offered_on_every_accepted_type_with_its_run_time_there():
    env, observation = by_hand([([((A100, V100), 8)], [], 3, 0, 0.0), ([(A100, 8)], [], 3, 0, 0.0)])
    found = shown(env, observation)
    assert {choice[:2] for choice in found if choice[1] >= 0} == {
        *((0, cluster) for cluster in (EAST_A, EAST_B, WEST_V, WEST_A, SOUTH)),
        *((1, cluster) for cluster in (EAST_A, EAST_B, WEST_A, SOUTH)),
    }

    def seconds(value):
        return math.expm1(value * float(env.interface.window.log_horizon))

    lefts = {choice: seconds(row[CANDIDATES.time_left]) for choice, row in found.items()}
    assert lefts[0, WEST_V, 0] == pytest.approx(250.0, rel=1e-4)
    assert lefts[0, EAST_A, 0] == pytest.approx(500.0, rel=1e-4)
    queue = observation["queue"].reshape(-1, len(QUEUE))[:2, QUEUE.time_left]
    assert [seconds(value) for value in queue] == pytest.approx([250.0, 500.0], rel=1e-4)  # on the fastest accepted
    assert lefts[1, EAST_A, 0] == pytest.approx(500.0, rel=1e-4)
    place = next(c for c in np.flatnonzero(env.action_masks()).tolist() if env.interface.choice(c) == (0, WEST_V, 0))
    env.step((place,))
    assert env.view.clusters_of(0) == [WEST_V]


def test_in_place_of_others_is_offered_where_they_hold_the_type():
    env, _ = by_hand([([(V100, 32)], [], 6, 0, 0.0), ([((A100, V100), 16)], [], 0, 0, 0.0)])

    def start(job, cluster):
        masks = np.flatnonzero(env.action_masks()).tolist()
        env.step((next(c for c in masks if env.interface.choice(c) == (job, cluster, 0)),))

    start(0, WEST_V)
    masks = np.flatnonzero(env.action_masks()).tolist()
    ways = {env.interface.choice(c) for c in masks} - {None}
    assert ways >= {(1, EAST_A, 0), (1, SOUTH, 0)} and not {(1, WEST_V, 0)} & ways  # it started at this very instant


def test_the_layout_is_the_same_with_types_and_speeds_and_without():
    spaces = [
        gymnasium.make(GEO, **SMALL, workload=choosing_workload(1), **more).observation_space
        for more in ({}, {"speeds": SPEEDS})
    ]
    plain = gymnasium.make(GEO, **SMALL, workload="mast-like:regions=3,gpus=96,jobs=5,tables=5").observation_space
    assert spaces[0] == spaces[1] == plain


@pytest.mark.parametrize(
    "word",
    ["mast:scan_s=0,slow=none", "random-start", "random", "global:joint=3", "scope:queue=global,allocation=cluster"],
)
def test_a_policy_through_the_environment_is_the_simulator_alone(word):
    def kinds(env, action):
        choice = env.interface.choice(int(action))
        chooses = choice is not None and choice[1] >= 0 and env.view.demands.chooses[choice[0]]
        return env.simulator.topology.cluster_gpu_type[choice[1]] if chooses else ""

    workload = choosing_workload(3, share=0.8)
    found, seen = differences(GEO, partial(policies.make, word), kinds, workload=workload, speeds=SPEEDS)
    assert found == [] and seen >= {"A100", "V100"}
