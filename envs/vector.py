"""Gymnasium's vector environment over a `Batch`: as `SyncVectorEnv` over single environments, bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, ClassVar

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from ..simulator.base.errors import InputError
from . import autoreset
from .batch import Batch
from .outcome import COUNTS, ELAPSED_S, IS_ADJUSTED, IS_FORCED, IS_INVALID, REWARD, USED_GPUS, WAITING_JOBS
from .saved_state import SavedState

OF_BATCH = ("envs",)  # attributes that copies take from their batch
FLAGS = {"invalid_action": IS_INVALID, "forced_action": IS_FORCED, "adjusted_action": IS_ADJUSTED}


class ClusterVectorEnv(VectorEnv[Any, np.ndarray, np.ndarray]):
    """N environments that one kernel call steps; a subclass names their class.

    It has the interface of `SyncVectorEnv`: observations, rewards (N,) float64, ends (N,) bool, infos as arrays with
    their `_key` masks, `final_obs` and `final_info` under SAME_STEP, `options={"reset_mask": ...}`, `call`, `get_attr`,
    `set_attr`, and `envs`; also `action_masks()`, bool (N, M).

    Args:
        num_envs: rows.
        autoreset_mode: NEXT_STEP (the next step resets a row whose episode has ended, and ignores its action),
            SAME_STEP (at once), or DISABLED.
        replicas, variants, strict: see `Batch`.
        copy: False: observations and masks are the arrays that the next step writes into; read only them, in time.
        full_infos: `infos` has the same keys at every reset and step, but for those of ends: each flag (false where no
            action was played) and `max_decisions`.
        kwargs: of every environment.

    Raises:
        InputError: a value that does not fit, in one sentence.
    """

    env_class: ClassVar[Callable[..., Any]]

    def __init__(
        self,
        num_envs: int = 1,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        replicas: int = 1,
        variants: Sequence[Mapping[str, Any]] = (),
        strict: bool = True,
        copy: bool = True,
        full_infos: bool = False,
        **kwargs: Any,
    ) -> None:
        self.autoreset_mode = autoreset.autoreset_mode(autoreset_mode)
        self.copy = copy
        self.full_infos = full_infos
        of_batch: Any = {"replicas": replicas, "variants": variants, "strict": strict}
        self.batch = Batch(type(self).env_class, num_envs, **of_batch, kwargs=kwargs)
        self.envs = self.batch.envs
        self.num_envs = self.batch.num_envs
        first = self.envs[0]
        self.metadata = {**first.metadata, "autoreset_mode": self.autoreset_mode}
        self.render_mode = first.render_mode
        self.single_observation_space = first.observation_space
        self.single_action_space = first.action_space
        self.observation_space = batch_space(first.observation_space, self.num_envs)
        self.action_space = batch_space(first.action_space, self.num_envs)
        self.form = first.form
        self._ended = np.zeros(self.num_envs, np.bool_)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin new episodes in all rows, or in those that `options["reset_mask"]`, bool (N,), marks.

        Args:
            seed: by row; or one: row i gets seed + i (all replicas of a group the same, groups the next one).
            options: of every environment, e.g. `{"workload": ...}`.
        """
        if options is not None and not isinstance(options, Mapping):
            raise InputError(f"reset options: {options!r:.80}: expected a dict, as {{'reset_mask': ...}}")
        options = dict(options or {})
        mask = _mask(options.pop("reset_mask", None), self.num_envs)
        seeds = self.batch.seeds(seed) if seed is None or isinstance(seed, int | np.integer) else list(seed)
        if len(seeds) != self.num_envs:
            raise InputError(f"seed: {len(seeds)} seeds given; expected one for each of {self.num_envs} environments")
        chosen = np.flatnonzero(mask)
        self.batch.reset(chosen, seeds, [options] * self.num_envs)
        self._ended[chosen] = False
        infos: dict[str, Any] = {}
        if len(chosen) == self.num_envs:
            self._add_begun(infos, mask)
        else:
            for i in chosen.tolist():
                self._add_info(infos, self.envs[i].begun(), i)
        return self._observed(), self._filled(infos)

    def snapshot(self) -> list[SavedState]:
        """The present of every row, for `restore`; of one: `envs[i].snapshot()`."""
        return self.batch.snapshot()

    def restore(self, saved_states: Sequence[SavedState | None]) -> None:
        """Continue at snapshots, one a row, of environments with the same arguments; None: it stays."""
        self.batch.restore(saved_states)
        self._ended = self.batch.terminated | self.batch.truncated

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in OF_BATCH}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)
        self.envs = self.batch.envs

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Play one action in each row, integers (N, parts), or (N,); rows due for a reset are reset."""
        batch = self.batch
        begun = self._ended if self.autoreset_mode == AutoresetMode.NEXT_STEP else None
        if begun is None or not begun.any():
            begun = None
            if self._ended.any() and self.autoreset_mode == AutoresetMode.DISABLED:
                raise InputError("step: an episode has ended; reset its row first, or choose another autoreset_mode")
            batch.step(actions)
        else:
            batch.step(actions, np.flatnonzero(~begun))
        metrics = batch.metrics
        outcomes = batch.rows.outcomes
        rewards, terminated, truncated = outcomes[:, REWARD].copy(), batch.terminated, batch.truncated
        infos = self._stepped(begun)
        if begun is None:
            self._add_present(infos)
        else:
            batch.reset(np.flatnonzero(begun))
            self._add_begun(infos, begun)
            rewards[begun], terminated[begun], truncated[begun] = 0.0, False, False
        self._ended = terminated | truncated
        if metrics and self.autoreset_mode == AutoresetMode.SAME_STEP:
            self._renew(infos, metrics)
        elif metrics:
            self._add_ends(infos, list(metrics), metrics)
        return self._observed(), rewards, terminated, truncated, self._filled(infos)

    def _filled(self, infos: dict[str, Any]) -> dict[str, Any]:
        if self.full_infos:
            for key in FLAGS:
                infos.setdefault(key, np.zeros(self.num_envs, np.bool_))
                infos.setdefault("_" + key, np.zeros(self.num_envs, np.bool_))
            self._add_limits(infos, list(range(self.num_envs)))
        return infos

    def _stepped(self, begun: np.ndarray | None) -> dict[str, Any]:
        if begun is not None and begun.all():
            return {}
        stepped = np.ones(self.num_envs, np.bool_) if begun is None else ~begun
        outcomes = self.batch.rows.outcomes
        elapsed_s, flags = outcomes[:, ELAPSED_S].copy(), np.greater(outcomes.T, 0.0, order="C")  # of all at once
        if begun is not None:
            elapsed_s[begun], flags[:, begun] = 0.0, False
        infos: dict[str, Any] = {"elapsed_s": elapsed_s, "_elapsed_s": stepped}
        for key, column in FLAGS.items():
            infos[key], infos["_" + key] = flags[column], stepped
        return infos

    def _add_present(self, infos: dict[str, Any]) -> None:
        counts = self.batch.rows.outcomes.T[WAITING_JOBS : USED_GPUS + 1].astype(np.int64, order="C")
        every_row = np.ones(self.num_envs, np.bool_)
        masks = self.form.mask(self.batch.rows.masks)
        infos["action_mask"], infos["_action_mask"] = masks.copy() if self.copy else masks, every_row
        infos["active_jobs"], infos["_active_jobs"] = counts[0] + counts[1], every_row
        for key, values in zip(COUNTS, counts, strict=True):
            infos[key], infos["_" + key] = values, every_row

    def _add_begun(self, infos: dict[str, Any], begun: np.ndarray) -> None:
        infos.setdefault("elapsed_s", np.zeros(self.num_envs))[begun] = 0.0
        infos["_elapsed_s"] = np.ones(self.num_envs, np.bool_)
        self._add_present(infos)
        self._add_limits(infos, np.flatnonzero(begun).tolist())

    def _add_limits(self, infos: dict[str, Any], rows: list[int]) -> None:
        limits = infos.setdefault("max_decisions", np.zeros(self.num_envs))
        has_limit = infos.setdefault("_max_decisions", np.zeros(self.num_envs, np.bool_))
        limits[rows], has_limit[rows] = [self.envs[i].decisions_at_most for i in rows], True

    def _add_ends(self, infos: dict[str, Any], rows: list[int], metrics: Mapping[int, Mapping[str, float]]) -> None:
        """Modify `infos`: ends of episodes, as `_add_info` would add them row by row, but faster."""
        self._add_limits(infos, rows)
        names = list(dict.fromkeys(chain(*metrics.values())))
        values, ended = np.zeros((len(names), self.num_envs)), np.zeros(self.num_envs, np.bool_)
        ended[list(metrics)] = True
        present = [ended] * len(names)
        if all(len(totals) == len(names) for totals in metrics.values()):
            values[:, list(metrics)] = np.array([[totals[name] for name in names] for totals in metrics.values()]).T
        else:  # some have regions
            present = [np.zeros(self.num_envs, np.bool_) for _ in names]
            for place, name in enumerate(names):
                for i in (i for i, totals in metrics.items() if name in totals):
                    values[place, i], present[place][i] = metrics[i][name], True
        by_name = infos["metrics"] = {}
        for name, of_rows, rows_present in zip(names, values, present, strict=True):
            by_name[name], by_name["_" + name] = of_rows, rows_present
        infos["_metrics"] = ended
        infos |= by_name

    def _renew(self, infos: dict[str, Any], metrics: dict[int, dict[str, float]]) -> None:
        rows, chosen = self.batch.rows, np.flatnonzero(self._ended)
        final: dict[str, Any] = {}
        for key in ("elapsed_s", *FLAGS, "active_jobs", *COUNTS, "action_mask"):
            final[key], final["_" + key] = np.zeros_like(infos[key]), self._ended.copy()
            final[key][chosen] = infos[key][chosen]
        self._add_ends(final, chosen.tolist(), metrics)
        observations = np.full(self.num_envs, None, object)
        for i in chosen.tolist():
            observations[i] = self.form.observed(rows.features[i].copy(), rows.masks[i].copy())
        infos["final_obs"], infos["_final_obs"] = observations, self._ended.copy()
        infos["final_info"], infos["_final_info"] = final, self._ended.copy()
        self.batch.reset(chosen)
        for key in FLAGS:
            infos[key][chosen], infos[f"_{key}"][chosen] = False, False
            if len(chosen) == self.num_envs:
                del infos[key], infos[f"_{key}"]
        self._add_begun(infos, self._ended)

    def _observed(self) -> Any:
        features, masks = self.batch.rows.features, self.batch.rows.masks
        if self.copy:
            return self.form.observed(features.copy(), masks.copy() if self.form.keys else masks)
        return self.form.observed(features, masks)

    def action_masks(self) -> np.ndarray:
        """Legal actions of every row, bool (N, M), a new array."""
        self.batch.expect_begun()
        return self.form.mask(self.batch.rows.masks).view(np.bool_).copy()

    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """The random generators by row."""
        return tuple(env.np_random for env in self.envs)

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """The seeds by row."""
        return tuple(env.np_random_seed for env in self.envs)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Results of the method `name` of every environment, or the attributes of this name."""
        found = [env.get_wrapper_attr(name) for env in self.envs]
        return tuple(one(*args, **kwargs) if callable(one) else one for one in found)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """The attribute `name` of every environment."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Set the attribute `name` of every environment: to one value, or by row to those of a list or tuple."""
        values = values if isinstance(values, list | tuple) else [values] * self.num_envs
        if len(values) != self.num_envs:
            expected = f"expected one for each of {self.num_envs} environments"
            raise InputError(f"{name}: {len(values)} values given; {expected}")
        for env, value in zip(self.envs, values, strict=True):
            env.set_wrapper_attr(name, value)

    def render(self) -> tuple[Any, ...]:
        """The results of `render` of every environment."""
        return tuple(env.render() for env in self.envs)

    def close_extras(self, **_named: Any) -> None:
        """Close the environments."""
        for env in getattr(self, "envs", ()):
            env.close()


def _mask(mask: Any, count: int) -> np.ndarray:
    if mask is None:
        return np.ones(count, np.bool_)
    if not isinstance(mask, np.ndarray) or mask.shape != (count,) or mask.dtype != np.bool_ or not mask.any():
        raise InputError(f"options reset_mask: expected a bool array ({count},) with at least one True")
    return mask
