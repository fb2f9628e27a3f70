"""Link contention against a reference of ours that was written from docs/concepts/network.md alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from clustergym.tests.support.fluid_cluster import FluidCluster
from clustergym.tests.support.fluid_networks import PLAYED_S, draw_case
from clustergym.tests.support.fluid_reference import FluidJob, max_min
from clustergym.tests.support.random_fluid import GBPS, Case, compare, draw, with_decisions, with_departures


def equal_jobs(shifts: list[float | None]) -> Case:
    """Jobs of 1 s on one link of 50 Gbps, for half of which they send at 45."""
    job = FluidJob(1.0, ((0.5, 0.5, 45 * GBPS),), (1,))
    return Case(np.array([50 * GBPS]), [replace(job, shift_s=shift_s) for shift_s in shifts])


def test_what_one_flow_leaves_goes_to_the_others():
    """60 for three: 10 is all that the first wants, so 25 and 25; two flows of one job count twice: 10, 50/3, 50/3.

    Rates are whole: 16 and 16.
    """
    demand, capacity = np.array([10.0, 100.0, 100.0]), np.array([60.0])
    assert max_min(demand, np.array([[1], [1], [1]]), capacity).tolist() == [10, 25, 25]
    assert max_min(demand, np.array([[1], [1], [2]]), capacity).tolist() == [10, 16, 16]


def test_a_flow_is_as_fast_as_its_fullest_link_lets_it():
    """Links of 30 and 100; the first job uses both, the second the first, the third the second: 15, 15, 85."""
    flows = np.array([[1, 1], [1, 0], [0, 1]])
    assert max_min(np.full(3, 200.0), flows, np.array([30.0, 100.0])) == pytest.approx([15, 15, 85])


@pytest.mark.parametrize(("shifts", "iteration_s"), [([None, None], 1.4), ([0.0, 0.5], 1.0)])
def test_two_equal_jobs(shifts, iteration_s):
    """In lockstep each sends at 25 of the 45 Gbps that it would: .5 + .5 x 45 / 25 = 1.4 s; interleaved 1 s."""
    case = equal_jobs(shifts)
    durations = case.by_us(12.0).durations
    for job in range(2):
        assert case.by_reference(12.0).durations(job)[:7] == pytest.approx([iteration_s] * 7)
        assert durations[job][:7] == pytest.approx([iteration_s] * 7)


def test_slots_that_a_job_misses_by_a_period_or_more_are_lost():
    """1 s at slots of 1.25 s, on time until another sends from 2.5 to 8.9: then its Up phase of .6 takes 1.2 s.

    So it begins at 4.1, 5.7, 7.3 and 8.9, later than its slots 3.75, 5, 6.25 and 7.5 by .35, .7, 1.05 and 1.4: the last
    is more than a period, so the slot of that iteration is 8.75, and for the next one it waits until 10.
    """
    link = 40 * GBPS
    job = FluidJob(1.0, ((0.4, 0.6, link),), (1,), shift_s=0.0, period_s=1.25)
    case = Case(np.array([link]), [job, FluidJob(100.0, ((2.5, 4.0, link),), (1,))])
    begins = [0, 1.25, 2.5, 4.1, 5.7, 7.3, 8.9, 10, 11.25, 12.5]
    assert case.by_reference(13.0).begins[0] == pytest.approx(begins)
    assert case.by_us(13.0).durations[0] == pytest.approx(np.diff(begins))


@pytest.mark.parametrize("seed", range(20))
def test_random_cases(seed):
    """8 s of play: every iteration within 1e-9, bytes within 1e-9 of what could be sent."""
    found = compare(draw(seed), until_s=8.0)
    assert found.iterations > 0
    assert max(found.worst, found.carried, found.waited) < 1e-9


def test_links_that_are_offered_more_than_fits_may_carry_less():
    """Of 50 Gbps .88 are left to two jobs of 45, 22 each: .5 + .5 x 45 / 22 s; on four such links they wait as much."""
    case = equal_jobs([None, None])
    row = Case(np.repeat(case.capacity, 4), [replace(job, flows=(1, 1, 1, 1)) for job in case.jobs])
    for each in (case, row):
        run, played = each.by_us(12.0, carried=0.88), each.by_reference(12.0, carried=0.88)
        assert played.durations(0)[:6] == pytest.approx([0.5 + 0.5 * 45 / 22] * 6)
        assert run.durations[0][:6] == pytest.approx([0.5 + 0.5 * 45 / 22] * 6)
        assert run.congestion_bytes == pytest.approx(played.waited.sum())
    assert row.by_reference(12.0).waited == pytest.approx(case.by_reference(12.0).waited)


@pytest.mark.parametrize("carried", [0.88, 0.5])
def test_random_cases_of_links_that_carry_less(carried):
    found = [compare(draw(seed), until_s=3.0, carried=carried) for seed in range(100, 112)]
    assert max(max(each.worst, each.carried, each.waited) for each in found) < 1e-9


@pytest.mark.parametrize("terms", [{"pacing": False}, {"adjust": 0.05}, {"adjust": 0.5}])
def test_pacing_and_adjustments(terms):
    cases = [draw(seed) for seed in range(200, 230) if draw(seed).jobs[0].shift_s is not None]
    found = [compare(case, until_s=5.0, **terms) for case in cases]
    assert max(each.worst for each in found) < 1e-9
    assert all(ours == theirs for ours, theirs in (each.adjustments for each in found))
    assert ("adjust" in terms) == any(each.adjustments[0] for each in found)


@pytest.mark.parametrize("changed", [with_departures, with_decisions])
def test_jobs_that_come_and_go_and_shifts_that_are_decided_on_the_way(changed):
    for seed in range(300, 308):
        assert compare(changed(draw(seed), seed), until_s=6.0).worst < 1e-9


@pytest.mark.parametrize("gpus_per_machine", [1, 3, 6])
@pytest.mark.parametrize(
    ("options", "terms", "often"),
    [
        ("", {}, 0.0),
        ("", {}, 0.7),
        (",pacing=off", {"pacing": False}, 0.7),
        (",adjust=0.05", {"adjust": 0.05}, 0.7),
        (",carried=0.88", {"carried": 0.88}, 0.7),
        (",rates=mltcp", {"growth": (0.25, 1.75)}, 0.0),
    ],
)
def test_runs_of_the_whole_simulator(gpus_per_machine, options, terms, often, tmp_path: Path):
    """Jobs end when the reference says, after iterations that are as long in the mean, and as many bytes wait."""
    for seed in range(3):
        cluster = FluidCluster(seed, gpus_per_machine)
        simulator, policy = cluster.play(tmp_path, options, often)
        played = cluster.reference(policy.given, **terms)
        ends = np.array([begins[-1] for begins in played.begins])
        taken_s = sum(begins[-1] - begins[0] for begins in played.begins)
        assert simulator.jobs()["finish_s"] == pytest.approx(ends, rel=1e-7)
        assert simulator.metrics()["iteration_time_mean"] == pytest.approx(taken_s / sum(cluster.rounds), rel=1e-7)
        assert simulator.metrics()["shift_adjustments"] == sum(played.adjustments)
        assert simulator.metrics()["congestion_bytes"] == pytest.approx(played.waited.sum(), rel=1e-6, abs=1.0)


SMALL = 40  # of the cases, those that every change is tested on


@pytest.mark.parametrize("block", [range(SMALL), pytest.param(range(SMALL, 5_000), marks=pytest.mark.slow)])
def test_networks_as_clusters_have_them(block, capsys):
    """Trees, Clos, rings and parallel cables, jobs that come and go, ways and capacities that change, any rates.

    Iterations are equal to the last digits. Only where several links that are not alike fill at once, a rate may be
    some bytes per second apart, for the order in which what is left of them is rounded; and behind a job that goes
    first another may wait 1e-7 s for the last part of a byte. Then all is within 1e-6.
    """
    found = [compare(draw_case(seed), PLAYED_S) for seed in block]
    worst = np.array([each.worst for each in found])
    near = np.array([each.near_misses for each in found])
    with capsys.disabled():
        print(f"\n{len(found):,} cases, {sum(each.iterations for each in found):,} iterations")
        print(f"{near.sum():,} near misses in {(near > 0).sum():,} cases")
        print(
            f"worst of a case: median {np.median(worst):.0e}, {(worst > 1e-9).sum()} > 1e-9, at most {worst.max():.0e}"
        )
    assert worst.max() < 1e-6 and (worst > 1e-9).mean() < 0.02
    assert max(max(each.carried, each.waited, each.stalled_s) for each in found) < 1e-6
    assert all(ours == theirs for ours, theirs in (each.adjustments for each in found))


@pytest.mark.parametrize("block", [range(10), pytest.param(range(10, 300), marks=pytest.mark.slow)])
def test_the_order_of_rows_changes_nothing(block):
    """The same cases with the jobs in other rows: the same iterations."""
    for seed in block:
        case = draw_case(seed)
        order = np.random.default_rng(seed).permutation(len(case.jobs)).tolist()
        one, other = case.by_us(PLAYED_S), case.in_order(order).by_us(PLAYED_S)
        for row, job in enumerate(order):
            assert other.durations[row] == pytest.approx(one.durations[job], rel=1e-9), (seed, job)
