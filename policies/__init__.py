"""Schedulers by name. `list(env_id)` says which there are, `make(name, **params)` builds one."""

from .base import Policy, RulePolicy
from .registry import describe, list, make

__all__ = ["Policy", "RulePolicy", "describe", "list", "make"]
