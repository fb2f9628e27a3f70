"""Switching a cluster to a rule, at the start or in the middle of a run."""

import math

from ...simulator.base.codes import HELD, RATED, RUNNING, WAITING
from ...simulator.compiler.jit import kernel
from ...simulator.lifecycle.lifecycle import enqueue, plan
from ...simulator.numerics.heap import schedule_event
from ...simulator.record.feature_groups import has_berths
from ...simulator.rules.orders import arrival_key, attained_now_s, has_levels, take_last_place
from ...simulator.running.round_times import next_round_s
from ...simulator.sharing.berths import ask_rate, ease, forget_eased
from ...simulator.sharing.exclusive_gpus import reset_exclusive


@kernel
def adopt(s):
    """Modify `s`: put waiting, held and running jobs into the order of the rule whose parameters `s` carries.

    The queues must be empty (`class_count` and `waiting` zero, the window empty). Jobs come in order of arrival; with
    levels, each at the end of the level of its attained service.
    """
    s.last_place = 0
    s.first_place = 0
    s.running_place = 0
    s.n_joined = 0
    s.n_untimed = 0
    s.demoted_now = 0
    s.level_running[:] = 0
    s.next_wait = 0
    s.wait_list[:] = 0
    s.waits_count[:] = 0
    s.waits_known[:] = 0
    s.machine_affinity[:] = 0
    reset_exclusive(s)
    if has_berths(s):
        forget_eased(s)
    for job in range(s.next_arrival):
        s.is_joined[job] = 0
        s.is_untimed[job] = 0
        status = s.status[job]
        if status != WAITING and status != HELD and status != RUNNING:
            continue
        s.level[job] = 0
        if has_levels(s):
            service = attained_now_s(s, job) * s.gpus[job]
            while s.level[job] < s.n_thresholds and service >= s.thresholds[s.level[job]]:
                s.level[job] += 1
        if status == RUNNING:
            take_last_place(s, job)
            s.level_running[s.level[job]] += 1
            if s.auctions == 0:  # with auctions grants stay
                s.lease_end_s[job] = s.now_s + s.lease_s if s.lease_s > 0.0 else math.inf
                plan(s, job)
            if has_berths(s):  # rules differ in the cost of sharing
                ask_rate(s, job, RATED)
                ease(s, job)
            continue
        key = arrival_key(s, job)
        s.order_key[job] = key
        if status == WAITING:
            schedule_event(s, job, math.inf)
            enqueue(s, job, key)
    if s.waiting > 0 and next_round_s(s) > s.now_s:
        schedule_event(s, s.round_event, next_round_s(s))
