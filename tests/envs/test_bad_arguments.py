"""What an environment is made of is checked where it is made: a value that cannot be meant is one sentence."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import clustergym  # noqa: F401
from clustergym.simulator.base.errors import InputError

NAMES = ("Delay", "Sharing", "Geo", "TimeShift", "DataPlacement", "Grouping")


def refused(name: str, **arguments) -> str:
    with pytest.raises(InputError) as refusal:
        gymnasium.make(f"clustergym/{name}-v0", **arguments)
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


@pytest.mark.parametrize("name", NAMES)
def test_a_horizon_is_seconds_above_0(name):
    for value in (-1, -5.0, -0.5, 0, float("nan"), "soon"):
        assert refused(name, horizon_s=value) == f"horizon_s = {value!r}: expected seconds > 0"


@pytest.mark.parametrize("name", NAMES)
def test_times_of_failures_are_numbers(name):
    assert refused(name, mtbf_s="often") == "mtbf_s = 'often': expected a number"
    for value in (np.array([1, 2]), [3600.0]):
        assert f"expected one value, found a {type(value).__name__}" in refused(name, mtbf_s=value)


@pytest.mark.parametrize("name", ["Delay", "Sharing", "Geo"])
def test_a_round_is_one_number(name):
    for value in ([], (1.0, 2.0), [1.0]):
        assert refused(name, round=value) == f"round = {value!r}: expected seconds, one number"


def test_a_quota_is_a_number():
    assert refused("DataPlacement", quota="all") == "quota = 'all': expected a number"


def test_interference_is_a_word_or_has_a_matrix():
    for value in (3, None):
        assert f"interference = {value!r}: expected a word" in refused("Sharing", interference=value)
    assert refused("Sharing", interference=(1.0, 2.0)).endswith("expected one value, found a tuple")
    for value in ("x", -1):
        assert f"memory_gb = {value!r}: expected GiB > 0" in refused("Sharing", memory_gb=value)


def test_what_means_nothing_is_not_taken():
    said = "expected gpu=t4 in the word of the network, or a network without a type of GPU"
    assert refused("Sharing", gpu="t4").endswith(said)
    assert refused("TimeShift", memory_gb=11.0) == "memory_gb: it means nothing without jobs_per_gpu"
    assert refused("Delay", mttr_s=60.0) == "mttr_s: it means nothing without mtbf_s"
    assert "pull_share = 0.3: it means nothing with comm=merged" in refused("Grouping", pull_share=0.3)
    for words, usual, needed in (
        ("levels=4", "fair", "crux"),
        ("base=1", "fair", "mltcp"),
        ("slope=2", "fair", "mltcp"),
    ):
        said = f"it means nothing with rates={usual}; expected rates={needed}"
        assert refused("TimeShift", network=f"contention:{words}").endswith(said)
    said = refused("TimeShift", network="contention:link_mttr_s=60")
    assert said.endswith("link_mttr_s = 60.0: it means nothing without link_mtbf_s")


def test_what_is_known_is_listed_once_each():
    with pytest.raises(InputError) as refusal:
        gymnasium.make("clustergym/Geo-v0", prize="prices.csv")
    known = str(refusal.value).partition("known: ")[2].partition(" and ")[0].split(", ")
    assert "copy_time" in known and len(known) == len(set(known))
