"""When shifts are worth their padding."""

from __future__ import annotations

import numpy as np
import pytest

from clustergym.policies.cassini.cassini import Candidate, free_score, interleave, is_worth
from clustergym.simulator.cluster.routes import LinkUse
from clustergym.simulator.profiles.phases import Phases

HALF = Phases(1.0, (0.0,), (0.5,), (100.0,))


def test_the_score_without_shifts_is_that_of_chance():
    """Two jobs that want 100 of 100 half of the time are both up a quarter of it, and exceed it by 100 then."""
    assert free_score((HALF, HALF), (1, 1), 100.0) == pytest.approx(0.75)
    assert free_score((HALF, HALF), (1, 1), 200.0) == 1.0
    assert free_score((HALF, HALF), (2, 1), 100.0) == pytest.approx(1.0 - 0.25 * 1.0 - 0.25 * 2.0)


def test_the_score_without_shifts_is_the_mean_over_offsets():
    """Of three jobs with several phases, against 40,000 random times."""
    rng = np.random.default_rng(0)
    phases = (HALF, Phases(0.7, (0.1, 0.3), (0.1, 0.2), (80.0, 40.0)), Phases(2.0, (0.5,), (1.2,), (60.0,)))
    total = sum(
        count * one.rate_at(rng.uniform(0, one.iteration_s, 40000))
        for one, count in zip(phases, (1, 2, 1), strict=True)
    )
    drawn = 1.0 - np.maximum(total - 100.0, 0.0).mean() / 100.0
    assert free_score(phases, (1, 2, 1), 100.0) == pytest.approx(drawn, abs=0.01)


def test_shifts_are_worth_what_they_save():
    jobs, alone = [("a", "b")], {"a": 1.0, "b": 1.0}
    assert is_worth(jobs, [0.75], [1.0], alone, {"a": 1.25, "b": 1.25})
    assert not is_worth(jobs, [0.75], [1.0], alone, {"a": 1.25, "b": 1.26})
    assert is_worth(jobs, [1.0], [1.0], alone, alone)


def placed(*seconds: float) -> Candidate:
    """Jobs of such iterations, half of them up, on one link."""
    one = LinkUse(np.array([0]), np.array([1]))
    phases = {job: Phases(s, (0.0,), (s / 2,), (100.0,)) for job, s in enumerate(seconds)}
    return Candidate(dict.fromkeys(phases, one), phases)


def test_jobs_of_equal_periods_are_shifted_and_others_are_not():
    """Of 1 s and 0.0031 s no circle is shorter than 24 iterations of the short one: it would wait 12 times as long."""
    capacity = np.array([100.0])
    equal = interleave(placed(1.0, 1.0), capacity, if_worth=True)
    assert equal.shifts_s == {0: 0.0, 1: 0.5} and equal.scores == {0: 1.0}
    apart = interleave(placed(1.0, 0.0031), capacity, if_worth=True)
    assert apart.shifts_s == {} and apart.scores == {0: pytest.approx(0.75)} and apart.jobs_on == {0: (0, 1)}
    assert set(interleave(placed(1.0, 0.0031), capacity).shifts_s) == {0, 1}
