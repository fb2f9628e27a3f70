"""How an episode begins: its workload, its reward, and the run up to the first decision."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from ..simulator.base.arguments import check_range, checked_seed
from ..simulator.base.errors import InputError
from ..simulator.base.names import choose
from ..simulator.configuration.cluster_config import SimulatedCluster
from ..simulator.rules.rule import Rule
from ..simulator.workloads import Workload, workload_source
from .agent_interface import AgentInterface
from .batch import Stepper
from .common_options import NAMESPACE
from .outcome import BEGINS, REWARD
from .reference import Reference
from .reward import JCT, REWARDS, Reward, own_reward, paid, reward_scale
from .snapshot import Snapshot

DECISIONS_A_JOB = 50  # far more than a useful policy needs; ends the episodes of others
NEVER = 2**62  # as a limit of decisions

# Fields of the window that `_begin_run` writes.
OF_REFERENCE = ("ref_on", "ref_jobs", "ref_end_s", "ref_arrived", "ref_arrived_s", "ref_done", "ref_done_s")
OF_EPISODE = ("begins", "decisions", "max_decisions", "reward_scale", *OF_REFERENCE)


class EpisodeEnv(gym.Env[Any, np.ndarray]):
    """An environment in a row of a `Stepper`, whose episodes it draws.

    Attributes:
        rewards: the names of its rewards, with their code in the kernel.
        simulator, interface, rule: the simulator, the window, and the rule that holds for every policy.
        sources: the workloads by seed, of which one is drawn.
    """

    part: ClassVar[str]
    rewards: ClassVar[Mapping[str, int]] = REWARDS
    simulator: Any
    interface: AgentInterface
    rule: Rule
    sources: list[Callable[[int], Workload]]
    stepper: Stepper
    row: int
    _window: Any
    _outcome: np.ndarray

    @property
    def config(self) -> SimulatedCluster:
        """The simulated cluster, with topology and network loaded."""
        config: SimulatedCluster = self.simulator.config
        return config

    def _set_reward(self, reward: str | Reward, reference: Any, max_decisions: float | None) -> None:
        self._own_reward = own_reward(reward)
        if self._own_reward is None and not isinstance(reward, str):
            known = f"one of {', '.join(self.rewards)}, or a function of two snapshots or its word"
            raise InputError(f"reward = {reward!r}: expected {known}")
        if self._own_reward is None:
            choose(reward, self.rewards, "value of reward")  # type: ignore[arg-type]
        if reference is not None and reward != "jct":
            raise InputError(f"reference with reward = {reward!r}: expected reward = 'jct'")
        if max_decisions is not None and max_decisions != math.inf:
            check_range("max_decisions", max_decisions, 1, NEVER)  # type: ignore[arg-type]
        self.max_decisions = max_decisions
        env_id = f"{NAMESPACE}{self.part}"
        self._reference = None if reference is None else Reference(reference, self.simulator, env_id)
        self.interface.window.reward_kind = JCT if self._own_reward else self.rewards[reward]  # type: ignore[index]

    @property
    def decisions_at_most(self) -> float:
        """Number of steps after which the present episode is truncated; infinity: never."""
        self._expect_reset()
        found = int(self.interface.raw["max_decisions"])
        return math.inf if found == NEVER else float(found)

    def _sources_of(self, workload: Any) -> list[Callable[[int], Workload]]:
        given = workload if isinstance(workload, tuple | list) else (workload,)
        if not given:
            raise InputError("workload = []: expected at least one workload")
        room = self.config.gang_room(self.simulator.topology)
        return [workload_source(one, cluster_gpus=room) for one in given]

    def _write_own_reward(self) -> None:
        assert self._own_reward is not None
        after = self.in_numbers()
        if self.interface.raw["owes"]:  # it began an episode
            self._outcome[REWARD], self._before = 0.0, Snapshot.before_all(self.simulator.raw.record)
        else:
            self._outcome[REWARD], self._before = paid(self._own_reward, self._before, after), after

    def in_numbers(self) -> Snapshot:
        """The cluster in numbers after the last step, as a reward function gets it."""
        self._expect_reset()
        return Snapshot.of(self.simulator.raw.record, self.interface.raw, self._outcome.tolist())

    def metrics(self) -> dict[str, float]:
        """Totals of the episode so far, as `info["metrics"]` has them at its end (simulator/engine/metrics.py)."""
        self._expect_reset()
        return self.simulator.metrics()

    def draw(self, seed: int | None, options: dict[str, Any] | None) -> None:
        """Write a new episode, which the first step begins, whatever the action; for `reset` and batches."""
        super().reset(seed=None if seed is None else checked_seed(seed))
        if options and (unknown := set(options) - {"workload"}):
            raise InputError(f"reset options: unknown key {min(unknown)!r}; expected workload")
        drawn = int(self.np_random.integers(2**31))
        sources = self._sources_of(options["workload"]) if options and "workload" in options else self.sources
        which = int(self.np_random.integers(len(sources))) if len(sources) > 1 else 0
        self._drawn = {"seed": drawn, "workload": which, "given": sources is not self.sources}
        self._begin_run(sources[which](drawn), drawn)

    def draw_as(self, other: EpisodeEnv, seed: int | None) -> None:
        """As `draw`, with the result of `other`, an environment of the same kind that has just drawn."""
        super().reset(seed=None if seed is None else checked_seed(seed))
        self.np_random.bit_generator.state = other.np_random.bit_generator.state
        self._drawn = dict(other._drawn)
        self.simulator.use(self.rule)
        self.simulator.reset_as(other.simulator)
        self.interface.attach(self.simulator)
        for name in OF_EPISODE:
            self.interface.raw[name] = other.interface.raw[name]
        if self._reference is not None:
            self.stepper.rows.references[self.row] = self.stepper.rows.references[other.row]

    def _begin_run(self, workload: Workload, seed: int) -> None:
        self.simulator.use(self.rule)
        self.simulator.reset(workload, seed=seed, begin=False)
        self.interface.attach(self.simulator)
        w = self.interface.raw
        w["begins"], w["decisions"] = BEGINS, 0
        w["max_decisions"] = min(NEVER, self.max_decisions or DECISIONS_A_JOB * len(workload))
        w["reward_scale"] = reward_scale(self.simulator.raw.record, w, workload.name)
        if self._reference is not None:
            # In the reference's own terms rewards mean the same whatever the load.
            finish_s, w["ref_end_s"], w["reward_scale"] = self._reference.finishes_s(self.simulator)
            w["ref_on"], w["ref_jobs"] = 1, len(finish_s)
            w["ref_arrived"], w["ref_done"], w["ref_arrived_s"], w["ref_done_s"] = 0, 0, 0.0, 0.0
            self.stepper.rows.fit_references()
            self.stepper.rows.references[self.row, : len(finish_s)] = finish_s

    def _expect_reset(self) -> None:
        self.stepper.expect_begun((self.row,))
