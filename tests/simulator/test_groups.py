"""Job groups by hand: subtasks, moves, machines, profiling, memory, failures, and what the simulator refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clustergym.simulator.base.decisions import Advance, AssignGroup, Preempt, SetMachines, SetSpill, Start
from clustergym.simulator.base.errors import InputError, InvalidDecision, Stalled
from clustergym.simulator.events.initialise import Failures
from clustergym.simulator.groups.group_config import GroupTerms
from clustergym.simulator.groups.group_fields import GroupCapacity, group_dtype
from clustergym.tests.support.random_groups import group_simulator, join_one_group, play_one_group, ps_workload

NAIVE = GroupTerms("naive", False)
MANY = 1000
GB = 1e9

NET_BOUND = [(16, 4), (8, 3), (16, 2)]  # A, B, C on 8 machines
JOB_BOUND = [(8, 1), (48, 5), (8, 2)]  # D, E, F on 8
PAIR = [(24, 2), (16, 3)]  # G, H on 8
SECONDARY = [(8, 4), (8, 2)]  # A, B on 8


def ends(jobs, seconds, *, terms=None, **config):
    """The ends of each kind of subtask in time, job after job, of a group on 8 machines."""
    simulator = group_simulator(ps_workload(jobs, MANY, gpus=8), 8, terms=terms, **config)
    join_one_group(simulator, 8)
    found = {}
    for subtask in simulator.subtasks(0, seconds):
        found.setdefault(subtask.kind, []).append((subtask.job, round(subtask.end_s, 9)))
    return found


def cycles(jobs, **config):
    """Seconds of a round of each job in the long run: 200 iterations more on 8 machines, all jobs there."""
    times = []
    for iterations in (100, 300):
        simulator = group_simulator(ps_workload(jobs, MANY, gpus=8), 8, **config)
        simulator.state.iterations_left[0] = iterations
        join_one_group(simulator, 8)
        while simulator.state.done == 0:
            simulator.advance()
        times.append((simulator.state.now_s, MANY - simulator.state.iterations_left[: len(jobs)]))
    (before_s, before), (after_s, after) = times
    done = after - before
    done[0] = 200
    return ((after_s - before_s) / done).tolist()


def finish_times(simulator):
    return simulator.state.finish_s[: len(simulator.workload)].tolist()


def by_machines(workload, machines, **words):
    """One that is reset, and every job in group 0 on 8 machines of as many as there are."""
    simulator = group_simulator(workload, machines, **words)
    join_one_group(simulator, 8)
    return simulator


# --- Subtasks ---


def test_a_net_bound_group_event_by_event():
    """T_cpu 2/1/2, T_net 4/3/2 (hand case 1 of the review)."""
    found = ends(NET_BOUND, 24.0)
    assert found["COMP"][:6] == [(0, 2), (1, 3), (2, 5), (0, 8), (1, 10), (2, 13)]
    assert found["COMM"] == [(0, 6), (1, 9), (2, 11), (0, 15), (1, 18), (2, 20), (0, 24)]


def test_a_job_bound_group_event_by_event():
    """T_cpu 1/6/1, T_net 1/5/2; E alone takes 11 s (hand case 2)."""
    assert ends(JOB_BOUND, 23.0)["COMM"] == [(0, 2), (1, 12), (2, 14), (0, 15), (1, 23)]


def test_a_perfect_pair_keeps_both_resources_busy_from_3_s_on():
    """T_cpu 3/2, T_net 2/3 (hand case 3): each resource ends a subtask as the next one begins."""
    simulator = group_simulator(ps_workload(PAIR, MANY, gpus=8), 8)
    join_one_group(simulator, 8)
    for kind in ("COMP", "COMM"):
        spans = [(t.begin_s, t.end_s) for t in simulator.subtasks(0, 60.0) if t.kind == kind]
        assert spans[0][0] == (0.0 if kind == "COMP" else 3.0)
        assert [end for _, end in spans[:-1]] == [begin for begin, _ in spans[1:]]


@pytest.mark.parametrize(
    ("jobs", "config", "expected"),
    [
        (NET_BOUND, {}, 9.0),
        (NET_BOUND, {"comm": "split"}, 9.0),
        (JOB_BOUND, {}, 11.0),
        (JOB_BOUND, {"comm": "split"}, 12.5),
        (PAIR, {}, 5.0),
        (PAIR, {"comm": "split"}, 5.0),
        (SECONDARY, {}, 6.0),
        (SECONDARY, {"busy": 0.8}, 5.2),
        (SECONDARY, {"busy": 0.8, "comm": "split"}, 5.5625),
    ],
)
def test_the_cycle_of_a_group(jobs, config, expected):
    """Hand cases 1 to 4: Eq. 1 where an iteration has one COMM at a time; else what was worked out by hand."""
    assert cycles(jobs, **config) == pytest.approx([expected] * len(jobs), rel=1e-9)


def test_split_subtasks_of_two_jobs():
    """A(8, 2 + 2), B(8, 1 + 1): PULLs 0-2, 2-3; A's COMP 2-3, PUSH 3-5, PULL 5... after B's PUSH queued at 4: 5-6.

    B's COMP 3-4; A's second PULL 6-8.
    """
    found = ends(SECONDARY, 8.0, comm="split")
    assert found == {"PULL": [(0, 2), (1, 3), (0, 8)], "COMP": [(0, 3), (1, 4)], "PUSH": [(0, 5), (1, 6)]}


def test_a_secondary_comm_moves_in_the_gaps_and_becomes_primary():
    """Busy .8, so a quarter of the speed. COMPs end at 1 and 2. A's COMM is primary 1-5; B's (2 s) from 2 on secondary:
    .75 s done by 5, then primary: it ends at 6.25. A's COMP 5-6, its COMM from 6 secondary, primary from 6.25 on:
    .0625 s done, so 6.25 + 3.9375 = 10.1875."""
    found = ends(SECONDARY, 10.5, busy=0.8)
    assert found["COMM"] == [(0, 5), (1, 6.25), (0, 10.1875)]


def test_naive_jobs_share_what_they_meet_on():
    """A(8, 4), B(8, 2): both COMPs 0-2 at half speed; B's COMM 2-6, then alone 6-7 its COMP; A's COMM: 2 s of it by 6,
    3 by 7, then B's second COMM is beside it: 9. B's: 1 s by 9, 10. A's COMP 9-10."""
    found = ends(SECONDARY, 10.0, terms=NAIVE, loss=0.0)
    assert found == {"COMP": [(0, 2), (1, 2), (1, 7), (0, 10)], "COMM": [(1, 6), (0, 9), (1, 10)]}


def test_naive_jobs_lose_where_they_meet():
    """A fifth lost: both COMPs at .4 of the speed, 2.5 s; B's COMM 2 s / .4 = 5 s more."""
    found = ends(SECONDARY, 7.6, terms=NAIVE, loss=0.2)
    assert found["COMP"][:2] == [(0, 2.5), (1, 2.5)] and found["COMM"] == [(1, 7.5)]


def test_a_naive_group_goes_on_while_others_come():
    """Arrivals elsewhere do not change it: 20 jobs at 1, 2, 3 ... s on other machines."""
    alone = group_simulator(ps_workload(SECONDARY, 10, gpus=8), 8, terms=NAIVE, loss=0.2)
    play_one_group(alone, 8)
    workload = ps_workload([*SECONDARY, *[(1, 1)] * 20], 10, gpus=8, arrivals=[0, 0, *range(1, 21)])
    simulator = by_machines(workload, 28, terms=NAIVE, loss=0.2)
    while not simulator.ended:
        for job in simulator.view.queue.tolist():
            simulator.apply(AssignGroup(job, None, 1))
        simulator.advance()
    assert finish_times(simulator)[:2] == pytest.approx(finish_times(alone), rel=1e-12)


def test_a_comp_waits_for_the_disk_and_keeps_the_cpu():
    """COMP 8, COMM 1, a pass of 10 GB at 1 GB/s: loads 8-18, 18-28; so the COMPs end at 8, 18, 28."""
    workload = ps_workload([(8, 1)], MANY, inputs=10 * GB)
    simulator = group_simulator(workload, 1, disk_mb_s=1000.0)
    simulator.apply(AssignGroup(0, None, 1))
    simulator.apply(SetSpill(0, 1.0))
    assert [t.end_s for t in simulator.subtasks(0, 29.0)] == [8, 9, 18, 19, 28, 29]


def test_the_disk_binds_a_group_of_the_jobs_of_table_i():
    """Hand case 7: 608.5 GB, alpha .3, 32 machines of 125 MB/s: a round of short jobs takes 45.6 s."""
    inputs = np.array([45.6, 91.2, 4.3, 0.6, 78.4, 155.0, 78.4, 155.0]) * GB
    times = []
    for iterations in (20, 40):
        workload = ps_workload([(3.2, 0.1)] * 8, iterations, gpus=32, inputs=inputs)
        simulator = group_simulator(workload, 32)
        join_one_group(simulator, 32)
        for job in range(8):
            simulator.apply(SetSpill(job, 0.3))
        while not simulator.ended:
            simulator.advance()
        times.append(max(finish_times(simulator)))
    assert (times[1] - times[0]) / 20 == pytest.approx(0.3 * 608.5 / 4)


def test_collecting_garbage_stretches_comp():
    """32 GB of 40 are .8: with slope 1 a factor 1.5; 8 s of COMP are 12, an iteration 13."""
    workload = ps_workload([(8, 1)], 10, inputs=32 * GB)
    simulator = group_simulator(workload, 1, ram_gb=40.0, expansion=1.0, gc_slope=1.0)
    simulator.apply(AssignGroup(0, None, 1))
    simulator.apply(SetSpill(0, 0.0))
    while not simulator.ended:
        simulator.advance()
    assert finish_times(simulator) == pytest.approx([130.0])
    assert (simulator.state.cpu_busy_s, simulator.state.comp_done_s) == pytest.approx((120.0, 80.0))


def test_use_of_cpu_and_network():
    """Case 1: over 900 s, 100 rounds, of each 8 machines: CPU 5 of 9, network all but the first 2 s."""
    simulator = group_simulator(ps_workload(NET_BOUND, MANY, gpus=8), 8, horizon_s=900.0)
    play_one_group(simulator, 8)
    metrics = simulator.metrics()
    assert metrics["cpu_utilisation"] == pytest.approx(5 / 9, abs=0.003)
    assert metrics["network_utilisation"] == pytest.approx(1.0, abs=0.006)
    assert (metrics["dop_mean"], metrics["groups_mean"], metrics["jobs_running_mean"]) == (8.0, 1.0, 3.0)
    assert metrics["allocation_rate"] == 1.0


# --- Moves: all take 3 s ---

TWO = [(8, 4), (8, 1)]  # A, C: COMMs of A end at 5, 10, 15, of C at 6, 11, 16, from when they have loaded


def test_a_running_job_leaves_when_its_iteration_is_over():
    """A and C load until 3; iterations of A end at 8, 13, 18. At 15.5 A is to go to 4 machines: it leaves at 18, loads
    until 21, has two more of 2 + 4 s: 33. C's third ends at 19, then it is alone: 21, 23. B: 15.5 + 3 + 2."""
    workload = ps_workload([*TWO, (4, 1)], [5, 5, 1], gpus=8, arrivals=[0, 0, 15.5])
    simulator = by_machines(workload, 16, move_s=3.0)
    simulator.advance()
    assert (simulator.view.now_s, simulator.view.remaining_iterations(0)) == (15.5, 3)
    simulator.apply(AssignGroup(0, None, 4))
    simulator.apply(AssignGroup(2, None, 4))
    while not simulator.ended:
        simulator.advance()
    assert finish_times(simulator) == [33.0, 23.0, 20.5]
    table, metrics = simulator.jobs(), simulator.metrics()
    assert table["moves"].tolist() == [2, 1, 1] and table["restore_s"].tolist() == [6, 3, 3]
    assert (metrics["moves"], metrics["migrations"], metrics["preemptions"]) == (4, 1, 0)
    assert table["queueing_delay_s"].tolist() == [0, 0, 0]


def test_a_job_that_queues_for_its_iteration_leaves_at_once():
    """B's COMP (w 8) waits for that of A (w 80) from 0 on: it is gone at 2, not in an iteration's time."""
    workload = ps_workload([(80, 1), (8, 1), (8, 1)], 1, gpus=8, arrivals=[0, 0, 2])
    simulator = by_machines(workload, 16)
    simulator.advance()
    simulator.apply(AssignGroup(1, None, 4))
    simulator.apply(AssignGroup(2, None, 4))
    while not simulator.ended:
        simulator.advance()
    assert finish_times(simulator) == [11.0, 5.0, 5.0]


def test_a_job_whose_iteration_ends_as_another_job_does_leaves_then():
    """At 5 s both end an iteration, B its only one; A has begun nothing and goes to 16 machines at once."""
    workload = ps_workload([(8, 4), (8, 1)], [2, 1], gpus=8)
    simulator = group_simulator(workload, 16)
    simulator.apply(AssignGroup(0, None, 8))
    simulator.apply(AssignGroup(1, None, 2))  # 8 / 2 + 1
    simulator.advance()
    assert simulator.view.now_s == 5.0 and simulator.view.free_machines == 8
    simulator.apply(AssignGroup(0, None, 8))
    while not simulator.ended:
        simulator.advance()
    assert finish_times(simulator) == [10.0, 5.0] and simulator.state.cpu_busy_s == 24.0


def test_what_is_undone_at_the_same_instant_has_not_happened():
    """Paused and back, to another group and back, machines given and taken: the same times, and nothing counted."""
    found = []
    for changes in (False, True):
        workload = ps_workload([*TWO, (4, 1)], [5, 5, 1], gpus=8, arrivals=[0, 0, 15.5])
        simulator = by_machines(workload, 16, move_s=3.0)
        simulator.advance()
        simulator.apply(AssignGroup(2, None, 4))
        if changes:
            for decision in (Preempt(0), AssignGroup(0, 0), AssignGroup(1, 1), AssignGroup(1, 0)):
                simulator.apply(decision)
            for machines in (4, 12, 8):
                simulator.apply(SetMachines(0, machines))
        while not simulator.ended:
            simulator.advance()
        metrics = simulator.metrics()
        found.append((finish_times(simulator), metrics["moves"], metrics["preemptions"], metrics["migrations"]))
    assert found[0] == found[1]


def test_a_group_that_no_job_is_to_be_in_goes_at_once():
    """A's iterations end at 8, 13, 18. Paused at 15.5, it loses what it has begun: COMP 13-14, 8 machine-seconds.

    B on all 16 machines: 15.5 + 3 + 1 + 1 = 20.5. A again on 16: 23.5, two more of 4.5 s: 32.5.
    """
    workload = ps_workload([(8, 4), (16, 1)], [4, 1], gpus=8, arrivals=[0, 15.5])
    simulator = by_machines(workload, 16, move_s=3.0)
    simulator.advance()
    simulator.apply(Preempt(0))
    assert simulator.view.free_machines == 16 and simulator.view.groups.tolist() == []
    simulator.apply(AssignGroup(1, None, 16))
    simulator.advance()
    assert simulator.view.now_s == 20.5 and simulator.view.stage(0) == "paused"
    simulator.apply(AssignGroup(0, None, 16))
    while not simulator.ended:
        simulator.advance()
    assert finish_times(simulator) == [32.5, 20.5]
    assert (simulator.state.cpu_busy_s, simulator.state.comp_done_s) == (56.0, 48.0)
    assert simulator.metrics()["preemptions"] == 1 and simulator.jobs()["queueing_delay_s"][0] == 5.0


def test_a_job_on_its_way_gets_there_although_its_group_goes():
    """A is to go from A and C's group to D's at 4.5, C at 4.75: none is left, so both go then, to load until 7.75."""
    workload = ps_workload([*TWO, (8, 1), (8, 1), (8, 1)], 4, gpus=8, arrivals=[0, 0, 0, 4.5, 4.75])
    simulator = group_simulator(workload, 24, move_s=3.0)
    for decision in (AssignGroup(0, None, 8), AssignGroup(1, 0), AssignGroup(2, None, 8)):
        simulator.apply(decision)
    simulator.advance()
    simulator.apply(AssignGroup(0, 1))
    simulator.advance()
    simulator.apply(AssignGroup(1, 1))
    simulator.advance()
    assert simulator.state.n_groups == 1 and simulator.view.free_machines == 16
    assert simulator.metrics()["migrations"] == 2
    while not simulator.ended:
        for job in simulator.view.queue.tolist():
            simulator.apply(AssignGroup(job, 1 if 1 in simulator.view.groups else None))
        simulator.advance()
    assert simulator.done


def test_other_machines_in_the_middle_of_a_comp():
    """COMP of 80 from 12 on 8 machines: half done at 17; on 16 the rest takes 2.5 s. COMM until 23.5. Then it loads
    half of its partitions, 6 s; second iteration 29.5 + 5 + 4 = 38.5."""
    workload = ps_workload([(80, 4), (8, 1)], [2, 1], gpus=8, arrivals=[0, 17])
    simulator = by_machines(workload, 24, move_s=12.0)
    simulator.advance()
    simulator.apply(SetMachines(0, 16))
    simulator.apply(AssignGroup(1, None, 8))
    assert simulator.view.free_machines == 0
    while not simulator.ended:
        simulator.advance()
    assert finish_times(simulator) == [38.5, 31.0]
    assert simulator.state.cpu_busy_s == pytest.approx(168.0) and simulator.jobs()["restore_s"].tolist() == [18, 12]


def test_fewer_machines_in_the_middle_of_a_comp():
    """Half of 10 s is left at 5; on 2 machines it takes 20: COMP ends at 25, COMM at 29."""
    workload = ps_workload([(80, 4), (8, 1)], [1, 1], gpus=8, arrivals=[0, 5])
    simulator = by_machines(workload, 8)
    simulator.advance()
    simulator.apply(SetMachines(0, 2))
    assert simulator.view.free_machines == 6
    simulator.apply(AssignGroup(1, None, 4))
    while not simulator.ended:
        simulator.advance()
    assert finish_times(simulator) == [29.0, 8.0]


def test_machines_of_a_group_without_jobs_are_free_though_nothing_decides():
    """A runs until 5; B arrives at 105. Of 110 s the 8 machines are in groups for 5 + 5."""
    workload = ps_workload([(8, 4), (8, 4)], 1, gpus=8, arrivals=[0, 105])
    simulator = group_simulator(workload, 8)
    play_one_group(simulator, 8)
    metrics = simulator.metrics()
    assert metrics["makespan"] == 110.0 and metrics["allocation_rate"] == pytest.approx(10 / 110)
    assert metrics["groups_mean"] == pytest.approx(10 / 110) and metrics["dop_mean"] == 8.0


@pytest.mark.slow  # records of this size are compiled for
def test_one_job_can_open_group_after_group():
    """300 at one instant, on clusters with more machines than jobs: those without jobs give their place up."""
    simulator = group_simulator(ps_workload([(8, 4)] * 2, 1, gpus=8), 600)
    for _ in range(300):
        simulator.apply(AssignGroup(0, None, 1))
    simulator.apply(AssignGroup(1, None, 4))
    assert simulator.view.groups.size == 2
    while not simulator.ended:
        simulator.advance()
    assert finish_times(simulator) == [12.0, 6.0]


def test_twin_groups_end_together():
    """Ten groups with the same job, 10,000 iterations of .7 + .1 s: all end at one instant, and none is missed."""
    simulator = group_simulator(ps_workload([(0.7, 0.1)] * 10, 10_000), 10)
    for job in range(10):
        simulator.apply(AssignGroup(job, None, 1))
    while not simulator.ended:
        simulator.advance()
    assert finish_times(simulator) == pytest.approx([8000.0] * 10, rel=1e-9)


# --- What is left and what is known ---


def test_what_is_left_is_of_now_at_every_decision_point():
    """A(8, 4) alone ends an iteration every 5 s, whether its group is steady or not, whether it is read or not."""
    arrivals = [0.0, *(7.0 + 13.0 * np.arange(12))]
    simulator = by_machines(ps_workload([(8, 4), *[(1, 1)] * 12], MANY, gpus=8, arrivals=arrivals), 20)
    for time_s in arrivals[1:]:
        simulator.advance()
        assert simulator.view.now_s == time_s
        assert simulator.view.remaining_iterations(0) == MANY - time_s // 5
        simulator.apply(AssignGroup(int(simulator.view.queue[0]), None, 1))


def test_metrics_of_a_job_are_known_after_some_iterations():
    """Three of 5 s; then there is a decision point."""
    simulator = by_machines(ps_workload([(8, 4)], 10, gpus=8), 8, profile_iterations=3)
    view = simulator.view
    assert view.stage(0) == "profiling" and not view.is_profiled(0)
    assert math.isnan(view.comp_machine_s(0)) and math.isnan(view.cycle_s(0))
    simulator.advance()
    assert (view.now_s, view.is_profiled(0), view.stage(0)) == (15.0, True, "running")
    assert (view.comp_machine_s(0), view.comm_s(0), view.cycle_s(0)) == (8.0, 4.0, 5.0)
    simulator.apply(Preempt(0))
    assert view.stage(0) == "profiled"
    simulator.apply(AssignGroup(0, 0))
    simulator.advance()
    assert simulator.done and view.now_s == 50.0


def test_profiling_takes_a_moving_average_of_what_is_measured():
    """The first iteration is all that is known, then each new one counts .25."""
    simulator = by_machines(
        ps_workload([(8, 4)], 10, gpus=8), 8, profile_iterations=3, jitter=0.3, average_weight=0.25, model_error=0.1
    )
    s = simulator.state
    s.trace_on = 1
    simulator.advance()
    spans = list(zip(s.trace_begin_s.tolist(), s.trace_end_s.tolist(), strict=True))[:6]
    measured = [end - begin for begin, end in spans]
    for kind, (known, error) in enumerate([(s.seen_comp[0] / 8, s.comp_error[0]), (s.seen_comm[0], s.comm_error[0])]):
        average = measured[kind]
        for seconds in (measured[kind + 2], measured[kind + 4]):
            average += 0.25 * (seconds - average)
        assert known == pytest.approx(average * error) and abs(error - 1) == pytest.approx(0.1)
    assert len(set(measured)) == 6


def test_without_profiling_metrics_are_known_but_for_their_error():
    simulator = group_simulator(ps_workload([(8, 4)] * 20, 10, gpus=8), 8, model_error=0.2)
    ratios = {round(simulator.view.comp_machine_s(job) / 8, 9) for job in range(20)}
    assert ratios == {0.8, 1.2}


# --- Memory, failures, the end ---


def test_a_naive_group_that_runs_out_of_memory_goes_back_to_checkpoints():
    """A and B share: 8 s of COMP, 2 of COMM, so iterations end at 10, 20, 30. At 35 C makes it 45 GB of 32. All three
    wait again; A and B from the end of their epoch of 2 iterations: one each is lost, 4 machine-seconds."""
    workload = ps_workload([(4, 1)] * 3, 10, arrivals=[0, 0, 35], inputs=15 * GB, epochs=2)
    simulator = group_simulator(workload, 1, terms=NAIVE, loss=0.0, expansion=1.0, gc_slope=0.0)
    join_one_group(simulator, 1)
    simulator.advance()
    assert simulator.view.remaining_iterations(0) == 7
    join_one_group(simulator, 1)
    simulator.advance()
    view, s = simulator.view, simulator.state
    assert (view.now_s, view.queue.tolist(), view.groups.tolist(), view.free_machines) == (35.0, [0, 1, 2], [], 1)
    assert view.failed_together() == [frozenset({0, 1, 2})] and s.out_of_memory == 1
    assert s.iterations_left[:3].tolist() == [8, 8, 10] and s.comp_lost_s == 8.0
    simulator.apply(AssignGroup(2, None, 1))
    simulator.advance()
    assert s.finish_s[2] == 85.0 and s.n_groups == 1
    while not simulator.ended:
        join_one_group(simulator, 1)
        simulator.advance()
    assert finish_times(simulator)[:2] == [165.0, 165.0]
    assert simulator.metrics()["preemptions"] == 0


def test_the_last_jobs_that_ran_out_of_memory_together_are_remembered():
    """By turns four and three jobs of 15 GB in 32, 80 times: more than a record has room for, and never a part."""
    simulator = group_simulator(ps_workload([(4, 1)] * 4, 10, inputs=15 * GB), 1, terms=NAIVE, expansion=1.0)
    for i in range(80):
        jobs = range(4 - i % 2)
        for job in jobs:
            simulator.apply(AssignGroup(job, None, 1) if job == 0 else AssignGroup(job, 0))
        simulator.advance()
        # with the third job the memory is full; the fourth has not loaded yet, but is of the group
        assert simulator.view.failed_together()[-1] == frozenset(jobs)
        assert {len(crowd) for crowd in simulator.view.failed_together()} <= {3, 4}
    assert simulator.state.out_of_memory == 80


def test_a_job_that_spills_does_not_run_out_of_memory():
    workload = ps_workload([(4, 1)] * 3, 10, inputs=15 * GB)
    simulator = group_simulator(workload, 1, expansion=1.0)
    play_one_group(simulator, 1)
    assert simulator.state.out_of_memory == 0 and simulator.state.alpha[:3].max() > 0.0


def test_what_is_asked_to_stay_in_memory_can_be_too_much():
    """Three inputs of 15 GB, none of it spilled by order, in 32 GB."""
    simulator = group_simulator(ps_workload([(4, 1)] * 3, 10, inputs=15 * GB), 1, expansion=1.0)
    join_one_group(simulator, 1)
    for job in range(3):
        simulator.apply(SetSpill(job, 0.0))
    simulator.advance()
    assert simulator.state.out_of_memory == 1 and simulator.view.now_s == 0.0
    for job in range(3):
        simulator.apply(AssignGroup(job, None, 1) if job == 0 else AssignGroup(job, int(simulator.view.groups[0])))
        simulator.apply(SetSpill(job, None))
    while not simulator.ended:
        simulator.advance()
    assert simulator.done


def first_failure(simulator):
    """When, and of which machine."""
    s = simulator.state
    items = s.event_item[: s.event_count] - s.first_machine_event
    machines = [(float(key), int(item)) for key, item in zip(s.event_key, items, strict=False) if item >= 0]
    return min(machines)


def test_a_machine_failure_restarts_from_the_end_of_an_epoch():
    """One machine, iterations of 2 s, epochs of 5: what is done since is lost. The job waits until it is repaired."""
    failures = Failures(mtbf_s=400.0, mttr_s=10.0)
    simulator = group_simulator(ps_workload([(1, 1)], 200, epochs=5), 1, failures=failures, move_s=3.0, seed=4)
    fails_s, _ = first_failure(simulator)
    assert 20.0 < fails_s < 380.0
    simulator.apply(AssignGroup(0, None, 1))
    simulator.advance()
    view, s = simulator.view, simulator.state
    done = (fails_s - 3.0) // 2
    saved = done // 5 * 5
    assert (view.now_s, view.machines, view.free_machines, view.queue.tolist()) == (fails_s, 0, 0, [0])
    assert view.remaining_iterations(0) == 200 - saved and s.comp_lost_s == done - saved > 0
    simulator.advance()
    repaired_s, left = view.now_s, 200 - saved
    assert view.machines == view.free_machines == 1
    simulator.apply(AssignGroup(0, None, 1))
    next_s, _ = first_failure(simulator)
    simulator.advance()
    assert view.now_s == pytest.approx(min(next_s, repaired_s + 3.0 + 2.0 * left))


def test_a_group_that_loses_a_machine_goes_on_with_the_others():
    """Two machines: iterations of .5 + 1 s, then of 1 + 1 s, after 3 s of loading; from the end of an epoch of 10."""
    failures = Failures(mtbf_s=1000.0, mttr_s=1e6)
    simulator = group_simulator(ps_workload([(1, 1)], 400, gpus=2, epochs=10), 2, failures=failures, move_s=3.0, seed=1)
    fails_s, machine = first_failure(simulator)
    simulator.apply(AssignGroup(0, None, 2))
    simulator.advance()
    view, done = simulator.view, (fails_s - 3.0) // 1.5
    assert 10 < done < 400 and view.now_s == fails_s
    assert (view.machines, view.machines_of(0), view.free_machines) == (1, 1, 0)
    assert simulator.state.machine_group[machine] == -2 and view.is_loading(0)
    left = 400 - done // 10 * 10
    next_s, _ = first_failure(simulator)
    simulator.advance()
    assert view.now_s == pytest.approx(min(next_s, fails_s + 3.0 + 2.0 * left))


def test_what_stopped_has_a_checkpoint_though_no_epoch_has_ended():
    """A pauses after 3 of 10 iterations, in its epoch of 100; then its group runs out of memory: it keeps the 3."""
    workload = ps_workload([(4, 1), (4, 1), (4, 1)], 10, arrivals=[0, 16, 16], inputs=[15 * GB, 20 * GB, 0], epochs=100)
    simulator = group_simulator(workload, 1, terms=NAIVE, expansion=1.0, gc_slope=0.0)
    simulator.apply(AssignGroup(0, None, 1))
    simulator.advance()
    simulator.apply(Preempt(0))
    simulator.apply(AssignGroup(2, None, 1))
    simulator.advance()
    assert simulator.view.now_s == 66.0
    simulator.apply(AssignGroup(0, None, 1))
    simulator.apply(AssignGroup(1, int(simulator.view.groups[0])))
    simulator.advance()
    assert simulator.state.out_of_memory == 1 and simulator.state.iterations_left[:2].tolist() == [7, 10]


def test_a_run_is_cut_off_at_its_horizon():
    """At 12 s A, B and C of case 1 have ended one iteration each."""
    simulator = group_simulator(ps_workload(NET_BOUND, 5, gpus=8), 8, horizon_s=12.0)
    play_one_group(simulator, 8)
    assert simulator.at_horizon and simulator.view.now_s == 12.0
    assert simulator.state.iterations_left[:3].tolist() == [4, 4, 4]
    with pytest.raises(InvalidDecision):
        simulator.advance()


def test_nothing_more_can_happen():
    simulator = group_simulator(ps_workload(NET_BOUND, 5, gpus=8), 8)
    with pytest.raises(Stalled):
        simulator.advance()


@pytest.mark.parametrize(
    "decision",
    [
        AssignGroup(0, None, 0),
        AssignGroup(0, None, 5),
        AssignGroup(0, None, None),
        AssignGroup(0, 0),
        AssignGroup(1, 0, 2),
        AssignGroup(1, 7),
        AssignGroup(1, -1),
        AssignGroup(3, 0),
        AssignGroup(-1, 0),
        AssignGroup(2, None, 1),
        AssignGroup(1, True),
        Preempt(1),
        SetMachines(0, 0),
        SetMachines(0, 9),
        SetMachines(1, 1),
        SetMachines(0, 2.5),
        SetSpill(1, 0.5),
        SetSpill(0, 1.5),
        SetSpill(0, math.nan),
        Start(1, [0]),
    ],
)
def test_what_cannot_be_carried_out_leaves_the_state_untouched(decision):
    """Job 0 is in group 0 on 4 of 8 machines, 1 waits, 2 is still to come."""
    simulator = group_simulator(ps_workload(NET_BOUND, 5, gpus=8, arrivals=[0, 0, 50]), 8)
    simulator.apply(AssignGroup(0, None, 4))
    before = simulator.records.tobytes()
    with pytest.raises(InvalidDecision):
        simulator.apply(decision)
    assert simulator.records.tobytes() == before


def test_how_groups_execute_cannot_change_while_they_do():
    simulator = group_simulator(ps_workload(NET_BOUND, 5, gpus=8), 8)
    join_one_group(simulator, 8)
    simulator.advance()
    with pytest.raises(InputError):
        simulator.use(NAIVE)


def test_a_run_goes_on_from_a_snapshot():
    simulator = group_simulator(ps_workload(NET_BOUND, 5, gpus=8, arrivals=[0, 3, 20]), 8)
    join_one_group(simulator, 8)
    simulator.advance()
    snapshot, found = simulator.snapshot(), []
    for _ in range(2):
        play_one_group(simulator, 8)
        found.append((finish_times(simulator), simulator.metrics()))
        simulator.restore(snapshot)
        assert simulator.view.now_s == 3.0
    assert repr(found[0]) == repr(found[1])


@pytest.mark.parametrize("terms", [GroupTerms(), NAIVE])
def test_a_run_goes_on_in_a_larger_record(terms):
    """Everything is as if it had been there from the start."""
    found = []
    for capacity in (None, GroupCapacity(136, 136)):
        failures = Failures(mtbf_s=500.0, mttr_s=20.0)
        workload = ps_workload(NET_BOUND * 3, 30, gpus=8, arrivals=np.arange(9) * 20.0, inputs=GB)
        simulator = group_simulator(workload, 12, terms=terms, failures=failures, move_s=2.0, seed=3)
        for _ in range(4):
            for job in simulator.view.queue.tolist()[: simulator.view.free_machines // 2]:
                simulator.apply(AssignGroup(job, None, 2))
            simulator.advance()
        if capacity is not None:
            simulator.move_to(capacity.empty(), capacity)
        while not simulator.ended:
            for job in simulator.view.queue.tolist():
                if simulator.view.free_machines > 0:
                    simulator.apply(AssignGroup(job, None, 1))
            simulator.advance()
        found.append((finish_times(simulator), list(simulator.metrics().values())))
    assert repr(found[0]) == repr(found[1])


def test_a_record_is_64_bit_numbers_without_gaps():
    """So that shifts and products mean the same compiled and interpreted, and a copy by bytes copies no rubbish."""
    for capacity in (GroupCapacity(40, 40), GroupCapacity(136, 1096)):
        dtype = group_dtype(capacity)
        assert {field.base.str for field, *_ in dtype.fields.values()} <= {"<i8", "<f8"}
        assert sum(field.itemsize for field, *_ in dtype.fields.values()) == dtype.itemsize


def test_advance_as_a_decision():
    simulator = by_machines(ps_workload([(8, 4)], 1, gpus=8), 8)
    simulator.apply(Advance())
    assert simulator.done and finish_times(simulator) == [5.0]
