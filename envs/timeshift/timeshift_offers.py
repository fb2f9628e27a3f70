"""The placements that a decision point offers, and their features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...simulator.base.decisions import Decision, Migrate, Preempt, Resize, Start
from ...simulator.numerics.float_sums import sum_in_order
from ..python_step import scaled_count
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


OFFER = (
    "place among the candidates: k / candidates",
    "jobs that start: n / (n + 32)",
    "jobs that move, or have other numbers of workers than now: n / (n + 32)",
    "jobs that stop: n / (n + 32)",
    "GPUs in use then",
    "GPUs of the jobs that start",
    "waiting jobs then: w / (w + 32)",
    "jobs that meet others on a link, of those that run",
    "links that several jobs use, of all",
    "links on which they can want more than there is, of those",
    "largest number of jobs that are joined by links, of those that run",
    "load of the fullest link that is shared: x / (1 + x)",
    "mean excess over shared links, at any rotations",
    "mean excess over shared links, at good rotations",
    "sum over jobs of the excess on their worst link, at any rotations: x / (1 + x)",
    "sum over jobs of the excess on their worst link, at good rotations: x / (1 + x)",
    "cycles of the affinity graph: n / (n + 8)",
)
OFFER_COLUMNS = len(OFFER)


def describe_offer(offer: Offer, place: float, gpus: int, waiting: int, links: int) -> list[float]:
    """The features of an offer, (OFFER_COLUMNS,), in [0, 1]; `place` among the candidates is 0 for the first."""
    starts = [d.job for d in offer.decisions if isinstance(d, Start)]
    stops = [d.job for d in offer.decisions if isinstance(d, Preempt)]
    again = set(starts) & set(stops)
    moves = len(again) + sum(isinstance(d, Migrate | Resize) for d in offer.decisions)
    started, stopped = len(starts) - len(again), len(stops) - len(again)
    running = max(1, len(offer.gangs))
    used = len(set().union(*offer.gangs.values()))
    new = sum(len(offer.gangs[job]) for job in starts if job not in again)
    jobs = [scaled_count(started), scaled_count(moves), scaled_count(stopped)]
    then = [used / gpus, min(1.0, new / gpus), scaled_count(max(0, waiting - started + stopped))]
    return [place, *jobs, *then, *describe_shared_links(offer.meetings, running, links)]


def describe_shared_links(meetings: SharedLinks, running: int, links: int) -> list[float]:
    """The columns of an offer about links."""
    components = meetings.components
    if not components:
        return [0.0] * 10
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
    parts = [min(1.0, contending / running), shared / max(1, links), crowded / vertices, min(1.0, largest / running)]
    means = [load / (1.0 + load), min(1.0, float(free.mean())), min(1.0, float(best.mean()))]
    sums = [worst_free / (1.0 + worst_free), worst_best / (1.0 + worst_best)]
    return [*parts, *means, *sums, cycles / (cycles + MOST_LOOPS)]


def _worst(flows: np.ndarray, excess: np.ndarray) -> float:
    return float(np.where(flows > 0, excess[:, None], 0.0).max(axis=0).sum())


def _cycles(flows: np.ndarray) -> int:
    """Independent cycles of a component's affinity graph: edges less vertices, and one."""
    links, jobs = flows.shape
    return int(np.count_nonzero(flows)) - links - jobs + 1
