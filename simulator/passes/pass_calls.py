"""Scheduling passes as Python calls them, by array of records and row; see clock_calls.py."""

from ..compiler.jit import entry
from . import order_pass, room, tier_holds
from . import switch_rule as adoption


@entry
def schedule(states, row):
    """`order_pass.schedule`."""
    return order_pass.schedule(states[row])


@entry
def adopt(states, row):
    """`switch_rule.adopt`."""
    adoption.adopt(states[row])


@entry
def hold_for_tier(states, row, job, until_s, tier):
    """`tier_holds.hold_for_tier`."""
    tier_holds.hold_for_tier(states[row], job, until_s, tier)


@entry
def serve_holds(states, row):
    """`tier_holds.serve_holds`."""
    tier_holds.serve_holds(states[row])


@entry
def find_room(states, row, job):
    """`room.find_room`."""
    return room.find_room(states[row], job)


@entry
def make_room(states, row, job):
    """`room.make_room`, of a job for which room can be made."""
    room.find_room(states[row], job)
    room.make_room(states[row], job)
