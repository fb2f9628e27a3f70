"""Several jobs on a GPU: speeds, memory, gradient accumulation, and what a decision may ask."""

from __future__ import annotations

import numpy as np
import pytest

from clustergym.simulator.base.decisions import Advance, Migrate, Preempt, Resize, Start
from clustergym.simulator.base.errors import InputError, InvalidDecision
from clustergym.simulator.base.tiers import NETWORK
from clustergym.simulator.configuration.cluster_config import ClusterConfig
from clustergym.simulator.engine.metrics import gpu_seconds
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.events.initialise import Failures
from clustergym.simulator.profiles.measured_tables import read_tables
from clustergym.simulator.profiles.models import profile_of
from clustergym.simulator.record.state import Capacity, empty_state
from clustergym.simulator.rules.rule import Rule
from clustergym.simulator.sharing.sharing_model import Sharing
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
    while not simulator.done:
        simulator.advance()
    # Job 1: 100 of 1000 s done at 150, job 2: 80 (120 s at xi 1.5); both alone from then on.
    assert simulator.jobs()["finish_s"].tolist() == [150.0, 1050.0, 1070.0]


def test_three_jobs_on_a_gpu_add_up_their_excess():
    """At xi 2 each of three equal jobs gets a third: 3 x as long."""
    simulator = begun(constant(2.0, jobs_per_gpu=3), [(0, 1, 100)] * 3)
    play(simulator, *[Start(job, (0,)) for job in range(3)])
    assert finishes(simulator) == [300.0] * 3


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
        ({"profiles": 3}, "profiles = 3: expected the path of a file of profiles"),
        ({"gpu": "2080"}, "unknown sharing: gpu '2080'; did you mean '2080ti'"),
        ({"gpu": 3}, "sharing: gpu 3: expected text"),
    ],
)
def test_bad_sharing_is_named(options, said):
    with pytest.raises(InputError, match=said):
        Sharing(**options).check()


def bert_pair():
    """Two jobs of bert on 4 GPUs, 12 samples each and iteration."""
    return Workload.from_arrays("hand", [0, 0], [4, 4], [100, 100], model=["bert"] * 2, batch_size=[48, 48])


@pytest.mark.parametrize("gpu", ["t4", "2080ti", "a100"])
def test_the_measured_network_slows_a_gang_by_its_fit(gpu):
    """Inside a machine as fast as alone; between machines as much slower as Eq. 7 says, sharing or not."""
    fit = profile_of("bert").fit(gpu)
    slowdown = float(fit.iteration_s(4, 2, 12) / fit.iteration_s(4, 1, 12))
    times = []
    for sharing in (None, constant(1.5)):
        simulator = Simulator(
            "flat:machines=2,gpus_per_machine=4", f"allreduce:calibration=measured,gpu={gpu}", sharing=sharing
        )
        simulator.reset(bert_pair())
        simulator.apply(Start(0, (0, 1, 2, 3)))
        assert simulator.state.iteration_s[0] == 1.0
        simulator.apply(Migrate(0, (0, 1, 4, 5)))
        assert simulator.state.iteration_s[0] == pytest.approx(slowdown, rel=1e-12)
        assert simulator.view.slowdown(0, NETWORK) == pytest.approx(slowdown, rel=1e-12)
        times.append(float(simulator.state.iteration_s[0]))
    assert times[0] == times[1]


@pytest.mark.parametrize(("gpus", "sub_batch"), [((0, 1, 2, 3), 6), ((0, 1, 4, 5), 3), ((2, 3, 6, 7), 5)])
def test_accumulation_on_the_measured_network_is_equation_7(gpus, sub_batch):
    simulator = Simulator(
        "flat:machines=2,gpus_per_machine=4", "allreduce:calibration=measured,gpu=t4", sharing=constant(1.5)
    )
    simulator.reset(bert_pair())
    simulator.apply(Start(0, gpus, sub_batch))
    fit, nodes = profile_of("bert").fit("t4"), len({gpu // 4 for gpu in gpus})
    expected = float(fit.iteration_s(4, nodes, 12, sub_batch) / fit.iteration_s(4, 1, 12))
    assert simulator.state.iteration_s[0] == pytest.approx(expected, rel=1e-12)
    assert simulator.view.solo_s(0, gpus, sub_batch) == simulator.state.iteration_s[0]


FITTED = "allreduce:calibration=measured,gpu=t4"


def test_there_is_one_type_of_gpu():
    """That of the network; without one what is asked for holds, in predictions and for elastic jobs."""
    for asked, network, holds in ((None, FITTED, "t4"), ("t4", FITTED, "t4"), ("a100", "none", "a100")):
        simulator = Simulator("flat:machines=1,gpus_per_machine=4", network, sharing=Sharing(gpu=asked))
        simulator.reset(bert_pair())
        assert simulator.config.gpu_type == holds
        assert tuple(simulator.state.fit[0]) == pytest.approx(profile_of("bert").fit(holds).row(), nan_ok=True)
    assert ClusterConfig(TWO).gpu_type == ClusterConfig(TWO, "contention").gpu_type == "2080ti"
    with pytest.raises(InputError, match=r"gpu = 'a100': network 'allreduce:.*' has measurements of t4; expect"):
        Simulator(TWO, FITTED, sharing=Sharing(gpu="a100"))


def test_the_measured_network_needs_batches():
    simulator = Simulator(TWO, "allreduce:calibration=measured,gpu=t4")
    assert simulator.network.describe() == "allreduce:calibration=measured,gpu=t4,duration=isolated"
    with pytest.raises(InputError, match=r"job 0 \(2 GPUs\) has no batch_size"):
        simulator.reset(Workload.from_arrays("hand", [0], [2], [100], model=["bert"]))
    with pytest.raises(InputError, match="gpu, profiles and tables go with calibration=measured"):
        Simulator(TWO, "allreduce:calibration=artist,gpu=t4")
    with pytest.raises(InputError, match="did you mean"):
        Simulator(TWO, "allreduce:calibration=measured,gpu=t44")


class Steps:
    """A pace by hand: (seconds per iteration, iterations left at the end of the phase) in order of asking."""

    restores_first = False

    def __init__(self, answers, elastic=False):
        self.answers, self.elastic, self.asked = list(answers), elastic, []

    def rate(self, simulator, job):
        self.asked.append((simulator.view.now_s, job, float(simulator.state.iterations_left[job])))
        return self.answers.pop(0)


def paced(answers, jobs, elastic=False, **options):
    rate_provider = Steps(answers, elastic)
    simulator = Simulator(TWO, rate_provider=rate_provider, **options)
    simulator.reset(Workload.from_arrays("hand", *map(list, zip(*jobs, strict=True))))
    return simulator, rate_provider


def test_rates_are_asked_for_at_the_start_and_at_the_end_of_each_phase():
    """100 iterations: 40 at 1 s, 50 at 2 s, 10 at 0.5 s."""
    simulator, rate_provider = paced([(1.0, 60.0), (2.0, 10.0), (0.5, 0.0)], [(5, 1, 100)])
    play(simulator, Start(0, (0,)))
    assert simulator.done and finishes(simulator) == [150.0]
    assert rate_provider.asked == [(5.0, 0, 100.0), (45.0, 0, 60.0), (145.0, 0, 10.0)]


def test_a_job_back_on_its_gpus_is_not_asked_again():
    simulator, rate_provider = paced([(1.0, 0.0), (3.0, 0.0)], [(0, 1, 100), (10, 2, 1)])
    play(simulator, Start(0, (0,)))
    play(simulator, Preempt(0), Start(0, (0,)))
    assert len(rate_provider.asked) == 1 and finishes(simulator)[0] == 100.0
    simulator, rate_provider = paced([(1.0, 0.0), (3.0, 0.0)], [(0, 1, 100), (10, 2, 1)])
    play(simulator, Start(0, (0,)))
    play(simulator, Migrate(0, (1,)))
    assert rate_provider.asked == [(0.0, 0, 100.0), (10.0, 0, 90.0)]
    assert finishes(simulator)[0] == 10.0 + 270.0


def test_partners_slow_an_asked_rate_down_too():
    simulator, _ = paced([(1.0, 50.0), (1.0, 0.0), (2.0, 0.0)], [(0, 1, 100), (0, 1, 10)], sharing=constant(1.5))
    play(simulator, Start(0, (0,)), Start(1, (0,)))
    assert simulator.done
    # Job 1: 10 iterations at 1.5 s; job 0: 10 at 1.5 s, 40 at 1 s, 50 at 2 s.
    assert finishes(simulator) == [155.0, 15.0]


def test_elastic_jobs_change_their_size_and_pay_a_restore():
    """Two iterations a second on two GPUs; 10 s without progress when the GPUs change."""
    simulator, rate_provider = paced(
        [(1.0, 0.0), (0.5, 0.0), (1.0, 0.0)], [(0, 1, 100), (20, 1, 30)], True, rule=Rule("fifo", preemption_cost=10.0)
    )
    play(simulator, Start(0, (0,)))
    assert simulator.view.now_s == 20.0
    simulator.apply(Resize(0, (0, 1), batch=2))
    assert simulator.view.gpus_of(0) == [0, 1] and len(rate_provider.asked) == 1
    simulator.advance()
    assert rate_provider.asked[1] == (20.0, 0, 80.0)
    # 80 left at 0.5 s from 30 on: done at 70; job 1 then runs from 70 to 100.
    assert simulator.view.now_s == 70.0
    play(simulator, Start(1, (1,)))
    while not simulator.done:
        simulator.advance()
    assert finishes(simulator) == [70.0, 100.0]
    assert simulator.metrics()["migrations"] == 1
    check_sums(simulator)


def test_a_stop_and_a_start_on_other_gpus_at_one_instant_cost_one_restore():
    simulator, rate_provider = paced(
        [(1.0, 0.0), (0.5, 0.0)], [(0, 1, 100), (20, 1, 30)], True, rule=Rule("fifo", preemption_cost=10.0)
    )
    play(simulator, Start(0, (0,)))
    simulator.apply(Preempt(0))
    simulator.apply(Start(0, (1, 0)))
    assert simulator.view.gpus_of(0) == [1, 0]
    simulator.advance()
    assert finishes(simulator)[0] == 70.0
    assert len(rate_provider.asked) == 2


def test_elastic_jobs_are_looked_at_every_round_while_one_is_there():
    simulator, _ = paced([(1.0, 0.0)] * 2, [(5, 1, 100), (1000, 1, 10)], True, rule=Rule("fifo", round=30.0))
    seen = [simulator.view.now_s]
    simulator.apply(Start(0, (0,)))
    while not simulator.done:
        simulator.advance()
        seen.append(simulator.view.now_s)
        if simulator.view.queue.tolist() == [1]:
            simulator.apply(Start(1, (0,)))
    assert seen == [30.0, 60.0, 90.0, 120.0, 1020.0, 1030.0]


def test_the_first_start_costs_a_restore_where_the_pace_says_so():
    simulator, rate_provider = paced([(1.0, 0.0)], [(0, 1, 100)], rule=Rule("fifo", preemption_cost=30.0))
    rate_provider.restores_first = True
    simulator.reset(simulator.workload)
    play(simulator, Start(0, (0,)))
    assert finishes(simulator) == [130.0]


def test_only_elastic_jobs_change_their_size():
    simulator = begun(constant(1.5), [(0, 1, 100)])
    with pytest.raises(InvalidDecision, match=r"start job 0 \(0\): 2 GPUs given, its gang needs 1"):
        simulator.apply(Start(0, (0, 1)))
    simulator.apply(Start(0, (0,)))
    with pytest.raises(InvalidDecision, match="the jobs of this simulator are not elastic"):
        simulator.apply(Resize(0, (0, 1)))


def test_a_failure_takes_all_jobs_of_its_gpus_and_the_work_since_their_checkpoints():
    """The rate changes between two checkpoints; the work since the last one is lost at the rates it was done at."""
    failures = Failures(mtbf_s=1e12, mttr_s=10.0, checkpoint_s=50.0)
    simulator = Simulator(TWO, failures=failures, sharing=constant(2.0))
    simulator.reset(Workload.from_arrays("hand", [0, 70], [1, 1], [1000, 1000]))
    play(simulator, Start(0, (0,)))
    simulator.apply(Start(1, (0,)))
    s = simulator.state
    schedule_failure(simulator, 80.0)
    simulator.advance()
    assert simulator.view.now_s == 80.0 and simulator.view.queue.tolist() == [0, 1]
    # Job 0 had 70 done at 70 and 5 more at 80; its checkpoint was at 50. Job 1's was its start.
    assert s.iterations_left[:2].tolist() == [950.0, 1000.0]
    check_sums(simulator)


def schedule_failure(simulator, time_s):
    """Let the only machine fail at `time_s`."""
    s = simulator.state
    place = s.event_position[s.first_machine_event]
    assert place >= 0
    s.event_key[place] = time_s
    while place > 0 and s.event_key[(place - 1) // 4] > time_s:
        above = (place - 1) // 4
        for name in ("event_key", "event_item"):
            getattr(s, name)[[place, above]] = getattr(s, name)[[above, place]]
        s.event_position[s.event_item[place]], s.event_position[s.event_item[above]] = place, above
        place = above


def test_a_run_goes_on_the_same_in_a_larger_record():
    simulator = begun(constant(1.3), [(float(i), 1, 20.0 + i) for i in range(6)])
    for job in range(2):
        play(simulator, Start(job, (job % 2,)))
    assert simulator.view.queue.tolist() == [2]
    simulator.apply(Start(2, (1,)))
    snapshot = simulator.snapshot()

    def rest():
        while not simulator.ended:
            if len(simulator.view.queue) and len(room := np.flatnonzero(simulator.view.load < 2)):
                simulator.apply(Start(int(simulator.view.queue[0]), (int(room[0]),)))
            else:
                simulator.advance()
        return finishes(simulator)

    expected = rest()
    simulator.restore(snapshot)
    larger = Capacity.fitting(1000, 600, 4)
    simulator.move_to(empty_state(larger), larger)
    assert simulator.view.gpus_of(2) == [1] and simulator.view.jobs_on(1) == [1, 2]
    assert rest() == expected


@pytest.mark.parametrize(("gpus", "counts"), [((0, 1, 2, 3), (4,)), ((0, 1, 4, 5), (2, 2)), ((0, 4, 8, 12), (1,) * 4)])
def test_measured_tables_say_how_long_a_placement_takes(shared_traces, gpus, counts):
    """The time of the table over that on one machine; what it does not have comes from the fit."""
    folder = shared_traces / "adaptdl" / "simulator" / "traces"
    network = f"allreduce:calibration=measured,gpu=t4,duration=isolated,tables={folder}"
    tables = read_tables(str(folder), "bert")
    simulator = Simulator("flat:machines=4,gpus_per_machine=4", network)
    assert simulator.network.describe() == network
    simulator.reset(bert_pair())
    play(simulator, Start(0, gpus))
    assert simulator.state.iteration_s[0] == pytest.approx(tables.times_s(counts, 12)[0] / tables.times_s((4,), 12)[0])
    simulator = Simulator("flat:machines=4,gpus_per_machine=4", network, sharing=constant(2.0))
    simulator.reset(bert_pair())
    play(simulator, Start(0, gpus, sub_batch=4), Start(1, gpus, sub_batch=4))
    step_s, sync_s = tables.times_s(counts, 4)
    alone_s = (step_s + 2 * (step_s - sync_s)) / tables.times_s((4,), 12)[0]
    assert finishes(simulator) == pytest.approx([200 * alone_s] * 2)  # xi 2
