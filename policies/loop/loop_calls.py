"""Entries to the loop, its passes and timers, by records and row; `Simulator` uses them through engine/rule_loop.py."""

from ...simulator.compiler.jit import entry
from .. import dally
from ..greedy import room
from ..passes import starts, tier_holds
from ..passes import switch_rule as adoption
from . import decision_loop


@entry
def advance(states, row):
    return decision_loop.advance(states[row])


@entry
def run(states, row, max_events):
    return decision_loop.run(states[row], max_events)


@entry
def schedule(states, row):
    return decision_loop.schedule(states[row])


@entry
def start(states, row, job):
    starts.start(states[row], job)


@entry
def adopt(states, row):
    adoption.adopt(states[row])


@entry
def hold_for_tier(states, row, job, until_s, tier):
    tier_holds.hold_for_tier(states[row], job, until_s, tier)


@entry
def serve_holds(states, row):
    tier_holds.serve_holds(states[row])


@entry
def find_room(states, row, job):
    return room.find_room(states[row], job)


@entry
def timer_end_s(states, row, job, tier):
    return dally.timer_end_s(states[row], job, tier)


@entry
def timer_left_s(states, row, job, tier):
    return dally.timer_left_s(states[row], job, tier)
