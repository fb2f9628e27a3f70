"""The present of a window of TimeShift-v0 as one array; columns: observation.py."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ...simulator.jobs.estimates import known_left
from .observation import (
    CANDIDATES,
    FIRST_OFFER,
    FIRST_TURN,
    FREE_COLUMN,
    LEAVE_COLUMN,
    LEGAL_COLUMN,
    NO_MORE_COLUMN,
    PLACE_COLUMN,
    QUEUE,
    RUNNING,
    SHIFT_COLUMN,
    TURNS,
    observe_cluster,
    observe_queue,
    observe_running,
)
from .shared_links import Component, UnifiedCircle, shift_now, turned_now
from .timeshift_offers import OFFER_COLUMNS, describe_offer

if TYPE_CHECKING:
    from .timeshift_interface import TimeShiftInterface

MOST_WHEELS = 64  # that are kept
MOST_LOG_LEFT = 24.0


def observe(look: TimeShiftInterface, features: np.ndarray) -> None:
    """Write all features, float32: cluster, queue, running, rotations and candidates, one after the other."""
    features[:] = 0.0
    s, w = look.simulator.plain.record, look.plain
    parts = {}
    first = 0
    for key, size in look.sizes.items():
        parts[key] = features[first : first + size]
        first += size
    asked = observe_queue(s, w, parts["queue"].reshape(-1, len(QUEUE)))
    running = parts["running"].reshape(-1, len(RUNNING))
    jobs = observe_running(s, w, running)
    _observe_links(look, jobs.tolist(), running)
    observe_cluster(s, w, parts["cluster"], asked)
    _observe_stage(look, parts["cluster"])
    candidates = parts["candidates"].reshape(-1, len(CANDIDATES))
    if look.turning:
        _observe_turns(look, parts["rotations"], candidates)
    else:
        _observe_offers(look, candidates)


def _observe_stage(look: TimeShiftInterface, shown: np.ndarray) -> None:
    meetings, running = look.present.meetings, len(look.present.gangs)
    shown[9] = meetings.num_shared / num_links(look)
    shown[10] = len(meetings.component_of) / max(1, running)
    shown[11] = not look.turning
    shown[12] = len(look.turning) / max(1, running)


def num_links(look: TimeShiftInterface) -> int:
    """Links of the network, at least 1."""
    links = look.simulator.topology.links
    return 1 if links is None else max(1, links.num_links)


def _observe_links(look: TimeShiftInterface, jobs: list[int], rows: np.ndarray) -> None:
    """Write what running jobs do on the network, and how they are turned."""
    meetings, links = look.present.meetings, look.simulator.topology.links
    s = look.simulator.plain.record
    excess = excess_now(look)
    for row, job in zip(rows, jobs, strict=False):
        place = meetings.places.get(job)
        row[7] = bool(look.turning) and look.turning[0] == job
        if place is None or links is None:
            continue
        phases, use = place.phases, place.use
        row[8] = phases.iteration_s / (1.0 + phases.iteration_s)
        row[9] = min(1.0, phases.up_s / phases.iteration_s)
        row[10] = min(1.0, phases.peak * float((use.flows / links.capacity[use.links]).max()))
        row[11] = len(use.links) / links.num_links
        row[12] = meetings.links_of[job] / len(use.links)
        component = meetings.component_of.get(job)
        if component is not None:
            row[13] = (len(component.jobs) - 1) / max(1, len(look.present.gangs))
        shift = shift_now(s, job)
        if shift is not None:
            row[14], row[15] = 1.0, shift[0] % shift[1] / shift[1]
        row[16] = min(1.0, excess.get(job, 0.0))


def excess_now(look: TimeShiftInterface) -> dict[int, float]:
    """By job that meets others: the excess on its links, the mean, as all are turned now."""
    found = {}
    for component in look.present.meetings.components:
        wheel = wheel_of(look, component)
        excess = wheel.links_at(turned_now(look.simulator, component, wheel))
        on = component.flows > 0.0
        for position, job in enumerate(component.jobs):
            found[job] = float(excess[on[:, position]].mean())
    return found


def wheel_of(look: TimeShiftInterface, component: Component) -> UnifiedCircle:
    """The circles of a component; the last ones are kept."""
    wheel = look.wheels.get(component.key)
    if wheel is None:
        while len(look.wheels) >= MOST_WHEELS:
            del look.wheels[next(iter(look.wheels))]
        wheel = look.wheels[component.key] = UnifiedCircle(component)
    return wheel


def _observe_offers(look: TimeShiftInterface, rows: np.ndarray) -> None:
    """Write the candidates of the first stage; the present stands for candidate 0."""
    s = look.simulator.plain.record
    gpus, waiting, links = int(s["n_gpus"]), int(s["waiting"]), num_links(look)
    legal = look.legal()
    for candidate, offer in enumerate([look.present, *look.offers]):
        if legal[candidate]:
            row = rows[candidate]
            row[LEGAL_COLUMN] = 1.0
            row[PLACE_COLUMN if candidate else NO_MORE_COLUMN] = 1.0
            place = max(0, candidate - 1) / look.num_offers
            row[FIRST_OFFER : FIRST_OFFER + OFFER_COLUMNS] = describe_offer(offer, place, gpus, waiting, links)


def _observe_turns(look: TimeShiftInterface, rotations: np.ndarray, rows: np.ndarray) -> None:
    """Write the candidates of the second stage, and what each rotation of the job would come to."""
    job = look.turning[0]
    s = look.simulator.plain.record
    told = np.zeros(len(TURNS), np.float32)
    component = look.present.meetings.component_of.get(job)
    if component is not None:
        wheel, position = wheel_of(look, component), component.jobs.index(job)
        turned = turned_now(look.simulator, component, wheel)
        excess = wheel.excess(position, turned)
        rotations[:] = np.minimum(1.0, excess)
        on = component.flows[:, position] > 0.0
        now = float(wheel.links_at(turned)[on].mean())
        told[:4] = np.minimum(1.0, [now, excess.min(), excess.mean(), excess.max()])
    told[4] = look.turned / (look.turned + len(look.turning))
    jobs = np.array([job])
    left = float(known_left(s, jobs, np.maximum(0.0, s["iterations_left"][jobs]))[0])
    told[5] = min(1.0, math.log2(1.0 + left) / MOST_LOG_LEFT)
    legal = look.legal()
    for candidate, column in enumerate((NO_MORE_COLUMN, SHIFT_COLUMN, LEAVE_COLUMN, FREE_COLUMN)):
        if legal[candidate]:
            rows[candidate, LEGAL_COLUMN] = rows[candidate, column] = 1.0
            rows[candidate, FIRST_TURN:] = told
