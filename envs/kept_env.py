"""Environments in the middle of an episode are kept, restored and copied; saved_state.py has what is kept."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from ..simulator.base.errors import InputError
from ..simulator.engine.protocols import Remembers
from ..simulator.rules.rule import Rule, rule_from
from .episode_env import EpisodeEnv
from .saved_state import SavedState, go_back, saved_state_of
from .snapshot import Snapshot

SHARED = ("spec",)  # by copies, beside what they were made from,
CALLED = ("sources", "_own_reward")  # and callables


class KeptEnv(EpisodeEnv):
    """An environment whose state can be saved.

    `copy.deepcopy` and `pickle` give another environment that continues as this one would.

    Attributes:
        given: the arguments of the constructor.
    """

    given: tuple[tuple[Any, ...], dict[str, Any]]
    _own: frozenset[str]  # attributes that every such environment has

    def state_dict(self) -> dict[str, Any]:
        """The state that the row's arrays do not hold, as JSON data."""
        self._expect_reset()
        if self._drawn["given"]:
            raise InputError(f"state: row {self.row} plays a workload that was given to reset; give it to make instead")
        rule, random = self.simulator.rule, self.np_random.bit_generator.state
        kept = None if rule == self.rule else dataclasses.asdict(rule)
        return {**self._drawn, "rule": kept, "code": int(self._window.code), "random": random}

    def resume(self, played: Mapping[str, Any]) -> None:
        """Continue the episode that `played` describes, whose arrays lie in the row already."""
        self._drawn = {key: played[key] for key in ("seed", "workload", "given")}
        self.np_random.bit_generator.state = played["random"]
        workload = self.sources[played["workload"]](played["seed"])
        rule, kept = self.rule, played["rule"]
        if kept is not None:
            rule = rule_from(kept) if type(rule) is Rule else type(rule)(**kept)
        self.simulator.resume(workload, rule, played["code"])
        self.interface.resume(self.simulator)
        if self._own_reward:
            owes = self.interface.raw["owes"]
            self._before = Snapshot.before_all(self.simulator.raw.record) if owes else self.in_numbers()

    def snapshot(self) -> SavedState:
        """The present of the episode, for `restore`; it costs little more than a copy of the record."""
        self._expect_reset()
        return saved_state_of(self)

    def restore(self, saved: SavedState) -> None:
        """Continue at a snapshot of this environment, or of one with the same arguments, with its random numbers.

        Observation and mask are then those of the snapshot: `observe()`, `action_masks()`. Wrappers do not notice. The
        workload and the environment's own policies are shared with other copies. InputError: a snapshot of another
        kind.
        """
        go_back(self, saved)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Another environment that continues as this one would, without its window of `human` rendering."""
        arguments, named = self.given
        copied = memo[id(self)] = type(self)(*arguments, **named)
        self.pass_on(copied, memo)
        return copied

    def pass_on(self, copied: Any, memo: dict[int, Any]) -> None:
        """Modify an environment that was just made from the same arguments: it continues as this one would."""
        extras, saved = self.parts()
        own = {name: value if name in SHARED else copy.deepcopy(value, memo) for name, value in extras.items()}
        copied.complete(own | {name: getattr(self, name) for name in CALLED}, saved)

    def __reduce__(self) -> Any:
        return _made_again, (type(self), self.given, *self.parts())

    def parts(self) -> tuple[dict[str, Any], SavedState | None]:
        """What a copy needs beside the arguments: attributes set since it was made, and the saved state."""
        extras = {name: value for name, value in vars(self).items() if name not in self._own}
        return extras, saved_state_of(self) if self.simulator.has_run else None

    def complete(self, extras: Mapping[str, Any], saved: SavedState | None) -> None:
        """Become like another environment with these `parts`; this one was just made from the same arguments."""
        vars(self).update(extras)
        if saved is not None:
            go_back(self, saved)

    def python_state(self) -> dict[str, Any]:
        """The part of the state that the arrays of the row do not hold."""
        random = {"random": self.np_random.bit_generator.state, "random_seed": self._np_random_seed}
        stepping = {"before": getattr(self, "_before", None), "whole_actions": self.stepper.whole_actions.get(self.row)}
        memories = [asked.memory(self.simulator) for asked in self._asked()]
        return {"drawn": self._drawn, "run": self.simulator.python_state(), **random, **stepping, "memories": memories}

    def take_python_state(self, python_state: Mapping[str, Any]) -> None:
        """Continue in a row whose arrays were just replaced, with what `python_state` returned."""
        self._drawn, self._before = python_state["drawn"], python_state["before"]
        self.simulator.take_python_state(python_state["run"])
        self.interface.resume(self.simulator)
        self.np_random.bit_generator.state = python_state["random"]
        self._np_random_seed = python_state["random_seed"]
        self.stepper.whole_actions.pop(self.row, None)
        if python_state["whole_actions"] is not None:
            self.stepper.whole_actions[self.row] = python_state["whole_actions"]
        for asked, memory in zip(self._asked(), python_state["memories"], strict=True):
            asked.recall(self.simulator, memory)

    def _asked(self) -> list[Remembers]:
        found = (self.simulator.rate_provider, *self.interface.asked)
        return [asked for asked in found if hasattr(asked, "memory") and hasattr(asked, "recall")]


def _made_again(make: Callable[..., Any], given: Any, extras: Mapping[str, Any], saved: SavedState | None) -> Any:
    arguments, named = given
    env = make(*arguments, **named)
    env.complete(extras, saved)
    return env
