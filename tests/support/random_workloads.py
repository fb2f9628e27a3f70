"""Random clusters, workloads and rules, the same for a seed everywhere; as a script, it plays them.

The script is for the modes that are chosen when Python starts: `NUMBA_DISABLE_JIT=1 python random_workloads.py 200`
prints one line of JSON with what `play` returns for the seeds 0 to 199. Floats come through JSON bit for bit.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.rules.rule import Rule
from clustergym.simulator.workloads import Workload

ORDERS = ("fifo", "sjf", "srtf", "srsf", "las")
COSTS_S = ((0.0,), (30.0,), (40.0, 60.0))
THRESHOLDS = ((3250.0, 7200.0), (100.0, 1000.0, 5000.0), (57600.0,))


@dataclass(frozen=True)
class Case:
    """One random run: machines of one size, jobs (arrival_s, gpus, duration_s), and the rule's options."""

    machines: int
    gpus_per_machine: int
    jobs: list[tuple[float, int, float]]
    options: dict[str, Any]

    @property
    def topology(self) -> str:
        return f"flat:machines={self.machines},gpus_per_machine={self.gpus_per_machine}"

    @property
    def workload(self) -> Workload:
        return Workload.from_arrays("random", *map(list, zip(*self.jobs, strict=True)))

    @property
    def rule(self) -> Rule:
        thresholds = self.options["thresholds"] if self.options["order"] == "las" else ()
        return Rule(**{**self.options, "thresholds": thresholds})

    def reference(self, simulate: Any) -> dict[str, Any]:
        """The same run by tests/support/reference.py."""
        options = dict(self.options)
        cost = options["preemption_cost"]
        options["preemption_cost"] = cost if len(cost) == 2 else cost[0]
        options["quantum_s"], options["round_s"] = options.pop("quantum"), options.pop("round")
        return simulate(self.jobs, [self.gpus_per_machine] * self.machines, **options)


def random_case(seed: int) -> Case:
    """1 to 512 GPUs, 5 to 40 jobs at a load of 0.5 to 1.3, any order, head, placer and costs; many ties."""
    rng = np.random.default_rng(seed)
    size = int(rng.choice([1, 2, 4, 8, 16]))
    machines = int(rng.integers(1, 512 // size + 1) if rng.random() < 0.5 else rng.integers(1, 9))
    total, n = size * machines, int(rng.integers(5, 41))
    gpus = np.minimum(2 ** rng.integers(0, rng.integers(1, 8), n), total)
    if rng.random() < 0.5:  # gangs of any size among the powers of two
        gpus = np.where(rng.random(n) < 0.3, rng.integers(1, total + 1, n), gpus)
    duration_s = rng.lognormal(5, 1.5, n)
    if rng.random() < 0.5:
        duration_s = np.ceil(duration_s)
    span_s = (gpus * duration_s).sum() / total / rng.uniform(0.5, 1.3)
    arrival_s = np.sort(rng.uniform(0.0, span_s, n))
    if rng.random() < 0.5:
        arrival_s = np.floor(arrival_s)
    if rng.random() < 0.1:
        arrival_s[:] = 0.0
    options = {
        "order": str(rng.choice(ORDERS)),
        "head": str(rng.choice(["strict", "skip"])),
        "placer": str(rng.choice(["count", "consolidated"])),
        "preemption_cost": COSTS_S[rng.integers(3)],
        "thresholds": THRESHOLDS[rng.integers(3)],
        "quantum": float(rng.choice([0.0, 1.0, 60.0])),
        "round": float(rng.choice([0.0, 0.0, 60.0, 300.0])),
    }
    jobs = list(zip(arrival_s.tolist(), gpus.tolist(), duration_s.tolist(), strict=True))
    return Case(machines, size, jobs, options)


def play(case: Case) -> dict[str, Any]:
    """Finish times, preemptions and all metrics of the kernels' run (nan as None: it must equal itself)."""
    simulator = Simulator(case.topology, rule=case.rule)
    simulator.reset(case.workload)
    metrics = simulator.run()
    return {
        "finish_s": simulator.jobs()["finish_s"].tolist(),
        "preemptions": int(metrics["preemptions"]),
        "metrics": {name: None if math.isnan(value) else value for name, value in metrics.items()},
    }


if __name__ == "__main__":
    json.dump([play(random_case(seed)) for seed in range(int(sys.argv[1]))], sys.stdout)
