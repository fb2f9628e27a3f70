"""Deadlines: when a job is late, what reward `slo` charges, what slack reads, which job is first under `edf`."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import gymnasium
import numpy as np
import pytest

import clustergym
from clustergym import policies
from clustergym.envs.delay.columns import QUEUE, RUNNING
from clustergym.envs.sharing.columns import QUEUE as SHARING_QUEUE
from clustergym.envs.sharing.columns import RUNNING as SHARING_RUNNING
from clustergym.envs.timeshift.observation import QUEUE as SHIFT_QUEUE
from clustergym.envs.timeshift.observation import RUNNING as SHIFT_RUNNING
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.jobs.workload import COLUMNS
from clustergym.simulator.workloads import GENERATORS, Workload, open_workload

NONE = math.inf
ONE = "flat:machines=1,gpus_per_machine=1"
SMALL = {
    "Delay": {"workload": "poisson:jobs=24,backlog=8,deadlines=0.8/4", "slots": 4, "running_slots": 4},
    "Sharing": {"workload": "philly-sample:jobs=16,hours=1,deadlines=0.8/4", "slots": 4, "running_slots": 4},
    "TimeShift": {"workload": "cassini-poisson:jobs=8,load=1.5,deadlines=0.8/4", "slots": 4, "running_slots": 6},
}


def jobs_of(rows):
    """(arrival_s, GPUs, duration_s, deadline_s) each."""
    *columns, deadline_s = map(list, zip(*rows, strict=True))
    return Workload.from_arrays("by hand", *columns, deadline_s=deadline_s)


def delay(rows, **options):
    """Delay-v0 on one GPU, without a network or preemption, at its first decision; it pays `slo`."""
    options = {"slots": 3, "running_slots": 1, "preemption": False, "reward": "slo", **options}
    env = gymnasium.make("clustergym/Delay-v0", topology=ONE, network="none", workload=jobs_of(rows), **options)
    env.reset(seed=0)
    return env.unwrapped


def start(slot):
    return (1 + 5 * slot, 0, 0)


def hold(slot, bucket):
    return (1 + 5 * slot + 4, bucket, 0)


ADVANCE = (0, 0, 0)


def played(env, rng):
    """Return and last metrics of an episode of random legal actions from a reset on."""
    total = 0.0
    while True:
        legal = np.flatnonzero(env.action_masks()[: env.form.parts[0]])
        others = [int(rng.integers(size)) for size in env.form.parts[1:]]
        _, reward, terminated, truncated, info = env.step((int(rng.choice(legal)), *others))
        total += reward
        if terminated or truncated:
            return total, info["metrics"], truncated


def run(rows, policy="fifo", **options):
    """A run on one GPU."""
    simulator = Simulator(ONE, "none", rule=policies.make(policy).rule, **options)
    simulator.reset(jobs_of(rows))
    simulator.run()
    return simulator


@pytest.mark.parametrize(
    ("horizon_s", "rate"), [(39.0, 0.0), (40.0, 1 / 3), (64.9, 1 / 3), (65.0, 2 / 3), (99.0, 2 / 3), (math.inf, 2 / 3)]
)
def test_a_job_is_late_from_its_deadline_on_until_the_run_stops(horizon_s, rate):
    """One GPU: 100 s due at 40; 10 s from 50 on, due at 65, ends at 110; 20 s ends at 130, when it is due; one free."""
    rows = [(0, 1, 100, 40), (50, 1, 10, 65), (51, 1, 20, 130), (52, 1, 1, NONE)]
    assert run(rows, horizon_s=horizon_s).metrics()["slo_violation_rate"] == pytest.approx(rate, abs=1e-15)


def test_the_charge_falls_into_the_step_that_passes_the_deadline():
    """As above: decisions at 0, 50, 51, 52 and 100; two of three deadlines are missed, at 40 and at 65."""
    rows = [(0, 1, 100, 40), (50, 1, 10, 65), (51, 1, 20, 130), (52, 1, 1, NONE)]
    env = delay(rows, skip_idle=False)
    paid = env.step(start(0))[1]
    assert (env.view.now_s, paid) == (50.0, pytest.approx(-1 / 3))
    paid = [env.step(ADVANCE)[1] for _ in range(3)]
    assert (env.view.now_s, paid) == (100.0, [0.0, 0.0, pytest.approx(-1 / 3)])
    paid = [env.step(start(0))[1], env.step(ADVANCE)[1], env.step(start(0))[1], env.step(ADVANCE)[1]]
    assert (env.view.now_s, paid) == (130.0, [0.0] * 4)


@pytest.mark.parametrize("starts_the_late_one", [False, True])
def test_not_to_start_a_late_job_wins_nothing(starts_the_late_one):
    """One GPU until 60: a job of 100 s due at 50 is late whether it runs or not; held to the end, it costs the same."""
    env = delay([(0, 1, 100, 50), (0, 1, 10, 70)], horizon_s=60.0, delays=(900.0,))
    total, truncated = 0.0, False
    for action in [start(0)] if starts_the_late_one else [hold(0, 2), start(0)]:
        _, reward, _, truncated, info = env.step(action)
        total += reward
    while not truncated:
        _, reward, _, truncated, info = env.step(ADVANCE)
        total += reward
    assert total == -info["metrics"]["slo_violation_rate"] == -0.5


@pytest.mark.parametrize("name", SMALL)
def test_the_return_is_minus_the_metric_and_what_is_left_however_an_episode_is_cut(name):
    """Random actions; cut after some seconds, at a deadline, after some decisions, or not at all; with what is left."""
    rng = np.random.default_rng(0)
    deadline_s = np.sort(open_workload(SMALL[name]["workload"], seed=5, cluster_gpus=16).deadline_s)
    cuts = [{"horizon_s": 3000.0}, {"horizon_s": float(deadline_s[6])}, {"max_decisions": 25}]
    cuts += [{"horizon_s": float(rng.uniform(100.0, 2.0 * deadline_s[6]))} for _ in range(4)] + [{}] * (
        name != "TimeShift"
    )
    cut_off = 0
    for cut in cuts:
        env = gymnasium.make(f"clustergym/{name}-v0", reward="slo", **SMALL[name], **cut).unwrapped
        env.reset(seed=int(rng.integers(100)))
        total, metrics, truncated = played(env, rng)
        cut_off += truncated
        charged = charged_late(env, "horizon_s" in cut) / np.isfinite(env.simulator.workload.deadline_s).sum()
        assert total == pytest.approx(-metrics["slo_violation_rate"] - charged, abs=1e-12), cut
    assert cut_off > 2


def charged_late(env, at_once):
    """Jobs of an episode that is over that are due yet, and would miss it as reward.py lets the unfinished end."""
    view, work = env.view, env.simulator.workload
    status, free_s, late = env.simulator.jobs()["finish_s"], view.now_s, 0
    for job in np.flatnonzero(~(status >= 0.0)).tolist():
        start_s = max(view.now_s, work.arrival_s[job], -math.inf if at_once else free_s)
        free_s = start_s + view.remaining_s(job)
        late += view.now_s < work.deadline_s[job] < free_s
    return late


def test_what_was_due_before_the_first_decision_is_charged_in_the_first_step():
    """Two are due at 10, when they come; a file may say so."""
    env = delay([(10, 1, 1, 10), (10, 1, 1, 10), (10, 1, 1, 99)])
    assert env.step(start(0))[1] == pytest.approx(-2 / 3)
    assert played(env, np.random.default_rng(0))[0] == 0.0


def test_a_job_that_ends_at_the_instant_of_a_pass_at_its_deadline_is_in_time():
    """Two GPUs, each job on one: both end at 10, when both are due and a third job comes; then at 15, due at 15."""
    simulator = Simulator("flat:machines=1,gpus_per_machine=2", "none", rule=policies.make("fifo").rule)
    simulator.reset(jobs_of([(0, 1, 10, 10), (0, 1, 10, 10), (10, 2, 5, 15)]))
    assert simulator.run()["slo_violation_rate"] == 0.0 and simulator.state.late == 0


@pytest.mark.parametrize("policy", ["fifo", "srtf:preemption_cost=20", "dally"])
def test_deadlines_change_nothing_but_what_is_late(policy):
    """The same events, decision points, starts and metrics, but one, with and without."""
    found = []
    for word in ("poisson:jobs=60,backlog=10", "poisson:jobs=60,backlog=10,deadlines=0.5/3"):
        simulator = Simulator("dally:racks=2,machines=4", rule=policies.make(policy).rule)
        simulator.reset(open_workload(word, seed=3, cluster_gpus=64), 3)
        metrics = simulator.run()
        table = {name: column.tolist() for name, column in simulator.jobs().items()}
        rate = metrics.pop("slo_violation_rate")
        found.append((repr((metrics, table, int(simulator.state.events), int(simulator.state.instants))), rate))
    assert found[0][0] == found[1][0]
    assert found[0][1] == 0.0 < found[1][1]


@pytest.mark.parametrize("name", ["Delay", "Sharing", "TimeShift"])
def test_reward_slo_is_refused_where_no_job_has_a_deadline(name):
    env = gymnasium.make(f"clustergym/{name}-v0", reward="slo")
    with pytest.raises(InputError, match=r"reward = 'slo': no job of workload '.*' has a deadline; expected") as caught:
        env.reset(seed=0)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("word", [name for name in GENERATORS if name != "mast-like"])
def test_with_deadlines_everything_else_of_a_workload_is_as_without(word):
    """Deadlines are 1.5 to 3 isolated run times after the arrivals, other ones for another seed; one number is both."""
    plain, due, again, other = (
        open_workload(f"{word}{rest}", seed=seed)
        for rest, seed in (("", 4), (":deadlines=1.5/3", 4), (":deadlines=1.5/3", 4), (":deadlines=1.5/3", 5))
    )
    for column in COLUMNS:
        assert column == "deadline_s" or np.array_equal(getattr(plain, column), getattr(due, column)), column
    factor = (due.deadline_s - due.arrival_s) / due.duration_s
    assert 1.5 - 1e-9 <= factor.min() < factor.max() <= 3 + 1e-9
    assert np.array_equal(due.deadline_s, again.deadline_s) and np.isinf(plain.deadline_s).all()
    assert not np.array_equal(factor, (other.deadline_s - other.arrival_s) / other.duration_s)
    exact = open_workload(f"{word}:deadlines=2", seed=4)
    assert np.array_equal(exact.deadline_s, exact.arrival_s + 2 * exact.duration_s)


def test_factors_are_spread_evenly():
    """Their mean is the middle, and a quarter of them lies in each quarter."""
    workload = open_workload("poisson:jobs=100000,deadlines=1/5")
    factor = (workload.deadline_s - workload.arrival_s) / workload.duration_s
    shares = np.histogram(factor, bins=[1, 2, 3, 4, 5])[0] / len(workload)
    assert factor.mean() == pytest.approx(3, rel=0.01) and shares == pytest.approx([0.25] * 4, abs=0.01)


@pytest.mark.parametrize("value", ["0/2", "3/2", "1/2/3", "-1", "inf", "1/1e7"])
def test_deadlines_that_make_no_sense_are_refused(value):
    with pytest.raises(InputError, match=r"deadlines=.*; expected LOW/HIGH, in isolated run times: 0 < LOW <= HIGH"):
        open_workload(f"poisson:deadlines={value}")


def test_slack_by_hand():
    """Horizon e^10 - 1 s. At 4 s: 0 (20 s, due at 30) has run 4 s: 10 s to spare; 1 (9 s, due at 11) lacks 2; 2: none.

    Slack is a column of its own.
    """
    rows = [(0, 1, 20, 30), (4, 1, 9, 11), (4, 1, 9, NONE), (4, 1, 9, 13)]
    env = delay(rows, horizon_s=math.expm1(10.0), skip_idle=False)
    observation, *_ = env.step(start(0))
    queue = observation["queue"].reshape(3, len(QUEUE))[:, QUEUE.slack]
    assert queue.tolist() == pytest.approx([0.5 - math.log1p(2) / 20, 1.0, 0.5], rel=1e-6)
    running = observation["running"].reshape(1, len(RUNNING))[0, RUNNING.slack]
    assert running == pytest.approx(0.5 + math.log1p(10) / 20, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "queue", "running"),
    [
        ("Delay", QUEUE, RUNNING),
        ("Sharing", SHARING_QUEUE, SHARING_RUNNING),
        ("TimeShift", SHIFT_QUEUE, SHIFT_RUNNING),
    ],
)
def test_slack_follows_the_jobs_in_every_environment(name, queue, running):
    """Random actions: of the jobs shown, deadline - now - isolated run time left, from the record."""
    env = gymnasium.make(f"clustergym/{name}-v0", **SMALL[name]).unwrapped
    observation, _ = env.reset(seed=2)
    rng, seen = np.random.default_rng(1), 0
    for _ in range(40):
        s, w = env.simulator.state, env.interface.window
        for key, columns, jobs in (("queue", queue, w.waiting_job), ("running", running, w.running_job)):
            shown = observation[key].reshape(-1, len(columns))
            for row, job in zip(shown, jobs.tolist(), strict=False):
                if row[columns.present] == 0.0:
                    continue
                ran = max(0.0, s.now_s - s.since_s[job]) / s.iteration_s[job] if key == "running" else 0.0
                slack_s = s.deadline_s[job] - s.now_s - (s.iterations_left[job] - ran) * s.base_iteration_s[job]
                read = 0.5 + math.copysign(0.5 * min(1.0, math.log1p(abs(slack_s)) / float(w.log_horizon)), slack_s)
                assert row[columns.slack] == pytest.approx(read, abs=1e-5), (key, job)
                seen += 1
        legal = np.flatnonzero(env.action_masks()[: env.form.parts[0]])
        others = [0] * (len(env.form.parts) - 1)
        observation, _, terminated, *_ = env.step((int(rng.choice(legal)), *others))
        if terminated:
            break
    assert seen > 40


def test_edf_serves_the_earliest_deadline_first_and_jobs_without_one_last():
    """One GPU, busy until 10. Then, of 5 s each: due at 30, due at 50, and two without, by arrival."""
    rows = [(0, 1, 10, 99), (1, 1, 5, NONE), (2, 1, 5, 50), (3, 1, 5, 30), (4, 1, 5, NONE)]
    assert run(rows, "edf").jobs()["finish_s"].tolist() == [10, 25, 20, 15, 30]


def test_edf_stops_jobs_only_when_their_lease_has_ended():
    """One GPU. 0 (100 s, no deadline) runs from 0; 1 (10 s, due at 50) comes at 3: it waits for 0, or for its lease."""
    rows = [(0, 1, 100, NONE), (3, 1, 10, 50)]
    assert run(rows, "edf").jobs()["finish_s"].tolist() == [100, 110]
    assert run(rows, "edf:lease=10").jobs()["finish_s"].tolist() == [110, 20]


def test_edf_misses_fewer_deadlines_than_fifo_where_they_can_be_met():
    """A busy cluster that is never overloaded for long; ten seeds."""
    late = {"edf": 0.0, "fifo": 0.0}
    for name in late:
        for seed in range(10):
            workload = open_workload("poisson:jobs=200,load=0.9,gpus=1/2,deadlines=1.2/8", seed=seed, cluster_gpus=16)
            simulator = Simulator("flat:machines=2", "none", rule=policies.make(name).rule)
            simulator.reset(workload, seed)
            late[name] += simulator.run()["slo_violation_rate"] / 10
    assert late["edf"] < 0.9 * late["fifo"]


@pytest.mark.parametrize("env_id", ["Delay", "Sharing"])
def test_edf_plays_in_the_environment_as_in_the_simulator(env_id):
    policy = policies.make("edf")
    env = gymnasium.make(f"clustergym/{env_id}-v0", **SMALL[env_id], reward="slo")
    env.reset(seed=3)
    total, ended = 0.0, False
    while not ended:
        _, reward, ended, truncated, info = env.step(policy.act(env))
        total += reward
        ended = ended or truncated
    assert total == pytest.approx(-info["metrics"]["slo_violation_rate"], abs=1e-12)
    base = env.unwrapped.simulator
    alone = Simulator(base.topology, base.network, rule=policy.rule, sharing=base.sharing)
    alone.reset(base.workload, int(base.state.seed))
    assert repr(alone.run()) == repr(info["metrics"])


@pytest.mark.parametrize("name", ["Delay", "Sharing"])
def test_rows_of_a_batch_are_paid_as_single_environments(name):
    options = {**SMALL[name], "reward": "slo", "horizon_s": 5000.0, "observation": "flat"}
    batch = clustergym.make_vec(name, 3, autoreset_mode="same-step", **options)
    seen, paid, ends = batch.reset(seed=0)[0], np.zeros(3), np.zeros(3, bool)
    singles = [gymnasium.make(f"clustergym/{name}-v0", **options).unwrapped for _ in range(3)]
    for i, env in enumerate(singles):
        assert np.array_equal(env.reset(seed=i)[0], seen[i])
    rng = np.random.default_rng(0)
    for _ in range(300):
        parts = singles[0].action_space.nvec
        masks = batch.action_masks()[:, : parts[0]]
        actions = np.array([[rng.choice(np.flatnonzero(row)), *[0] * (len(parts) - 1)] for row in masks])
        seen, rewards, terminated, truncated, _ = batch.step(actions)
        for i, env in enumerate(singles):
            if ends[i]:
                continue
            observation, reward, *over, _ = env.step(actions[i])
            assert (reward, over) == (rewards[i], [terminated[i], truncated[i]])
            assert any(over) or np.array_equal(observation, seen[i])
            paid[i] += reward
            ends[i] = any(over)
        if ends.all():
            break
    assert ends.all() and (paid < 0).any()


FINGERPRINT = """
import hashlib, numpy as np, clustergym
envs = clustergym.make_vec("Delay", 2, autoreset_mode="same-step", observation="flat", slots=4, running_slots=2,
                           workload="poisson:jobs=8,backlog=6,deadlines=0.5/3", reward="slo", horizon_s=20000.0)
seen = hashlib.sha256(envs.reset(seed=0)[0].tobytes())
rng, paid = np.random.default_rng(0), 0.0
for _ in range(60):
    masks = envs.action_masks()[:, :27]
    actions = np.array([[rng.choice(np.flatnonzero(row)), 0, 0] for row in masks])
    observation, reward, ended, cut, _ = envs.step(actions)
    for array in (observation, reward, ended, cut):
        seen.update(array.tobytes())
    paid += reward.sum()
print(paid < 0.0, seen.hexdigest())
"""


def test_the_same_bits_without_compilation():
    def fingerprint(**environment: str) -> str:
        command = [sys.executable, "-c", FINGERPRINT]
        outcome = subprocess.run(
            command, check=False, env={**os.environ, **environment}, capture_output=True, text=True
        )
        assert outcome.returncode == 0, outcome.stderr
        return outcome.stdout

    compiled = fingerprint()
    assert compiled.startswith("True") and compiled == fingerprint(NUMBA_DISABLE_JIT="1")


def test_a_job_that_ends_at_its_deadline_but_for_rounding_is_in_time():
    """One job alone, due when it must end, its work cut anyhow, at any hour."""
    rng = np.random.default_rng(0)
    simulator = Simulator("flat:machines=1,gpus_per_machine=1")
    for _ in range(200):
        arrival_s, duration_s, iterations = rng.uniform(0, 1e6), rng.lognormal(7, 2), rng.lognormal(3, 2)
        times = {"iterations": [iterations], "deadline_s": [arrival_s + duration_s]}
        simulator.reset(Workload.from_arrays("one", [arrival_s], [1], [duration_s], **times))
        assert simulator.run()["slo_violation_rate"] == 0.0
