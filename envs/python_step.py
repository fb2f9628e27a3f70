"""Environments that make decisions in Python, by a `PythonStepInterface`; clock and reward are kernels as elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Protocol

import numpy as np

from ..simulator.base.codes import ASK, DECIDE, ENDLESS, FINISHED, HORIZON, STALLED
from ..simulator.base.decisions import Decision
from ..simulator.base.errors import InputError
from ..simulator.compiler.jit import entry
from ..simulator.engine.base_simulator import Decider
from ..simulator.engine.last_asked import NEVER, Happened, LastAsked
from ..simulator.record.solver_records import SolverFields
from . import step
from .agent_interface import AgentInterface
from .batch import Rows, Stepper
from .cluster_env import ClusterEnv
from .outcome import IS_ADJUSTED, IS_FORCED, IS_INVALID, TERMINATED, TRUNCATED
from .saved_state import kept, put_back
from .window import CROWD, common_fields, fill_slots, may_advance


@dataclass(frozen=True)
class ActionOutcome:
    """Decisions to carry out, and whether the second part of the action was out of range."""

    decisions: tuple[Decision, ...]
    is_adjusted: bool = False


@cache
def window_dtype() -> np.dtype:
    """A window of the common fields."""
    return np.dtype(common_fields(), align=True)


def scaled_count(count: Any) -> Any:
    """Numbers of jobs as features; in kernels `window.scaled_count`."""
    return count / (count + CROWD)


class PythonStepInterface(AgentInterface):
    """A window with a stage in the present instant, and perhaps an expert: a policy that is played.

    Attributes:
        expert: the policy; None: none.
        is_expert_only: whether the expert's next action is a candidate only on its account.
        of_instant: names of the attributes that hold the stage.
    """

    dtype = staticmethod(window_dtype)  # where nothing else is worked out in kernels
    expert: Decider | None
    is_expert_only: bool
    of_instant: ClassVar[tuple[str, ...]] = ()
    _run = -1  # which was looked at last
    _looked = NEVER

    def _forget(self) -> None:
        self._run, self._looked = -1, NEVER

    def _now(self) -> LastAsked:
        s = self.simulator.raw.record
        return LastAsked((self.simulator.runs, int(s["instants"])), int(s["decisions"]))

    def _is_new_run(self) -> bool:
        return self._run != self.simulator.runs

    def _is_new_instant(self) -> bool:
        """Modify self: look; whether at another instant or run than before."""
        before, self._looked, self._run = self._looked, self._now(), self.simulator.runs
        return before.since(self._looked) is Happened.NEW_INSTANT

    def refresh(self) -> None:
        """Show the present of the run."""
        raise TypeError(f"{type(self).__name__} does not say what there is to decide: define refresh")

    def finish(self) -> None:
        """Show an episode that has ended, with nothing to decide."""
        raise TypeError(f"{type(self).__name__} does not say how an episode ends: define finish")

    def legal(self) -> np.ndarray:
        """Legal candidates, (candidates,), as last looked at; 0 for illegal ones."""
        raise TypeError(f"{type(self).__name__} does not say what there is to decide: define legal")

    def take(self, candidate: int, second: int) -> ActionOutcome:
        """Play a legal candidate and the `second` part, 0 if there is none; its decisions are still to be applied."""
        raise TypeError(f"{type(self).__name__} does not say what actions mean: define take")

    def write(self, features: np.ndarray, mask: np.ndarray) -> None:
        """Write features, float32 (F,), and the mask of all parts, int8 (M,), as last looked at."""
        raise TypeError(f"{type(self).__name__} does not say what an agent sees: define write")

    def follow(self, policy: Decider) -> None:
        """Offer the choice of `policy` as a candidate from now on, also at instants that would be passed over."""
        raise TypeError(f"{type(self).__name__} plays no policies: define follow")

    def expert_action(self) -> np.ndarray:
        """The action, int64 (parts,), that plays the expert's next decision."""
        raise TypeError(f"{type(self).__name__} plays no policies: define expert_action")

    def state_dict(self) -> dict[str, Any]:
        """The stage in the present instant, as JSON data."""
        raise TypeError(f"{type(self).__name__} cannot be restored: define state_dict")

    def load_state_dict(self, played: Mapping[str, Any]) -> None:
        """Continue at the stage `played`, in a run whose record was just replaced (`resume`)."""
        raise TypeError(f"{type(self).__name__} cannot be restored: define load_state_dict")

    def python_state(self) -> dict[str, Any]:
        """The stage in the present instant, for `take_python_state`."""
        looked = not self._is_new_run(), self._looked.at == self._now().at
        return {**kept(self, self.of_instant), "looked": looked}

    def take_python_state(self, python_state: Mapping[str, Any]) -> None:
        """Continue at the stage that `python_state` returned, in a run whose record was just replaced."""
        put_back(self, {name: python_state[name] for name in self.of_instant})
        at_run, at_instant = python_state["looked"]
        self._run, self._looked = self.simulator.runs if at_run else -1, self._now() if at_instant else NEVER

    def look_into(self, features: np.ndarray, mask: np.ndarray) -> None:
        """Show the present of the run, and write what an agent sees."""
        self.refresh()
        self.write(features, mask)

    def decisions(self, action: Any) -> list[Decision]:
        """The decisions of an action now, in order; empty: none, and the same instant is shown again."""
        return list(self.play(action)[0].decisions)

    def is_plain(self, action: np.ndarray) -> bool:
        """Whether the other parts of an action, int64 (parts,), are 0."""
        return not action[1:].any()

    def play(self, action: Any) -> tuple[ActionOutcome, bool, bool]:
        """Play an action, see `take`; also whether it was illegal, and whether another was played instead."""
        candidate, *others = (int(part) for part in action)
        legal = self.legal()
        played = step.candidate_played(legal, len(legal), candidate)
        taken = ActionOutcome(()) if played < 0 else self.take(played, others[0] if others else 0)
        return taken, played != candidate, played != candidate and played > 0


class Player(Protocol):
    """An environment that plays the action in its own row."""

    def play(self) -> bool:
        """Play it; True if the row needs a look: the episode has ended, or the run has stalled."""


class PythonStepper(Stepper):
    """A stepper whose rows are played by their own environments, `players`."""

    def __init__(
        self, rows: Rows, part: str, kernel: Callable[..., Any] | None = None, solver: SolverFields | None = None
    ) -> None:
        super().__init__(rows, part, kernel or _no_kernel, solver)
        self.players: list[Player] = []

    def like(self, n: int) -> PythonStepper:
        """Another stepper, of `n` rows."""
        return PythonStepper(self.rows.like(n), self.part)

    def play(self, chosen: np.ndarray) -> int:
        """As `step`, for actions whose parts all lie there."""
        return sum(self.players[row].play() for row in chosen.tolist())


def _no_kernel(*_: object) -> int:
    raise TypeError("these rows are played by their environments")


class PythonStepEnv(ClusterEnv):
    """The base of environments with a `PythonStepInterface`."""

    interface: PythonStepInterface
    stepper: PythonStepper
    _is_expert_played = False

    def _stepper(self, rows: Rows) -> Stepper:
        return PythonStepper(rows, self.part)

    def join(self, stepper: Stepper, row: int) -> None:
        """Move into a row of shared arrays; before the first reset."""
        assert isinstance(stepper, PythonStepper)
        super().join(stepper, row)
        stepper.players.append(self)

    def play(self) -> bool:
        """Play the action in the row, and run to the next decision; True if the row needs a look."""
        rows, row, w = self.stepper.rows, self.row, self.interface.raw
        self.stepper.call(begin_step, rows.records, rows.windows, rows.references, row)
        if self.interface.expert is not None and not self._is_expert_played:
            self.interface.expert = None
            self.simulator.use(self.rule)
        self._is_expert_played = False
        if w["begins"]:
            w["begins"] = 0
            self._outcome[IS_INVALID] = self._outcome[IS_FORCED] = self._outcome[IS_ADJUSTED] = 0.0
            self._go()
        elif w["code"] not in (FINISHED, HORIZON):
            self._take()
        while w["code"] == DECIDE and not self.interface.can_act:
            self._pass_over()
        self.stepper.call(end_step, rows.records, rows.windows, rows.references, rows.outcomes, row)
        self.interface.write(self._features, self._mask)
        outcome = self._outcome
        return bool(outcome[TERMINATED] or outcome[TRUNCATED] or w["code"] != DECIDE)

    def _take(self) -> None:
        w = self.interface.raw
        w["decisions"] += 1
        taken, is_invalid, is_forced = self.interface.play(self._action)
        outcome = self._outcome
        outcome[IS_INVALID], outcome[IS_FORCED], outcome[IS_ADJUSTED] = is_invalid, is_forced, taken.is_adjusted
        for decision in taken.decisions:
            self.simulator.apply(decision)
        w["code"] = DECIDE
        self.interface.refresh()

    def _pass_over(self) -> None:
        self._leave()
        self._go()

    def _leave(self) -> None:
        for decision in self.interface.leaving():
            self.simulator.apply(decision)

    def _go(self) -> None:
        rows, simulator = self.stepper.rows, self.simulator
        code = self.stepper.call(advance, rows.records, self.row)
        while code == ASK:
            simulator.answer()
            code = self.stepper.call(advance, rows.records, self.row)
        self._stop(code)

    def _stop(self, code: int) -> None:
        self.interface.raw["code"] = code
        self.simulator.note(code)
        if code in (FINISHED, HORIZON, STALLED, ENDLESS):
            self.interface.finish()
        else:
            self.interface.refresh()

    def act_of(self, policy: Decider) -> Any:
        """The action that plays the next decision of `policy`; mask and observation are then those that it belongs to.

        InputError: the policy needs tables in every region, which it lacks here; InvalidDecision: no action stands for
        it.
        """
        if getattr(policy, "tables_everywhere", False):
            bound = f"policy {getattr(policy, 'name', policy)!s}: a bound, for which every table lies in every region"
            expected = "another in an environment, or this one as its reference=, or in clustergym evaluate"
            raise InputError(f"{bound}; expected {expected}")
        self._expect_reset()
        self.simulator.expect_decider(policy)
        self.player = getattr(policy, "name", "")
        self._is_expert_played = True
        self.interface.follow(policy)
        self.interface.write(self._features, self._mask)
        return self._said(self.interface.expert_action())

    def demonstration(self, policy: Decider) -> tuple[Any, np.ndarray, bool]:
        """See `ClusterEnv`; there is nothing to learn where the decision of `policy` is no candidate of its own."""
        action = self.act_of(policy)
        return action, self._features.copy(), not self.interface.is_expert_only and self._is_said

    def python_state(self) -> dict[str, Any]:
        """The part of the state that the arrays of the row do not hold."""
        return {**super().python_state(), "guided": self._is_expert_played, "instant": self.interface.python_state()}

    def take_python_state(self, python_state: Mapping[str, Any]) -> None:
        """Continue in a row whose arrays were just replaced, with what `python_state` returned."""
        super().take_python_state(python_state)
        self._is_expert_played = python_state["guided"]
        self.interface.take_python_state(python_state["instant"])

    def state_dict(self) -> dict[str, Any]:
        """The state that the row's arrays do not hold, as JSON data."""
        return {**super().state_dict(), "instant": self.interface.state_dict()}

    def resume(self, played: Mapping[str, Any]) -> None:
        """Continue the episode that `played` describes, whose arrays lie in the row already."""
        super().resume(played)
        self.interface.load_state_dict(played["instant"])


@entry
def begin_step(states, windows, references, row):
    """Modify the window in `row`: a step begins now."""
    step.begin_step(states[row], windows[row], references[row])


@entry
def advance(states, row):
    """Modify the record in `row`: run to the next decision point; returns why it stopped."""
    return step.advance(states[row])


@entry
def end_step(states, windows, references, outcomes, row):
    """Modify the outcome in `row`: the result of the step."""
    s = states[row]
    step.end_step(s, windows[row], references[row], outcomes[row], step.used_gpus(s))


@entry
def show(states, windows, row):
    """Modify the window in `row`: the jobs of the present; True if the clock can advance, or the episode has ended.

    A job on the network has no event of its own, but it ends.
    """
    s, w = states[row], windows[row]
    fill_slots(s, w)
    return s.running > 0 or may_advance(s, w)
