"""SJF-BSBF by hand where only sharing needs gradient accumulation: 2080 Ti fits, 11 GiB, xi 1.

yolov3 with 8 samples a GPU takes most of the memory, so a job that joins it passes its batch in parts. A job that
waits for its end does not.
"""

from __future__ import annotations

import pytest

from clustergym import policies
from clustergym.simulator.base.decisions import Start
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.sharing.sharing_model import Sharing
from clustergym.simulator.workloads import Workload


def starts(gpus, running_s, model, batch, new_s, *, policy="sjf-bsbf", memory_gb=11.0, xi=1.0):
    """(start, sub-batch, end) of a job that comes 1 s after one of yolov3, both gangs of all `gpus` GPUs."""
    sharing = Sharing(interference=f"constant:xi={xi}", memory_gb=memory_gb)
    topology = f"flat:machines=1,gpus_per_machine={gpus}"
    simulator = Simulator(topology, rule=policies.make(policy).rule, sharing=sharing)
    simulator.reset(
        Workload.from_arrays(
            "by hand",
            [0.0, 1.0],
            [gpus, gpus],
            [running_s + 1.0, new_s],
            model=["yolov3", model],
            batch_size=[8 * gpus, batch * gpus],
        )
    )
    found = {}
    while not simulator.ended:
        decision = simulator.next_decision()
        if isinstance(decision, Start):
            found[decision.job] = simulator.view.now_s, decision.sub_batch
        simulator.apply(decision)
    return (*found[1], simulator.jobs()["finish_s"][1])


@pytest.mark.parametrize(("gpus", "model", "batch"), [(1, "cifar10", 1024), (4, "deepspeech2", 80)])
def test_a_long_job_waits_a_minute_rather_than_accumulate_for_hours(gpus, model, batch):
    """60 s are left of the running job, 10,000 s come: 60 + 10,000 s later it ends, not 29,669 (52,162) s later.

    Those are what 64 of 1024 samples in a pass (5 of 80 in a gang of 4) make of 10,000 s. The sums: 60 + 29,669 s
    together, 60 + 10,060 s in a row.
    """
    assert starts(gpus, 60.0, model, batch, 10_000.0) == pytest.approx((61.0, batch, 10_061.0))


def test_the_same_job_shares_at_once_where_memory_has_no_limit():
    """At xi 1 no job loses anything."""
    assert starts(1, 60.0, "cifar10", 1024, 10_000.0, memory_gb=None) == pytest.approx((1.0, 1024, 10_001.0))


def test_a_short_job_accumulates_beside_a_long_one():
    """100 s become 297 s in passes of 64, and the running job has 10,000 s left, which it would have to wait for."""
    begin_s, sub_batch, end_s = starts(1, 10_000.0, "cifar10", 1024, 100.0)
    assert (begin_s, sub_batch) == (1.0, 64)
    assert end_s == pytest.approx(1.0 + 296.7, abs=0.1)


@pytest.mark.parametrize(
    ("gpus", "model", "batch", "part", "jct_s"), [(1, "cifar10", 1024, 64, 29_669), (4, "deepspeech2", 80, 5, 52_162)]
)
def test_first_fit_does_not_ask_what_accumulation_costs(gpus, model, batch, part, jct_s):
    """SJF-FFS starts the job of 10,000 s at once, whatever comes of it."""
    begin_s, sub_batch, end_s = starts(gpus, 60.0, model, batch, 10_000.0, policy="sjf-ffs")
    assert (begin_s, sub_batch) == (1.0, part)
    assert end_s - 1.0 == pytest.approx(jct_s, abs=1.0)
