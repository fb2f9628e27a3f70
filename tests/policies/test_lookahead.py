"""The policy `lookahead`: placements that are tried by playing them on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from clustergym.policies import make
from clustergym.simulator.base.decisions import Advance, Start
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.jobs.workload import Workload
from clustergym.simulator.numerics.random import draw_seed
from clustergym.simulator.workloads import open_workload

WHOLE = "workers=fixed,equal=locality"


def played(simulator, word, until_s=np.inf):
    """(seconds, kind, job) of every decision up to a time."""
    policy, log = make(word), []
    while not simulator.ended and simulator.view.now_s < until_s:
        while not isinstance(decision := simulator.ask(policy), Advance):
            simulator.apply(decision)
            log.append((simulator.view.now_s, type(decision), decision.job))
        simulator.advance()
    return log


def test_a_job_that_is_nearly_through_keeps_its_gpus():
    """Two jobs of all GPUs. At 600 s the lease of job 0 ends, which has 100 s to go; job 1 is farther from fair.

    Themis has job 0 wait for the next lease to end: job-seconds 1300 + 3600, against 700 + 3600.
    """
    jobs = Workload.from_arrays("jobs", np.array([0.0, 100.0]), np.array([24, 24]), np.array([700.0, 3000.0]))
    ends = {}
    for name in ("themis+cassini", "lookahead"):
        simulator = Simulator("cassini-testbed", "contention:default=silent")
        simulator.reset(jobs)
        log = played(simulator, f"{name}:{WHOLE}")
        ends[name] = simulator.jobs()["finish_s"].tolist()
    assert log == [(0.0, Start, 0), (700.0, Start, 1)]
    assert ends["lookahead"] == [700.0, 3700.0]
    assert ends["themis+cassini"] == [1300.0, 3700.0]


@pytest.fixture(scope="module")
def crowd():
    return open_workload("cassini-poisson:jobs=8,load=1.2,workers=4/8,iteration_s=0.8", seed=3)


def test_it_does_not_know_which_jobs_will_come(crowd):
    """Two workloads that differ in their last three jobs: the same decisions until the first of them arrives."""
    few = 5
    logs = []
    for later_s in (0.0, 5_000.0):
        simulator = Simulator("cassini-testbed", "contention")
        arrival_s = crowd.arrival_s.copy()
        arrival_s[few:] += later_s
        simulator.reset(replace(crowd, arrival_s=arrival_s), 0)
        logs.append(played(simulator, f"lookahead:candidates=3,{WHOLE}", crowd.arrival_s[few]))
    assert logs[0] == logs[1]


def test_the_run_is_as_before_once_it_has_looked_ahead(crowd):
    """Every byte of the record, whenever it is asked; that it draws is marked before."""
    simulator = Simulator("cassini-testbed", "contention")
    simulator.reset(crowd, 0)
    draw_seed(simulator.raw.record)
    policy = make(f"lookahead:candidates=3,{WHOLE}")
    for _ in range(12):
        simulator.install(policy)
        before = simulator.raw.data.copy()
        decision = policy.decide(simulator.view)
        assert (simulator.raw.data == before).all()
        simulator.apply(decision)
