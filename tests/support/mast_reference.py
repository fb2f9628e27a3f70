"""GMS in plain Python, slow and short: levels, credits and the order of the queue at a decision point."""

from __future__ import annotations

import numpy as np

from clustergym.simulator.base.codes import RUNNING

LOWEST = 6
DAY_S = 86_400.0


def held_s(s, job):
    """Seconds of the last day in which a job held its units, its stays before the last stop in one piece."""
    end_s = s.finish_s[job] if s.finish_s[job] >= 0 else s.stopped_s[job]
    now_s = s.now_s - s.started_s[job] if s.status[job] == RUNNING else 0.0
    before_s = 0.0
    if s.attained_s[job] > 0 and end_s >= 0:
        before_s = max(0.0, end_s - max(end_s - s.attained_s[job], s.now_s - DAY_S))
    return min(DAY_S, now_s + before_s)


def fits(used, quota, asked):
    return all(a == 0 or u + a <= q for u, q, a in zip(used, quota, asked, strict=True))


def ranking(view):
    """Level by running or pending job, and the pending ones in order."""
    s, demands = view._simulator.state, view.demands
    level = {}
    used, within = np.zeros_like(demands.quota), np.zeros_like(demands.quota)
    for job in sorted(view.running.tolist(), key=lambda job: (s.started_s[job], job)):
        tenant, asked = demands.tenant[job], demands.asked[job]
        inside = fits(within[tenant], demands.quota[tenant], asked)
        level[job] = int(demands.level[job]) if inside else LOWEST
        used[tenant] += asked
        within[tenant] += asked * inside
    average = np.zeros(demands.quota.shape)
    for job in range(int(s.next_arrival)):
        average[demands.tenant[job]] += held_s(s, job) * demands.asked[job] / DAY_S
    whole = average.sum(axis=0)
    share = np.where(whole > 0, average / np.where(whole > 0, whole, 1.0), 0.0).max(axis=1)
    credit = {
        job: min(float(s.now_s - s.waiting_since_s[job]), DAY_S) / DAY_S + 1.0 - share[demands.tenant[job]]
        for job in view.queue.tolist()
    }
    pending = sorted(credit, key=lambda job: (-credit[job], job))
    for job in pending:
        tenant, asked = demands.tenant[job], demands.asked[job]
        inside = fits(used[tenant], demands.quota[tenant], asked)
        level[job] = int(demands.level[job]) if inside else LOWEST
        used[tenant] += asked * inside
    return level, sorted(pending, key=lambda job: (level[job], -credit[job], job)), credit
