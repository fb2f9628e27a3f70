"""What Algorithm 2 of SJF-BSBF predicts of its starts: no job that joins one partner would better have waited."""

from __future__ import annotations

import pytest

from clustergym.experiments.reproduce.bsbf.bsbf_starts import (
    Partner,
    StartCounts,
    apart_sum_s,
    count_starts,
    random_run,
    shared_starts,
    together_sum_s,
)
from clustergym.simulator.base.decisions import Start
from clustergym.tests.support.bsbf_pairs import random_pairs, stretch_of
from clustergym.tests.support.bsbf_reference import sequential_sum, sum_of_jcts


def single_starts(seed):
    """(together, apart) of every start beside exactly one job, in plain Python from the record at that time."""
    workload, simulator = random_run(seed, "sjf-bsbf")
    simulator.reset(workload)
    while not simulator.ended:
        decision = simulator.next_decision()
        if isinstance(decision, Start):
            view, s = simulator.view, simulator.state
            others = {other for gpu in decision.gpus for other in view.jobs_on(gpu)}
            if len(others) == 1:
                (other,) = others
                yield pair_sums(view.now_s, s, decision.job, other, int(decision.sub_batch))
        simulator.apply(decision)


def pair_sums(now_s, s, new, other, sub_batch):
    """Sums if they share from now at that sub-batch, and if the new job waits and has that of an empty GPU."""

    def alone_s(job, iterations, b):
        return iterations * float(s.base_iteration_s[job]) * stretch_of(s.fit[s.model[job]].tolist(), s, job, b)

    done = max(0.0, now_s - float(s.since_s[other])) / float(s.iteration_s[other])
    left_s = alone_s(other, float(s.iterations_left[other]) - done, int(s.sub_batch[other]))
    new_s, whole_s = (alone_s(new, float(s.iterations_left[new]), b) for b in (sub_batch, whole_batch(s, new)))
    xi_new, xi_other = s.xi[s.model[new], s.model[other]], s.xi[s.model[other], s.model[new]]
    return sum_of_jcts(0.0, new_s, float(xi_new), left_s, float(xi_other)), sequential_sum(whole_s, left_s)


def whole_batch(s, job):
    b, model = int(s.batch[job]), s.model[job]
    while s.memory_base[model] + s.memory_sample[model] * b > s.gpu_memory:
        b //= 2
    return b


def test_a_job_beside_one_partner_does_no_worse_than_one_that_waits():
    """200 random runs: both completion times, as predicted, sum to no more than in a row at the whole batch."""
    found = [sums for seed in range(200) for sums in single_starts(seed)]
    assert len(found) > 1000
    assert all(together <= apart * (1 + 1e-9) for together, apart in found)
    assert sum(together < 0.9 * apart for together, apart in found) > 100


def test_the_counted_predictions_are_those_of_plain_python():
    """And looking on changes nothing of the run."""
    for seed in range(30):
        workload, simulator = random_run(seed, "sjf-bsbf")
        simulator.reset(workload)
        counted = [start for start in shared_starts(simulator) if start is not None and start.partners == 1]
        expected = list(single_starts(seed))
        assert [start.together_s for start in counted] == pytest.approx([row[0] for row in expected], rel=1e-9)
        assert [start.apart_s for start in counted] == pytest.approx([row[1] for row in expected], rel=1e-9)
        watched = simulator.jobs()["finish_s"].tolist()
        simulator.reset(workload)
        simulator.run()
        assert simulator.jobs()["finish_s"].tolist() == watched


def test_how_many_gangs_with_several_partners_would_better_wait():
    """Pair by pair is not the whole: a gang goes at its slowest GPU beside all. 1,722 and 705 starts in 200 runs."""
    counts = count_starts(range(60))
    assert (counts.runs, counts.one_worse) == (60, 0)
    assert counts.several > 100 and 0.0 < counts.several_worse_share < 0.15
    assert count_starts(range(20), "sjf-ffs").one_worse > 10  # a rule that does not ask does worse


def test_no_starts_with_several_partners_have_no_share():
    assert StartCounts(1, 3, 2, 0, 0, 0).several_worse_share != StartCounts(1, 3, 2, 0, 0, 0).several_worse_share


def test_beside_one_partner_the_sums_are_theorem_1s():
    for new_s, xi_new, left_s, xi in random_pairs(500):
        partners = [Partner(left_s, xi_new, xi)]
        assert together_sum_s(new_s, partners) == pytest.approx(sum_of_jcts(0.0, new_s, xi_new, left_s, xi), rel=1e-12)
        assert apart_sum_s(new_s, partners) == pytest.approx(sequential_sum(new_s, left_s), rel=1e-12)


def test_a_gang_beside_two_partners_goes_at_its_slowest_gpu():
    """100 s of work at 1/2 its speed beside the first until 80 s, when 60 s are left of it; at 4/5 beside the second.

    The first: 40 s at half its speed, end 80 s. The second: 200 s at 1/1.25; by the new job's end, at 80 + 75 = 155 s,
    124 s of it are done; it ends at 155 + 76 = 231 s. In a row: 40 + 200 + (200 + 100).
    """
    partners = [Partner(40.0, 2.0, 2.0), Partner(200.0, 1.25, 1.25)]
    assert together_sum_s(100.0, partners) == pytest.approx(80.0 + 155.0 + 231.0)
    assert apart_sum_s(100.0, partners) == pytest.approx(540.0)
