"""More interference ends no job earlier, as long as each job's GPUs stay the same."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from clustergym.simulator.base.decisions import Start
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.sharing.sharing_model import Sharing
from clustergym.simulator.workloads import Workload

XIS = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0)


def gangs_of(rng, num_gpus, jobs_per_gpu):
    """Random gangs, no GPU in more of them than it may hold; none is left to wait."""
    load = np.zeros(num_gpus, dtype=int)
    gangs = []
    for _ in range(int(rng.integers(2, 21))):
        room = np.flatnonzero(load < jobs_per_gpu)
        if room.size == 0:
            break
        gang = rng.choice(room, int(rng.integers(1, min(room.size, 8) + 1)), replace=False)
        load[gang] += 1
        gangs.append(gang.tolist())
    return gangs, bool((load > 1).any())


def ends(xi, topology, network, jobs_per_gpu, gangs, duration_s):
    """Of jobs that all start at time 0 on these GPUs."""
    sharing = Sharing(jobs_per_gpu, f"constant:xi={xi}")
    simulator = Simulator(topology, network, sharing=sharing)
    sizes = [len(gang) for gang in gangs]
    simulator.reset(Workload.from_arrays("fixed", [0.0] * len(gangs), sizes, duration_s))
    for job, gang in enumerate(gangs):
        simulator.apply(Start(job, gang))
    while not simulator.ended:
        simulator.advance()
    return simulator.jobs()["finish_s"]


def test_a_larger_constant_xi_ends_no_job_earlier():
    """200 random sets, whole gangs and partial overlaps, 2 or 3 jobs a GPU, near and far placements."""
    later = sets_with_partners = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        machines, per_machine, jobs_per_gpu = (
            int(rng.integers(1, 4)),
            int(rng.integers(2, 7)),
            int(rng.choice([2, 2, 3])),
        )
        gangs, shared = gangs_of(rng, machines * per_machine, jobs_per_gpu)
        duration_s = rng.choice([rng.lognormal(5, 1.5, len(gangs)), rng.integers(1, 5, len(gangs)) * 100.0])
        network = str(rng.choice(["none", "penalty:default=1/1.2/1.5"]))
        topology = f"flat:machines={machines},gpus_per_machine={per_machine}"
        runs = [ends(xi, topology, network, jobs_per_gpu, gangs, duration_s) for xi in XIS]
        for less, more in pairwise(runs):
            assert np.isfinite(more).all()
            assert (more >= less * (1 - 1e-12)).all(), f"seed {seed}"
        sets_with_partners += shared
        later += bool((runs[-1] > 1.01 * runs[0]).any())
    assert later == sets_with_partners > 150


def test_a_chain_of_partners_passes_the_delay_on():
    """Three gangs of two on four GPUs in a chain, 100, 200, 300 s. At xi 2 job 0 ends at 200 s beside job 1 (100 of its
    200 s done), job 1 at 400 s beside job 2 (200 of its 300 s done), job 2 at 500 s alone. At xi 1 at 100, 200, 300 s.
    """
    chain = [[0, 1], [1, 2], [2, 3]]
    line = "flat:machines=1,gpus_per_machine=4"
    assert ends(1.0, line, "none", 2, chain, [100.0, 200.0, 300.0]).tolist() == [100.0, 200.0, 300.0]
    assert ends(2.0, line, "none", 2, chain, [100.0, 200.0, 300.0]) == pytest.approx([200.0, 400.0, 500.0])
