"""Elastic jobs: measured tables, the batch rule, fits made on the way, and the pace of a job."""

from __future__ import annotations

import numpy as np
import pytest

from clustergym.policies import make
from clustergym.policies.pollux.pollux import Pollux
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.elastic.applications import fitted_applications, measured_applications
from clustergym.simulator.elastic.elastic import TrainingRates
from clustergym.simulator.elastic.online_fit import fit_throughput
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.jobs.workload import Workload
from clustergym.simulator.profiles.goodput import Goodput, gain, split_batch
from clustergym.simulator.profiles.measured_tables import MeasuredTables, read_tables
from clustergym.simulator.profiles.models import shipped_profiles
from clustergym.tests.support.training_tables import write_tables


@pytest.fixture
def toy(tmp_path):
    return read_tables(write_tables(tmp_path), "toy")


def workload(gpus, arrivals, batches, iterations=303.0):
    """Jobs of the toy application; 303 iterations of batch 16 are its three epochs."""
    n = len(gpus)
    seconds, iterations = np.full(n, 1000.0), np.full(n, iterations)
    return Workload.from_arrays(
        "toy", arrivals, gpus, seconds, model=["toy"] * n, batch_size=batches, iterations=iterations
    )


def test_times_are_linear_in_the_batch_and_the_same_for_every_rotation(toy):
    assert toy.times_s((1,), 12) == pytest.approx((0.4, 0.0))
    assert toy.times_s((4, 2), 20) == toy.times_s((2, 4), 20) == pytest.approx((1.0, 0.4))


def test_other_placements_are_interpolated_over_nodes_gpus_and_batch(toy):
    step_s, sync_s = toy.times_s((2, 2, 2, 2), 20)
    assert 1.2 < step_s < 1.4 and step_s - sync_s == pytest.approx(0.6)
    with pytest.raises(InputError, match="toy: 8 samples per GPU on placement 444444: beyond what was measured"):
        toy.times_s((4,) * 6, 8)


def test_noise_is_linear_between_validated_batches(toy):
    assert toy.noise(16, 0) == (2.0, 30.0)
    assert toy.noise(40, 2) == pytest.approx((6.0, 90.0))
    with pytest.raises(InputError, match="batch size 8: expected 16 to 256"):
        toy.noise(8, 0)


def test_gain_of_a_larger_batch():
    assert gain((2.0, 30.0), 1.0) == 1.0
    assert gain((2.0, 30.0), 4.0) == pytest.approx(32.0 / 9.5)


@pytest.mark.parametrize(
    ("batch", "gpus", "expected"),
    [(64, 4, (16, 0)), (100, 1, (25, 3)), (32, 1, (16, 1)), (16, 1, (16, 0)), (256, 3, (29, 2)), (256, 2, (32, 3))],
)
def test_batches_are_split_into_passes(toy, batch, gpus, expected):
    # 256 on 3: 86 a GPU, 3 passes of 29 are 261 in all; 28 x 9 = 252 is the most that stays within 256.
    local, extra = split_batch(toy, batch, gpus)
    assert (local, extra) == ((28, 2) if (batch, gpus) == (256, 3) else expected)


def test_bad_tables_are_named_with_their_place(tmp_path):
    folder = write_tables(tmp_path)
    with pytest.raises(InputError, match=r"no tables of 'tay'; there are: toy"):
        read_tables(folder, "tay")
    (folder / "toy" / "placements.csv").write_text("placement,local_bsz,step_time,sync_time\n1,8,0.3,0\n0x,8,0.3,0\n")
    with pytest.raises(InputError, match=r"placements.csv, line 3, column 'placement': '0x'; expected a digit"):
        MeasuredTables(folder / "toy")
    (folder / "toy" / "placements.csv").write_text("placement,local_bsz,step_time,sync_time\n1,8,0.3,0.4\n")
    with pytest.raises(InputError, match=r"line 2, column 'sync_time': .*expected less than step_time"):
        MeasuredTables(folder / "toy")


def test_throughput_is_found_again():
    a, b, ai, bi, an, bn, d = 0.17, 0.023, 0.05, 0.01, 0.3, 0.02, 2.0
    seen = {}
    for nodes, gpus, local in [(1, 1, 8), (1, 1, 32), (1, 2, 16), (1, 4, 16), (2, 4, 32), (2, 8, 8), (4, 16, 16)]:
        compute_s = a + b * local
        more = max(gpus - 2, 0)
        sync_s = 0.0 if gpus == 1 else (an + bn * more if nodes > 1 else ai + bi * more)
        step_s = (compute_s**d + sync_s**d) ** (1.0 / d)
        seen[nodes, gpus, local] = step_s, step_s - compute_s
    fit = fit_throughput(seen)
    for (nodes, gpus, local), (step_s, _) in seen.items():
        compute_s = fit[0] + fit[1] * local
        first, more = fit[4:6] if nodes > 1 else fit[2:4]
        sync_s = 0.0 if gpus == 1 else first + more * max(gpus - 2, 0)
        assert (compute_s ** fit[6] + sync_s ** fit[6]) ** (1.0 / fit[6]) == pytest.approx(step_s, rel=0.05)


def test_the_best_batch_is_the_best_of_all_that_were_tried(toy):
    fit = np.array([0.1, 0.02, 0.1, 0.01, 0.4, 0.02, 1.5])
    goodput, noise = Goodput(toy, 8), (2.0, 30.0)
    table = goodput.table(fit, noise, slice(0, 8), (1, 2))
    assert table.shape == (2, 8) and np.all(table[0, 1:] > table[1, 1:]) and table[0, 0] == table[1, 0]
    local, extra = goodput.best_batch(fit, noise, 4, 2)
    step_s = ((0.1 + 0.02 * local) ** 1.5 + (0.4 + 0.02 * 2) ** 1.5) ** (1 / 1.5)
    worth = gain(noise, 4 * local * (extra + 1) / 16) / (extra * (0.1 + 0.02 * local) + step_s)
    assert worth == pytest.approx(table[1, 3])


def test_a_job_alone_by_hand(tmp_path):
    """It arrives at 10, starts in the round at 60, trains from 90 on: 2 steps a second, epochs of 101 steps.

    60 steps until 120, where 41 are left: 20.5 s, rounded to 20. From 140 to 180 it makes 80, and 21 take 10 s. From
    190 to 240 it makes 100; the last step would take half a second, rounded to none.
    """
    rate_provider = TrainingRates(measured_applications(str(write_tables(tmp_path))), tunes=False)
    simulator = Simulator("flat:machines=2,gpus_per_machine=4", rate_provider=rate_provider)
    policy = make("tiresias-rounds")
    simulator.use(policy.clock)
    simulator.reset(workload([1], [10.0], [16]))
    assert simulator.run(policy)["jct_mean"] == pytest.approx(230.0, abs=1e-4)


@pytest.mark.parametrize("word", ["tiresias-rounds", "pollux"])
def test_one_policy_plays_in_several_simulators(tmp_path, word):
    applications = measured_applications(str(write_tables(tmp_path)))
    policy = make(word)
    rate_provider = TrainingRates(applications, tunes=policy.elastic)
    found = []
    for _ in range(2):
        simulator = Simulator("flat:machines=2,gpus_per_machine=4", rate_provider=rate_provider)
        simulator.reset(workload([1, 2], [10.0, 20.0], [16, 16]))
        found.append(simulator.run(policy)["jct_mean"])
    assert found[0] == found[1]


def test_jobs_of_given_size_need_a_batch_that_is_known(tmp_path):
    rate_provider = TrainingRates(measured_applications(str(write_tables(tmp_path))), tunes=False)
    simulator = Simulator("flat:machines=2,gpus_per_machine=4", rate_provider=rate_provider)
    policy = make("tiresias-rounds")
    simulator.use(policy.clock)
    simulator.reset(workload([1], [0.0], [8]))
    with pytest.raises(InputError, match="batch_size 8; expected 16 to 256"):
        simulator.run(policy)


def test_a_job_doubles_its_gpus_and_grows_its_batch(tmp_path):
    rate_provider = TrainingRates(measured_applications(str(write_tables(tmp_path, epochs=30))))
    simulator = Simulator("flat:machines=2,gpus_per_machine=4", rate_provider=rate_provider)
    policy = Pollux()
    simulator.use(policy.clock)
    simulator.reset(workload([1], [10.0], [16], 3030.0))
    held = set()
    while not simulator.ended:
        while type(decision := simulator.ask(policy)).__name__ != "Advance":
            simulator.apply(decision)
        held.add(len(simulator.view.gpus_of(0)))
        simulator.advance()
    trainee = rate_provider.trainee(simulator, 0)
    assert {1, 2, 4} <= held  # and 0 while it waits for its first round
    assert trainee.fit is not None and any(gpus * local > 16 for _, gpus, local in trainee.seen)
    assert simulator.metrics()["jct_mean"] < 3030 / 2  # half the time that the smallest batch on one GPU takes


def test_fairness_is_of_the_gpus_that_a_job_asks(tmp_path):
    """Each asks one GPU of 8, which is less than its share, and ends on more: fair is the time alone on that one."""
    rate_provider = TrainingRates(measured_applications(str(write_tables(tmp_path, epochs=30))))
    simulator, policy = Simulator("flat:machines=2,gpus_per_machine=4", rate_provider=rate_provider), Pollux()
    simulator.use(policy.clock)
    simulator.reset(workload([1] * 5, [0.0] * 5, [16] * 5, 3030.0))
    simulator.run(policy)
    jobs = simulator.jobs()
    assert simulator.state.gpus[:5].max() > 8 / 5
    assert jobs["finish_time_fairness"] == pytest.approx(jobs["jct_s"] / 1000.0)


@pytest.mark.parametrize("gpu", ["t4", "2080ti"])
def test_shipped_profiles_train_elastically(gpu):
    models, batches = ["cifar10", "bert", "ncf", "yolov3"], [128, 12, 256, 8]
    steps = [
        shipped_profiles().of(name).efficiency.steps_of(batch) for name, batch in zip(models, batches, strict=True)
    ]
    jobs = Workload.from_arrays(
        *("shipped", [0.0, 30.0, 60.0, 90.0], [4, 4, 1, 2], np.full(4, 1000.0)),
        model=models,
        batch_size=batches,
        iterations=steps,
    )
    simulator = Simulator(
        "flat:machines=4,gpus_per_machine=4", rate_provider=TrainingRates(fitted_applications(gpu)), horizon_s=20_000.0
    )
    policy = make("pollux:generations=5")
    simulator.use(policy.clock)
    simulator.reset(jobs)
    simulator.run(policy)
    left = simulator.state.iterations_left[:4] / simulator.state.iterations[:4]
    assert np.all(left < 1.0) and left[0] == 0.0 and left[2] == 0.0


def test_what_cannot_be(tmp_path):
    with pytest.raises(InputError, match=r"interval_s = 0\.5"):
        TrainingRates(fitted_applications("t4"), interval_s=0.5)
    for word in ("pollux:round=0", "pollux:exponent=0", "pollux:patience=0", "tiresias-rounds:threshold=0"):
        with pytest.raises(InputError, match="expected"):
            make(word)
    rate_provider = TrainingRates(measured_applications(str(write_tables(tmp_path))), tunes=False)
    simulator = Simulator("flat:machines=2,gpus_per_machine=4", rate_provider=rate_provider)
    simulator.reset(workload([1], [0.0], [16]))
    with pytest.raises(InputError, match="jobs must be elastic"):
        simulator.run(make("pollux"))
