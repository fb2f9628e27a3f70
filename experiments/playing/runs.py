"""Runs of one policy on one seed: names of players, and runs that are equal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ...policies import PolicyObject, as_player, word_of
from ...policies.registry import OURS
from ...simulator.base.errors import InputError
from ..settings.evaluation_setting import Setting
from .recording import Timeline

_LABEL = re.compile(r"[A-Za-z0-9._-]+")
LABEL_HOLDS = "letters, digits, '-', '_' and '.', no space"
DECISION_COLUMNS = ("policy", "seed", "time_s", "job_id", "decision", "gpus", "shift_s", "why")


@dataclass(frozen=True)
class Run:
    """One policy on one seed.

    Attributes:
        policy: its word.
        seed: of the workload, of random orders and of failures.
        metrics: by name, as in simulator/engine/metric_registry.py.
        jobs: number of jobs.
        jct_s: float64, of the finished jobs.
        decisions: rows of `DECISION_COLUMNS` after the first two, if they were recorded.
        timeline: GPUs of each job over time, if it was recorded.
        knows_run_times: whether the policy knew how long jobs run: `yes`, `no` or `estimates`; empty: unknown.
        copies: rows of `COPY_COLUMNS` (copy_rows.py), if they were recorded over regions.
        label: its name in tables and charts where that is not its word, else "".
        is_drawn: whether it depends on its seed: a number was drawn, or may have been in a user's code.
        is_resampled: whether its workload is a draw from one log (`resampled:`), as those of the other seeds are.
    """

    policy: str
    seed: int
    metrics: dict[str, float]
    jobs: int
    jct_s: np.ndarray
    decisions: tuple[tuple[str, ...], ...] = ()
    timeline: Timeline | None = None
    knows_run_times: str = ""
    copies: tuple[tuple[str, ...], ...] = ()
    is_drawn: bool = True
    label: str = ""
    is_resampled: bool = False


class RunStore(Protocol):
    """Keeps runs when they end, as `storing/store.py` does."""

    @property
    def folder(self) -> Path:
        """The folder of the runs."""

    def find(self, policy: str, seed: int, recorded: bool = False) -> Run | None:
        """The stored run; None: there is none of that kind."""

    def keep(self, run: Run) -> None:
        """Store a run that has just ended."""

    def expect_unchanged(self, setting: Setting, player: str | PolicyObject) -> None:
        """Raise InputError if anything that its numbers depend on has changed since."""


def label_and_word(text: str) -> tuple[str, str]:
    """The label and the word of a policy as it was typed, `EASY=fifo:head=reserve`; without one the label is "".

    Raises:
        InputError: a label of other characters than letters, digits, "-", "_" and ".", or that is a policy's name; no
            word after it.
    """
    label, equals, word = text.partition("=")
    if not equals or ":" in label:
        return "", text
    if not _LABEL.fullmatch(label) or not word.strip():
        raise InputError(f"policy {text!r}: expected LABEL=WORD, where a label holds {LABEL_HOLDS}")
    if label in OURS:
        raise InputError(f"policy {text!r}: the label {label!r} is the name of a policy; give another label")
    return label, word


def players_of(policies: Sequence[Any]) -> dict[str, str | PolicyObject]:
    """The players by their words, without labels; InputError for an object that is no policy, or two of one name."""
    players: dict[str, str | PolicyObject] = {}
    for policy in policies:
        player = as_player(label_and_word(policy)[1] if isinstance(policy, str) else policy)
        word = word_of(player)
        if word in players:
            raise InputError(f"policies: two are called {word!r}; give each a `name` of its own")
        players[word] = player
    labels = list(labels_of(policies).values())
    for label in labels:
        if labels.count(label) > 1 or label in players:
            raise InputError(f"policies: two are called {label!r}; give each a label of its own")
    return players


def labels_of(policies: Sequence[Any]) -> dict[str, str]:
    """Word -> label of the policies that have one; errors as `label_and_word`."""
    pairs = (label_and_word(policy) for policy in policies if isinstance(policy, str))
    return {word: label for label, word in pairs if label}


def with_labels(runs: Iterable[Run], labels: Mapping[str, str]) -> list[Run]:
    """Runs with the labels of their words."""
    return [replace(run, label=labels.get(run.policy, "")) for run in runs]


def as_shown(runs: Iterable[Run]) -> list[Run]:
    """Runs for tables: in place of its word a policy has its label, if it has one."""
    return [replace(run, policy=run.label or run.policy) for run in runs]


def is_same(one: Run, other: Run) -> bool:
    """Whether two runs, of any policies and seeds, are equal: every job's time and every metric, bit for bit."""
    if one.jobs != other.jobs or not np.array_equal(one.jct_s, other.jct_s):
        return False
    names = one.metrics.keys() & other.metrics.keys()
    ours, theirs = ([run.metrics[name] for name in names] for run in (one, other))
    return np.array_equal(ours, theirs, equal_nan=True)


def is_one(runs: Sequence[Run]) -> bool:
    """Whether the runs of a policy on several seeds are equal, as where nothing in them depends on the seed."""
    return all(is_same(runs[0], run) for run in runs[1:])


def distinct(runs: Sequence[Run]) -> Sequence[Run]:
    """The runs of a policy on several seeds; the first alone if they are equal."""
    return runs[:1] if is_one(runs) else runs


def grouped(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """Policy -> its runs, in their order."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(run.policy, []).append(run)
    return found


def twins(runs: Iterable[Run]) -> dict[str, str]:
    """Policy -> the first one before it with equal runs on all seeds of both, where there is one."""
    found: dict[str, str] = {}
    first: dict[str, list[Run]] = {}
    for policy, mine in grouped(runs).items():
        for other, theirs in first.items():
            if _went_alike(mine, theirs):
                found[policy] = other
                break
        else:
            first[policy] = mine
    return found


def same_as(runs: Iterable[Run]) -> list[str]:
    """A line for each set of policies with equal runs: "dally-manual: same runs as dally-consolidated"."""
    by_first: dict[str, list[str]] = {}
    for policy, other in twins(runs).items():
        by_first.setdefault(other, []).append(policy)
    return [f"{', '.join(policies)}: same runs as {other}" for other, policies in by_first.items()]


def _went_alike(mine: Sequence[Run], theirs: Sequence[Run]) -> bool:
    ours, others = ({run.seed: run for run in runs} for runs in (mine, theirs))
    return ours.keys() == others.keys() and all(is_same(run, others[seed]) for seed, run in ours.items())
