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

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .names import choose, short_name


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """Decisions and features: what an environment offers, or what a policy requires."""

    decisions: frozenset[str]
    features: frozenset[str] = frozenset()

    def within(self, offer: Capabilities) -> bool:
        """Whether an offer has all of it."""
        return self.decisions <= offer.decisions and self.features <= offer.features


_installed: list[Mapping[str, Capabilities]] = [{}]


def install_environments(offers: Mapping[str, Capabilities]) -> None:
    """From now on these are all environments that there are, by id; the mapping may change later."""
    _installed[:] = [offers]


def environments() -> Mapping[str, Capabilities]:
    """What each environment offers, by id."""
    return _installed[0]


def environment_id(name: str) -> str:
    """The id of an environment, by id or short name. Raises InputError if there is none."""
    known = {short_name(env_id): env_id for env_id in environments()}
    return known[choose(short_name(name), known, "environment")]


def required(text: str) -> Iterator[Capabilities]:
    """Alternatives, each `DECISION, ...; FEATURE, ...`, with bars between: `start, preempt; exclusive | region`."""
    for way in text.split("|"):
        decisions, _, features = way.partition(";")
        yield Capabilities(decisions=_names(decisions), features=_names(features))


def environments_with(text: str) -> tuple[str, ...]:
    """Ids of the environments that offer all of an alternative of `required`."""
    ways = list(required(text))
    return tuple(env_id for env_id, offer in environments().items() if any(way.within(offer) for way in ways))


def _names(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(",") if name.strip())
