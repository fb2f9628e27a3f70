"""Random runs of the whole simulator on network contention, the same for a seed everywhere; as a script, it plays them.

`NUMBA_DISABLE_JIT=1 python random_contended.py 20` prints one line of JSON with what `played` returns for the seeds 0
to 19. Floats come through JSON bit for bit.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import networkx as nx
import numpy as np

from clustergym.simulator.base.decisions import Advance, Migrate, Preempt, Shift, Start
from clustergym.simulator.cluster.topology import Topology
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.events.initialise import Failures
from clustergym.simulator.rules.rule import Rule
from clustergym.simulator.workloads import Workload
from clustergym.tests.support.paths import DATA

PHASES = DATA / "own_phases.json"
MODELS = {"half": 0.18, "light": 0.2, "twice": 0.31, "quiet": 0.05}
BYTES = {"half": 0.08 * 50e9 / 8, "light": 0.04 * 20e9 / 8, "twice": (0.05 * 30e9 + 0.11 * 45e9) / 8, "quiet": 0.0}


def dumbbell(servers: int = 4, gpus: int = 1, gbps: float = 50.0) -> Topology:
    """Two leaves with as many servers each, joined by one cable that is slower than the others together."""
    graph = nx.Graph()
    for leaf in ("left", "right"):
        for server in range(servers):
            graph.add_node(f"{leaf}{server}", gpus=gpus)
            graph.add_edge(f"{leaf}{server}", leaf, capacity_gbps=200.0)
    graph.add_edge("left", "right", capacity_gbps=gbps)
    return Topology.from_graph(graph, "dumbbell")


def workload(*rows: tuple[float, int, str, float]) -> Workload:
    """Jobs (arrival_s, gpus, model, iterations) of own_phases.json, whose iterations take what its rows say."""
    arrival_s, gpus, model, iterations = map(list, zip(*rows, strict=True))
    seconds = [MODELS[name] for name in model]
    return Workload.from_arrays(
        "contended",
        arrival_s,
        gpus,
        [each * count for each, count in zip(seconds, iterations, strict=True)],
        iterations=iterations,
        iteration_s=seconds,
        model=model,
        batch_size=gpus,
    )


class Random:
    """Stops, moves, shifts and starts jobs on random GPUs; what it does at an instant depends on nothing else."""

    def __init__(self, seed: int, stops: float = 0.1) -> None:
        self.seed, self.stops = seed, stops
        self.at, self.plan = -1, []

    def decide(self, view: Any) -> Any:
        if view.instant != self.at:
            self.at, self.rng = view.instant, np.random.default_rng([self.seed, view.instant])
            self.turn = 0
        self.turn += 1
        if self.turn > 12:
            return Advance()
        rng, running, free = self.rng, view.running.tolist(), view.free_gpus
        if running and rng.random() < self.stops:
            return Preempt(int(rng.choice(running)))
        if running and rng.random() < self.stops:
            job = int(rng.choice(running))
            own = view.gpus_of(job)
            gpus = rng.permutation(np.concatenate([own, free]))[: len(own)].astype(int).tolist()
            if set(gpus) != set(own):
                return Migrate(job, gpus)
        sending = [job for job in running if view.period_s(job) is not None]
        if sending and rng.random() < 0.4:
            job = int(rng.choice(sending))
            return Shift(job, None if rng.random() < 0.1 else float(rng.random()) * view.period_s(job))
        for job in view.queue.tolist():
            if view.gpus(job) <= len(free):
                return Start(job, rng.permutation(free)[: view.gpus(job)].tolist())
        return Advance()


def random_run(seed: int, iterations: int = 60, topology: Topology | None = None, **options: Any) -> Simulator:
    """A simulator at its first decision point; jobs have less than so many iterations; on a dumbbell by default."""
    rng = np.random.default_rng(seed)
    servers, gpus = int(rng.integers(2, 6)), int(rng.integers(1, 3))
    drawn = dumbbell(servers, gpus, float(rng.choice([25.0, 50.0, 100.0])))
    topology = drawn if topology is None else topology
    n = int(rng.integers(2, 14))
    arrival_s = np.sort(np.round(rng.random(n) * 20.0, 1))
    rows = [
        (
            float(arrival_s[i]),
            int(rng.integers(1, min(5, topology.num_gpus) + 1)),
            str(rng.choice(list(MODELS))),
            float(rng.integers(1, iterations)),
        )
        for i in range(n)
    ]
    words = [f"models={PHASES}"]
    words += ["offsets=random"] * int(rng.random() < 0.3) + ["jitter=0.1"] * int(rng.random() < 0.3)
    words += ["pacing=off"] * int(rng.random() < 0.2) + ["adjust=0.05"] * int(rng.random() < 0.3)
    words += options.pop("words", [])
    cost = (0.0,) if rng.random() < 0.5 else (3.0,)
    lease = 0.0 if rng.random() < 0.7 else 7.0
    simulator = Simulator(
        topology, f"contention:{','.join(words)}", rule=Rule(order="fifo", preemption_cost=cost, lease=lease), **options
    )
    simulator.reset(workload(*rows), seed)
    return simulator


def outcome(simulator: Simulator) -> dict[str, Any]:
    """What a run has come to."""
    links = int(simulator.state.n_links)
    return {
        "metrics": {name: repr(value) for name, value in simulator.metrics().items()},
        "finish_s": simulator.jobs()["finish_s"].tolist(),
        "link_bytes": simulator.state.link_bytes[:links].tolist(),
        "events": int(simulator.state.phase_events),
    }


def played(seed: int) -> dict[str, Any]:
    """The outcome of a random run, with machine failures in every third."""
    failures = Failures(mtbf_s=40.0, mttr_s=5.0, checkpoint_s=2.0) if seed % 3 == 0 else None
    simulator = random_run(seed, failures=failures)
    policy = Careful(seed) if simulator.rule.lease else Random(seed)
    simulator.run(policy)
    return outcome(simulator)


class Careful(Random):
    """As `Random`, but leaves jobs alone as long as their lease runs: it only starts and shifts them."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, stops=0.0)


if __name__ == "__main__":
    print(json.dumps([played(seed) for seed in range(int(sys.argv[1]))]))
