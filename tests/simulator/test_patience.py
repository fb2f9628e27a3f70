"""Runs in which nothing gets done end with a sentence; those that get on, however slowly, are left alone."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from clustergym.experiments.cli import run as cli
from clustergym.simulator.base.errors import Endless
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.events.initialise import Failures
from clustergym.simulator.rules.rule import Rule
from clustergym.simulator.workloads import Workload

FEW = "flat:machines=2,gpus_per_machine=4"


def jobs(arrivals_s: list[float], duration_s: float, gpus: int = 8) -> Workload:
    n = len(arrivals_s)
    return Workload.from_arrays(
        "few", job_id=[str(i) for i in range(n)], arrival_s=arrivals_s, gpus=[gpus] * n, duration_s=[duration_s] * n
    )


@pytest.mark.parametrize(
    "words",
    [
        ["Delay", "--workload", "poisson:jobs=20,cluster_gpus=64", "--policies", "fifo", "--set", "mtbf_s=2"],
        ["Delay", "--workload", "poisson:jobs=20,cluster_gpus=64", "--policies", "greedy", "--set", "mtbf_s=1e-320"],
        ["Sharing", "--workload", "philly-sample:jobs=10,hours=1", "--policies", "fifo", "--set", "mtbf_s=1"],
    ],
    ids=" ".join,
)
def test_a_run_without_an_end_says_so(words: list[str], capsys):
    assert cli(["evaluate", *words, "--seeds", "0", "--quiet"]) == 1
    told = capsys.readouterr().err.splitlines()[-1]
    assert "the run has no end: " in told and "(mtbf_s)" in told


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        [
            "Geo",
            "--topology",
            "mast:regions=4,gpus=256",
            "--workload",
            "mast-like:jobs=30,days=0.2,tables=20",
            "--policies",
            "mast",
            "--set",
            "mtbf_s=1e-320",
        ],
        ["Grouping", "--workload", "harmony-like:jobs=6", "--policies", "isolated", "--set", "mtbf_s=1"],
        ["TimeShift", "--workload", "cassini-poisson:jobs=8", "--policies", "themis", "--set", "mtbf_s=0.5"],
    ],
    ids=" ".join,
)
def test_a_run_without_an_end_says_so_where_policies_are_asked(words: list[str], capsys):
    assert cli(["evaluate", *words, "--seeds", "0", "--quiet"]) == 1
    assert "the run has no end: " in capsys.readouterr().err


def test_a_step_of_an_environment_without_an_end_raises():
    options = {"topology": "dally:racks=1,machines=2", "workload": "poisson:jobs=5"}
    env = gymnasium.make("clustergym/Delay-v0", mtbf_s=0.01, **options).unwrapped
    with pytest.raises(Endless, match="next to no work got done"):
        env.reset(seed=0)
        while True:
            parts = np.split(env.action_masks(), np.cumsum(env.action_space.nvec)[:-1])
            env.step([np.flatnonzero(part)[-1] for part in parts])


def test_time_that_stands_still_is_noticed():
    """Machines fail, are repaired and fail again, 1e-300 s at a time: the clock never moves."""
    simulator = Simulator(FEW, failures=Failures(1e-300, 1e-300, 0.0))
    with pytest.raises(Endless):
        simulator.reset(jobs([0.0, 10.0], 100.0))
        simulator.run()


def test_failures_while_no_job_is_there_are_no_reason_to_stop():
    """3e6 failures of two machines between the first job, which takes 1e-3 s, and the second one."""
    simulator = Simulator(FEW, failures=Failures(0.5, 0.5, 0.0))
    simulator.reset(jobs([0.0, 1.5e6], 1e-3))
    simulator.run()
    assert simulator.done and int(simulator.state.events) > 4_000_000


def test_many_leases_without_a_finish_are_no_reason_to_stop():
    """Two jobs of 3e6 s each take turns of a second on all GPUs: nothing finishes in the first six million leases."""
    simulator = Simulator(FEW, rule=Rule("las", lease=1.0))
    simulator.reset(jobs([0.0, 0.0], 3e6))
    simulator.run()
    assert simulator.done and int(simulator.state.events) > 2_500_000


def test_a_run_that_comes_to_its_horizon_is_left_alone():
    """Two jobs of a hundred years each take turns of a second for three days: that is next to nothing of their work."""
    simulator = Simulator(FEW, rule=Rule("las", lease=1.0), horizon_s=250_000.0)
    simulator.reset(jobs([0.0, 0.0], 3e9))
    simulator.run()
    assert simulator.at_horizon and int(simulator.state.events) > 200_400


def test_a_horizon_that_no_run_comes_to_is_no_end():
    simulator = Simulator(FEW, failures=Failures(1e-300, 1e-300, 0.0), horizon_s=86_400.0)
    with pytest.raises(Endless):
        simulator.reset(jobs([0.0, 10.0], 100.0))
        simulator.run()
