"""Weights and priorities on shared links: closed forms, a plain filling, and weights that grow as a job sends."""

from __future__ import annotations

import dataclasses
import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustergym.simulator.base.errors import InputError
from clustergym.simulator.cluster.links import GBPS
from clustergym.simulator.contention.phase_run import Contender, Growth, PhaseRun, steady_state
from clustergym.simulator.profiles.phases import Phases, in_order
from clustergym.tests.support.drawn import calm
from clustergym.tests.support.fluid_reference import max_min
from clustergym.tests.support.random_contention import PLAYED_S, outcome, random_run, use

C = 48 * GBPS
SENDING = Phases(10.0, (0.0,), (10.0,), (C,))


def rates(capacity, jobs, **options) -> list[float]:
    """Of jobs that send for ever, in Gbps."""
    run = PhaseRun([each * GBPS for each in capacity], jobs, **options)
    run.play(1e-6)
    return (run.state.send_rate[: len(jobs)] / GBPS).tolist()


def sender(links, weight=1.0, priority=0, gbps=48.0) -> Contender:
    phases = Phases(10.0, (0.0,), (10.0,), (gbps * GBPS,))
    return Contender(phases, use(dict.fromkeys(links, 1)), weight=weight, priority=priority)


# Closed forms


def test_two_jobs_share_a_link_by_their_weights():
    assert rates([48], [sender([0], 3), sender([0], 1)]) == pytest.approx([36, 12], rel=1e-9)
    assert rates([48], [sender([0], 0.25), sender([0], 2)]) == pytest.approx([48 / 9, 48 * 8 / 9], rel=1e-8)


def test_what_one_cannot_use_of_its_weight_the_others_get():
    assert rates([48], [sender([0], 10, gbps=20), sender([0], 1), sender([0], 3)]) == pytest.approx([20, 7, 21])


def test_three_jobs_on_two_links_by_weights():
    """Link 0 of 48: 1 and 3. Link 1 of 20: 1 and 1, so the first has 10 there, and the second 38 of link 0."""
    assert rates([48, 20], [sender([0, 1]), sender([0], 3), sender([1])]) == pytest.approx([10, 38, 10])
    assert rates([48, 40], [sender([0, 1]), sender([0], 3), sender([1])]) == pytest.approx([12, 36, 28])


def test_a_job_with_priority_has_all_it_wants():
    assert rates([48], [sender([0], 1, 0), sender([0], 1, 1, gbps=30)]) == pytest.approx([18, 30])
    assert rates([48], [sender([0], 1, -1), sender([0], 1, 5), sender([0], 1, 0)])[1] == 48
    three = [sender([0], 1, 2, gbps=30), sender([0], 2, 1), sender([0], 1, 1)]
    assert rates([48], three) == pytest.approx([30, 12, 6])


def test_priority_on_one_link_leaves_room_on_another():
    """The middle one waits for the first on link 0, and so the last has all of link 1, whatever its priority."""
    jobs = [sender([0], 1, 2), sender([0, 1], 1, 1), sender([1], 1, 0)]
    found = rates([48, 48], jobs)
    assert found[0] == 48 and found[1] < 1e-6 and found[2] == pytest.approx(48)


def test_iterations_of_two_jobs_by_weight_and_priority():
    """1 s of computing and 1 s of the whole link, both begin at once. Priority: 2 s; the other sends in 1 s of each."""
    each = Contender(in_order([(1.0, 0.0), (1.0, C)]), use({0: 1}))
    first, second = dataclasses.replace(each, priority=1), each
    run = PhaseRun([C], [first, second], log=True)
    run.play(40.0)
    assert run.durations[0] == pytest.approx(2.0)
    assert run.durations[1][:3] == pytest.approx([3.0, 2.0, 2.0], abs=1e-6)  # it has waited once, and meets none
    # Weights 3 and 1: at 1 s rates of 3/4 and 1/4; the first is done at 1 + 4/3, the second has 2/3 of its bytes left.
    run = PhaseRun([C], [dataclasses.replace(each, weight=3.0), each], log=True)
    run.play(2.0 + 2.0)
    assert run.durations[0][0] == pytest.approx(1.0 + 4 / 3)
    assert run.durations[1][0] == pytest.approx(1.0 + 4 / 3 + 2 / 3)


# Against the reference's filling


@calm(150)
@given(st.integers(0, 1_000_000), st.booleans())
def test_rates_are_those_of_a_plain_filling(seed, strict):
    rng = random.Random(seed)
    links, jobs = rng.randint(1, 6), rng.randint(1, 9)
    capacity = np.floor(np.array([rng.choice([10.0, 25.0, 50.0, 40 + 40 * rng.random()]) for _ in range(links)]) * GBPS)
    uses = [
        {link: rng.choice([1, 1, 2, 3]) for link in rng.sample(range(links), rng.randint(1, links))}
        for _ in range(jobs)
    ]
    flows = np.array([[float(each.get(link, 0)) for each in uses] for link in range(links)])
    asked = np.rint([rng.choice([5.0, 45.0, 50 * rng.random() + 0.1]) * GBPS for _ in range(jobs)])
    weight = np.array([rng.randint(1, 4096) / 1024 for _ in range(jobs)])
    priority = [rng.randint(-1, 2) if strict else 0 for _ in range(jobs)]
    senders = [
        Contender(Phases(9.0, (0.0,), (9.0,), (float(asked[i]),)), use(uses[i]), weight=weight[i], priority=priority[i])
        for i in range(jobs)
    ]
    run = PhaseRun(capacity, senders)
    run.play(1e-6)
    own = np.array([min(capacity[link] // count for link, count in each.items()) for each in uses])
    expected = max_min(np.minimum(asked, own), flows.T, capacity, weight, np.array(priority))
    assert np.array(run.state.send_rate[:jobs]) == pytest.approx(expected, rel=1e-7, abs=100.0)


# What must not matter


@pytest.mark.parametrize("seed", range(30))
def test_equal_weights_in_one_class_change_no_bit(seed):
    plain, alike = random_run(seed), random_run(seed)
    alike.state["is_weighted"] = 1
    found = []
    for run in (plain, alike):
        run.play(PLAYED_S)
        found.append(outcome(run))
        del found[-1]["link_congestion"]  # a sum in the order of the jobs of a fill, which the table has otherwise
    assert found[0] == found[1]
    assert alike.link_congestion == pytest.approx(plain.link_congestion, rel=1e-12)


@calm(60)
@given(st.integers(0, 1_000_000), st.lists(st.floats(0.0, 15.0), min_size=1, max_size=6).map(sorted), st.booleans())
def test_a_weighted_run_is_the_same_however_it_is_cut(seed, times, grows):
    whole, cut = weighted_run(seed, grows), weighted_run(seed, grows)
    for until_s in times:
        cut.play(until_s)
    whole.play(times[-1])
    assert outcome(whole) == outcome(cut)


def weighted_run(seed: int, grows: bool) -> PhaseRun:
    drawn, rng = random_run(seed), random.Random(seed)
    jobs = [
        dataclasses.replace(job, weight=rng.choice([0.5, 1.0, 3.0]), priority=rng.randint(0, 2)) for job in drawn.jobs
    ]
    return PhaseRun(drawn.capacity, jobs, carried=drawn.carried, growth=Growth(0.25, 1.75) if grows else None)


@pytest.mark.parametrize("seed", range(30))
def test_bytes_are_those_of_the_phases_whatever_the_weights(seed):
    for grows in (False, True):
        run = weighted_run(seed, grows)
        jobs = [dataclasses.replace(job, rounds=3.0, shift_s=None) for job in run.jobs]
        growth = Growth(0.25, 1.75) if grows else None
        run = PhaseRun(run.capacity, jobs, growth=growth)
        run.play(1e6)
        assert (run.iterations == 3).all()
        due = sum(3 * job.phases.bytes * job.use.flows.sum() for job in jobs)
        assert run.link_bytes.sum() == pytest.approx(due, rel=1e-6)


# Weights that grow


def grown_end_s(sizes, sent, base, slope, capacity) -> float:
    """When the first of two flows on one link has sent all, seconds, in closed form.

    Rates are capacity x w_i / (w_1 + w_2), and dw_i = slope / size_i x rate_i dt. In u with du = capacity dt / (w_1 +
    w_2) every weight is w_i(0) e^(slope u / size_i), so t is the sum over i of w_i(0) size_i / slope x
    (e^(slope u / size_i) - 1), over capacity; flow i is done where its weight is base + slope.
    """
    start = [base + slope * part for part in sent]
    ends = [size / slope * math.log((base + slope) / each) for size, each in zip(sizes, start, strict=True)]
    u = min(ends)
    return (
        sum(each * size / slope * math.expm1(slope * u / size) for size, each in zip(sizes, start, strict=True))
        / capacity
    )


def first_end_s(sizes_s, head_start_s, growth) -> float:
    """When the first of two flows of so many seconds of the link ends, if the first begins so much earlier."""
    jobs = [
        Contender(in_order([(seconds, C), (100.0, 0.0)]), use({0: 1}), begin_s=begin_s)
        for seconds, begin_s in zip(sizes_s, (0.0, head_start_s), strict=True)
    ]
    run = PhaseRun([C], jobs, growth=growth, log=True)
    run.play(50.0)
    when, _, rate, _ = run.log()
    return float(when[rate == 0.0][0])


@pytest.mark.parametrize(("sizes_s", "head_start_s"), [((1.0, 1.0), 0.3), ((1.0, 3.0), 0.2), ((4.0, 1.0), 0.1)])
def test_steps_of_a_growing_weight_come_near_to_its_closed_form(sizes_s, head_start_s):
    """Second order: four times as many steps, an error a sixteenth, or so; the 32 of the default are within 0.2 %."""
    base, slope = 0.25, 1.75
    sizes = [seconds * C for seconds in sizes_s]
    exact = head_start_s + grown_end_s(sizes, (head_start_s / sizes_s[0], 0.0), base, slope, C)
    tried = [Growth(base, slope, steps) for steps in (8, 32, 128, 1024)]
    error = [abs(first_end_s(sizes_s, head_start_s, growth) / exact - 1) for growth in tried]
    assert error[1] < 2e-3 and error[2] < error[1] / 8 and error[3] < 3e-6 and error[0] > 5 * error[1]
    assert Growth(base, slope).steps == 32


def test_flows_of_one_size_keep_the_ratio_of_their_weights():
    """By the closed form both weights grow by the same factor: the one 0.3 ahead has .775 of 1.025 all the time."""
    exact = 0.3 + 0.7 * (0.775 + 0.25) / 0.775
    assert first_end_s((1.0, 1.0), 0.3, Growth(0.25, 1.75, 256)) == pytest.approx(exact, rel=1e-3)


def test_jobs_that_begin_together_stay_together_and_others_part():
    """MLTCP's point: with weights that grow two equal jobs end up in turns; with fixed ones they meet for ever."""
    phases = in_order([(1.0, 0.0), (1.0, C)])
    jobs = [Contender(phases, use({0: 1}), begin_s=start) for start in (0.0, 0.1)]
    fair, grown = steady_state([C], jobs), steady_state([C], jobs, 40, growth=Growth(0.25, 1.75))
    assert fair.iteration_s == pytest.approx(2.9, rel=0.02)
    assert grown.iteration_s == pytest.approx(2.0, rel=0.01)
    together = steady_state([C], [jobs[0]] * 2, growth=Growth(0.25, 1.75))
    assert together.iteration_s == pytest.approx(3.0, rel=1e-6)


@pytest.mark.parametrize("weight", [0.0, -1.0, math.inf, math.nan])
def test_weights_that_are_none(weight):
    with pytest.raises(InputError, match=r"job 0: weight = .*: expected a finite number above 0"):
        PhaseRun([C], [sender([0], weight)])
