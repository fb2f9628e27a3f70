"""What happens to one job: it enters the queue, takes GPUs, loses them, moves, ends."""

import math

from ..base.codes import AFFINITY, DONE, FREE, HELD, HOLD, LOGGED, MIGRATE, PREEMPT, RUNNING, START, WAITING, WORD
from ..compiler.jit import kernel
from ..flows.sessions import computing_s, note_local, plays
from ..numerics import heap
from ..numerics.bitset import exclude, include
from ..numerics.heap import schedule_event
from ..record.feature_groups import has_berths, has_links, has_regions
from ..regions.region_starts import (
    close_left,
    count_late,
    end_in_region,
    enter_region,
    leave_region,
    note_arrival,
    set_up,
)
from ..regions.wan import urge
from ..rules.orders import (
    arrival_key,
    demoted_key,
    demotion_is_due,
    has_levels,
    next_check_s,
    restore_cost_s,
    return_key,
)
from ..running import rates
from ..running.decision_log import log, note
from ..running.endless_runs import renew
from ..running.gpu_allocation import gang_was_held_by, is_spread, note_change, occupy, sign_gpus, vacate, vacate_gang
from ..running.grants import book_grant, overrun_s, plan_grant
from ..running.iteration_time import iteration_time_s
from ..running.placers import dedicate
from ..sharing.berths import largest_sub_batch, rest_sub_batch
from ..sharing.exclusive_gpus import enlist
from .tier_hold_list import leave_tier_holds


@kernel
def enter_queue(s, job, key):
    """Modify `s`: the job stands in the queue of its demand class, at `key`."""
    demand = s.demand[job]
    s.order_key[job] = key
    count = s.class_count[demand]
    heap.push(s.queue_key, s.queue_item, s.queue_place, s.class_base[demand], count, key, job)
    s.class_count[demand] = count + 1


@kernel
def leave_queue(s, job):
    """Modify `s`: the job stands in the queue of its demand class no more."""
    demand = s.demand[job]
    heap.remove(s.queue_key, s.queue_item, s.queue_place, s.class_base[demand], s.class_count[demand], job)
    s.class_count[demand] -= 1


@kernel
def enqueue(s, job, key):
    """Modify `s`: the job waits from now on, in the queue and in the window."""
    enter_queue(s, job, key)
    rank = s.rank[job]
    include(s.window_low, s.window_mid, s.window_top, rank)
    s.status[job] = WAITING
    s.waiting += 1
    if s.delays and s.auctions == 0:
        ask_to_be_woken(s, job)
    if s.order == LOGGED and key > s.now_s:
        schedule_event(s, job, key)


@kernel
def ask_to_be_woken(s, job):
    """Modify `s`: the rule wakes waiting jobs, and has to say when this one; it does before the clock goes on."""
    if s.is_untimed[job] == 0:
        s.is_untimed[job] = 1
        s.untimed[s.n_untimed] = job
        s.n_untimed += 1


@kernel
def dequeue(s, job):
    """Modify `s`: the job waits no more; a pass may have taken it off the queue already."""
    if s.queue_place[job] >= 0:
        leave_queue(s, job)
    rank = s.rank[job]
    exclude(s.window_low, s.window_mid, s.window_top, rank)
    s.waiting -= 1
    if s.delays:
        schedule_event(s, job, math.inf)


@kernel
def isolated_s(s, job):
    """Run time of the whole job, alone on the best placement, seconds."""
    return s.iterations[job] * s.base_iteration_s[job]


@kernel
def arrive(s, job):
    """Modify `s`: the job enters the system."""
    s.waiting_since_s[job] = s.now_s
    s.active_at_arrival[job] = s.active_integral
    s.slowdown_rate += 1.0 / isolated_s(s, job)
    s.level[job] = 0
    rest_sub_batch(s, job)
    enqueue(s, job, arrival_key(s, job))
    if has_regions(s):
        note_arrival(s, job)
        if s.lacks_data[job]:
            urge(s, job)


@kernel
def hold(s, job, until_s):
    """Modify `s`: the waiting job is not offered until `until_s`; infinity: until GPUs are freed at a later instant."""
    note(s, HOLD, job)
    dequeue(s, job)
    s.status[job] = HELD
    s.held += 1
    s.held_since_s[job] = s.now_s
    if until_s == math.inf:
        s.offered[s.n_offered] = job
        s.n_offered += 1
        s.offer_place[job] = s.n_offered
    schedule_event(s, job, until_s)
    log(s, HOLD, job)


@kernel
def unhold(s, job):
    """Modify `s`: the held job is back in the queue, at its old place."""
    s.held -= 1
    leave_tier_holds(s, job)
    place = s.offer_place[job] - 1
    if place >= 0:
        s.n_offered -= 1
        last = s.offered[s.n_offered]
        s.offered[place] = last
        s.offer_place[last] = place + 1
        s.offer_place[job] = 0
    schedule_event(s, job, math.inf)
    enqueue(s, job, s.order_key[job])


@kernel
def offer(s):
    """Modify `s`: a decision freed GPUs: jobs that were held until then, at earlier instants, are back in the queue."""
    for i in range(s.n_offered - 1, -1, -1):
        if s.held_since_s[s.offered[i]] < s.now_s:
            unhold(s, s.offered[i])


@kernel
def join(s, job):
    """Modify `s`: keep the job until the instant ends; it then takes its place in the order (`order_pass.commit`)."""
    if s.is_joined[job] == 0:
        s.is_joined[job] = 1
        s.joined[s.n_joined] = job
        s.n_joined += 1


@kernel
def plan(s, job):
    """Modify `s`: set the next event of a running job: its end, a look of the rule, or its lease's end."""
    note_change(s)
    if s.auctions:
        s.leased_s[job] = s.since_s[job]
        plan_grant(s, job, math.inf)
        return
    s.planned_finish_s[job] = s.since_s[job] + s.iterations_left[job] * s.iteration_s[job]
    if not demotion_is_due(s, job):
        s.check_s[job] = next_check_s(s, job)
    lease_end_s = s.lease_end_s[job]
    if lease_end_s <= s.now_s:  # another begins on commit
        s.leases_over = 1
        lease_end_s = math.inf
    next_s = min(own_end_s(s, job), s.check_s[job], lease_end_s)
    if has_berths(s):
        next_s = min(next_s, rates.plan_phase(s, job))
        enlist(s, job)
    schedule_event(s, job, next_s)


@kernel
def own_end_s(s, job):
    """When a running job will end; infinity where the network will say so, and `planned_finish_s` is but a guess."""
    return math.inf if has_links(s) and plays(s, job) else s.planned_finish_s[job]


@kernel
def start(s, job):
    """Modify `s`: a job runs on `s.gang`; True if it waited, not if it only goes on or moved at this instant."""
    note(s, START, job)
    if s.status[job] == HELD:
        unhold(s, job)
    dequeue(s, job)
    now = s.now_s
    back = is_back(s, job) and (not has_berths(s) or rates.is_as_it_was(s, job))
    has_waited = not back and s.left_s[job] != now
    s.tier[job] = occupy(s, job)
    s.status[job] = RUNNING
    s.runner[s.running] = job
    s.runner_place[job] = s.running
    s.running += 1
    s.level_running[s.level[job]] += 1
    s.spread += is_spread(s, job)
    include(s.running_low, s.running_mid, s.running_top, s.rank[job])
    if has_regions(s):
        enter_region(s, job)
    s.iteration_s[job] = rates.shared_iteration_s(s, job, back) if has_berths(s) else iteration_time_s(s, job)
    if back:
        undo(s, job)
    else:
        s.since_s[job] = now
        if s.starts[job] > 0 or (has_berths(s) and s.restores_first):
            s.since_s[job] += restore_cost_s(s, job)
        if s.starts[job] == 0:
            s.first_start_s[job] = now
        if has_regions(s):
            set_up(s, job)
            if s.starts[job] == 0:
                count_late(s, job, 1)
        s.starts[job] += 1
        if s.placer == AFFINITY:
            dedicate(s, job)
        s.queued_s[job] += now - s.waiting_since_s[job]
        s.started_s[job] = now
        if has_berths(s):
            rates.begin_stretch(s, job)
        grant_lease(s, job)
        if has_levels(s):
            s.run_key[job] = s.order_key[job]
            join(s, job)
    plan(s, job)
    log(s, START, job)
    return has_waited


@kernel
def grant_lease(s, job):
    """Modify `s`: a lease of the job's GPUs begins."""
    s.begun_s[job] = s.now_s
    s.lease_end_s[job] = s.now_s + s.lease_s if s.lease_s > 0.0 else math.inf


@kernel
def book(s, job, sign):
    """Modify `s`: add (`sign` = 1) or take back (-1) the present stretch of a running job in all totals."""
    begun_s = s.booked_s[job] if has_berths(s) else s.started_s[job]
    held = s.now_s - begun_s
    over = overrun_s(s, job)
    ran = max(0.0, s.now_s - s.since_s[job]) - over
    computed = computing_s(s, job, ran / s.iteration_s[job])
    restoring = min(held, max(0.0, s.since_s[job] - begun_s))
    gpus = sign * s.gpus[job]
    if has_links(s):
        note_local(s, job, ran, sign)
    if has_berths(s) and s.iteration_s[job] != s.solo_s[job]:
        hindered = ran - ran / s.iteration_s[job] * s.solo_s[job]
        s.interference_s[job] += sign * hindered
        s.interference_gpu_s += gpus * hindered
        ran -= hindered
    s.restore_s[job] += sign * restoring
    s.comm_s[job] += sign * (ran - computed)
    s.used_gpu_s += gpus * held
    s.lost_gpu_s += gpus * over
    s.restore_gpu_s += gpus * restoring
    s.compute_gpu_s += gpus * computed
    if has_regions(s):
        s.gpu_compute_s += sign * s.gpu_units[job] * computed
    s.comm_gpu_s += gpus * (ran - computed)


@kernel
def update_progress(s, job):
    """Modify `s`: book the present stretch of a running job until now; progress is taken off its iterations."""
    now = s.now_s
    if has_berths(s):
        rates.keep_unsaved(s, job)
    book(s, job, 1.0)
    done = max(0.0, now - s.since_s[job]) / s.iteration_s[job]
    s.iterations_left[job] = max(0.0, s.iterations_left[job] - done)  # the last chunk may go past the work
    s.attained_s[job] += now - s.started_s[job]
    if s.auctions:
        s.ran_s[job] += now - s.started_s[job]
    if s.auctions or has_berths(s):
        s.service_gpu_s[job] += s.gpus[job] * (now - s.started_s[job])
    s.since_s[job] = max(now, s.since_s[job])
    s.started_s[job] = now
    if has_berths(s):
        s.booked_s[job] = now


@kernel
def began_now(s, job):
    """True if a running job started at this instant, and had no GPUs when the instant began."""
    return s.started_s[job] == s.now_s and s.left_s[job] != s.now_s


@kernel
def remember(s, job):
    """Modify `s`: note a job's GPUs of the instant's begin, so that its return to them is neither stop nor move."""
    if s.left_s[job] == s.now_s:
        return
    s.left_s[job] = s.now_s
    s.stop_left[job] = s.iterations_left[job]
    s.stop_since_s[job] = s.since_s[job]
    s.stop_started_s[job] = s.started_s[job]
    s.stop_attained_s[job] = s.attained_s[job]
    s.stop_starts[job] = s.starts[job]
    s.stop_preempted[job] = s.preempted[job]
    s.stop_migrated[job] = s.migrated[job]
    if has_berths(s):
        rates.remember_rate(s, job)
    sign_gpus(s, job)


@kernel
def is_back(s, job):
    """True if `s.gang` are the GPUs that the job held when the instant began."""
    return s.left_s[job] == s.now_s and gang_was_held_by(s, job)


@kernel
def undo(s, job):
    """Modify `s`: the job, back on its GPUs, has not been stopped or moved at this instant."""
    recount(s, job, s.stop_preempted[job], s.stop_migrated[job])
    s.starts[job] = s.stop_starts[job]
    s.iterations_left[job] = s.stop_left[job]
    s.since_s[job] = s.stop_since_s[job]
    s.started_s[job] = s.stop_started_s[job]
    s.attained_s[job] = s.stop_attained_s[job]
    if has_berths(s):
        rates.recall_rate(s, job)
    book(s, job, -1.0)


@kernel
def recount(s, job, preempted, migrated):
    """Modify `s`: set how often the job was stopped and moved, in the totals too."""
    s.preemptions += preempted - s.preempted[job]
    s.migrations += migrated - s.migrated[job]
    s.preempted[job] = preempted
    s.migrated[job] = migrated


@kernel
def reserve(s, job):
    """Modify `s`: the running job holds `s.gang` too, and moves there when its present chunk is done."""
    note(s, MIGRATE, job)
    first = s.first_gpu[job]
    s.next_tier[job] = occupy(s, job)
    s.next_first_gpu[job] = s.first_gpu[job]
    log(s, MIGRATE, job)
    s.first_gpu[job] = first
    s.reserved_s[job] = s.now_s
    plan_grant(s, job, s.now_s)


@kernel
def end_reservation(s, job):
    """Modify `s`: book the second gang of a job, which did nothing, with the time that moves and stops cost."""
    idle_gpu_s = s.gpus[job] * (s.now_s - s.reserved_s[job])
    s.used_gpu_s += idle_gpu_s
    s.restore_gpu_s += idle_gpu_s
    s.next_first_gpu[job] = FREE


@kernel
def move_to_reserved(s, job):
    """Modify `s`: the job leaves its GPUs and goes on on those that it has reserved; their lease runs since then."""
    update_progress(s, job)
    vacate(s, job)
    book_grant(s, job)
    first = s.next_first_gpu[job]
    end_reservation(s, job)
    s.first_gpu[job] = first
    s.spread -= is_spread(s, job)
    s.tier[job] = s.next_tier[job]
    s.spread += is_spread(s, job)
    s.iteration_s[job] = iteration_time_s(s, job)
    recount(s, job, s.preempted[job], s.migrated[job] + 1)
    s.starts[job] += 1
    s.since_s[job] = s.now_s + restore_cost_s(s, job)
    s.leased_s[job] = s.reserved_s[job]
    plan_grant(s, job, math.inf)


@kernel
def leave_gpus(s, job):
    """Modify `s`: book the stretch, free the GPUs, and take the job off the running ones."""
    update_progress(s, job)
    vacate(s, job)
    if has_regions(s):
        leave_region(s, job)
        close_left(s, job)
    if s.auctions and s.next_first_gpu[job] >= 0:
        vacate_gang(s, s.next_first_gpu[job])
        end_reservation(s, job)
    last = s.runner[s.running - 1]
    place = s.runner_place[job]
    s.runner[place] = last
    s.runner_place[last] = place
    s.running -= 1
    s.level_running[s.level[job]] -= 1
    s.spread -= is_spread(s, job)
    exclude(s.running_low, s.running_mid, s.running_top, s.rank[job])
    schedule_event(s, job, math.inf)


@kernel
def preempt(s, job):
    """Modify `s`: the running job loses its GPUs and waits. If it started at this very instant, it never started."""
    note(s, PREEMPT, job)
    log(s, PREEMPT, job)
    if began_now(s, job):
        s.starts[job] -= 1
        if has_regions(s) and s.starts[job] == 0:
            count_late(s, job, -1)
        if s.starts[job] == 0:
            s.first_start_s[job] = -1.0
        leave_gpus(s, job)
    else:
        remember(s, job)
        leave_gpus(s, job)
        recount(s, job, s.stop_preempted[job] + 1, s.stop_migrated[job])
        s.starts[job] = s.stop_starts[job]
    _requeue(s, job)
    offer(s)


@kernel
def release(s, job):
    """Modify `s`: the grant of a running job is over: it loses its GPUs and waits; its chunks are booked as planned."""
    leave_gpus(s, job)
    book_grant(s, job)
    recount(s, job, s.preempted[job] + 1, s.migrated[job])
    _requeue(s, job)


@kernel
def fail(s, job, is_saved):
    """Modify `s`: a machine of the job went down: it waits, and loses work since its checkpoint unless `is_saved`."""
    if is_saved:
        recount(s, job, s.preempted[job] + 1, s.migrated[job])
        s.stopped_for_outages += 1
    if has_berths(s):
        leave_gpus(s, job)
        if not is_saved:
            rates.lose_unsaved(s, job)
        _requeue(s, job)
        return
    ran = max(0.0, s.now_s - s.since_s[job])
    kept = ran // s.checkpoint_s * s.checkpoint_s if s.checkpoint_s > 0.0 and not is_saved else ran
    chunk_s = s.iteration_s[job] * s.chunk * s.gpus[job]
    if s.auctions and chunk_s > 0.0:
        kept = kept // chunk_s * chunk_s
    lost = max(0.0, ran - kept - overrun_s(s, job))  # what went past the work is lost already
    leave_gpus(s, job)
    s.iterations_left[job] += lost / s.iteration_s[job]
    computed = lost / s.iteration_s[job] * s.compute_iteration_s[job]
    s.lost_gpu_s += s.gpus[job] * lost
    s.compute_gpu_s -= s.gpus[job] * computed
    if has_regions(s):
        s.gpu_compute_s -= s.gpu_units[job] * computed
    s.comm_gpu_s -= s.gpus[job] * (lost - computed)
    _requeue(s, job)


@kernel
def _requeue(s, job):
    s.stopped_s[job] = s.now_s
    s.waiting_since_s[job] = s.now_s
    if has_berths(s) and s.elastic:
        s.gpus[job] = s.own_gpus[job]
        s.batch[job] = s.own_batch[job]
    rest_sub_batch(s, job)
    enqueue(s, job, return_key(s, job))
    if has_levels(s):
        join(s, job)
    if demotion_is_due(s, job):
        schedule_event(s, job, s.check_s[job])


@kernel
def demote(s, job):
    """Modify `s`: the job, running or waiting, enters the next level at the end."""
    key = demoted_key(s, job)
    if s.status[job] == RUNNING:
        s.level_running[s.level[job] - 1] -= 1
        s.level_running[s.level[job]] += 1
        s.demoted_now += 1
        # It stands behind those that wait there until the instant's pass is over.
        s.run_key[job] = key
        s.check_s[job] = next_check_s(s, job)
        join(s, job)
        plan(s, job)
        return
    dequeue(s, job)
    enqueue(s, job, key)
    s.check_s[job] = s.now_s
    schedule_event(s, job, s.now_s if demotion_is_due(s, job) else math.inf)


@kernel
def migrate(s, job):
    """Modify `s`: the running job moves to `s.gang` (free GPUs, or its own) and restores there.

    If it started at this very instant, it started there; if it is back where the instant began, it stayed. Where work
    counts in chunks, it moves after the present one, unless it got its GPUs at this very instant.
    """
    if s.auctions and s.started_s[job] < s.now_s:
        reserve(s, job)
        return
    note(s, MIGRATE, job)
    fresh = began_now(s, job)
    if not fresh:
        remember(s, job)
    back = is_back(s, job)
    update_progress(s, job)
    vacate(s, job)
    if has_regions(s):
        close_left(s, job)
    if has_berths(s):
        s.sub_batch[job] = largest_sub_batch(s, job)
        back = back and s.sub_batch[job] >= s.stop_sub_batch[job]
        if back:
            s.sub_batch[job] = s.stop_sub_batch[job]
    s.spread -= is_spread(s, job)
    s.tier[job] = occupy(s, job)
    s.spread += is_spread(s, job)
    if has_regions(s):
        leave_region(s, job)
        enter_region(s, job)
    s.iteration_s[job] = rates.shared_iteration_s(s, job, back) if has_berths(s) else iteration_time_s(s, job)
    if back:
        undo(s, job)
    elif fresh and has_regions(s):
        if s.starts[job] == 1:
            count_late(s, job, -1)
        s.since_s[job] = s.now_s
        set_up(s, job)
        if s.starts[job] == 1:
            count_late(s, job, 1)
        if s.starts[job] > 1:
            s.since_s[job] += restore_cost_s(s, job)
    elif not fresh:
        if s.preempted[job] == s.stop_preempted[job]:
            recount(s, job, s.preempted[job], s.stop_migrated[job] + 1)
        s.starts[job] = s.stop_starts[job] + 1
        s.since_s[job] = s.now_s + restore_cost_s(s, job)
        if has_regions(s):
            set_up(s, job)
        if has_berths(s):
            rates.begin_stretch(s, job)
        grant_lease(s, job)
    plan(s, job)
    log(s, MIGRATE, job)
    offer(s)


@kernel
def finish(s, job):
    """Modify `s`: the running job has done all its iterations."""
    leave_gpus(s, job)
    s.iterations_left[job] = 0.0
    s.status[job] = DONE
    s.finish_s[job] = s.now_s
    life = s.now_s - s.arrival_s[job]
    s.mean_active[job] = (s.active_integral - s.active_at_arrival[job]) / life if life > 0.0 else 1.0
    s.slowdown_rate -= 1.0 / isolated_s(s, job)
    s.done += 1
    s.last_end_s = s.now_s
    renew(s)
    if has_regions(s):
        end_in_region(s, job)
        s.ended[job // WORD] += 1
        s.ended_s[job // WORD] = s.now_s
