"""Schedulers by name. `list(env_id)` says which there are, `make(name, **params)` builds one."""

from .base import Policy, RulePolicy
from .own import Handed, PolicyFailed, handed, playing, word_of
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
    "Handed",
    "Policy",
    "PolicyFailed",
    "RulePolicy",
    "able",
    "describe",
    "environments_of",
    "handed",
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
