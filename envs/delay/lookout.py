"""The window of Delay-v0 on any simulator: what an agent would see and may do there now."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...simulator.decisions import Decision
from ...simulator.engine import Simulator
from ...simulator.errors import InputError
from ...simulator.kernels.codes import DECIDE
from ...simulator.layout import lay_window_order
from ...simulator.names import choose
from ...simulator.rules.rule import PLACERS
from ..tables import Part, Table, Tables
from .codec import DELAYS_S, decode, encode
from .observation import CANDIDATES, CLUSTER, HOLD_COLUMN, QUEUE, RUNNING
from .transition import turn
from .window import KNOWN, MAX_DELAYS, MAX_SLOTS, NO_JOB, PER_RUNNING, PER_WAITING, UNTIL_TIMER, window_dtype

ORDERS = ("arrival", "shortest", "smallest")
TIME_SCALE_S = 30 * 86400.0  # what times are scaled by where there is no horizon


class Lookout:
    """A short window of waiting and running jobs, its observation, and the decisions that its actions stand for.

    The arguments are those of `DelayEnv`.

    Attributes:
        sizes: number of features of cluster, queue, running and candidates, as they follow each other.
        tables: how the flat observation is laid out.
        candidates, delays: lengths of the two parts of the action space.
        simulator: what it looks at, after `lay`.

    Raises:
        InputError: a value that does not fit, in one sentence.
    """

    def __init__(
        self,
        *,
        slots: int = 32,
        running_slots: int = 16,
        order: str = "arrival",
        delays: tuple[float, ...] = DELAYS_S,
        placer: str = "tier",
        preemption: bool = True,
        skip_idle: bool = True,
        horizon_s: float | None = None,
    ) -> None:
        self.order = choose(order, ORDERS, "value of order")
        self.placer = choose(placer, PLACERS, "value of placer")
        check_range("slots", slots, 1, MAX_SLOTS)
        check_range("running_slots", running_slots, 0, MAX_SLOTS)
        delays = numbers("delays", delays)
        if len(delays) > MAX_DELAYS - 2 or any(not 0.0 < delay < math.inf for delay in delays):
            raise InputError(f"delays = {delays!r}: expected at most {MAX_DELAYS - 2} finite numbers of seconds > 0")
        check_flag("preemption", preemption)
        check_flag("skip_idle", skip_idle)
        self.windows = np.zeros(1, window_dtype()).view(np.recarray)
        self.window = w = self.windows[0]
        self.plain: np.void = self.windows.view(np.ndarray).view(window_dtype())[0]  # the same, by item: fast
        w.slots, w.running_slots, w.preemption, w.skip_idle = slots, running_slots, preemption, skip_idle
        self.delays = w.n_delays = UNTIL_TIMER + 1 + len(delays)
        w.delay_s[: self.delays] = (math.inf, math.inf, *delays)
        w.log_horizon = math.log1p(TIME_SCALE_S if horizon_s is None or horizon_s == math.inf else horizon_s)
        self.candidates = 1 + PER_WAITING * slots + PER_RUNNING * running_slots
        waiting, running = Table(slots, len(QUEUE), PER_WAITING), Table(running_slots, len(RUNNING), PER_RUNNING)
        self.tables = Tables(len(CLUSTER), (waiting, running), len(CANDIDATES), (Part(self.delays, HOLD_COLUMN),))
        self.sizes = {
            "cluster": len(CLUSTER),
            "queue": slots * len(QUEUE),
            "running": running_slots * len(RUNNING),
            "candidates": self.candidates * len(CANDIDATES),
        }
        self.simulator: Simulator
        self._laid = KNOWN  # jobs of the last run

    def move_to(self, windows: np.ndarray) -> None:
        """Keep the window in another array of one."""
        windows[:] = self.windows
        self.windows = windows.view(np.recarray)
        self.window = self.windows[0]
        self.plain = self.windows.view(np.ndarray).view(window_dtype())[0]

    def lay(self, simulator: Simulator) -> None:
        """Start looking at a run, whatever its state; its window is put into this one's order."""
        self.simulator = simulator
        workload = simulator.workload
        order = np.arange(len(workload))
        if self.order != "arrival":
            order = np.argsort(workload.duration_s if self.order == "shortest" else workload.gpus, kind="stable")
        lay_window_order(simulator.plain.record, order)
        w = self.plain
        w["placer"], w["focus"], w["code"] = PLACERS[self.placer], -1, DECIDE
        w["known_job"] = w["written_job"] = w["written_runner"] = NO_JOB
        w["ran"][: max(self._laid, len(workload)), 0] = NO_JOB  # a line of the cache each: no more than are in use
        self._laid = len(workload)

    def resume(self, simulator: Simulator) -> None:
        """Go on with a window that has just been written over, and that looks at this run."""
        self.simulator = simulator
        self._laid = KNOWN

    def look(self) -> tuple[np.ndarray, np.ndarray]:
        """The present: features, float32 (F,), and the mask of both action parts, int8 (candidates + delays,)."""
        features = np.zeros(sum(self.sizes.values()), np.float32)
        mask = np.zeros(self.candidates + self.delays, np.int8)
        self.look_into(features, mask)
        return features, mask

    def look_into(self, features: np.ndarray, mask: np.ndarray) -> None:
        """As `look`, into arrays that hold zeros or what was last written there."""
        turn(self.simulator.records, self.windows, 0, features, mask)

    @property
    def can_act(self) -> bool:
        """False where the environment would pass over the present as it was last looked at: there is nothing to do."""
        w = self.window
        return bool(w.can_act) or (not w.skip_idle and self.simulator.state.waiting > 0)

    def action(self, decision: Decision) -> np.ndarray:
        """The action, int64 (2,), that plays `decision` in the window as it was last looked at.

        Raises:
            InvalidDecision: the window offers no such action.
        """
        return encode(self.simulator, self.window, decision)

    def decision(self, action: Any) -> Decision:
        """The decision that an action (candidate, delay bucket) stands for now; `Advance` for 0 or an illegal one."""
        return decode(self.simulator, self.window, action)


def numbers(name: str, value: Any) -> tuple[float, ...]:
    """A tuple of numbers, as floats."""
    try:
        return tuple(float(item) for item in value)
    except (TypeError, ValueError):
        raise InputError(f"{name} = {value!r}: expected numbers in a tuple") from None


def check_flag(name: str, value: Any) -> None:
    """InputError unless `value` is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} = {value!r}: expected True or False")


def check_range(name: str, value: int, low: int, high: int) -> None:
    """InputError unless `value` is a whole number from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not low <= value <= high:
        raise InputError(f"{name} = {value!r}: expected a whole number from {low} to {high}")
