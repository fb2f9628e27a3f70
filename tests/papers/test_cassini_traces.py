"""Rows of paper cassini's traces, from outcomes that are made up."""

from __future__ import annotations

import numpy as np
import pytest

from clustergym.experiments.reproduce.case import Outcome
from clustergym.experiments.reproduce.case_runs import Runs
from clustergym.experiments.reproduce.cassini.cassini_runs import LinkSharing
from clustergym.experiments.reproduce.engine import Play
from clustergym.experiments.reproduce.reproductions import reproductions
from clustergym.experiments.reproduce.rows import Options
from clustergym.simulator.base.decisions import Start
from clustergym.tests.support.reproducing import play_of
from clustergym.tests.support.scripted_contention import contended


def outcome(mean_s: float, congestion: float) -> Outcome:
    metrics = {"iteration_time_mean": mean_s, "iteration_time_p99": 3 * mean_s}
    metrics |= {"allocation_rate": 0.8, "jobs_at_once": mean_s}
    columns = {"slowdown": np.array([1.0, mean_s]), "congestion_bytes": np.array([congestion, 0.0])}
    columns |= {"running_s": np.array([30.0, 10.0]), "shared_s": np.array([10.0, 10.0])}
    columns |= {"crowded_s": np.array([5.0, 5.0]), "partner_s": np.array([5.0, 10.0])}
    columns |= {"pair_first": np.array([0]), "pair_second": np.array([1]), "pair_s": np.array([5.0])}
    return Outcome(metrics, {**columns, "model": np.array(["DLRM", "ResNet50"])})


TIMES = {"random": 4.0, "themis": 2.0, "themis+cassini": 1.0, "ideal": 0.5, "least-shared": 1.5, "pollux": 2.0}
TIMES["pollux+cassini"] = 1.0


def made(augmented_bytes: float) -> dict:
    """Two traces: random 4 and 2 s, themis half of it, augmented a quarter, ideal an eighth."""
    volume = dict.fromkeys(TIMES, 3000000.0) | dict.fromkeys(("themis+cassini", "pollux+cassini"), augmented_bytes)
    runs = {policy: [outcome(s, volume[policy]), outcome(s / 2, 0.0)] for policy, s in TIMES.items()}
    return {(policy, at): some for policy, some in runs.items() for at in ("dynamic", "dynamic 45")}


def dynamic(outcomes: dict, tmp_path) -> tuple[dict, Play]:
    play = play_of("cassini-dynamic", Options(tmp_path))
    play.runs = Runs(outcomes)
    return {row.quantity: row for row in play.rows()}, play


def test_orders_gains_and_bounds(tmp_path):
    found = dynamic(made(1e6), tmp_path)[0]
    slow = {"random": 2.0, "themis": 1.25, "themis+cassini": 0.875, "ideal": 0.6875}  # means over jobs and traces
    for better, worse in (("themis", "random"), ("themis+cassini", "themis"), ("ideal", "themis+cassini")):
        row = found[f"dynamic: slowdown of jobs, {better} / {worse}"]
        assert row.ours == pytest.approx(slow[better] / slow[worse]) and row.clear
        assert row.ok == (row.high < 1.0)
    gain = found["dynamic: mean iteration time, themis / themis+cassini"]
    assert (gain.paper, gain.ours, gain.ok) == (1.5, pytest.approx(2.0), False)
    assert found["dynamic: mean iteration time, themis / ideal: the bound"].ours == pytest.approx(4.0)
    assert found["dynamic: P99 iteration time, pollux / pollux+cassini"].ours == pytest.approx(2.0)
    assert found["dynamic: slowdown of newcomer ResNet50, themis / themis+cassini"].ours == pytest.approx(2.0)


def test_where_there_is_nothing_to_win_nothing_is_judged_and_the_reason_is_printed(tmp_path):
    """Jobs as slow under ideal as under themis: half of 40 s on links with others, a quarter on crowded ones."""
    same = [outcome(1.0, 0.0), outcome(1.02, 0.0)]
    found, play = dynamic({(policy, at): same for policy in TIMES for at in ("dynamic", "dynamic 45")}, tmp_path)
    assert found["dynamic: slowdown of jobs, themis / ideal: the bound"].paper == "nothing to win"
    assert found["dynamic: slowdown of jobs, themis+cassini / themis"].ok is None
    assert found["dynamic: part of their time that jobs share links"].ours == pytest.approx(50.0)
    assert found["dynamic: part of its time on crowded links, ResNet50"].ours == pytest.approx(50.0)
    assert play.notes[0].endswith(
        "they share links 50 % of their time, crowded ones 25 %; most together are DLRM with ResNet50 (100%)"
    )
    assert dynamic(made(1e6), tmp_path)[1].notes == []


def test_the_load_that_came_about_stands_beside_every_policy(tmp_path):
    found = dynamic(made(1e6), tmp_path)[0]
    for policy in TIMES:
        assert found[f"dynamic: realised load, {policy}"].ours == pytest.approx(80.0)
    assert found["dynamic: jobs at once, random"].ours == pytest.approx(3.0)


def test_slowdowns_come_first_of_all_jobs_and_by_model(tmp_path):
    """1 and 2 times as long in the first trace, 1 and 1 in the second: DLRM 1, ResNet50 1.5, all 1.25; ideal 1 less."""
    found = dynamic(made(1e6), tmp_path)[0]
    first = next(iter(found.values()))
    assert first.quantity == "dynamic: slowdown of jobs, themis" and first.ours == pytest.approx(1.25)
    assert found["dynamic: slowdown of DLRM, themis"].ours == 1.0
    assert found["dynamic: slowdown of ResNet50, themis"].ours == pytest.approx(1.5)
    assert found["dynamic: slowdown of ResNet50, themis / themis+cassini"].ours == pytest.approx(2.0)
    assert not any("VGG" in quantity for quantity in found)


def test_every_trace_has_a_second_reading(tmp_path):
    play = play_of("cassini-multigpu", Options(tmp_path))
    assert [play.label(at) for at in play.group(play.entry.at)][1] == "two GPUs a server, cables of 45 Gbps"
    case = play.cases("themis", "two GPUs 45")[1]
    assert case.setting.topology == "cassini-two-gpu:link_gbps=45"
    assert case.begun()[0].topology.links.capacity.max() == 45e9 / 8


def test_congestion_is_pooled_and_none_at_all_is_met(tmp_path):
    """3 MB against 1 MB over both traces together; nothing left is at least 3 MB over a packet."""
    row = dynamic(made(1e6), tmp_path)[0]["dynamic: congestion of DLRM, themis / themis+cassini"]
    assert (row.paper, row.ours, row.ok) == (27.0, pytest.approx(3.0), False)
    row = dynamic(made(0.0), tmp_path)[0]["dynamic: congestion of DLRM, themis / themis+cassini, at least"]
    assert (row.ours, row.ok) == (pytest.approx(2000.0), True)


def test_a_case_plays_its_trace(tmp_path):
    found = play_of("cassini-multigpu", Options(tmp_path)).cases("ideal", "two GPUs")[1].outcome()
    assert found["slowdown"] == pytest.approx(1.0, abs=1e-9) and not found["congestion_bytes"].any()
    assert found["model"][-1] == "DLRM" and found.metrics["jobs_finished"] == len(found["model"])


def test_pairs_on_a_crowded_link_are_counted():
    """Two of 50 Gbps over the cable of 50, one of 20 beside them, one on its own side: 0.26 s or less an iteration."""
    rows = [(0.0, 2, "half", 100.0), (0.0, 2, "light", 100.0), (0.0, 2, "quiet", 40.0)]
    simulator, meetings = contended(*rows), LinkSharing(3)
    for job, gpus in enumerate(((0, 4), (1, 5), (2, 3))):
        simulator.apply(Start(job, gpus))
    while not simulator.ended:
        meetings.advance(simulator)
    finish_s = simulator.jobs()["finish_s"]
    both_s = finish_s[:2].min()
    assert meetings.running_s == pytest.approx(finish_s)
    assert meetings.shared_s == pytest.approx([both_s, both_s, 0.0])
    assert meetings.crowded_s == pytest.approx(meetings.shared_s) and meetings.partner_s == pytest.approx(
        meetings.shared_s
    )
    assert meetings.together_s == {(0, 1): pytest.approx(both_s)}


def test_links_that_hold_all_are_shared_and_not_crowded():
    """20 and 20 of 50 Gbps."""
    simulator, meetings = contended(*[(0.0, 2, "light", 50.0)] * 2), LinkSharing(2)
    simulator.apply(Start(0, (0, 4)))
    simulator.apply(Start(1, (1, 5)))
    while not simulator.ended:
        meetings.advance(simulator)
    assert meetings.shared_s == pytest.approx(50 * 0.2) and not meetings.crowded_s.any() and not meetings.together_s


@pytest.mark.parametrize("name", ["cassini-equal-periods", "cassini-rivals"])
def test_readings_and_rivals_are_played_by_all(tmp_path, name):
    found = reproductions()[name].run(Options(cache=tmp_path, orders=1, quick=True, quiet=True))
    over = {row.quantity: row.ours for row in found.rows}
    assert all(np.isfinite(value) for quantity, value in over.items() if "others on" not in quantity)
    if name == "cassini-rivals":
        assert over["dynamic: slowdown of jobs, ideal / themis"] * over[
            "dynamic: slowdown of jobs, themis"
        ] == pytest.approx(1)
        assert not any(quantity.startswith("Lingjun") for quantity in over)
    else:
        assert over["periods spread by 20 %: mean iteration time, themis / ideal"] >= 1.0
