"""Durations of copies of tables where they are drawn, and their statistics (paper mast, Sec. 3.4).

Published: "Tetris can set a soft deadline for a migration operation, and the migration service allocates the necessary
bandwidth accordingly"; transfer times of 2.1, 3.7 and 4.9 hours at P50, P90 and P99, which hardly go with the size. So
a copy is given a time, and asks the bytes per second that meet it; where links and caps have less, it takes longer.

Ours: one distribution for all copies; between the published points the share of copies grows evenly with time, from 0.1
to 5.5 hours; time and size are drawn apart; copies on demand get half the time.
"""

from ..compiler.jit import entry, kernel
from ..numerics.instructions import bits_of
from ..numerics.random import seed_of, uniform

ON_DEMAND, HIGH, BULK = range(3)  # for workloads that wait for data; for jobs of high priority; the others
KINDS = ("on demand", "high priority", "bulk")
SHARES = (0.0, 0.5, 0.9, 0.99, 1.0)
HOURS = (0.1, 2.1, 3.7, 4.9, 5.5)
ON_DEMAND_SHARE = 0.5  # of the time that other copies get
COPIES = -(1 << 25)  # random numbers of tables: streams from here on down; regions have those above (outages.py)
MANTISSA = 48  # bits of a number beyond those that tell its bin
MOST_TARGETS = 64  # of one decision
BINS = 16  # of how long copies took, in every power of two; the first begins at one second
FIRST_BIN = 1023 * BINS


@entry
def time_at(share):
    """The published time that `share` of the copies do not exceed, seconds."""
    place = 1
    while place < 4 and share > SHARES[place]:
        place += 1
    part = (share - SHARES[place - 1]) / (SHARES[place] - SHARES[place - 1])
    return 3600.0 * (HOURS[place - 1] + part * (HOURS[place] - HOURS[place - 1]))


@kernel
def drawn_s(s, table, region, kind):
    """Seconds that a copy gets: a function of the seed, the table, the target and the number of the decision."""
    time_s = time_at(uniform(seed_of(s), COPIES - table, s.decisions * MOST_TARGETS + region))
    return time_s * ON_DEMAND_SHARE if kind == ON_DEMAND else time_s


@kernel
def kind_of(s, table):
    """What a copy of a table that is decided now is for."""
    use = s.table_reader[table]
    while use >= 0:
        if s.lacks_data[s.reader_job[use]] == 1:
            return ON_DEMAND
        use = s.reader_next[use]
    return HIGH if s.table_high[table] else BULK


@kernel
def note_time(s, kind, time_s):
    """Modify `s`: a copy is complete, so long after it was decided."""
    place = (bits_of(max(time_s, 1.0)) >> MANTISSA) - FIRST_BIN
    s.copy_times[kind, min(place, s.copy_times.shape[1] - 1)] += 1
