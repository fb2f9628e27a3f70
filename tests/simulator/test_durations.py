"""Durations as text: the unit that a person would use."""

from __future__ import annotations

import math

import pytest

from clustergym.simulator.base.durations import duration


@pytest.mark.parametrize(
    ("seconds", "text", "narrow"),
    [
        (0.0, "0 s", "0 s"),
        (0.5, "0.5 s", "0.5 s"),
        (90.0, "1.5 min", "1.5 min"),
        (600.0, "10 min", "10 min"),
        (3600.0, "1 h", "1.0 h"),
        (9000.0, "2.5 h", "2.5 h"),
        (-9000.0, "-2.5 h", "-2.5 h"),
        (2 * 86400.0, "48 h", "48 h"),
        (864_000.0, "10 d", "10 d"),
        (1e8 * 86400.0, "100,000,000 d", "100000000 d"),
        (math.inf, "-", "-"),
        (math.nan, "-", "-"),
    ],
)
def test_a_duration_reads_like_a_person_would_say_it(seconds, text, narrow):
    assert (duration(seconds), duration(seconds, digits=2)) == (text, narrow)
