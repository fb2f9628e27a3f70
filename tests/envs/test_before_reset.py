"""Whatever is asked before there is a run, or of what decides nothing, is refused in one sentence."""

from __future__ import annotations

import copy
import pickle

import gymnasium
import numpy as np
import pytest

from clustergym import make_vec, policies
from clustergym.agents import sb3_vec_env
from clustergym.envs.registration import ENVIRONMENTS
from clustergym.experiments.playing.evaluation import evaluate, play
from clustergym.experiments.settings.evaluation_setting import Setting
from clustergym.simulator.base.decisions import Advance, Preempt, Start
from clustergym.simulator.base.errors import ClustergymError, InputError
from clustergym.simulator.contention.phase_run import PhaseRun
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.groups.group_simulator import GroupSimulator
from clustergym.simulator.workloads import open_workload

NO_STATE = "has no state yet; call reset"
NO_RUN = "the simulator has no run yet; call reset"
SMALL = {"workload": "poisson:jobs=6,cluster_gpus=16", "topology": "flat:machines=2", "network": "none"}
SETTING = Setting.of("Delay", "flat:machines=2", SMALL["workload"], "none")


class Nothing:
    """No `decide`."""


class Silent(policies.Policy):
    """None either."""


class Vague:
    """It says nothing."""

    def decide(self, view):
        return None


class Restless:
    """Stops what runs and starts it again, so often at one instant."""

    def __init__(self, turns: int) -> None:
        self.turns = turns

    def decide(self, view):
        if len(view.running) and view.decisions < self.turns:
            return Preempt(int(view.running[0]))
        for job in view.queue.tolist():
            gpus = view.free_gpus[: int(view.gpus(job))].tolist()
            if len(gpus) == view.gpus(job):
                return Start(job, gpus)
        return Advance()


def single(env_id, **more):
    return gymnasium.make(env_id, disable_env_checker=True, **more).unwrapped


@pytest.mark.parametrize("env_id", ENVIRONMENTS)
@pytest.mark.parametrize(
    "ask",
    [
        lambda env: env.step(env.action_space.sample()),
        lambda env: env.render(),
        lambda env: env.as_text(),
        lambda env: env.observe(),
        lambda env: env.action_masks(),
        lambda env: env.metrics(),
        lambda env: env.snapshot(),
        lambda env: env.state_dict(),
        lambda env: env.in_numbers(),
        lambda env: env.decisions_at_most,
        lambda env: env.view.now_s,
        lambda env: policies.make_for("random", env.spec.id).act(env),
    ],
)
def test_an_environment_without_a_run_says_so(env_id, ask):
    env = single(env_id, render_mode="rgb_array")
    with pytest.raises((gymnasium.error.ResetNeeded, InputError), match=f"{NO_STATE}|{NO_RUN}"):
        ask(env)
    env.close()
    env.close()
    copy.deepcopy(env)


@pytest.mark.parametrize(
    "ask",
    [
        lambda envs: envs.step(envs.action_space.sample()),
        lambda envs: envs.render(),
        lambda envs: envs.action_masks(),
        lambda envs: envs.snapshot(),
        lambda envs: envs.call("metrics"),
        lambda envs: policies.make("fifo").act(envs),
    ],
)
def test_a_batch_without_a_run_says_so(ask):
    envs = gymnasium.make_vec("clustergym/Delay-v0", 2, render_mode="rgb_array", **SMALL)
    with pytest.raises(gymnasium.error.ResetNeeded, match=NO_STATE):
        ask(envs)
    pickle.loads(pickle.dumps(envs))
    envs.close()
    envs.close()


def test_a_batch_of_which_one_row_has_no_run_names_it():
    """Row 0 alone is reset; row 1 was stepped as if it had a run of no jobs, which had ended."""
    envs = gymnasium.make_vec("clustergym/Delay-v0", 2, **SMALL)
    envs.reset(seed=0, options={"reset_mask": np.array([True, False])})
    with pytest.raises(gymnasium.error.ResetNeeded, match="row 1 has no state yet"):
        envs.step(envs.action_space.sample())
    copied = pickle.loads(pickle.dumps(envs))
    copied.reset(seed=1, options={"reset_mask": np.array([False, True])})
    copied.step(copied.action_space.sample())


def test_an_sb3_batch_without_a_run_says_so():
    pytest.importorskip("stable_baselines3")
    from clustergym.agents import sb3_vec_env

    envs = sb3_vec_env("Delay", 2, observation="flat", render_mode="rgb_array", **SMALL)
    action = np.zeros((2, len(envs.action_space.nvec)), np.int64)
    for ask in (
        lambda: envs.step(action),
        lambda: envs.play(np.array([0]), action[:1]),
        envs.get_images,
        envs.action_masks,
        envs.present,
        lambda: envs.env_method("metrics"),
    ):
        with pytest.raises(gymnasium.error.ResetNeeded, match=NO_STATE):
            ask()
    with pytest.raises(InputError, match="state: it has no capacity; expected the arrays and data that get_state gave"):
        envs.set_state({}, {})
    with pytest.raises(InputError, match="seed = 'a': expected a whole number"):
        envs.seed("a")


ASKED_OF_A_SIMULATOR = [
    lambda simulator: simulator.run(policies.make_for("random", None)),
    lambda simulator: simulator.metrics(),
    lambda simulator: simulator.jobs(),
    lambda simulator: simulator.snapshot(),
    lambda simulator: simulator.restore(None),
    lambda simulator: simulator.ask(policies.make_for("random", None)),
    lambda simulator: simulator.view.queue,
    lambda simulator: simulator.view.now_s,
    lambda simulator: simulator.state,
    lambda simulator: simulator.twin().copy_run(simulator),
]


@pytest.mark.parametrize("ask", ASKED_OF_A_SIMULATOR)
@pytest.mark.parametrize("kind", [Simulator, GroupSimulator])
def test_a_simulator_without_a_run_says_so(kind, ask):
    with pytest.raises(InputError, match=NO_RUN):
        ask(kind("flat:machines=8"))


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda simulator, jobs: simulator.reset("poisson"), "workload 'poisson': expected a Workload"),
        (lambda simulator, jobs: simulator.reset(jobs, seed="a"), "seed = 'a': expected a whole number"),
        (lambda simulator, jobs: simulator.reset(jobs, seed=1.5), "seed = 1.5: expected a whole number"),
        (lambda simulator, jobs: simulator.reset(jobs, seed=2**70), "expected a whole number from 0 to"),
        (lambda simulator, jobs: simulator.reset(jobs, seed=-1), "seed = -1: expected a whole number from 0 to"),
        (lambda simulator, jobs: simulator.restore(np.zeros(1)), "restore: a ndarray given; expected what snapshot"),
        (lambda simulator, jobs: simulator.run(Nothing()), r"has no decide\(view\); expected an object that decides"),
        (lambda simulator, jobs: simulator.run(Vague), r"has no decide\(view\)"),
        (lambda simulator, jobs: simulator.run("fifo"), r"'fifo' has no decide\(view\)"),
        (lambda simulator, jobs: simulator.run(Silent()), "Silent does not say what it decides"),
        (lambda simulator, jobs: simulator.run(Vague()), "None"),
        (lambda simulator, jobs: simulator.ask(Vague()), "None: expected a decision"),
        (lambda simulator, jobs: simulator.use("fifo"), "'fifo' cannot play|cannot play job groups"),
        (lambda simulator, jobs: policies.make("fifo").act(simulator), "expected an environment"),
    ],
)
@pytest.mark.parametrize("kind", [Simulator, GroupSimulator])
def test_what_a_simulator_cannot_use_is_refused_in_a_sentence(kind, ask, sentence):
    jobs = open_workload("harmony-like:jobs=2" if kind is GroupSimulator else SMALL["workload"])
    simulator = kind("flat:machines=32")
    simulator.reset(jobs)
    with pytest.raises(ClustergymError, match=sentence):
        ask(simulator, jobs)


def test_a_seed_is_a_whole_number_of_at_least_0_wherever_it_is_taken():
    env = single("clustergym/Delay-v0", **SMALL)
    vector = make_vec("Delay", 2, **SMALL)
    for seed in (-1, True, 1.5, 2**63):
        for ask in (
            lambda seed: env.reset(seed=seed),
            lambda seed: vector.reset(seed=[0, seed]),
            vector.batch.seeds,
            lambda seed: sb3_vec_env("Delay", 2, seed=seed, **SMALL),
            lambda seed: open_workload(SMALL["workload"], seed=seed),
            lambda seed: PhaseRun([1e9], [], seed=seed),
        ):
            with pytest.raises(InputError, match=f"^seed = {seed}: expected a whole number from 0 to "):
                ask(seed)
    first, second = (env.reset(seed=seed)[0] for seed in (np.int64(3), 3))
    assert all((first[key] == second[key]).all() for key in first)


@pytest.mark.parametrize("env_id", ENVIRONMENTS)
@pytest.mark.parametrize("who", [Nothing(), Vague, None, "fifo"])
def test_an_environment_refuses_players_that_decide_nothing(env_id, who):
    env = single(env_id)
    env.reset(seed=0)
    called = repr(who) if who in (None, "fifo") else getattr(who, "__name__", type(who).__name__)
    with pytest.raises(InputError, match=rf"^{called} has no decide\(view\)"):
        env.act_of(who)


@pytest.mark.parametrize(
    ("policies_", "seeds", "sentence"),
    [
        ([], [0], r"policies = \[\]: expected a list of at least one"),
        ("fifo", [0], "policies = 'fifo': expected a list"),
        (["fifo"], [], r"seeds = \[\]: expected a list of at least one"),
        (["fifo"], 3, "seeds = 3: expected a list"),
        (["fifo"], ["a"], "seed = 'a': expected a whole number"),
        (["fifo"], [-1], "seed = -1: expected a whole number"),
        ([Nothing], [0], "Nothing has no decide"),
    ],
)
def test_an_evaluation_of_nothing_is_refused_in_a_sentence(policies_, seeds, sentence):
    with pytest.raises(InputError, match=sentence):
        evaluate(SETTING, policies_, seeds)
    with pytest.raises(InputError, match=r"setting = 'Delay': expected a Setting, as Setting\.of\('Delay'\)"):
        evaluate("Delay", policies_, seeds)


def test_more_decisions_at_an_instant_than_are_recorded_is_said():
    """Recording keeps the decisions of an instant in the record; without it the same run goes to its end."""
    restless = Restless(5_000)
    assert play(SETTING, restless, 0).metrics["jobs_finished"] == 6
    with pytest.raises(InputError, match=r"seed 0: more decisions at .* s than are recorded"):
        play(SETTING, restless, 0, record=True)
