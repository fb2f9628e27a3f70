"""Reading the decision log of a record."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..base.codes import DROP, HELD, HOLD, MIGRATE, MOVE, PREEMPT, REPLICATE, RESIZE, SHIFT, START
from ..base.decisions import Decision, Drop, Hold, Migrate, Move, Preempt, Replicate, Resize, Shift, Start
from ..base.errors import InputError

ABOUT_TABLES: dict[int, type[Move | Drop]] = {MOVE: Move, DROP: Drop}
COLUMNS = ("log_kind", "log_job", "log_first", "log_size", "log_value")


def expect_logged(s: np.void) -> None:
    """InputError where there were more decisions at one instant than the log has room for."""
    if s["log_overflow"]:
        raise InputError(
            f"more decisions at {s['now_s']:g} s than are recorded, {len(s['log_job']):,} of one instant (or GPUs of "
            "them); play it without recording decisions"
        )


def logged(s: np.void) -> Iterator[tuple[tuple[int, ...], Decision]]:
    """Decisions of the present instant in order, with the GPUs that they took or gave back; needs `s.log_on`.

    A hold lasts as long as it does now; one that is over already says nothing of it.
    """
    expect_logged(s)
    rows = zip(*(s[name][: s["log_count"]].tolist() for name in COLUMNS), strict=True)
    for entry, (kind, job, first, size, value) in enumerate(rows):
        gpus = tuple(s["log_gpu"][first : first + size].tolist())
        if kind == REPLICATE:
            yield (), Replicate(job, gpus[0], bool(value))
        elif kind in ABOUT_TABLES:
            yield (), ABOUT_TABLES[kind](job, gpus[0])
        elif kind == SHIFT:
            seconds = float(s["log_seconds"][entry])
            yield gpus, Shift(job, seconds if seconds >= 0.0 else None)
        elif kind == HOLD:
            yield gpus, _hold(s, job)
        elif kind == RESIZE and not s["elastic"]:
            yield gpus, Resize(job, gpus, sub_batch=value)
        else:
            yield gpus, _decision(kind, job, gpus, value)


def _hold(s: np.void, job: int) -> Hold:
    place = s["event_position"][job] if s["status"][job] == HELD else -1
    return Hold(job, float(s["event_key"][place]) if place >= 0 else None, int(s["hold_tier"][job]) or None)


def _decision(kind: int, job: int, gpus: tuple[int, ...], value: int) -> Decision:
    if kind == START:
        return Start(job, gpus, value or None)
    if kind == RESIZE:
        return Resize(job, gpus, value * len(gpus))
    if kind == MIGRATE:
        return Migrate(job, gpus)
    assert kind == PREEMPT
    return Preempt(job)
