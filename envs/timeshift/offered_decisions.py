"""The decisions of an offer, as the record of TimeShift-v0 has them, and its numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...simulator.base import codes
from ...simulator.base.decisions import Decision, Hold, Migrate, Preempt, Resize, Start
from ...simulator.engine.simulator import KINDS
from .gang_places import Gangs

Way = tuple[Decision, ...]  # from the present to a placement
DECIDED = ("kind", "job", "sub_batch", "batch", "tier", "until_s")  # of a decision in the record, beside its GPUs


def write_ways(m: np.void, ways: Sequence[Way]) -> None:
    """Modify the record: it has these offers."""
    decided: list[tuple[float, ...]] = []
    gpus: list[int] = []
    firsts, offers = [0], [0]
    for way in ways:
        for decision in way:
            decided.append(_numbers_of(decision))
            gpus += getattr(decision, "gpus", ())
            firsts.append(len(gpus))
        offers.append(len(decided))
    m["n_offers"] = len(ways)
    m["offer_first"][: len(offers)] = offers
    m["decision_first"][: len(firsts)], m["decision_gpu"][: len(gpus)] = firsts, gpus
    for name, values in zip(DECIDED, zip(*decided, strict=True), strict=False):
        m[f"decision_{name}"][: len(values)] = values


def way_of(m: np.void, candidate: int) -> Way:
    """The decisions of an offer; of candidate 0 none."""
    if candidate == 0:
        return ()
    first, end = m["offer_first"][candidate - 1 : candidate + 1].tolist()
    return tuple(_decision_at(m, place) for place in range(first, end))


def gangs_after(gangs: Gangs, decisions: Sequence[Decision]) -> dict[int, tuple[int, ...]]:
    """The gangs that run once `decisions` are carried out, jobs ascending."""
    found = dict(gangs)
    for decision in decisions:
        if isinstance(decision, Preempt):
            found.pop(decision.job, None)
        elif isinstance(decision, Start | Migrate | Resize):
            found[decision.job] = decision.gpus
    return dict(sorted(found.items()))


def _numbers_of(decision: Any) -> tuple[float, ...]:
    """A decision as the record has it, in the order of DECIDED."""
    said = (getattr(decision, name, None) for name in ("sub_batch", "batch", "tier"))
    until_s = getattr(decision, "until_s", None)
    numbers = (-1 if one is None else one for one in said)
    return KINDS[type(decision)], decision.job, *numbers, math.inf if until_s is None else until_s


def _decision_at(m: np.void, place: int) -> Decision:
    """The decision at a place of the record."""
    kind, job, sub_batch, batch, tier, until_s = (m[f"decision_{name}"][place].item() for name in DECIDED)
    first, end = m["decision_first"][place : place + 2].tolist()
    gpus = tuple(m["decision_gpu"][first:end].tolist())
    sub_batch, batch, tier = (None if one < 0 else one for one in (sub_batch, batch, tier))
    if kind == codes.START:
        return Start(job, gpus, sub_batch, batch)
    if kind == codes.RESIZE:
        return Resize(job, gpus, batch, sub_batch)
    if kind == codes.MIGRATE:
        return Migrate(job, gpus)
    return Preempt(job) if kind == codes.PREEMPT else Hold(job, None if until_s == math.inf else until_s, tier)


def numbers_of(way: Way, after: Gangs) -> tuple[int, ...]:
    """Of an offer: jobs that start, move and stop, GPUs in use then, those of jobs that start."""
    starts = [one.job for one in way if isinstance(one, Start)]
    stops = [one.job for one in way if isinstance(one, Preempt)]
    again = set(starts) & set(stops)
    moves = len(again) + sum(isinstance(one, Migrate | Resize) for one in way)
    used = len(set().union(*after.values()))
    new = sum(len(after[job]) for job in starts if job not in again)
    return len(starts) - len(again), moves, len(stops) - len(again), used, new
