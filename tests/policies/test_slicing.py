"""Gandiva with time slices: turns by hand, against a round robin in plain Python, and what may not change."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from clustergym import policies
from clustergym.experiments.playing.recording import decisions
from clustergym.simulator.base.codes import MIGRATE, PREEMPT, START
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.events.initialise import Failures
from clustergym.simulator.rules.rule import Rule
from clustergym.simulator.workloads import Workload

ONE_GPU = "flat:machines=1,gpus_per_machine=1"
FOUR_GPUS = "flat:machines=1,gpus_per_machine=4"


def laid(word, topology, *rows, seed=0, **options):
    simulator = Simulator(topology, rule=policies.make(word).rule, **options)
    simulator.reset(Workload.from_arrays("by hand", *map(list, zip(*rows, strict=True))), seed)
    return simulator


def ends(word, topology, *rows):
    simulator = laid(word, topology, *rows)
    simulator.run()
    return simulator.jobs()["finish_s"].tolist()


@pytest.mark.parametrize(("cost_s", "finish_s"), [(0, [160.0, 200.0]), (5, [165.0, 210.0])])
def test_two_jobs_take_turns_of_a_slice_each(cost_s, finish_s):
    """100 s each on one GPU: 0 until 60, 1 until 120, 0 its last 40 s, 1 its last 40 s; each second turn restores."""
    assert ends(f"gandiva:slicing=60,preemption_cost={cost_s}", ONE_GPU, (0, 1, 100), (0, 1, 100)) == finish_s


def test_the_first_slice_is_counted_from_when_a_job_waits():
    """Job 1 comes at 10: job 0 makes way at 70 with 30 s left, is back when job 1 ends at 100, and ends at 130."""
    assert ends("gandiva:slicing=60", ONE_GPU, (0, 1, 100), (10, 1, 30)) == [130.0, 100.0]


def test_without_slices_a_running_job_is_never_stopped():
    assert ends("gandiva", ONE_GPU, (0, 1, 100), (10, 1, 30)) == [100.0, 130.0]


def test_three_jobs_go_round():
    """70 s each: 0, 1 and 2 have 60 s each until 180; then 10 s each in the same order."""
    assert ends("gandiva:slicing=60", ONE_GPU, *[(0, 1, 70)] * 3) == [190.0, 200.0, 210.0]


def test_a_gang_gets_all_gpus_in_its_turn():
    """4 jobs of 1 GPU and 1000 s; a gang of 4, 100 s, from 10. It runs 70 to 130, they 130 to 190, it 190 to 230.

    By then they have 130 s done; the rest is theirs.
    """
    assert ends("gandiva:slicing=60", FOUR_GPUS, *[(0, 1, 1000)] * 4, (10, 4, 100)) == [1100.0] * 4 + [230.0]


def test_only_as_many_make_way_as_are_needed_and_those_that_ran_longest_first():
    """3 of 4 GPUs run since 0, one since 20; a gang of 2 comes at 30. At 90 jobs 0 and 1 or 2 go, not job 3."""
    simulator = laid("gandiva:slicing=60", FOUR_GPUS, *[(0, 1, 1000)] * 3, (20, 1, 1000), (30, 2, 10))
    stopped = [(row.time_s, row.job) for row in decisions(simulator) if row.kind == PREEMPT]
    assert [time_s for time_s, _ in stopped] == [90.0, 90.0]
    assert {job for _, job in stopped} < {0, 1, 2}


def test_jobs_behind_a_gang_fill_what_it_cannot_use():
    """A gang of 3 runs, one of 2 waits from 1; a job of 1 GPU takes the fourth GPU at once, at 2."""
    simulator = laid("gandiva:slicing=60", FOUR_GPUS, (0, 3, 1000), (1, 2, 10), (2, 1, 10))
    simulator.run()
    assert simulator.jobs()["first_start_s"].tolist() == [0.0, 61.0, 2.0]


def test_a_gang_that_finds_no_place_is_passed_over():
    """2 machines of 4; one fails for good while a gang of 4 runs on each. A gang of 8 that comes then waits in vain.

    The two of 4 take turns of 60 s on the machine that is left.
    """
    topology, failures = "flat:machines=2,gpus_per_machine=4", Failures(100_000.0, 1e9, 0.0)
    simulator = laid(
        "gandiva:slicing=60",
        topology,
        (0, 4, 1e6),
        (0, 4, 1e6),
        (30_000, 8, 10),
        failures=failures,
        seed=1,
        horizon_s=40_000.0,
    )
    starts = [(row.time_s, row.job) for row in decisions(simulator) if row.kind == START]
    assert simulator.state.down_gpus == 4
    late = [(time_s, job) for time_s, job in starts if time_s >= 30_000]
    assert len(late) > 100
    assert {job for _, job in late} == {0, 1}
    assert set(np.diff([time_s for time_s, _ in late]).round(6)) == {60.0}
    assert all(a != b for (_, a), (_, b) in pairwise(late))


def round_robin(gpus, slice_s, arrival_s, duration_s):
    """Ends of jobs of one GPU: a queue, slices that end together, the one that ran longest first makes way."""
    n, now, turn = len(arrival_s), 0.0, math.inf
    left, since, finish = list(duration_s), {}, [math.inf] * n
    queue, came = [], 0
    while math.inf in finish:
        now = min(
            [since[job] + left[job] for job in since] + [turn] + ([arrival_s[came]] if came < n else []),
        )
        for job in [job for job in since if since[job] + left[job] <= now + 1e-9]:
            finish[job] = now
            del since[job]
        while came < n and arrival_s[came] <= now:
            queue.append(came)
            came += 1
        stopped = []
        for job in list(queue):
            if len(since) == gpus and turn <= now:
                out = min((other for other in since if since[other] < now), key=lambda i: (since[i], -i), default=None)
                if out is not None:
                    left[out] -= now - since.pop(out)
                    stopped.append(out)
            if len(since) < gpus:
                since[job] = now
                queue.remove(job)
        queue += sorted(stopped)
        if not queue or not since:
            turn = math.inf
        elif turn <= now or turn == math.inf:
            turn = now + slice_s
    return finish


@pytest.mark.parametrize("seed", range(12))
def test_jobs_of_one_gpu_go_round_as_in_plain_python(seed):
    rng = np.random.default_rng(seed)
    gpus, jobs = int(rng.integers(1, 5)), 25
    arrival_s = np.sort(rng.uniform(0, 2500 / gpus, jobs)).tolist()
    duration_s = rng.exponential(150, jobs).tolist()
    rows = [(a, 1, d) for a, d in zip(arrival_s, duration_s, strict=True)]
    found = ends("gandiva:slicing=37", f"flat:machines=1,gpus_per_machine={gpus}", *rows)
    assert found == pytest.approx(round_robin(gpus, 37.0, arrival_s, duration_s), rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_no_job_waits_longer_than_a_slice_for_each_job(seed):
    """Gangs of 1 to 32 GPUs on 4 machines of 8 in 2 racks: the n-th that waits runs within n slices."""
    rng = np.random.default_rng(seed)
    jobs, slice_s = 20, 50.0
    rows = [
        (float(a), int(g), float(d))
        for a, g, d in zip(
            np.sort(rng.uniform(0, 500, jobs)),
            rng.choice([1, 1, 2, 4, 8, 16, 32], jobs),
            rng.exponential(300, jobs),
            strict=True,
        )
    ]
    simulator = laid("gandiva:slicing=50", "dally:racks=2,machines=2", *rows, seed=seed)
    waits_since = {job: row[0] for job, row in enumerate(rows)}
    longest = 0.0
    for row in decisions(simulator):
        if row.kind == START:
            longest = max(longest, row.time_s - waits_since.pop(row.job))
        elif row.kind == PREEMPT:
            waits_since[row.job] = row.time_s
    assert simulator.done
    assert slice_s < longest <= jobs * slice_s


def test_slices_change_nothing_while_no_job_waits():
    """Large gangs on random GPUs that move to racks with room, at a light load: the same decisions, to the last."""
    moves = seen = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        rows = [
            (float(a), int(g), float(d))
            for a, g, d in zip(
                np.sort(rng.uniform(0, 3000, 12)), rng.choice([1, 4, 9, 12], 12), rng.exponential(400, 12), strict=True
            )
        ]
        plain = laid("gandiva", "dally:racks=4,machines=2", *rows, seed=seed)
        expected = list(decisions(plain))
        if plain.jobs()["first_start_s"].tolist() != [row[0] for row in rows]:
            continue
        seen += 1
        moves += sum(row.kind == MIGRATE for row in expected)
        assert list(decisions(laid("gandiva:slicing=5", "dally:racks=4,machines=2", *rows, seed=seed))) == expected
    assert seen >= 5 and moves >= 5


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("gandiva:slicing=-1", "slicing = -1"),
        ("gandiva:slicing=1e-9", "0.001"),
        ("gandiva:slicing=60,lease=60", "without leases"),
        ("gandiva:slicing=60,round=60", "rounds"),
        ("gandiva:slicing=60,packing=on", "packing"),
        ("gandiva:slicing=60,preemption_cost=40/60", "slicing = 60: expected more than preemption_cost = 40/60"),
    ],
)
def test_slices_stand_alone(word, said):
    with pytest.raises(InputError, match=said):
        policies.make(word)


def test_slices_need_the_order_of_turns():
    with pytest.raises(InputError, match="order with slicing = 'fifo'"):
        Rule("fifo", slicing=60.0)
