"""GPUs that are cut in slices (MIG): fixed parts of compute and memory. And what is assumed of memory."""

from __future__ import annotations

import pytest

from clustergym import policies
from clustergym.simulator.base.decisions import Migrate, Start
from clustergym.simulator.base.errors import InputError, InvalidDecision
from clustergym.simulator.engine.metrics import gpu_seconds
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.sharing.sharing_model import MEMORY, Sharing
from clustergym.simulator.workloads import Workload

GIB = 2.0**30
TWO = "flat:machines=1,gpus_per_machine=2"
MODELS = ("bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3")


def begun(slices, jobs, memory_gb=None, network="none", **columns):
    """A simulator at its first decision; jobs are (arrival_s, gpus, duration_s)."""
    simulator = Simulator(TWO, network, sharing=Sharing(slices, f"mig:slices={slices}", memory_gb))
    simulator.reset(Workload.from_arrays("hand", *map(list, zip(*jobs, strict=True)), **columns))
    return simulator


def play(simulator, *decisions):
    """Carry out decisions, then advance until a decision is due again or the end."""
    for decision in decisions:
        simulator.apply(decision)
    simulator.advance()


def test_a_job_takes_seven_thirds_of_its_time_whatever_comes_or_goes():
    """slices=2: 3/7 of a GPU each. Job 0 (300 s) is alone until 100 and from 450 on, job 1 (150 s) beside it between:

    700 s and 350 s on their slices all the same; isolated they take 300 and 150 s.
    """
    simulator = begun(2, [(0, 1, 300), (100, 1, 150)])
    play(simulator, Start(0, (0,)))
    play(simulator, Start(1, (0,)))
    assert simulator.jobs()["finish_s"].tolist() == pytest.approx([700.0, 450.0])
    assert [simulator.view.isolated_s(job) for job in (0, 1)] == [300.0, 150.0]
    parts = gpu_seconds(simulator.state)
    assert parts["held"] == pytest.approx(1050.0)
    assert (parts["compute"], parts["interference"]) == pytest.approx((450.0, 600.0))


@pytest.mark.parametrize(("slices", "times"), [(2, 7 / 3), (3, 7 / 2), pytest.param(7, 7.0, marks=pytest.mark.slow)])
def test_as_many_jobs_as_slices_run_side_by_side(slices, times):
    """All start at once, on one GPU: 3g.20gb has 3/7 of an A100, 2g.10gb 2/7, 1g.5gb 1/7."""
    simulator = begun(slices, [(0, 1, 60)] * slices)
    play(simulator, *(Start(job, (0,)) for job in range(slices)))
    assert simulator.jobs()["finish_s"].tolist() == pytest.approx([60.0 * times] * slices)


def test_the_network_part_counts_too():
    """A gang on two machines computes for 50 of its 100 s; on slices of 3/7 all of it takes 7/3 times as long.

    The network says one time an iteration, and neither it nor the paper's Eq. 5 says which part of it waits.
    """
    simulator = Simulator(
        "flat:machines=2,gpus_per_machine=1", "penalty:default=2/2/2", sharing=Sharing(2, "mig:slices=2")
    )
    simulator.reset(Workload.from_arrays("hand", [0], [2], [100], model=["a"]))
    play(simulator, Start(0, (0, 1)))
    assert simulator.jobs()["finish_s"].tolist() == pytest.approx([700 / 3])
    assert gpu_seconds(simulator.state)["comm"] == pytest.approx(2 * 50.0)


def test_each_job_has_the_memory_of_its_slice():
    """slices=2 of 11 GiB: 5.5 GiB each. cifar10 with 1,024 samples takes 9.4 GiB, with 512 5.7 GiB, with 256 3.9 GiB.

    So both run in passes of 256, the second as the first; on shared memory the second could not.
    """
    simulator = begun(2, [(0, 1, 60), (0, 1, 60)], 11.0, model=["cifar10"] * 2, batch_size=[1024, 1024])
    assert simulator.view.sub_batch(0) == 256
    simulator.apply(Start(0, (0,)))
    assert simulator.view.free_memory[0] == 5.5 * GIB
    simulator.apply(Start(1, (0,)))
    assert [simulator.view.sub_batch(job) for job in (0, 1)] == [256, 256]
    with pytest.raises(InvalidDecision, match=r"5\.50 of 5\.50 GiB left"):
        simulator.reset(simulator.workload)
        simulator.apply(Start(0, (0,), 1024))


def test_moving_to_another_slice_finds_its_memory_again():
    simulator = begun(2, [(0, 1, 60), (0, 1, 60)], 11.0, model=["cifar10"] * 2, batch_size=[1024, 1024])
    simulator.apply(Start(0, (0,)))
    simulator.apply(Start(1, (0,)))
    simulator.apply(Migrate(1, (1,)))
    assert simulator.view.sub_batch(1) == 256
    assert simulator.state.gpu_memory_used[:2].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("policy", ["sjf-bsbf", "sjf-ffs", "gandiva:packing=on"])
def test_policies_that_share_fill_the_slices(policy):
    """Four jobs of 100 s on two GPUs of two slices: all start at once, and end at 233.3 s."""
    rule = policies.make(policy).rule
    simulator = Simulator(TWO, rule=rule, sharing=Sharing(2, "mig:slices=2"))
    simulator.reset(Workload.from_arrays("hand", [0] * 4, [1] * 4, [100] * 4))
    simulator.run()
    assert simulator.jobs()["finish_s"].tolist() == pytest.approx([700 / 3] * 4)


@pytest.mark.parametrize("jobs_per_gpu", [1, 2, 4, 7])
def test_other_numbers_of_jobs_a_gpu_are_refused(jobs_per_gpu):
    with pytest.raises(InputError, match=r"3 slices \(2g.10gb\): expected jobs_per_gpu = 3"):
        Simulator(TWO, sharing=Sharing(jobs_per_gpu, "mig:slices=3"))
    assert Sharing.load("on:jobs_per_gpu=3,interference=mig:slices=3").slice.name == "2g.10gb"


def slopes(word):
    """Bytes a sample of each model, by a word."""
    simulator = Simulator(TWO, sharing=Sharing(memory_gb=1000.0, memory=word))
    simulator.reset(Workload.from_arrays("hand", [0] * 6, [1] * 6, [60] * 6, model=list(MODELS)))
    return dict(zip(MODELS, simulator.state.memory_sample[:6].tolist(), strict=True))


def test_unmeasured_memory_is_assumed_halved_or_left_out():
    """Measured: cifar10 and imagenet. The other slopes are assumed: as they are, half of them, or none."""
    as_it_is = slopes("assumed")
    for word, part in MEMORY.items():
        found = slopes(word)
        for model in MODELS:
            left = 1.0 if model in ("cifar10", "imagenet") else part
            assert found[model] == pytest.approx(left * as_it_is[model], abs=1.0)
    assert as_it_is["bert"] == 573780787.0
    assert Sharing.load("on:memory=middle").memory == "middle"
    with pytest.raises(InputError, match="unknown sharing: memory 'mesured'; did you mean 'measured'"):
        Sharing(memory="mesured")


@pytest.mark.parametrize("head", ["reserve", "conservative"])
def test_reservations_count_the_slices(head):
    """Two GPUs; jobs of 100, 50 (on both) and 150 s take 7/3 of that: the third, from 1 s on, would hold up the second.

    It may not pass: the second starts when the first ends, at 233.3 s, and ends at 350; then the third, until 700.
    """
    rule = policies.make("fifo", head=head).rule
    simulator = Simulator(TWO, rule=rule, sharing=Sharing(2, "mig:slices=2"))
    simulator.reset(Workload.from_arrays("hand", [0, 1, 2], [1, 2, 1], [100, 50, 150]))
    simulator.run()
    assert simulator.jobs()["finish_s"].tolist() == pytest.approx([700 / 3, 350, 700], abs=1e-3)


def test_memory_must_be_a_number():
    with pytest.raises(InputError, match="memory_gb = 'x': expected GiB > 0"):
        Sharing(memory_gb="x")
