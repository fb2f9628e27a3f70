"""Topologies: index arrays, labels, presets. Numbers are worked out by hand in the docstrings."""

import math
import pickle

import numpy as np
import pytest

from clustergym.simulator.base.errors import InputError
from clustergym.simulator.base.tiers import TIER_NAMES
from clustergym.simulator.cluster.presets import PRESETS, list_topologies
from clustergym.simulator.cluster.topology import MAX_GPUS, Tier, Topology

UNEVEN = {
    "name": "uneven",
    "regions": [
        {
            "name": "east",
            "clusters": [
                {
                    "name": "a",
                    "gpu_type": "V100",
                    "racks": [{"machines": [{"count": 2, "slots": 2, "gpus_per_slot": 1}, {"gpus_per_slot": 3}]}],
                },
                {"name": "b", "racks": [{"count": 2, "machines": [{"gpus_per_slot": 1}]}]},
            ],
        },
        {"name": "west", "clusters": [{"name": "a", "racks": [{"machines": [{"gpus_per_slot": 2}]}]}]},
    ],
}


def test_dally_default_is_two_racks_of_eight_machines_of_two_slots_of_four():
    """2 x 8 machines x 8 GPUs = 128; GPU 100 is in machine 12 (100 // 8), slot 25, rack 1."""
    topology = Topology.load("dally")
    assert (topology.num_gpus, topology.num_slots, topology.num_machines, topology.num_racks) == (
        128,
        32,
        16,
        2,
    )
    assert (topology.gpu_machine[100], topology.gpu_slot[100], topology.gpu_rack[100]) == (12, 25, 1)
    assert topology.gpu_label(100) == "1.4.4"
    assert topology.rack_gpus.tolist() == [64, 64]


def test_flat_is_one_rack():
    topology = Topology.load("flat:machines=3,gpus_per_machine=4,slots=2")
    assert topology.num_racks == 1
    assert topology.gpu_slot.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert topology.machine_first_gpu.tolist() == [0, 4, 8]


def test_uneven_spec_gives_these_arrays():
    """East a: machines of 1+1, 1+1, 3 GPUs; east b: two racks of one GPU; west a: one machine of 2: 11."""
    topology = Topology.from_spec(UNEVEN)
    assert topology.gpu_slot.tolist() == [0, 1, 2, 3, 4, 4, 4, 5, 6, 7, 7]
    assert topology.gpu_machine.tolist() == [0, 0, 1, 1, 2, 2, 2, 3, 4, 5, 5]
    assert topology.slot_machine.tolist() == [0, 0, 1, 1, 2, 3, 4, 5]
    assert topology.machine_rack.tolist() == [0, 0, 0, 1, 2, 3]
    assert topology.rack_cluster.tolist() == [0, 1, 1, 2]
    assert topology.cluster_region.tolist() == [0, 0, 1]
    assert topology.machine_gpus.tolist() == [2, 2, 3, 1, 1, 2]
    assert topology.rack_gpus.tolist() == [7, 1, 1, 2]
    assert topology.gpu_cluster.tolist() == [0] * 7 + [1, 1, 2, 2]
    assert topology.cluster_gpu_type == ("V100", "", "")


def test_labels_carry_region_and_cluster_only_if_there_are_several():
    topology = Topology.from_spec(UNEVEN)
    assert [topology.gpu_label(gpu) for gpu in (0, 6, 8, 10)] == [
        "east.a.0.0.0",
        "east.a.0.2.2",
        "east.b.1.0.0",
        "west.a.0.0.1",
    ]
    assert Topology.load("flat").gpu_label(9) == "0.1.1"


@pytest.mark.parametrize("source", ["dally", "flat:machines=3,gpus_per_machine=5", UNEVEN], ids=str)
def test_gpu_index_inverts_gpu_label(source):
    topology = Topology.load(source)
    assert [topology.gpu_index(topology.gpu_label(gpu)) for gpu in range(topology.num_gpus)] == list(
        range(topology.num_gpus)
    )


@pytest.mark.parametrize(
    ("label", "says"),
    [
        ("", "rack.machine.gpu"),
        ("1.2", "rack.machine.gpu"),
        ("a.b.c", "whole numbers"),
        ("0.0.-1", "whole numbers"),
        ("x.0.0.0", "beginning with"),
        ("2.0.0", "rack 2 does not exist, expected 0 to 1"),
        ("0.8.0", "machine 8 does not exist, expected 0 to 7"),
        ("0.0.8", "gpu 8 does not exist, expected 0 to 7"),
        ("0.0." + "9" * 5000, "does not exist"),
        ("0.0.²", "whole numbers"),
        (None, "rack.machine.gpu"),
    ],
)
def test_a_label_of_no_gpu_is_one_sentence(label, says):
    with pytest.raises(InputError, match=says):
        Topology.load("dally").gpu_index(label)


@pytest.mark.parametrize("gpu", [-1, 128])
def test_gpu_label_refuses_what_does_not_exist(gpu):
    with pytest.raises(InputError, match="has GPUs 0 to 127"):
        Topology.load("dally").gpu_label(gpu)


def test_graph_is_the_tree_with_tier_attributes():
    """1 network + 1 region + 1 cluster + 2 racks + 16 machines + 32 slots + 128 GPUs = 181 nodes, a tree."""
    networkx = pytest.importorskip("networkx")
    topology = Topology.load("dally")
    graph = topology.graph()
    assert graph.number_of_nodes() == 181
    assert networkx.is_arborescence(graph)
    assert graph.edges[("rack", 1), ("machine", 8)]["bandwidth_gbps"] == 400.0
    assert graph.edges[("machine", 12), ("slot", 25)]["tier"] == "machine"
    assert graph.nodes[("gpu", 100)]["label"] == "1.4.4"
    leaves = [node for node in graph if graph.out_degree(node) == 0]
    assert leaves == [("gpu", gpu) for gpu in range(128)]


def test_dally_tiers_are_those_of_the_paper():
    """Paper dally, Sec. III-C: NVSwitch 900, Quantum 400, Spectrum 800 Gb/s."""
    tiers = Topology.load("dally").tiers
    assert tuple(tier.name for tier in tiers) == TIER_NAMES
    assert [tier.bandwidth_gbps for tier in tiers[1:]] == [900.0, 400.0, 800.0]
    assert all(math.isnan(tier.oversubscription) for tier in tiers)


def test_equality_compares_content_and_unknown_numbers_are_equal():
    assert Topology.load("flat:machines=2") == Topology.load("flat:machines=2")
    assert hash(Topology.load("flat:machines=2")) == hash(Topology.load("flat:machines=2"))
    assert Topology.load("flat:machines=2") != Topology.load("flat:machines=3")
    assert Topology.load("flat:slots=2") != Topology.load("flat")
    assert Topology.from_spec(UNEVEN) == Topology.from_spec(UNEVEN)
    assert Tier("rack", float("nan")) == Tier("rack", float("nan"))
    assert Tier("rack", 1.0) != Tier("rack")
    assert Topology.load("flat") != "flat"


def test_it_is_frozen_and_survives_pickling():
    topology = Topology.load("dally")
    with pytest.raises(AttributeError):
        topology.name = "other"
    with pytest.raises(ValueError, match="read-only"):
        topology.gpu_slot[0] = 1
    assert pickle.loads(pickle.dumps(topology)) == topology


def test_repr_is_short():
    assert repr(Topology.load("dally:racks=1")) == "<Topology dally: 1 rack, 8 machines, 64 GPUs>"
    assert "2 regions, 3 clusters, 4 racks, 6 machines, 11 GPUs" in repr(Topology.from_spec(UNEVEN))


def test_a_topology_may_have_a_hundred_thousand_gpus():
    """How soon it is there `clustergym bench start` tells."""
    topology = Topology.load("dally:racks=1563")
    assert topology.num_gpus == 1563 * 64


def test_load_gives_back_a_topology():
    topology = Topology.load("flat")
    assert Topology.load(topology) is topology


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("dalyl", "did you mean 'dally'"),
        ("torus", "known: bsbf-physical, bsbf-simulation, cassini-testbed, .*leaf-spine, mast, nodes; or the path of"),
        ("", "empty"),
        ("dally:racks", "not key=value"),
        ("dally:rcks=2", "did you mean 'racks'"),
        ("dally:racks=0", "racks = 0, expected a whole number of at least 1"),
        ("dally:racks=-3", "at least 1"),
        ("dally:racks=two", "whole number"),
        ("dally:racks=2,racks=3", "given twice"),
        ("dally:slots=3", "does not divide"),
        ("dally:racks=1000000", "64000000 GPUs are too many"),
        ("flat:machine_order=random", "machine_order = 'random': expected natural, or a whole number, the seed"),
        ("dally:machine_order=-1", "topology dally: machine_order = '-1': expected natural"),
        ("dally:machine_order=1.5", "expected natural, or a whole number"),
        ("dally:machine_order=" + "9" * 19, "expected natural, or a whole number"),
        ("dally:machine_order=²", "expected natural, or a whole number"),
        ("./nowhere/spec.yaml", "there is no such file"),
        (42, "expected a preset, a mapping or a path"),
        (None, "expected a preset"),
    ],
)
def test_a_bad_source_is_one_sentence(source, says):
    with pytest.raises(InputError, match=says) as raised:
        Topology.load(source)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("bad", [0, -1, 2.0, True, "2", 10**30])
def test_presets_check_counts_from_python_too(bad):
    with pytest.raises(InputError):
        PRESETS["dally"](machines=bad)


@pytest.mark.parametrize("bad", [True, 7.0, -7, 10**18, 10**5000, None, [7]], ids=lambda bad: type(bad).__name__)
def test_a_machine_order_from_python_is_checked_too(bad):
    with pytest.raises(InputError, match="expected natural, or a whole number") as raised:
        PRESETS["dally"](machine_order=bad)
    assert len(str(raised.value)) < 200


def test_machine_scan_is_the_seeded_permutation_of_all_machines():
    """numpy's own permutation of 16 machines with seed 7; racks are mixed, and the GPUs keep their numbers."""
    natural, shuffled = Topology.load("dally"), Topology.load("dally:machine_order=7")
    assert natural.machine_scan.tolist() == list(range(16))
    assert shuffled.machine_scan.tolist() == np.random.default_rng(7).permutation(16).tolist()
    assert shuffled.machine_scan.dtype == np.int64
    assert not shuffled.machine_scan.flags.writeable
    assert np.array_equal(natural.gpu_machine, shuffled.gpu_machine)
    assert sorted(Topology.load("flat:machines=5,machine_order=0").machine_scan.tolist()) == list(range(5))


def test_machine_orders_are_told_apart_and_survive():
    """Equal seeds are one topology, however they are written; others are not, and so neither are their results."""
    seven = Topology.load("dally:machine_order=7")
    assert seven == Topology.load("dally:machine_order=007") == PRESETS["dally"](machine_order=np.int64(7))
    assert seven != Topology.load("dally:machine_order=8")
    assert seven != Topology.load("dally") == Topology.load("dally:machine_order=natural")
    copy = pickle.loads(pickle.dumps(seven))
    assert copy.machine_scan.tolist() == seven.machine_scan.tolist()
    assert "machine order 7" in repr(seven)


def test_presets_take_numpy_integers():
    assert PRESETS["flat"](machines=np.int64(2)).num_machines == 2


def test_list_topologies_lists_what_loads():
    listed = list_topologies()
    assert [entry["name"] for entry in listed] == [
        "flat", "dally", "bsbf-physical", "bsbf-simulation", "harmony",
        "cassini-testbed", "cassini-two-gpu", "fat-tree", "leaf-spine", "hosts", "nodes", "mast",
    ]  # fmt: skip
    for entry in listed:
        if entry["gpus"] is None:  # it depends on a file
            assert "file" in entry["parameters"]
            continue
        topology = Topology.load(entry["name"])
        assert topology.num_gpus - topology.num_cpu_machines == entry["gpus"]
        assert entry["summary"].endswith(".")
    assert listed[1]["parameters"]["racks"] == 2


def test_the_cluster_of_paper_harmony():
    """Sec. V-B: 100 machines on 1.1 Gbps, each one unit."""
    topology = Topology.load("harmony")
    assert (topology.num_machines, topology.num_gpus, topology.num_racks) == (100, 100, 1)
    assert {tier.name: tier.bandwidth_gbps for tier in topology.tiers}["rack"] == 1.1


@pytest.mark.parametrize(("name", "machines"), [("bsbf-physical", 4), ("bsbf-simulation", 16)])
def test_the_clusters_of_paper_bsbf(name, machines):
    """Sec. VI-A: 4 machines, simulated 16, of four 2080 Ti each, on 10 Gbps."""
    topology = Topology.load(name)
    assert (topology.num_machines, topology.num_gpus, topology.num_racks) == (machines, 4 * machines, 1)
    assert topology.cluster_gpu_type == ("2080ti",)
    assert {tier.name: tier.bandwidth_gbps for tier in topology.tiers}["rack"] == 10


@pytest.mark.parametrize(
    "counts",
    [
        {"slot_gpus": [], "machine_slots": [], "rack_machines": []},
        {"slot_gpus": [1, 1], "machine_slots": [1], "rack_machines": [1]},
        {"slot_gpus": [1], "machine_slots": [1], "rack_machines": [2]},
        {"slot_gpus": [0], "machine_slots": [1], "rack_machines": [1]},
        {"slot_gpus": [1.5], "machine_slots": [1], "rack_machines": [1]},
        {"slot_gpus": [MAX_GPUS + 1], "machine_slots": [1], "rack_machines": [1]},
        {"slot_gpus": [1], "machine_slots": [1], "rack_machines": [1], "cluster_names": ["a", "b"]},
        {"slot_gpus": [1], "machine_slots": [1], "rack_machines": [1], "tiers": [Tier("rack")]},
        {"slot_gpus": [1], "machine_slots": [1], "rack_machines": [1], "machine_order": "reverse"},
    ],
)
def test_from_counts_refuses_what_does_not_add_up(counts):
    with pytest.raises(InputError):
        Topology.from_counts("bad", **counts)
