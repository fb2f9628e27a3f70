"""Whatever an environment allows can be learned: every kind of candidate that is legal there has a chance."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra agents")
pytest.importorskip("sb3_contrib", reason="needs the extra agents")

from clustergym.agents.networks import LEGAL  # noqa: E402
from clustergym.agents.training.config import default_config, make_config  # noqa: E402
from clustergym.agents.training.learners import make_env, make_learner  # noqa: E402
from clustergym.envs.columns import FLAG, described  # noqa: E402
from clustergym.tests.support.small_envs import random_actions  # noqa: E402

# Kinds that an episode shows for sure, so that it has been seen that they have a chance.
SHOWN = {
    "Delay": {"advance", "start"},
    "Delay-preemptive": {"advance", "start", "preempt", "make_room"},
    "Sharing": {"advance", "start", "beside_partner"},
    "TimeShift": {"place", "leave", "shift", "run_free"},
    "Geo": {"advance", "start", "make_room"},
    "DataPlacement": {"drop", "replica", "home"},
    "Grouping": {"open", "join", "pause", "swap"},
}
STEPS = 200


@pytest.mark.parametrize("name", SHOWN)
def test_every_kind_of_candidate_that_is_legal_has_a_chance(name):
    """But for holds where an agent takes none (`holds: false`). Actions are drawn at random."""
    config = make_config(default_config(name) | {"num_envs": 2, "variance": "none", "batch_size": 2}, name)
    env = make_env(config)
    policy = make_learner(config, env).policy
    columns = described(env.envs[0].interface.columns["candidates"])
    names = np.array(list(columns))
    kinds = np.flatnonzero([column.unit == FLAG for column in columns.values()])
    tables = env.envs[0].tables
    assert (tables.hold_column is not None) == ("hold" in columns)
    rng = np.random.default_rng(0)
    seen = env.reset()
    legal_kinds, chances = np.zeros(len(kinds), bool), np.zeros(len(kinds))
    for _ in range(STEPS):
        candidates = seen[:, -tables.candidates * tables.candidate_columns :].reshape(-1, tables.candidate_columns)
        is_legal = candidates[:, LEGAL] > 0.0
        with torch.no_grad():
            chance = policy.action_logits(torch.as_tensor(seen))[:, : tables.candidates].exp().numpy().ravel()
        is_kind = candidates[:, kinds] > 0.0
        legal_kinds |= is_kind[is_legal].any(0)
        chances = np.maximum(chances, (is_kind * chance[:, None]).max(0))
        seen = env.step(random_actions(rng, env.action_masks(), env.action_space))[0]
    never = {str(column) for column in names[kinds][legal_kinds & (chances == 0.0)]}
    assert SHOWN[name] <= set(names[kinds][legal_kinds])
    assert never == ({"hold"} if "hold" in columns and not config.holds else set())
