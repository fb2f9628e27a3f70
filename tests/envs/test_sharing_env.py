"""Sharing-v0: what its actions, masks and features mean; every policy through it is the simulator alone."""

from __future__ import annotations

from functools import partial

import gymnasium
import numpy as np
import pytest

import clustergym
from clustergym import policies
from clustergym.envs.rendering.ansi import draw_ansi
from clustergym.envs.sharing.columns import CANDIDATES
from clustergym.simulator.base.decisions import Advance, Hold, Preempt, Resize, Start
from clustergym.simulator.base.errors import InvalidDecision
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.sharing.sharing_model import Sharing
from clustergym.simulator.workloads import Workload
from clustergym.tests.support import env_terms

SHARING = "clustergym/Sharing-v0"
SMALL = {"workload": "philly-sample:jobs=24,hours=1", "slots": 8, "running_slots": 8}
FOUR = "flat:machines=1,gpus_per_machine=4"
PLAIN = {"network": "none", "memory_gb": None, "interference": "constant:xi=1.5"}
FREE, BEST, FIRST_FIT, FIRST, SECOND, HOLD = range(6)
KINDS = 6


def sharing(**options):
    return gymnasium.make(SHARING, **{**SMALL, **options}).unwrapped


def by_hand(jobs, models=None, batch=64, **options):
    """An environment with three waiting and three running slots at its first decision; no network, xi 1.5."""
    columns = list(map(list, zip(*jobs, strict=True)))
    names = np.array(models or ["bert"] * len(jobs), object)
    workload = Workload.from_arrays("by hand", *columns, model=names, batch_size=np.array(columns[1]) * batch)
    env = sharing(**{"topology": FOUR, "workload": workload, "slots": 3, "running_slots": 3, **PLAIN, **options})
    env.reset(seed=0)
    return env


def act(slot, kind, exponent=0):
    return (1 + KINDS * slot + kind, exponent)


def kinds_of(env, slot):
    """Legal candidates of a waiting slot."""
    first = 1 + KINDS * slot
    return np.flatnonzero(env.action_masks()[first : first + KINDS]).tolist()


def offered(env, observation, slot, kind, column):
    row = observation["candidates"].reshape(-1, len(CANDIDATES))[1 + KINDS * slot + kind]
    return float(row[column])


def test_two_equal_jobs_at_xi_one_and_a_half_break_even():
    """Both on all four GPUs from 0 on: 1.5 times slower each, they end at 15 together: mean 15 = (10 + 20) / 2."""
    env = by_hand([(0, 4, 10), (0, 4, 10)])
    assert kinds_of(env, 0) == [FREE]
    observation, *_ = env.step(act(0, FREE))
    assert kinds_of(env, 0) == [BEST, FIRST_FIT, FIRST, HOLD]
    assert offered(env, observation, 0, FIRST, CANDIDATES.gain) == 0.5
    assert offered(env, observation, 0, FIRST, CANDIDATES.shared) == 1.0
    *_, terminated, _, info = env.step(act(0, FIRST))
    assert terminated
    assert (info["metrics"]["jct_mean"], info["metrics"]["makespan"]) == (15.0, 15.0)
    assert env.simulator.jobs()["finish_s"].tolist() == [15.0, 15.0]


def test_a_pair_that_loses_is_no_best_benefit_but_can_be_had():
    env = by_hand([(0, 4, 10), (0, 4, 10)], interference="constant:xi=1.6")
    observation, *_ = env.step(act(0, FREE))
    assert kinds_of(env, 0) == [FIRST_FIT, FIRST, HOLD]
    assert offered(env, observation, 0, FIRST, CANDIDATES.gain) < 0.5
    *_, info = env.step(act(0, FIRST))
    assert info["metrics"]["makespan"] == 16.0


def test_the_partners_come_by_the_jct_of_the_pair():
    """Jobs of 100 and 20 s hold two GPUs each; the pair with the shorter one is done sooner."""
    env = by_hand([(0, 2, 100), (0, 2, 20), (0, 2, 5)])
    env.step(act(0, FREE))
    env.step(act(0, FREE))
    assert env.view.running.tolist() == [0, 1] and kinds_of(env, 0) == [BEST, FIRST_FIT, FIRST, SECOND, HOLD]
    gpus = {}
    for kind in (FIRST_FIT, FIRST, SECOND):
        gpus[kind] = env.interface.decisions(act(0, kind))[0].gpus
    assert gpus == {FIRST_FIT: (0, 1), FIRST: (2, 3), SECOND: (0, 1)}
    env.step(act(0, SECOND))
    assert (env.simulator.jobs()["interference_s"] > 0.0).tolist() == [True, False, True]


def test_free_gpus_complete_a_gang():
    """Three of four GPUs are taken: a job of two shares one with the first partner and takes the free one."""
    env = by_hand([(0, 3, 100), (0, 4, 50), (0, 2, 10)])
    env.step(act(0, FREE))
    assert kinds_of(env, 0) == [BEST, FIRST_FIT, FIRST, HOLD]
    (start,) = env.interface.decisions(act(0, FIRST))
    assert (start.job, start.gpus) == (1, (0, 1, 2, 3))
    assert env.view.free_gpus.tolist() == [3]


def test_a_gpu_that_holds_two_jobs_is_not_offered():
    env = by_hand([(0, 4, 100), (0, 4, 50), (0, 4, 10)], skip_idle=False)
    env.step(act(0, FREE))
    env.step(act(0, FIRST))
    assert kinds_of(env, 0) == [HOLD] and env.view.load.tolist() == [2, 2, 2, 2]


def test_one_job_a_gpu_offers_free_gpus_only():
    env = by_hand([(0, 4, 100), (0, 4, 50)], jobs_per_gpu=1, skip_idle=False)
    env.step(act(0, FREE))
    assert kinds_of(env, 0) == [HOLD]


@pytest.mark.parametrize(
    ("exponent", "played", "adjusted"), [(0, 64, False), (3, 8, False), (6, 1, False), (9, 1, True)]
)
def test_the_second_part_is_the_sub_batch(exponent, played, adjusted):
    """64 samples a GPU in passes of 64 >> e; at least one."""
    env = by_hand([(0, 2, 10), (0, 2, 100)])
    *_, info = env.step(act(0, FREE, exponent))
    assert info["adjusted_action"] is adjusted
    assert env.view.sub_batch(0) == played


def test_a_sub_batch_that_does_not_fit_becomes_the_largest_that_does():
    """The memory admits fewer samples than the batch: exponent 0 is told to be adjusted, the least that fits is not."""
    env = by_hand([(0, 2, 10), (0, 2, 100)], memory_gb=11.0)
    legal = env.action_masks()[env.action_space.nvec[0] :]
    least = int(np.flatnonzero(legal)[0])
    assert least > 0 and env.view.sub_batch(0) == 64 >> least
    *_, info = env.step(act(0, FREE, 0))
    assert info["adjusted_action"] and env.view.sub_batch(0) == 64 >> least
    *_, info = env.step(act(0, FREE, least))
    assert not info["adjusted_action"]


def test_the_exponent_of_what_is_no_start_is_ignored():
    env = by_hand([(0, 4, 10), (0, 4, 10), (5, 1, 1)])
    env.step(act(0, FREE))
    for action in ((act(0, HOLD, 15)), (0, 99)):
        assert not env.step(action)[-1]["adjusted_action"]


def test_a_held_job_comes_back_when_gpus_are_freed():
    env = by_hand([(0, 4, 10), (0, 4, 20)])
    env.step(act(0, FREE))
    env.step(act(0, HOLD))
    assert (env.view.now_s, env.view.queue.tolist()) == (10.0, [1])


def test_a_stopped_job_leaves_its_partner_alone():
    """1 joins 0 at 0; at 6 a third comes, and 1 is stopped: 0 has 10 - 6 / 1.5 = 6 s left, and ends at 12."""
    env = by_hand([(0, 4, 10), (0, 4, 10), (6, 4, 1)])
    env.step(act(0, FREE))
    env.step(act(0, FIRST))
    assert env.view.now_s == 6.0
    preempt = 1 + KINDS * 3 + 2
    assert env.action_masks()[preempt]
    env.step((preempt, 0))
    for _ in range(2):  # both hold until 0 has ended
        env.step(act(0, HOLD))
    assert env.view.now_s == 12.0 and env.simulator.jobs()["finish_s"][0] == 12.0


def differences(word, **options):
    """As of all environments, with the kinds of candidates of waiting slots."""

    def kind(env, action):
        return (int(action[0]) - 1) % KINDS if 0 < action[0] <= KINDS * env.interface.window.slots else None

    return env_terms.differences(SHARING, partial(policies.make, word), kind, **options)


@pytest.mark.parametrize(("name", "kind"), [("sjf-ffs", FIRST_FIT), ("sjf-bsbf", BEST), ("sjf", FREE)])
def test_a_policy_is_played_by_the_kinds_of_candidates_that_are_its_own(name, kind):
    assert kind in differences(name, workload="philly-sample:jobs=64,hours=2")[1]


@pytest.mark.parametrize(
    "word",
    [
        "sjf-bsbf:free=never",
        "sjf-bsbf:head=strict,placer=count",
        "sjf-ffs:free=never,placer=first",
        "sjf-ffs:round=120",
        "sjf-bsbf:restore=on",
        "sjf-ffs:restore=on,round=120",
        "sjf-ffs:restore=on,free=first",
        "tiresias:preemption_cost=30,round=60",
        "sjf:placer=consolidated,lease=600",
        "pollux:adapt=off,generations=5,individuals=10",
    ],
)
def test_with_its_parameters_too(word):
    assert differences(word)[0] == []


@pytest.mark.parametrize("options", [{}, {"slots": 1, "running_slots": 1}, {"mtbf_s": 50_000.0, "checkpoint_s": 300.0}])
def test_with_elastic_jobs_too(options):
    """Pollux stops jobs, and starts them on other GPUs, of any number, that it names itself."""
    workload = "philly-sample:jobs=8,hours=1"
    word = "pollux:generations=5,individuals=10"
    different, kinds = differences(word, elastic=True, workload=workload, **options)
    assert different == [] and FREE in kinds


def test_elastic_jobs_are_resized_by_powers_of_two():
    """Exponent 1 is two GPUs; as many as it has becomes one more or less; never twice at one instant."""
    jobs = [(0, 2, 1e5), (0, 2, 1e5), (0, 1, 1e5)]
    env = by_hand(jobs, ["imagenet"] * 3, elastic=True, round=60.0, topology="flat:machines=1,gpus_per_machine=8")
    for _ in range(3):
        env.step(act(0, FREE))
    resize = [1 + KINDS * 3 + 2 * slot + 1 for slot in range(3)]
    assert env.view.now_s == 60.0 and env.action_masks()[resize].all()
    for slot, exponent, expected in ((0, 2, 4), (1, 1, 3)):
        *_, info = env.step((resize[slot], exponent))
        assert len(env.view.gpus_of(slot)) == expected and env.view.now_s == 60.0
        assert info["adjusted_action"] is (expected != 1 << exponent)
    assert env.action_masks()[resize].tolist() == [False, False, False]  # nothing is free for the third


def test_batches_of_elastic_jobs_are_single_environments():
    """Rates are asked for in the middle of a step, of some rows only; the reference's too."""
    options = {"elastic": True, "round": 60.0, "workload": "philly-sample:jobs=5,hours=1", "reference": "fifo"}
    options |= {"slots": 4, "running_slots": 4, "max_decisions": 60, "horizon_s": 1e5}
    envs = clustergym.make_vec("Sharing", 3, autoreset_mode="disabled", **options)
    singles = [gymnasium.make(SHARING, **options) for _ in range(3)]
    envs.reset(seed=5)
    for i, env in enumerate(singles):
        env.reset(seed=5 + i)
    rng = np.random.default_rng(5)
    for _ in range(60):
        masks = envs.action_masks()
        actions = np.array([[rng.choice(np.flatnonzero(row[: envs.single_action_space.nvec[0]])), 0] for row in masks])
        observations, rewards, terminated, truncated, _ = envs.step(actions)
        for i, env in enumerate(singles):
            seen, reward, *ends, _ = env.step(actions[i])
            assert all(np.array_equal(observations[key][i], seen[key]) for key in seen)
            assert (reward, *ends) == (rewards[i], terminated[i], truncated[i])
        if (terminated | truncated).any():
            return


def test_one_exponent_is_enough_for_the_largest_sub_batch_that_fits():
    """A lower exponent than fits becomes the least that does: so heuristics play with `exponents=1` too."""
    env = sharing(exponents=1)
    policy = policies.make("sjf-bsbf")
    env.reset(seed=11)
    ended, adjusted = False, 0
    while not ended:
        _, _, ended, _, info = env.step(policy.act(env))
        adjusted += info["adjusted_action"]
    alone = Simulator(env.simulator.topology, env.simulator.network, rule=policy.rule, sharing=env.simulator.sharing)
    alone.reset(env.simulator.workload, int(env.simulator.state.seed))
    assert alone.run() == info["metrics"] and adjusted > 0


def test_decisions_and_actions_are_each_others_inverse():
    env = sharing()
    env.reset(seed=2)
    rng = np.random.default_rng(2)
    first, seen = int(env.action_space.nvec[0]), set()
    for _ in range(150):
        mask = env.action_masks()
        candidate = int(rng.choice(np.flatnonzero(mask[:first])))
        (decision,) = env.interface.decisions((candidate, 2))
        assert env.interface.decisions(env.interface.action(decision)) == [decision]
        seen.add(type(decision))
        if env.step((candidate, 2))[2]:
            env.reset()
    assert seen == {Advance, Start, Hold, Preempt, Resize}


def test_a_decision_that_no_candidate_stands_for_is_one_sentence():
    env = by_hand([(0, 2, 10), (0, 2, 10)])
    with pytest.raises(InvalidDecision, match=r"here is Start\(job=0, gpus=\(0, 1\).*; give it the policy's placer"):
        env.interface.action(Start(0, (1, 3)))
    with pytest.raises(InvalidDecision, match=r"sub_batch=32.*; a sub-batch is the batch, halved"):
        env.interface.action(Start(0, (0, 1), 63))
    with pytest.raises(InvalidDecision, match="a hold here lasts until the next offer"):
        env.interface.action(Hold(0, 5.0))
    with pytest.raises(InvalidDecision, match="the window does not show job 7"):
        env.interface.action(Start(7, (0, 1)))


def test_pictures_split_shared_gpus():
    pytest.importorskip("PIL")
    from clustergym.envs.rendering.drawing.palette import job_colour
    from clustergym.envs.rendering.pictures.picture import draw_rgb, stage_of
    from clustergym.envs.rendering.scenes.scene import read_scene

    env = by_hand([(0, 4, 100), (0, 2, 50), (9, 1, 1)])
    env.step(act(0, FREE))
    env.step(act(0, FIRST))
    scene = read_scene(env.simulator)
    assert scene.shared == 2 and scene.partners.tolist() == [[1, 1, -1, -1]]
    assert [job.beside for job in scene.running] == [("1",), ("0",)]
    pixels = draw_rgb(env.simulator)
    left, top, right, bottom = stage_of(scene.shape, scene.name, (960, 640)).plan.items[0]
    height = top + (bottom - top) // 8
    assert tuple(pixels[height, left + (right - left) // 8]) == job_colour(0)
    assert tuple(pixels[height, right - (right - left) // 8]) == job_colour(1)
    text = draw_ansi(env.simulator)
    assert " 0 01 01 0. 0." in text and "2 shared" in text


def test_sharing_constants_come_from_the_sharing_of_the_simulator():
    own = sharing(jobs_per_gpu=3, memory_gb=16.0, memory="middle").simulator.sharing
    assert own == Sharing(3, own.interference, 16.0, memory="middle")
