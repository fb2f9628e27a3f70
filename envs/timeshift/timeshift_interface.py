"""The window of TimeShift-v0 on any simulator.

A decision point has two stages. Placing: the scheduler proposes placements of all jobs, and at most one is taken.
Shifting: the jobs of every component that has changed since the last decision point (in jobs, GPUs, flows or
capacities), in order of arrival, get a time-shift, or keep theirs. With `shifts="cassini"` CASSINI shifts all jobs at
the end of the instant instead.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np

from ...policies.cassini.cassini import Cassini
from ...policies.cassini.compatibility import BUCKETS, bucket_s, nearest_bucket
from ...simulator.base.arguments import check_range
from ...simulator.base.decisions import Decision, Shift, Start
from ...simulator.base.errors import InputError, InvalidDecision
from ...simulator.base.names import called, choose
from ...simulator.engine.base_simulator import Decider
from ...simulator.engine.plans import decisions_of
from ...simulator.engine.protocols import CandidateSource, policy_of
from ...simulator.engine.simulator import Simulator
from ...simulator.rules.rule import Rule
from ..observation_layout import Part
from ..python_step import ActionOutcome, PythonStepInterface, show
from ..shadow import ShadowSimulator
from ..window import NO_JOB
from .columns import CANDIDATES, CLUSTER, QUEUE, ROTATIONS, RUNNING
from .observation import observe
from .shared_links import Component, Place, SharedLinks, shared_links_of, shift_now
from .timeshift_offers import PLACED, PLACING, SHIFTING, THROUGH, Gangs, Instant, Offer, gangs_after

SCHEDULER = "themis:workers=fixed,equal=locality"  # gangs are whole
SHIFT, LEAVE, FREE = 1, 2, 3  # candidates of the second
MOST_CANDIDATES = 64
LEAST_CANDIDATES = 3  # room for those of the second stage
Shifts = Literal["asked", "cassini"]

Way = tuple[Decision, ...]  # from the present to a placement
Signature = tuple[tuple[int, ...], ...]  # jobs of a component, each with its GPUs; its links


class TimeShiftInterface(PythonStepInterface):
    """The window of TimeShift-v0; the arguments are those of `TimeShiftEnv`.

    Attributes:
        at: the stage in the present instant.
        clock: the rule that holds for every policy.
        expert: the policy that is played, if one is.
        expert_placements: the placements that it decides on at this instant.
        is_expert_only: whether they are candidates only on its account.
    """

    values = "rotations"
    columns = MappingProxyType(
        {"cluster": CLUSTER, "queue": QUEUE, "running": RUNNING, values: ROTATIONS, "candidates": CANDIDATES}
    )
    of_instant = (
        *("_has_acted", "expert", "expert_placements", "is_expert_only", "seconds"),
        *("_gangs", "_known", "_places", "_goes_on"),
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
        self.expert_placements: Way
        self._of_expert, self._of_scheduler = ShadowSimulator(), ShadowSimulator()
        self._clear()

    def _clear(self) -> None:
        self.at, self._has_acted, self._goes_on = Instant(), True, False
        self.expert, self.expert_placements, self.is_expert_only = None, (), False
        self.seconds: dict[int, float | None] = {}  # time-shifts that the expert decides on at this instant
        self._gangs: Gangs = {}
        self._known: set[Signature] = set()  # the components when the last instant ended
        self._forget()
        self._places: dict[tuple[int, tuple[int, ...], bytes | None], Place] = {}

    def attach(self, simulator: Simulator) -> None:
        """Show a run, whatever its state."""
        super().attach(simulator)
        if not hasattr(simulator.network, "alone"):
            raise InputError(f"network = {simulator.network.name!r}: TimeShift-v0 needs contention")
        self._clear()

    def refresh(self) -> None:
        """Show the present of the run."""
        is_first = self._is_new_run()
        if self._is_new_instant():
            self._has_acted = False
            self._open_instant(not is_first)
        elif self.at.stage == PLACED:
            self._begin_shifting()
        elif self.at.stage == SHIFTING and not self.at.turning:
            self._end_instant()
        self._show()

    def finish(self) -> None:
        """Show an episode that has ended, with nothing to decide."""
        self._end_instant()
        self._show()

    def _show(self) -> None:
        w = self.raw
        w["pinned_job"] = self.at.turning[0] if self.at.turning else NO_JOB
        self._goes_on = bool(show(self.simulator.records, self.windows, 0))
        w["can_act"] = self.at.stage != THROUGH

    @property
    def can_act(self) -> bool:
        """False where the environment passes over the present as it was last looked at."""
        return self.at.stage != THROUGH

    def _open_instant(self, skips: bool) -> None:
        """Ask the scheduler and the expert for placements; begin shifting if there are none."""
        expert_placements = self._expert_decisions()
        view = self.simulator.view
        gangs = self._gangs = {job: tuple(view.gpus_of(job)) for job in view.running.tolist()}
        ways: list[Way] = []
        asked = view if self.simulator.rule == self.clock else self._of_scheduler.view(self.simulator, self.clock)
        for plan in self.scheduler.candidates(asked, self.tables.plans):
            decisions = tuple(decisions_of(view, plan))
            if decisions and decisions not in ways:
                ways.append(decisions)
        self.is_expert_only = bool(expert_placements) and expert_placements not in ways[: self.tables.plans]
        if self.is_expert_only:
            ways.insert(0, expert_placements)
        self.at.present = Offer((), gangs, self._meetings(gangs))
        self.at.offers = []
        for decisions in ways[: self.tables.plans]:
            after = gangs_after(gangs, decisions)
            self.at.offers.append(Offer(decisions, after, self._meetings(after)))
        self.at.stage, self.at.turning, self.at.turned = PLACING, [], 0
        if skips and self.raw["skip_idle"] and not self.at.offers:
            self._begin_shifting()

    def _begin_shifting(self) -> None:
        """Begin the second stage: jobs of components that are new since the last instant, lone ones with a shift."""
        if self._turner is not None:
            self._end_instant()
            return
        view = self.simulator.view
        gangs = self._gangs = {job: tuple(view.gpus_of(job)) for job in view.running.tolist()}
        self.at.offers, self.at.stage, self.at.turned, self.is_expert_only = [], SHIFTING, 0, False
        self.at.present = Offer((), gangs, self._meetings(gangs))
        meetings = self.at.present.meetings
        changed = [each for each in meetings.components if self._signature(each) not in self._known]
        touched = {job for each in changed for job in each.jobs}
        lone = {job for job in gangs if job not in meetings.component_of and self.has_shift(job)}
        self.at.turning = sorted({*touched, *lone, *(job for job in self.seconds if job in gangs)})
        if not self.at.turning:
            self._end_instant()

    def has_shift(self, job: int) -> bool:
        """Whether a running job has a time-shift."""
        return shift_now(self.simulator.raw.record, job) is not None

    def leaving(self) -> Iterable[Decision]:
        """CASSINI's shifts of all jobs as they are placed now, with `shifts="cassini"`."""
        return () if self._turner is None else self._turner.finish(self.simulator.view)

    def _end_instant(self) -> None:
        self._known = {self._signature(component) for component in self.at.present.meetings.components}
        self.at.stage, self.at.offers, self.at.turning = THROUGH, [], []

    def _signature(self, component: Component) -> Signature:
        links = zlib.crc32(component.flows.tobytes() + component.capacity.tobytes())
        return (*((job, *self._gangs[job]) for job in component.jobs), (links,))

    def _meetings(self, gangs: Gangs) -> SharedLinks:
        network, links = self.simulator.network, self.simulator.topology.links
        if getattr(network, "mode", "") == "dedicated" or links is None:
            return SharedLinks({}, np.zeros(0))
        places = self._places_of(gangs)
        return shared_links_of(places, self.simulator.view.link_capacity, network.padding)  # type: ignore[attr-defined]

    def _places_of(self, gangs: Gangs) -> dict[int, Place]:
        own, outage = self.simulator, self.simulator.view.outage
        at, network = (own.topology, own.workload), own.network
        if getattr(network, "routes", "") == "least":
            found = network.together(*at, gangs, outage)  # type: ignore[attr-defined]
            return {job: Place(*one) for job, one in found.items()}
        for job, gpus in gangs.items():
            key = job, gpus, outage.key if outage else None
            if key not in self._places:
                self._places[key] = Place(*network.alone(*at, job, gpus, outage))  # type: ignore[attr-defined]
        return {job: self._places[job, gpus, outage.key if outage else None] for job, gpus in gangs.items()}

    def legal(self) -> np.ndarray:
        """Legal candidates, bool (candidates,)."""
        found = np.zeros(self.candidates, np.bool_)
        found[0] = self._goes_on
        if self.at.stage == PLACING:
            found[1 : 1 + len(self.at.offers)] = True
        elif self.at.stage == SHIFTING:
            found[[SHIFT, LEAVE]] = True
            found[FREE] = self.has_shift(self.at.turning[0])
        return found

    def take(self, candidate: int, second: int) -> ActionOutcome:
        """Play a legal candidate; its decisions are to be carried out before the next `refresh`."""
        self._has_acted = True
        if self.at.stage == PLACING:
            self.at.stage = PLACED
            decisions = self.at.offers[candidate - 1].decisions if candidate else ()
            if decisions != self.expert_placements:
                self.seconds = {}  # they belong to other placements
            return ActionOutcome(decisions)
        if candidate == 0:
            self._end_instant()
            return ActionOutcome(())
        job = self.at.turning.pop(0)
        self.at.turned += 1
        if candidate == LEAVE:
            return ActionOutcome(())
        if candidate == FREE:
            return ActionOutcome((Shift(job, None),))
        bucket = min(max(second, 0), BUCKETS - 1)
        return ActionOutcome((Shift(job, bucket_s(bucket, self._period_s(job))),), bucket != second)

    def _period_s(self, job: int) -> float:
        return float(self.simulator.network.period_s(self.simulator, job))  # type: ignore[attr-defined]

    def follow(self, policy: Decider) -> None:
        """Offer the choice of `policy` as a candidate from now on, also at instants that would be passed over."""
        if self.expert is policy:
            return
        self.expert = policy
        if not self._has_acted:
            self._open_instant(True)
        elif self.at.stage == SHIFTING and not self._expert_decisions():
            self.at.turning = sorted({*self.at.turning, *self.seconds})
        else:
            self.seconds = {}
        self._show()

    def _expert_decisions(self) -> Way:
        """The expert's placements now; its shifts are kept for the second stage."""
        self.seconds, self.expert_placements = {}, ()
        if self.expert is not None:
            found: list[Decision] = []
            for decision in self._of_expert.decisions(self.simulator, self.expert):
                if isinstance(decision, Shift):
                    self.seconds[decision.job] = decision.seconds
                elif isinstance(decision, Start) and decision.time_shift is not None:
                    self.seconds[decision.job] = decision.time_shift
                    found.append(replace(decision, time_shift=None))
                else:
                    found.append(decision)
            self.expert_placements = tuple(found)
            if self._turner is not None:
                self.seconds = {}
        return self.expert_placements

    def expert_action(self) -> np.ndarray:
        """The action, int64 (2,), for the expert's next decision; InvalidDecision: a shift by none of 72 rotations."""
        candidate, bucket = 0, 0
        if self.at.stage == PLACING and self.expert_placements:
            candidate = 1 + [offer.decisions for offer in self.at.offers].index(self.expert_placements)
        elif self.at.stage == SHIFTING and (not self._goes_on or any(job in self.seconds for job in self.at.turning)):
            job = self.at.turning[0]
            seconds = self.seconds.get(job)
            candidate = LEAVE if job not in self.seconds else FREE if seconds is None else SHIFT
            bucket = 0 if seconds is None else self._bucket(job, seconds)
        return np.array([candidate, bucket], np.int64)

    def _bucket(self, job: int, seconds: float) -> int:
        period_s = self._period_s(job)
        bucket = nearest_bucket(seconds, period_s)
        if bucket_s(bucket, period_s) != seconds:
            expected = f"expected one of {BUCKETS} even parts of its period of {period_s!r} s"
            raise InvalidDecision(f"{Shift(job, seconds)!r}: {expected}")
        return bucket

    def write(self, features: np.ndarray, mask: np.ndarray) -> None:
        """Write features, float32 (F,), and the mask of both parts, int8 (M,), as last looked at."""
        observe(self, self.at, features)
        mask[: self.candidates] = self.legal()
        mask[self.candidates :] = self.at.stage == SHIFTING
        mask[self.candidates] = 1

    def python_state(self) -> dict[str, Any]:
        """The stage in the present instant, for `take_python_state`."""
        return {**super().python_state(), "at": self.at.copy()}

    def take_python_state(self, python_state: Mapping[str, Any]) -> None:
        """Continue at the stage that `python_state` returned, in a run whose record was just replaced."""
        super().take_python_state(python_state)
        self.at = python_state["at"].copy()

    def state_dict(self) -> dict[str, Any]:
        """The stage in the present instant, as JSON data."""
        known = sorted(self._known)
        return {"stage": self.at.stage, "turning": self.at.turning, "turned": self.at.turned, "known": known}

    def load_state_dict(self, played: Mapping[str, Any]) -> None:
        """Continue at the stage `played`, in a run whose record was just replaced (`resume`)."""
        self._clear()
        self._is_new_instant()
        self._known = {tuple(map(tuple, gangs)) for gangs in played["known"]}
        self._has_acted = True
        self._open_instant(False)
        if played["stage"] != PLACING:
            self.at.offers, self.at.stage = [], played["stage"]
            self.at.turning, self.at.turned = list(played["turning"]), played["turned"]
        self._show()


def source_of(scheduler: str | CandidateSource) -> CandidateSource:
    """The policy that proposes placements, by name or as given; InputError if it cannot."""
    found = policy_of(scheduler) if isinstance(scheduler, str) else scheduler
    if not callable(getattr(found, "candidates", None)):
        raise InputError(f"scheduler = {called(scheduler)}: expected a policy that proposes placements, as 'themis'")
    return found
