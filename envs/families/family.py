"""A family: one decision that environments offer to agents, in all that it means, in one file.

Its kernels are functions of its module. In them `s`, `w` and `m` are a record, its window, and what its solver
remembers; `to` has the places of an environment's columns of candidates by name (envs/columns.py), so that a family
writes `offer[to.slowdown]` wherever the environment has put that column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...simulator.base.errors import InvalidDecision
from ...simulator.compiler.jit import kernel

if TYPE_CHECKING:
    from ..agent_interface import AgentInterface


@kernel
def never(s, w):
    """False: no job need be looked at."""
    return False


class Family:
    """A decision about the subjects of one table of the observation: jobs that wait, jobs that run, groups.

    Attributes:
        name: in lists of families.
        table: the table whose rows have its candidates.
        kinds: the columns that mark its candidates of a row, in their order.
        is_counted: whether options say how many candidates of a row it has; else it has one of each kind.
        stands_for: the classes of the decisions that its candidates stand for.
        fields: its fields of the window.
        mark: kernel (s, w, m, first): marks its legal candidates in `w.legal`, and sets `w.can_act` where an agent has
            to decide; `first`: its first candidate of a row.
        describe: kernel (s, w, m, slot, subject, kind, shown, of, offer, to, is_new): writes a legal candidate into
            `offer`, float32 (columns,); `shown`: the row of its subject, with the columns `of`. If not `is_new`,
            `offer` holds what it last wrote about the same subject.
        carry_out: kernel (s, w, m, slot, subject, kind, action): carries it out; True if with other parts than asked.
        may_act: kernel (s, w): False if no agent can do anything of it now, by what no single subject says.
        acts_beyond: kernel (s, w): whether it could act on a subject that the window does not show.
    """

    name: ClassVar[str]
    table: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]]
    stands_for: ClassVar[tuple[type, ...]]
    is_counted: ClassVar[bool] = False
    fields: ClassVar[tuple[tuple[Any, ...], ...]] = ()
    mark: ClassVar[Callable[..., Any]]
    describe: ClassVar[Callable[..., Any]]
    carry_out: ClassVar[Callable[..., Any]]
    may_act: ClassVar[Callable[..., Any]] = staticmethod(never)
    acts_beyond: ClassVar[Callable[..., Any]] = staticmethod(never)

    def set_up(self, window: Any) -> None:
        """Modify the window: write its options."""

    def count(self) -> int:
        """Number of its candidates of a row."""
        return len(self.kinds)

    def slot(self, window: AgentInterface, decision: Any) -> int:
        """The row of its table that is about a decision; InvalidDecision: none is."""
        w = window.window
        slots = np.flatnonzero((w.waiting_job if self.table == "queue" else w.running_job) == decision.job)
        if len(slots) == 0:
            raise InvalidDecision(f"{decision!r}: the window does not show job {decision.job}; give it more slots")
        return int(slots[0])

    def actions_for(self, window: AgentInterface, decision: Any) -> Iterator[tuple[int, ...]]:
        """The kinds, and the other parts of an action, that may play a decision that it stands for: here any kind."""
        for kind in range(self.count()):
            yield (kind,)

    def hint(self, window: AgentInterface, decision: Any, likely: list[Any] | None) -> str:
        """The end of the message that no action plays `decision`: what to do; `likely`: what one does instead."""
        return ""
