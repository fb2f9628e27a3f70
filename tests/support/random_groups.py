"""Small clusters of job groups and random decisions on them, the same for a seed everywhere; a script that plays them.

`NUMBA_DISABLE_JIT=1 python random_groups.py 10` prints one line of JSON: what `play` returns for the seeds 0 to 9.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from typing import Any

import numpy as np

from clustergym.simulator.base.decisions import Advance, AssignGroup, Decision, Preempt, SetMachines, SetSpill
from clustergym.simulator.events.initialise import Failures
from clustergym.simulator.groups.group_config import GroupConfig, GroupTerms
from clustergym.simulator.groups.group_simulator import GroupSimulator
from clustergym.simulator.groups.group_view import GroupView
from clustergym.simulator.jobs.ps_jobs import PsJobs
from clustergym.simulator.workloads import Workload

MOST_DECISIONS = 250
GB = 1e9


def ps_workload(
    jobs: Any,
    iterations: Any = 5,
    *,
    gpus: int = 1,
    arrivals: Any = 0.0,
    inputs: Any = 0.0,
    models: Any = 0.0,
    epochs: Any = 1,
) -> Workload:
    """Jobs (w, c) on parameter servers, in order of arrival; `iterations` and what follows: of each, or of all."""
    w, c = (np.array(column, float) for column in zip(*jobs, strict=True))
    count = np.broadcast_to(np.asarray(iterations, float), w.shape).copy()
    arrival_s = np.broadcast_to(np.asarray(arrivals, float), w.shape).copy()
    duration_s = count * (w / gpus + c)
    workload = Workload.from_arrays("ps", arrival_s, np.full(len(w), gpus), duration_s, iterations=count)
    return workload.with_ps(PsJobs.of(w, c, inputs, models, epochs))


def group_simulator(
    workload: Workload,
    machines: int,
    *,
    terms: GroupTerms | None = None,
    seed: int = 0,
    failures: Failures | None = None,
    horizon_s: float = math.inf,
    estimates: str = "exact",
    **config: Any,
) -> GroupSimulator:
    """A simulator that is reset; moves take no time and metrics are known unless `config` says otherwise."""
    settings = GroupConfig(**({"move_s": 0.0, "profile_iterations": 0} | config))
    topology = f"flat:machines={machines},gpus_per_machine=1"
    simulator = GroupSimulator(topology, settings, failures=failures, horizon_s=horizon_s, estimates=estimates)
    simulator.use(terms or GroupTerms())
    simulator.reset(workload, seed)
    return simulator


def join_one_group(simulator: GroupSimulator, machines: int) -> None:
    """Let all that wait be in group 0, which the first one opens."""
    for job in simulator.view.queue.tolist():
        there = len(simulator.view.groups) > 0
        simulator.apply(AssignGroup(job, 0) if there else AssignGroup(job, None, machines))


def play_one_group(simulator: GroupSimulator, machines: int) -> None:
    """To the end, every job in one group from its arrival on."""
    while not simulator.ended:
        join_one_group(simulator, machines)
        simulator.advance()


def traced(simulator: GroupSimulator) -> list[tuple[float, int, str]]:
    """The ends of the subtasks that were remembered: time, job, kind."""
    s, kinds = simulator.state, ("COMP", "COMM", "PULL", "PUSH")
    columns = (s[name][: s.trace_count].tolist() for name in ("trace_end_s", "trace_job", "trace_kind"))
    return [(end_s, job, kinds[kind]) for end_s, job, kind in zip(*columns, strict=True)]


def random_jobs(rng: np.random.Generator, most: int = 10) -> tuple[Workload, int]:
    """2 to `most` jobs, and machines for them; each fits alone on all of them."""
    n, machines = int(rng.integers(2, most + 1)), int(rng.integers(2, 17))
    jobs = [(float(rng.uniform(0.5, 10) * machines / 2), float(rng.uniform(0.5, 10))) for _ in range(n)]
    room = machines * 32.0 * GB / 1.36
    inputs, models = rng.uniform(0.0, 0.6, n) * room, rng.uniform(0.0, 0.25, n) * room
    if rng.random() < 0.3:
        inputs, models = np.zeros(n), np.zeros(n)
    arrivals = np.cumsum(rng.exponential(rng.choice([0.0, 20.0, 100.0]), n))
    iterations, epochs = rng.integers(1, int(rng.choice([4, 12, 60])), n), rng.integers(1, 8, n)
    workload = ps_workload(
        jobs,
        iterations,
        gpus=int(rng.integers(1, machines + 1)),
        arrivals=arrivals,
        inputs=inputs,
        models=models,
        epochs=epochs,
    )
    return workload, machines


def random_simulator(seed: int, most: int = 10, **given: Any) -> GroupSimulator:
    """Anything, reset, 2 to `most` jobs; `given` are arguments of `group_simulator` that are not drawn."""
    rng = np.random.default_rng(seed)
    workload, machines = random_jobs(rng, most)
    settings = {
        "comm": str(rng.choice(["merged", "split"])),
        "busy": float(rng.choice([1.0, 1.0, 0.8, 0.6])),
        "loss": float(rng.choice([0.0, 0.22])),
        "jitter": float(rng.choice([0.0, 0.0, 0.0, 0.2])),
        "model_error": float(rng.choice([0.0, 0.1])),
        "profile_iterations": int(rng.choice([0, 1, 3])),
        "move_s": float(rng.choice([0.0, 5.0, 40.0])),
        "disk_mb_s": float(rng.choice([125.0, 2000.0])),
    }
    naive = bool(rng.random() < 0.3)
    terms = GroupTerms("naive", False) if naive else GroupTerms()
    failures = Failures(mtbf_s=2000.0, mttr_s=100.0) if rng.random() < 0.3 else None
    return group_simulator(
        workload, machines, **({"terms": terms, "failures": failures, "seed": seed} | settings | given)
    )


def any_decision(view: GroupView, rng: np.random.Generator, calm: bool = False) -> Decision:
    """One that can be carried out; `calm`: nothing is asked of the disk."""
    active = [*view.queue.tolist(), *view.running.tolist()]
    groups, free = view.groups.tolist(), view.free_machines
    kind = rng.choice(["open", "join", "pause", "size", "spill", "advance"], p=[0.25, 0.25, 0.08, 0.1, 0.07, 0.25])
    job = int(rng.choice(active))
    if kind == "open" and free > 0:
        return AssignGroup(job, None, int(rng.integers(1, free + 1)))
    if kind == "join" and groups:
        group = int(rng.choice(groups))
        if view.group_of(job) != group:
            return AssignGroup(job, group)
    if kind == "pause" and view.group_of(job) >= 0:
        return Preempt(job)
    if kind == "size" and groups:
        group = int(rng.choice(groups))
        return SetMachines(group, int(rng.integers(1, view.machines_of(group) + free + 1)))
    if kind == "spill" and view.group_of(job) >= 0 and view._simulator.rule.spills and not calm:
        return SetSpill(job, None if rng.random() < 0.5 else float(rng.choice([0.0, 0.3, 1.0])))
    if len(view.running) == 0 and free > 0:
        return AssignGroup(job, None, free)
    return Advance()


def finish(simulator: GroupSimulator) -> None:
    """To the end: one job after another on all machines, which it fits on alone."""
    view = simulator.view
    while not simulator.ended:
        if len(view.running) == 0 and len(view.queue) and view.free_machines == simulator.state.n_machines:
            job = int(view.queue[0])
            simulator.apply(AssignGroup(job, None, view.machines))
            if simulator.rule.spills:
                simulator.apply(SetSpill(job, None))
        simulator.advance()


def play(seed: int, **given: Any) -> str:
    """A fingerprint of the record after a random run."""
    simulator, rng = random_simulator(seed, **given), np.random.default_rng(seed)
    digest = hashlib.sha256()
    for _ in range(MOST_DECISIONS):
        if simulator.ended:
            break
        simulator.apply(any_decision(simulator.view, rng))
        digest.update(repr(float(simulator.state.now_s)).encode())
    if not simulator.ended:
        finish(simulator)
    digest.update(simulator.records.tobytes())
    return digest.hexdigest()


if __name__ == "__main__":
    print(json.dumps([play(seed) for seed in range(int(sys.argv[1]))]))
