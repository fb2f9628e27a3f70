"""The simulator plays compiled rules by a loop that lies above it, with the policies: engine/rule_loop.py."""

from __future__ import annotations

import importlib

import pytest

from clustergym import Simulator, Workload
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.engine import rule_loop
from clustergym.simulator.rules.rule import Rule


@pytest.fixture
def place(monkeypatch):
    """Where the loop is; forgotten afterwards."""
    place: list[str] = []
    monkeypatch.setattr(rule_loop, "_place", place)
    rule_loop.rule_loop.cache_clear()
    yield place
    rule_loop.rule_loop.cache_clear()


def test_the_loop_is_imported_at_the_first_use(place):
    rule_loop.install_loop("clustergym.tests.support.paths")
    assert place == ["clustergym.tests.support.paths"]
    assert rule_loop.rule_loop() is rule_loop.rule_loop() is importlib.import_module("clustergym.tests.support.paths")


def test_a_simulator_without_a_loop_says_so_in_a_sentence(place):
    with pytest.raises(InputError, match="import clustergym"):
        rule_loop.rule_loop()


def test_a_waiting_job_is_woken_when_its_timers_run_out_and_at_no_other_instant():
    """Two racks of a machine of 3 GPUs, 2 of each held: one of 2 GPUs that comes at 10 s takes both racks at 90 s.

    Its timers are 50 s for a machine and 80 s for a rack: there is a decision at 60 s, when it would take a rack, and
    at 90 s, when it takes anything.
    """
    workload = Workload.from_arrays("three", [0.0, 0.0, 10.0], [2, 2, 2], [1000.0, 1000.0, 100.0])
    rule = Rule("fifo", placer="tier", timers=(50.0, 80.0))
    simulator = Simulator({"racks": 2, "machines": 1, "gpus_per_slot": 3}, rule=rule)
    simulator.reset(workload)
    looks = []
    while not simulator.ended:
        looks.append(float(simulator.state.now_s))
        simulator.schedule()
        simulator.advance()
    assert looks == [0.0, 10.0, 60.0, 90.0]
    assert simulator.jobs()["first_start_s"].tolist() == [0.0, 0.0, 90.0]
