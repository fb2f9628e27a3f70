"""Network contention:mode=averaged: against phases, what it remembers, and what it conserves."""

from __future__ import annotations

import numpy as np
import pytest

from clustergym.simulator.base.decisions import Shift, Start
from clustergym.simulator.engine.metrics import gpu_seconds
from clustergym.simulator.events.initialise import Failures
from clustergym.tests.support import random_contended
from clustergym.tests.support.random_contended import outcome, random_run, workload
from clustergym.tests.support.scripted_contention import ACROSS, ALSO, Script
from clustergym.tests.support.scripted_contention import contended as make

STARTS = (0.0, Start(0, ACROSS)), (0.0, Start(1, ALSO))


def test_rates_change_when_a_job_leaves():
    """0.26 s an iteration together, 0.18 s alone, as phase by phase."""
    simulator = make((0.0, 2, "half", 10.0), (0.0, 2, "half", 30.0), words=",mode=averaged")
    metrics = simulator.run(Script(*STARTS))
    assert simulator.jobs()["jct_s"] == pytest.approx([2.6, 2.6 + 20 * 0.18], rel=1e-6)
    assert simulator.state.phase_events == 0
    assert metrics["congestion_bytes"] == pytest.approx(10 * 0.16 * 50e9 / 8, rel=0.02)
    assert metrics["iteration_time_mean"] == pytest.approx((2 * 10 * 0.26 + 20 * 0.18) / 40)


def test_shifts_count():
    simulator = make(*[(0.0, 2, "half", 100.0)] * 2, words=",mode=averaged")
    simulator.run(Script(*STARTS, (0.0, Shift(0, 0.0)), (0.0, Shift(1, 0.09))))
    assert simulator.jobs()["jct_s"] == pytest.approx(18.0, rel=1e-6)
    simulator = make(*[(0.0, 2, "half", 100.0)] * 2, (1.0, 1, "quiet", 10.0), words=",mode=averaged")
    simulator.run(Script(*STARTS, (1.0, Start(2, [2])), (1.0, Shift(0, 0.0)), (1.0, Shift(1, 0.09))))
    assert simulator.jobs()["jct_s"][:2] == pytest.approx(1.0 + (100 - 1 / 0.26) * 0.18, rel=1e-6)


def test_free_jobs_run_as_phase_by_phase():
    """Iterations of 0.18, 0.2 and 0.31 s drift through each other: the means are the same to some percent."""
    finish = {}
    for mode in ("exact", "averaged"):
        rows = [(0.0, 2, "half", 400.0), (0.0, 2, "twice", 300.0), (0.0, 2, "light", 400.0)]
        simulator = make(*rows, words=f",mode={mode}")
        simulator.run(Script(*STARTS, (0.0, Start(2, (2, 6)))))
        finish[mode] = simulator.jobs()["finish_s"]
    assert finish["averaged"] == pytest.approx(finish["exact"], rel=0.03)


def test_steady_states_are_remembered_by_what_jobs_do():
    simulator = make(*[(0.0, 2, "half", 50.0)] * 2, words=",mode=averaged")
    averages = simulator.network.rate_provider.averages
    simulator.run(Script(*STARTS))
    assert averages.played == 1
    # Other jobs, other servers, another order: the same two again.
    simulator.reset(workload((0.0, 1, "quiet", 5.0), (0.0, 2, "half", 50.0), (0.5, 2, "half", 50.0)))
    simulator.run(Script((0.0, Start(1, (2, 7))), (0.5, Start(2, (3, 6))), (0.5, Start(0, [0]))))
    assert averages.played == 1
    simulator.reset(workload((0.0, 2, "half", 50.0), (0.0, 2, "twice", 50.0)))
    simulator.run(Script(*STARTS))
    simulator.reset(workload((0.0, 2, "twice", 50.0), (0.0, 2, "half", 50.0)))
    simulator.run(Script(*STARTS))
    assert averages.played == 2


@pytest.mark.parametrize("words", ["offsets=random", "jitter=0.02"])
def test_the_same_seed_gives_the_same_whatever_was_played_before(words):
    rows = [(0.0, 2, "half", 50.0), (0.0, 2, "twice", 60.0)]

    def finish_s(simulator, seed):
        simulator.reset(workload(*rows), seed=seed)
        simulator.run(Script(*STARTS))
        return simulator.jobs()["finish_s"].tolist()

    fresh, used = (make(*rows, words=f",mode=averaged,{words}") for _ in range(2))
    assert finish_s(used, 0) != finish_s(used, 1) == finish_s(fresh, 1)


@pytest.mark.parametrize("seed", range(12))
def test_gpu_seconds_and_work_are_conserved(seed):
    failures = Failures(mtbf_s=60.0, mttr_s=5.0, checkpoint_s=2.0) if seed % 3 == 0 else None
    simulator = random_run(seed, words=["mode=averaged"], failures=failures)
    simulator.run((random_contended.Careful if simulator.rule.lease else random_contended.Random)(seed))
    s = simulator.raw.record
    parts = gpu_seconds(s)
    held = sum(parts[name] for name in ("compute", "comm", "interference", "restore", "lost"))
    assert parts["held"] == pytest.approx(held, rel=1e-9, abs=1e-6)
    n = int(s["n_jobs"])
    assert parts["compute"] == pytest.approx(
        (s["gpus"][:n] * s["iterations"][:n] * s["compute_iteration_s"][:n]).sum(), rel=1e-6
    )
    assert np.isfinite(simulator.jobs()["jct_s"]).all() and s["phase_events"] == 0


def test_a_snapshot_goes_on_the_same():
    policy = random_contended.Random
    simulator = random_run(7, words=["mode=averaged"])
    for _ in range(6):
        simulator._play(policy(7))
    kept = simulator.snapshot()
    simulator.run(policy(7))
    first = outcome(simulator)
    simulator.restore(kept)
    simulator.run(policy(7))
    assert outcome(simulator) == first
