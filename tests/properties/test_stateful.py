"""Every simulator as a state machine: decisions, passes, time and snapshots in any order, and all holds after each.

Options (failures, sharing, contention, regions, groups, estimates, elastic jobs, semantics, horizons) are those that
worlds.py draws from the seed; what holds is in invariants.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from clustergym.tests.support import invariants
from clustergym.tests.support.worlds import KINDS, make_world

SLOW = ("elastic", "regions")
SEEDS, CHANCE = st.integers(0, 1_000_000), st.integers(0, 2**32 - 1)


class Machine(RuleBasedStateMachine):
    """A random simulator of one kind."""

    kind = ""

    def __init__(self) -> None:
        super().__init__()
        self.world: Any = None
        self.kept: Any = None
        self.now_s = 0.0

    @initialize(seed=SEEDS)
    def begin(self, seed: int) -> None:
        self.world = make_world(self.kind, seed)
        self.now_s = float(self.world.simulator.state.now_s)

    def goes_on(self) -> bool:
        return self.world is not None and not self.world.ended

    def can_go_back(self) -> bool:
        """Elastic jobs remember what they saw outside the record; environments' snapshots hold that too."""
        return self.kept is not None and self.kind != "elastic"

    @precondition(lambda self: self.world is not None and self.world.ended)
    @rule(seed=SEEDS)
    def begin_again(self, seed: int) -> None:
        self.teardown()
        self.kept = None
        self.begin(seed)

    @precondition(goes_on)
    @rule(which=st.integers(0, 4), chance=CHANCE)
    def decide(self, which: int, chance: int) -> None:
        """A decision of the kind's verbs; a refused one leaves every bit as it was."""
        verbs = list(self.world.verbs)
        self.world.do(verbs[which % len(verbs)], np.random.default_rng(chance))

    @precondition(goes_on)
    @rule(chances=st.lists(CHANCE, min_size=2, max_size=5))
    def decide_more_at_once(self, chances: list[int]) -> None:
        """Starts above all, so that there is something to stop."""
        for place, chance in enumerate(chances):
            self.world.do(list(self.world.verbs)[place % 2], np.random.default_rng(chance))

    @precondition(goes_on)
    @rule(points=st.integers(1, 4))
    def let_time_pass(self, points: int) -> None:
        for _ in range(points):
            if self.goes_on():
                self.world.advance()
        assert self.world.simulator.state.now_s >= self.now_s
        self.now_s = float(self.world.simulator.state.now_s)

    @precondition(goes_on)
    @rule()
    def let_the_rule_make_a_pass(self) -> None:
        self.world.let_rule()

    @precondition(goes_on)
    @rule()
    def keep(self) -> None:
        self.kept = self.world.simulator.snapshot(), self.world.simulator.metrics()

    @precondition(can_go_back)
    @rule()
    def go_back(self) -> None:
        snapshot, metrics = self.kept
        self.world.simulator.restore(snapshot)
        assert repr(self.world.simulator.metrics()) == repr(metrics)
        self.now_s = float(self.world.simulator.state.now_s)

    @invariant()
    def all_holds(self) -> None:
        if self.world is not None:
            invariants.look(self.world.simulator)

    def teardown(self) -> None:
        """Whatever was done, every job comes to the end, with all work done once."""
        if self.world is not None:
            self.world.finish()
            (invariants.look_back if self.world.simulator.done else invariants.look)(self.world.simulator)


def play(kind: str, examples: int, steps: int) -> None:
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    machine = type(f"Machine{kind.title()}", (Machine,), {"kind": kind})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=True,
            suppress_health_check=slow,
        ),
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_decided_all_holds(kind):
    play(kind, 4 if kind in SLOW else 15, 30)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_decided_all_holds_for_long(kind):
    play(kind, 30 if kind in SLOW else 300, 60)
