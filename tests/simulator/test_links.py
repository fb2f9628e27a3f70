"""Links, routes, and what shares what. Numbers are worked out by hand in the docstrings."""

import itertools
import json

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustergym.simulator.base.errors import InputError
from clustergym.simulator.cluster.links import GBPS
from clustergym.simulator.cluster.routes import link_use, machines_of, route, sharing
from clustergym.simulator.cluster.topology import Topology
from clustergym.simulator.cluster.traffic import ring_flows, streams_of, tree_flows
from clustergym.simulator.numerics.rounding import GRAIN

PAIR = {
    "nodes": [{"id": "a", "gpus": 2}, {"id": "b", "gpus": 1}, {"id": "s"}],
    "edges": [
        {"source": "a", "target": "s", "capacity_gbps": 100},
        {"source": "b", "target": "s", "capacity_gbps": 40},
    ],
}


def names(topology, links):
    return [topology.links.link_names[link] for link in links]


def changed(**parts):
    return {**json.loads(json.dumps(PAIR)), **parts}


def test_cassini_testbed_has_the_counts_of_the_paper():
    """24 servers, 13 switches, 48 cables of 50 Gbps = 6.25e9 bytes/s; 4 cables below a leaf, 2 above: 2:1."""
    topology = Topology.load("cassini-testbed")
    links = topology.links
    assert (topology.num_gpus, topology.num_machines, topology.num_racks) == (24, 24, 6)
    assert (links.num_nodes - links.num_machines, links.num_links) == (13, 2 * 48)
    assert (links.capacity == 6.25e9).all()
    assert topology.cluster_gpu_type == ("A100",)
    leaf = links.node_names.index("leaf3")
    ends = [links.node_names[node] for node in links.target[links.source == leaf]]
    assert sorted(ends) == ["agg2", "agg3", *(f"server{i}" for i in range(12, 16))]


def test_cassini_two_gpu_has_six_servers_of_two():
    topology = Topology.load("cassini-two-gpu")
    assert topology.machine_gpus.tolist() == [2] * 6 and topology.links.num_links == 2 * 9


def test_fat_tree_of_four_ports():
    """k = 4: 16 machines, 8 edge, 8 aggregation, 4 core switches, 3 x 16 cables; every core is linked to every pod."""
    topology = Topology.load("fat-tree:k=4")
    graph = topology.links.graph()
    assert (topology.num_machines, topology.num_racks, topology.links.num_links) == (16, 8, 96)
    assert len(graph) == 16 + 8 + 8 + 4
    pods = {int(name[3:]) // 2 for name in graph["core3"]}
    assert pods == {0, 1, 2, 3}
    assert {degree for name, degree in graph.out_degree() if not name.startswith("server")} == {4}


def test_leaf_spine_counts_and_oversubscription():
    """3 leaves x 2 machines of 100 Gbps, 2 spines at 25: 200 below a leaf, 50 above."""
    topology = Topology.load("leaf-spine:leaves=3,spines=2,machines=2,link_gbps=100,uplink_gbps=25,gpus_per_machine=8")
    assert (topology.num_gpus, topology.links.num_links) == (48, 2 * (6 + 6))
    assert topology.tiers[3].oversubscription == 4.0
    assert sorted(set(topology.links.capacity / GBPS)) == [25.0, 100.0]


def test_topologies_without_links_have_none():
    assert Topology.load("dally").links is None
    assert (
        Topology.load("cassini-testbed")
        == Topology.load("cassini-testbed")
        != Topology.load("cassini-testbed:link_gbps=40")
    )


def test_route_inside_a_leaf_and_across_the_core():
    topology = Topology.load("cassini-testbed")
    assert names(topology, route(topology.links, 0, 3)) == ["server0->leaf0", "leaf0->server3"]
    path = names(topology, route(topology.links, 0, 23))
    assert [name.partition("#")[0].rstrip("0123456789") for name in path] == [
        "server0->leaf", "leaf0->agg", path[2].partition("->")[0] + "->core", "core0->agg",
        path[4].partition("->")[0] + "->leaf", "leaf5->server",
    ]  # fmt: skip
    assert route(topology.links, 5, 5) == []


def test_routes_depend_on_the_destination_only_and_are_spread():
    """Two routes to one machine, once met, stay together; 20 far destinations spread 10 : 10 over a leaf's uplinks."""
    links = Topology.load("cassini-testbed").links
    uplinks = [link for link, name in enumerate(links.link_names) if name.startswith("leaf0->agg")]
    used = [link for end in range(4, 24) for link in route(links, 0, end) if link in uplinks]
    assert sorted(used.count(link) for link in uplinks) == [10, 10]
    for end in range(24):
        after = {}
        for start in range(24):
            path = route(links, start, end)
            for first, second in itertools.pairwise(path):
                assert after.setdefault(int(links.target[first]), second) == second


@pytest.mark.parametrize("word", ["fat-tree:k=4", "cassini-testbed", "leaf-spine:leaves=3,spines=3"])
def test_routes_are_shortest_ways(word):
    links = Topology.load(word).links
    graph = networkx.DiGraph(links.graph())
    for start, end in itertools.product(range(links.num_machines), repeat=2):
        path = route(links, start, end)
        ends = (links.node_names[links.machine_node[machine]] for machine in (start, end))
        assert len(path) == networkx.shortest_path_length(graph, *ends)
        assert [int(links.target[link]) for link in path[:-1]] == [int(links.source[link]) for link in path[1:]]


def test_machines_do_not_forward_unless_the_graph_says_so():
    """a - s - c and a - b - c are as short; b is a machine with two cards and is not passed through."""
    graph = networkx.Graph()
    graph.add_nodes_from([(name, {"gpus": 1}) for name in "abc"])
    graph.add_node("s")
    for ends in ("ab", "bc", "as", "sc"):
        graph.add_edge(*ends, capacity_gbps=10)
    topology = Topology.from_graph(graph)
    where = {name: machine for machine, name in enumerate(topology.links.node_names) if name != "s"}
    order = {topology.links.node_names[node]: machine for machine, node in enumerate(topology.links.machine_node)}
    assert names(topology, route(topology.links, order["a"], order["c"])) == ["a->s", "s->c"]
    graph.remove_node("s")
    with pytest.raises(InputError, match="machine 'a' cannot reach machine 'c'"):
        Topology.from_graph(graph)
    graph.nodes["b"]["forwards"] = True
    assert Topology.from_graph(graph).num_machines == 3 == len(where)


def test_ring_and_tree_of_four():
    """Tree of 4: 0 is the root, 2 its child, 1 and 3 those of 2."""
    assert ring_flows([3, 5, 8]) == [(3, 5), (5, 8), (8, 3)]
    assert ring_flows([3]) == [] == tree_flows([3])
    assert sorted(tree_flows([0, 1, 2, 3])) == [(0, 2), (1, 2), (2, 0), (2, 1), (2, 3), (3, 2)]


@given(count=st.integers(2, 40))
@settings(max_examples=40, deadline=None)
def test_trees_span_all_machines(count):
    flows = tree_flows(list(range(count)))
    tree = networkx.Graph(flows)
    assert networkx.is_tree(tree) and len(tree) == count and len(flows) == 2 * (count - 1)
    assert max(dict(tree.degree()).values()) <= 3


def test_link_use_of_a_ring_counts_flows():
    """Machines 0, 1 under leaf 0, 4 under leaf 1: each server link once each way, one flow up and one down a leaf."""
    topology = Topology.load("cassini-testbed")
    use = link_use(topology.links, [0, 1, 4])
    assert use.flows.tolist() == [1] * len(use.links)
    # 6 server links, and leaf -> aggregation -> leaf both ways: leaves 0 and 1 share their aggregation switches
    assert len(use.links) == 6 + 4
    assert use.bytes(3.0).tolist() == [3.0] * 10
    assert len(link_use(topology.links, [7]).links) == 0


def fabric(topology, use):
    """Streams by link between switches."""
    links = topology.links
    switches = set(range(links.num_nodes)) - set(links.machine_node.tolist())
    between = [int(links.source[link]) in switches and int(links.target[link]) in switches for link in use.links]
    return dict(zip(use.links[between].tolist(), use.flows[between].tolist(), strict=True))


def test_all_to_all_of_eight_on_two_leaves():
    """16 pairs each way at 45 / 7 Gbps over two hops: 411 Gbps on 8 links, 51.4 on each; a ring: 180 over 4 of them."""
    topology = Topology.load("cassini-testbed")
    whole, ring = (fabric(topology, link_use(topology.links, range(8), name)) for name in ("all-to-all", "ring"))
    assert len(whole) == 8 and len(ring) == 4
    assert 45 * sum(whole.values()) == pytest.approx(411.4, abs=0.1) and 45 * sum(ring.values()) == 180
    assert [45 * flows for flows in whole.values()] == pytest.approx([51.43] * 8, abs=0.02)
    use = link_use(topology.links, range(8), "all-to-all")
    assert len(use.links) == 8 + 16 and sorted(use.flows.tolist())[:16] == [1.0] * 16


def test_a_pipeline_sends_down_the_line_and_between_its_ends():
    """Stages on servers 0, 1 | 4, 5 of two leaves: up from 0, 1, 4, down to 1, 4, 5, once from leaf to leaf."""
    topology = Topology.load("leaf-spine:leaves=2,spines=1")

    def used(pattern):
        use = link_use(topology.links, [0, 1, 4, 5], pattern)
        return dict(zip((topology.links.link_names[link] for link in use.links), use.flows.tolist(), strict=True))

    line = used("line")
    assert set(line) == {
        "server0->leaf0", "leaf0->server1", "server1->leaf0", "leaf0->spine0", "spine0->leaf1",
        "leaf1->server4", "server4->leaf1", "leaf1->server5",
    } and set(line.values()) == {1.0}  # fmt: skip
    ends = used("first-last")
    assert len(ends) == 8 and "server1->leaf0" not in ends and ends["leaf1->spine0"] == ends["leaf0->spine0"] == 1.0
    both = used({"line": 0.25, "first-last": 0.75})
    assert (both["server0->leaf0"], both["server1->leaf0"], both["leaf1->spine0"]) == (1.0, 0.25, 0.75)


def test_streams_of_a_hybrid():
    """Two replicas of two stages of two halves, on workers 0 to 7."""
    workers = list(range(8))
    assert set(streams_of("halves", workers)) == {(0, 1), (1, 0), (2, 3), (3, 2), (4, 5), (5, 4), (6, 7), (7, 6)}
    ends = streams_of("ends", workers)
    assert set(ends) == {(0, 2), (2, 0), (1, 3), (3, 1), (4, 6), (6, 4), (5, 7), (7, 5)} and set(ends.values()) == {1}
    assert streams_of("stages", workers) == dict.fromkeys(ends, 0.5)
    assert set(streams_of("replicas", workers)) == {(a, b) for a in range(4) for b in [a + 4]} | {
        (a + 4, a) for a in range(4)
    }
    assert streams_of("replicas", range(4)) == {}


@given(workers=st.lists(st.integers(0, 23), min_size=2, max_size=12).map(sorted))
@settings(max_examples=60, deadline=None)
def test_streams_leave_machines_as_often_as_they_arrive(workers):
    """And each worker of an all-to-all sends one stream, less what stays on its machine."""
    links = Topology.load("cassini-testbed").links
    for pattern in ("ring", "tree", "all-to-all", "first-last", "line"):
        streams = streams_of(pattern, workers)
        assert all(a != b for a, b in streams)
        use = link_use(links, workers, pattern)
        by_hand = np.zeros(links.num_links)
        for (start, end), many in streams.items():
            by_hand[route(links, start, end)] += many
        assert use.links.tolist() == np.flatnonzero(by_hand).tolist()
        assert use.flows == pytest.approx(by_hand[use.links], abs=GRAIN)
        assert (use.flows / GRAIN == np.rint(use.flows / GRAIN)).all() and (use.flows > 0).all()
    if len(set(workers)) == len(workers):
        sent = sum(streams_of("all-to-all", workers).values())
        assert sent == pytest.approx(len(workers))


def test_workers_of_one_machine_need_no_network_between_them():
    """Four workers on two machines: of the three others of each two are elsewhere, 4 x 2 / 3 streams, half each way."""
    assert streams_of("all-to-all", [3, 3, 5, 5]) == pytest.approx({(3, 5): 4 / 3, (5, 3): 4 / 3})
    assert streams_of("ring", [3, 3, 5, 5]) == streams_of("line", [3, 3, 5]) | {(5, 3): 1}
    assert streams_of("first-last", [3, 3]) == {}


def test_an_unsorted_ring_crosses_the_fabric_more_often():
    """0 and 1 under one leaf, 4 and 5 under another. 0 4 1 5 0: all four flows cross; sorted: two of four."""
    links = Topology.load("leaf-spine:leaves=2,spines=1").links
    uplink = links.link_names.index("leaf0->spine0")
    crossing = {
        order: dict(zip(use.links.tolist(), use.flows.tolist(), strict=True))[uplink]
        for order in [(0, 1, 4, 5), (0, 4, 1, 5)]
        for use in [link_use(links, order)]
    }
    assert crossing == {(0, 1, 4, 5): 1, (0, 4, 1, 5): 2}


def test_machines_of_a_gang():
    topology = Topology.load("cassini-two-gpu")
    assert machines_of(topology, [9, 2, 3, 8]) == [1, 4]
    assert machines_of(topology, [9, 2, 3, 8], ordered=False) == [4, 1]


def test_sharing_lists_links_of_several_jobs():
    """x on servers 0 and 4, y on 1 and 5, z on 2 and 3: x and y meet between leaves 0 and 1, z meets none."""
    links = Topology.load("leaf-spine:leaves=2,spines=1").links
    uses = {name: link_use(links, machines) for name, machines in {"x": [0, 4], "y": [1, 5], "z": [2, 3]}.items()}
    found = sharing(uses)
    assert {links.link_names[link] for link in found} == {
        "leaf0->spine0", "spine0->leaf1", "leaf1->spine0", "spine0->leaf0",
    }  # fmt: skip
    assert all(jobs == ["x", "y"] for jobs in found.values())


def test_unknown_collective_is_named():
    with pytest.raises(InputError, match="did you mean 'ring'"):
        link_use(Topology.load("cassini-testbed").links, [0, 1], "rings")


@pytest.mark.parametrize("key", ["edges", "links"])
def test_node_link_file(tmp_path, key):
    """100 Gbps = 1.25e10 bytes/s; an undirected edge is two links."""
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"nodes": PAIR["nodes"], key: PAIR["edges"], "graph": {"gpu_type": "A100"}}))
    topology = Topology.load(path)
    assert (topology.name, topology.num_gpus, topology.num_racks) == ("mine", 3, 1)
    assert topology.links.capacity.tolist() == [1.25e10, 5e9, 1.25e10, 5e9]
    assert topology.links.link_names == ("a->s", "b->s", "s->a", "s->b")


def test_what_networkx_writes_is_read():
    graph = Topology.load("cassini-testbed").links.graph()
    for _, data in graph.nodes(data=True):
        if data["kind"] == "machine":
            data["gpus"] = 1
    again = Topology.from_spec(networkx.node_link_data(graph, edges="edges"))
    assert again.links == Topology.load("cassini-testbed").links
    assert again.num_racks == 6


def test_machines_are_numbered_rack_by_rack():
    """b's rack y is seen first, so b and d are machines 0 and 1."""
    nodes = [{"id": name, "gpus": 1, "rack": rack} for name, rack in zip("bacd", "yxxy", strict=True)]
    edges = [{"source": name, "target": "s", "capacity_gbps": 1} for name in "abcd"]
    topology = Topology.from_spec({"nodes": [*nodes, {"id": "s"}], "edges": edges})
    assert [topology.links.node_names[node] for node in topology.links.machine_node] == ["b", "d", "a", "c"]
    assert topology.rack_machines.tolist() == [2, 2]


def edge(**parts):
    return [PAIR["edges"][0], {**PAIR["edges"][1], **parts}]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (changed(edges=edge(capacity_gbps=-1)), "link 'b' - 's': capacity_gbps = -1, expected more than 0"),
        (changed(edges=edge(capacity_gbps="fast")), "capacity_gbps = 'fast', expected more than 0"),
        (changed(edges=[{"source": "a", "target": "s"}]), "link 'a' - 's': capacity_gbps is missing"),
        (changed(edges=edge(target="t")), r"edges\[1\]: there is no node 't'"),
        (changed(edges=edge(target="b")), "leads from a node to itself"),
        (changed(edges=PAIR["edges"][:1]), "node 'b' has no links"),
        (changed(edges=[*PAIR["edges"], PAIR["edges"][0]]), "second edge 'a' - 's', expected one, or multigraph"),
        (changed(directed=True), "cannot reach machine"),
        (changed(nodes=[{"id": "a"}, {"id": "b"}, {"id": "s"}]), "has no machines"),
        (changed(nodes=[*PAIR["nodes"], {"id": "s"}]), r"nodes\[3\].id = 's' is given twice"),
        (changed(nodes=[{"id": "a", "gpus": 0}, {"id": "b"}, {"id": "s"}]), "node 'a': gpus = 0, expected a whole"),
        (changed(nodes=[{"gpus": 1}]), r"nodes\[0\].id"),
        (changed(links=PAIR["edges"]), "both edges and links"),
        ({"nodes": PAIR["nodes"]}, "edges is missing"),
        (changed(edgse=[]), "edgse: unknown key; did you mean 'edges'"),
    ],
)
def test_malformed_graphs_give_one_sentence(spec, words):
    with pytest.raises(InputError, match=words) as failure:
        Topology.from_spec(spec)
    assert "\n" not in str(failure.value)


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("fat-tree:k=3", "k = 3, expected an even number"),
        ("fat-tree:k=100", "expected at most 33554432 routes"),
        ("leaf-spine:spines=0", "spines = 0, expected a whole number"),
        ("leaf-spine:uplink_gbps=0", "uplink_gbps = 0.0, expected more than 0"),
        ("cassini-testbed:link_gbps=-5", "link_gbps = -5.0, expected more than 0"),
    ],
)
def test_bad_parameters_of_presets(word, words):
    with pytest.raises(InputError, match=words):
        Topology.load(word)


def test_links_of_another_number_of_machines_are_refused():
    links = Topology.load("cassini-two-gpu").links
    with pytest.raises(InputError, match="links of 6 machines, expected 1"):
        Topology.from_counts("one", slot_gpus=[1], machine_slots=[1], rack_machines=[1], links=links)


def test_arrays_are_read_only():
    links = Topology.load("cassini-two-gpu").links
    for array in (links.capacity, links.source, links.next_link, links.hops):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    assert np.all(np.diff(links.source) >= 0)
