"""A reward may be a function of two snapshots; every `info` counts jobs and GPUs."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit

import clustergym
from clustergym.envs.registration import ENVIRONMENTS
from clustergym.simulator.base.errors import InputError
from clustergym.tests.support.small_envs import SMALL

IDS = list(ENVIRONMENTS)
DELAY = "clustergym/Delay-v0"
COUNTS = ("active_jobs", "waiting_jobs", "running_jobs", "finished_jobs", "used_gpus")


def job_seconds(before: Any, after: Any) -> float:
    return before.active_job_s - after.active_job_s


def slowdowns(before: Any, after: Any) -> float:
    return before.slowdown_sum - after.slowdown_sum


def seconds(before: Any, after: Any) -> float:
    return before.time_s - after.time_s


def late(before: Any, after: Any) -> float:
    return float(before.late_jobs - after.late_jobs)


def rewards(env_id: str, reward: Any, **options: Any) -> list[float]:
    """Of an episode of random legal candidates."""
    env: Any = gymnasium.make(env_id, reward=reward, action="discrete", **{**SMALL[env_id], **options}).unwrapped
    env.reset(seed=3)
    rng, found, ended = np.random.default_rng(0), [], False
    while not ended:
        _, reward, ended, cut, _ = env.step(int(rng.choice(np.flatnonzero(env.action_masks()))))
        assert not cut
        found.append(reward * env.interface.raw["reward_scale"] if isinstance(env.reward, str) else reward)
    return found


@pytest.mark.parametrize(("name", "function"), [("jct", job_seconds), ("slowdown", slowdowns), ("makespan", seconds)])
@pytest.mark.parametrize("env_id", IDS)
def test_rewards_that_have_a_name_can_be_written_as_functions(env_id, name, function):
    """Step by step, the first too, whose time before the first decision is charged."""
    assert rewards(env_id, function) == pytest.approx(rewards(env_id, name), rel=1e-9, abs=1e-6)


def test_late_jobs_are_those_of_slo():
    options = {"workload": "poisson:jobs=30,backlog=10,deadlines=1/2"}
    found = rewards(DELAY, late, **options)
    assert found == pytest.approx(rewards(DELAY, "slo", **options)) and sum(found) < -3


@pytest.mark.parametrize("env_id", [DELAY, "clustergym/TimeShift-v0"])
def test_a_batch_pays_as_single_environments(env_id):
    """With rows that are reset on the way; one row pays by name."""
    options = {**SMALL[env_id], "action": "discrete", "max_decisions": 9, "observation": "flat"}
    kinds = [{"reward": job_seconds}, {"reward": lambda before, after: after.used_gpus - 0.5 * after.decisions}]
    kinds.append({"reward": "jct"})
    batch = clustergym.make_vec(env_id, 3, variants=kinds, autoreset_mode="same-step", **options)
    singles = [gymnasium.make(env_id, **options, **kind).unwrapped for kind in kinds]
    batch.reset(seed=0)
    for row, env in enumerate(singles):
        env.reset(seed=row)
    rng = np.random.default_rng(1)
    for _ in range(40):
        actions = np.array([rng.choice(np.flatnonzero(mask)) for mask in batch.action_masks()])
        _, paid, *_ = batch.step(actions)
        for row, env in enumerate(singles):
            _, reward, ended, cut, _ = env.step(actions[row])
            assert reward == paid[row]
            if ended or cut:
                env.reset()


def test_the_sb3_environment_pays_it_and_goes_on_after_a_checkpoint():
    """float32 there; a state that is taken over knows what the last step left."""
    pytest.importorskip("stable_baselines3")
    from clustergym.agents import sb3_vec_env

    options = {**SMALL[DELAY], "action": "discrete", "reward": job_seconds, "observation": "flat"}
    one, other = (sb3_vec_env("Delay", 2, seed=seed, **options) for seed in (0, 9))
    one.reset()
    other.reset()
    for _ in range(5):
        one.step(np.array([np.flatnonzero(mask)[0] for mask in one.action_masks()]))
    other.set_state(*one.get_state())
    for _ in range(20):
        actions = np.array([np.flatnonzero(mask)[0] for mask in one.action_masks()])
        paid = one.step(actions)[1]
        assert np.array_equal(paid, other.step(actions)[1]) and paid.dtype == np.float32


def test_a_function_is_named_by_a_word(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("def busy(before, after, weight: float = 1.0):\n    return weight * after.used_gpus\n")
    env: Any = gymnasium.make(DELAY, reward=f"py:{path}:busy,weight=2", action="discrete", **SMALL[DELAY])
    env.reset(seed=0)
    _, reward, *_, info = env.step(1)
    assert reward == 2 * info["used_gpus"] > 0


@pytest.mark.parametrize("value", [None, float("nan"), "1,5", float("inf")])
def test_what_is_no_finite_number_is_refused(value):
    env = gymnasium.make(DELAY, reward=lambda before, after: value, **SMALL[DELAY])
    env.reset(seed=0)
    with pytest.raises(InputError, match="expected a finite number"):
        env.step([1, 0, 0])


def test_a_reward_that_is_neither_is_refused():
    with pytest.raises(InputError, match=r"reward = 3: expected one of jct, .* or a function"):
        gymnasium.make(DELAY, reward=3)
    with pytest.raises(InputError, match="reference with reward"):
        gymnasium.make(DELAY, reward=job_seconds, reference="fifo")


@pytest.mark.parametrize("env_id", [env_id for env_id in IDS if "Grouping" not in env_id])
def test_every_info_counts_jobs_and_gpus(env_id):
    """As the view has them: waiting jobs are in the queue or held, GPUs that are neither free nor down are used."""
    env = gymnasium.make(env_id, action="discrete", mtbf_s=2e5, **SMALL[env_id]).unwrapped
    _, info = env.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(60):
        view, down = env.view, int(env.simulator.state.down_gpus)
        waiting, running = len(view.queue) + len(view.held), len(view.running)
        used = view.topology.num_gpus - len(view.free_gpus) - down
        done = int(env.simulator.state.done)
        assert [info[key] for key in COUNTS] == [waiting + running, waiting, running, done, used]
        assert all(type(info[key]) is int for key in COUNTS)
        _, _, ended, _, info = env.step(int(rng.choice(np.flatnonzero(env.action_masks()))))
        if ended:
            assert info["finished_jobs"] == len(view.workload) and info["active_jobs"] == 0
            break


def test_grouping_counts_machines():
    """Machines of groups are used; jobs that are to be in a group run."""
    env = gymnasium.make("clustergym/Grouping-v0", action="discrete", **SMALL["clustergym/Grouping-v0"]).unwrapped
    _, info = env.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(40):
        s = env.simulator.state
        assert info["used_gpus"] == int(s.n_machines - s.free_machines - s.down_machines)
        assert (info["running_jobs"], info["waiting_jobs"]) == (len(env.view.running), len(env.view.queue))
        _, _, ended, _, info = env.step(int(rng.choice(np.flatnonzero(env.action_masks()))))
        if ended:
            break


def test_metrics_can_be_asked_for_where_a_wrapper_ends_the_episode():
    env = TimeLimit(gymnasium.make(DELAY, **SMALL[DELAY]), 5)
    env.reset(seed=0)
    for _ in range(5):
        *_, truncated, info = env.step([1, 0, 0])
    assert truncated and "metrics" not in info
    assert env.get_wrapper_attr("metrics")()["jobs_finished"] == info["finished_jobs"]
