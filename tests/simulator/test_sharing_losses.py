"""What failures undo where jobs share GPUs, and where its GPU-seconds had been booked."""

from __future__ import annotations

import pytest

from clustergym.simulator.base.decisions import Resize, Start
from clustergym.simulator.engine.metrics import gpu_seconds
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.events.initialise import Failures
from clustergym.simulator.rules.rule import Rule
from clustergym.simulator.sharing.sharing_model import Sharing
from clustergym.simulator.workloads import Workload


def test_no_job_is_hindered_that_never_shares_a_gpu():
    """A job alone in small passes gets large ones, and its machine fails before the next checkpoint.

    What it had done in small passes took longer than it would now; the difference is no interference, which stays 0.
    """
    network = "allreduce:calibration=measured,gpu=2080ti"
    workload = Workload.from_arrays(
        "two", [0.0, 100.0], [1, 1], [4000.0, 1.0], model=["cifar10"] * 2, batch_size=[256] * 2
    )
    least = 0.0
    for seed in range(10):
        simulator = Simulator(
            *("flat:machines=2,gpus_per_machine=1", network),
            sharing=Sharing(2),
            failures=Failures(400.0, 10.0, 1e6),
            horizon_s=2000.0,
        )
        simulator.reset(workload, seed)
        view = simulator.view
        while not simulator.ended:
            if len(view.queue) and len(view.free_gpus):
                job = int(view.queue[0])
                simulator.apply(Start(job, [int(view.free_gpus[0])], sub_batch=1))
            elif 0 in view.running and view.now_s >= 100.0 and view.sub_batch(0) == 1:
                simulator.apply(Resize(0, view.gpus_of(0), sub_batch=256))
            else:
                simulator.advance()
            least = min(least, gpu_seconds(simulator.state)["interference"])
            assert not simulator.state.shared_gpus
    assert least >= -1e-9


class ByBatch:
    """A pace: half a second an iteration for each sample of the batch."""

    restores_first = False
    elastic = True

    def rate(self, simulator, job):
        return 0.5 * simulator.view.batch(job), 0.0


@pytest.mark.parametrize("rate_provider", [None, ByBatch()], ids=["passes", "batches"])
@pytest.mark.parametrize("seed", range(5))
def test_a_failure_without_checkpoints_leaves_nothing_done(rate_provider, seed):
    """Two jobs on the one GPU, the second from 10 s on, no checkpoint ever, and the machine fails.

    Every 7 s the first goes on with another sub-batch (or, where it is elastic, another batch), so that what it has
    done was done at several rates, alone and hindered. All of it is lost: both have their 4000 iterations before them,
    and held = lost.
    """
    network = "none" if rate_provider else "allreduce:calibration=measured,gpu=2080ti"
    workload = Workload.from_arrays(
        "two", [0.0, 10.0], [1, 1], [4000.0] * 2, iterations=[4000.0] * 2, model=["cifar10"] * 2, batch_size=[256] * 2
    )
    simulator = Simulator(
        *("flat:machines=1,gpus_per_machine=1", network),
        sharing=Sharing(2, "constant:xi=1.5"),
        failures=Failures(400.0, 10.0, 1e6),
        rate_provider=rate_provider,
        rule=Rule("fifo", round=7.0),
    )
    simulator.reset(workload, seed)
    view, sizes = simulator.view, [256, 16, 64, 4]
    while not simulator.state.failures:
        for job in view.queue.tolist():
            simulator.apply(Start(job, [0], batch=256) if rate_provider else Start(job, [0], sub_batch=256))
        size = sizes[int(view.now_s // 7.0) % 4]
        if 0 in view.running and size != (view.batch(0) if rate_provider else view.sub_batch(0)):
            simulator.apply(Resize(0, [0], size) if rate_provider else Resize(0, [0], sub_batch=size))
        simulator.advance()
    parts = gpu_seconds(simulator.state)
    assert parts["lost"] == pytest.approx(parts["held"]) and parts["held"] > 0.0
    assert [parts[name] for name in ("compute", "comm", "interference")] == pytest.approx([0.0] * 3, abs=1e-9)
    assert simulator.state.iterations_left[:2] == pytest.approx([4000.0] * 2)
