"""Rows of paper cassini's traces, from outcomes that are made up."""

from __future__ import annotations

import numpy as np
import pytest

from clustergym.experiments.reproduce.case import Outcome
from clustergym.experiments.reproduce.case_runs import Runs
from clustergym.experiments.reproduce.cassini import cassini_traces as traces


def outcome(mean_s: float, congestion: float) -> Outcome:
    metrics = {"iteration_time_mean": mean_s, "iteration_time_p99": 3 * mean_s}
    metrics |= {"allocation_rate": 0.8, "jobs_at_once": mean_s}
    columns = {"slowdown": np.array([1.0, mean_s]), "congestion_bytes": np.array([congestion, 0.0])}
    return Outcome(metrics, {**columns, "model": np.array(["DLRM", "ResNet50"])})


def rows(trace: traces.Trace, augmented_bytes: float) -> dict:
    """Two traces: random 4 and 2 s, themis half of it, augmented a quarter, ideal an eighth."""
    times = dict(zip((*traces.ORDER, traces.LEAST, traces.POLLUX), (4.0, 2.0, 1.0, 0.5, 1.5, 2.0), strict=True))
    times[traces.POLLUX_CASSINI] = 1.0
    volume = dict.fromkeys(times, 3000000.0) | dict.fromkeys((traces.CASSINI, traces.POLLUX_CASSINI), augmented_bytes)
    played = {(policy, trace.name): [outcome(s, volume[policy]), outcome(s / 2, 0.0)] for policy, s in times.items()}
    return {row.quantity: row for row in traces._rows(trace, Runs(played))}


def test_orders_gains_and_bounds():
    found = rows(traces.DYNAMIC, 1e6)
    for better, worse in (("themis", "random"), ("themis+cassini", "themis"), ("ideal", "themis+cassini")):
        row = found[f"dynamic: mean iteration time, {better} / {worse}"]
        assert row.ours == pytest.approx(0.5) and row.ok
    gain = found["dynamic: mean iteration time, themis / themis+cassini"]
    assert (gain.paper, gain.ours, gain.ok) == (1.5, pytest.approx(2.0), False)
    assert found["dynamic: mean iteration time, themis / ideal: the bound"].ours == pytest.approx(4.0)
    assert found["dynamic: P99 iteration time, pollux / pollux+cassini"].ours == pytest.approx(2.0)
    assert found["dynamic: slowdown of newcomer ResNet50, themis / themis+cassini"].ours == pytest.approx(2.0)


def test_the_load_that_came_about_stands_beside_every_policy():
    found = rows(traces.DYNAMIC, 1e6)
    for policy in traces.DYNAMIC.policies:
        assert found[f"dynamic: realised load, {policy}"].ours == pytest.approx(80.0)
    assert found["dynamic: jobs at once, random"].ours == pytest.approx(3.0)


def test_slowdowns_come_first_of_all_jobs_and_by_model():
    """1 and 2 times as long in the first trace, 1 and 1 in the second: DLRM 1, ResNet50 1.5, all 1.25; ideal 1 less."""
    found = rows(traces.DYNAMIC, 1e6)
    first = next(iter(found.values()))
    assert first.quantity == "dynamic: slowdown of jobs, themis" and first.ours == pytest.approx(1.25)
    assert found["dynamic: slowdown of DLRM, themis"].ours == 1.0
    assert found["dynamic: slowdown of ResNet50, themis"].ours == pytest.approx(1.5)
    assert found["dynamic: slowdown of ResNet50, themis / themis+cassini"].ours == pytest.approx(2.0)
    assert not any("VGG" in quantity for quantity in found)


def test_every_trace_has_a_second_reading():
    trace = traces.MULTI_GPU.measured()
    assert trace.topology == "cassini-two-gpu:link_gbps=45" and trace.name == "two GPUs a server, cables of 45 Gbps"
    case = traces.ON_LINKS.on("themis", 1, topology=trace.topology, workload=trace.workload)
    assert case.begun()[0].topology.links.capacity.max() == 45e9 / 8


def test_congestion_is_pooled_and_none_at_all_is_met():
    """3 MB against 1 MB over both traces together; nothing left is at least 3 MB over a packet."""
    row = rows(traces.DYNAMIC, 1e6)["dynamic: congestion of DLRM, themis / themis+cassini"]
    assert (row.paper, row.ours, row.ok) == (27.0, pytest.approx(3.0), False)
    row = rows(traces.DYNAMIC, 0.0)["dynamic: congestion of DLRM, themis / themis+cassini, at least"]
    assert (row.ours, row.ok) == (pytest.approx(2000.0), True)


def test_a_case_plays_its_trace():
    found = traces.ON_LINKS.on("ideal", 1, topology="cassini-two-gpu", workload="cassini-multigpu").outcome()
    assert found["slowdown"] == pytest.approx(1.0, abs=1e-9) and not found["congestion_bytes"].any()
    assert found["model"][-1] == "DLRM" and found.metrics["jobs_finished"] == len(found["model"])
