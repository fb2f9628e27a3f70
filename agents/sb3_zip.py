"""Agents in the .zip files of stable-baselines3. They hold pickles: opening one can run any code."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..simulator.errors import InputError
from ..simulator.names import choose

if TYPE_CHECKING:
    from .saved import SavedAgent

FLAG, VARIABLE = "--trust-sb3-zip", "CLUSTERGYM_TRUST_SB3_ZIP"
ENVIRONMENT = "clustergym/Delay-v0"  # the files do not name theirs


def load_zip(path: Path, allow_pickle: bool, algo: str) -> SavedAgent:
    """The agent in a .zip that `learner.save` of `ppo` or `maskable-ppo` wrote.

    Raises:
        InputError: it may not be opened, or cannot be.
    """
    from .saved import AgentDescription, SavedAgent

    if path.suffix != ".zip":
        raise InputError(f"{path}: this is a file; expected the folder of an agent, or a .zip of stable-baselines3")
    if not allow_pickle:
        raise InputError(
            f"{path}: files of stable-baselines3 hold pickles, which can run any code when opened; if you trust who "
            f"wrote it, allow it with {FLAG} (or {VARIABLE}=1, or allow_pickle=True)"
        )
    choose(algo, ("ppo", "maskable-ppo"), "algorithm")
    try:
        policy: Any = _learner(algo).load(path, device="cpu").policy
    except Exception as error:  # zip files, pickles and torch have a hundred ways to fail
        raise InputError(f"{path}: it cannot be opened as an agent of {algo} ({error})") from None
    policy.set_training_mode(False)
    description = AgentDescription(algo=algo, network=type(policy).__name__, environment=ENVIRONMENT)
    return SavedAgent(policy, description, (path,))


def _learner(algo: str) -> Any:
    if algo == "maskable-ppo":
        from sb3_contrib import MaskablePPO

        return MaskablePPO
    from stable_baselines3 import PPO

    return PPO
