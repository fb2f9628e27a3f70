"""What every environment with a window of jobs is: Gymnasium's methods around a kernel that plays one step.

An environment says what its candidates mean (a `Lookout`, a step kernel) and which simulator it plays on; drawing
workloads, rewards, references, batches, playing policies and pictures are the same for all, and are here.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from operator import index
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from ..simulator.decisions import Decision
from ..simulator.engine import Decider
from ..simulator.errors import InputError, InvalidDecision, Stalled
from ..simulator.kernels import codes
from ..simulator.layout import Failures
from ..simulator.names import choose
from ..simulator.rules.rule import PLACERS, Rule, rule_from
from ..simulator.view import ClusterView
from ..simulator.workloads import Workload, workload_source
from .batch import Rows, Stepper
from .codes import BEGINS, TERMINATED, TRUNCATED
from .lookout import Lookout, check_range, numbers, seconds
from .reference import Reference
from .reward import REWARDS, reward_scale
from .tables import Tables

OBSERVATIONS = ("dict", "flat")
DECISIONS_A_JOB = 50  # no policy that gets on comes near it, so episodes of one that does not come to an end
NEVER = 2**62  # more decisions than anybody makes
FARTHEST = 1 << 32  # no part of an action means anything beyond it

# What `_lay` writes into a window beside what `Lookout.lay` does.
OF_EPISODE = (
    "begins",
    "decisions",
    "max_decisions",
    "reward_scale",
    "ref_on",
    "ref_jobs",
    "ref_end_s",
    "ref_arrived",
    "ref_arrived_s",
    "ref_done",
    "ref_done_s",
)


class ClusterEnv(gym.Env[Any, np.ndarray]):
    """The base of environments; a subclass opens it with what is its own.

    Attributes:
        part: what a message about compiling calls it.
        others: what the parts of an action after the candidate are, for messages.
        step_rows: its kernel, see `Stepper`.
        rewards: what it can pay, by name, with their code in the kernel.
        lookout, simulator, rule: what it looks at, on what it plays, and what holds there whoever decides.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array", "human"], "render_fps": 10}  # noqa: RUF012
    part: ClassVar[str]
    others: ClassVar[tuple[str, ...]] = ()
    step_rows: ClassVar[Callable[..., Any]]
    rewards: ClassVar[Mapping[str, int]] = REWARDS

    def _open(
        self,
        simulator: Any,
        lookout: Lookout,
        workload: Any,
        max_decisions: float | None,
        observation: str,
        reward: str,
        reference: Any,
        render_mode: str | None,
    ) -> None:
        """Modify self: everything that is the same for all; the arguments are the environment's, in its order.

        `simulator`: a `Simulator`, or another that is played in the same way.
        """
        choose(observation, OBSERVATIONS, "value of observation")
        choose(reward, self.rewards, "value of reward")
        choose(render_mode or "ansi", self.metadata["render_modes"], "value of render_mode")
        self.simulator, self.lookout, self.rule = simulator, lookout, simulator.rule
        self.placer, self.order, self.observation, self.reward = lookout.placer, lookout.order, observation, reward
        self.render_mode, self.workload, self.reference = render_mode, workload, reference
        self.sources = self._sources_of(workload)
        self._pay(reward, reference, max_decisions)
        self._screen: Any = None
        self._lay_spaces()

    def _lay_spaces(self) -> None:
        """Spaces, and a row of its own."""
        parts = list(self.lookout.parts)
        self._parts = range(len(parts))
        self.action_space = gym.spaces.MultiDiscrete(parts)
        sizes = self.lookout.sizes
        ends = [int(end) for end in np.cumsum(list(sizes.values()))]
        size = ends[-1]
        self._places = dict(zip(sizes, map(slice, [0, *ends], ends), strict=False))
        self._flat = self.observation == "flat"
        boxes: dict[str, gym.Space[Any]] = {key: gym.spaces.Box(0.0, 1.0, (n,), np.float32) for key, n in sizes.items()}
        self.observation_space: gym.Space[Any] = gym.spaces.Dict(boxes)
        if self._flat:
            self.observation_space = gym.spaces.Box(0.0, 1.0, (size,), np.float32)
        rows = Rows.empty(1, type(self.lookout).dtype(), parts=len(parts), features=size, mask=sum(parts))
        self.join(self._stepper(rows), 0)

    def _stepper(self, rows: Rows) -> Stepper:
        """What steps rows of such environments."""
        return Stepper(rows, self.part, type(self).step_rows)

    def _pay(self, reward: str, reference: Any, max_decisions: float | None) -> None:
        if reference is not None and reward != "jct":
            raise InputError(f"reference with reward = {reward!r}: expected reward = 'jct'")
        if max_decisions is not None and max_decisions != math.inf:
            check_range("max_decisions", max_decisions, 1, NEVER)  # type: ignore[arg-type]
        self.max_decisions = max_decisions
        self._reference = None if reference is None else Reference(reference, self.simulator)
        self.lookout.window.reward_kind = self.rewards[reward]

    @property
    def decisions_at_most(self) -> float:
        """After so many steps the present episode is cut off; infinity: never."""
        found = int(self.lookout.plain["max_decisions"])
        return math.inf if found == NEVER else float(found)

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
        info = {"elapsed_s": 0.0, "action_mask": self._mask.copy(), "max_decisions": self.decisions_at_most}
        return self.observe(), info

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

    def draw_as(self, other: ClusterEnv, seed: int | None) -> None:
        """As `draw` with the same result as in `other`, an environment of the same kind that has just drawn."""
        super().reset(seed=seed)
        self.np_random.bit_generator.state = other.np_random.bit_generator.state
        self._drawn = dict(other._drawn)
        self.simulator.use(self.rule)
        self.simulator.reset_as(other.simulator)
        self.lookout.lay(self.simulator)
        for name in OF_EPISODE:
            self.lookout.plain[name] = other.lookout.plain[name]
        if self._reference is not None:
            self.stepper.rows.references[self._row] = self.stepper.rows.references[other._row]

    def _lay(self, workload: Workload, seed: int) -> None:
        self.simulator.use(self.rule)
        self.simulator.reset(workload, seed=seed, begin=False)
        self.lookout.lay(self.simulator)
        w = self.lookout.plain
        w["begins"], w["decisions"] = BEGINS, 0
        w["max_decisions"] = min(NEVER, self.max_decisions or DECISIONS_A_JOB * len(workload))
        w["reward_scale"] = reward_scale(self.simulator.plain.record, int(w["reward_kind"]), workload.name)
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
        rule = self.rule if played["rule"] is None else terms_from(type(self.rule), played["rule"])
        self.simulator.resume(workload, rule, played["code"])
        self.lookout.resume(self.simulator)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play one action; see the class docstring."""
        self._expect_reset()
        played = self._action
        try:
            parts = action.tolist() if isinstance(action, np.ndarray) else action
            for part in self._parts:  # one by one: an array takes far longer to be filled at once
                value = index(parts[part])
                played[part] = value if -1 <= value <= FARTHEST else FARTHEST if value > 0 else -1
        except (TypeError, IndexError, KeyError):
            count = ("a whole number", "two whole numbers", "three whole numbers")[len(self.others)]
            names = ", ".join(("candidate", *self.others)) + ("," if not self.others else "")
            raise InputError(f"action {action!r}: expected {count}, ({names})") from None
        odd = self.stepper.step(self._chosen)
        reward, elapsed_s, invalid, adjusted, terminated, truncated, forced = self._outcome.tolist()
        info = {
            "elapsed_s": elapsed_s,
            "action_mask": self._mask.copy(),
            "invalid_action": invalid > 0.0,
            "forced_action": forced > 0.0,
            "adjusted_action": adjusted > 0.0,
        }
        metrics = self.settle() if odd else None
        if metrics is not None:
            info["max_decisions"], info["metrics"] = self.decisions_at_most, metrics
        if self.render_mode == "human":
            self.render()
        return self.observed(self._features.copy()), reward, terminated > 0.0, truncated > 0.0, info

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
        if features.ndim == 1:  # plain slices cost a third less
            return {key: features[place] for key, place in self._places.items()}
        return {key: features[:, place] for key, place in self._places.items()}

    def action_masks(self) -> np.ndarray:
        """Legal actions, bool (all parts in a row,): sb3-contrib's convention."""
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
            InvalidDecision: the decision cannot be played here (see `Lookout.action`).
        """
        self._expect_reset()
        decided: Decision = policy.decide(self.simulator.view)
        decision = self.lookout.composed(policy, decided)
        # It has handed its rule to the simulator; among groups on parameter servers it has none.
        is_rule = getattr(policy, "rule", None) is not None and isinstance(self.simulator.rule, Rule)
        w = self._window
        w.placer = PLACERS[self.simulator.rule.placer if is_rule else self.placer]
        w.focus = getattr(decision, "job", -1)
        self.lookout.dictate(None if is_rule else decided)
        rows = self.stepper.rows
        self.stepper.call(self.lookout.turn, rows.records, rows.windows, self._row, self._features, self._mask)
        return self.lookout.action(decision)

    def lesson(self, policy: Decider) -> tuple[np.ndarray, np.ndarray, bool]:
        """What to learn from `policy` now: the action that plays its next decision, and what is seen there.

        Returns:
            The action; the features, float32 (F,); and whether an agent would see the same and could do the same. If
            not, there is nothing to learn, but the action goes on.
        """
        self._expect_reset()
        features = self._features.copy()
        try:
            return (
                self.lookout.action(self.lookout.composed(policy, policy.decide(self.simulator.view))),
                features,
                True,
            )
        except InvalidDecision:
            return self.act_of(policy), features, False

    def observe(self) -> Any:
        """The observation of the present, as the window stands now: that of the last step, or of the last `act_of`."""
        self._expect_reset()
        return self.observed(self._features.copy())

    def _expect_reset(self) -> None:
        if self.stepper.rows.capacity is None:
            raise gym.error.ResetNeeded("the environment has no state yet; call reset() first")

    def render(self) -> Any:
        """A picture of the cluster by `render_mode`: text, an RGB array (H, W, 3) uint8, or a window (returns None)."""
        if self.render_mode is None:
            gym.logger.warn("render() without render_mode; pass it to gymnasium.make")
            return None
        if self.render_mode == "ansi":
            return self.as_text()
        frame = self.as_picture()
        if self.render_mode == "rgb_array":
            return frame
        if self._screen is None:
            from .rendering.window import Window

            self._screen = Window(fps=self.metadata["render_fps"])
        self._screen.show(frame)
        return None

    def as_text(self) -> str:
        """The cluster now, as text."""
        from .rendering.ansi import draw_ansi

        return draw_ansi(self.simulator)

    def as_picture(self) -> np.ndarray:
        """The cluster now, uint8 (H, W, 3)."""
        from .rendering.picture import draw_rgb

        return draw_rgb(self.simulator)

    def close(self) -> None:
        """Close the window of `human` rendering."""
        if self._screen is not None:
            self._screen.close()
            self._screen = None


def terms_from(kind: type, fields: Mapping[str, Any]) -> Any:
    """What held in a run, of a class, from its fields after a way through JSON."""
    return rule_from(fields) if kind is Rule else kind(**fields)


def horizon_of(horizon_s: float | None) -> float:
    """Seconds; infinity for None."""
    return math.inf if horizon_s is None else seconds("horizon_s", horizon_s)


def failures_of(
    mtbf_s: float, mttr_s: float, checkpoint_s: float, region_mtbf_s: float = 0.0, region_mttr_s: float = 3600.0
) -> Failures | None:
    """Failures of machines and of regions, where the mean time between them is not 0; None where both are."""
    machines = (0.0 if mtbf_s is None else mtbf_s, mttr_s, checkpoint_s)
    regions = (0.0 if region_mtbf_s is None else region_mtbf_s, region_mttr_s)
    mtbf, mttr, checkpoint = numbers("mtbf_s, mttr_s, checkpoint_s", machines)
    region_mtbf, region_mttr = numbers("region_mtbf_s, region_mttr_s", regions)
    if not mtbf and not region_mtbf:
        return None
    return Failures(mtbf or math.inf, mttr, checkpoint, region_mtbf or math.inf, region_mttr)
