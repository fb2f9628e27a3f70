"""How busy CPU and network of job groups are over time: by hand, against the metrics, in timelines and pictures."""

from __future__ import annotations

import numpy as np
import pytest

from clustergym.experiments.playing.evaluation import play
from clustergym.experiments.playing.group_timeline import group_timeline
from clustergym.experiments.playing.recording import Timeline, decisions
from clustergym.experiments.settings.evaluation_setting import Setting
from clustergym.simulator.base.decisions import Advance, AssignGroup, Preempt, SetMachines
from clustergym.simulator.events.initialise import Failures
from clustergym.simulator.groups.group_config import GroupTerms
from clustergym.tests.support.random_groups import group_simulator, ps_workload

NAIVE = GroupTerms("naive", False)


class OneGroup:
    """Every job is in one group of 8 machines from its arrival on."""

    def decide(self, view):
        if not len(view.queue):
            return Advance()
        job = int(view.queue[0])
        return AssignGroup(job, int(view.groups[0])) if len(view.groups) else AssignGroup(job, machines=8)


def seen(simulator, policy=None):
    """(time, CPU, network) from each decision point on, of a run until its end."""
    simulator.run(policy or OneGroup())
    use = simulator.meter.over_time()
    return [tuple(round(float(value), 9) for value in row) for row in zip(*use, strict=True)]


def areas(use):
    """Machines' share times seconds, of CPU and of network."""
    rows = np.array(use)
    return (rows[:-1, 1:] * np.diff(rows[:, 0])[:, None]).sum(axis=0)


def test_two_jobs_by_hand():
    """A (COMP 2 s, COMM 4 s) from 0 s, two iterations; B (COMP 1 s, COMM 1 s) from 5 s, one; on 8 of 16 machines.

    CPU: A 0-2, A 6-8, B 5-6. Network: A 2-6, B 6-7, A 8-12. Decision points: 0, 5, 7 (B has ended), the end 12.
    Until 5 s: CPU 2 of 5 s, network 3 (the COMM in progress); until 7: 2 of 2 (B's, and half of A's), 2 (1 and 1);
    until 12: 1 of 5 and 4: each half as much of all 16 machines.
    """
    workload = ps_workload([(16, 4), (8, 1)], [2, 1], gpus=8, arrivals=[0.0, 5.0])
    simulator = group_simulator(workload, 16)
    use = seen(simulator)
    assert use == [(0.0, 0.2, 0.3), (5.0, 0.5, 0.5), (7.0, 0.1, 0.4), (12.0, 0.0, 0.0)]
    metrics = simulator.metrics()
    assert areas(use) / 12.0 == pytest.approx((metrics["cpu_utilisation"], metrics["network_utilisation"]))


def test_jobs_that_share_resources_by_hand():
    """Two jobs of COMP 4 s and COMM 4 s, one from 0 s, one from 3 s; a loss of half: two COMPs move at 1/4 each.

    From 3 s on the first has 1 s of COMP left, which takes until 7: the CPU did 3 s until 3, and of the second 1 s
    until 7. Alone it has 3 s left, until 10. Network: the first 7-10 alone, 1 s left; at 10 the second's COMM begins:
    1/4 each until 14, then 3 s of the second alone, until 17.
    Decision points: 0, 3, 14 (the first has ended), 17. CPU: 3 of 3 s, then 5 of 11, then none; network: none, then
    3 + 1 + 1 of 11, then all.
    """
    workload = ps_workload([(32, 4), (32, 4)], 1, gpus=8, arrivals=[0.0, 3.0])
    simulator = group_simulator(workload, 8, terms=NAIVE, loss=0.5)
    shares = [(0.0, 1.0, 0.0), (3.0, 5 / 11, 5 / 11), (14.0, 0.0, 1.0), (17.0, 0.0, 0.0)]
    assert np.array(seen(simulator)) == pytest.approx(np.array(shares), abs=1e-8)


def test_a_secondary_comm_counts_for_what_it_moves():
    """Two jobs of COMP 0.5 s and COMM 4 s, busy = .8; looked at after 3 s, when a third comes, and at the horizon.

    The first COMM begins at .5 and has moved 2.5 s, the second at 1 beside it and has moved 2 x .25 s: .8 x 3 of 3 s.
    """
    workload = ps_workload([(4, 4), (4, 4), (4, 4)], 1, gpus=8, arrivals=[0.0, 0.0, 3.0])
    simulator = group_simulator(workload, 8, busy=0.8)
    assert seen(simulator)[0] == (0.0, round(1 / 3, 9), 0.8)


def test_work_that_is_lost_in_mid_subtask_was_not_done():
    """A COMP of 10 s is given up after 4, as another job comes, whose COMP takes 1 s and COMM 1 s; then it begins anew.

    When work is lost is not known: by 6 s no more than 1 s has been done, so no more than that can have been by 4 s.
    """

    class GiveUp:
        def decide(self, view):
            if view.now_s == 0.0 and len(view.queue):
                return AssignGroup(0, machines=8)
            if view.now_s == 4.0 and 0 in view.running:
                return Preempt(0)
            if view.now_s == 4.0 and 1 in view.queue:
                return AssignGroup(1, machines=8)
            return AssignGroup(0, machines=8) if view.now_s > 4.0 and len(view.queue) else Advance()

    simulator = group_simulator(ps_workload([(80, 2), (8, 1)], 1, gpus=8, arrivals=[0.0, 4.0]), 8)
    use = seen(simulator, GiveUp())
    assert use == [(0.0, 0.25, 0.0), (4.0, 0.0, 0.5), (6.0, round(10 / 12, 9), round(2 / 12, 9)), (18.0, 0.0, 0.0)]


@pytest.mark.parametrize("terms", [None, NAIVE])
def test_a_comm_is_on_the_machines_that_its_group_has_at_the_time(terms):
    """A COMM from 2 s to 6, on 8 machines until 4, then on 4 of them; another job comes at 4 and waits."""

    class Halve:
        def decide(self, view):
            if view.now_s == 4.0 and view.machines_of(int(view.groups[0])) == 8:
                return SetMachines(int(view.groups[0]), 4)
            if view.now_s == 4.0 or not len(view.queue):
                return Advance()
            return AssignGroup(int(view.queue[0]), machines=8)

    simulator = group_simulator(ps_workload([(16, 4), (8, 1)], 1, gpus=8, arrivals=[0.0, 4.0]), 8, terms=terms)
    assert seen(simulator, Halve()) == [(0.0, 0.5, 0.5), (4.0, 0.0, 0.5), (6.0, 0.5, 0.5), (8.0, 0.0, 0.0)]
    assert simulator.metrics()["network_utilisation"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("terms", "config", "failures"),
    [
        (None, {"comm": "split", "move_s": 7.0}, None),
        (None, {"busy": 0.7, "jitter": 0.2, "profile_iterations": 2}, None),
        (NAIVE, {"loss": 0.1}, None),
        (None, {"move_s": 3.0}, Failures(400.0, 20.0)),
    ],
)
def test_the_areas_are_the_metrics(terms, config, failures):
    """Over the makespan; between two decision points no machine is busier than all the time."""
    rng = np.random.default_rng(3)
    jobs = list(zip(rng.uniform(8, 80, 6), rng.uniform(1, 9, 6), strict=True))
    workload = ps_workload(jobs, rng.integers(3, 40, 6), gpus=8, arrivals=np.sort(rng.uniform(0, 300, 6)), epochs=2)
    simulator = group_simulator(workload, 10, terms=terms, failures=failures, **config)
    use = seen(simulator)
    metrics = simulator.metrics()
    whole = np.array([metrics["cpu_utilisation"], metrics["network_utilisation"]]) * metrics["makespan"]
    assert areas(use) == pytest.approx(whole, rel=1e-6)
    shares = np.array(use)[:, 1:]
    assert shares.min() >= 0.0
    assert shares.max() <= 0.8 + 1e-6  # of 10 machines 8


def test_a_run_that_is_cut_off_counts_what_has_ended():
    """As its metrics do: a COMP of 10 s at a horizon of 15 s, the second one in progress: 10 of 15 s."""
    simulator = group_simulator(ps_workload([(80, 1)], 5, gpus=8), 8, horizon_s=15.0)
    assert seen(simulator) == [(0.0, round(10 / 15, 9), round(1 / 15, 9)), (15.0, 0.0, 0.0)]
    assert simulator.metrics()["cpu_utilisation"] == pytest.approx(10 / 15)


def test_a_timeline_of_groups_knows_cpu_and_network():
    simulator = group_simulator(ps_workload([(16, 4), (8, 1)], [2, 1], gpus=8, arrivals=[0.0, 5.0]), 16)
    line = group_timeline(simulator, decisions(simulator, OneGroup()))
    cpu, network = line.in_use()
    assert (cpu.title, network.title) == ("CPU use", "network use")
    assert cpu.share.tolist() == pytest.approx([0.2, 0.5, 0.1, 0.0])
    assert network.share.tolist() == pytest.approx([0.3, 0.5, 0.4, 0.0])
    assert cpu.time_s.tolist() == [0.0, 5.0, 7.0, 12.0]


def test_a_timeline_of_gpus_knows_gpus_held():
    run = play(Setting.of("clustergym/Delay-v0", "flat:machines=2", "batch:jobs=5", "none"), "fifo", 0, record=True)
    assert isinstance(run.timeline, Timeline)
    (use,) = run.timeline.in_use()
    assert (use.title, use.label) == ("GPUs in use", "GPUs held by jobs")
    assert use.share.max() <= 1.0


def test_going_back_to_a_snapshot_forgets_what_came_later():
    simulator = group_simulator(ps_workload([(16, 4), (8, 1)], [2, 1], gpus=8, arrivals=[0.0, 5.0]), 16)
    once = simulator.snapshot()
    first = seen(simulator)
    simulator.restore(once)
    assert seen(simulator) == first
    simulator.reset(simulator.workload)
    assert simulator.meter.over_time().time_s.tolist() == [0.0]
