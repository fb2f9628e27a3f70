"""Decisions about tables: checked before anything happens, then carried out (regions/wan.py)."""

from __future__ import annotations

import numpy as np

from ..base.decisions import Drop, Move, Replicate
from ..base.errors import InvalidDecision
from ..network.simulated import Simulated
from ..regions import region_calls
from ..regions.region_view import RegionView

TableDecision = Replicate | Move | Drop
VERBS = {Replicate: "replicate", Move: "move", Drop: "drop"}


def apply_table(simulator: Simulated, decision: TableDecision) -> None:
    """Carry out a decision about a table at this instant.

    Raises:
        InvalidDecision: it cannot be carried out; the state is as before.
    """
    table, region = check_table(simulator, decision)
    if isinstance(decision, Replicate):
        region_calls.replicate(simulator.records, 0, table, region, int(decision.whole))
    else:
        entry = region_calls.move if isinstance(decision, Move) else region_calls.drop
        entry(simulator.records, 0, table, region)


def check_table(simulator: Simulated, decision: TableDecision) -> tuple[int, int]:
    """The table and the region of a decision that can be carried out at this instant.

    Raises:
        InvalidDecision: it cannot.
    """
    table, region = _indices(simulator, decision)
    geo, topology = simulator.workload.geo, simulator.topology
    assert geo is not None
    what = f"{VERBS[type(decision)]} table {geo.table_names[table]}, region {topology.region_names[region]}"
    if isinstance(decision, Drop):
        _check_drop(simulator, what, table, region)
        return table, region
    gives_up = isinstance(decision, Move) and region == simulator.plain.record["table_home"][table]
    if not gives_up and not simulator.plain.record["up_regions"] >> region & 1:
        raise InvalidDecision(f"{what}: the region is down")
    if isinstance(decision, Move):
        _check_move(simulator, what, table, region)
    else:
        _check_replicate(simulator, what, decision, table, region)
    return table, region


def replica_bytes(simulator: Simulated, table: int, region: int, whole: bool) -> int:
    """What `Replicate` would send to a region now; 0: what it asks for is there or on the way."""
    s = simulator.plain.record
    missing = int(region_calls.missing_bytes(simulator.records, 0, table, region))
    if whole or missing < s["table_size"][table]:
        return missing if whole else 0
    return int(s["replica_size"][table])


def copied_bytes(simulator: Simulated, decision: TableDecision) -> int:
    """What carrying out a decision would send over links; 0: nothing."""
    if isinstance(decision, Drop):
        return 0
    s = simulator.plain.record
    missing = int(region_calls.missing_bytes(simulator.records, 0, decision.table, decision.region))
    if isinstance(decision, Move):
        return 0 if decision.region == s["table_home"][decision.table] else missing
    return replica_bytes(simulator, decision.table, decision.region, decision.whole)


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


def _check_replicate(simulator: Simulated, what: str, decision: Replicate, table: int, region: int) -> None:
    s = simulator.plain.record
    grows = decision.whole and s["replica_size"][table] < s["table_size"][table]
    if s["table_wanted"][table] >> region & 1 and not (grows and not s["table_complete"][table] >> region & 1):
        on_the_way = not s["table_copies"][table] >> region & 1
        raise InvalidDecision(f"{what}: a copy is {'on the way there' if on_the_way else 'there'} already")
    _check_room(simulator, what, table, region, replica_bytes(simulator, table, region, bool(decision.whole)))


def _check_move(simulator: Simulated, what: str, table: int, region: int) -> None:
    s = simulator.plain.record
    target = int(s["table_target"][table])
    if region == (s["table_home"][table] if target < 0 else target):
        raise InvalidDecision(f"{what}: that is its home {'already' if target < 0 else 'to be'}")
    _check_room(simulator, what, table, region, int(region_calls.missing_bytes(simulator.records, 0, table, region)))


def _check_room(simulator: Simulated, what: str, table: int, region: int, size: int) -> None:
    s = simulator.plain.record
    room = int(s["storage_bytes"][region] - s["stored_bytes"][region])
    if size > room:
        raise InvalidDecision(f"{what}: {room:,} bytes of storage are left there, {size:,} are needed")
    if size > 0 and s["free_transfer"] < 0:
        raise InvalidDecision(f"{what}: {s['n_transfers']} copies are on the way, as many as one simulator holds")


def _check_drop(simulator: Simulated, what: str, table: int, region: int) -> None:
    s = simulator.plain.record
    is_wanted = s["table_wanted"][table] >> region & 1
    if is_wanted:
        stays = region in (s["table_home"][table], s["table_target"][table])
        others = int(s["table_copies"][table] & ~s["table_doomed"][table] & s["up_regions"]) & ~(1 << region)
        if stays or others or not s["table_copies"][table] >> region & 1:
            return
        raise InvalidDecision(f"{what}: no other copy lies in a region that is up")
    if region == s["table_home"][table]:
        raise InvalidDecision(f"{what}: that is its home; move it first")
    if region == s["table_target"][table]:
        raise InvalidDecision(f"{what}: its home moves there")
    if s["table_doomed"][table] >> region & 1:
        raise InvalidDecision(f"{what}: that copy is about to be deleted already")
    raise InvalidDecision(f"{what}: there is no copy")
