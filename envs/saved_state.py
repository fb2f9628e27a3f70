"""The state of an environment in the middle of an episode: kept, restored, copied, and sent to other processes.

An environment consists of its arguments, which copies share, and of a `SavedState`: the bytes of its row (the
simulator's record, the window, the last outcome) and a little that Python keeps beside them (`python_state`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..simulator.base.decisions import Decision
from ..simulator.base.errors import InputError
from ..simulator.engine.protocols import Room
from ..simulator.engine.view import ClusterView
from ..simulator.record.packed_records import packed, unpack
from ..simulator.record.solver_records import SolverRecord
from ..simulator.record.zeroed import SPARSE_BYTES

SHARED = ("spec",)  # by copies, beside what they were made from


class LeftBehind:
    """Stands for a policy that was played in another process."""

    def decide(self, view: ClusterView) -> Decision:
        """Raise InputError: the policy is not here."""
        sent = "the environment was sent between act_of and step, and the policy that it played stayed behind"
        raise InputError(f"{sent}; ask act_of again, and step that action")


@dataclass(frozen=True, eq=False)
class SavedState:
    """A snapshot; it stays as it is, and can be restored often."""

    capacity: Room
    extent: Any  # how much of the record is in use; None: `record` is all of it
    record: np.ndarray  # its bytes, uint8
    window: np.ndarray  # its bytes, uint8
    solver: np.ndarray | None  # the bytes in use of what its solver remembers, uint8; None: it has none
    outcome: np.ndarray  # this and the next three: the other arrays of the row
    features: np.ndarray
    mask: np.ndarray
    reference: np.ndarray
    terms: Mapping[str, str]  # of the run; see `SimulatedCluster.terms`
    python_state: Mapping[str, Any]  # the rest of the state

    def __getstate__(self) -> dict[str, Any]:
        state, instant = vars(self), self.python_state.get("instant", {})
        if instant.get("expert") is None:
            return state
        return {**state, "python_state": {**self.python_state, "instant": {**instant, "expert": LeftBehind()}}}


def saved_state_of(env: Any) -> SavedState:
    """The present of an environment."""
    rows, row, plain = env.stepper.rows, env.row, env.simulator.raw
    extent, solver = None if plain.data.nbytes < SPARSE_BYTES else plain.extent, env.stepper.solver_of(row)
    record, window = plain.data.copy() if extent is None else packed(plain, extent), env.interface.data.copy()
    outcome, features = rows.outcomes[row].copy(), rows.features[row].copy()
    mask, reference = rows.masks[row].copy(), rows.references[row].copy()
    remembered = None if solver is None else packed(solver, solver.extent)
    rest, shown = env.python_state(), (outcome, features, mask, reference)
    return SavedState(rows.capacity, extent, record, window, remembered, *shown, env.terms, rest)


def go_back(env: Any, saved: Any) -> None:
    """Modify an environment: continue at a saved state of one with the same arguments; InputError for others."""
    if not isinstance(saved, SavedState):
        given = type(saved).__name__
        raise InputError(f"restore: {given} given; expected what snapshot() of such an environment gave")
    rows, row, window = env.stepper.rows, env.row, env.interface.data
    own = (window.shape, rows.features[row].shape, rows.masks[row].shape, type(env.simulator.capacity))
    if own != (saved.window.shape, saved.features.shape, saved.mask.shape, type(saved.capacity)):
        raise InputError("restore: a snapshot of an environment of another kind; expected one that was made alike")
    for name, value in env.terms.items():
        if saved.terms[name] != value:
            before = saved.terms[name]
            given = f"a snapshot of an environment with {name} {before}, this one has {value}"
            raise InputError(f"restore: {given}; expected one that was made alike")
    _write_record(env, saved)
    window[...] = saved.window
    _write_solver(env, saved)
    rows.outcomes[row], rows.features[row], rows.masks[row] = saved.outcome, saved.features, saved.mask
    if saved.reference.size:
        rows.fit_references()
        rows.references[row, : saved.reference.size] = saved.reference
    env.take_python_state(saved.python_state)


def _write_record(env: Any, saved: SavedState) -> None:
    """Modify the record of a row; in a batch all records may become larger, never smaller."""
    stepper, simulator, row = env.stepper, env.simulator, env.row
    if stepper.rows.capacity != saved.capacity:
        stepper.widen(row, saved.capacity)
    room = stepper.rows.capacity
    if room != saved.capacity:
        simulator.move_to(saved.capacity.empty(), saved.capacity, keep=False)
    if saved.extent is None:
        simulator.raw.data[...] = saved.record
    else:
        unpack(simulator.raw, saved.extent, saved.record)
    if room != saved.capacity:
        own = stepper.rows.records[row : row + 1]
        own.view(np.ndarray).view(np.uint8)[...] = 0
        simulator.move_to(own.view(np.recarray), room)


def _write_solver(env: Any, saved: SavedState) -> None:
    """Modify what the solver of a row remembers; the record has been written."""
    own, solver = env.stepper.solver_of(env.row), env.stepper.solver
    if own is None or saved.solver is None:
        return
    if env.stepper.rows.capacity == saved.capacity:
        unpack(own, own.extent, saved.solver)
        return
    other = SolverRecord(solver, solver.empty(saved.capacity), saved.capacity, own.extent)
    unpack(other, other.extent, saved.solver)
    own.become(other)


def parts_of(env: Any) -> tuple[dict[str, Any], SavedState | None]:
    """Attributes and saved state that a copy of an environment needs beside the arguments."""
    return env.extras(), saved_state_of(env) if env.simulator.has_run else None


def complete(env: Any, extras: Mapping[str, Any], saved: SavedState | None) -> None:
    """Modify an environment that was just made from the same arguments as another: become like that one."""
    vars(env).update(extras)
    if saved is not None:
        go_back(env, saved)


def made_again(make: Callable[..., Any], given: Any, extras: Mapping[str, Any], saved: SavedState | None) -> Any:
    """Another environment, made from the same arguments."""
    arguments, named = given
    env = make(*arguments, **named)
    complete(env, extras, saved)
    return env


def copied_extras(extras: Mapping[str, Any], memo: dict[int, Any]) -> dict[str, Any]:
    """For a copy in the same process."""
    return {name: value if name in SHARED else copy.deepcopy(value, memo) for name, value in extras.items()}


def kept(env: Any, names: Sequence[str]) -> dict[str, Any]:
    """Attributes by name: copies of lists, dicts and sets, the rest as it is."""
    return {name: _kept(getattr(env, name)) for name in names}


def put_back(env: Any, values: Mapping[str, Any]) -> None:
    """Modify attributes: as `kept` found them."""
    for name, value in values.items():
        setattr(env, name, _kept(value))


def _kept(value: Any) -> Any:
    return value.copy() if isinstance(value, list | dict | set) else value
