"""Crux: which of the jobs that share links goes first, by how much computing waits for its bytes.

Source: Crux (Cao et al., SIGCOMM'24), known by a summary only. It has few priority levels, renewed with the jobs, and

    I_j = W_j / t_j        intensity: the computing of an iteration on all GPUs of the job, over the longest time that
                           its bytes take on any of its links, max over e of M_je / B_e (Eq. 2)
    P_j = k_j x I_j        strict priorities; k_j corrects for the length of iterations and for overlap (Eq. 3)

Ours are:

* W_j is GPUs x Down seconds: the floating point operations of our models are not known.
* k_j: the two strict orders of the job and of a reference, that with the most bytes on a link, are played on one link.
  P_j / P_reference is the ratio of their gains in computing per second by going first. 1 / MOST <= k <= MOST.
* Compression: the order by P is cut into levels where that keeps most apart, of the pairs that share a link each worth
  the intensity of its higher job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations

import numpy as np

from ..cluster.routes import LinkUse
from ..network.simulated import Simulated
from .least_paths import Sender
from .link_network import Joined
from .phase_run import Contender, steady_state

MOST = 8.0  # of k, and 1 / MOST the least
WARM_UP, PLAYED = 5, 40  # iterations of the longer job, of two on one link
ONE_FLOW = LinkUse(np.array([0]), np.array([1]))


def priorities(simulator: Simulated, joined: Joined, levels: int) -> dict[int, int]:
    """The priority of every running job that sends, 0 to `levels` - 1, the highest first; alone on its links 0.

    Paper: crux, Sec. 4.2 and 4.3.
    """
    found = dict.fromkeys(joined.phases, 0)
    capacity = simulator.state.link_capacity
    for jobs in joined.groups():
        if len(jobs) < 2:
            continue
        senders = {j: Sender.on(simulator.view.gpus(j), joined.phases[j], joined.uses[j], capacity) for j in jobs}
        wanted = urgency(senders)
        order = sorted(jobs, key=lambda job: (-wanted[job], job))
        shared = {
            (first, second): senders[first].intensity
            for first, second in combinations(order, 2)
            if np.intersect1d(joined.uses[first].links, joined.uses[second].links, assume_unique=True).size
        }
        found.update(compressed(order, shared, levels))
    return found


def urgency(senders: Mapping[int, Sender]) -> dict[int, float]:
    """P = k x I of jobs that share links, Eq. 3. Paper: crux, Eq. 2 and 3."""
    reference = max(senders.values(), key=lambda one: one.phases.bytes / one.room)
    return {job: correction(one, reference) * one.intensity for job, one in senders.items()}


@lru_cache(maxsize=4096)
def correction(sender: Sender, reference: Sender) -> float:
    """The k of a job beside the reference, whose own is 1."""
    if sender == reference:
        return 1.0
    room = min(sender.room, reference.room)
    pair = (sender, reference)
    rate = []
    for first in (1, 0), (0, 1):
        jobs = [Contender(one.phases, ONE_FLOW, priority=each) for one, each in zip(pair, first, strict=True)]
        rate.append(1.0 / steady_state([room], jobs, WARM_UP, PLAYED).iteration_s)
    saved = sender.work * (rate[0][0] - rate[1][0])
    lost = reference.work * (rate[1][1] - rate[0][1])
    if saved <= 0.0 or lost <= 0.0:
        return 1.0 if saved <= lost and lost <= 0.0 else MOST if saved > 0.0 else 1.0 / MOST
    return float(np.clip(saved / lost * reference.intensity / sender.intensity, 1.0 / MOST, MOST))


def compressed(order: Sequence[int], shared: Mapping[tuple[int, int], float], levels: int) -> dict[int, int]:
    """The priority of each job, 0 to `levels` - 1, highest first, from `order`, the most urgent first.

    `shared`: the cost of two jobs, the more urgent first, in one level; other pairs cost nothing.
    """
    count = len(order)
    place = {job: at for at, job in enumerate(order)}
    pairs = np.zeros((count, count))
    for (first, second), worth in shared.items():
        pairs[place[first], place[second]] = worth
    inside = np.zeros((count + 1, count + 1))  # [a, b]: the cost of the level order[a:b]
    for first in range(count - 1, -1, -1):
        inside[first, first + 1 :] = inside[first + 1, first + 1 :] + np.cumsum(pairs[first])[first:]
    best = np.full(count + 1, np.inf)
    best[0] = 0.0
    cuts = []
    for _ in range(min(levels, count)):
        total = best[:, None] + np.where(np.tri(count + 1, dtype=bool), np.inf, inside)
        total[np.arange(count + 1), np.arange(count + 1)] = best  # an empty level
        cuts.append(total.argmin(axis=0))
        best = total.min(axis=0)
    found, end = {}, count
    for level, begun in zip(range(levels - len(cuts), levels), reversed(cuts), strict=True):
        found.update(dict.fromkeys(order[begun[end] : end], level))
        end = int(begun[end])
    return found
