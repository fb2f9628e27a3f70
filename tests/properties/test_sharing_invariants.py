"""What holds where GPUs are shared, whatever is decided: counts, memory, GPU-seconds, work, the same bits again."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustergym.simulator.base.decisions import Advance, Start
from clustergym.simulator.engine.metrics import gpu_seconds
from clustergym.simulator.profiles.models import profile_of
from clustergym.tests.support.drawn import calm
from clustergym.tests.support.invariants import check_gpu_seconds as check_sums
from clustergym.tests.support.invariants import check_shared as check_record
from clustergym.tests.support.paths import SUPPORT
from clustergym.tests.support.random_sharing import MOST_DECISIONS, any_decision, finish, play, random_simulator

SCRIPT = SUPPORT / "random_sharing.py"
SEEDS = st.integers(0, 100_000)


@calm(120)
@given(SEEDS)
def test_whatever_is_decided_counts_are_exact_memory_holds_and_the_work_is_done_once(seed):
    simulator, rng = random_simulator(seed), np.random.default_rng(seed)
    for _ in range(MOST_DECISIONS):
        if simulator.ended:
            break
        simulator.apply(any_decision(simulator.view, rng))
        check_record(simulator)
        check_sums(simulator)
    finish(simulator)
    check_record(simulator)
    check_sums(simulator)
    workload, table, s = simulator.workload, simulator.jobs(), simulator.state
    assert simulator.done and (s.iterations_left[: len(workload)] == 0.0).all()
    ran = s.attained_s[: len(workload)]
    assert table["queueing_delay_s"] + ran == pytest.approx(table["jct_s"], rel=1e-9, abs=1e-6)
    if simulator.rate_provider is None:
        alone_s = s.iterations[: len(workload)] * s.compute_iteration_s[: len(workload)]
        assert gpu_seconds(s)["compute"] == pytest.approx(float((workload.gpus * alone_s).sum()), rel=1e-9)
        assert (table["jct_s"] >= alone_s * (1 - 1e-9)).all()
        if simulator.config.failures is None:
            spent = alone_s + table["comm_time_s"] + table["interference_s"] + table["restore_s"]
            assert ran == pytest.approx(spent, rel=1e-9, abs=1e-6)


@calm(40)
@given(SEEDS)
def test_a_run_goes_on_from_a_snapshot_bit_for_bit(seed):
    simulator, rng = random_simulator(seed), np.random.default_rng(seed)
    snapshot, decisions, place = simulator.snapshot(), [], int(np.random.default_rng(seed + 1).integers(60))
    for i in range(MOST_DECISIONS):
        if simulator.ended:
            break
        if i == place:
            snapshot, decisions = simulator.snapshot(), []
        decisions.append(any_decision(simulator.view, rng))
        simulator.apply(decisions[-1])
    end = simulator.records.tobytes()
    simulator.restore(snapshot)
    for decision in decisions:
        simulator.apply(decision)
    assert simulator.records.tobytes() == end


def test_the_same_bits_without_compiled_code():
    count = 8
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-P", str(SCRIPT), str(count)]
    outcome = subprocess.run(command, check=True, capture_output=True, text=True, env=environment, timeout=600)
    assert json.loads(outcome.stdout) == [play(seed) for seed in range(count)]


def solo_factor(simulator, job, sub_batch):
    """What accumulation costs by Eq. 7, on one machine or several, whichever is faster and large enough."""
    workload, topology = simulator.workload, simulator.topology
    fit, gpus = profile_of(workload.model[job]).fit("2080ti"), int(workload.gpus[job])
    batch = -(-int(workload.batch_size[job]) // gpus)
    nodes = [1, 2] if gpus <= topology.machine_gpus.max() else [2]
    nodes = min(nodes, key=lambda count: float(fit.iteration_s(gpus, count, batch)))
    return float(fit.iteration_s(gpus, nodes, batch, sub_batch) / fit.iteration_s(gpus, nodes, batch))


class Replay:
    """The same run from what held at the end of each instant, in plain Python: rates between two instants are fixed."""

    def __init__(self, simulator):
        self.simulator, self.xi = simulator, simulator.sharing.slowdowns
        self.cost_s = simulator.rule.preemption_cost[0]
        self.now_s, self.left = 0.0, dict(enumerate(simulator.workload.duration_s.tolist()))
        self.where, self.since_s, self.has_run, self.finish_s = {}, {}, set(), {}

    def rate(self, job):
        gpus, sub_batch = self.where[job]
        models = self.simulator.workload.model
        table = self.xi.matrix(list(models))
        worst = max(
            sum(table[job, other] - 1 for other, (held, _) in self.where.items() if other != job and gpu in held)
            for gpu in gpus
        )
        return 1.0 / (solo_factor(self.simulator, job, sub_batch) * (1.0 + worst))

    def go_to(self, time_s):
        """Let time pass; jobs that end on the way leave their GPUs, and their partners are faster from then on."""
        while self.now_s < time_s:
            rates = {job: self.rate(job) for job in self.where}
            ends = {job: max(self.now_s, self.since_s[job]) + self.left[job] / rates[job] for job in self.where}
            until_s = min([time_s, *ends.values()])
            for job, rate in rates.items():
                self.left[job] -= max(0.0, until_s - max(self.now_s, self.since_s[job])) * rate
            for job, end_s in ends.items():
                if end_s <= until_s or self.left[job] <= 1e-9:
                    self.finish_s[job] = end_s
                    del self.where[job]
            self.now_s = until_s
            if math.isinf(time_s) and not self.where:
                return

    def hold(self, after):
        """What holds from this instant on: job -> (GPUs, sub-batch)."""
        for job, there in after.items():
            if self.where.get(job) != there:
                self.since_s[job] = self.now_s + (self.cost_s if job in self.has_run else 0.0)
                self.has_run.add(job)
        self.where = after


@calm(80)
@given(SEEDS)
def test_every_job_ends_when_a_plain_model_says(seed):
    simulator, rng = random_simulator(seed, plain=True), np.random.default_rng(seed)
    replay, view = Replay(simulator), simulator.view
    replay.now_s = view.now_s
    for turn in range(100 * MOST_DECISIONS):
        if simulator.ended:
            break
        decision = any_decision(view, rng) if turn < MOST_DECISIONS else first_come(view)
        if isinstance(decision, Advance):
            replay.go_to(view.now_s)
            replay.hold({job: (frozenset(view.gpus_of(job)), view.sub_batch(job)) for job in view.running.tolist()})
        simulator.apply(decision)
    replay.go_to(math.inf)
    expected = [replay.finish_s[job] for job in range(len(simulator.workload))]
    assert simulator.jobs()["finish_s"] == pytest.approx(expected, rel=1e-9)


def first_come(view):
    """Start a job that fits the free GPUs, or advance."""
    for job in [*view.queue.tolist(), *view.held.tolist()]:
        if view.gpus(job) <= len(view.free_gpus):
            return Start(job, view.free_gpus[: view.gpus(job)].tolist())
    return Advance()
