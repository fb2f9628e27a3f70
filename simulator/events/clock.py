"""The clock: the next event, and its effects: jobs arrive and end, machines fail, leases end. Passes come above it."""

import math

from ..base.codes import HELD, LOGGED, WAITING
from ..compiler.jit import kernel
from ..flows.cable_failures import cable_event
from ..lifecycle import lifecycle
from ..lifecycle.fault_groups import outage_event
from ..lifecycle.outages import machine_event, region_event
from ..lifecycle.rerating import end_phase
from ..numerics.heap import schedule_event
from ..record.feature_groups import has_berths, has_links, has_regions
from ..regions.region_starts import catch_up, pass_region_time
from ..regions.wan import end_transfers
from ..running.auctions import call_auction, open_auction
from ..running.deadlines import pass_deadlines
from ..running.endless_runs import AT_ONCE, renew
from ..running.round_times import next_round_s


@kernel
def next_event_s(s):
    """Time of the next event; infinity if none is left to come."""
    time_s = s.event_key[0] if s.event_count > 0 else math.inf
    if s.next_arrival < s.n_jobs:
        time_s = min(time_s, s.arrival_s[s.next_arrival])
    return time_s


@kernel
def pass_time(s, time_s):
    """Modify `s`: the clock goes on to `time_s`; nothing happens on the way."""
    elapsed = time_s - s.now_s
    if elapsed > 0.0:
        active = s.waiting + s.held + s.running
        s.active_integral += elapsed * active
        s.slowdown_integral += elapsed * s.slowdown_rate
        s.fragmented_integral += elapsed * s.fragmented_gpus
        s.down_integral += elapsed * s.down_gpus
        if has_berths(s):
            s.busy_integral += elapsed * s.busy_gpus
            s.shared_integral += elapsed * s.shared_gpus
        if has_links(s):
            s.averaged_bytes += elapsed * s.averaged_rate
        if has_regions(s):
            pass_region_time(s, elapsed)
        pass_deadlines(s, time_s)
        s.now_s = time_s


@kernel
def process_events(s):
    """Modify `s`: everything that happens at `now_s`, in the order arrivals, then the heap's (time, id).

    An auction comes last and returns 1: a pass is made before the next one.
    """
    now = s.now_s
    most = s.events + AT_ONCE
    freed = False
    auctioned = 0
    while s.next_arrival < s.n_jobs and s.arrival_s[s.next_arrival] <= now:
        lifecycle.arrive(s, s.next_arrival)
        s.next_arrival += 1
        s.events += 1
        renew(s)
        if s.auctions and s.free_gpus > 0:
            call_auction(s, now)
    while s.event_count > 0 and s.event_key[0] <= now and s.events < most:
        item = s.event_item[0]
        s.events += 1
        if item < s.first_machine_event:
            freed |= _job_event(s, item)
        elif item == s.round_event:
            schedule_event(s, item, math.inf)
        elif item == s.auction_event:
            open_auction(s)
            auctioned = 1
            break
        elif has_regions(s) and item >= s.first_region_event:
            freed |= _region_event(s, item)
        elif has_links(s) and item >= s.first_cable_event:
            cable_event(s, item - s.first_cable_event)
        elif item > s.auction_event:
            freed |= outage_event(s, item)
        else:
            freed |= machine_event(s, item - s.first_machine_event)
    if freed:
        _offer_freed(s)
    return auctioned


@kernel
def _region_event(s, item):
    """Modify `s`: a region, copies or the slow path have an event; True if jobs may run now."""
    if item == s.tables_event:
        s.tables_due = 1
        s.tables_seen = s.decisions
        schedule_event(s, item, s.now_s + s.tables_every_s)
        return False
    if item > s.tables_event:
        catch_up(s)
        return True
    if item >= s.first_link_event:
        end_transfers(s, item - s.first_link_event)
        return True
    return region_event(s, item - s.first_region_event)


@kernel
def _job_event(s, job):
    """Modify `s`: the job ends, is demoted, woken, reaches the end of its lease or hold; True if GPUs were freed."""
    if s.status[job] == HELD:
        _end_hold(s, job)
        if s.auctions:
            call_auction(s, s.now_s)
        return False
    if s.status[job] == WAITING:
        if s.delays:
            schedule_event(s, job, math.inf)
            lifecycle.ask_to_be_woken(s, job)
        elif s.order == LOGGED:
            schedule_event(s, job, math.inf)
        else:
            lifecycle.demote(s, job)
        return False
    if s.auctions:
        _end_grant(s, job)
        return True
    if lifecycle.own_end_s(s, job) <= s.now_s:
        lifecycle.finish(s, job)
        return True
    if has_berths(s) and s.phase_s[job] <= s.now_s:
        end_phase(s, job)
    if s.check_s[job] <= s.now_s:
        lifecycle.demote(s, job)
    if s.lease_end_s[job] <= s.now_s:
        # Its end stays known, but causes no further event until another lease begins on commit.
        lifecycle.join(s, job)
        s.leases_over = 1
        next_s = min(lifecycle.own_end_s(s, job), s.check_s[job])
        if has_berths(s):
            next_s = min(next_s, s.phase_s[job])
        schedule_event(s, job, next_s)
    return False


@kernel
def _end_hold(s, job):
    if s.hold_tier[job] > 0 and (s.auctions or next_round_s(s) <= s.now_s):
        _let_end(s, job)
        schedule_event(s, job, math.inf)
    else:
        lifecycle.unhold(s, job)


@kernel
def _offer_freed(s):
    """Modify `s`: events have freed GPUs: holds until then, of earlier instants, are over; those for a tier soon."""
    for i in range(s.n_offered - 1, -1, -1):
        job = s.offered[i]
        if s.held_since_s[job] < s.now_s:
            if s.hold_tier[job] > 0:
                _let_end(s, job)
            else:
                lifecycle.unhold(s, job)


@kernel
def _let_end(s, job):
    s.hold_over[job] = 1
    s.holds_over = 1


@kernel
def _end_grant(s, job):
    """Modify `s`: the job ends, moves or is released; its GPUs are free at once, and auctioned when cleaned up."""
    pause_s = s.grant_pause_s[job]
    if s.grant_left[job] <= 0.0:
        lifecycle.finish(s, job)
    elif s.next_first_gpu[job] >= 0:
        lifecycle.move_to_reserved(s, job)
        pause_s = s.release_s * s.gpus[job]
    else:
        lifecycle.release(s, job)
    call_auction(s, s.now_s + pause_s)
