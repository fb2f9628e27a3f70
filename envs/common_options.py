"""Arguments that all environments have beside those of their windows and clusters."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, get_type_hints

from .configured import options_of
from .registration import ENVIRONMENTS
from .reward import Reward

NAMESPACE = "clustergym/"


@dataclass(frozen=True)
class CommonOptions:
    """Arguments of an environment that do not concern its window or cluster; see `ClusterEnv`."""

    max_decisions: float | None = None
    observation: str = "dict"
    action: str = "parts"
    mask: str | Mapping[str, str] = "info"
    reward: str | Reward = "jct"
    reference: Any = None
    render_mode: str | None = None


COMMON_OPTIONS = frozenset(one.name for one in fields(CommonOptions))


def arguments(part: str, named: Mapping[str, Any]) -> Iterator[inspect.Parameter]:
    """The keyword arguments of an environment beside its own, `named`."""
    env_id = f"{NAMESPACE}{part}"
    usual, kinds = ENVIRONMENTS[env_id].options, get_type_hints(CommonOptions)
    options = [(one.name, one.default, kinds[one.name]) for one in fields(CommonOptions)]
    options += [(key, usual.get(key, one.default), one.kind) for key, one in options_of(env_id).items()]
    for name, default, kind in options:
        if name not in named:
            yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
