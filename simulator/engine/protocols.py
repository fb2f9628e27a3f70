"""What an environment may get from other rooms; the root package installs the search of policies by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..base.errors import InputError
from ..base.names import loaded

if TYPE_CHECKING:
    from ..base.decisions import Decision
    from ..rules.rule import Rule
    from ..rules.semantics import Semantics
    from .plans import Plan
    from .view import ClusterView


class Policy(Protocol):
    """Anything that decides at decision points; `policies.Policy` is one."""

    @property
    def rule(self) -> Rule | None:
        """The compiled rule that it is, or None."""

    def rule_under(self, semantics: Semantics) -> Rule | None:
        """The compiled rule that it is under these semantics, or None."""

    def decide(self, view: ClusterView) -> Decision:
        """The next decision at this instant, until `Advance`."""


class Room(Protocol):
    """The shape of a simulator's records: `Capacity`, or another frozen dataclass of whole numbers.

    A record has room for another where each of them is as large.
    """

    @property
    def jobs(self) -> int:
        """How many there may be."""

    @property
    def large(self) -> Room:
        """That which all but the smallest workloads and clusters of the kind need."""

    @property
    def words(self) -> str:
        """It for people: "136 jobs on 72 GPUs"."""

    def empty(self, n: int = 1) -> np.recarray:
        """`n` zeroed records of this shape."""


class CandidateSource(Protocol):
    """A scheduler that can say in how many ways it would place the same jobs."""

    def candidates(self, view: ClusterView, n: int) -> list[Plan]:
        """Up to n plans for this instant, at least one, all distinct, and equal in the scheduler's own terms.

        The first is the scheduler's own choice. Equal views give equal plans: all memory is in the record.
        """


class Remembers(Protocol):
    """A decider with memory between instants beyond the record, for copies of the environment and resets of state."""

    def memory(self, simulator: Any) -> Any:
        """What it remembers of the present run; it does not change when the run goes on."""

    def recall(self, simulator: Any, memory: Any) -> None:
        """A simulator now stands where one stood of whose run `memory` was remembered."""


_maker: list[str] = []


def install_policies(place: str) -> None:
    """From now on what lies at `place`, `module:name`, turns a policy's name, and where it plays, into the policy."""
    _maker[:] = [place]


def policy_of(word: str, env_id: str | None = None) -> Any:
    """The policy of a name with parameters (`dally:history=24`); `env_id` None: parameters of any environment."""
    if not _maker:
        raise InputError(f"policy {word!r}: nothing that knows policies by name is installed; import clustergym")
    return loaded(_maker[0])(word, env_id)
