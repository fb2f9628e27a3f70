"""The simulator, worked by hand: gangs, preemption, leases, rounds, holds, migrations, failures, and its errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clustergym.simulator.base.decisions import Advance, Hold, Migrate, Preempt, Start
from clustergym.simulator.base.errors import InputError, InvalidDecision, Stalled
from clustergym.simulator.base.tiers import NETWORK, SLOT
from clustergym.simulator.engine.metric_registry import NAMES
from clustergym.simulator.engine.metrics import gpu_seconds
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.events.initialise import Failures
from clustergym.simulator.numerics.random import exponential
from clustergym.simulator.rules.rule import Rule
from clustergym.simulator.workloads import Workload

ONE = "flat:machines=1,gpus_per_machine=1"
TWO = "flat:machines=1,gpus_per_machine=2"
FOUR = "flat:machines=1,gpus_per_machine=4"
TIERED = "penalty:default=1/1.2/1.5"


def laid(topology, jobs, rule=None, network="none", seed=0, failures=None, horizon_s=math.inf, **columns):
    """A simulator at the first decision point of `jobs`, (arrival_s, gpus, duration_s) each."""
    simulator = Simulator(topology, network, rule=rule, failures=failures, horizon_s=horizon_s)
    simulator.reset(Workload.from_arrays("by hand", *map(list, zip(*jobs, strict=True)), **columns), seed)
    return simulator


def finishes(simulator):
    return simulator.jobs()["finish_s"].tolist()


def run(topology, jobs, **options):
    """Finish times and metrics under a compiled rule."""
    simulator = laid(topology, jobs, rule=Rule(**options))
    metrics = simulator.run()
    return finishes(simulator), metrics


@pytest.mark.parametrize(("head", "finish_s"), [("strict", [10, 15, 14]), ("skip", [10, 15, 6])])
def test_strict_lets_the_first_blocked_job_block_all_and_skip_does_not(head, finish_s):
    """4 GPUs. 0 holds 3 until 10; 1 (2 GPUs) must wait for it; 2 (1 GPU, 4 s) fits at 2 or waits too."""
    assert run(FOUR, [(0, 3, 10), (1, 2, 5), (2, 1, 4)], order="fifo", head=head)[0] == finish_s


def test_a_gang_waits_until_all_its_gpus_are_free():
    """4 GPUs. 0 has 2 until 10, 1 has 1 until 6; 2 (4 GPUs, 5 s) has none before 10 and ends at 15.

    Held: 20 + 6 + 20 GPU-s of 60; 2 waits 9 s; JCTs are 10, 6 and 14 s.
    """
    finish_s, metrics = run(FOUR, [(0, 2, 10), (0, 1, 6), (1, 4, 5)], order="fifo")
    assert finish_s == [10, 6, 15]
    assert (metrics["queueing_delay_mean"], metrics["jct_mean"], metrics["makespan"]) == (3.0, 10.0, 15.0)
    assert (metrics["allocation_rate"], metrics["gpu_utilisation"]) == (46 / 60, 46 / 60)


@pytest.mark.parametrize(("gang", "cost_s"), [(1, 40), (8, 40), (9, 60), (16, 60)])
def test_the_second_start_restores_for_40_s_up_to_8_gpus_and_60_s_above(gang, cost_s):
    """16 GPUs, srtf. 0 (100 s) is stopped at 50 by 1 (10 s, all GPUs), restores from 60, and has 50 s left."""
    rule = Rule("srtf", preemption_cost=(40.0, 60.0))
    simulator = laid("flat:machines=2,gpus_per_machine=8", [(0, gang, 100), (50, 16, 10)], rule)
    metrics = simulator.run()
    end_s = 60 + cost_s + 50
    assert (finishes(simulator), metrics["preemptions"]) == ([end_s, 60], 1)
    assert simulator.jobs()["restore_s"].tolist() == [cost_s, 0]
    assert simulator.jobs()["queueing_delay_s"].tolist() == [10, 0]
    parts = gpu_seconds(simulator.state)
    busy = gang * (100 + cost_s) + 160
    assert (parts["held"], parts["compute"], parts["restore"]) == (busy, busy - gang * cost_s, gang * cost_s)
    assert parts["free"] == 16 * end_s - busy


def test_a_stop_during_the_restore_makes_no_progress_and_costs_a_restore_again():
    """1 GPU, srtf, 2 s to restore. 0 runs 0-4 (6 left), 1 runs 4-7, 0 restores from 7, but 2 takes over 8-9; 0 restores
    9-11 and runs 11-17.
    """
    finish_s, metrics = run(ONE, [(0, 1, 10), (4, 1, 3), (8, 1, 1)], order="srtf", preemption_cost=(2.0,))
    assert (finish_s, metrics["preemptions"], metrics["jct_mean"]) == ([17, 7, 9], 2, 7)


@pytest.mark.parametrize(("lease_s", "finish_s", "stops"), [(0, [20, 107, 102], 0), (30, [20, 37, 107], 1)])
def test_a_fifo_job_can_be_stopped_when_its_lease_ends(lease_s, finish_s, stops):
    """4 GPUs, fifo. 0 has 3 until 20; 1 (4 GPUs, 5 s) waits from 1; 2 (1 GPU, 100 s) slips in at 2.

    Without leases 1 waits for 2 (102). A lease of 30 s ends at 32: 1 runs 32-37, then 2's 70 s left end at 107.
    """
    jobs = [(0, 3, 20), (1, 4, 5), (2, 1, 100)]
    done, metrics = run(FOUR, jobs, order="fifo", lease=float(lease_s))
    assert (done, metrics["preemptions"]) == (finish_s, stops)


def test_a_lease_that_ends_while_no_job_waits_is_renewed():
    """4 GPUs, sjf, leases of 30 s. 0's first lease ends at 30 in peace; 1 comes at 40 and gets its GPUs at 60.

    1 runs 60-65; 0 has 40 s left: 105.
    """
    done, metrics = run(FOUR, [(0, 1, 100), (40, 4, 5)], order="sjf", lease=30.0)
    assert (done, metrics["preemptions"]) == ([105, 65], 1)


def test_a_lease_protects_a_job_from_a_preemptive_order_too():
    """1 GPU, srtf, leases of 20 s. 1 (5 s) comes at 1, takes over at 20 only: 25; 0 has 80 s left: 105."""
    assert run(ONE, [(0, 1, 100), (1, 1, 5)], order="srtf", lease=20.0)[0] == [105, 25]


def test_rounds_start_jobs_at_their_multiples_only():
    """1 GPU, rounds of 10 s. 0 ends at 12, in between; 1 starts at 20; 2 comes at 30 and starts at once."""
    assert run(ONE, [(0, 1, 12), (3, 1, 5), (30, 1, 1)], order="fifo", round=10.0)[0] == [12, 25, 31]


@pytest.mark.parametrize(("quantum", "finish_s", "stops"), [(1.0, [13, 6], 1), (0.0, [12.5, 13], 2)])
def test_las_demotes_at_the_quantum(quantum, finish_s, stops):
    """1 GPU, one threshold at 2.5 GPU-s. Job 0 from 0 (10 s), job 1 from 1 (3 s).

    Quantum 1: 0 is demoted at 3 and 1 takes over; 1's demotion (5.5, so 6) meets its end at 6; 0 runs 6-13.
    Quantum 0: 0 is demoted at 2.5; 1 at 5, to the end of the level although it runs, so 0 takes over till
    12.5 and 1's last half second follows.
    """
    done, metrics = run(ONE, [(0, 1, 10), (1, 1, 3)], order="las", thresholds=(2.5,), quantum=quantum)
    assert (done, metrics["preemptions"]) == (finish_s, stops)


@pytest.mark.parametrize(
    ("order", "finish_s"),
    [("fifo", [10, 18, 23, 25]), ("sjf", [10, 25, 17, 12]), ("srtf", [25, 16, 8, 3])],
)
def test_orders_on_one_gang_at_a_time(order, finish_s):
    """4 GPUs, all gangs have 4: jobs of 10, 8, 5 and 2 s come at 0, 1, 1 and 1.

    srtf: 3 stops 0 (9 s left) at 1 and runs to 3, 2 to 8, then 1 (8 s) before 0 (9 s): 16, 25.
    """
    assert run(FOUR, [(0, 4, 10), (1, 4, 8), (1, 4, 5), (1, 4, 2)], order=order)[0] == finish_s


def test_srsf_weighs_the_time_left_with_the_gpus():
    """4 GPUs. At 1, 0 has 9 s x 1 GPU left, 1 (4 GPUs, 3 s) has 12: under srsf it waits, under srtf not."""
    jobs = [(0, 1, 10), (1, 4, 3)]
    assert run(FOUR, jobs, order="srsf")[0] == [10, 13]
    assert run(FOUR, jobs, order="srtf")[0] == [13, 4]


def test_a_random_order_comes_from_the_seed():
    """1 GPU, 6 jobs at once: one order a seed, and other seeds give other orders."""
    orders = set()
    for seed in (0, 0, 1, 2, 3):
        simulator = laid(ONE, [(0, 1, 1)] * 6, Rule("random", placer="random"), seed=seed)
        simulator.run()
        orders.add(tuple(finishes(simulator)))
    assert 3 <= len(orders) <= 4
    assert all(sorted(order) == [1, 2, 3, 4, 5, 6] for order in orders)


def test_a_job_held_until_the_next_offer_comes_back_when_gpus_are_freed():
    """2 GPUs. At 0 job 0 starts and 1 is held. 2 arrives at 3: no offer, 1 stays away. 0 ends at 10: 1 is back."""
    simulator = laid(TWO, [(0, 1, 10), (0, 2, 5), (3, 2, 1)])
    simulator.apply(Start(0, [0]))
    simulator.apply(Hold(1))
    assert (simulator.view.queue.tolist(), simulator.view.held.tolist()) == ([], [1])
    simulator.advance()
    assert (simulator.view.now_s, simulator.view.queue.tolist(), simulator.view.held.tolist()) == (3.0, [2], [1])
    simulator.advance()
    assert (simulator.view.now_s, simulator.view.queue.tolist(), simulator.view.held.tolist()) == (10.0, [1, 2], [])
    simulator.run()
    assert finishes(simulator) == [10, 15, 16]


def test_a_job_held_until_a_time_comes_back_then_and_can_be_started_before():
    """2 GPUs. 0 is held until 4 and started then; 1 is held until 1,000 and started at 4 all the same."""
    simulator = laid(TWO, [(0, 1, 10), (0, 1, 5)])
    simulator.apply(Hold(0, until_s=4.0))
    simulator.apply(Hold(1, until_s=1000.0))
    simulator.advance()
    assert (simulator.view.now_s, simulator.view.queue.tolist(), simulator.view.held.tolist()) == (4.0, [0], [1])
    simulator.apply(Start(0, [1]))
    simulator.apply(Start(1, [0]))
    simulator.advance()
    assert (simulator.done, finishes(simulator)) == (True, [14, 9])
    assert simulator.jobs()["queueing_delay_s"].tolist() == [4, 4]


def test_migration_changes_the_tier_and_costs_a_restore():
    """2 racks of one machine, slowdown 1.5 across racks. 0 (100 s) runs across them until 30: 20 s of work done.

    It moves into one slot at 30, restores until 40, and needs 80 s more: 120. Of its 120 s, 10 restore, 10 communicate.
    1 needs both machines, and its 7.5 s are those it takes there alone: 127.5, of which 5 compute.
    """
    rule = Rule("fifo", preemption_cost=(10.0,))
    simulator = laid("dally:racks=2,machines=1", [(0, 2, 100), (30, 16, 7.5)], rule, TIERED)
    simulator.apply(Start(0, [0, 8]))
    assert simulator.view.tier_of(0) == NETWORK
    simulator.advance()
    assert simulator.view.remaining_s(0) == pytest.approx(80.0, rel=1e-12)
    simulator.apply(Migrate(0, [0, 1]))
    assert (simulator.view.tier_of(0), simulator.view.gpus_of(0)) == (SLOT, [0, 1])
    metrics = simulator.run()
    table = simulator.jobs()
    assert finishes(simulator) == pytest.approx([120, 127.5], rel=1e-12)
    assert table["comm_time_s"][0] == pytest.approx(10.0, rel=1e-12)
    assert (table["restore_s"][0], metrics["migrations"], metrics["preemptions"]) == (10.0, 1, 0)


@pytest.mark.parametrize("again", [[0, 1], [1, 0]])
def test_stopped_and_started_on_the_same_gpus_at_one_instant_was_not_preempted(again):
    """4 GPUs, 7 s to restore. At 3 job 0 is stopped and gets its own GPUs again, in any order: it ends at 10 still."""
    simulator = laid(FOUR, [(0, 2, 10), (3, 2, 5)], Rule("fifo", preemption_cost=(7.0,)))
    simulator.apply(Start(0, [0, 1]))
    simulator.advance()
    simulator.apply(Preempt(0))
    assert simulator.metrics()["preemptions"] == 1
    simulator.apply(Start(0, again))
    simulator.apply(Start(1, [2, 3]))
    metrics = simulator.run()
    assert (finishes(simulator), metrics["preemptions"]) == ([10, 8], 0)
    assert (simulator.jobs()["preemptions"].tolist(), simulator.jobs()["restore_s"].tolist()) == ([0, 0], [0, 0])


@pytest.mark.parametrize("meanwhile", ["other GPUs", "another instant", "another job"])
def test_what_counts_is_where_a_job_is_when_the_instant_is_over(meanwhile):
    """As above, but 0 starts on [2, 3] at 3; or at 8, when 1 has ended: 7 s to restore and 7 s left, so 17 and 22.

    Or it is back at 3, after 1 had, and gave back, its GPUs: when the instant is over, no job was stopped.
    """
    simulator = laid(
        FOUR, [(0, 2, 10), (3, 4 if meanwhile == "another instant" else 2, 5)], Rule("fifo", preemption_cost=(7.0,))
    )
    simulator.apply(Start(0, [0, 1]))
    simulator.advance()
    simulator.apply(Preempt(0))
    if meanwhile == "another instant":
        simulator.apply(Start(1, [0, 1, 2, 3]))
        simulator.advance()
        simulator.apply(Start(0, [0, 1]))
    elif meanwhile == "another job":
        simulator.apply(Start(1, [0, 1]))
        simulator.apply(Preempt(1))
        simulator.apply(Start(0, [0, 1]))
        simulator.apply(Start(1, [2, 3]))
    else:
        simulator.apply(Start(0, [2, 3]))
        simulator.apply(Start(1, [0, 1]))
    metrics = simulator.run()
    assert metrics["preemptions"] == (0 if meanwhile == "another job" else 1)
    assert finishes(simulator)[0] == {"another instant": 22, "another job": 10}.get(meanwhile, 17)


IMPOSSIBLE = {
    "unknown job": (Start(99, [2]), "there are jobs 0 to 4"),
    "negative job": (Start(-1, [2]), "there are jobs 0 to 4"),
    "no job at all": ("start everything", "expected Start, Hold, Preempt, Migrate, Resize, Shift or Advance"),
    "too few GPUs": (Start(2, [2]), "1 GPUs given, its gang needs 2"),
    "no GPU": (Start(2, []), "0 GPUs given, its gang needs 2"),
    "too many GPUs": (Start(3, [2, 3]), "2 GPUs given, its gang needs 1"),
    "a GPU that is held": (Start(2, [1, 2]), "GPU 1 (0.0.1) is held by job 0"),
    "a GPU twice": (Start(2, [2, 2]), "a GPU is named twice"),
    "a GPU that is not there": (Start(2, [2, 4]), "there is no GPU 4"),
    "a GPU below zero": (Start(2, [-1, 2]), "there is no GPU -1"),
    "starting a running job": (Start(0, [2, 3]), "start job 0 (0): it is running"),
    "starting a finished job": (Start(1, [2]), "it has finished"),
    "starting a job to come": (Start(4, [2]), "it has not arrived yet"),
    "stopping a waiting job": (Preempt(2), "preempt job 2 (2): it is waiting"),
    "stopping a held job": (Preempt(3), "it is held"),
    "holding into the past": (Hold(2, 9.0), "hold job 2 until 9 s: it is 10 s already"),
    "holding until now": (Hold(2, 10.0), "it is 10 s already"),
    "holding until nan": (Hold(2, math.nan), "hold job 2"),
    "holding a running job": (Hold(0), "it is running"),
    "holding a held job": (Hold(3), "it is held"),
    "moving to its own GPUs": (Migrate(0, [1, 0]), "it runs on these GPUs already"),
    "moving a waiting job": (Migrate(2, [2, 3]), "it is waiting"),
    "moving half a gang": (Migrate(0, [2]), "1 GPUs given"),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_an_impossible_decision_says_why_and_changes_nothing(name):
    """4 GPUs at 10 s: 0 runs on [0, 1], 1 has finished at 10, 2 waits, 3 is held, 4 comes at 90."""
    decision, why = IMPOSSIBLE[name]
    simulator = laid(FOUR, [(0, 2, 50), (0, 1, 10), (0, 2, 9), (0, 1, 9), (90, 1, 1)])
    for first in (Start(0, [0, 1]), Start(1, [2]), Hold(3, 60.0)):
        simulator.apply(first)
    simulator.advance()
    before = simulator.snapshot().tobytes()
    with pytest.raises(InvalidDecision) as caught:
        simulator.apply(decision)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)
    assert simulator.snapshot().tobytes() == before


def test_a_gpu_of_a_failed_machine_cannot_be_given_away():
    """One machine of 2 fails every 10 s or so and takes 10^9 s to repair; 1 comes at 10^4 s."""
    simulator = laid(TWO, [(0, 1, 1), (10_000, 1, 1)], failures=Failures(10.0, 1e9))
    simulator.apply(Start(0, [0]))
    simulator.advance()
    assert simulator.view.free_gpus.tolist() == []
    before = simulator.snapshot().tobytes()
    with pytest.raises(InvalidDecision, match=r"GPU 0 \(0\.0\.0\) is on a failed machine"):
        simulator.apply(Start(1, [0]))
    assert simulator.snapshot().tobytes() == before


@pytest.mark.parametrize("decision", [Start(0, [0]), Preempt(0), Hold(0), Migrate(0, [1]), Advance()])
def test_nothing_can_be_decided_after_the_end(decision):
    simulator = laid(TWO, [(0, 1, 5)])
    simulator.run()
    before = simulator.snapshot().tobytes()
    with pytest.raises(InvalidDecision, match="the run has ended"):
        simulator.apply(decision)
    assert (simulator.snapshot().tobytes(), finishes(simulator)) == (before, [5])


def test_waiting_for_nothing_is_stalled_and_starting_goes_on_from_there():
    """1 job, not started, nothing to come: Stalled, and the state is as before."""
    simulator = laid(ONE, [(0, 1, 5)])
    before = simulator.snapshot().tobytes()
    for _ in range(2):
        with pytest.raises(Stalled, match="1 jobs wait at 0 s"):
            simulator.advance()
        assert simulator.snapshot().tobytes() == before
    simulator.apply(Start(0, [0]))
    simulator.advance()
    assert (simulator.done, finishes(simulator)) == (True, [5])


def test_the_horizon_ends_a_run_before_all_have_finished():
    """1 GPU, horizon 12 s after the first arrival at 5: 0 ends at 15, 1 would at 25; it is 17 at the end."""
    simulator = laid(ONE, [(5, 1, 10), (5, 1, 10)], horizon_s=12.0)
    metrics = simulator.run()
    assert (simulator.at_horizon, simulator.done, simulator.ended, simulator.view.now_s) == (True, False, True, 17.0)
    assert (metrics["jobs_finished"], metrics["makespan"], metrics["jct_mean"]) == (1, 12, 10)
    assert np.isnan(simulator.jobs()["finish_s"][1])
    assert (metrics["gpu_utilisation"], metrics["queueing_delay_mean"]) == (1.0, 0.0)
    with pytest.raises(InvalidDecision, match="ended"):
        simulator.advance()


def test_a_horizon_after_the_end_changes_nothing():
    simulator = laid(ONE, [(5, 1, 10)], horizon_s=10.0)
    simulator.run()
    assert (simulator.done, simulator.at_horizon) == (True, False)


@pytest.mark.parametrize("horizon_s", [0.0, -1.0, math.nan])
def test_a_horizon_is_a_positive_number(horizon_s):
    with pytest.raises(InputError, match="horizon_s"):
        Simulator(ONE, horizon_s=horizon_s)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("checkpoint_s", [0.0, 100.0])
def test_a_failure_undoes_the_work_since_the_checkpoint_and_the_repair_gives_the_gpus_back(seed, checkpoint_s):
    """1 machine of 2 GPUs, one job of 5,000 s on both, 30 s to restore; by the seeded times of failure and repair.

    Each stretch makes its whole checkpoints of progress (all of it where checkpoint_s is 0).
    """
    failures = Failures(mtbf_s=900.0, mttr_s=50.0, checkpoint_s=checkpoint_s)
    simulator = laid(TWO, [(0, 2, 5000)], Rule("fifo", preemption_cost=(30.0,)), seed=seed, failures=failures)
    metrics = simulator.run()
    now_s, left_s, cost_s, count, lost_s, down_s = 0.0, 5000.0, 0.0, 0, 0.0, 0.0
    while True:
        up_s = exponential(seed, -1, 2 * count, 900.0)
        if cost_s + left_s < up_s:
            break
        ran_s = max(0.0, up_s - cost_s)
        kept_s = ran_s // checkpoint_s * checkpoint_s if checkpoint_s else ran_s
        lost_s += ran_s - kept_s
        left_s -= kept_s
        repair_s = exponential(seed, -1, 2 * count + 1, 50.0)
        now_s, cost_s, count, down_s = now_s + up_s + repair_s, 30.0, count + 1, down_s + repair_s
    assert (metrics["failures"], metrics["preemptions"]) == (count, 0)
    assert finishes(simulator) == pytest.approx([now_s + cost_s + left_s], rel=1e-9)
    assert metrics["gpu_hours_lost"] == pytest.approx(2 * lost_s / 3600, rel=1e-9, abs=1e-9)
    parts = gpu_seconds(simulator.state)
    assert parts["down"] == pytest.approx(2 * down_s, rel=1e-9)
    assert parts["compute"] == pytest.approx(10_000.0, rel=1e-9)
    assert parts["free"] == pytest.approx(0.0, abs=1e-6)
    assert parts["held"] == pytest.approx(parts["compute"] + parts["restore"] + parts["lost"], rel=1e-9)


def test_slo_violations_count_jobs_that_end_after_their_deadline_or_are_still_there():
    """1 GPU; ends at 10, 20, 30 against deadlines 10, 15 and none: one of two is late. Stopped at 25: the same."""
    jobs, deadlines = [(0, 1, 10)] * 3, [10.0, 15.0, math.inf]
    for horizon_s in (math.inf, 25.0):
        simulator = laid(ONE, jobs, horizon_s=horizon_s, deadline_s=deadlines)
        assert simulator.run()["slo_violation_rate"] == 0.5


def test_metrics_of_a_run_by_hand():
    """2 GPUs. 0 (2 GPUs, 10 s) at 0; 1 and 2 (1 GPU; 10, 30 s) at 0, start at 10 and end at 20 and 40.

    JCTs 10, 20, 40; slowdowns 1, 2, 4/3. Active: 3 until 10, 2 until 20, 1 until 40. Themis' rho: N = 3, 2.5, 1.75 mean
    active jobs, shares of 2/N GPUs; alone 0 needs 10 x 2 / (2/3) = 30 s, 1 10 x 1 / (2/2.5) = 12.5 s, 2 30 s.
    One GPU of the only machine is free from 20 to 40: 20 of 80 GPU-s, all of them fragmented.
    """
    simulator = laid(TWO, [(0, 2, 10), (0, 1, 10), (0, 1, 30)], Rule("fifo"))
    metrics = simulator.run()
    assert tuple(metrics) == NAMES
    rho = [10 / 30, 20 / 12.5, 40 / 30]
    expected = {
        "jct_mean": 70 / 3, "jct_median": 20, "makespan": 40, "queueing_delay_mean": 20 / 3, "slowdown_mean": 13 / 9,
        "finish_time_fairness_mean": sum(rho) / 3, "finish_time_fairness_max": 1.6, "gpu_utilisation": 0.75,
        "allocation_rate": 0.75, "fragmentation": 0.25, "jobs_finished": 3, "comm_time_mean": 0,
    }  # fmt: skip
    assert {name: metrics[name] for name in expected} == pytest.approx(expected, rel=1e-12)


def test_metrics_in_the_middle_of_a_run_count_the_stretches_so_far():
    """2 GPUs, at 4: 0 runs on one GPU since 0; 4 of 8 GPU-s are held, none is finished."""
    simulator = laid(TWO, [(0, 1, 10), (4, 2, 1)])
    simulator.apply(Start(0, [0]))
    simulator.advance()
    metrics = simulator.metrics()
    assert (metrics["allocation_rate"], metrics["gpu_utilisation"], metrics["jobs_finished"]) == (0.5, 0.5, 0)
    assert np.isnan(metrics["jct_mean"])


def test_a_snapshot_brings_the_run_back():
    """A copy taken at 3, two different ends, and back: the same end again."""
    simulator = laid(FOUR, [(0, 2, 10), (3, 3, 5), (4, 1, 2)])
    simulator.apply(Start(0, [0, 1]))
    simulator.advance()
    kept = simulator.snapshot()
    first = simulator.run()
    simulator.restore(kept)
    assert (simulator.view.now_s, simulator.done, simulator.view.queue.tolist()) == (3.0, False, [1])
    simulator.apply(Preempt(0))
    simulator.apply(Start(1, [0, 1, 2]))
    assert simulator.run() != first
    simulator.restore(kept)
    assert simulator.run() == first


def test_a_reset_leaves_nothing_of_the_run_before():
    """The record after a second reset is that of a new simulator, byte for byte."""
    used = laid(FOUR, [(0, 2, 10), (3, 3, 5), (4, 1, 2)], Rule("srtf"))
    used.run()
    used.reset(Workload.from_arrays("other", [1.0], [1], [2.0]), 5)
    fresh = Simulator(FOUR, rule=Rule("srtf"))
    fresh.reset(Workload.from_arrays("other", [1.0], [1], [2.0]), 5)
    assert used.snapshot().tobytes() == fresh.snapshot().tobytes()


def test_what_a_policy_sees():
    """2 machines of 2. At 5: 0 runs on [0] with 15 s left, 1 waits since 5, 2 is held; 3 GPUs are free."""
    simulator = laid("flat:machines=2,gpus_per_machine=2", [(0, 1, 20), (0, 1, 7), (5, 2, 10)])
    simulator.apply(Start(0, [0]))
    simulator.apply(Hold(1))
    simulator.advance()
    view = simulator.view
    assert (view.now_s, view.queue.tolist(), view.held.tolist(), view.running.tolist()) == (5.0, [2], [1], [0])
    assert (view.free_gpus.tolist(), view.free_by_machine.tolist(), view.free_by_rack.tolist()) == (
        [1, 2, 3],
        [1, 2],
        [3],
    )
    assert (view.gpus(2), view.gpus_of(0), view.gpus_of(2), view.tier_of(0)) == (2, [0], [], SLOT)
    assert (view.waited_s(2), view.remaining_s(0), view.remaining_s(2), view.attained_gpu_s(0)) == (
        0.0,
        15.0,
        10.0,
        5.0,
    )
    assert (view.find_gpus(2, "tier"), view.find_gpus(2, "count"), view.slowdown(2, NETWORK)) == ([2, 3], [1, 2], 1.0)


def test_a_job_larger_than_the_cluster_is_refused_by_name():
    with pytest.raises(InputError, match="big"):
        laid(FOUR, [(0, 5, 1)], job_id=["big"])


FREE_AGAIN = {
    "elsewhere and back": (Preempt(0), Start(0, [2, 3]), Preempt(0), Start(0, [0, 1])),
    "moved and moved back": (Migrate(0, [2, 3]), Migrate(0, [0, 1])),
    "moved, stopped and started back": (Migrate(0, [2, 3]), Preempt(0), Start(0, [0, 1])),
}


@pytest.mark.parametrize("name", FREE_AGAIN)
def test_a_job_that_is_back_on_its_gpus_at_the_same_instant_has_not_been_touched(name):
    """0 runs from 0 to 10 whatever happens at 3; a restore would cost 7 s."""
    simulator = laid(FOUR, [(0, 2, 10), (3, 2, 5)], Rule("fifo", preemption_cost=(7.0,)))
    simulator.apply(Start(0, [0, 1]))
    simulator.advance()
    for decision in FREE_AGAIN[name]:
        simulator.apply(decision)
    simulator.apply(Start(1, [2, 3]))
    metrics = simulator.run()
    assert (metrics["preemptions"], metrics["migrations"]) == (0, 0)
    assert finishes(simulator) == [10, 8]


def test_a_job_that_starts_and_stops_at_one_instant_has_not_run():
    """At 0 job 0 starts and is stopped again, then 1 runs 0-5, and 0 runs 5-15 without a restore (7 s)."""
    simulator = laid(FOUR, [(0, 4, 10), (0, 4, 5)], Rule("fifo", preemption_cost=(7.0,)))
    simulator.apply(Start(0, [0, 1, 2, 3]))
    simulator.apply(Preempt(0))
    simulator.apply(Start(1, [0, 1, 2, 3]))
    metrics = simulator.run()
    assert (metrics["preemptions"], finishes(simulator)) == (0, [15, 5])


def test_a_lease_holds_for_every_player_and_an_undone_stop_does_not_renew_it():
    """Lease 100 s from 0: no stop at 60, but at 100; back on its GPUs at once, the job has a new lease, until 200."""
    simulator = laid(FOUR, [(0, 2, 500), (60, 2, 300), (70, 4, 1)], Rule("fifo", lease=100.0))
    simulator.apply(Start(0, [0, 1]))
    simulator.advance()
    with pytest.raises(InvalidDecision, match="its lease runs until 100"):
        simulator.apply(Preempt(0))
    while simulator.view.now_s < 100.0:
        simulator.advance()
    simulator.apply(Preempt(0))
    simulator.apply(Start(0, [0, 1]))
    simulator.advance()
    assert simulator.state.lease_end_s[0] == 200.0 and simulator.metrics()["preemptions"] == 0


def test_gpus_freed_by_a_decision_end_holds_of_earlier_instants():
    """1 is held at 0 until GPUs are freed; 0 is stopped at 4, when 2 arrives: 1 is in the queue again."""
    simulator = laid(FOUR, [(0, 4, 10), (0, 4, 5), (4, 1, 1)])
    simulator.apply(Start(0, [0, 1, 2, 3]))
    simulator.apply(Hold(1))
    simulator.advance()
    assert simulator.view.queue.tolist() == [2]
    simulator.apply(Preempt(0))
    assert simulator.view.queue.tolist() == [0, 1, 2]


@pytest.mark.parametrize("due_s", [0.3, 0.6, 1.2])
def test_rounds_of_a_fraction_of_a_second_miss_none(due_s):
    """A pass at 3, 6 and 12 times 0.1 s, although 3 x 0.1 is not 0.3 in floating point."""
    simulator = laid(FOUR, [(0, 4, due_s), (0, 4, 1)], Rule("fifo", round=0.1))
    simulator.run()
    assert simulator.jobs()["first_start_s"][1] == due_s
