"""A warm start: clone a heuristic's decisions, then soften them so that there is something left to explore."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ...policies import make_for
from ...simulator.base.errors import InputError, InvalidDecision
from ..networks import LEGAL, LOWEST
from ..vec_env import ClusterVecEnv
from .config import Config
from .learners import make_env

BATCH = 1024
RATE = 1e-3  # at the beginning; it falls linearly to 0
SCALED = 10_000  # lessons, the first: features are scaled as they are spread there; by all, a clone plays worse
IMPOSSIBLE = 0.5 * LOWEST  # a log-probability below this is that of an action that is never taken
PATIENCE = 5_000  # decisions in a row that teach nothing new; then the model has no more to tell
FATES = {
    "lessons": "lessons",
    "repeated": "like one before",
    "unsaid": "that an agent cannot see or say",
    "untaken": "that this agent never takes",
}


@dataclass(frozen=True)
class Imitated:
    """What came of an imitation.

    Attributes:
        model: the policy that was imitated.
        agreement: the share of the lessons that the clone decides alike (before it is softened).
        decisions: how many the model took, by their fate (`FATES`) and their kind: that of their candidate, or, where
            no action says them, that of the decision.
    """

    model: str
    agreement: float
    decisions: dict[str, dict[str, int]]

    def __str__(self) -> str:
        """One sentence."""
        return f"{_told(self.model, self.decisions)}; the clone decides {self.agreement:.1%} of the lessons alike"


def clone(policy: Any, config: Config) -> Imitated:
    """Modify `policy`, a new one: imitate `config.imitate` where it is to be trained, then divide logits by `soften`.

    All lessons differ. A decision that no action says, that the agent may not take (`holds`), or that was a lesson
    already is none; nothing is done where no action says it, else it is played. There are fewer lessons than
    `imitation_steps` where the model has no more to tell.

    Args:
        policy: of `policies.py`.
        config: whom, on how many decisions, how often, how softly.

    Raises:
        InputError: no decision of the model is one that the agent can take.
    """
    # Replicas would all tell the same.
    env = make_env(config.model_copy(update={"variance": "none"}))
    observations, actions, decisions = _lessons(env, config)
    with torch.no_grad():
        likely = [policy.evaluate_actions(observations[pick], actions[pick])[1] for pick in _batches(len(actions))]
    possible = torch.cat(likely) > IMPOSSIBLE
    for fate, chosen in ("lessons", possible), ("untaken", ~possible):
        decisions[fate] = Counter(_kinds(env, observations[chosen].numpy(), actions[chosen].numpy()))
    _expect_some(config, decisions)
    observations, actions = observations[possible], actions[possible]
    if hasattr(policy.network, "calibrate"):
        policy.network.calibrate(observations[:SCALED])
    optimizer = torch.optim.Adam(policy.parameters(), lr=RATE)
    steps = config.imitation_epochs * len(_batches(len(actions)))
    rate = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, steps)
    for _ in range(config.imitation_epochs):
        for pick in torch.randperm(len(actions)).split(BATCH):
            log_prob = policy.evaluate_actions(observations[pick], actions[pick])[1]
            loss = -log_prob.mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rate.step()
    with torch.no_grad():
        agreed = [
            (_candidates(policy._predict(observations[pick], deterministic=True)) == _candidates(actions[pick])).float()
            for pick in _batches(len(actions))
        ]
    if hasattr(policy.network, "soften"):
        policy.network.soften(config.soften)
    counts = {fate: dict(kinds.most_common()) for fate, kinds in decisions.items()}
    return Imitated(str(config.imitate), float(torch.cat(agreed).mean()), counts)


def _candidates(actions: Any) -> Any:
    """The first part of actions, (n,), of an array or a tensor."""
    return actions if actions.ndim == 1 else actions[:, 0]


def _batches(count: int) -> tuple[torch.Tensor, ...]:
    """The numbers of so many decisions, in order, some at a time."""
    return torch.arange(count).split(BATCH)


def _lessons(env: ClusterVecEnv, config: Config) -> tuple[torch.Tensor, torch.Tensor, dict[str, Counter[str]]]:
    """Observations (n, F), the actions (n, ...) that the model takes there, and its other decisions by fate and kind.

    Every row has a model of its own: many keep what they know of a run.
    """
    models = [make_for(str(config.imitate), config.environment) for _ in range(env.num_envs)]
    nothing = env.envs[0].form.said(np.zeros(1 + len(env.envs[0].tables.parts), np.int64))
    decisions: dict[str, Counter[str]] = {fate: Counter() for fate in FATES}
    lessons: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}
    last = asked = 0
    env.reset()
    while len(lessons) < config.imitation_steps and asked - last < PATIENCE:
        played = []
        for one, model in zip(env.envs, models, strict=True):
            asked += 1
            try:
                action, seen, is_known = one.demonstration(model)
            except InvalidDecision as error:
                decisions["unsaid"][str(error).partition("(")[0]] += 1  # it begins with the decision
                played.append(nothing)
                continue
            played.append(action)
            lesson = seen.tobytes() + np.asarray(action).tobytes()
            if not is_known or lesson in lessons:
                # Where it is not known, the window has turned to what it is about.
                fate, shown = ("repeated", seen) if is_known else ("unsaid", one.observe())
                decisions[fate].update(_kinds(env, shown[None], np.asarray(action)[None]))
                continue
            lessons[lesson], last = (seen, action), asked
        env.step(np.stack(played))
    if not lessons:
        _expect_some(config, decisions)
    observations, actions = (np.stack(column) for column in zip(*lessons.values(), strict=True))
    count = config.imitation_steps
    return torch.as_tensor(observations[:count]), torch.as_tensor(actions[:count]), decisions


def _kinds(env: ClusterVecEnv, observations: np.ndarray, actions: np.ndarray) -> list[str]:
    """The kinds of the candidates that actions (n, ...) take where observations (n, F) are seen."""
    tables, names = env.envs[0].tables, env.envs[0].interface.columns[-1]
    columns = [column for column, name in enumerate(names) if name.startswith("1: ") and column != LEGAL]
    candidates = observations[:, -tables.candidates * tables.candidate_columns :]
    candidates = candidates.reshape(-1, tables.candidates, tables.candidate_columns)
    chosen = candidates[np.arange(len(actions)), _candidates(actions)]
    return [names[columns[first]].removeprefix("1: ") for first in (chosen[:, columns] > 0.0).argmax(1)]


def _expect_some(config: Config, decisions: Mapping[str, Counter[str]]) -> None:
    """InputError where there is no lesson."""
    if not decisions["lessons"]:
        raise InputError(f"imitate: no lesson for an agent; {_told(str(config.imitate), decisions)}")


def _told(model: str, decisions: Mapping[str, Mapping[str, int]]) -> str:
    told = [
        f"{sum(kinds.values()):,} {FATES[fate]} ({', '.join(f'{kind} {count:,}' for kind, count in kinds.items())})"
        for fate, kinds in decisions.items()
        if kinds
    ]
    return f"decisions of {model}: {', '.join(told)}"
