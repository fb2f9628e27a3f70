"""Make room for a waiting job by stopping and moving others, and start it there (policies/greedy/room.py)."""

from __future__ import annotations

from dataclasses import dataclass

from ...policies.greedy.room import find_room, make_room
from ...simulator.base.codes import TIMES_HIDDEN
from ...simulator.base.decisions import Decision
from ...simulator.base.tiers import MACHINE, NETWORK
from ...simulator.compiler.jit import kernel
from ..window import MAX_SLOTS, scaled_time, slower_left, waiting_candidate
from .family import Family

FEW = 4.0  # so many jobs that make way read 1/2


@dataclass(frozen=True)
class MakeRoom:
    """All decisions of one instant by which a policy stops or moves jobs, and starts `job` last."""

    job: int
    decisions: tuple[Decision, ...]


@kernel
def mark(s, w, m, first):
    """Modify `w`: the waiting jobs for which room can be made, where the best tier of their size is not free."""
    if not may_act(s, w) or s.known_times == TIMES_HIDDEN or s.auctions:
        return
    for slot in range(w.waiting_shown):
        job = w.waiting_job[slot]
        starts = waiting_candidate(w, slot, 0)
        best = 0 if s.gpus[job] <= s.largest_machine else 1 if s.gpus[job] <= s.largest_rack else 2
        if w.legal[starts + best] == 0 and find_room(s, job):
            w.legal[starts + first] = 1
            w.room_tier[slot] = s.room_tier
            w.room_stopped[slot] = s.victims_stopped
            w.room_moved[slot] = s.victims_moved
            w.room_left_s[slot] = s.victims_left_s
            w.room_lost_s[slot] = s.room_cost_s
            w.can_act = 1


@kernel
def describe(s, w, m, slot, job, kind, shown, of, offer, to, is_new):
    """Write what making room takes, and the best gang at its tier."""
    slowdown = shown[of.slowdown_machine + w.room_tier[slot] - MACHINE]
    offer[to.make_room] = 1.0
    offer[to.slowdown] = slowdown
    offer[to.time_left] = slower_left(w, shown[of.time_left], slowdown)
    offer[to.gpus] = shown[of.gpus]
    offer[to.tier] = w.room_tier[slot] / NETWORK
    offer[to.free_after] = w.free_share  # stopped jobs may start elsewhere
    offer[to.stopped] = w.room_stopped[slot] / (w.room_stopped[slot] + FEW)
    offer[to.moved] = w.room_moved[slot] / (w.room_moved[slot] + FEW)
    offer[to.victims_left] = scaled_time(w, w.room_left_s[slot])
    offer[to.room_cost] = scaled_time(w, w.room_lost_s[slot])


@kernel
def carry_out(s, w, m, slot, job, kind, action):
    """Modify `s`: stop and move others, and start the job."""
    find_room(s, job)
    make_room(s, job)
    return False


@kernel
def may_act(s, w):
    """True if jobs may be stopped or moved now."""
    return w.preemption and (s.waiting > 0 or s.migrates)


class RoomMaking(Family):
    """Stop and move others so that a waiting job can start.

    It comes after the starts of the row, and only where the best tier of the job's size is not free.
    """

    name, table, kinds, stands_for = "make room", "queue", ("make_room",), (MakeRoom,)
    fields = (
        ("room_tier", "i8", (MAX_SLOTS,)),  # of room made for the job in a waiting slot:
        ("room_stopped", "i8", (MAX_SLOTS,)),  # jobs,
        ("room_moved", "i8", (MAX_SLOTS,)),
        ("room_left_s", "f8", (MAX_SLOTS,)),  # their isolated run time left,
        ("room_lost_s", "f8", (MAX_SLOTS,)),  # their loss
    )
    mark, describe, carry_out = staticmethod(mark), staticmethod(describe), staticmethod(carry_out)
    may_act = staticmethod(may_act)
