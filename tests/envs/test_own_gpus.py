"""A policy that names GPUs which the environment would not choose plays in it what it plays by `Simulator.run`."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import gymnasium
import numpy as np
import pytest

import clustergym
from clustergym import policies
from clustergym.policies import Policy
from clustergym.simulator.base.decisions import Advance, Hold, Migrate, Preempt, Start
from clustergym.simulator.base.errors import InvalidDecision
from clustergym.simulator.base.tiers import MACHINE, NETWORK, RACK
from clustergym.tests.support.small_envs import SMALL

DELAY, SHARING = "clustergym/Delay-v0", "clustergym/Sharing-v0"


class ShortestWithin(Policy):
    """Shortest first, at the best tier that has room, by `view.find_gpus_within`."""

    name = "shortest-within"

    def decide(self, view: Any) -> Any:
        for job in sorted(view.queue.tolist(), key=lambda job: (view.isolated_s(job), job)):
            for tier in (MACHINE, RACK, NETWORK):
                gpus = view.find_gpus_within(job, tier)
                if gpus:
                    return Start(job, gpus)
        return Advance()


class Highest(Policy):
    """A job that fits takes the highest free GPUs, wherever they lie."""

    name = "highest"

    def decide(self, view: Any) -> Any:
        free = view.free_gpus
        for job in view.queue.tolist():
            if view.gpus(job) <= len(free):
                return Start(job, free[len(free) - view.gpus(job) :].tolist())
        return Advance()


class Restless(Highest):
    """As it, but a job that waited for an hour is given the GPUs of the newest gang of its size or larger."""

    name = "restless"

    def decide(self, view: Any) -> Any:
        late = [job for job in view.queue.tolist() if view.waited_s(job) >= 3600.0]
        for job in late:
            for other in reversed(view.running.tolist()):
                s = view._simulator.state
                since = max(s.started_s[other], s.stopped_s[other])
                if view.gpus(other) >= view.gpus(job) and since < view.now_s - 1800.0:
                    return Preempt(other)
        s, free = view._simulator.state, view.free_gpus
        for job in view.running.tolist():
            rests = s.started_s[job] < view.now_s - 600.0 and s.stopped_s[job] < view.now_s - 5000.0
            if rests and len(view.queue) and view.gpus(job) <= len(free) and free[0] < min(view.gpus_of(job)):
                return Migrate(job, free[: view.gpus(job)].tolist())
        return super().decide(view)


class Neighbours(Policy):
    """In Sharing-v0: a job takes the lowest GPUs that hold one job or none, free or not."""

    name = "neighbours"

    def decide(self, view: Any) -> Any:
        room = [gpu for gpu in range(view.topology.num_gpus) if len(view.jobs_on(gpu)) < view.jobs_per_gpu]
        for job in view.queue.tolist():
            if view.gpus(job) <= len(room):
                return Start(job, room[: view.gpus(job)])
        return Advance()


def played(env: Any, policy: Policy, seed: int) -> tuple[dict[str, float], dict[str, Any]]:
    """The metrics of an episode by `env.step`, and the table of its jobs."""
    env.reset(seed=seed)
    while True:
        *_, terminated, truncated, info = env.step(policy.act(env))
        assert not info["invalid_action"] and not truncated
        if terminated:
            return info["metrics"], env.unwrapped.simulator.jobs()


def run(env: Any, policy: Policy) -> tuple[dict[str, float], dict[str, Any]]:
    """The same by `Simulator.run`, on the workload of the episode that `env` has just played."""
    own = env.unwrapped
    simulator = own.simulator.twin()
    simulator.use(own.rule)
    simulator.reset(own.simulator.workload, seed=own._drawn["seed"])
    return simulator.run(policy), simulator.jobs()


@pytest.mark.parametrize("action", ["parts", "discrete"])
@pytest.mark.parametrize("policy", [ShortestWithin, Highest, Restless])
def test_delay_plays_the_very_gpus(policy, action):
    """Starts on GPUs that no placer of ours gives, stops, and moves to places that no candidate would offer."""
    env = gymnasium.make(DELAY, action=action, **SMALL[DELAY])
    for seed in range(2):
        (found, jobs), (expected, others) = played(env, policy(), seed), run(env, policy())
        assert repr(found) == repr(expected)
        np.testing.assert_equal(jobs, others)


@pytest.mark.parametrize("options", [{}, {"jobs_per_gpu": 3, "memory_gb": float("inf")}])
@pytest.mark.parametrize("policy", [ShortestWithin, Highest, Neighbours])
def test_sharing_plays_the_very_gpus(policy, options):
    """Free ones, and those that hold others."""
    env = gymnasium.make(SHARING, **{**SMALL[SHARING], **options})
    assert repr(played(env, policy(), 1)[0]) == repr(run(env, policy())[0])


@pytest.mark.parametrize("policy", [ShortestWithin, Highest])
def test_time_shift_plays_the_very_gpus(policy):
    """What the policy decides is the first of the placements."""
    name = "clustergym/TimeShift-v0"
    env = gymnasium.make(name, **SMALL[name])
    assert repr(played(env, policy(), 0)[0]) == repr(run(env, policy())[0])


class LastUnits(Policy):
    """In regions: as `federated`, but on the last free units of the same clusters."""

    name = "last-units"

    def __init__(self) -> None:
        self.inner = policies.make("federated:scan_s=0,slow=none")
        self.clock = self.inner.fast.clock

    def decide(self, view: Any) -> Any:
        decision = self.inner.decide(view)
        if not isinstance(decision, Start):
            return decision
        cluster_of, taken = view.topology.gpu_cluster, []
        for cluster, count in Counter(int(cluster_of[unit]) for unit in decision.gpus).items():
            free = [unit for unit in view.free_gpus.tolist() if cluster_of[unit] == cluster]
            taken += free[-count:]
        return Start(decision.job, taken)


def test_geo_plays_the_very_units():
    """A turn carries out what the policy decides."""
    name = "clustergym/Geo-v0"
    env = gymnasium.make(name, **SMALL[name], tables=None)
    assert repr(played(env, LastUnits(), 0)[0]) == repr(run(env, LastUnits())[0])


def test_a_batch_plays_the_very_gpus():
    """Row by row, at the same time."""
    options = {**SMALL[DELAY], "autoreset_mode": "same-step"}
    envs, policy = clustergym.make_vec("Delay", 2, **options), Highest()
    envs.reset(seed=0)
    found: dict[int, float] = {}
    while len(found) < 2:
        *_, infos = envs.step(policy.act(envs))
        for row in np.flatnonzero(infos.get("_final_info", [])).tolist():
            found.setdefault(row, float(infos["final_info"]["metrics"]["jct_mean"][row]))
    env = gymnasium.make(DELAY, **SMALL[DELAY])
    assert found == {row: played(env, Highest(), row)[0]["jct_mean"] for row in range(2)}


def test_gpus_that_cannot_be_had_are_refused_as_by_the_simulator():
    """The sentence is that of `Simulator.apply`."""

    class Greedy(Policy):
        def decide(self, view: Any) -> Any:
            job = int(view.queue[0])
            return Start(job, [*view.gpus_of(int(view.running[0])), *view.free_gpus.tolist()][: view.gpus(job)])

    env = gymnasium.make(DELAY, **SMALL[DELAY]).unwrapped
    env.reset(seed=0)
    env.step(Highest().act(env))
    with pytest.raises(InvalidDecision, match=r"^start job \d+ .*: GPU \d+ .* is held by job \d+$"):
        Greedy().act(env)


@pytest.mark.parametrize(
    ("decision", "options", "said"),
    [
        (
            lambda view, job: Preempt(int(view.running[0])),
            {"preemption": False},
            "give the environment preemption=True",
        ),
        (lambda view, job: Hold(job, view.now_s + 77.0, MACHINE), {}, "give it delays=(..., 77), not only 60, 300"),
        (lambda view, job: Preempt(int(view.running[0])), {}, "leave jobs alone that have started"),
    ],
)
def test_where_no_candidate_stands_for_a_decision_the_message_says_what_to_do(decision, options, said):
    class Odd(Policy):
        def decide(self, view: Any) -> Any:
            return decision(view, int(view.queue[0]))

    env = gymnasium.make(DELAY, **{**SMALL[DELAY], **options}).unwrapped
    env.reset(seed=0)
    env.step(Highest().act(env))
    with pytest.raises(InvalidDecision, match=re.escape(said)):
        Odd().act(env)


def test_the_gpus_are_named_for_one_step_only():
    """What a policy asked for is forgotten when something else is played."""
    env = gymnasium.make(DELAY, **SMALL[DELAY]).unwrapped
    env.reset(seed=0)
    job = int(env.view.queue[0])
    Highest().act(env)
    assert env.interface.window.forced_job == job
    env.step([0, 0, 0])
    assert env.interface.window.forced_job == -1
