"""Agents that a user's script trained with stable-baselines3 or sb3-contrib, as policies."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces

from ...envs.columns import names_of
from ...envs.registration import resolve
from ...simulator.base.errors import InputError
from ...simulator.base.names import choose, parse_name, short_name
from ..files.folders import stamp_of
from .player import MODES, PlayedAgent, drawn_from, one_thread
from .sb3_description import Normaliser, read_normaliser, read_sb3_description
from .sb3_zip import ONE_ANSWER, load_zip
from .windows import FORM, Window, arguments

if TYPE_CHECKING:
    from stable_baselines3.common.policies import BasePolicy

OWN_KEYS = ("algo", "mode", "normalise", "environment")  # of a word, beside the keyword arguments of an environment


class Sb3Policy(PlayedAgent):
    """An agent of stable-baselines3 as a policy: the actions of `model.predict`, with the results of `env.step`.

    Args:
        name, files: in tables and logs; that it was read from.
        algo, policy: of `sb3_zip.ALGORITHMS`; the model's.
        environment, env_kwargs: of its training; see `PlayedAgent`.
        normaliser: of observations; None: none.
        columns: of its training's observations, by part and name; None: they are not known.
        mode: `argmax`: deterministic; `sampled`: drawn, from the run's seed and the state's place in the run.
    """

    def __init__(
        self,
        name: str,
        algo: str,
        policy: BasePolicy,
        environment: str | None,
        env_kwargs: Mapping[str, Any],
        *,
        normaliser: Normaliser | None = None,
        columns: Mapping[str, Sequence[str]] | None = None,
        mode: str = "argmax",
        files: tuple[Path, ...] = (),
    ) -> None:
        self.algo, self.policy, self.normaliser, self.columns = algo, policy, normaliser, columns
        self.mode = choose(mode, MODES, "mode of an agent")
        self.draws = self.mode == "sampled"
        if self.mode == "sampled" and algo in ONE_ANSWER:
            raise InputError(f"{name}: mode = 'sampled': {algo} has no probabilities to draw from; leave mode out")
        super().__init__(name, environment, env_kwargs, files, f"policy {name}")

    def __reduce__(self) -> tuple[Any, ...]:
        environment = self._window.environment if self._window is not None else None
        options = {"normaliser": self.normaliser, "columns": self.columns, "mode": self.mode, "files": self.files}
        make = functools.partial(Sb3Policy, **options)  # type: ignore[arg-type]
        return make, (self.name, self.algo, self.policy, environment, self.env_kwargs)

    def _enter(self, environment: str) -> None:
        words = {key: value for key, value in self.env_kwargs.items() if isinstance(value, str)}
        try:
            read = arguments(environment, words, "keyword argument of the environment")
        except InputError as error:
            raise InputError(f"{self._source}: {error}") from None
        given = {**self.env_kwargs, **read}
        self.env_kwargs = {**_seen(self.policy, Window(environment, given, self._source), given), **given}
        super()._enter(environment)

    @property
    def seen_columns(self) -> dict[str, list[str]]:
        """The columns of the observations that it gets, by part and name."""
        assert self._window is not None
        return names_of(self._window.interface.columns)

    def _expect_fitting(self, window: Window) -> None:
        found = _shape(self.policy.observation_space), _shape(self.policy.action_space)
        expected = _shape(window.form.observation_space), _shape(window.form.action_space)
        if found != expected:
            short = short_name(window.environment)
            raise InputError(
                f"{self._source}: it was trained on observations {found[0]} and actions {found[1]}; {short} with "
                f"{_text_of(self.env_kwargs)} has {expected[0]} and {expected[1]}: say the keyword arguments of its "
                f"environment, as {self.name.partition(',')[0]},slots=8, or save it with clustergym.agents.save_sb3"
            )
        if self.columns is not None and self.columns != names_of(window.interface.columns):
            short = short_name(window.environment)
            raise InputError(f"{self._source}: it was trained on other columns than {short} has now; train it anew")
        if self.normaliser is not None:
            self.normaliser.expect_fitting(window.form.observation_space, self._source)

    def _parts(self, window: Window, seed: int, instant: int, number: int, turn: int) -> Any:
        observation, mask = window.observed()
        if self.normaliser is not None:
            observation = self.normaliser(observation)
        options: dict[str, Any] = {"deterministic": self.mode == "argmax"}
        if self.algo == "maskable-ppo":
            options["action_masks"] = mask
        elif self.algo == "recurrent-ppo":
            options |= {"state": self.memory, "episode_start": np.array([self.memory is None])}
        with one_thread(), _drawing(self.mode, seed, instant, number, turn):
            action, self.memory = self.policy.predict(observation, **options)
        return window.read(action)


@contextmanager
def _drawing(mode: str, seed: int, instant: int, number: int, turn: int) -> Iterator[None]:
    """Inside, torch draws the random numbers of one action of a run; outside its state is unchanged."""
    if mode == "argmax":
        yield
        return
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(drawn_from(seed, instant, number, turn).integers(2**63)))
        yield


def open_zip(
    word: str,
    allow_pickle: bool,
    mode: str | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
    environment: str | None = None,
) -> Sb3Policy:
    """The agent of a word `sb3:FILE.zip[,key=value...]`; also `ppo:FILE.zip`, which names the algorithm.

    The word's keys are keyword arguments of the environment, `algo`, `mode`, `normalise` (a pickle of `VecNormalize`,
    in the present folder or beside the .zip) and `environment`. They have precedence over the file beside the .zip
    (`sb3_description.py`), and the other arguments over both. `allow_pickle`: open files that can run any code.
    InputError: there is no such file, it may not be opened, or a key is invalid.
    """
    kind, _, rest = word.partition(":")
    path, words = parted(rest, word)
    beside = read_sb3_description(path)
    own = {key: words.pop(key) for key in OWN_KEYS if key in words}
    if kind != "sb3":
        own["algo"] = kind
    algo, policy = _loaded(path, stamp_of(path), allow_pickle, own.get("algo"))
    normaliser = beside.normaliser if beside is not None else None
    files = [path] + ([beside.path] if beside is not None else [])
    if "normalise" in own:
        files.append(_named(own["normalise"], path))
        normaliser = read_normaliser(files[-1], allow_pickle)
    said = environment or own.get("environment") or (beside.environment if beside is not None else None)
    given = {**(beside.env_kwargs if beside is not None else {}), **words} if env_kwargs is None else dict(env_kwargs)
    place = None if said is None else resolve(said)
    mode = mode or own.get("mode") or (beside.mode if beside is not None else "argmax")
    columns = None if beside is None or environment is not None else beside.columns
    return Sb3Policy(
        word, algo, policy, place, given, normaliser=normaliser, columns=columns, mode=mode, files=tuple(files)
    )


def parted(rest: str, word: str) -> tuple[Path, dict[str, str]]:
    """The file and the parameters of `FILE.zip[,key=value...]`; the name may hold commas. InputError: no parameter."""
    ends = [place + len(".zip") for place in range(len(rest)) if rest.startswith(".zip,", place)]
    if rest.endswith(".zip") or not ends:
        ends.append(len(rest))
    end = next((end for end in reversed(ends) if Path(rest[:end]).is_file()), ends[0])
    params = rest[end + 1 :]
    return Path(rest[:end]), parse_name(f"sb3:{params}", f"policy {word!r},")[1] if params else {}


def _named(name: str, beside: Path) -> Path:
    there = beside.parent / name
    return there if there.is_file() and not Path(name).is_file() else Path(name)


@functools.lru_cache(maxsize=8)
def _loaded(path: Path, stamp: tuple[Any, ...], allow_pickle: bool, algo: str | None) -> tuple[str, BasePolicy]:
    return load_zip(path, allow_pickle, algo)


def _seen(policy: BasePolicy, window: Window, given: Mapping[str, Any]) -> dict[str, Any]:
    """The forms of observation and action that the policy's spaces imply, where they are not given."""
    found: dict[str, Any] = {}
    space, keys = policy.observation_space, list(window.interface.sizes)
    if isinstance(space, spaces.Dict) and not set(space.spaces) <= set(keys) and len(space.spaces) == 2:
        seen, mask = sorted(space.spaces, key=lambda key: "mask" in key)
        found["mask"] = f"{seen}/{mask}"
        space = space.spaces[seen]
    found["observation"] = "dict" if isinstance(space, spaces.Dict) else "flat"
    if isinstance(policy.action_space, spaces.Discrete):
        found["action"] = "discrete"
    return {key: value for key, value in found.items() if key in FORM and key not in given}


def _shape(space: spaces.Space[Any]) -> Any:
    if isinstance(space, spaces.Dict):
        return {key: _shape(one) for key, one in sorted(space.spaces.items())}
    if isinstance(space, spaces.MultiDiscrete):
        return tuple(int(n) for n in space.nvec)
    return int(space.n) if isinstance(space, spaces.Discrete) else space.shape


def _text_of(env_kwargs: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value!r}" for key, value in env_kwargs.items()) or "its defaults"
