"""A reference's run on the workload of an episode, with which the reward `jct` compares."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..simulator.base import codes
from ..simulator.base.errors import Endless, InputError
from ..simulator.base.names import called
from ..simulator.engine.protocols import policy_of
from ..simulator.engine.rule_loop import parts_of_a_run, rule_loop
from ..simulator.engine.simulator import Simulator
from ..simulator.events.initialise import write_rule
from ..simulator.numerics.random import draw_seed
from ..simulator.profiles.skew import jobs_taken_for_skewed
from ..simulator.record.raw_record import RawRecord
from ..simulator.rules.rule import SKEW_PLACERS, Rule


def job_ends_s(s: Any) -> np.ndarray:
    """End times of the jobs of a finished run, seconds, float64 (jobs,); from the horizon on each job runs alone."""
    n, now_s = int(s["n_jobs"]), float(s["now_s"])
    left, runs = s["iterations_left"][:n].copy(), s["status"][:n] == codes.RUNNING
    left[runs] -= np.maximum(0.0, now_s - s["since_s"][:n][runs]) / s["iteration_s"][:n][runs]
    alone_s = np.maximum(now_s, s["arrival_s"][:n]) + np.maximum(0.0, left) * s["base_iteration_s"][:n]
    return np.where(s["status"][:n] == codes.DONE, s["finish_s"][:n], alone_s)


class Reference:
    """A scheduler that plays each episode's workload, on the same cluster and with the same failures.

    `policy` is a `Rule`, a policy or a name, which may differ by environment. InputError: it does not schedule, or it
    needs run times, which are hidden.
    """

    def __init__(self, policy: Any, simulator: Simulator, env_id: str) -> None:
        found = policy_of(policy, env_id) if isinstance(policy, str) else policy
        if hasattr(found, "playing_in"):
            found = found.playing_in(env_id)
        self.rule: Rule | None
        if isinstance(found, Rule):
            self.rule = found
        elif hasattr(found, "rule_under") and hasattr(found, "decide"):
            self.rule = found.rule_under(simulator.semantics)
        else:
            raise InputError(f"reference = {called(policy)}: expected the name of a policy, a policy, a Rule or None")
        self.policy = found
        self.name = policy if isinstance(policy, str) else called(policy)
        if getattr(found, "needs_run_times", False) or getattr(found, "knows_run_times", False):
            simulator.estimates.expect_known(f"reference {self.name}")
        self._copy: np.recarray | None = None
        self._raw: RawRecord
        self._simulator: Simulator | None = None

    def finishes_s(self, simulator: Simulator) -> tuple[np.ndarray, float, float]:
        """Play the workload to which `simulator` was just reset, before its clock starts.

        Returns finish times of its jobs, seconds, ascending, float64 (jobs,), with those cut off at the horizon as in
        reward.py; the end of its run, seconds; and the sum of its JCTs, job-seconds.
        """
        # A rate provider answers in Python, and compiled rules place nothing in regions.
        if self.rule is None or simulator.rate_provider is not None or simulator.workload.geo is not None:
            s = self._played_by_policy(simulator)
        else:
            s = self._played_by_rule(simulator, self.rule)
        ends_s = job_ends_s(s)
        left_s = ends_s - np.maximum(s["arrival_s"][: len(ends_s)], float(s["now_s"]))
        jct_s = float(s["active_integral"]) + float(left_s[left_s > 0.0].sum())
        return np.sort(ends_s), float(s["now_s"]), jct_s

    def _played_by_rule(self, simulator: Simulator, rule: Rule) -> Any:
        if self._copy is None or self._copy.dtype != simulator.records.dtype:
            self._copy = simulator.capacity.empty()
            self._raw = RawRecord(self._copy, simulator.capacity)
        self._raw.become(simulator.raw)
        skewed = None
        if rule.placer in SKEW_PLACERS:
            skewed = jobs_taken_for_skewed(simulator.workload, simulator.network.name)
        write_rule(self._raw.record, rule, skewed, simulator.semantics)
        for events in parts_of_a_run():
            code = rule_loop().run(self._copy, 0, events)
            if code != codes.DECIDE:
                break
            rule_loop().schedule(self._copy, 0)
        if code == codes.ENDLESS:
            raise Endless(f"reference {self.name}: its run of workload {simulator.workload.name!r} has no end")
        if code == codes.STALLED:
            raise InputError(f"reference {self.name}: it leaves jobs of workload {simulator.workload.name!r} waiting")
        return self._raw.record

    def _played_by_policy(self, simulator: Simulator) -> Any:
        if self._simulator is None:
            self._simulator = simulator.config.on_network_for(self.policy).build(simulator.rule)
        own = self._simulator
        own.use(self.rule or simulator.rule)
        workload = simulator.workload
        if hasattr(self.policy, "workload_for"):
            workload = self.policy.workload_for(workload)
        own.reset(workload, seed=draw_seed(simulator.state))
        own.run(None if self.rule and workload.geo is None else self.policy)
        return own.state
