"""Workloads that are samples of one log, a seed each: its slices, or its blocks drawn anew."""

from __future__ import annotations

from typing import Any

from ..base.names import arguments_of, parse_name
from . import log_slices, resampled_log
from .log_slices import Slices, open_slices, slices
from .resampled_log import Resampled, open_resampled, resampled

SAMPLED = {log_slices.NAME: slices, resampled_log.NAME: resampled}


def is_sampled(word: Any) -> bool:
    """Whether a workload word names samples of a log."""
    return _name(word) in SAMPLED


def is_resampled(word: Any) -> bool:
    """Whether a workload word names a log whose blocks are drawn anew."""
    return _name(word) == resampled_log.NAME


def samples_of(word: str) -> tuple[Slices | Resampled, int | None]:
    """The samples that a word names, and the seed in it; errors as when the word is opened."""
    given = arguments_of(SAMPLED[_name(word)], parse_name(word, "workload")[1], f"workload {_name(word)}")
    seed = given.pop("seed", None)
    return open_resampled(**given) if is_resampled(word) else open_slices(**given), seed


def _name(word: Any) -> str:
    return word.strip().partition(":")[0] if isinstance(word, str) else ""
