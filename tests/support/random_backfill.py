"""Random runs of backfilling, the same for a seed everywhere; as a script, it plays them (see random_workloads.py)."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.events.initialise import Failures
from clustergym.simulator.rules.rule import Rule
from clustergym.simulator.workloads import Workload

RULES = tuple((order, head) for order in ("fifo", "sjf") for head in ("reserve", "conservative"))
PLACERS = ("count", "consolidated", "tier", "random", "first")


@dataclass(frozen=True)
class Case:
    """One cluster, and jobs: arrival_s, gpus, duration_s, all whole numbers."""

    topology: str
    gpus: int
    jobs: list[tuple[float, int, float]]

    @property
    def workload(self) -> Workload:
        return Workload.from_arrays("random", *map(list, zip(*self.jobs, strict=True)))


def random_case(seed: int) -> Case:
    """3 to 16 GPUs, 3 to 30 jobs, crowded, with many ties; of some all jobs are there from the start."""
    rng = np.random.default_rng(seed)
    machines, size = [(1, 3), (2, 2), (2, 4), (4, 4)][seed % 4]
    total, n = machines * size, int(rng.integers(3, 31))
    gpus = np.minimum(rng.choice([1, 1, 2, 3, 4, 6, 8, total], n), total)
    duration_s = rng.integers(1, 40, n).astype(float)
    arrival_s = np.sort(rng.integers(0, int((gpus * duration_s).sum() / total) + 1, n)).astype(float)
    if seed % 5 == 0:
        arrival_s[:] = 0.0
    jobs = list(zip(arrival_s.tolist(), gpus.tolist(), duration_s.tolist(), strict=True))
    return Case(f"flat:machines={machines},gpus_per_machine={size}", total, jobs)


def hard(case: Case, order: str, head: str, seed: int) -> Simulator:
    """A simulator at the first decision of a case with a placer, slow gangs, costs, and often failures and rounds."""
    rng = np.random.default_rng(seed)
    rule = Rule(order, head, str(rng.choice(PLACERS)), (3.0,), round=float(rng.choice([0.0, 0.0, 7.0])))
    failures = Failures(300.0, 20.0, 10.0) if rng.random() < 0.5 else None
    simulator = Simulator(case.topology, "penalty:default=1/1.2/1.5", rule=rule, failures=failures)
    simulator.reset(case.workload, seed)
    return simulator


def play(seed: int) -> list[list[float]]:
    """First start and end of every job of a case, under every rule, played plainly and hard."""
    case, found = random_case(seed), []
    for order, head in RULES:
        plain = Simulator(case.topology, rule=Rule(order, head))
        plain.reset(case.workload)
        for simulator in (plain, hard(case, order, head, seed)):
            simulator.run()
            table: dict[str, Any] = simulator.jobs()
            found.append([*table["first_start_s"].tolist(), *table["finish_s"].tolist()])
    return found


if __name__ == "__main__":
    json.dump([play(seed) for seed in range(int(sys.argv[1]))], sys.stdout)
