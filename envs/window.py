"""The common part of the windows of all environments: jobs in slots, the stage of an episode, rewards.

A window is a record beside the simulator's. An environment adds its own fields (`window.py` in its folder); the kernels
here use only those of `common_fields`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..policies.loop.decision_loop import next_s
from ..simulator.base.codes import FINISHED, HORIZON, LEVELS, RUNNING, TIMES_GUESSED, TIMES_HIDDEN, WAITING, WORD
from ..simulator.compiler.jit import entry, kernel
from ..simulator.jobs.remaining_time import isolated_left_s
from ..simulator.numerics.bitset import next_member
from ..simulator.numerics.fast_log import log_from_one
from ..simulator.numerics.instructions import trailing_zeros
from .columns import JOB_SIZE

MAX_SLOTS = 256
NO_JOB = -1
LOG_WORST = math.log(1000.0)  # no slowdown is larger, as a feature
CROWD = 32.0  # a queue of so many jobs reads 0.5
KINDS = 32  # of gangs: those of up to 1, 2, 4, ... GPUs
MOST_FORCED = 1024
MAX_FAMILIES = 16  # of an environment


def common_fields() -> list[tuple[Any, ...]]:
    """The fields of every window."""
    options = ("slots", "running_slots", "placer", "preemption", "skip_idle", "reward_kind", "max_decisions")
    layout = ("candidates", "per_waiting", "per_running")  # how many there are, in all and of a slot
    present = ("pinned_job", "decisions", "shows", "can_act", "has_acted", "code", "begins", "owes")
    shown = ("waiting_shown", "running_shown")
    kinds = ("n_kinds",)  # of gangs, where the window shows some of each; see `_deal`
    reference = ("ref_on", "ref_jobs", "ref_arrived", "ref_done")  # see reward.py
    floats = ("cost_weight", "carbon_weight", "reward_scale", "log_horizon", "ref_end_s", "ref_arrived_s", "ref_done_s")
    step = ("cost", "began_s")  # when the present step began
    unit = ("unit_gpus", "free_share")  # of which numbers of GPUs are shares; that of the free ones now
    return [
        *[(name, "i8") for name in options + layout + present + shown + kinds + reference],
        *[(name, "f8") for name in floats + step + unit],
        ("level_weight", "f8", (LEVELS,)),  # what a workload of each priority level counts, in regions
        ("waiting_job", "i8", (MAX_SLOTS,)),
        ("running_job", "i8", (MAX_SLOTS,)),
        ("kind_rank", "i8", (KINDS + 1,)),  # in the order of the window, the first job of each kind of gang
        ("kind_next", "i8", (KINDS,)),  # scratch: where to look for the next one of each
        ("first_kind", "i8", (MAX_FAMILIES,)),  # of each family, its first candidate of a row
        ("n_kinds_of", "i8", (MAX_FAMILIES,)),  # and how many it has there
    ]


@entry
def waiting_candidate(w, slot, kind):
    """The candidate of a kind of a waiting slot; they follow candidate 0, which advances, slot by slot."""
    return 1 + w.per_waiting * slot + kind


@entry
def running_candidate(w, slot, kind):
    """The candidate of a kind of a running slot; they follow those of the waiting ones."""
    return 1 + w.per_waiting * w.slots + w.per_running * slot + kind


@entry
def choice_of(w, candidate):
    """Of a candidate of a slot: whether its job waits, the slot, the job, and the kind."""
    index = candidate - 1
    if index < w.per_waiting * w.slots:
        slot = index // w.per_waiting
        return True, slot, w.waiting_job[slot], index % w.per_waiting
    index -= w.per_waiting * w.slots
    slot = index // w.per_running
    return False, slot, w.running_job[slot], index % w.per_running


@kernel
def fill_slots(s, w):
    """Modify window `w`: show the jobs of the present; the pinned job before all others."""
    fill_waiting(s, w)
    fill_running(s, w)


@kernel
def fill_running(s, w):
    """Modify window `w`: the running jobs, the pinned one first."""
    low, mid, top = s.running_low, s.running_mid, s.running_top
    w.running_shown = _fill(s, w.pinned_job, RUNNING, w.running_slots, low, mid, top, w.running_job)


@kernel
def fill_waiting(s, w):
    """Modify window `w`: the waiting jobs, the pinned one first."""
    low, mid, top = s.window_low, s.window_mid, s.window_top
    if w.n_kinds > 0 and s.waiting > w.slots:
        w.waiting_shown = _deal(s, w)
    else:
        w.waiting_shown = _fill(s, w.pinned_job, WAITING, w.slots, low, mid, top, w.waiting_job)


@kernel
def _deal(s, w):
    """Modify `w.waiting_job`: if more jobs wait than slots, the first of every kind of gang, then the second, ...

    Among jobs of one size the shortest dominates, so a few of each size say more than many of one size. Returns their
    number: all slots.
    """
    slot = 0
    if w.pinned_job >= 0 and s.status[w.pinned_job] == WAITING:
        w.waiting_job[0] = w.pinned_job
        slot = 1
    for kind in range(w.n_kinds):
        w.kind_next[kind] = w.kind_rank[kind]
    while slot < w.slots:
        for kind in range(w.n_kinds):
            rank = w.kind_next[kind]
            end = w.kind_rank[kind + 1]
            if rank >= end or slot == w.slots:
                continue
            rank = next_member(s.window_low, s.window_mid, s.window_top, rank)
            if 0 <= rank < end and s.job_at_rank[rank] == w.pinned_job:
                rank = next_member(s.window_low, s.window_mid, s.window_top, rank + 1)
            if rank < 0 or rank >= end:
                w.kind_next[kind] = end
                continue
            w.kind_next[kind] = rank + 1
            w.waiting_job[slot] = s.job_at_rank[rank]
            slot += 1
    return slot


@kernel
def _fill(s, pinned_job, status, slots, low, mid, top, shown):
    """Modify `shown`: the first jobs of a set, the pinned job first if it is a member. Returns their number."""
    slot = 0
    if pinned_job >= 0 and s.status[pinned_job] == status and slots > 0:
        shown[0] = pinned_job
        slot = 1
    rank = 0
    while slot < slots:
        rank = next_member(low, mid, top, rank)
        if rank < 0:
            break
        word = rank // WORD
        rest = low[word] >> (rank % WORD)
        while rest != 0 and slot < slots:  # word by word: most members have a neighbour
            job = s.job_at_rank[rank + trailing_zeros(rest)]
            rest &= rest - 1
            if job != pinned_job:
                shown[slot] = job
                slot += 1
        rank = (word + 1) * WORD
    for empty in range(slot, slots):
        shown[empty] = NO_JOB
    return slot


@kernel
def may_advance(s, w):
    """True if candidate 0 is legal: an event is to come, or the episode has ended, where it does nothing."""
    return next_s(s) < math.inf or w.code == FINISHED or w.code == HORIZON


@kernel
def can_stop(s, job):
    """True if a running job can be stopped: no lease holds it, and it did not start or stop at this instant."""
    if s.lease_s > 0.0 and s.lease_end_s[job] > s.now_s:
        return False
    return s.started_s[job] < s.now_s and s.stopped_s[job] < s.now_s


@kernel
def scaled_slowdown(factor):
    """A slowdown as a feature, logarithmic as times are."""
    return min(1.0, log_from_one(max(1.0, factor)) / LOG_WORST)


@kernel
def scaled_time(w, value):
    """A time, or a service, as a feature."""
    # Without log1p, which is slow; the same in float32: what is below a nanosecond reads 0 either way.
    return min(1.0, log_from_one(1.0 + max(0.0, value)) / w.log_horizon)


@kernel
def scaled_gpus(w, gpus):
    """GPUs as a feature: a share of `unit_gpus`."""
    return min(1.0, gpus / w.unit_gpus)


@kernel
def slower_left(w, isolated, slowdown):
    """Run time left, as a feature, from the isolated one and a slowdown, as features."""
    # Converted first: plain Python would add these numbers of four bytes as such.
    return min(1.0, float(isolated) + float(slowdown) * LOG_WORST / w.log_horizon)


@kernel
def scale_times(w, count):
    """Modify the first `count` of `w.times`: `scaled_time` of each, several at once."""
    times = w.times
    most = w.log_horizon
    for i in range(count):
        times[i] = min(1.0, log_from_one(1.0 + max(0.0, times[i])) / most)


@kernel
def scaled_slack(s, w, job):
    """Slack of a job (deadline - now - isolated run time left, seconds): 1/2 is none, less a miss; 1: no deadline."""
    if s.n_due == 0:
        return 1.0
    deadline_s = s.deadline_s[job]
    if deadline_s == math.inf:
        return 1.0
    slack_s = deadline_s - s.now_s - isolated_left_s(s, job)
    half = 0.5 * scaled_time(w, abs(slack_s))
    return 0.5 + half if slack_s > 0.0 else 0.5 - half


@kernel
def ignorance(s):
    """Knowledge of run times as a feature: 0 exact, 1/2 estimates, 1 none."""
    if s.known_times == TIMES_HIDDEN:
        return 1.0
    return 0.5 if s.known_times == TIMES_GUESSED else 0.0


@kernel
def scaled_count(count):
    """A number of jobs as a feature."""
    return count / (count + CROWD)


@kernel
def observe_size(s, shown, job):
    """Write the first columns of a job's row: its presence and its size."""
    shown[JOB_SIZE.present] = 1.0
    shown[JOB_SIZE.gpus] = s.gpus[job] / s.n_gpus
    shown[JOB_SIZE.size] = math.log2(1.0 + s.gpus[job]) / math.log2(1.0 + s.n_gpus)


def no_solvers(n: int = 1) -> np.recarray:
    """What solvers remember of `n` runs where there are none."""
    return np.zeros(n, np.dtype([("nothing", "i8")], align=True)).view(np.recarray)


# GPUs that a policy names. A candidate leaves the choice of GPUs to the environment; a policy that decides in Python
# may name others. Then, for one step, the candidate of its decision stands for these GPUs.


def forced_fields() -> list[tuple[Any, ...]]:
    """The fields of a window for GPUs that a policy names."""
    return [
        ("forced_job", "i8"),  # the job whose GPUs the played policy names; -1 = none
        ("forced_kind", "i8"),  # kind of the candidate that stands for them
        ("n_forced", "i8"),
        ("forced", "i8", (MOST_FORCED,)),
    ]


def force_gpus(window: np.void, job: int, kind: int, gpus: Sequence[int]) -> None:
    """Modify the window: a candidate of a job stands for these GPUs, unless they are too many."""
    if len(gpus) > MOST_FORCED:
        return
    window["forced_job"], window["forced_kind"], window["n_forced"] = job, kind, len(gpus)
    window["forced"][: len(gpus)] = gpus


def unforce_gpus(window: np.void) -> None:
    """Modify the window: candidates stand for the environment's choice."""
    window["forced_job"] = NO_JOB


@kernel
def unforce(w):
    """Modify the window: candidates stand for the environment's choice."""
    w.forced_job = NO_JOB


@kernel
def is_forced(w, job, kind):
    """True if this candidate of a job stands for the GPUs that a policy names."""
    return job == w.forced_job and kind == w.forced_kind


@kernel
def write_forced(s, w):
    """Modify `s.gang`: the GPUs that the policy names."""
    s.gang_size = w.n_forced
    for i in range(w.n_forced):
        s.gang[i] = w.forced[i]
