"""How many workers each job of an auction gets: whole GPUs, max-min fair in count / request.

Paper cassini (Sec. 4.2 and 5.1) says that Themis tunes the number of workers by finish-time fairness, that a job may
bid for additional workers and win some or lose some, and that the number that a job asks at first is 1 to 12; it does
not say by which rule. Ours: a share of what it asks is what finish-time fairness compares (a job on half of the workers
that it asks progresses half as fast as it would alone), so the smallest share is made as large as it can be, then the
next. Ties go to who holds the worker under a lease, then to who is farther from fair.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Bid:
    """What a job may have.

    Attributes:
        asked: workers that it asks, >= 1. least, most: it has none, or `least` to `most`; 1 <= least <= most.
        leased: workers that it holds under a lease that runs; 0: it waits, or its lease is over.
    """

    asked: int
    least: int
    most: int
    leased: int = 0


def fair_counts(bids: Sequence[Bid], gpus: int) -> list[int]:
    """Workers of each job: nobody could have one more but from somebody whose share then is as small, or smaller.

    First jobs get their `least`: those under a lease, then in order; whoever does not fit is passed and gets nothing.
    Then one worker after the other goes to the smallest count / request.

    Args:
        bids: the farthest from fair first.
        gpus: how many there are, those that the jobs hold among them; enough for the `least` of all under a lease.

    Returns:
        Workers of each, in the order of the bids.

    Paper: themis, number of workers, as in paper cassini, Sec. 4.2 and 5.1.
    """
    counts = [0] * len(bids)
    for place in sorted(range(len(bids)), key=lambda place: bids[place].leased == 0):
        if bids[place].least <= gpus:
            counts[place] = bids[place].least
            gpus -= bids[place].least
    heap = [_turn(bids[place], place, count) for place, count in enumerate(counts) if count]
    heapq.heapify(heap)
    while gpus > 0 and heap:
        _, _, place = heapq.heappop(heap)
        if counts[place] < bids[place].most:
            counts[place] += 1
            gpus -= 1
            heapq.heappush(heap, _turn(bids[place], place, counts[place]))
    return counts


def _turn(bid: Bid, place: int, count: int) -> tuple[float, bool, int]:
    """When a job that has `count` workers is next; the smallest first."""
    return count / bid.asked, count >= bid.leased, place
