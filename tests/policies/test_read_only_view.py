"""A policy reads the view and changes nothing: neither the simulator behind it nor what its arrays hold."""

from __future__ import annotations

import ast

import numpy as np
import pytest

from clustergym import policies
from clustergym.policies.own import UserPolicy
from clustergym.policies.planning import PlanningPolicy
from clustergym.simulator.base.decisions import Advance, Start
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.groups.group_config import GroupTerms
from clustergym.simulator.groups.group_simulator import GroupSimulator
from clustergym.simulator.rules.rule import Rule
from clustergym.simulator.workloads import Workload, open_workload
from clustergym.tests.support.paths import ROOT

POLICIES = sorted((ROOT / "policies").rglob("*.py"))
BEHIND = ("simulator", "_simulator", "simulator_behind")  # ways to the simulator of a view,
CHANGES = ("use", "install")  # and to another rule
ARRAYS = ("queue", "running", "free_gpus", "free_by_machine", "free_by_rack", "load", "free_memory")


def words_of(node: ast.AST) -> set[str]:
    """The attributes and the imported names below a node."""
    found = {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}
    return found | {alias.name for one in ast.walk(node) if isinstance(one, ast.ImportFrom) for alias in one.names}


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: "/".join(path.parts[-2:]))
def test_no_policy_reaches_through_the_view(path):
    assert words_of(ast.parse(path.read_text())).isdisjoint((*BEHIND, *CHANGES))


def on_gpus() -> Simulator:
    """Jobs run and wait."""
    simulator = Simulator("dally:racks=2,machines=2")
    simulator.reset(open_workload("poisson:jobs=30,load=3"), 0)
    for _ in range(10):
        for decision in simulator.asked(policies.make("fifo")):
            simulator.apply(decision)
        simulator.advance()
    return simulator


@pytest.mark.parametrize("name", ARRAYS)
def test_a_policy_that_writes_to_an_array_of_the_view_gets_the_error_of_numpy(name):
    class Writer:
        def decide(self, view):
            if (array := getattr(view, name)).size:
                array[0] = 0
            return Advance()

    with pytest.raises(ValueError, match="read-only"):
        Simulator.run(on_gpus(), Writer())


def test_the_record_of_a_view_is_the_present_and_read_only():
    simulator = on_gpus()
    view = simulator.view
    record = view.record
    with pytest.raises(ValueError, match="read-only"):
        record["status"][0] = 0
    with pytest.raises(ValueError, match="read-only"):
        record["now_s"] = 0.0
    before = view.now_s
    simulator.run(policies.make("fifo"))
    assert before < view.now_s == float(view.record["now_s"]) == float(record["now_s"])


def test_an_empty_queue_can_be_permuted():
    """numpy shuffles an empty array where it is."""
    simulator = Simulator("flat:machines=2")
    simulator.reset(open_workload("poisson:jobs=1"), 0)
    simulator.run(policies.make("fifo"))
    assert np.random.default_rng(0).permutation(simulator.view.queue).tolist() == []


def test_a_view_of_groups_is_read_only_too():
    simulator = GroupSimulator("harmony:machines=16")
    simulator.reset(open_workload("harmony-like:jobs=3"), 0)
    with pytest.raises(ValueError, match="read-only"):
        simulator.view.queue[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        simulator.view.record["goal"][0] = 1


def test_a_view_does_not_hand_its_simulator_on():
    with pytest.raises(AttributeError, match="simulator"):
        _ = Simulator("flat:machines=2").view.simulator


class Slow:
    """Starts the first job that waits, on the first GPUs that are free, once a minute."""

    clock = Rule("fifo", round=60.0)

    def __init__(self):
        self.seen = []

    def decide(self, view):
        self.seen.append(view.now_s)
        jobs = [job for job in view.queue.tolist() if view.gpus(job) <= len(view.free_gpus)]
        return Start(jobs[0], view.free_gpus[: view.gpus(jobs[0])].tolist()) if jobs else Advance()


@pytest.mark.parametrize("wrapped", [False, True])
def test_running_a_policy_installs_its_clock(wrapped):
    """All but the first instant, to which the simulator ran before it knew its policy, are whole minutes."""
    simulator, policy = Simulator("flat:machines=4"), Slow()
    simulator.reset(open_workload("poisson:jobs=20,load=2"), 0)
    simulator.run(UserPolicy(policy) if wrapped else policy)
    assert simulator.rule == Slow.clock
    assert {round(now_s % 60.0, 6) % 60.0 for now_s in policy.seen[1:] if now_s > policy.seen[0]} == {0.0}


def test_the_clock_of_an_object_was_called_terms():
    class Old(Slow):
        clock = None
        terms = Slow.clock

    assert UserPolicy(Old()).clock == Slow.clock


def test_a_compiled_rule_decides_where_it_is_installed():
    simulator = on_gpus()
    dally = policies.make("dally")
    with pytest.raises(InputError, match="policy dally: the simulator plays by another rule"):
        dally.decide(simulator.view)
    assert simulator.rule.order == "fifo"
    simulator.ask(dally)
    assert simulator.rule == dally.rule


def test_what_a_policy_declares_depends_on_where_it_plays():
    gpus, groups = Simulator("flat:machines=2"), GroupSimulator("harmony:machines=16")
    greedy = policies.make("greedy")
    assert greedy.clock_for(gpus.view) == greedy.rule
    assert greedy.clock_for(groups.view) == GroupTerms()


class Twice(PlanningPolicy):
    """Plans to start the two last jobs of the queue, a GPU each, then the first."""

    def __init__(self):
        super().__init__("twice")
        self.calls = []

    def begin(self, view):
        self.calls.append("begin")

    def plan(self, view):
        self.calls.append("plan")
        return [Start(job, [gpu]) for job, gpu in zip(view.queue[-2:].tolist(), view.free_gpus.tolist(), strict=False)]

    def then(self, view):
        self.calls.append("then")
        return [Start(int(view.queue[0]), [int(view.free_gpus[0])])] if len(view.queue) else []


def three_jobs() -> Simulator:
    """At once, of one GPU each, on four GPUs."""
    simulator = Simulator("flat:machines=1,gpus_per_machine=4")
    simulator.reset(Workload.from_arrays("three", [0.0] * 3, [1] * 3, [100.0] * 3), 0)
    return simulator


def test_a_plan_is_handed_out_decision_by_decision_then_what_follows():
    """Asked again before anything is carried out it says the same."""
    simulator, policy = three_jobs(), Twice()
    assert simulator.ask(policy) == simulator.ask(policy) == Start(1, [0])
    found = []
    for decision in simulator.asked(policy):
        simulator.apply(decision)
        found.append(decision)
    assert found == [Start(1, [0]), Start(2, [1]), Start(0, [2])]
    assert policy.calls == ["begin", "plan", "then", "then"]


def test_a_planner_plans_anew_where_another_has_decided_too():
    simulator, policy = three_jobs(), Twice()
    assert simulator.ask(policy) == Start(1, [0])
    simulator.apply(Start(2, [3]))
    simulator.apply(Start(1, [2]))
    assert simulator.ask(policy) == Start(0, [0])
    assert policy.calls == ["begin", "plan", "plan"]
