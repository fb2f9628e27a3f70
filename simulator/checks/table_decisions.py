"""Decisions about tables: checked before anything happens, then carried out (regions/wan.py)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.decisions import Drop, Move, Replicate
from ..base.errors import InvalidDecision
from ..network.simulated import Simulated
from ..regions import region_calls
from ..regions.region_view import RegionView

TableDecision = Replicate | Move | Drop
NUMBERS = 11  # of a `TableState`, before what it has by region
VERBS = {Replicate: "replicate", Move: "move", Drop: "drop"}


def apply_table(simulator: Simulated, decision: TableDecision) -> None:
    """Carry out a decision about a table at this instant.

    Raises:
        InvalidDecision: it cannot be carried out; the state is as before.
    """
    table, region = check_table(simulator, decision)
    if isinstance(decision, Replicate):
        simulator.plain.call(region_calls.replicate, table, region, int(decision.whole))
    else:
        entry = region_calls.move if isinstance(decision, Move) else region_calls.drop
        simulator.plain.call(entry, table, region)


@dataclass(frozen=True)
class TableState:
    """What decides whether something can be done about a table now.

    Attributes:
        home, target: its home, and where that moves; -1: it stays.
        wanted, complete, copies, doomed: sets of regions: where it is to lie, and whole; where it lies,
            and where not for long.
        size, replica_size: bytes of all of it, and of the partitions that are read.
        up: set of the regions that have not failed.
        on_the_way: copies of all tables; is_full: as many as one simulator holds.
        missing: by region, bytes of it that are neither there nor on the way.
        room: by region, bytes of storage that are left.
    """

    home: int
    target: int
    wanted: int
    complete: int
    copies: int
    doomed: int
    size: int
    replica_size: int
    up: int
    on_the_way: int
    is_full: bool
    missing: list[int]
    room: list[int]

    @classmethod
    def of(cls, simulator: Simulated, table: int) -> TableState:
        """The present."""
        regions = simulator.topology.num_regions
        laid = np.zeros(NUMBERS + 2 * regions, np.int64)
        simulator.plain.call(region_calls.lay_table, table, laid)
        found: list[int] = laid.tolist()
        home, target, wanted, complete, copies, doomed, size, replica_size, up, on_the_way, full = found[:NUMBERS]
        missing, room = found[NUMBERS : NUMBERS + regions], found[NUMBERS + regions :]
        sets = wanted, complete, copies, doomed
        return cls(home, target, *sets, size, replica_size, up, on_the_way, bool(full), missing, room)


def check_table(simulator: Simulated, decision: TableDecision) -> tuple[int, int]:
    """The table and the region of a decision that can be carried out at this instant.

    Raises:
        InvalidDecision: it cannot.
    """
    table, region = _indices(simulator, decision)
    why = refusal(TableState.of(simulator, table), decision)
    if why:
        geo, topology = simulator.workload.geo, simulator.topology
        assert geo is not None
        what = f"{VERBS[type(decision)]} table {geo.table_names[table]}, region {topology.region_names[region]}"
        raise InvalidDecision(f"{what}: {why}")
    return table, region


def refusal(state: TableState, decision: TableDecision) -> str:
    """Why a decision about a table that there is cannot be carried out now; empty: it can."""
    region = decision.region
    if isinstance(decision, Drop):
        return _refused_drop(state, region)
    gives_up = isinstance(decision, Move) and region == state.home
    if not gives_up and not state.up >> region & 1:
        return "the region is down"
    if isinstance(decision, Move):
        return _refused_move(state, region)
    return _refused_replica(state, decision)


def replica_bytes(state: TableState, decision: Replicate) -> int:
    """What `Replicate` would send; 0: what it asks for is there or on the way."""
    missing = state.missing[decision.region]
    if decision.whole or missing < state.size:
        return missing if decision.whole else 0
    return state.replica_size


def copied_bytes(state: TableState, decision: TableDecision) -> int:
    """What carrying out a decision would send over links; 0: nothing."""
    if isinstance(decision, Drop):
        return 0
    if isinstance(decision, Move):
        return 0 if decision.region == state.home else state.missing[decision.region]
    return replica_bytes(state, decision)


def is_idle(view: RegionView, decision: TableDecision) -> bool:
    """Whether a decision gives a replica to a region that is the table's home and stays so."""
    is_at_home = isinstance(decision, Replicate) and view.home(decision.table) == decision.region
    return is_at_home and view.moving_to(decision.table) is None


def _indices(simulator: Simulated, decision: TableDecision) -> tuple[int, int]:
    if simulator.ended:
        raise InvalidDecision(f"{decision!r}: the run has ended; call reset() first")
    if simulator.capacity.regions == 0:
        raise InvalidDecision(f"{decision!r}: this simulation has no tables")
    s = simulator.plain.record
    for value, count, noun in ((decision.table, s["n_tables"], "tables"), (decision.region, s["n_regions"], "regions")):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value < count:
            raise InvalidDecision(f"{decision!r}: there are {noun} 0 to {count - 1}")
    return int(decision.table), int(decision.region)


def _refused_replica(state: TableState, decision: Replicate) -> str:
    region = decision.region
    grows = decision.whole and state.replica_size < state.size
    if state.wanted >> region & 1 and not (grows and not state.complete >> region & 1):
        on_the_way = not state.copies >> region & 1
        return f"a copy is {'on the way there' if on_the_way else 'there'} already"
    return _no_room(state, region, replica_bytes(state, decision))


def _refused_move(state: TableState, region: int) -> str:
    if region == (state.home if state.target < 0 else state.target):
        return f"that is its home {'already' if state.target < 0 else 'to be'}"
    return _no_room(state, region, state.missing[region])


def _no_room(state: TableState, region: int, size: int) -> str:
    if size > state.room[region]:
        return f"{state.room[region]:,} bytes of storage are left there, {size:,} are needed"
    if size > 0 and state.is_full:
        return f"{state.on_the_way} copies are on the way, as many as one simulator holds"
    return ""


def _refused_drop(state: TableState, region: int) -> str:
    if state.wanted >> region & 1:
        stays = region in (state.home, state.target)
        others = state.copies & ~state.doomed & state.up & ~(1 << region)
        if stays or others or not state.copies >> region & 1:
            return ""
        return "no other copy lies in a region that is up"
    if region == state.home:
        return "that is its home; move it first"
    if region == state.target:
        return "its home moves there"
    if state.doomed >> region & 1:
        return "that copy is about to be deleted already"
    return "there is no copy"
