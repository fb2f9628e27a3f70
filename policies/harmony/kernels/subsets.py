"""The best grouping of a few jobs, by dynamic programming over subsets and machines.

Sets of jobs are bits of an integer. `alone[s, m]` is what the jobs s are worth as one group on m machines, `best[s, m]`
as any groups on at most m machines.
"""

import math

from ....simulator.compiler.jit import entry, kernel

SLIGHT = 1e-12  # less is no improvement: of groupings that are equal but for rounding, the first


@kernel
def _lay_alone(comp, comm, model, gains, ram, alone):
    for jobs in range(1, alone.shape[0]):
        for machines in range(1, alone.shape[1]):
            busy = 0.0
            sent = 0.0
            held = 0.0
            longest = 0.0
            gain = 0.0
            for job in range(comp.size):
                if jobs >> job & 1:
                    comp_s = comp[job] / machines
                    busy += comp_s
                    sent += comm[job]
                    held += model[job]
                    longest = max(longest, comp_s + comm[job])
                    gain += gains[job, 0] + machines * gains[job, 1]
            fits = held <= ram * machines
            alone[jobs, machines] = gain / max(longest, busy, sent) if fits else -math.inf


@kernel
def _lay_best(jobs, machines, everyone, alone, best, group, given):
    """Modify `best`, `group`, `given` of these jobs and machines: the first of them leads a group, or is left out."""
    first = jobs & -jobs
    others = jobs ^ first
    value = -math.inf if everyone else best[others, machines]
    some = others
    while True:
        one = some | first
        for share in range(1, machines + 1):
            now = alone[one, share] + best[others ^ some, machines - share]
            if now > value + SLIGHT:
                value = now
                group[jobs, machines] = one
                given[jobs, machines] = share
        if some == 0:
            break
        some = (some - 1) & others
    best[jobs, machines] = value


@entry
def group_exactly(comp, comm, model, gains, ram, everyone, alone, best, group, given):
    """Modify the tables, all (2**jobs, machines + 1): float64 `alone`, `best`; int64 `group`, `given`, zero before.

    `group` and `given` are the group of the first job in the best grouping, and its machines; 0 = it is left out.
    """
    _lay_alone(comp, comm, model, gains, ram, alone)
    for machines in range(best.shape[1]):
        best[0, machines] = 0.0
    for jobs in range(1, best.shape[0]):
        for machines in range(best.shape[1]):
            _lay_best(jobs, machines, everyone, alone, best, group, given)
