"""Several jobs on a GPU: speeds, memory, gradient accumulation, and what a decision may ask."""

from __future__ import annotations

import numpy as np
import pytest

from clustergym.simulator.decisions import Advance, Migrate, Preempt, Start
from clustergym.simulator.engine import Simulator
from clustergym.simulator.errors import InputError, InvalidDecision
from clustergym.simulator.metrics import gpu_seconds
from clustergym.simulator.sharing import Sharing
from clustergym.simulator.workloads import Workload

TWO = "flat:machines=1,gpus_per_machine=2"


def constant(xi, **options):
    return Sharing(interference=f"constant:xi={xi}", **options)


def begun(sharing, jobs, topology=TWO, **columns):
    """A simulator at its first decision; jobs are (arrival_s, gpus, duration_s)."""
    simulator = Simulator(topology, sharing=sharing)
    simulator.reset(Workload.from_arrays("hand", *map(list, zip(*jobs, strict=True)), **columns))
    return simulator


def play(simulator, *decisions):
    """Carry out decisions, then advance until a decision is due again or the end."""
    for decision in decisions:
        simulator.apply(decision)
    simulator.advance()


def finishes(simulator):
    return simulator.jobs()["finish_s"].tolist()


def check_sums(simulator):
    parts = gpu_seconds(simulator.state)
    names = ("compute", "comm", "interference", "restore", "lost")
    assert parts["held"] == pytest.approx(sum(parts[name] for name in names))
    assert parts["all"] == pytest.approx(parts["busy"] + parts["free"] + parts["down"])


def test_two_equal_jobs_at_xi_1_5_break_even_with_one_after_the_other():
    """Together both end at 150; in turn at 100 and 200: 150 on average either way."""
    simulator = begun(constant(1.5), [(0, 2, 100), (0, 2, 100)])
    play(simulator, Start(0, (0, 1)), Start(1, (0, 1)))
    assert simulator.done and finishes(simulator) == [150.0, 150.0]
    together = simulator.metrics()
    simulator.reset(simulator.workload)
    play(simulator, Start(0, (0, 1)))
    play(simulator, Start(1, (0, 1)))
    assert finishes(simulator) == [100.0, 200.0]
    assert together["jct_mean"] == simulator.metrics()["jct_mean"] == 150.0
    assert together["gpu_utilisation"] == pytest.approx(4 / 3)  # 400 GPU-seconds of work in 300
    assert together["allocation_rate"] == pytest.approx(1.0)


def test_a_partner_that_comes_or_goes_changes_the_rate_from_then_on():
    """Alone until 40, beside job 1 (60 s of work, xi 2) from 40 to 160, alone again for what is left."""
    simulator = begun(constant(2.0), [(0, 2, 110), (40, 2, 60)])
    play(simulator, Start(0, (0, 1)))
    assert simulator.view.now_s == 40.0
    play(simulator, Start(1, (0, 1)))
    assert finishes(simulator) == [170.0, 160.0]  # 40 + 60 done at 160, 10 left
    table = simulator.jobs()
    assert table["interference_s"].tolist() == [60.0, 60.0]
    parts = gpu_seconds(simulator.state)
    assert (parts["shared"], parts["busy"], parts["held"]) == (240.0, 340.0, 580.0)
    check_sums(simulator)


def test_a_gang_goes_at_its_slowest_gpu():
    """Job 1 shares one of two GPUs only; job 2 shares the other later: the gang is slowed down once, not twice."""
    simulator = begun(constant(1.5), [(0, 2, 100), (0, 1, 1000), (30, 1, 1000)])
    play(simulator, Start(0, (0, 1)), Start(1, (1,)))
    assert simulator.state.iteration_s[0] == 1.5
    play(simulator, Start(2, (0,)))
    assert simulator.jobs()["finish_s"][0] == 150.0 or not simulator.done
    while not simulator.done:
        simulator.advance()
    assert simulator.jobs()["finish_s"][0] == 150.0
    # Job 1: 100 of 1000 s done at 150, job 2: 80 (120 s at xi 1.5); both alone from then on.
    assert simulator.jobs()["finish_s"].tolist() == [150.0, 1050.0, 1070.0]


def test_three_jobs_on_a_gpu_add_up_their_excess():
    """At xi 2 each of three equal jobs gets a third: 3 x as long."""
    simulator = begun(constant(2.0, jobs_per_gpu=3), [(0, 1, 100)] * 3)
    play(simulator, *[Start(job, (0,)) for job in range(3)])
    assert finishes(simulator) == [300.0] * 3
    simulator.reset(simulator.workload)
    play(simulator, Start(0, (0,)), Start(1, (0,)))
    assert finishes(simulator)[:2] == [200.0, 200.0] or simulator.view.now_s == 200.0


def test_no_more_jobs_than_a_gpu_takes():
    simulator = begun(constant(1.5), [(0, 1, 100)] * 4)
    for job in range(2):
        simulator.apply(Start(job, (1,)))
    before = simulator.snapshot()
    with pytest.raises(InvalidDecision, match=r"GPU 1 .* is held by job 0 and job 1; at most 2 may share a GPU"):
        simulator.apply(Start(2, (1,)))
    assert simulator.records.tobytes() == before.tobytes()
    assert simulator.view.load.tolist() == [0, 2] and simulator.view.open_gpus.tolist() == []
    assert simulator.view.free_gpus.tolist() == [0] and simulator.view.partners_of(0) == [1]


def test_gpus_are_free_or_open_or_full():
    simulator = begun(constant(1.5, jobs_per_gpu=3), [(0, 1, 100)] * 3)
    for job, (load, opened, free) in enumerate([([1, 0], [0], [1]), ([2, 0], [0], [1]), ([3, 0], [], [1])]):
        simulator.apply(Start(job, (0,)))
        view = simulator.view
        assert (view.load.tolist(), view.open_gpus.tolist(), view.free_gpus.tolist()) == (load, opened, free)
    for job, (load, opened) in enumerate([([2, 0], [0]), ([1, 0], [0]), ([0, 0], [])]):
        simulator.apply(Preempt(job))
        assert (simulator.view.load.tolist(), simulator.view.open_gpus.tolist()) == (load, opened)


def memory(**options):
    """bert: 24 samples a GPU; base + 24 samples do not fit twice."""
    return begun(
        constant(1.5, **options),
        [(0, 1, 100), (0, 1, 100), (0, 1, 100)],
        model=["bert", "bert", "ncf"],
        batch_size=[8, 8, 4096],
    )


def test_what_does_not_fit_the_memory_is_refused_or_accumulates():
    simulator = memory(memory_gb=11.0)
    s, view = simulator.state, simulator.view
    base, each = float(s.memory_base[0]), float(s.memory_sample[0])
    simulator.apply(Start(0, (0,)))
    assert view.sub_batch(0) == 8
    used = base + 8 * each
    assert view.free_memory[0] == 11 * 2**30 - used
    room = 11 * 2**30 - used - base
    largest = next((b for b in (8, 4, 2, 1) if each * b <= room), None)
    assert view.sub_batch_for(1, [0]) == largest
    before = simulator.snapshot()
    with pytest.raises(InvalidDecision, match=r"start job 1 \(1\): GPU 0 .* GiB left, and 8 samples a pass need"):
        simulator.apply(Start(1, (0,), sub_batch=8))
    assert simulator.records.tobytes() == before.tobytes()
    if largest is not None:
        simulator.apply(Start(1, (0,)))
        assert view.sub_batch(1) == largest
        assert view.free_memory[0] == 11 * 2**30 - used - base - each * largest


def test_a_sub_batch_costs_what_equation_7_says():
    """One GPU: s passes of one_a + one_b x B / s, against one of one_a + one_b x B."""
    simulator = memory()
    s = simulator.state
    one_a, one_b = s.fit[0, 7], s.fit[0, 8]
    simulator.apply(Start(0, (0,), sub_batch=2))
    assert simulator.state.iteration_s[0] == pytest.approx((4 * one_a + 8 * one_b) / (one_a + 8 * one_b), rel=1e-12)
    simulator.apply(Start(1, (1,), sub_batch=8))
    assert simulator.state.iteration_s[1] == 1.0
    simulator.apply(Preempt(1))
    with pytest.raises(InvalidDecision, match="sub_batch = 9: expected 1 to its batch of 8 samples a GPU"):
        simulator.apply(Start(1, (1,), sub_batch=9))


def test_a_job_that_fits_no_gpu_is_an_input_error():
    with pytest.raises(InputError, match=r"job 0 \(bert\): it does not fit the 1 GiB of a GPU"):
        memory(memory_gb=1.0)


def test_stopped_and_started_again_at_one_instant_nothing_has_happened():
    """Also not to the partner: its run is the same bit for bit."""
    jobs = [(0, 2, 100.3), (7.1, 1, 77.7), (11.3, 1, 50.1)]
    plain, disturbed = (begun(constant(1.37), jobs) for _ in range(2))
    for simulator in (plain, disturbed):
        play(simulator, Start(0, (0, 1)))
        play(simulator, Start(1, (1,)))
    disturbed.apply(Preempt(0))
    disturbed.apply(Start(0, (1, 0)))
    disturbed.apply(Migrate(1, (0,)))
    disturbed.apply(Migrate(1, (1,)))
    for simulator in (plain, disturbed):
        play(simulator, Start(2, (0,)))
        while not simulator.done:
            simulator.advance()
    assert plain.metrics() == disturbed.metrics()
    assert finishes(plain) == finishes(disturbed)


def test_exclusive_schedulers_play_the_same_where_gpus_could_be_shared():
    rng = np.random.default_rng(3)
    n = 40
    workload = Workload.from_arrays(
        "random", np.sort(rng.uniform(0, 500, n)), rng.integers(1, 5, n), rng.lognormal(4, 1, n)
    )
    outcomes = []
    for sharing in (None, constant(1.7)):
        simulator = Simulator("flat:machines=2,gpus_per_machine=4", "penalty:default=1/1.2/1.5", sharing=sharing)
        simulator.reset(workload)
        outcomes.append((simulator.run(), finishes(simulator)))
    exclusive, shared = (metrics.pop("allocation_rate") for metrics, _ in outcomes)
    assert shared == pytest.approx(exclusive)  # a sum over jobs, and one over time
    assert outcomes[0] == outcomes[1]


def test_without_sharing_a_sub_batch_is_refused():
    simulator = Simulator(TWO)
    simulator.reset(Workload.from_arrays("hand", [0], [1], [10]))
    with pytest.raises(InvalidDecision, match="GPUs are not shared in this simulator"):
        simulator.apply(Start(0, (0,), sub_batch=1))
    simulator.apply(Start(0, (0,)))
    simulator.apply(Advance())
    assert simulator.done


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"jobs_per_gpu": 0}, "jobs_per_gpu = 0: expected a whole number from 1 to 8"),
        ({"memory_gb": -1.0}, "memory_gb = -1.0: expected GiB > 0"),
        ({"interference": "mesured"}, "measured"),
    ],
)
def test_bad_sharing_is_named(options, said):
    with pytest.raises(InputError, match=said):
        Sharing(**options)
