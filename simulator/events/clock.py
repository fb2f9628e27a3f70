"""The clock: jump to the next event, let it happen, stop where a decision is due."""

import math

from ..base.codes import ASK, DECIDE, ENDLESS, FINISHED, HELD, HORIZON, STALLED, WAITING
from ..compiler.jit import kernel
from ..flows.link_use import has_links
from ..flows.sessions import let_go
from ..lifecycle import lifecycle
from ..lifecycle.outages import machine_event, region_event
from ..lifecycle.rerating import end_phase, settle_rates
from ..numerics.event_queue import schedule_event
from ..numerics.rounding import SAME_INSTANT
from ..passes.order_pass import commit, next_round_s, schedule
from ..passes.tier_holds import end_hold, offer_freed, serve_holds
from ..passes.time_slicing import plan_turn
from ..regions.region_starts import has_regions, pass_region_time
from ..regions.table_copies import sweep
from ..regions.wan import end_transfers
from ..rules.dally_timers import next_ring_s
from ..running.auctions import call_auction, open_auction
from ..running.deadlines import pass_deadlines
from ..running.patience import AT_ONCE, is_endless, renew
from ..sharing.berths import forget_eased, has_berths
from .network_clock import play_on


@kernel
def next_event_s(s):
    """Time of the next event; infinity if none is left to come."""
    time_s = s.event_key[0] if s.event_count > 0 else math.inf
    if s.next_arrival < s.n_jobs:
        time_s = min(time_s, s.arrival_s[s.next_arrival])
    return time_s


@kernel
def advance(s):
    """Modify `s`: close this instant and run to the next decision point; returns why it stopped (codes.DECIDE, ...).

    A decision is due when something happened and jobs wait, or could move; with scheduling rounds, at the first round
    from then on; with auctions, when one is held. Where jobs may be resized, it is due whenever one is there.

    It also stops, with ASK, where rates must be known before time passes; once they are set it goes on from there.
    """
    if has_berths(s) and s.asking:
        s.asking = 0
    else:
        serve_holds(s)
        commit(s, s.offers)
        if has_berths(s):
            forget_eased(s)
        s.log_count = 0
        s.log_gpus = 0
        if s.slicing_s > 0.0:
            plan_turn(s)
        if has_regions(s):
            _close_instant(s)
    while s.done < s.n_jobs:
        if has_links(s):
            let_go(s)
        if has_berths(s):
            if settle_rates(s) > 0 or (has_links(s) and s.net_changed):
                s.asking = 1
                return ASK
            _plan_round(s)
        if s.events >= s.patience and is_endless(s):
            return ENDLESS
        time_s = next_event_s(s)
        if has_links(s):
            time_s = play_on(s, time_s)
        if time_s > s.horizon_s:
            _pass_time(s, s.horizon_s)
            return HORIZON
        if time_s == math.inf or (has_regions(s) and _only_tables_to_come(s)):
            return STALLED
        _pass_time(s, time_s)
        auctioned = _all_events_now(s)
        _catch_up(s)
        if has_regions(s) and s.sweep:
            sweep(s)
        if auctioned == s.auctions:
            serve_holds(s)
        if has_berths(s):
            settle_rates(s)
        if not _may_decide(s) or auctioned != s.auctions:
            commit(s, 0)
        elif s.auctions or next_round_s(s) <= s.now_s:
            s.instants += 1
            s.offers = s.waiting > 0
            return DECIDE
        else:
            schedule_event(s, s.round_event, next_round_s(s))
    return FINISHED


@kernel
def _may_decide(s):
    """True if a job waits, or runs and could move or be resized, or shares links with others, or tables may move."""
    if has_regions(s) and s.tables_due:
        return True
    if s.waiting > 0 or (s.migrates and s.spread > 0) or (s.packs and s.shared_gpus > 0 and s.free_gpus > 0):
        return True
    if has_links(s) and s.n_links > 0 and s.running > 0:
        return True
    if has_berths(s) and s.n_eased > 0 and s.running > 0 and (s.restores or next_round_s(s) <= s.now_s):
        return True  # no round is made for somebody who only looks
    return has_berths(s) and s.elastic and s.running > 0


@kernel
def _close_instant(s):
    """Modify `s`: a decision point is over: the slow path has looked, and copies that nobody reads any more may go."""
    s.tables_due = 0
    if s.sweep:
        sweep(s)


@kernel
def _only_tables_to_come(s):
    """True if nothing is to come but looks of the slow path, and at the last one and since nobody decided anything."""
    if s.event_count != 1 or s.event_item[0] != s.tables_event or s.next_arrival < s.n_jobs:
        return False
    return s.waiting + s.held > 0 and s.decisions == s.tables_seen


@kernel
def _plan_round(s):
    """Modify `s`: where jobs may be resized, every round while one is there is an event."""
    if s.elastic and s.round_s > 0.0 and s.event_of[s.round_event] < 0 and s.waiting + s.running > 0:
        time_s = next_round_s(s)
        schedule_event(s, s.round_event, time_s if time_s > s.now_s else time_s + s.round_s)


@kernel
def run(s, max_events):
    """Modify `s`: play the compiled rule to the end; returns FINISHED, STALLED, HORIZON or ENDLESS.

    After `max_events` more events it stops before the next pass, and returns DECIDE.
    """
    limit = s.events + max_events
    while True:
        code = advance(s)
        if code != DECIDE or s.events >= limit:
            return code
        schedule(s)


@kernel
def _pass_time(s, time_s):
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
def _all_events_now(s):
    """Modify `s`: everything that happens at `now_s`, in the order arrivals, then the heap's (time, id).

    An auction comes last, and returns 1: a pass is made before the next one.
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
        else:
            freed |= machine_event(s, item - s.first_machine_event)
    if freed:
        offer_freed(s)
    return auctioned


@kernel
def _catch_up(s):
    """Modify `s`: events that come later by rounding only are of this instant: the clock goes on to them.

    Not at auctions, whose instants are those of the authors' simulator, nor on links, where time is the network's.
    """
    if s.auctions or has_links(s):
        return
    until_s = min(s.now_s * (1.0 + SAME_INSTANT), s.horizon_s)
    most = s.events + AT_ONCE
    while next_event_s(s) <= until_s and s.events < most:
        _pass_time(s, next_event_s(s))
        _all_events_now(s)


@kernel
def _region_event(s, item):
    """Modify `s`: a region fails or is up again, copies are complete, or tables are due; True if jobs may run now."""
    if item == s.tables_event:
        s.tables_due = 1
        s.tables_seen = s.decisions
        schedule_event(s, item, s.now_s + s.tables_every_s)
        return False
    if item >= s.first_link_event:
        end_transfers(s, item - s.first_link_event)
        return True
    return region_event(s, item - s.first_region_event)


@kernel
def _job_event(s, job):
    """Modify `s`: the job ends, is demoted, reaches the end of its lease or of its hold; True if GPUs were freed."""
    if s.status[job] == HELD:
        end_hold(s, job)
        if s.auctions:
            call_auction(s, s.now_s)
        return False
    if s.status[job] == WAITING:
        if s.delays:
            schedule_event(s, job, next_ring_s(s, job))
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
