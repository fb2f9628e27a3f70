"""How busy all CPUs and links are over time (paper harmony, Figure 11), with the done parts of subtasks in progress."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..engine.base_simulator import BaseSimulator
from .group_codes import NAIVE, NONE, ON_CPU, ON_NET


class UseOverTime(NamedTuple):
    """Shares of all machine-seconds from each decision point to the next.

    Attributes:
        time_s: float64 (p,), ascending; the last is the end.
        cpu, network: float64 (p,), from 0 to 1 but for rounding; the last ones are 0. Times their intervals they add up
            to the metrics `cpu_utilisation` and `network_utilisation` times the makespan.
    """

    time_s: np.ndarray
    cpu: np.ndarray
    network: np.ndarray


class UseMeter:
    """Looks at a simulator at each decision point, before any decision, and at the end. It is no part of the record."""

    def __init__(self, simulator: BaseSimulator) -> None:
        self._simulator = simulator
        self.clear()

    def clear(self) -> None:
        """Another run begins."""
        self._time_s: list[float] = []
        self._done: list[tuple[float, float]] = []

    def seen(self) -> tuple[tuple[float, ...], tuple[tuple[float, float], ...]]:
        """What was seen so far, for `take_over`."""
        return tuple(self._time_s), tuple(self._done)

    def take_over(self, time_s: tuple[float, ...], done: tuple[tuple[float, float], ...]) -> None:
        """Go on with what another one has seen."""
        self._time_s, self._done = list(time_s), list(done)

    def look(self) -> None:
        """Now; what was seen now or later, before a run went back to a snapshot, is forgotten."""
        s = self._simulator.raw.record
        now_s = float(s["now_s"])
        while self._time_s and self._time_s[-1] >= now_s:
            self._time_s.pop()
            self._done.pop()
        # At the end metrics are of what has ended; only a run that is cut off has anything in progress then.
        cpu_s, net_s = (0.0, 0.0) if self._simulator.ended else in_progress(s)
        self._time_s.append(now_s)
        self._done.append((float(s["cpu_busy_s"]) + cpu_s, float(s["busy"]) * (float(s["net_busy_s"]) + net_s)))

    def over_time(self) -> UseOverTime:
        """The shares so far, up to one subtask of a group too low where work was lost in mid-subtask."""
        time_s = np.array(self._time_s)
        done = np.array(self._done).reshape(-1, 2)
        kept = np.minimum.accumulate(done[::-1])[::-1]
        share = np.zeros_like(kept)
        elapsed_s = self._simulator.topology.num_machines * np.diff(time_s)
        share[:-1] = np.diff(kept, axis=0) / elapsed_s[:, None]
        return UseOverTime(time_s, share[:, 0], share[:, 1])


def in_progress(s: np.void) -> tuple[float, float]:
    """Machine-seconds of COMP, and of COMM, done in subtasks in progress, on the groups' earlier machines."""
    return _shared(s) if s["execution"] == NAIVE else _in_turn(s)


def _in_turn(s: np.void) -> tuple[float, float]:
    groups = np.flatnonzero(s["is_group"])
    groups = groups[s["n_members"][groups] > 0]
    computing = groups[s["cpu_job"][groups] != NONE]
    job = s["cpu_job"][computing]
    left_s = np.maximum(s["work_end_s"][job] - s["now_s"], 0.0)  # it may wait for the disk after that
    cpu_s = float((s["comp_cost"][job] - left_s * s["machines_before"][computing]).sum())
    net_s = 0.0
    for has, end_s, rate in (
        (s["net_job"], s["net_end_s"], 1.0),
        (s["second_job"], s["second_end_s"], (1.0 - s["busy"]) / s["busy"]),
    ):
        sending = groups[has[groups] != NONE]
        left_s = np.maximum(end_s[sending] - s["now_s"], 0.0) * rate
        net_s += float((s["comm_cost"][has[sending]] - left_s * s["machines_before"][sending]).sum())
    return cpu_s, net_s


def _shared(s: np.void) -> tuple[float, float]:
    """The same where jobs share resources: `part_left` is of the group's last execution, at full speed."""
    done: list[float] = []
    for place, cost in ((ON_CPU, s["comp_cost"]), (ON_NET, s["comm_cost"])):
        job = np.flatnonzero(s["place"][: s["n_jobs"]] == place)
        group = s["at"][job]
        machines = s["machines_before"][group]
        beside = np.bincount(group, minlength=1)[group]
        rate = np.where(beside > 1, (1.0 - s["loss"]) / np.maximum(beside, 1), 1.0)
        left_s = np.maximum(s["part_left"][job] - (s["now_s"] - s["at_s"][group]) * rate, 0.0)
        done.append(float((cost[job] - left_s * machines).sum()))
    return done[0], done[1]
