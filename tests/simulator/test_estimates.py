"""What is known of run times: estimates by hand, what rests on them, and which policies do without."""

from __future__ import annotations

import json
import math

import gymnasium
import numpy as np
import pytest
from typer.testing import CliRunner

import clustergym
from clustergym import policies
from clustergym.envs.sharing.columns import CANDIDATES, CLUSTER, QUEUE, RUNNING
from clustergym.experiments.cli import app
from clustergym.simulator.base.decisions import Advance
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.base.tiers import MACHINE, RACK
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.jobs.estimates import STREAM, Estimates
from clustergym.simulator.numerics.random import uniform
from clustergym.simulator.rules.rule import Rule
from clustergym.simulator.sharing.sharing_model import Sharing
from clustergym.simulator.workloads import Workload, open_workload

ONE = "flat:machines=1,gpus_per_machine=1"
TWO = "flat:machines=2,gpus_per_machine=4"
SHARING = {"topology": "bsbf-physical", "network": "allreduce:calibration=measured,gpu=2080ti"}
SMALL = {"workload": "philly-sample:jobs=24,hours=1", "slots": 8, "running_slots": 8}


def jobs(*rows, **options):
    """A workload of (arrival_s, gpus, duration_s, estimate_s)."""
    arrival_s, gpus, duration_s, estimate_s = map(list, zip(*rows, strict=True))
    return Workload.from_arrays("by hand", arrival_s, gpus, duration_s, estimate_s=estimate_s, **options)


def played(policy, topology, workload, estimates="user", network="none", seed=0, **options):
    """The simulator after a run."""
    rule = policies.make(policy).rule
    simulator = Simulator(topology, network, rule=rule, estimates=estimates, **options)
    simulator.reset(workload, seed)
    simulator.run()
    return simulator


def test_a_lognormal_estimate_is_the_run_time_times_a_known_draw():
    """exp(sigma z), z by Box and Muller from the uniforms 2 i and 2 i + 1 of the stream."""
    simulator = Simulator(ONE, estimates="lognormal:sigma=0.5")
    simulator.reset(jobs((0, 1, 100, 1), (0, 1, 40, 1)), seed=7)
    for job, seconds in enumerate((100.0, 40.0)):
        first, second = (uniform(7, STREAM, 2 * job + k) for k in range(2))
        z = math.sqrt(-2.0 * math.log(first)) * math.cos(2.0 * math.pi * second)
        assert simulator.view.isolated_s(job) == pytest.approx(seconds * math.exp(0.5 * z), rel=1e-12)
        assert simulator.view.remaining_s(job) == simulator.view.isolated_s(job)


def test_estimates_depend_on_the_seed_and_the_number_of_the_job_alone():
    def drawn(n, seed):
        simulator = Simulator(ONE, estimates="lognormal:sigma=1")
        simulator.reset(Workload.from_arrays("n", np.zeros(n), np.ones(n, int), np.full(n, 60.0)), seed)
        return simulator.state.estimate_s[:n].copy()

    few, many, other = drawn(10, 3), drawn(4000, 3), drawn(10, 4)
    assert few.tolist() == many[:10].tolist() and not (few == other).any()
    logs = np.log(many / 60.0)
    assert abs(np.median(logs)) < 0.06 and abs(logs.std() - 1.0) < 0.04


def test_a_job_that_outlives_its_estimate_needs_as_long_again_as_it_has_run():
    """100 s, estimated at 10: at 4 s 6 are left; at 30 s it has run 30, so 30 are, and at 60 s 60."""
    simulator = Simulator(ONE, estimates="user", rule=Rule("fifo"))
    simulator.reset(jobs((0, 1, 100, 10), (4, 1, 1, 1), (30, 1, 1, 1), (60, 1, 1, 1)))
    told = []
    while simulator.state.now_s <= 60.0 and not simulator.ended:
        simulator.schedule()
        told.append((float(simulator.state.now_s), simulator.view.remaining_s(0), simulator.view.isolated_s(0)))
        simulator.advance()
    assert told == [(0.0, 10.0, 10.0), (4.0, 6.0, 10.0), (30.0, 30.0, 60.0), (60.0, 60.0, 120.0)]


def test_shortest_first_goes_by_wrong_estimates():
    """Estimated at 10, 60 and 20 s: the jobs of 100, 50 and 200 s run in the order first, third, second."""
    workload = jobs((0, 1, 100, 10), (0, 1, 50, 60), (0, 1, 200, 20))
    assert played("sjf", ONE, workload).jobs()["finish_s"].tolist() == [100.0, 350.0, 300.0]
    assert played("sjf", ONE, workload, "exact").jobs()["finish_s"].tolist() == [150.0, 50.0, 350.0]


def test_a_job_that_has_outlived_its_estimate_gives_way_to_one_that_needs_less():
    """At 20 s a job of 24 s, estimated at 10, is taken to need 20 more; one of 15 s replaces it, until 35."""
    workload = jobs((0, 1, 24, 10), (20, 1, 15, 15))
    assert played("srtf", ONE, workload).jobs()["finish_s"].tolist() == [39.0, 35.0]
    assert played("srtf", ONE, workload, "exact").jobs()["finish_s"].tolist() == [24.0, 39.0]


@pytest.mark.parametrize(("estimate_s", "seconds", "expected"), [(40, 8, (1.0, RACK)), (5, 4, (6.0, RACK))])
def test_greedy_waits_for_the_end_that_it_expects(estimate_s, seconds, expected):
    """A job of 10 s holds 3 GPUs of a machine; another wants 2 at 1 s, L in a machine, 2 L over two.

    Expected to end at 40: 16 <= 0.9 (39 + 8), it starts at once. Expected at 5: 8 > 0.9 (4 + 4), it waits; at 6, where
    a job arrives, the end is expected at 12: 8 <= 0.9 (6 + 4). Exactly known, it is at 10 both times.
    """
    rows = [(0, 3, 10, estimate_s), (0, 3, 100, 100), (1, 2, seconds, seconds), (6, 8, 1, 1)]

    def start(estimates):
        table = played("greedy", TWO, jobs(*rows), estimates, "penalty:default=1/2/4").jobs()
        return float(table["first_start_s"][2]), max(MACHINE, int(table["tier"][2]))

    assert start("user") == expected
    assert start("exact") == ((10.0, MACHINE) if seconds == 8 else (1.0, RACK))


@pytest.mark.parametrize(("event_s", "starts_s"), [(150, 150), (900, 900), (None, 1000)])
def test_what_a_pair_gains_goes_by_estimates(event_s, starts_s):
    """At xi = 1.8 a job shares a GPU if the one there has 1.6 times as much left (pairs.py).

    A job of 1,000 s that is estimated at 100 has 90 left at 10 s, so one of 90 s waits. When a job comes after
    150 s, the first has outlived its estimate by so much that 1.6 x 90 = 144 are taken to be left.
    """
    rows = [(0, 1, 1000, 100), (10, 1, 90, 90)] + ([(event_s, 1, 5000, 5000)] if event_s else [])
    workload = jobs(*rows, model=["bert"] * len(rows), batch_size=[64] * len(rows))
    options = {"sharing": Sharing(2, "constant:xi=1.8")}
    assert played("sjf-bsbf", ONE, workload, **options).jobs()["first_start_s"][1] == starts_s
    assert played("sjf-bsbf", ONE, workload, "exact", **options).jobs()["first_start_s"][1] == 10.0


def test_estimates_without_error_change_nothing_but_rounding():
    """On the default jobs of Delay-v0, every policy that knows run times."""
    workload = open_workload("poisson:jobs=64,backlog=24,load=1.1", seed=3, cluster_gpus=64)
    for name in policies.list("Delay"):
        if policies.make(name).knows_run_times:
            runs = [
                played(name, "dally:racks=2,machines=4", workload, estimates, "penalty:table=chronus").metrics()
                for estimates in ("exact", "lognormal:sigma=0")
            ]
            assert runs[0] == pytest.approx(runs[1], rel=1e-9, nan_ok=True), name


@pytest.mark.parametrize("environment", ["Delay", "Sharing"])
def test_a_policy_without_run_times_plays_the_same_where_nothing_is_known(environment):
    """And one that needs them refuses: so every policy says truly which it is."""
    workload = open_workload("philly-sample:jobs=24,hours=1", seed=1)
    for name in policies.list(environment):
        policy = policies.make(name)
        if policy.elastic or policy.name == "tiresias-rounds":
            continue
        sharing = Sharing() if environment == "Sharing" else None
        own = {"network": SHARING["network"], "rule": policy.rule, "sharing": sharing}
        known = Simulator(SHARING["topology"], **own)
        known.reset(workload, 5)
        expected = known.run(policy.decider(known))
        if policy.knows_run_times:
            with pytest.raises(InputError, match="needs run times, which estimates=none hides"):
                Simulator(SHARING["topology"], **own, estimates="none")
        else:
            hidden = Simulator(SHARING["topology"], **own, estimates="none")
            hidden.reset(workload, 5)
            assert hidden.run(policy.decider(hidden)) == pytest.approx(expected, rel=0, nan_ok=True), name


def test_declared_knowledge():
    knows = {row["name"] for row in policies.describe() if row["knows_run_times"]}
    assert knows >= {"greedy", "sjf", "srtf", "srsf", "sjf-ffs", "sjf-bsbf", "themis", "themis+cassini", "ideal"}
    assert knows.isdisjoint({"random", "fifo", "las", "tiresias", "gandiva", "dally", "edf", "pollux", "mast"})
    assert knows.isdisjoint({"dally+cassini", "pollux+cassini", "federated", "tetris-v2"})


def test_a_policy_that_needs_run_times_refuses_where_nothing_is_known():
    simulator = Simulator(ONE, estimates="none")
    simulator.reset(jobs((0, 1, 5, 5)))
    sentence = "policy sjf needs run times, which estimates=none hides; expected another"
    for ask in (policies.make("sjf").decider, lambda own: own.ask(policies.make("sjf"))):
        with pytest.raises(InputError, match=sentence):
            ask(simulator)
    for ask in (simulator.view.remaining_s, simulator.view.isolated_s):
        with pytest.raises(InputError, match="a policy that asks for isolated_s or remaining_s needs run times"):
            ask(0)
    assert simulator.ask(policies.make("fifo")) != Advance()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"estimates": "none", "order": "shortest"},
            r"order = 'shortest' needs run times.*expected arrival",
        ),
        ({"estimates": "none", "reference": "sjf"}, "reference sjf needs run times, which estimates=none hides"),
        ({"estimates": "user"}, "job .* has no estimate of its run time; estimates=user expects"),
        ({"estimates": "guess"}, "unknown estimates 'guess'"),
        ({"estimates": "lognormal"}, "parameter 'sigma' is required"),
        ({"estimates": "lognormal:sigma=11"}, "sigma = 11: expected a number from 0 to 10"),
        ({"estimates": "exact:sigma=1"}, "unknown parameter 'sigma'"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(options, sentence):
    with pytest.raises(InputError, match=sentence):
        gymnasium.make("clustergym/Sharing-v0", **SMALL, **options).reset(seed=0)


def test_time_shift_without_run_times_refuses_a_scheduler_that_needs_them():
    with pytest.raises(InputError, match=r"scheduler themis\S* needs run times, which estimates=none hides"):
        gymnasium.make("clustergym/TimeShift-v0", estimates="none")
    env = gymnasium.make("clustergym/TimeShift-v0", estimates="none", scheduler="dally+cassini")
    observation, _ = env.reset(seed=0)
    columns = env.unwrapped.interface.columns["queue"]
    rows = observation["queue"].reshape(-1, len(columns))
    assert rows[0, columns.present] == 1.0 and not rows[:, [columns.time_left, columns.service_left]].any()


def sharing_at(estimates):
    """What Sharing-v0 shows when a job of 1,000 s has run 20 s, and another that is like it has come."""
    rows = [(0, 1, 1000, 100), (20, 1, 1000, 100)]
    workload = jobs(*rows, model=["bert"] * 2, batch_size=[64] * 2)
    env = gymnasium.make(
        "clustergym/Sharing-v0",
        topology=ONE,
        workload=workload,
        network="none",
        memory_gb=None,
        interference="constant:xi=1.2",
        slots=1,
        running_slots=1,
        estimates=estimates,
    ).unwrapped
    env.reset(seed=0)
    observation, *_ = env.step((1, 0))
    assert env.simulator.state.now_s == 20.0
    return env, observation


def seconds_of(env, value):
    return math.expm1(float(value) * float(env.interface.window.log_horizon))


@pytest.mark.parametrize(
    ("estimates", "flag", "waiting_s", "running_s"),
    [("exact", 0.0, 1000, 980), ("user", 0.5, 100, 80), ("none", 1.0, 0, 0)],
)
def test_the_observation_knows_no_more_than_policies(estimates, flag, waiting_s, running_s):
    """1,000 s, estimated at 100: after 20 s 80 are left. Every column of run times goes by that; a flag says so."""
    env, observation = sharing_at(estimates)
    queue, running = observation["queue"], observation["running"]
    assert observation["cluster"][CLUSTER.times_unknown] == flag
    for column in (QUEUE.time_left, QUEUE.service_left):
        assert seconds_of(env, queue[column]) == pytest.approx(waiting_s, rel=1e-4)
    for column in (RUNNING.time_left, RUNNING.work_left):
        assert seconds_of(env, running[column]) == pytest.approx(running_s, rel=1e-4)
    best = observation["candidates"].reshape(-1, len(CANDIDATES))[2]  # beside the best partner, at xi = 1.2
    assert best[CANDIDATES.legal] == best[CANDIDATES.beside_best] == 1.0
    assert seconds_of(env, best[CANDIDATES.time_left]) == pytest.approx(1.2 * waiting_s, rel=1e-4)
    assert seconds_of(env, best[CANDIDATES.work_left]) == pytest.approx(running_s, rel=1e-4)


@pytest.mark.parametrize("name", ["sjf", "sjf-ffs", "sjf-bsbf", "sjf-bsbf:free=never", "fifo"])
def test_through_steps_by_estimates_is_the_simulator_alone(name):
    env = gymnasium.make("clustergym/Sharing-v0", **SMALL, estimates="lognormal:sigma=1").unwrapped
    policy = policies.make(name)
    env.reset(seed=11)
    ended = False
    while not ended:
        *_, terminated, truncated, info = env.step(policy.act(env))
        assert not info["invalid_action"]
        ended = terminated or truncated
    own = env.simulator
    options = {"rule": policy.rule, "sharing": own.sharing}
    runs = []
    for estimates in ("lognormal:sigma=1", "exact"):
        alone = Simulator(own.topology, own.network, **options, estimates=estimates)
        alone.reset(own.workload, int(own.state.seed))
        alone.run()
        runs.append(alone.jobs()["finish_s"].tolist())
    assert own.jobs()["finish_s"].tolist() == runs[0]
    assert (runs[0] == runs[1]) == (name == "fifo")


def test_batches_have_the_estimates_of_single_environments():
    options = {**SMALL, "estimates": "lognormal:sigma=1", "reference": "sjf-bsbf"}
    envs = clustergym.make_vec("Sharing", 2, autoreset_mode="disabled", **options)
    singles = [gymnasium.make("clustergym/Sharing-v0", **options) for _ in range(2)]
    seen, _ = envs.reset(seed=5)
    for i, env in enumerate(singles):
        observation, _ = env.reset(seed=5 + i)
        assert all(np.array_equal(seen[key][i], observation[key]) for key in observation)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_column_goes_to_a_file_and_back(ending, tmp_path):
    workload = jobs((0, 1, 10, 20.5), (1, 1, 10, np.inf))
    path = tmp_path / f"own.{ending}"
    workload.save(path)
    again = open_workload(str(path))
    assert again.estimate_s.tolist() == [20.5, np.inf]
    with pytest.raises(InputError, match="job 1 has no estimate of its run time"):
        Simulator(ONE, estimates="user").reset(again)


def test_a_file_without_estimates_has_no_column_and_a_bad_one_is_named(tmp_path):
    path = tmp_path / "own.csv"
    Workload.from_arrays("own", [0], [1], [5]).save(path)
    assert "estimate_s" not in path.read_text() and np.isinf(open_workload(str(path)).estimate_s).all()
    path.write_text("job_id,arrival_s,gpus,duration_s,estimate_s\na,0,1,5,-3\n")
    with pytest.raises(InputError, match="estimate_s"):
        open_workload(str(path))
    with pytest.raises(InputError, match=r"estimate_s: 0\.0 is not a time in seconds above 0"):
        jobs((0, 1, 5, 0.0))


def test_texts_of_estimates_are_what_they_are_made_of():
    for text in ("exact", "none", "user", "lognormal:sigma=0.5"):
        assert Estimates.load(text).describe() == text and Estimates.load(Estimates.load(text)) == Estimates.load(text)


def test_evaluate_says_which_policies_know_run_times():
    def run(*words):
        command = ["evaluate", "Delay", "--workload", "poisson:jobs=6", "--seeds", "0", *words]
        return CliRunner().invoke(app, command)

    chosen = ("--policies", "fifo greedy", "--set", "estimates=lognormal:sigma=1")
    rows = json.loads(run(*chosen, "--json").stdout)
    assert {row["policy"]: row["knows_run_times"] for row in rows} == {"fifo": "no", "greedy": "estimates"}
    assert {row["setting"]["estimates"] for row in rows} == {"lognormal:sigma=1"}
    printed = run(*chosen).stdout
    assert "estimates=lognormal:sigma=1" in printed and "knows" in printed
    everybody = json.loads(run("--set", "estimates=none", "--json").stdout)
    assert {row["knows_run_times"] for row in everybody} == {"no"} and "fifo" in {row["policy"] for row in everybody}


def test_nothing_of_run_times_is_seen_while_a_job_restores():
    """0 is stopped at 1 for 1 and starts anew at 3, restoring for 30 s: at 4, when 2 arrives, its end is not known."""
    workload = Workload.from_arrays("by hand", [0, 1, 4], [1, 1, 1], [50, 2, 5])
    options = {"estimates": "none", "preemption_cost": 30.0, "slots": 2, "running_slots": 1}
    env = gymnasium.make("clustergym/Delay-v0", topology=ONE, workload=workload, network="none", **options).unwrapped
    env.reset(seed=0)
    for candidate in (1, 11, 6, 1):  # 0 starts, is stopped, 1 starts; at 3 0 again
        observation, *_ = env.step((candidate, 0, 0))
    assert (env.view.now_s, env.view.running.tolist()) == (4.0, [0])
    assert observation["running"][5] == 0.0
    assert observation["queue"][13] == 0.0  # until a machine has room
