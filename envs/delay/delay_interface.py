"""The window of Delay-v0 on any simulator."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from inspect import signature
from types import MappingProxyType
from typing import Any

from ...simulator.base.arguments import numbers
from ...simulator.base.decisions import Decision, Hold, Migrate, Preempt, Start
from ...simulator.base.errors import InputError
from ...simulator.base.names import choose
from ...simulator.base.tiers import MACHINE, RACK
from ...simulator.checks.check_gangs import check_gang
from ...simulator.engine.base_simulator import Decider
from ...simulator.engine.simulator import Simulator
from ...simulator.rules.rule import Rule
from ...simulator.running.gpu_allocation import tier_of_gang
from ..agent_interface import AgentInterface, slot_of
from ..observation_layout import Part
from ..window import NO_JOB, force_gpus, running_candidate, unforce_gpus, waiting_candidate
from .columns import CANDIDATES, CLUSTER, QUEUE, RUNNING
from .delay_transition import KERNELS
from .delay_window import (
    DEFRAGMENT_KIND,
    HOLD_KIND,
    HOLD_TIERS,
    KNOWN,
    MAX_DELAYS,
    MIGRATE_KIND,
    PER_RUNNING,
    PER_WAITING,
    PREEMPT_KIND,
    RAN_JOB,
    ROOM_KIND,
    TARGETS,
    UNTIL_OFFER,
    UNTIL_TIMER,
    target_of,
    window_dtype,
)
from .moves import RUNNING_ORDERS
from .terms import terms

DELAYS_S = (60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 21600.0, 43200.0, 86400.0)


@dataclass(frozen=True)
class MakeRoom:
    """All decisions of one instant by which a policy stops or moves jobs, and starts `job` last."""

    job: int
    decisions: tuple[Decision, ...]


class DelayInterface(AgentInterface):
    """The window of Delay-v0; the arguments are those of `DelayEnv`."""

    dtype = staticmethod(window_dtype)
    columns = MappingProxyType({"cluster": CLUSTER, "queue": QUEUE, "running": RUNNING, "candidates": CANDIDATES})
    kernels = KERNELS

    def __init__(self, *, delays: tuple[float, ...] = DELAYS_S, running_order: str = "priority", **window: Any) -> None:
        choose(running_order, RUNNING_ORDERS, "value of running_order")
        delays = numbers("delays", delays)
        if len(delays) > MAX_DELAYS - 2 or any(not 0.0 < delay < math.inf for delay in delays):
            raise InputError(f"delays = {delays!r}: expected at most {MAX_DELAYS - 2} finite numbers of seconds > 0")
        buckets = UNTIL_TIMER + 1 + len(delays)
        others = Part(buckets, CANDIDATES.hold), Part(HOLD_TIERS, CANDIDATES.hold)
        super().__init__(kinds=(PER_WAITING, PER_RUNNING), others=others, **window)
        self.window.running_order = RUNNING_ORDERS[running_order]
        self.window.n_delays = buckets
        self.window.delay_s[:buckets] = (math.inf, math.inf, *delays)
        self._jobs_shown = KNOWN

    def attach(self, simulator: Simulator) -> None:
        """Show a run, whatever its state; its window gets the order of this interface."""
        super().attach(simulator)
        w, jobs = self.raw, len(simulator.workload)
        unforce_gpus(w)
        w["known_job"] = w["written_job"] = w["written_runner"] = NO_JOB
        w["ran"][: max(self._jobs_shown, jobs), RAN_JOB] = (
            NO_JOB  # no more than are in use: each is a line of the cache
        )
        self._jobs_shown = jobs

    def resume(self, simulator: Simulator) -> None:
        """Continue on this run with a window whose bytes were just replaced."""
        super().resume(simulator)
        self._jobs_shown = KNOWN

    def force_decision(self, decision: Decision | None) -> None:
        """Modify the window: a start's or move's candidate stands for a policy's GPUs; InvalidDecision: illegal."""
        unforce_gpus(self.raw)
        if isinstance(decision, Start | Migrate):
            check_gang(self.simulator, decision)
            force_gpus(self.raw, decision.job, _kind_of(self.simulator, decision), decision.gpus)

    @staticmethod
    def terms(env_kwargs: Mapping[str, Any]) -> Rule:
        """The rule that holds for every policy in an environment with these keyword arguments; see `terms.terms`."""
        return terms(**{key: value for key, value in env_kwargs.items() if key in signature(terms).parameters})

    def composed(self, policy: Decider, decision: Decision) -> Decision | MakeRoom:
        """`decision`, or all that follows from it if its policy makes room for a job."""
        following = getattr(policy, "following", None)
        if following is None or not isinstance(decision, Preempt | Migrate):
            return decision
        rest = following(self.simulator.view)
        return MakeRoom(rest[-1].job, (decision, *rest)) if rest else decision

    def actions_for(self, decision: Any) -> Iterator[tuple[int, ...]]:
        """The actions (candidate, delay bucket, hold tier) that may play `decision`."""
        w = self.window
        if isinstance(decision, Start | MakeRoom):
            first = waiting_candidate(w, slot_of(w.waiting_job, decision), 0)
            for kind in range(TARGETS) if isinstance(decision, Start) else (ROOM_KIND,):
                yield first + kind, UNTIL_OFFER, 0
        elif isinstance(decision, Preempt | Migrate):
            first = running_candidate(w, slot_of(w.running_job, decision), 0)
            for kind in (MIGRATE_KIND, DEFRAGMENT_KIND) if isinstance(decision, Migrate) else (PREEMPT_KIND,):
                yield first + kind, UNTIL_OFFER, 0
        elif isinstance(decision, Hold):
            candidate = waiting_candidate(w, slot_of(w.waiting_job, decision), HOLD_KIND)
            if decision.until_s is None:
                yield candidate, UNTIL_OFFER, 0
            elif decision.tier in (MACHINE, RACK):
                delay_s, delays = self._delay_s(decision), w.delay_s[: w.n_delays].tolist()
                near = [bucket for bucket, one_s in enumerate(delays) if math.isclose(one_s, delay_s)]
                for bucket in (UNTIL_TIMER, *near):
                    yield candidate, bucket, decision.tier - MACHINE

    def hint(self, decision: Any, likely: list[Any] | None) -> str:
        """What to do where no action plays `decision`."""
        s, w = self.simulator.state, self.window
        if isinstance(decision, Hold):
            if decision.until_s is None or decision.tier not in (MACHINE, RACK):
                tiers = f"the tier {MACHINE} (machine) or {RACK} (rack)"
                return f"; a hold until the next offer has no tier here, and any other starts by itself at {tiers}"
            known = ", ".join(f"{delay:g}" for delay in w.delay_s[UNTIL_TIMER + 1 : w.n_delays])
            return f"; give it delays=(..., {self._delay_s(decision):g}), not only {known}" if likely else ""
        if likely:
            is_elsewhere = isinstance(decision, Start | Migrate) and likely[0].gpus != decision.gpus
            return "; give it the policy's placer" if is_elsewhere else ""
        if isinstance(decision, Preempt | Migrate | MakeRoom) and not w.preemption:
            return "; give the environment preemption=True"
        if isinstance(decision, Migrate) and not s.migrates and not s.waiting:
            return "; give the environment migration=True, or move jobs only while others wait"
        if isinstance(decision, Preempt) and not s.waiting:
            return "; stop jobs only while others wait"
        if isinstance(decision, Preempt | Migrate):
            return "; leave jobs alone that have started, or lost their GPUs, at this instant, or whose lease runs"
        return ""

    def _delay_s(self, decision: Hold) -> float:
        return float(decision.until_s or math.inf) - float(self.simulator.raw.record["now_s"])


def _kind_of(simulator: Simulator, decision: Start | Migrate) -> int:
    """The candidate of a decision among those of its job's slot, by the tier of its GPUs."""
    s, gpus = simulator.raw.record, decision.gpus
    s["gang"][: len(gpus)], s["gang_size"] = gpus, len(gpus)
    target = target_of(int(tier_of_gang(simulator.state)))
    if isinstance(decision, Start):
        return int(target)
    return MIGRATE_KIND if target < target_of(int(s["tier"][decision.job])) else DEFRAGMENT_KIND
