"""What `duration_s` means: the isolated run time on the best placement of the empty cluster, under every network."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clustergym.envs.delay.columns import QUEUE
from clustergym.envs.delay.env import DelayEnv
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.cluster.topology import Topology
from clustergym.simulator.configuration.network_choice import Contention, load_network
from clustergym.simulator.configuration.offered_load import offered_load
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.network.isolated import Shape, best_shape, innermost_tiers
from clustergym.simulator.profiles.measured_tables import read_tables
from clustergym.simulator.rules.rule import Rule
from clustergym.simulator.workloads import Workload, open_workload

RACKS = "dally:racks=2,machines=4"  # 64 GPUs: machines of 8, in slots of 4
NETWORKS = {  # network: a model that it knows
    "none": "",
    "penalty": "alexnet",
    "penalty:table=dally-table1": "MobileNetV3",
    "allreduce:calibration=artist": "MobileNetV3",
    "allreduce:calibration=measured": "VGG",
    "allreduce:calibration=measured,uneven=largest": "VGG",
    "allreduce:calibration=measured,gpu=2080ti": "deepspeech2",
    "allreduce:calibration=measured,gpu=a100": "imagenet",
}


def alone(topology, network, gpus, model="", semantics="events"):
    """A simulator whose one job of 1,000 s in 123 iterations has run, by fifo and the tightest placement."""
    simulator = Simulator(topology, network, rule=Rule("fifo", placer="tier"), semantics=semantics)
    optional = {"model": [model], "batch_size": [32 * gpus], "iterations": [123.0]}
    simulator.reset(Workload.from_arrays("alone", [0.0], [gpus], [1000.0], **optional))
    simulator.run()
    return simulator


@pytest.mark.parametrize("duration", ["isolated", "compute"])
@pytest.mark.parametrize("gpus", [1, 2, 4, 8, 12, 16, 32, 48])
@pytest.mark.parametrize("network", NETWORKS)
def test_alone_on_the_empty_cluster_no_job_is_slowed_down(network, gpus, duration):
    """Whatever the duration means. As isolated it is the time that the job takes; computing alone is no longer."""
    simulator = alone(
        RACKS, network + (":" if ":" not in network else ",") + f"duration={duration}", gpus, NETWORKS[network]
    )
    metrics, view = simulator.metrics(), simulator.view
    assert metrics["slowdown_mean"] == pytest.approx(1.0, rel=1e-12)
    assert metrics["finish_time_fairness_mean"] == pytest.approx(1.0, rel=1e-12)
    assert metrics["jct_mean"] == pytest.approx(view.isolated_s(0), rel=1e-12)
    computing_s = metrics["jct_mean"] - metrics["comm_time_mean"]
    if duration == "isolated":
        assert metrics["jct_mean"] == pytest.approx(1000.0, rel=1e-12) and computing_s <= 1000.0 * (1 + 1e-12)
    else:
        assert metrics["jct_mean"] >= 1000.0 * (1 - 1e-12) and computing_s == pytest.approx(1000.0, rel=1e-12)


@pytest.mark.parametrize(("gpus", "topology"), [(16, "leaf-spine"), (16, "fat-tree"), (12, "cassini-testbed")])
def test_alone_on_links_no_job_is_slowed_down(gpus, topology):
    simulator = alone(topology, "contention", gpus, "VGG16")
    assert simulator.metrics()["slowdown_mean"] == pytest.approx(1.0, rel=1e-6)


def test_on_links_computing_is_an_iteration_on_one_machine():
    """12 servers of one GPU: what the phases add to 1,000 s of computing is what they add to an iteration."""
    network = Contention(duration="compute")
    simulator = alone("cassini-testbed", network, 12, "VGG16")
    profile, factors = network.tier_factors(simulator.workload, simulator.topology)
    jct_s = simulator.metrics()["jct_mean"]
    assert jct_s == pytest.approx(1000.0 * factors[profile[0], 3], rel=1e-6) and jct_s > 1100.0
    assert simulator.metrics()["slowdown_mean"] == pytest.approx(1.0, rel=1e-6)


def test_the_factors_of_alexnet_by_hand():
    """16 GPUs on two machines of 8: 1 / 0.508 in a rack. Isolated 1,000 s are 508 s of computing; 1,000 s are 1,967."""
    in_rack = 1 / 0.5083145152293351
    isolated, compute = (alone(RACKS, f"penalty:duration={name}", 16, "alexnet") for name in ("isolated", "compute"))
    assert isolated.metrics()["jct_mean"] == pytest.approx(1000.0)
    assert isolated.metrics()["comm_time_mean"] == pytest.approx(1000.0 - 1000.0 / in_rack)
    assert compute.metrics()["jct_mean"] == pytest.approx(1000.0 * in_rack)
    assert compute.metrics()["comm_time_mean"] == pytest.approx(1000.0 * (in_rack - 1.0))


def test_a_gang_that_lies_worse_than_it_could_is_slowed_down():
    """alexnet: 8 GPUs take 1.967 times as long on two machines of a rack; 16 take two machines anyway."""
    simulator = Simulator(RACKS, "penalty")
    simulator.reset(Workload.from_arrays("two", [0.0, 0.0], [8, 16], [100.0, 100.0], model=["alexnet", "alexnet"]))
    in_rack, beyond = 1 / 0.5083145152293351, 1 / 0.26836765904968457
    assert [simulator.view.slowdown(0, tier) for tier in range(4)] == pytest.approx([1.0, 1.0, in_rack, beyond])
    assert [simulator.view.slowdown(1, tier) for tier in (2, 3)] == pytest.approx([1.0, beyond / in_rack])


def test_a_gang_that_no_machine_holds_shows_a_rack_as_its_best():
    """The queue's slowdowns inside a machine, a rack and across racks are relative to the isolated run time."""
    workload = Workload.from_arrays("two", [0.0, 0.0], [8, 16], [100.0, 100.0], model=["alexnet", "alexnet"])
    queue = DelayEnv(RACKS, workload, "penalty").reset(seed=0)[0]["queue"].reshape(-1, len(QUEUE))
    columns = [QUEUE.slowdown_machine, QUEUE.slowdown_rack, QUEUE.slowdown_network]
    in_rack, beyond = 1 / 0.5083145152293351, 1 / 0.26836765904968457
    expected = [[0.0, math.log(in_rack), math.log(beyond)], [0.0, 0.0, math.log(beyond / in_rack)]]
    np.testing.assert_allclose(queue[:2, columns], np.array(expected) / math.log(1000), atol=1e-6)


def test_orders_go_by_isolated_times_also_where_durations_are_computing():
    """1,000 s of computing on 16 GPUs are 1,967 s alone, on two machines: longer than 1,500 s on the 8 of one."""
    simulator = Simulator(RACKS, "penalty:duration=compute")
    simulator.reset(Workload.from_arrays("two", [0.0, 0.0], [16, 8], [1000.0, 1500.0], model=["alexnet", "alexnet"]))
    assert simulator.view.isolated_s(0) > 1900.0 > simulator.view.isolated_s(1) == 1500.0
    assert simulator.view.remaining_s(0) == simulator.view.isolated_s(0)


@pytest.mark.parametrize(
    ("network", "semantics", "expected"),
    [
        ("penalty", "events", "duration=isolated"),
        ("penalty", "artist-sim", "duration=compute"),
        ("penalty:duration=isolated", "artist-sim", "duration=isolated"),
        ("allreduce:calibration=artist", "artist-sim", "duration=compute"),
        ("penalty:duration=compute", "events", "duration=compute"),
    ],
)
def test_the_semantics_say_what_a_network_without_words_of_its_own_takes_durations_for(network, semantics, expected):
    simulator = Simulator(RACKS, network, semantics=semantics)
    assert expected in simulator.network.describe()
    assert load_network(simulator.network.describe()).describe() == simulator.network.describe()


def test_the_environment_takes_durations_as_its_semantics_do():
    assert (
        "duration=compute"
        in DelayEnv(semantics="artist-sim", workload="dally-like:jobs=4").simulator.network.describe()
    )
    assert "duration=compute" in DelayEnv(semantics="artist-sim", network="penalty").simulator.network.describe()
    assert "duration=isolated" in DelayEnv().simulator.network.describe()


def test_an_unknown_duration_is_refused():
    with pytest.raises(
        InputError, match="unknown value of network penalty: duration 'isolate'; did you mean 'isolated'"
    ):
        load_network("penalty:duration=isolate")


@pytest.mark.parametrize(("gpus", "gang"), [(4, 1), (8, 2)])
def test_on_measured_tables_no_job_is_slowed_down_alone_either(shared_traces, gpus, gang):
    """12 samples a GPU of bert on one machine of 4 T4, or two: computing is the time less the synchronisation."""
    folder = shared_traces / "adaptdl" / "simulator" / "traces"
    tables = read_tables(str(folder), "bert")
    whole_s, exposed_s = tables.times_s((4,) * gang, 12)
    for duration, expected in (("isolated", 1000.0), ("compute", 1000.0 * whole_s / (whole_s - exposed_s))):
        network = f"allreduce:calibration=measured,gpu=t4,tables={folder},duration={duration}"
        simulator = Simulator("flat:machines=4,gpus_per_machine=4", network, rule=Rule("fifo", placer="tier"))
        simulator.reset(Workload.from_arrays("bert", [0.0], [gpus], [1000.0], model=["bert"], batch_size=[12 * gpus]))
        metrics = simulator.run()
        assert metrics["jct_mean"] == pytest.approx(expected, rel=1e-9)
        assert metrics["slowdown_mean"] == pytest.approx(1.0, rel=1e-9)


# The best placement


def test_the_best_placement_is_on_as_few_machines_racks_and_slots_as_can_be():
    """Slots of 4 GPUs, two a machine, four machines a rack."""
    topology = Topology.from_counts("even", slot_gpus=[4] * 16, machine_slots=[2] * 8, rack_machines=[4, 4])
    assert best_shape(topology, 3) == Shape(1, 1, 1, 3, 1, 1)
    assert best_shape(topology, 6) == Shape(2, 1, 1, 4, 2, 1)
    assert best_shape(topology, 12) == Shape(3, 2, 1, 4, 2, 2)
    assert best_shape(topology, 16) == Shape(4, 2, 1, 4, 2, 2)
    assert best_shape(topology, 48) == Shape(12, 6, 2, 4, 2, 4)
    assert innermost_tiers(topology, np.array([1, 4, 5, 8, 9, 32, 33])).tolist() == [0, 0, 1, 1, 2, 2, 3]


def test_of_unequal_racks_the_one_where_fewest_machines_suffice_counts():
    """Rack 0: four machines of 4. Rack 1: one of 8 and three of 4. 12 GPUs: two machines of rack 1; 18: four of it."""
    topology = Topology.from_counts(
        "odd", slot_gpus=[4] * 4 + [8] + [4] * 3, machine_slots=[1] * 8, rack_machines=[4, 4]
    )
    assert best_shape(topology, 12) == Shape(2, 2, 1, 8, 1, 2)
    assert best_shape(topology, 18) == Shape(4, 4, 1, 8, 1, 4)
    assert best_shape(topology, 28) == Shape(6, 6, 2, 8, 1, 4)


# Load


def test_poisson_offers_the_load_that_it_was_asked_for_under_every_network():
    """200,000 jobs, no backlog. The standard error of one seed is 0.6 %: durations are lognormal, sigma 1.2."""
    topology = Topology.load(RACKS)
    workload = open_workload("poisson:jobs=200000,load=1.0", seed=0)
    for network in (
        "none",
        "penalty",
        "allreduce:calibration=artist,default=VGG",
        "allreduce:calibration=measured,default=VGG",
    ):
        assert offered_load(workload, topology, network) == pytest.approx(1.0, abs=0.01)
    assert offered_load(workload, topology, "penalty:duration=compute") == pytest.approx(1.2, abs=0.015)


def test_cassini_poisson_offers_the_load_that_it_was_asked_for():
    workload = open_workload("cassini-poisson:jobs=100000,load=1.0", seed=0)
    assert offered_load(workload, Topology.load("cassini-testbed"), "contention") == pytest.approx(1.0, abs=0.03)


def test_mast_like_offers_the_load_that_it_was_asked_for():
    """A year on 256 GPUs: parts on GPUs against GPUs. What recurs daily is drawn once, so seeds differ by far more."""
    workload = open_workload("mast-like:days=366,load=1.0", seed=0)
    assert offered_load(workload, Topology.load("mast:regions=4,gpus=256")) == pytest.approx(1.0, abs=0.03)


def test_a_backlog_is_no_part_of_the_load():
    """Three jobs of 4 GPUs x 10 s are there at 0; two of 2 GPUs x 30 s come until 60: 120 / (4 x 60)."""
    rows = [0, 0, 0, 40, 60], [4, 4, 4, 2, 2], [10, 10, 10, 30, 30]
    topology = Topology.load("flat:machines=1,gpus_per_machine=4")
    assert offered_load(Workload.from_arrays("hand", *rows), topology) == pytest.approx(0.5)
    assert offered_load(Workload.from_arrays("batch", [0, 0], [1, 1], [10, 10]), topology) is None
