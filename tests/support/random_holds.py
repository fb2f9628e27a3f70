"""Random clusters and workloads under random holds, the same for a seed everywhere; as a script, it plays them.

As random_workloads.py: `NUMBA_DISABLE_JIT=1 python random_holds.py 40` prints `play` of the seeds 0 to 39.
"""

from __future__ import annotations

import json
import math
import sys

import numpy as np

from clustergym.simulator.base.decisions import Advance, Decision, Hold, Preempt, Start
from clustergym.simulator.base.tiers import NETWORK
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.engine.view import ClusterView
from clustergym.simulator.events.initialise import Failures
from clustergym.simulator.rules.rule import PLACERS, Rule, Tuner
from clustergym.simulator.workloads import Workload

TOPOLOGIES = ("dally:racks=2,machines=2", "flat:machines=3,gpus_per_machine=4", "dally:racks=3,machines=1")
ORDERS = ("fifo", "sjf", "srsf", "las", "nw-sens")


class RandomHolds:
    """At every decision point, for each waiting job: a hold of any kind, a start, or nothing; now and then a stop."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.instant, self.left = -1, 0

    def decide(self, view: ClusterView) -> Decision:
        """The next decision."""
        rng = self.rng
        if view.instant != self.instant:
            self.instant, self.left = view.instant, len(view.queue) + 1
            if len(view.running) and rng.random() < 0.05:
                return Preempt(int(rng.choice(view.running)))
        self.left -= 1
        running = view.running
        if not len(view.queue) or (self.left < 0 and len(running)):
            return Advance()
        job = int(rng.choice(view.queue))
        gpus = view.find_gpus(job)
        if gpus is not None and (rng.random() < 0.2 or not len(running)):
            return Start(job, gpus)
        if not len(running):
            return Hold(job, view.now_s + 50.0, NETWORK)
        tier = None if rng.random() < 0.1 else int(rng.integers(1, 4))
        return Hold(job, None if rng.random() < 0.2 else view.now_s + float(rng.integers(1, 200)), tier)


def random_run(seed: int, rounds: bool = True) -> Simulator:
    """At its first decision: 2 to 30 jobs, any order and placer, ties or none, failures or none, timers to look at."""
    rng = np.random.default_rng(seed)
    rule = Rule(
        str(rng.choice(ORDERS)),
        placer=str(rng.choice(["tier", "first", *sorted(PLACERS)])),
        preemption_cost=(float(rng.choice([0.0, 7.0])),),
        round=float(rng.choice([0.0, 0.0, 25.0])) if rounds else 0.0,
        tuner=Tuner(initial=(0.01, 0.03)),
        advisory=True,
    )
    failures = Failures(3000.0, 300.0, 0.0) if rng.random() < 0.3 else None
    simulator = Simulator(str(rng.choice(TOPOLOGIES)), "penalty:default=1/1.2/1.5", rule=rule, failures=failures)
    n, total = int(rng.integers(2, 31)), simulator.topology.num_gpus
    gpus = np.minimum(rng.choice([1, 1, 2, 3, 4, 6, 8, total], n), total)
    arrival_s, duration_s = np.sort(rng.uniform(0, 300, n)), rng.lognormal(4, 1, n)
    if rng.random() < 0.5:
        arrival_s, duration_s = np.floor(arrival_s), np.ceil(duration_s)
    simulator.reset(Workload.from_arrays("random", arrival_s, gpus, duration_s), seed)
    return simulator


def play(seed: int) -> dict[str, object]:
    """Starts, ends, tiers and all metrics of a run (nan as None: it must equal itself)."""
    simulator = random_run(seed)
    metrics = simulator.run(RandomHolds(seed))
    table = simulator.jobs()
    columns = {name: table[name].tolist() for name in ("first_start_s", "finish_s", "tier", "queueing_delay_s")}
    return columns | {
        "metrics": {name: None if math.isnan(value) else value for name, value in metrics.items()},
        "timers": simulator.state.waits_timer.tolist(),
    }


if __name__ == "__main__":
    json.dump([play(seed) for seed in range(int(sys.argv[1]))], sys.stdout)
