"""What an environment is made of is checked where it is made: a value that cannot be meant is one sentence."""

from __future__ import annotations

import math

import gymnasium
import numpy as np
import pytest

import clustergym  # noqa: F401
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.workloads import Workload
from clustergym.tests.support.env_terms import made

NAMES = ("Delay", "Sharing", "Geo", "TimeShift", "DataPlacement", "Grouping")


def refused(name: str, **arguments) -> str:
    with pytest.raises(InputError) as refusal:
        gymnasium.make(f"clustergym/{name}-v0", **arguments)
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


COMMON = (
    ({"slots": 0}, "slots"),
    ({"slots": 257}, "slots"),
    ({"slots": 2.5}, "slots"),
    ({"slots": True}, "slots"),
    ({"running_slots": -1}, "running_slots"),
    ({"running_slots": 257}, "running_slots"),
    ({"max_decisions": 0}, "max_decisions"),
    ({"observation": "image"}, "observation"),
    ({"reward": "jtc"}, "jct"),
    ({"render_mode": "rbg_array"}, "rgb_array"),
    ({"topology": "dolly"}, "dally"),
    ({"workload": "poison:jobs=5"}, "poisson"),
    ({"workload": "missing.csv"}, "missing.csv"),
    ({"mtbf_s": -5.0}, "mtbf_s"),
    ({"mtbf_s": 5.0, "mttr_s": 0.0}, "mttr_s"),
)
OWN = {
    "Delay": (
        ({"topology": "dally:racks=none"}, "racks"),
        ({"workload": Workload.from_arrays("w", [0], [33], [1])}, "33"),
        ({"network": "penalty:tabel=x"}, "table"),
        ({"network": 5}, "network"),
        ({"placer": "best"}, "placer"),
        ({"order": "longest"}, "order"),
        ({"running_order": "longest"}, "running_order"),
        ({"round": -1.0}, "round"),
        ({"lease": -1.0}, "lease"),
        ({"tuner": "quick"}, "tuner"),
        ({"tuner": {"memory": 3}}, "tuner"),
        ({"delays": (60.0, 0.0)}, "delays"),
        ({"delays": (math.inf,)}, "delays"),
        ({"delays": tuple(range(1, 40))}, "delays"),
        ({"delays": 60.0}, "delays"),
        ({"preemption_cost": -1.0}, "preemption_cost"),
        ({"preemption_cost": "cheap"}, "preemption_cost"),
        ({"preemption_cost": (1.0, 2.0, 3.0)}, "preemption_cost"),
        ({"mtbf_s": 5.0, "checkpoint_s": math.nan}, "checkpoint_s"),
    ),
    "Sharing": (
        ({"jobs_per_gpu": 0}, "jobs_per_gpu"),
        ({"jobs_per_gpu": 9}, "jobs_per_gpu"),
        ({"interference": "measurd"}, "measured"),
        ({"memory_gb": -1.0}, "memory_gb"),
        ({"memory": "some"}, "middle"),
        ({"memory_gb": 0.5}, "memory_gb"),
        ({"partners": 9}, "partners"),
        ({"partners": "two"}, "partners"),
        ({"exponents": 0}, "exponents"),
        ({"placer": "tiers"}, "tier"),
        ({"order": "longest"}, "order"),
        ({"reference": "sjf-bfbs"}, "sjf-bsbf"),
        ({"preemption": 1}, "preemption"),
        ({"elastic": "yes"}, "elastic"),
        ({"round": -1.0}, "round"),
    ),
    "Geo": (
        ({"clusters": 0}, "clusters"),
        ({"clusters": 17}, "clusters"),
        ({"region_slots": 65}, "region_slots"),
        ({"order": "importance"}, "priority"),
        ({"preempts": "all"}, "lower"),
        ({"tables": "tetris"}, "tetris-v"),
        ({"tables": 5}, "tetris-v2"),
        ({"tables_every_s": 0.0}, "tables_every_s"),
        ({"round": -1.0}, "round"),
        ({"reference": "masst"}, "mast"),
        ({"topology": "dally"}, "regions"),
        ({"workload": "poisson:jobs=4"}, "regions"),
        ({"topology": "mast:regions=5,gpus=256"}, "regions"),
        ({"region_mtbf_s": -1.0}, "region_mtbf_s"),
    ),
    "TimeShift": (
        ({"scheduler": "random"}, "themis"),
        ({"scheduler": "themsi"}, "themis"),
        ({"candidates": 2}, "candidates"),
        ({"candidates": "ten"}, "candidates"),
        ({"network": "penalty:table=chronus"}, "contention"),
        ({"network": "contention:mode=exactly"}, "exact"),
        ({"topology": "flat"}, "links"),
        ({"shifts": "casini"}, "cassini"),
        ({"order": "longest"}, "order"),
        ({"reference": "themis+casini"}, "themis+cassini"),
        ({"jobs_per_gpu": 0}, "jobs_per_gpu"),
        ({"workload": "philly-sample:jobs=4"}, "model"),
    ),
    "DataPlacement": (
        ({"scheduler": "msat"}, "mast"),
        ({"scheduler": "las"}, "mast"),
        ({"quota": -0.1}, "quota"),
        ({"quota": "half"}, "quota"),
        ({"region_slots": 0}, "region_slots"),
        ({"region_slots": 2}, "expected 3 or more"),
        ({"tables_every_s": 0.0}, "tables_every_s"),
        ({"reward": "plaecment"}, "placement"),
        ({"reference": "tetris-v3"}, "tetris-v2"),
        ({"reference": "static", "reward": "placement"}, "expected reward = 'jct'"),
        ({"topology": "flat", "workload": "philly-sample:jobs=4"}, "tables"),
        ({"topology": "mast:regions=4,gpus=256"}, "regions"),
    ),
    "Grouping": (
        ({"network": "penalty"}, "network = 'penalty': expected 'none'"),
        ({"busy": 0.2}, "busy = 0.2"),
        ({"group_slots": 0}, "group_slots = 0: expected a whole number from 1 to 32"),
        ({"machine_choices": 1000}, "machine_choices = 1000"),
        ({"spill_choices": 0}, "spill_choices = 0: expected a whole number from 1 to 12"),
        ({"order": "classes"}, "order"),
    ),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_bad_argument_is_one_sentence(name):
    """Where it is made, or at the first reset."""
    for options, part in (*COMMON, *OWN[name]):
        with pytest.raises(InputError) as error:
            made(f"clustergym/{name}-v0", **options).reset(seed=0)
        assert part in str(error.value) and "\n" not in str(error.value), options


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
