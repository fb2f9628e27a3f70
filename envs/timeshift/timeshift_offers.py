"""The placements that a decision point offers, and their features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...simulator.base.decisions import Decision, Migrate, Preempt, Resize, Start
from ...simulator.numerics.float_sums import sum_in_order
from ..python_step import scaled_count
from .columns import CANDIDATES
from .shared_links import SharedLinks

Gangs = Mapping[int, tuple[int, ...]]
MOST_LOOPS = 8.0  # cycles of an affinity graph that read 0.5


@dataclass(frozen=True, eq=False)
class Offer:
    """A placement of all jobs."""

    decisions: tuple[Decision, ...]  # from the present to it, in order; none: it is the present
    gangs: Gangs  # the GPUs of every job that runs then
    meetings: SharedLinks  # the links that these gangs share


PLACING, PLACED, SHIFTING, THROUGH = range(4)  # stages of an instant


@dataclass
class Instant:
    """A decision point, and the stage in it."""

    stage: int = THROUGH  # PLACING, PLACED (decisions are to be carried out), SHIFTING or THROUGH
    present: Offer = field(default_factory=lambda: Offer((), {}, SharedLinks({}, np.zeros(0))))
    offers: list[Offer] = field(default_factory=list)  # while placing
    turning: list[int] = field(default_factory=list)  # jobs whose shift is still to be chosen, ascending
    turned: int = 0  # number of shifts chosen

    def copy(self) -> Instant:
        """An independent copy."""
        return replace(self, offers=self.offers.copy(), turning=self.turning.copy())


def gangs_after(gangs: Gangs, decisions: Sequence[Decision]) -> dict[int, tuple[int, ...]]:
    """The gangs that run once `decisions` are carried out."""
    found = dict(gangs)
    for decision in decisions:
        if isinstance(decision, Preempt):
            found.pop(decision.job, None)
        elif isinstance(decision, Start | Migrate | Resize):
            found[decision.job] = decision.gpus
    return found


def describe_offer(row: np.ndarray, offer: Offer, gpus: int, waiting: int, links: int) -> None:
    """Write the features of an offer into its candidate's row, float32 (len(CANDIDATES),), all but its rank."""
    starts = [d.job for d in offer.decisions if isinstance(d, Start)]
    stops = [d.job for d in offer.decisions if isinstance(d, Preempt)]
    again = set(starts) & set(stops)
    moves = len(again) + sum(isinstance(d, Migrate | Resize) for d in offer.decisions)
    started, stopped = len(starts) - len(again), len(stops) - len(again)
    used = len(set().union(*offer.gangs.values()))
    new = sum(len(offer.gangs[job]) for job in starts if job not in again)
    row[CANDIDATES.started] = scaled_count(started)
    row[CANDIDATES.moved] = scaled_count(moves)
    row[CANDIDATES.stopped] = scaled_count(stopped)
    row[CANDIDATES.used_after] = used / gpus
    row[CANDIDATES.started_gpus] = min(1.0, new / gpus)
    row[CANDIDATES.waiting_after] = scaled_count(max(0, waiting - started + stopped))
    if offer.meetings.components:
        _describe_shared_links(row, offer.meetings, max(1, len(offer.gangs)), links)


def _describe_shared_links(row: np.ndarray, meetings: SharedLinks, running: int, links: int) -> None:
    components = meetings.components
    looks = [component.outlook() for component in components]
    contending = sum(len(component.jobs) for component in components)
    shared = max(1, meetings.num_shared)
    vertices = sum(len(component.capacity) for component in components)
    crowded = sum(int(component.crowded.sum()) for component in components)
    free = np.concatenate([look.free for look in looks])
    best = np.concatenate([look.best for look in looks])
    cycles = sum(_cycles(component.flows) for component in components)
    load = max(float(component.load.max()) for component in components)
    flows = [component.flows for component in components]
    worst_free = sum_in_order(_worst(one, look.free) for one, look in zip(flows, looks, strict=True))
    worst_best = sum_in_order(_worst(one, look.best) for one, look in zip(flows, looks, strict=True))
    largest = max(len(component.jobs) for component in components)
    row[CANDIDATES.contending] = min(1.0, contending / running)
    row[CANDIDATES.shared_links] = shared / max(1, links)
    row[CANDIDATES.crowded_links] = crowded / vertices
    row[CANDIDATES.joined_jobs] = min(1.0, largest / running)
    row[CANDIDATES.load] = load / (1.0 + load)
    row[CANDIDATES.excess_any] = min(1.0, float(free.mean()))
    row[CANDIDATES.excess_good] = min(1.0, float(best.mean()))
    row[CANDIDATES.worst_any] = worst_free / (1.0 + worst_free)
    row[CANDIDATES.worst_good] = worst_best / (1.0 + worst_best)
    row[CANDIDATES.cycles] = cycles / (cycles + MOST_LOOPS)


def _worst(flows: np.ndarray, excess: np.ndarray) -> float:
    return float(np.where(flows > 0, excess[:, None], 0.0).max(axis=0).sum())


def _cycles(flows: np.ndarray) -> int:
    """Independent cycles of a component's affinity graph: edges less vertices, and one."""
    links, jobs = flows.shape
    return int(np.count_nonzero(flows)) - links - jobs + 1
