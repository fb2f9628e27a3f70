"""Topologies from YAML and JSON: what is read, and one sentence for everything else."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustergym.simulator.base.errors import InputError
from clustergym.simulator.cluster import topology_files
from clustergym.simulator.cluster.topology import Topology
from clustergym.simulator.files.yaml_files import MAX_FILE_BYTES, load_mapping

FULL = """\
name: two-sites
regions:
  - name: east
    clusters:
      - name: a
        gpu_type: V100
        racks:
          - {count: 2, machines: [{count: 4, slots: 2, gpus_per_slot: 2}]}
  - {count: 2, clusters: [{racks: [{machines: [{gpus_per_slot: 8}]}]}]}
tiers:
  - {name: network, bandwidth_gbps: 1e2, latency_us: 50, oversubscription: 2.5}
  - {name: rack, bandwidth_gbps: 400}
"""
SHORT = {"racks": 2, "machines": 8, "slots": 2, "gpus_per_slot": 4}


def write(tmp_path, content, name="spec.yaml"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_full_form_from_yaml(tmp_path):
    """2 racks x 4 machines x 4 GPUs + 2 x 8 GPUs = 48; latency 50 us = 5e-5 s; tiers in order, rest nan."""
    topology = Topology.load(write(tmp_path, FULL))
    assert (topology.name, topology.num_gpus, topology.num_racks) == ("two-sites", 48, 4)
    assert topology.region_names == ("east", "region1", "region2")
    assert topology.tiers[3].bandwidth_gbps == 100.0
    assert topology.tiers[3].latency_s == pytest.approx(50e-6)
    assert topology.tiers[3].oversubscription == 2.5
    assert topology.tiers[2].bandwidth_gbps == 400.0
    assert np.isnan(topology.tiers[1].bandwidth_gbps)


def test_yaml_and_json_of_one_spec_are_equal(tmp_path):
    mapping = load_mapping(write(tmp_path, FULL))
    in_json = write(tmp_path, json.dumps(mapping), "spec.json")
    assert Topology.load(str(in_json)) == Topology.load(str(tmp_path / "spec.yaml"))


def test_short_form_equals_the_preset_in_shape(tmp_path):
    topology = Topology.load(write(tmp_path, json.dumps(SHORT), "mine.json"))
    dally = Topology.load("dally")
    assert topology.name == "mine"
    assert np.array_equal(topology.gpu_slot, dally.gpu_slot)
    assert np.array_equal(topology.machine_rack, dally.machine_rack)


def test_a_spec_says_the_machine_order(tmp_path):
    """In YAML the seed is a number, in JSON a text or a number: all three are the preset's seed 7."""
    scan = Topology.load("dally:machine_order=7").machine_scan.tolist()
    for order in (7, "7"):
        assert Topology.from_spec({**SHORT, "machine_order": order}).machine_scan.tolist() == scan
    assert Topology.load(write(tmp_path, FULL + "\nmachine_order: 7\n")).machine_order == "7"
    assert Topology.from_spec(SHORT).machine_order == "natural"


def test_counts_number_the_names():
    machines = [{"gpus_per_slot": 1}]
    clusters = [{"name": "c", "count": 2, "racks": [{"machines": machines}]}]
    topology = Topology.from_spec({"regions": [{"name": "r", "count": 2, "clusters": clusters}]})
    assert topology.region_names == ("r-0", "r-1")
    assert topology.cluster_names == ("c-0", "c-1", "c-0", "c-1")
    assert topology.gpu_label(3) == "r-1.c-1.0.0.0"


def region(**changes):
    cluster = {"name": "a", "racks": [{"machines": [{"gpus_per_slot": 2}]}]}
    return {"name": "east", "clusters": [cluster], **changes}


def with_tier(**tier):
    return {**SHORT, "tiers": [tier]}


MACHINE = "regions[0].clusters[0].racks[0].machines[0]"


def with_machine(**machine):
    return {"regions": [region(clusters=[{"racks": [{"machines": [machine]}]}])]}


BAD_MAPPINGS = [
    ({}, "regions is missing"),
    ({"regions": []}, "regions = an empty list: expected a list with at least one item"),
    ({"regions": {}}, "regions = a mapping: expected a list"),
    ({"regions": None}, "regions = nothing: expected a list"),
    ({"regions": ["east"]}, "regions[0] = 'east': expected a mapping"),
    ({"regons": [region()]}, "regons: unknown key; did you mean 'regions'?"),
    ({"regions": [region()], "racks": 2}, "racks: unknown key"),
    ({"regions": [region(clusters=3)]}, "regions[0].clusters = 3: expected a list"),
    ({"regions": [region(), region()]}, "regions: the name 'east' is used 2 times"),
    ({"regions": [region(clusters=region()["clusters"] * 2)]}, "region 'east': the name 'a' is used 2 times"),
    ({"regions": [region(name="a.b")]}, "regions[0].name = 'a.b': expected letters, digits"),
    ({"regions": [region(name=7)]}, "regions[0].name = 7: expected text"),
    ({"regions": [region(count=0)]}, "regions[0].count = 0: expected at least 1"),
    (with_machine(), f"{MACHINE}.gpus_per_slot is missing"),
    (with_machine(gpus_per_slot=-4), f"{MACHINE}.gpus_per_slot = -4: expected at least 1"),
    (with_machine(gpus_per_slot=2.5), f"{MACHINE}.gpus_per_slot = 2.5: expected a whole number"),
    (with_machine(gpus_per_slot=True), f"{MACHINE}.gpus_per_slot = True: expected a whole number"),
    (with_machine(gpus_per_slot="4"), f"{MACHINE}.gpus_per_slot = '4': expected a whole number"),
    (with_machine(gpus_per_slot=4, slot=2), f"{MACHINE}.slot: unknown key; did you mean 'slots'?"),
    (with_machine(gpus_per_slot=10**6, count=2), "2000000 GPUs are too many, expected at most 1000000"),
    ({"regions": [region(count=10**6, clusters=[{**region()["clusters"][0], "count": 10**6}])]}, "too many"),
    ({"racks": 2}, "machines is missing"),
    ({**SHORT, "racks": 0}, "racks = 0: expected at least 1"),
    ({**SHORT, "racks": 10**6 + 1}, "racks = 1000001: expected at most 1000000"),
    ({**SHORT, "racks": [1]}, "racks = a list: expected a whole number"),
    ({**SHORT, "machine": 8}, "machine: unknown key; did you mean 'machines'?"),
    ({**SHORT, "tiers": {}}, "tiers = a mapping: expected a list"),
    ({**SHORT, "machine_order": "backwards"}, "machine_order = 'backwards': expected natural, or a whole number"),
    ({**SHORT, "machine_order": True}, "machine_order = True: expected natural"),
    ({**SHORT, "machine_order": {"seed": 1}}, "machine_order = {'seed': 1}: expected natural"),
    ({"regions": [region()], "machine_order": -1}, "machine_order = -1: expected natural"),
    (with_tier(name="slt"), "tiers[0].name = 'slt': expected 'slot', 'machine', 'rack' or 'network'"),
    (with_tier(bandwidth_gbps=1), "tiers[0].name is missing"),
    (with_tier(name="rack", bandwidth_gbps=float("nan")), "bandwidth_gbps = nan: expected a finite number"),
    (with_tier(name="rack", bandwidth_gbps=float("inf")), "bandwidth_gbps = inf: expected a finite number"),
    (with_tier(name="rack", bandwidth_gbps=0), "bandwidth_gbps = 0: expected more than 0"),
    (with_tier(name="rack", bandwidth_gbps="fast"), "bandwidth_gbps = 'fast': expected a number"),
    (with_tier(name="rack", latency_us=-1), "latency_us = -1: expected at least 0"),
    (with_tier(name="rack", oversubscription=0.5), "oversubscription = 0.5: expected at least 1"),
    (with_tier(name="rack", bandwith_gbps=1), "did you mean 'bandwidth_gbps'?"),
    ({**SHORT, "tiers": [{"name": "rack"}] * 2}, "tiers: the name 'rack' is used 2 times"),
]


@pytest.mark.parametrize(("mapping", "says"), BAD_MAPPINGS, ids=[says[:40] for _, says in BAD_MAPPINGS])
def test_a_bad_mapping_is_one_sentence_with_its_place(mapping, says):
    with pytest.raises(InputError) as raised:
        Topology.from_spec(mapping, "my spec")
    message = str(raised.value)
    assert says in message
    assert message.startswith("my spec") and "\n" not in message and "pydantic" not in message


# Nine aliases of nine aliases of ...: a file of 200 bytes that stands for 9**7 values.
BOMB = b"l0: &l0 x\n" + b"".join(b"l%d: &l%d [%s]\n" % (n, n, b",".join([b"*l%d" % (n - 1)] * 9)) for n in range(1, 8))

BAD_FILES = [
    (b"", "is empty"),
    (b"  \n\n", "is empty"),
    (b"\x00\x01\x02", "not text"),
    (b"\xff\xfe\x00r", "is not text"),
    (b"racks: [1, 2", "not YAML"),
    (b"racks: 2\n  machines: 3\n", "line 2, column"),
    (b"- 1\n- 2\n", "expected a mapping"),
    (b"just words", "expected a mapping"),
    (b"42", "expected a mapping"),
    (b"!!python/object/apply:os.system ['true']", "could not determine a constructor for the tag"),
    (b"racks: !!python/name:os.system\n", "could not determine a constructor"),
    (b"racks: 2\nracks: 3\n", "the key 'racks' is given twice"),
    (b"racks: &a [*a]\n", "values"),
    (BOMB, "holds more than"),
    (b"racks: 2024-13-45\n", "not YAML"),
    (b"[" * 500_000, "spec.yaml"),
    (b"- " * 500_000, "spec.yaml"),
    (b"{a: " * 500_000, "spec.yaml"),
    (b"racks: " + b"9" * 6000, "spec.yaml"),
    (b"a: 1\n---\nb: 2\n", "not YAML"),
    (b"? [1, 2]\n: 3\n", "spec.yaml"),
    (b"1: 2\n", "spec.yaml"),
    (b"racks: 2\nmachines: 1\ngpus_per_slot: .nan\n", "gpus_per_slot = nan"),
    (b"\tracks: 2", "line 1"),
]


@pytest.mark.parametrize(("content", "says"), BAD_FILES, ids=range(len(BAD_FILES)))
def test_a_bad_yaml_file_is_one_sentence_with_its_path(tmp_path, content, says):
    with pytest.raises(InputError) as raised:
        Topology.load(write(tmp_path, content))
    message = str(raised.value)
    assert says in message
    assert "spec.yaml" in message and "\n" not in message and len(message) < 600


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b'{"racks": 2', "line 1, column 12: not JSON"),
        (b'{"racks": 2, "racks": 3}', "the key 'racks' is given 2 times"),
        (b"[1]", "expected a mapping"),
        (b"null", "expected a mapping"),
        (b'{"racks": ' + b"9" * 6000 + b"}", "spec.json"),
        (b'{"a":' * 20_000, "nests too deep"),
        (b'{"racks": 2, "machines": 1, "gpus_per_slot": NaN}', "gpus_per_slot = nan"),
        (json.dumps({"a": [0] * 300_000}).encode(), "holds more than"),
        (b"racks: 2", "not JSON"),
    ],
)
def test_a_bad_json_file_is_one_sentence_with_its_path(tmp_path, content, says):
    with pytest.raises(InputError) as raised:
        Topology.load(write(tmp_path, content, "spec.json"))
    assert says in str(raised.value)
    assert "spec.json" in str(raised.value) and "\n" not in str(raised.value)


def test_a_huge_file_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "huge.yaml"
    with path.open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(InputError, match="expected at most"):
        Topology.load(path)


def test_a_folder_is_not_a_spec(tmp_path):
    with pytest.raises(InputError, match="is a folder"):
        Topology.load(tmp_path)


def test_every_truncation_of_a_good_file_is_read_or_refused(tmp_path):
    for end in range(0, len(FULL), 3):
        try:
            Topology.load(write(tmp_path, FULL[:end]))
        except InputError as error:
            assert "\n" not in str(error)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(["spec.yaml", "spec.json"]))
def test_random_bytes_are_refused_in_one_sentence(tmp_path_factory, content, name):
    path = write(tmp_path_factory.getbasetemp(), content, name)
    with pytest.raises(InputError) as raised:
        Topology.load(path)
    assert "\n" not in str(raised.value)


keys = st.sampled_from(
    ["name", "regions", "clusters", "racks", "machines", "slots", "gpus_per_slot", "count", "tiers", "x"]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(keys, values, max_size=6))
def test_random_mappings_are_built_or_refused(mapping):
    try:
        assert Topology.from_spec(mapping).num_gpus >= 1
    except InputError as error:
        assert "\n" not in str(error)


small = st.integers(1, 3)
machines = st.fixed_dictionaries({"count": small, "slots": small, "gpus_per_slot": small})
racks = st.fixed_dictionaries({"count": small, "machines": st.lists(machines, min_size=1, max_size=3)})
clusters = st.fixed_dictionaries({"count": small, "racks": st.lists(racks, min_size=1, max_size=2)})
regions = st.fixed_dictionaries({"count": small, "clusters": st.lists(clusters, min_size=1, max_size=2)})


@settings(max_examples=40, deadline=None)
@given(st.lists(regions, min_size=1, max_size=2))
def test_any_spec_keeps_counts_and_contiguity(given_regions):
    """Every level's children are one range, ranges follow each other, and the GPUs are those asked for."""
    topology = Topology.from_spec({"regions": given_regions})
    asked = sum(
        region["count"] * cluster["count"] * rack["count"] * m["count"] * m["slots"] * m["gpus_per_slot"]
        for region in given_regions
        for cluster in region["clusters"]
        for rack in cluster["racks"]
        for m in rack["machines"]
    )
    assert topology.num_gpus == asked == topology.machine_gpus.sum() == topology.slot_gpus.sum()
    levels = [
        (topology.gpu_slot, topology.num_slots, topology.slot_first_gpu, topology.slot_gpus),
        (topology.gpu_machine, topology.num_machines, topology.machine_first_gpu, topology.machine_gpus),
        (topology.machine_rack, topology.num_racks, topology.rack_first_machine, topology.rack_machines),
    ]
    for parents, count, first, sizes in levels:
        assert parents.dtype == first.dtype == sizes.dtype == np.int64
        assert np.array_equal(parents, np.repeat(np.arange(count), sizes))
        assert np.array_equal(first, np.cumsum(sizes) - sizes)
    assert np.array_equal(topology.slot_machine[topology.gpu_slot], topology.gpu_machine)
    for parents, count in (
        (topology.slot_machine, topology.num_machines),
        (topology.rack_cluster, topology.num_clusters),
        (topology.cluster_region, topology.num_regions),
    ):
        assert np.array_equal(np.unique(parents), np.arange(count)) and (np.diff(parents) >= 0).all()
    gpu = topology.num_gpus - 1
    assert topology.gpu_index(topology.gpu_label(gpu)) == gpu


def test_the_simulator_imports_without_pydantic_and_yaml():
    """They are loaded by the functions that need them, so nothing of them is in the module."""
    assert not {"pydantic", "yaml", "BaseModel"} & set(vars(topology_files))
