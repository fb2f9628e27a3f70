"""The agents of policies' words: `ppo:PATH`, `maskable-ppo:PATH`, `sb3:FILE.zip,...`, `zoo:ENV`."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...simulator.base.errors import InputError
from ...simulator.base.names import choose, short_name
from ..files.folders import stamp_of
from ..installed import ALL, expect_installed
from ..shipped import shipped
from .player import AgentPolicy, PlayedAgent
from .sb3_zip import VARIABLE

if TYPE_CHECKING:
    from ..files.saved import SavedAgent


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
        kind, rest: the latter a path, after which a .zip may have `,key=value...`; or the short name of an environment.
        allow_pickle: open a .zip of stable-baselines3 too, which can run any code; the environment variable
            CLUSTERGYM_TRUST_SB3_ZIP=1 does the same.
        mode, env_kwargs, environment: in place of the agent's own.

    Raises:
        InputError: there is no such agent, or it cannot be played.
        MissingExtra: torch or stable-baselines3 is not installed.
    """
    name = f"{kind}:{rest}"
    if kind == "zoo":
        folders = shipped()
        if not folders:
            raise InputError(f"{name}: no agent comes with this installation")
        path = folders[choose(short_name(rest), folders, "agent of the zoo")]
    elif not rest:
        what = "a .zip of stable-baselines3" if kind == "sb3" else "the folder of a trained agent"
        raise InputError(f"policy {kind!r}: expected {kind}:PATH, {what}")
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


@functools.lru_cache(maxsize=8)
def _loaded(path: Path, stamp: tuple[Any, ...]) -> SavedAgent:
    from ..files.saved import load_agent

    return load_agent(path)
