"""Whether shifts are worth what they cost: jobs that keep a shift wait out the padding of their period.

The paper takes iteration times that have a small common multiple for granted. Free ones have none: the period at which
jobs stay interleaved is longer than an iteration, by much where one job's iterations are many times as long as the
other's. "Respecting the time-shift is only required for compatible jobs. All other jobs in the cluster can send packets
at any time" (Sec. 5.7). So a component's jobs are shifted if what that saves them is at least what it costs:

    sum over jobs of the excess saved on the link that gains most  >=  sum over jobs of period / iteration - 1

Excess is a fraction of the link's capacity, as in Eq. 2; it is a fraction of time too, as what exceeds the capacity is
sent later. Without shifts all offsets are equally likely, so the excess is the expectation over independent jobs.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping, Sequence

from ...simulator.profiles.phases import Phases

ROUNDING = 1e-9  # of sums that are equal


@functools.lru_cache(maxsize=4096)
def free_score(phases: tuple[Phases, ...], flows: tuple[int, ...], capacity: float) -> float:
    """The expected compatibility score of a link whose jobs run as they like, offsets uniform and independent.

    Args:
        phases: of each job. flows: of each across the link. capacity: bytes per second.
    """
    chance = {0.0: 1.0}
    for one, count in zip(phases, flows, strict=True):
        idle = max(0.0, 1.0 - one.up_s / one.iteration_s)
        parts = [(0.0, idle)]
        parts += [
            (count * rate, seconds / one.iteration_s) for rate, seconds in zip(one.rate, one.duration_s, strict=True)
        ]
        after: dict[float, float] = {}
        for total, before in chance.items():
            for more, part in parts:
                after[total + more] = after.get(total + more, 0.0) + before * part
        chance = after
    return 1.0 - sum(part * max(0.0, total - capacity) for total, part in chance.items()) / capacity


def is_worth(
    jobs_on: Sequence[Sequence[Hashable]],
    free: Sequence[float],
    shifted: Sequence[float],
    iteration_s: Mapping[Hashable, float],
    period_s: Mapping[Hashable, float],
) -> bool:
    """Whether a component's jobs gain by shifts.

    Args:
        jobs_on: the jobs of each link. free, shifted: its score without and with shifts.
        iteration_s, period_s: of every job.
    """
    saved = dict.fromkeys(iteration_s, 0.0)
    for jobs, without, score in zip(jobs_on, free, shifted, strict=True):
        for job in jobs:
            saved[job] = max(saved[job], score - without)
    cost = sum(period_s[job] / seconds - 1.0 for job, seconds in iteration_s.items())
    return sum(saved.values()) >= cost - ROUNDING
