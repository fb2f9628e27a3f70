"""From one review of the tables of DataPlacement-v0 to the next in one kernel call: passes of MAST, and the clock."""

from ...policies.mast.compiled_passes import play_instant
from ...simulator.base.codes import ASK, DECIDE
from ...simulator.compiler.jit import entry
from ..step import advance


@entry
def simulate(states, row, solvers, round_s):
    """Modify a record and the scheduler's in place: place workloads and advance until tables are due.

    `solvers`: the scheduler's record (mast_record.py); `round_s`: from one pass to the next.
    Returns the reason of the stop; ASK: the scheduler has to decide in Python at this instant.
    """
    s, m = states[row], solvers[0]
    while play_instant(s, m, round_s):
        code = advance(s)
        if code != DECIDE or s.tables_due:
            return code
    return ASK
