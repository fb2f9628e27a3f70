"""What holds for any jobs on any links at any time: rates are max-min fair, sums are exact, nothing gets lost."""

from __future__ import annotations

import math
import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clustergym.simulator.contention import network_calls as rows
from clustergym.tests.support.drawn import calm
from clustergym.tests.support.random_contention import outcome, random_run

SEEDS = st.integers(0, 1_000_000)
TIMES = st.lists(st.floats(0.0, 15.0), min_size=1, max_size=6).map(sorted)


def flows_of(run):
    """(links, jobs), of jobs that have not left."""
    flows = np.zeros((len(run.capacity), len(run.jobs)))
    for number, job in enumerate(run.jobs):
        if run.state.first_use[number] >= 0:
            flows[job.use.links, number] = job.use.flows
    return flows


def check_rates(run):
    """No job can get more but from one that has no more, to a byte per second; offered sums are exact."""
    state, jobs = run.state, len(run.jobs)
    flows, sending = flows_of(run), state.is_sending[:jobs] == 1
    rate = np.where(sending, state.send_rate[:jobs], 0.0)
    phase = np.maximum(state.phase[:jobs], 0)
    top = np.where(sending, state.phase_rate[np.arange(jobs), np.minimum(phase, 7)], 0.0)
    offered, carried = flows @ np.minimum(top, state.own_rate[:jobs]), flows @ rate
    assert (state.link_offered[: len(run.capacity)] == offered).all()
    capacity = np.where(offered > run.capacity, np.maximum(1.0, np.floor(run.capacity * run.carried)), run.capacity)
    assert (carried <= capacity).all() and (rate <= top).all() and (rate[sending] >= 1.0).all()
    assert (rate == np.floor(rate)).all()
    for job in np.flatnonzero(rate < top):
        on = np.flatnonzero(flows[:, job])
        full = on[carried[on] + flows[on].sum(axis=1) > capacity[on]]
        most = [(rate * (flows[link] > 0)).max() for link in full]
        assert any(rate[job] >= other for other in most), "no link binds the job"


@calm(150)
@given(SEEDS, TIMES)
def test_rates_are_fair_at_any_time(seed, times):
    run = random_run(seed)
    for until_s in times:
        run.play(until_s)
        check_rates(run)


@calm(80)
@given(SEEDS, TIMES, st.integers(0, 1000))
def test_rates_are_fair_when_links_carry_less_for_a_while(seed, times, pick):
    run = random_run(seed)
    whole, rng = run.capacity, random.Random(pick)
    for until_s in times:
        run.play(until_s)
        link, scale = rng.randrange(len(whole)), rng.choice([0.25, 0.5, 0.9, 1.0])
        now = whole[link] if scale == 1.0 else max(1.0, math.floor(whole[link] * scale))
        run.capacity = np.where(np.arange(len(whole)) == link, now, run.capacity)
        rows.set_capacity(run.records, 0, link, now, max(1.0, math.floor(now * run.carried)))
        run.play(until_s)
        check_rates(run)
        run.play(until_s + 0.05)
        check_rates(run)
        times = [max(each, until_s + 0.05) for each in times]


@calm(150)
@given(SEEDS, st.integers(0, 1000))
def test_which_links_can_bind_follows_from_the_jobs_on_them(seed, pick):
    """Jobs leave, come back and change their ways, links carry less and are whole again."""
    run = random_run(seed)
    whole, rng = run.capacity, random.Random(pick)
    run.play(1.0)
    for _ in range(12):
        job, link = rng.randrange(len(run.jobs)), rng.randrange(len(whole))
        use = run.jobs[job].use
        if rng.random() < 0.3:
            now = rng.choice([math.floor(whole[link] / 2), whole[link]])
            run.capacity = np.where(np.arange(len(whole)) == link, now, run.capacity)
            rows.set_capacity(run.records, 0, link, now, max(1.0, math.floor(now * run.carried)))
        elif run.state.first_use[job] >= 0:
            rows.leave_links(run.records, 0, job)
        else:
            assert rows.enter_links(run.records, 0, job, use.links, use.flows)
            run.state["rounds_left"][job] = math.inf
            rows.begin(run.records, 0, job, run.now_s, 0.0)
        check_lists(run)
        run.play(run.now_s + rng.choice([0.0, 0.1]))
        check_rates(run)


@calm(80)
@given(SEEDS, TIMES, st.integers(0, 1000))
def test_what_was_sent_on_one_way_is_sent_on_another(seed, times, pick):
    """Whatever ways a job takes, none among them, the bytes of an iteration are sent once."""
    run = random_run(seed)
    rng, ways = random.Random(pick), [job.use for job in run.jobs]
    crossed = 0.0
    for until_s in times:
        run.play(until_s)
        job = rng.randrange(len(run.jobs))
        if run.state.phase_position[job] >= 0 and len(ways[job].links):
            left = run.state.bytes_left[job]
            sent = run.state.send_rate[job] * (run.now_s - run.state.sent_since_s[job])
            count = rng.randrange(len(ways[job].links) + 1)
            assert rows.reroute(run.records, 0, job, ways[job].links[:count], ways[job].flows[:count])
            assert run.state.cut_off[job] == (count == 0)
            if run.state.is_sending[job]:
                assert run.state.bytes_left[job] == max(0.0, left - sent)
        run.play(until_s)
        links = run.link_bytes
        assert links.sum() >= crossed * (1 - 1e-12)
        crossed = links.sum()
        cut = run.state.cut_off[: len(run.jobs)] > 0
        assert not run.state.send_rate[: len(run.jobs)][cut].any()
        offered = np.zeros(len(run.capacity))
        for number in range(len(run.jobs)):
            use = int(run.state.first_use[number])
            while use >= 0:
                if run.state.is_sending[number]:
                    offered[run.state.use_link[use]] += run.state.use_flows[use] * run.state.send_top[number]
                use = int(run.state.use_after[use])
        assert (run.state.link_offered[: len(run.capacity)] == offered).all()


@calm(100)
@given(SEEDS, TIMES)
def test_no_iteration_is_faster_than_alone_and_no_byte_is_lost(seed, times):
    run = random_run(seed)
    run.play(times[-1])
    done = run.iterations > 0
    if run.state.jitter == 0.0:
        assert (run.iteration_s[done] >= run.alone_s[done] * (1 - 1e-9)).all()
    flows = np.zeros((len(run.capacity), len(run.jobs)))
    sent = np.zeros(len(run.jobs))
    for number, job in enumerate(run.jobs):
        flows[job.use.links, number] = job.use.flows
        sent[number] = job.phases.bytes * run.state.rounds_done[number] if job.begin_s <= times[-1] else 0.0
        for phase in range(max(0, int(run.state.phase[number]))):
            sent[number] += run.state.phase_bytes[number, phase]
        if run.state.is_sending[number]:
            due = run.state.bytes_left[number]
            left = due - run.state.send_rate[number] * (run.now_s - run.state.sent_since_s[number])
            sent[number] += run.state.phase_bytes[number, run.state.phase[number]] - max(0.0, left)
    np.testing.assert_allclose(run.link_bytes, flows @ sent, rtol=1e-6, atol=10.0)


@calm(80)
@given(SEEDS, TIMES)
def test_however_it_is_cut(seed, times):
    whole, cut = random_run(seed), random_run(seed)
    for until_s in times:
        cut.play(until_s)
    whole.play(times[-1])
    assert outcome(whole) == outcome(cut)


@calm(80)
@given(SEEDS, TIMES, st.integers(0, 1000))
def test_a_job_that_leaves_and_enters_leaves_no_trace(seed, times, pick):
    """Lists, sums and marks after jobs left are those of the jobs that are there."""
    run = random_run(seed)
    rng = random.Random(pick)
    for until_s in times:
        run.play(until_s)
        job = rng.randrange(len(run.jobs))
        use = run.jobs[job].use
        if run.state.first_use[job] >= 0:
            at = rows.position(run.records, 0, job)
            assert 0.0 <= at < 1.0
            rows.leave_links(run.records, 0, job)
            check_lists(run)
            if rng.random() < 0.7:
                assert rows.enter_links(run.records, 0, job, use.links, use.flows)
                run.state["rounds_left"][job] = math.inf
                rows.begin(run.records, 0, job, until_s + rng.choice([0.0, 0.3]), at)
        run.play(until_s + 0.001)
        check_lists(run)
        check_rates(run)
        times = [max(each, until_s + 0.001) for each in times]


def check_lists(run):
    state, flows = run.state, flows_of(run)
    for link in range(len(run.capacity)):
        found, use = {}, int(state.link_first[link])
        while use >= 0:
            found[int(state.use_job[use])] = state.use_flows[use]
            assert state.use_link[use] == link
            use = int(state.use_next[use])
        assert found == {job: flows[link, job] for job in np.flatnonzero(flows[link])}
        assert state.link_users[link] == len(found)
        check_slack(run, link, found)
    free, use = 0, int(state.free_use)
    while use >= 0:
        free, use = free + 1, int(state.use_after[use])
    assert free + (flows > 0).sum() == state.n_uses


def check_slack(run, link, found):
    """A link is left out if it has one job or none and is whole, or if a stricter one has all its jobs.

    Of equal ones that with the lowest number is the strictest. Nothing that was before is in it.
    """
    state, flows = run.state, flows_of(run)
    is_left_out = len(found) < 2 and (not found or run.capacity[link] == state.link_whole[link])
    for other in range(len(run.capacity)):
        capacity, users = run.capacity[other], {job: flows[other, job] for job in np.flatnonzero(flows[other])}
        has_all = found and all(users.get(job, 0.0) >= flow for job, flow in found.items())
        if other != link and capacity <= run.capacity[link] and has_all:
            is_left_out |= (capacity, users) != (run.capacity[link], found) or other < link
    assert state.is_slack[link] == is_left_out
    for job in found:
        binding, use = set(), int(state.first_binding[job])
        while use >= 0:
            binding.add(int(state.use_link[use]))
            use = int(state.use_binding[use])
        assert (link in binding) == (state.is_slack[link] == 0)
