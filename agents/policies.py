"""The networks as policy classes of stable-baselines3 and sb3-contrib."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.distributions import Distribution
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.type_aliases import Schedule
from torch import Tensor

from ..envs.observation_layout import Tables
from ..simulator.base.names import choose
from .networks import LEGAL, LOWEST, make_network

ADAM_EPSILON = 1e-5
ALGORITHMS = ("maskable-ppo", "ppo")


class _Scored:
    """The common part of both policy classes: the network in place of SB3's layers, and the distribution of an action.

    The parts after the candidate count in probability and entropy only where they have an effect (a delay, where a job
    is held); elsewhere they are drawn without counting. A candidate that the observation marks illegal is never drawn,
    with or without a mask.
    """

    tables: Tables
    holds: bool
    network: Any
    action_space: spaces.Space

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        lr_schedule: Schedule,
        *,
        network: str,
        tables: dict[str, Any],
        holds: bool = True,
        critic: bool = True,
        options: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self._own: dict[str, Any] = {"network": network, "tables": tables, "holds": holds, "critic": critic}
        self._own["options"] = options or {}
        super().__init__(observation_space, action_space, lr_schedule, **kwargs)  # type: ignore[call-arg]

    def _build(self, lr_schedule: Schedule) -> None:
        own = self._own
        self.tables, self.holds = Tables.from_json(own["tables"]), own["holds"]
        self.network = make_network(own["network"], self.tables, own["options"], own["critic"])
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=lr_schedule(1), eps=ADAM_EPSILON)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {**super()._get_constructor_parameters(), **self._own}  # type: ignore[misc]

    def _scores(self, observation: Tensor, masks: Any) -> tuple[Tensor, list[Tensor], Tensor, Tensor]:
        """Log-probabilities of the candidates and of each other part, values, and the candidates' features."""
        tables = self.tables
        candidates = observation[:, -tables.candidates * tables.candidate_columns :]
        candidates = candidates.view(-1, tables.candidates, tables.candidate_columns)
        legal = candidates[:, :, LEGAL] > 0.0
        if not self.holds and tables.hold_column is not None:
            legal = legal & (candidates[:, :, tables.hold_column] == 0.0)
        if masks is not None:
            masks = torch.as_tensor(masks, dtype=torch.bool, device=observation.device).view(len(observation), -1)
            legal = legal & masks[:, : tables.candidates]
        logits, parts, values = self.network(observation, legal)
        split = []
        place = 0
        for part in tables.parts:
            part_logits = parts[:, place : place + part.size]
            if masks is not None:
                allowed = masks[:, tables.candidates + place : tables.candidates + place + part.size]
                part_logits = part_logits.masked_fill(~allowed, LOWEST)
            split.append(part_logits.log_softmax(1))
            place += part.size
        return logits.log_softmax(1), split, values, candidates

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of values of each part of the action, the candidate first."""
        return (self.tables.candidates, *(part.size for part in self.tables.parts))

    def _said(self, parts: list[Tensor]) -> Tensor:
        return torch.stack(parts, 1) if self.action_space.shape else parts[0]

    def _log_prob(self, scores: Tensor, parts: list[Tensor], candidates: Tensor, actions: Tensor) -> Tensor:
        chosen = actions[:, :1]
        total = scores.gather(1, chosen).squeeze(1)
        for number, (part, own) in enumerate(zip(self.tables.parts, parts, strict=True), 1):
            applies = candidates[:, :, part.column].gather(1, chosen).squeeze(1)
            total = total + applies * own.gather(1, actions[:, number : number + 1]).squeeze(1)
        return total

    def forward(
        self, obs: Tensor, deterministic: bool = False, action_masks: Any = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Actions as their space has them, values (n, 1) and log-probabilities (n,)."""
        scores, parts, values, candidates = self._scores(obs, action_masks)
        drawn = [_draw(own, deterministic) for own in (scores, *parts)]
        log_prob = self._log_prob(scores, parts, candidates, torch.stack(drawn, 1))
        return self._said(drawn), values.unsqueeze(1), log_prob

    def evaluate_actions(self, obs: Tensor, actions: Tensor, action_masks: Any = None) -> tuple[Tensor, Tensor, Tensor]:
        """Values (n, 1), log-probabilities and entropies (n,) of given actions."""
        scores, parts, values, candidates = self._scores(obs, action_masks)
        log_prob = self._log_prob(scores, parts, candidates, actions.long().view(len(scores), -1))
        probabilities = scores.softmax(1)
        entropy = -(probabilities * scores).sum(1)
        for part, own in zip(self.tables.parts, parts, strict=True):
            applies = (probabilities * candidates[:, :, part.column]).sum(1)
            entropy = entropy - applies * (own.softmax(1) * own).sum(1)
        return values.unsqueeze(1), log_prob, entropy

    def predict_values(self, obs: Tensor) -> Tensor:
        """Values (n, 1)."""
        if not hasattr(self.network, "values"):
            return self._scores(obs, None)[2].unsqueeze(1)
        return self.network.values(obs).unsqueeze(1)

    def _predict(self, observation: Tensor, deterministic: bool = False, action_masks: Any = None) -> Tensor:
        scores, parts, _, _ = self._scores(observation, action_masks)
        return self._said([_draw(own, deterministic) for own in (scores, *parts)])

    def action_logits(self, obs: Tensor, action_masks: Any = None) -> Tensor:
        """Log-probabilities of all parts of the action, concatenated: (n, C + P)."""
        scores, parts, _, _ = self._scores(obs, action_masks)
        return torch.cat([scores, *parts], 1)


def _draw(log_probabilities: Tensor, deterministic: bool) -> Tensor:
    """One value a row: the likeliest, or a sample (by the Gumbel trick)."""
    if deterministic:
        return log_probabilities.argmax(1)
    noise = torch.empty_like(log_probabilities).exponential_().clamp_(min=1e-20).log()
    return (log_probabilities - noise).argmax(1)


class ScoredPolicy(_Scored, ActorCriticPolicy):  # type: ignore[misc]  # observations are never dicts here
    """A network of `networks.py` for SB3's PPO, over the flat Box and the action space of an environment.

    Args:
        observation_space, action_space, lr_schedule, kwargs: SB3's own.
        network: `candidates` or `mlp`.
        tables: the layout, `Tables.to_json()`.
        holds: False: it never holds single jobs, but advances.
        critic: False: no value network, as for the group baseline.
        options: of the network (width, heads, hold_logit).
    """

    def get_distribution(self, obs: Any) -> Distribution:
        """SB3's distribution over the parts, each separately."""
        return self.action_dist.proba_distribution(action_logits=self.action_logits(obs))


class MaskableScoredPolicy(_Scored, MaskableActorCriticPolicy):  # type: ignore[misc]
    """`ScoredPolicy` for sb3-contrib's MaskablePPO."""

    def get_distribution(self, obs: Any, action_masks: np.ndarray | None = None) -> Any:
        """sb3-contrib's distribution over the parts, each separately."""
        return self.action_dist.proba_distribution(action_logits=self.action_logits(obs, action_masks))


def policy_class(algo: str) -> type[ScoredPolicy] | type[MaskableScoredPolicy]:
    """The policy class for an algorithm, `maskable-ppo` or `ppo`."""
    return MaskableScoredPolicy if choose(algo, ALGORITHMS, "algorithm") == "maskable-ppo" else ScoredPolicy
