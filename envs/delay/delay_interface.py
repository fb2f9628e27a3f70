"""The window of Delay-v0 on any simulator: what an agent would see and may do there now."""

from __future__ import annotations

import math
from collections.abc import Mapping
from inspect import signature
from typing import Any

import numpy as np

from ...simulator.base.arguments import numbers
from ...simulator.base.decisions import Decision, Migrate, Start
from ...simulator.base.errors import InputError
from ...simulator.base.names import choose
from ...simulator.checks.check_gangs import check_gang
from ...simulator.engine.simulator import Decider, Simulator
from ...simulator.rules.rule import Rule
from ..agent_interface import AgentInterface
from ..dictated import dictate, undictate
from ..observation_layout import Part
from ..window import NO_JOB
from .codec import DELAYS_S, MakeRoom, composed, decode, encode, kind_of
from .delay_transition import turn
from .delay_window import HOLD_TIERS, KNOWN, MAX_DELAYS, PER_RUNNING, PER_WAITING, UNTIL_TIMER, window_dtype
from .moves import RUNNING_ORDERS
from .observation import CANDIDATES, CLUSTER, HOLD_COLUMN, QUEUE, RUNNING
from .terms import terms


class DelayInterface(AgentInterface):
    """The window of Delay-v0; the arguments are those of `DelayEnv`."""

    dtype = staticmethod(window_dtype)
    columns = (CLUSTER, QUEUE, RUNNING, CANDIDATES)
    turn = staticmethod(turn)

    def __init__(self, *, delays: tuple[float, ...] = DELAYS_S, running_order: str = "priority", **window: Any) -> None:
        choose(running_order, RUNNING_ORDERS, "value of running_order")
        delays = numbers("delays", delays)
        if len(delays) > MAX_DELAYS - 2 or any(not 0.0 < delay < math.inf for delay in delays):
            raise InputError(f"delays = {delays!r}: expected at most {MAX_DELAYS - 2} finite numbers of seconds > 0")
        buckets = UNTIL_TIMER + 1 + len(delays)
        others = Part(buckets, HOLD_COLUMN), Part(HOLD_TIERS, HOLD_COLUMN)
        super().__init__(kinds=(PER_WAITING, PER_RUNNING), others=others, **window)
        self.window.running_order = RUNNING_ORDERS[running_order]
        self.window.n_delays = buckets
        self.window.delay_s[:buckets] = (math.inf, math.inf, *delays)
        self._laid = KNOWN

    def lay(self, simulator: Simulator) -> None:
        """Start looking at a run, whatever its state; its window is put into this one's order."""
        super().lay(simulator)
        w, jobs = self.plain, len(simulator.workload)
        undictate(w)
        w["known_job"] = w["written_job"] = w["written_runner"] = NO_JOB
        w["ran"][: max(self._laid, jobs), 0] = NO_JOB  # a line of the cache each: no more than are in use
        self._laid = jobs

    def resume(self, simulator: Simulator) -> None:
        """Go on with a window that has just been written over, and that looks at this run."""
        super().resume(simulator)
        self._laid = KNOWN

    def dictate(self, decision: Decision | None) -> None:
        """Modify the window: the candidate of a start or a move stands for the very GPUs that a policy names.

        None: for those that the environment chooses.

        Raises:
            InvalidDecision: the job cannot have them.
        """
        undictate(self.plain)
        if isinstance(decision, Start | Migrate):
            check_gang(self.simulator, decision)
            dictate(self.plain, decision.job, kind_of(self.simulator, decision), decision.gpus)

    @staticmethod
    def terms(env_kwargs: Mapping[str, Any]) -> Rule:
        """What holds, whoever decides, in an environment with these keyword arguments; see `terms.terms`."""
        return terms(**{key: value for key, value in env_kwargs.items() if key in signature(terms).parameters})

    def composed(self, policy: Decider, decision: Decision) -> Decision | MakeRoom:
        """`decision`, or all that the policy which has just given it decides with it; see `codec.composed`."""
        return composed(self.simulator, policy, decision)

    def action(self, decision: Decision | MakeRoom) -> np.ndarray:
        """The action (candidate, delay bucket, tier), int64 (3,), that plays `decision`; see `codec.encode`."""
        return encode(self.simulator, self.window, decision)

    def decisions(self, action: Any) -> list[Decision]:
        """What an action stands for now; see `codec.decode`."""
        return list(decode(self.simulator, self.window, action))
