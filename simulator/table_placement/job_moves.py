"""All tables of a job move together, unlike in the paper: one of several tables alone seldom gains anything."""

from ..compiler.jit import entry, kernel
from .climb import SLIGHT, change_to, fits_cpu, total_size, weigh
from .cost import move
from .ledger import REGIONS


@kernel
def _send(l, table, begin, end, target, total, were):
    """Modify the ledger, `were`: move tables begin to end - 1; returns the added cost and whether that is allowed."""
    change = 0.0
    fits = True
    for place in range(begin, end):
        one = table[place]
        were[place - begin] = l.home[one]
        if l.home[one] == target:
            continue
        weigh(l, one)
        change += change_to(l, one, target, total)
        if l.stored[target] + l.kib[one] > l.storage[target] or not fits_cpu(l, one, target):
            fits = False
        move(l, one, target)
    return change, fits


@kernel
def _best_region(l, table, begin, end, total, were):
    """Where the tables should go together, the lowest number among equals, -1 if nowhere; `l.gain` has the gain."""
    met = l.met[0]
    best, least = -1, -SLIGHT
    for target in range(l.extent[REGIONS]):
        change, fits = _send(l, table, begin, end, target, total, were)
        if fits and change < least and l.met[0] >= min(l.threshold[0], met):
            best, least = target, change
        for place in range(begin, end):
            move(l, table[place], were[place - begin])
    l.gain[0] = -least if best >= 0 else 0.0
    return best


@entry
def survey_jobs(l, first, table, jobs, were, gains):
    """Modify `gains`: what each of `jobs` gains by the best move of all its tables; `were` has room for them."""
    total = total_size(l)
    for place in range(jobs.shape[0]):
        job = jobs[place]
        _best_region(l, table, first[job], first[job + 1], total, were)
        gains[place] = l.gain[0]


@entry
def follow_jobs(l, first, table, queue, quota, were):
    """Modify the ledger: move each queued job's tables where they gain most, within `quota`, KiB; returns the jobs."""
    total = total_size(l)
    made = 0
    for job in queue:
        begin, end = first[job], first[job + 1]
        best = _best_region(l, table, begin, end, total, were)
        if best < 0:
            continue
        copied = 0
        for place in range(begin, end):
            copied += l.missing[table[place], best] - l.missing[table[place], l.home[table[place]]]
        if copied > quota:
            continue
        _send(l, table, begin, end, best, total, were)
        quota -= copied
        made += 1
    return made
