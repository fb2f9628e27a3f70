"""The policy `best-rotations`: rotations that are tried by playing them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from clustergym import policies
from clustergym.experiments.playing.evaluation import play
from clustergym.experiments.playing.warming import parts_of
from clustergym.experiments.settings.evaluation_setting import Setting
from clustergym.policies.cassini.best_rotations import best_rotations
from clustergym.policies.cassini.compatibility import SharedLink, solution
from clustergym.simulator.cluster.links import GBPS
from clustergym.simulator.cluster.routes import LinkUse
from clustergym.simulator.contention.circle import Grid, unify
from clustergym.simulator.contention.phase_run import Contender, steady_state
from clustergym.simulator.profiles.phases import in_order

C = 50 * GBPS


def down_up(down_s, up_s, gbps=45.0):
    return in_order([(down_s, 0.0), (up_s, gbps * GBPS)])


def on_one_link(*phases, padding=0.01):
    jobs = range(len(phases))
    link = SharedLink(tuple(jobs), (1.0,) * len(phases), C)
    return phases, unify([one.iteration_s for one in phases], padding), (link,)


def played(phases, circle, rotation):
    """Sum of slowdowns over many iterations with these rotations, in buckets."""
    link = LinkUse(np.array([0]), np.array([1.0]))
    rows = zip(phases, rotation, circle.periods_s, strict=True)
    found = steady_state([C], [Contender(one, link, step / 72 * period, period) for one, step, period in rows])
    return float((found.iteration_s / [one.iteration_s for one in phases]).sum())


@pytest.mark.parametrize("jobs", [2, 3, 4])
def test_jobs_with_room_for_all_are_not_slowed_down(jobs):
    """Duty 0.9 / jobs each: interleaved every job takes what it takes alone."""
    best = best_rotations(*on_one_link(*[down_up(0.3 * (1 - 0.9 / jobs), 0.27 / jobs)] * jobs))
    assert best.slowdown == pytest.approx(jobs, abs=1e-6)
    assert best.found is not None and best.found.scores[0] == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize(
    ("one", "other"), [((0.1, 0.2), (0.1, 0.2)), ((0.14, 0.16), (0.18, 0.12)), ((0.05, 0.25),) * 2]
)
def test_nothing_on_the_grid_is_better_for_two(one, other):
    """And longer play says the same as the few iterations that it looks at."""
    phases, circle, links = on_one_link(down_up(*one), down_up(*other))
    best = best_rotations(phases, circle, links)
    everything = [played(phases, circle, (0, step)) for step in range(0, 72, 3)]
    assert best.slowdown <= min(everything) + 1e-6
    if best.found is not None:
        assert played(phases, circle, best.found.rotation) == pytest.approx(best.slowdown, rel=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_it_is_at_least_as_good_as_the_best_score(seed):
    """Three drawn jobs of one period; the rotations with the best score are among what is tried."""
    rng = np.random.default_rng(seed)
    ups = rng.uniform(0.05, 0.2, 3)
    phases, circle, links = on_one_link(*(down_up(0.3 - up, up, rng.uniform(30, 50)) for up in ups))
    best = best_rotations(phases, circle, links)
    scored = solution(phases, circle, links, Grid()).rotation
    assert best.slowdown <= played(phases, circle, scored) + 1e-6
    coarse = list(itertools.product([0], range(0, 72, 9), range(0, 72, 9)))
    assert best.slowdown <= min(played(phases, circle, one) for one in coarse) + 1e-4


def test_jobs_whose_common_period_costs_more_than_meeting_run_free():
    """Periods of 1 and 0.15 s at a padding of 50 %, Up a tenth of it: waiting for slots costs more than is saved."""
    phases, circle, links = on_one_link(down_up(0.9, 0.1), down_up(0.1, 0.05), padding=0.5)
    best = best_rotations(phases, circle, links)
    assert best.found is None
    assert 2.0 <= best.slowdown < min(played(phases, circle, (0, step)) for step in range(0, 72, 6))


@pytest.mark.parametrize("id", [1, 3, 4])
def test_jobs_that_stay_are_as_fast_as_under_cassini_or_faster(id):
    """The pairs of Table 2 on two leaves, on the testbed: no job comes or goes but at the end."""
    network = "contention:padding=0.15"
    setting = Setting.of(
        "clustergym/TimeShift-v0", "leaf-spine:leaves=2,spines=1", f"cassini-snapshot:id={id},workers=3", network
    )
    found = {name: play(setting, name, 0).metrics for name in ("best-rotations", "themis+cassini")}
    assert found["best-rotations"]["jct_mean"] <= found["themis+cassini"]["jct_mean"] * (1 + 1e-6)


def test_slow_ones_play_only_where_they_are_named():
    """They take minutes an episode: among all of `evaluate`, beside a training or in `warm` they would be most."""
    slow = {"best-rotations", "lookahead"}
    assert set(policies.list("TimeShift")) - set(policies.able("TimeShift")) == slow
    assert not slow & {part.policy for part in parts_of(["clustergym/TimeShift-v0"])}
