"""How much work a job is under Pollux: as many iterations as it asks, with elastic jobs and without."""

from __future__ import annotations

import json

import gymnasium
import numpy as np
import pytest

from clustergym.experiments.cli import run, with_settings_apart
from clustergym.experiments.commands.options import pairs
from clustergym.policies import make
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.elastic.applications import fitted_applications, measured_applications
from clustergym.simulator.elastic.elastic import TrainingRates, Work
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.jobs.workload import Workload
from clustergym.simulator.profiles.measured_tables import read_tables
from clustergym.simulator.sharing.sharing_model import Sharing
from clustergym.simulator.workloads import open_workload
from clustergym.tests.support.training_tables import write_tables

OFF = "pollux:adapt=off,preemption_cost=0"
MEASURED = "allreduce:calibration=measured,gpu=2080ti"
MODELS = ("bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3")


def toy(iterations):
    """One job of the toy application on one GPU, batch 16, from 10 s on: 2 steps a second, epochs of 101 steps."""
    return Workload.from_arrays(
        "toy", [10.0], [1], [1000.0], model=["toy"], batch_size=[16], iterations=[float(iterations)]
    )


def random_workload(rng, topology):
    """Up to six jobs of the six models at multiples of a minute, some of them far from all others."""
    n = int(rng.integers(1, 7))
    arrival_s = np.sort(rng.integers(0, 2000, n)) * 60.0
    gpus = rng.integers(1, topology.num_gpus + 1, n)
    model = rng.choice([name for name in MODELS if name != "ncf"], n).astype(object)
    batch = gpus * 2 ** rng.integers(0, 4, n)
    iterations, seconds = rng.integers(1, 5000, n).astype(float), rng.uniform(0.05, 5.0, n)
    return Workload.from_arrays(
        *("random", arrival_s, gpus, iterations * seconds),
        iterations=iterations,
        iteration_s=seconds,
        model=model,
        batch_size=batch,
    )


def played(word, jobs, topology="flat:machines=4,gpus_per_machine=4", network=MEASURED, **options):
    policy = make(word)
    simulator = Simulator(topology, network, rate_provider=policy.rate_provider("2080ti"), **options)
    simulator.reset(jobs)
    simulator.run(policy)
    return simulator


def test_a_part_of_a_training_is_its_beginning_and_more_than_one_goes_on_in_the_last_epoch(tmp_path):
    """303 steps of batch 16 in three epochs: half of them end in the second; twice as many in a longer third."""
    application = read_tables(write_tables(tmp_path), "toy")
    assert application.steps_of(16) == pytest.approx(303.0)
    for iterations, ends in ((151.5, [101, 151.5]), (202, [101, 202]), (303, [101, 202, 303]), (606, [101, 202, 606])):
        work = Work.of(application, iterations, 16)
        assert work.ends.tolist() == pytest.approx(ends)
        assert work.per_iteration == pytest.approx(1.0)


@pytest.mark.parametrize(("iterations", "expected"), [(30, 95.0), (303, 230.0), (606, 382.0)])
def test_jobs_by_hand(tmp_path, iterations, expected):
    """It starts at 60, and trains from 90 on at 2 steps a second.

    30 steps take until 105. The third epoch begins at 190: 303 steps end at 240. Of 606 steps 404 are left then, 100
    until 240, 120 in each of the next two minutes, and 64 take 32 s: it ends at 392.
    """
    rate_provider = TrainingRates(measured_applications(str(write_tables(tmp_path))), tunes=False)
    simulator = Simulator("flat:machines=2,gpus_per_machine=4", rate_provider=rate_provider)
    simulator.reset(toy(iterations))
    assert simulator.run(make("tiresias-rounds"))["jct_mean"] == pytest.approx(expected, abs=1e-4)


def test_elastic_work_is_in_proportion_to_iterations():
    """bert, batch 48 on 4 GPUs: a whole training is 3,748 steps, the progress of 14,774 of batch 12."""
    ended, work = {}, {}
    for iterations in (10.0, 1000.0, 3748.0):
        jobs = Workload.from_arrays(
            "bert", [0.0], [4], [6.0 * iterations], iterations=[iterations], model=["bert"], batch_size=[48]
        )
        simulator = played("pollux:generations=5", jobs)
        ended[iterations] = simulator.metrics()["jct_mean"]
        work[iterations] = simulator.rate_provider.trainee(simulator, 0).work.ends[-1]
    assert work[1000.0] == pytest.approx(100.0 * work[10.0], rel=1e-12)
    assert work[3748.0] == 14774.0
    assert ended[10.0] < 150.0 < 400.0 < ended[1000.0] < 600.0 < 900.0 < ended[3748.0]


@pytest.mark.reproduction
@pytest.mark.parametrize("number", [1, 6])
def test_jobs_of_the_published_workloads_are_whole_trainings(shared_traces, number):
    """To the last bit, so that nothing of the published simulator changes."""
    folder = shared_traces / "adaptdl" / "simulator"
    jobs = open_workload(folder / "workloads" / f"workload-{number}.csv")
    measured, fitted = measured_applications(str(folder / "traces")), fitted_applications("t4")
    for application_of in (measured, fitted):
        for model, batch, iterations in zip(jobs.model, jobs.batch_size, jobs.iterations, strict=True):
            application = application_of(model)
            work = Work.of(application, float(iterations), int(batch))
            assert work.ends.tolist() == application.progress.tolist()
            assert work.per_iteration == application.progress[-1] / iterations


def test_philly_sample_jobs_are_whole_trainings():
    jobs = open_workload("philly-sample:jobs=60", seed=3)
    for model, batch, iterations in zip(jobs.model, jobs.batch_size, jobs.iterations, strict=True):
        application = fitted_applications("2080ti")(model)
        assert np.array_equal(Work.of(application, float(iterations), int(batch)).ends, application.progress)


def test_elastic_jobs_need_a_batch():
    jobs = Workload.from_arrays("no batch", [0.0], [4], [60.0], model=["bert"])
    with pytest.raises(InputError, match="job 0 has no batch_size"):
        played("pollux", jobs, network="none")


def test_without_adapting_a_lone_job_takes_its_iterations_times_their_time():
    """50 random workloads, arrivals on rounds; a lone job meets no other from its arrival to its end."""
    lone = 0
    for seed in range(50):
        rng = np.random.default_rng(seed)
        network = ["none", MEASURED][seed % 2]
        word = f"flat:machines={rng.integers(1, 5)},gpus_per_machine={rng.integers(1, 5)}"
        simulator = Simulator(word, network)
        jobs = random_workload(rng, simulator.topology)
        simulator.reset(jobs)
        simulator.run(make(OFF))
        s, n = simulator.state, len(jobs)
        begin_s, end_s = jobs.arrival_s, s.finish_s[:n]
        for job in range(n):
            others = np.arange(n) != job
            if np.any((begin_s[others] < end_s[job]) & (end_s[others] > begin_s[job])):
                continue
            lone += 1
            iteration_s = s.base_iteration_s[job] * simulator.view.slowdown(job, int(s.tier[job]))
            assert end_s[job] - begin_s[job] == pytest.approx(jobs.iterations[job] * iteration_s, rel=1e-9)
            assert s.starts[job] == 1
    assert lone > 100


@pytest.mark.parametrize("seed", range(10))
def test_without_adapting_a_thousand_iterations_take_a_hundred_times_ten(seed):
    """To the last bit but for the product's own rounding, shared GPUs and a measured network included."""
    rng = np.random.default_rng(seed)
    gpus, model, seconds = int(rng.integers(1, 17)), str(rng.choice(MODELS[:4])), float(rng.uniform(0.1, 5.0))
    took_s = {}
    for iterations in (10.0, 1000.0):
        jobs = Workload.from_arrays(
            *("lone", [0.0], [gpus], [iterations * seconds]),
            iterations=[iterations],
            iteration_s=[seconds],
            model=[model],
            batch_size=[2 * gpus],
        )
        took_s[iterations] = played(OFF, jobs, sharing=Sharing(2, memory_gb=None)).metrics()["jct_mean"]
    assert took_s[1000.0] == pytest.approx(100.0 * took_s[10.0], rel=1e-14)


def test_without_adapting_no_job_moves_for_nothing():
    """Two of four machines of one GPU are held for an hour; a job of 3 GPUs waits for them, and starts at the round."""
    jobs = Workload.from_arrays("wait", [0.0, 0.0, 60.0], [1, 1, 3], [3590.0, 3590.0, 7200.0])
    simulator = played(OFF, jobs, "flat:machines=4,gpus_per_machine=1", "none")
    assert simulator.state.starts[:3].tolist() == [1, 1, 1]
    assert simulator.state.finish_s[:3].tolist() == [3590.0, 3590.0, 3600.0 + 7200.0]


def test_without_adapting_a_large_job_makes_way_for_several_small_ones():
    """The mean over jobs of what they get: three of one GPU are worth more than one of three; it then goes on."""
    jobs = Workload.from_arrays("way", [0.0, 60.0, 60.0, 60.0], [3, 1, 1, 1], [6000.0, 600.0, 600.0, 600.0])
    simulator = played(OFF, jobs, "flat:machines=1,gpus_per_machine=3", "none")
    assert simulator.state.finish_s[:4].tolist() == pytest.approx([6600.0, 660.0, 660.0, 660.0])


def test_elastic_jobs_are_distinguished():
    """adapt=off needs jobs that have what they ask, adapt=on jobs that do not."""
    jobs = Workload.from_arrays("bert", [0.0], [4], [60.0], model=["bert"], batch_size=[48])
    assert make("pollux").elastic and not make("pollux:adapt=off").elastic
    assert make("pollux:adapt=off").rate_provider("2080ti") is None
    cases = [
        ("pollux:adapt=off", TrainingRates(fitted_applications("t4")), "this simulator are elastic; expected jobs")
    ]
    cases.append(("pollux", None, "or play pollux:adapt=off, where they have what they ask"))
    for word, rates, says in cases:
        simulator = Simulator("flat:machines=1,gpus_per_machine=4", rate_provider=rates)
        simulator.reset(jobs)
        with pytest.raises(InputError, match=says):
            simulator.run(make(word))


def test_sharing_v0_refuses_it_where_jobs_are_elastic():
    env = gymnasium.make("clustergym:clustergym/Sharing-v0", workload="philly-sample:jobs=4,hours=1", elastic=True)
    env.reset(seed=0)
    with pytest.raises(InputError, match="Sharing-v0 without elastic=True"):
        make("pollux:adapt=off").act(env)


def test_the_command_line_plays_it(capsys):
    """bsbf-physical has a hundredth to a tenth of a training a job: 294 s under sjf, once 9,274 s under pollux."""
    words = ("evaluate", "Sharing", "--workload", "bsbf-physical:jobs=8", "--seed", "0", "--json")
    assert run([*words, "--policies", "sjf pollux:generations=5 pollux:adapt=off"]) == 0
    sjf, pollux, off = (row["metrics"]["jct_mean"] for row in json.loads(capsys.readouterr().out))
    assert pollux < 3.0 * sjf and off < 3.0 * sjf


def test_settings_come_as_words_in_one_text_or_one_by_one():
    expected = {"interference": "constant:xi=1.25", "memory_gb": "inf", "names": "fifo:head=skip las"}
    one = ["interference=constant:xi=1.25", "memory_gb=inf", "names=fifo:head=skip las"]
    assert pairs(one) == pairs([" ".join(one)]) == pairs([*one[:1], " ".join(one[1:])]) == expected
    apart = ["evaluate", "Sharing", *(word for text in one for word in ("--set", text)), "--quiet", "a=b"]
    assert with_settings_apart(["evaluate", "Sharing", "--set", *one, "--quiet", "a=b"]) == apart
    assert with_settings_apart(apart) == apart
    assert with_settings_apart(["--set=a=1", "b=2", "c"]) == ["--set=a=1", "--set", "b=2", "c"]


@pytest.mark.parametrize(
    "words",
    [("interference=constant:xi=1.25", "memory_gb=inf"), ("interference=constant:xi=1.25 memory_gb=inf",)],
)
def test_several_settings_on_the_command_line(capsys, words):
    short = ("--workload", "philly-sample:jobs=4,hours=1", "--policies", "fifo", "--seed", "0", "--json")
    assert run(["evaluate", "Sharing", *short, "--set", *words]) == 0
    setting = json.loads(capsys.readouterr().out)[0]["setting"]
    assert (setting["interference"], setting["memory_gb"]) == ("constant:xi=1.25", None)
