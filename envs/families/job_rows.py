"""Tables of observations whose rows have candidates: of the jobs that wait, and of those that run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...simulator.compiler.jit import kernel


class Rows(NamedTuple):
    """A table of the observation whose rows have candidates; kernels but for the first two.

    Attributes:
        name, columns: of the table; its columns by name, the first of which is 1 in rows in use.
        slots, shown, per: (w) rows; rows in use; candidates of a row.
        subject: (w, slot) what the row is about.
        write: (s, w, m, slot, subject, shown) writes a row, float32 (columns,); False if its candidates are of the same
            subject as those that were written last.
        leave: (w, slot) forgets what was written there: the row is empty now.
    """

    name: str
    columns: Any
    slots: Callable[..., Any]
    shown: Callable[..., Any]
    per: Callable[..., Any]
    subject: Callable[..., Any]
    write: Callable[..., Any]
    leave: Callable[..., Any]


@kernel
def leave_nothing(w, slot):
    """For tables that are written as a whole."""


@kernel
def _slots(w):
    return w.slots


@kernel
def _waiting_shown(w):
    return w.waiting_shown


@kernel
def _per_waiting(w):
    return w.per_waiting


@kernel
def _waiting_job(w, slot):
    return w.waiting_job[slot]


@kernel
def _running_slots(w):
    return w.running_slots


@kernel
def _running_shown(w):
    return w.running_shown


@kernel
def _per_running(w):
    return w.per_running


@kernel
def _running_job(w, slot):
    return w.running_job[slot]


def waiting_rows(columns: Any, write: Callable[..., Any], leave: Callable[..., Any] = leave_nothing) -> Rows:
    """The table `queue`, of the waiting jobs in the window."""
    return Rows("queue", columns, _slots, _waiting_shown, _per_waiting, _waiting_job, write, leave)


def running_rows(columns: Any, write: Callable[..., Any], leave: Callable[..., Any] = leave_nothing) -> Rows:
    """The table `running`, of the running jobs in the window."""
    return Rows("running", columns, _running_slots, _running_shown, _per_running, _running_job, write, leave)
