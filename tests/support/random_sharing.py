"""Random decisions on clusters whose GPUs are shared, the same for a seed everywhere; as a script, it plays them.

`NUMBA_DISABLE_JIT=1 python random_sharing.py 20` prints one line of JSON: what `play` returns for the seeds 0 to 19.
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import numpy as np

from clustergym.simulator.base.decisions import Advance, Decision, Hold, Migrate, Preempt, Resize, Start
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.engine.view import ClusterView
from clustergym.simulator.events.initialise import Failures
from clustergym.simulator.rules.rule import Rule
from clustergym.simulator.sharing.sharing_model import Sharing
from clustergym.simulator.workloads import Workload

MODELS = ("bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3")
BATCHES = {"bert": 12, "cifar10": 256, "deepspeech2": 20, "imagenet": 100, "ncf": 8192, "yolov3": 8}
MOST_DECISIONS = 400


class Slowdowns:
    """A random slowdown for every ordered pair of models."""

    def __init__(self, seed: int) -> None:
        self.table = 1.0 + np.random.default_rng(seed).choice([0.0, 0.13, 0.5, 1.0, 2.7], (len(MODELS), len(MODELS)))

    def matrix(self, models):
        index = [MODELS.index(model) for model in models]
        return self.table[np.ix_(index, index)]


class Phases:
    """A pace that depends on the job, its GPUs and how far it is; three phases a job."""

    restores_first = False

    def __init__(self, elastic: bool) -> None:
        self.elastic = elastic

    def rate(self, simulator: Simulator, job: int) -> tuple[float, float]:
        left, whole = float(simulator.state.iterations_left[job]), float(simulator.workload.iterations[job])
        ends = [part * whole for part in (2 / 3, 1 / 3) if part * whole < left * (1 - 1e-9)]
        solo_s = (
            (1.0 + int(simulator.workload.job_id[job]) % 3) * (0.5 + left / whole) / math.sqrt(simulator.view.gpus(job))
        )
        return solo_s, ends[0] if ends else 0.0


def random_workload(rng: np.random.Generator, total: int, most: int = 25) -> Workload:
    """2 to `most` jobs of the six models."""
    n = int(rng.integers(2, most + 1))
    gpus = np.minimum(rng.choice([1, 1, 2, 3, 4, 6, total], n), total)
    model = rng.choice(MODELS, n)
    batch = [int(gpus[i] * BATCHES[model[i]] / rng.choice([1, 2, 3])) for i in range(n)]
    return Workload.from_arrays(
        "random", np.sort(np.floor(rng.uniform(0, 300, n))), gpus, np.ceil(rng.lognormal(4, 1, n)),
        model=model.tolist(), batch_size=batch,
    )  # fmt: skip


def random_simulator(seed: int, plain: bool = False, most: int = 25, **options: Any) -> Simulator:
    """At its first decision, 2 to `most` jobs. `plain`: neither network, failures nor a rate provider.

    `options` are arguments that are not drawn.
    """
    rng = np.random.default_rng(seed)
    topology = str(rng.choice(["flat:machines=3,gpus_per_machine=4", "flat:machines=1,gpus_per_machine=5"]))
    sharing = Sharing(
        int(rng.choice([1, 2, 2, 3])), Slowdowns(seed), None if rng.random() < 0.4 else float(rng.choice([8.0, 11.0]))
    )
    network = str(rng.choice(["none", "penalty:default=1/1.2/1.5", "allreduce:calibration=measured,gpu=2080ti"]))
    failures = [None, Failures(3000.0, 60.0, 50.0), Failures(3000.0, 300.0, 0.0)][rng.integers(3)]
    rate_provider = [None, None, Phases(False), Phases(True)][rng.integers(4)]
    rule = Rule(
        "fifo", preemption_cost=float(rng.choice([0.0, 7.0])), round=0.0 if plain else float(rng.choice([0.0, 25.0]))
    )
    if plain:
        network, failures, rate_provider = "none", None, None
    config = {"rule": rule, "failures": failures, "sharing": sharing, "rate_provider": rate_provider}
    simulator = Simulator(topology, network, **config, **options)
    simulator.reset(random_workload(rng, simulator.topology.num_gpus, most), seed)
    return simulator


def random_gang(view: ClusterView, job: int, rng: np.random.Generator, keep: bool) -> list[int] | None:
    """GPUs with room, its own among them if `keep`; None if there are not enough."""
    is_up = view._simulator.state.gpu_job[: view.topology.num_gpus] >= -1
    room = np.flatnonzero((view.load < view.jobs_per_gpu) & is_up).tolist()
    room = sorted({*room, *(view.gpus_of(job) if keep else ())})
    need = view.gpus(job)
    if view._simulator.state.elastic:
        need = int(rng.integers(1, min(len(room), 6) + 1)) if room else 1
    return rng.choice(room, need, replace=False).tolist() if need <= len(room) else None


def fits(view: ClusterView, job: int, gpus: list[int]) -> bool:
    """Whether one sample a pass fits everywhere, what the job has there set aside."""
    s, own = view._simulator.state, view.gpus_of(job)
    base, each = float(s.memory_base[s.model[job]]), float(s.memory_sample[s.model[job]])
    mine = base + each * view.sub_batch(job)
    return all(view.free_memory[gpu] + (mine if gpu in own else 0.0) >= base + each for gpu in gpus)


def any_decision(view: ClusterView, rng: np.random.Generator) -> Decision:
    """A random legal decision of any kind, or Advance."""
    queue, held, running = view.queue.tolist(), view.held.tolist(), view.running.tolist()
    kind = rng.choice(["start", "start", "start", "start", "preempt", "migrate", "resize", "hold", "advance"])
    if kind == "start" and (queue or held):
        job = int(rng.choice([*queue, *held]))
        gpus = random_gang(view, job, rng, keep=False)
        most = view.sub_batch_for(job, gpus) if gpus else None
        if gpus and most:
            return Start(job, gpus, int(rng.integers(1, most + 1)) if rng.random() < 0.3 else None)
    if kind == "preempt" and running and rng.random() < 0.3:
        return Preempt(int(rng.choice(running)))
    if kind in ("migrate", "resize") and running:
        job = int(rng.choice(running))
        gpus = random_gang(view, job, rng, keep=True)
        if view._simulator.state.elastic:
            if gpus and fits(view, job, gpus):
                return Resize(job, gpus, len(gpus) * int(rng.integers(1, 9)))
        elif gpus and fits(view, job, gpus) and set(gpus) != set(view.gpus_of(job)):
            return Migrate(job, gpus)
    if kind == "hold" and queue and running:
        return Hold(int(rng.choice(queue)), None if rng.random() < 0.5 else view.now_s + float(rng.integers(1, 200)))
    for job in [*queue, *held] if not running else ():  # never let everything stop
        if view.gpus(job) <= len(view.free_gpus):
            return Start(job, view.free_gpus[: view.gpus(job)].tolist())
    return Advance()


def finish(simulator: Simulator) -> None:
    """Let the rule play the rest."""
    for job in simulator.view.held.tolist() if not simulator.ended else []:
        if simulator.view.gpus(job) <= len(simulator.view.free_gpus):
            simulator.apply(Start(job, simulator.view.free_gpus[: simulator.view.gpus(job)].tolist()))
    if not simulator.ended:
        simulator.run()


def play(seed: int) -> dict[str, Any]:
    """Finish times and all metrics of a random run (nan as None: it must equal itself)."""
    simulator, rng = random_simulator(seed), np.random.default_rng(seed)
    for _ in range(MOST_DECISIONS):
        if simulator.ended:
            break
        simulator.apply(any_decision(simulator.view, rng))
    finish(simulator)
    return {
        "finish_s": simulator.jobs()["finish_s"].tolist(),
        "metrics": {name: None if math.isnan(value) else value for name, value in simulator.metrics().items()},
    }


if __name__ == "__main__":
    json.dump([play(seed) for seed in range(int(sys.argv[1]))], sys.stdout)
