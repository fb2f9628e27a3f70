"""Delay-v0: a waiting job is offered GPUs: take them at a tier, or hold for a while."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from ...simulator.decisions import Decision
from ...simulator.engine import Decider, Simulator
from ...simulator.errors import InputError, Stalled
from ...simulator.kernels import codes
from ...simulator.layout import Failures
from ...simulator.names import choose
from ...simulator.network import Network
from ...simulator.protocols import Policy
from ...simulator.rules.rule import PLACERS, Rule, rule_from
from ...simulator.semantics import Semantics, load_semantics
from ...simulator.topology import Topology
from ...simulator.view import ClusterView
from ...simulator.workloads import Workload, workload_source
from ..batch import Rows, Stepper
from ..codes import TERMINATED, TRUNCATED
from ..reference import Reference
from ..tables import Tables
from .codec import DELAYS_S, encode
from .defaults import NETWORK, TOPOLOGY, WORKLOAD
from .lookout import Lookout, check_flag, check_range, numbers
from .reward import REWARDS, reward_scale
from .transition import step_rows, turn
from .window import MAX_DELAYS, window_dtype

OBSERVATIONS = ("dict", "flat")


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
        workload: generator with arguments (drawn anew at each reset), path, or a `Workload`; or several of them in a
            list, one of which is drawn at each reset.
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
        reference: with reward `jct`, whom a step's job-seconds are compared with, on the same workload: a policy's
            name, a policy or a `Rule`; None: nobody.
        mtbf_s, mttr_s, checkpoint_s: machine failures (simulator/layout.py); 0 mean time between failures: none.
        render_mode: `ansi`, `rgb_array` or `human`.

    Raises:
        InputError: a value that does not fit, in one sentence.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array", "human"], "render_fps": 10}  # noqa: RUF012

    def __init__(
        self,
        topology: Topology | str | dict[str, Any] = TOPOLOGY,
        workload: Workload | str | Sequence[Workload | str] = WORKLOAD,
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
        reference: Policy | Rule | str | None = None,
        mtbf_s: float = 0.0,
        mttr_s: float = 3600.0,
        checkpoint_s: float = 1800.0,
        render_mode: str | None = None,
    ) -> None:
        choose(observation, OBSERVATIONS, "value of observation")
        choose(reward, REWARDS, "value of reward")
        choose(render_mode or "ansi", self.metadata["render_modes"], "value of render_mode")
        check_flag("migration", migration)
        horizon = math.inf if horizon_s is None else numbers("horizon_s", (horizon_s,))[0]
        self.lookout = Lookout(
            slots=slots,
            running_slots=running_slots,
            order=order,
            delays=delays,
            placer=placer,
            preemption=preemption,
            skip_idle=skip_idle,
            horizon_s=horizon,
        )
        self.placer, self.order, self.observation, self.reward = placer, order, observation, reward
        self.render_mode, self.workload, self.reference = render_mode, workload, reference
        self.rule = Rule("fifo", placer=placer, preemption_cost=preemption_cost, migrates=migration)  # type: ignore[arg-type]
        semantics = load_semantics(semantics)
        failures = numbers("mtbf_s, mttr_s, checkpoint_s", (mtbf_s, mttr_s, checkpoint_s)) if mtbf_s else None
        self.simulator = Simulator(
            topology,
            network or semantics.network or NETWORK,
            rule=self.rule,
            semantics=semantics,
            failures=Failures(*failures) if failures else None,
            horizon_s=horizon,
        )
        self.sources = self._sources_of(workload)
        self._pay(reward, reference, max_decisions)
        self._screen: Any = None
        self._lay_spaces()

    def _lay_spaces(self) -> None:
        """Spaces, and a row of its own."""
        parts = [self.lookout.candidates, self.lookout.delays]
        self.action_space = gym.spaces.MultiDiscrete(parts)
        sizes = self.lookout.sizes
        *self._ends, size = (int(end) for end in np.cumsum(list(sizes.values())))
        self._flat = self.observation == "flat"
        boxes: dict[str, gym.Space[Any]] = {key: gym.spaces.Box(0.0, 1.0, (n,), np.float32) for key, n in sizes.items()}
        self.observation_space: gym.Space[Any] = gym.spaces.Dict(boxes)
        if self._flat:
            self.observation_space = gym.spaces.Box(0.0, 1.0, (size,), np.float32)
        rows = Rows.empty(1, window_dtype(), parts=2, features=size, mask=sum(parts))
        self.join(Stepper(rows, "Delay-v0", step_rows), 0)

    def _pay(self, reward: str, reference: Any, max_decisions: int | None) -> None:
        if reference is not None and reward != "jct":
            raise InputError(f"reference with reward = {reward!r}: expected reward = 'jct'")
        if max_decisions is not None:
            check_range("max_decisions", max_decisions, 1, 2**62)
        self._reference = None if reference is None else Reference(reference, self.simulator)
        w = self.lookout.window
        w.reward_kind, w.max_decisions = REWARDS[reward], 2**62 if max_decisions is None else max_decisions

    def _sources_of(self, workload: Any) -> list[Callable[[int], Workload]]:
        """What draws a workload from a seed: one for each of the given ones."""
        given = workload if isinstance(workload, tuple | list) else (workload,)
        if not given:
            raise InputError("workload = []: expected at least one workload")
        return [workload_source(one, cluster_gpus=self.simulator.topology.num_gpus) for one in given]

    def join(self, stepper: Stepper, row: int) -> None:
        """Move into a row of shared arrays; before the first reset."""
        rows = stepper.rows
        self.stepper = stepper
        self.lookout.move_to(rows.windows[row : row + 1])
        self._windows, self._window = self.lookout.windows, self.lookout.window
        self._chosen = stepper.every_row[row : row + 1]
        self._action, self._outcome = rows.actions[row], rows.outcomes[row]
        self._features, self._mask = rows.features[row], rows.masks[row]
        self._row = row
        stepper.enter(self.simulator)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode: draw the workload, run to the first decision.

        Args:
            seed: of the environment's random numbers, which draw the workload and all that is random in the run.
            options: `{"workload": ...}` replaces the workload for this episode.
        """
        self.draw(seed, options)
        self.stepper.step(self._chosen)
        self.settle()
        if self.render_mode == "human":
            self.render()
        return self.observe(), {"elapsed_s": 0.0, "action_mask": self._mask.copy()}

    def draw(self, seed: int | None, options: dict[str, Any] | None) -> None:
        """Lay a new episode, which the first step begins, whatever the action; for `reset` and batches."""
        super().reset(seed=seed)
        unknown = set(options or {}) - {"workload"}
        if unknown:
            raise InputError(f"reset options: unknown key {min(unknown)!r}; expected workload")
        drawn = int(self.np_random.integers(2**31))
        sources = self._sources_of(options["workload"]) if options and "workload" in options else self.sources
        which = int(self.np_random.integers(len(sources))) if len(sources) > 1 else 0
        self._drawn = {"seed": drawn, "workload": which, "given": sources is not self.sources}
        self._lay(sources[which](drawn), drawn)

    def _lay(self, workload: Workload, seed: int) -> None:
        self.simulator.use(self.rule)
        self.simulator.reset(workload, seed=seed, begin=False)
        self.lookout.lay(self.simulator)
        w = self.lookout.plain
        w["begins"], w["decisions"] = 1, 0
        w["reward_scale"] = reward_scale(self.simulator.plain.record, int(w["reward_kind"]))
        if self._reference is not None:
            # In the reference's own terms rewards mean the same whatever the load.
            finish_s, w["ref_end_s"], w["reward_scale"] = self._reference.finishes_s(self.simulator)
            w["ref_on"], w["ref_jobs"] = 1, len(finish_s)
            w["ref_arrived"], w["ref_done"], w["ref_arrived_s"], w["ref_done_s"] = 0, 0, 0.0, 0.0
            self.stepper.rows.fit_references()
            self.stepper.rows.references[self._row, : len(finish_s)] = finish_s

    def played(self) -> dict[str, Any]:
        """What, beside the row's arrays, it takes to go on with the episode; JSON can hold it."""
        if self._drawn["given"]:
            raise InputError(
                f"state: row {self._row} plays a workload that was given to reset; give it to make instead"
            )
        rule = self.simulator.rule
        return {
            **self._drawn,
            "rule": None if rule == self.rule else dataclasses.asdict(rule),
            "code": int(self._window.code),
            "random": self.np_random.bit_generator.state,
        }

    def resume(self, played: Mapping[str, Any]) -> None:
        """Go on with the episode that `played` describes, whose arrays lie in the row already."""
        self._drawn = {key: played[key] for key in ("seed", "workload", "given")}
        self.np_random.bit_generator.state = played["random"]
        workload = self.sources[played["workload"]](played["seed"])
        rule = self.rule if played["rule"] is None else rule_from(played["rule"])
        self.simulator.resume(workload, rule, played["code"])
        self.lookout.resume(self.simulator)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play one action; see the class docstring."""
        self._expect_reset()
        try:
            candidate, delay = operator.index(action[0]), operator.index(action[1])
        except (TypeError, IndexError, KeyError):
            raise InputError(f"action {action!r}: expected two whole numbers, (candidate, delay bucket)") from None
        self._action[0] = candidate if 0 <= candidate < self.lookout.candidates else -1
        self._action[1] = max(-1, min(delay, MAX_DELAYS))
        odd = self.stepper.step(self._chosen)
        reward, elapsed_s, invalid, adjusted, terminated, truncated = self._outcome.tolist()
        info = {
            "elapsed_s": elapsed_s,
            "action_mask": self._mask.copy(),
            "invalid_action": invalid > 0.0,
            "adjusted_action": adjusted > 0.0,
        }
        metrics = self.settle() if odd else None
        if metrics is not None:
            info["metrics"] = metrics
        if self.render_mode == "human":
            self.render()
        return self.observe(), reward, terminated > 0.0, truncated > 0.0, info

    def settle(self) -> dict[str, float] | None:
        """After a step that ended the episode or stalled: the metrics, None if it goes on; for `step` and batches.

        Raises:
            Stalled: jobs wait, and nothing can be started any more.
        """
        code = int(self._window.code)
        self.simulator.note(code)
        if code == codes.STALLED and not self._window.can_act:
            s = self.simulator.state
            raise Stalled(f"{s.waiting + s.held} jobs wait at {s.now_s:g} s and nothing can be started any more")
        ended = self._outcome[TERMINATED] or self._outcome[TRUNCATED]
        return self.simulator.metrics() if ended else None

    def observed(self, features: np.ndarray) -> Any:
        """Features (F,) or (n, F) as the observation space has them; parts of a Dict are views."""
        if self._flat:
            return features
        a, b, c = self._ends
        return {
            "cluster": features[..., :a],
            "queue": features[..., a:b],
            "running": features[..., b:c],
            "candidates": features[..., c:],
        }

    def action_masks(self) -> np.ndarray:
        """Legal actions, bool (candidates + delay buckets,): sb3-contrib's convention."""
        self._expect_reset()
        return self._mask.view(np.bool_).copy()

    @property
    def tables(self) -> Tables:
        """How the flat observation and the candidates are laid out."""
        return self.lookout.tables

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
        rows = self.stepper.rows
        self.stepper.call(turn, rows.records, rows.windows, self._row, self._features, self._mask)
        return encode(self.simulator, w, decision)

    def observe(self) -> Any:
        """The observation of the present, as the window stands now: that of the last step, or of the last `act_of`."""
        self._expect_reset()
        return self.observed(self._features.copy())

    def _expect_reset(self) -> None:
        if self.stepper.rows.capacity.jobs == 0:
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
