"""The window of TimeShift-v0 on any simulator.

A decision point has two stages. Placing: the scheduler proposes placements of all jobs, and at most one is taken.
Shifting: the jobs of every component that has changed since the last decision point (in jobs, GPUs, flows or
capacities), in order of arrival, get a time-shift, or keep theirs. With `shifts="cassini"` CASSINI shifts all jobs at
the end of the instant instead.

Schedulers and networks are Python. So kernels stop and ask (timeshift_window.py), and `answer` writes into the record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np

from ...policies.cassini.cassini import Cassini
from ...policies.cassini.compatibility import BUCKETS, bucket_s, nearest_bucket
from ...simulator.base import codes
from ...simulator.base.arguments import check_range
from ...simulator.base.decisions import Decision, Shift, Start
from ...simulator.base.errors import InputError, InvalidDecision
from ...simulator.base.names import called, choose
from ...simulator.engine.base_simulator import Decider
from ...simulator.engine.plans import decisions_between
from ...simulator.engine.protocols import CandidateSource, policy_of
from ...simulator.engine.simulator import Simulator
from ...simulator.record.solver_records import SolverRecord
from ...simulator.rules.rule import Rule
from ..agent_interface import AgentInterface
from ..batch import Stepper
from ..observation_layout import Part
from .columns import CANDIDATES, CLUSTER, QUEUE, ROTATIONS, RUNNING
from .gang_places import Gangs, Places
from .offered_decisions import Way, gangs_after, numbers_of, way_of, write_ways
from .timeshift_offers import describe_offers, place_all
from .timeshift_record import PLACING, SHIFTING, THROUGH, fields_for
from .timeshift_transition import KERNELS, pass_on, shift_at_once
from .timeshift_window import (
    CHECKS,
    FREE_RUN,
    LEAVE,
    MOST_CANDIDATES,
    PLACES,
    PLANS,
    RATES,
    SHIFT,
    SHIFTS,
    window_dtype,
)

SCHEDULER = "themis:workers=fixed,equal=locality"  # gangs are whole
LEAST_CANDIDATES = 3  # room for those of the second stage
Shifts = Literal["asked", "cassini"]

FREE = -1.0  # as a shift in the record


class TimeShiftInterface(AgentInterface):
    """The window of TimeShift-v0; the arguments are those of `TimeShiftEnv`.

    Attributes:
        clock: the rule that holds for every policy.
        expert: the policy that is played, if one is: its placements are a candidate, and its shifts asked for.
    """

    dtype = staticmethod(window_dtype)
    kernels = KERNELS
    values = "rotations"
    columns = MappingProxyType(
        {"cluster": CLUSTER, "queue": QUEUE, "running": RUNNING, values: ROTATIONS, "candidates": CANDIDATES}
    )

    def __init__(
        self,
        *,
        scheduler: str | CandidateSource = SCHEDULER,
        candidates: int = 10,
        running_slots: int = 24,
        shifts: Shifts = "asked",
        **window: Any,
    ) -> None:
        check_range("candidates", candidates, LEAST_CANDIDATES, MOST_CANDIDATES)
        self.scheduler = source_of(scheduler)
        self.asked = (self.scheduler,)
        clock = getattr(self.scheduler, "clock", None)
        self.clock = clock if isinstance(clock, Rule) else Rule("fifo")
        turns = choose(shifts, get_args(Shifts), "value of shifts") == "cassini"
        self._turner = Cassini("cassini", self.scheduler, self.clock) if turns else None
        others = (Part(BUCKETS, CANDIDATES.shift, len(ROTATIONS)),)
        super().__init__(kinds=(0, 0), others=others, plans=candidates, running_slots=running_slots, **window)
        self.raw["turns"] = turns
        self.fields = fields_for(candidates)
        self.expert: Decider | None = None
        self._stepper: Stepper | None = None
        self._lies_in: object = None
        self._places: Places | None = None

    def remember_in(self, stepper: Stepper, row: int) -> None:
        """What the window remembers of a run lies in a row of `stepper` from now on."""
        self._stepper, self._row = stepper, row

    @property
    def solvers(self) -> np.recarray:
        """What the window remembers of the run: an array of one record (timeshift_record.py)."""
        self._find_memory()
        return self._solvers

    @property
    def memory(self) -> np.void:
        """The same by item."""
        self._find_memory()
        return self._memory

    def _find_memory(self) -> None:
        rows = self.simulator.raw if self._stepper is None else self._stepper.rows.solvers
        if rows is self._lies_in:
            return
        self._lies_in, capacity = rows, self.simulator.capacity
        self._solvers = self.fields.empty(capacity) if self._stepper is None else self._stepper.solvers_of(self._row)
        self._memory = SolverRecord(self.fields, self._solvers, capacity).record

    def _call(self, kernel: Callable[..., Any], *arguments: Any) -> None:
        """`kernel(records, 0, windows, solvers, ...)` of the run that it shows."""
        call = kernel if self._stepper is None else partial(self._stepper.call, kernel)
        call(self.simulator.records, 0, self.windows, self.solvers, *arguments)

    def attach(self, simulator: Simulator) -> None:
        """Show a run, whatever its state."""
        super().attach(simulator)
        if not hasattr(simulator.network, "alone"):
            raise InputError(f"network = {simulator.network.name!r}: TimeShift-v0 needs contention")
        self._lies_in, self.expert = None, None
        self._begin_places()
        m = self.memory
        m["looked"], m["is_new_run"], m["stage"], m["has_acted"] = -1, 1, THROUGH, 1
        m["padding"], m["left_to_python"] = simulator.network.padding, -1  # type: ignore[attr-defined]
        for name in ("n_offers", "n_turning", "n_seconds", "n_known", "n_placed", "n_components", "n_shared"):
            m[name] = 0
        m["n_vertices"] = m["has_left"] = m["has_moved"] = m["expert_offer"] = m["is_expert_only"] = m["turned"] = 0

    def resume(self, simulator: Simulator) -> None:
        """Continue on this run with a window whose bytes were just replaced."""
        super().resume(simulator)
        self.expert = None
        self._begin_places()

    def _begin_places(self) -> None:
        links, network = self.simulator.capacity.links, self.simulator.network
        if self._places is None or self._places.links != links:
            self._places = Places(links, meet=links > 0 and getattr(network, "mode", "") != "dedicated")
        self._places.forget_jobs()

    @property
    def can_act(self) -> bool:
        """False where the environment passes over the present as it was last looked at."""
        return bool(self.raw["can_act"])

    def look_into(self, features: np.ndarray, mask: np.ndarray) -> None:
        """Show the present of the run, and write what an agent sees."""
        if self.raw["code"] == codes.ASK:
            self.raw["code"] = codes.DECIDE
        super().look_into(features, mask)
        while self.raw["code"] == codes.ASK:
            self.answer()
            super().look_into(features, mask)

    def answer(self) -> None:
        """Answer what the run asks."""
        w, asks = self.raw, int(self.raw["asks"])
        if asks == RATES:
            self.simulator.answer()
            return
        w["code"], w["is_answered"] = codes.DECIDE, asks != SHIFTS
        if asks == SHIFTS:
            self.memory["has_left"] = 1
            for decision in self.leaving():
                self.simulator.apply(decision)
        elif asks == PLANS:
            m = self.memory
            skips = not m["is_new_run"]
            m["looked"], m["is_new_run"], m["has_acted"] = int(self.simulator.raw.record["instants"]), 0, 0
            self._open_instant(skips)
        elif asks == PLACES:
            self._place_all()
        elif asks == CHECKS:
            m = self.memory
            done = int(m["left_to_python"] - m["offer_first"][m["taken"] - 1])
            for decision in way_of(m, int(m["taken"]))[done:]:
                self.simulator.apply(decision)
            m["left_to_python"] = -1

    def _place_all(self, gangs: Gangs | None = None) -> None:
        """Write where the running jobs meet."""
        gangs = self.simulator.view.gangs if gangs is None else gangs
        m, places = self.memory, self._places
        assert places is not None
        m["has_moved"] = 0
        rows = np.array(places.rows_of(self.simulator, gangs), np.int64)
        jobs = np.array(list(gangs), np.int64)
        self._call(place_all, places.array, jobs, rows)

    def _open_instant(self, skips: bool) -> None:
        """Ask the scheduler and the expert for placements; begin shifting if there are none."""
        placements = self._expert_decisions()
        simulator, view, plans = self.simulator, self.simulator.view, self.tables.plans
        gangs, room = view.gangs, view.jobs_per_gpu - view.load
        ways: list[Way] = []
        has_clock = simulator.rule is self.clock or simulator.rule == self.clock
        asked = view if has_clock else simulator.view_under(self.clock)
        for plan in self.scheduler.candidates(asked, plans):
            decisions = tuple(decisions_between(gangs, room.copy(), plan))
            if decisions and decisions not in ways:
                ways.append(decisions)
        ways = ways[:plans]
        m = self.memory
        m["is_expert_only"] = bool(placements) and placements not in ways
        if m["is_expert_only"]:
            ways = [placements, *ways][:plans]
        m["expert_offer"] = 1 + ways.index(placements) if placements else 0
        m["capacity"][: len(view.link_capacity)] = view.link_capacity
        self._write_offers(gangs, ways)
        self._place_all(gangs)
        m["stage"], m["n_turning"], m["turned"] = PLACING, 0, 0
        if skips and self.raw["skip_idle"] and not ways:
            self._call(shift_at_once)

    def _write_offers(self, gangs: Gangs, ways: Sequence[Way]) -> None:
        m, places = self.memory, self._places
        assert places is not None
        write_ways(m, ways)
        if not ways:
            return
        jobs: list[int] = []
        rows: list[int] = []
        ends, numbers = [], []
        for way in ways:
            after = gangs_after(gangs, way)
            jobs += after
            rows += places.rows_of(self.simulator, after)
            ends.append(len(jobs))
            numbers.append(numbers_of(way, after))
        written = (np.array(values, np.int64) for values in (jobs, rows, ends, numbers))
        self._call(describe_offers, places.array, *written, self.tables.plans)

    def decisions(self, action: Any) -> list[Decision]:
        """Play an action; its decisions, which are to be carried out before the next look. None: as it is, go on."""
        candidate, m = int(action[0]), self.memory
        if m["stage"] == PLACING:
            found = list(way_of(m, candidate))
        elif candidate in (SHIFT, FREE_RUN):
            parts = np.array(action, np.int64)
            found = self.simulator.rehearse(self.kernels.rehearsed, self.windows, self.solvers, parts)
        else:
            found = []
        self._call(pass_on, candidate)
        return found

    def is_plain(self, action: np.ndarray) -> bool:
        """Whether the other parts of an action, int64 (parts,), are 0."""
        return not action[1:].any()

    def leaving(self) -> Iterable[Decision]:
        """CASSINI's shifts of all jobs as they are placed now, with `shifts="cassini"`."""
        return () if self._turner is None else self._turner.finish(self.simulator.view)

    def follow(self, policy: Decider) -> None:
        """Offer the choice of `policy` as a candidate from now on, also at instants that would be passed over."""
        if self.expert is policy:
            return
        self.expert = policy
        m = self.memory
        if not m["has_acted"]:
            self._open_instant(True)
        elif m["stage"] == SHIFTING and not self._expert_decisions():
            turning = sorted({*m["turning"][: m["n_turning"]].tolist(), *self._seconds()})
            m["n_turning"] = len(turning)
            m["turning"][: len(turning)] = turning
        else:
            m["n_seconds"] = 0

    def _seconds(self) -> dict[int, float | None]:
        """The shifts that the expert decides on at this instant."""
        m = self.memory
        jobs, seconds = (m[name][: m["n_seconds"]].tolist() for name in ("second_job", "second_s"))
        return {job: None if shift == FREE else shift for job, shift in zip(jobs, seconds, strict=True)}

    def _expert_decisions(self) -> Way:
        """The expert's placements now; its shifts are kept for the second stage."""
        seconds: dict[int, float | None] = {}
        found: list[Decision] = []
        for decision in () if self.expert is None else self.simulator.foresee(self.expert):
            if isinstance(decision, Shift):
                seconds[decision.job] = decision.seconds
            elif isinstance(decision, Start) and decision.time_shift is not None:
                seconds[decision.job] = decision.time_shift
                found.append(replace(decision, time_shift=None))
            else:
                found.append(decision)
        if self._turner is not None:
            seconds = {}
        m = self.memory
        m["n_seconds"] = len(seconds)
        m["second_job"][: len(seconds)] = list(seconds)
        m["second_s"][: len(seconds)] = [FREE if shift is None else shift for shift in seconds.values()]
        return tuple(found)

    def expert_action(self) -> np.ndarray:
        """The action, int64 (2,), for the expert's next decision; InvalidDecision: a shift by none of 72 rotations."""
        m, candidate, bucket = self.memory, 0, 0
        turning = m["turning"][: m["n_turning"]].tolist()
        if m["stage"] == PLACING:
            candidate = int(m["expert_offer"])
        elif m["stage"] == SHIFTING:
            seconds = self._seconds()
            if not self.raw["legal"][0] or any(job in seconds for job in turning):
                job = turning[0]
                shift = seconds.get(job)
                candidate = LEAVE if job not in seconds else FREE_RUN if shift is None else SHIFT
                bucket = 0 if shift is None else self._bucket(job, shift)
        return np.array([candidate, bucket], np.int64)

    def _bucket(self, job: int, seconds: float) -> int:
        period_s = float(self.simulator.network.period_s(self.simulator, job))  # type: ignore[attr-defined]
        bucket = nearest_bucket(seconds, period_s)
        if bucket_s(bucket, period_s) != seconds:
            expected = f"expected one of {BUCKETS} even parts of its period of {period_s!r} s"
            raise InvalidDecision(f"{Shift(job, seconds)!r}: {expected}")
        return bucket


def source_of(scheduler: str | CandidateSource) -> CandidateSource:
    """The policy that proposes placements, by name or as given; InputError if it cannot."""
    found = policy_of(scheduler) if isinstance(scheduler, str) else scheduler
    if not callable(getattr(found, "candidates", None)):
        raise InputError(f"scheduler = {called(scheduler)}: expected a policy that proposes placements, as 'themis'")
    return found
