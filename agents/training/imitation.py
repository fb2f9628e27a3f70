"""A warm start: clone a heuristic's decisions, then soften the logits for exploration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ...envs.columns import FLAG, described
from ...policies import make_for
from ...simulator.base.errors import InputError, InvalidDecision
from ..networks import LEGAL, LOWEST
from ..vec_env import ClusterVecEnv
from .config import Config
from .learners import make_env

BATCH = 1024
RATE = 1e-3  # at the beginning; it falls linearly to 0
SCALED = 10_000  # first lessons, by whose spread features are scaled; with all lessons a clone plays worse
IMPOSSIBLE = 0.5 * LOWEST  # log-probabilities of actions that are never taken are below
EVENTS_BETWEEN_CHECKS = 5_000  # decisions in a row without a new lesson, after which recording ends
FATES = {"lessons": "lessons", "repeated": "like one before"}
FATES |= {"unsaid": "that an agent cannot see or say", "untaken": "that this agent never takes"}


@dataclass(frozen=True)
class Imitated:
    """The result of an imitation."""

    model: str  # the policy that was imitated
    agreement: float  # the share of the lessons that the clone decides alike (before it is softened)
    decisions: dict[str, dict[str, int]]  # of the model, by fate (`FATES`) and kind of candidate or decision

    def __str__(self) -> str:
        return f"{_counts(self.model, self.decisions)}; the clone decides {self.agreement:.1%} of the lessons alike"


def clone(policy: Any, config: Config) -> Imitated:
    """Modify `policy`, a new one: imitate `config.imitate` in its training environment, then divide logits by `soften`.

    All lessons differ. A decision that no action plays, that the agent may not take (`holds`), or that was a lesson
    already is none; if no action plays it, nothing is done, else it is played. There may be fewer lessons than
    `imitation_steps`. The last of them, a share of `imitation_own`, are of states that the clone reaches, to teach
    recovery from errors. InputError: no decision of the model is one that the agent can take.
    """
    # Replicas would give the same lessons.
    env = make_env(config.model_copy(update={"variance": "none"}))
    lessons = _Lessons(env, config)
    own = int(config.imitation_own * config.imitation_steps)
    lessons.record(config.imitation_steps - own)
    observations, actions = lessons.possible(policy)
    if hasattr(policy.network, "calibrate"):
        policy.network.calibrate(observations[:SCALED])
    _fit(policy, observations, actions, config.imitation_epochs)
    if own:
        lessons.record(config.imitation_steps, policy)
        observations, actions = lessons.possible(policy)
        _fit(policy, observations, actions, config.imitation_epochs)
    with torch.no_grad():
        agreed = [
            (_candidates(policy._predict(observations[pick], deterministic=True)) == _candidates(actions[pick])).float()
            for pick in _batches(len(actions))
        ]
    if hasattr(policy.network, "soften"):
        policy.network.soften(config.soften)
    counts = {fate: dict(kinds.most_common()) for fate, kinds in lessons.decisions.items()}
    return Imitated(str(config.imitate), float(torch.cat(agreed).mean()), counts)


def _candidates(actions: Any) -> Any:
    return actions if actions.ndim == 1 else actions[:, 0]


def _batches(count: int) -> tuple[torch.Tensor, ...]:
    return torch.arange(count).split(BATCH)


def _fit(policy: Any, observations: torch.Tensor, actions: torch.Tensor, epochs: int) -> None:
    optimizer = torch.optim.Adam(policy.parameters(), lr=RATE)
    rate = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, epochs * len(_batches(len(actions))))
    for _ in range(epochs):
        for pick in torch.randperm(len(actions)).split(BATCH):
            loss = -policy.evaluate_actions(observations[pick], actions[pick])[1].mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rate.step()


class _Lessons:
    """Decisions of the model of an imitation by fate and kind, and their features and actions by their bytes."""

    def __init__(self, env: ClusterVecEnv, config: Config) -> None:
        self.env, self.config = env, config
        self.decisions: dict[str, Counter[str]] = {fate: Counter() for fate in FATES}
        self.found: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}

    def record(self, count: int, player: Any = None) -> None:
        """Play until there are `count` lessons, or no new ones come.

        Every row has a model of its own, since policies remember a run. With a `player` its actions are played, for
        lessons at the states that it reaches; else the model's.
        """
        env, config = self.env, self.config
        models = [make_for(str(config.imitate), config.environment) for _ in range(env.num_envs)]
        nothing = env.envs[0].form.said(np.zeros(1 + len(env.envs[0].tables.parts), np.int64))
        last = asked = 0
        seen = env.reset()
        while len(self.found) < count and asked - last < EVENTS_BETWEEN_CHECKS:
            answers = [self._ask(one, model, count) for one, model in zip(env.envs, models, strict=True)]
            asked += len(answers)
            last = asked if any(is_new for _, is_new in answers) else last
            played = np.stack([nothing if action is None else action for action, _ in answers])
            if player is not None:
                with torch.no_grad():
                    played = player._predict(torch.as_tensor(seen)).numpy()
            seen = env.step(played)[0]
        if not self.found:
            _expect_some(config, self.decisions)

    def _ask(self, one: Any, model: Any, count: int) -> tuple[Any, bool]:
        """The action for a model's decision in an environment, None if there is none; whether it is a new lesson."""
        try:
            action, seen, is_known = one.demonstration(model)
        except InvalidDecision as error:
            self.decisions["unsaid"][str(error).partition("(")[0]] += 1  # it begins with the decision
            return None, False
        lesson = seen.tobytes() + np.asarray(action).tobytes()
        if is_known and lesson not in self.found:
            if len(self.found) < count:
                self.found[lesson] = seen, action
            return action, True
        # If it is not known, the window has turned to its job.
        fate, shown = ("repeated", seen) if is_known else ("unsaid", one.observe())
        self.decisions[fate].update(_kinds(self.env, shown[None], np.asarray(action)[None]))
        return action, False

    def possible(self, policy: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Observations (n, F) and actions (n, ...) of the lessons that `policy` can follow; InputError: none."""
        observations, actions = (torch.as_tensor(np.stack(column)) for column in zip(*self.found.values(), strict=True))
        with torch.no_grad():
            likely = [policy.evaluate_actions(observations[pick], actions[pick])[1] for pick in _batches(len(actions))]
        possible = torch.cat(likely) > IMPOSSIBLE
        for fate, chosen in ("lessons", possible), ("untaken", ~possible):
            kinds = _kinds(self.env, observations[chosen].numpy(), actions[chosen].numpy())
            self.decisions[fate] = Counter(kinds)
        _expect_some(self.config, self.decisions)
        return observations[possible], actions[possible]


def _kinds(env: ClusterVecEnv, observations: np.ndarray, actions: np.ndarray) -> list[str]:
    """The kinds of the candidates that actions (n, ...) take at observations (n, F)."""
    tables, named = env.envs[0].tables, list(described(env.envs[0].interface.columns["candidates"]).values())
    columns = [place for place, column in enumerate(named) if column.unit == FLAG and place != LEGAL]
    candidates = observations[:, -tables.candidates * tables.candidate_columns :]
    candidates = candidates.reshape(-1, tables.candidates, tables.candidate_columns)
    chosen = candidates[np.arange(len(actions)), _candidates(actions)]
    return [named[columns[first]].text for first in (chosen[:, columns] > 0.0).argmax(1)]


def _expect_some(config: Config, decisions: Mapping[str, Counter[str]]) -> None:
    if not decisions["lessons"]:
        counts = _counts(str(config.imitate), decisions)
        raise InputError(f"imitate: no lesson for an agent (none: begin from nothing); {counts}")


def _counts(model: str, decisions: Mapping[str, Mapping[str, int]]) -> str:
    parts = []
    for fate, kinds in decisions.items():
        counts = ", ".join(f"{kind} {count:,}" for kind, count in kinds.items())
        parts += [f"{sum(kinds.values()):,} {FATES[fate]} ({counts})"] if kinds else []
    return f"decisions of {model}: {', '.join(parts)}"
