"""How many workers each job of an auction gets: by hand, and against all ways to share the GPUs."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustergym.policies.themis import Bid, fair_counts


def bids(*asked: int, least: int = 1, most: int = 12, leased=None) -> list[Bid]:
    held = leased or [0] * len(asked)
    return [Bid(one, least, most, has) for one, has in zip(asked, held, strict=True)]


@pytest.mark.parametrize(
    ("asked", "gpus", "counts"),
    [
        ((12, 12), 24, [12, 12]),
        ((12, 12, 2), 24, [11, 11, 2]),  # paper cassini, Sec. 4.2: each of two gives up one worker
        ((4, 4), 24, [12, 12]),  # none has more than 12
        ((4, 4, 4), 24, [8, 8, 8]),
        ((6, 3, 3), 24, [12, 6, 6]),
        ((5, 10), 6, [2, 4]),
        ((3, 3, 3), 2, [1, 1, 0]),  # the farthest from fair first
    ],
)
def test_by_hand(asked, gpus, counts):
    assert fair_counts(bids(*asked), gpus) == counts


def test_models_that_are_split_have_all_or_nothing():
    """7 GPUs: the split one takes its 4, and 3 are left for two others; where it does not fit it is passed."""
    whole = Bid(4, 4, 4)
    assert fair_counts([whole, *bids(6, 6)], 7) == [4, 2, 1]
    assert fair_counts([Bid(9, 9, 9), *bids(6, 6)], 7) == [0, 4, 3]
    assert fair_counts([*bids(6, 6), whole], 5) == [3, 2, 0]


def test_a_job_that_holds_a_worker_under_a_lease_keeps_it_at_a_tie():
    """5 GPUs for two equal jobs: the third goes to the job that has it, not to the one farther from fair."""
    assert fair_counts(bids(4, 4), 5) == [3, 2]
    assert fair_counts(bids(4, 4, leased=[2, 3]), 5) == [2, 3]
    assert fair_counts(bids(4, 4, 4, leased=[0, 0, 2]), 2) == [1, 0, 1]  # and is there at all


def test_what_is_fair_stays_so():
    """The same auction again, every job with its workers under lease, changes nothing, in whatever order."""
    some = bids(7, 3, 11, 5, 2)
    counts = fair_counts(some, 17)
    for order in itertools.permutations(range(5)):
        again = [Bid(some[at].asked, 1, 12, counts[at]) for at in order]
        assert fair_counts(again, 17) == [counts[at] for at in order]


SHARES = st.lists(st.tuples(st.integers(1, 6), st.booleans()), min_size=1, max_size=4)


@given(jobs=SHARES, gpus=st.integers(1, 12), most=st.integers(1, 8))
def test_no_way_to_share_the_gpus_is_fairer(jobs, gpus, most):
    """Among all ways in which the same jobs get in, none makes the smallest share larger, or the next at the same.

    But for the last workers, between jobs with equal shares, all is settled by that: so what a job had before its last
    worker is compared.
    """
    some = [Bid(asked, asked, asked) if split else Bid(asked, 1, max(asked, most)) for asked, split in jobs]
    counts = fair_counts(some, gpus)
    assert sum(counts) <= gpus
    assert all(count == 0 or bid.least <= count <= bid.most for bid, count in zip(some, counts, strict=True))
    there = [(bid, count) for bid, count in zip(some, counts, strict=True) if count]
    full = all(count == bid.most for bid, count in there)
    assert full or sum(counts) == gpus
    smallest = min((count / bid.asked for bid, count in there), default=0.0)
    ways = itertools.product(*(range(bid.least, bid.most + 1) for bid, _ in there))
    shares = (
        min((n / bid.asked for n, (bid, _) in zip(way, there, strict=True)), default=0.0)
        for way in ways
        if sum(way) <= gpus
    )
    assert smallest == max(shares)
    for bid, count in there:
        for other, has in there:
            if count < bid.most and has > other.least:
                assert (has - 1) / other.asked <= count / bid.asked
    taken = sum(count for _, count in there)
    for bid, count in zip(some, counts, strict=True):
        assert count or bid.least > gpus - taken or sum(one.least for one, _ in there) + bid.least > gpus


@given(jobs=SHARES, gpus=st.integers(1, 12))
def test_more_gpus_are_worse_for_no_job_that_is_there(jobs, gpus):
    some = [Bid(asked, 1, 12) for asked, _ in jobs]
    fewer, more = fair_counts(some, gpus), fair_counts(some, gpus + 1)
    assert all(a <= b for a, b in zip(fewer, more, strict=True))
