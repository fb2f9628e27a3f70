"""Reading the decision log of a record."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..base.codes import DROP, HOLD, MIGRATE, MOVE, PREEMPT, REPLICATE, RESIZE, SHIFT, START
from ..base.decisions import Decision, Drop, Hold, Migrate, Move, Preempt, Replicate, Resize, Shift, Start
from ..base.errors import InputError

ABOUT_TABLES: dict[int, type[Move | Drop]] = {MOVE: Move, DROP: Drop}


def expect_logged(s: np.record) -> None:
    """InputError where there were more decisions at one instant than the log has room for."""
    if s.log_overflow:
        raise InputError(
            f"more decisions at {s.now_s:g} s than are recorded, {len(s.log_job):,} of one instant (or GPUs of them); "
            "play it without recording decisions"
        )


def logged(s: np.record) -> Iterator[tuple[tuple[int, ...], Decision]]:
    """Decisions of the present instant in order, with the GPUs that they took or gave back; needs `s.log_on`."""
    expect_logged(s)
    for i in range(s.log_count):
        job, first = int(s.log_job[i]), int(s.log_first[i])
        gpus = tuple(s.log_gpu[first : first + s.log_size[i]].tolist())
        if s.log_kind[i] == REPLICATE:
            yield (), Replicate(job, gpus[0], bool(s.log_value[i]))
            continue
        if s.log_kind[i] in ABOUT_TABLES:
            yield (), ABOUT_TABLES[int(s.log_kind[i])](job, gpus[0])
            continue
        if s.log_kind[i] == SHIFT:
            seconds = float(s.log_seconds[i])
            yield gpus, Shift(job, seconds if seconds >= 0.0 else None)
            continue
        if s.log_kind[i] == RESIZE and not s.elastic:
            yield gpus, Resize(job, gpus, sub_batch=int(s.log_value[i]))
            continue
        yield gpus, _decision(int(s.log_kind[i]), job, gpus, int(s.log_value[i]))


def _decision(kind: int, job: int, gpus: tuple[int, ...], value: int) -> Decision:
    if kind == START:
        return Start(job, gpus, value or None)
    if kind == RESIZE:
        return Resize(job, gpus, value * len(gpus))
    if kind == MIGRATE:
        return Migrate(job, gpus)
    if kind == HOLD:
        return Hold(job)
    assert kind == PREEMPT
    return Preempt(job)
