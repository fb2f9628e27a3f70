"""Topologies from tables of hosts and their switches: by hand, by brute force, bad tables, and the real one."""

from __future__ import annotations

import csv
import itertools
import json
import os
import shutil
from collections import Counter

import networkx
import numpy as np
import pytest

from clustergym.experiments.settings.describing import describe_topology
from clustergym.policies import make
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.cluster.host_tables import read_hosts
from clustergym.simulator.cluster.links import GBPS
from clustergym.simulator.cluster.presets import list_topologies
from clustergym.simulator.cluster.routes import route
from clustergym.simulator.cluster.topology import Topology
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.workloads import open_workload
from clustergym.tests.support.paths import DATA, TRACES

HOSTS = DATA / "hosts.csv"  # P1: S1 of a0, a1, S2 of a2, a3; P2: S1 of b0, b1, S2 of b2
LINGJUN = TRACES / "lingjun" / "topo.csv"
needs_lingjun = pytest.mark.skipif(not LINGJUN.exists(), reason="real traces are not at ../shared/traces")


def hosts(options="gpus=8,nic_gbps=100,oversubscription=2", path=HOSTS):
    return Topology.load(f"hosts:{options},file={path}")


def capacities(links):
    """Gbps by ends, of cables that are parallel together."""
    total: Counter = Counter()
    for start, end, gbps in links.graph().edges(data="capacity_gbps"):
        total[start, end] += gbps
    return total


def brute_force(topology, path, names="nested"):
    """Every cable is where the table has one, hosts reach each other by shortest ways, and nothing else is there."""
    rows = list(csv.DictReader(path.read_text().splitlines()))
    host, *layers = rows[0]
    expected = set()
    for row in rows:
        way = [row[layer] for layer in layers]
        nodes = ["/".join(way[: depth + 1]) if names == "nested" else way[depth] for depth in range(len(way))]
        expected |= set(itertools.pairwise([*nodes, row[host]]))
    links = topology.links
    graph = links.graph()
    assert {frozenset(ends) for ends in graph.edges()} == {frozenset(ends) for ends in expected}
    assert links.num_machines == len(rows) and links.num_nodes == len({end for ends in expected for end in ends})
    assert networkx.is_strongly_connected(graph)
    return networkx.DiGraph(graph)


def test_a_small_table_by_hand():
    """7 hosts, 4 leaves, 2 aggregation switches, 1 core; 2 x 100 below a leaf, 100 above; 200 below P1 and above it."""
    topology = hosts()
    links = topology.links
    brute_force(topology, HOSTS)
    assert (topology.num_gpus, topology.num_machines, topology.num_racks, links.num_links) == (
        56,
        7,
        4,
        2 * (7 + 4 + 2),
    )
    assert topology.rack_machines.tolist() == [2, 2, 2, 1]  # racks of one pod are neighbours
    assert [links.node_names[node] for node in links.machine_node] == ["a0", "a1", "a2", "a3", "b0", "b1", "b2"]
    room = capacities(links)
    assert room["a0", "C/P1/S1"] == 100.0 and room["C/P1/S1", "C/P1"] == room["C/P1", "C/P1/S1"] == 100.0
    assert room["C/P2/S2", "C/P2"] == 50.0 and room["C/P1", "C"] == 200.0 and room["C/P2", "C"] == 150.0
    assert topology.tiers[2].bandwidth_gbps == 100.0 and topology.tiers[3].oversubscription == 2.0
    assert topology.about == (
        "7 hosts, 1 core, 2 aggregation, 4 leaf, 26 links; assumed: 8 GPUs and 1 NIC of 100 Gbps a host, 2:1 at leaf, "
        "1:1 at aggregation, 1 cable from switch to switch, names of switches nested"
    )
    assert topology.about in describe_topology(f"hosts:gpus=8,nic_gbps=100,oversubscription=2,file={HOSTS}")


def test_a_name_may_be_one_switch_wherever_it_stands():
    """S1 has a0, a1, b0, b1: 400 below, 200 above, half of it to P1 and half to P2, as 2:1; S2 has 300 and 150."""
    topology = hosts("gpus=8,nic_gbps=100,oversubscription=2/5,names=unique")
    brute_force(topology, HOSTS, "unique")
    room = capacities(topology.links)
    assert topology.rack_machines.tolist() == [4, 3]
    assert room["S1", "P1"] == room["S1", "P2"] == 100.0 and room["S2", "P2"] == 75.0
    assert room["P1", "C"] == pytest.approx((100 + 75) / 5)


def test_cables_and_nics_of_hosts():
    """4 NICs of 50 Gbps: 400 below a leaf of two hosts, 100 above it at 4:1 in two cables of 50."""
    topology = hosts("gpus=4,nics=4,oversubscription=4,uplinks=2")
    links = topology.links
    up = [link for link, name in enumerate(links.link_names) if name.startswith("C/P1/S1->C/P1")]
    assert links.nics == 4 and links.num_links == 2 * (7 * 4 + 2 * (4 + 2))
    assert (links.capacity[up] == 50 * GBPS).all() and len(up) == 2
    used = Counter(link for end in range(16, 28) for link in route(links, 0, end) if link in up)
    assert sorted(used.values()) == [6, 6]  # 12 NICs of other pods, by destination


def test_paths_may_hold_commas(tmp_path):
    path = tmp_path / "a,nics=2,b.csv"
    shutil.copy(HOSTS, path)
    assert hosts("gpus=8", path).links.nics == 1
    assert Topology.load(f"hosts:file={path}").num_gpus == 56


def test_the_list_knows_hosts():
    row = next(row for row in list_topologies() if row["name"] == "hosts")
    assert row["gpus"] is None and list(row["parameters"])[-1] == "file" and row["summary"].endswith(".")
    json.dumps(row)


HEAD = "host,core,leaf\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the file is empty; expected a csv table of hosts"),
        ("host\nx\n", "line 1: 1 columns; expected a host and 1 to 8 switches"),
        ("host," + ",".join("abcdefghi") + "\n", "line 1: 10 columns"),
        ("host,core,core\n", "line 1, column 3: 'core', expected a name that is there once"),
        ("host,,leaf\n", "line 1, column 2: ''"),
        (HEAD, "a header but no rows"),
        (HEAD + "a,C,S\na,C,S\n", "line 3, column host: host 'a' is in line 2; expected once"),
        (
            HEAD + "a,C,S\nb,S,T\n",
            "line 3, column core: 'S' is in column leaf in line 2; expected a switch of one layer",
        ),
        (HEAD + "a,C,S\nb,C\n", "line 3: 2 values; expected 3"),
        (HEAD + "a,C,S\nb, ,S\n", "line 3, column core: '', expected a name of 1 to 200 characters"),
        (HEAD + "a,C," + "x" * 201 + "\n", "line 2, column leaf: 'xxx"),
        (HEAD + "a,C,\x1b[31m\n", "line 2, column leaf"),
        (HEAD + 'a,C,"S\n', "not csv"),
        (HEAD + "a,C,S/T\n", "line 2, column leaf: 'S/T', expected a name of 1 to 200 characters, without /"),
        (HEAD + "a,C,S\nS,C,S\n", "line 3, column host: 'S' is a switch of column leaf in line 2"),
        (HEAD + "a,C,S\nb,D,T\n", "machine 'a' cannot reach machine 'b', expected a connected network"),
    ],
)
def test_tables_that_cannot_be_used_are_one_sentence(text, says, tmp_path):
    path = tmp_path / "hosts.csv"
    path.write_text(text)
    with pytest.raises(InputError) as failure:
        hosts("gpus=8", path)
    assert says in str(failure.value) and str(path) in str(failure.value) and "\n" not in str(failure.value)


def test_files_that_are_none_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(2**30)
    (tmp_path / "binary").write_bytes(b"host,leaf\n\x00,S\n")
    (tmp_path / "latin").write_bytes(b"host,leaf\n\xe4,S\n")
    for name, says in (
        ("pipe", "pipe or a device"), ("huge", "expected at most"), ("binary", "line 2: a NUL byte"),
        ("latin", "line 2: byte 0xe4 is not UTF-8"), ("nothing", "no such file"), ("", "is a folder"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=says):
            read_hosts(tmp_path / name)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("gpus=0", "gpus = 0, expected a whole number of at least 1"),
        ("gpus=2,nics=4", "nics = 4, expected at most 2 GPUs"),
        ("uplinks=65", "uplinks = 65, expected at most 64"),
        ("nic_gbps=0", "nic_gbps = 0.0, expected more than 0"),
        ("oversubscription=0.5", "oversubscription = 0.5, expected at least 1"),
        ("oversubscription=inf", "oversubscription = inf, expected at least 1 and at most"),
        ("oversubscription=1/2/3", "oversubscription = 1/2/3, expected at most 2"),
        ("names=mine", "unknown value of topology hosts: names 'mine'"),
        ("gpus=999999", "GPUs are too many"),
        ("colour=red", "unknown parameter 'colour'"),
    ],
)
def test_options_out_of_range_are_refused(options, says):
    with pytest.raises(InputError, match=says):
        hosts(options)


def test_a_file_is_asked_for():
    with pytest.raises(InputError, match="file is missing; write it last"):
        Topology.load("hosts:gpus=8")


@needs_lingjun
@pytest.mark.parametrize(("names", "leaves"), [("nested", 119), ("unique", 48)])
def test_lingjun_by_brute_force(names, leaves):
    """847 hosts, 119 pairs of PSW and ASW (48 names of ASW), 3 PSW, 1 DSW; 2:1 at every leaf, 1:1 above."""
    topology = hosts(f"gpus=8,nic_gbps=100,oversubscription=2,names={names}", LINGJUN)
    links = topology.links
    plain = brute_force(topology, LINGJUN, names)
    assert (topology.num_machines, topology.num_gpus, topology.num_racks) == (847, 6776, leaves)
    switches = [name for name, kind in links.graph().nodes(data="kind") if kind == "switch"]
    assert len(switches) == leaves + 4
    room = capacities(links)
    hosts_of = set(links.node_names) - set(switches)
    for switch in switches:
        below = sum(gbps for (start, end), gbps in room.items() if end == switch and links_up(plain, start, switch))
        above = sum(gbps for (start, end), gbps in room.items() if start == switch and links_up(plain, switch, end))
        if above:
            assert below / above == pytest.approx(2.0 if any(name in hosts_of for name in plain[switch]) else 1.0)
    draw = np.random.default_rng(1)
    for start, end in draw.integers(0, 847, (300, 2)).tolist():
        ends = (links.node_names[links.machine_node[machine]] for machine in (start, end))
        assert len(route(links, start, end)) == networkx.shortest_path_length(plain, *ends)


def links_up(graph, start, end):
    """Whether a cable leads towards the core: the other end is nearer to it."""
    far = graph.graph.setdefault("far", networkx.shortest_path_length(graph, target=core_of(graph)))
    return far[start] > far[end]


def core_of(graph):
    return next(name for name in graph if name in ("G6", "C"))


# Played


def test_large_gangs_fill_machines_and_are_played_in_both_modes():
    """Gangs of 8 and 16 on hosts of 8: whole hosts; one alone takes what the workload says, in either mode."""
    workload = open_workload(
        "cassini-poisson:jobs=30,cluster_gpus=56,load=0.9,gangs=8/16,gpus_per_machine=8,gbps=90,models=VGG16/BERT/DLRM",
        seed=1,
    )
    assert set(workload.gpus) == {8, 16}
    found = {}
    for mode in ("dedicated", "exact", "averaged"):
        simulator = Simulator(hosts(), f"contention:gbps=90,mode={mode}")
        simulator.reset(workload, 0)
        simulator.run(make("themis:workers=fixed"))
        assert simulator.done
        found[mode] = simulator.metrics()["jct_mean"]
    assert found["exact"] >= found["dedicated"] * (1 - 1e-9) and found["averaged"] >= found["dedicated"] * (1 - 1e-9)


def test_iterations_of_large_gangs_are_those_of_the_network():
    """What the generator takes an iteration for is what it takes on two hosts, or inside one, to rounding."""
    topology = hosts()
    simulator = Simulator(topology, "contention:gbps=90")
    workload = open_workload("cassini-poisson:jobs=40,cluster_gpus=56,gangs=8/16/24,gpus_per_machine=8,gbps=90", seed=2)
    for job in range(40):
        gpus = np.arange(int(workload.gpus[job]))
        phases, use = simulator.network.alone(topology, workload, job, gpus)
        assert phases.iteration_s == pytest.approx(workload.iteration_s[job], rel=1e-5) or len(use.links)
        if "DLRM" not in workload.model[job]:  # whose all-to-all is more than a NIC takes
            assert phases.iteration_s == pytest.approx(workload.iteration_s[job], rel=1e-5)
        assert (len(use.links) == 0) == (len(gpus) == 8)


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("gangs=8/64,cluster_gpus=32", "gangs=8/64; expected numbers from 1 to 32, each once"),
        ("gangs=8/8", "gangs=8/8; expected numbers"),
        ("gangs=0/8", "gangs=0/8; expected numbers"),
        ("gpus_per_machine=0", "gpus_per_machine=0; expected a number above 0"),
        ("gbps=-1", "gbps=-1; expected a number above 0"),
    ],
)
def test_gangs_out_of_range_are_refused(word, says):
    with pytest.raises(InputError, match=says):
        open_workload(f"cassini-poisson:{word}")


def test_load_with_gangs_is_what_is_offered():
    word = "cassini-poisson:jobs=4000,load=0.9,cluster_gpus=6776,gangs=8/16/32/64,gpus_per_machine=8,gbps=90"
    workload = open_workload(word, seed=3)
    assert np.bincount(workload.gpus)[[8, 16, 32, 64]] / 4000 == pytest.approx([0.25] * 4, abs=0.03)
    offered = (workload.gpus * workload.duration_s).sum() / (6776 * workload.arrival_s[-1])
    assert offered == pytest.approx(0.9, rel=0.05)
