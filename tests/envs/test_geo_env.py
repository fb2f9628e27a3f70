"""Geo-v0: what its actions, masks and features mean; every policy through it is the simulator alone."""

from __future__ import annotations

import dataclasses
from functools import partial

import gymnasium
import numpy as np
import pytest

from clustergym import policies
from clustergym.envs.geo.columns import REGIONS
from clustergym.envs.rendering.ansi import draw_ansi
from clustergym.simulator.base.decisions import Hold, Preempt, Replicate, Start
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.workloads import Workload
from clustergym.tests.support.env_terms import differences
from clustergym.tests.support.geo_small import A100, CPU, V100, demands, random_workload, small_topology, small_workload

GEO = "clustergym/Geo-v0"
SMALL = {"topology": small_topology(), "tables": None, "round": 0.0, "slots": 4, "running_slots": 4, "clusters": 3}
SMALL |= {"brings": 0}  # what is brought: test_bringing.py
HOLD = 6  # kinds of a slot: without and with preemption for each of three clusters, and this
EAST_A, EAST_B, EAST_CPU, WEST_V, WEST_CPU, WEST_A, SOUTH = range(7)


def geo(**options):
    return gymnasium.make(GEO, **{**SMALL, "workload": small_workload(), **options}).unwrapped


def by_hand(rows, arrival_s=None, run_s=600.0, **options):
    """`rows`: parts, tables, level, tenant, set-up seconds; a minute apart unless told otherwise."""
    asked = demands(rows)
    when = 60.0 * np.arange(len(rows)) if arrival_s is None else np.array(arrival_s)
    seconds = np.broadcast_to(np.asarray(run_s, np.float64), len(rows)).copy()
    workload = Workload.from_arrays("by hand", when, asked.units, seconds).with_geo(asked)
    env = geo(workload=workload, **options)
    env.reset(seed=0)
    return env


def legal(env):
    return np.flatnonzero(env.action_masks()).tolist()


def act(env, job, cluster, way=0):
    """The action for a job in a cluster."""
    found = [c for c in legal(env) if env.interface.choice(c) == (job, cluster, way)]
    assert len(found) == 1, [env.interface.choice(c) for c in legal(env)]
    return (found[0],)


def choices(env):
    return {env.interface.choice(c) for c in legal(env)} - {None}


def test_candidates_are_the_clusters_beside_the_data():
    """Eight A100 that read a table of the east may go to either of its clusters; without tables, anywhere."""
    env = by_hand([([(A100, 8)], [0], 3, 0, 0.0), ([(CPU, 4)], [], 3, 0, 0.0)])
    assert choices(env) == {(0, EAST_A, 0), (0, EAST_B, 0), (0, -1, 0)}
    env.step((0,))
    assert env.view.now_s == 60.0
    assert choices(env) >= {(1, EAST_CPU, 0), (1, WEST_CPU, 0)}
    env.step(act(env, 1, WEST_CPU))
    assert env.view.region_of(1) == 1 and env.view.clusters_of(1) == [WEST_CPU]


def test_the_other_parts_follow_into_the_region():
    env = by_hand([([(A100, 16), (A100, 8), (CPU, 4)], [0], 3, 0, 0.0)])
    env.step(act(env, 0, EAST_B))
    finish = env.simulator.jobs()
    assert finish["finish_s"].tolist() == [600.0]
    env = by_hand([([(A100, 16), (A100, 8), (CPU, 4)], [0], 3, 0, 0.0), ([(CPU, 1)], [], 3, 0, 0.0)])
    env.step(act(env, 0, EAST_B))
    assert env.view.clusters_of(0) == [EAST_B, EAST_A, EAST_CPU]


def test_others_leave_only_for_a_higher_priority():
    """South is full of a job of the lowest priority: one above it displaces it, one as low waits."""
    for level, ways in ((3, {(1, SOUTH, 1), (1, -1, 0)}), (6, None)):
        env = by_hand([([(A100, 16)], [4], 6, 0, 0.0), ([(A100, 8)], [4], level, 1, 0.0)])
        env.step(act(env, 0, SOUTH))
        if ways is None:
            assert env.view.now_s == 600.0 and env.view.queue.tolist() == [1]  # the first one has ended
            continue
        assert choices(env) == ways
        env.step(act(env, 1, SOUTH, 1))
        jobs = env.simulator.jobs()
        assert jobs["first_start_s"].tolist() == [0.0, 60.0] and jobs["preemptions"].tolist() == [1, 0]


def test_any_workload_leaves_where_that_is_allowed_those_with_most_left_first():
    """South is full of two of the highest priority; the lowest stops the longer one, and none that just began."""
    rows = [([(A100, 8)], [4], 0, 0, 0.0), ([(A100, 8)], [4], 0, 0, 0.0), ([(A100, 8)], [4], 6, 1, 0.0)]
    lengths = [6000.0, 3000.0, 300.0]
    env = by_hand(rows, arrival_s=[0.0, 0.0, 60.0], run_s=lengths, preempts="any")
    env.step(act(env, 0, SOUTH))
    env.step(act(env, 1, SOUTH))
    assert env.view.now_s == 60.0 and choices(env) == {(2, SOUTH, 1), (2, -1, 0)}
    env.step(act(env, 2, SOUTH, 1))
    assert env.simulator.jobs()["preemptions"].tolist() == [1, 0, 0]
    env.step(act(env, 0, SOUTH, 1))  # back at once: job 2 stays at this instant, so job 1 leaves
    assert env.simulator.jobs()["preemptions"].tolist() == [1, 1, 0]
    for preempts in ("any", "lower"):
        env = by_hand(rows, arrival_s=[0.0, 0.0, 0.0], run_s=lengths, preempts=preempts, skip_idle=False)
        env.step(act(env, 0, SOUTH))
        env.step(act(env, 1, SOUTH))
        assert choices(env) == {(2, -1, 0)}
    env = by_hand(rows, arrival_s=[0.0, 0.0, 60.0], run_s=lengths, skip_idle=False)
    env.step(act(env, 0, SOUTH))
    env.step(act(env, 1, SOUTH))
    assert env.view.now_s == 60.0 and choices(env) == {(2, -1, 0)}  # lower priorities alone, unless told otherwise


def test_beyond_the_quota_priority_does_not_count():
    """Tenant 0 may have 32 GPUs: with 32 in use, another 16 of it displace no workload, whatever their level."""
    rows = [([(A100, 32)], [0], 3, 0, 0.0), ([(A100, 16)], [4], 6, 1, 0.0), ([(A100, 16)], [4], 0, 0, 0.0)]
    env = by_hand(rows, run_s=[6000.0, 6000.0, 600.0], skip_idle=False)
    env.step(act(env, 0, EAST_A))
    env.step(act(env, 1, SOUTH))
    assert env.view.now_s == 120.0 and choices(env) == {(2, -1, 0)}


def test_workloads_without_data_have_it_copied():
    """V100 lie in the west alone, the table in the east: 100 GB over 8 Gbps come first."""
    env = by_hand([([(V100, 8)], [0], 3, 0, 0.0)])
    assert choices(env) <= {(0, -1, 0)}
    _, _, terminated, _, info = env.step((0,))
    assert not terminated and env.view.now_s == 100.0
    assert choices(env) == {(0, WEST_V, 0)}
    *_, terminated, _, info = env.step(act(env, 0, WEST_V))
    assert terminated and info["metrics"]["bytes_moved"] == 1e11 and info["metrics"]["data_wait_mean"] == 100.0


def test_workloads_without_data_that_are_held_have_it_copied_too():
    env = by_hand([([(V100, 8)], [0], 3, 0, 0.0)] * 2, [0.0, 900.0], skip_idle=False)
    env.step((1 + HOLD,))
    assert env.view.now_s == 100.0 and choices(env) >= {(0, WEST_V, 0)}  # the copy is there, and it is asked again


def of_regions(env, column):
    """A column of the regions in the observation."""
    return env.observe()["regions"].reshape(-1, len(REGIONS))[:, column]


def test_the_demand_of_a_region_counts_held_jobs():
    env = by_hand([([(V100, 8)], [2], 3, 0, 0.0)] * 3, [0.0, 0.0, 900.0], skip_idle=False)
    before = of_regions(env, REGIONS.demand)
    assert before[1] == np.float32(16 / (16 + 48))
    env.step((1 + HOLD,))
    assert env.view.held.tolist() == [0]
    after = of_regions(env, REGIONS.demand)
    assert after.tolist() == before.tolist()


def test_gpus_of_a_region_are_of_the_priority_that_counts_also_at_the_instant_of_a_start():
    """Of the 48 GPUs of the east 16 go to the lowest priority, 8 to the highest, 4 to one between them."""
    rows = [([(A100, size), (CPU, 1)], [0], level, 1, 0.0) for size, level in ((16, 6), (8, 0), (4, 3))]
    rows += [([(V100, 8)], [0], 3, 1, 0.0)]  # waits for its table: so the instant goes on
    env = by_hand(rows, [0.0] * 4, skip_idle=False)
    for job in range(3):
        env.step(act(env, job, EAST_A))
        high = of_regions(env, REGIONS.high)
        low = of_regions(env, REGIONS.low)
        assert env.view.now_s == 0.0
        assert high.tolist()[:3] == [np.float32(8 / 48) * (job > 0), 0.0, 0.0]
        assert low.tolist()[:3] == [np.float32(16 / 48), 0.0, 0.0]


def test_a_cluster_with_more_regions_than_slots_is_refused():
    with pytest.raises(InputError, match="region_slots = 2: expected 3 or more, one a region"):
        geo(region_slots=2).reset(seed=0)


def test_the_best_clusters_are_offered_where_there_are_many():
    rows = [([(A100, 16)], [], 6, 0, 0.0), ([(A100, 8)], [], 3, 0, 0.0)]
    env = by_hand(rows, [0.0, 0.0], clusters=1, skip_idle=False, order="arrival")
    found = {choice for choice in choices(env) if choice[1] >= 0}
    assert len(found) == 2 and {job for job, *_ in found} == {0, 1}


def test_a_first_start_that_is_too_late_costs_what_slo_says():
    rows = [([(A100, 8)], [0], 0, 0, 0.0), ([(A100, 8)], [0], 6, 0, 0.0)]
    env = by_hand(rows, [0.0, 400.0], reward="slo")
    total, ended = 0.0, False
    while not ended:
        late = env.view.now_s >= 400.0
        action = act(env, int(env.view.queue[0]), EAST_A) if late else (0,)
        _, reward, ended, _, info = env.step(action)
        total += reward
    assert total == -1.0 and info["metrics"]["slo_violation_rate"] == 1.0


def test_reward_slo_is_refused_where_no_level_limits_a_start():
    asked = dataclasses.replace(demands([([(A100, 8)], [0], 3, 0, 0.0)]), slo_s=np.full(7, np.inf))
    workload = Workload.from_arrays("by hand", [0.0], asked.units, [600.0]).with_geo(asked)
    with pytest.raises(
        InputError, match="reward = 'slo': no job of workload 'by hand' has a level that limits its wait"
    ):
        geo(workload=workload, reward="slo").reset(seed=0)


def test_every_start_is_legal_where_rms_has_a_plan_and_only_there():
    """Every open start of some moments, tried on a copy; the environment itself stays as it is."""
    env, rng = geo(workload=random_workload(5), mtbf_s=20_000.0), np.random.default_rng(5)
    env.reset(seed=5)
    tried = 0
    for _ in range(60):
        before = env.simulator.snapshot()
        for candidate in legal(env)[1:]:
            decisions = env.interface.decisions((candidate,))
            way = env.interface.choice(candidate)[2]
            assert (way == 1) == any(isinstance(one, Preempt) for one in decisions)
            copy = Simulator(env.simulator.topology, failures=env.simulator.config.failures)
            copy.copy_run(env.simulator)
            for decision in decisions:
                copy.apply(decision)
            tried += 1
        assert env.simulator.snapshot().tobytes() == before.tobytes()
        if env.step((int(rng.choice(legal(env))),))[2]:
            break
    assert tried > 100


@pytest.mark.parametrize(("name", "ways"), [("mast", {0, 1}), ("federated", {0})])
def test_a_policy_starts_jobs_in_the_ways_that_are_its_own(name, ways):
    """0: on free units, 1: in the place of others."""

    def way(env, action):
        choice = env.interface.choice(int(action))
        return None if choice is None else choice[2]

    workload = random_workload(11, jobs=60)
    assert ways <= differences(GEO, partial(policies.make, name), way, workload=workload)[1]


@pytest.mark.parametrize(
    "word",
    [
        *(
            f"scope:queue={q},allocation={a}"
            for q, a in (("cluster", "cluster"), ("region", "region"), ("global", "cluster"))
        ),
        "mast:scan_s=0,slow=none",
        "mast:slow=static",
        "global:joint=1",
    ],
)
def test_with_parameters_too(word):
    assert differences(GEO, partial(policies.make, word), workload=random_workload(15, jobs=60))[0] == []


def test_lessons_are_what_an_agent_sees_and_can_do():
    """What is learned is the window as it is without the policy; where that does not offer it, nothing is."""
    env, policy = (
        geo(workload=random_workload(3, jobs=80), observation="flat"),
        policies.make("mast:scan_s=0,slow=none"),
    )
    known_at_all, ended = [], False
    seen, _ = env.reset(seed=2)
    while not ended:
        action, features, known = env.demonstration(policy)
        known_at_all.append(known)
        assert env.action_masks()[action]
        assert not known or np.array_equal(features, seen)
        seen, _, ended, _, info = env.step(action)
        assert not info["invalid_action"]
    assert sum(known_at_all) > 0.8 * len(known_at_all)


def test_a_policy_may_hold_until_a_certain_time():
    """Also where nothing else is to come; its action is the one that holds, and the time is the policy's."""

    class Odd(policies.Policy):
        def __init__(self):
            self.name, self.until_s = "odd", 50_000.0
            self.mast = policies.make("mast:scan_s=0")

        def decide(self, view):
            if len(view.queue) and view.now_s < self.until_s:
                return Hold(int(view.queue[0]), self.until_s)
            return self.mast.decide(view)

    env, odd = geo(), Odd()
    env.reset(seed=0)
    ended = False
    while not ended:
        _, _, ended, _, info = env.step(odd.act(env))
        assert not info["invalid_action"]
    first = env.simulator.jobs()["first_start_s"]
    assert first.min() >= 50_000.0 and info["metrics"]["jobs_finished"] == len(first)


@dataclasses.dataclass(frozen=True)
class Turn:
    """What one action decides."""

    decisions: tuple


@pytest.mark.parametrize("preempts", ["lower", "any"])
def test_decisions_and_actions_are_each_others_inverse_and_leave_the_run_alone(preempts):
    """Of every legal candidate; another environment, of which nothing is asked, goes on alike."""
    options = {"workload": random_workload(2), "preempts": preempts, "brings": 2, "observation": "flat"}
    env, other, rng = geo(**options), geo(**options), np.random.default_rng(2)
    env.reset(seed=2), other.reset(seed=2)
    seen = set()
    for _ in range(80):
        before = env.simulator.raw.record.tobytes()
        for candidate in legal(env)[1:]:
            job, cluster, _ = env.interface.choice(candidate)
            decisions = env.interface.decisions((candidate,))
            if isinstance(decisions[-1], Start):
                assert env.simulator.topology.gpu_cluster[decisions[-1].gpus[0]] == cluster
            assert isinstance(decisions[-1], Replicate) or (decisions[-1].job == job and job in env.view.queue)
            found = env.interface.action(decisions[0] if len(decisions) == 1 else Turn(tuple(decisions)))
            assert env.interface.decisions(found) == decisions
            seen |= {type(one) for one in decisions}
        assert env.interface.decisions((0,)) == [] and env.simulator.raw.record.tobytes() == before
        action = int(rng.choice(legal(env)))
        (shown, reward, ended, *_), (same, paid, *_) = env.step(action), other.step(action)
        assert np.array_equal(shown, same) and reward == paid
        if ended:
            env.reset(), other.reset()
    assert seen == {Start, Hold, Preempt, Replicate}


def test_what_another_player_does_after_a_policy_was_asked_is_its_own():
    """The round of the policy, 34 s, is over with it, whether it was asked for a first action or for another one."""
    for asked in (1, 3):
        env, mast = geo(workload=random_workload(2), round=10.0), policies.make("mast:slow=none")
        env.reset(seed=2)
        action = int(mast.act(env))
        for _ in range(1, asked):
            env.step(action)
            action = int(mast.act(env))
        assert env.simulator.rule.round == 34.0
        other = next(candidate for candidate in legal(env) if candidate != action)
        decisions, count = env.interface.decisions((other,)), env.simulator.state.decisions
        env.step(other)
        assert env.simulator.rule == env.rule and env.simulator.state.decisions >= count + len(decisions)


def test_text_and_pictures_show_the_regions():
    env = by_hand([([(A100, 32)], [0], 3, 0, 0.0), ([(V100, 8)], [0], 3, 0, 0.0)], [0.0, 0.0], skip_idle=False)
    env.step(act(env, 0, EAST_A))
    env.step((0,))
    text = draw_ansi(env.simulator)
    assert "east" in text and "32/48" in text
    pytest.importorskip("PIL")
    from clustergym.envs.rendering.pictures.picture import draw_rgb

    for size in ((960, 640), (640, 420)):
        assert draw_rgb(env.simulator, size).shape == (size[1], size[0], 3)


def test_how_much_was_in_use_when_adds_up():
    from clustergym.envs.rendering.scenes.region_scene import read_regions

    env, rng = geo(workload=random_workload(6), mtbf_s=50_000.0), np.random.default_rng(6)
    env.reset(seed=6)
    ended = False
    while not ended:
        *_, ended, _, info = env.step((int(rng.choice(legal(env))),))
        s = env.simulator.state
        assert s.usage_held_s.sum() == pytest.approx(s.type_held_s.sum())
    world = read_regions(env.simulator)
    seconds = np.minimum(world.bin_s, world.elapsed_s - world.bin_s * np.arange(world.course.shape[1]))
    shares = (world.course * seconds).sum(axis=1) / world.elapsed_s
    assert shares.tolist() == pytest.approx(
        [info["metrics"]["allocation_rate"], info["metrics"]["cpu_allocation_rate"]]
    )


@pytest.mark.parametrize("env_id", ["clustergym/Geo-v0", "clustergym/DataPlacement-v0"])
def test_a_reference_by_its_word_is_the_player_under_that_word_there(env_id):
    """`slow` is a parameter of `greedy` in regions alone: the word was opened as if jobs were on GPUs."""
    word, workload = "greedy:slow=static", "mast-like:regions=2,gpus=64,jobs=30,longest_h=4,tables=10"
    env = gymnasium.make(env_id, workload=workload, topology="mast:regions=2,gpus=64", reference=word).unwrapped
    env.reset(seed=3)
    own = env.simulator
    alone = own.twin()
    alone.reset(own.workload, seed=int(own.state.seed))
    alone.run(policies.make_for(word, env_id))
    n = len(own.workload)
    assert np.array_equal(env.stepper.rows.references[0, :n], np.sort(alone.state.finish_s[:n]))
    with pytest.raises(InputError, match=r"slow is a parameter in regions; on GPUs expected"):
        gymnasium.make("clustergym/Delay-v0", reference=word)
