"""Jobs on links with other numbers of workers than they ask: how fast, how much work is left, which may, by lease."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustergym.simulator.base.decisions import Advance, Preempt, Resize, Start
from clustergym.simulator.base.errors import InputError, InvalidDecision
from clustergym.simulator.configuration.network_choice import load_network
from clustergym.simulator.engine.metrics import gpu_seconds
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.jobs.workload import Workload
from clustergym.simulator.profiles.cassini_models import phases_of
from clustergym.simulator.rules.rule import Rule
from clustergym.simulator.workloads import open_workload
from clustergym.tests.support.scripted_contention import Script

ELASTIC = "contention:workers=elastic"


def job_of(model="VGG16", gpus=4, batch=1400, iterations=100.0, arrival_s=(0.0,), network=ELASTIC, rule=None):
    """A simulator with a job, or several alike, on 24 servers of one GPU."""
    strategy = model.partition("/")[2] or None
    seconds = phases_of(model.partition("/")[0], gpus, batch, strategy).iteration_s
    n = len(arrival_s)
    more = {"iterations": np.full(n, iterations), "model": [model] * n, "batch_size": [gpus * batch] * n}
    times = np.full(n, iterations * seconds), np.full(n, seconds)
    workload = Workload.from_arrays("jobs", np.array(arrival_s), [gpus] * n, times[0], iteration_s=times[1], **more)
    simulator = Simulator("cassini-testbed", network, rule=rule)
    simulator.reset(workload)
    return simulator


def alone_s(workers: int, batch: int = 1400) -> float:
    return phases_of("VGG16", workers, batch).iteration_s


@pytest.mark.parametrize("mode", ["exact", "averaged", "dedicated"])
@pytest.mark.parametrize("workers", [1, 2, 3, 4, 8, 12])
def test_an_iteration_does_work_in_proportion_to_the_workers(workers, mode):
    """4 workers asked, 100 iterations: n workers do them in 400 / n iterations of their own, as long as n take alone.

    The last is run whole, from where it begins.
    """
    simulator = job_of(network=f"{ELASTIC},mode={mode}")
    simulator.run(Script((0.0, Start(0, range(workers)))))
    most_more = (np.ceil(400 / workers - 1e-6) - 400 / workers + 1e-6) * alone_s(workers)
    assert simulator.jobs()["jct_s"][0] == pytest.approx(400 / workers * alone_s(workers), abs=most_more)
    metrics = simulator.metrics()
    assert metrics["iteration_time_mean"] == pytest.approx(alone_s(workers), rel=1e-3)


def test_it_goes_on_where_it_is_when_it_gets_more_workers():
    """100 iterations of 4 workers; 8 from 30 of them on: 35 more of 8 workers."""
    simulator = job_of(arrival_s=(0.0, 30 * alone_s(4)))
    simulator.run(Script((0.0, Start(0, range(4))), (8.0, Resize(0, range(8))), (8.0, Start(1, range(9, 13)))))
    assert simulator.jobs()["jct_s"][0] == pytest.approx(30 * alone_s(4) + 35 * alone_s(8), rel=1e-9)
    assert simulator.jobs()["gpus"][0] == 8


def test_the_iterations_that_are_counted_are_those_on_the_network():
    """60 whole ones of 4 workers and a quarter; 19 whole ones of 8 after 7 / 8 of one: each as long as it is alone."""
    simulator = job_of(arrival_s=(0.0, 60.25 * alone_s(4)))
    simulator.run(Script((0.0, Start(0, range(4))), (9.0, Resize(0, range(8))), (9.0, Start(1, range(9, 13)))))
    s = simulator.state
    assert s.job_rounds[0] == 79
    assert s.job_rounds_s[0] == pytest.approx(60 * alone_s(4) + 19 * alone_s(8)) == pytest.approx(s.job_alone_s[0])


def test_back_at_the_same_instant_nothing_has_happened():
    def played(*more):
        simulator = job_of(arrival_s=(0.0, 7.3))
        simulator.run(Script((0.0, Start(0, range(4))), *((7.3, one) for one in more), (7.3, Start(1, range(12, 16)))))
        return simulator.jobs()["finish_s"].tolist(), simulator.metrics()

    finish_s, metrics = played()
    for more in ((Resize(0, range(9)), Resize(0, range(4))), (Preempt(0), Start(0, range(2)), Resize(0, range(4)))):
        again_s, found = played(*more)
        assert again_s == finish_s and found == pytest.approx(metrics, abs=1e-9)


@pytest.mark.parametrize(
    ("model", "may"), [("VGG16", True), ("GPT2/data", True), ("GPT2/pipeline", False), ("DLRM", False)]
)
def test_models_that_are_split_have_what_they_ask(model, may):
    simulator = job_of(model, 4, 40)
    assert simulator.view.may_resize(0) == may
    if may:
        simulator.apply(Start(0, range(3)))
        return
    with pytest.raises(InvalidDecision, match="3 GPUs given, its gang needs 4"):
        simulator.apply(Start(0, range(3)))
    simulator.apply(Start(0, range(4)))
    with pytest.raises(InvalidDecision, match="5 GPUs given, its gang needs 4"):
        simulator.apply(Resize(0, range(5)))


def test_a_job_that_asks_one_gpu_may_have_several():
    simulator = job_of(gpus=1, batch=1400)
    simulator.run(Script((0.0, Start(0, range(5)))))
    assert simulator.jobs()["jct_s"][0] == pytest.approx(20 * alone_s(5), rel=1e-9)


def test_a_lease_is_for_a_place():
    """While it runs a job may have more GPUs, or fewer, but those that it keeps are where they were."""
    simulator = job_of(arrival_s=(0.0, 1.0), rule=Rule("fifo", lease=600.0))
    simulator.apply(Start(0, range(4)))
    simulator.advance()
    for gpus in ((0, 1, 2, 5), (0, 1, 5), (4, 5, 6, 7, 8)):
        with pytest.raises(InvalidDecision, match="its lease runs until 600 s"):
            simulator.apply(Resize(0, gpus))
    simulator.apply(Resize(0, range(6)))
    simulator.apply(Resize(0, (0, 3)))
    with pytest.raises(InvalidDecision, match="its lease runs until 600 s"):
        simulator.apply(Preempt(0))
    assert simulator.view.gpus_of(0) == [0, 3] and simulator.view.lease_end_s(0) == 600.0


def test_a_job_that_has_what_it_asks_runs_as_without():
    """Jobs that are not resized: bit for bit the same on both networks."""
    runs = []
    for network in ("contention", ELASTIC):
        simulator = Simulator("cassini-testbed", network)
        simulator.reset(open_workload("cassini-poisson:jobs=30,load=1", seed=3), 3)
        metrics = simulator.run()
        runs.append((metrics, simulator.jobs()["finish_s"].tolist()))
    assert runs[0] == runs[1]


class Resizer:
    """Starts, stops and resizes jobs at random, on any free GPUs."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def decide(self, view):
        free, rng = view.free_gpus.tolist(), self.rng
        jobs = [*view.queue.tolist(), *view.running.tolist()]
        if not jobs or rng.random() < 0.4:
            return self._first(view, free)
        job = int(rng.choice(jobs))
        own = view.gpus_of(job)
        room = len(free) + len(own)
        size = int(rng.integers(1, 9)) if view.may_resize(job) else view.asked_gpus(job)
        if own and rng.random() < 0.2:
            return Preempt(job)
        if size > room:
            return self._first(view, free)
        gpus = rng.permutation([*own, *free])[:size].tolist()
        if not own:
            return Start(job, gpus)
        return Resize(job, gpus) if view.may_resize(job) and set(gpus) != set(own) else Advance()

    def _first(self, view, free):
        """A job runs, so that time passes."""
        if len(view.running) or not len(view.queue):
            return Advance()
        job = int(view.queue[0])
        return Start(job, free[: view.asked_gpus(job)])


@given(seed=st.integers(0, 10_000), mode=st.sampled_from(["exact", "averaged", "dedicated"]))
@settings(max_examples=15, deadline=None)
def test_gpus_and_work_are_conserved(seed, mode):
    """GPU-seconds add up, a GPU has one job, and what was computed is the work of all jobs, on whatever GPUs."""
    simulator = Simulator("cassini-testbed", f"{ELASTIC},mode={mode}", rule=Rule("fifo", preemption_cost=(2.0,)))
    workload = open_workload("cassini-poisson:jobs=12,load=1.2", seed=seed)
    simulator.reset(workload, seed)
    policy = Resizer(seed)
    while not simulator.ended:
        while not isinstance(decision := policy.decide(simulator.view), Advance):
            simulator.apply(decision)
        view = simulator.view
        gangs = [gpu for job in view.running.tolist() for gpu in view.gpus_of(job)]
        assert len(gangs) == len(set(gangs)) == 24 - len(view.free_gpus)
        simulator.advance()
    s = simulator.raw.record
    parts, jobs = gpu_seconds(s), len(workload)
    spent = sum(parts[name] for name in ("compute", "comm", "interference", "restore", "lost"))
    assert spent == pytest.approx(parts["held"]) and parts["all"] == pytest.approx(parts["busy"] + parts["free"])
    computing_s = s["iterations"][:jobs] * s["compute_iteration_s"][:jobs]
    assert parts["compute"] == pytest.approx((computing_s * workload.gpus).sum(), rel=1e-3)


def test_the_word_says_it():
    assert load_network(ELASTIC).describe().endswith("workers=elastic")
    assert "workers" not in load_network("contention").describe()
    with pytest.raises(InputError, match="workers"):
        load_network("contention:workers=some")
