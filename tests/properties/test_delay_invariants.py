"""Delay-v0 under random actions, legal and not: the cluster stays consistent, and episodes come to their end."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustergym.simulator.workloads import Workload
from clustergym.tests.support import invariants
from clustergym.tests.support.drawn import calm

TOPOLOGIES = ("dally:racks=2,machines=2", "flat:machines=3,gpus_per_machine=4", "flat:machines=1,gpus_per_machine=7")


@st.composite
def episodes(draw):
    """(environment after reset, random generator, share of actions that are not masked)."""
    topology = draw(st.sampled_from(TOPOLOGIES))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    total = {"d": 32, "f": 12}[topology[0]] if "machines=1" not in topology else 7
    n = draw(st.integers(1, 25))
    gpus = np.minimum(rng.choice([1, 1, 2, 3, 4, 6, 8, total], n), total)
    arrival_s = np.sort(np.floor(rng.uniform(0, draw(st.sampled_from([1, 3000])), n)))
    workload = Workload.from_arrays("random", arrival_s, gpus, np.ceil(rng.lognormal(5, 1, n)))
    env = gymnasium.make(
        "clustergym/Delay-v0",
        topology=topology,
        workload=workload,
        network=draw(st.sampled_from(["none", "penalty:default=1/1.2/1.5"])),
        placer=draw(st.sampled_from(["tier", "count", "consolidated", "skew", "random"])),
        slots=draw(st.sampled_from([1, 3, 32])),
        running_slots=draw(st.sampled_from([0, 2, 16])),
        order=draw(st.sampled_from(["arrival", "shortest", "smallest"])),
        preemption=draw(st.booleans()),
        preemption_cost=draw(st.sampled_from([0.0, 20.0])),
        skip_idle=draw(st.booleans()),
        **draw(st.sampled_from([{}, {}, {"mtbf_s": 2000.0, "mttr_s": 100.0, "checkpoint_s": 60.0}])),
    ).unwrapped
    env.reset(seed=int(rng.integers(1000)))
    return env, rng, draw(st.sampled_from([0.0, 0.3]))


@calm(120)
@given(episodes())
def test_random_actions_keep_the_cluster_consistent_and_the_return_exact(episode):
    """The return is minus the mean JCT in mean isolated run times whatever was done; holds and stops included."""
    env, rng, unmasked = episode
    simulator, total, steps = env.simulator, 0.0, 0
    terminated, info = simulator.done, {}
    while not terminated:
        first = int(env.action_space.nvec[0])
        legal = np.flatnonzero(env.action_masks()[:first])
        candidate = rng.integers(first) if rng.random() < unmasked else rng.choice(legal)
        if steps > 300:  # stops and moves for ever would never end: start what can be, else advance
            starts = [c for c in legal if 0 < c <= 5 * env._window.slots and c % 5]
            candidate = starts[0] if starts else 0
        _, reward, terminated, truncated, info = env.step((candidate, rng.integers(11), rng.integers(2)))
        assert info["invalid_action"] == (candidate not in legal)
        assert not truncated
        invariants.check_gangs(simulator)
        total, steps = total + reward, steps + 1
        assert steps < 5000
    invariants.check_end(simulator)
    workload = simulator.workload
    assert total == pytest.approx(-info["metrics"]["jct_mean"] / workload.duration_s.mean(), rel=1e-9)
