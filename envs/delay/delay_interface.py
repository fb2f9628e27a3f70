"""The window of Delay-v0 on any simulator."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from inspect import signature
from types import MappingProxyType
from typing import Any

import numpy as np

from ...simulator.base.decisions import Decision, Migrate, Preempt, Start
from ...simulator.base.names import choose
from ...simulator.checks.check_gangs import check_gang
from ...simulator.engine.base_simulator import Decider
from ...simulator.engine.simulator import Simulator
from ...simulator.rules.rule import Rule
from ...simulator.running.gpu_allocation import tier_of_gang
from ..agent_interface import AgentInterface
from ..families import hold, move, start
from ..families.composing import composed, window_of
from ..families.hold import HOLD_TIERS, TimedHold
from ..families.make_room import MakeRoom, RoomMaking
from ..families.move import Moving
from ..families.move_search import RUNNING_ORDERS
from ..families.preempt import Preemption
from ..families.start import TierStart
from ..observation_layout import Part
from ..window import NO_JOB, force_gpus, unforce, unforce_gpus
from .ahead import ask_ahead
from .columns import CANDIDATES, CLUSTER, QUEUE, RUNNING
from .observation import FIELDS, KNOWN, RAN_JOB, TABLES, UNIT_GPUS, forget_written, look, observe_cluster
from .terms import terms

DELAYS_S = (60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 21600.0, 43200.0, 86400.0)
FAMILIES = (TierStart, RoomMaking, TimedHold, Preemption, Moving)
KERNELS = composed(
    FAMILIES,
    TABLES,
    CANDIDATES,
    look=look,
    cluster=observe_cluster,
    cluster_columns=len(CLUSTER),
    parts=hold.write_parts,
    forget=unforce,
    forget_written=forget_written,
    ask_ahead=ask_ahead,
)


@cache
def window_dtype() -> np.dtype:
    """One window, with room for the largest number of slots."""
    return window_of(FAMILIES, FIELDS)


class DelayInterface(AgentInterface):
    """The window of Delay-v0; the arguments are those of `DelayEnv`."""

    dtype = staticmethod(window_dtype)
    columns = MappingProxyType({"cluster": CLUSTER, "queue": QUEUE, "running": RUNNING, "candidates": CANDIDATES})
    kernels = KERNELS
    unit_gpus = UNIT_GPUS

    def __init__(self, *, delays: tuple[float, ...] = DELAYS_S, running_order: str = "priority", **window: Any) -> None:
        choose(running_order, RUNNING_ORDERS, "value of running_order")
        held = TimedHold(delays)
        others = Part(len(held.delay_s), CANDIDATES.hold), Part(HOLD_TIERS, CANDIDATES.hold)
        super().__init__(families=(TierStart(), RoomMaking(), held, Preemption(), Moving()), others=others, **window)
        self.window.running_order = RUNNING_ORDERS[running_order]
        self._jobs_shown = KNOWN

    def attach(self, simulator: Simulator) -> None:
        """Show a run, whatever its state; its window gets the order of this interface."""
        super().attach(simulator)
        w, jobs = self.raw, len(simulator.workload)
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


def _kind_of(simulator: Simulator, decision: Start | Migrate) -> int:
    """The candidate of a decision among those of its family, by the tier of its GPUs."""
    s, gpus = simulator.raw.record, decision.gpus
    s["gang"][: len(gpus)], s["gang_size"] = gpus, len(gpus)
    target = start.target_of(int(tier_of_gang(simulator.state)))
    return int(target) if isinstance(decision, Start) else move.kind_of(target, int(s["tier"][decision.job]))
