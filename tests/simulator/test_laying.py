"""What kernels lay and sum up is what numpy would: classes, pairs, gang sizes, durations, times of finished jobs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustergym.simulator.base.errors import InputError
from clustergym.simulator.engine.finished_jobs import FinishedJobs
from clustergym.simulator.engine.metric_registry import NAMES
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.jobs.workload import Workload
from clustergym.simulator.network.pairs import MOST_GPUS, number_pairs
from clustergym.simulator.rules.rule import Rule
from clustergym.simulator.workloads import open_workload


def simulated(word="poisson:jobs=60", rule=None, topology="flat:machines=8,gpus_per_machine=8", **options):
    simulator = Simulator(topology, rule=rule, **options)
    simulator.reset(open_workload(word, seed=3), begin=False)
    return simulator


@pytest.mark.parametrize("placer", ["tier", "skew"])
def test_classes_are_the_demands_in_order(placer):
    """By GPUs, then whether skewed; `class_base` is where the heap of a class begins."""
    simulator = simulated(rule=Rule("fifo", placer=placer))
    s, jobs = simulator.state, slice(0, 60)
    skewed = 0 if simulator._skewed() is None else simulator._skewed()
    classes, demand, counts = np.unique(s.gpus[jobs] * 2 + skewed, return_inverse=True, return_counts=True)
    assert s.n_classes == len(classes)
    assert s.demand[jobs].tolist() == demand.tolist()
    assert s.class_gpus[: len(classes)].tolist() == (classes // 2).tolist()
    assert s.class_skewed[: len(classes)].tolist() == (classes % 2).tolist()
    assert s.class_base[: len(classes)].tolist() == (np.cumsum(counts) - counts).tolist()


def test_too_many_classes_are_counted_in_the_message():
    gpus = np.arange(1, 301)
    workload = Workload.from_arrays("wide", np.zeros(300), gpus, np.full(300, 60.0))
    with pytest.raises(InputError, match="300 different GPU demands; one simulator tells at most 256 apart"):
        Simulator("flat:machines=50,gpus_per_machine=8").reset(workload)


def test_columns_may_lie_in_memory_as_they_like():
    """A workload that was put together without `from_arrays`, of every second entry, plays as its copy."""
    long = open_workload("poisson:jobs=40", seed=1)
    columns = {name: getattr(long, name) for name in ("arrival_s", "gpus", "duration_s", "model")}
    copied = Workload.from_arrays("half", **{name: column[::2] for name, column in columns.items()})
    strided = Workload.from_arrays("half", **{name: column[::2] for name, column in columns.items()})
    for name in ("arrival_s", "gpus", "iterations", "iteration_s", "deadline_s"):
        wide = np.repeat(getattr(strided, name), 2)
        object.__setattr__(strided, name, wide[::2])
    simulator = Simulator("flat:machines=8,gpus_per_machine=8")
    simulator.reset(copied)
    expected = simulator.run()
    simulator.reset(strided)
    assert simulator.run() == expected


PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9)), min_size=1, max_size=40)


@given(PAIRS, st.sampled_from((3, 64)))
@settings(max_examples=60, deadline=None)
def test_pairs_are_numbered_by_model_and_gang_size(pairs, room):
    """As numpy sorts them; all gangs of one GPU are one pair; where there is no room it says so."""
    codes, gpus = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
    keys = np.where(gpus == 1, 1, codes * MOST_GPUS + gpus)
    expected, first, number = np.unique(keys, return_index=True, return_inverse=True)
    found, first_job, profiles = np.empty(room, np.int64), np.empty(room, np.int64), np.empty_like(gpus)
    count = number_pairs(codes, gpus, found, first_job, profiles)
    if len(expected) > room:
        assert count == room + 1
        return
    assert count == len(expected)
    assert found[:count].tolist() == expected.tolist()
    assert first_job[:count].tolist() == first.tolist()
    assert profiles.tolist() == number.tolist()


@pytest.mark.parametrize("horizon_s", [np.inf, 9_000.0])
def test_times_are_those_of_finished_jobs(horizon_s):
    """Sums as numpy has them, bit for bit, of all jobs and of some; a late job need not have finished."""
    simulator = simulated("poisson:jobs=60,deadlines=1/3", horizon_s=horizon_s)
    simulator.run()
    s, n = simulator.state, 60
    for among in (None, np.arange(n) % 3 == 0):
        asked = np.ones(n, bool) if among is None else among
        done = asked & (s.finish_s[:n] >= 0.0)
        jobs = FinishedJobs(simulator.raw, among)
        jct_s = (s.finish_s - s.arrival_s)[:n][done]
        alone_s = (s.iterations * s.base_iteration_s)[:n][done]
        share = s.n_gpus / np.maximum(1.0, s.mean_active[:n][done])
        alone_s_on_share = alone_s * np.maximum(1.0, s.gpus[:n][done] / share)
        rows = (jct_s, s.queued_s[:n][done], s.comm_s[:n][done], jct_s / alone_s, jct_s / alone_s_on_share)
        assert jobs.times.tolist() == [row.tolist() for row in rows]
        assert jobs.means() == [float(row.sum() / len(row)) for row in rows]
        assert (jobs.count, jobs.are_all) == (len(jct_s), len(jct_s) == asked.sum())
        ends_s = np.where(s.finish_s[:n] >= 0.0, s.finish_s[:n], s.now_s)
        assert (jobs.late, jobs.due) == ((ends_s > s.deadline_s[:n] * (1 + 1e-9))[asked].sum(), asked.sum())
    assert tuple(simulator.metrics()) == NAMES


def test_means_of_no_job_are_nan():
    simulator = simulated()
    jobs = FinishedJobs(simulator.raw)
    assert (jobs.count, jobs.are_all) == (0, False) and np.isnan(jobs.means()).all()
    assert np.isnan(simulator.metrics()["jct_mean"])
