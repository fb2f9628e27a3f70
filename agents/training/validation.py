"""Playing an agent on held-out workloads: many at once, beside a reference heuristic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from ...envs.configured import gang_room
from ...envs.reference import job_ends_s
from ...policies import Policy, make_for
from ...simulator.base.said_once import say_once
from ...simulator.engine.simulator import Simulator
from ...simulator.numerics.random import draw_seed
from ...simulator.workloads import Workload, open_workload
from ...simulator.workloads.log_samples import is_sampled
from ..vec_env import sb3_vec_env
from .config import Config, Scenario

FIRST_SEED = 10_000  # of validation workloads; evaluations begin at 0
Mode = Literal["argmax", "sampled"]
MODES: tuple[Mode, ...] = ("argmax", "sampled")


@dataclass(frozen=True)
class Played:
    """One policy on one workload."""

    scenario: str  # its name
    seed: int  # of the workload
    metrics: dict[str, float]  # by the names of `simulator/engine/metrics.py`
    jct_s: float  # mean JCT; an unfinished job counts as the reward charges it (envs/reward.py)


class Validation:
    """The validation workloads of a training's configuration, written once: one row of a batch each."""

    def __init__(self, config: Config) -> None:
        self.config = config
        _warn_of_samples(config)
        seeds = range(FIRST_SEED, FIRST_SEED + config.validation_seeds)
        self.cases = [(one, seed, _workload(config, one, seed)) for one in config.validation for seed in seeds]
        variants = [{"topology": one.topology, "network": one.network, "workload": own} for one, _, own in self.cases]
        options = {**config.env, "observation": "flat", "reward": "jct", "reference": None}
        self.env = sb3_vec_env(config.environment, len(self.cases), seed=0, variants=variants, **options)

    def play(self, policy: Any, mode: Mode) -> list[Played]:
        """`policy` (of SB3) on every workload; random numbers outside are unchanged."""
        metrics: dict[int, dict[str, float]] = {}
        returns = np.zeros(len(self.cases))
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(0)
            self.env.seed(0)
            observation = self.env.reset()
            while len(metrics) < len(self.cases):
                actions = policy._predict(torch.as_tensor(observation), deterministic=mode == "argmax")
                observation, rewards, ended, infos = self.env.step(actions.numpy())
                first = [row not in metrics for row in range(len(self.cases))]
                returns[first] += rewards[first]
                for row in np.flatnonzero(ended & first):
                    metrics[int(row)] = infos[row]["metrics"]
        return [
            Played(scenario.name, seed, metrics[row], self._jct_s(row, len(workload), metrics[row], returns[row]))
            for row, (scenario, seed, workload) in enumerate(self.cases)
        ]

    def _jct_s(self, row: int, jobs: int, metrics: Mapping[str, float], total: float) -> float:
        if metrics["jobs_finished"] == jobs:
            return metrics["jct_mean"]
        return float(-total * self.env.envs[row].interface.window.reward_scale / jobs)

    def play_heuristic(self, word: str) -> list[Played]:
        """A heuristic on every workload, with the same failures and other draws as in `play`."""
        policy = make_for(word, self.config.environment)
        self.env.seed(0)
        self.env.reset()
        return [
            Played(scenario.name, seed, *play_alone(env.simulator, workload, policy))
            for (scenario, seed, workload), env in zip(self.cases, self.env.envs, strict=True)
        ]


def ratios(played: Sequence[Played], reference: Sequence[Played]) -> dict[str, float]:
    """By scenario, the ratio of the mean JCTs of two policies on the same workloads."""
    totals: dict[str, list[float]] = {}
    for own, other in zip(played, reference, strict=True):
        pair = totals.setdefault(own.scenario, [0.0, 0.0])
        pair[0] += own.jct_s
        pair[1] += other.jct_s
    return {scenario: own / other for scenario, (own, other) in totals.items()}


def _warn_of_samples(config: Config) -> None:
    trained_on = {word for one in config.training for word in one.workloads if is_sampled(word)}
    if any(word in trained_on for one in config.validation for word in one.workloads):
        say_once("validation plays jobs of a log that training plays: name those of another log there")


def _workload(config: Config, scenario: Scenario, seed: int) -> Workload:
    word = scenario.workloads[seed % len(scenario.workloads)]
    return open_workload(word, seed=seed, cluster_gpus=gang_room(config.environment, scenario.topology))


def play_alone(own: Simulator, workload: Workload, policy: Policy) -> tuple[dict[str, float], float]:
    """A heuristic alone, on a cluster as `own`, which was just reset: metrics, and the mean JCT, seconds."""
    policy.expect_known(own.estimates)
    simulator: Simulator = own.config.for_policy(policy).build(policy.rule_under(own.semantics))
    simulator.reset(policy.workload_for(workload), seed=draw_seed(own.state))
    metrics = simulator.run(policy.decider(simulator))
    if metrics["jobs_finished"] == len(workload):
        return metrics, metrics["jct_mean"]
    return metrics, float(np.mean(job_ends_s(simulator.state) - workload.arrival_s))
