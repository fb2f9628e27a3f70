"""The order of a rule in words: the key of a job, and the jobs before it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ...simulator.base.codes import PLACE_SPAN, RUNNING
from ...simulator.rules.rule import Rule
from .mid_instant import MidInstant


def amount(value: float) -> str:
    """A number for a reader: whole if large, else with three digits."""
    return f"{value:,.0f}" if abs(value) >= 100.0 or value == int(value) else f"{value:.3g}"


def seconds(value: float) -> str:
    """A time: `1,204 s`; `for ever` if infinite."""
    return f"{amount(value)} s" if math.isfinite(value) else "for ever"


def value(instant: MidInstant, rule: Rule, job: int) -> str:
    """The key of a job in the order, in words."""
    return VALUES[rule.order](instant, rule, job)


def _srsf(instant: MidInstant, rule: Rule, job: int) -> str:
    left_s, gpus = instant.view.remaining_s(job), instant.view.gpus(job)
    return f"run time left {seconds(left_s)} x {gpus} GPUs = {amount(left_s * gpus)}"


def _weighted(instant: MidInstant, rule: Rule, job: int) -> str:
    left_s, gpus = instant.view.remaining_s(job), instant.view.gpus(job)
    return f"run time left {seconds(left_s)} x {gpus} GPUs^{rule.exponent:g} = {amount(left_s * gpus**rule.exponent)}"


def _las(instant: MidInstant, rule: Rule, job: int) -> str:
    held = f"{amount(instant.view.attained_gpu_s(job))} GPU-seconds held"
    return f"queue {int(instant.s['level'][job])}, {held}" if rule.thresholds else held


def _latest(instant: MidInstant, rule: Rule, job: int) -> str:
    first_s = float(instant.s["first_start_s"][job])
    return f"first started at {seconds(first_s)}" if first_s >= 0.0 else "has never started"


def _edf(instant: MidInstant, rule: Rule, job: int) -> str:
    deadline_s = float(instant.s["deadline_s"][job])
    return f"deadline at {seconds(deadline_s)}" if math.isfinite(deadline_s) else "no deadline"


VALUES: dict[str, Callable[[MidInstant, Rule, int], str]] = {
    "fifo": lambda instant, rule, job: f"arrived at {seconds(float(instant.s['arrival_s'][job]))}",
    "sjf": lambda instant, rule, job: f"run time {seconds(instant.view.isolated_s(job))}",
    "srtf": lambda instant, rule, job: f"run time left {seconds(instant.view.remaining_s(job))}",
    "srsf": _srsf,
    "weighted": _weighted,
    "las": _las,
    "random": lambda instant, rule, job: "drawn at random",
    "nw-sens": lambda instant, rule, job: f"Nw_sens {nw_sens(instant, job):.6g}",
    "latest": _latest,
    "edf": _edf,
    "logged": lambda instant, rule, job: f"started at {seconds(float(instant.s['logged_s'][job]))} in the log",
    "turns": lambda instant, rule, job: f"has waited {seconds(instant.waited_s(job))}",
}


def nw_sens(instant: MidInstant, job: int) -> float:
    """The priority of paper dally (simulator/rules/orders.py); 0 for a job that never ran."""
    s, view = instant.s, instant.view
    ran_s = float(s["ran_s"][job]) if s["auctions"] else view.attained_gpu_s(job) / view.gpus(job)
    if ran_s <= 0.0:
        return 0.0
    whole, left = float(s["iterations"][job]), float(s["iterations_left"][job])
    if s["status"][job] == RUNNING:
        left -= max(0.0, view.now_s - float(s["since_s"][job])) / float(s["iteration_s"][job])
    return (1.0 - left / whole) / (ran_s / (float(s["compute_iteration_s"][job]) * whole))


def ahead_of(instant: MidInstant, rule: Rule, job: int) -> list[int]:
    """Jobs that wait before a job in the order, in that order; none of those stopped just now."""
    if job in instant.stopped or job not in instant.waiting:  # it ran until this instant
        return []
    jobs = np.array(sorted(instant.waiting - instant.stopped), np.int64)
    keys = _keys(instant, rule, jobs)
    order = np.lexsort((jobs, *reversed(keys)))
    return jobs[order][: int(np.flatnonzero(jobs[order] == job)[0])].tolist()


def _keys(instant: MidInstant, rule: Rule, jobs: np.ndarray) -> list[np.ndarray]:
    """Sort keys of waiting jobs, the first first; then the index counts."""
    s = instant.s
    key, since_s = s["order_key"][jobs], s["waiting_since_s"][jobs]
    if rule.order == "nw-sens" and not s["auctions"]:
        return [np.floor(key / PLACE_SPAN), s["gpus"][jobs], since_s]
    return [key, since_s] if s["auctions"] else [key]
