"""Agents of any other library as policies: objects with `act(observation, mask)`.

    class Mine:
        env_kwargs = {"observation": "flat", "action": "discrete", "slots": 8}

        def __init__(self, weights: str = "mine.pt") -> None:
            self.net = torch.load(weights, weights_only=False)

        def act(self, observation, mask):
            scores = self.net(torch.as_tensor(observation)).detach().numpy()
            return np.where(mask, scores, -np.inf).argmax()

`py:mine.py:Mine,weights=best.pt` names it wherever a policy's name is taken. It acts at the decision points of an
environment with these keyword arguments, on its observations and masks, with the results of `env.step`, for illegal
actions too.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...envs.registration import ENVIRONMENTS, resolve
from ...policies.own import environments_in
from ...simulator.base.errors import InputError
from ...simulator.base.names import choose
from ...simulator.files.user_code import blamed
from .player import PlayedAgent
from .windows import Window, arguments


class ActingPolicy(PlayedAgent):
    """An object with `act(observation, mask)` as a policy.

    Args:
        user_object: the object. It may also have: `env_kwargs`, keyword arguments of its training environment;
            `environment` or `environments`, where it plays (ids or short names); `begin(seed)`, called when a run
            begins; `files`, paths that it reads, so that stored results notice edits.
        said: its name in errors.
        files: its source files.

    Raises:
        InputError: an attribute is invalid.
    """

    def __init__(self, user_object: Any, said: str, files: Sequence[Path] = ()) -> None:
        self.user_object = user_object
        env_kwargs = getattr(user_object, "env_kwargs", {})
        if not isinstance(env_kwargs, Mapping) or not all(isinstance(key, str) for key in env_kwargs):
            raise InputError(f"{said}: env_kwargs = {env_kwargs!r:.60}: expected keyword arguments in a dict")
        _expect_two_arguments(user_object.act, said)
        places = [choose(name, ENVIRONMENTS, f"environment of {said}:") for name in _places(user_object, said)]
        only = places[0] if len(places) == 1 else None
        super().__init__(type(user_object).__name__, only, env_kwargs, tuple(files), said)
        self.environments = tuple(places) or self.environments

    def __reduce__(self) -> tuple[Any, ...]:
        home = self._window.environment if self._window is not None else None
        return _restored, (self.user_object, self._source, self.files, self.name, home)

    def _enter(self, environment: str) -> None:
        self.env_kwargs = arguments(environment, self.env_kwargs, f"{self._source}: env_kwargs")
        super()._enter(environment)

    def _begin(self, seed: int) -> None:
        super()._begin(seed)
        if callable(getattr(self.user_object, "begin", None)):
            with blamed(self._source, self.files):
                self.user_object.begin(seed)

    def _parts(self, window: Window, seed: int, instant: int, number: int, turn: int) -> Any:
        with blamed(self._source, self.files):
            action = self.user_object.act(*window.observed())
        try:
            return window.read(action)
        except InputError as error:
            raise InputError(f"{self._source}: act gave {error}") from None


def _restored(user_object: Any, said: str, files: tuple[Path, ...], name: str, home: str | None) -> PlayedAgent:
    policy = ActingPolicy(user_object, said, files)
    policy.name = name
    return policy if home is None else policy.playing_in(home)


def _places(user_object: Any, said: str) -> Sequence[str]:
    home = getattr(user_object, "environment", None)
    return environments_in(user_object, said) or ((resolve(home),) if isinstance(home, str) else ())


def _expect_two_arguments(act: Any, said: str) -> None:
    try:
        inspect.signature(act).bind(None, None)
    except ValueError:  # compiled: no signature
        return
    except TypeError as error:
        raise InputError(f"{said}: act is to take two arguments, the observation and the mask: {error}") from None
