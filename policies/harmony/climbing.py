"""A local search over groupings: seven kinds of move, each made at once and undone if it is rejected.

The grouping is a list of jobs for each group. A journal has the moved jobs and the changed groups. The worth of a group
is summed anew over its few jobs, as running sums drift.
"""

import math

from ...simulator.compiler.jit import kernel, search
from ...simulator.numerics.random import uniform

# Columns of `jobs`, float64 (n, 6).
COMP, COMM, MODEL = 0, 1, 2  # machine-seconds, seconds, bytes in memory
GAIN, GAIN_A_MACHINE = 3, 4  # worth of one iteration a second, and more for each machine of the group
BYTES = 5  # of input and model in memory
# Columns of `links`, int64 (n, 4).
GROUP, NEXT, PREVIOUS, HOME = 0, 1, 2, 3  # HOME: the group at the start
# Columns of `groups`, int64 (groups, 5).
FIRST, COUNT, MACHINES, MACHINES_AT_START, PLACE = 0, 1, 2, 3, 4  # PLACE: in `live`, -1 = no jobs
# Rows of `lists`, int64 (4, n + groups).
LIVE, SPARE, MOVED, CAME_FROM = 0, 1, 2, 3  # groups with jobs, numbers of groups without; the journal of jobs
# Places of `counts`, int64 (8,).
N_LIVE, N_SPARE, N_MOVED, N_TOUCHED, FREE, FREE_BEFORE, TAKEN = 0, 1, 2, 3, 4, 5, 6  # FREE: machines of no group
# Rows of `touched`, int64 (3, 4), and of `worth`, float64 (2, groups): a group, its machines before.
WHICH, HAD = 0, 1
NOW, BEFORE = 0, 1
# Places of `terms`, float64 (4,).
RAM, MOVE_WORTH = 0, 1  # bytes of a machine
COMFORT, SPILL_S = 2, 3  # bytes of a machine without cost; machine-seconds a cycle of each further byte

DRAWS = 8  # uniforms a step, at most
STREAM = 21


@kernel
def _value(g, jobs, links, groups, terms):
    """Worth of a group, a second; -inf where its models exceed its memory."""
    if groups[g, COUNT] == 0:
        return 0.0
    machines = groups[g, MACHINES]
    busy = 0.0
    sent = 0.0
    held = 0.0
    stored = 0.0
    longest = 0.0
    gain = 0.0
    kept = 0.0
    job = groups[g, FIRST]
    while job >= 0:
        comp_s = jobs[job, COMP] / machines
        busy += comp_s
        sent += jobs[job, COMM]
        held += jobs[job, MODEL]
        stored += jobs[job, BYTES]
        longest = max(longest, comp_s + jobs[job, COMM])
        own = jobs[job, GAIN] + machines * jobs[job, GAIN_A_MACHINE]
        gain += own
        if links[job, HOME] == g:
            kept += own
        job = links[job, NEXT]
    if held > terms[RAM] * machines:
        return -math.inf
    if machines != groups[g, MACHINES_AT_START]:
        kept = 0.0
    gain -= terms[MOVE_WORTH] * (gain - kept)
    spilled_s = max(stored / machines - terms[COMFORT], 0.0) * terms[SPILL_S]
    return gain / max(longest, busy, sent, spilled_s)


@kernel
def _link(job, g, links, groups):
    """Modify the lists: `job`, in no list, becomes the first of group g; -1: of none."""
    links[job, GROUP] = g
    if g < 0:
        return
    first = groups[g, FIRST]
    links[job, PREVIOUS] = -1
    links[job, NEXT] = first
    if first >= 0:
        links[first, PREVIOUS] = job
    groups[g, FIRST] = job
    groups[g, COUNT] += 1


@kernel
def _unlink(job, links, groups):
    """Modify the lists: take `job` off its list."""
    g = links[job, GROUP]
    if g < 0:
        return
    before = links[job, PREVIOUS]
    after = links[job, NEXT]
    if before >= 0:
        links[before, NEXT] = after
    else:
        groups[g, FIRST] = after
    if after >= 0:
        links[after, PREVIOUS] = before
    groups[g, COUNT] -= 1


@kernel
def _touch(g, groups, touched, counts):
    """Modify the journal: group g is about to change."""
    if g < 0:
        return
    for i in range(counts[N_TOUCHED]):
        if touched[WHICH, i] == g:
            return
    touched[WHICH, counts[N_TOUCHED]] = g
    touched[HAD, counts[N_TOUCHED]] = groups[g, MACHINES]
    counts[N_TOUCHED] += 1


@kernel
def _put(job, g, links, groups, lists, touched, counts):
    """Modify grouping and journal: `job` goes to group g, or waits (-1)."""
    _touch(links[job, GROUP], groups, touched, counts)
    _touch(g, groups, touched, counts)
    lists[MOVED, counts[N_MOVED]] = job
    lists[CAME_FROM, counts[N_MOVED]] = links[job, GROUP]
    counts[N_MOVED] += 1
    _unlink(job, links, groups)
    _link(job, g, links, groups)


@kernel
def _give(source, target, machines, groups, touched, counts):
    """Modify grouping and journal: machines go from group to group; -1: free machines."""
    _touch(source, groups, touched, counts)
    _touch(target, groups, touched, counts)
    if source < 0:
        counts[FREE] -= machines
    else:
        groups[source, MACHINES] -= machines
    if target < 0:
        counts[FREE] += machines
    else:
        groups[target, MACHINES] += machines


@kernel
def _leave(g, heir, groups, touched, counts):
    """Modify grouping and journal: the machines of group g, if it has no jobs, go to `heir`."""
    if g >= 0 and groups[g, COUNT] == 0:
        _give(g, heir, groups[g, MACHINES], groups, touched, counts)


@kernel
def _some(share, machines):
    """1 to machines - 1: half of the time 1, else few more likely than many; `share` in (0, 1)."""
    if share < 0.5 or machines < 3:
        return 1
    part = 2.0 * share - 1.0
    return 1 + int(part * part * (machines - 1))


@kernel
def _swap(a, b, links, groups, lists, touched, counts):
    one = links[a, GROUP]
    other = links[b, GROUP]
    if one != other:
        _put(a, other, links, groups, lists, touched, counts)
        _put(b, one, links, groups, lists, touched, counts)


@kernel
def _move(job, g, keeps, links, groups, lists, touched, counts):
    """Move a job to another group, or (-1) let it wait; machines of an emptied group go to the new group, or free."""
    own = links[job, GROUP]
    if own != g:
        _put(job, g, links, groups, lists, touched, counts)
        _leave(own, g if keeps else -1, groups, touched, counts)


@kernel
def _open(job, source, share, links, groups, lists, touched, counts):
    """Let a job open a group with some machines of another, or (-1) with free ones."""
    own = links[job, GROUP]
    if counts[N_SPARE] == 0 or (own >= 0 and groups[own, COUNT] == 1):
        return
    if source >= 0:
        if groups[source, MACHINES] < 2:
            return
        given = _some(share, groups[source, MACHINES])
    else:
        given = _some(share, counts[FREE] + 1)
    new = lists[SPARE, counts[N_SPARE] - 1]
    _put(job, new, links, groups, lists, touched, counts)
    _give(source, new, given, groups, touched, counts)


@kernel
def _split(g, seed, counter, jobs, links, groups, lists, touched, counts):
    """Split a group: each job goes to a new group or not, and machines in proportion to COMP."""
    if groups[g, COUNT] < 2 or groups[g, MACHINES] < 2 or counts[N_SPARE] == 0:
        return
    new = lists[SPARE, counts[N_SPARE] - 1]
    busy = 0.0
    gone = 0.0
    job = groups[g, FIRST]
    drawn = 0
    while job >= 0:
        after = links[job, NEXT]
        busy += jobs[job, COMP]
        if uniform(seed, STREAM + 1 + drawn, counter) < 0.5 and groups[g, COUNT] > 1:
            gone += jobs[job, COMP]
            _put(job, new, links, groups, lists, touched, counts)
        drawn += 1
        job = after
    if counts[N_MOVED] > 0:
        machines = groups[g, MACHINES]
        given = min(max(int(machines * gone / busy + 0.5), 1), machines - 1)
        _give(g, new, given, groups, touched, counts)


@kernel
def _merge(g, other, links, groups, lists, touched, counts):
    """Move all jobs and machines of one group to another."""
    if g == other:
        return
    job = groups[other, FIRST]
    while job >= 0:
        after = links[job, NEXT]
        _put(job, g, links, groups, lists, touched, counts)
        job = after
    _leave(other, g, groups, touched, counts)


@kernel
def _propose(seed, step, jobs, links, groups, lists, touched, counts):
    """Modify grouping and journal: a random move, or none if the draw is impossible."""
    counter = DRAWS * step
    kind = uniform(seed, STREAM, counter)
    job = int(uniform(seed, STREAM, counter + 1) * jobs.shape[0])
    other = uniform(seed, STREAM, counter + 2)
    coin = uniform(seed, STREAM, counter + 3)
    live = counts[N_LIVE]
    g = lists[LIVE, int(other * live)] if live > 0 else -1
    if kind < 0.3:
        _swap(job, int(other * jobs.shape[0]), links, groups, lists, touched, counts)
    elif kind < 0.5:
        if g >= 0:
            _move(job, g, coin < 0.5, links, groups, lists, touched, counts)
    elif kind < 0.6:
        own = links[job, GROUP]
        if own >= 0:
            _put(job, -1, links, groups, lists, touched, counts)
            _leave(own, g if coin < 0.5 and g != own else -1, groups, touched, counts)
    elif kind < 0.8:
        share = uniform(seed, STREAM, counter + 4)
        if g >= 0 and counts[FREE] > 0 and coin < 0.5:
            _give(-1, g, _some(share, counts[FREE] + 1), groups, touched, counts)
        elif live > 1:
            source = lists[LIVE, int(uniform(seed, STREAM, counter + 5) * live)]
            if source != g and groups[source, MACHINES] > 1:
                _give(source, g, _some(share, groups[source, MACHINES]), groups, touched, counts)
    elif kind < 0.9:
        share = uniform(seed, STREAM, counter + 4)
        source = -1 if counts[FREE] > 0 and coin < 0.5 else g
        if source >= 0 or counts[FREE] > 0:
            _open(job, source, share, links, groups, lists, touched, counts)
    elif kind < 0.95:
        if g >= 0:
            _split(g, seed, step, jobs, links, groups, lists, touched, counts)
    elif live > 1:
        _merge(g, lists[LIVE, int(coin * live)], links, groups, lists, touched, counts)


@kernel
def _take_back(links, groups, lists, touched, counts):
    """Modify the grouping: undo the move."""
    for i in range(counts[N_MOVED] - 1, -1, -1):
        job = lists[MOVED, i]
        _unlink(job, links, groups)
        _link(job, lists[CAME_FROM, i], links, groups)
    for i in range(counts[N_TOUCHED]):
        groups[touched[WHICH, i], MACHINES] = touched[HAD, i]
    counts[FREE] = counts[FREE_BEFORE]


@kernel
def _settle(groups, lists, touched, worth, counts):
    """Modify `worth`, `live` and `spare`: accept the move."""
    counts[TAKEN] += 1
    for i in range(counts[N_TOUCHED]):
        g = touched[WHICH, i]
        worth[BEFORE, g] = worth[NOW, g]
        place = groups[g, PLACE]
        if groups[g, COUNT] > 0 and place < 0:
            counts[N_SPARE] -= 1  # a new group takes the last
            groups[g, PLACE] = counts[N_LIVE]
            lists[LIVE, counts[N_LIVE]] = g
            counts[N_LIVE] += 1
        elif groups[g, COUNT] == 0 and place >= 0:
            counts[N_LIVE] -= 1
            last = lists[LIVE, counts[N_LIVE]]
            lists[LIVE, place] = last
            groups[last, PLACE] = place
            groups[g, PLACE] = -1
            lists[SPARE, counts[N_SPARE]] = g
            counts[N_SPARE] += 1


@search
def climb(seed, steps, heat, jobs, links, groups, lists, touched, worth, counts, terms):
    """Modify the grouping by `steps` random moves. Returns the final worth.

    A losing move is accepted with a chance that falls with its loss and with the steps (simulated annealing): a loss of
    `heat` times the mean worth of a group has 1/e at first, and none at the end.
    """
    total = 0.0
    for g in range(groups.shape[0]):
        worth[BEFORE, g] = _value(g, jobs, links, groups, terms)
        total += worth[BEFORE, g]
    for step in range(steps):
        counts[N_MOVED] = 0
        counts[N_TOUCHED] = 0
        counts[FREE_BEFORE] = counts[FREE]
        _propose(seed, step, jobs, links, groups, lists, touched, counts)
        if counts[N_TOUCHED] == 0:
            continue
        change = 0.0
        for i in range(counts[N_TOUCHED]):
            g = touched[WHICH, i]
            worth[NOW, g] = _value(g, jobs, links, groups, terms)
            change += worth[NOW, g] - worth[BEFORE, g]
        left = 1.0 - step / steps
        loss = heat * left * left * total / max(counts[N_LIVE], 1)
        if change > loss * math.log(uniform(seed, STREAM, DRAWS * step + 7)):
            _settle(groups, lists, touched, worth, counts)
            total += change
        else:
            _take_back(links, groups, lists, touched, counts)
    total = 0.0
    for g in range(groups.shape[0]):
        total += worth[BEFORE, g]
    return total
