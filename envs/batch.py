"""Many environments over one array of records: each row is an ordinary environment, and one kernel call steps all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np

from ..simulator.base import codes
from ..simulator.base.arguments import check_flag, checked_seed
from ..simulator.base.errors import InputError
from ..simulator.compiler.compile_messages import about
from ..simulator.compiler.jit import direct
from ..simulator.engine.protocols import Room
from ..simulator.engine.simulator import Simulator
from ..simulator.record.solver_records import SolverFields, SolverRecord
from .outcome import GOES_ON, OUTCOMES, TERMINATED, TRUNCATED
from .saved_state import SavedState, complete, parts_of
from .window import no_solvers


@dataclass
class Rows:
    """Arrays that the kernel of an environment reads and writes, for n rows."""

    windows: np.recarray  # structured (n,): the environment's own state
    actions: np.ndarray  # int64 (n, parts)
    outcomes: np.ndarray  # float64 (n, OUTCOMES): reward, elapsed seconds, and flags, see outcome.py
    features: np.ndarray  # float32 (n, F), the present; the kernel relies on what it last wrote
    masks: np.ndarray  # int8 (n, M), likewise
    references: np.ndarray  # float64 (n, jobs): finish times of the reference's run; no columns without one
    solvers: np.recarray  # what their solvers remember (n,); nothing where there are none, or no records yet
    capacity: Room | None = None  # of the records; None: there are none yet
    records: np.recarray | None = None  # the simulators' states (n,)

    @classmethod
    def empty(cls, n: int, window: np.dtype, parts: int, features: int, mask: int) -> Rows:
        """`n` rows, all zero, without records."""
        windows, actions = np.zeros(n, window).view(np.recarray), np.zeros((n, parts), np.int64)
        shown = np.zeros((n, features), np.float32), np.zeros((n, mask), np.int8)
        return cls(windows, actions, np.zeros((n, OUTCOMES)), *shown, np.zeros((n, 0)), no_solvers(n))

    def like(self, n: int) -> Rows:
        """`n` other rows, all zero, without records."""
        return Rows.empty(n, self.windows.dtype, self.actions.shape[1], self.features.shape[1], self.masks.shape[1])

    def fit_references(self) -> None:
        """Make room for a finish time of every job that fits in the records."""
        known, jobs = self.references, 0 if self.capacity is None else self.capacity.jobs
        if known.shape[1] < jobs:
            self.references = np.zeros((len(known), jobs))
            self.references[:, : known.shape[1]] = known


class Stepper:
    """Rows, the simulators in them, and the machine code that steps them.

    Args:
        rows: without records.
        part: its name in messages about compiling.
        kernel: (records, windows, solvers, references, chosen, actions, outcomes, features, masks): plays one action in
            each of the rows `chosen`, int64 (k,), of the arrays of `Rows`, and writes the result; a row that begins, or
            continues, ignores its action. Returns how many need a look: episode ended, run stalled, or rates wanted.
        solver: the fields of `Rows.solvers`; None: their solvers, if any, remember nothing.

    Attributes:
        answers: by row, what answers a run that may stop in the middle of a step to ask: for rates (simulated.py), or
            for what a policy decides in Python. Then the step goes on.
        whole_actions: by row, all parts of an action, for the next step if it plays the same candidate (forms.py).
        reward_writers: by row, the call that writes the reward of a user's function after a step.
    """

    def __init__(self, rows: Rows, part: str, kernel: Callable[..., Any], solver: SolverFields | None = None) -> None:
        self.rows, self.part, self.kernel, self.solver = rows, part, kernel, solver
        self.simulators: list[Simulator] = []
        self.answers: dict[int, Callable[[], None]] = {}
        windows = rows.windows.view(np.ndarray)  # numpy looks fields of records up in Python
        self._stops, self._begins = windows["code"], windows["begins"]
        self.every_row = np.arange(len(windows))
        self.whole_actions: dict[int, np.ndarray] = {}
        self.reward_writers: dict[int, Callable[[], None]] = {}
        self._codes: dict[Callable[..., Any], Callable[..., Any]] = {}
        self._known: dict[Any, dict[Callable[..., Any], Callable[..., Any]]] = {}  # such codes by capacity

    def like(self, n: int) -> Stepper:
        """Another stepper, of `n` rows."""
        return Stepper(self.rows.like(n), self.part, self.kernel, self.solver)

    def enter(self, simulator: Simulator) -> None:
        """Give the next row to a simulator, which then asks for room before each reset."""
        row = len(self.simulators)
        simulator.room = partial(self._make_room, row)
        self.simulators.append(simulator)
        if simulator.rate_provider is not None:
            self.answers[row] = simulator.answer

    def _make_room(self, row: int, capacity: Any) -> None:
        """Give `row`, which is about to be reset, records of at least `capacity`; the others continue."""
        present: Any = self.rows.capacity
        if capacity == present:
            return
        if len(self.simulators) > 1 and present is not None:
            both = zip(astuple(capacity), astuple(present), strict=True)
            capacity = type(capacity)(*(max(pair) for pair in both))
        self.make_room(capacity, lost=(row,))

    def widen(self, row: int, capacity: Any) -> None:
        """Give `row` room for a record of `capacity`; its own is lost, the others continue."""
        self._make_room(row, capacity)

    def make_room(self, capacity: Any, lost: Collection[int] = ()) -> None:
        """Give every row records of `capacity`; runs move along, except those of the rows in `lost`."""
        r = self.rows
        if capacity == r.capacity:
            return
        records = capacity.empty(len(self.simulators))
        for i, simulator in enumerate(self.simulators):
            simulator.move_to(records[i : i + 1].view(np.recarray), capacity, keep=i not in lost)
        before, r.records, r.capacity = r.capacity, records, capacity
        if self.solver is not None:
            self._make_room_for(self.solver, before, lost)
        self._codes = self._known.setdefault(capacity, {})

    def _make_room_for(self, solver: SolverFields, before: Any, lost: Collection[int]) -> None:
        r = self.rows
        known, r.solvers = r.solvers, solver.empty(r.capacity, len(self.simulators))
        for i in range(0 if before is None else len(known)):
            if i not in lost:
                old = SolverRecord(solver, known[i : i + 1], before)
                SolverRecord(solver, self.solvers_of(i), r.capacity).become(old)

    def solvers_of(self, row: int) -> np.recarray:
        """What the solver of a row remembers: an array of one record."""
        return self.rows.solvers[row : row + 1].view(np.recarray)

    def solver_of(self, row: int) -> SolverRecord | None:
        """What the solver of a row remembers, to be saved; None: it has none."""
        r = self.rows
        if self.solver is None or r.capacity is None:
            return None
        return SolverRecord(self.solver, self.solvers_of(row), r.capacity, self.simulators[row].raw.extent)

    def expect_begun(self, chosen: Iterable[int]) -> None:
        """ResetNeeded where one of the chosen rows has no run yet."""
        for row in chosen:
            if not self.simulators[row].has_run:
                which = "the environment" if self.rows.capacity is None else f"row {row}"
                raise gym.error.ResetNeeded(f"{which} has no state yet; call reset() first")

    def step(self, chosen: np.ndarray) -> int:
        """Play the actions that lie in the chosen rows, int64 (k,); returns how many need a look."""
        if not (self.whole_actions or self.reward_writers):
            return self.play(chosen)
        n_stopped = self._step_whole_actions(chosen)
        for row in chosen.tolist():
            if row in self.reward_writers:
                self.reward_writers[row]()
        return n_stopped

    def _step_whole_actions(self, chosen: np.ndarray) -> int:
        actions, whole_actions = self.rows.actions, [row for row in chosen.tolist() if row in self.whole_actions]
        for row in whole_actions:
            parts = self.whole_actions.pop(row)
            if actions[row, 0] == parts[0]:
                actions[row] = parts
        n_stopped = self.play(chosen)
        actions[whole_actions, 1:] = 0
        return n_stopped

    def play(self, chosen: np.ndarray) -> int:
        """As `step`, for actions whose parts all lie there."""
        r, n_stopped = self.rows, 0
        while True:
            call = self._codes.get(self.kernel) or partial(self.call, self.kernel)
            run = r.records, r.windows, r.solvers, r.references
            n_stopped += call(*run, chosen, r.actions, r.outcomes, r.features, r.masks)
            if not self.answers:
                return n_stopped
            chosen = chosen[self._stops[chosen] == codes.ASK]
            if not chosen.size:
                return n_stopped
            for row in chosen.tolist():
                self.answers[row]()
            self._begins[chosen] = GOES_ON

    def call(self, kernel: Callable[..., Any], *arguments: Any) -> Any:
        """`kernel(*arguments)`, whose types differ only in the capacity of the records."""
        code = self._codes.get(kernel)
        if code is None:
            room: Any = self.rows.capacity
            with about(f"{self.part} for up to {room.words}"):
                code = self._codes[kernel] = direct(kernel, *arguments)
                return code(*arguments)
        return code(*arguments)


class Batch:
    """Environments of one class in the rows of shared arrays.

    Args:
        env_class, num_envs: a `ClusterEnv`; rows, >= 1.
        replicas: rows k g to k g + k - 1 are seeded alike, so they play the same workloads (k = replicas).
        variants: keyword arguments that differ: row i has `variants[i % len(variants)]`; none: all rows are alike.
        strict: a candidate out of range is an error; else it is an illegal one.
        kwargs: keyword arguments of all environments.

    Attributes:
        envs, rows: the environments by row; the shared arrays.
        kind_of: a number for each row, the same for rows with the same keyword arguments.

    Raises:
        InputError: rows whose spaces differ, or counts that do not fit.
    """

    def __init__(
        self,
        env_class: Callable[..., Any],
        num_envs: int,
        *,
        replicas: int = 1,
        variants: Sequence[Mapping[str, Any]] = (),
        strict: bool = True,
        kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        _check_count("num_envs", num_envs)
        _check_count("replicas", replicas)
        if num_envs % replicas:
            raise InputError(f"replicas = {replicas}: expected a divisor of num_envs = {num_envs}")
        check_flag("strict", strict)
        self.given = env_class, num_envs, replicas, variants, strict, kwargs
        self.strict = strict
        self.num_envs, self.replicas = int(num_envs), int(replicas)
        kinds = [{**(kwargs or {}), **variant} for variant in variants] or [dict(kwargs or {})]
        first_alike = [next(j for j, other in enumerate(kinds) if _alike(kind, other)) for kind in kinds]
        self.kind_of = [first_alike[i % len(kinds)] for i in range(self.num_envs)]
        self.envs: list[Any] = [env_class(**kinds[i % len(kinds)]) for i in range(self.num_envs)]
        first = self.envs[0]
        for i, env in enumerate(self.envs):
            if env.observation_space != first.observation_space or env.action_space != first.action_space:
                differ = f"the spaces of row {i} differ from those of row 0"
                raise InputError(f"variants: {differ}; give all the same window")
        self.stepper = first.stepper.like(self.num_envs)
        self.rows = self.stepper.rows
        for i, env in enumerate(self.envs):
            env.join(self.stepper, i)
        self.metrics: dict[int, dict[str, float]] = {}
        self._begun = False  # whether every row has a run; known once it has been asked
        self._candidates = self.rows.actions.view(np.uint64)[:, 0]  # a negative one is a large one
        self._codes = self.rows.windows.view(np.ndarray)["code"]  # numpy looks fields of records up in Python

    def snapshot(self) -> list[SavedState]:
        """The present of every row."""
        return [env.snapshot() for env in self.envs]

    def restore(self, saved_states: Sequence[SavedState | None]) -> None:
        """Continue at saved states, one for each row; None: it stays. InputError: of another kind or number."""
        if len(saved_states) != self.num_envs:
            given = f"{len(saved_states)} snapshots given"
            raise InputError(f"restore: {given}; expected one for each of {self.num_envs} rows")
        for env, saved in zip(self.envs, saved_states, strict=True):
            if saved is not None:
                env.restore(saved)
        self.metrics = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> Batch:
        copied = memo[id(self)] = self.made(*self.given)
        for env, new in zip(self.envs, copied.envs, strict=True):
            memo[id(env)] = new
            env.pass_on(new, memo)
        return copied

    def __reduce__(self) -> Any:
        return _again, (self.given, [parts_of(env) for env in self.envs])

    @classmethod
    def made(
        cls, env_class: Callable[..., Any], num_envs: int, replicas: int, variants: Any, strict: bool, kwargs: Any
    ) -> Batch:
        """A batch from `given`."""
        return cls(env_class, num_envs, replicas=replicas, variants=variants, strict=strict, kwargs=kwargs)

    def seeds(self, seed: int | None) -> list[int | None]:
        """Seeds by row; the first group of replicas gets `seed`."""
        return [None if seed is None else checked_seed(seed) + i // self.replicas for i in range(self.num_envs)]

    def reset(
        self,
        chosen: np.ndarray,
        seeds: Sequence[int | None] | None = None,
        options: Sequence[dict[str, Any] | None] | None = None,
    ) -> None:
        """Begin new episodes in the chosen rows, int64 (k,); `seeds` and `options` are by row of the batch.

        Replicas that would draw the same workload take over that of the first.
        """
        drawn: dict[tuple[int, int], tuple[int, Any]] = {}
        for i in chosen.tolist():
            env, seed, option = self.envs[i], seeds[i] if seeds else None, options[i] if options else None
            if self.replicas == 1:
                env.draw(seed, option)
                continue
            kind = i // self.replicas, self.kind_of[i]
            random = env.np_random.bit_generator.state if seed is None else seed
            leader, as_given = drawn.get(kind, (i, None))
            if as_given == (random, option):
                env.draw_as(self.envs[leader], seed)
            else:
                env.draw(seed, option)
                drawn[kind] = i, (random, option)
        self._look(chosen, self.stepper.step(chosen))

    def align(self) -> None:
        """Give the rows of a group of replicas the same random numbers from now on."""
        for i, env in enumerate(self.envs):
            if i % self.replicas:
                leader = self.envs[i - i % self.replicas].np_random
                env.np_random.bit_generator.state = leader.bit_generator.state

    def expect_begun(self, chosen: np.ndarray | None = None) -> None:
        """ResetNeeded where one of the chosen rows, int64 (k,), or of all, has no run yet."""
        if not self._begun:
            self.stepper.expect_begun((self.stepper.every_row if chosen is None else chosen).tolist())
            self._begun = all(simulator.has_run for simulator in self.stepper.simulators)

    def step(self, actions: Any, chosen: np.ndarray | None = None) -> bool:
        """Play `actions` in the chosen rows or all; True if an episode has ended, with `metrics` of these rows.

        InputError: actions of another shape, or, if `strict`, a candidate out of range in a row that plays.
        """
        self.expect_begun(chosen)
        self.envs[0].form.read_all(actions, self.rows.actions)
        if chosen is None:
            chosen = self.stepper.every_row
        if self.strict and np.maximum.reduce(self._candidates) >= self.envs[0].form.parts[0]:
            self._expect_candidates(chosen)
        return self._look(chosen, self.stepper.step(chosen))

    def _expect_candidates(self, chosen: np.ndarray) -> None:
        """InputError for a candidate out of range in one of the rows that play."""
        form, actions = self.envs[0].form, self.rows.actions
        for row in chosen[self._candidates[chosen] >= form.parts[0]].tolist():
            raise InputError(f"row {row}: {form.no_candidate(form.said(actions[row]).tolist(), actions[row, 0])}")

    def _look(self, chosen: np.ndarray, n_stopped: int) -> bool:
        if self.metrics:
            self.metrics = {}
        if n_stopped:
            outcomes = self.rows.outcomes
            ended = outcomes[:, TERMINATED] + outcomes[:, TRUNCATED] > 0.0
            stopped = ended | (self._codes != codes.DECIDE)
            for i in chosen[stopped[chosen]].tolist():
                metrics = self.envs[i].end_of_step()
                if metrics is not None:
                    self.metrics[i] = metrics
        return bool(self.metrics)

    @property
    def terminated(self) -> np.ndarray:
        """Rows whose episode ended with the last step because every job is done, bool (num_envs,), a new array."""
        return self.rows.outcomes[:, TERMINATED] > 0.0

    @property
    def truncated(self) -> np.ndarray:
        """Rows whose episode was cut off by the last step, bool (num_envs,), a new array."""
        return self.rows.outcomes[:, TRUNCATED] > 0.0


def _again(given: Any, parts: Sequence[tuple[Mapping[str, Any], SavedState | None]]) -> Batch:
    batch = Batch.made(*given)
    for env, (extras, saved) in zip(batch.envs, parts, strict=True):
        complete(env, extras, saved)
    return batch


def _alike(a: Any, b: Any) -> bool:
    """Whether two arguments, or dicts of them, are surely the same; objects only if identical."""
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(_alike(a[key], b[key]) for key in a)
    if isinstance(a, tuple | list):
        return type(a) is type(b) and len(a) == len(b) and all(map(_alike, a, b))
    return a is b or (isinstance(a, str | int | float) and type(a) is type(b) and a == b)


def _check_count(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InputError(f"{name} = {value!r}: expected a whole number of at least 1")
