"""Delay timers, migration and auctions on random clusters, workloads, networks and failures."""

from __future__ import annotations

import math
import runpy
from pathlib import Path

import numpy as np
from hypothesis import settings

from clustergym import policies
from clustergym.simulator.engine import Simulator
from clustergym.simulator.layout import Failures
from clustergym.simulator.rules.rule import Rule, Tuner
from clustergym.simulator.semantics import Semantics, artist_sim, events
from clustergym.simulator.topology import Topology
from clustergym.simulator.workloads import Workload

checks = runpy.run_path(str(Path(__file__).with_name("test_simulator_invariants.py")))
check_record, check_sums, check_end = checks["check_record"], checks["check_sums"], checks["check_end"]
MODELS = ("VGG", "ResNet50")  # the others take up to a thousand times longer across racks, so as many leases
NETWORKS = ("none", "penalty:default=1/1.2/1.5", "allreduce:calibration=artist", "allreduce:default=BERT")


def calm(examples):
    return settings(max_examples=examples, deadline=None, derandomize=True)


def random_topology(rng: np.random.Generator) -> Topology:
    """1 to 16 racks of 1 to 3 machines of 1 to 3 slots of 1 to 4 GPUs, all of them unequal."""
    racks = rng.integers(1, 4, rng.choice([1, 2, 3, 16]))
    machines = rng.integers(1, 4, racks.sum())
    slots = rng.choice([1, 2, 4], machines.sum())
    order = str(rng.choice(["natural", "3"]))
    return Topology.from_counts(
        "random", slot_gpus=slots, machine_slots=machines, rack_machines=racks, machine_order=order
    )


def random_rule(rng: np.random.Generator) -> Rule:
    """Dally with timers of any kind, or Gandiva; the leases are much shorter than most jobs."""
    lease, cost = rng.choice([0.0, 20.0, 100.0]), [(0.0,), (7.0,), (5.0, 11.0)][rng.integers(3)]
    round_s = rng.choice([0.0, 0.0, 25.0])
    if rng.random() < 0.3:
        fallback = str(rng.choice(["most-free", "last"]))
        return policies.make("gandiva", fallback=fallback, preemption_cost=cost, lease=lease, round=round_s).rule
    common = {"placer": str(rng.choice(["tier", "first"])), "preemption_cost": cost, "lease": lease, "round": round_s}
    common |= {"migrates": bool(rng.random() < 0.5), "head": str(rng.choice(["skip", "skip", "strict"]))}
    order = str(rng.choice(["nw-sens", "nw-sens", "fifo", "sjf", "latest"]))
    if rng.random() < 0.5:
        timers = tuple(rng.choice([0.0, 1e-9, 10.0, 60.0, 300.0, 1e300, math.inf], 2).tolist())
        return Rule(order, timers=timers, **common)
    history, initial = rng.choice([1e-9, 0.3, 3.0, 24.0, 1e9]), tuple(rng.choice([0.0, 0.2, 1.0, 5.0], 2).tolist())
    floors = tuple(rng.choice([0.0, 0.5, 3.0, 40.0], 2).tolist()) if rng.random() < 0.4 else None
    return Rule(order, tuner=Tuner(history, initial, str(rng.choice(["sample", "population"])), floors), **common)


def random_semantics(rng: np.random.Generator) -> Semantics:
    if rng.random() < 0.5:
        return events()
    chunk = rng.choice([0.0, 1.0, 10.0])
    return artist_sim(rng.choice([0.0, 20.0, 100.0]), chunk, rng.choice([0.0, 1.0, 2.5, 1000.0]))


def random_workload(rng: np.random.Generator, total: int) -> Workload:
    n = int(rng.integers(1, 26))
    gpus = np.minimum(rng.choice([1, 1, 2, 3, 4, 6, 8, total], n), total)
    arrival_s = np.sort(np.floor(rng.uniform(0, rng.choice([1, 300]), n)))
    duration_s = np.ceil(rng.lognormal(4, 1, n))
    return Workload.from_arrays("random", arrival_s, gpus, duration_s, model=rng.choice(MODELS, n))


def random_run(seed: int, fails: bool = True) -> tuple[Simulator, Rule, Workload]:
    rng = np.random.default_rng(seed)
    topology, rule, semantics = random_topology(rng), random_rule(rng), random_semantics(rng)
    if semantics.auctions and semantics.chunk < 1.0 and 0.0 < semantics.lease_s <= max(rule.preemption_cost):
        semantics = artist_sim(100.0, semantics.chunk, semantics.release_s)
    mtbf_s = 400.0 * topology.num_machines  # of all machines together every 400 s
    failures = Failures(mtbf_s, 60.0, rng.choice([0.0, 5.0])) if fails and rng.random() < 0.4 else None
    network = NETWORKS[rng.integers(len(NETWORKS))]
    simulator = Simulator(topology, network, rule=rule, semantics=semantics, failures=failures)
    return simulator, rule, random_workload(rng, topology.num_gpus)


def end_of(simulator: Simulator) -> str:
    table = simulator.jobs()
    return repr([simulator.metrics(), *(table[name].tolist() for name in ("finish_s", "first_start_s", "preemptions"))])
