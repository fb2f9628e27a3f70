"""Training: warm start, PPO, periodic evaluation on held-out workloads, checkpoints, and continuing after a kill.

A checkpoint has everything that a run's numbers depend on: weights, optimizer, random states, and the clusters. So a
run that was killed and resumed has exactly the weights of one that was not.
"""

from __future__ import annotations

import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter, Logger
from stable_baselines3.common.vec_env import VecNormalize

from ...envs.columns import names_of
from ...policies import make_for
from ...simulator.base.errors import InputError, InvalidDecision
from ...simulator.compiler.interpreting import compile_at_once
from ..files.checkpoint import (
    Checkpoint,
    optimizer_tensors,
    random_states,
    read_checkpoint,
    restore_optimizer,
    restore_random_states,
    write_checkpoint,
)
from ..files.saved import AgentDescription, save_agent
from .config import Config, make_config
from .groups import rows_of_rollout
from .imitation import Imitated, clone
from .learners import decisions_expected, make_env, make_learner, policy_kwargs
from .starting import start
from .validation import MODES, Mode, Played, Validation, ratios
from .what_is_read import expect_same, read_in

CHECKPOINT, BEST = "checkpoint", "best"
CHECKPOINT_EVERY_S = 30.0
CALIBRATION_STEPS = 200  # of every row


@dataclass(frozen=True)
class Evaluated:
    """A periodic evaluation."""

    step: int  # training steps before it
    played: dict[Mode, list[Played]]  # the agent on every validation workload
    ratios: dict[Mode, dict[str, float]]  # by mode and scenario, its mean JCT over that of the reference
    mode: Mode  # the better one
    score: float  # mean of that mode's ratios; lower is better
    is_best: bool  # whether its score is the lowest so far


class Listener(Protocol):
    """A receiver of a training's progress."""

    def scalars(self, step: int, values: dict[str, float]) -> None:
        """Figures of an update, by tag."""

    def imitated(self, imitated: Imitated) -> None:
        """The warm start is over."""

    def evaluated(self, evaluated: Evaluated, agent: Path) -> None:
        """A periodic evaluation; the best agent so far is saved in `agent`."""

    def progressed(self, step: int) -> None:
        """The number of training steps done."""


@dataclass
class _LoopState:
    """The loop's memory between rollouts, beside SB3's own."""

    next_evaluation: int = 0
    evaluated: int = -1  # the step of the last one
    best: dict[str, Any] = field(default_factory=dict)
    imitation: dict[str, Any] = field(default_factory=dict)  # `Imitated`, and the clone's score; empty: none


class Training:
    """One training run, with checkpoint and best agent in `folder`; `command`: for the agent's description."""

    def __init__(self, config: Config, folder: Path, listener: Listener, command: str = "") -> None:
        torch.set_num_threads(1)
        compile_at_once()
        self.config, self.folder, self.listener, self.command = config, folder, listener, command
        self.read = read_in(config)
        self.env = make_env(config)
        self.learner = make_learner(config, self.env)
        self.learner.each = decisions_expected(config)
        self.learner.set_logger(Logger(None, [_Tell(self)]))
        self.validation = Validation(config)
        self.reference = self.validation.play_heuristic(config.reference)
        self.loop_state = _LoopState()
        self._noted: Checkpoint | None = None
        self._written: Checkpoint | None = None
        self._writing = threading.Lock()

    @property
    def best(self) -> Path:
        """The folder of the best agent so far."""
        return self.folder / BEST

    @property
    def step(self) -> int:
        """Training steps done."""
        return int(self.learner.num_timesteps)

    @property
    def _asked(self) -> int:
        """The last step: only the first rollout may exceed the configuration's number."""
        config, rollout = self.config, self.config.num_envs * self.config.steps_of_rollout
        if config.variance == "group":  # its learner keeps to it
            return config.timesteps
        return max(1, config.timesteps // rollout) * rollout

    @property
    def about(self) -> str:
        """The size of a rollout and the number of decisions asked for; one sentence."""
        config, asked = self.config, f"{self.config.timesteps:,} are asked for"
        if config.variance == "group":
            each = self.learner.each
            rows = rows_of_rollout(config.num_envs, config.replicas, each, config.timesteps, True)
            found = f"one whole episode of each of {config.num_envs} rows, some {each * config.num_envs:,.0f} decisions"
            fewer = f", so the first is of {rows} rows, some {each * rows:,.0f} decisions"
            cut = "" if rows == config.num_envs else fewer
        else:
            steps = config.steps_of_rollout
            found = f"{steps} steps of {config.num_envs} rows, {steps * config.num_envs:,} decisions"
            cut = "" if steps == config.n_steps else f", so it is cut from {config.n_steps} steps"
        return f"a rollout is {found}; {asked}{cut}"

    def run(self, resume: bool = False) -> dict[str, Any]:
        """Train to the end, or `resume` from the checkpoint; returns the best agent's validation results.

        The checkpoint may be of a training that was to be shorter.
        """
        if resume:
            self._restore(read_checkpoint(self.folder / CHECKPOINT))
        elif self.config.start_from is not None:
            start(self.learner.policy, self.config)
        elif self.config.imitate is None:
            self._calibrate()
        else:
            imitated = clone(self.learner.policy, self.config)
            self.loop_state.imitation = asdict(imitated)
            self.listener.imitated(imitated)
        left = self._asked - self.step
        if left > 0:
            self.learner.learn(left, callback=_Loop(self), reset_num_timesteps=False)
        if self.loop_state.evaluated != self.step:
            self.evaluate()
        self.checkpoint()
        return self.loop_state.best

    def _calibrate(self) -> None:
        """Have the network scale features by their spread at the reference's decisions."""
        env = make_env(self.config)
        # Policies remember a run.
        policies = [make_for(self.config.reference, self.config.environment) for _ in range(env.num_envs)]
        rng = np.random.default_rng(self.config.seed)
        seen = [env.reset()]
        for _ in range(CALIBRATION_STEPS):
            actions = [_decided(one, policy, rng) for one, policy in zip(env.envs, policies, strict=True)]
            seen.append(env.step(np.stack(actions))[0])
        if hasattr(self.learner.policy.network, "calibrate"):
            self.learner.policy.network.calibrate(torch.as_tensor(np.concatenate(seen)))

    def evaluate(self) -> None:
        """Play the validation workloads in both modes; save the agent if it is the best so far."""
        played = {mode: self.validation.play(self.learner.policy, mode) for mode in MODES}
        by_mode = {mode: ratios(played[mode], self.reference) for mode in MODES}
        scores = {mode: float(np.mean(list(by_mode[mode].values()))) for mode in MODES}
        mode = min(MODES, key=lambda one: scores[one])
        is_best = scores[mode] < self.loop_state.best.get("score", np.inf)
        evaluated = Evaluated(self.step, played, by_mode, mode, scores[mode], is_best)
        if self.step == 0 and self.loop_state.imitation:
            self.loop_state.imitation["score"] = scores[mode]
        if is_best:
            self.loop_state.best = {"score": scores[mode], "mode": mode, "step": self.step}
            self.loop_state.best |= {"reference": self.config.reference, "ratios": by_mode[mode]}
            save_agent(self.best, self.learner.policy, self._description())
        self.loop_state.evaluated = self.step
        self.loop_state.next_evaluation = self._evaluation_after(self.step)
        self.listener.evaluated(evaluated, self.best)

    def _evaluation_after(self, step: int) -> int:
        spacing = self.config.timesteps / self.config.evaluations
        return int((step // spacing + 1) * spacing)

    def _description(self) -> AgentDescription:
        best = self.loop_state.best
        return AgentDescription(
            algo=self.config.algo,
            network=self.config.net,
            policy_kwargs={k: v for k, v in policy_kwargs(self.config, self.env).items() if k != "network"},
            environment=self.config.environment,
            env_kwargs={key: value for key, value in self.config.env.items() if key != "reward"},
            columns=names_of(self.env.envs[0].interface.columns),
            mode=best["mode"],
            command=self.command,
            config=self.config.model_dump(mode="json"),
            seed=self.config.seed,
            steps=self.step,
            evaluation={"validation": best, "imitation": self.loop_state.imitation},
        )

    def checkpoint(self) -> None:
        """Write a checkpoint of the present to disk."""
        self.note()
        self.keep()

    def keep(self) -> None:
        """Write the last noted state to disk, in any thread, if there is a new one."""
        with self._writing:
            noted = self._noted
            if noted is not None and noted is not self._written:
                write_checkpoint(self.folder / CHECKPOINT, noted)
                self._written = noted

    def note(self) -> None:
        """Copy the present state in memory."""
        learner, loop_state = self.learner, self.loop_state
        tensors = {f"policy/{name}": tensor for name, tensor in learner.policy.state_dict().items()}
        moments, optimizer = optimizer_tensors(learner.policy.optimizer)
        random_arrays, random_data = random_states()
        env_arrays, env_data = self.env.get_state()
        arrays = {**random_arrays, **{f"env/{name}": array for name, array in env_arrays.items()}}
        if learner._last_obs is not None:
            arrays |= {"last/observation": learner._last_obs, "last/starts": learner._last_episode_starts}
        config = self.config.model_dump(mode="json")
        data: dict[str, Any] = {"config": config, "optimizer": optimizer, "random": random_data, "env": env_data}
        data |= {"updates": learner._n_updates, "next_evaluation": loop_state.next_evaluation}
        data |= {"evaluated": loop_state.evaluated, "best": loop_state.best, "imitation": loop_state.imitation}
        data |= {"read": self.read, "each": float(getattr(learner, "each", 0.0))}
        if isinstance(learner.env, VecNormalize):
            spread = learner.env.ret_rms
            data["returns"] = [float(spread.mean), float(spread.var), float(spread.count)]
            arrays["returns"] = learner.env.returns.copy()
        tensors = {name: tensor.clone() for name, tensor in {**tensors, **moments}.items()}
        self._noted = Checkpoint(self.step, tensors, arrays, data)

    def _restore(self, saved: Checkpoint) -> None:
        learner, data = self.learner, saved.data
        begun = make_config(data["config"], str(self.folder / CHECKPOINT))
        is_longer = begun.timesteps < self.config.timesteps
        if _but_for_length(begun) != _but_for_length(self.config):
            raise InputError(f"{self.folder / CHECKPOINT}: it belongs to another configuration than this one")
        expect_same(data.get("read", {}), self.read, self.folder / CHECKPOINT)
        learner.each = data.get("each", 0.0)
        weights = {k.removeprefix("policy/"): v for k, v in saved.tensors.items() if k.startswith("policy/")}
        learner.policy.load_state_dict(weights)
        restore_optimizer(learner.policy.optimizer, saved.tensors, data["optimizer"])
        self.env.reset()
        env_arrays = {k.removeprefix("env/"): v for k, v in saved.arrays.items() if k.startswith("env/")}
        self.env.set_state(env_arrays, data["env"])
        if "last/observation" in saved.arrays:
            learner._last_obs = saved.arrays["last/observation"]
            learner._last_episode_starts = saved.arrays["last/starts"]
        if isinstance(learner.env, VecNormalize):
            spread = learner.env.ret_rms
            mean, var, spread.count = data["returns"]
            spread.mean, spread.var = np.array(mean), np.array(var)
            learner.env.returns = saved.arrays["returns"]
        learner.num_timesteps, learner._n_updates = saved.step, data["updates"]
        self.loop_state.next_evaluation, self.loop_state.best = data["next_evaluation"], data["best"]
        if is_longer:
            self.loop_state.next_evaluation = self._evaluation_after(saved.step)
        self.loop_state.evaluated = data.get("evaluated", -1)
        self.loop_state.imitation = data.get("imitation", {})
        learner._current_progress_remaining = 1.0 - saved.step / self.config.timesteps
        restore_random_states(saved.arrays, data["random"])


def _but_for_length(config: Config) -> dict[str, Any]:
    return config.model_dump(mode="json", exclude={"timesteps"})


def _decided(env: Any, policy: Any, rng: np.random.Generator) -> np.ndarray:
    try:
        return np.asarray(env.act_of(policy))
    except InvalidDecision:
        form = env.form
        masks = np.split(env.action_masks(), np.cumsum(form.parts)[: form.outer_parts - 1])
        chosen = np.array([rng.choice(np.flatnonzero(mask)) for mask in masks])
        return np.asarray(form.said(chosen))


class _Loop(BaseCallback):
    """Between two rollouts: evaluate if it is time, then put a checkpoint on disk."""

    def __init__(self, training: Training) -> None:
        super().__init__()
        self.training = training
        self.saved_s = time.monotonic()

    def _on_rollout_start(self) -> None:
        training = self.training
        due = training.loop_state.next_evaluation <= training.step
        if due:
            training.evaluate()
        training.note()
        if due or time.monotonic() - self.saved_s > CHECKPOINT_EVERY_S:
            training.keep()
            self.saved_s = time.monotonic()
        training.listener.progressed(training.step)

    def _on_step(self) -> bool:
        return True


class _Tell(KVWriter):
    """SB3's log, passed on to the listener."""

    def __init__(self, training: Training) -> None:
        self.training = training

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0) -> None:
        """One line of the log."""
        numbers = {key: float(value) for key, value in key_values.items() if isinstance(value, int | float | np.number)}
        self.training.listener.scalars(step, numbers)

    def close(self) -> None:
        """Nothing is open."""
