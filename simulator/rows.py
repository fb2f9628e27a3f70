"""The kernels as Python calls them: by array of records and row.

Handing numba one large record costs some 15 us a call, since numpy then describes every field to the buffer protocol;
an array of records costs less than 1 us.
"""

from .kernels import contention, events, jobs, outages, regions, rerating, resizing, sharing, stays, wan
from .kernels.jit import entry
from .kernels.placement import tier_of_gang
from .network import speed, steps
from .rules import adopt as adoption
from .rules import delays, holds, passes, placers, room


@entry
def advance(states, row):
    """`events.advance`."""
    return events.advance(states[row])


@entry
def run(states, row, max_events):
    """`events.run`."""
    return events.run(states[row], max_events)


@entry
def schedule(states, row):
    """`passes.schedule`."""
    return passes.schedule(states[row])


@entry
def adopt(states, row):
    """`adopt.adopt`."""
    adoption.adopt(states[row])


@entry
def lay_failures(states, row):
    """`outages.lay_failures`."""
    outages.lay_failures(states[row])


@entry
def start(states, row, job):
    """`jobs.start`."""
    jobs.start(states[row], job)


@entry
def preempt(states, row, job):
    """`jobs.preempt`."""
    jobs.preempt(states[row], job)


@entry
def migrate(states, row, job):
    """`jobs.migrate`."""
    jobs.migrate(states[row], job)


@entry
def resize(states, row, job, batch):
    """`resizing.resize`."""
    resizing.resize(states[row], job, batch)


@entry
def set_passes(states, row, job, sub_batch):
    """`resizing.set_passes`."""
    resizing.set_passes(states[row], job, sub_batch)


@entry
def shift(states, row, job, seconds, period_s):
    """`contention.shift`."""
    contention.shift(states[row], job, seconds, period_s)


@entry
def replicate(states, row, table, region):
    """`wan.replicate`."""
    wan.replicate(states[row], table, region)


@entry
def move(states, row, table, region):
    """`wan.move`."""
    wan.move(states[row], table, region)


@entry
def drop(states, row, table, region):
    """`wan.drop`."""
    wan.drop(states[row], table, region)


@entry
def missing_bytes(states, row, table, region):
    """`wan.missing_bytes`."""
    return wan.missing_bytes(states[row], table, region)


@entry
def candidate_regions(states, row, job):
    """`regions.candidate_regions`."""
    return regions.candidate_regions(states[row], job)


@entry
def may_run_in(states, row, job, region):
    """`regions.may_run_in`."""
    return regions.may_run_in(states[row], job, region)


@entry
def takes_units(states, row, job, units):
    """`regions.takes_units`."""
    return regions.takes_units(states[row], job, units)


@entry
def left_bytes(states, row, transfer):
    """`wan.left_bytes`."""
    return wan.left_bytes(states[row], transfer)


@entry
def enter_stay(states, row, job, offset_s):
    """`stays.enter_stay`."""
    stays.enter_stay(states[row], job, offset_s)


@entry
def bring_to_date(states, row):
    """`rerating.bring_to_date`."""
    rerating.bring_to_date(states[row])


@entry
def set_rate(states, row, job, solo_s, phase_left):
    """`rerating.set_rate`."""
    rerating.set_rate(states[row], job, solo_s, phase_left)


@entry
def change_rate(states, row, job, solo_s):
    """`rerating.cut`, then `rerating.set_rate`: another rate from now on."""
    rerating.cut(states[row], job)
    rerating.set_rate(states[row], job, solo_s, 0.0)


@entry
def largest_sub_batch(states, row, job):
    """`sharing.largest_sub_batch`."""
    return sharing.largest_sub_batch(states[row], job)


@entry
def slowdown_beside(states, row, job, partner):
    """How many times longer an iteration of a job takes beside another one, both with their present sub-batches."""
    s = states[row]
    return s.xi[sharing.kind_now(s, job), sharing.kind_now(s, partner)]


@entry
def first_without_room(states, row):
    """The first job that does not fit an empty GPU even with one sample a pass, or -1."""
    s = states[row]
    for job in range(s.n_jobs):
        if sharing.alone_sub_batch(s, job) == 0:
            return job
    return -1


@entry
def lay_best_steps(states, row):
    """Modify the record: `best_step_s` of every job whose model has a fit."""
    s = states[row]
    for job in range(s.n_jobs):
        steps.lay_best_step(s, job)


@entry
def solo_gang_s(states, row, job, sub_batch):
    """`speed.solo_iteration_s`, for the gang that lies in `gang`."""
    s = states[row]
    return speed.solo_iteration_s(s, job, tier_of_gang(s), sub_batch)


@entry
def hold(states, row, job, until_s):
    """`jobs.hold`."""
    jobs.hold(states[row], job, until_s)


@entry
def hold_for_tier(states, row, job, until_s, tier):
    """`holds.hold_for_tier`."""
    holds.hold_for_tier(states[row], job, until_s, tier)


@entry
def serve_holds(states, row):
    """`holds.serve_holds`."""
    holds.serve_holds(states[row])


@entry
def find_gang(states, row, job, placer):
    """`placers.find_gang`."""
    return placers.find_gang(states[row], job, placer)


@entry
def find_within(states, row, need, scope):
    """`placers.find_within`."""
    return placers.find_within(states[row], need, scope)


@entry
def find_room(states, row, job):
    """`room.find_room`."""
    return room.find_room(states[row], job)


@entry
def make_room(states, row, job):
    """`room.make_room`, of a job for which room can be made."""
    room.find_room(states[row], job)
    room.make_room(states[row], job)


@entry
def present_timer_s(states, row, job):
    """`delays.present_timer_s`."""
    return delays.present_timer_s(states[row], job)


@entry
def timer_end_s(states, row, job, tier):
    """`delays.timer_end_s`."""
    return delays.timer_end_s(states[row], job, tier)


@entry
def timer_left_s(states, row, job, tier):
    """`delays.timer_left_s`."""
    return delays.timer_left_s(states[row], job, tier)
