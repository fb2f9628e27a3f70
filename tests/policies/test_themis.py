"""Themis: who wins an auction, leases, candidates; and what stands on its placements."""

from __future__ import annotations

import numpy as np
import pytest

from clustergym.policies import make
from clustergym.policies.equivalent_placements import locality
from clustergym.policies.themis import Themis, finish_time_fairness
from clustergym.simulator.base.decisions import Advance, Migrate, Preempt, Start
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.jobs.workload import Workload
from clustergym.simulator.workloads import open_workload


def played(simulator, policy):
    """(seconds, decision) of every decision of a run to its end."""
    log = []
    while not simulator.ended:
        while not isinstance(decision := simulator.ask(policy), Advance):
            simulator.apply(decision)
            log.append((simulator.view.now_s, decision))
        simulator.advance()
    return log


def two_gpus(arrival_s, gpus, duration_s):
    simulator = Simulator("flat:machines=1,gpus_per_machine=2")
    simulator.reset(Workload.from_arrays("jobs", np.array(arrival_s), np.array(gpus), np.array(duration_s)))
    return simulator


def test_the_job_that_is_farthest_from_fair_wins_when_a_lease_ends():
    """At 600 s: rho of job 0 is (600 + 1400) / (2000 x 11/6) = .55, of job 1 (500 + 1000) / (1000 x 2) = .75.

    At 1200 s .68 against .75: job 1 goes on.
    """
    simulator = two_gpus([0.0, 100.0], [2, 2], [2000.0, 1000.0])
    assert played(simulator, Themis()) == [
        (0.0, Start(0, (0, 1))),
        (600.0, Preempt(0)),
        (600.0, Start(1, (0, 1))),
        (1600.0, Start(0, (0, 1))),
    ]
    assert simulator.jobs()["finish_s"].tolist() == [3000.0, 1600.0]


def test_finish_time_fairness():
    simulator = two_gpus([0.0, 100.0], [2, 2], [2000.0, 1000.0])
    policy = Themis()
    simulator.apply(simulator.ask(policy))
    assert finish_time_fairness(simulator.view, [0]).tolist() == [1.0]
    simulator.advance()
    assert finish_time_fairness(simulator.view, [0, 1]).tolist() == [1.0, 0.5]
    while simulator.view.now_s < 600.0:
        simulator.advance()
    assert finish_time_fairness(simulator.view, [0, 1]) == pytest.approx([2000 / (2000 * 11 / 6), 0.75])


def test_gangs_are_whole_and_others_pass():
    """Job 0 holds one of two GPUs: job 1, which asks both, waits for its lease to end; job 2 passes it."""
    simulator = two_gpus([0.0, 1.0, 2.0], [1, 2, 1], [1000.0, 100.0, 50.0])
    log = played(simulator, Themis())
    assert log[:2] == [(0.0, Start(0, (0,))), (2.0, Start(2, (1,)))]
    assert log[2:] == [(600.0, Preempt(0)), (600.0, Start(1, (0, 1))), (700.0, Start(0, (0,)))]


def test_leases_are_respected_and_gangs_whole():
    """Nobody is stopped or moved before its lease has ended, and everybody runs on what it asks."""
    simulator = Simulator("cassini-testbed")
    workload = open_workload("cassini-poisson:jobs=60,load=1.2", seed=3)
    simulator.reset(workload, 3)
    began: dict[int, float] = {}
    for now_s, decision in played(simulator, Themis()):
        if isinstance(decision, Preempt | Migrate):
            leases = (now_s - began[decision.job]) / 600.0
            assert leases == pytest.approx(round(leases)) and round(leases) >= 1
        if isinstance(decision, Start | Migrate):
            assert len(set(decision.gpus)) == workload.gpus[decision.job]
            began[decision.job] = now_s
    assert simulator.done


def busy(seed, jobs=40, load=1.0):
    """A simulator in the middle of a run, at a decision point with winners and choices."""
    simulator, policy = Simulator("cassini-testbed"), Themis()
    simulator.reset(open_workload(f"cassini-poisson:jobs={jobs},load={load}", seed=seed), seed)
    while True:
        plans = policy.candidates(simulator.view, 10)
        if len(plans) > 3 and simulator.view.now_s > 0:
            return simulator, plans
        while not isinstance(decision := simulator.ask(policy), Advance):
            simulator.apply(decision)
        simulator.advance()


@pytest.mark.parametrize("seed", range(4))
def test_candidates_have_the_same_winners_equally_close_together(seed):
    simulator, plans = busy(seed)
    view, topology = simulator.view, simulator.topology
    assert len({plan.placement for plan in plans}) == len(plans) <= 10
    leased = {j for j in view.running.tolist() if simulator.state.lease_end_s[j] > view.now_s}
    for plan in plans:
        assert list(plan.gangs) == list(plans[0].gangs)
        for job, gpus in plan.gangs.items():
            assert len(gpus) == view.gpus(job)
            assert locality(topology, gpus) == locality(topology, plans[0].gangs[job])
            assert job not in leased or sorted(gpus) == sorted(view.gpus_of(job))
        taken = [gpu for gpus in plan.gangs.values() for gpu in gpus]
        assert len(set(taken)) == len(taken)


def test_candidates_depend_on_the_view_alone():
    simulator, plans = busy(2)
    again = Themis().candidates(simulator.view, 10)
    assert [plan.gangs for plan in again] == [plan.gangs for plan in plans]
    assert [plan.gangs for plan in Themis().candidates(simulator.view, 3)] == [plan.gangs for plan in plans[:3]]


def test_the_same_seed_gives_the_same_run():
    logs = []
    for policy in (make("themis"), make("themis:lease=600"), make("themis:lease=300")):
        simulator = Simulator("cassini-testbed")
        simulator.reset(open_workload("cassini-poisson:jobs=40,load=1.2", seed=1), 1)
        logs.append(played(simulator, policy))
    assert logs[0] == logs[1] != logs[2]


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("themis:lease=0", "lease = 0: expected seconds > 0"),
        ("least-shared:candidates=0", "candidates = 0: expected a whole number of at least 1"),
        ("themis:leases=3", "did you mean 'lease'"),
    ],
)
def test_bad_parameters_are_one_sentence(word, said):
    with pytest.raises(InputError, match=said):
        make(word)
