"""Gandiva by hand: machines dedicated to gang sizes, random GPUs for large gangs, moves to better tiers, its order."""

from __future__ import annotations

import numpy as np
import pytest

from clustergym import policies
from clustergym.experiments.playing.recording import decisions
from clustergym.simulator.base.codes import START
from clustergym.simulator.base.decisions import Preempt, Start
from clustergym.simulator.base.tiers import NETWORK, RACK, SLOT
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.sharing.sharing_model import Sharing
from clustergym.simulator.workloads import Workload

# 2 racks x 2 machines x 8 GPUs: machine m has GPUs 8m to 8m + 7; machines 0 and 2 have the same place in their racks.
DALLY = "dally:racks=2,machines=2"
LONG = 1e6
SLOWER = "penalty:default=1/2/4"


def laid(word, topology, *rows, network="none", seed=0):
    simulator = Simulator(topology, network, rule=policies.make(word).rule)
    simulator.reset(Workload.from_arrays("by hand", *map(list, zip(*rows, strict=True))), seed)
    return simulator


def gangs(word, topology, *rows, seed=0):
    """GPUs of the first start of each job, sorted."""
    found = {}
    for row in decisions(laid(word, topology, *rows, seed=seed)):
        if row.kind == START:
            found.setdefault(row.job, sorted(row.gpus))
    return [found[job] for job in range(len(rows))]


def machines_of(word, topology, *rows, seed=0):
    return [sorted({gpu // 8 for gpu in gang}) for gang in gangs(word, topology, *rows, seed=seed)]


def test_the_first_gang_of_a_size_dedicates_a_place_in_all_racks():
    """4 GPUs: machine 0, so places 0 (machines 0, 2) are for gangs of 4. 2 GPUs: machine 1, so 1 and 3 are for these.

    Then each size takes the most free of its own: 2 GPUs machine 3 (8 free, 1 has 6), 4 GPUs machine 2; the third gang
    of 2 machine 1 (6 each: the first).
    """
    sizes = (4, 2, 2, 4, 2)
    assert machines_of("gandiva", DALLY, *[(i, n, LONG) for i, n in enumerate(sizes)]) == [[0], [1], [3], [2], [1]]


def test_a_size_without_a_machine_takes_the_most_free_one():
    """As above after four gangs, places 0 have 4 free each, places 1 have 6: a gang of 1 goes to machine 1."""
    rows = [(i, n, LONG) for i, n in enumerate((4, 2, 2, 4, 1))]
    assert machines_of("gandiva", DALLY, *rows)[-1] == [1]


def test_the_order_of_the_machines_decides_ties():
    """All equally free: the first in the scan of a random order of machines, which the seed of the topology draws."""
    for order in range(4):
        topology = f"{DALLY},machine_order={order}"
        expected = int(np.random.default_rng(order).permutation(4)[0])
        assert machines_of("gandiva", topology, (0, 4, LONG)) == [[expected]]


def test_a_gang_that_no_machine_has_room_for_waits():
    """Every machine has 4 free; 6 GPUs wait until the first is freed, at 100."""
    rows = [(0, 4, 100.0), (0, 4, LONG), (0, 4, LONG), (0, 4, LONG), (1, 6, 10)]
    simulator = laid("gandiva", "dally:racks=4,machines=1", *rows)
    simulator.run()
    assert simulator.jobs()["first_start_s"][-1] == 100.0


def test_a_gang_larger_than_a_machine_takes_random_gpus_at_once():
    """12 of 32 GPUs: another set for other seeds, the same for the same; over 60 seeds all GPUs about as often.

    720 draws of 32: 22.5 each, standard deviation about 3.7 without replacement.
    """
    drawn = [gangs("gandiva", DALLY, (0, 12, LONG), seed=seed)[0] for seed in range(60)]
    assert gangs("gandiva", DALLY, (0, 12, LONG), seed=7)[0] == drawn[7]
    assert len({tuple(gang) for gang in drawn}) == 60
    assert all(len(set(gang)) == 12 for gang in drawn)
    assert 8 <= np.bincount(np.ravel(drawn), minlength=32).min() <= np.bincount(np.ravel(drawn)).max() <= 38


def test_a_spread_job_moves_to_the_most_free_machine():
    """Job 0 on machines 0 and 1, twice slower; at 150 a job of 1 GPU comes. 75 s done; 3 s to restore, 925 s left.

    Job 1 is offered GPUs after job 0, which takes GPUs 16 and 17 of machine 2 (8 free; the first of two).
    """
    simulator = laid("gandiva:preemption_cost=3", DALLY, (0, 2, 1000), (150, 1, 10), network=SLOWER)
    simulator.apply(Start(0, [0, 8]))
    simulator.advance()
    assert simulator.view.tier_of(0) == RACK
    simulator.schedule()
    assert simulator.view.gpus_of(0) == [16, 17] and simulator.view.tier_of(0) == SLOT
    metrics = simulator.run()
    assert simulator.jobs()["finish_s"][0] == 150 + 3 + 925
    assert metrics["migrations"] == 1


def test_a_large_gang_moves_from_the_network_to_a_rack_that_has_room_beside_it():
    """Racks of 24 GPUs; 12 GPUs, 6 in each. 18 are free in rack 0. 2000 s, at 150 75 done, the rest in a rack."""
    topology = "dally:racks=2,machines=3"
    simulator = laid("gandiva", topology, (0, 12, 2000), (150, 1, 10), network=SLOWER)
    simulator.apply(Start(0, [*range(6), *range(24, 30)]))
    simulator.advance()
    assert simulator.view.tier_of(0) == NETWORK
    simulator.run()
    assert simulator.jobs()["finish_s"][0] == 150 + (2000 - 75)
    assert simulator.jobs()["tier"][0] == RACK


def test_its_own_gpus_do_not_count_for_a_move():
    """Racks of 16; 12 GPUs, 6 in each: 10 are free in either, which with 6 of its own would do."""
    simulator = laid("gandiva", DALLY, (0, 12, 2000), (150, 1, 10), network=SLOWER)
    simulator.apply(Start(0, [*range(6), *range(16, 22)]))
    metrics = simulator.run()
    assert metrics["migrations"] == 0
    assert simulator.jobs()["finish_s"][0] == 4000.0


def test_a_job_inside_a_rack_that_no_machine_holds_stays():
    simulator = laid("gandiva", DALLY, (0, 12, 1000), (150, 1, 10), network=SLOWER)
    simulator.apply(Start(0, [*range(12)]))
    assert simulator.run()["migrations"] == 0


def test_last_first_started_is_served_first_and_never_started_last():
    """One gang at a time. 0 ran from 0, 1 from 10; at 20 comes 2, never started. So 1 (until 110), then 0, then 2."""
    simulator = laid("gandiva", "flat:machines=1,gpus_per_machine=4", (0, 4, 100), (10, 4, 100), (20, 4, 100))
    simulator.apply(Start(0, [0, 1, 2, 3]))
    simulator.advance()
    simulator.apply(Preempt(0))
    simulator.apply(Start(1, [0, 1, 2, 3]))
    simulator.advance()
    simulator.apply(Preempt(1))
    simulator.run()
    assert simulator.jobs()["finish_s"].tolist() == [200.0, 110.0, 300.0]


def test_a_lease_holds_a_job_on_its_gpus():
    """As the move above, with a lease of 400 s: it moves when that ends, with 200 of 1000 s done."""
    simulator = laid("gandiva:lease=400", DALLY, (0, 2, 1000), (150, 1, 10), network=SLOWER)
    simulator.apply(Start(0, [0, 8]))
    simulator.run()
    assert simulator.jobs()["finish_s"][0] == 400 + 800


@pytest.mark.parametrize("fallback", ["most-free", "last"])
def test_the_authors_defect_spreads_a_gang_that_a_machine_holds(fallback):
    """2 machines. 2 GPUs take machine 0 for their size, 6 machine 1, 5 the rest of machine 0 but 1 GPU. Then 2 more.

    Their own machine has no room. `most-free`: machine 1, which has 2 free. `last`: machine 1, the last that has any,
    is asked for room, and then 2 random ones of the 3 free GPUs are taken: over 40 seeds both machines, and one.
    """
    rows = [(i, n, LONG) for i, n in enumerate((2, 6, 5, 2))]
    found = {
        tuple(machines_of(f"gandiva:fallback={fallback}", "dally:racks=1,machines=2", *rows, seed=seed)[3])
        for seed in range(40)
    }
    assert found == ({(1,)} if fallback == "most-free" else {(1,), (0, 1)})


def test_what_a_move_leaves_is_offered_at_once_in_order():
    """2 machines of 4; 0 on one GPU of each. Order: job 1 (stopped; refuses, 3 free each), job 0, job 2 (never ran).

    Job 0 moves to machine 0, so machine 1 is free: job 1, which comes first, is asked again, and takes it.
    """
    simulator = laid("gandiva", "flat:machines=2,gpus_per_machine=4", (0, 2, LONG), (50, 4, 100), (100, 4, 100))
    simulator.apply(Start(0, [0, 4]))
    simulator.advance()
    simulator.apply(Start(1, [1, 2, 5, 6]))
    simulator.advance()
    simulator.apply(Preempt(1))
    simulator.schedule()
    assert simulator.view.running.tolist() == [0, 1]


ONE_MACHINE = "flat:machines=1,gpus_per_machine="


def shared(gpus, xi, *rows, starts=(), columns=None, **options):
    """A run of `gandiva:packing=on` on one machine, two jobs a GPU; `starts`: (job, GPU) at the first instant.

    `columns`: more ones of the workload, by name.
    """
    sharing = Sharing(interference=f"constant:xi={xi}", **options)
    word = "gandiva:packing=on"
    simulator = Simulator(f"{ONE_MACHINE}{gpus}", rule=policies.make(word).rule, sharing=sharing)
    simulator.reset(Workload.from_arrays("by hand", *map(list, zip(*rows, strict=True)), **(columns or {})))
    for job, gpu in starts:
        simulator.apply(Start(job, [gpu]))
    simulator.run()
    return simulator


def test_two_jobs_that_get_more_done_together_are_packed():
    """xi 1.25: 1.6 times the work of one. 100 s each, both at the end at 125 s."""
    assert shared(1, 1.25, (0, 1, 100), (0, 1, 100)).jobs()["finish_s"].tolist() == [125.0, 125.0]


def test_two_jobs_that_do_not_take_turns():
    """xi 3 side by side; in turns each has half its speed: 200 s, not 300."""
    assert shared(1, 3, (0, 1, 100), (0, 1, 100)).jobs()["finish_s"].tolist() == [200.0, 200.0]


def ends_of_two_at_1_3(yolov3, cifar10, memory_gb):
    """One GPU, xi 1.3, two jobs of 10,000 s, with their samples in one iteration."""
    columns = {"model": ["yolov3", "cifar10"], "batch_size": [yolov3, cifar10]}
    rows = [(0, 1, 10_000)] * 2
    return shared(1, 1.3, *rows, columns=columns, memory_gb=memory_gb).jobs()["finish_s"].tolist()


def test_jobs_whose_whole_batches_do_not_fit_together_run_one_after_the_other():
    """Gandiva accumulates no gradients: on 11 GiB the second waits. Where both fit, each takes 1.3 times as long."""
    assert ends_of_two_at_1_3(8, 1024, memory_gb=11) == [10_000.0, 20_000.0]
    assert ends_of_two_at_1_3(8, 1024, memory_gb=None) == pytest.approx([13_000.0, 13_000.0])
    assert ends_of_two_at_1_3(1, 32, memory_gb=11) == pytest.approx([13_000.0, 13_000.0])


def test_only_jobs_of_one_gpu_share():
    """2 GPUs. The gang of 2 waits for both, though they hold jobs of one GPU; a job of one GPU waits for the gang."""
    assert shared(2, 1.25, (0, 1, 100), (0, 1, 60), (1, 2, 50)).jobs()["first_start_s"].tolist() == [0.0, 0.0, 100.0]
    assert shared(2, 1.25, (0, 2, 100), (1, 1, 50)).jobs()["first_start_s"].tolist() == [0.0, 100.0]


def test_a_packed_job_moves_to_a_gpu_that_no_job_waits_for():
    """Jobs 1 and 2 share GPU 0 at xi 1.25 until GPU 1 is free, at 100: 80 s are done, 920 are left. Job 1 moves there.

    Job 2 took GPU 0, the lowest of two that gain as much.
    """
    simulator = shared(2, 1.25, (0, 1, 100), (0, 1, 1000), (0, 1, 1000), starts=((0, 1), (1, 0)))
    assert simulator.jobs()["finish_s"].tolist() == [100.0, 1020.0, 1020.0]
    assert simulator.metrics()["migrations"] == 1
    assert simulator.view.gpus_of(1) == []


def test_packing_changes_nothing_where_jobs_have_gpus_to_themselves():
    rows = [(i, n, 100 + i) for i, n in enumerate((1, 2, 1, 4, 1, 1, 3))]
    ends = [laid(word, f"{ONE_MACHINE}4", *rows).run()["jct_mean"] for word in ("gandiva", "gandiva:packing=on")]
    assert ends[0] == ends[1]


@pytest.mark.parametrize("seed", range(4))
def test_packing_by_decisions_equals_the_run(seed):
    rng = np.random.default_rng(seed)
    rows = [
        (float(a), int(g), float(d))
        for a, g, d in zip(
            np.sort(rng.uniform(0, 1500, 30)), rng.choice([1, 1, 1, 2], 30), rng.uniform(10, 300, 30), strict=True
        )
    ]
    run = shared(4, 1.4, *rows)
    stepped = shared(4, 1.4, (0, 1, 1))
    stepped.reset(run.workload)
    while not stepped.ended:
        stepped.apply(stepped.next_decision())
    assert stepped.jobs()["finish_s"].tolist() == run.jobs()["finish_s"].tolist()
    assert run.state.shared_integral > 0.0 and run.metrics()["migrations"] > 0
