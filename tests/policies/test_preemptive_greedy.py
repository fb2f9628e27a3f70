"""Greedy with `preempt=on`: which jobs a waiting job stops and moves, by hand; and what holds for every run."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustergym import policies
from clustergym.policies.greedy import room
from clustergym.policies.loop import loop_calls
from clustergym.simulator.base.decisions import Advance, Migrate, Preempt, Start
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.base.tiers import MACHINE, NETWORK, RACK
from clustergym.simulator.compiler.jit import entry
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.rules.rule import Rule
from clustergym.simulator.workloads import Workload, open_workload
from clustergym.tests.support import random_room
from clustergym.tests.support.drawn import calm
from clustergym.tests.support.paths import ROOT, SUPPORT

ONE = "flat:machines=1,gpus_per_machine=4"
TWO = "flat:machines=2,gpus_per_machine=4"
RACKS = "dally:racks=2,machines=2"  # machines of 8 GPUs
SLOWER = "penalty:default=1/2/4"  # machine, rack, network
LONG = 1e6
SOON = 20.0


def at_arrival(topology, running, *waiting, word="greedy:preempt=on", network=SLOWER, **options):
    """The simulator at 10 s: `running` jobs, (gang, seconds left), begun at 0; `waiting` ones, (GPUs, seconds)."""
    arrival_s = [0.0] * len(running) + [10.0] * len(waiting)
    gpus = [len(held) for held, _ in running] + [count for count, _ in waiting]
    duration_s = [left_s + 10.0 for _, left_s in running] + [seconds for _, seconds in waiting]
    rule = policies.make(word).rule if isinstance(word, str) else word
    simulator = Simulator(topology, network, rule=rule, **options)
    simulator.reset(Workload.from_arrays("by hand", arrival_s, gpus, duration_s))
    for job, (held, _) in enumerate(running):
        simulator.apply(Start(job, tuple(held)))
    simulator.advance()
    assert simulator.view.now_s == 10.0
    return simulator


def decided(*arguments, **options):
    """The pass at 10 s."""
    return at_arrival(*arguments, **options).preview_pass()


def plan_of(simulator):
    """What `find_room` has left in the record."""
    s = simulator.state
    found = [(int(s.victim[i]), bool(s.victim_moves[i])) for i in range(s.victims)]
    assert s.victims == s.victims_stopped + s.victims_moved
    return found, float(s.victims_left_s), float(s.room_cost_s), int(s.room_tier), int(s.room_area)


@pytest.mark.parametrize(("seconds", "stops"), [(824, True), (825, False)])
def test_a_job_is_stopped_if_it_has_1_2_times_as_long_left(seconds, stops):
    """990 s left; 1.2 x 825 = 990 is not less."""
    found = decided(ONE, [(range(4), 990.0)], (4, seconds))
    assert found == ([Preempt(0), Start(1, (0, 1, 2, 3))] if stops else [])


@pytest.mark.parametrize(("seconds", "stops"), [(812, True), (813, False)])
def test_plus_the_cost_of_its_new_start(seconds, stops):
    """990 s x 2 > 1.2 m x 2 + 30 s up to m = 812.5."""
    found = decided(ONE, [(range(4), 990.0)], (4, seconds), word="greedy:preempt=on,preemption_cost=30")
    assert found == ([Preempt(0), Start(1, (0, 1, 2, 3))] if stops else [])


@pytest.mark.parametrize(("seconds", "stops"), [(49, True), (50, False)])
def test_times_left_are_weighed_by_gpus(seconds, stops):
    """A gang of 4 for a job of 1: 30 s x 2 > 1.2 m x 1 up to m = 50; with exponent 0 up to 25, with 1 up to 100."""
    for exponent, times in ((0.5, 1.0), (0, 0.5), (1, 2.0)):
        word = f"greedy:preempt=on,exponent={exponent}"
        found = decided(ONE, [(range(4), 30.0)], (1, times * seconds), word=word)
        assert found == ([Preempt(0), Start(1, (0,))] if stops else [])


def test_a_stopped_job_pays_for_its_new_start_and_nothing_else():
    """Stopped at 10 with 990 s left, it starts at 110 and needs 30 s to restore: it ends at 1,130."""
    simulator = at_arrival(ONE, [(range(4), 990.0)], (4, 100), word="greedy:preempt=on,preemption_cost=30")
    metrics = simulator.run()
    assert simulator.jobs()["finish_s"].tolist() == [1130.0, 110.0]
    assert (metrics["preemptions"], metrics["migrations"]) == (1, 0)


def test_a_job_that_fits_elsewhere_is_moved_however_long_it_runs():
    """A machine is free but for one GPU, the other has one free GPU: the gang of 4 would take both, twice as slow.

    In 1,000 s the other machine is free: 20,000 s now are more than 0.9 x 11,000. So it would wait, and looks for room.
    """
    assert decided(TWO, [([0], SOON), (range(4, 7), 1000.0)], (4, 10_000)) == [
        Migrate(0, (7,)),
        Start(2, (0, 1, 2, 3)),
    ]


MIX = [([0], LONG), (range(1, 4), LONG), (range(4, 7), 50.0)]  # the last has too little left to be stopped


def test_some_are_moved_and_some_are_stopped():
    """30 s for the GPU that job 0 holds, (100 + 30) / 3 for each of job 1's. Stops come first."""
    simulator = at_arrival(TWO, MIX, (4, 100), word="greedy:preempt=on,preemption_cost=30")
    assert simulator.preview_pass() == [Preempt(1), Migrate(0, (7,)), Start(3, (0, 1, 2, 3))]
    assert loop_calls.find_room(simulator.records, 0, 3)
    assert plan_of(simulator) == ([(0, True), (1, False)], 2 * LONG, 160.0, MACHINE, 0)


def test_a_job_not_needed_after_all_is_spared():
    """A move of job 0 costs nothing, so it is taken first; with the 3 GPUs of job 1 it is not needed."""
    simulator = at_arrival(TWO, MIX, (3, 100))
    assert simulator.preview_pass() == [Preempt(1), Start(3, (1, 2, 3))]
    assert loop_calls.find_room(simulator.records, 0, 3)
    assert plan_of(simulator) == ([(1, False)], LONG, 100.0, MACHINE, 0)


def test_a_mover_that_finds_the_room_claimed_is_stopped_if_it_may_be():
    """One GPU is free outside; jobs 0 and 1 could both move there. The first does; the other has 200 or 300 s left.

    1.2 x 100 s x 2 = 240.
    """
    running = [([0], LONG), ([1], 300.0), (range(4, 7), 5.0)]
    assert decided(TWO, running, (4, 100)) == [Preempt(1), Migrate(0, (7,)), Start(3, (0, 1, 2, 3))]
    running[1] = ([1], 200.0)
    assert decided(TWO, running, (4, 100)) == []


def test_the_cheaper_area_wins_and_of_equal_ones_the_first():
    """One stop costs as much in either machine; two cost more."""
    two, one = [(range(2), LONG), (range(2, 4), LONG)], [(range(4, 8), LONG)]
    assert decided(TWO, [*two, *one], (4, 100))[0] == Preempt(2)
    assert decided(TWO, [(range(4), LONG), (range(4, 8), 2 * LONG)], (4, 100))[0] == Preempt(0)


def test_a_gang_that_no_machine_holds_looks_in_racks():
    """14 GPUs of rack 0 are free; the job on the others fits into rack 1. In rack 1 two would have to go.

    With margin 0 the gang would rather wait than take GPUs of both racks.
    """
    running = [([8, 9], LONG), (range(16, 24), LONG), (range(24, 30), LONG)]
    simulator = at_arrival(RACKS, running, (16, 100), word="greedy:preempt=on,margin=0,preemption_cost=10/40")
    assert simulator.preview_pass() == [Migrate(0, (30, 31)), Start(3, tuple(range(16)))]
    assert loop_calls.find_room(simulator.records, 0, 3)
    assert plan_of(simulator) == ([(0, True)], LONG, 10.0, RACK, 0)


def test_a_gang_that_no_rack_holds_looks_in_the_whole_cluster():
    """8 GPUs are free, so the gang of 24 needs the 16 of job 0: sqrt(16) L > 1.2 x 100 x sqrt(24) from L = 147 on.

    Its 100 s are those on both racks, as no better place holds it.
    """
    running = [(range(16), 146.0), (range(16, 24), LONG)]
    assert decided(RACKS, running, (24, 100)) == []
    running[0] = (range(16), 148.0)
    simulator = at_arrival(RACKS, running, (24, 100))
    assert simulator.preview_pass() == [Preempt(0), Start(2, (*range(16), *range(24, 32)))]
    assert loop_calls.find_room(simulator.records, 0, 2)
    assert plan_of(simulator) == ([(0, False)], 148.0, 100.0, NETWORK, 0)


def test_gpus_freed_outside_the_area_count_for_no_job():
    """Job 0 has 2 GPUs in each machine: it frees 2 of machine 0, so the gang of 3 takes job 1 there, which frees 2 too.

    With costs of (100 s) / 2 each, both are needed.
    """
    running = [([0, 1, 4, 5], LONG), ([2, 3], LONG), ([6, 7], 5.0)]
    assert decided(TWO, running, (3, 100))[:2] == [Preempt(0), Preempt(1)]


def test_at_one_instant_no_job_that_started_is_stopped():
    """Job 2 is shorter, and stops job 0. Job 1 would stop no other."""
    found = decided(ONE, [(range(4), LONG)], (4, 1000.0), (4, 10.0))
    assert found == [Preempt(0), Start(2, (0, 1, 2, 3))]


def test_a_stopped_job_stops_none_before_the_next_instant():
    """Job 0 makes way; job 1 has far more left than it. At 12 another arrives, which is worth no stop."""
    workload = Workload.from_arrays("by hand", [0, 0, 10, 12], [4, 4, 4, 1], [1000, LONG, 100, LONG])
    simulator = Simulator(TWO, SLOWER, rule=policies.make("greedy:preempt=on").rule)
    simulator.reset(workload)
    simulator.schedule()
    simulator.advance()
    assert simulator.preview_pass() == [Preempt(0), Start(2, (0, 1, 2, 3))]
    simulator.schedule()
    simulator.advance()
    assert simulator.view.now_s == 12.0
    assert simulator.preview_pass() == [Preempt(1), Start(0, (4, 5, 6, 7))]


def test_the_first_in_the_order_of_time_left_times_weight_is_asked_first():
    """Time left x sqrt(GPUs): 100 x 1 stands before 60 x 2. By time left alone it would not."""
    found = decided(ONE, [(range(4), LONG)], (4, 60.0), (1, 100.0))
    assert found == [Preempt(0), Start(2, (0,))]
    found = decided(ONE, [(range(4), LONG)], (4, 60.0), (1, 100.0), word="greedy:preempt=on,exponent=0")
    assert found == [Preempt(0), Start(1, (0, 1, 2, 3))]


@entry
def make_room_for(states, row, job):
    """Modify the record in `row`: make room for a job that finds some."""
    room.find_room(states[row], job)
    room.make_room(states[row], job)


def test_under_any_rule_one_may_ask_for_room_and_make_it():
    """First come first served, theta and exponent as by default: the mix from above."""
    simulator = at_arrival(TWO, MIX, (4, 100), word=Rule("fifo", placer="tier", preemption_cost=(30.0,)))
    assert simulator.preview_pass() == []
    assert loop_calls.find_room(simulator.records, 0, 3)
    make_room_for(simulator.records, 0, 3)
    s = simulator.state
    assert s.tier[0] <= MACHINE and s.preempted[:4].tolist() == [0, 1, 0, 0] and s.migrated[:4].tolist() == [1, 0, 0, 0]
    assert s.starts[3] == 1 and s.free_gpus == 0


def test_finding_room_changes_nothing():
    simulator = at_arrival(TWO, MIX, (4, 100), word="greedy:preempt=on,preemption_cost=30")
    whole = simulator.preview_pass()
    before = json.dumps(
        [simulator.metrics(), simulator.state.machine_free[:2].tolist(), int(simulator.state.decisions)]
    )
    for job in (3, 3):
        assert loop_calls.find_room(simulator.records, 0, job)
    after = json.dumps([simulator.metrics(), simulator.state.machine_free[:2].tolist(), int(simulator.state.decisions)])
    assert after == before and simulator.preview_pass() == whole


def test_a_job_that_finds_room_needs_no_others():
    simulator = at_arrival(TWO, [(range(4), LONG)], (4, 100))
    assert not loop_calls.find_room(simulator.records, 0, 1) and simulator.state.victims == 0


@pytest.mark.parametrize("exponent", [0.0, 0.5])
def test_stopping_no_job_at_an_infinite_theta_leaves_moves(exponent):
    simulator = at_arrival(TWO, MIX, (4, 100), word=f"greedy:preempt=on,theta=inf,exponent={exponent}")
    assert simulator.preview_pass() == []
    running = [([0], LONG), (range(4, 7), 1000.0)]
    assert len(decided(TWO, running, (4, 10_000), word="greedy:preempt=on,theta=inf")) == 2


def test_without_preempt_greedy_orders_by_time_left_alone():
    assert policies.make("greedy").rule == policies.make("greedy:preempt=off").rule
    assert policies.make("greedy").rule.order == "srtf" and not policies.make("greedy").rule.preempt


class Forgetful(policies.RulePolicy):
    """Plans the pass anew after every job that has started where others made room."""

    made_room = False

    def decide(self, view):
        decision = super().decide(view)
        if isinstance(decision, Start) and self.made_room:
            view._simulator.apply(decision)
            view._simulator.restore(view._simulator.snapshot())
            self.made_room = False
            return self.decide(view)
        self.made_room = isinstance(decision, Preempt | Migrate)
        return decision


@pytest.mark.parametrize("kind", [policies.RulePolicy, Forgetful])
def test_one_decision_at_a_time_is_the_compiled_run_and_so_is_a_pass_planned_anew(kind):
    """On 10 workloads of Delay-v0, by default and with ill-fitting gangs."""
    for seed in range(10):
        simulator = Simulator("dally:racks=2,machines=4", "penalty:table=chronus")
        policy = kind("any", policies.make("greedy:preempt=on,preemption_cost=30").rule)
        ends = []
        for player in (None, policy):
            simulator.use(policy.rule)
            simulator.reset(open_workload("poisson:jobs=64,backlog=24,load=1.3", seed=seed, cluster_gpus=64), seed)
            metrics = simulator.run(player)
            ends.append(repr([metrics, simulator.jobs()["finish_s"].tolist()]))
        assert ends[0] == ends[1] and metrics["preemptions"] > 0


@calm(60)
@given(st.integers(0, 100_000))
def test_at_every_instant_gpus_are_conserved_and_no_job_is_stopped_or_started_twice(seed):
    """And every job ends; one that was stopped may start at the same instant, but no job is stopped for another."""
    simulator = random_room.simulator_for(seed)
    total, policy = simulator.topology.num_gpus, policies.RulePolicy("any", simulator.rule)
    started, left, now_s = set(), set(), simulator.view.now_s
    while not simulator.ended:
        decision = simulator.ask(policy)
        simulator.apply(decision)
        if isinstance(decision, Advance):
            started, left = set(), set()
            assert simulator.view.now_s >= now_s
            now_s = simulator.view.now_s
        elif isinstance(decision, Start):
            assert decision.job not in started
            started.add(decision.job)
        else:
            assert decision.job not in started | left
            left.add(decision.job)
        s = simulator.state
        held = sum(int(s.gpus[s.runner[i]]) for i in range(s.running))
        assert held + s.free_gpus == total and sorted(set(s.gpu_job[:total]) - {-1}) == sorted(s.runner[: s.running])
    assert simulator.done
    ends = random_room.outcome(simulator)
    assert ends == random_room.play(seed)


def test_interpreted_kernels_give_the_same_bit_for_bit():
    quiet = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA_") or key.endswith("_DIR")}
    command = [sys.executable, "-P", str(SUPPORT / "random_room.py"), "12"]
    run = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        env=quiet | {"NUMBA_DISABLE_JIT": "1"},
        cwd=ROOT,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    here = [random_room.play(seed) for seed in range(12)]
    assert json.loads(run.stdout) == json.loads(json.dumps(here))
    assert sum(outcome["metrics"]["preemptions"] for outcome in here) > 50
    assert sum(outcome["metrics"]["migrations"] for outcome in here) > 5


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("greedy:theta=2", "policy greedy: theta weighs jobs with preempt=on"),
        ("greedy:exponent=0.5", "policy greedy: exponent weighs jobs with preempt=on"),
        ("greedy:preempt=on,theta=-1", "theta = -1: expected a number from 0 to inf"),
        ("greedy:preempt=on,exponent=9", "exponent = 9: expected a number from 0 to 8"),
        ("greedy:preempt=yes", "preempt"),
    ],
)
def test_what_does_not_go_is_said(word, said):
    with pytest.raises(InputError, match=said):
        policies.make(word)


@pytest.mark.parametrize(
    "options",
    [{"order": "srtf", "margin": 0.9}, {"order": "weighted"}, {"order": "weighted", "margin": 0.9, "head": "strict"}],
)
def test_a_rule_that_makes_room_has_an_order_a_margin_and_no_strict_head(options):
    with pytest.raises(InputError, match="preempt"):
        Rule(placer="tier", preempt=True, **options)


@pytest.mark.parametrize(
    ("topology", "options", "said"),
    [
        (TWO, {"semantics": "artist-sim"}, "with auctions"),
        (TWO, {"sharing": "on"}, "where GPUs are shared"),
        ("cassini-testbed", {"network": "contention"}, "speeds depend on links"),
    ],
)
def test_it_does_not_play_where_speeds_or_gpus_depend_on_others(topology, options, said):
    with pytest.raises(InputError, match=said):
        Simulator(topology, rule=policies.make("greedy:preempt=on").rule, **options)
    simulator = Simulator(topology, **options)
    with pytest.raises(InputError, match=said):
        simulator.use(policies.make("greedy:preempt=on").rule)
    assert simulator.rule.order == "fifo"
