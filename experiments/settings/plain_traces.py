"""Assumptions for jobs of which only arrival, GPUs and duration are known; a command prints them.

Where GPUs or links are shared, a job's effect on others follows from its model. For a trace without models, network and
tables are set to words that need no model, unless the user has chosen one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...simulator.base.said_once import say_once
from ...simulator.files.user_code import is_user_code, shown_word
from ...simulator.workloads import is_path
from ...simulator.workloads.log_samples import is_sampled
from .evaluation_setting import Setting, workload_of

# 1.47: the median of all pairs that were measured on V100 GPUs (simulator/sharing/interference.py).
ASSUMED: Mapping[str, Mapping[str, Any]] = {
    "clustergym/Sharing-v0": {"network": "none", "interference": "constant:xi=1.47", "memory_gb": None},
    "clustergym/TimeShift-v0": {"network": "contention:default=silent"},
}
MEANS = {
    "network": "jobs send nothing over the network",
    "interference": "two on a GPU take 1.47 times as long",
    "memory_gb": "GPU memory has no limit",
}


def is_plain(setting: Setting) -> bool:
    """Whether a user's trace or generator gives no job a model or a batch."""
    word = setting.workload
    is_theirs = setting.format or is_user_code(word) or is_path(str(word)) or is_sampled(word)
    if setting.environment not in ASSUMED or not is_theirs:
        return False
    workload = workload_of(setting, 0)
    return not any(workload.model.tolist()) and not workload.batch_size.any()


def assumed(setting: Setting, given: Mapping[str, Any]) -> Setting:
    """The setting with the assumptions for such jobs, after one warning; what is `given` by field stays."""
    if not is_plain(setting):
        return setting
    changed = {key: value for key, value in ASSUMED[setting.environment].items() if key not in given}
    if not changed:
        return setting
    defaults = ", ".join(f"{MEANS[key]} ({key}={'inf' if value is None else value})" for key, value in changed.items())
    say_once(
        f"{shown_word(setting.workload)} names no models, so this is assumed: {defaults}; say otherwise with columns "
        "model and batch_size, or with --network and --set"
    )
    return setting.copy_with(**changed)
