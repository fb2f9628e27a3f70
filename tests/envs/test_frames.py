"""What the frames of a film say: whose run it is and how it does, what is past, what is decided, what colours mean."""

from __future__ import annotations

import math

import gymnasium
import numpy as np
import pytest

from clustergym import policies
from clustergym.envs.rendering import film
from clustergym.envs.rendering.drawing import palette
from clustergym.envs.rendering.scenes.seen import Seen, done_words, mean_jct_s, run_words
from clustergym.experiments.cli import run
from clustergym.simulator.table_placement.placement import Objective, Placement
from clustergym.tests.support import geo_small

pytest.importorskip("PIL")

HEAD = 74  # units that the clock, the totals and the words under them take


def delay(**options):
    env = gymnasium.make("clustergym/Delay-v0", workload="poisson:jobs=20,backlog=10", **options).unwrapped
    env.reset(seed=0)
    return env


def placing(**options):
    small = {"topology": geo_small.small_topology(), "workload": geo_small.small_workload(), "region_slots": 4}
    given = {**small, "tables_every_s": 612.0, "quota": 5.0, "render_mode": "rgb_array", **options}
    env = gymnasium.make("clustergym/DataPlacement-v0", **given).unwrapped
    env.reset(seed=0)
    return env


def test_the_words_name_the_policy_and_the_mean_jct_so_far():
    """Two hours are 2.0 h; no job has finished: nan."""
    assert run_words(7200.0, Seen("greedy")) == "policy greedy · mean JCT so far 2.0 h"
    assert run_words(7200.0, None) == "mean JCT so far 2.0 h"
    assert run_words(math.nan, Seen("fifo:head=skip")) == "policy fifo:head=skip · no job finished yet"
    assert len(run_words(1.0, Seen("dally:" + "history=24," * 20))) < 60


def test_text_has_the_mean_jct_behind_the_jobs_that_are_done():
    """Two minutes are 2.0 min; while none is done nothing is said."""
    assert done_words(3, 8, 120.0) == "3/8 done, mean JCT 2.0 min"
    assert done_words(0, 8, math.nan) == "0/8 done"


def test_the_mean_jct_so_far_ends_as_the_metric():
    env = delay()
    policy, ended = policies.make("fifo"), False
    assert math.isnan(mean_jct_s(env.simulator.state))
    while not ended:
        *_, ended, _, info = env.step(policy.act(env))
    assert mean_jct_s(env.simulator.state) == pytest.approx(info["metrics"]["jct_mean"])


def test_an_environment_names_the_policy_that_acts_or_the_given_one():
    env = delay()
    assert env.seen().policy == ""
    env.step(policies.make("fifo").act(env))
    assert env.seen().policy == "fifo"
    env.player = "my agent"
    assert env.seen().policy == "my agent"


@pytest.mark.parametrize("short", ["Delay", "TimeShift", "Geo", "DataPlacement", "Grouping"])
def test_frames_of_every_environment_name_the_player(short):
    """Another name changes the head of the picture, and nothing below it."""
    from clustergym.envs.registration import drawn_as

    env = gymnasium.make(f"clustergym/{short}-v0").unwrapped
    env.reset(seed=0)
    draw = drawn_as(short)
    one, two = (draw(env.simulator, (960, 640), Seen(policy)) for policy in ("first", "second"))
    changed = np.flatnonzero((one != two).any(axis=(1, 2)))
    assert len(changed) and changed.max() < HEAD


def test_what_was_seen_of_links_stays_in_pale_while_no_jobs_meet():
    """After jobs have met, a frame without meetings has their circles in greys, where a fresh look has nothing."""
    from clustergym.envs.rendering.pictures.network_picture import Boxes
    from clustergym.envs.rendering.pictures.picture import draw_rgb

    env = gymnasium.make("clustergym/TimeShift-v0").unwrapped
    env.reset(seed=1)
    policy, seen, ended, pale = policies.make("themis+cassini"), Seen("themis+cassini"), False, None
    while not ended and pale is None:
        _, _, ended, _, _ = env.step(policy.act(env))
        met = seen.crossing is not None
        frame = draw_rgb(env.simulator, seen=seen)
        if met and seen.at_s < env.simulator.view.now_s:
            pale = frame
    assert pale is not None, "in this run there is a decision point without meetings after one with"
    left, top, right, bottom = Boxes((960, 640), round).use
    inside = pale[top + 30 : bottom - 10, left + 10 : right - 10].astype(int)
    assert np.ptp(inside, axis=2).max() == 0  # greys
    fresh = draw_rgb(env.simulator)[top + 30 : bottom - 10, left + 10 : right - 10]
    assert inside.std() > fresh.std()


def test_the_terms_of_the_cost_add_up_to_it():
    warehouse = geo_small.small_workload().geo.warehouse(geo_small.small_topology())
    placement = Placement(warehouse, Objective(remote=2.0, storage=0.5))
    assert all(term >= 0.0 for term in placement.terms)
    assert sum(placement.terms) == pytest.approx(placement.cost)


def test_the_offered_table_is_framed():
    """The frame goes with what is offered: another table, another column in ink."""
    env = placing()
    one = env.render()
    env.step((1,))  # leave this table
    two = env.render()
    ink = np.array(palette.INK)

    def framed(picture: np.ndarray) -> list[int]:
        matrix = picture[120:560, 130:670]
        return np.flatnonzero(((matrix == ink).all(axis=2)).mean(axis=0) > 0.9).tolist()

    assert framed(one) and framed(two) and set(framed(one)) != set(framed(two))


def test_a_film_of_little_change_is_a_small_gif(tmp_path):
    still = delay(render_mode="rgb_array").render()
    frames = [still.copy() for _ in range(20)]
    for number, frame in enumerate(frames):
        frame[10 + number, 10:20] = palette.TIER_COLOURS[3]
    film.save_gif(frames[:1], tmp_path / "one.gif", 10.0)
    film.save_gif(frames, tmp_path / "all.gif", 10.0)
    assert (tmp_path / "all.gif").stat().st_size < 1.5 * (tmp_path / "one.gif").stat().st_size


def test_render_draws_every_environment_with_its_policy(tmp_path, capsys):
    for env, policy in (("Delay", "greedy"), ("DataPlacement", "tetris-v2")):
        file = tmp_path / f"{env}.png"
        assert run(["render", env, "--policy", policy, "--out", str(file), "--quiet"]) == 0, capsys.readouterr().err
        assert file.stat().st_size > 5000
