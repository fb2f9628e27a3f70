"""Machines of several network cards, on rails or not: wiring, which card sends where, and iterations by hand."""

from __future__ import annotations

import itertools
from collections import Counter

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustergym.simulator.base.decisions import Start
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.cluster.links import GBPS
from clustergym.simulator.cluster.routes import link_use, nics_of, route
from clustergym.simulator.cluster.topology import Topology
from clustergym.simulator.cluster.traffic import rings_of, streams_of
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.workloads import Workload
from clustergym.tests.support.random_contended import PHASES
from clustergym.tests.support.scripted_contention import Script

RAILS = [
    f"{name},nics={nics},rails={rails},gpus_per_machine=4"
    for name in ("fat-tree:k=8", "leaf-spine:leaves=8,spines=3,machines=2,link_gbps=100,uplink_gbps=50")
    for nics in (1, 2, 4)
    for rails in ("on", "off")
]
# Two groups of two machines of two GPUs: GPUs 0 to 3 on leaves 0 and 1, 4 to 7 on leaves 2 and 3; all of 50 Gbps.
PAIRS = "leaf-spine:leaves=4,spines=1,machines=1,gpus_per_machine=2,nics=2,rails=on"
TOGETHER = "leaf-spine:leaves=2,spines=1,machines=2,gpus_per_machine=2,nics=2"  # the same machines, both NICs at a leaf


@pytest.mark.parametrize("word", RAILS)
def test_wiring_of_rails(word):
    """NIC k of a machine is at leaf k of its group, or all at one; each reaches each by a shortest way."""
    topology = Topology.load(word)
    links, nics = topology.links, int(word.partition("nics=")[2][0])
    graph = links.graph()
    assert links.nics == nics and links.nic_node.shape == (topology.num_machines, nics)
    assert links.num_links == graph.number_of_edges() == 2 * sum(1 for _ in networkx.Graph(graph).edges)
    kinds = Counter(kind for _, kind in graph.nodes(data="kind"))
    assert kinds["machine"] == topology.num_machines and kinds["nic"] == topology.num_machines * (nics - 1)
    leaf_of = np.array([[next(iter(graph[links.node_names[node]])) for node in own] for own in links.nic_node])
    by_leaf = Counter(leaf_of.ravel().tolist())
    assert len(set(by_leaf.values())) == 1  # as many cables below every leaf
    for leaves, rack in zip(leaf_of, topology.machine_rack, strict=True):
        assert len(set(leaves)) == (nics if "rails=on" in word else 1)
        assert (leaf_of[topology.machine_rack == rack] == leaves).all()
    plain = networkx.DiGraph(graph)
    nodes = links.nic_node.ravel().tolist()
    far = dict(networkx.all_pairs_shortest_path_length(plain))
    for start, end in itertools.product(range(0, len(nodes), 3), range(len(nodes))):
        names = [links.node_names[nodes[nic]] for nic in (start, end)]
        assert len(route(links, start, end)) == far[names[0]][names[1]]


@pytest.mark.parametrize(("nics", "rails"), [(2, "on"), (4, "on"), (2, "off"), (4, "off")])
def test_a_fat_tree_has_its_switches_and_cables_whatever_the_nics(nics, rails):
    """k = 8: 32 edge, 32 aggregation and 16 core switches of 8 ports, 3 x 128 cables, 128 / nics machines; 1:1."""
    topology = Topology.load(f"fat-tree:k=8,nics={nics},rails={rails},gpus_per_machine=4")
    links = topology.links
    graph = links.graph()
    ports = Counter(degree for name, degree in graph.out_degree() if graph.nodes[name]["kind"] == "switch")
    assert (topology.num_machines, links.num_links, ports) == (128 // nics, 2 * 3 * 128, {8: 80})
    assert topology.tiers[3].oversubscription == 1.0


def test_leaves_with_rails_are_as_full_as_without():
    """8 leaves, 2 machines each, 4 NICs of 100 Gbps: 800 below a leaf, 3 x 50 above, with rails and without."""
    for rails in ("on", "off"):
        word = f"leaf-spine:leaves=8,spines=3,machines=2,gpus_per_machine=4,link_gbps=100,nics=4,rails={rails}"
        topology = Topology.load(word)
        assert (topology.num_machines, topology.num_racks) == (16, 2 if rails == "on" else 8)
        assert topology.tiers[3].oversubscription == pytest.approx(800 / 150)


@pytest.mark.parametrize("word", ["fat-tree:k=4", "leaf-spine:leaves=3"])
def test_one_nic_is_what_there_was(word):
    assert Topology.load(word) == Topology.load(f"{word},nics=1") == Topology.load(f"{word},nics=1,rails=on")


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("fat-tree:k=4,nics=4,gpus_per_machine=4", "nics = 4, expected a divisor of k / 2 = 2"),
        ("fat-tree:k=8,nics=2", "nics = 2, expected at most gpus_per_machine = 1"),
        ("leaf-spine:nics=3,gpus_per_machine=4,rails=on", "nics = 3, expected a divisor of leaves = 8"),
        ("leaf-spine:nics=0", "nics = 0, expected a whole number"),
        ("leaf-spine:rails=maybe", "rails = 'maybe'"),
    ],
)
def test_rails_that_cannot_be_are_refused(word, says):
    with pytest.raises(InputError, match=says):
        Topology.load(word)


def own_graph(**nic):
    graph = networkx.Graph()
    graph.add_nodes_from(["a", "b"], gpus=2)
    graph.add_node("b.1", nic_of="b")
    if nic:
        graph.add_node("a.1", **nic)
        graph.add_edge("a.1", "s", capacity_gbps=10)
    for end in ("a", "b", "b.1"):
        graph.add_edge(end, "s", capacity_gbps=10)
    return graph


def test_a_graph_of_ones_own_has_nics():
    topology = Topology.from_graph(own_graph(nic_of="a"))
    assert topology.links.nics == 2 and topology.num_racks == 1
    assert nics_of(topology, [3, 0, 1]) == [0, 1, 3]
    for nic, says in (({}, "machine 'b' has 2 NICs"), ({"nic_of": "s"}, "nic_of = 's', expected another node")):
        with pytest.raises(InputError, match=says):
            Topology.from_graph(own_graph(**nic))


# Senders and receivers; NIC c of machine m of two is 2 m + c


def test_a_ring_splits_into_one_for_each_rail():
    """Machines 0, 1, 2 with both NICs: two rings of half the bytes. Machine 1 with NIC 1 alone: one ring on rail 1."""
    both = {(0, 2): 0.5, (2, 4): 0.5, (4, 0): 0.5, (1, 3): 0.5, (3, 5): 0.5, (5, 1): 0.5}
    assert streams_of("ring", [0, 1, 2, 3, 4, 5], 2) == both
    assert streams_of("ring", [0, 1, 3, 4, 5], 2) == {(1, 3): 1.0, (3, 5): 1.0, (5, 1): 1.0}
    assert streams_of("ring", [0, 3], 2) == {(0, 3): 1.0, (3, 0): 1.0}  # no rail in common
    assert streams_of("ring", [0, 1, 0, 1], 2) == {}
    assert [rings_of(["ring"], workers, 2) for workers in ([0, 1, 2, 3], [0, 1, 3], [0, 3])] == [2, 1, 1]
    assert rings_of(["ring", "all-to-all"], [0, 1, 2, 3], 2) == rings_of(["line"], [0, 1, 2, 3], 2) == 1


def test_what_leaves_a_machine_goes_by_the_rail_of_the_receiver():
    """Stage 1 on NIC 1 of machine 0 sends to NIC 0 of machine 1: over NIC 0 of machine 0, where stage 0 is."""
    assert streams_of("line", [0, 1, 2, 3], 2) == {(0, 2): 1.0}
    assert streams_of("line", [1, 2], 2) == {(1, 2): 1.0}  # none of the gang is on NIC 0
    assert streams_of("all-to-all", [0, 1, 2, 3], 2) == pytest.approx(
        {(0, 2): 2 / 3, (1, 3): 2 / 3, (2, 0): 2 / 3, (3, 1): 2 / 3}
    )


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_several_nics_send_what_one_would(data):
    """Between each two machines, whatever the pattern; of a ring each machine sends 1, in equal parts."""
    nics = data.draw(st.sampled_from([2, 4]))
    gpus = data.draw(st.lists(st.integers(0, 31), min_size=2, max_size=16, unique=True))
    workers = [gpu // 8 * nics + gpu % nics for gpu in sorted(gpus)]
    for pattern in ("all-to-all", "line", "first-last", "ring", "tree"):
        one: Counter = Counter(streams_of(pattern, [worker // nics for worker in workers]))
        several: Counter = Counter()
        for (a, b), many in streams_of(pattern, workers, nics).items():
            assert {a, b} <= set(workers)
            several[a // nics, b // nics] += many
        assert several == pytest.approx(one)
    ring = streams_of("ring", workers, nics)
    rings = rings_of(["ring"], workers, nics)
    for machine in {worker // nics for worker in workers} if ring else ():
        sent = [many for (a, _), many in ring.items() if a // nics == machine]
        assert sent == pytest.approx([1 / rings] * rings)


@given(gpus=st.sets(st.integers(0, 7), min_size=1), machines=st.integers(2, 4))
@settings(max_examples=30, deadline=None)
def test_gangs_with_the_same_gpus_everywhere_stay_on_their_rails(gpus, machines):
    workers = [machine * 4 + gpu % 4 for machine in range(machines) for gpu in sorted(gpus)]
    for pattern in ("ring", "tree", "all-to-all"):
        assert all(a % 4 == b % 4 for a, b in streams_of(pattern, workers, 4))


def test_links_of_a_gang_are_on_its_rails():
    """GPUs 0, 1 and 4, 5 of PAIRS: leaf 0 to 2 and back, leaf 1 to 3 and back, one stream each, which is one ring."""
    topology = Topology.load(PAIRS)
    workers = nics_of(topology, [5, 0, 4, 1])
    use = link_use(topology.links, workers, rings=rings_of(["ring"], workers, 2))
    names = [topology.links.link_names[link] for link in use.links]
    assert sorted(name for name in names if "server" not in name) == [
        *("leaf0->spine0", "leaf1->spine0", "leaf2->spine0", "leaf3->spine0"),
        *("spine0->leaf0", "spine0->leaf1", "spine0->leaf2", "spine0->leaf3"),
    ]
    assert len(names) == 16 and (use.flows == 1.0).all()
    assert (topology.links.capacity == 50 * GBPS).all()


# By hand: `half` computes for .1 s and sends at 50 Gbps for .08 s


def jct_s(topology, *gangs, words=""):
    """Times of jobs of one iteration each that start together on these GPUs; one of two GPUs would fit a machine."""
    seconds = [0.1 if len(gang) == 2 else 0.18 for gang in gangs]
    sizes = [len(gang) for gang in gangs]
    ones, names = np.ones(len(gangs)), ["half"] * len(gangs)
    jobs = Workload.from_arrays(
        "jobs", 0 * ones, sizes, seconds, iterations=ones, iteration_s=seconds, model=names, batch_size=sizes
    )
    simulator = Simulator(topology, f"contention:models={PHASES}{words}")
    simulator.reset(jobs)
    simulator.run(Script(*[(0.0, Start(job, gang)) for job, gang in enumerate(gangs)]))
    return simulator.jobs()["jct_s"].tolist()


@pytest.mark.parametrize("mode", ["exact", "averaged"])
def test_jobs_on_different_rails_do_not_meet_and_on_one_rail_do(mode):
    """On one rail both send at 25 Gbps: .1 + 2 x .08. With both NICs at a leaf all meet at its uplink."""
    words, apart, together = f",mode={mode}", [0.18, 0.18], [0.26, 0.26]
    assert jct_s(PAIRS, (0, 4), (3, 7), words=words) == pytest.approx(apart, rel=1e-6)
    assert jct_s(PAIRS, (0, 4), (2, 6), words=words) == pytest.approx(together, rel=1e-6)
    assert jct_s(TOGETHER, (0, 4), (3, 7), words=words) == pytest.approx(together, rel=1e-6)
    assert jct_s(PAIRS, (0, 2), (4, 6), words=words) == pytest.approx(apart, rel=1e-6)  # inside their groups


def test_a_job_on_both_rails_shares_with_one_on_a_rail_by_rings():
    """25 Gbps on each rail and 50 on the first: 25 each, until .18; then half of the other's bytes are left, .04 s."""
    assert jct_s(PAIRS, (0, 1, 4, 5), (2, 6)) == pytest.approx([0.18, 0.22], rel=1e-6)
    assert jct_s(PAIRS, (0, 1, 4, 5), (2, 3, 6, 7)) == pytest.approx([0.18, 0.18], rel=1e-6)  # 25 and 25 on each
    crowded = PAIRS.replace("spines=1", "spines=1,uplink_gbps=25")
    assert jct_s(crowded, (0, 1, 4, 5), (2, 3, 6, 7)) == pytest.approx([0.26, 0.26], rel=1e-6)


def test_several_nics_carry_more_than_one():
    """A link of 25 Gbps at each NIC: over one .08 s take .16, over two each carries 25."""
    slow = PAIRS + ",link_gbps=25"
    assert jct_s(slow, (0, 4)) == pytest.approx([0.26], rel=1e-6)
    assert jct_s(slow, (0, 1, 4, 5)) == pytest.approx([0.18], rel=1e-6)
