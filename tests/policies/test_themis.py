"""Themis: winners of auctions, how many workers and which, leases, candidates; and what stands on its placements."""

from __future__ import annotations

import numpy as np
import pytest

from clustergym.policies import make
from clustergym.policies.equivalent_placements import locality
from clustergym.policies.themis import Themis, finish_time_fairness
from clustergym.simulator.base.decisions import Advance, Migrate, Preempt, Resize, Start
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.jobs.workload import Workload
from clustergym.simulator.profiles.cassini_models import phases_of
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


def fixed():
    """Themis of whole gangs, candidates as close together as its own."""
    return Themis(workers="fixed", equal="locality")


def two_gpus(arrival_s, gpus, duration_s):
    simulator = Simulator("flat:machines=1,gpus_per_machine=2")
    simulator.reset(Workload.from_arrays("jobs", np.array(arrival_s), np.array(gpus), np.array(duration_s)))
    return simulator


def test_the_job_that_is_farthest_from_fair_wins_when_a_lease_ends():
    """At 600 s: rho of job 0 is (600 + 1400) / (2000 x 11/6) = .55, of job 1 (500 + 1000) / (1000 x 2) = .75.

    At 1200 s .68 against .75: job 1 goes on.
    """
    simulator = two_gpus([0.0, 100.0], [2, 2], [2000.0, 1000.0])
    assert played(simulator, fixed()) == [
        (0.0, Start(0, (0, 1))),
        (600.0, Preempt(0)),
        (600.0, Start(1, (0, 1))),
        (1600.0, Start(0, (0, 1))),
    ]
    assert simulator.jobs()["finish_s"].tolist() == [3000.0, 1600.0]


def test_finish_time_fairness():
    simulator = two_gpus([0.0, 100.0], [2, 2], [2000.0, 1000.0])
    policy = fixed()
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
    log = played(simulator, fixed())
    assert log[:2] == [(0.0, Start(0, (0,))), (2.0, Start(2, (1,)))]
    assert log[2:] == [(600.0, Preempt(0)), (600.0, Start(1, (0, 1))), (700.0, Start(0, (0,)))]


def test_leases_are_respected_and_gangs_whole():
    """No job is stopped or moved before its lease has ended, and all run on what they ask."""
    simulator = Simulator("cassini-testbed")
    workload = open_workload("cassini-poisson:jobs=60,load=1.2", seed=3)
    simulator.reset(workload, 3)
    began: dict[int, float] = {}
    for now_s, decision in played(simulator, fixed()):
        if isinstance(decision, Preempt | Migrate):
            leases = (now_s - began[decision.job]) / 600.0
            assert leases == pytest.approx(round(leases)) and round(leases) >= 1
        if isinstance(decision, Start | Migrate):
            assert len(set(decision.gpus)) == workload.gpus[decision.job]
            began[decision.job] = now_s
    assert simulator.done


def busy(seed, jobs=40, load=1.0):
    """A simulator in the middle of a run, at a decision point with winners and choices."""
    simulator, policy = Simulator("cassini-testbed"), fixed()
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
    again = fixed().candidates(simulator.view, 10)
    assert [plan.gangs for plan in again] == [plan.gangs for plan in plans]
    assert [plan.gangs for plan in fixed().candidates(simulator.view, 3)] == [plan.gangs for plan in plans[:3]]


def test_the_same_seed_gives_the_same_run():
    logs = []
    words = "themis:workers=fixed"
    for policy in (make(words), make(f"{words},lease=600"), make(f"{words},lease=300")):
        simulator = Simulator("cassini-testbed")
        simulator.reset(open_workload("cassini-poisson:jobs=40,load=1.2", seed=1), 1)
        logs.append(played(simulator, policy))
    assert logs[0] == logs[1] != logs[2]


def vggs(*gpus, arrival_s=None, model="VGG16", iterations=1000.0):
    """VGG16 of so many workers, 1,000 iterations each, on 24 servers of one GPU in racks of four."""
    n = len(gpus)
    iterations = np.full(n, iterations)
    models = [model] * n if isinstance(model, str) else model
    seconds = [phases_of(name, count, 1024).iteration_s for name, count in zip(models, gpus, strict=True)]
    more = {"iterations": iterations, "model": models, "batch_size": [1024 * one for one in gpus]}
    arrival_s = np.zeros(n) if arrival_s is None else np.array(arrival_s)
    duration_s = iterations * np.array(seconds)
    workload = Workload.from_arrays("jobs", arrival_s, gpus, duration_s, iteration_s=seconds, **more)
    simulator = Simulator("cassini-testbed", "contention:workers=elastic")
    simulator.reset(workload)
    return simulator


def decided(simulator, policy):
    """The decisions of this instant, carried out."""
    found = []
    while not isinstance(decision := simulator.ask(policy), Advance):
        simulator.apply(decision)
        found.append(decision)
    return found


def test_an_arrival_takes_one_worker_from_each_of_two_incumbents():
    """24 GPUs, two jobs of 12; one of 2 comes (paper cassini, Sec. 4.2). 11/12 is the share of both, and none moves.

    Each gives up the worker of a rack of which it has fewest; all racks are held whole, so that is its last.
    """
    simulator, policy = vggs(12, 12, 2, arrival_s=[0.0, 0.0, 50.0]), Themis()
    assert decided(simulator, policy) == [Start(0, range(12)), Start(1, range(12, 24))]
    simulator.advance()
    assert simulator.view.now_s == 50.0 and simulator.view.lease_end_s(0) == 600.0
    assert decided(simulator, policy) == [Resize(0, range(11)), Resize(1, range(12, 23)), Start(2, (11, 23))]


def test_workers_that_leave_are_shared_out_by_those_that_stay():
    """Three jobs of 4 on 24 GPUs have 8 each, two racks; when the third ends two have 12: 8 and a rack more."""
    simulator, policy = vggs(4, 4, 4, iterations=[1000.0, 1000.0, 10.0]), Themis()
    decided(simulator, policy)
    held = [simulator.view.gpus_of(job) for job in range(3)]
    assert held == [[*range(8)], [*range(8, 16)], [*range(16, 24)]]
    simulator.advance()
    assert decided(simulator, policy) == [
        Resize(0, (*range(8), *range(16, 20))),
        Resize(1, (*range(8, 16), *range(20, 24))),
    ]


def test_split_models_have_what_they_ask():
    simulator, policy = vggs(5, 12, 12, model=["DLRM", "VGG16", "VGG16"]), Themis()
    decided(simulator, policy)
    assert sorted(len(simulator.view.gpus_of(job)) for job in range(3)) == [5, 9, 10]
    assert len(simulator.view.gpus_of(0)) == 5


def test_at_the_end_of_its_lease_a_job_bids_anew():
    """25 jobs of one GPU, 24 GPUs: the waiting one is farther from fair at 600 s than those that ran."""
    simulator, policy = vggs(*[1] * 25), Themis()
    assert len(decided(simulator, policy)) == 24
    simulator.advance()
    while simulator.view.now_s < 600.0 and simulator.view.running.tolist() == list(range(24)):
        assert not decided(simulator, policy)
        simulator.advance()
    assert simulator.view.now_s < 600.0 or any(one == Start(24, one.gpus) for one in decided(simulator, policy)[-1:])


@pytest.mark.parametrize("equal", ["fairness", "locality"])
@pytest.mark.parametrize(("seed", "load"), [(0, 0.9), (1, 1.5), (2, 3.0)])
def test_only_changed_workers_move(seed, load, equal):
    """On random workloads: all GPUs in use while a job can use them; a job that keeps its number stays where it is;
    one that loses workers keeps others of its own; split models are whole; candidates have the same counts."""
    simulator, policy = Simulator("cassini-testbed", "contention:workers=elastic"), Themis(equal=equal)
    simulator.reset(open_workload(f"cassini-poisson:jobs=40,load={load}", seed=seed), seed)
    view, topology, resized, several = simulator.view, simulator.topology, 0, 0
    while not simulator.ended:
        before = {job: set(view.gpus_of(job)) for job in view.running.tolist()}
        plans = policy.candidates(view, 10)
        several += len(plans) > 1
        assert len({plan.placement for plan in plans}) == len(plans)
        for plan in plans:
            assert {job: len(gpus) for job, gpus in plan.gangs.items()} == {
                job: len(gpus) for job, gpus in plans[0].gangs.items()
            }
            taken = [gpu for gpus in plan.gangs.values() for gpu in gpus]
            assert len(taken) == len(set(taken)) <= 24
            for job, gpus in plan.gangs.items():
                if equal == "locality":
                    assert locality(topology, gpus) == locality(topology, plans[0].gangs[job])
                if job in before and view.lease_end_s(job) > view.now_s:
                    assert before[job] <= set(gpus) or set(gpus) <= before[job]
        resized += sum(isinstance(one, Resize) for one in decided(simulator, policy))
        after = {job: set(view.gpus_of(job)) for job in view.running.tolist()}
        for job, gpus in after.items():
            assert view.may_resize(job) or len(gpus) == view.asked_gpus(job)
            assert len(gpus) <= 12
            assert job not in before or before[job] <= gpus or gpus <= before[job]
        idle = 24 - sum(map(len, after.values()))
        assert not idle or all(len(gpus) == 12 for job, gpus in after.items() if view.may_resize(job))
        simulator.advance()
    assert simulator.done and resized > 20 and several > 20


def test_jobs_must_be_able_to_change():
    simulator = Simulator("cassini-testbed", "contention")
    simulator.reset(open_workload("cassini-poisson:jobs=4", seed=0))
    said = "expected network contention:workers=elastic, or the policy with workers=fixed"
    with pytest.raises(InputError, match=said):
        simulator.ask(make("themis"))


def test_why_says_how_many_and_how_far_from_fair():
    simulator, policy = vggs(12, 12, 2, arrival_s=[0.0, 0.0, 50.0]), Themis()
    decided(simulator, policy)
    simulator.advance()
    rho = finish_time_fairness(simulator.view, [0])[0]
    said = policy.why(simulator.view, simulator.ask(policy))
    assert said == f"its fair number of workers is 11 now, where it asks 12; T_shared / T_ideal {rho:.3g}"


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("themis:lease=0", "lease = 0: expected seconds > 0"),
        ("least-shared:candidates=0", "candidates = 0: expected a whole number of at least 1"),
        ("themis:leases=3", "did you mean 'lease'"),
        ("themis:workers=some", "policy themis: workers 'some'"),
        ("ideal:workers=some", "workers"),
        ("themis+cassini:equal=rank", "equal"),
        ("themis:most=0", "most = 0: expected a whole number of at least 1"),
    ],
)
def test_bad_parameters_are_one_sentence(word, said):
    with pytest.raises(InputError, match=said):
        make(word)
