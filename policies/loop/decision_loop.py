"""The loop of a run: the next instant, the rule's pass at it, its consequences; over again.

It joins events (simulator/events/clock.py) and the life of jobs (simulator/lifecycle) with the passes of all rules, and
with holds, orders and timers. `Simulator` gets it by engine/rule_loop.py.

Rules are named by import, not handed in as arguments: numba's type of a function argument is its address in this
process, so its code is never found on disk again. A field of the record selects the pass, so a cluster can change rules
in the middle of a run.
"""

import math

from ...simulator.base.codes import ASK, DECIDE, ENDLESS, FINISHED, HORIZON, STALLED
from ...simulator.compiler.jit import kernel
from ...simulator.events.clock import next_event_s, pass_time, process_events
from ...simulator.events.network_clock import play_on
from ...simulator.flows.sessions import let_go
from ...simulator.lifecycle.rerating import rate_running_jobs
from ...simulator.numerics.heap import schedule_event
from ...simulator.numerics.rounding import SAME_INSTANT
from ...simulator.record.feature_groups import has_berths, has_links, has_regions
from ...simulator.regions.table_copies import sweep
from ...simulator.running.endless_runs import AT_ONCE, is_endless
from ...simulator.running.round_times import next_round_s, round_from_s
from ...simulator.sharing.berths import forget_eased
from ..bsbf.restore import restore
from ..bsbf.sjf_bsbf_pass import share_pass
from ..dally import set_rings
from ..gandiva.gandiva import pack, unpack
from ..gandiva.time_slicing import plan_turn
from ..passes.backfill import backfill
from ..passes.order_pass import commit, order_pass
from ..passes.tier_holds import serve_holds
from .offer_pass import make_offers


@kernel
def run(s, max_events):
    """Modify `s`: play the compiled rule to the end. Returns FINISHED, STALLED, HORIZON or ENDLESS.

    After `max_events` more events it stops before the next pass, and returns DECIDE.
    """
    limit = s.events + max_events
    while True:
        code = advance(s)
        if code != DECIDE or s.events >= limit:
            return code
        schedule(s)


@kernel
def schedule(s):
    """Modify `s`: one pass of the rule. Returns the number of jobs started."""
    s.pass_number += 1
    s.n_picked = 0
    if s.delays or s.auctions or s.migrates or s.waits:
        return _offer(s)
    if next_round_s(s) > s.now_s:
        return 0
    if s.shares:
        return _share(s)
    if s.waiting == 0:
        return 0
    if s.backfills:
        return backfill(s, round_from_s(s, s.last_end_s))
    return order_pass(s)


@kernel
def _share(s):
    """Modify `s`: a pass in which jobs share GPUs; then, with `restore`, jobs that partners have left grow."""
    started = share_pass(s) if s.waiting > 0 else 0
    if s.restores:
        restore(s)
    return started


@kernel
def _offer(s):
    """Modify `s`: passes in which every job decides for itself, repeated while a job moves."""
    if s.auctions:
        return make_offers(s)
    if next_round_s(s) > s.now_s:
        return 0
    started = make_offers(s)
    while s.moved:
        s.pass_number += 1
        s.n_picked = 0
        started += make_offers(s)
    if s.packs:
        unpack(s)
        started += pack(s)
    return started


@kernel
def advance(s):
    """Modify `s`: close this instant and run to the next decision point. Returns why it stopped (codes.DECIDE, ...).

    A decision is due when something happened and jobs wait, or could move; with rounds, at the next round; with
    auctions, when one is held. Where jobs may be resized, it is due while there are any. It also stops, with ASK, where
    rates must be known before time passes, and then goes on from there.
    """
    if has_berths(s) and s.asking:
        s.asking = 0
    else:
        _close_instant(s)
    while s.done < s.n_jobs:
        if has_links(s):
            let_go(s)
        if has_berths(s):
            if rate_running_jobs(s) > 0 or (has_links(s) and s.net_changed):
                s.asking = 1
                return ASK
            _plan_round(s)
        if s.events >= s.endless_check_at and is_endless(s):
            return ENDLESS
        time_s = next_s(s)
        if has_links(s):
            time_s = play_on(s, time_s)
        if time_s > s.horizon_s:
            pass_time(s, s.horizon_s)
            return HORIZON
        if has_links(s) and time_s == math.inf and s.running > 0:
            return ENDLESS
        if time_s == math.inf or (has_regions(s) and _only_tables_to_come(s)):
            return STALLED
        pass_time(s, time_s)
        auctioned = process_events(s)
        _catch_up(s)
        if has_regions(s) and s.sweep:
            sweep(s)
        if auctioned == s.auctions:
            serve_holds(s)
        if has_berths(s):
            rate_running_jobs(s)
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
def next_s(s):
    """Modify `s`: schedule the timers of waiting jobs. Returns the next event without decisions; infinity: none."""
    if s.n_untimed > 0:
        set_rings(s)
    return next_event_s(s)


@kernel
def _close_instant(s):
    """Modify `s`: a decision point is over. In regions the slow path has looked, and unread copies may go."""
    serve_holds(s)
    commit(s, s.offers)
    if has_berths(s):
        forget_eased(s)
    s.log_count = 0
    s.log_gpus = 0
    if s.slicing_s > 0.0:
        plan_turn(s)
    if has_regions(s):
        s.tables_due = 0
        if s.sweep:
            sweep(s)


@kernel
def _catch_up(s):
    """Modify `s`: go on to events later by rounding only; not at auctions, with their own instants, nor on links."""
    if s.auctions or has_links(s):
        return
    until_s = min(s.now_s * (1.0 + SAME_INSTANT), s.horizon_s)
    most = s.events + AT_ONCE
    while next_s(s) <= until_s and s.events < most:
        pass_time(s, next_event_s(s))
        process_events(s)


@kernel
def _may_decide(s):
    """True if a job waits, could move or be resized, or runs on links, or tables may move."""
    if has_regions(s) and s.tables_due:
        return True
    if s.waiting > 0 or (s.migrates and s.spread > 0) or (s.packs and s.shared_gpus > 0 and s.free_gpus > 0):
        return True
    if has_links(s) and s.n_links > 0 and s.running > 0:
        return True
    if has_berths(s) and s.n_eased > 0 and s.running > 0 and (s.restores or next_round_s(s) <= s.now_s):
        return True  # a view that only looks causes no round
    return has_berths(s) and s.elastic and s.running > 0


@kernel
def _only_tables_to_come(s):
    """True if only reviews of the slow path are to come, and no decision was made since the last one."""
    if s.event_count != 1 or s.event_item[0] != s.tables_event or s.next_arrival < s.n_jobs:
        return False
    return s.waiting + s.held > 0 and s.decisions == s.tables_seen


@kernel
def _plan_round(s):
    """Modify `s`: where jobs may be resized, every round with jobs is an event."""
    if s.elastic and s.round_s > 0.0 and s.event_position[s.round_event] < 0 and s.waiting + s.running > 0:
        time_s = next_round_s(s)
        schedule_event(s, s.round_event, time_s if time_s > s.now_s else time_s + s.round_s)
