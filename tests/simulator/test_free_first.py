"""`free=first`: a gang has all free GPUs, and shared ones for the rest (policies/bsbf/sjf_bsbf_pass.py)."""

from __future__ import annotations

import pytest

from clustergym import policies
from clustergym.simulator.base.decisions import Start
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.sharing.sharing_model import Sharing
from clustergym.simulator.workloads import Workload


def starts(policy: str, free: str) -> list[tuple[float, int, tuple[int, ...]]]:
    """Four GPUs, xi 1: jobs of 500 s on one and of 1,000 s on two GPUs leave one free; 100 s on two come after 1 s."""
    workload = Workload.from_arrays(
        "three",
        [0.0, 0.0, 1.0],
        [2, 1, 2],
        [1000.0, 500.0, 100.0],
        model=["bert"] * 3,
        iterations=[1000, 500, 100],
        batch_size=[2, 1, 2],
    )
    rule = policies.make(policy, placer="count", free=free).rule
    simulator = Simulator(
        "flat:machines=1,gpus_per_machine=4", rule=rule, sharing=Sharing(interference="constant:xi=1")
    )
    simulator.reset(workload)
    found = []
    while not simulator.ended:
        decision = simulator.next_decision()
        if isinstance(decision, Start):
            found.append((simulator.view.now_s, decision.job, tuple(decision.gpus)))
        simulator.apply(decision)
    return found


@pytest.mark.parametrize("policy", ["sjf-ffs", "sjf-bsbf"])
def test_the_free_gpu_is_in_the_gang_before_shared_ones(policy):
    """GPU 3 is free: with `first` the third job has it, and GPU 0 of the job of 500 s; else two shared ones."""
    before = [(0.0, 1, (0,)), (0.0, 0, (1, 2))]
    assert starts(policy, "first") == [*before, (1.0, 2, (0, 3))]
    for free in ("last", "never"):
        assert starts(policy, free) == [*before, (1.0, 2, (0, 1))]
