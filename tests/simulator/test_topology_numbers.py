"""What a user writes about a topology's tiers, links and GPUs acts in network allreduce, or one sentence says no."""

from __future__ import annotations

import warnings

import networkx
import numpy as np
import pytest

from clustergym.envs.delay.env import DelayEnv
from clustergym.experiments.cli import run
from clustergym.experiments.commands.options import described_setting
from clustergym.experiments.inspecting.placement_explained import explain
from clustergym.simulator.base import said_once
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.base.said_once import SettingWarning
from clustergym.simulator.base.tiers import RACK, SLOT
from clustergym.simulator.cluster.presets import PRESETS
from clustergym.simulator.cluster.topology import Tier, Topology
from clustergym.simulator.configuration.network_choice import load_network, on_topology
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.workloads import Workload
from clustergym.tests.support.paths import DATA

NCF_BYTES = 6_410_628
MESSAGE_NS = 20_000  # of `measured`: two links of a switch, 10 us each


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch):
    monkeypatch.setattr(said_once, "_said", set())


@pytest.fixture
def said():
    """The sentences of this test, each as often as it is said."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SettingWarning)
        sentences: list[str] = []
        yield lambda: sentences + [str(one.message) for one in caught if one.category is SettingWarning]


def spec(**rack):
    """Two machines of two GPUs in one rack."""
    return {"name": "mine", "machines": 2, "gpus_per_slot": 2, "tiers": [{"name": "rack", **rack}] if rack else []}


def ncf_ns(latency_ns, gb_s):
    """An iteration of ncf on two members: one bucket, two steps of half its bytes behind the backward pass."""
    compute_ns = load_network("allreduce").layers_of("ncf").compute_ns
    return compute_ns + 2 * int(latency_ns + NCF_BYTES // 2 / gb_s)


@pytest.mark.parametrize(("gbps", "gb_s"), [(None, 0.406), (400, 3.248), (50, 0.406), (0.001, 8.12e-6)])
def test_measured_scales_by_the_bandwidth_it_was_measured_on(gbps, gb_s):
    """0.406 GB/s were measured on 50 Gbit/s: 400 Gbit/s are 8 times, 1 Mbit/s 1 / 50,000 of it; machines keep 1.75."""
    simulator = Simulator(spec(bandwidth_gbps=gbps), "allreduce")
    job = Workload.from_arrays("one", [0.0], [2], [100.0], model=np.array(["ncf"], dtype=object))
    simulator.reset(job)
    factors = simulator.state.tier_factor[simulator.state.profile[0]]
    assert factors[RACK] / factors[SLOT] == pytest.approx(ncf_ns(MESSAGE_NS, gb_s) / ncf_ns(MESSAGE_NS, 1.75), rel=1e-9)


def test_a_bandwidth_a_latency_and_an_oversubscription_replace_those_of_artist():
    """100 Gbit/s are 12.5 GB/s, halved by 2:1; a message between racks waits 30 us in all, 15 on each of two links."""
    network = load_network("allreduce:calibration=artist")
    topology = Topology.load(
        "dally:bandwidth_gbps=none/none/100/none,latency_us=none/0/7/30,oversubscription=none/none/2/4"
    )
    own, now = network.calibration.fabric.tiers, on_topology(network, topology).calibration.fabric.tiers
    assert now[0] == own[0]
    assert (now[1].bandwidth_gb_s, now[1].latency_ns) == (own[1].bandwidth_gb_s, 0)
    assert (now[2].bandwidth_gb_s, now[2].latency_ns) == (6.25, 7000)
    assert (now[3].bandwidth_gb_s, now[3].latency_ns) == (own[3].bandwidth_gb_s / 4, 15000)
    assert now[3].message_latency_ns == 30000


def test_numbers_act_once_however_often_the_network_meets_the_topology():
    topology = Topology.from_spec(spec(oversubscription=2))
    once = on_topology(load_network("allreduce"), topology)
    twice = on_topology(once, topology)
    assert once.notes == twice.notes == ("rack: bandwidth 0.406 -> 0.203 GB/s (measured on 50 Gbit/s)",)
    assert explain(once, "ncf", (0, 0, 2, 0)).duration_ns == ncf_ns(MESSAGE_NS, 0.203)


def test_fits_of_a_t4_take_longer_by_the_ratio_of_bandwidths_and_the_oversubscription(said):
    """Between machines 50 / 25 x 3 times as long, inside 128 / 64; slots, racks and latencies are not in the fits."""
    plain = load_network("allreduce:gpu=t4")
    topology = Topology.load(
        "flat:bandwidth_gbps=none/64/25/none,oversubscription=none/none/3/none,latency_us=none/none/9/none"
    )
    network = on_topology(plain, topology)
    before, after = plain.fit_rows(["ncf"])[0], network.fit_rows(["ncf"])[0]
    assert (after[2:4] == 2 * before[2:4]).all() and (after[4:6] == 6 * before[4:6]).all()
    assert (after[[0, 1, 6, 7, 8]] == before[[0, 1, 6, 7, 8]]).all()
    assert network.notes == (
        "communication in a machine takes 2 times as long",
        "communication between machines takes 6 times as long",
    )
    word = "allreduce:calibration=measured,gpu=t4,duration=isolated"
    assert said() == [f"topology 'flat': network {word} does not use latency_us of rack"]


def test_fits_of_a_cluster_with_unstated_links_do_not_use_bandwidths(said):
    network = load_network("allreduce:gpu=a100")
    assert on_topology(network, Topology.from_spec(spec(bandwidth_gbps=10))).longer == (1.0, 1.0)
    word = "allreduce:calibration=measured,gpu=a100,duration=isolated"
    assert said() == [f"topology 'mine': network {word} does not use bandwidth_gbps of rack"]


@pytest.mark.parametrize(
    "network", ["none", "penalty", "allreduce", "allreduce:calibration=artist", "allreduce:gpu=t4"]
)
@pytest.mark.parametrize("preset", sorted({*PRESETS, f"hosts:file={DATA / 'hosts.csv'}"} - {"hosts", "nodes"}))
def test_presets_change_nothing_and_are_silent(preset, network, said):
    plain = load_network(network)
    assert on_topology(plain, Topology.load(preset)) is plain
    assert not said()


@pytest.mark.parametrize("network", ["none", "penalty"])
def test_what_a_network_does_not_use_is_named_once(network, said):
    """Five simulators, ten resets and two copies of an environment: one sentence."""
    mapping = spec(bandwidth_gbps=10, latency_us=5) | {"gpu_type": "K80"}
    job = Workload.from_arrays("one", [0.0], [1], [1.0])
    for _ in range(5):
        simulator = Simulator(mapping, network)
        for _ in range(2):
            simulator.reset(job)
    for _ in range(2):
        DelayEnv(mapping, job, network).reset(seed=0)
    assert said() == [
        f"topology 'mine': network {network} does not use gpu_type, bandwidth_gbps of rack, latency_us of rack"
    ]


def test_allreduce_uses_everything_but_the_type_of_gpus(said):
    on_topology(load_network("allreduce"), Topology.from_spec(spec(bandwidth_gbps=10) | {"gpu_type": "K80"}))
    assert said() == ["topology 'mine': network allreduce:calibration=measured,duration=isolated does not use gpu_type"]


def test_the_command_line_says_so_on_one_line_and_the_header_what_acts(tmp_path, capsys):
    path = tmp_path / "mine.yaml"
    path.write_text("{machines: 2, gpus_per_slot: 2, gpu_type: K80, tiers: [{name: rack, bandwidth_gbps: 25}]}")
    words = ["evaluate", "Delay", "--policies", "fifo", "--topology", str(path), "--seeds", "0,1", "--workload"]
    words += ["dally-like:jobs=9", "--oversize", "cap", "--network", "allreduce:calibration=artist"]
    assert run(words) == 0
    out, err = capsys.readouterr()
    assert "rack: bandwidth 214.7 -> 3.125 GB/s" in " ".join(out.split())
    assert [line for line in err.splitlines() if "topology" in line] == [
        "clustergym: warning: topology 'mine': network allreduce:calibration=artist,duration=isolated does not use "
        "gpu_type"
    ]
    assert run([*words, "--quiet"]) == 0
    assert "warning" not in capsys.readouterr().err


def test_links_of_a_graph_are_numbers_of_its_tiers(said):
    """Two leaves of two machines on 40 and 100 Gbit/s, 25 and 50 up to the core: 140 / 25 at the second leaf."""
    graph = networkx.Graph()
    for machine, (leaf, gbps) in enumerate([(0, 40), (0, 40), (1, 100), (1, 40)]):
        graph.add_node(f"m{machine}", gpus=2)
        graph.add_edge(f"m{machine}", f"leaf{leaf}", capacity_gbps=gbps)
    for leaf, gbps in enumerate((50, 25)):
        graph.add_edge(f"leaf{leaf}", "core", capacity_gbps=gbps)
    topology = Topology.from_graph(graph)
    rack, network = Tier("rack", 40.0), Tier("network", 25.0, oversubscription=5.6)
    assert topology.tiers == topology.written.tiers == (Tier("slot"), Tier("machine"), rack, network)
    now = on_topology(load_network("allreduce:calibration=artist"), topology).calibration.fabric.tiers
    assert [link.bandwidth_gb_s for link in now[2:]] == [5.0, pytest.approx(25 / 8 / 5.6)]
    on_topology(load_network("contention"), topology)
    assert not said()
    on_topology(load_network("none"), topology)
    assert said() == ["topology 'custom': network none does not use capacity_gbps"]


def test_a_capacity_that_is_a_presets_argument_acts_and_its_default_does_not():
    """4 machines on 100 Gbit/s share two uplinks of 50: 4:1."""
    given, default = Topology.load("leaf-spine:link_gbps=100"), Topology.load("leaf-spine")
    assert given.written.tiers[2:] == (Tier("rack", 100.0), Tier("network", 50.0, oversubscription=4.0))
    assert default.tiers[2:] == (Tier("rack", 50.0), Tier("network", 50.0, oversubscription=2.0))
    assert Topology.load("leaf-spine:link_gbps=50") != default == Topology.load("leaf-spine:link_gbps=none")


def test_the_gpu_type_of_a_preset_is_not_the_users(said):
    """Only the capacity was written, and contention uses that."""
    assert not Topology.load("cassini-testbed:link_gbps=45").written.gpu_type
    on_topology(load_network("contention"), Topology.load("cassini-testbed:link_gbps=45"))
    assert not said()


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("dally:bandwidth_gbps=1/2/3", "bandwidth_gbps = '1/2/3', expected SLOT/MACHINE/RACK/NETWORK"),
        ("dally:bandwidth_gbps=none/none/0/1", "bandwidth_gbps = 0, expected a finite number more than 0"),
        ("flat:bandwidth_gbps=none/none/inf/1", "bandwidth_gbps = inf, expected a finite number more than 0"),
        ("flat:latency_us=none/none/-1/1", "latency_us = -1, expected at least 0 and at most 1e+06"),
        ("bsbf-physical:oversubscription=none/none/0.5/1", "oversubscription = 0.5, expected at least 1"),
        ("bsbf-simulation:latency_us=none/none/x/1", "latency_us = 'x': expected a number"),
    ],
)
def test_bad_numbers_of_a_preset_are_one_sentence(word, expected):
    with pytest.raises(InputError) as raised:
        Topology.load(word)
    assert expected in str(raised.value)


def test_a_bandwidth_that_no_time_can_be_computed_with_is_refused():
    topology = Topology.from_spec(spec(bandwidth_gbps=1e-12))
    with pytest.raises(InputError, match=r"tier rack has .* Gbit/s in effect, expected at least"):
        on_topology(load_network("allreduce"), topology)


# Calibrations


def test_measured_is_the_calibration_unless_the_semantics_are_the_authors():
    assert load_network("allreduce").describe() == load_network("allreduce:calibration=measured").describe()
    setting = described_setting("Delay", "dally-like:jobs=3", assignments=["semantics=artist-sim"])
    assert setting.network == "allreduce:calibration=artist"


def test_models_whose_compute_is_another_gpus_are_named_once(said):
    models = np.array(["VGG", "BERT", "MobileNetV3", "imagenet"], dtype=object)
    workload = Workload.from_arrays("four", [0.0] * 4, [2] * 4, [9.0] * 4, model=models)
    for _ in range(2):
        load_network("allreduce").tier_factors(workload, Topology.load("flat"))
        load_network("allreduce:calibration=artist").tier_factors(workload, Topology.load("flat"))
    (sentence,) = said()
    assert "MobileNetV3 (a GPU not stated), VGG11 (V100) are extrapolated" in sentence and "cluster of T4" in sentence


@pytest.mark.parametrize(("model", "is_extrapolated"), [("VGG", True), ("ResNet18", True), ("imagenet", False)])
def test_the_communication_command_says_what_is_extrapolated(model, is_extrapolated, capsys):
    assert run(["communication", model, "--units", "2,0,2,0", "--calibration", "measured"]) == 0
    assert ("extrapolated: compute of" in " ".join(capsys.readouterr().out.split())) == is_extrapolated


def test_the_communication_command_goes_by_the_topology(capsys):
    place = ["--topology", "dally:bandwidth_gbps=none/none/100/none", "--gpus", "0,8"]
    assert run(["communication", "VGG", *place]) == 0
    assert "rack: bandwidth 214.7 -> 12.5 GB/s" in " ".join(capsys.readouterr().out.split())
