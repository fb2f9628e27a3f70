"""The base of environments with a window of jobs: Gymnasium's methods around a kernel that plays one step.

A subclass gives its candidates (an `AgentInterface`, a step kernel) and its simulator.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import gymnasium as gym
import numpy as np

from ..simulator.base import codes
from ..simulator.base.arguments import check_range, checked_seed
from ..simulator.base.errors import InputError, InvalidDecision, Stalled
from ..simulator.base.names import choose
from ..simulator.configuration.cluster_config import SimulatedCluster, describe_value
from ..simulator.engine.base_simulator import Decider
from ..simulator.engine.protocols import Remembers
from ..simulator.engine.view import ClusterView
from ..simulator.rules.rule import PLACERS, Rule, rule_from
from ..simulator.workloads import Workload, workload_source
from .agent_interface import AgentInterface
from .batch import Rows, Stepper
from .common_options import COMMON_OPTIONS, NAMESPACE, CommonOptions, arguments
from .configured import config_of, expect_option
from .forms import Form
from .observation_layout import Tables
from .outcome import BEGINS, REWARD, TERMINATED, TRUNCATED, counts_of
from .reference import Reference
from .registration import ENVIRONMENTS
from .reward import JCT, REWARDS, Reward, own_reward, paid, reward_scale
from .saved_state import SavedState, complete, copied_extras, go_back, made_again, parts_of, saved_state_of
from .snapshot import Snapshot

if TYPE_CHECKING:
    from .rendering.scenes.seen import Seen

DECISIONS_A_JOB = 50  # far more than a useful policy needs; ends the episodes of others
NEVER = 2**62  # as a limit of decisions
SETTINGS = ("max_decisions", "observation_space", "action_space")  # of a made environment; spaces draw numbers
CALLED = ("sources", "_own_reward")  # callables that copies share

# Fields of the window that `_begin_run` writes.
OF_REFERENCE = ("ref_on", "ref_jobs", "ref_end_s", "ref_arrived", "ref_arrived_s", "ref_done", "ref_done_s")
OF_EPISODE = ("begins", "decisions", "max_decisions", "reward_scale", *OF_REFERENCE)


class ClusterEnv(gym.Env[Any, np.ndarray]):
    """The base of environments; a subclass adds its own decisions.

    `copy.deepcopy` and `pickle` give another environment that continues as this one would (saved_state.py). All
    environments have in common:

    Observation  Dict of float32 Boxes in [0, 1], tables row by row; columns in the columns.py of each.
                 `observation="flat"`: all tables in one Box, in their order.
    Mask         action_masks(): bool, all parts in a row; info["action_mask"]: the same as int8. Never empty.
    Reward       `reward`, summed over the episode (envs/reward.py). Decisions often take no time: train with gamma = 1.
    Episode      terminated when every job is done; truncated at `horizon_s` or after `max_decisions`, and then
                 charged for unfinished jobs (envs/reward.py).
    Info         active_jobs, waiting_jobs, running_jobs, finished_jobs, used_gpus; elapsed_s, action_mask,
                 invalid_action (an illegal candidate counted as 0), forced_action (as the first legal one, since no
                 time could pass), adjusted_action (a part out of range became the nearest);
                 max_decisions of reset and on the last step; on the last step also metrics, and each by its name.

    Args:
        topology: preset with arguments, specification, path, or a `Topology`; None: that of the environment.
        workload: generator with arguments (drawn anew at each reset), path, or a `Workload`; or several of them in a
            list, one of which is drawn at each reset; None: that of the environment.
        network: with arguments, or a `Network`; None: that of the environment, or of its semantics.
        slots, running_slots: waiting and running jobs in the window, 1 to 256 and 0 to 256.
        order: of the window: `arrival`, `shortest` (isolated run time) or `smallest` (GPUs).
        max_decisions: truncate after so many steps, >= 1; None: 50 a job of the workload; `math.inf`: never.
        horizon_s: truncate so many seconds after the first arrival; None: never.
        skip_idle: pass over decision points where only advancing or holding is legal.
        observation: `dict`, or `flat` for plain MLPs.
        action: `parts`, or `discrete`: a candidate alone, the other parts are 0 (envs/forms.py).
        mask: `info`, or also in the observation: `observation`, `KEY` or `KEY/MASK` (envs/forms.py).
        reward: `jct` (minus the mean JCT in mean isolated run times), `makespan`, `slowdown` or `slo`; or a function
            (before, after) of two snapshots, or its word `py:FILE.py:NAME` (envs/snapshot.py).
        reference: with reward `jct`, the policy with which a step's job-seconds are compared, on the same workload: a
            name, a policy or a `Rule`; None: none.
        estimates: what policies and the observation know of run times: `exact`, `none`, `lognormal:sigma=1`, `user`, or
            `Estimates` (simulator/jobs/estimates.py); rewards use true run times.
        mtbf_s, mttr_s, checkpoint_s, region_mtbf_s, region_mttr_s: failures of machines and of regions
            (simulator/events/initialise.py); 0 mean time between failures: none.
        outages, fault_groups, group_mtbf_s, group_mttr_s: a csv of outages, and what fails together
            (simulator/events/outage_list.py); None: none.
        render_mode: `ansi`, `rgb_array` or `human`.
        prices, watts, egress_per_gb, storage_per_tb_month: in regions, costs (simulator/costs/tariff.py).
        speeds, copy_time, copy_order, replica_lag_s, tables_every_s: in regions, as of `ClusterConfig`.
        cost_weight, carbon_weight: with prices, the charge for each $ and each kg of CO2 on a reward that has a name
            (envs/reward.py); 0: none.
        level_weights: in regions, with reward `slo` or `queueing`, the weight of each priority level, 0 to 6, >= 0;
            None: all alike.

    Raises:
        InputError: a value that does not fit, in one sentence.

    Attributes:
        given: the arguments of the constructor.
        part: its name in messages about compiling.
        others: names of the parts of an action after the candidate, for messages.
        rewards: the names of its rewards, with their code in the kernel.
        interface, simulator, rule: the window, the simulator, and the rule that holds for every policy.
        player: name in pictures: the policy that was last asked for an action, or your own text.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array", "human"], "render_fps": 10}  # noqa: RUF012
    part: ClassVar[str]
    others: ClassVar[tuple[str, ...]] = ()
    rewards: ClassVar[Mapping[str, int]] = REWARDS
    player: str = ""
    given: tuple[tuple[Any, ...], dict[str, Any]]
    _own: frozenset[str]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Keep the arguments, from which copies are made."""
        self = super().__new__(cls)
        self.given = args, kwargs
        return self

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Add the arguments of base and cluster to the signature of an environment."""
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls) and hasattr(cls, "part"):
            _, *own = inspect.signature(cls.__init__).parameters.values()
            if own and own[-1].kind is inspect.Parameter.VAR_KEYWORD:
                named = {one.name: one for one in own[:-1]}
                cls.__signature__ = inspect.Signature([*named.values(), *arguments(cls.part, named)])  # type: ignore[attr-defined]

    @classmethod
    def configured(cls, topology: Any, network: Any, given: dict[str, Any]) -> tuple[Any, CommonOptions]:
        """The cluster of such an environment, and its further arguments; InputError: unknown or invalid ones.

        Args:
            topology, network: as given; None: the environment's own.
            given: the other arguments, of the cluster and of `CommonOptions`.
        """
        env_id = f"{NAMESPACE}{cls.part}"
        common = CommonOptions(**{key: given[key] for key in COMMON_OPTIONS if key in given})
        options = {key: value for key, value in given.items() if key not in COMMON_OPTIONS}
        for key in options:
            expect_option(env_id, key, *inspect.signature(cls).parameters)
        return config_of(env_id, topology, network, **options), common

    def __init__(self, simulator: Any, interface: AgentInterface, workload: Any, common: CommonOptions) -> None:
        """Set up a `simulator` with its window, a workload (None: the environment's own), and the further arguments."""
        self.simulator, self.interface, self.rule = simulator, interface, simulator.rule
        self.placer, self.order, self.common_options = interface.placer, interface.order, common
        self.form = Form.of(interface, common.observation, common.action, common.mask, self.others)
        choose(common.render_mode or "ansi", self.metadata["render_modes"], "value of render_mode")
        self.render_mode, self.reward, self.reference = common.render_mode, common.reward, common.reference
        self.workload = ENVIRONMENTS[f"{NAMESPACE}{self.part}"].defaults["workload"] if workload is None else workload
        self.sources = self._sources_of(self.workload)
        reward_text = common.reward if isinstance(common.reward, str) else "of your own"
        self.terms = simulator.config.terms() | {"reward": reward_text}
        self._set_reward(common.reward, common.reference, common.max_decisions)
        self._screen: Any = None
        self._seen: tuple[int, Seen] | None = None  # of which run
        self._set_spaces()
        self._own = frozenset(vars(self)).difference(SETTINGS) | {"_own"}

    def __str__(self) -> str:
        """Every value that it was made with, one a line; where none was given, the default."""
        arguments, named = self.given
        bound = inspect.signature(type(self)).bind(*arguments, **named)
        bound.apply_defaults()
        made = {**self.config.words(), "topology": self.config.topology, "network": self.config.network}
        made["workload"] = self.workload
        values = bound.arguments | {key: made[key] for key in bound.arguments if made.get(key) is not None}
        lines = [f"{key} = {one if isinstance(one, str) else describe_value(one)}" for key, one in values.items()]
        return "\n  ".join([f"<{NAMESPACE}{self.part}", *lines]) + ">"

    @property
    def config(self) -> SimulatedCluster:
        """The simulated cluster, with topology and network loaded."""
        config: SimulatedCluster = self.simulator.config
        return config

    def _set_spaces(self) -> None:
        form = self.form
        self.observation_space, self.action_space = form.spaces()
        rows = Rows.empty(1, type(self.interface).dtype(), len(form.parts), form.features, mask=sum(form.parts))
        self.join(self._stepper(rows), 0)

    def _stepper(self, rows: Rows) -> Stepper:
        return Stepper(rows, self.part, type(self.interface).kernels.step_rows)

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

    def join(self, stepper: Stepper, row: int) -> None:
        """Move into a row of shared arrays; before the first reset."""
        rows = stepper.rows
        self.stepper = stepper
        self.interface.move_to(rows.windows[row : row + 1])
        self._windows, self._window = self.interface.windows, self.interface.window
        self._chosen = stepper.every_row[row : row + 1]
        self._action, self._outcome = rows.actions[row], rows.outcomes[row]
        self._features, self._mask = rows.features[row], rows.masks[row]
        self._told_mask = self.form.mask(self._mask)
        self.row = row
        stepper.enter(self.simulator)
        if self._own_reward:
            stepper.reward_writers[row] = self._write_own_reward

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

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode: draw the workload, run to the first decision.

        Args:
            seed: of the environment's random numbers, which draw the workload and all random events of the run.
            options: `{"workload": ...}` replaces the workload for this episode.
        """
        self.draw(seed, options)
        self.stepper.step(self._chosen)
        self.end_of_step()
        if self.render_mode == "human":
            self.render()
        return self.observe(), self.begun()

    def begun(self) -> dict[str, Any]:
        """The info of `reset`."""
        counts = counts_of(self._outcome.tolist())
        limit = self.decisions_at_most
        return {"elapsed_s": 0.0, "action_mask": self._told_mask.copy(), "max_decisions": limit, **counts}

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

    def draw_as(self, other: ClusterEnv, seed: int | None) -> None:
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

    def state_dict(self) -> dict[str, Any]:
        """The state that the row's arrays do not hold, as JSON data."""
        self._expect_reset()
        if self._drawn["given"]:
            raise InputError(f"state: row {self.row} plays a workload that was given to reset; give it to make instead")
        rule, random = self.simulator.rule, self.np_random.bit_generator.state
        kept = None if rule == self.rule else dataclasses.asdict(rule)
        return {**self._drawn, "rule": kept, "code": int(self._window.code), "random": random}

    def resume(self, played: Mapping[str, Any]) -> None:
        """Continue the episode that `played` describes, whose arrays lie in the row already."""
        self._drawn = {key: played[key] for key in ("seed", "workload", "given")}
        self.np_random.bit_generator.state = played["random"]
        workload = self.sources[played["workload"]](played["seed"])
        rule, kept = self.rule, played["rule"]
        if kept is not None:
            rule = rule_from(kept) if type(rule) is Rule else type(rule)(**kept)
        self.simulator.resume(workload, rule, played["code"])
        self.interface.resume(self.simulator)
        if self._own_reward:
            owes = self.interface.raw["owes"]
            self._before = Snapshot.before_all(self.simulator.raw.record) if owes else self.in_numbers()

    def snapshot(self) -> SavedState:
        """The present of the episode, for `restore`; it costs little more than a copy of the record."""
        self._expect_reset()
        return saved_state_of(self)

    def restore(self, saved: SavedState) -> None:
        """Continue at a snapshot of this environment, or of one with the same arguments, with its random numbers.

        Observation and mask are then those of the snapshot: `observe()`, `action_masks()`. Wrappers do not notice. The
        workload and the environment's own policies are shared with other copies. InputError: a snapshot of another
        kind.
        """
        go_back(self, saved)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Another environment that continues as this one would, without its window of `human` rendering."""
        arguments, named = self.given
        copied = memo[id(self)] = type(self)(*arguments, **named)
        self.pass_on(copied, memo)
        return copied

    def pass_on(self, copied: Any, memo: dict[int, Any]) -> None:
        """Modify an environment that was just made from the same arguments: it continues as this one would."""
        extras, saved = parts_of(self)
        complete(copied, copied_extras(extras, memo) | {name: getattr(self, name) for name in CALLED}, saved)

    def __reduce__(self) -> Any:
        extras, saved = parts_of(self)
        return made_again, (type(self), self.given, extras, saved)

    def extras(self) -> dict[str, Any]:
        """Attributes set on the environment since it was made, for copies."""
        return {name: value for name, value in vars(self).items() if name not in self._own}

    def python_state(self) -> dict[str, Any]:
        """The part of the state that the arrays of the row do not hold."""
        random = {"random": self.np_random.bit_generator.state, "random_seed": self._np_random_seed}
        stepping = {"before": getattr(self, "_before", None), "whole_actions": self.stepper.whole_actions.get(self.row)}
        memories = [asked.memory(self.simulator) for asked in self._asked()]
        return {"drawn": self._drawn, "run": self.simulator.python_state(), **random, **stepping, "memories": memories}

    def take_python_state(self, python_state: Mapping[str, Any]) -> None:
        """Continue in a row whose arrays were just replaced, with what `python_state` returned."""
        self._drawn, self._before = python_state["drawn"], python_state["before"]
        self.simulator.take_python_state(python_state["run"])
        self.interface.resume(self.simulator)
        self.np_random.bit_generator.state = python_state["random"]
        self._np_random_seed = python_state["random_seed"]
        self.stepper.whole_actions.pop(self.row, None)
        if python_state["whole_actions"] is not None:
            self.stepper.whole_actions[self.row] = python_state["whole_actions"]
        for asked, memory in zip(self._asked(), python_state["memories"], strict=True):
            asked.recall(self.simulator, memory)

    def _asked(self) -> list[Remembers]:
        found = (self.simulator.rate_provider, *self.interface.asked)
        return [asked for asked in found if hasattr(asked, "memory") and hasattr(asked, "recall")]

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play one action; see the class docstring. InputError: its candidate is out of range."""
        if not self.simulator.runs:
            self._expect_reset()
        self.form.read(action, self._action)
        n_stopped = self.stepper.step(self._chosen)
        outcome = self._outcome.tolist()
        reward, elapsed_s, invalid, adjusted, terminated, truncated, forced, waiting, running, finished, used = outcome
        waiting, running = int(waiting), int(running)  # each by itself: `map` over the rest takes twice as long
        info = {
            "elapsed_s": elapsed_s,
            "action_mask": self._told_mask.copy(),
            "invalid_action": invalid > 0.0,
            "forced_action": forced > 0.0,
            "adjusted_action": adjusted > 0.0,
            "active_jobs": waiting + running,
            "waiting_jobs": waiting,
            "running_jobs": running,
            "finished_jobs": int(finished),
            "used_gpus": int(used),
        }
        metrics = self.end_of_step() if n_stopped else None
        if metrics is not None:
            info |= {"max_decisions": self.decisions_at_most, "metrics": metrics, **metrics}
        if self.render_mode == "human":
            self.render()
        return self.form.copied(self._features, self._mask), reward, terminated > 0.0, truncated > 0.0, info

    def end_of_step(self) -> dict[str, float] | None:
        """After a step: the metrics if the episode has ended, else None; Stalled or Endless: no job can progress."""
        code = int(self.interface.raw["code"])
        self.simulator.note(code)
        self.simulator.expect_end()
        if code == codes.STALLED and not self._window.can_act:
            s = self.simulator.state
            raise Stalled(f"{s.waiting + s.held} jobs wait at {s.now_s:g} s and nothing can be started any more")
        ended = self._outcome[TERMINATED] or self._outcome[TRUNCATED]
        return self.simulator.metrics() if ended else None

    def action_masks(self) -> np.ndarray:
        """Legal actions, bool (all parts of an action, in a row): sb3-contrib's convention."""
        self._expect_reset()
        return self._told_mask.view(np.bool_).copy()

    @property
    def tables(self) -> Tables:
        """Layout of the flat observation and of the candidates."""
        return self.interface.tables

    @property
    def view(self) -> ClusterView:
        """The cluster now, as policies see it."""
        return self.simulator.view

    def act_of(self, policy: Decider) -> Any:
        """The action that plays the next decision of `policy`.

        The window turns to the job of the decision, so mask and observation are new: `action_masks()` and `observe()`
        give those that the action belongs to. Where an action is a candidate alone, the next step also plays the other
        parts.

        Raises:
            InvalidDecision: the decision cannot be played here (see `AgentInterface.action`).
        """
        self._expect_reset()
        self.player = getattr(policy, "name", "")
        decided = self.simulator.ask(policy)
        decision = self.interface.composed(policy, decided)
        # Among groups on parameter servers a policy installs no rule.
        is_rule = getattr(policy, "rule", None) is not None and isinstance(self.simulator.rule, Rule)
        w = self._window
        w.placer = PLACERS[self.simulator.rule.placer if is_rule else self.placer]
        w.pinned_job = getattr(decision, "job", -1)
        self.interface.force_decision(None if is_rule else decided)
        rows = self.stepper.rows
        run = rows.records, rows.windows, rows.solvers, self.row
        self.stepper.call(self.interface.kernels.turn, *run, self._features, self._mask)
        return self._said(self.interface.action(decision))

    def _said(self, parts: np.ndarray) -> Any:
        """The action for all parts; where it is a candidate alone, the next step keeps the others."""
        self._is_said = not self.form.is_single or self.interface.is_plain(parts)
        if not self._is_said:
            self.stepper.whole_actions[self.row] = parts
        return self.form.said(parts)

    def demonstration(self, policy: Decider) -> tuple[Any, np.ndarray, bool]:
        """What to learn from `policy` now: the action that plays its next decision, and the features before it.

        Returns:
            The action; the features, float32 (F,); and whether an agent sees and can do the same. If not, there is
            nothing to learn, but the action is played. InvalidDecision: no action plays the decision.
        """
        self._expect_reset()
        features = self._features.copy()
        try:
            decision = self.interface.composed(policy, self.simulator.ask(policy))
            return self._said(self.interface.action(decision)), features, self._is_said
        except InvalidDecision:
            return self.act_of(policy), features, False

    def observe(self) -> Any:
        """The observation of the last step, or of the last `act_of`."""
        self._expect_reset()
        return self.form.copied(self._features, self._mask)

    def _expect_reset(self) -> None:
        self.stepper.expect_begun((self.row,))

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
            from .rendering.human_window import Window

            self._screen = Window(fps=self.metadata["render_fps"])
        self._screen.show(frame)
        return None

    def as_text(self) -> str:
        """The cluster now, as text."""
        self._expect_reset()
        from .rendering.ansi import draw_ansi

        return draw_ansi(self.simulator)

    def as_picture(self) -> np.ndarray:
        """The cluster now, uint8 (H, W, 3)."""
        self._expect_reset()
        from .rendering.pictures.picture import draw_rgb

        return draw_rgb(self.simulator, seen=self.seen())

    def seen(self) -> Seen:
        """Memory of the earlier frames of this episode, for the next one."""
        from .rendering.scenes.seen import Seen

        runs = self.simulator.runs
        if self._seen is None or self._seen[0] != runs:
            self._seen = runs, Seen()
        self._seen[1].policy = self.player
        return self._seen[1]

    def close(self) -> None:
        """Close the window of `human` rendering."""
        if self._screen is not None:
            self._screen.close()
            self._screen = None
