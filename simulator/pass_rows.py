"""Scheduling passes as Python calls them, by array of records and row; see rows.py."""

from .kernels.jit import entry
from .rules import adopt as adoption
from .rules import holds, passes, room


@entry
def schedule(states, row):
    """`passes.schedule`."""
    return passes.schedule(states[row])


@entry
def adopt(states, row):
    """`adopt.adopt`."""
    adoption.adopt(states[row])


@entry
def hold_for_tier(states, row, job, until_s, tier):
    """`holds.hold_for_tier`."""
    holds.hold_for_tier(states[row], job, until_s, tier)


@entry
def serve_holds(states, row):
    """`holds.serve_holds`."""
    holds.serve_holds(states[row])


@entry
def find_room(states, row, job):
    """`room.find_room`."""
    return room.find_room(states[row], job)


@entry
def make_room(states, row, job):
    """`room.make_room`, of a job for which room can be made."""
    room.find_room(states[row], job)
    room.make_room(states[row], job)
