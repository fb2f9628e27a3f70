"""Features of the present: what `TimeShift-v0` shows to an agent.

Counts n of jobs read n / (n + 32) where nothing else is said; times t (seconds, GPU-seconds) are log1p(t) /
log1p(horizon), slowdowns f log(f) / log(1000), all cut at 1; a slack t, which may be below 0, is 1/2 + or - half of
what |t| would be. Excess is what jobs want of a link above its capacity, on average over their unified circle, as a
fraction of the capacity (1 - the compatibility score of paper cassini), cut at 1. Everything lies in [0, 1]; rows
without a job, and candidates that are not legal, are zero.
"""

from __future__ import annotations

import math

import numpy as np

from ...simulator.engine.simulator import Simulator
from ...simulator.jobs.estimates import known_left
from ..python_step import PythonStepInterface, scaled_count
from ..window import LOG_WORST
from .shared_links import SharedLinks, shift_now, turned_now
from .timeshift_offers import OFFER, OFFER_COLUMNS, Instant, describe_offer

CLUSTER = (
    "time since the first arrival",
    "free GPUs",
    "GPUs on failed machines",
    "waiting jobs",
    "held jobs",
    "running jobs",
    "jobs that have arrived, of all",
    "jobs that have finished, of all",
    "GPUs d asked in the window: d / (d + GPUs)",
    "links that several jobs use, of all",
    "running jobs that meet others on a link, of those that run",
    "1: a placement is chosen; 0: shifts are",
    "jobs whose shift is still to be chosen at this instant, this one included",
)
QUEUE = (
    "1: a job stands here",
    "GPUs",
    "log2(1 + GPUs) / log2(1 + cluster)",
    "time since it arrived or lost its GPUs",
    "time since it arrived",
    "isolated run time left",
    "isolated GPU-seconds left",
    "GPU-seconds attained",
    "1: it has run before",
    "slack: deadline - now - isolated run time left; 1/2 is none, 1: no deadline",
)
RUNNING = (
    "1: a job stands here",
    "GPUs",
    "log2(1 + GPUs) / log2(1 + cluster)",
    "time on these GPUs",
    "time since it arrived",
    "isolated run time left",
    "slowdown over its time on these GPUs",
    "1: its shift is chosen now",
    "time of an iteration alone: t / (1 + t)",
    "part of an iteration in which it wants its links, alone",
    "highest rate of a flow, of its slowest link",
    "links that it uses, of all",
    "links that it shares, of its own",
    "jobs that it is joined with by links, of those that run",
    "1: it has a shift",
    "its shift, of its period",
    "excess on its links, the mean, as all are turned now",
    "slack: deadline - now - isolated run time left; 1/2 is none, 1: no deadline",
)
ACTIONS = ("1: legal", "1: no more now", "1: place", "1: leave its shift as it is", "1: shift", "1: run free")
TURNS = (
    "excess on the job's links as it is turned now",
    "excess on its links, the least of all rotations",
    "excess on its links, the mean over rotations",
    "excess on its links, the most of all rotations",
    "part of the instant's shifts that are chosen",
    "iterations left n: log2(1 + n) / 24",
)
CANDIDATES = (*ACTIONS, *OFFER, *TURNS)
MOST_LOG_LEFT = 24.0
LEGAL_COLUMN, NO_MORE_COLUMN, PLACE_COLUMN, LEAVE_COLUMN, SHIFT_COLUMN, FREE_COLUMN = range(6)
FIRST_OFFER, FIRST_TURN = len(ACTIONS), len(ACTIONS) + len(OFFER)


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
    shown[9] = meetings.num_shared / num_links(simulator)
    shown[10] = len(meetings.component_of) / max(1, running)
    shown[11] = not instant.turning
    shown[12] = len(instant.turning) / max(1, running)


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
        row[7] = bool(instant.turning) and instant.turning[0] == job
        if place is None or links is None:
            continue
        phases, use = place.phases, place.use
        row[8] = phases.iteration_s / (1.0 + phases.iteration_s)
        row[9] = min(1.0, phases.up_s / phases.iteration_s)
        row[10] = min(1.0, phases.peak * float((use.flows / simulator.view.link_capacity[use.links]).max()))
        row[11] = len(use.links) / links.num_links
        row[12] = meetings.links_of[job] / len(use.links)
        component = meetings.component_of.get(job)
        if component is not None:
            row[13] = (len(component.jobs) - 1) / max(1, len(instant.present.gangs))
        shift = shift_now(s, job)
        if shift is not None:
            row[14], row[15] = 1.0, shift[0] % shift[1] / shift[1]
        row[16] = min(1.0, excess.get(job, 0.0))


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
            row[LEGAL_COLUMN] = 1.0
            row[PLACE_COLUMN if candidate else NO_MORE_COLUMN] = 1.0
            place = max(0, candidate - 1) / look.tables.plans
            row[FIRST_OFFER : FIRST_OFFER + OFFER_COLUMNS] = describe_offer(offer, place, gpus, waiting, links)


def _observe_turns(look: PythonStepInterface, instant: Instant, rotations: np.ndarray, rows: np.ndarray) -> None:
    job = instant.turning[0]
    s = look.simulator.raw.record
    values = np.zeros(len(TURNS), np.float32)
    component = instant.present.meetings.component_of.get(job)
    if component is not None:
        unified_circle, position = component.circle, component.jobs.index(job)
        turned = turned_now(look.simulator, component)
        excess = unified_circle.excess(position, turned)
        rotations[:] = np.minimum(1.0, excess)
        on = component.flows[:, position] > 0.0
        now = float(unified_circle.links_at(turned)[on].mean())
        values[:4] = np.minimum(1.0, [now, excess.min(), excess.mean(), excess.max()])
    values[4] = instant.turned / (instant.turned + len(instant.turning))
    jobs = np.array([job])
    left = float(known_left(s, jobs, np.maximum(0.0, s["iterations_left"][jobs]))[0])
    values[5] = min(1.0, math.log2(1.0 + left) / MOST_LOG_LEFT)
    legal = look.legal()
    for candidate, column in enumerate((NO_MORE_COLUMN, SHIFT_COLUMN, LEAVE_COLUMN, FREE_COLUMN)):
        if legal[candidate]:
            rows[candidate, LEGAL_COLUMN] = rows[candidate, column] = 1.0
            rows[candidate, FIRST_TURN:] = values


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
    rows[:, 3] = _time(w, now_s - s["waiting_since_s"][jobs])
    rows[:, 4] = _time(w, now_s - s["arrival_s"][jobs])
    rows[:, 5] = _time(w, left_s)
    rows[:, 6] = _time(w, left_s * gpus)
    rows[:, 7] = _time(w, s["attained_s"][jobs] * gpus)
    rows[:, 8] = s["starts"][jobs] > 0
    rows[:, 9] = _slack(s, w, jobs, left_s)
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
    rows[:, 3] = _time(w, now_s - s["started_s"][jobs])
    rows[:, 4] = _time(w, now_s - s["arrival_s"][jobs])
    left = np.maximum(0.0, s["iterations_left"][jobs] - on_gpus_s / s["iteration_s"][jobs])
    left_s = known_left(s, jobs, left) * s["base_iteration_s"][jobs]
    rows[:, 5] = _time(w, left_s)
    rows[:, 17] = _slack(s, w, jobs, left_s)
    iteration_s = s["iteration_s"][jobs] * (s["gpus"][jobs] / s["own_gpus"][jobs])  # of the workers that it has
    slowdown = np.maximum(1.0, iteration_s / s["base_iteration_s"][jobs])
    rows[:, 6] = np.minimum(1.0, np.log(slowdown) / LOG_WORST)
    return jobs


def _observe_size(s: np.void, rows: np.ndarray, gpus: np.ndarray) -> None:
    rows[:, 0] = 1.0
    rows[:, 1] = gpus / int(s["n_gpus"])
    rows[:, 2] = np.log2(1.0 + gpus) / math.log2(1.0 + int(s["n_gpus"]))


def _time(w: np.void, value: np.ndarray) -> np.ndarray:
    return np.minimum(1.0, np.log1p(np.maximum(0.0, value)) / float(w["log_horizon"]))


def _slack(s: np.void, w: np.void, jobs: np.ndarray, left_s: np.ndarray) -> np.ndarray:
    deadline_s = s["deadline_s"][jobs]
    slack_s = deadline_s - float(s["now_s"]) - left_s
    half = np.copysign(0.5 * _time(w, np.abs(slack_s)), slack_s)
    return np.where(np.isinf(deadline_s), 1.0, 0.5 + half)


def _observe_cluster(s: np.void, w: np.void, shown: np.ndarray, asked: int) -> None:
    gpus, jobs = int(s["n_gpus"]), int(s["n_jobs"])
    shown[0] = float(_time(w, np.array(float(s["now_s"] - s["start_s"]))))
    shown[1] = int(s["free_gpus"]) / gpus
    shown[2] = int(s["down_gpus"]) / gpus
    shown[3] = scaled_count(int(s["waiting"]))
    shown[4] = scaled_count(int(s["held"]))
    shown[5] = scaled_count(int(s["running"]))
    shown[6] = int(s["next_arrival"]) / jobs
    shown[7] = int(s["done"]) / jobs
    shown[8] = asked / (asked + gpus)
