"""Geo-v0: bringing a workload's tables to a region, by hand on the regions of geo_small, and at random."""

from __future__ import annotations

from dataclasses import replace

import gymnasium
import numpy as np
import pytest

from clustergym import policies
from clustergym.envs.geo.columns import CANDIDATES, QUEUE, REGIONS
from clustergym.envs.geo.geo_window import BRING, candidate_of
from clustergym.simulator.base.decisions import Replicate
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.workloads import Workload
from clustergym.tests.support.geo_player import check_regions
from clustergym.tests.support.geo_small import A100, V100, demands, random_workload, small_topology

GEO = "clustergym/Geo-v0"
EAST, WEST, SOUTH = range(3)
EAST_A, EAST_B, EAST_CPU, WEST_V, WEST_CPU, WEST_A, SOUTH_A = range(7)
SMALL = {"topology": small_topology(), "tables": None, "round": 0.0, "slots": 4, "clusters": 3, "brings": 3}
FULL_EAST = [([(A100, 32)], [0], 3, 0, 0.0), ([(A100, 16)], [0], 3, 1, 0.0)]  # all A100 of the east


def by_hand(rows, when, seconds, fresh=False, **options):
    """`rows` as of geo_small.demands."""
    asked = demands(rows)
    if fresh:
        asked = replace(asked, fresh=np.ones(len(rows), np.bool_))
    workload = Workload.from_arrays("by hand", when, asked.units, seconds).with_geo(asked)
    env = gymnasium.make(GEO, workload=workload, **{**SMALL, **options}).unwrapped
    env.reset(seed=0)
    return env


def choices(env):
    found = (env.interface.choice(c) for c in np.flatnonzero(env.action_masks()).tolist())
    return {tuple(int(part) for part in choice) for choice in found if choice is not None}


def act(env, *choice):
    return next(c for c in np.flatnonzero(env.action_masks()).tolist() if c and env.interface.choice(c) == choice)


def offered(env, choice, column):
    rows = env.observe()["candidates"].reshape(-1, len(CANDIDATES))
    return float(rows[act(env, *choice), column])


def waits_for_the_east(**options):
    """East is full until 6000 s; at 60 s comes one of 16 A100 that reads `clicks`, 100 GB, which lies there alone."""
    rows = [*FULL_EAST, ([(A100, 16)], [0], 3, 1, 0.0)]
    env = by_hand(rows, [0.0, 0.0, 60.0], [6000.0, 6000.0, 500.0], **options)
    env.step(act(env, 0, EAST_A, 0))
    env.step(act(env, 1, EAST_B, 0))
    return env


def test_a_copy_takes_its_bytes_over_the_link_and_the_workload_starts_beside_it():
    """100 GB over 1 GB/s: from 60 to 160 s; then it runs in the south for 500 s."""
    env = waits_for_the_east()
    assert env.view.now_s == 60.0 and choices(env) == {(2, -1, 0), (2, WEST, BRING), (2, SOUTH, BRING)}
    env.step(act(env, 2, SOUTH, BRING))
    assert env.view.transfers == [(0, EAST, SOUTH, 1e11)] and env.view.stored_bytes[SOUTH] == 1_100 * 10**9
    assert choices(env) == {(2, -1, 0), (2, WEST, BRING)}  # on the way: there is nothing to bring
    env.step(0)
    assert env.view.now_s == 160.0 and (2, SOUTH_A, 0) in choices(env)
    assert env.view.regions_of(2) == [EAST, SOUTH]
    *_, ended, _, info = env.step(act(env, 2, SOUTH_A, 0))
    jobs = env.simulator.jobs()
    assert ended and jobs["first_start_s"].tolist() == [0.0, 0.0, 160.0]
    assert jobs["finish_s"].tolist() == [6000.0, 6000.0, 660.0] and info["metrics"]["bytes_moved"] == 1e11


def test_without_it_the_workload_waits_for_the_east():
    env = waits_for_the_east(brings=0)
    assert env.view.now_s == 6000.0 and choices(env) >= {(2, EAST_A, 0)}


def test_what_is_on_the_way_and_what_is_missing_are_seen():
    """100 of 1,050 GB of room in the west, 100 of 200 in the south; 100 s over an idle link."""
    env = waits_for_the_east()
    assert offered(env, (2, WEST, BRING), CANDIDATES.copied) == np.float32(100 / 1050)
    assert offered(env, (2, SOUTH, BRING), CANDIDATES.copied) == np.float32(100 / 200)
    seconds = offered(env, (2, SOUTH, BRING), CANDIDATES.copy_time)
    assert np.expm1(seconds * np.log1p(30 * 86400.0)) == pytest.approx(100.0, rel=1e-5)
    assert offered(env, (2, WEST, BRING), CANDIDATES.types_free) == 1
    assert env.observe()["queue"].reshape(-1, len(QUEUE))[0, QUEUE.regions_later] == 0.0
    env.step(act(env, 2, WEST, BRING))
    assert env.observe()["queue"].reshape(-1, len(QUEUE))[0, QUEUE.regions_later] == np.float32(1 / 3)
    rows = env.observe()["candidates"].reshape(-1, len(CANDIDATES))
    assert rows[:, CANDIDATES.bring].sum() == 1.0


def test_the_demand_of_a_region_counts_jobs_that_wait_for_tables_on_the_way_there():
    """16 units asked, in the east alone; once `clicks` are on the way half of them in the west, which has 48 GPUs."""
    env = waits_for_the_east()
    shown = lambda: env.observe()["regions"].reshape(-1, len(REGIONS))[:3, REGIONS.demand]  # noqa: E731
    assert shown().tolist() == [np.float32(64 / (64 + 48)), 0.0, 0.0]
    env.step(act(env, 2, WEST, BRING))
    assert shown().tolist() == [np.float32(56 / (56 + 48)), np.float32(8 / (8 + 48)), 0.0]


def test_the_region_with_the_least_demand_is_offered_where_there_is_one_place():
    """16 A100 in the west and in the south; one of 8 already runs in the south."""
    rows = [*FULL_EAST, ([(A100, 8)], [4], 3, 1, 0.0), ([(A100, 16)], [0], 3, 1, 0.0)]
    env = by_hand(rows, [0.0, 0.0, 0.0, 60.0], [6000.0] * 4, brings=1)
    for job, cluster in ((0, EAST_A), (1, EAST_B), (2, SOUTH_A)):
        env.step(act(env, job, cluster, 0))
    assert env.view.now_s == 60.0 and {c for c in choices(env) if c[2] == BRING} == {(3, WEST, BRING)}


def test_only_what_the_storage_has_room_for_is_brought():
    """`videos`, 1,000 GB, leave 50 GB of room in the west: `clicks` do not fit beside them."""
    rows = [*FULL_EAST, ([(A100, 16)], [4], 3, 1, 0.0), ([(A100, 16)], [4], 3, 1, 0.0), ([(A100, 16)], [0], 3, 1, 0.0)]
    env = by_hand(rows, [0.0, 0.0, 0.0, 60.0, 60.0], [6000.0] * 5)
    for job, cluster in ((0, EAST_A), (1, EAST_B), (2, SOUTH_A)):
        env.step(act(env, job, cluster, 0))
    assert {(3, WEST, BRING), (4, WEST, BRING), (4, SOUTH, BRING)} <= choices(env)
    env.step(act(env, 3, WEST, BRING))
    assert {c for c in choices(env) if c[2] == BRING and c[1] == WEST} == set()
    assert (env.view.stored_bytes <= env.view.storage_bytes).all()


def test_several_tables_come_together_and_those_on_the_way_once():
    """One of V100 reads `clicks` and `users`, 300 GB, which lie in the east; V100 lie in the west alone."""
    env = by_hand([([(V100, 8)], [0, 1], 3, 1, 0.0), ([(V100, 8)], [0], 3, 1, 0.0)], [0.0, 0.0], [600.0] * 2)
    assert choices(env) >= {(0, WEST, BRING), (1, WEST, BRING)}
    env.step(act(env, 1, WEST, BRING))
    decisions = env.interface.decisions((act(env, 0, WEST, BRING),))
    assert decisions == [Replicate(1, WEST)]


def test_what_needs_fresh_data_is_not_brought():
    rows = [([(A100, 16)], [0], 3, 1, 0.0)]
    for fresh in (False, True):
        env = by_hand(rows, [0.0], [600.0], fresh=fresh)
        assert any(choice[2] == BRING for choice in choices(env)) != fresh


def test_what_no_region_can_run_is_not_copied_elsewhere_once_it_is_brought():
    """Without a choice the table goes where the fewest bytes are missing; brought to the south, it goes there alone."""
    rows = [([(A100, 16)], [1, 2], 3, 1, 0.0)]  # 200 GB in the east, 50 GB in the west
    alone = by_hand(rows, [0.0], [600.0], brings=0)
    alone.step(0)
    assert alone.view.now_s == 50.0 and {choice[1] for choice in choices(alone)} == {EAST_A, EAST_B}
    env = by_hand(rows, [0.0], [600.0])
    env.step(act(env, 0, WEST, BRING))
    env.step(0)
    assert env.view.now_s == 200.0 and choices(env) >= {(0, WEST_A, 0)}


@pytest.mark.parametrize("seed", range(3))
def test_at_random_nothing_breaks_and_candidates_and_choices_are_one_another(seed):
    """Storage, links and copies hold after every step; each legal choice is a candidate, and is carried out."""
    workload = random_workload(seed, jobs=40)
    options = {**SMALL, "slots": 8, "preempts": ("lower", "any")[seed % 2]}
    options |= {"region_mtbf_s": 5_000.0, "region_mttr_s": 600.0} if seed == 2 else {}
    env = gymnasium.make(GEO, workload=workload, **options).unwrapped
    _, info = env.reset(seed=seed)
    rng, brought, ended = np.random.default_rng(seed), 0, False
    while not ended:
        legal = np.flatnonzero(info["action_mask"]).tolist()
        assert [candidate_of(env.interface.window, *env.interface.choice(c)) for c in legal if c] == [
            c for c in legal if c
        ]
        brings = [c for c in legal if c and env.interface.choice(c)[2] == BRING]
        action = int(rng.choice(brings if brings and rng.random() < 0.3 else legal))
        before = env.simulator.state.decisions
        *_, terminated, truncated, info = env.step(action)
        ended = terminated or truncated
        if action in brings and not ended:
            brought += 1
            assert env.simulator.state.decisions > before and not info["invalid_action"]
        if not ended:
            check_regions(env.simulator)
    assert brought > 2 and not truncated


@pytest.mark.parametrize("seed", range(4))
def test_what_is_kept_between_the_steps_of_an_instant_is_what_a_look_from_scratch_finds(seed):
    """Another environment goes on at a snapshot of each step, of which it remembers nothing."""
    options = {**SMALL, "slots": 8, "preempts": ("lower", "any")[seed % 2], "round": (0.0, 300.0)[seed // 2]}
    workload = random_workload(seed, jobs=40)
    env, anew = (gymnasium.make(GEO, workload=workload, observation="flat", **options).unwrapped for _ in range(2))
    seen, info = env.reset(seed=seed)
    anew.reset(seed=seed + 1)
    rng, kept, ended = np.random.default_rng(seed), 0, False
    while not ended:
        now_s, before = env.view.now_s, env.interface.window.starts_valid
        seen, _, terminated, truncated, info = env.step(int(rng.choice(np.flatnonzero(info["action_mask"]))))
        anew.restore(env.snapshot())
        assert np.array_equal(anew.observe(), seen) and np.array_equal(anew.action_masks(), info["action_mask"])
        kept += env.view.now_s == now_s and before != 0
        ended = terminated or truncated
    assert kept > 5


def test_lessons_are_given_wherever_an_agent_is_asked_and_say_what_is_brought():
    """What an agent would see at its own instants is what it is taught on, and copies that are actions as such."""
    workload = random_workload(3, jobs=60)
    options = {**SMALL, "preempts": "any", "slots": 8, "observation": "flat"}
    env, policy = gymnasium.make(GEO, workload=workload, **options).unwrapped, policies.make("bring:slow=none")
    seen, _ = env.reset(seed=1)
    kinds, idle, ended = set(), 0, False
    while not ended:
        action, features, known = env.demonstration(policy)
        choice = env.interface.choice(int(action))
        kinds.add(None if choice is None else int(choice[2]))
        idle += choice is None and bool(env.interface.raw["can_act"])
        assert env.action_masks()[action] and (not known or np.array_equal(features, seen))
        seen, _, ended, _, info = env.step(action)
        assert not info["invalid_action"]
    assert kinds >= {None, 0, BRING} and idle > 0
    taught = info["metrics"]
    env.reset(seed=1)
    ended, steps = False, 0
    while not ended:
        _, _, ended, _, info = env.step(policy.act(env))
        steps += 1
    assert info["metrics"] == taught


def test_a_bad_number_of_regions_is_one_sentence():
    for brings in (-1, 9, 1.5, True):
        with pytest.raises(InputError, match=r"brings = .*expected a whole number from 0 to 8"):
            gymnasium.make(GEO, **{**SMALL, "workload": random_workload(0), "brings": brings})
