"""Schedulers by name. `list(env_id)` says which there are, `make(name, **params)` builds one."""

from .base import Policy, RulePolicy
from .registry import describe, environments_of, is_agent, list, make, make_for, shipped

__all__ = ["Policy", "RulePolicy", "describe", "environments_of", "is_agent", "list", "make", "make_for", "shipped"]
