"""Network allreduce: the mechanism by hand, shapes of placements, calibrations, bad files, and the command."""

from __future__ import annotations

import csv
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustergym.experiments.cli import run
from clustergym.experiments.inspecting.placement_explained import explain, shape_of
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.cluster.topology import Topology
from clustergym.simulator.configuration.network_choice import list_networks, load_network
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.network.allreduce import AllReduce
from clustergym.simulator.network.collectives import compute_fraction, flatten, fresh_fraction
from clustergym.simulator.network.network_model import ShapedNetwork
from clustergym.simulator.network.tiers_and_layers import (
    LAYER_COLUMNS,
    Calibration,
    Fabric,
    Link,
    ModelLayers,
    load_calibration,
)
from clustergym.simulator.record.state import LAYERS, SHAPES, Capacity, empty_state
from clustergym.simulator.rules.rule import Rule
from clustergym.simulator.workloads import Workload

DALLY_MODELS = ("ResNet50", "ResNet18", "AlexNet", "MobileNetV3", "VGG", "BERT")
POLLUX_MODELS = ("bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3")
# A small cluster on which every placement of a gang can be tried: 2 racks of 2 machines of 2 slots of 2 GPUs.
SMALL = "dally:racks=2,machines=2,gpus_per_machine=4,slots=2"


def link(name, kind="switch", latency_ns=0.0, bandwidth_gb_s=1.0, links=1):
    return Link(name, kind, latency_ns, bandwidth_gb_s, links)


def fabric(*tiers, order="lifo", uneven="flattened", endpoint_ns=0, memory=float("inf"), step_ns=0, single=False):
    """Four tiers; those that are not given carry 1 byte a ns without latency."""
    by_name = {tier.name: tier for tier in tiers}
    four = tuple(by_name.get(name, link(name)) for name in ("slot", "machine", "rack", "network"))
    return Fabric(four, order, uneven, endpoint_ns, memory, step_ns, single)


def model(*rows, name="m"):
    """Layers from (forward, input gradient, weight gradient, bytes, update)."""
    columns = np.array(rows, dtype=np.int64).T
    return ModelLayers(name, tuple(f"l{i}" for i in range(len(rows))), *columns)


def network_of(tiers, *models):
    return AllReduce(Calibration(tiers, models), (("calibration", "by hand"),))


def jobs(*pairs, **more):
    models, gpus = zip(*pairs, strict=True)
    return SimpleNamespace(model=np.array(models, dtype=object), gpus=np.array(gpus, dtype=np.int64), **more)


def slowdowns(network, topology, *pairs):
    profile, factors = network.tier_factors(jobs(*pairs), topology)
    return factors[profile]


def test_one_layer_on_two_gpus_is_two_steps_of_half_its_size():
    """4000 bytes, 1 byte a ns, 5 ns a link, two links of a switch: a step takes 2 x 5 + 2000; ready at 100 + 50."""
    network = network_of(fabric(link("slot", latency_ns=5)), model((100, 70, 50, 4000, 0)))
    found = explain(network, "m", (2, 0, 0, 0))
    assert (found.compute_ns, found.duration_ns) == (150, 150 + 2 * (10 + 2000))
    assert found.layers[0].spans_ns == ((150, 4170),)
    assert found.compute_fraction == 150 / 4170
    assert found.exposed_over_compute == 4170 / 150 - 1


def test_a_ring_of_n_takes_2_n_minus_1_steps_with_endpoint_and_additions():
    """4 members, 4000 bytes: 6 steps of 1000 + 7 ns of endpoint, once more 7; 3 additions of 3 x 1000 / 500 ns."""
    network = network_of(fabric(endpoint_ns=7, memory=500.0), model((0, 0, 1, 4000, 0)))
    assert explain(network, "m", (4, 0, 0, 0)).duration_ns == 1 + 6 * 1000 + 7 * 7 + 3 * 6


@pytest.mark.parametrize(
    ("kind", "links", "units", "parallel", "hops"),
    [
        ("switch", 1, 8, 1, 2),
        ("switch", 0, 8, 8, 2),
        ("ring", 0, 2, 4, 1),
        ("ring", 0, 5, 6, 1),
        ("ring", 0, 8, 8, 1),
        ("ring", 3, 8, 2, 1),
        ("ring", 1, 8, 1, 1),
        ("fully_connected", 0, 2, 2, 1),
        ("fully_connected", 0, 4, 1, 1),
        ("fully_connected", 12, 4, 4, 1),
        ("fully_connected", 2, 4, 1, 1),
    ],
)
def test_kinds_of_tiers_share_their_links_and_count_hops(kind, links, units, parallel, hops):
    """A message of 840 bytes at 1 byte a ns and link; left out, links are as many as there are members."""
    tier = link("rack", kind, latency_ns=100, links=links)
    network = network_of(fabric(tier), model((0, 0, 1, 840 * units, 0)))
    found = explain(network, "m", (0, 0, units, 0))
    assert found.duration_ns == 1 + 2 * (units - 1) * (hops * 100 + 840 // parallel)
    assert [tier.links for tier in found.tiers] == [parallel]


THREE = model((0, 0, 10, 30, 0), (0, 0, 10, 20, 0), (0, 0, 10, 100, 0))


def test_lifo_serves_the_layer_that_was_issued_last():
    """Two GPUs at 1 byte a ns: a layer takes as many ns as it has bytes. The last layer is ready first, at 10."""
    found = explain(network_of(fabric(), THREE), "m", (2, 0, 0, 0))
    assert [layer.spans_ns for layer in found.layers] == [((110, 140),), ((140, 160),), ((10, 110),)]
    assert [layer.exposed_ns for layer in found.layers] == [30, 20, 80]
    assert (found.duration_ns, found.backward_end_ns, found.tiers[0].busy_ns) == (160, 30, 150)


def test_fifo_serves_the_layer_that_was_issued_first():
    found = explain(network_of(fabric(order="fifo"), THREE), "m", (2, 0, 0, 0))
    assert [layer.spans_ns for layer in found.layers] == [((130, 160),), ((110, 130),), ((10, 110),)]


def test_layers_pass_the_tiers_one_after_the_other_and_each_tier_has_its_queue():
    """The second tier is half as fast. It is busy with the last layer until 310, when both others wait."""
    tiers = fabric(link("machine", bandwidth_gb_s=0.5))
    found = explain(network_of(tiers, THREE), "m", (2, 2, 0, 0))
    assert [layer.spans_ns for layer in found.layers] == [
        ((110, 140), (310, 370)),
        ((140, 160), (370, 410)),
        ((10, 110), (110, 310)),
    ]
    assert [(tier.name, tier.busy_ns) for tier in found.tiers] == [("slot", 150), ("machine", 300)]
    assert found.duration_ns == 410


def test_communication_hides_behind_the_rest_of_the_backward_pass():
    """The last layer is ready at 10 and takes 40 ns; the first has no gradients to send, and computes until 1010."""
    found = explain(network_of(fabric(), model((0, 0, 1000, 0, 0), (0, 0, 10, 40, 0))), "m", (2, 0, 0, 0))
    assert (found.duration_ns, found.compute_fraction) == (1010, 1.0)
    assert found.layers[0].spans_ns == () and found.layers[1].exposed_ns == 0


def test_an_update_starts_after_the_last_tier_and_can_be_what_is_exposed():
    network = network_of(fabric(), model((5, 0, 10, 40, 500)))
    assert explain(network, "m", (2, 2, 0, 0)).duration_ns == 15 + 40 + 40 + 500
    assert explain(network, "m", (0, 0, 0, 0)).duration_ns == 15  # one GPU has no update to wait for


def test_each_operation_of_the_passes_takes_a_step_more_and_the_first_layer_has_no_input_gradient():
    """Forward 2 x (1 + 3), then 30 + 3 | 20 + 3 | 10 + 3: the last layer is issued at 8 + 30."""
    network = network_of(fabric(step_ns=3), model((1, 999, 10, 2, 0), (1, 20, 30, 2, 0)))
    found = explain(network, "m", (2, 0, 0, 0))
    assert [layer.ready_ns for layer in found.layers] == [74, 38]
    assert (found.compute_ns, found.forward_end_ns, found.backward_end_ns) == (62, 8, 77)
    assert found.compute_fraction == 62 / 77
    alone = explain(network_of(fabric(step_ns=3), model((1, 999, 10, 2, 7), (1, 20, 30, 2, 7))), "m", (1, 1, 1, 1))
    assert alone.duration_ns == alone.layers[0].done_ns == 62 and not any(layer.exposed_ns for layer in alone.layers)


def test_single_precision_rounds_the_two_totals_to_32_bits_of_microseconds():
    layers = model((123_456_789, 0, 1, 4_000_000, 0))
    exact, rounded = (explain(network_of(fabric(single=single), layers), "m", (3, 0, 0, 0)) for single in (False, True))
    busy, exposed = np.float32(exact.compute_ns / 1e3), np.float32((exact.duration_ns - exact.compute_ns) / 1e3)
    assert rounded.compute_fraction == float(busy) / (float(busy) + float(exposed)) != exact.compute_fraction
    assert rounded.compute_fraction == pytest.approx(exact.compute_fraction, rel=1e-6)


@pytest.mark.parametrize(
    ("gpus", "slots", "machines", "racks", "units"),
    [
        (2, 1, 1, 1, (2, 0, 0, 0)),
        (2, 2, 1, 1, (0, 2, 0, 0)),  # one GPU each: flat on that tier
        (8, 2, 1, 1, (4, 2, 0, 0)),
        (3, 2, 1, 1, (0, 3, 0, 0)),  # does not divide
        (16, 4, 2, 1, (2, 4, 2, 0)),  # slots are counted over the whole gang: 4, not 2 on each machine
        (8, 8, 8, 1, (0, 0, 8, 0)),
        (9, 3, 2, 1, (0, 0, 9, 0)),
        (16, 4, 2, 2, (0, 4, 2, 2)),
        (8, 8, 8, 8, (0, 0, 1, 8)),  # one GPU a rack is left for the machines: a tier of one member
        (9, 3, 2, 2, (0, 0, 0, 9)),
    ],
)
def test_flattened_counts_as_the_simulator_behind_paper_dally(gpus, slots, machines, racks, units):
    s = empty_state(Capacity.fitting(1, 1, layered=True))[0]
    flatten(s, gpus, slots, machines, racks)
    found = tuple(int(number) for number in s["units"])
    assert found == units


@pytest.mark.parametrize(
    ("gpus", "flattened", "largest"),
    [
        ([0, 1, 2, 3, 4, 5, 6, 7], (4, 2, 0, 0), (4, 2, 1, 1)),
        ([0, 4, 1], (0, 3, 0, 0), (2, 2, 1, 1)),
        ([0, 8, 16], (0, 0, 3, 0), (1, 1, 3, 1)),
        ([0, 64, 1, 65], (0, 0, 2, 2), (2, 1, 1, 2)),  # 2 racks, then 2 GPUs for 2 machines in all
        ([5], (0, 1, 0, 0), (1, 1, 1, 1)),
    ],
)
def test_the_shape_of_a_gang_does_not_depend_on_the_order_of_its_gpus(gpus, flattened, largest):
    """Racks of 8 machines of 2 slots of 4 GPUs."""
    topology = Topology.load("dally:racks=2")
    for uneven, units in (("flattened", flattened), ("largest", largest)):
        network = load_network(f"allreduce:calibration=artist,uneven={uneven}")
        for seed in range(3):
            mixed = random.Random(seed).sample(gpus, len(gpus))
            assert shape_of(network, topology, mixed) == units


def test_the_memo_gives_what_the_computation_gives_even_when_it_is_full():
    network = load_network("allreduce:calibration=artist")
    s = empty_state(Capacity.fitting(1, 1, layered=True))[0]
    network.write_models(s, network.calibration.models)
    for machines, models in itertools.product(range(2, 402), (1, 3, 4, 5)):
        s["units"] = 0, 0, machines, 2
        assert compute_fraction(s, models) == compute_fraction(s, models) == fresh_fraction(s, models)
    assert s["shapes"] == SHAPES // 4 * 3 < 400 * 4
    for units in ((4, 2, 0, 0), (2, 4, 0, 0), (0, 2, 4, 0), (0, 0, 2, 4), (2, 0, 0, 4)):  # told apart by place
        s["units"] = units
        assert compute_fraction(s, 0) == fresh_fraction(s, 0)


SCRIPT = """
import json
from clustergym.simulator.configuration.network_choice import load_network
from clustergym.experiments.inspecting.placement_explained import explain, shape_of
from clustergym.simulator.cluster.topology import Topology
found = []
for name in ("artist", "measured"):
    network = load_network(f"allreduce:calibration={name}")
    shapes = [(4, 2, 0, 0), (0, 4, 2, 2), (3, 0, 0, 0), (0, 0, 16, 2), (0, 0, 1, 7)]
    shapes.append(shape_of(network, Topology.load("dally:racks=2"), [0, 9, 70, 3]))
    for model in ("MobileNetV3", "ResNet50"):
        found += [explain(network, model, shape).compute_fraction for shape in shapes]
print(json.dumps(found))
"""


def test_compiled_and_interpreted_kernels_agree_bit_for_bit():
    outputs = []
    for flag in ("0", "1"):
        outcome = subprocess.run(
            [sys.executable, "-P", "-c", SCRIPT],
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "NUMBA_DISABLE_JIT": flag},
        )
        outputs.append(json.loads(outcome.stdout))
    assert outputs[0] == outputs[1] and len(set(outputs[0])) > 15


layers = st.lists(
    st.tuples(*[st.integers(0, 10_000)] * 2, st.integers(1, 10_000), st.integers(0, 10**6), st.integers(0, 5000)),
    min_size=1,
    max_size=12,
)
shapes = st.tuples(*[st.integers(0, 9)] * 4)
bandwidths = st.lists(st.floats(0.01, 100), min_size=4, max_size=4)
NAMES = ("slot", "machine", "rack", "network")


def scaled(values, by, order="lifo"):
    return fabric(
        *(link(name, latency_ns=20, bandwidth_gb_s=value * by) for name, value in zip(NAMES, values, strict=True)),
        order=order,
    )


@given(rows=layers, units=shapes, values=bandwidths, order=st.sampled_from(["lifo", "fifo"]))
@settings(max_examples=150, deadline=None)
def test_an_iteration_takes_at_least_its_compute_and_each_tiers_collectives(rows, units, values, order):
    found = explain(network_of(scaled(values, 1, order), model(*rows)), "m", units)
    assert 0.0 < found.compute_fraction <= 1.0 and found.exposed_over_compute >= 0.0
    assert found.duration_ns >= found.compute_ns == found.backward_end_ns
    assert sum(layer.exposed_ns for layer in found.layers) == found.duration_ns - found.compute_ns
    for number in range(len(found.tiers)):
        spans = sorted(layer.spans_ns[number] for layer in found.layers if layer.spans_ns)
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))  # one at a time
        assert sum(end - start for start, end in spans) == found.tiers[number].busy_ns <= found.duration_ns
    for layer in found.layers:
        times = [layer.ready_ns, *itertools.chain(*layer.spans_ns), layer.done_ns]
        assert times == sorted(times)


@given(rows=layers, units=shapes, values=bandwidths, by=st.floats(1, 50))
@settings(max_examples=150, deadline=None)
def test_more_bandwidth_is_never_slower(rows, units, values, by):
    """In order of issue. (Last in, first out can overtake otherwise, and is no slower on one tier only.)"""
    slow, fast = (explain(network_of(scaled(values, k, "fifo"), model(*rows)), "m", units) for k in (1, by))
    assert fast.duration_ns <= slow.duration_ns
    one = (*units[:1], 0, 0, 0)
    bare = [(*row[:4], 0) for row in rows]
    slow, fast = (explain(network_of(scaled(values, k), model(*bare)), "m", one) for k in (1, by))
    assert fast.duration_ns <= slow.duration_ns


def tier_of(topology, gpus):
    levels = (topology.gpu_slot, topology.gpu_machine, topology.machine_rack[topology.gpu_machine])
    return next((tier for tier, level in enumerate(levels) if len(set(level[list(gpus)].tolist())) == 1), 3)


@pytest.mark.parametrize("uneven", ["flattened", "largest"])
@pytest.mark.parametrize(("name", "size"), [("MobileNetV3", 2), ("VGG", 3), ("ResNet50", 4), ("BERT", 5)])
def test_tier_factors_are_the_best_of_all_placements(name, size, uneven):
    """Every placement of a gang on 16 GPUs. A tier that no placement has is told by the next that one has."""
    topology = Topology.load(SMALL)
    network = load_network(f"allreduce:calibration=artist,uneven={uneven}")
    best: dict[int, float] = {}
    known: dict[tuple[int, ...], float] = {}
    for gpus in itertools.combinations(range(16), size):
        units = shape_of(network, topology, gpus)
        if units not in known:
            known[units] = 1 + explain(network, name, units).exposed_over_compute
        tier = tier_of(topology, gpus)
        best[tier] = min(best.get(tier, np.inf), known[units])
    expected = [min((best[t], t) for t in [next(u for u in range(tier, 4) if u in best)])[0] for tier in range(4)]
    assert slowdowns(network, topology, (name, size))[0] == pytest.approx(expected, rel=1e-12)


def test_a_gang_that_no_tier_can_spread_has_the_nearest_tiers_value():
    """One machine with one slot: machine, rack and network are as the slot."""
    network = load_network("allreduce:calibration=artist")
    (row,) = slowdowns(network, Topology.load("flat:machines=1,gpus_per_machine=4"), ("VGG", 4))
    assert len(set(row)) == 1 and row[0] == 1 + explain(network, "VGG", (4, 0, 0, 0)).exposed_over_compute


def played(topology, network, rows, models):
    simulator = Simulator(Topology.load(topology), load_network(network), rule=Rule(order="fifo"))
    columns = list(map(list, zip(*rows, strict=True)))
    simulator.reset(Workload.from_arrays("by hand", *columns, model=np.array(models, dtype=object)), 0)
    simulator.run()
    return simulator


def test_the_engine_runs_each_gang_at_the_speed_of_its_own_shape():
    """8 GPUs of 2 machines of 4: the first gang has a machine, the second (6) cannot start before it ends.

    Durations are computing alone.
    """
    network = load_network("allreduce:calibration=artist")
    topology, word = "flat:machines=2,gpus_per_machine=4", "allreduce:calibration=artist,duration=compute"
    simulator = played(topology, word, [(0, 4, 100), (0, 6, 100), (0, 1, 70)], ["VGG", "VGG", "no such"])
    inside = explain(network, "VGG", shape_of(network, Topology.load(topology), range(4))).compute_fraction
    across = explain(network, "VGG", shape_of(network, Topology.load(topology), range(6))).compute_fraction
    finish = simulator.jobs()["finish_s"].tolist()
    assert finish[0] == pytest.approx(100 / inside, rel=1e-12)
    assert finish[1] == pytest.approx(100 / inside + 100 / across, rel=1e-12)
    assert finish[2] == 70  # one GPU: neither slowed down nor looked up


def test_a_trace_costs_its_distinct_shapes():
    """60 jobs of one kind on machines that hold one each: one shape."""
    rows = [(i, 4, 50) for i in range(60)]
    simulator = played("flat:machines=2,gpus_per_machine=4", "allreduce:calibration=artist", rows, ["BERT"] * 60)
    assert int(simulator.state.shapes) == 1
    assert not simulator.state.slot_held.any() and not simulator.state.machine_held.any()


def test_an_unknown_model_names_the_job_the_model_and_the_ways_out():
    workload = jobs(("VGG", 2), ("GPT", 8), job_id=np.array(["j7", "j8"], dtype=object))
    with pytest.raises(InputError) as raised:
        load_network("allreduce:calibration=artist").tier_factors(workload, None)
    for word in ("job j8", "8 GPUs", "'GPT'", "MobileNetV3", "layers=PATH", "default=MODEL"):
        assert word in str(raised.value)


def test_default_stands_in_for_unknown_models_only():
    network = load_network("allreduce:calibration=artist,default=resnet-50")
    topology = Topology.load("dally:racks=2")
    unknown, listed, vgg = slowdowns(network, topology, ("GPT", 8), ("ResNet50", 8), ("vgg11", 8))
    assert unknown.tolist() == listed.tolist() != vgg.tolist()
    assert load_network(network.describe()).describe() == network.describe()


def test_one_gpu_is_neither_slowed_down_nor_refused():
    assert (
        slowdowns(load_network("allreduce:calibration=artist"), None, ("GPT", 1), ("", 1)).tolist() == [[1.0] * 4] * 2
    )


def test_a_workload_of_too_many_layers_is_refused():
    many = network_of(fabric(), model(*[(1, 1, 1, 1, 0)] * (LAYERS + 1)))
    for ask in (lambda: many.tier_factors(jobs(("m", 2)), None), lambda: explain(many, "m", (2, 0, 0, 0))):
        with pytest.raises(InputError, match=str(LAYERS)):
            ask()


def test_the_network_is_listed_with_its_parameters():
    (entry,) = [entry for entry in list_networks() if entry["name"] == "allreduce"]
    assert set(entry["parameters"]) == {"calibration", "tiers", "layers", "uneven", "default"} | {
        "gpu",
        "profiles",
        "tables",
        "duration",
    }
    assert isinstance(load_network("allreduce"), ShapedNetwork)


# Calibrations and files


@pytest.mark.parametrize("calibration", ["artist", "measured"])
def test_both_calibrations_list_every_model_of_the_dally_jobs(calibration):
    found = load_calibration(calibration)
    assert all(found.find(name) is not None for name in DALLY_MODELS)


def test_measured_lists_the_models_of_pollux_and_tells_the_two_berts_apart():
    found = load_calibration("measured")
    assert [found.find(name).model for name in POLLUX_MODELS] == list(POLLUX_MODELS)
    assert (found.find("BERT").model, found.find("bert_large").model) == ("bert", "BERT-large")
    assert found.find("ResNet-50 (batch size 32)").model == "imagenet"


def test_measured_is_what_its_sources_say(shared_traces):
    """Compute of one T4 and gradient bytes of the six models of Pollux."""
    found = load_calibration("measured")
    with (shared_traces / "tables" / "effective_allreduce_bandwidth.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["gpu"] == "T4"]
    assert {row["model"] for row in rows} == set(POLLUX_MODELS)
    for row in rows:
        layers = found.find(row["model"])
        assert layers.compute_ns == pytest.approx(1e9 * float(row["compute_1gpu_s"]), rel=1e-6)
        assert layers.gradient_bytes.sum() == int(row["grad_bytes"])


NODES = {"intra2": (2, 1), "intra4": (4, 1), "inter2x1": (1, 2), "inter2x4": (4, 2)}
NODES |= {f"inter{nodes}x4": (4, nodes) for nodes in (3, 4, 8, 16)}


def test_measured_predicts_iterations_within_15_percent_in_the_median(shared_traces):
    """Six models, one T4's compute: 36 placements that it was fitted to and 12 (8 and 16 nodes) that it was not."""
    network = load_network("allreduce:calibration=measured")
    with (shared_traces / "tables" / "effective_allreduce_bandwidth.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["gpu"] == "T4"]
    errors: dict[bool, list[float]] = {False: [], True: []}
    for row in rows:
        per_node, nodes = NODES[row["config"]]
        fraction = explain(network, row["model"], (per_node, 0, nodes, 0)).compute_fraction
        predicted = float(row["compute_1gpu_s"]) / fraction
        errors[nodes >= 8].append(abs(predicted / float(row["step_s"]) - 1))
    fitted, held_out = (statistics.median(errors[key]) for key in (False, True))
    assert (len(errors[False]), len(errors[True])) == (36, 12)
    assert (fitted, held_out) == (pytest.approx(0.147, abs=0.002), pytest.approx(0.156, abs=0.002))


TIERS_FILE = """\
order: lifo
tiers:
  - {name: slot, kind: fully_connected, latency_ns: 0, bandwidth_gb_s: 600}
  - {name: machine, kind: ring, latency_ns: 500, bandwidth_gb_s: 600}
  - {name: rack, kind: ring, latency_ns: 5000, bandwidth_gb_s: 200}
  - {name: network, kind: switch, latency_ns: 5e4, bandwidth_gb_s: 400, links: 2}
"""
HEADER = ",".join(LAYER_COLUMNS)
LAYERS_FILE = f"# mine\n\n{HEADER}\nmine,a,10,20,30,4000,0\n# between\nmine,b,1.9,2,3,4000,5\nother,a,1,1,1,1,0\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "tiers.yaml").write_text(TIERS_FILE)
    (tmp_path / "layers.csv").write_text(LAYERS_FILE)
    (tmp_path / "whole.yaml").write_text("layers: layers.csv\n" + TIERS_FILE)
    return tmp_path


def test_a_users_tiers_and_layers_in_all_three_ways(files):
    ways = [
        f"allreduce:tiers={files}/tiers.yaml,layers={files}/layers.csv",
        f"allreduce:calibration={files}/whole.yaml",
        f"allreduce:tiers={files}/whole.yaml",
    ]
    found = [explain(load_network(way), "MINE", (4, 2, 2, 2)) for way in ways]
    assert found[0] == found[1] == found[2]
    layers = load_network(ways[0]).layers_of("mine")
    assert layers.names == ("a", "b") and layers.forward_ns.tolist() == [10, 1]  # cut to whole ns
    assert layers.compute_ns == 10 + 30 + 1 + 2 + 3
    assert [layers.model for layers in load_network(ways[1]).calibration.models] == ["mine", "other"]


def test_own_tiers_keep_the_layers_of_the_calibration_and_own_layers_its_tiers(files):
    own_tiers = load_network(f"allreduce:tiers={files}/tiers.yaml")
    assert own_tiers.layers_of("BERT") is not None and own_tiers.calibration.fabric.tiers[3].links == 2
    own_layers = load_network(f"allreduce:layers={files}/layers.csv")
    assert own_layers.calibration.fabric == load_calibration("measured").fabric
    assert own_layers.layers_of("BERT") is None and own_layers.layers_of("other") is not None


GOOD_SLOT = "{name: slot, kind: fully_connected, latency_ns: 0, bandwidth_gb_s: 600}"
BAD_TIERS = [
    ("", "is empty"),
    ("tiers: [", "not YAML"),
    ("- 1\n- 2\n", "expected a mapping"),
    ("tiers: 3", "tiers = 3: expected a list"),
    ("order: lifo", "tiers is missing"),
    (TIERS_FILE.replace("600}", "0}", 1), "bandwidth_gb_s = 0: expected at least 0.001"),
    (TIERS_FILE.replace("600}", "-5}", 1), "bandwidth_gb_s = -5: expected"),
    (TIERS_FILE.replace("600}", ".nan}", 1), "bandwidth_gb_s = nan: expected a finite number"),
    (TIERS_FILE.replace("600}", ".inf}", 1), "bandwidth_gb_s = inf: expected a finite number"),
    (TIERS_FILE.replace("600}", "fast}", 1), "bandwidth_gb_s = 'fast': expected a number"),
    (TIERS_FILE.replace("latency_ns: 500,", "latency_ns: -1,"), "tiers[1].latency_ns = -1: expected at least 0"),
    (TIERS_FILE.replace("latency_ns: 500,", ""), "tiers[1].latency_ns is missing"),
    (TIERS_FILE.replace("latency_ns", "latency_us", 1), "unknown key; did you mean 'latency_ns'"),
    (TIERS_FILE.replace("ring", "torus", 1), "kind = 'torus': expected 'fully_connected', 'ring' or 'switch'"),
    (TIERS_FILE.replace("name: rack", "name: row"), "name = 'row': expected"),
    (TIERS_FILE.replace("name: rack", "name: slot"), "names 'slot' 2 times"),
    ("tiers:\n  - " + GOOD_SLOT, "names 'machine' 0 times"),
    (TIERS_FILE.replace("links: 2", "links: 0"), "links = 0: expected at least 1"),
    (TIERS_FILE.replace("links: 2", "links: 1.5"), "links = 1.5: expected a whole number"),
    (TIERS_FILE.replace("lifo", "random"), "order = 'random': expected 'lifo' or 'fifo'"),
    ("endpoint_ns: -1\n" + TIERS_FILE, "endpoint_ns = -1: expected at least 0"),
    ("memory_gb_s: 0\n" + TIERS_FILE, "memory_gb_s = 0: expected at least"),
    ("single_precision: 3\n" + TIERS_FILE, "single_precision = 3: expected"),
    ("layers: []\n" + TIERS_FILE, "layers = an empty list: expected text"),
    ("layers: nowhere.csv\n" + TIERS_FILE, "there is no such file"),
    ("tiers: !!python/object/apply:os.system [ls]", "could not determine a constructor"),
    (bytes(range(256)) * 4, "is not text"),
]


def write(path, content):
    path.write_bytes(content) if isinstance(content, bytes) else path.write_text(content)
    return path


@pytest.mark.parametrize(("content", "says"), BAD_TIERS, ids=[says for _, says in BAD_TIERS])
def test_a_bad_tiers_file_is_one_sentence(tmp_path, content, says):
    path = write(tmp_path / "bad.yaml", content)
    with pytest.raises(InputError) as raised:
        load_network(f"allreduce:tiers={path}")
    sentence = str(raised.value)
    assert says in sentence and "\n" not in sentence
    assert ("nowhere.csv" if "nowhere" in str(content) else "bad.yaml") in sentence


ROW = "m,a,1,1,1,1,0"
BAD_LAYERS = [
    ("", "is empty"),
    ("# only remarks\n", "line 2: column 'model' is missing"),
    (HEADER, "a header and no rows"),
    (f"{HEADER.replace('update_ns', 'delay')}\n{ROW}", "line 1: unknown column 'delay'; expected exactly model, layer"),
    (f"{HEADER.removesuffix(',update_ns')}\n{ROW}", "column 'update_ns' is missing"),
    (f"{HEADER},layer\n{ROW},b", "column 'layer' is given twice"),
    (f"{HEADER}\n{ROW},9", "line 2: 8 values, expected 7"),
    (f"#\n{HEADER}\n\n{ROW}\nm,b,1", "line 5: 3 values, expected 7"),
    (f"{HEADER}\nm,a,-1,1,1,1,0", "line 2, column forward_ns: '-1', expected a number from 0"),
    (f"{HEADER}\nm,a,1,nan,1,1,0", "column input_gradient_ns: 'nan'"),
    (f"{HEADER}\nm,a,1,1,inf,1,0", "column weight_gradient_ns: 'inf'"),
    (f"{HEADER}\nm,a,1,1,1,-4,0", "column gradient_bytes: '-4', expected a number from 0 to 1e+11"),
    (f"{HEADER}\nm,a,1,1,1,1,soon", "column update_ns: 'soon'"),
    (f"{HEADER}\nm,a,,1,1,1,0", "column forward_ns: ''"),
    (f"{HEADER}\n ,a,1,1,1,1,0", "column model: '', expected a model's name"),
    (f"{HEADER}\n{ROW}\nM,b,1,1,1,1,0", "line 3, column model: 'M', an earlier line spells it 'm'"),
    (f"{HEADER}\n{ROW}\nm,b,1,1,1,1,0\nm,a,1,1,1,1,0", "line 4: layer 'a' of model 'm' is in line 2 too"),
    (f"{HEADER}\nm,a,0,9,0,1,0", "the layers of model 'm' compute for 0 ns"),
    (f'{HEADER}\n"m,a,1', "not readable as csv"),
    ("hello\nworld\n", "unknown column 'hello'"),
    (bytes(range(1, 256)) * 4, "is not text"),
    (b"\0" * 64, "NUL"),
]


@pytest.mark.parametrize(("content", "says"), BAD_LAYERS, ids=[says for _, says in BAD_LAYERS])
def test_a_bad_layer_table_is_one_sentence(tmp_path, content, says):
    path = write(tmp_path / "bad.csv", content)
    with pytest.raises(InputError) as raised:
        load_network(f"allreduce:layers={path}")
    sentence = str(raised.value)
    assert says in sentence and "\n" not in sentence and "bad.csv" in sentence


@given(cut=st.integers(0, 400), noise=st.text(max_size=20), at=st.integers(0, 400), which=st.sampled_from([0, 1]))
@settings(max_examples=200, deadline=None)
def test_a_damaged_file_loads_or_is_one_sentence(tmp_path_factory, cut, noise, at, which):
    content = (TIERS_FILE, LAYERS_FILE)[which]
    damaged = content[: min(at, cut)] + noise + content[max(at, cut) :]
    path = tmp_path_factory.getbasetemp() / f"damaged{which}"
    path.write_text(damaged, encoding="utf-8", errors="replace")
    try:
        assert load_network(f"allreduce:{('tiers', 'layers')[which]}={path}").calibration.models
    except InputError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("allreduce:calibration=artst", "did you mean 'artist'"),
        ("allreduce:calibration=nowhere.yaml", "there is no such file"),
        ("allreduce:calibration=/", "is a folder"),
        ("allreduce:uneven=flat", "flattened"),
        ("allreduce:calibration=artist,default=GPT", "default = 'GPT', expected a model of its layer table (ResNet50"),
        ("allreduce:layer=x.csv", "did you mean 'layers'"),
    ],
)
def test_a_bad_parameter_is_one_sentence(source, says):
    with pytest.raises(InputError) as raised:
        load_network(source)
    assert says in str(raised.value) and "\n" not in str(raised.value)


def test_a_calibration_file_must_name_its_layers(files):
    with pytest.raises(InputError, match="layers is missing"):
        load_network(f"allreduce:calibration={files}/tiers.yaml")


# The command


def call(capsys, *arguments):
    status = run([str(argument) for argument in arguments])
    said = capsys.readouterr()
    return status, said.out, said.err


def test_communication_in_json_starts_with_the_two_figures(capsys):
    status, out, err = call(capsys, "communication", "ResNet18", "--units", "0,2,2,0", "--json")
    document = json.loads(out)
    assert (status, err) == (0, "")
    assert list(document)[:2] == ["compute_fraction", "exposed_over_compute"]
    assert document["compute_fraction"] == 1 / (1 + document["exposed_over_compute"])
    assert [tier["tier"] for tier in document["tiers"]] == ["machine", "rack"]
    assert len(document["layers"]) == 21


def test_communication_of_gpus_is_that_of_their_shape(capsys):
    gpus = ("--topology", "dally:racks=2", "--gpus", "0-3,64-67", "--json", "--calibration", "measured")
    by_gpus = json.loads(call(capsys, "communication", "VGG", *gpus)[1])
    assert by_gpus["units"] == [4, 1, 1, 2]
    units = ("--units", "4,1,1,2", "--calibration", "measured", "--json", "--seed", "3", "--quiet")
    assert json.loads(call(capsys, "communication", "VGG", *units)[1]) == by_gpus


def test_communication_prints_every_tier_and_layer_and_draws(capsys, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "vgg.png"
    monkeypatch.setenv("COLUMNS", "140")
    status, out, _ = call(capsys, "communication", "VGG", "--units", "0,2,4,2", "--out", picture)
    assert status == 0 and picture.read_bytes().startswith(b"\x89PNG")
    assert "fully_connected" not in out  # the slot is not spanned
    for word in ("classifier.0", "features.0", "machine", "rack", "network", "busy [ms]"):
        assert word in out


def test_communication_of_one_gpu_has_nothing_to_exchange(capsys):
    status, out, _ = call(capsys, "communication", "VGG", "--topology", "dally", "--gpus", "5")
    assert status == 0 and "nothing to exchange" in out


def test_without_matplotlib_a_picture_is_refused_in_a_sentence(capsys, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    status, out, err = call(capsys, "communication", "VGG", "--units", "2,0,0,0", "--out", tmp_path / "x.png")
    assert (status, out) == (1, "") and "clustergym[report]" in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["GPT", "--units", "2,0,0,0"], 2, "MobileNetV3"),
        (["VGG"], 2, "--units"),
        (["VGG", "--units", "2,0,0,0", "--topology", "dally", "--gpus", "0,1"], 2, "either"),
        (["VGG", "--units", "2,0,0,0", "--topology", "dally"], 2, "--topology goes with --gpus"),
        (["VGG", "--gpus", "0,1"], 2, "--topology"),
        (["VGG", "--units", "2,0,0"], 2, "four whole numbers"),
        (["VGG", "--units", "2,0,0,-1"], 2, "four whole numbers"),
        (["VGG", "--units", "2,0,0,x"], 2, "four whole numbers"),
        (["VGG", "--units", "9999999,0,0,0"], 2, "from 0 to 1000000"),
        (["VGG", "--units", "1000000,2,0,1"], 2, "2000000 GPUs, expected at most 1000000"),
        (["VGG", "--gpus", "0,0", "--topology", "dally"], 2, "GPU 0 is given twice"),
        (["VGG", "--gpus", "0,999", "--topology", "dally"], 2, "GPUs 0 to 127"),
        (["VGG", "--gpus", "3-1", "--topology", "dally"], 2, "'3-1' is not"),
        (["VGG", "--gpus", "", "--topology", "dally"], 2, "'' is not"),
        (["VGG", "--gpus", "0-99999999", "--topology", "dally"], 2, "is not"),
        (["VGG", "--gpus", "0,1", "--topology", "daly"], 2, "did you mean 'dally'"),
        (["VGG", "--units", "2,0,0,0", "--calibration", "artst"], 2, "did you mean 'artist'"),
        (["VGG", "--units", "2,0,0,0", "--tiers", "nowhere.yaml"], 2, "there is no such file"),
        (["VGG", "--units", "2,0,0,0", "--out", "x.pdf"], 2, ".png"),
        (["VGG", "--units", "2,0,0,0", "--out", "/no/such/folder/x.png"], 1, "there is no folder"),
    ],
)
def test_a_bad_communication_command_is_one_sentence(capsys, arguments, status, says):
    found, out, err = call(capsys, "communication", *arguments)
    assert (found, out) == (status, "") and says in err and err.count("\n") == 1, err


def test_a_bad_file_of_the_command_exits_1(capsys, files):
    path = write(Path(files) / "broken.yaml", TIERS_FILE.replace("600}", "0}", 1))
    status, _, err = call(capsys, "communication", "VGG", "--units", "2,0,0,0", "--tiers", path)
    assert status == 1 and "bandwidth_gb_s = 0" in err
