"""PPO and MaskablePPO as configured: the batch of environments, and the learner."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from ...envs.configured import gang_room
from ...simulator.workloads import Workload, open_workload
from ..networks import network_class
from ..policies import policy_class
from ..vec_env import ClusterVecEnv, sb3_vec_env
from .config import Config, Scenario
from .groups import GroupMaskablePPO, GroupPPO

DECISIONS_A_JOB = 2.0
LEARNERS = {
    ("maskable-ppo", False): MaskablePPO,
    ("ppo", False): PPO,
    ("maskable-ppo", True): GroupMaskablePPO,
    ("ppo", True): GroupPPO,
}


def make_env(config: Config) -> ClusterVecEnv:
    """The rows of a training, scenarios by their shares."""
    variants = [scenario.variant for scenario in config.training for _ in range(scenario.share)]
    grouped = config.variance == "group"
    if grouped:  # all replicas of a workload play the same scenario
        variants = [variant for variant in variants for _ in range(config.replicas)]
    return sb3_vec_env(
        config.environment,
        config.num_envs,
        seed=config.seed,
        replicas=config.replicas if grouped else 1,
        variants=variants,
        # For a group too: relative to the reference, rewards of all scenarios are of one size.
        reference=config.reference if config.variance != "none" and config.pays_jct else None,
        observation="flat",
        **config.env,
    )


def make_learner(config: Config, env: ClusterVecEnv) -> Any:
    """SB3's learner, with everything seeded."""
    set_random_seed(config.seed)
    grouped = config.variance == "group"  # its advantages are normalised, and it has no use for values
    wrapped: VecEnv = VecNormalize(env, norm_obs=False, gamma=config.gamma) if config.normalise and not grouped else env
    learner = LEARNERS[config.algo, grouped](
        policy_class(config.algo),
        wrapped,
        learning_rate=_falling(config.learning_rate) if config.lr_schedule == "linear" else config.learning_rate,
        n_steps=config.steps_of_rollout,
        batch_size=min(config.batch_size, config.num_envs * config.steps_of_rollout),
        n_epochs=config.n_epochs,
        gamma=config.gamma,
        gae_lambda=config.gae_lambda,
        clip_range=config.clip_range,
        ent_coef=config.ent_coef,
        vf_coef=config.vf_coef,
        max_grad_norm=config.max_grad_norm,
        policy_kwargs=policy_kwargs(config, env),
        device="cpu",
    )
    if grouped:
        learner.replicas = config.replicas
    return learner


def _falling(rate: float) -> Callable[[float], float]:
    return lambda left: rate * max(left, 0.0)  # the last rollout may go past the end


def decisions_expected(config: Config) -> float:
    """Expected decisions of an episode before the first one: a start and an advance a job."""
    jobs = [(scenario.share, len(first_workload(config, scenario))) for scenario in config.training]
    return DECISIONS_A_JOB * sum(share * count for share, count in jobs) / sum(share for share, _ in jobs)


def first_workload(config: Config, scenario: Scenario) -> Workload:
    """A workload of a scenario."""
    room = gang_room(config.environment, scenario.topology)
    return open_workload(scenario.workloads[0], seed=0, cluster_gpus=room)


def policy_kwargs(config: Config, env: ClusterVecEnv) -> dict[str, Any]:
    """Arguments that build the policy anew, beside its spaces: plain values."""
    return {**kind_of_policy(config), "tables": env.get_attr("tables")[0].to_json()}


def kind_of_policy(config: Config) -> dict[str, Any]:
    """Those that do not depend on the window."""
    squash = {"squash": config.squash} if "squash" in signature(network_class(config.net)[0]).parameters else {}
    kind: dict[str, Any] = {"network": config.net, "holds": config.holds, "critic": config.variance != "group"}
    return {**kind, "options": {**squash, **config.net_options}}
