"""The held jobs that start by themselves when a tier has room, in a list that is quick to search."""

from ..compiler.jit import kernel


@kernel
def join_tier_holds(s, job, tier):
    """Modify `s`: a job that has just been held starts by itself at `tier` or a better one (tier_holds.py)."""
    s.hold_tier[job] = tier
    s.tier_hold_jobs[s.n_tier_holds] = job
    s.n_tier_holds += 1


@kernel
def leave_tier_holds(s, job):
    """Modify `s`: a job is held no more; the others stay in their order. Nothing happens if it is not in the list."""
    if s.hold_tier[job] == 0:
        return
    s.hold_tier[job] = 0
    s.hold_over[job] = 0
    place = 0
    while s.tier_hold_jobs[place] != job:
        place += 1
    s.n_tier_holds -= 1
    for i in range(place, s.n_tier_holds):
        s.tier_hold_jobs[i] = s.tier_hold_jobs[i + 1]
