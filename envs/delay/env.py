"""Delay-v0: a waiting job is offered GPUs: take them at a tier, or hold for a while."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from ...simulator.compilation import announced
from ...simulator.decisions import Decision
from ...simulator.engine import Decider, Simulator
from ...simulator.errors import InputError, Stalled
from ...simulator.kernels import codes
from ...simulator.kernels.jit import direct
from ...simulator.layout import Failures, lay_window_order
from ...simulator.names import choose
from ...simulator.network import Network
from ...simulator.rules.rule import PLACERS, Rule
from ...simulator.semantics import Semantics, load_semantics
from ...simulator.topology import Topology
from ...simulator.view import ClusterView
from ...simulator.workloads import Workload, workload_source
from .codec import DELAYS_S, UNTIL_TIMER, encode
from .defaults import NETWORK, TOPOLOGY, WORKLOAD
from .observation import CANDIDATES, CLUSTER, QUEUE, RUNNING
from .reward import REWARDS, reward_scale
from .transition import BEGIN, INVALID, step, turn
from .window import MAX_DELAYS, MAX_SLOTS, PER_RUNNING, PER_WAITING, window_dtype

ORDERS = ("arrival", "shortest", "smallest")
OBSERVATIONS = ("dict", "flat")
TIME_SCALE_S = 30 * 86400.0  # what times are scaled by where there is no horizon


class DelayEnv(gym.Env[Any, np.ndarray]):
    """Place waiting jobs at a tier of the network, or let them wait for a better one.

    Source       Dally (delay scheduling over the tiers of a network); docs/delay.md.
    Observation  Dict of float32 Boxes in [0, 1], tables row by row: cluster (12,), queue (slots x 12,), running
                 (running_slots x 9,), candidates ((1 + 4 slots + 2 running_slots) x 12,); columns in observation.py.
                 `observation="flat"`: the four in one Box, in this order.
    Action       MultiDiscrete([1 + 4 slots + 2 running_slots, 2 + len(delays)]).
                 0: no more now, advance. 1 + 4 i + k: waiting slot i starts inside a machine, inside a rack, across
                 racks, or holds (k = 0..3). 1 + 4 slots + 2 i + k: running slot i is preempted, or moves to a better
                 tier (k = 0, 1). The second part is how long a hold lasts: 0 until GPUs are freed, 1 until the job's
                 present delay timer runs out (as 0 where no policy has timers), then `delays`.
    Mask         action_masks(): bool, both parts in a row; info["action_mask"]: the same as int8. Never empty.
    Reward       `reward`: jct (default: minus the mean JCT in mean isolated run times, summed over the episode),
                 makespan, slowdown, slo; reward.py. Decisions often take no time: train with gamma = 1.
    Episode      terminated when every job is done; truncated at `horizon_s` or after `max_decisions`.
    Info         elapsed_s, action_mask, invalid_action (the action was not legal: it counted as advance),
                 adjusted_action (a delay out of range became the nearest); metrics on the last step.
    Versions     v0 first release.

    Args:
        topology: preset with arguments, specification, path, or a `Topology`.
        workload: generator with arguments (drawn anew at each reset), path, or a `Workload`.
        network: `none`, `penalty` or `allreduce`, with arguments, or a `Network`; None: the one of the semantics, else
            measured penalties.
        semantics: `events`, or `artist-sim`: leases, chunks and auctions of the simulator behind paper dally, with a
            decision point at each auction (simulator/semantics.py).
        placer: which GPUs realise a tier: `tier` or `first`; or `count`, `consolidated`, `skew`, `random` and others
            of rules/placers.py that know one gang a job, so only the target that this gang has is legal.
        slots, running_slots: waiting and running jobs in the window, 1 to 256 and 0 to 256.
        order: which jobs the window shows first: `arrival`, `shortest` (isolated run time) or `smallest` (GPUs).
        delays: seconds, > 0, of the delay buckets from 2 on.
        preemption: whether running jobs can be stopped or moved.
        migration: decision points also while no job waits, if a running job lies on several machines and could move.
        preemption_cost: seconds without progress when a stopped or moved job starts anew; or (small, large gangs).
        max_decisions, horizon_s: truncate after so many steps, or seconds from the first arrival; None: never.
        skip_idle: pass over decision points where only advancing or holding is legal.
        observation: `dict`, or `flat` for plain MLPs.
        reward: `jct`, `makespan`, `slowdown` or `slo`.
        mtbf_s, mttr_s, checkpoint_s: machine failures (simulator/layout.py); 0 mean time between failures: none.
        render_mode: `ansi`, `rgb_array` or `human`.

    Raises:
        InputError: a value that does not fit, in one sentence.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array", "human"], "render_fps": 10}  # noqa: RUF012

    def __init__(
        self,
        topology: Topology | str | dict[str, Any] = TOPOLOGY,
        workload: Workload | str = WORKLOAD,
        network: Network | str | None = None,
        *,
        semantics: Semantics | str = "events",
        placer: str = "tier",
        slots: int = 32,
        running_slots: int = 16,
        order: str = "arrival",
        delays: tuple[float, ...] = DELAYS_S,
        preemption: bool = True,
        migration: bool = False,
        preemption_cost: tuple[float, ...] | float = 0.0,
        max_decisions: int | None = None,
        horizon_s: float | None = None,
        skip_idle: bool = True,
        observation: str = "dict",
        reward: str = "jct",
        mtbf_s: float = 0.0,
        mttr_s: float = 3600.0,
        checkpoint_s: float = 1800.0,
        render_mode: str | None = None,
    ) -> None:
        choices = (("order", order, ORDERS), ("observation", observation, OBSERVATIONS), ("reward", reward, REWARDS))
        for name, value, known in (*choices, ("placer", placer, PLACERS)):
            choose(value, known, f"value of {name}")
        if render_mode is not None:
            choose(render_mode, self.metadata["render_modes"], "value of render_mode")
        self.placer, self.order, self.observation, self.reward = placer, order, observation, reward
        self.render_mode, self.workload = render_mode, workload
        if max_decisions is not None:
            _check_range("max_decisions", max_decisions, 1, 2**62)
        self._max_decisions = math.inf if max_decisions is None else max_decisions
        failures = (
            Failures(*_numbers("mtbf_s, mttr_s, checkpoint_s", (mtbf_s, mttr_s, checkpoint_s))) if mtbf_s else None
        )
        _check_flag("migration", migration)
        self.rule = Rule("fifo", placer=placer, preemption_cost=preemption_cost, migrates=migration)  # type: ignore[arg-type]
        horizon = math.inf if horizon_s is None else _numbers("horizon_s", (horizon_s,))[0]
        semantics = load_semantics(semantics)
        self.simulator = Simulator(
            topology,
            network or semantics.network or NETWORK,
            rule=self.rule,
            semantics=semantics,
            failures=failures,
            horizon_s=horizon,
        )
        self._source = workload_source(workload, cluster_gpus=self.simulator.topology.num_gpus)
        self._lay_window(slots, running_slots, _numbers("delays", delays), horizon)
        _check_flag("preemption", preemption)
        _check_flag("skip_idle", skip_idle)
        self._window.preemption, self._window.skip_idle = preemption, skip_idle
        self.observation_space = self._observation_space()
        self.action_space = gym.spaces.MultiDiscrete([self._candidates, int(self._window.n_delays)])
        self._screen: Any = None

    def _lay_window(self, slots: int, running_slots: int, delays: tuple[float, ...], horizon: float) -> None:
        _check_range("slots", slots, 1, MAX_SLOTS)
        _check_range("running_slots", running_slots, 0, MAX_SLOTS)
        if len(delays) > MAX_DELAYS - 2 or any(not 0.0 < delay < math.inf for delay in delays):
            raise InputError(f"delays = {delays!r}: expected at most {MAX_DELAYS - 2} finite numbers of seconds > 0")
        self._windows = np.zeros(1, window_dtype()).view(np.recarray)
        w = self._windows[0]
        w.slots, w.running_slots = slots, running_slots
        w.n_delays = UNTIL_TIMER + 1 + len(delays)
        w.delay_s[: w.n_delays] = (math.inf, math.inf, *delays)
        w.reward_kind = REWARDS[self.reward]
        w.log_horizon = math.log1p(horizon if horizon < math.inf else TIME_SCALE_S)
        self._window = w
        self._outcome = np.zeros(5)
        self._records: np.recarray | None = None
        self._turn: Callable[..., Any] | None = None
        self._candidates = 1 + PER_WAITING * slots + PER_RUNNING * running_slots

    def _observation_space(self) -> gym.Space[Any]:
        sizes = {
            "cluster": len(CLUSTER),
            "queue": int(self._window.slots) * len(QUEUE),
            "running": int(self._window.running_slots) * len(RUNNING),
            "candidates": self._candidates * len(CANDIDATES),
        }
        *self._ends, self._size = (int(end) for end in np.cumsum(list(sizes.values())))
        self._mask_size = self._candidates + int(self._window.n_delays)
        self._flat = self.observation == "flat"
        if self.observation == "flat":
            return gym.spaces.Box(0.0, 1.0, (sum(sizes.values()),), np.float32)
        return gym.spaces.Dict({key: gym.spaces.Box(0.0, 1.0, (size,), np.float32) for key, size in sizes.items()})

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode: draw the workload, run to the first decision.

        Args:
            seed: of the environment's random numbers, which draw the workload and all that is random in the run.
            options: `{"workload": ...}` replaces the workload for this episode.
        """
        super().reset(seed=seed)
        unknown = set(options or {}) - {"workload"}
        if unknown:
            raise InputError(f"reset options: unknown key {min(unknown)!r}; expected workload")
        drawn = int(self.np_random.integers(2**31))
        source = self._source
        if options and "workload" in options:
            source = workload_source(options["workload"], cluster_gpus=self.simulator.topology.num_gpus)
        workload = source(drawn)
        self.simulator.use(self.rule)
        self.simulator.reset(workload, seed=drawn, begin=False)
        s, w = self.simulator.state, self._window
        self._s = s
        if self.order != "arrival":
            key = workload.duration_s if self.order == "shortest" else workload.gpus.astype(np.float64)
            lay_window_order(s, key)
        w.placer, w.focus, w.decisions = PLACERS[self.placer], -1, 0
        w.known_job[:] = -1
        w.reward_scale = reward_scale(s, int(w.reward_kind))
        features = np.empty(self._size, np.float32)
        mask = np.empty(self._mask_size, np.int8)
        records, windows = self.simulator.records, self._windows
        if records is not self._records:
            self._records = records
            with announced("Delay-v0", self.simulator.capacity):
                self._step = direct(step, records, windows, 0, 0, 0, self._outcome, features, mask)
            self._turn = None
        self._step(records, windows, 0, BEGIN, 0, self._outcome, features, mask)
        self._finish_step()
        self._mask = mask
        self._features = features
        if self.render_mode == "human":
            self.render()
        return self._observed(features), {"elapsed_s": 0.0, "action_mask": mask}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play one action; see the class docstring."""
        try:
            candidate, delay = operator.index(action[0]), operator.index(action[1])
        except (TypeError, IndexError, KeyError):
            raise InputError(f"action {action!r}: expected two whole numbers, (candidate, delay bucket)") from None
        if not 0 <= candidate < self._candidates:
            candidate = INVALID
        delay = max(-1, min(delay, MAX_DELAYS))
        features = np.empty(self._size, np.float32)
        mask = np.empty(self._mask_size, np.int8)
        outcome = self._outcome
        code = self._step(self._records, self._windows, 0, candidate, delay, outcome, features, mask)
        self._mask = mask
        self._features = features
        reward, elapsed_s, invalid, adjusted, decisions = outcome.tolist()
        info = {
            "elapsed_s": elapsed_s,
            "action_mask": mask,
            "invalid_action": invalid > 0.0,
            "adjusted_action": adjusted > 0.0,
        }
        terminated, truncated = code == codes.FINISHED, code == codes.HORIZON
        if code != codes.DECIDE:
            self._finish_step()
        if decisions >= self._max_decisions and not terminated:
            truncated = True
        if terminated or truncated:
            info["metrics"] = self.simulator.metrics()
        if self.render_mode == "human":
            self.render()
        return self._observed(features), reward, terminated, truncated, info

    def _finish_step(self) -> None:
        code = int(self._window.code)
        self.simulator.note(code)
        if code == codes.STALLED and not self._window.can_act:
            s = self._s
            raise Stalled(f"{s.waiting + s.held} jobs wait at {s.now_s:g} s and nothing can be started any more")

    def _observed(self, features: np.ndarray) -> Any:
        if self._flat:
            return features
        a, b, c = self._ends
        return {"cluster": features[:a], "queue": features[a:b], "running": features[b:c], "candidates": features[c:]}

    def action_masks(self) -> np.ndarray:
        """Legal actions, bool (candidates + delay buckets,): sb3-contrib's convention."""
        self._expect_reset()
        return self._mask.view(np.bool_).copy()

    @property
    def view(self) -> ClusterView:
        """The cluster now, as policies see it."""
        return self.simulator.view

    def act_of(self, policy: Decider) -> np.ndarray:
        """The action that plays the next decision of `policy`.

        The window turns towards the job that the decision is about, so mask and observation are new: `action_masks()`
        and `observe()` give those that the action belongs to.

        Raises:
            InvalidDecision: the decision cannot be played here (see codec.encode).
        """
        self._expect_reset()
        decision: Decision = policy.decide(self.simulator.view)
        is_rule = getattr(policy, "rule", None) is not None  # it has handed its rule to the simulator
        w = self._window
        w.placer = PLACERS[self.simulator.rule.placer if is_rule else self.placer]
        w.focus = getattr(decision, "job", -1)
        self._features = np.empty(self._size, np.float32)
        self._mask = np.empty(self._mask_size, np.int8)
        arguments = (self._records, self._windows, 0, self._features, self._mask)
        self._turn = self._turn or direct(turn, *arguments)
        self._turn(*arguments)
        return encode(self.simulator, w, decision)

    def observe(self) -> Any:
        """The observation of the present, as the window stands now: that of the last step, or of the last `act_of`."""
        self._expect_reset()
        return self._observed(self._features.copy())

    def _expect_reset(self) -> None:
        if self._records is None:
            raise gym.error.ResetNeeded("the environment has no state yet; call reset() first")

    def render(self) -> Any:
        """A picture of the cluster by `render_mode`: text, an RGB array (H, W, 3) uint8, or a window (returns None)."""
        if self.render_mode is None:
            gym.logger.warn("render() without render_mode; pass it to gymnasium.make")
            return None
        from ..rendering.ansi import draw_ansi

        if self.render_mode == "ansi":
            return draw_ansi(self.simulator)
        from ..rendering.picture import draw_rgb

        frame = draw_rgb(self.simulator)
        if self.render_mode == "rgb_array":
            return frame
        if self._screen is None:
            from ..rendering.window import Window

            self._screen = Window(fps=self.metadata["render_fps"])
        self._screen.show(frame)
        return None

    def close(self) -> None:
        """Close the window of `human` rendering."""
        if self._screen is not None:
            self._screen.close()
            self._screen = None


def _numbers(name: str, value: Any) -> tuple[float, ...]:
    """A tuple of numbers, as floats."""
    try:
        return tuple(float(item) for item in value)
    except (TypeError, ValueError):
        raise InputError(f"{name} = {value!r}: expected numbers in a tuple") from None


def _check_flag(name: str, value: Any) -> None:
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} = {value!r}: expected True or False")


def _check_range(name: str, value: int, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not low <= value <= high:
        raise InputError(f"{name} = {value!r}: expected a whole number from {low} to {high}")
