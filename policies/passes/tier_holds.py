"""Holds that wait for a tier: delay scheduling as a decision about one job.

Within its time a job that is held for a tier (MACHINE, RACK, NETWORK) starts by itself as soon as that tier, or a
better one, has room: Algorithm 1 of paper dally, with a timer that the decision sets. Holds are served after the events
of an instant, before any decision, and at the end of the instant (with rounds or auctions only then): one after the
other in the order of the rule, each at the best tier with room, by the rule's placer, until none finds any. When its
time is over the job is tried a last time with the others, unless that is between rounds; then it is back in the queue.
"""

from ...simulator.base.codes import FIRST, TIER
from ...simulator.base.tiers import MACHINE
from ...simulator.compiler.jit import kernel
from ...simulator.lifecycle.lifecycle import hold, unhold
from ...simulator.lifecycle.tier_hold_list import join_tier_holds
from ...simulator.numerics.heap import schedule_event
from ...simulator.rules.orders import comes_before
from ...simulator.running.gpu_allocation import tier_of_gang
from ...simulator.running.placers import find_at, find_gang
from ...simulator.running.round_times import next_round_s
from .starts import start


@kernel
def hold_for_tier(s, job, until_s, tier):
    """Modify `s`: `jobs.hold`; until then the job starts by itself at `tier` or a better one."""
    hold(s, job, until_s)
    join_tier_holds(s, job, tier)


@kernel
def serve_holds(s):
    """Modify `s`: start held jobs whose tier has room; then queue those whose time is over."""
    if s.n_tier_holds == 0:
        return
    if s.auctions == 0 and next_round_s(s) > s.now_s:
        schedule_event(s, s.round_event, next_round_s(s))
        return
    if _any_job_finds(s):  # else the order does not matter
        _sort_tier_holds(s)
        while _serve_in_order(s) > 0:  # earlier starts may change where a gang lies: see placer `count`
            pass
    if s.holds_over:
        s.holds_over = 0
        for i in range(s.n_tier_holds - 1, -1, -1):
            if s.hold_over[s.tier_hold_jobs[i]]:
                unhold(s, s.tier_hold_jobs[i])


@kernel
def _any_job_finds(s):
    """Modify `s.gang`: True if a held job finds its tier, or a better one."""
    for i in range(s.n_tier_holds):
        if _finds_tier(s, s.tier_hold_jobs[i]):
            return True
    return False


@kernel
def _serve_in_order(s):
    """Modify `s`: serve each job once. Returns the number started."""
    started = 0
    i = 0
    while i < s.n_tier_holds and s.free_gpus > 0:
        job = s.tier_hold_jobs[i]
        if _finds_tier(s, job):
            start(s, job)  # the next job is now in its place
            started += 1
        else:
            i += 1
    return started


@kernel
def _finds_tier(s, job):
    """Modify `s.gang`: free GPUs for a held job at the best tier with room, its tier or better; False if none."""
    if s.gpus[job] > s.free_gpus:
        return False
    worst = s.hold_tier[job]
    if s.placer != TIER and s.placer != FIRST:
        return find_gang(s, job, s.placer) and tier_of_gang(s) <= worst
    for tier in range(MACHINE, worst + 1):
        if find_at(s, s.gpus[job], tier, s.placer):
            return True
    return False


@kernel
def _sort_tier_holds(s):
    """Modify `s.tier_hold_jobs`: insertion sort into the order of the rule, which it nearly has."""
    for i in range(1, s.n_tier_holds):
        job = s.tier_hold_jobs[i]
        j = i - 1
        while j >= 0 and comes_before(s, job, s.tier_hold_jobs[j]):
            s.tier_hold_jobs[j + 1] = s.tier_hold_jobs[j]
            j -= 1
        s.tier_hold_jobs[j + 1] = job
