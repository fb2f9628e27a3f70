"""Actions and decisions, one to the other, for Sharing-v0."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...simulator.base.decisions import Advance, Decision, Hold, Preempt, Resize, Start
from ...simulator.base.errors import InvalidDecision
from ...simulator.engine.simulator import Simulator
from ...simulator.events.initialise import gpus_of
from ..slots import slot_of
from .gangs import FREE_KIND, exponents_of, find_resized, find_start, wider_exponents_of
from .sharing_window import MAX_EXPONENTS, PER_RUNNING, PREEMPT_KIND, RESIZE_KIND


def encode(simulator: Simulator, window: np.record, decision: Decision) -> np.ndarray:
    """The action (candidate, sub-batch exponent), int64 (2,), that plays `decision` in the window as it stands.

    Raises:
        InvalidDecision: the window offers no such action: the job is not shown, no candidate has these GPUs, or the
            sub-batch is not the batch halved so often.
    """
    if isinstance(decision, Advance):
        return np.zeros(2, np.int64)
    starts = 3 + int(window.partners)
    if isinstance(decision, Start) and decision.batch is None:
        first = 1 + (starts + 1) * slot_of(window.waiting_job, decision)
        kind = _kind_of(simulator, window, decision, first, starts)
        return np.array([first + kind, _exponent_of(simulator, window, decision)], np.int64)
    if isinstance(decision, Hold) and decision.until_s is None:
        candidate = 1 + (starts + 1) * slot_of(window.waiting_job, decision) + starts
    elif isinstance(decision, Preempt | Resize) and getattr(decision, "batch", None) is None:
        first = 1 + (starts + 1) * int(window.slots) + PER_RUNNING * slot_of(window.running_job, decision)
        candidate = first + (PREEMPT_KIND if isinstance(decision, Preempt) else RESIZE_KIND)
    else:
        raise InvalidDecision(f"{decision!r}: no candidate of this environment stands for it")
    if not window.legal[candidate]:
        raise InvalidDecision(f"{decision!r} is not among the legal candidates of this environment now")
    exponent = _resized_exponent(simulator, window, decision) if isinstance(decision, Resize) else 0
    return np.array([candidate, exponent], np.int64)


def decode(simulator: Simulator, window: np.record, action: Any) -> Decision:
    """The decision that `action` (candidate, sub-batch exponent) stands for in the window as it was last filled.

    Advance for the candidate 0 and for one that is not legal; an exponent that does not apply is the nearest that does.
    """
    candidate, exponent = int(action[0]), int(action[1])
    s = simulator.state
    starts = 3 + int(window.partners)
    last_waiting = (starts + 1) * int(window.slots)
    if not 0 < candidate <= last_waiting + PER_RUNNING * int(window.running_slots) or not window.legal[candidate]:
        return Advance()
    if candidate > last_waiting:
        slot, kind = divmod(candidate - 1 - last_waiting, PER_RUNNING)
        job = int(window.running_job[slot])
        if kind == PREEMPT_KIND:
            return Preempt(job)
        if not window.elastic:
            least, most = wider_exponents_of(s, job)
            sub_batch = int(s.batch[job]) >> int(min(max(exponent, least), most))
            return Resize(job, gpus_of(s, job), sub_batch=sub_batch)
        find_resized(s, window, job, exponent)
        return Resize(job, s.gang[: s.gang_size].tolist())
    slot, kind = divmod(candidate - 1, starts + 1)
    job = int(window.waiting_job[slot])
    if kind == starts:
        return Hold(job)
    find_start(s, window, job, kind)
    least, most = exponents_of(s, job)
    gpus = s.gang[: s.gang_size].tolist()
    return Start(job, gpus, int(s.batch[job]) >> int(min(max(exponent, least), most)))


def _kind_of(simulator: Simulator, window: np.record, decision: Start, first: int, starts: int) -> int:
    """Modify `gang`: the kind of the first candidate that has the GPUs of `decision`."""
    s = simulator.state
    others = range(FREE_KIND + 1, starts)
    shares = any(s.gpu_load[gpu] > 0 for gpu in decision.gpus)
    for kind in (*others, FREE_KIND) if shares else (FREE_KIND, *others):
        found = window.legal[first + kind] and find_start(s, window, decision.job, kind)
        if found and tuple(s.gang[: s.gang_size].tolist()) == decision.gpus:
            return kind
    raise InvalidDecision(
        f"{decision!r}: none of the job's legal candidates has these GPUs; give the environment the policy's placer, "
        "or more partners"
    )


def _resized_exponent(simulator: Simulator, window: np.record, decision: Resize) -> int:
    """The exponent that gives the GPUs of `decision`, or its sub-batch where jobs are not elastic."""
    s = simulator.state
    if not window.elastic:
        least, most = wider_exponents_of(s, decision.job)
        return _halvings(int(s.batch[decision.job]), decision, int(least), int(most), int(window.n_exponents))
    for exponent in range(min(int(window.n_exponents), MAX_EXPONENTS)):
        find_resized(s, window, decision.job, exponent)
        if tuple(s.gang[: s.gang_size].tolist()) == decision.gpus:
            return exponent
    raise InvalidDecision(f"{decision!r}: no number of GPUs that this environment offers gives these")


def _exponent_of(simulator: Simulator, window: np.record, decision: Start) -> int:
    """The exponent that gives the sub-batch of `decision` on the GPUs in `gang`."""
    s, job = simulator.state, decision.job
    least, most = exponents_of(s, job)
    return _halvings(int(s.batch[job]), decision, int(least), int(most), int(window.n_exponents))


def _halvings(batch: int, decision: Start | Resize, least: int, most: int, exponents: int) -> int:
    """How often the batch is halved for the sub-batch of `decision`: `least` to `most` times, below `exponents`."""
    if decision.sub_batch in (None, batch >> least):  # what a lower exponent becomes, too
        return min(least, exponents - 1)
    for exponent in range(least, min(most, exponents - 1) + 1):
        if batch >> exponent == decision.sub_batch:
            return exponent
    raise InvalidDecision(
        f"{decision!r}: its sub-batch is not the batch of {batch} samples a GPU, halved {least} to {most} times; or "
        "give the environment more exponents"
    )
