"""Decisions about tables: checked before anything happens, then carried out (regions/wan.py)."""

from __future__ import annotations

import numpy as np

from ..base.codes import DROP, MOVE, REPLICATE
from ..base.decisions import Drop, Move, Replicate
from ..base.errors import InvalidDecision
from ..network.simulated import Simulated
from ..regions import region_calls
from . import table_refusals as why

TableDecision = Replicate | Move | Drop
VERBS = {Replicate: "replicate", Move: "move", Drop: "drop"}
CODES = {Replicate: REPLICATE, Move: MOVE, Drop: DROP}
WORDS = {
    why.REGION_DOWN: "the region is down",
    why.COPY_THERE: "a copy is there already",
    why.COPY_COMES: "a copy is on the way there already",
    why.NO_ROOM: "{room:,} bytes of storage are left there, {size:,} are needed",
    why.TOO_MANY_COPIES: "{copies} copies are on the way, as many as one simulator holds",
    why.HOME_ALREADY: "that is its home already",
    why.HOME_TO_BE: "that is its home to be",
    why.LAST_COPY: "no other copy lies in a region that is up",
    why.HOME_LIES_THERE: "that is its home; move it first",
    why.HOME_MOVES_THERE: "its home moves there",
    why.COPY_GOES: "that copy is about to be deleted already",
    why.NO_COPY: "there is no copy",
}


def apply_table(simulator: Simulated, decision: TableDecision) -> None:
    """Carry out a decision about a table at this instant; InvalidDecision if it is illegal, and nothing has changed."""
    table, region = check_table(simulator, decision)
    if isinstance(decision, Replicate):
        simulator.raw.call(region_calls.replicate, table, region, int(decision.whole))
    else:
        entry = region_calls.move if isinstance(decision, Move) else region_calls.drop
        simulator.raw.call(entry, table, region)


def check_table(simulator: Simulated, decision: TableDecision) -> tuple[int, int]:
    """The table and the region of a decision that can be carried out at this instant; InvalidDecision: it cannot."""
    table, region = _indices(simulator, decision)
    refused = simulator.raw.call(why.refusal_of, *_terms(decision))
    if refused != why.ALLOWED:
        geo, topology, s = simulator.workload.geo, simulator.topology, simulator.raw.record
        assert geo is not None
        what = f"{VERBS[type(decision)]} table {geo.table_names[table]}, region {topology.region_names[region]}"
        room = int(s["storage_bytes"][region] - s["stored_bytes"][region])
        numbers = {"room": room, "size": copied_bytes(simulator, decision), "copies": int(s["n_transfers"])}
        raise InvalidDecision(f"{what}: {WORDS[refused].format(**numbers)}")
    return table, region


def copied_bytes(simulator: Simulated, decision: TableDecision) -> int:
    """What carrying out a decision now would send over links; 0: nothing."""
    return int(simulator.raw.call(why.bytes_of, *_terms(decision)))


def _terms(decision: TableDecision) -> tuple[int, int, int, int]:
    whole = isinstance(decision, Replicate) and decision.whole
    return int(decision.table), int(decision.region), CODES[type(decision)], int(whole)


def _indices(simulator: Simulated, decision: TableDecision) -> tuple[int, int]:
    if simulator.ended:
        raise InvalidDecision(f"{decision!r}: the run has ended; call reset() first")
    if simulator.capacity.regions == 0:
        raise InvalidDecision(f"{decision!r}: this simulation has no tables")
    s = simulator.raw.record
    for value, count, noun in ((decision.table, s["n_tables"], "tables"), (decision.region, s["n_regions"], "regions")):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value < count:
            raise InvalidDecision(f"{decision!r}: there are {noun} 0 to {count - 1}")
    return int(decision.table), int(decision.region)
