"""Placers on random free maps, against their definitions in plain Python."""

from __future__ import annotations

import gymnasium
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clustergym.envs.delay.delay_transition import KERNELS
from clustergym.simulator.base.decisions import Start
from clustergym.simulator.base.tiers import MACHINE, NETWORK, RACK, SLOT
from clustergym.simulator.cluster.topology import Topology
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.workloads import Workload
from clustergym.tests.support.drawn import calm

tried = calm(120)
RACKS = [
    {"machines": [{"count": 2, "slots": 2, "gpus_per_slot": 3}, {"gpus_per_slot": 5}]},
    {"machines": [{"slots": 4, "gpus_per_slot": 2}]},
    {"count": 2, "machines": [{"count": 2, "slots": 2, "gpus_per_slot": 1}]},
]
UNEVEN = {"name": "uneven", "regions": [{"name": "r", "clusters": [{"name": "c", "racks": RACKS}]}]}
TOPOLOGIES = [
    Topology.load("dally:racks=2,machines=3"),
    Topology.load("dally:racks=4,machines=3"),
    Topology.load("flat:machines=5,gpus_per_machine=3"),
    Topology.load(UNEVEN),
]


@st.composite
def clusters(draw):
    """(topology, GPUs that are taken, gang size that is asked for)."""
    topology = draw(st.sampled_from(TOPOLOGIES))
    size = topology.num_gpus
    share = draw(st.sampled_from([0.0, 0.3, 0.6, 0.9]))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    drawn = rng.random(topology.num_machines)[topology.gpu_machine] if draw(st.booleans()) else rng.random(size)
    taken = np.flatnonzero(drawn < share).tolist()  # whole machines, or any GPUs
    return topology, taken, draw(st.integers(1, size))


def laid(topology, taken, gangs):
    """A simulator in which job 0 holds `taken`; the others wait."""
    sizes = [max(1, len(taken)), *gangs]
    simulator = Simulator(topology)
    simulator.reset(Workload.from_arrays("map", [0.0] * len(sizes), sizes, [9.0] * len(sizes)))
    if taken:
        simulator.apply(Start(0, taken))
    return simulator


def greedy(free, need, inside):
    """GPUs out of groups {index: free GPUs}: the tightest group that suffices, else all of the fullest, and so on."""
    free, chosen = dict(free), []
    while need > 0:
        enough = [index for index in free if len(free[index]) >= need]
        best = min(enough, key=lambda i: (len(free[i]), i)) if enough else min(free, key=lambda i: (-len(free[i]), i))
        take = min(need, len(free[best]))
        chosen += inside(free.pop(best), take)
        need -= take
    return chosen


def grouped(gpus, of):
    groups: dict[int, list[int]] = {}
    for gpu in gpus:
        groups.setdefault(int(of(gpu)), []).append(gpu)
    return groups


class Definition:
    """What docs/concepts/semantics.md says, by sorting lists."""

    def __init__(self, topology, free):
        self.topology, self.free = topology, free
        self.slot = lambda gpu: topology.gpu_slot[gpu]
        self.machine = lambda gpu: topology.gpu_machine[gpu]
        self.rack = lambda gpu: topology.machine_rack[topology.gpu_machine[gpu]]

    def in_machine(self, gpus, need):
        return greedy(grouped(gpus, self.slot), need, lambda group, take: sorted(group)[:take])

    def in_rack(self, gpus, need):
        return greedy(grouped(gpus, self.machine), need, self.in_machine)

    def within(self, need, tier):
        if need > len(self.free):
            return None
        if tier == NETWORK:
            return greedy(grouped(self.free, self.rack), need, self.in_rack)
        of, inside = (self.machine, self.in_machine) if tier == MACHINE else (self.rack, self.in_rack)
        enough = {index: group for index, group in grouped(self.free, of).items() if len(group) >= need}
        return inside(enough[min(enough, key=lambda i: (len(enough[i]), i))], need) if enough else None

    def tier(self, gpus):
        for tier, of in ((SLOT, self.slot), (MACHINE, self.machine), (RACK, self.rack)):
            if len({int(of(gpu)) for gpu in gpus}) == 1:
                return tier
        return NETWORK

    def consolidated(self, need):
        sizes = self.topology.machine_gpus
        if need <= sizes.max():
            return self.within(need, MACHINE)
        free_of = grouped(self.free, self.machine)
        whole = [machine for machine in sorted(free_of) if len(free_of[machine]) == sizes[machine]]
        by_rack = [[m for m in whole if self.topology.machine_rack[m] == r] for r in range(self.topology.num_racks)]
        enough = [pool for pool in (*sorted(by_rack, key=len), whole) if sizes[pool].sum() >= need]
        if not enough:
            return None
        chosen: list[int] = []
        for machine in enough[0]:
            chosen += self.in_machine(free_of[machine], min(int(sizes[machine]), need - len(chosen)))
        return chosen


def same(found, expected):
    return (found and sorted(found)) == (expected and sorted(expected))


@tried
@given(clusters())
def test_every_placer_follows_its_definition(cluster):
    topology, taken, need = cluster
    view = laid(topology, taken, [need]).view
    free = view.free_gpus.tolist()
    assert sorted([*free, *taken]) == list(range(topology.num_gpus))
    definition = Definition(topology, free)
    for tier in (MACHINE, RACK, NETWORK):
        assert same(view.find_gpus_within(1, tier), definition.within(need, tier))
    best = next((gang for tier in (MACHINE, RACK, NETWORK) if (gang := definition.within(need, tier))), None)
    assert same(view.find_gpus(1, "tier"), best)
    assert same(view.find_gpus(1, "consolidated"), definition.consolidated(need))
    assert same(view.find_gpus(1, "count"), free[:need] if need <= len(free) else None)


@tried
@given(clusters(), st.sampled_from(["count", "consolidated", "tier", "skew", "random"]))
def test_a_gang_is_whole_free_and_has_the_tier_that_is_told(cluster, placer):
    topology, taken, need = cluster
    simulator = laid(topology, taken, [need])
    gpus = simulator.view.find_gpus(1, placer)
    if gpus is None:
        assert need > topology.num_gpus - len(taken) or placer in ("consolidated", "skew")
        return
    assert len(gpus) == len(set(gpus)) == need
    assert not set(gpus) & set(taken)
    simulator.apply(Start(1, gpus))
    assert simulator.view.tier_of(1) == Definition(topology, []).tier(gpus)


@tried
@given(clusters())
def test_no_gang_of_a_rack_spans_more_machines_than_it_must(cluster):
    topology, taken, need = cluster
    view = laid(topology, taken, [need]).view
    for tier, of in ((RACK, topology.gpu_machine), (NETWORK, topology.machine_rack[topology.gpu_machine])):
        gpus = view.find_gpus_within(1, tier)
        if gpus:
            inside = set(of[gpus].tolist()) if tier == NETWORK else {int(topology.machine_rack[of[gpus[0]]])}
            groups = topology.machine_rack[topology.gpu_machine] if tier == NETWORK else topology.gpu_machine
            pool = [
                g for g in view.free_gpus.tolist() if tier == NETWORK or int(topology.machine_rack[of[g]]) in inside
            ]
            counts = sorted(np.unique(groups[pool], return_counts=True)[1].tolist(), reverse=True)
            fewest = int(np.searchsorted(np.cumsum(counts), need)) + 1
            assert len(set(groups[gpus].tolist())) == fewest


@calm(60)
@given(clusters(), st.lists(st.integers(1, 24), min_size=1, max_size=6))
def test_the_window_of_delay_offers_what_the_placer_would_give(cluster, sizes):
    """Machine, rack and network are legal where the gang found there has this very tier; and so by `tier_of_gang`."""
    topology, taken, _ = cluster
    sizes = [min(size, topology.num_gpus) for size in sizes]
    workload = Workload.from_arrays(
        "map", [0.0] * (1 + len(sizes)), [max(1, len(taken)), *sizes], [9.0] * (1 + len(sizes))
    )
    env = gymnasium.make("clustergym/Delay-v0", topology=topology, workload=workload, network="none", slots=8).unwrapped
    env.reset(seed=0)
    simulator = env.simulator
    if taken:
        simulator.apply(Start(0, taken))
    KERNELS.turn(simulator.records, env._windows, env.interface.solvers, 0, env._features, env._mask)
    window, definition = env._windows[0], Definition(topology, [])
    for slot, job in enumerate(simulator.view.queue.tolist()):
        for target, tier in enumerate((MACHINE, RACK, NETWORK)):
            gpus = simulator.view.find_gpus_within(job, tier)
            real = definition.tier(gpus) if gpus else None
            offered = max(MACHINE, real) == tier if gpus else False
            assert bool(window.legal[1 + 5 * slot + target]) == offered
            if offered:
                assert window.class_tier[simulator.state.demand[job], target] == real
