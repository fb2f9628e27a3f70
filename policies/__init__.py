"""Schedulers by name. `list(env_id)` says which there are, `make(name, **params)` builds one."""

from .base import Policy, RulePolicy
from .own import PolicyFailed, PolicyObject, as_player, playing, word_of
from .registry import (
    able,
    describe,
    environments_of,
    is_agent,
    list,
    make,
    make_for,
    maker_of,
    parameters_of,
    shipped,
    spelt,
)

__all__ = [
    "Policy",
    "PolicyFailed",
    "PolicyObject",
    "RulePolicy",
    "able",
    "as_player",
    "describe",
    "environments_of",
    "is_agent",
    "list",
    "make",
    "make_for",
    "maker_of",
    "parameters_of",
    "playing",
    "shipped",
    "spelt",
    "word_of",
]
