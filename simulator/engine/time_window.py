"""Steady state: the metrics of a window of time, without the warm-up before it and the emptying after it.

Jobs that arrive within the window give times (completion, queueing, slowdown, fairness, lateness, waits for data), the
number that finished, and the makespan, from their first arrival to their last finish. Other jobs run too: the run goes
on to its end. The window's time, as far as the run goes, gives shares of GPUs (use, allocation, fragmentation; of job
groups CPU, network, how many run together) and counts (preemptions, moves, bytes, costs). Ratios of two sums (iteration
times, `dop_mean`, `move_time_share`) and the places of tables at the end are the whole run's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.errors import InputError
from .metric_registry import GROWTH, METRICS, TIME

EXPECTED = "expected START/END, seconds since the first arrival"


@dataclass(frozen=True)
class Window:
    """From when to when, seconds since the first arrival: 0 <= begin_s < end_s <= inf."""

    begin_s: float
    end_s: float = math.inf

    def __post_init__(self) -> None:
        if not 0.0 <= self.begin_s < self.end_s:
            raise InputError(f"window {self.describe()}: {EXPECTED}, 0 <= START < END")

    @classmethod
    def load(cls, text: str) -> Window:
        """From "3600/86400", or "3600/inf"; InputError: this is no such text."""
        try:
            begin_s, end_s = map(float, text.split("/"))
        except (AttributeError, ValueError):
            raise InputError(f"window {text!r}: {EXPECTED}, e.g. 3600/86400") from None
        return cls(begin_s, end_s)

    def describe(self) -> str:
        """As `load` reads it."""
        return f"{self.begin_s:.15g}/{self.end_s:.15g}"

    def of(self, state: Any) -> np.ndarray:
        """Which jobs of a run arrive within it, bool (jobs,); InputError: none does."""
        since_s = state["arrival_s"][: state["n_jobs"]] - state["start_s"]
        found = (since_s >= self.begin_s) & (since_s < self.end_s)
        if not found.any():
            raise InputError(f"window {self.describe()}: no job arrives in it; the last arrives at {since_s[-1]:g} s")
        return np.asarray(found)


def windowed(window: Window, simulator: Any, at: Callable[[float], Mapping[str, float]]) -> dict[str, float]:
    """The metrics of a window of a run that has ended; InputError: no job arrives in it.

    `at`: the metrics of the same run so many seconds after the first arrival.
    """
    found, whole = simulator.metrics(window.of(simulator.raw.record)), simulator.metrics()
    before = at(window.begin_s) if window.begin_s > 0.0 else {}
    after = at(window.end_s) if window.end_s < whole["makespan"] else whole
    return {**found, **between(before, after)}


def between(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """The shares of the time between two moments of a run, and the growth of sums.

    `before`: all metrics at the first; empty: the first arrival. `after`: all at the second.
    """
    from_s, to_s = before.get("makespan", 0.0), after["makespan"]
    found = {}
    for metric in (METRICS[name] for name in after):
        value, earlier = after[metric.name], before.get(metric.name, 0.0)
        if metric.window == GROWTH:
            found[metric.name] = value - earlier
        elif metric.window == TIME:
            found[metric.name] = (value * to_s - earlier * from_s) / (to_s - from_s)
    return found
