"""Delay timers, migration and auctions on random clusters, workloads, networks and failures."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustergym import policies
from clustergym.simulator.cluster.topology import Topology
from clustergym.simulator.engine.metrics import gpu_seconds
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.events.initialise import Failures
from clustergym.simulator.rules.rule import PLACERS, Rule, Tuner
from clustergym.simulator.rules.semantics import Semantics, artist_sim, events, load_semantics
from clustergym.simulator.workloads import Workload
from clustergym.tests.support.drawn import calm
from clustergym.tests.support.invariants import check_end, computing_s
from clustergym.tests.support.invariants import check_gangs as check_record
from clustergym.tests.support.invariants import check_gpu_seconds as check_sums

MODELS = ("VGG", "ResNet50")  # the others take up to a thousand times longer across racks, so as many leases
NETWORKS = (
    "none",
    "penalty:default=1/1.2/1.5",
    "allreduce:calibration=artist",
    "allreduce:calibration=artist,default=BERT",
)


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
    """Dally with timers of any kind, Gandiva or greedy; the leases are much shorter than most jobs."""
    lease, cost = rng.choice([0.0, 20.0, 100.0]), [(0.0,), (7.0,), (5.0, 11.0)][rng.integers(3)]
    round_s = rng.choice([0.0, 0.0, 25.0])
    if rng.random() < 0.3:
        fallback = str(rng.choice(["most-free", "last"]))
        if lease == round_s == 0.0:
            slicing = float(rng.choice([0.0, 12.0, 40.0]))
            return policies.make("gandiva", fallback=fallback, preemption_cost=cost, slicing=slicing).rule
        return policies.make("gandiva", fallback=fallback, preemption_cost=cost, lease=lease, round=round_s).rule
    if rng.random() < 0.25:
        margin, placer = float(rng.choice([0.0, 0.5, 0.9, 1.1, math.inf])), str(rng.choice(["tier", "first"]))
        options = {"margin": margin, "placer": placer, "preemption_cost": cost, "round": round_s}
        if rng.random() < 0.5:
            theta, exponent = float(rng.choice([0.5, 1.2, 3.0])), float(rng.choice([0.0, 0.5, 1.0]))
            options |= {"preempt": "on", "theta": theta, "exponent": exponent}
        return policies.make("greedy", **options).rule
    common = {"placer": str(rng.choice(["tier", "first"])), "preemption_cost": cost, "lease": lease, "round": round_s}
    common |= {"migrates": not lease and bool(rng.random() < 0.5), "head": str(rng.choice(["skip", "skip", "strict"]))}
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
    models = rng.choice(MODELS, n)
    return Workload.from_arrays("random", arrival_s, gpus, duration_s, iterations=duration_s, model=models)


def random_run(seed: int, fails: bool = True) -> tuple[Simulator, Rule, Workload]:
    rng = np.random.default_rng(seed)
    topology, rule, semantics = random_topology(rng), random_rule(rng), random_semantics(rng)
    if rule.preempt:
        semantics = events()
    if semantics.auctions and semantics.chunk < 1.0 and 0.0 < semantics.lease_s <= max(rule.preemption_cost):
        semantics = artist_sim(100.0, semantics.chunk, semantics.release_s)
    rule = replace(rule, **{name: getattr(Rule, name) for name in semantics.in_place})  # overridden
    failures, network = None, NETWORKS[rng.integers(len(NETWORKS))]
    if fails and topology.num_racks <= 3 and rng.random() < 0.5:
        # One machine or another every 400 s. A chunk must be shorter, or a gang on all GPUs never gets through one.
        failures = Failures(400.0 * topology.num_machines, 60.0, rng.choice([0.0, 5.0]))
        network, semantics = NETWORKS[rng.integers(2)], replace(semantics, chunk=min(semantics.chunk, 1.0))
    simulator = Simulator(topology, network, rule=rule, semantics=semantics, failures=failures)
    return simulator, rule, random_workload(rng, topology.num_gpus)


def end_of(simulator: Simulator) -> str:
    table = simulator.jobs()
    return repr([simulator.metrics(), *(table[name].tolist() for name in ("finish_s", "first_start_s", "preemptions"))])


@calm(150)
@given(st.integers(0, 100_000))
def test_decisions_one_by_one_keep_the_cluster_consistent_and_end_as_the_compiled_run(seed):
    """GPUs have one owner, gangs are whole, GPU-seconds add up, time goes on; the same seed gives the same end."""
    simulator, rule, workload = random_run(seed)
    simulator.reset(workload, seed)
    simulator.run()
    whole = end_of(simulator)
    simulator.reset(workload, seed)
    player, now_s = policies.RulePolicy("any", rule), simulator.view.now_s
    for count in itertools.count():
        if simulator.ended:
            break
        simulator.apply(simulator.ask(player))
        if count < 300:
            check_record(simulator)
            check_sums(simulator)
        assert simulator.view.now_s >= now_s
        now_s = simulator.view.now_s
    assert end_of(simulator) == whole
    assert simulator.metrics()["jobs_finished"] == len(workload)  # no rule of these leaves a cluster idle for ever


@calm(150)
@given(st.integers(0, 100_000), st.integers(1, 60))
def test_a_snapshot_in_the_middle_brings_the_run_back(seed, decisions):
    """Timers, lists of waits, auctions to come and pending moves are all in the record."""
    simulator, rule, workload = random_run(seed)
    simulator.reset(workload, seed)
    player = policies.RulePolicy("any", rule)
    for _ in range(decisions):
        if simulator.ended:
            break
        simulator.apply(simulator.ask(player))
    kept = simulator.snapshot()
    simulator.run()
    first = end_of(simulator)
    simulator.restore(kept)
    simulator.run()
    assert end_of(simulator) == first


@calm(150)
@given(st.integers(0, 100_000))
def test_without_failures_the_work_is_done_once(seed):
    """Compute time is the work of all jobs; in chunks, at most the rest of one chunk more for each is lost."""
    simulator, _, workload = random_run(seed, fails=False)
    simulator.reset(workload, seed)
    simulator.run()
    check_record(simulator)
    check_sums(simulator)
    if not simulator.semantics.auctions:
        check_end(simulator)
        return
    alone_s, s, parts = computing_s(simulator), simulator.state, gpu_seconds(simulator.state)
    assert parts["compute"] == pytest.approx((workload.gpus * alone_s).sum(), rel=1e-9)
    chunk_s = s.chunk * workload.gpus * s.iteration_s[: len(workload)]
    assert 0.0 <= parts["lost"] <= (workload.gpus * chunk_s).sum() * (1 + 1e-9)
    assert (simulator.jobs()["jct_s"] >= alone_s * (1 - 1e-9)).all()


EXTREME = (
    "dally:history=1e-9,lease=1",
    "dally:history=1e300,initial=1e300,floors=1/1e300,lease=5",
    "dally:initial=0,lease=0.5",
    "dally-manual:timers=0/inf",
    "dally-manual:timers=1e300/1e-300",
    "dally-manual:timers=1e-9,round=7,lease=3",
    "dally-nowait:lease=0.5,preemption_cost=0.1/3",
    "dally-consolidated:placer=first",
    "gandiva:lease=1",
    "greedy",
    "greedy:margin=0,placer=first,round=11",
    "greedy:margin=1e300,preemption_cost=0.1/3",
    "greedy:preempt=on",
    "greedy:preempt=on,margin=0,placer=first,round=11,theta=0,exponent=8",
    "greedy:preempt=on,theta=1e300,preemption_cost=0.1/3",
    "gandiva:fallback=last,round=13",
    "gandiva:slicing=3.5,preemption_cost=0.1/3",
    "gandiva:slicing=0.5",
)
AT_AUCTIONS = (
    "dally:history=1e-9",
    "dally:history=1e300,initial=1e300,floors=1/1e300",
    "dally:initial=0",
    "dally-manual:timers=0/inf",
    "dally-manual:timers=1e300/1e-300",
    "dally-manual:timers=1e-9",
    "dally-nowait:preemption_cost=0.1/3",
    "dally-consolidated:placer=first",
    "gandiva",
    "greedy",
    "greedy:margin=0,placer=first",
    "greedy:margin=1e300,preemption_cost=0.1/3",
    "gandiva:fallback=last",
)
TINY = {
    "one GPU": "flat:machines=1,gpus_per_machine=1",
    "one machine": "dally:racks=1,machines=1",
    "machines of one GPU": "flat:machines=5,gpus_per_machine=1",
    "16 racks": "dally:racks=16,machines=1",
}


@pytest.mark.parametrize(
    "semantics", ["events", "artist-sim:lease_s=1,chunk=0.5", "artist-sim:chunk=1e6,release_s=1e9"]
)
@pytest.mark.parametrize("cluster", TINY)
def test_extreme_values_on_extreme_clusters(cluster, semantics):
    """Every job finishes, GPUs and GPU-seconds are all there, and one decision at a time is the same."""
    semantics, rng = load_semantics(semantics), np.random.default_rng(7)
    simulator = Simulator(TINY[cluster], "penalty:default=1/1.2/1.5", semantics=semantics)
    total = simulator.topology.num_gpus
    gpus = np.minimum(rng.choice([1, 2, 3, 8, total], 8), total)
    arrival_s, duration_s = np.sort(rng.integers(0, 30, 8)), rng.integers(1, 40, 8)
    workload = Workload.from_arrays("tiny", arrival_s, gpus, duration_s, iterations=duration_s)
    for word in EXTREME if not semantics.auctions else AT_AUCTIONS:
        policy = policies.make(word)
        simulator.use(policy.rule_under(semantics))
        simulator.reset(workload, 1)
        assert simulator.run()["jobs_finished"] == 8, word
        check_record(simulator)
        check_sums(simulator)
        whole = end_of(simulator)
        simulator.reset(workload, 1)
        simulator.run(policy)
        assert end_of(simulator) == whole, word


@calm(150)
@given(st.integers(0, 100_000))
def test_random_legal_play_of_the_environment_comes_to_its_end(seed):
    """Any placer, both semantics, moves and failures: GPUs are conserved and the return is the mean JCT."""
    rng = np.random.default_rng(seed)
    topology, semantics = random_topology(rng), random_semantics(rng)
    workload = random_workload(rng, topology.num_gpus)
    fails = topology.num_racks <= 3 and semantics.chunk <= 1.0 and rng.random() < 0.5
    env = gymnasium.make(
        "clustergym/Delay-v0",
        topology=topology,
        workload=workload,
        network="penalty:default=1/1.2/1.5",
        semantics=semantics,
        placer=str(rng.choice(list(PLACERS))),
        migration=bool(rng.random() < 0.5),
        slots=int(rng.choice([1, 3, 32])),
        running_slots=int(rng.choice([0, 2, 16])),
        skip_idle=bool(rng.random() < 0.5),
        **({"mtbf_s": 5000.0, "mttr_s": 100.0, "checkpoint_s": 60.0} if fails else {}),
    ).unwrapped
    env.reset(seed=seed)
    terminated, total, info = env.simulator.done, 0.0, {}
    for step in itertools.count():
        if terminated:
            break
        assert step < 20_000
        legal = np.flatnonzero(env.action_masks()[: int(env.action_space.nvec[0])])
        candidate = rng.choice(legal)
        if step > 200:  # stops, moves and holds for ever would never end
            starts = [c for c in legal if 0 < c <= 5 * env._window.slots and c % 5]
            candidate = starts[0] if starts else legal[0]
        _, reward, terminated, _, info = env.step((candidate, rng.integers(11), rng.integers(2)))
        assert not info["invalid_action"]
        total += reward
        if step < 300:
            check_record(env.simulator)
            check_sums(env.simulator)
    s, n = env.simulator.state, len(workload)
    isolated_s = s.iterations[:n] * s.base_iteration_s[:n]
    assert total == pytest.approx(-info["metrics"]["jct_mean"] / isolated_s.mean(), rel=1e-9)
