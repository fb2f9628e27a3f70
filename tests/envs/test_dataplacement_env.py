"""DataPlacement-v0: what its actions, masks and features mean; every policy through it is the simulator alone."""

from __future__ import annotations

import json
from functools import partial

import gymnasium
import numpy as np
import pytest

from clustergym import policies
from clustergym.envs import batch_state
from clustergym.envs.dataplacement.columns import CANDIDATES
from clustergym.envs.dataplacement.env import DataPlacementVectorEnv
from clustergym.policies.mast.mast import WorkloadPassPolicy
from clustergym.simulator.base.decisions import Advance, Drop, Move, Replicate
from clustergym.simulator.base.errors import InputError, InvalidDecision
from clustergym.simulator.table_placement.placement import Objective, Placement
from clustergym.simulator.table_placement.placement_metrics import table_metrics
from clustergym.tests.support import geo_small
from clustergym.tests.support.env_terms import differences

DATA_PLACEMENT = "clustergym/DataPlacement-v0"
EAST, WEST, SOUTH = range(3)
CLICKS, USERS, ADS, LOGS, VIDEOS = range(5)
DONE, LEAVE = 0, 1
BRISK = {
    "topology": "mast:regions=4,gpus=256",
    "workload": "mast-like:jobs=120,scale=1,longest_h=6,tables=24",
    "tables_every_s": 20_000.0,
}


def placing(**options):
    """By default the three regions, five tables and ten workloads of geo_small.py."""
    small = {"topology": geo_small.small_topology(), "workload": geo_small.small_workload(), "region_slots": 4}
    return gymnasium.make(DATA_PLACEMENT, **{**small, "tables_every_s": 612.0, "quota": 5.0, **options}).unwrapped


def begun(**options):
    env = placing(**options)
    env.reset(seed=0)
    return env


def test_a_workload_that_reads_no_tables_is_refused(tmp_path):
    path = tmp_path / "lab.csv"
    path.write_text("job_id,arrival_s,gpus,duration_s,parts\na,0,8,9,A100:8\n")
    with pytest.raises(InputError, match="workload 'lab' reads no tables: DataPlacement-v0 needs one as mast-like"):
        begun(workload=str(path))


def home_to(region):
    return (2 + 3 * region,)


def replica_to(region):
    return (3 + 3 * region,)


def drop_at(region):
    return (4 + 3 * region,)


def legal(env):
    return np.flatnonzero(env.action_masks()).tolist()


def turn_to(env, table):
    while env.interface.offered != table:
        env.step((LEAVE,))


class InPython(WorkloadPassPolicy):
    """The same passes, but no kernel stands for one of another class."""


@pytest.mark.parametrize("options", [{}, {"scan_s": 0.0}], ids=["every 34 s", "at every event"])
def test_passes_in_a_kernel_are_those_in_python(options):
    """Random actions, with outages: every feature, reward and metric is the same."""
    played = []
    for kind in (WorkloadPassPolicy, InPython):
        scheduler, rng, seen = kind("mast", **options), np.random.default_rng(7), []
        assert scheduler.is_compiled is (kind is WorkloadPassPolicy)
        env = placing(**BRISK, scheduler=scheduler, region_mtbf_s=80_000.0, region_mttr_s=3000.0, observation="flat")
        observation, _ = env.reset(seed=3)
        ended, info = False, {}
        while not ended:
            found = legal(env)
            action = DONE if rng.random() < 0.3 else int(rng.choice(found))
            observation, reward, terminated, truncated, info = env.step((action,))
            seen.append((observation.tobytes(), float(reward)))
            ended = terminated or truncated
        played.append((seen, info["metrics"]))
    assert played[0] == played[1]


def test_tables_are_offered_by_the_bytes_that_are_read():
    env = begun()
    offered = []
    while env.interface.offered is not None and env.view.now_s == 0.0:
        offered.append(env.interface.offered)
        env.step((LEAVE,))
    assert offered == [VIDEOS, USERS, CLICKS, ADS, LOGS]  # 1,000, 200, 100 and 50 GB by one reader each; logs by none
    assert env.view.now_s == 612.0  # the next look, and the 18th pass of the scheduler


def test_what_is_offered_of_a_table():
    env = begun()
    turn_to(env, CLICKS)
    # Home to west or south, a replica in either; nothing to drop. The fourth region does not exist.
    assert legal(env) == [DONE, LEAVE, *home_to(WEST), *replica_to(WEST), *home_to(SOUTH), *replica_to(SOUTH)]
    env.step(replica_to(WEST))
    assert env.interface.offered == CLICKS and env.view.transfers == [(CLICKS, EAST, WEST, 1e11)]
    assert legal(env) == [DONE, LEAVE, *home_to(WEST), *drop_at(WEST), *home_to(SOUTH), *replica_to(SOUTH)]
    env.step(home_to(SOUTH))
    assert env.view.moving_to(CLICKS) == SOUTH and env.view.home(CLICKS) == EAST
    env.step(drop_at(WEST))
    assert env.view.transfers == [(CLICKS, EAST, SOUTH, 1e11)]
    # What was decided is not offered again at this instant; the old home may still take it back.
    assert not {*home_to(SOUTH), *replica_to(WEST), *drop_at(WEST)} & set(legal(env))
    env.step((DONE,))
    assert env.view.now_s == 612.0 and env.view.home(CLICKS) == SOUTH  # the east is still read


def test_a_home_that_was_made_a_replica_too_keeps_its_readers_when_it_moves():
    """Ads are read by one known workload, on V100s, which only the west has."""
    env = begun()

    def readers_left(found, candidate):
        return found["candidates"].reshape(-1, len(CANDIDATES))[candidate, CANDIDATES.readers_lost].item()

    turn_to(env, ADS)
    found = env.step(replica_to(EAST))[0]
    assert env.view.home(ADS) == WEST and readers_left(found, home_to(EAST)) > 0.0
    env.step(home_to(EAST))
    env.step(replica_to(WEST))
    env.step((DONE,))
    turn_to(env, ADS)
    found = env.step(home_to(WEST))[0]
    assert env.view.home(ADS) == WEST and readers_left(found, home_to(EAST)) == 0.0
    env.step(home_to(EAST))
    assert WEST in env.view.projected_warehouse().tables.copies[ADS].nonzero()[0]


def test_the_quota_masks_what_is_beyond_it():
    env = begun(quota=0.1)  # 175 GB
    turn_to(env, USERS)
    assert legal(env) == [DONE, LEAVE]
    turn_to(env, CLICKS)
    env.step(home_to(WEST))
    assert legal(env) == [DONE, LEAVE, *home_to(EAST), *replica_to(EAST), *replica_to(WEST)]  # they copy nothing more
    env.step((LEAVE,))
    assert env.interface.offered == ADS and set(legal(env)) > {DONE, LEAVE}  # 50 GB


def test_storage_masks_what_has_no_room():
    """The south stores 1,200 GB, 1,000 of them videos."""
    env = begun()
    turn_to(env, USERS)
    assert {*home_to(SOUTH), *replica_to(SOUTH)} <= set(legal(env))  # 200
    turn_to(env, LOGS)
    assert not {*home_to(SOUTH), *replica_to(SOUTH)} & set(legal(env))  # 400


def test_the_reward_for_placement_is_what_is_taken_off_the_cost():
    env = begun(reward="placement")
    first = Placement(env.view.warehouse(), Objective()).cost
    turn_to(env, CLICKS)
    *_, reward, _, _, _ = env.step(home_to(WEST))
    placement = Placement(env.view.warehouse(), Objective())
    change = placement.change(CLICKS, WEST)
    assert reward == pytest.approx(-change / first, rel=1e-9)
    assert env.step(replica_to(SOUTH))[1] == 0.0
    ended, total = False, reward
    while not ended:
        _, reward, ended, _, info = env.step((DONE,))
        total += reward
    assert info["metrics"]["placement_cost"] == pytest.approx(first + change, rel=1e-9)
    assert total == pytest.approx(-change / first, rel=1e-9)


@pytest.mark.parametrize("horizon_s", [None, 60_000.0])
@pytest.mark.parametrize("reference", ["static", "tetris-v1:kicks=0,scheduler=federated"])
def test_the_return_against_a_reference_is_the_share_of_its_jct_that_is_saved(reference, horizon_s):
    """1 - (own sum of JCTs) / (its sum), with looks as often; at a horizon both pay for the jobs that are left."""
    env = gymnasium.make(DATA_PLACEMENT, **BRISK, reference=reference, horizon_s=horizon_s).unwrapped
    rng = np.random.default_rng(0)
    env.reset(seed=5)
    total, ended = 0.0, False
    while not ended:
        _, reward, terminated, truncated, _ = env.step([rng.choice(legal(env))])
        total, ended = total + reward, terminated or truncated
    own = env.simulator
    alone = own.config.build()
    alone.reset(own.workload, int(own.state.seed))
    alone.run(policies.make(reference))
    sums = [
        float(one.state.active_integral) + sum(one.view.remaining_s(job) for job in range(len(one.workload)))
        for one in (own, alone)
    ]
    expected = 1.0 - sums[0] / sums[1]
    assert abs(expected) > 1e-3
    assert total == pytest.approx(expected, abs=1e-9)


def test_a_reference_that_is_played_saves_nothing_of_its_own_jct():
    env = gymnasium.make(DATA_PLACEMENT, **BRISK, reference="tetris-v2:kicks=0").unwrapped
    env.reset(seed=5)
    policy, total, ended = policies.make("tetris-v2:kicks=0"), 0.0, False
    while not ended:
        _, reward, ended, _, _ = env.step(policy.act(env))
        total += reward
    assert total == pytest.approx(0.0, abs=1e-9)


def test_metrics_tell_how_the_tables_stand():
    env = begun()
    found = table_metrics(env.view)
    # Of three known jobs one reads tables of two homes: at home both, east; one (level 2) finds its V100 in the west.
    assert found["home_rate"] == 1.0 and found["collocated_rate"] == 1.0
    assert found["worst_region_load"] == pytest.approx(64.0 / (24.0 * 48))
    turn_to(env, CLICKS)
    env.step(home_to(SOUTH))
    assert table_metrics(env.view)["home_rate"] == pytest.approx(2 / 3)
    assert table_metrics(env.view)["collocated_rate"] == pytest.approx(16.0 / 80.0)


@pytest.mark.parametrize(
    ("word", "options"),
    [
        ("tetris-v2:quota=0.05,kicks=0", {"region_mtbf_s": 400_000.0}),
        ("tetris-v1:scheduler=federated", {"scheduler": "federated", "tables_every_s": 30_000.0}),
    ],
)
def test_with_parameters_too(word, options):
    assert differences(DATA_PLACEMENT, partial(policies.make, word), **options)[0] == []


def test_lessons_come_in_the_order_of_the_window():
    """An agent sees what it would see anyway, and is told what the policy does about the table that it is offered."""
    env, policy = gymnasium.make(DATA_PLACEMENT, observation="flat", **BRISK).unwrapped, policies.make("tetris-v2")
    seen, _ = env.reset(seed=0)
    kinds, ended, start_s = set(), False, env.view.now_s
    while not ended and env.view.now_s == start_s:
        action, features, known = env.demonstration(policy)
        assert known and np.array_equal(features, seen) and env.action_masks()[action]
        kinds.add(min(2, int(action)))
        seen, _, ended, _, info = env.step(action)
        assert not info["invalid_action"]
    assert kinds >= {LEAVE, 2}
    other = gymnasium.make(DATA_PLACEMENT, **BRISK).unwrapped
    other.reset(seed=0)
    while other.view.now_s == start_s:
        other.step(policy.act(other))
    costs = [one.interface.raw["table_cost"] for one in (env, other)]
    assert costs[0] == pytest.approx(costs[1], rel=0.05)


def test_a_decision_beyond_the_quota_of_the_environment_is_one_sentence():
    class Eager(policies.Policy):
        def decide(self, view):
            return Move(VIDEOS, EAST) if view.moving_to(VIDEOS) is None else Advance()

    env = begun(quota=0.1)
    with pytest.raises(InvalidDecision, match=r"beyond the environment's quota = 0\.1"):
        env.act_of(Eager())


@pytest.mark.parametrize(
    ("decision", "part"),
    [
        (Drop(CLICKS, EAST), "home"),
        (Replicate(LOGS, SOUTH), "storage"),
        (Move(CLICKS, EAST), "home already"),
        (Move(7, EAST), "tables 0 to 4"),
    ],
)
def test_a_decision_that_cannot_be_is_one_sentence(decision, part):
    class Odd(policies.Policy):
        def decide(self, view):
            return decision

    with pytest.raises(InvalidDecision, match=part) as error:
        begun().act_of(Odd())
    assert "\n" not in str(error.value)


def test_a_batch_goes_on_from_its_state():
    """In the middle of an instant, through JSON."""
    agents = pytest.importorskip("clustergym.agents")
    options = {"topology": geo_small.small_topology(), "workload": geo_small.small_workload(), "region_slots": 4}
    options |= {"tables_every_s": 612.0, "quota": 0.5, "observation": "flat"}
    first = agents.sb3_vec_env(DATA_PLACEMENT, 2, **options)
    first.seed(3)
    first.reset()
    rng = np.random.default_rng(0)

    def play(env, steps):
        trail = []
        for _ in range(steps):
            masks = np.stack(env.env_method("action_masks"))
            env.step_async(np.array([[rng.choice(np.flatnonzero(row))] for row in masks]))
            observation, reward, ended, _ = env.step_wait()
            trail += [observation.tobytes(), reward.tobytes(), ended.tobytes()]
        return trail

    play(first, 7)
    arrays, data = first.get_state()
    other = agents.sb3_vec_env(DATA_PLACEMENT, 2, **options)
    other.set_state(arrays, json.loads(json.dumps(data)))
    kept = rng.bit_generator.state
    expected = play(first, 25)
    rng.bit_generator.state = kept
    assert play(other, 25) == expected


def test_a_review_goes_on_from_its_state_with_the_bound_that_it_began_with():
    """A home that comes back within a review may leave again: Expression 6 is measured against the review's begin."""
    small = {"topology": geo_small.small_topology(), "workload": geo_small.small_workload(), "region_slots": 4}
    options = {**small, "tables_every_s": 612.0, "quota": 5.0, "observation": "flat", "reward": "placement"}
    made = partial(DataPlacementVectorEnv, 1, **options)
    first, other = made(), made()
    first.reset(seed=0)
    turned = [LEAVE, LEAVE]  # videos and users come before clicks
    for candidate in [*turned, *home_to(SOUTH), DONE, *turned, *home_to(EAST)]:
        first.step(np.array([candidate]))
    batch_state.restore(other.batch, *batch_state.state_of(first.batch))
    played = [env.step(np.array(replica_to(SOUTH))) for env in (first, other)]
    assert played[0][1].tolist() == played[1][1].tolist() == [0.0]
    assert played[0][0].tobytes() == played[1][0].tobytes()
    fits = played[0][0][0, first.envs[0].interface.places["candidates"]].reshape(-1, len(CANDIDATES))[
        :, CANDIDATES.fits
    ]
    assert fits[home_to(SOUTH)] == 1.0


def test_pictures_show_what_lies_where():
    pytest.importorskip("PIL")
    from clustergym.envs.rendering.scenes.table_scene import COLOURS, COMES, HOME, read_tables

    env = begun(render_mode="rgb_array")
    empty = env.render()
    turn_to(env, CLICKS)
    env.step(replica_to(WEST))
    scene, picture = read_tables(env.simulator), env.render()
    place = [VIDEOS, USERS, CLICKS, ADS, LOGS].index(CLICKS)
    assert scene.lies[WEST, place] == COMES and scene.lies[EAST, place] == HOME and len(scene.moving) == 1
    assert picture.shape == (640, 960, 3) and picture.dtype == np.uint8 and not np.array_equal(picture, empty)
    assert (picture == COLOURS[COMES]).all(axis=2).sum() > (empty == COLOURS[COMES]).all(axis=2).sum()
    env.render_mode = "ansi"
    assert "5 tables" in env.render() and "..+HH" in env.render()
