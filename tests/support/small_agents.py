"""Small untrained agents for tests: what they decide is far from sensible, but always the same."""

from __future__ import annotations

from typing import Any

import torch

from clustergym.agents.files.saved import AgentDescription, SavedAgent, build_policy
from clustergym.envs.columns import names_of
from clustergym.envs.delay.columns import CANDIDATES, CLUSTER, QUEUE, RUNNING
from clustergym.envs.delay.delay_interface import DelayInterface
from clustergym.envs.observation_layout import Part, Table, Tables

DELAY = "clustergym/Delay-v0"
WINDOW = {"slots": 4, "running_slots": 2}
HOLD = CANDIDATES.hold


def tables_of(slots: int = 32, running_slots: int = 16, delays: int = 11, **others: Any) -> dict[str, Any]:
    """The layout of Delay-v0's flat observation with such a window, as agents record it."""
    rows = (Table(slots, len(QUEUE), 5), Table(running_slots, len(RUNNING), 3))
    return Tables(len(CLUSTER), rows, len(CANDIDATES), (Part(delays, HOLD), Part(2, HOLD)), 0, HOLD).to_json()


def description(algo: str = "maskable-ppo", network: str = "candidates", **changes: Any) -> AgentDescription:
    """Of an agent that looks at few jobs, or through `env_kwargs`, and may hold."""
    env_kwargs = changes.pop("env_kwargs", WINDOW)
    delays = DelayInterface(**{key: value for key, value in env_kwargs.items() if key == "delays"}).parts[1]
    kwargs = {"tables": tables_of(**{**env_kwargs, "delays": delays}), "holds": True, "options": {"width": 8}}
    if network == "candidates":
        kwargs["options"]["hold_logit"] = -0.5
    columns = names_of(DelayInterface.columns)
    of_env = {"environment": DELAY, "env_kwargs": env_kwargs, "columns": columns}
    return AgentDescription(**{"algo": algo, "network": network, "policy_kwargs": kwargs, **of_env, **changes})


def agent(seed: int = 0, **changes: Any) -> SavedAgent:
    """An agent with weights drawn from `seed`, large enough for clear preferences."""
    described = description(**changes)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        policy = build_policy(described)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weights in policy.parameters():
            weights.add_(0.3 * torch.randn(weights.shape, generator=generator))
    policy.set_training_mode(False)
    return SavedAgent(policy, described, ())
