"""`replay`: a log as it was, and what it says where the log does not fit."""

from __future__ import annotations

import time

import numpy as np
import pytest

from clustergym import InputError, Simulator, Workload, open_workload, policies
from clustergym.experiments.playing.evaluation import play
from clustergym.experiments.settings.evaluation_setting import Setting
from clustergym.policies.replay import machines_of_log
from clustergym.simulator.cluster.topology import Topology
from clustergym.simulator.rules.rule import Rule

CLUSTER = "flat:machines=8,gpus_per_machine=8"


def started(simulator):
    return simulator.jobs()["first_start_s"]


def replayed(workload, cluster=CLUSTER, **params):
    """The simulator after a replay, and the policy."""
    policy = policies.make("replay", **params)
    simulator = Simulator(cluster, rule=policy.rule)
    simulator.reset(policy.workload_for(workload))
    simulator.run(policy.decider(simulator))
    return simulator, policy


def log_of(word, workload, cluster=CLUSTER):
    """The workload with the starts of a run under a policy, and the machine of each GPU; the metrics of the run."""
    simulator = Simulator(cluster, rule=policies.make(word).rule)
    simulator.reset(workload)
    hosts = [""] * len(workload)
    while not simulator.ended:
        simulator.schedule()
        for job in simulator.view.running.tolist():
            machines = simulator.topology.gpu_machine[simulator.view.gpus_of(job)]
            hosts[job] = " ".join(map(str, machines.tolist()))
        simulator.advance()
    columns = {name: getattr(workload, name) for name in ("arrival_s", "gpus", "duration_s")}
    return Workload.from_arrays("log", **columns, start_s=started(simulator), hosts=hosts), simulator.metrics()


@pytest.mark.parametrize("head", ["strict", "skip", "reserve"])
@pytest.mark.parametrize("hosts", [False, True])
def test_a_log_of_our_own_fifo_is_replayed_exactly(head, hosts, tmp_path):
    """400 jobs at a load of 1.1, written to a csv and read again: every start and the mean wait, to 1e-9."""
    drawn = open_workload("poisson:jobs=400,load=1.1", seed=3, cluster_gpus=64)
    log, metrics = log_of(f"fifo:head={head},placer=tier", drawn)
    log.save(tmp_path / "log.csv")
    text = (tmp_path / "log.csv").read_text()
    if not hosts:
        rows = [line.rpartition(",")[0] for line in text.splitlines()]
        assert text.startswith("job_id,") and rows[0].endswith("start_s")
        (tmp_path / "log.csv").write_text("\n".join(rows) + "\n")
    read = open_workload(tmp_path / "log.csv")
    simulator, policy = replayed(read)
    assert (policy.decider(simulator) is policy) == hosts
    assert started(simulator) == pytest.approx(log.start_s, rel=1e-9, abs=0)
    told = policy.measured(simulator)
    assert simulator.metrics()["queueing_delay_mean"] == pytest.approx(metrics["queueing_delay_mean"], rel=1e-9)
    assert told["observed_wait_mean"] == pytest.approx(metrics["queueing_delay_mean"], rel=1e-9)
    assert told["late_jobs"] == 0
    assert told["jobs_elsewhere"] == (0 if hosts else 400)


LOG = Workload.from_arrays(
    "two", [0.0, 0.0, 5.0, 6.0], [4, 4, 2, 1], [100.0, 100.0, 10.0, 10.0], start_s=[10.0, 20.0, 30.0, 40.0]
)


def test_where_the_log_does_not_fit_it_says_when_and_by_how_much():
    """4 GPUs. a runs 10 - 110. b, of 20, starts at 110, 90 s late; c, of 30, at 210, 180 s late; d, of 40, too: 170 s.

    Observed waits 10, 20, 25, 34: mean 22.25. Replayed 10, 110, 205, 204: mean 132.25.
    """
    simulator, policy = replayed(LOG, "flat:machines=1,gpus_per_machine=4")
    assert started(simulator).tolist() == [10.0, 110.0, 210.0, 210.0]
    told = policy.measured(simulator)
    assert (told["late_jobs"], told["first_late_s"], told["most_late_s"]) == (3, 20.0, 180.0)


def test_a_job_that_fits_does_not_wait_for_one_that_does_not():
    """5 GPUs: beside a (4 of them) b does not fit until 110; d, of 1 GPU, starts at 40 as it did; c, of 2, at 210."""
    simulator, _ = replayed(LOG, "flat:machines=1,gpus_per_machine=5")
    assert started(simulator).tolist() == [10.0, 110.0, 210.0, 40.0]


def test_nothing_starts_before_its_time_on_an_empty_cluster():
    simulator, _ = replayed(LOG)
    assert started(simulator).tolist() == [10.0, 20.0, 30.0, 40.0]


def test_jobs_run_on_the_machines_that_the_log_names():
    """2 machines of 4. x on both, 3 + 2 GPUs; y on machine 1; z on `node7`, which is not known: the tightest."""
    hosts = ["1 0", "1", "node7"]
    log = Workload.from_arrays("h", [0.0] * 3, [5, 1, 1], [9.0] * 3, start_s=[0.0, 1.0, 2.0], hosts=hosts)
    simulator, policy = replayed(log, "flat:machines=2,gpus_per_machine=4")
    assert policy.measured(simulator)["jobs_elsewhere"] == 1
    simulator.reset(log)
    held = {}
    while not simulator.ended:
        for decision in simulator.asked(policy):
            held[decision.job] = decision.gpus
            simulator.apply(decision)
        simulator.advance()
    assert held == {0: (0, 1, 2, 4, 5), 1: (6,), 2: (3,)}


def test_where_its_own_machines_lack_gpus_a_job_starts_in_time_elsewhere():
    """b, of 2 GPUs on machine 0, where a has left 1: it starts on machine 1."""
    log = Workload.from_arrays("w", [0.0, 0.0], [3, 2], [9.0, 1.0], start_s=[0.0, 1.0], hosts=["0", "0"])
    simulator, policy = replayed(log, "flat:machines=2,gpus_per_machine=4")
    assert started(simulator).tolist() == [0.0, 1.0]
    assert policy.measured(simulator)["jobs_elsewhere"] == 1


def test_machines_of_hosts_are_known_by_name(tmp_path):
    (tmp_path / "hosts.csv").write_text("host,spine,rack\nn1,S,A\nn2,S,A\nn3,S,B\n")
    topology = Topology.load(f"hosts:gpus=4,file={tmp_path / 'hosts.csv'}")
    log = Workload.from_arrays("n", [0.0] * 3, [8, 4, 8], [1.0] * 3, start_s=[0.0] * 3, hosts=["n1 n3", "n2", "n2 x"])
    found = machines_of_log(log, topology)
    assert {job: sorted(machines) for job, machines in found.items()} == {0: [0, 2], 1: [1]}


def test_few_jobs_without_a_start_begin_as_they_come_and_more_are_refused():
    """1 of 100 jobs is few, 2 are not."""
    start_s = np.arange(100.0) + 50.0
    start_s[7] = np.inf
    log = Workload.from_arrays("some", np.arange(100.0), [1] * 100, [1.0] * 100, start_s=start_s)
    simulator, policy = replayed(log)
    assert started(simulator)[7] == 7.0
    told = policy.measured(simulator)
    assert told["jobs_without_start"] == 1 and told["observed_wait_mean"] == 50.0
    start_s[8] = np.inf
    log = Workload.from_arrays("more", np.arange(100.0), [1] * 100, [1.0] * 100, start_s=start_s)
    with pytest.raises(InputError, match="'more' does not say of 2 of its 100 jobs when they started"):
        replayed(log)


def test_a_workload_without_starts_is_refused_in_an_evaluation(tmp_path):
    setting = Setting.of("clustergym/Delay-v0", CLUSTER, "poisson:jobs=20", "none")
    with pytest.raises(InputError, match="of 20 of its 20 jobs when they started"):
        play(setting, "replay", 0)
    assert "replay" not in policies.able("Delay") and "replay" in policies.list("Delay")


def test_an_evaluation_keeps_what_the_log_shows(tmp_path):
    """The figures of the second test, as metrics of the run; recorded, with reasons."""
    LOG.save(tmp_path / "two.csv")
    setting = Setting.of("clustergym/Delay-v0", "flat:machines=1,gpus_per_machine=4", str(tmp_path / "two.csv"), "none")
    run = play(setting, "replay", 0, record=True)
    assert (run.metrics["late_jobs"], run.metrics["most_late_s"]) == (3, 180.0)
    assert run.metrics["queueing_delay_mean"] == 132.25 and run.metrics["observed_wait_mean"] == 22.25
    starts = [(row[0], row[5]) for row in run.decisions if row[2] == "start"]
    assert starts[1][0] == "110.0" and starts[1][1].startswith("started at 20 s in the log")


def test_in_a_window_the_log_is_that_of_the_jobs_of_the_window(tmp_path):
    """Of a and b alone: observed waits 10 and 20, replayed 10 and 110; b is 90 s late."""
    LOG.save(tmp_path / "two.csv")
    setting = Setting.of("clustergym/Delay-v0", "flat:machines=1,gpus_per_machine=4", str(tmp_path / "two.csv"), "none")
    found = play(setting.copy_with(window="0/5"), "replay", 0).metrics
    assert (found["observed_wait_mean"], found["queueing_delay_mean"]) == (15.0, 60.0)
    assert (found["late_jobs"], found["most_late_s"], found["jobs_elsewhere"]) == (1, 90.0, 2)


def test_in_an_environment_it_plays_the_same():
    import gymnasium

    env = gymnasium.make(
        "clustergym/Delay-v0", topology="flat:machines=1,gpus_per_machine=5", workload=LOG, network="none"
    )
    policy, ended = policies.make("replay"), False
    env.reset(seed=0)
    while not ended:
        *_, terminated, truncated, info = env.step(policy.act(env))
        ended = terminated or truncated
    assert info["metrics"]["queueing_delay_mean"] == (10.0 + 110.0 + 205.0 + 34.0) / 4


@pytest.mark.parametrize("more", [{"round": 10.0}, {"lease": 60.0}, {"timers": (1.0,)}, {"head": "reserve"}])
def test_the_order_of_a_log_goes_alone(more):
    with pytest.raises(InputError, match="order"):
        Rule("logged", placer="tier", **({"head": "skip"} | more))


def test_auctions_are_refused():
    with pytest.raises(InputError, match="starts jobs at auctions"):
        play(Setting.of("clustergym/Delay-v0", CLUSTER, "poisson:jobs=9", semantics="artist-sim"), "replay", 0)


def test_another_policy_can_take_over_and_give_back():
    """At 15, before b's start at 20: fifo starts b at once; with replay again c waits for its 30 and d for its 40."""
    simulator = Simulator("flat:machines=1,gpus_per_machine=16")
    simulator.reset(LOG)
    replay, fifo = policies.make("replay"), policies.make("fifo")
    while not simulator.ended:
        simulator.apply(simulator.ask(fifo if simulator.state.now_s == 10.0 else replay))
    assert started(simulator).tolist() == [10.0, 10.0, 10.0, 10.0]


@pytest.mark.slow
def test_a_million_jobs_take_less_than_a_minute(shared_traces, capsys):
    """Lublin's 10,000 jobs repeated, at a load of 0.8 on 256 processors; the log is made by EASY."""
    lublin = open_workload(shared_traces / "swf" / "lublin_256.swf")
    times, count = -(-(10**6) // len(lublin)), 10**6
    gpus, run_s = np.tile(lublin.gpus, times)[:count], np.tile(lublin.duration_s, times)[:count]
    span_s = float((gpus * run_s).sum()) / (0.8 * 256)
    since_s = (lublin.arrival_s + np.arange(times)[:, None] * lublin.arrival_s[-1] * (1 + 1e-4)).ravel()[:count]
    arrival_s = np.floor(since_s / since_s[-1] * span_s)
    easy = Simulator("flat:machines=32", rule=policies.make("fifo:head=reserve").rule)
    easy.reset(Workload.from_arrays("lublin", arrival_s, gpus, run_s))
    waits_s = easy.run()["queueing_delay_mean"]
    log = Workload.from_arrays("lublin", arrival_s, gpus, run_s, start_s=started(easy))
    policy = policies.make("replay")
    simulator = Simulator("flat:machines=32", rule=policy.rule)
    begun_s = time.process_time()
    simulator.reset(policy.workload_for(log))
    simulator.run(policy.decider(simulator))
    took_s = time.process_time() - begun_s
    change = np.repeat([1, -1], count)[np.lexsort((np.repeat([1, -1], count), np.append(arrival_s, log.start_s)))]
    with capsys.disabled():
        print(f"\nreplay of {count:,} jobs: {took_s:.1f} CPU s; longest queue {change.cumsum().max():,}")
    assert np.array_equal(started(simulator), log.start_s)
    assert simulator.metrics()["queueing_delay_mean"] == pytest.approx(waits_s, rel=1e-9)
    assert took_s < 60.0
