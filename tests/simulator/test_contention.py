"""Jobs that share links: closed forms, fair rates against linear programs, and what must not change a result."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import os
import random
import subprocess
import sys

import numpy as np
import pytest

from clustergym.simulator.base.errors import InputError
from clustergym.simulator.cluster.links import GBPS
from clustergym.simulator.contention import network_calls as rows
from clustergym.simulator.contention.phase_run import Contender, PhaseRun, steady_state, write_phases
from clustergym.simulator.profiles.phases import Phases, in_order
from clustergym.tests.support import random_contention
from clustergym.tests.support.drawn import some
from clustergym.tests.support.paths import ROOT, SUPPORT
from clustergym.tests.support.random_contention import PLAYED_S, outcome, random_run, use

SCENARIOS = 60
C = 50 * GBPS


def down_up(down_s: float, up_s: float, gbps: float = 50.0) -> Phases:
    return in_order([(down_s, 0.0), (up_s, gbps * GBPS)])


def one_link(phases: list[Phases], shifts: list[float | None], period_s: float | None = None, **options) -> PhaseRun:
    """Jobs on one link of 50 Gbps, one flow each, all there from time 0."""
    jobs = [
        Contender(each, use({0: 1}), shift_s=shift, period_s=period_s)
        for each, shift in zip(phases, shifts, strict=True)
    ]
    return PhaseRun([C], jobs, **options)


# Closed forms


def test_alone_a_job_takes_what_its_phases_say():
    phases = in_order([(0.03, 0), (0.02, 20 * GBPS), (0.01, 0), (0.05, C), (0.04, 0)], 0.2)
    run = PhaseRun([C, C], [Contender(phases, use({0: 1, 1: 1}))], log=True)
    run.play(20.0)
    assert run.alone_s[0] == pytest.approx(0.2, abs=1e-12)
    assert run.durations[0] == pytest.approx(0.2, abs=1e-9) and len(run.durations[0]) in (99, 100)
    assert run.communication_s[0] == pytest.approx(0.07)
    assert run.congestion_bytes == 0.0 and run.state.fills == 0


def test_two_in_lockstep_take_compute_plus_twice_communication():
    run = one_link([down_up(0.1, 0.08)] * 2, [None, None], log=True)
    run.play(10.0)
    for durations in run.durations:
        assert durations == pytest.approx(0.1 + 2 * 0.08, abs=1e-9)
    assert run.communication_s == pytest.approx(2 * 0.08)
    # Both offer C: half of what is offered is above capacity, as long as they send.
    iterations = math.floor(10.0 / 0.26)
    assert run.congestion_bytes == pytest.approx(C * 0.16 * iterations + C * max(0, 10.0 - 0.26 * iterations - 0.1))
    assert run.job_congestion == pytest.approx(run.congestion_bytes / 2)


def test_two_that_interleave_take_compute_plus_once_communication():
    run = one_link([down_up(0.1, 0.08)] * 2, [0.0, 0.09], log=True)
    run.play(10.0)
    for durations in run.durations:
        assert durations[1:] == pytest.approx(0.1 + 0.08, abs=1e-9)
    assert run.congestion_bytes == 0.0


@pytest.mark.parametrize("carried", [1.0, 0.88, 0.5, 0.07])
def test_of_a_link_to_which_too_much_is_offered_a_part_arrives(carried):
    """k equal jobs in lockstep: each Up phase takes k / carried times as long; alone, or within the link, nothing."""
    for jobs in (1, 2, 3):
        run = one_link([down_up(0.1, 0.08)] * jobs, [None] * jobs, carried=carried)
        run.play(100.0)
        assert run.iteration_s == pytest.approx(0.1 + (jobs * 0.08 / carried if jobs > 1 else 0.08), abs=1e-7)
    within = one_link([down_up(0.1, 0.08, 25)] * 2, [None] * 2, carried=carried)
    within.play(10.0)
    assert within.iteration_s == pytest.approx(0.18) and within.congestion_bytes == 0.0


@pytest.mark.parametrize("seed", range(20))
def test_the_less_a_hot_link_carries_the_less_has_the_job_with_least(seed):
    drawn, least = random_run(seed), []
    for carried in (1.0, 0.9, 0.7, 0.3):
        jobs = [Contender(Phases(9.0, (0.0,), (9.0,), (max(job.phases.rate),)), job.use) for job in drawn.jobs]
        run = PhaseRun(drawn.capacity, jobs, carried=carried)
        run.play(1e-6)
        least.append(float(run.state.send_rate[: len(jobs)].min()))
    assert least == sorted(least, reverse=True)


def test_a_link_that_a_job_crosses_twice_binds_it_alone():
    run = PhaseRun([C], [Contender(down_up(0.1, 0.1, 45), use({0: 2}))])
    run.play(5.0)
    assert [*run.alone_s, *run.iteration_s] == pytest.approx([0.1 + 0.1 * 45 / 25] * 2)
    assert run.link_congestion[0] == 0.0  # nothing is in its way but itself


def test_a_part_of_a_flow_takes_a_part_of_the_rate():
    """A whole flow and a quarter on 50 Gbps: 40 each, of which the second takes 10; 45 alone."""
    jobs = [Contender(down_up(0.1, 0.08, 45), use({0: flows, 1 + job: 1})) for job, flows in enumerate((1.0, 0.25))]
    run = PhaseRun([C, C, C], jobs, log=True)
    run.play(10.0)
    for durations in run.durations:
        assert durations == pytest.approx(0.1 + 0.08 * 45 / 40, abs=1e-8)
    iterations = sum(len(durations) for durations in run.durations) / 2
    assert run.link_bytes[0] == pytest.approx(1.25 * iterations * 0.08 * 45 * GBPS, rel=0.02)


def test_a_job_goes_at_one_rate_on_all_its_links():
    """Max-min: on link 0 the second gets 30, since link 1 leaves the first 20 of 60 between three."""
    sending = Phases(10.0, (0.0,), (10.0,), (100 * GBPS,))
    jobs = [Contender(sending, use(links)) for links in ({0: 1, 1: 1}, {0: 1}, {1: 1}, {1: 1})]
    run = PhaseRun([50 * GBPS, 60 * GBPS], jobs)
    run.play(0.1)
    assert (run.state.send_rate[:4] / GBPS).tolist() == [20, 30, 20, 20]


@pytest.mark.parametrize(("jobs", "published"), [(2, 1.39), (3, 1.56), (4, 1.64)])
def test_gains_of_shifts_on_one_link(jobs, published):
    """Equal periods, duty sum 1, all start together: flows of 45 Gbps on a link of 50 give 1.9 - 1/k.

    Flows as fast as the link give the bound, 2 - 1/k.
    """
    for gbps, gain in ((45, 1.9 - 1 / jobs), (50, 2 - 1 / jobs)):
        phases = [down_up(1 - 1 / jobs, 1 / jobs, gbps)] * jobs
        together = steady_state([C], [Contender(each, use({0: 1})) for each in phases])
        shifted = steady_state([C], [Contender(each, use({0: 1}), shift_s=k / jobs) for k, each in enumerate(phases)])
        assert together.iteration_s.mean() / shifted.iteration_s.mean() == pytest.approx(gain, rel=1e-6)
        assert shifted.link_congestion[0] == pytest.approx(0, abs=1e-3 * C)
        if gbps == 45:
            assert gain == pytest.approx(published, rel=0.02)


def test_gains_of_shifts_above_duty_sum_1():
    """Two jobs that take turns keep the link busy: above duty sum 1 a shift still helps, less and less, 0 at 2.

    Together: 1 - d/2 + d; in turns: d. With the re-adjustment of 5 % a shift costs: no job ever meets a slot.
    """
    gains = []
    for duty in (1.1, 1.5, 2.0):
        each = Contender(down_up(1 - duty / 2, duty / 2), use({0: 1}))
        shifted = [Contender(each.phases, each.use, shift_s=shift) for shift in (0.0, 0.5)]
        together, turns = steady_state([C], [each, each]), steady_state([C], shifted)
        gains.append(together.iteration_s.mean() / turns.iteration_s.mean())
        assert gains[-1] == pytest.approx((1 + duty / 2) / duty, rel=0.01)
        strict = steady_state([C], shifted, adjust=0.05)
        assert strict.iteration_s.mean() >= together.iteration_s.mean() * 0.999
    assert gains[0] > gains[1] > gains[2]


# Fair rates


def max_min_by_lp(capacity: np.ndarray, flows: np.ndarray, top: np.ndarray) -> np.ndarray:
    """Max-min fair rates: raise the least as far as it goes, fix those that can go no further, again.

    Args:
        flows: (links, jobs). top: (jobs,).
    """
    from scipy.optimize import linprog

    jobs = len(top)
    fixed: dict[int, float] = {}
    while len(fixed) < jobs:
        free = [job for job in range(jobs) if job not in fixed]
        level = [[-1.0 * (i == job) for i in range(jobs)] + [1.0] for job in free]  # t <= rate of every free job
        matrix = np.vstack([np.hstack([flows, np.zeros((len(capacity), 1))]), level])
        bounds = [(fixed.get(job, 0.0), fixed.get(job, top[job])) for job in range(jobs)] + [(0, None)]
        best = linprog([0.0] * jobs + [-1.0], matrix, [*capacity, *[0.0] * len(free)], bounds=bounds).x[-1]
        for job in free:
            floor = [(fixed.get(i, best * (1 - 1e-9)), fixed.get(i, top[i])) for i in range(jobs)]
            most = -linprog([-1.0 * (i == job) for i in range(jobs)], flows, capacity, bounds=floor).fun
            if most <= best * (1 + 1e-6):
                fixed[job] = best
    return np.array([fixed[job] for job in range(jobs)])


@pytest.mark.parametrize("seed", range(80))
def test_rates_are_those_of_linear_programs(seed):
    rng = random.Random(seed)
    links, jobs = rng.randint(1, 6), rng.randint(1, 7)
    capacity = np.array([rng.choice([10.0, 25.0, 50.0, 40 + 40 * rng.random()]) for _ in range(links)])
    top = np.array([rng.choice([5.0, 45.0, 50.0, 50 * rng.random() + 0.1]) for _ in range(jobs)])
    uses = [
        {link: rng.choice([1, 1, 2, 3]) for link in rng.sample(range(links), rng.randint(1, links))}
        for _ in range(jobs)
    ]
    flows = np.array([[each.get(link, 0) for each in uses] for link in range(links)])
    sending = [Phases(10.0, (0.0,), (10.0,), (rate * GBPS,)) for rate in top]
    run = PhaseRun(capacity * GBPS, [Contender(*both) for both in zip(sending, map(use, uses), strict=True)])
    run.play(1e-6)
    rates = np.array(run.state.send_rate[:jobs])
    assert (rates == np.floor(rates)).all()
    assert (flows @ rates <= run.capacity).all()
    assert rates / GBPS == pytest.approx(max_min_by_lp(capacity, flows, top), rel=1e-5)


# Shifts: pacing, drift, adjustments, jitter


def test_pacing_at_a_common_longer_period_costs_exactly_the_mismatch():
    run = one_link([down_up(0.5, 0.5), down_up(0.497, 0.5)], [0.0, 0.503], period_s=1.0, log=True)
    run.play(1000.0)
    for durations in run.durations:
        assert durations[1:] == pytest.approx(1.0, abs=1e-9)
    assert run.congestion_bytes == pytest.approx(0.0, abs=1e-6 * C)


def test_without_pacing_a_shift_is_lost_by_drift():
    """0.3 % mismatch and no slack: the second catches up, and from the first iteration on they overlap more."""
    phases = [down_up(0.5, 0.5), down_up(0.497, 0.5)]
    free = one_link(phases, [0.0, 0.503], period_s=1.0, pacing=False, log=True)
    free.play(1000.0)
    assert free.durations[1][1:] != pytest.approx(1.0, abs=1e-4)
    assert free.congestion_bytes > 0.01 * C
    slack = [down_up(0.6, 0.4), down_up(0.597, 0.4)]  # a slack of 0.1 s lasts for 0.1 / 0.003 iterations
    free = one_link(slack, [0.0, 0.5], period_s=1.0, pacing=False, log=True)
    free.play(25.0)
    assert free.congestion_bytes == 0.0
    free.play(60.0)
    assert free.congestion_bytes > 0.0


def test_an_early_job_waits_and_one_a_little_late_skips_no_slot():
    """A job that is held up for less than a period begins at once afterwards, and catches up with its slots."""
    late = Contender(down_up(0.4, 0.4), use({0: 1}), shift_s=0.0, period_s=1.0)
    once = Contender(down_up(0.01, 0.5), use({0: 1}), begin_s=2.5, rounds=1)
    run = PhaseRun([C], [late, once], log=True)
    run.play(12.0)
    # Up from 2.4 on, shared from 2.51: ends at 3.09 instead of 2.8; then 0.8 s to 3.89, and the slot at 4 is met.
    assert run.durations[0][:6] == pytest.approx([1.0, 1.0, 1.09, 0.91, 1.0, 1.0])
    assert run.adjustments == 0


def test_slots_that_are_over_are_skipped():
    """A job more than a period late begins at once, in the last slot that has begun, and makes that delay good."""
    late = Contender(down_up(0.4, 0.4), use({0: 1}), shift_s=0.0, period_s=1.0)
    once = Contender(down_up(0.01, 2.5), use({0: 1}), begin_s=2.5, rounds=1)
    run = PhaseRun([C], [late, once, once], log=True)
    run.play(14.0)
    # Up from 2.4 to 2.51 alone, then a third each: 0.87 s for the 0.29 left, until 3.38; the next Up takes 1.2 s.
    assert run.durations[0][:3] == pytest.approx([1.0, 1.0, 1.38])
    assert run.durations[0][3] == pytest.approx(1.6) and run.durations[0][4] == pytest.approx(1.6)
    begun = np.concatenate([[0.0], np.cumsum(run.durations[0])])
    assert begun[4:6] == pytest.approx([4.98, 6.58])  # slots 4 and 6: the one at 5 is skipped
    assert run.durations[0][-1] == pytest.approx(1.0) and begun[-1] == pytest.approx(round(begun[-1]))


def test_with_adjust_a_late_job_waits_for_the_next_slot():
    late = Contender(down_up(0.4, 0.4), use({0: 1}), shift_s=0.0, period_s=1.0)
    once = Contender(down_up(0.01, 0.5), use({0: 1}), begin_s=2.5, rounds=1)
    run = PhaseRun([C], [late, once], adjust=0.05, log=True)
    run.play(12.0)
    assert run.durations[0][:5] == pytest.approx([1.0, 1.0, 2.0, 1.0, 1.0]) and run.adjustments == 1


def test_a_shift_holds_from_the_next_iteration_on():
    run = one_link([down_up(0.1, 0.1)] * 2, [None, None], log=True)
    run.play(1.25)
    run.shift(0, 0.0, 0.25)
    run.shift(1, 0.1, 0.25)
    run.play(10.0)
    for durations in run.durations:
        assert durations[:4] == pytest.approx(0.3)
        assert durations[6:] == pytest.approx(0.25, abs=1e-9)
    ends = run.log()[0][(run.log()[2] < 0) & (run.log()[1] == 1)][6:]
    assert np.mod(ends, 0.25) == pytest.approx(0.1, abs=1e-9)


def test_jitter_has_the_mean_and_the_spread_that_it_is_given():
    jobs = [Contender(down_up(0.1, 0.1), use({0: 1}))]
    runs = [PhaseRun([C], jobs, jitter=0.2, seed=seed, log=True) for seed in (0, 0, 1)]
    for run in runs:
        run.play(4000.0)
    down_s = runs[0].durations[0] - 0.1
    assert down_s.mean() == pytest.approx(0.1, rel=0.01)
    assert down_s.std() / down_s.mean() == pytest.approx(0.2, rel=0.03)
    assert runs[0].durations[0].tolist() == runs[1].durations[0].tolist() != runs[2].durations[0].tolist()


# Stopping and going on


def test_a_job_that_stops_goes_on_where_it_was():
    phases = in_order([(0.1, 0), (0.05, C), (0.07, 0), (0.08, C)], 0.4)
    for stop_s in (0.03, 0.12, 0.2, 0.25, 0.37):
        run = PhaseRun([C], [Contender(phases, use({0: 1}), rounds=3)], log=True)
        run.play(stop_s)
        at = rows.position(run.records, 0, 0)
        assert at == pytest.approx(stop_s / 0.4)
        rows.leave_links(run.records, 0, 0)
        run.play(5.0)
        assert rows.enter_links(run.records, 0, 0, np.array([0]), np.array([1]))
        run.state["rounds_left"][0] = 3 - at
        rows.begin(run.records, 0, 0, 6.0, at)
        run.play(10.0)
        assert run.state.first_use[0] == -1
        assert run.log()[0][-1] == pytest.approx(6.0 + 1.2 - stop_s)
        assert run.link_bytes[0] == pytest.approx(3 * phases.bytes)
        assert run.iterations[0] == 2  # the one that was cut is none


def test_jobs_that_end_leave_their_links_to_the_others():
    ends = Contender(down_up(0.1, 0.1), use({0: 1}), rounds=5)
    stays = Contender(down_up(0.1, 0.1), use({0: 1}))
    run = PhaseRun([C], [ends, stays, ends], log=True)
    run.play(10.0)
    assert run.iterations[[0, 2]].tolist() == [5, 5]
    assert run.durations[1][:5] == pytest.approx(0.4) and run.durations[1][5:] == pytest.approx(0.2)
    free, use_at = 0, int(run.state.free_use)
    while use_at >= 0:
        free, use_at = free + 1, int(run.state.use_after[use_at])
    assert free == run.state.n_uses - 1


def test_a_stretch_makes_down_times_longer():
    run = PhaseRun([C], [Contender(down_up(0.1, 0.1), use({0: 1}))], log=True)
    run.play(0.95)
    run.state["stretch"][0] = 2.0
    run.play(10.0)
    assert run.durations[0][:5] == pytest.approx(0.2) and run.durations[0][5:] == pytest.approx(0.3)


def test_enter_links_says_when_there_is_no_room():
    run = PhaseRun([C], [])
    write_phases(run.records[0], 0, down_up(0.1, 0.1))
    size = len(run.state.use_after)
    many = np.zeros(size + 1, np.int64)
    assert not rows.enter_links(run.records, 0, 0, many, many + 1)
    assert (
        run.state.first_use[0] == -1
        and run.state.link_first[0] == -1
        and run.state.free_use != -1
        and run.state.n_uses == size
    )
    assert rows.enter_links(run.records, 0, 0, many[:1], many[:1] + 1)


# What is conserved, and what must not matter


@pytest.mark.parametrize("seed", range(SCENARIOS))
def test_bytes_and_congestion_are_what_the_log_adds_up_to(seed):
    run = random_run(seed, log=True)
    run.play(PLAYED_S)
    state = run.state
    sent, congestion = run.link_bytes, run.link_congestion
    for link in range(len(run.capacity)):
        when, offered, carried = run.timeline(link)
        length = np.diff(when, append=PLAYED_S)
        assert (carried <= run.capacity[link]).all() and (carried <= offered).all()
        assert (carried * length).sum() == pytest.approx(sent[link], rel=1e-9, abs=1.0)
        excess = np.where(offered > run.capacity[link], offered - run.carried * run.capacity[link], 0.0)
        assert congestion[link] <= (excess * length).sum() * (1 + 1e-9) + 100.0 * PLAYED_S  # whole bytes per second
        if len(offered):
            assert offered[-1] >= state.link_offered[link]
    assert congestion.sum() == pytest.approx(run.congestion_bytes, rel=1e-9)
    assert run.job_congestion.sum() == pytest.approx(run.congestion_bytes, rel=1e-9)


@pytest.mark.parametrize("seed", range(SCENARIOS))
def test_what_waits_of_a_job_is_what_it_offers_above_what_it_gets(seed):
    """One flow on each link: wherever it waits, that is all of it, once."""
    drawn = random_run(seed)
    jobs = [dataclasses.replace(job, use=use(dict.fromkeys(job.use.links.tolist(), 1))) for job in drawn.jobs]
    run = PhaseRun(drawn.capacity, jobs, carried=drawn.carried, log=True)
    run.play(PLAYED_S)
    when, job, rate, top = run.log()
    for number in range(len(jobs)):
        mine = (job == number) & (rate >= 0)
        offered = np.minimum(top[mine], float(run.state.own_rate[number]))
        waits = np.maximum(0.0, offered - rate[mine]) * np.diff(when[mine], append=PLAYED_S)
        assert run.job_congestion[number] == pytest.approx(waits.sum(), rel=1e-9, abs=1.0)


def test_a_queue_counts_once_however_many_links_are_in_series():
    found = []
    for links in (1, 2, 4):
        run = PhaseRun([C] * links, [Contender(down_up(0.1, 0.08), use(dict.fromkeys(range(links), 1)))] * 2)
        run.play(10.0)
        found.append((run.congestion_bytes, run.job_congestion.tolist(), run.iterations.tolist()))
        assert run.link_congestion.tolist() == pytest.approx([run.congestion_bytes] + [0.0] * (links - 1))
    assert found[0] == found[1] == found[2]


def test_bytes_wait_where_the_job_is_held_back():
    """Of 50 a flow on 60 and 50: the first has room for 30 each, the second holds two back at 25, so there 50 wait.

    The third gets 60 - 25 = 35 of its 50 on the first link: what waits there is its 15.
    """
    sending = Phases(10.0, (0.0,), (10.0,), (50 * GBPS,))
    run = PhaseRun([60 * GBPS, C], [Contender(sending, use(links)) for links in ({0: 1, 1: 1}, {1: 1}, {0: 1})])
    run.play(2.0)
    assert (run.state.send_rate[:3] / GBPS).tolist() == [25, 25, 35]
    assert (run.link_congestion / (2 * GBPS)).tolist() == pytest.approx([15, 50])
    assert (run.job_congestion / (2 * GBPS)).tolist() == pytest.approx([25, 25, 15])


def test_bytes_of_whole_iterations_are_those_of_the_phases():
    jobs = [
        Contender(in_order([(0.02, 0), (0.03, 45 * GBPS), (0.01, 0), (0.02, 20 * GBPS)]), use(links), rounds=50)
        for links in ({0: 1, 1: 2}, {0: 2}, {1: 1, 2: 1})
    ]
    run = PhaseRun([C, C, C], jobs)
    run.play(100.0)
    each = jobs[0].phases.bytes * 50
    assert run.iterations.tolist() == [50, 50, 50]
    assert run.link_bytes == pytest.approx([3 * each, 3 * each, each], rel=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_a_component_does_not_feel_the_others(seed):
    """The jobs of two networks in one run: each has the bits that it has alone."""
    both = [random_run(2 * seed + i, log=True) for i in range(2)]
    links = [len(run.capacity) for run in both]
    moved = [
        Contender(job.phases, use(dict(zip((job.use.links + links[0]).tolist(), job.use.flows.tolist(), strict=True))))
        for job in both[1].jobs
    ]
    here = [Contender(job.phases, job.use) for job in both[0].jobs]
    order = random.Random(seed).sample([0] * len(here) + [1] * len(moved), len(here) + len(moved))
    queues = [iter(here), iter(moved)]
    together = PhaseRun(np.concatenate([run.capacity for run in both]), [next(queues[i]) for i in order], log=True)
    alone = [PhaseRun(both[0].capacity, here, log=True), None]
    alone[1] = PhaseRun(np.concatenate([run.capacity for run in both]), moved, log=True)
    for run in (together, *alone):
        run.play(PLAYED_S)
    for part, run in enumerate(alone):
        mine = [number for number, i in enumerate(order) if i == part]
        assert [together.durations[number].tolist() for number in mine] == [each.tolist() for each in run.durations]
        assert together.job_congestion[mine].tolist() == run.job_congestion.tolist()
        span = slice(0, links[0]) if part == 0 else slice(links[0], None)
        assert together.link_bytes[span].tolist() == run.link_bytes[0 if part == 0 else links[0] :].tolist()


def test_the_size_of_a_network_changes_no_bit():
    """Rates of a few jobs on many links each come from a table (flows/max_min_dense.py), of others from lists."""
    pairs = list(itertools.combinations(range(17), 2))  # more links that can bind than the table has columns
    ways: set[tuple[int, int]] = set()
    for seed in range(SCENARIOS):
        small = random_run(seed, log=True)
        first = len(small.capacity)
        crowd = [
            Contender(down_up(0.05, 0.05), use({first + i: 1 for i, pair in enumerate(pairs) if job in pair}))
            for job in range(17)
        ]
        options = {name: small.state[name].item() for name in ("pacing", "adjust", "jitter")}
        capacity, options["carried"] = [*small.capacity, *[C] * len(pairs)], small.carried
        large = PhaseRun(capacity, [*small.jobs, *crowd], seed=seed, log=True, **options)
        for until_s in (0.5, PLAYED_S):
            small.play(until_s)
            large.play(until_s)
            ways.add((int(small.state.fits_table), int(large.state.fits_table)))
        jobs = len(small.jobs)
        assert [each.tolist() for each in large.durations[:jobs]] == [each.tolist() for each in small.durations]
        assert large.job_congestion[:jobs].tolist() == small.job_congestion.tolist()
        assert large.link_bytes[:first].tolist() == small.link_bytes.tolist()
    assert ways == {(0, 0), (1, 0)}


@pytest.mark.parametrize(("seed", "unit"), [*((seed, GBPS) for seed in range(6)), (6, 0.3), (7, 1.0)])
def test_rates_that_follow_changes_are_those_of_whole_components(seed, unit):
    """Filling by weights fills components anew; of links of a few bytes per second rates are the least there are."""
    rng = random.Random(seed)
    runs: list[PhaseRun] = []
    jobs = []
    for _ in range(100):
        rates = [rng.choice([5, 10, 20, 50 * rng.random()]) * unit for _ in range(2)]
        parts = [(rng.random() / 5, 0.0), (0.01 + rng.random() / 5, rates[0]), (0.02, 0.0), (0.05, rates[1])]
        flows = {link: rng.choice([1, 1, 2, 0.25]) for link in rng.sample(range(200), rng.randint(1, 12))}
        jobs.append(Contender(in_order(parts), use(flows), rounds=rng.choice([math.inf, math.inf, math.inf, 5.0])))
    capacity = [max(1.0, rng.choice([20, 25, 50, 50 * rng.random()]) * unit) for _ in range(200)]
    for is_weighted in (0, 1):
        run = PhaseRun(capacity, jobs, carried=0.9, log=True)
        run.state["is_weighted"] = is_weighted
        run.play(2.5)
        runs.append(run)
    followed, anew = runs
    assert followed.state.fits_table == 0 and followed.state.filled < anew.state.filled
    assert [each.tolist() for each in followed.durations] == [each.tolist() for each in anew.durations]
    assert followed.job_congestion.tolist() == anew.job_congestion.tolist()
    assert followed.link_congestion == pytest.approx(anew.link_congestion, rel=1e-12)


@pytest.mark.parametrize("seed", range(SCENARIOS))
def test_a_run_is_the_same_however_it_is_cut(seed):
    whole, cut = random_run(seed), random_run(seed)
    whole.play(PLAYED_S)
    rng = random.Random(seed)
    for until_s in sorted(rng.choice([round(PLAYED_S * rng.random(), 2), rng.random()]) for _ in range(40)):
        cut.play(until_s)
        outcome(cut)  # looking at it changes nothing
    cut.play(PLAYED_S)
    assert outcome(cut) == outcome(whole)
    for name in ("bytes_left", "send_rate", "phase_end_s", "phase", "slot", "phase_key"):
        assert cut.state[name].tolist() == whole.state[name].tolist()


def test_the_log_changes_nothing():
    for seed in range(SCENARIOS):
        plain, logged = random_run(seed), random_run(seed, log=True)
        plain.play(PLAYED_S)
        logged.play(PLAYED_S)
        assert outcome(plain) == outcome(logged)


@pytest.mark.parametrize(
    "flags",
    [
        {"NUMBA_DISABLE_JIT": "1"},
        pytest.param({"NUMBA_BOUNDSCHECK": "1"}, marks=pytest.mark.slow),
        pytest.param({"CLUSTERGYM_COMPILER": "plain"}, marks=pytest.mark.slow),
    ],
)
def test_the_bits_are_those_of_interpreted_of_checked_and_of_plainly_compiled_code(flags):
    quiet = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA_") or key.endswith("_DIR")}
    count = some(25, 8)
    command = [sys.executable, "-P", str(SUPPORT / "random_contention.py"), str(count)]
    said = subprocess.run(
        command, check=False, capture_output=True, text=True, env=quiet | flags, cwd=ROOT, timeout=600
    )
    assert said.returncode == 0, said.stderr[-2000:]
    assert json.loads(said.stdout) == [random_contention.played(seed) for seed in range(count)]


# Averages, and mistakes


def test_the_steady_state_of_free_jobs_is_that_of_a_longer_run():
    jobs = [Contender(down_up(0.11, 0.1, 45), use({0: 1})), Contender(down_up(0.2, 0.07, 45), use({0: 1}))]
    short, long = steady_state([C], jobs), steady_state([C], jobs, averaged=5000)
    assert short.iteration_s == pytest.approx(long.iteration_s, rel=0.003)
    assert (long.iteration_s > [0.21, 0.27]).all()
    assert long.job_congestion.sum() == pytest.approx(long.link_congestion.sum())
    with pytest.raises(InputError, match="without an end"):
        steady_state([C], [Contender(jobs[0].phases, jobs[0].use, rounds=3)])


@pytest.mark.parametrize(
    ("capacity", "changes", "options", "said"),
    [
        ([0.0], {}, {}, "at least 1 byte/s"),
        ([math.inf], {}, {}, "finite"),
        ([C], {}, {"carried": 0.0}, "carried = 0.0: expected a part above 0, at most 1"),
        ([C], {}, {"carried": 1.5}, "carried = 1.5: expected a part above 0, at most 1"),
        ([C], {"use": {3: 1}}, {}, "not there"),
        ([C], {"use": {0: 0}}, {}, "or no flow on one"),
        ([C], {"begin_s": -1.0}, {}, "begin_s"),
        ([C], {"rounds": 0}, {}, "rounds"),
        ([C], {"shift_s": -0.5}, {}, "shift"),
        ([C], {"shift_s": 0.0, "period_s": 0.0}, {}, "period"),
        ([C], {}, {"adjust": -1.0}, "adjust"),
        ([C], {}, {"jitter": math.nan}, "jitter"),
        ([C], {"phases": in_order([(1e-8, C)])}, {}, "1e-06"),
        ([C], {"phases": in_order([(0.1, 0), (0.1, C)] * 9)}, {}, "at most 8"),
    ],
)
def test_mistakes_are_named(capacity, changes, options, said):
    links = use(changes.pop("use", {0: 1}))
    with pytest.raises(InputError, match=said):
        PhaseRun(capacity, [Contender(changes.pop("phases", down_up(0.1, 0.1)), links, **changes)], **options)


def test_a_run_for_ever_needs_jobs_that_end():
    with pytest.raises(InputError, match="finite"):
        PhaseRun([C], [Contender(down_up(0.1, 0.1), use({0: 1}))]).play(math.inf)
    ends = PhaseRun([C], [Contender(down_up(0.1, 0.1), use({0: 1}), rounds=3)])
    ends.play(math.inf)
    assert ends.iterations.tolist() == [3] and ends.now_s == pytest.approx(0.6)
