"""Agents that `clustergym train` made, as policies; and whom a policy's word of an agent names."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..simulator.base.errors import InputError
from ..simulator.base.names import choose
from .installed import ALL, expect_installed
from .playing import PlayedAgent, drawn_from
from .sb3_zip import VARIABLE
from .shipped import shipped
from .windows import Window

if TYPE_CHECKING:
    from .saved import SavedAgent

Mode = Literal["argmax", "sampled"]
MODES = ("argmax", "sampled")


class AgentPolicy(PlayedAgent):
    """An agent of this package that decides.

    A sampled decision is a function of the run's seed and of the state's place in the run, so a run can be played
    again, from its start or from a snapshot.

    Args:
        agent: what `load_agent` gave, or a policy in memory with its description.
        mode: `argmax` or `sampled`; None: the agent's own.
        env_kwargs: in place of those that the agent was saved with.
        name: how tables and logs call it.

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
        normalisation = described.normalisation
        if normalisation is not None:
            self._mean = np.array(normalisation.mean)
            self._deviation = np.sqrt(np.array(normalisation.var) + normalisation.epsilon)
        super().__init__(
            name,
            described.environment,
            described.env_kwargs if env_kwargs is None else env_kwargs,
            agent.files,
            str(agent.files[0]) if agent.files else "agent",
        )

    def _expect_fitting(self, window: Window) -> None:
        policy = self.agent.policy
        shape, sizes = policy.observation_space.shape, policy.sizes
        if shape != window.features.shape or sizes != window.interface.parts:
            raise InputError(
                f"{self._source}: the policy takes observations of shape {shape} and gives actions {sizes}; an "
                f"environment with its env_kwargs and observation='flat' has {window.features.shape} and "
                f"{window.interface.parts}"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies, also those in other processes, look at runs of their own."""
        make = functools.partial(AgentPolicy, mode=self.mode, env_kwargs=self.env_kwargs, name=self.name)
        return make, (self.agent,)

    def _parts(self, window: Window, seed: int, instant: int, number: int, turn: int) -> list[int]:
        """One value a part of the action: legal ones only, the likeliest or drawn."""
        sizes = window.interface.parts
        scores = self._scores(window.features, window.mask)
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
    drawn = drawn_from(seed, instant, number, turn).random(size)
    return -np.log(-np.log(np.maximum(drawn, np.finfo(np.float64).tiny)))


def open_agent(
    kind: str,
    rest: str,
    allow_pickle: bool = False,
    mode: str | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
    environment: str | None = None,
) -> PlayedAgent:
    """The agent of a policy's word `kind:rest`: `ppo:PATH`, `maskable-ppo:PATH`, `sb3:FILE.zip,...`, `zoo:ENV`.

    Args:
        kind: `ppo`, `maskable-ppo`, `sb3` or `zoo`.
        rest: a path, after which a .zip may have `,key=value...`; or the short name of an environment.
        allow_pickle: open a .zip of stable-baselines3 too, which can run any code; the environment variable
            CLUSTERGYM_TRUST_SB3_ZIP=1 does the same.
        mode: `argmax` or `sampled`; None: the agent's own.
        env_kwargs: in place of those that the agent was saved with.
        environment: id or short name of the one that a .zip plays in; None: what the file beside it says, or that in
            which it is asked to play.

    Raises:
        InputError: there is no such agent, or it cannot be played.
        MissingExtra: torch or stable-baselines3 is not installed.
    """
    name = f"{kind}:{rest}"
    if kind == "zoo":
        folders = shipped()
        if not folders:
            raise InputError(f"{name}: no agent comes with this installation")
        path = folders[choose(rest.removeprefix("clustergym/").removesuffix("-v0"), folders, "agent of the zoo")]
    elif not rest:
        raise InputError(f"policy {kind!r}: expected {kind}:PATH, {_expected(kind)}")
    else:
        path = Path(rest)
    expect_installed("playing a trained agent", ALL)
    allowed = allow_pickle or os.environ.get(VARIABLE) == "1"
    if kind == "sb3" or (kind != "zoo" and not path.is_dir() and ".zip" in path.name):
        from .sb3_player import open_zip

        return open_zip(name, allowed, mode, env_kwargs, environment)
    agent = _loaded(path, stamp_of(path))
    if kind not in ("zoo", agent.description.algo):
        raise InputError(f"{path}: this agent was trained with {agent.description.algo}, not {kind}")
    return AgentPolicy(agent, mode=mode, env_kwargs=env_kwargs, name=name)  # type: ignore[arg-type]


def _expected(kind: str) -> str:
    return "a .zip of stable-baselines3" if kind == "sb3" else "the folder of a trained agent"


@functools.lru_cache(maxsize=8)
def _loaded(path: Path, stamp: tuple[Any, ...]) -> SavedAgent:
    """The agent in a folder; once per process, as long as its files stay as they are."""
    from .saved import load_agent

    return load_agent(path)


def stamp_of(path: Path) -> tuple[Any, ...]:
    """When the file, or those in the folder, were written last, and how large they are."""
    try:
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        return tuple((file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files)
    except OSError:
        return ()
