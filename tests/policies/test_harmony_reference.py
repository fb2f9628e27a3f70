"""The reference of Harmony against cases worked by hand; numbers are exact, since ints and Fractions go in.

A job is (w, c): COMP machine-seconds and COMM seconds of an iteration.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest

from clustergym.tests.support.harmony_reference import (
    allocate_machines,
    best_grouping,
    fill,
    group_count,
    group_utilisation,
    imbalance,
    is_similar,
    line_6,
    load_s,
    occupancy,
    predicted_cycle_s,
    prefix_lengths,
    run_group,
    schedule,
    score,
    steady_cycle_s,
    swap,
    utilisation,
)

F = Fraction
COMP, COMM, PULL, PUSH = "COMP", "COMM", "PULL", "PUSH"

NET_BOUND = [(16, 4), (8, 3), (16, 2)]  # A, B, C on 8 machines
JOB_BOUND = [(8, 1), (48, 5), (8, 2)]  # D, E, F on 8
PAIR = [(24, 2), (16, 3)]  # G, H on 8
SECONDARY = [(8, 4), (8, 2)]  # A, B on 8
GROUPING = [(12, 4), (6, 4), (18, 3)]  # A, B, C on 8
FAILING = [(24, 2), (8, 4), (40, 5)]  # A, B, C on 12
TABLE_1 = {  # input, model in GB
    "nmf-netflix64x": (F("45.6"), F("1.0")), "nmf-netflix128x": (F("91.2"), F("5.0")),
    "lda-pubmed": (F("4.3"), F("2.1")), "lda-nytimes": (F("0.6"), F("1.1")),
    "mlr-small": (F("78.4"), F("12.0")), "mlr-large": (F("155.0"), F("24.0")),
    "lasso-small": (F("78.4"), F("12.0")), "lasso-large": (F("155.0"), F("24.0")),
}  # fmt: skip


def ends(events, job, kind):
    return [time_s for time_s, of, what in events if (of, what) == (job, kind)]


def cycles(jobs, machines, **words):
    """The steady cycle of each job."""
    events = run_group(jobs, machines, 60 * predicted_cycle_s(jobs, machines), **words)
    return [steady_cycle_s(events, job) for job in range(len(jobs))]


def random_group(rng):
    """Jobs, machines and the instants at which the jobs enter."""
    jobs = [(rng.uniform(4, 80), rng.uniform(1, 10)) for _ in range(rng.randint(1, 6))]
    return jobs, rng.randint(2, 16), [rng.uniform(0, 30) for _ in jobs]


# --- Hand cases 1 to 4: the executor ---


def test_network_bound_group():
    """Case 1. On 8 machines T_cpu is 2, 1, 2 and T_net 4, 3, 2 for A, B, C.

    Eq. 1: max(5, 9, 6) = 9, U = (5/9, 1). CPU: A 0-2, B 2-3, C 3-5. Network: A 2-6, B 6-9, C 9-11. A's next COMP is
    6-8, its COMM waits for C's until 11 and is 11-15; B: COMP 9-10, COMM 15-18; C: COMP 11-13, COMM 18-20; A: COMP
    15-17, COMM 20-24, nine after the last. The network is never idle from 2 on.
    """
    events = run_group(NET_BOUND, 8, 24)
    assert events[:12] == [
        (2, 0, COMP), (3, 1, COMP), (5, 2, COMP), (6, 0, COMM), (8, 0, COMP), (9, 1, COMM),
        (10, 1, COMP), (11, 2, COMM), (13, 2, COMP), (15, 0, COMM), (17, 0, COMP), (18, 1, COMM),
    ]  # fmt: skip
    assert [ends(events, job, COMM) for job in range(3)] == [[6, 15, 24], [9, 18], [11, 20]]
    assert predicted_cycle_s(NET_BOUND, 8) == 9
    assert group_utilisation(NET_BOUND, 8) == (F(5, 9), 1)
    assert cycles(NET_BOUND, 8) == [9, 9, 9]
    assert cycles(NET_BOUND, 8, comm="split") == [9, 9, 9]


def test_job_bound_group():
    """Case 2. On 8 machines T_cpu is 1, 6, 1 and T_net 1, 5, 2 for D, E, F.

    Eq. 1: max(8, 8, 11) = 11, U = (8/11, 8/11). CPU: D 0-1, E 1-7, F 7-8, D 8-9. Network: D 1-2, E 7-12, F 12-14,
    D 14-15. E: COMP 12-18, COMM 18-23, eleven after its last; F's and D's COMPs wait for E's.
    """
    events = run_group(JOB_BOUND, 8, 23)
    assert events == [
        (1, 0, COMP), (2, 0, COMM), (7, 1, COMP), (8, 2, COMP), (9, 0, COMP), (12, 1, COMM), (14, 2, COMM),
        (15, 0, COMM), (18, 1, COMP), (19, 2, COMP), (20, 0, COMP), (23, 1, COMM),
    ]  # fmt: skip
    assert predicted_cycle_s(JOB_BOUND, 8) == 11
    assert group_utilisation(JOB_BOUND, 8) == (F(8, 11), F(8, 11))
    assert cycles(JOB_BOUND, 8) == [11, 11, 11]


def test_job_bound_group_with_pull_and_push_apart():
    """Case 2 with PULL and PUSH apart, half of the COMM each: .5, 2.5, 1 seconds for D, E, F.

    From E's COMP 15.5-21.5 on: F's and D's COMPs end 22.5 and 23.5. Network: E PUSH 21.5-24, F PUSH -25, D PUSH -25.5,
    and only then E PULL -28, so E waits 1.5 for two PUSHes of others: COMP 28-34. Its cycle is 11 + 1.5 = 12.5. All
    three COMPs take 8 of it, as do all COMMs: U = (.64, .64); Eq. 1 is 13.6 % too fast.
    """
    events = run_group(JOB_BOUND, 8, 34, comm="split")
    assert ends(events, 1, COMP) == [9, F("21.5"), 34]
    assert ends(events, 1, PUSH) == [F("11.5"), 24]
    assert ends(events, 1, PULL) == [3, F("15.5"), 28]
    assert cycles(JOB_BOUND, 8, comm="split") == [F("12.5")] * 3
    assert F("12.5") / predicted_cycle_s(JOB_BOUND, 8) - 1 == F(3, 22)  # 13.6 %
    assert 8 / F("12.5") == F("0.64")


@pytest.mark.parametrize(
    "words", [{}, {"comm": "split"}, {"comm": "split", "pull": [F(1, 2), F(2, 3)]}], ids=["merged", "halves", "2 and 1"]
)
def test_perfect_pair(words):
    """Case 3. On 8 machines G takes 3 + 2 seconds and H 2 + 3: both sums are 5, Eq. 1 is 5, U = (1, 1).

    Merged: COMPs G 0-3, H 3-5, G 5-8, H 8-10; COMMs G 3-5, H 5-8, G 8-10: no gap from 3 on.
    H has PULL 2 and PUSH 1 in the review and 1.5 each under our fixed share; the cycle is the same.
    """
    assert predicted_cycle_s(PAIR, 8) == 5
    assert group_utilisation(PAIR, 8) == (1, 1)
    assert cycles(PAIR, 8, **words) == [5, 5]


def test_perfect_pair_event_by_event():
    """Case 3, merged; at one instant the CPU's end comes before the network's."""
    assert run_group(PAIR, 8, 10) == [
        (3, 0, COMP), (5, 1, COMP), (5, 0, COMM), (8, 0, COMP), (8, 1, COMM), (10, 1, COMP), (10, 0, COMM),
    ]  # fmt: skip


def test_secondary_comm_shortens_the_cycle():
    """Case 4. On 8 machines A takes 1 + 4 seconds, B 1 + 2; busy .8, so a secondary moves at .2 / .8 = 1/4. Eq. 1: 6.

    CPU: A 0-1, B 1-2. A's COMM is primary 1-5; B's is secondary from 2, has .75 of its 2 done at 5 and, primary, ends
    at 6.25. A: COMP 5-6, secondary 6-6.25 (1/16 done), primary until 6.25 + 63/16 = 10.1875. B: COMP 6.25-7.25.
    In the long run A is primary for P and B for Q: each is secondary from one second after the other's start as
    primary, so P = 4 - (Q - 1)/4 and Q = 2 - (P - 1)/4: P = 59/15, Q = 19/15, P + Q = 5.2.
    """
    words = {"busy": F(4, 5)}
    assert run_group(SECONDARY, 8, F("10.1875"), **words) == [
        (1, 0, COMP), (2, 1, COMP), (5, 0, COMM), (6, 0, COMP), (F("6.25"), 1, COMM),
        (F("7.25"), 1, COMP), (F("10.1875"), 0, COMM),
    ]  # fmt: skip
    assert predicted_cycle_s(SECONDARY, 8) == 6
    assert cycles(SECONDARY, 8) == [6, 6]
    assert [float(cycle) for cycle in cycles(SECONDARY, 8, **words)] == pytest.approx([5.2, 5.2], rel=1e-9)


def test_secondary_comm_with_pull_and_push_apart():
    """Case 4 with PULL and PUSH apart, 2 + 2 seconds for A and 1 + 1 for B: a cycle of 5.5625.

    A PULL 0-2; B PULL secondary, 1/2 done at 2, ends 2.5. COMPs A 2-3, B 3-4. A PUSH 3-5; B PUSH secondary from 4, 1/4
    done at 5, ends 5.75; A PULL secondary from 5, 3/16 done at 5.75, ends 7.5625; B PULL secondary, 29/64 done, ends
    8.109375. COMPs A 7.5625-8.5625, B -9.5625. A PUSH 8.5625-10.5625 alone but for B's: all as 5.5625 before.
    """
    events = run_group(SECONDARY, 8, F("10.5625"), busy=F(4, 5), comm="split")
    assert [(float(time_s), job, kind) for time_s, job, kind in events] == [
        (2.0, 0, PULL), (2.5, 1, PULL), (3.0, 0, COMP), (4.0, 1, COMP), (5.0, 0, PUSH), (5.75, 1, PUSH),
        (7.5625, 0, PULL), (8.109375, 1, PULL), (8.5625, 0, COMP), (9.5625, 1, COMP), (10.5625, 0, PUSH),
    ]  # fmt: skip
    assert cycles(SECONDARY, 8, busy=F(4, 5), comm="split") == [F("5.5625")] * 2
    assert cycles(SECONDARY, 8, comm="split") == [6, 6]


# --- More of the executor ---


def test_secondary_that_ends_first_makes_room_for_the_next():
    """On 8 machines A takes 1 + 8 seconds, B and C 1 + 1 each; busy .8.

    A's COMM is primary 1-9. B's, secondary from 2 at 1/4, ends 6 and leaves; C's, in the queue since 3, follows: 3/4
    done at 9, primary until 9.25. B's next: COMP 6-7, secondary 9-9.25 (1/16 done), primary until 9.25 + 15/16.
    """
    events = run_group([(8, 8), (8, 1), (8, 1)], 8, F("10.1875"), busy=F(4, 5))
    assert ends(events, 0, COMM) == [9]
    assert ends(events, 1, COMM) == [6, F("10.1875")]
    assert ends(events, 2, COMM) == [F("9.25")]


def test_primary_ends_before_the_secondary_at_one_instant():
    """A (1 + 4 seconds) is primary 1-5, B (1 + .75) secondary 2-5: A's next COMP is the first in the queue."""
    events = run_group([(8, 4), (8, F(3, 4))], 8, 7, busy=F(4, 5))
    assert events == [(1, 0, COMP), (2, 1, COMP), (5, 0, COMM), (5, 1, COMM), (6, 0, COMP), (7, 1, COMP)]


def test_late_entry_finds_the_cpu_idle():
    """Case 3 with H entering at 4: COMPs G 0-3, H 4-6 (G's COMM is 3-5), G 6-9, H 9-11; COMMs H 6-9, G 9-11."""
    events = run_group(PAIR, 8, 11, start_s=[0, 4])
    assert ends(events, 0, COMP) == [3, 9]
    assert ends(events, 1, COMP) == [6, 11]
    assert ends(events, 0, COMM) == [5, 11]


def test_end_goes_before_an_entry_of_the_same_instant():
    """Case 3 with H entering at 5, when G's COMM ends: G's COMP 5-8 is first, H's is 8-10."""
    events = run_group(PAIR, 8, 10, start_s=[0, 5])
    assert ends(events, 0, COMP) == [3, 8]
    assert ends(events, 1, COMP) == [10]


def test_garbage_collection_slows_comps_only():
    """Case 3 with a factor 1.2: COMPs of 3.6 and 2.4 sum to 6, COMMs still to 5: a CPU-bound cycle of 6."""
    assert predicted_cycle_s(PAIR, 8, gc=F(6, 5)) == 6
    assert cycles(PAIR, 8, gc=F(6, 5)) == [6, 6]


def test_comp_waits_for_its_data():
    """On 8 machines A and B take 1 + 1 seconds and their passes 3 and 2 to load; Eq. 1 is 2, the disk needs 5.

    COMPs A 0-1, B 1-2: nothing to load before the first. Loads A 1-4, B 4-6 (A's holds the disk until 4). A's second
    COMP starts at 2 and ends at 4, with its data; B's starts then, when the CPU is free, and ends at 6. Loads A 6-9,
    B 9-11; COMPs A 6-9, B 9-11.
    """
    jobs, disk_s = [(8, 1), (8, 1)], [3, 2]
    events = run_group(jobs, 8, 16, disk_s=disk_s)
    assert ends(events, 0, COMP) == [1, 4, 9, 14]
    assert ends(events, 1, COMP) == [2, 6, 11, 16]
    assert ends(events, 0, COMM) == [2, 5, 10, 15]
    assert predicted_cycle_s(jobs, 8, disk_s=disk_s) == 5


def test_job_without_spilled_data_does_not_wait_for_the_disk():
    """A alone loads, 6 seconds a pass: its COMPs end at 1, 7, 13. B (1 + 1) gets the CPU only between them.

    B: COMP 1-2, COMM 2-3, COMP 7-8 (A's holds the CPU 2-7), then A's again 8-13, B 13-14.
    """
    events = run_group([(8, 1), (8, 1)], 8, 14, disk_s=[6, 0])
    assert ends(events, 0, COMP) == [1, 7, 13]
    assert ends(events, 1, COMP) == [2, 8, 14]


def test_naive_jobs_in_step():
    """Two jobs of 1 + 1 seconds, loss .2: both COMPs move at .4 and end at 2.5, both COMMs at 5. Ties in list order."""
    assert run_group([(8, 1), (8, 1)], 8, 5, execution="naive", loss=F(1, 5)) == [
        (F("2.5"), 0, COMP), (F("2.5"), 1, COMP), (5, 0, COMM), (5, 1, COMM),
    ]  # fmt: skip


def test_naive_jobs_out_of_step():
    """As above, the second half a second later: a cycle of 3.5 where each alone takes 2.

    The first's COMP: .5 alone, .5 at .4: ends 1.75, when the second has .5 left: ends 2.25. The first's COMM is alone
    1.75-2.25, then at .4 until 3.5; the second's COMM has .5 left then and ends at 4. And so on.
    """
    events = run_group([(8, 1), (8, 1)], 8, 8, execution="naive", loss=F(1, 5), start_s=[0, F(1, 2)])
    assert ends(events, 0, COMP) == [F("1.75"), F("5.25")]
    assert ends(events, 1, COMP) == [F("2.25"), F("5.75")]
    assert ends(events, 0, COMM) == [F("3.5"), 7]
    assert ends(events, 1, COMM) == [4, F("7.5")]


def test_naive_shares_three_ways():
    """Three COMPs of 1 second at (1 - .1) / 3 = .3 each: all end at 10/3."""
    events = run_group([(8, 9)] * 3, 8, 4, execution="naive", loss=F(1, 10))
    assert events == [(F(10, 3), job, COMP) for job in range(3)]


def test_naive_job_alone_loses_nothing():
    events = run_group([(8, 1)], 8, 4, execution="naive", loss=F(1, 5))
    assert events == [(1, 0, COMP), (2, 0, COMM), (3, 0, COMP), (4, 0, COMM)]


def test_naive_refuses_a_disk():
    with pytest.raises(ValueError, match="does not spill"):
        run_group([(8, 1)], 8, 4, execution="naive", disk_s=[1])


def test_steady_cycle_of_a_pattern():
    """Gaps of 1, 2, 1, 2 ... after a start of 7: the mean of the pattern, 3/2."""
    times = [0, 7, 8, 10, 11, 13, 14, 16, 17, 19, 20, 22, 23, 25, 26]
    assert steady_cycle_s([(time_s, 0, COMP) for time_s in times], 0) == F(3, 2)


def test_equation_1_is_the_cycle_of_the_merged_executor():
    """Fifty random groups with random entries: each job does one iteration in a cycle of Eq. 1.

    Two FIFO servers in a loop are a max-plus linear system; circuits over both hold two tokens or more, so that their
    mean is at most that of the two sums. Garbage collection changes no more than T_cpu.
    """
    rng = random.Random(0)
    for _ in range(50):
        jobs, machines, start_s = random_group(rng)
        gc = rng.choice([1, 1.3])
        expected = predicted_cycle_s(jobs, machines, gc=gc)
        events = run_group(jobs, machines, 60 + 200 * expected, start_s=start_s, gc=gc)
        assert [steady_cycle_s(events, job) for job in range(len(jobs))] == pytest.approx(
            [expected] * len(jobs), rel=1e-9
        )


def test_equation_1_with_the_disk_as_a_third_resource():
    """Fifty random groups, some jobs with nothing spilled: the cycle is max(Eq. 1, the sum of the loads)."""
    rng = random.Random(1)
    bound = 0
    for _ in range(50):
        jobs, machines, start_s = random_group(rng)
        disk_s = [rng.choice([0, rng.uniform(0, 30)]) for _ in jobs]
        expected = predicted_cycle_s(jobs, machines, disk_s=disk_s)
        bound += expected > predicted_cycle_s(jobs, machines)
        events = run_group(jobs, machines, 60 + 200 * expected, start_s=start_s, disk_s=disk_s)
        assert [steady_cycle_s(events, job) for job in range(len(jobs))] == pytest.approx(
            [expected] * len(jobs), rel=1e-9
        )
    assert bound >= 10


# --- Hand cases 5 and 6: Algorithm 1 ---


def test_grouping_number_of_groups():
    """Case 5, line 6 on M = 8 for A(12, 4), B(6, 4), C(18, 3): sums of abs(w n/8 - c).

    n 1: 2.5 + 3.25 + .75 = 6.5; n 2: 1 + 2.5 + 1.5 = 5; n 3: .5 + 1.75 + 3.75 = 6. With the sums: 8 x 11 / 36 = 2.4.
    """
    assert [line_6(GROUPING, 8, count) for count in (1, 2, 3)] == [F("6.5"), 5, 6]
    assert group_count(GROUPING, 8) == 2
    assert group_count(GROUPING, 8, "group") == 2


def test_grouping_fill_and_swaps():
    """Case 5 at m = 4: T_itr C 4.5 + 3 = 7.5, A 3 + 4 = 7, B 1.5 + 4 = 5.5; sizes 2 and 1.

    Imbalances: C +1.5, A -1, B -2.5. C, then of A and B the better balancing: with A +.5, with B -1, so A. {C, A} +.5,
    {B} -2.5, 3 in all. B for C: {C} +1.5, {B, A} -3.5; B for A: {A} -1, {C, B} -1, 2 in all: taken. Then of the two -1
    the first is picked; C for A gives 5, B for A 3 again: the end.
    """
    filled = fill(GROUPING, 8, 2)
    assert filled == [[2, 0], [1]]
    assert [imbalance(GROUPING, members, 4) for members in filled] == [F("0.5"), F("-2.5")]
    swapped = swap(GROUPING, filled, 4)
    assert swapped == [[2, 1], [0]]
    assert [imbalance(GROUPING, members, 4) for members in swapped] == [-1, -1]


def test_grouping_machines_and_score():
    """Case 5: {C, B} has w 24 and c 7, {A} 12 and 4. Ratios 24/7/m and 3/m.

    From 3.43 and 3: one to the first, 1.71; second, 1.5; first, 1.14; second, 1; first, .86; second, .75: 4 and 4.
    Cycles: max(6, 7, 7.5) = 7.5 (C) and max(3, 4, 7) = 7. U_cpu = (6/7.5 + 3/7)/2 = .6143, U_net = (7/7.5 + 4/7)/2 =
    .7524, score .9905.
    """
    groups = allocate_machines(GROUPING, [[2, 1], [0]], 8)
    assert groups == [((2, 1), 4), ((0,), 4)]
    assert [predicted_cycle_s([GROUPING[j] for j in members], m) for members, m in groups] == [F("7.5"), 7]
    assert utilisation(GROUPING, groups) == (F(43, 70), F(79, 105))
    assert score(GROUPING, groups) == F(104, 105)


def test_grouping_prefixes():
    """Case 5 over its prefixes. {A} on 8: 1.5 + 4, U = (3/11, 8/11), .6364 = 7/11.

    {A, B}: line 6 gives 2.5 + 3.25 = 5.75 and 1 + 2.5 = 3.5, two groups, {A} and {B}; no swap of lone jobs helps:
    it only renames -1 and -2.5. Machines by 3/m and 1.5/m: A, 1.5; A in the tie, 1; B, .75; A, .75; A in the tie, .6;
    B: 5 and 3. U = (5 x 2.4/6.4 + 3 x 2/6)/8, (5 x 4/6.4 + 3 x 4/6)/8 = (.359375, .640625): .6797 = 87/128.
    All three: .9905, taken by `all`. The loop as printed never takes the last job.
    """
    assert schedule(GROUPING[:1], 8) == [((0,), 8)]
    assert score(GROUPING, [((0,), 8)]) == F(7, 11)
    assert group_count(GROUPING[:2], 8) == 2
    assert schedule(GROUPING[:2], 8) == [((0,), 5), ((1,), 3)]
    assert score(GROUPING, [((0,), 5), ((1,), 3)]) == F(87, 128)
    assert schedule(GROUPING, 8) == [((2, 1), 4), ((0,), 4)]
    assert schedule(GROUPING, 8, stop="printed") == [((0,), 5), ((1,), 3)]


def test_grouping_optimum():
    """Case 5: the best of all is {A, C} on 5 and {B} on 3, 1.09821 = 123/112.

    Cycles max(6, 7, 6.6) = 7 and max(2, 4, 6) = 6: U_cpu = (5 x 6/7 + 3 x 2/6)/8 = .6607, U_net = (5 + 3 x 4/6)/8 =
    .875.
    """
    assert best_grouping(GROUPING, 8) == (F(123, 112), [((0, 2), 5), ((1,), 3)])


def test_failing_grouping():
    """Case 6, M = 12: A(24, 2), B(8, 4), C(40, 5). Line 6: 0 + 10/3 + 5/3 = 5, 2 + 8/3 + 5/3 = 6.33, 4 + 2 + 5 = 11.

    So all are one group: T_itr C 8.33, B 4.67, A 4: C (-1.67), then, of B (-3.33) and A (0), A, the better balancing,
    then B. Sums 6 and 11: cycle 11, U = (6/11, 1), 1.0455 = 23/22.
    """
    assert [line_6(FAILING, 12, count) for count in (1, 2, 3)] == [5, F(19, 3), 11]
    assert group_count(FAILING, 12) == 1
    assert fill(FAILING, 12, 1) == [[2, 0, 1]]
    assert schedule(FAILING, 12) == [((2, 0, 1), 12)]
    assert predicted_cycle_s(FAILING, 12) == 11
    assert utilisation(FAILING, [((2, 0, 1), 12)]) == (F(6, 11), 1)
    assert score(FAILING, [((2, 0, 1), 12)]) == F(23, 22)


def test_failing_grouping_prefixes_and_optimum():
    """Case 6: {A} 2 + 2 seconds, U (.5, .5), .75. {A, B}: one group (10/3 against 14/3), B (4.67) first, then A (4).

    Sums 2.67 and 6: U = (.4444, 1), .9444 = 17/18. The optimum is {A, B} on 6, {C} on 6, cycles 6 and 11.667: U_cpu =
    (5.333/6 + 6.667/11.667)/2 = .7302, U_net = (1 + 5/11.667)/2 = .7143, 1.08730 = 137/126.
    """
    assert schedule(FAILING[:1], 12) == [((0,), 12)]
    assert score(FAILING, [((0,), 12)]) == F(3, 4)
    assert [line_6(FAILING[:2], 12, count) for count in (1, 2)] == [F(10, 3), F(14, 3)]
    assert schedule(FAILING[:2], 12) == [((1, 0), 12)]
    assert score(FAILING, [((1, 0), 12)]) == F(17, 18)
    assert best_grouping(FAILING, 12) == (F(137, 126), [((0, 1), 6), ((2,), 6)])


def test_failing_grouping_with_the_sums_balanced():
    """Case 6 with balance=group: 12 x 11/72 = 1.83, two groups at m = 6, T_itr C 11.67, A 6, B 5.33, sizes 2 and 1.

    C (+1.67), then A (+2) gives +3.67, B (-2.67) gives -1: {C, B} -1, {A} +2. Swap A and C: {A, B} -.67, {C} +1.67,
    3 to 2.33. C for A would give 3 again, C for B 6.33. Machines by 5.33/m and 8/m: C, 4; {A, B}, 2.67; C, 2.67; {A, B}
    in the tie, 1.78; C, 2; C, 1.6; {A, B}, 1.33; C, 1.33; {A, B} in the tie, 1.07; C: 5 and 7.
    """
    assert group_count(FAILING, 12, "group") == 2
    assert fill(FAILING, 12, 2) == [[2, 1], [0]]
    assert swap(FAILING, [[2, 1], [0]], 6) == [[0, 1], [2]]
    assert schedule(FAILING, 12, balance="group") == [((0, 1), 5), ((2,), 7)]


# --- More of Algorithm 1 ---


def test_printed_stop_returns_the_failing_grouping():
    """One machine, so one group: A and B (1, 1), C (1, 3), D (2, 1).

    Scores: {A} cycle 2, .75; {A, B} cycle 2, 1.5; {A, B, C} sums 3 and 5, .6 + .5 = 1.1, which fails and is returned;
    all four, sums 5 and 6, 1.33.
    """
    jobs = [(1, 1), (1, 1), (1, 3), (2, 1)]
    assert schedule(jobs, 1) == [((0, 1), 1)]
    assert schedule(jobs, 1, stop="printed") == [((2, 0, 1), 1)]


def test_printed_stop_with_one_job():
    """Its loop would not run at all; the job gets all machines."""
    assert schedule([(8, 1)], 4, stop="printed") == [((0,), 4)]


@pytest.mark.parametrize("stop", ["all", "printed"])
def test_no_jobs_make_no_groups(stop):
    assert schedule([], 4, stop=stop) == []


@pytest.mark.parametrize("scale", [1, 0.1, 0.7], ids=["exact", "tenths", "seven tenths"])
def test_tied_swaps_take_the_first(scale):
    """On one machine each: a +5 and b +4 in a group, c -2 and d -3 in the other, 9 and -5: 14 in all.

    a for c leaves 2 and 2, a for d 1 and 3, b for c 3 and 1, b for d 2 and 2: 4 each time, the sum of all four. The
    first is taken, and none of the next gains. Rounding has no say: tenths sum differently from group to group.
    """
    jobs = [(w * scale, c * scale) for w, c in [(6, 1), (5, 1), (1, 3), (1, 4)]]
    assert swap(jobs, [[0, 1], [2, 3]], 1) == [[2, 1], [0, 3]]


def test_no_more_groups_than_machines_nor_jobs():
    """COMMs so long that line 6 wants as many groups as it may have."""
    assert len(schedule([(1, 50)] * 5, 3)) == 3
    assert len(schedule([(1, 50)] * 2, 8)) == 2


def test_grouping_whose_models_do_not_fit_is_passed_over():
    """Case 6 with models of 5 on 12 machines with 1 each, expansion 1: all three are 15 > 12, the first two 10."""
    words = {"model_bytes": [5, 5, 5], "ram_bytes": 1}
    assert schedule(FAILING, 12, **words, expansion=1) == [((1, 0), 12)]
    assert schedule(FAILING, 12, **words, expansion=F(13, 10)) == [((0,), 12)]  # 13 > 12
    assert schedule(FAILING, 12, **words, expansion=F(6, 5)) == [((1, 0), 12)]  # 12 just fits
    assert schedule(FAILING, 12, **words, expansion=3) == []


def test_prefixes_grow_by_a_twentieth_beyond_two_hundred_jobs():
    assert list(prefix_lengths(200, "all")) == list(range(1, 201))
    many = list(prefix_lengths(300, "all"))
    assert many[:42] == [*range(1, 41), 42, 44]  # 21 x 40 / 20, 44.1
    assert many[-2:] == [292, 300]  # 306 is beyond
    assert len(many) < 90


def test_schedule_is_the_same_in_floats():
    """Twenty random problems: rounding decides nothing where nothing is tied."""
    rng = random.Random(2)
    for _ in range(20):
        jobs = [(rng.uniform(4, 80), rng.uniform(1, 10)) for _ in range(rng.randint(1, 12))]
        exact = [(F(w), F(c)) for w, c in jobs]
        for stop, balance in (("all", "job"), ("all", "group"), ("printed", "job")):
            words = {"stop": stop, "balance": balance}
            assert schedule(jobs, 16, **words) == schedule(exact, 16, **words)


# --- Hand cases 7 and 8 ---


@pytest.mark.parametrize(("spilled", "seconds"), [("0.1", 15.2), ("0.2", 30.4), ("0.3", 45.6), ("0.34", 51.7)])
def test_disk_bound_cycle_of_table_1(spilled, seconds):
    """Case 7. 608.5 GB of input over 32 machines of 125 MB/s, 4 GB/s in all: 152.1 s times alpha.

    The group's cycle is that, once it is more than Eq. 1: here eight jobs of one second each way, 9 s at most.
    """
    disk_s = [load_s(F(spilled), size, 32, F("0.125")) for size, _ in TABLE_1.values()]
    jobs = [(32, 1)] * len(disk_s)
    assert float(sum(disk_s)) == pytest.approx(seconds, abs=0.05)
    assert predicted_cycle_s(jobs, 32, disk_s=disk_s) == sum(disk_s)
    events = run_group(jobs, 32, 20 * sum(disk_s), disk_s=disk_s)
    assert [steady_cycle_s(events, job) for job in range(8)] == [sum(disk_s)] * 8


def test_occupancy_of_table_1():
    """Case 7. 608.5 GB of input and 81.2 of models on 32 machines of 32 GB: .674 raw, .495 with alpha .3.

    (425.95 + 81.2)/1024 = .4953.
    """
    inputs, models = zip(*TABLE_1.values(), strict=True)
    assert (sum(inputs), sum(models)) == (F("608.5"), F("81.2"))
    raw = [float(occupancy(inputs, models, 32, 32, spilled=[F(a)] * 8, expansion=1)) for a in ("0", "0.3")]
    assert raw == pytest.approx([0.6735, 0.4953], abs=5e-5)


def with_ratio(iteration_s, ratio):
    """(T_cpu, T_net) of a job from its iteration time and its COMP to COMM ratio."""
    comm_s = F(iteration_s) / (1 + F(ratio))
    return F(iteration_s) - comm_s, comm_s


def test_similar_within_five_percent():
    """Case 8. The finished job: T_itr 10, ratio 1. 10.4 and 1.04 are within 5 %; 10.6 is not, nor 1.06."""
    finished = with_ratio("10", "1")
    assert is_similar(finished, [with_ratio("10.4", "1.04")])
    assert not is_similar(finished, [with_ratio("10.6", "1.00")])
    assert not is_similar(finished, [with_ratio("10", "1.06")])


def test_similar_limits_are_included():
    """Case 8: 9.5, 10.5 and ratios .95, 1.05 are within 5 %; a trifle more is not."""
    finished = with_ratio("10", "1")
    assert all(is_similar(finished, [with_ratio(t, r)]) for t in ("9.5", "10.5") for r in ("0.95", "1.05"))
    assert not is_similar(finished, [with_ratio("9.4999", "1")])
    assert not is_similar(finished, [with_ratio("10", "1.0501")])


def test_similar_bunch():
    """Case 8. T_itr 4 and 6.2 sum to 10.2; COMP 5.022 over COMM 5.178 is .97: within 5 % of 10 and 1.

    Neither job need be like the finished one: here their ratios are 3 and .43.
    """
    comp_s, comm_s = with_ratio("10.2", "0.97")
    bunch = [(F(3), F(1)), (comp_s - 3, comm_s - 1)]
    assert [sum(job) for job in bunch] == [4, F("6.2")]
    assert is_similar(with_ratio("10", "1"), bunch)
    assert not is_similar(with_ratio("10", "1"), bunch[:1])
    assert math.isclose(bunch[1][0] / bunch[1][1], 0.484, abs_tol=5e-4)
