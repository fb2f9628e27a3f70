"""What environments offer to policies: decisions, and features of the cluster, by name.

| decision | is |
| --- | --- |
| start | `Start` on free GPUs |
| share | `Start` beside running jobs |
| hold, preempt, migrate, resize, shift | the decision of that name |
| make room | the `Preempt`s and `Migrate`s that make room for a job, and its `Start`, as one |
| plan | a scheduler's placement of all jobs of an instant |
| region | `Start` in a cluster of a region |
| bring | `Replicate` of the tables that a waiting job lacks |
| tables | `Replicate`, `Move` and `Drop` at a review of all tables |
| group | `AssignGroup`, `SetMachines`, `SetSpill` |

Features are those that options are about (simulator/configuration/cluster_config.py), and `exclusive` (a GPU has one
job), `elastic` (jobs may be), `links` (jobs share them). An environment may have others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from .names import choose, short_name


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What an environment offers; see the module."""

    decisions: frozenset[str]
    features: frozenset[str]


_installed: list[Mapping[str, Capabilities]] = [{}]


def install_environments(offers: Mapping[str, Capabilities]) -> None:
    """From now on these are all environments that there are, by id; the mapping may change later."""
    _installed[:] = [offers]


def environments() -> Mapping[str, Capabilities]:
    """What each environment offers, by id."""
    return _installed[0]


def resolve(name: str) -> str:
    """The full id of an environment given by id or by its short name (`Delay`); InputError if there is none."""
    short = {short_name(env_id): env_id for env_id in environments()}
    return name if name in environments() else short[choose(name, short, "environment")]


def environments_with(required: str, what: str = "a policy") -> tuple[str, ...]:
    """Ids of the environments that offer what `what` requires.

    `required`: decisions, and after a semicolon features; alternatives between bars: `start, preempt; exclusive |
    region`. InputError: a name that no environment has.
    """
    offered = {env_id: offer.decisions | offer.features for env_id, offer in environments().items()}
    ways = [frozenset(name.strip() for name in re.split("[,;]", way)) for way in required.split("|")]
    known = frozenset[str]().union(*offered.values())
    for name in sorted(frozenset[str]().union(*ways)):
        choose(name, sorted(known), f"decision or feature that {what} requires:")
    return tuple(env_id for env_id, names in offered.items() if any(way <= names for way in ways))
