"""Action masks of wrapped and vectorised environments."""

from __future__ import annotations

from typing import Any

import numpy as np


def action_masks(env: Any) -> np.ndarray:
    """Legal actions of an environment, however wrapped, or of a vector environment.

    Args:
        env: a Gymnasium environment or vector environment of ours, or a `VecEnv` of stable-baselines3.

    Returns:
        bool (n,), the parts of the action in a row; of a vector environment bool (environments, n).
    """
    if hasattr(env, "env_method"):  # stable-baselines3's VecEnv
        return np.stack(env.env_method("action_masks"))
    if hasattr(env, "num_envs"):  # gymnasium's VectorEnv
        return np.stack(env.call("action_masks"))
    return np.asarray(env.get_wrapper_attr("action_masks")())
