"""SJF-BSBF and SJF-FFS: Theorem 1 against a search, cases by hand, whole runs against plain Python."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clustergym.experiments.reproduce.bsbf.bsbf_starts import random_run
from clustergym.policies.bsbf.sjf_bsbf_partners import least_ratio, pair_jct
from clustergym.simulator.base.decisions import Start
from clustergym.tests.support.bsbf_pairs import random_pairs, step_s
from clustergym.tests.support.bsbf_reference import Job, Setting, sequential_sum, simulate, sum_of_jcts


@pytest.mark.reproduction
def test_theorem_1_equals_a_search_over_insertion_times():
    """bsbf-theorem1, 10,000 pairs: no insertion time, even after the end of the running job, gives a smaller sum."""
    both = [0, 0]
    for new_s, xi_new, running_s, xi_running in random_pairs(10_000):
        times_s = [running_s * i / 50 for i in range(61)]
        # where the running job would end together with the new one: the sum bends there
        times_s.append(max(0.0, running_s - new_s * xi_new / xi_running))
        sums = [sum_of_jcts(t, new_s, xi_new, running_s, xi_running) for t in times_s]
        iterations = 7.0
        best, at_once = pair_jct(new_s / iterations, iterations, xi_new, running_s / 3.0, 3.0, xi_running)
        assert best == pytest.approx(min(sums), rel=1e-12)
        assert best == pytest.approx(sums[0] if at_once else sums[50], rel=1e-12)
        both[at_once] += 1
    assert min(both) > 1000


def test_theorem_1_holds_if_only_sharing_accumulates():
    """Passes that are needed beside the running job make the new one 1 to 8 times as long, those after it cost nothing.

    The least sum is still that of starting now or of waiting for the end, never between: a later start beside the
    running job sums to no less than one of both with the same work, and the end now costs less than that.
    """
    rng = np.random.default_rng(2)
    shares = {False: 0, True: 0}
    for whole_s, xi_new, running_s, xi_running in random_pairs(2_000, seed=2):
        new_s = whole_s * 8.0 ** rng.random()
        pair = new_s, xi_new, running_s, xi_running, whole_s
        sums = [sum_of_jcts(running_s * (i / 50), *pair) for i in range(61)]
        assert sums[50] == pytest.approx(sequential_sum(whole_s, running_s), rel=1e-12)
        assert min(sums) == pytest.approx(min(sums[0], sums[50]), rel=1e-12)
        shares[sums[0] <= sums[50]] += 1
    assert min(shares.values()) > 200


def test_a_pair_shares_at_any_length_or_if_the_running_job_is_long_enough():
    for new_s, xi_new, running_s, xi_running in random_pairs(10_000, seed=1):
        ratio = least_ratio(xi_new, xi_running)
        if abs(running_s - ratio * new_s) > 1e-9 * running_s:
            at_once = pair_jct(new_s, 1.0, xi_new, running_s, 1.0, xi_running)[1]
            assert at_once == (running_s > ratio * new_s)


def test_equal_jobs_break_even_at_interference_1_5():
    """100 s + 100 s: sharing ends both at 150 s; queueing ends them at 100 s and 200 s. A tie shares."""
    assert pair_jct(1.0, 100.0, 1.5, 2.0, 50.0, 1.5) == (300.0, True)
    assert pair_jct(1.0, 100.0, 1.4, 2.0, 50.0, 1.4) == (pytest.approx(280.0), True)
    assert pair_jct(1.0, 100.0, 1.6, 2.0, 50.0, 1.6) == (300.0, False)


def test_one_constant_interference_refuses_no_pair_up_to_1_5():
    for xi in (1.0, 1.1, 1.25, 1.4, 1.5):
        assert all(pair_jct(a, 1.0, xi, b, 1.0, xi)[1] for a, _, b, _ in random_pairs(500))


def test_at_interference_2_a_job_joins_one_that_is_twice_as_long():
    """Taking turns: 100 s beside 200 s end at 200 and 300 s, in a row at 200 and 300 s; a shorter one gains."""
    assert pair_jct(1.0, 100.0, 2.0, 1.0, 200.0, 2.0) == (500.0, True)
    assert pair_jct(1.0, 90.0, 2.0, 1.0, 200.0, 2.0) == (470.0, True)
    assert pair_jct(1.0, 110.0, 2.0, 1.0, 200.0, 2.0) == (510.0, False)


def test_the_printed_condition_differs():
    """2 xi_B + xi_A - 2 xi_A xi_B > 0 says share, for a long new job beside a short running one; the sums say wait.

    new 100 s, xi 1.0; running 100 s, xi 3.0 beside it: together the new one ends at 100 s, and then 66.7 s are left:
    266.7 in all. That shares. With 1,000 s of new work: 300 and 1,200 s together, 100 and 1,100 s in a row.
    """
    assert 2 * 3.0 + 1.0 - 2 * 1.0 * 3.0 > 0
    assert pair_jct(1.0, 100.0, 1.0, 1.0, 100.0, 3.0) == (pytest.approx(266.6667), True)
    assert pair_jct(1.0, 1000.0, 1.0, 1.0, 100.0, 3.0) == (1200.0, False)


def reference_run(simulator, workload, rule):
    """The same by plain Python; fits, memory and xi are those that the record was laid with."""
    s = simulator.state
    jobs = [
        Job(*row)
        for row in zip(
            workload.arrival_s.tolist(),
            workload.gpus.tolist(),
            workload.iterations.tolist(),
            workload.iteration_s.tolist(),
            s.model[: len(workload)].tolist(),
            s.batch[: len(workload)].tolist(),
            strict=True,
        )
    ]

    def stretch(job, b):
        fit = s.fit[job.model].tolist()
        return step_s(fit, job.gpus, job.batch, b) / step_s(fit, job.gpus, job.batch, job.batch)

    def memory(model, b):
        return float(s.memory_base[model] + s.memory_sample[model] * b)

    limited = math.isfinite(s.gpu_memory)
    setting = Setting(
        int(s.n_gpus), s.xi.tolist(), rule.sharing, rule.free, memory if limited else None, float(s.gpu_memory), stretch
    )
    return simulate(jobs, setting)


def starts_of(simulator):
    """(time, job, GPUs, sub-batch) of every start, by the decisions that the rule hands out."""
    found = []
    while not simulator.ended:
        decision = simulator.next_decision()
        if isinstance(decision, Start):
            found.append((simulator.view.now_s, decision.job, tuple(decision.gpus), decision.sub_batch))
        simulator.apply(decision)
    return found


def assert_same(found, expected):
    assert [row[1:] for row in found] == [row[1:] for row in expected]
    assert [row[0] for row in found] == pytest.approx([row[0] for row in expected], rel=1e-9)


@pytest.mark.parametrize("free", ["last", "first", "never"])
@pytest.mark.parametrize("policy", ["sjf-ffs", "sjf-bsbf"])
@pytest.mark.parametrize("runs", [12, pytest.param(40, marks=pytest.mark.slow)])
def test_decisions_equal_plain_python(policy, free, runs):
    """Whole runs, decision by decision, of what the kernels remember between passes and what plain Python looks up."""
    shared = shrunk = 0
    for seed in range(runs):
        workload, simulator = random_run(seed, policy, free)
        simulator.reset(workload)
        expected = reference_run(simulator, workload, simulator.rule)
        assert_same(starts_of(simulator), expected.decisions)
        simulator.reset(workload)
        simulator.run()
        finish_s = [expected.finish_s[j] for j in range(len(workload))]
        assert simulator.jobs()["finish_s"].tolist() == pytest.approx(finish_s, rel=1e-9)
        shared += int(simulator.state.shared_integral > 0.0)
        shrunk += sum(b < simulator.state.batch[j] for _, j, _, b in expected.decisions)
    assert shared > 0.75 * runs and shrunk > 0.5 * runs
