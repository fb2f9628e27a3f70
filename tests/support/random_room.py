"""Random clusters on which jobs make room, the same for a seed everywhere; as a script, it plays them.

As random_workloads.py: `NUMBA_DISABLE_JIT=1 python random_room.py 20` prints one line of JSON, what `play` returns.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

from clustergym import policies
from clustergym.simulator.cluster.topology import Topology
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.rules.rule import Rule
from clustergym.simulator.workloads import Workload


def random_room(seed: int) -> tuple[Topology, Rule, Workload]:
    """1 to 3 racks of unequal machines, 10 to 40 jobs at a high load, any parameters of the rule."""
    rng = np.random.default_rng(seed)
    racks = rng.integers(1, 4, rng.integers(1, 4))
    machines = rng.integers(1, 4, racks.sum())
    topology = Topology.from_counts(
        "random", slot_gpus=rng.choice([1, 2, 4], machines.sum()), machine_slots=machines, rack_machines=racks
    )
    total, n = topology.num_gpus, int(rng.integers(10, 41))
    gpus = np.minimum(rng.choice([1, 1, 2, 2, 3, 4, 6, 8, 16], n), total)
    duration_s = np.ceil(rng.lognormal(5, 1.3, n))
    arrival_s = np.floor(np.sort(rng.uniform(0.0, (gpus * duration_s).sum() / total / 1.5, n)))
    policy = policies.make(
        "greedy",
        preempt="on",
        theta=float(rng.choice([0.5, 1.0, 1.2, 2.0])),
        exponent=float(rng.choice([0.0, 0.5, 0.5, 1.0])),
        margin=float(rng.choice([0.0, 0.9, 0.9, np.inf])),
        placer=str(rng.choice(["tier", "first"])),
        preemption_cost=((0.0,), (7.0,), (5.0, 11.0))[rng.integers(3)],
        round=float(rng.choice([0.0, 0.0, 0.0, 25.0])),
    )
    assert policy.rule is not None
    return topology, policy.rule, Workload.from_arrays("random", arrival_s, gpus, duration_s, iterations=duration_s)


def simulator_for(seed: int) -> Simulator:
    """At its first decision."""
    topology, rule, workload = random_room(seed)
    simulator = Simulator(topology, "penalty:default=1/1.3/1.7", rule=rule)
    simulator.reset(workload, seed)
    return simulator


def outcome(simulator: Simulator) -> dict[str, Any]:
    """Ends and gangs of the jobs, and every metric that is a number."""
    table = simulator.jobs()
    metrics = {name: value for name, value in simulator.metrics().items() if value == value}
    return {"finish_s": table["finish_s"].tolist(), "tier": table["tier"].tolist(), "metrics": metrics}


def play(seed: int) -> dict[str, Any]:
    simulator = simulator_for(seed)
    simulator.run()
    return outcome(simulator)


if __name__ == "__main__":
    print(json.dumps([play(seed) for seed in range(int(sys.argv[1]))]))
