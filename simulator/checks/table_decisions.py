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
    why = refusal(simulator, decision, missing_bytes(simulator, table, region))
    if why:
        geo, topology = simulator.workload.geo, simulator.topology
        assert geo is not None
        what = f"{VERBS[type(decision)]} table {geo.table_names[table]}, region {topology.region_names[region]}"
        raise InvalidDecision(f"{what}: {why}")
    return table, region


def refusal(simulator: Simulated, decision: TableDecision, missing: int) -> str:
    """Why a decision about a table that there is cannot be carried out at this instant; empty: it can.

    `missing`: what its region lacks of the table (`missing_bytes`).
    """
    s, table, region = simulator.plain.record, decision.table, decision.region
    if isinstance(decision, Drop):
        return _refused_drop(s, table, region)
    gives_up = isinstance(decision, Move) and region == s["table_home"][table]
    if not gives_up and not s["up_regions"] >> region & 1:
        return "the region is down"
    if isinstance(decision, Move):
        return _refused_move(s, table, region, missing)
    return _refused_replica(s, decision, missing)


def missing_bytes(simulator: Simulated, table: int, region: int) -> int:
    """Bytes of a table that are neither in a region nor on the way to it."""
    return int(region_calls.missing_bytes(simulator.records, 0, table, region))


def missing_by_region(simulator: Simulated, table: int) -> list[int]:
    """The same of each region."""
    found = np.zeros(int(simulator.plain.record["n_regions"]), np.int64)
    region_calls.lay_missing(simulator.records, 0, table, found)
    return found.tolist()


def replica_bytes(s: np.void, table: int, whole: bool, missing: int) -> int:
    """What `Replicate` would send to a region that lacks so much; 0: what it asks for is there or on the way."""
    if whole or missing < s["table_size"][table]:
        return missing if whole else 0
    return int(s["replica_size"][table])


def copied_bytes(simulator: Simulated, decision: TableDecision, missing: int | None = None) -> int:
    """What carrying out a decision would send over links; 0: nothing.

    `missing`: what its region lacks of the table; None: it is looked up.
    """
    if isinstance(decision, Drop):
        return 0
    s, table = simulator.plain.record, decision.table
    if missing is None:
        missing = missing_bytes(simulator, table, decision.region)
    if isinstance(decision, Move):
        return 0 if decision.region == s["table_home"][table] else missing
    return replica_bytes(s, table, bool(decision.whole), missing)


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


def _refused_replica(s: np.void, decision: Replicate, missing: int) -> str:
    table, region = decision.table, decision.region
    grows = decision.whole and s["replica_size"][table] < s["table_size"][table]
    if s["table_wanted"][table] >> region & 1 and not (grows and not s["table_complete"][table] >> region & 1):
        on_the_way = not s["table_copies"][table] >> region & 1
        return f"a copy is {'on the way there' if on_the_way else 'there'} already"
    return _no_room(s, region, replica_bytes(s, table, bool(decision.whole), missing))


def _refused_move(s: np.void, table: int, region: int, missing: int) -> str:
    target = int(s["table_target"][table])
    if region == (s["table_home"][table] if target < 0 else target):
        return f"that is its home {'already' if target < 0 else 'to be'}"
    return _no_room(s, region, missing)


def _no_room(s: np.void, region: int, size: int) -> str:
    room = int(s["storage_bytes"][region] - s["stored_bytes"][region])
    if size > room:
        return f"{room:,} bytes of storage are left there, {size:,} are needed"
    if size > 0 and s["free_transfer"] < 0:
        return f"{s['n_transfers']} copies are on the way, as many as one simulator holds"
    return ""


def _refused_drop(s: np.void, table: int, region: int) -> str:
    if s["table_wanted"][table] >> region & 1:
        stays = region in (s["table_home"][table], s["table_target"][table])
        others = int(s["table_copies"][table] & ~s["table_doomed"][table] & s["up_regions"]) & ~(1 << region)
        if stays or others or not s["table_copies"][table] >> region & 1:
            return ""
        return "no other copy lies in a region that is up"
    if region == s["table_home"][table]:
        return "that is its home; move it first"
    if region == s["table_target"][table]:
        return "its home moves there"
    if s["table_doomed"][table] >> region & 1:
        return "that copy is about to be deleted already"
    return "there is no copy"
