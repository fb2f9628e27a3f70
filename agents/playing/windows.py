"""An agent's view of a run, and the meaning of its actions: the window and the form of its training."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...envs.agent_interface import AgentInterface
from ...envs.columns import names_of
from ...envs.dataplacement.dataplacement_interface import DataPlacementInterface
from ...envs.delay.delay_interface import DelayInterface
from ...envs.forms import Form
from ...envs.geo.geo_interface import GeoInterface
from ...envs.grouping.grouping_interface import GroupingInterface
from ...envs.registration import env_class
from ...envs.sharing.sharing_interface import SharingInterface
from ...envs.step import candidate_played
from ...envs.timeshift.timeshift_interface import TimeShiftInterface
from ...simulator.base.decisions import Decision
from ...simulator.base.errors import InputError
from ...simulator.base.names import arguments_of, choose
from ...simulator.rules.rule import Rule

INTERFACES: dict[str, type[AgentInterface]] = {  # windows by training environment
    "clustergym/Delay-v0": DelayInterface,
    "clustergym/Sharing-v0": SharingInterface,
    "clustergym/TimeShift-v0": TimeShiftInterface,
    "clustergym/Geo-v0": GeoInterface,
    "clustergym/DataPlacement-v0": DataPlacementInterface,
    "clustergym/Grouping-v0": GroupingInterface,
}
FORM = ("observation", "action", "mask")  # keyword arguments of the outer form
OF_TERMS = ("placer", "preemption_cost", "migration", "round", "lease", "tuner")  # rules for every policy
KNOWN = ("estimates", "elastic")  # whether it has seen run times, and whether its jobs are elastic


class Window:
    """An agent's view of a run, and the decisions of its actions.

    Args:
        environment: the id.
        env_kwargs: keyword arguments of the environment; those not about the window (workload, reward, render mode and
            so on) are ignored.
        source: of them, for messages. InputError: a value that does not fit.

    Attributes:
        interface, form: the window on a run; of observations and actions.
        terms: the rule that holds for every policy.
        features, mask: float32 (F,), int8 (M,): the present as it was last looked at, of all parts.
    """

    def __init__(self, environment: str, env_kwargs: Mapping[str, Any], source: str) -> None:
        self.environment = choose(environment, INTERFACES, f"environment in {source}:")
        try:
            self.interface = interface_of(environment, env_kwargs)
            self.form = Form.of(self.interface, **{key: env_kwargs[key] for key in FORM if key in env_kwargs})
            self.terms: Rule = getattr(self.interface, "clock", None) or self.interface.terms(env_kwargs)
        except (InputError, TypeError, ValueError) as error:
            raise InputError(f"{source}: env_kwargs: {error}") from None
        self.features = np.zeros(sum(self.interface.sizes.values()), np.float32)
        self.mask = np.zeros(sum(self.interface.parts), np.int8)
        self._parts = np.zeros(len(self.interface.parts), np.int64)

    def places(self, columns: Mapping[str, Sequence[str]], source: str) -> np.ndarray | None:
        """Where the columns of an agent, by part and name, stand in `features`: int64 (F,), in the agent's order.

        None: they are those of the window. InputError, which names their `source`: the window lacks one.
        """
        own = names_of(self.interface.columns)
        if own == columns:
            return None
        found = []
        for part, names in columns.items():
            there = own.get(part, [])
            for name in names:
                if name not in there:
                    raise InputError(f"{source}: it reads the column {name!r} of {part}, which its environment lacks")
            place = self.interface.places[part]
            rows = np.arange(place.start, place.stop).reshape(-1, len(there))
            found.append(rows[:, [there.index(name) for name in names]].ravel())
        return np.concatenate(found)

    def look(self) -> bool:
        """Look at the present of the run; False where the environment would pass over it."""
        self.interface.look_into(self.features, self.mask)
        return self.interface.can_act

    def observed(self) -> tuple[Any, np.ndarray]:
        """The environment's observation now, and its outer mask, bool; new arrays."""
        mask = self.mask.copy()
        return self.form.observed(self.features.copy(), mask), self.form.mask(mask).astype(np.bool_)

    def read(self, action: Any) -> np.ndarray:
        """All parts, int64 (parts,), of an action of the action space, missing ones 0; InputError if it is none."""
        self._parts[:] = 0
        self.form.read(action, self._parts)
        return self._parts

    def decisions(self, parts: Any) -> list[Decision]:
        """The decisions of an action with these parts, legal or not, by `env.step`."""
        played = max(candidate_played(self.mask, self.interface.candidates, int(parts[0])), 0)
        return self.interface.decisions([played, *(int(part) for part in parts[1:])])


def interface_of(environment: str, env_kwargs: Mapping[str, Any]) -> AgentInterface:
    """The window of an environment with these keyword arguments."""
    known = window_keys(environment)
    given = {key: value for key, value in env_kwargs.items() if key in known}
    if "elastic" in given:  # an environment takes a rate provider too
        given["elastic"] = given["elastic"] is not False
    return INTERFACES[environment](**given)


def window_keys(environment: str) -> set[str]:
    """The keyword arguments of an environment that its window takes."""
    own = {*inspect.signature(INTERFACES[environment]).parameters, *inspect.signature(AgentInterface).parameters}
    return own - {"window", "kinds", "others", "plans", "more"}


def play_keys(environment: str) -> set[str]:
    """The keyword arguments of an environment that an agent's play depends on."""
    known = inspect.signature(env_class(environment)).parameters
    return {*window_keys(environment), *FORM, *OF_TERMS, *KNOWN} & {*known}


def arguments(environment: str, words: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Keyword arguments of an environment, with text converted to their types; InputError: an invalid one."""
    return arguments_of(env_class(environment), words, what)
