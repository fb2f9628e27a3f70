"""Features of the present: the columns of columns.py."""

from __future__ import annotations

import math

import numpy as np

from ...simulator.engine.simulator import Simulator
from ...simulator.jobs.estimates import known_left
from ..python_step import PythonStepInterface, scaled_count
from ..window import LOG_WORST
from .columns import CANDIDATES, CLUSTER, QUEUE, RUNNING
from .shared_links import SharedLinks, shift_now, turned_now
from .timeshift_offers import Instant, describe_offer

MOST_LOG_LEFT = 24.0


def observe(look: PythonStepInterface, instant: Instant, features: np.ndarray) -> None:
    """Write all features, float32: cluster, queue, running, rotations and candidates."""
    features[:] = 0.0
    s, w = look.simulator.raw.record, look.raw
    parts = {key: features[place] for key, place in look.places.items()}
    asked = _observe_queue(s, w, parts["queue"].reshape(-1, len(QUEUE)))
    running = parts["running"].reshape(-1, len(RUNNING))
    jobs = _observe_running(s, w, running)
    _observe_links(look.simulator, instant, jobs.tolist(), running)
    _observe_cluster(s, w, parts["cluster"], asked)
    _observe_stage(look.simulator, instant, parts["cluster"])
    candidates = parts["candidates"].reshape(-1, len(CANDIDATES))
    if instant.turning:
        _observe_turns(look, instant, parts["rotations"], candidates)
    else:
        _observe_offers(look, instant, candidates)


def _observe_stage(simulator: Simulator, instant: Instant, shown: np.ndarray) -> None:
    meetings, running = instant.present.meetings, len(instant.present.gangs)
    shown[CLUSTER.shared_links] = meetings.num_shared / num_links(simulator)
    shown[CLUSTER.contending] = len(meetings.component_of) / max(1, running)
    shown[CLUSTER.placing] = not instant.turning
    shown[CLUSTER.shifts_left] = len(instant.turning) / max(1, running)


def num_links(simulator: Simulator) -> int:
    """Number of links of the network, at least 1."""
    links = simulator.topology.links
    return 1 if links is None else max(1, links.num_links)


def _observe_links(simulator: Simulator, instant: Instant, jobs: list[int], rows: np.ndarray) -> None:
    meetings, links = instant.present.meetings, simulator.topology.links
    s = simulator.raw.record
    excess = excess_now(simulator, meetings)
    for row, job in zip(rows, jobs, strict=False):
        place = meetings.places.get(job)
        row[RUNNING.turns] = bool(instant.turning) and instant.turning[0] == job
        if place is None or links is None:
            continue
        phases, use = place.phases, place.use
        row[RUNNING.iteration] = phases.iteration_s / (1.0 + phases.iteration_s)
        row[RUNNING.communicates] = min(1.0, phases.up_s / phases.iteration_s)
        rate = float((use.flows / simulator.view.link_capacity[use.links]).max())
        row[RUNNING.peak_rate] = min(1.0, phases.peak * rate)
        row[RUNNING.links] = len(use.links) / links.num_links
        row[RUNNING.shared_links] = meetings.links_of[job] / len(use.links)
        component = meetings.component_of.get(job)
        if component is not None:
            row[RUNNING.joined_jobs] = (len(component.jobs) - 1) / max(1, len(instant.present.gangs))
        shift = shift_now(s, job)
        if shift is not None:
            row[RUNNING.has_shift] = 1.0
            row[RUNNING.shift] = shift[0] % shift[1] / shift[1]
        row[RUNNING.excess] = min(1.0, excess.get(job, 0.0))


def excess_now(simulator: Simulator, meetings: SharedLinks) -> dict[int, float]:
    """Mean excess on its links now, by job that shares some."""
    found = {}
    for component in meetings.components:
        excess = component.circle.links_at(turned_now(simulator, component))
        on = component.flows > 0.0
        for position, job in enumerate(component.jobs):
            found[job] = float(excess[on[:, position]].mean())
    return found


def _observe_offers(look: PythonStepInterface, instant: Instant, rows: np.ndarray) -> None:
    s = look.simulator.raw.record
    gpus, waiting, links = int(s["n_gpus"]), int(s["waiting"]), num_links(look.simulator)
    legal = look.legal()
    for candidate, offer in enumerate([instant.present, *instant.offers]):
        if legal[candidate]:
            row = rows[candidate]
            row[CANDIDATES.legal] = 1.0
            row[CANDIDATES.place if candidate else CANDIDATES.no_more] = 1.0
            row[CANDIDATES.rank] = max(0, candidate - 1) / look.tables.plans
            describe_offer(row, offer, gpus, waiting, links)


def _observe_turns(look: PythonStepInterface, instant: Instant, rotations: np.ndarray, rows: np.ndarray) -> None:
    job = instant.turning[0]
    s = look.simulator.raw.record
    shown = np.zeros(len(CANDIDATES), np.float32)
    component = instant.present.meetings.component_of.get(job)
    if component is not None:
        unified_circle, position = component.circle, component.jobs.index(job)
        turned = turned_now(look.simulator, component)
        excess = unified_circle.excess(position, turned)
        rotations[:] = np.minimum(1.0, excess)
        on = component.flows[:, position] > 0.0
        now = float(unified_circle.links_at(turned)[on].mean())
        shown[CANDIDATES.excess_now] = min(1.0, now)
        shown[CANDIDATES.excess_least] = min(1.0, excess.min())
        shown[CANDIDATES.excess_mean] = min(1.0, excess.mean())
        shown[CANDIDATES.excess_most] = min(1.0, excess.max())
    shown[CANDIDATES.chosen] = instant.turned / (instant.turned + len(instant.turning))
    jobs = np.array([job])
    left = float(known_left(s, jobs, np.maximum(0.0, s["iterations_left"][jobs]))[0])
    shown[CANDIDATES.iterations_left] = min(1.0, math.log2(1.0 + left) / MOST_LOG_LEFT)
    legal = look.legal()
    kinds = CANDIDATES.no_more, CANDIDATES.shift, CANDIDATES.leave, CANDIDATES.run_free
    for candidate, kind in enumerate(kinds):
        if legal[candidate]:
            rows[candidate] = shown
            rows[candidate, CANDIDATES.legal] = rows[candidate, kind] = 1.0


def _observe_queue(s: np.void, w: np.void, shown: np.ndarray) -> int:
    """Write the waiting jobs, float32 (slots, columns); returns the GPUs that they ask."""
    jobs = w["waiting_job"][: int(w["waiting_shown"])]
    if not len(jobs):
        return 0
    rows = shown[: len(jobs)]
    gpus = s["gpus"][jobs]
    left_s = known_left(s, jobs, s["iterations_left"][jobs]) * s["base_iteration_s"][jobs]
    _observe_size(s, rows, gpus)
    now_s = float(s["now_s"])
    rows[:, QUEUE.waited] = _time(w, now_s - s["waiting_since_s"][jobs])
    rows[:, QUEUE.age] = _time(w, now_s - s["arrival_s"][jobs])
    rows[:, QUEUE.time_left] = _time(w, left_s)
    rows[:, QUEUE.service_left] = _time(w, left_s * gpus)
    rows[:, QUEUE.attained] = _time(w, s["attained_s"][jobs] * gpus)
    rows[:, QUEUE.has_run] = s["starts"][jobs] > 0
    rows[:, QUEUE.slack] = _slack(s, w, jobs, left_s)
    return int(gpus.sum())


def _observe_running(s: np.void, w: np.void, shown: np.ndarray) -> np.ndarray:
    """Write the running jobs as the record has them, float32 (slots, columns); returns those in the slots."""
    jobs = w["running_job"][: int(w["running_shown"])]
    if not len(jobs):
        return jobs
    rows = shown[: len(jobs)]
    _observe_size(s, rows, s["gpus"][jobs])
    now_s = float(s["now_s"])
    on_gpus_s = np.maximum(0.0, now_s - s["since_s"][jobs])
    rows[:, RUNNING.ran] = _time(w, now_s - s["started_s"][jobs])
    rows[:, RUNNING.age] = _time(w, now_s - s["arrival_s"][jobs])
    left = np.maximum(0.0, s["iterations_left"][jobs] - on_gpus_s / s["iteration_s"][jobs])
    left_s = known_left(s, jobs, left) * s["base_iteration_s"][jobs]
    rows[:, RUNNING.time_left] = _time(w, left_s)
    rows[:, RUNNING.slack] = _slack(s, w, jobs, left_s)
    iteration_s = s["iteration_s"][jobs] * (s["gpus"][jobs] / s["own_gpus"][jobs])  # of the workers that it has
    slowdown = np.maximum(1.0, iteration_s / s["base_iteration_s"][jobs])
    rows[:, RUNNING.slowdown] = np.minimum(1.0, np.log(slowdown) / LOG_WORST)
    return jobs


def _observe_size(s: np.void, rows: np.ndarray, gpus: np.ndarray) -> None:
    rows[:, QUEUE.present] = 1.0
    rows[:, QUEUE.gpus] = gpus / int(s["n_gpus"])
    rows[:, QUEUE.size] = np.log2(1.0 + gpus) / math.log2(1.0 + int(s["n_gpus"]))


def _time(w: np.void, value: np.ndarray) -> np.ndarray:
    return np.minimum(1.0, np.log1p(np.maximum(0.0, value)) / float(w["log_horizon"]))


def _slack(s: np.void, w: np.void, jobs: np.ndarray, left_s: np.ndarray) -> np.ndarray:
    deadline_s = s["deadline_s"][jobs]
    slack_s = deadline_s - float(s["now_s"]) - left_s
    half = np.copysign(0.5 * _time(w, np.abs(slack_s)), slack_s)
    return np.where(np.isinf(deadline_s), 1.0, 0.5 + half)


def _observe_cluster(s: np.void, w: np.void, shown: np.ndarray, asked: int) -> None:
    gpus, jobs = int(s["n_gpus"]), int(s["n_jobs"])
    shown[CLUSTER.time] = float(_time(w, np.array(float(s["now_s"] - s["start_s"]))))
    shown[CLUSTER.free] = int(s["free_gpus"]) / gpus
    shown[CLUSTER.down] = int(s["down_gpus"]) / gpus
    shown[CLUSTER.waiting] = scaled_count(int(s["waiting"]))
    shown[CLUSTER.held] = scaled_count(int(s["held"]))
    shown[CLUSTER.running] = scaled_count(int(s["running"]))
    shown[CLUSTER.arrived] = int(s["next_arrival"]) / jobs
    shown[CLUSTER.finished] = int(s["done"]) / jobs
    shown[CLUSTER.asked] = asked / (asked + gpus)
