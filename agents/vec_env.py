"""stable-baselines3's `VecEnv` over batched environments.

It gives what `DummyVecEnv` of single environments gives, bit for bit, except for `infos`, since a dict per row and step
costs as much as stepping the row. Only rows whose episode has ended have one (elapsed_s, action_mask, invalid_action,
forced_action, adjusted_action, max_decisions, metrics and each by its name, TimeLimit.truncated, terminal_observation);
the others are empty, and their values stand in the arrays `elapsed_s`, `invalid_action`, `forced_action`,
`adjusted_action` and `action_masks()`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from stable_baselines3.common.env_util import is_wrapped
from stable_baselines3.common.vec_env import VecEnv

from ..envs.batch import Batch
from ..envs.batch_state import restore, state_of
from ..envs.outcome import ELAPSED_S, IS_ADJUSTED, IS_FORCED, IS_INVALID, REWARD, TERMINATED, TRUNCATED, counts_of
from ..envs.registration import env_class, resolve
from ..envs.vector import FLAGS
from ..simulator.base.arguments import checked_seed
from ..simulator.base.errors import InputError


def sb3_vec_env(
    id: str,
    num_envs: int,
    *,
    seed: int | None = None,
    seeds: Sequence[int] | None = None,
    replicas: int = 1,
    variants: Sequence[Mapping[str, Any]] = (),
    full_infos: bool = False,
    strict: bool = True,
    **kwargs: Any,
) -> ClusterVecEnv:
    """Many environments of one kind as an SB3 `VecEnv`, stepped by one kernel call.

    Args:
        id: `clustergym/Delay-v0`, or `Delay`.
        num_envs: rows.
        seed: of the first reset: row i gets seed + i // replicas; None: from the system's entropy.
        seeds: of a fixed set of episodes, instead of `seed`: each row plays a part of them in turn, from its first at
            every `reset`. With `n_eval_episodes=len(seeds)` SB3's callbacks play each once an evaluation.
        replicas: rows k g to k g + k - 1 are seeded alike and play the same workloads (k = replicas).
        variants: keyword arguments that differ: row i has `variants[i % len(variants)]`.
        full_infos: every row's info is complete at every step, as with `DummyVecEnv`; slower.
        strict: a candidate out of range is an error; else it is an illegal one.
        kwargs: keyword arguments of every environment.

    Raises:
        InputError: a value that does not fit, in one sentence.
    """
    name = resolve(id)
    batch = Batch(env_class(name), num_envs, replicas=replicas, variants=variants, strict=strict, kwargs=kwargs)
    fixed = () if seeds is None else _by_row(seeds, num_envs, has_others=seed is not None or replicas > 1)
    made = ClusterVecEnv(batch, seed=seed, full_infos=full_infos, seeds_by_row=fixed)
    made.env_id, made.env_kwargs = name, {**kwargs, **(dict(variants[0]) if variants else {})}
    return made


def _by_row(seeds: Sequence[int], rows: int, has_others: bool) -> list[list[int]]:
    """Shared out as SB3 shares out the episodes of an evaluation: the last rows have one more."""
    if has_others:
        raise InputError("seeds are of a fixed set of episodes: give them without seed and replicas")
    if len(seeds) < rows:
        raise InputError(f"seeds: {len(seeds)} for {rows} rows; expected one a row at least, or fewer rows")
    return [part.tolist() for part in np.array_split([checked_seed(one) for one in seeds], rows)[::-1]]


class ClusterVecEnv(VecEnv):
    """A `Batch` as an SB3 `VecEnv`; `sb3_vec_env` makes it, and keeps its arguments (variants as of row 0)."""

    env_id: str
    env_kwargs: Mapping[str, Any]

    def __init__(
        self,
        batch: Batch,
        seed: int | None = None,
        full_infos: bool = False,
        seeds_by_row: Sequence[Sequence[int]] = (),
    ) -> None:
        self.batch, self.envs, self.full_infos = batch, batch.envs, full_infos
        self._fixed = seeds_by_row
        self._places = np.zeros(batch.num_envs, np.int64)  # of the present episodes in it
        super().__init__(batch.num_envs, self.envs[0].observation_space, self.envs[0].action_space)
        self.metadata = self.envs[0].metadata
        self._actions: np.ndarray | None = None
        self._outcomes = np.zeros_like(batch.rows.outcomes)  # of the last step; resets write into the batch's
        if seed is not None:
            self.seed(seed)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "envs"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)
        self.envs = self.batch.envs

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Seed the next reset: row i gets seed + i // replicas. Returns the seeds by row. A fixed set stays."""
        if seed is None:
            seed = int(np.random.default_rng().integers(2**31))
        self._seeds = self.batch.seeds(seed)
        return self._seeds

    def reset(self) -> Any:
        """Begin new episodes in all rows; returns their observations."""
        batch = self.batch
        if batch.replicas > 1 and any(seed is None for seed in self._seeds):
            batch.align()
        self._places[:] = 0
        batch.reset(batch.stepper.every_row, self._fixed_seeds() or self._seeds, self._options)
        self.reset_infos = [env.begun() for env in self.envs]
        self._outcomes = np.zeros_like(batch.rows.outcomes)
        self._reset_seeds()
        self._reset_options()
        return self.present()

    def _fixed_seeds(self) -> list[int]:
        """The seeds of the present episodes by row; none, unless there is a fixed set."""
        return [seeds[place % len(seeds)] for seeds, place in zip(self._fixed, self._places.tolist(), strict=False)]

    def present(self) -> Any:
        """The observations of the present by row, new arrays."""
        self.batch.expect_begun()
        rows, form = self.batch.rows, self.batch.envs[0].form
        return form.observed(rows.features.copy(), rows.masks.copy() if form.keys else rows.masks)

    @property
    def elapsed_s(self) -> np.ndarray:
        """Seconds of the last step in each row, float64 (n,)."""
        return self._outcomes[:, ELAPSED_S]

    @property
    def invalid_action(self) -> np.ndarray:
        """Whether the last action was illegal in each row, bool (n,)."""
        return self._outcomes[:, IS_INVALID] > 0.0

    @property
    def forced_action(self) -> np.ndarray:
        """Whether the first legal candidate was played, since no time could pass, in each row, bool (n,)."""
        return self._outcomes[:, IS_FORCED] > 0.0

    @property
    def adjusted_action(self) -> np.ndarray:
        """Whether the second part of the last action was out of range in each row, bool (n,)."""
        return self._outcomes[:, IS_ADJUSTED] > 0.0

    def step_async(self, actions: np.ndarray) -> None:
        """Keep the actions, integers (n, parts), or (n,)."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Play them: observations, rewards (n,) float32, ends (n,) bool, infos. Ended rows begin anew."""
        batch = self.batch
        ended = batch.step(self._actions)
        self._outcomes = outcomes = batch.rows.outcomes.copy()
        rewards = outcomes[:, REWARD].astype(np.float32)
        infos: list[dict[str, Any]] = [self._info(i) if self.full_infos else {} for i in range(self.num_envs)]
        if not ended:
            return self.present(), rewards, np.zeros(self.num_envs, np.bool_), infos
        terminated, truncated = batch.terminated, batch.truncated
        chosen = np.flatnonzero(terminated | truncated)
        for i in chosen.tolist():
            infos[i] = self._info(i)
            metrics = batch.metrics[i]
            infos[i] |= {"max_decisions": self.envs[i].decisions_at_most, "metrics": metrics, **metrics}
            infos[i]["TimeLimit.truncated"] = bool(truncated[i])
            seen = batch.rows.features[i].copy(), batch.rows.masks[i].copy()
            infos[i]["terminal_observation"] = self.envs[i].form.observed(*seen)
        self._places[chosen] += 1
        batch.reset(chosen, self._fixed_seeds())
        for i in chosen.tolist():
            self.reset_infos[i] = self.envs[i].begun()
        return self.present(), rewards, terminated | truncated, infos

    def _info(self, i: int) -> dict[str, Any]:
        row, mask = self._outcomes[i], self.envs[i].form.mask(self.batch.rows.masks[i]).copy()
        flags = {key: bool(row[column] > 0.0) for key, column in FLAGS.items()}
        present = {"elapsed_s": float(row[ELAPSED_S]), "action_mask": mask, **flags}
        return {**present, "TimeLimit.truncated": False, **counts_of(row.tolist())}

    def play(self, rows: np.ndarray, actions: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
        """Play `actions` (k, ...) in rows, int64 (k,): observations, rewards, ends, seconds; ended rows stay."""
        batch = self.batch
        every = self.envs[0].form.said(np.zeros_like(batch.rows.actions))
        every[rows] = np.asarray(actions).reshape(len(rows), *every.shape[1:])
        batch.step(every, rows)
        outcomes = batch.rows.outcomes[rows]
        ended = (outcomes[:, TERMINATED] > 0.0) | (outcomes[:, TRUNCATED] > 0.0)
        seen = self.envs[0].form.observed(batch.rows.features[rows], batch.rows.masks[rows])
        return seen, outcomes[:, REWARD].astype(np.float32), ended, outcomes[:, ELAPSED_S]

    def action_masks(self, rows: np.ndarray | None = None) -> np.ndarray:
        """Legal actions of `rows`, int64 (k,), or of all, bool (k, M), a new array."""
        self.batch.expect_begun(rows)
        masks = self.envs[0].form.mask(self.batch.rows.masks).view(np.bool_)
        return masks.copy() if rows is None else masks[rows]

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        """Results of a method of the environments in `indices` (None: all), by row."""
        if method_name == "action_masks" and indices is None:
            return list(self.action_masks())
        return [env.get_wrapper_attr(method_name)(*method_args, **method_kwargs) for env in self._chosen(indices)]

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """An attribute of the environments in `indices` (None: all), by row."""
        return [env.get_wrapper_attr(attr_name) for env in self._chosen(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of the environments in `indices` (None: all)."""
        for env in self._chosen(indices):
            setattr(env, attr_name, value)

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Whether the environments are wrapped so, by row: rows of a batch never are."""
        return [is_wrapped(env, wrapper_class) for env in self._chosen(indices)]

    def get_images(self) -> Sequence[np.ndarray | None]:
        """The results of `render` of every environment; None where the render mode is not `rgb_array`."""
        return [env.render() if self.render_mode == "rgb_array" else None for env in self.envs]

    def close(self) -> None:
        """Close the environments."""
        for env in self.envs:
            env.close()

    def _chosen(self, indices: Iterable[int] | int | None) -> list[Any]:
        return [self.envs[i] for i in self._get_indices(indices)]

    def get_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """The whole state, to continue elsewhere: arrays and JSON data; InputError: workloads given to `reset`."""
        arrays, data = state_of(self.batch)
        return arrays, {**data, "places": self._places.tolist()}

    def set_state(self, arrays: Mapping[str, np.ndarray], data: Mapping[str, Any]) -> None:
        """Continue at a state of `get_state` of equally made environments; InputError: of others or another version."""
        restore(self.batch, arrays, data)
        self._places[:] = data.get("places", 0)
        self._outcomes = self.batch.rows.outcomes.copy()
