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

import numpy as np

from ...simulator.base.codes import RUNNING, WAITING, WORD
from ...simulator.base.errors import InputError
from ...simulator.compiler.jit import entry, kernel
from ...simulator.jobs.remaining_time import isolated_left_s, isolated_whole_s
from ...simulator.numerics.bitset import next_member
from ...simulator.numerics.rounding import rounded
from ...simulator.record.field_axes import CALL, Axis, Field
from ...simulator.warehouse.demands import Demands
from .ordering import BY_CREDIT, BY_WHOLE, Ordering

DAY_S = 86_400.0
LOWEST = 6
AGE_WEIGHT, AGE_CAP_S, FAIR_WEIGHT, WINDOW_S = 0, 1, 2, 3  # of `credit_terms`
KINDS = 2  # GPUs, CPU machines
AVERAGES, RUNNERS = 0, 1
RANKED, ALL_FIT = 1, 2  # levels by rank; no quota is exceeded


def ranking_fields(jobs: Axis) -> list[Field]:
    """A ranking of workloads; `tenant` numbers those that ask something."""
    return [
        ("n_tenants", "i8"),
        ("tenant", "i8", (jobs,)),
        ("asked", "i8", (jobs, KINDS)),
        ("quota", "i8", (jobs, KINDS)),  # by tenant
        ("credit_terms", "f8", (4,)),  # AGE_WEIGHT and those after it
        ("order_by", "i8", (2,)),  # `Ordering.code`
        ("key_size", "f8", (jobs,)),  # factors of times of an order by run times
        ("level", "i8", (jobs,)),  # present priority, of running and pending ones
        ("credit", "f8", (jobs,)),  # of pending ones; in orders by run times minus the seconds
        ("order", "i8", (jobs,)),  # pending ones in order
        ("key", "f8", (jobs,), CALL),  # scratch: keys of the sort
        ("sort_spare", "i8", (jobs,), CALL),  # scratch
        ("bits", "i8", (jobs,)),  # sets of regions: those that may run it now,
        ("coming", "i8", (jobs,)),  # and those that will have its tables
        ("tenant_running", "i8", (jobs, KINDS)),  # used by all running ones of a tenant
        ("tenant_used", "i8", (jobs, KINDS)),  # by them and the pending ones within quota
        ("tenant_within", "i8", (jobs, KINDS)),  # by running ones within quota
        ("tenant_average", "f8", (jobs, KINDS)),  # over the window
        ("whole", "f8", (KINDS,)),  # average of all tenants
        ("level_place", "i8", (LOWEST + 2,), CALL),  # scratch: places by level
        ("valid", "i8", (2,)),  # AVERAGES and RUNNERS: 0: to be computed at this instant; see `set_levels`
    ]


def write_ranking(
    m: np.void,
    demands: Demands,
    age_weight: float = 1.0,
    age_cap_s: float = DAY_S,
    fair_weight: float = 1.0,
    window_s: float = DAY_S,
    ordering: Ordering | None = None,
) -> None:
    """Modify `m`: rank these workloads, served by credit or `ordering`. Raises InputError out of range.

    Args:
        m: fields by item.
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
    jobs, ordering = len(demands), ordering or Ordering()
    tenants, tenant = np.unique(demands.tenant, return_inverse=True)
    m["n_tenants"], m["tenant"][:jobs], m["quota"][: len(tenants)] = len(tenants), tenant, demands.quota[tenants]
    m["credit_terms"] = age_weight / DAY_S, age_cap_s, fair_weight, window_s
    m["order_by"], m["key_size"][:jobs] = ordering.code, ordering.sizes(demands, ordering.key_exponent)
    m["asked"][:jobs], m["level"][:jobs] = demands.asked, demands.level


@kernel
def _sort(m, count):
    """Modify order[:count] in place: stable merge sort by key."""
    width = 1
    source, target, key = m.order, m.sort_spare, m.key
    while width < count:
        for low in range(0, count, 2 * width):
            middle, high = min(low + width, count), min(low + 2 * width, count)
            left, right = low, middle
            for place in range(low, high):
                take_left = left < middle and (right >= high or key[source[left]] <= key[source[right]])
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
def _fits(m, sums, tenant, job):
    for kind in range(KINDS):
        if m.asked[job, kind] > 0 and sums[tenant, kind] + m.asked[job, kind] > m.quota[tenant, kind]:
            return False
    return True


@kernel
def _rank_running(s, m):
    """Modify in place: levels and use of running workloads."""
    for tenant in range(m.n_tenants):
        for kind in range(KINDS):
            m.tenant_running[tenant, kind] = 0
            m.tenant_within[tenant, kind] = 0
    for place in range(s.running):
        m.order[place] = s.runner[place]
    for place in range(s.running):  # among equal starts the lower number comes first
        m.key[m.order[place]] = m.order[place]
    _sort(m, s.running)
    for place in range(s.running):
        m.key[m.order[place]] = s.started_s[m.order[place]]
    _sort(m, s.running)
    for place in range(s.running):
        job = m.order[place]
        tenant = m.tenant[job]
        fits = _fits(m, m.tenant_within, tenant, job)
        m.level[job] = s.job_level[job] if fits else LOWEST
        for kind in range(KINDS):
            m.tenant_running[tenant, kind] += m.asked[job, kind]
            if fits:
                m.tenant_within[tenant, kind] += m.asked[job, kind]


@kernel
def _held_s(s, job, now_s, window_s):
    """Seconds of the last `window_s` before `now_s` in which a workload held its units.

    A workload that was stopped several times counts as if it had run in one piece before its last stop, as the record
    has only the sum.
    """
    held_s, end_s = 0.0, s.stopped_s[job]
    if s.status[job] == RUNNING:
        held_s = now_s - s.started_s[job]
    elif s.finish_s[job] >= 0.0:
        end_s = s.finish_s[job]
    if s.attained_s[job] > 0.0 and end_s >= 0.0:
        held_s += max(0.0, end_s - max(end_s - s.attained_s[job], now_s - window_s))
    return min(held_s, window_s)


@kernel
def _add_use(m, job, held_s, window_s):
    """Modify the averages in place: add a workload's use in the window."""
    if held_s > 0.0:
        for kind in range(KINDS):
            used = held_s * m.asked[job, kind] / window_s
            m.tenant_average[m.tenant[job], kind] += used
            m.whole[kind] += used


@kernel
def _average(s, m):
    """Modify the averages in place: resources of each tenant over the window; skips words of 32 jobs ended before."""
    for kind in range(KINDS):
        m.whole[kind] = 0.0
        for tenant in range(m.n_tenants):
            m.tenant_average[tenant, kind] = 0.0
    now_s, window_s = s.now_s, m.credit_terms[WINDOW_S]
    for first in range(0, s.next_arrival, WORD):
        if s.ended[first // WORD] == WORD and s.ended_s[first // WORD] <= now_s - window_s:
            continue
        for job in range(first, min(first + WORD, s.next_arrival)):
            _add_use(m, job, _held_s(s, job, now_s, window_s), window_s)


@kernel
def _credit(s, m, job):
    """Credit; a tenant's share is its larger one, of GPUs or CPU machines. Paper: mast, Expressions 10 and 11."""
    share = 0.0
    for kind in range(KINDS):
        if m.whole[kind] > 0.0:
            share = max(share, m.tenant_average[m.tenant[job], kind] / m.whole[kind])
    age_s = min(s.now_s - s.waiting_since_s[job], m.credit_terms[AGE_CAP_S])
    return m.credit_terms[AGE_WEIGHT] * age_s + m.credit_terms[FAIR_WEIGHT] * (1.0 - share)


@kernel
def _seconds(s, m, job):
    """Run time of a workload, whole or left, as far as known, times its size."""
    seconds = isolated_whole_s(s, job) if m.order_by[0] == BY_WHOLE else isolated_left_s(s, job)
    return rounded(m.key_size[job] * seconds)


@kernel
def _list_pending(s, m):
    """Modify the ranking in place: pending workloads by number, their credits and keys. Returns their number."""
    count = 0
    for first in range(0, s.next_arrival, WORD):
        if s.ended[first // WORD] == WORD:
            continue
        for job in range(first, min(first + WORD, s.next_arrival)):
            if s.status[job] == WAITING:
                m.credit[job] = _credit(s, m, job) if m.order_by[0] == BY_CREDIT else -_seconds(s, m, job)
                m.key[job] = -m.credit[job]
                m.order[count] = job
                count += 1
    return count


@kernel
def rank(s, m):
    """Modify the ranking in place: levels, and pending workloads in order. Returns their number.

    Highest priority first, then most credit, then first arrival. Orders by run times: ordering.py.
    Paper: mast, Sec. 4.2.
    """
    m.valid[AVERAGES] = m.valid[RUNNERS] = 0
    return _rank(s, m)


@kernel
def _rank(s, m):
    """`rank`, but for results that still hold."""
    if m.valid[RUNNERS] != RANKED:
        _rank_running(s, m)
        m.valid[RUNNERS] = RANKED
    if m.order_by[0] == BY_CREDIT and not m.valid[AVERAGES]:
        _average(s, m)
        m.valid[AVERAGES] = RANKED
    for tenant in range(m.n_tenants):
        for kind in range(KINDS):
            m.tenant_used[tenant, kind] = m.tenant_running[tenant, kind]
    count = _list_pending(s, m)
    _sort(m, count)
    for level in range(LOWEST + 2):
        m.level_place[level] = 0
    for at in range(count):
        job = m.order[at]
        tenant = m.tenant[job]
        m.level[job] = LOWEST
        if _fits(m, m.tenant_used, tenant, job):
            m.level[job] = s.job_level[job]
            for kind in range(KINDS):
                m.tenant_used[tenant, kind] += m.asked[job, kind]
        m.level_place[m.level[job] + 1] += 1
    if m.order_by[1]:
        _by_level(m, count)
    return count


@kernel
def _all_fit(s, m):
    """Modify uses in place: requests of running and pending workloads; True if they exceed no quota."""
    for tenant in range(m.n_tenants):
        for kind in range(KINDS):
            m.tenant_used[tenant, kind] = 0
    for place in range(s.running):
        _add_asked(m, s.runner[place])
    rank_ = next_member(s.window_low, s.window_mid, s.window_top, 0)
    while rank_ >= 0:
        _add_asked(m, s.job_at_rank[rank_])
        rank_ = next_member(s.window_low, s.window_mid, s.window_top, rank_ + 1)
    for tenant in range(m.n_tenants):
        for kind in range(KINDS):
            if m.tenant_used[tenant, kind] > m.quota[tenant, kind]:
                return False
    return True


@kernel
def _add_asked(m, job):
    for kind in range(KINDS):
        m.tenant_used[m.tenant[job], kind] += m.asked[job, kind]


@kernel
def set_levels(s, m):
    """Modify the ranking in place: levels as of `rank`, without the order.

    Within all quotas credits decide nothing. The caller sets in `valid` what still holds from the last call: averages,
    if no workload has lost units and the clock has not moved; running workloads with their levels, if also none has
    started; they have other levels only if `valid` changes.
    """
    if not _all_fit(s, m):
        _rank(s, m)
        return
    m.valid[RUNNERS] = ALL_FIT
    for place in range(s.running):
        m.level[s.runner[place]] = s.job_level[s.runner[place]]
    rank_ = next_member(s.window_low, s.window_mid, s.window_top, 0)
    while rank_ >= 0:
        job = s.job_at_rank[rank_]
        m.level[job] = s.job_level[job]
        rank_ = next_member(s.window_low, s.window_mid, s.window_top, rank_ + 1)


@kernel
def _by_level(m, count):
    """Modify the order in place: stably by level."""
    for level in range(LOWEST + 1):
        m.level_place[level + 1] += m.level_place[level]
    for at in range(count):
        job = m.order[at]
        m.sort_spare[m.level_place[m.level[job]]] = job
        m.level_place[m.level[job]] += 1
    for at in range(count):
        m.order[at] = m.sort_spare[at]


@entry
def scan(states, row, solvers):
    """`rank`, for Python."""
    return rank(states[row], solvers[row])
