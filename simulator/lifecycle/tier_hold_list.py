"""The held jobs that start by themselves when a tier has room, in a list that is quick to search."""

from ..compiler.jit import kernel


@kernel
def join_standing(s, job, tier):
    """Modify `s`: a job that has just been held starts by itself at `tier` or a better one (tier_holds.py)."""
    s.hold_tier[job] = tier
    s.standing[s.n_standing] = job
    s.n_standing += 1


@kernel
def leave_standing(s, job):
    """Modify `s`: a job is held no more; the others stay in their order. Nothing happens if it is not in the list."""
    if s.hold_tier[job] == 0:
        return
    s.hold_tier[job] = 0
    s.hold_over[job] = 0
    place = 0
    while s.standing[place] != job:
        place += 1
    s.n_standing -= 1
    for i in range(place, s.n_standing):
        s.standing[i] = s.standing[i + 1]
