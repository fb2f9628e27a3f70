"""What holds after every decision and at the end, on random clusters, workloads, rules and decisions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustergym import policies
from clustergym.simulator.base.decisions import Advance, Hold, Migrate, Preempt, Start
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.events.initialise import Failures
from clustergym.simulator.rules.rule import ORDERS, PLACERS, Rule
from clustergym.simulator.workloads import Workload
from clustergym.tests.support.drawn import calm
from clustergym.tests.support.invariants import check_end
from clustergym.tests.support.invariants import check_gangs as check_record
from clustergym.tests.support.invariants import check_gpu_seconds as check_sums
from clustergym.tests.support.random_workloads import random_case

TOPOLOGIES = ("dally:racks=2,machines=2", "flat:machines=3,gpus_per_machine=4", "flat:machines=1,gpus_per_machine=7")


@st.composite
def runs(draw, orders=tuple(order for order in ORDERS if order != "logged"), placers=tuple(PLACERS)):
    """(simulator at its first decision, policy): 2 to 25 jobs, any rule, failures or not."""
    topology = draw(st.sampled_from(TOPOLOGIES))
    simulator = Simulator(
        topology,
        draw(st.sampled_from(["none", "penalty:default=1/1.2/1.5"])),
        failures=draw(st.sampled_from([None, Failures(600.0, 60.0, 50.0), Failures(3000.0, 300.0, 0.0)])),
    )
    order = draw(st.sampled_from(orders))
    rule = Rule(
        order,
        draw(st.sampled_from(["strict", "skip"])),
        draw(st.sampled_from(placers)),
        draw(st.sampled_from([(0.0,), (7.0,), (5.0, 11.0)])),
        draw(st.sampled_from([(), (50.0, 400.0)])) if order == "las" else (),
        draw(st.sampled_from([0.0, 1.0, 10.0])),
        draw(st.sampled_from([0.0, 0.0, 25.0])),
        draw(st.sampled_from([0.0, 0.0, 40.0])),
    )
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    n, total = draw(st.integers(2, 25)), simulator.topology.num_gpus
    gpus = np.minimum(rng.choice([1, 1, 2, 3, 4, 6, 8, total], n), total)
    workload = Workload.from_arrays(
        "random", np.sort(np.floor(rng.uniform(0, 300, n))), gpus, np.ceil(rng.lognormal(4, 1, n))
    )
    simulator.reset(workload, int(rng.integers(1000)))
    return simulator, policies.RulePolicy("any", rule)


@calm(150)
@given(runs())
def test_after_every_decision_of_a_rule_gpus_are_conserved_and_counters_exact(run):
    simulator, policy = run
    now_s = simulator.view.now_s
    while not simulator.ended:
        simulator.apply(simulator.ask(policy))
        check_record(simulator)
        assert simulator.view.now_s >= now_s
        now_s = simulator.view.now_s
    check_end(simulator)


@calm(150)
@given(runs())
def test_the_compiled_run_ends_as_the_decisions_one_by_one(run):
    simulator, policy = run
    kept, seed = simulator.workload, int(simulator.state.seed)
    stepped = repr(simulator.run(policy)), simulator.jobs()["finish_s"].tolist()
    again = Simulator(simulator.topology, simulator.network, rule=policy.rule, failures=simulator.config.failures)
    again.reset(kept, seed)
    assert (repr(again.run()), again.jobs()["finish_s"].tolist()) == stepped
    check_end(again)


def any_decision(view, rng):
    """A random legal decision of any kind, or Advance."""
    queue, held, running = view.queue.tolist(), view.held.tolist(), view.running.tolist()
    kind = rng.choice(["start", "start", "start", "preempt", "migrate", "hold", "advance"])
    if kind == "start" and (queue or held):
        job = int(rng.choice([*queue, *held]))
        free = view.free_gpus
        if view.gpus(job) <= len(free):
            return Start(job, rng.choice(free, view.gpus(job), replace=False).tolist())
    s = view._simulator.state
    running = [job for job in running if s.lease_s == 0 or not s.started_s[job] < s.now_s < s.lease_end_s[job]]
    if kind == "preempt" and running and rng.random() < 0.3:
        return Preempt(int(rng.choice(running)))
    if kind == "migrate" and running:
        job = int(rng.choice(running))
        gpus = rng.choice([*view.free_gpus, *view.gpus_of(job)], view.gpus(job), replace=False).tolist()
        if set(gpus) != set(view.gpus_of(job)):
            return Migrate(job, gpus)
    if kind == "hold" and queue and running:
        until_s = None if rng.random() < 0.5 else view.now_s + float(rng.integers(1, 200))
        return Hold(int(rng.choice(queue)), until_s)
    if not running and (queue or held):
        for job in [*queue, *held]:  # never let everything stop
            if view.gpus(job) <= len(view.free_gpus):
                return Start(job, view.free_gpus[: view.gpus(job)].tolist())
    return Advance()


@calm(150)
@given(runs(), st.integers(0, 10_000))
def test_after_any_decisions_gpus_are_conserved_and_the_work_is_done_once(run, seed):
    """Under the rule's costs, rounds and leases; for at most 400 decisions, then the rule takes over."""
    simulator, policy = run
    simulator.use(policy.rule)
    rng = np.random.default_rng(seed)
    for _ in range(400):
        if simulator.ended:
            break
        simulator.apply(any_decision(simulator.view, rng))
        check_record(simulator)
        check_sums(simulator)
    for job in simulator.view.held.tolist() if not simulator.ended else []:
        if simulator.view.gpus(job) <= len(simulator.view.free_gpus):
            simulator.apply(Start(job, simulator.view.free_gpus[: simulator.view.gpus(job)].tolist()))
    simulator.run()
    check_record(simulator)
    check_end(simulator)


@calm(40)
@given(runs(orders=("fifo", "sjf"), placers=("count",)))
def test_strict_starts_in_order(run):
    """Of two jobs that wait at one instant, the first in the order starts first (no preemption, leases, failures)."""
    simulator, policy = run
    rule = Rule(policy.rule.order, "strict", "count", round=policy.rule.round)
    plain = Simulator(simulator.topology, rule=rule)
    plain.reset(simulator.workload)
    plain.run()
    table, workload = plain.jobs(), plain.workload
    key = table["arrival_s"] if rule.order == "fifo" else workload.duration_s
    for i, j in itertools.combinations(range(len(workload)), 2):
        first, second = (i, j) if (key[i], i) < (key[j], j) else (j, i)
        if table["arrival_s"][first] <= table["first_start_s"][second]:
            assert table["first_start_s"][first] <= table["first_start_s"][second]


@calm(40)
@given(runs(orders=("fifo", "sjf", "srtf", "srsf", "las"), placers=("count",)))
def test_no_gpu_idles_while_a_gang_that_fits_waits(run):
    """With `skip`, by count, without rounds: when the pass is over, no waiting gang fits the free GPUs."""
    simulator, policy = run
    rule = Rule(policy.rule.order, "skip", "count", policy.rule.preemption_cost, policy.rule.thresholds)
    player = policies.RulePolicy("skip", rule)
    while not simulator.ended:
        decision = simulator.ask(player)
        if isinstance(decision, Advance):
            view = simulator.view
            assert min((view.gpus(job) for job in view.queue.tolist()), default=math.inf) > len(view.free_gpus)
        simulator.apply(decision)


@calm(40)
@given(runs(orders=("srtf", "srsf"), placers=("count",)))
def test_under_srtf_and_srsf_no_job_waits_that_could_replace_those_behind_it(run):
    """After a pass by count: the free GPUs and those of running jobs behind it in the order do not suffice for any
    waiting job.
    """
    simulator, policy = run
    player = policies.RulePolicy("skip", Rule(policy.rule.order, "skip", "count", policy.rule.preemption_cost))
    while not simulator.ended:
        decision = simulator.ask(player)
        if isinstance(decision, Advance):
            view = simulator.view
            weight = view.gpus if policy.rule.order == "srsf" else lambda job: 1

            def key(job, view=view, weight=weight):
                return view.remaining_s(job) * weight(job)

            for job in view.queue.tolist():
                behind = sum(view.gpus(other) for other in view.running.tolist() if key(other) > key(job) * (1 + 1e-9))
                assert len(view.free_gpus) + behind < view.gpus(job)
        simulator.apply(decision)


@calm(40)
@given(runs(orders=("las",), placers=("count",)))
def test_levels_only_rise_and_follow_the_attained_service(run):
    """With thresholds and quantum 0: the level of a job counts the thresholds that its GPU-seconds have reached."""
    simulator, policy = run
    thresholds = (50.0, 400.0)
    player = policies.RulePolicy("las", Rule("las", "skip", "count", policy.rule.preemption_cost, thresholds, 0.0))
    simulator.use(player.rule)
    seen = np.zeros(len(simulator.workload), np.int64)
    while not simulator.ended:
        simulator.apply(simulator.ask(player))
        s, view = simulator.state, simulator.view
        levels = s.level[: len(seen)].copy()
        assert (levels >= seen).all()
        seen = levels
        for job in view.running.tolist():
            service = view.attained_gpu_s(job)
            passed = sum(service >= limit * (1 + 1e-9) for limit in thresholds)
            reached = sum(service >= limit * (1 - 1e-9) for limit in thresholds)
            assert passed <= levels[job] <= reached


@pytest.mark.parametrize("seed", range(30))
def test_invariants_on_the_random_workloads_of_the_reference(seed):
    """Up to 512 GPUs, decision by decision, counters recounted at every tenth."""
    case = random_case(1000 + seed)
    simulator = Simulator(case.topology, rule=case.rule)
    simulator.reset(case.workload)
    policy = policies.RulePolicy("any", case.rule)
    for count in itertools.count():
        if simulator.ended:
            break
        simulator.apply(simulator.ask(policy))
        if count % 10 == 0:
            check_record(simulator)
            check_sums(simulator)
    check_end(simulator)
