"""GMS: the order of pending workloads, by <priority, credit>, and their quotas (paper mast, Sec. 4.2).

A GMS-scan pass ranks every pending workload, from the record alone, by

    credit = w_age x min(age, C_age_cap)                                                            (Expression 10)
           + w_fair x (1 - window average of the tenant's resources / that of all tenants)          (Expression 11)

The age is the time since a workload arrived or was preempted last (Sec. 5.5). A workload that exceeds its tenant's
quota gets the lowest priority. A tenant's running workloads are within its quota in the order of their starts; the
others may be preempted like over-quota ones.

Choices where the paper is silent: a workload gains one credit in a day of waiting, at most that, and loses up to one as
its tenant's share of all use in the last day grows. A tenant's resources are the larger of its shares of GPUs and CPU
machines. A workload has one priority level, and a tenant's quota is over all its levels.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...simulator.base.codes import LEVELS, RUNNING, WAITING, WORD
from ...simulator.base.errors import InputError
from ...simulator.compiler.jit import entry, kernel
from ...simulator.jobs.remaining_time import isolated_left_s, isolated_whole_s
from ...simulator.numerics.bitset import next_member
from ...simulator.numerics.rounding import rounded
from ...simulator.warehouse.demands import Demands
from .ordering import BY_CREDIT, BY_WHOLE, Ordering

DAY_S = 86_400.0


def write_ranking(
    demands: Demands,
    age_weight: float = 1.0,
    age_cap_s: float = DAY_S,
    fair_weight: float = 1.0,
    window_s: float = DAY_S,
    ordering: Ordering | None = None,
) -> Ranking:
    """The arrays of a scan pass for these workloads, served by credit or `ordering`. Raises InputError out of range.

    Args:
        demands: the workloads' tenants, levels and units; the tenants' quotas.
        age_weight: credits for a wait of a day, >= 0.
        age_cap_s: a longer wait earns no more, seconds, C_age_cap.
        fair_weight: credits between a tenant without use and one with all, >= 0.
        window_s: of the average of resources, seconds, > 0.
        ordering: order of service; None: by credit.
    """
    for name, value in (("age_weight", age_weight), ("age_cap_s", age_cap_s), ("fair_weight", fair_weight)):
        if not 0.0 <= value < math.inf:
            raise InputError(f"{name} = {value:g}: expected a finite number of at least 0")
    if not 0.0 < window_s < math.inf:
        raise InputError(f"window_s = {window_s:g}: expected seconds > 0")
    jobs, tenants = len(demands), len(demands.quota)
    ordering = ordering or Ordering()
    return Ranking(
        own=np.array(demands.level, np.int64),
        tenant=np.array(demands.tenant, np.int64),
        asked=np.array(demands.asked, np.int64),
        quota=np.array(demands.quota, np.int64),
        weight=np.array([age_weight / DAY_S, age_cap_s, fair_weight, window_s]),
        by=ordering.code,
        size=ordering.sizes(demands, ordering.key_exponent),
        level=np.array(demands.level, np.int64),
        credit=np.zeros(jobs),
        order=np.zeros(jobs, np.int64),
        key=np.zeros(jobs),
        spare=np.zeros(jobs, np.int64),
        bits=np.zeros(jobs, np.int64),
        coming=np.zeros(jobs, np.int64),
        running=np.zeros((tenants, KINDS), np.int64),
        used=np.zeros((tenants, KINDS), np.int64),
        within=np.zeros((tenants, KINDS), np.int64),
        average=np.zeros((tenants, KINDS)),
        whole=np.zeros(KINDS),
        place=np.zeros(LEVELS + 1, np.int64),
        valid=np.zeros(2, np.int64),
    )


LOWEST = 6
AGE_WEIGHT, AGE_CAP_S, FAIR_WEIGHT, WINDOW_S = 0, 1, 2, 3  # of `weight`
KINDS = 2  # GPUs, CPU machines
AVERAGES, RUNNERS = 0, 1
RANKED, ALL_FIT = 1, 2  # levels by rank; no quota is exceeded


class Ranking(NamedTuple):
    """Arrays, int64 unless said otherwise; J workloads, N tenants."""

    own: Any  # (J,), the priority level within quota
    tenant: Any  # (J,)
    asked: Any  # (J, 2), GPUs and CPU machines
    quota: Any  # (N, 2)
    weight: Any  # float64 (4,)
    by: Any  # (2,): `Ordering.code`
    size: Any  # float64 (J,), factors of times of an order by run times

    level: Any  # (J,), present priority, of running and pending ones
    credit: Any  # float64 (J,), of pending ones; in orders by run times minus the seconds
    order: Any  # (J,), pending ones in order
    key: Any  # float64 (J,), scratch: keys of the sort
    spare: Any  # (J,), scratch
    bits: Any  # (J,), scratch: sets of regions
    coming: Any  # (J,), scratch: sets of regions
    running: Any  # (N, 2), used by all running ones
    used: Any  # (N, 2), by them and the pending ones within quota
    within: Any  # (N, 2), by running ones within quota
    average: Any  # float64 (N, 2), over the window
    whole: Any  # float64 (2,), of all tenants
    place: Any  # (8,), scratch: places by level
    valid: Any  # (2,), AVERAGES and RUNNERS: 0: to be computed at this instant; see `set_levels`


@kernel
def _sort(g, count):
    """Modify order[:count] in place: stable merge sort by key."""
    width = 1
    source, target = g.order, g.spare
    while width < count:
        for low in range(0, count, 2 * width):
            middle, high = min(low + width, count), min(low + 2 * width, count)
            left, right = low, middle
            for place in range(low, high):
                take_left = left < middle and (right >= high or g.key[source[left]] <= g.key[source[right]])
                if take_left:
                    target[place] = source[left]
                    left += 1
                else:
                    target[place] = source[right]
                    right += 1
        for place in range(count):
            source[place] = target[place]
        width *= 2


@kernel
def _fits(sums, quota, tenant, asked, job):
    for kind in range(KINDS):
        if asked[job, kind] > 0 and sums[tenant, kind] + asked[job, kind] > quota[tenant, kind]:
            return False
    return True


@kernel
def _rank_running(s, g):
    """Modify in place: levels and use of running workloads."""
    for tenant in range(g.quota.shape[0]):
        for kind in range(KINDS):
            g.running[tenant, kind] = 0
            g.within[tenant, kind] = 0
    for place in range(s.running):
        g.order[place] = s.runner[place]
    for place in range(s.running):  # among equal starts the lower number comes first
        g.key[g.order[place]] = g.order[place]
    _sort(g, s.running)
    for place in range(s.running):
        g.key[g.order[place]] = s.started_s[g.order[place]]
    _sort(g, s.running)
    for place in range(s.running):
        job = g.order[place]
        tenant = g.tenant[job]
        fits = _fits(g.within, g.quota, tenant, g.asked, job)
        g.level[job] = g.own[job] if fits else LOWEST
        for kind in range(KINDS):
            g.running[tenant, kind] += g.asked[job, kind]
            if fits:
                g.within[tenant, kind] += g.asked[job, kind]


@kernel
def _held_s(s, job, window_s):
    """Seconds of the last `window_s` in which a workload held its units.

    A workload that was stopped several times counts as if it had run in one piece before its last stop, as the record
    has only the sum.
    """
    held_s, end_s = 0.0, s.stopped_s[job]
    if s.status[job] == RUNNING:
        held_s = s.now_s - s.started_s[job]
    elif s.finish_s[job] >= 0.0:
        end_s = s.finish_s[job]
    if s.attained_s[job] > 0.0 and end_s >= 0.0:
        held_s += max(0.0, end_s - max(end_s - s.attained_s[job], s.now_s - window_s))
    return min(held_s, window_s)


@kernel
def _add_use(g, job, held_s):
    """Modify the averages in place: add a workload's use in the window."""
    if held_s > 0.0:
        for kind in range(KINDS):
            used = held_s * g.asked[job, kind] / g.weight[WINDOW_S]
            g.average[g.tenant[job], kind] += used
            g.whole[kind] += used


@kernel
def _average(s, g):
    """Modify the averages in place: resources of each tenant over the window; skips words of 32 jobs ended before."""
    for kind in range(KINDS):
        g.whole[kind] = 0.0
        for tenant in range(g.quota.shape[0]):
            g.average[tenant, kind] = 0.0
    begin_s = s.now_s - g.weight[WINDOW_S]
    for first in range(0, s.next_arrival, WORD):
        if s.ended[first // WORD] == WORD and s.ended_s[first // WORD] <= begin_s:
            continue
        for job in range(first, min(first + WORD, s.next_arrival)):
            _add_use(g, job, _held_s(s, job, g.weight[WINDOW_S]))


@kernel
def _credit(s, g, job):
    """Credit; a tenant's share is its larger one, of GPUs or CPU machines. Paper: mast, Expressions 10 and 11."""
    share = 0.0
    for kind in range(KINDS):
        if g.whole[kind] > 0.0:
            share = max(share, g.average[g.tenant[job], kind] / g.whole[kind])
    age_s = min(s.now_s - s.waiting_since_s[job], g.weight[AGE_CAP_S])
    return g.weight[AGE_WEIGHT] * age_s + g.weight[FAIR_WEIGHT] * (1.0 - share)


@kernel
def _seconds(s, g, job):
    """Run time of a workload, whole or left, as far as known, times its size."""
    return rounded(g.size[job] * (isolated_whole_s(s, job) if g.by[0] == BY_WHOLE else isolated_left_s(s, job)))


@kernel
def _list_pending(s, g):
    """Modify the ranking in place: pending workloads by number, their credits and keys. Returns their number."""
    count = 0
    for first in range(0, s.next_arrival, WORD):
        if s.ended[first // WORD] == WORD:
            continue
        for job in range(first, min(first + WORD, s.next_arrival)):
            if s.status[job] == WAITING:
                g.credit[job] = _credit(s, g, job) if g.by[0] == BY_CREDIT else -_seconds(s, g, job)
                g.key[job] = -g.credit[job]
                g.order[count] = job
                count += 1
    return count


@kernel
def rank(s, g):
    """Modify the ranking in place: levels, and pending workloads in order. Returns their number.

    Highest priority first, then most credit, then first arrival. Orders by run times: ordering.py.
    Paper: mast, Sec. 4.2.
    """
    g.valid[AVERAGES] = g.valid[RUNNERS] = 0
    return _rank(s, g)


@kernel
def _rank(s, g):
    """`rank`, but for results that still hold."""
    if g.valid[RUNNERS] != RANKED:
        _rank_running(s, g)
        g.valid[RUNNERS] = RANKED
    if g.by[0] == BY_CREDIT and not g.valid[AVERAGES]:
        _average(s, g)
        g.valid[AVERAGES] = RANKED
    for tenant in range(g.quota.shape[0]):
        for kind in range(KINDS):
            g.used[tenant, kind] = g.running[tenant, kind]
    count = _list_pending(s, g)
    _sort(g, count)
    for level in range(LOWEST + 2):
        g.place[level] = 0
    for at in range(count):
        job = g.order[at]
        tenant = g.tenant[job]
        g.level[job] = LOWEST
        if _fits(g.used, g.quota, tenant, g.asked, job):
            g.level[job] = g.own[job]
            for kind in range(KINDS):
                g.used[tenant, kind] += g.asked[job, kind]
        g.place[g.level[job] + 1] += 1
    if g.by[1]:
        _by_level(g, count)
    return count


@kernel
def _all_fit(s, g):
    """Modify uses in place: requests of running and pending workloads; True if they exceed no quota."""
    for tenant in range(g.quota.shape[0]):
        for kind in range(KINDS):
            g.used[tenant, kind] = 0
    for place in range(s.running):
        _add_asked(g, s.runner[place])
    rank_ = next_member(s.window_low, s.window_mid, s.window_top, 0)
    while rank_ >= 0:
        _add_asked(g, s.job_at_rank[rank_])
        rank_ = next_member(s.window_low, s.window_mid, s.window_top, rank_ + 1)
    for tenant in range(g.quota.shape[0]):
        for kind in range(KINDS):
            if g.used[tenant, kind] > g.quota[tenant, kind]:
                return False
    return True


@kernel
def _add_asked(g, job):
    for kind in range(KINDS):
        g.used[g.tenant[job], kind] += g.asked[job, kind]


@kernel
def set_levels(s, g):
    """Modify the ranking in place: levels as of `rank`, without the order.

    Within all quotas credits decide nothing. The caller sets in `valid` what still holds from the last call: averages,
    if no workload has lost units and the clock has not moved; running workloads with their levels, if also none has
    started; they have other levels only if `valid` changes.
    """
    if not _all_fit(s, g):
        _rank(s, g)
        return
    g.valid[RUNNERS] = ALL_FIT
    for place in range(s.running):
        g.level[s.runner[place]] = g.own[s.runner[place]]
    rank_ = next_member(s.window_low, s.window_mid, s.window_top, 0)
    while rank_ >= 0:
        job = s.job_at_rank[rank_]
        g.level[job] = g.own[job]
        rank_ = next_member(s.window_low, s.window_mid, s.window_top, rank_ + 1)


@kernel
def _by_level(g, count):
    """Modify the order in place: stably by level."""
    for level in range(LOWEST + 1):
        g.place[level + 1] += g.place[level]
    for at in range(count):
        job = g.order[at]
        g.spare[g.place[g.level[job]]] = job
        g.place[g.level[job]] += 1
    for at in range(count):
        g.order[at] = g.spare[at]


@entry
def scan(states, row, g):
    """`rank`, for Python."""
    return rank(states[row], g)
