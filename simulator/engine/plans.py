"""Plans: the GPUs of the jobs that run after an instant, and the decisions that lead there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..base.decisions import Decision, Hold, Migrate, Preempt, Resize, Start

if TYPE_CHECKING:
    from .view import ClusterView


@dataclass(frozen=True)
class Plan:
    """The GPUs of every job that is to run after this instant. A job that runs now and is not in it is stopped.

    Attributes:
        gangs: job -> its GPUs, in the order in which jobs start.
        sub_batch: of jobs that start, where GPUs are shared and it is not the largest possible (`Start`).
        held: waiting jobs that get no offers until GPUs are freed (`Hold`).
    """

    gangs: Mapping[int, tuple[int, ...]]
    sub_batch: Mapping[int, int] = field(default_factory=dict)
    held: tuple[int, ...] = ()

    @cached_property
    def placement(self) -> frozenset[tuple[int, frozenset[int]]]:
        """What it comes to, whatever the order of jobs and of GPUs in a gang: equal for plans that are the same."""
        return frozenset((job, frozenset(gpus)) for job, gpus in self.gangs.items())


def plan_now(view: ClusterView) -> Plan:
    """The plan that changes nothing.

    Args:
        view: the cluster now.

    Returns:
        The GPUs of all running jobs.
    """
    return Plan(view.gangs)


def decisions_of(view: ClusterView, plan: Plan) -> list[Decision]:
    """The decisions from the present to `plan`, in an order in which each can be carried out.

    First stops, then moves and resizes as GPUs become free; of jobs that wait for each other in a circle one stops and
    starts again. Then starts and holds.
    """
    return decisions_between(view.gangs, view.jobs_per_gpu - view.load, plan)


def decisions_between(held: Mapping[int, tuple[int, ...]], room: np.ndarray, plan: Plan) -> list[Decision]:
    """As `decisions_of`, from gangs that are `held`; modifies `room`, int64 (G,), for how many jobs each GPU has it."""
    decisions: list[Decision] = []
    for stops, own in held.items():
        if stops not in plan.gangs:
            decisions.append(Preempt(stops))
            room[list(own)] += 1
    moving = {job: gpus for job, gpus in plan.gangs.items() if job in held and set(held[job]) != set(gpus)}
    stopped: set[int] = set()
    while moving:
        job = next((job for job, gpus in moving.items() if _has_room(room, gpus, held[job])), None)
        if job is not None:
            gpus = moving.pop(job)
            decisions.append(Migrate(job, gpus) if len(gpus) == len(held[job]) else Resize(job, gpus))
            room[list(held[job])] += 1
            room[list(gpus)] -= 1
        else:
            last = next(reversed(moving))
            # A job that only grows gives no room.
            job = next((job for job in reversed(moving) if not set(held[job]) <= set(moving[job])), last)
            del moving[job]
            stopped.add(job)
            decisions.append(Preempt(job))
            room[list(held[job])] += 1
    for job, gpus in plan.gangs.items():
        if job not in held or job in stopped:
            decisions.append(Start(job, gpus, plan.sub_batch.get(job)))
    return [*decisions, *(Hold(job) for job in plan.held)]


def _has_room(room: np.ndarray, gpus: tuple[int, ...], own: tuple[int, ...]) -> bool:
    return all(room[gpu] > 0 or gpu in own for gpu in gpus)
