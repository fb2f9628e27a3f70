"""The window in the order `classes`, the best few of every size of gang; and running jobs in the order asked."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from clustergym.simulator.workloads import Workload


def shown(jobs, slots):
    """The waiting jobs in the window when `jobs`, (gpus, seconds), have come at 1 to 64 GPUs that job 0 holds."""
    gpus, seconds = zip(*jobs, strict=True)
    workload = Workload.from_arrays("w", [0.0] + [1.0] * len(jobs), [64, *gpus], [9e9, *seconds])
    env = gymnasium.make(
        "clustergym/Delay-v0",
        topology="dally:racks=2,machines=4",
        network="none",
        workload=workload,
        slots=slots,
        order="classes",
    ).unwrapped
    env.reset(seed=0)
    env.step((3, 0, 0))
    window = env.interface.window
    assert (env.view.now_s, env.view.running.tolist()) == (1.0, [0])
    return window.waiting_job[: int(window.waiting_shown)].tolist()


def test_of_more_jobs_than_slots_the_shortest_of_every_size_come_first():
    """Job i + 1 is the i-th. Five slots: the shortest of 1, 2, up to 4 and up to 8 GPUs, then the second of 1.

    Of up to 4 GPUs job 3 (4 GPUs, 50 s) is shorter than 5 (3 GPUs, 60 s).
    """
    jobs = [(1, 30), (1, 10), (4, 50), (1, 20), (3, 60), (8, 5), (2, 99)]
    assert shown(jobs, 5) == [2, 7, 3, 6, 4]


def test_where_all_fit_all_are_shown():
    jobs = [(1, 30), (1, 10), (4, 50)]
    assert sorted(shown(jobs, 8)) == [1, 2, 3]


def test_every_slot_is_used_and_no_job_is_shown_twice():
    """Random queues and windows, by brute force: the k-th shortest of every kind before any kind's (k + 1)-th."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        count = int(rng.integers(6, 40))
        jobs = [(int(2 ** rng.integers(0, 5)), float(rng.permutation(10_000)[0] + 1)) for _ in range(count)]
        slots = int(rng.integers(1, count))
        kinds: dict[int, list[tuple[float, int]]] = {}
        for place, (gpus, seconds) in enumerate(jobs, 1):
            kinds.setdefault(gpus, []).append((seconds, place))
        turns = [(turn, gpus, job) for gpus in kinds for turn, (_, job) in enumerate(sorted(kinds[gpus]))]
        assert shown(jobs, slots) == [job for _, _, job in sorted(turns)][:slots]


@pytest.mark.parametrize(("order", "first"), [("arrival", [0, 1]), ("priority", [2, 3]), ("worst", [3, 0])])
def test_running_jobs_in_the_order_that_is_asked(order, first):
    """Four jobs run on two machines of 8, a rack each, slowed down by 1/1/3 across racks; two slots.

    0 and 1 hold 6 GPUs of a machine each, 2 a GPU, and 3 the three that are left, across racks. Run times 100, 200,
    4,000 and 900 s: left x sqrt(GPUs) are 245, 490, 4,000 and 1,559. Job 4 waits.
    """
    workload = Workload.from_arrays("w", [0.0] * 5, [6, 6, 1, 3, 16], [100, 200, 4000, 900, 5])
    env = gymnasium.make(
        "clustergym/Delay-v0",
        topology="dally:racks=2,machines=1",
        network="penalty:default=1/1/3",
        workload=workload,
        slots=5,
        running_slots=2,
        running_order=order,
        skip_idle=False,
    ).unwrapped
    env.reset(seed=0)
    for place in (0, 0, 0, 2):
        env.step((1 + place, 0, 0))
    env.interface.look()
    assert env.interface.window.running_job[:2].tolist() == first
