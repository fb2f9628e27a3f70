"""From one look at the tables of DataPlacement-v0 to the next in one kernel call: passes of MAST, and the clock."""

from __future__ import annotations

from ...policies.mast.compiled_passes import play_instant
from ...simulator.base.codes import ASK, DECIDE
from ...simulator.compiler.jit import entry
from ..step import advance


@entry
def simulate(states, row, r, g, q, p, round_s):
    """Modify a record and the scheduler's arrays in place: until tables are due, workloads are placed and time passes.

    Args:
        states: records (n,); row: which.
        r, g, q, p: the regions, the ranking, the queue and who is placed, of the scheduler.
        round_s: from one pass to the next.

    Returns:
        Why the run stopped; ASK: the scheduler has to be asked in Python at this instant.
    """
    s = states[row]
    while play_instant(s, r, g, q, p, round_s):
        code = advance(s)
        if code != DECIDE or s.tables_due:
            return code
    return ASK
