"""Trained agents as policies: they play on any cluster, wherever a policy's name is taken.

An agent looks at the run through its own window (that of its training), so it decides at the same points, on the same
numbers, as in its environment: its decisions are exactly those of `env.step`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

import numpy as np

from ...policies.base import Policy
from ...simulator.base.decisions import Advance, Decision
from ...simulator.base.errors import InputError
from ...simulator.base.names import choose, short_name
from ...simulator.engine.simulator import Simulator
from ...simulator.engine.view import ClusterView, simulator_behind
from ...simulator.files.user_code import is_user_code
from ...simulator.jobs.estimates import Estimates
from ...simulator.numerics.random import draw_seed
from .windows import INTERFACES, Window

if TYPE_CHECKING:
    from ..files.saved import SavedAgent

Mode = Literal["argmax", "sampled"]
MODES = ("argmax", "sampled")
STREAM = 0x636C7573746572  # separates an agent's random numbers from all others of the same seed


class PlayedAgent(Policy):
    """An agent of an environment that decides as there; a subclass chooses its actions.

    Args:
        name: in tables and logs.
        environment: the id of its training environment; None: that in which it plays.
        env_kwargs: keyword arguments of that environment, as far as its window depends on them.
        files, source: that it was read from; the origin of its arguments, for messages.

    Attributes:
        environments: the ids of the environments that it plays in.
        memory: a subclass's memory of the present run; None at its begin.
        draws: whether it may draw random numbers.
    """

    draws: bool = True

    def __init__(
        self,
        name: str,
        environment: str | None,
        env_kwargs: Mapping[str, Any],
        files: tuple[Path, ...] = (),
        source: str = "agent",
    ) -> None:
        self.name, self.files, self._source = name, tuple(files), source
        self.env_kwargs = dict(env_kwargs)
        self.environments: tuple[str, ...] = tuple(INTERFACES) if environment is None else (environment,)
        self._window: Window | None = None
        self._run: tuple[Simulator, int] | None = None
        self._left: list[Decision] = []  # the rest of the last action
        self._leaving: Iterator[Decision] | None = None  # the last decisions of the instant, while it ends
        self.memory: Any = None
        self._paused: WeakKeyDictionary[Simulator, tuple[int, list[Decision], Any]] = WeakKeyDictionary()  # other runs
        if environment is not None:
            self._enter(environment)

    def playing_in(self, env_id: str) -> PlayedAgent:
        """Itself, with the window of `env_id` if it has no environment of its own; InputError if it does not fit."""
        if self._window is None:
            self._enter(env_id)
        return self

    def _enter(self, environment: str) -> None:
        try:
            self.knows_run_times = not Estimates.load(self.env_kwargs.get("estimates", "exact")).hides
            self._window = Window(environment, self.env_kwargs, self._source)
        except InputError as error:
            if str(error).startswith(self._source):
                raise
            raise InputError(f"{self._source}: env_kwargs: {error}") from None
        self.elastic = self.env_kwargs.get("elastic", False) is not False
        self.clock = self._window.terms
        self.tunes_workers = getattr(getattr(self._window.interface, "scheduler", None), "tunes_workers", False)
        self._expect_fitting(self._window)

    def _expect_fitting(self, window: Window) -> None:
        """InputError if the agent cannot have been trained with this window."""

    def _begin(self, seed: int) -> None:
        """Modify self: a run of this seed begins."""
        self.memory = None

    def _parts(self, window: Window, seed: int, instant: int, number: int, turn: int) -> Any:
        """All parts of its action at the present of `window`; the numbers are those of the state in its run."""
        raise TypeError(f"{type(self).__name__} does not say which action it takes: define _parts")

    def expect_known(self, estimates: Estimates) -> None:
        """Nothing: without known run times their columns are 0."""

    def decide(self, view: ClusterView) -> Decision:
        """The next decision at this instant."""
        window = self._window
        if window is None:
            short = INTERFACES and short_name(next(iter(INTERFACES)))
            word = f"policies.make({self.name!r}, environment={short!r})"
            raise InputError(f"policy {self.name}: no environment is given for it to play in; expected one, as {word}")
        simulator, interface = simulator_behind(view), window.interface
        if self._run != (simulator, simulator.runs):
            self._look_at(simulator)
        s = simulator.state
        turn = 0  # some actions decide nothing, as to turn to the next table
        while not self._left and self._leaving is None:
            if window.look():
                parts = self._parts(window, self._seed(s), int(s.instants), int(s.decisions), turn)
                self._left = window.decisions(parts)
            else:
                self._leaving = iter(interface.leaving())
            turn += 1
        if self._left:
            return self._left.pop(0)
        assert self._leaving is not None
        decision = next(self._leaving, Advance())
        if isinstance(decision, Advance):
            self._leaving = None
        return decision

    def _look_at(self, simulator: Simulator) -> None:
        assert self._window is not None
        self._window.interface.attach(simulator)
        if self._run is not None:
            self._paused[self._run[0]] = self._run[1], self._left, self.memory
        runs, left, memory = self._paused.pop(simulator, (-1, [], None))
        self._run, self._leaving = (simulator, simulator.runs), None
        if runs == simulator.runs:
            self._left, self.memory = left, memory
        else:
            self._left = []
            self._begin(self._seed(simulator.state))

    def _seed(self, s: Any) -> int:
        return draw_seed(s) if self.draws else 0

    def following(self, view: ClusterView) -> tuple[Decision, ...]:
        """The remaining decisions of an action."""
        rest, self._left = tuple(self._left), []
        return rest


class AgentPolicy(PlayedAgent):
    """An agent of this package as a policy.

    A sampled decision is a function of the run's seed and of the state's place in the run, so a run can be played
    again, from its start or from a snapshot.

    Args:
        agent: from `load_agent`, or a policy in memory with its description.
        mode: `argmax` or `sampled`; None: the agent's own.
        env_kwargs: in place of the saved ones.
        name: in tables and logs.

    Raises:
        InputError: a description that does not fit the policy.
    """

    def __init__(
        self,
        agent: SavedAgent,
        *,
        mode: Mode | None = None,
        env_kwargs: Mapping[str, Any] | None = None,
        name: str = "agent",
    ) -> None:
        described = agent.description
        self.agent = agent
        self.mode: Mode = choose(mode or described.mode, MODES, "mode of an agent")  # type: ignore[assignment]
        self.draws = self.mode == "sampled" or is_user_code(described.network)
        normalisation = described.normalisation
        if normalisation is not None:
            self._mean = np.array(normalisation.mean)
            self._deviation = np.sqrt(np.array(normalisation.var) + normalisation.epsilon)
        env_kwargs = described.env_kwargs if env_kwargs is None else env_kwargs
        source = str(agent.files[0]) if agent.files else "agent"
        super().__init__(name, described.environment, env_kwargs, agent.files, source)

    def _expect_fitting(self, window: Window) -> None:
        self._places = window.places(self.agent.description.columns, self._source)
        policy, seen = self.agent.policy, self._seen(window.features).shape
        shape, sizes = policy.observation_space.shape, policy.sizes
        if shape != seen or sizes != window.interface.parts:
            found = f"the policy takes observations of shape {shape} and gives actions {sizes}"
            expected = f"observation='flat' has {seen} and {window.interface.parts}"
            raise InputError(f"{self._source}: {found}; an environment with its env_kwargs and {expected}")

    def _seen(self, features: np.ndarray) -> np.ndarray:
        """The features, float32 (F,), of its own columns."""
        return features if self._places is None else features[self._places]

    def __reduce__(self) -> tuple[Any, ...]:
        make = functools.partial(AgentPolicy, mode=self.mode, env_kwargs=self.env_kwargs, name=self.name)
        return make, (self.agent,)

    def _parts(self, window: Window, seed: int, instant: int, number: int, turn: int) -> list[int]:
        """One value a part of the action: legal ones only, the likeliest or drawn."""
        sizes = window.interface.parts
        scores = self._scores(self._seen(window.features), window.mask)
        scores[window.mask == 0] = -np.inf
        if self.mode == "sampled":
            scores += _gumbel(seed, instant, number, turn, len(scores))
        ends = np.cumsum(sizes)
        return [int(scores[end - size : end].argmax()) for size, end in zip(sizes, ends, strict=True)]

    def _scores(self, features: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """Log-probabilities of the present, float64: those of the candidates, then those of a second part."""
        import torch

        normalisation = self.agent.description.normalisation
        if normalisation is not None:
            scaled = (features - self._mean) / self._deviation
            features = scaled.clip(-normalisation.clip, normalisation.clip).astype(np.float32)
        masks = () if self.agent.description.algo == "ppo" else (mask[None],)
        policy: Any = self.agent.policy
        with one_thread(), torch.inference_mode():
            return policy.action_logits(torch.from_numpy(features[None]), *masks)[0].double().numpy().copy()


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread of torch: faster for one row, and its numbers do not depend on the machine's threads."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _gumbel(seed: int, instant: int, number: int, turn: int, size: int) -> np.ndarray:
    """Noise that makes the largest of log-probabilities a draw, for one action of a run."""
    drawn = drawn_from(seed, instant, number, turn).random(size)
    return -np.log(-np.log(np.maximum(drawn, np.finfo(np.float64).tiny)))


def drawn_from(seed: int, instant: int, number: int, turn: int) -> np.random.Generator:
    """Random numbers of one action of a run."""
    key = np.array([seed % 2**64, STREAM], np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=np.array([0, turn, number, instant], np.uint64)))
