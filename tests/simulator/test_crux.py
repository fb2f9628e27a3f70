"""Crux and MLTCP on shared links: intensities and levels by hand, in the whole simulator, and as part of a policy."""

from __future__ import annotations

import itertools
import random

import pytest

from clustergym import policies
from clustergym.simulator.base.decisions import Start
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.configuration.network_choice import load_network, network_for
from clustergym.simulator.contention.crux import MOST, Sender, compressed, correction, urgency
from clustergym.simulator.profiles.phases import in_order
from clustergym.tests.support.scripted_contention import ACROSS, ALSO, Script, contended

B = 50e9 / 8
STARTS = (0.0, Start(0, ACROSS)), (0.0, Start(1, ALSO))


def sender(down_s: float, up_s: float, gpus: int = 2) -> Sender:
    return Sender(gpus * down_s, in_order([(down_s, 0.0), (up_s, B)]), B)


def cost(order, shared, found):
    return sum(worth for pair, worth in shared.items() if found[pair[0]] == found[pair[1]])


# By hand


def test_intensity_is_computing_over_the_longest_time_on_a_link():
    assert sender(0.3, 0.1).intensity == pytest.approx(2 * 0.3 / 0.1)
    assert sender(0.3, 0.1, 8).intensity == pytest.approx(24.0)
    tight = Sender(0.6, in_order([(0.3, 0.0), (0.1, B)]), B / 4)
    assert tight.intensity == pytest.approx(1.5)


def test_the_correction_of_a_longer_iteration():
    """Of .2 + .1 and .1 + .1 s the longer has twice the intensity; the shorter goes first twice as often in a time.

    Going first saves either the same computing per second: the priorities are equal, and k is a half.
    """
    short, long = sender(0.1, 0.1), sender(0.2, 0.1)
    assert correction(long, short) == pytest.approx(0.5, rel=0.05)
    wanted = urgency({0: short, 1: long})
    assert wanted[1] == pytest.approx(wanted[0], rel=0.05)
    assert correction(short, short) == 1.0 and 1 / MOST <= correction(sender(3.0, 0.01), short) <= MOST


def test_jobs_that_meet_keep_their_order_as_long_as_there_are_levels():
    shared = dict.fromkeys(itertools.combinations([5, 3, 1, 0], 2), 1.0)
    found = compressed([5, 3, 1, 0], shared, 8)
    assert sorted(found, key=found.get, reverse=True) == [5, 3, 1, 0] and len(set(found.values())) == 4
    assert all(0 <= level < 8 for level in found.values())


def test_levels_are_cut_where_most_is_kept_apart():
    """5 and 3 meet, and that is worth more than 1 and 0, which meet too; 3 and 1 never meet."""
    assert compressed([5, 3, 1, 0], {(5, 3): 10.0, (1, 0): 5.0}, 2) == {5: 1, 3: 0, 1: 0, 0: 0}
    assert set(compressed([5, 3, 1, 0], {(5, 3): 10.0}, 1).values()) == {0}


@pytest.mark.parametrize("seed", range(30))
def test_no_other_cut_of_the_order_keeps_more_apart(seed):
    rng = random.Random(seed)
    count, levels = rng.randint(1, 7), rng.randint(1, 4)
    order = rng.sample(range(20), count)
    shared = {pair: rng.random() for pair in itertools.combinations(order, 2) if rng.random() < 0.6}
    found = compressed(order, shared, levels)
    assert [found[job] for job in order] == sorted(found.values(), reverse=True)
    least = min(
        cost(order, shared, {job: sum(at >= cut for cut in cuts) for at, job in enumerate(order)})
        for cuts in itertools.combinations_with_replacement(range(count + 1), levels - 1)
    )
    assert cost(order, shared, found) == pytest.approx(least)


# In the whole simulator


@pytest.mark.parametrize("mode", ["exact", "averaged"])
def test_one_of_two_jobs_runs_as_if_alone(mode):
    slowdown = {}
    for rates in ("fair", "crux"):
        rows = (0.0, 2, "half", 60.0), (0.0, 2, "twice", 60.0)
        simulator = contended(*rows, words=f",mode={mode},rates={rates}")
        simulator.run(Script(*STARTS))
        jct_s = simulator.jobs()["jct_s"]
        slowdown[rates] = sorted([jct_s[0] / (60 * 0.18), jct_s[1] / (60 * 0.31)])
    assert slowdown["crux"][0] == pytest.approx(1.0, abs=1e-3)
    assert slowdown["fair"][0] > 1.01 and slowdown["crux"][1] > 1.01


def test_the_last_job_is_behind_none():
    """Equal jobs: the first goes first, and takes 1.8 s; the other waits once for .08 s, and then meets none."""
    simulator = contended((0.0, 2, "half", 10.0), (0.0, 2, "half", 30.0), words=",rates=crux")
    simulator.run(Script(*STARTS))
    assert simulator.jobs()["jct_s"] == pytest.approx([1.8, 30 * 0.18 + 0.08], rel=1e-3)


def test_weights_that_grow_in_the_simulator():
    """A job that begins later by an offset is behind, and the two part: mean iterations near to those alone."""
    rows = (0.0, 2, "half", 200.0), (0.0, 2, "half", 200.0)
    found = {}
    for rates in ("fair", "mltcp"):
        simulator = contended(*rows, words=f",rates={rates},offsets=random")
        metrics = simulator.run(Script(*STARTS))
        found[rates] = metrics["iteration_time_mean"]
    assert found["mltcp"] < 0.185 < found["fair"]


# As part of a policy


def test_any_scheduler_has_them():
    for word, options in {
        "themis+crux": {"rates": "crux", "levels": 8},
        "themis+crux:levels=3,lease=300": {"rates": "crux", "levels": 3},
        "themis+mltcp:slope=1": {"rates": "mltcp", "base": 0.25, "slope": 1.0},
        "themis+cassini+mltcp:candidates=3": {"rates": "mltcp", "base": 0.25, "slope": 1.75},
        "dally+crux:levels=2": {"rates": "crux", "levels": 2},
    }.items():
        policy = policies.make(word)
        assert policy.name == word and dict(policy.on_links) == options
        network = network_for(policy, load_network("contention:jitter=0.1"))
        assert (network.rates, network.jitter) == (options["rates"], 0.1)
    assert policies.make("themis+crux:lease=300").clock.lease == 300.0


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("themis+crux:slope=1", "unknown parameter 'slope'"),
        ("themiss+crux", "did you mean 'themis'"),
        ("dally+mltcp:slope=steep", "slope"),
    ],
)
def test_words_that_name_no_scheduler(word, said):
    with pytest.raises(InputError, match=said):
        policies.make(word)


@pytest.mark.parametrize("words", ["levels=0", "base=0", "slope=-1", "rates=fastest", "levels=2.5"])
def test_options_that_are_none(words):
    key = words.partition("=")[0]
    with pytest.raises(InputError, match=f"network contention: {key}"):
        load_network(f"contention:{words}")


def test_without_links_they_say_what_they_need():
    with pytest.raises(InputError, match=r"policy themis\+crux: network 'none'.*contention, whose rates=crux"):
        network_for(policies.make("themis+crux"), load_network("none"))
