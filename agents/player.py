"""Trained agents as policies: they play on any cluster, wherever a policy's name is taken.

An agent looks at the run through a window of its own (the one that it was trained with), so it is asked at the same
moments, and sees the same numbers, as in its environment: played decision by decision it does what it does by
`env.step`, exactly.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

import numpy as np

from ..envs.dataplacement.lookout import DataPlacementLookout
from ..envs.delay.lookout import DelayLookout
from ..envs.geo.lookout import GeoLookout
from ..envs.grouping.lookout import GroupingLookout
from ..envs.lookout import Lookout
from ..envs.sharing.lookout import SharingLookout
from ..envs.timeshift.lookout import TimeShiftLookout
from ..policies.base import Policy
from ..simulator.decisions import Advance, Decision
from ..simulator.engine import Simulator
from ..simulator.errors import InputError, MissingExtra
from ..simulator.estimates import Estimates
from ..simulator.names import choose
from ..simulator.rules.rule import Rule
from ..simulator.view import ClusterView
from .sb3_zip import VARIABLE
from .shipped import sees_run_times, shipped

if TYPE_CHECKING:
    from .saved import SavedAgent

Mode = Literal["argmax", "sampled"]
MODES = ("argmax", "sampled")
LOOKOUTS: dict[str, type[Lookout]] = {  # how to look at a run, by the environment that an agent knows
    "clustergym/Delay-v0": DelayLookout,
    "clustergym/Sharing-v0": SharingLookout,
    "clustergym/TimeShift-v0": TimeShiftLookout,
    "clustergym/Geo-v0": GeoLookout,
    "clustergym/DataPlacement-v0": DataPlacementLookout,
    "clustergym/Grouping-v0": GroupingLookout,
}
STREAM = 0x636C7573746572  # sets an agent's random numbers apart from all others of the same seed


class AgentPolicy(Policy):
    """A trained agent that decides.

    A sampled decision is a function of the run's seed and of the state's place in the run, so a run can be played
    again, from its start or from a snapshot.

    Args:
        agent: what `load_agent` gave, or a policy in memory with its description.
        mode: `argmax` or `sampled`; None: the agent's own.
        env_kwargs: in place of those that the agent was saved with.
        name: how tables and logs call it.

    Attributes:
        environments: the ids of the environments that it plays in.
        files: what it was read from.

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
        self.agent, self.name, self.files = agent, name, agent.files
        self.mode: Mode = choose(mode or agent.description.mode, MODES, "mode of an agent")  # type: ignore[assignment]
        self.env_kwargs = dict(agent.description.env_kwargs if env_kwargs is None else env_kwargs)
        source = str(agent.files[0]) if agent.files else "agent"
        environment = choose(agent.description.environment, LOOKOUTS, f"environment in {source}:")
        self.environments = (environment,)
        self.knows_run_times = sees_run_times(self.env_kwargs)
        try:
            self._lookout = _lookout(LOOKOUTS[environment], self.env_kwargs)
            self.terms: Rule = getattr(self._lookout, "clock", None) or self._lookout.terms(self.env_kwargs)
        except (InputError, TypeError, ValueError) as error:
            raise InputError(f"{source}: env_kwargs: {error}") from None
        self._sizes = self._lookout.parts
        self._features = np.zeros((1, sum(self._lookout.sizes.values())), np.float32)
        self._mask = np.zeros((1, sum(self._sizes)), np.int8)
        self._expect_fitting(source)
        self._run: tuple[Simulator, int] | None = None
        self._left: list[Decision] = []  # of the last action, which may stand for several
        self._paused: WeakKeyDictionary[Simulator, tuple[int, list[Decision]]] = WeakKeyDictionary()  # of other runs
        self._leaving: Iterator[Decision] | None = None  # what ends the instant, while it does
        normalisation = agent.description.normalisation
        if normalisation is not None:
            self._mean = np.array(normalisation.mean)
            self._deviation = np.sqrt(np.array(normalisation.var) + normalisation.epsilon)

    def _expect_fitting(self, source: str) -> None:
        policy = self.agent.policy
        shape, sizes = policy.observation_space.shape, getattr(policy.action_space, "nvec", ())
        if shape != self._features.shape[1:] or tuple(sizes) != self._sizes:
            actions = tuple(int(n) for n in sizes)
            raise InputError(
                f"{source}: the policy takes observations of shape {shape} and gives actions {actions}; an environment "
                f"with its env_kwargs and observation='flat' has {self._features.shape[1:]} and {self._sizes}"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies, also those in other processes, look at runs of their own."""
        make = functools.partial(AgentPolicy, mode=self.mode, env_kwargs=self.env_kwargs, name=self.name)
        return make, (self.agent,)

    def expect_known(self, estimates: Estimates) -> None:
        """It plays whatever is known: where nothing is, its columns of run times are 0."""

    def decide(self, view: ClusterView) -> Decision:
        """The next decision at this instant."""
        simulator, lookout = view.simulator, self._lookout
        simulator.use(self.terms)
        if self._run != (simulator, simulator.runs):
            lookout.lay(simulator)
            if self._run is not None:
                self._paused[self._run[0]] = self._run[1], self._left
            runs, left = self._paused.pop(simulator, (-1, []))
            self._run, self._leaving = (simulator, simulator.runs), None
            self._left = left if runs == simulator.runs else []
        s = simulator.state
        turn = 0  # some actions decide nothing and go on, as to the next table
        while not self._left and self._leaving is None:
            lookout.look_into(self._features[0], self._mask[0])
            if lookout.can_act:
                self._left = lookout.decisions(self._action(int(s.seed), int(s.instants), int(s.decisions), turn))
            else:
                self._leaving = iter(lookout.leaving())
            turn += 1
        if self._left:
            return self._left.pop(0)
        assert self._leaving is not None
        decision = next(self._leaving, Advance())
        if isinstance(decision, Advance):
            self._leaving = None
        return decision

    def following(self, view: ClusterView) -> tuple[Decision, ...]:
        """The rest of an action that stands for several decisions."""
        rest, self._left = tuple(self._left), []
        return rest

    def _action(self, seed: int, instant: int, number: int, turn: int) -> list[int]:
        """One value a part of the action: legal ones only, the likeliest or drawn."""
        scores = self._scores()
        scores[self._mask[0] == 0] = -np.inf
        if self.mode == "sampled":
            scores += _gumbel(seed, instant, number, turn, len(scores))
        ends = np.cumsum(self._sizes)
        return [int(scores[end - size : end].argmax()) for size, end in zip(self._sizes, ends, strict=True)]

    def _scores(self) -> np.ndarray:
        """Log-probabilities of the present, float64: those of the candidates, then those of a second part."""
        import torch

        features = self._features
        normalisation = self.agent.description.normalisation
        if normalisation is not None:
            scaled = (features - self._mean) / self._deviation
            features = scaled.clip(-normalisation.clip, normalisation.clip).astype(np.float32)
        policy: Any = self.agent.policy
        masks = () if self.agent.description.algo == "ppo" else (self._mask,)
        with _one_thread(), torch.inference_mode():
            observation = torch.from_numpy(features)
            if hasattr(policy, "action_logits"):
                return policy.action_logits(observation, *masks)[0].double().numpy().copy()
            distribution = policy.get_distribution(observation, *masks)
            parts = distribution.distributions if masks else distribution.distribution
            return torch.cat([part.logits for part in parts], 1)[0].double().numpy().copy()


@contextmanager
def _one_thread() -> Iterator[None]:
    """One row is faster on one thread, and its numbers do not depend on how many the machine has."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _gumbel(seed: int, instant: int, number: int, turn: int, size: int) -> np.ndarray:
    """Noise that makes the largest of log-probabilities a draw; the numbers of one action of a run."""
    key = np.array([seed % 2**64, STREAM], np.uint64)
    bits = np.random.Philox(key=key, counter=np.array([0, turn, number, instant], np.uint64))
    drawn = np.random.Generator(bits).random(size)
    return -np.log(-np.log(np.maximum(drawn, np.finfo(np.float64).tiny)))


def _lookout(kind: type[Lookout], env_kwargs: Mapping[str, Any]) -> Lookout:
    """The window of an environment with these keyword arguments."""
    known = {*inspect.signature(kind).parameters, *inspect.signature(Lookout).parameters}
    return kind(**{key: value for key, value in env_kwargs.items() if key in known})


def open_agent(
    kind: str,
    rest: str,
    allow_pickle: bool = False,
    mode: str | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
) -> AgentPolicy:
    """The agent of a policy's word `kind:rest`: `ppo:PATH`, `maskable-ppo:PATH`, `zoo:ENV`.

    Args:
        kind: `ppo`, `maskable-ppo` or `zoo`.
        rest: a path, or the short name of an environment.
        allow_pickle: open a .zip of stable-baselines3 too, which can run any code; the environment variable
            CLUSTERGYM_TRUST_SB3_ZIP=1 does the same.
        mode: `argmax` or `sampled`; None: the agent's own.
        env_kwargs: in place of those that the agent was saved with; a .zip has none.

    Raises:
        InputError: there is no such agent, or it cannot be played.
        MissingExtra: torch or stable-baselines3 is not installed.
    """
    if kind == "zoo":
        folders = shipped()
        if not folders:
            raise InputError(f"zoo:{rest}: no agent comes with this installation")
        path = folders[choose(rest.removeprefix("clustergym/").removesuffix("-v0"), folders, "agent of the zoo")]
    elif not rest:
        raise InputError(f"policy {kind!r}: expected {kind}:PATH, the folder of a trained agent")
    else:
        path = Path(rest)
    _expect_installed()
    agent = _loaded(path, allow_pickle or os.environ.get(VARIABLE) == "1", kind, _stamp(path))
    if kind not in ("zoo", agent.description.algo):
        raise InputError(f"{path}: this agent was trained with {agent.description.algo}, not {kind}")
    return AgentPolicy(agent, mode=mode, env_kwargs=env_kwargs, name=f"{kind}:{rest}")  # type: ignore[arg-type]


@functools.lru_cache(maxsize=8)
def _loaded(path: Path, allow_pickle: bool, kind: str, stamp: tuple[Any, ...]) -> SavedAgent:
    """The agent at a path; once per process, as long as its files stay as they are."""
    from .saved import load_agent

    return load_agent(path, allow_pickle=allow_pickle, algo="maskable-ppo" if kind == "maskable-ppo" else "ppo")


def _stamp(path: Path) -> tuple[Any, ...]:
    """When the file, or those in the folder, were written last, and how large they are."""
    try:
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        return tuple((file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files)
    except OSError:
        return ()


def _expect_installed() -> None:
    try:
        import safetensors  # noqa: F401
        import sb3_contrib  # noqa: F401
        import stable_baselines3  # noqa: F401
        import torch  # noqa: F401
    except ImportError as error:
        missing = str(error.name).partition(".")[0].replace("_", "-")
        raise MissingExtra(
            f'playing a trained agent needs {missing}; install it with: pip install "clustergym[agents]"'
        ) from None
