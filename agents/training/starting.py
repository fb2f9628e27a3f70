"""Beginning a training with an agent's weights, and making one longer than it was begun."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any

from ...envs.columns import names_of
from ...simulator.base.errors import InputError
from ..files.checkpoint import Checkpoint
from ..files.saved import SavedAgent, expect_weights
from ..networks import network_class
from ..playing.agent_words import open_agent
from ..playing.player import AgentPolicy
from ..playing.windows import INTERFACES
from .config import Config
from .learners import kind_of_policy


def starting_agent(config: Config) -> SavedAgent:
    """The agent `config.start_from`; InputError: there is none, or it is of another kind than the training makes."""
    word = config.start_from or ""
    kind, _, rest = word.partition(":")
    opened = open_agent(kind, rest)
    if not isinstance(opened, AgentPolicy):
        expected = "expected an agent of clustergym train, as maskable-ppo:DIR/best or zoo:ENV"
        raise InputError(f"start_from = {word}: {expected}")
    described = opened.agent.description
    theirs = _flat({"environment": described.environment, "network": described.network, **described.policy_kwargs})
    ours = _flat({"environment": config.environment, **kind_of_policy(config)})
    for key in dict.fromkeys([*ours, *theirs]):
        if ours.get(key) != theirs.get(key):
            found = f"that agent has {key} = {theirs.get(key)!r}, this training {ours.get(key)!r}"
            raise InputError(f"start_from = {word}: {found}; give both the same")
    own = names_of(INTERFACES[config.environment].columns)
    if described.columns != own:
        raise InputError(f"start_from = {word}: that agent reads other columns than {config.environment} has now")
    return opened.agent


def _flat(described: Mapping[str, Any]) -> dict[str, Any]:
    """With the network's defaults, and without the layout of the window, of which the weights are independent."""
    parameters = signature(network_class(described["network"])[0]).parameters.values()
    defaults = {one.name: one.default for one in parameters if one.default is not one.empty}
    others = {key: value for key, value in described.items() if key not in ("tables", "options")}
    return {**others, **defaults, **described.get("options", {}), **others}  # those that matter most come first


def start(policy: Any, config: Config) -> None:
    """Modify a policy of SB3: it has the weights of `config.start_from`; InputError: they do not fit."""
    agent = starting_agent(config)
    weights = agent.policy.state_dict()
    expect_weights(weights, policy, agent.files[1], "the configuration")
    policy.load_state_dict(weights)


def what_differs(config: Config, saved: Checkpoint) -> str:
    """How a training that goes on to `config.timesteps` differs from one that was begun as long; one sentence.

    Args:
        config: with the new length.
        saved: its checkpoint, of the old one.
    """
    before, reasons = saved.data["config"]["timesteps"], []
    if config.lr_schedule == "linear":
        rate = config.learning_rate * (1.0 - saved.step / config.timesteps)
        fell = f"the learning rate fell to 0 over {before:,} decisions until step {saved.step:,}"
        reasons.append(f"{fell}, and goes on at {rate:.3g} (lr_schedule=constant keeps it)")
    grouped = config.variance == "group"  # a rollout is an episode of every row, the last one of as many as fit
    rollout = saved.data["each"] * config.num_envs if grouped else config.rollout
    if (before - saved.step if grouped else before) < rollout:
        reasons.append(f"rollouts were cut to {before:,} decisions")
    whole = f"a training of {config.timesteps:,} decisions that was not begun as one of {before:,}"
    if not reasons:
        return f"it goes on to the weights of {whole}"
    return f"it ends with other weights than {whole}: {'; '.join(reasons)}"
