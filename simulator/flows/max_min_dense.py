"""Max-min filling of a small network by a table of flows: a row, or seat, a job, and a column a link.

The rates are those of max_min_sparse.py, with whole rows in place of lists; sets of jobs are the bits of a number. The
table has only links that can bind, and their jobs. It is made when rates are due after a job has come or gone.
"""

import math

from ..compiler.jit import kernel
from ..numerics.instructions import floor, trailing_zeros
from ..numerics.rounding import GRAIN

NEVER = 1 << 55  # bytes per second: more than the whole ones that a float64 has
FEW = 2.5  # links that can bind, a job: what follows a change is faster, since few jobs are joined
PADDED = 16  # columns are worked on so many at once


@kernel
def has_table(s):
    """Modify `s`: True if the table has all jobs and binding links; False if one came or went since, and it is made."""
    if s.is_laid:
        return s.fits_table
    s.is_laid = 1
    s.fits_table = _fill_table(s)
    return 0


@kernel
def _fill_table(s):
    """Modify `s`: the table; 0 and no job has a seat if it is too small, or jobs are on few links: lists are faster."""
    _clear(s)
    if s.n_binding > s.column_link.size:
        return 0
    if _take_seats(s) <= FEW * s.n_seats:
        _clear(s)
        return 0
    columns = s.n_columns
    s.n_columns += -columns % PADDED
    for column in range(s.n_columns):
        if column >= columns:
            s.column_link[column] = 0
        _clear_column(s, column)
    for column in range(columns):
        _write_column(s, column)
    return 1


@kernel
def _clear(s):
    for column in range(s.n_columns):
        s.column_of[s.column_link[column]] = -1
    for seat in range(s.n_seats):
        s.seat_of[s.seat_job[seat]] = -1
    s.n_columns = s.n_seats = s.seats_sending = 0


@kernel
def _take_seats(s):
    """Modify `s`: columns for links that can bind, seats for their jobs; returns how many uses, -1: seats are short."""
    uses = 0
    for link in range(s.n_links):
        if not s.is_slack[link]:
            s.column_of[link] = s.n_columns
            s.column_link[s.n_columns] = link
            s.n_columns += 1
            uses += s.link_users[link]
            use = s.link_first[link]
            while use >= 0:
                job = s.use_job[use]
                if s.seat_of[job] < 0:
                    if s.n_seats == s.seat_job.size - 1:
                        return -1
                    s.seat_of[job] = s.n_seats
                    s.seat_job[s.n_seats] = job
                    s.seats_sending |= s.is_sending[job] << s.n_seats
                    s.n_seats += 1
                use = s.use_next[use]
    return uses


@kernel
def _clear_column(s, column):
    s.column_capacity[column] = s.link_capacity[s.column_link[column]]
    s.column_overload_capacity[column] = s.link_overload_capacity[s.column_link[column]]
    s.column_sending[column] = s.column_offered[column] = 0.0
    s.column_users[column] = 0
    for seat in range(s.n_seats):
        s.table_flows[seat, column] = 0.0
    s.table_flows[s.seat_job.size - 1, column] = 0.0


@kernel
def _write_column(s, column):
    link = s.column_link[column]
    s.column_offered[column] = s.link_offered[link]
    use = s.link_first[link]
    while use >= 0:
        job = s.use_job[use]
        s.column_users[column] |= 1 << s.seat_of[job]
        s.table_flows[s.seat_of[job], column] = s.use_flows[use]
        if s.is_sending[job]:
            s.column_sending[column] += s.use_flows[use]
        use = s.use_next[use]


@kernel
def note_sending(s, job, sends):
    """Modify `s`: a job begins to send, `sends` = 1.0, or stops, -1.0."""
    seat, columns = s.seat_of[job], s.n_columns
    if seat < 0:
        return
    s.seats_sending ^= 1 << seat
    offered = sends * s.send_top[job]
    for column in range(columns):
        flows = float(s.table_flows[seat, column])
        s.column_sending[column] += sends * flows
        s.column_offered[column] += offered * flows


@kernel
def fill_table(s):
    """Modify `s`: `fill_rate` of the component of the dirty links, and its jobs; returns how many these are."""
    component = _component(s)
    rising, least_top = component, _least_top(s, component)
    level, full = _lower(s, 0, 0.0, -1)
    while rising != 0:
        if least_top <= level:
            rate, stopping, at = least_top, _at_top(s, rising, least_top), -1
            rising &= ~stopping
            least_top = _least_top(s, rising)
        else:
            rate, stopping, at = max(1.0, level), s.column_users[full] & rising, full
            rising &= ~stopping
            s.column_rate[full] = rate
        level, full = _lower(s, stopping, rate, at)
    jobs = 0
    while component != 0:
        seat = trailing_zeros(component)
        component &= component - 1
        job, at = s.seat_job[seat], s.seat_stop[seat]
        s.fill_job[jobs] = job
        if at >= 0:
            s.fill_rate[job] = s.column_rate[at]
            s.stop_link[job] = s.column_link[at]
            s.stop_flows[job] = s.table_flows[seat, at]
        else:
            s.fill_rate[job] = s.send_top[job]
        jobs += 1
    return jobs


@kernel
def _component(s):
    """Modify `s`: the sending seats joined to a dirty link; none is dirty then. Columns that cannot fill: no flows."""
    found = 0
    for i in range(s.n_dirty):
        s.is_dirty[s.dirty_link[i]] = 0
        found |= s.column_users[s.column_of[s.dirty_link[i]]]
    s.n_dirty = 0
    sending, columns = s.seats_sending, s.n_columns
    found &= sending
    for column in range(columns):
        hot = s.column_offered[column] > s.column_capacity[column]
        s.column_joined[column] = s.column_users[column] & sending if hot else 0
    before = 0
    while found != before:
        before = found
        for column in range(columns):
            joined = s.column_joined[column]
            found |= joined if joined & before != 0 else 0
    for column in range(columns):
        s.column_flows[column] = s.column_sending[column] if s.column_joined[column] & found != 0 else 0.0
        s.column_room[column] = s.column_overload_capacity[column]
    return found


@kernel
def _least_top(s, seats):
    least = math.inf
    while seats != 0:
        least = min(least, s.send_top[s.seat_job[trailing_zeros(seats)]])
        seats &= seats - 1
    return least


@kernel
def _at_top(s, rising, top):
    found, left = 0, rising
    while left != 0:
        seat = trailing_zeros(left)
        left &= left - 1
        found |= (1 << seat) if s.send_top[s.seat_job[seat]] == top else 0
    return found


@kernel
def _lower(s, stopping, rate, at):
    """Modify `s`: some seats stop at a column or their top (-1); returns the next level of a full link and its column.

    Four rows are taken at once; missing ones are the last of all, which has no flows.
    """
    columns, step = s.n_columns, s.column_link.size
    last = 1 << (s.seat_job.size - 1)
    while True:
        a = trailing_zeros(stopping | last)
        stopping &= stopping - 1
        b = trailing_zeros(stopping | last)
        stopping &= stopping - 1
        c = trailing_zeros(stopping | last)
        stopping &= stopping - 1
        d = trailing_zeros(stopping | last)
        stopping &= stopping - 1
        s.seat_stop[a] = s.seat_stop[b] = s.seat_stop[c] = s.seat_stop[d] = at
        least = NEVER * step
        for column in range(columns):
            stopped = s.table_flows[a, column] + s.table_flows[b, column]
            stopped += s.table_flows[c, column] + s.table_flows[d, column]
            flows = s.column_flows[column] - float(stopped)
            room = s.column_room[column] - rate * float(stopped)
            s.column_flows[column] = flows
            s.column_room[column] = room
            height = floor((room if flows > 0.0 else NEVER * GRAIN) / max(flows, GRAIN))
            least = min(least, int(height) * step + column)
        if stopping == 0:
            return float(least // step), least % step
