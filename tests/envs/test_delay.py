"""Delay-v0: what its actions, masks, rewards, observations and ends mean."""

from __future__ import annotations

import math

import gymnasium
import numpy as np
import pytest

from clustergym import policies
from clustergym.envs.columns import FLAG, described
from clustergym.envs.delay.columns import CANDIDATES, CLUSTER, QUEUE, RUNNING
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.workloads import Workload

DELAY = "clustergym/Delay-v0"
TWO = "flat:machines=1,gpus_per_machine=2"
TIERED = "dally:racks=2,machines=2"
SMALL = {"topology": TIERED, "workload": "poisson:jobs=40,backlog=12,load=1.2", "slots": 8, "running_slots": 8}
ADVANCE = (0, 0, 0)
DELAYS = 11


def delay(**options):
    return gymnasium.make(DELAY, **{**SMALL, **options}).unwrapped


def by_hand(jobs, topology=TWO, **options):
    """An environment with two waiting and two running slots, at its first decision, without a network."""
    columns = {key: options.pop(key) for key in ("deadline_s",) if key in options}
    workload = Workload.from_arrays("by hand", *map(list, zip(*jobs, strict=True)), **columns)
    env = delay(topology=topology, workload=workload, network="none", **{"slots": 2, "running_slots": 2, **options})
    env.reset(seed=0)
    return env


def start(slot, tier=0):
    """Tier 0: inside a machine, 1: inside a rack, 2: across racks."""
    return (1 + 5 * slot + tier, 0, 0)


def make_room(slot):
    return (1 + 5 * slot + 3, 0, 0)


def hold(slot, bucket=0, tier=0):
    """Tier 0: a machine, 1: a rack."""
    return (1 + 5 * slot + 4, bucket, tier)


def preempt(slot, slots=2):
    return (1 + 5 * slots + 3 * slot, 0, 0)


def migrate(slot, slots=2):
    return (1 + 5 * slots + 3 * slot + 1, 0, 0)


def defragment(slot, slots=2):
    return (1 + 5 * slots + 3 * slot + 2, 0, 0)


def candidates(env):
    """Legal candidates."""
    return np.flatnonzero(env.action_masks()[: env.action_space.nvec[0]]).tolist()


def legal_action(env, rng):
    """A uniform choice among the legal candidates, any delay, any tier."""
    return np.array([rng.choice(candidates(env)), *(rng.integers(n) for n in env.action_space.nvec[1:])])


def test_the_first_start_at_a_tier_by_hand():
    """2 GPUs, jobs of 1, 2 and 1 GPUs. Slot 0 starts on one GPU; then 1 does not fit, 2 does, and is in slot 1."""
    env = by_hand([(0, 1, 10), (0, 2, 5), (0, 1, 4)])
    assert candidates(env) == [start(0)[0], start(1)[0]]
    _, reward, terminated, truncated, info = env.step(start(0))
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert {key: info[key] for key in ("elapsed_s", "invalid_action", "adjusted_action")} == {
        "elapsed_s": 0.0, "invalid_action": False, "adjusted_action": False,
    }  # fmt: skip
    assert env.view.running.tolist() == [0]
    assert candidates(env) == [0, hold(0)[0], start(1)[0], hold(1)[0]]
    _, reward, *_, info = env.step(start(1))
    # Nothing fits before 4, when 2 ends: one GPU is free, but 1 needs two; 0 could be preempted: a decision.
    assert (info["elapsed_s"], env.view.now_s, env.view.running.tolist()) == (4.0, 4.0, [0])
    assert reward == pytest.approx(-4.0 * 3 / 19)
    assert candidates(env) == [0, hold(0)[0], preempt(0)[0]]


def test_the_return_is_minus_the_mean_jct_in_mean_isolated_run_times():
    """1 after 0 on both GPUs: JCTs 10 and 15, isolated 10 and 5: -25/15."""
    env = by_hand([(0, 2, 10), (0, 2, 5)])
    total = 0.0
    for action in (start(0), ADVANCE, start(0)):
        _, reward, terminated, _, info = env.step(action)
        total += reward
    assert terminated
    assert total == pytest.approx(-25 / 15, rel=1e-12)
    assert (info["metrics"]["jct_mean"], info["metrics"]["makespan"]) == (12.5, 15.0)


@pytest.mark.parametrize(
    ("reward", "expected"),
    [
        ("jct", lambda m, w, gpus: -m["jct_mean"] / w.duration_s.mean()),
        ("makespan", lambda m, w, gpus: -m["makespan"] / ((w.duration_s * w.gpus).sum() / gpus)),
        ("slowdown", lambda m, w, gpus: -m["slowdown_mean"]),
        ("slo", lambda m, w, gpus: -m["slo_violation_rate"]),
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_returns_are_what_reward_says(reward, expected, seed):
    """Random legal actions; every second job has a deadline of three isolated run times."""
    rng = np.random.default_rng(seed)
    duration_s, arrival_s = rng.uniform(100, 5000, 30), np.sort(rng.uniform(0, 9000, 30))
    deadline_s = np.where(np.arange(30) % 2, arrival_s + 3 * duration_s, math.inf)
    gpus = 2 ** rng.integers(0, 5, 30)
    workload = Workload.from_arrays("deadlines", arrival_s, gpus, duration_s, deadline_s=deadline_s)
    env = delay(workload=workload, network="penalty:default=1/1.2/1.5", reward=reward)
    env.reset(seed=seed)
    total, terminated = 0.0, False
    while not terminated:
        _, gained, terminated, truncated, info = env.step(legal_action(env, rng))
        total += gained
        assert not truncated
    assert total == pytest.approx(expected(info["metrics"], workload, 32), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("action", [ADVANCE, hold(0), (2, 0, 0)])
def test_an_invalid_action_where_nothing_is_to_come_plays_the_first_legal_one(action):
    """One job, nothing runs: advance is illegal, a start is legal; time cannot pass, so the job starts."""
    env = by_hand([(0, 1, 10)])
    assert candidates(env) == [start(0)[0]]
    _, reward, terminated, _, info = env.step(action)
    assert (reward, terminated, info["invalid_action"], info["forced_action"]) == (-1.0, True, True, True)


@pytest.mark.parametrize(("bucket", "played"), [(-5, 0), (99, DELAYS - 1)])
def test_a_delay_out_of_range_becomes_the_nearest(bucket, played):
    ends = []
    for choice in (bucket, played):
        env = by_hand([(0, 1, 10), (0, 1, 10), (100_000, 1, 1)])
        env.step(start(0))
        *_, info = env.step(hold(0, choice))
        assert (info["adjusted_action"], info["invalid_action"]) == (choice == bucket, False)
        ends.append(env.simulator.snapshot().tobytes())
    assert ends[0] == ends[1]


def test_a_delay_in_range_is_never_adjusted_even_where_it_does_not_apply():
    env = by_hand([(0, 1, 10)])
    assert not env.step((start(0)[0], 5, 1))[-1]["adjusted_action"]


@pytest.mark.parametrize(("bucket", "until_s"), [(2, 60.0), (3, 300.0), (10, 86_400.0), (0, 1000.0), (1, 3600.0)])
def test_a_held_job_leaves_the_window_and_comes_back(bucket, until_s):
    """2 machines of 4. 0 and 1 leave a GPU free on each, until 200,000; 0 until 1,000 if its end is the offer.

    2 (2 GPUs) is held for a machine, till its delay or 0 ends. Its timer of a machine is a lease, an hour.
    """
    jobs = [(0, 3, 1000.0 if bucket == 0 else 200_000.0), (0, 3, 200_000.0), (0, 2, 5)]
    env = by_hand(jobs, "flat:machines=2,gpus_per_machine=4", slots=3)
    env.step(start(0))
    env.step(start(0))
    observation, *_ = env.step(hold(0, bucket))
    assert (env.view.now_s, env.view.queue.tolist(), env.view.held.tolist()) == (until_s, [2], [])
    assert observation["queue"][0] == 1.0


@pytest.mark.parametrize(("tier", "start_s", "lies_at"), [(0, 1000.0, 0), (1, 0.0, 2)])
def test_a_held_job_starts_by_itself_at_its_tier(tier, start_s, lies_at):
    """As above; 0 ends at 1,000. Held for a machine 2 starts then, in a slot of it; held for a rack, at once."""
    jobs = [(0, 3, 1000.0), (0, 3, 200_000.0), (0, 2, 5)]
    env = by_hand(jobs, "flat:machines=2,gpus_per_machine=4", slots=3)
    for action in (start(0), start(0), hold(0, 5, tier)):
        assert not env.step(action)[-1]["invalid_action"]
    table = env.simulator.jobs()
    assert (table["first_start_s"][2], table["tier"][2]) == (start_s, lies_at)


def test_a_held_job_gives_its_slot_to_the_next():
    """2 GPUs, one slot. 0 is held, so 1 is shown and started; it ends at 5, which is 0's offer."""
    env = by_hand([(0, 1, 10), (0, 1, 5), (99, 1, 1)], slots=1, preemption=False)
    env.step(hold(0))
    assert (env.view.now_s, env.view.queue.tolist(), env.view.held.tolist()) == (0.0, [1], [0])
    env.step(start(0))
    assert (env.view.now_s, env.view.queue.tolist(), env.view.held.tolist()) == (5.0, [0], [])


def test_jobs_held_until_the_offer_come_back_together():
    """0 and 1 are held until an offer; 2 comes at 7 and is started: its end at 8 is their offer."""
    env = by_hand([(0, 1, 10), (0, 1, 5), (7, 1, 1)])
    assert 0 in candidates(env)
    for action in (hold(0), hold(0)):
        assert not env.step(action)[-1]["invalid_action"]
    assert (env.view.now_s, env.view.queue.tolist(), env.view.held.tolist()) == (7.0, [2], [0, 1])
    env.step(start(0))
    assert (env.view.now_s, env.view.queue.tolist()) == (8.0, [0, 1])


def test_own_delays():
    """Two buckets of one's own: 2 is 7 s, 3 is 9 s."""
    jobs = [(0, 3, 100), (0, 3, 100), (0, 2, 5)]
    env = by_hand(jobs, "flat:machines=2,gpus_per_machine=4", delays=(7.0, 9.0), slots=3)
    assert env.action_space.nvec.tolist() == [1 + 15 + 6, 4, 2]
    env.step(start(0))
    env.step(start(0))
    env.step(hold(0, 3))
    assert env.view.now_s == 9.0


def test_a_preempted_job_waits_again_and_pays():
    """2 GPUs, 30 s to restore. At 4, 0 makes room for 1 (5 s): 1 ends at 9, 0 restores until 39, and ends at 45."""
    env = by_hand([(0, 1, 10), (4, 2, 5)], preemption_cost=30.0)
    env.step(start(0))
    assert candidates(env) == [0, hold(0)[0], preempt(0)[0]]
    env.step(preempt(0))
    assert env.view.queue.tolist() == [0, 1]
    env.step(start(1))
    *_, terminated, _, info = env.step(start(0))
    assert terminated
    assert (info["metrics"]["preemptions"], info["metrics"]["makespan"]) == (1, 45)


def test_a_job_that_was_just_started_or_stopped_cannot_be_stopped():
    """So an instant always comes to its end."""
    env = by_hand([(0, 1, 10), (0, 2, 10), (4, 2, 5)], skip_idle=False)
    env.step(start(0))
    assert env.view.now_s == 0.0 and preempt(0)[0] not in candidates(env)
    env.step(ADVANCE)
    assert env.view.now_s == 4.0 and preempt(0)[0] in candidates(env)
    env.step(preempt(0))
    env.step(start(0))
    assert env.view.running.tolist() == [0] and preempt(0)[0] not in candidates(env)


def test_without_preemption_no_job_can_be_stopped_or_moved():
    env = by_hand([(0, 1, 10), (4, 2, 5), (6, 1, 1)], preemption=False)
    env.step(start(0))
    assert env.view.now_s == 6.0
    assert candidates(env) == [0, hold(0)[0], start(1)[0], hold(1)[0]]


def test_a_job_moves_to_a_better_tier():
    """2 racks of one machine of 8, 10 s to restore. 0 and 1 hold 6 GPUs each; 2 (4 GPUs, 150 s) spans racks at 0.

    0 ends at 20: 2 can move into machine 0 while 3 (16 GPUs) waits; 130 s of work are left, so it ends at 160.
    """
    jobs = [(0, 6, 20), (0, 6, 500), (0, 4, 150), (0, 16, 1)]
    env = by_hand(jobs, "dally:racks=2,machines=1", slots=4, preemption_cost=10.0)
    for action in (start(0), start(0), start(0, 2)):
        assert not env.step(action)[-1]["invalid_action"]
    assert (env.view.now_s, env.view.running.tolist(), env.view.tier_of(2)) == (20.0, [1, 2], 3)
    stops = [preempt(0, 4)[0], preempt(1, 4)[0], migrate(1, 4)[0]]
    assert candidates(env) == [0, make_room(0)[0], hold(0)[0], *stops]
    env.step(migrate(1, 4))
    assert (env.view.now_s, candidates(env)) == (20.0, [0, hold(0)[0], preempt(0, 4)[0]])
    observation, *_ = env.step(ADVANCE)
    assert (env.view.now_s, env.view.running.tolist()) == (160.0, [1])
    table = env.simulator.jobs()
    assert (table["finish_s"][2], table["tier"][2], env.simulator.metrics()["migrations"]) == (160.0, 0, 1)
    assert observation["running"][0] == 1.0


def test_a_tier_that_a_start_takes_is_the_candidates():
    """2 empty racks of 2 machines of 8: a gang of 4 is offered a machine only, 12 GPUs a rack, 20 both racks."""
    env = by_hand([(0, 4, 9), (0, 12, 9), (0, 20, 9)], TIERED, slots=3)
    assert candidates(env) == [start(0, 0)[0], start(1, 1)[0], start(2, 2)[0]]
    env.step(start(2, 2))
    assert env.view.tier_of(2) == 3
    assert candidates(env) == [0, *(1 + k for k in (0, 4)), *(6 + k for k in (1, 4))]


@pytest.mark.parametrize(
    ("order", "shown"),
    [("arrival", [0, 1, 2]), ("shortest", [2, 1, 0]), ("smallest", [1, 2, 0]), ("classes", [2, 1, 0])],
)
def test_the_window_shows_the_first_jobs_in_its_order(order, shown):
    """Gangs of 2, 1, 1; run times 9, 5, 3; ties by arrival. Starting slot 0 starts the first of them."""
    for slots in (1, 3):
        env = by_hand([(0, 2, 9), (0, 1, 5), (0, 1, 3)], order=order, slots=slots)
        env.step(start(0))
        assert np.flatnonzero(env.simulator.jobs()["first_start_s"] == 0.0).tolist() == [shown[0]]


def test_the_order_of_the_window_is_not_that_of_the_policy():
    """FIFO plays the same, whatever the window shows first."""
    results = set()
    for order in ("arrival", "shortest", "smallest"):
        env = delay(order=order, placer="count")
        policy = policies.make("fifo")
        env.reset(seed=3)
        terminated = False
        while not terminated:
            *_, terminated, _, info = env.step(policy.act(env))
        results.add(repr(info["metrics"]))
    assert len(results) == 1


def test_max_decisions_truncates():
    env = delay(max_decisions=5)
    env.reset(seed=0)
    flags = [env.step(ADVANCE)[2:4] for _ in range(5)]
    assert flags == [(False, False)] * 4 + [(False, True)]


def test_the_last_decision_that_ends_all_jobs_terminates_and_does_not_truncate():
    env = by_hand([(0, 1, 10)], max_decisions=1)
    *_, terminated, truncated, info = env.step(start(0))
    assert (terminated, truncated, info["metrics"]["jobs_finished"]) == (True, False, 1)


def test_the_horizon_truncates_with_metrics():
    """Horizon 12: 0 ends at 10, 1 would at 15."""
    env = by_hand([(0, 2, 10), (0, 2, 5)], horizon_s=12.0)
    env.step(start(0))
    assert env.view.now_s == 10.0
    _, _, terminated, truncated, info = env.step(start(0))
    assert (terminated, truncated, env.view.now_s) == (False, True, 12.0)
    assert (info["metrics"]["jobs_finished"], info["metrics"]["makespan"]) == (1, 12)


@pytest.mark.parametrize("options", [{"max_decisions": 60}, {"horizon_s": 20_000.0}, {"horizon_s": 1e9}])
def test_never_both_ends_and_metrics_on_the_last_step_only(options):
    env = delay(**options)
    rng = np.random.default_rng(0)
    for seed in range(5):
        env.reset(seed=seed)
        ended = False
        while not ended:
            *_, terminated, truncated, info = env.step(legal_action(env, rng))
            assert not (terminated and truncated)
            ended = terminated or truncated
            assert ("metrics" in info) == ended
        assert terminated == (info["metrics"]["jobs_finished"] == 40)


def test_every_instant_is_shown_without_skip_idle():
    """More decision points, the same metrics; those that `skip_idle` passes over have nothing to start."""
    steps, results = [], set()
    for skip_idle in (True, False):
        env = delay(skip_idle=skip_idle, preemption=False, placer="tier", slots=40)
        policy = policies.make("sjf:placer=tier")
        env.reset(seed=3)
        terminated, count = False, 0
        while not terminated:
            can_start = any(c % 5 != 0 for c in candidates(env) if c > 0)
            assert can_start or not skip_idle
            *_, terminated, _, info = env.step(policy.act(env))
            count += 1
        steps.append(count)
        results.add(repr(info["metrics"]))
    assert steps[0] < steps[1]
    assert len(results) == 1


def test_empty_slots_and_illegal_candidates_are_zero_and_legal_ones_say_so():
    """On every step of an episode of random legal actions."""
    env = delay(slots=6, running_slots=4)
    rng = np.random.default_rng(6)
    observation, _ = env.reset(seed=2)
    terminated = False
    while not terminated:
        queue = observation["queue"].reshape(6, len(QUEUE))
        running = observation["running"].reshape(4, len(RUNNING))
        table = observation["candidates"].reshape(-1, len(CANDIDATES))
        waiting, busy = min(6, len(env.view.queue)), min(4, len(env.view.running))
        assert queue[:, 0].tolist() == [1.0] * waiting + [0.0] * (6 - waiting)
        assert running[:, 0].tolist() == [1.0] * busy + [0.0] * (4 - busy)
        assert not queue[waiting:].any() and not running[busy:].any()
        legal = env.action_masks()[: env.action_space.nvec[0]]
        assert np.array_equal(table[:, 0], legal.astype(np.float32))
        assert not table[~legal].any()
        kinds = [place for place, column in enumerate(described(CANDIDATES).values()) if column.unit == FLAG][1:]
        assert (table[legal][:, kinds].sum(axis=1) == 1.0).all()
        observation, _, terminated, *_ = env.step(legal_action(env, rng))


def test_features_by_hand():
    """2 machines of 2, horizon e^10 - 1 s, so that times t read log1p(t) / 10.

    At 4 job 0 (1 GPU, 20 s) runs and 1 (2 GPUs, 9 s) waits.

    Best fit leaves machine 1 free: 3 GPUs are free, 1 of them beside 0.
    """
    horizon_s = math.expm1(10.0)
    env = by_hand([(0, 1, 20), (4, 2, 9)], "flat:machines=2,gpus_per_machine=2", horizon_s=horizon_s)
    observation, *_ = env.step(start(0))

    def scaled(seconds):
        return math.log1p(seconds) / 10.0

    assert len(observation["cluster"]) == len(CLUSTER)
    crowd = 16 / (16 + 32)  # one job on 4 GPUs is as 16 on 64
    cluster = [scaled(4), 3 / 64, 0, 1 / 64, 1, 3 / 64, crowd, 0, crowd, 2 / 66, 1]
    assert observation["cluster"].tolist() == pytest.approx(cluster, rel=1e-6)
    size = math.log2(3) / math.log2(65)
    outlook = [0, 0, scaled(3600), scaled(3600)]  # a machine has room; no job has waited, so timers are one lease
    queue = [1, 2 / 64, size, 0, 0, scaled(9), scaled(18), 0, 0, 0, 0, 0, 1, *outlook]
    assert observation["queue"][: len(QUEUE)].tolist() == pytest.approx(queue, rel=1e-6)
    size = 1 / math.log2(65)
    running = [1, 1 / 64, size, scaled(4), scaled(4), scaled(16), 0, 0, 0, 1, 1 / 2, 3 / 4]
    assert observation["running"][: len(RUNNING)].tolist() == pytest.approx(running, rel=1e-6)
    table = observation["candidates"].reshape(-1, len(CANDIDATES))
    assert table[0].tolist() == [1, 1] + [0] * 16
    offer = [1, 0, 1, 0, 0, 0, 0, 0, scaled(9), 2 / 64, 1 / 64] + [0] * 7
    assert table[start(0)[0]].tolist() == pytest.approx(offer, rel=1e-6)
    wait = [1, 0, 0, 1, 0, 0, 0, 0, scaled(9), 2 / 64, 3 / 64] + [0] * 7
    assert table[hold(0)[0]].tolist() == pytest.approx(wait, rel=1e-6)
    stop = [1, 0, 0, 0, 1, 0, 0, 0, scaled(16), 1 / 64, 4 / 64] + [0] * 7
    assert table[preempt(0)[0]].tolist() == pytest.approx(stop, rel=1e-6)


def test_features_of_making_room_by_hand():
    """One machine of 8, 30 s to restore, horizon e^10 - 1 s. 0 (8 GPUs, 1,000 s) runs; 1 (4 GPUs, 100 s) comes at 10.

    0 has 990 s left: 990 sqrt(8) > 1.2 x 100 sqrt(4) + 30, so it can be stopped, which costs it 100 + 30 s. It has no
    room elsewhere. Afterwards it starts anew at 110, and ends at 110 + 30 + 990.
    """
    horizon_s = math.expm1(10.0)
    env = by_hand([(0, 8, 1000), (10, 4, 100)], "dally:racks=1,machines=1", preemption_cost=30.0, horizon_s=horizon_s)
    observation, *_ = env.step(start(0))
    table = observation["candidates"].reshape(-1, len(CANDIDATES))
    assert candidates(env) == [0, make_room(0)[0], hold(0)[0], preempt(0)[0]]

    def scaled(seconds):
        return math.log1p(seconds) / 10.0

    room = [1, 0, 0, 0, 0, 0, 1 / 3, 0, scaled(100), 4 / 64, 0, 0, 1, 0, 1 / 5, 0, scaled(990), scaled(130)]
    assert table[make_room(0)[0]].tolist() == pytest.approx(room, rel=1e-6)
    assert observation["queue"][13:15].tolist() == pytest.approx([scaled(990), scaled(990)], rel=1e-6)
    env.step(make_room(0))
    assert (env.view.now_s, env.view.queue.tolist()) == (110.0, [0])
    assert env.step(start(0))[2]
    assert env.simulator.jobs()["finish_s"].tolist() == [1130.0, 110.0]


def test_a_running_job_moves_to_the_fullest_machine_where_that_leaves_another_free():
    """3 machines of 8, no cost. 0 (4 GPUs), 1 (4) fill machine 0, 2 (2) lies on 1; 0 ends at 10.

    Then 1 could join 2, and 2 could join 1: either leaves a machine wholly free, though no job needs it. Of the two
    places with room for 2, machine 0 is fuller than 2. Waiting 3 (24 GPUs) makes it a decision.
    """
    jobs = [(0, 4, 10), (0, 4, 500), (0, 2, 500), (5, 24, 1)]
    env = by_hand(jobs, "flat:machines=3,gpus_per_machine=8", slots=4, running_slots=4)
    for action in (start(0), start(0), start(0)):
        assert not env.step(action)[-1]["invalid_action"]
    while env.view.now_s < 10.0:
        env.step(ADVANCE)
    assert [defragment(slot, 4)[0] in candidates(env) for slot in (0, 1)] == [True, True]
    env.step(defragment(1, 4))
    assert env.view.free_by_machine.tolist() == [2, 8, 8]
    assert defragment(0, 4)[0] not in candidates(env)


def test_the_delay_bucket_of_the_timer_is_the_jobs_own():
    """2 machines of 2 in one rack, timers of a lease, an hour. At 10 one GPU of each machine is free, until 100,000.

    3 (2 GPUs) comes at 20, and is held for a machine by its timer: it is back at 3,620, and takes the rack. It has
    waited one lease for a rack, the only wait known, so the timer of a rack for its like is an hour; that of a machine
    is what it was.
    """
    env = by_hand([(0, 1, 1e5), (0, 1, 10), (0, 1, 1e5), (20, 2, 100)], "flat:machines=2,gpus_per_machine=2", slots=3)
    for _ in range(3):
        env.step(start(0))
    assert (env.view.now_s, env.view.free_by_machine.tolist()) == (20.0, [1, 1])
    env.step(hold(0, 1, 0))
    assert (env.view.now_s, start(0, 1)[0] in candidates(env)) == (3620.0, True)
    env.step(hold(0, 2, 1))  # a rack has room: it starts by itself when the instant is over
    assert env.view.now_s > 3620.0 or env.simulator.done
    assert env.simulator.jobs()["first_start_s"][3] == 3620.0


def test_the_flat_observation_is_the_dict_in_a_row():
    plain, flat = delay(), delay(observation="flat")
    tables, _ = plain.reset(seed=1)
    row, _ = flat.reset(seed=1)
    assert np.array_equal(row, np.concatenate([tables[key] for key in ("cluster", "queue", "running", "candidates")]))


def test_observations_are_fresh_arrays():
    """A later step does not change an earlier observation or mask."""
    env = delay()
    observation, info = env.reset(seed=1)
    kept = [array.copy() for array in (*observation.values(), info["action_mask"])]
    rng = np.random.default_rng(0)
    for _ in range(20):
        env.step(legal_action(env, rng))
    assert all(np.array_equal(a, b) for a, b in zip(kept, (*observation.values(), info["action_mask"]), strict=True))


def test_a_workload_for_one_episode_comes_with_reset():
    env = delay()
    env.reset(seed=1, options={"workload": Workload.from_arrays("one", [0.0], [1], [5.0])})
    assert len(env.simulator.workload) == 1
    env.reset(seed=1, options={"workload": "poisson:jobs=7"})
    assert len(env.simulator.workload) == 7
    env.reset(seed=1)
    assert len(env.simulator.workload) == 40


def test_each_reset_draws_another_workload_and_the_seed_the_same_ones():
    env = delay()
    drawn = []
    for seed in (5, None, None, 5, None, None):
        env.reset(seed=seed)
        drawn.append(env.simulator.workload.duration_s.tobytes())
    assert drawn[:3] == drawn[3:]
    assert len(set(drawn)) == 3


def test_the_last_job_cannot_be_held_where_nothing_is_to_come():
    """Nothing runs, 0 and 1 are held until an offer, 2 comes at 3 as the last event."""
    env = by_hand([(0, 1, 10), (0, 1, 5), (3, 1, 5)])
    for action in (hold(0), hold(0)):
        assert not env.step(action)[-1]["invalid_action"]
    # At 3 job 2 is alone in the window; holding it too would leave nothing to come, so it cannot be held.
    assert (env.view.now_s, candidates(env)) == (3.0, [start(0)[0]])


@pytest.mark.parametrize("options", [{"worklod": "poisson"}, {"seed": 3}])
def test_an_unknown_option_of_reset_is_one_sentence(options):
    with pytest.raises(InputError, match="expected workload"):
        delay().reset(options=options)
