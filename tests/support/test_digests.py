"""Runs are what they were before anything was moved or renamed: tests/support/digests.py."""

from __future__ import annotations

import numpy as np
import pytest

from clustergym.tests.support import digests
from clustergym.tests.support.settings import FEW, SETTINGS

written_elsewhere = pytest.mark.skipif(
    digests.kept()["written_on"] != digests.here(), reason="digests.json was written with another numpy or processor"
)


def test_every_setting_has_its_digests():
    assert list(digests.kept()["digests"]) == list(SETTINGS) and len(SETTINGS) == 60


def test_a_text_does_not_depend_on_the_order_of_a_dict_and_does_on_the_last_bit():
    one = {"b": np.zeros(3, np.float32), "a": (1.0, True, None)}
    other = {"a": [1.0, np.True_, None], "b": np.zeros(3, np.float32)}
    assert digests.spelt(one) == digests.spelt(other)
    assert digests.spelt(1.0) != digests.spelt(np.nextafter(1.0, 2.0))
    assert digests.spelt(np.zeros(3)) != digests.spelt(np.zeros(3, np.float32))
    assert digests.spelt(np.zeros((1, 3))) != digests.spelt(np.zeros(3))


@written_elsewhere
def test_a_setting_of_every_environment_is_as_it_was():
    assert digests.compare(FEW) == {}


@pytest.mark.slow
@written_elsewhere
def test_all_settings_are_as_they_were():
    """About a minute once everything is compiled."""
    assert digests.compare(SETTINGS) == {}
