"""Networks none and penalty, their tables against the real files, and the skew rule."""

import csv
import json
import math
import statistics
import warnings
from collections import defaultdict
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustergym import policies
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.base.tiers import MACHINE, NETWORK, RACK, SLOT
from clustergym.simulator.cluster.topology import Topology
from clustergym.simulator.configuration.network_choice import Network, NoNetwork, list_networks, load_network
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.profiles.model_names import normalised
from clustergym.simulator.profiles.skew import DEFAULT_THRESHOLD, PROFILES, is_skewed, skew_of
from clustergym.simulator.profiles.slowdown_tables import CHRONUS_SPEEDS, GAVEL_SLOWDOWNS, TABLES, load_table
from clustergym.simulator.workloads import Workload, WorkloadWarning
from clustergym.tests.support.paths import TRACES

GOOD = "model,machine,rack,network\nmine,1,2,4\n"


def real(path):
    if not (TRACES / path).exists():
        pytest.skip(f"the real traces are not here: {TRACES / path}")
    return TRACES / path


def jobs(*pairs, **more):
    models, gpus = zip(*pairs, strict=True)
    return SimpleNamespace(model=np.array(models, dtype=object), gpus=np.array(gpus, dtype=np.int64), **more)


def slowdowns(network, *pairs):
    """Rows of slot, machine, rack, network, one per job."""
    profile, factors = load_network(network).tier_factors(jobs(*pairs), Topology.load("flat"))
    assert profile.dtype == np.int64 and factors.dtype == np.float64 and factors.shape[1] == 4
    return factors[profile]


def test_none_slows_nothing_down():
    profile, factors = load_network("none").tier_factors(jobs(("a", 8), ("", 1)), None)
    assert profile.tolist() == [0, 0]
    assert factors.tolist() == [[1.0, 1.0, 1.0, 1.0]]


def test_dally_table1_is_one_plus_percent_over_100():
    """MobileNetV3: 42 / 940 / 19592 % of compute; slot has no column, so it is the machine's."""
    rows = slowdowns("penalty:table=dally-table1", ("MobileNetV3", 8), ("VGG", 16), ("BERT", 2))
    assert rows[0] == pytest.approx([1.42, 1.42, 10.4, 196.92])
    assert rows[1] == pytest.approx([1.01, 1.01, 1.06, 1.07])
    assert rows[2] == pytest.approx([1.08, 1.08, 1.23, 8.15])


def test_dally_table1_orders_the_tiers():
    for model in TABLES["dally-table1"].models():
        slot, machine, rack, network = TABLES["dally-table1"].factors(model, 8)
        assert slot == machine <= rack <= network


def test_chronus_is_the_default_and_the_inverse_of_the_measured_speed():
    """alexnet, 8 GPUs: speed .5083 on 2 nodes (rack), .2684 on 4 nodes (network)."""
    (row,) = slowdowns("penalty", ("alexnet", 8))
    assert row[[SLOT, MACHINE]].tolist() == [1.0, 1.0]
    assert row[RACK] == pytest.approx(1 / 0.5083145152293351)
    assert row[NETWORK] == pytest.approx(1 / 0.26836765904968457)


def test_chronus_fills_what_was_not_measured():
    """2 GPUs were not run on 4 nodes (network = rack); a speed above 1 (inception_v3) is no speed-up."""
    rows = slowdowns("penalty:table=chronus", ("alexnet", 2), ("inception_v3", 2))
    assert rows[0][NETWORK] == rows[0][RACK] == pytest.approx(1 / 0.7450686884120468)
    assert rows[1].tolist() == [1.0] * 4


@pytest.mark.parametrize(("gpus", "measured"), [(3, 4), (5, 6), (7, 8), (16, 8), (1024, 8), (2, 2), (6, 6)])
def test_other_gang_sizes_take_the_nearest_measured_in_log2(gpus, measured):
    """log2: 3 is nearer to 4 (.415) than to 2 (.585); 5 to 6 (.263) than to 4 (.322); 7 to 8 (.193)."""
    rows = slowdowns("penalty", ("vgg16", gpus), ("vgg16", measured))
    assert rows[0].tolist() == rows[1].tolist()


def test_a_tie_between_sizes_goes_to_the_smaller(tmp_path):
    """4 is as far from 2 as from 8 in log2."""
    path = tmp_path / "t.csv"
    path.write_text("model,gpus,machine,rack,network\nm,8,1,8,8\nm,2,1,2,2\n")
    assert slowdowns(f"penalty:table={path}", ("m", 4))[0][RACK] == 2.0


def test_gavel_has_two_tiers_and_never_speeds_up():
    """LM, 8 GPUs: 8.445 beyond the machine; ResNet-50, 8 GPUs measured .965, so 1."""
    rows = slowdowns("penalty:table=gavel", ("LM", 8), ("ResNet-50 (batch size 64)", 8))
    assert rows[0].tolist() == [1.0, 1.0, 8.445, 8.445]
    assert rows[1].tolist() == [1.0] * 4


@pytest.mark.parametrize("network", ["none", "penalty", "penalty:table=dally-table1"])
def test_one_gpu_is_never_slowed_down_nor_refused(network):
    assert slowdowns(network, ("alexnet", 1), ("no such model", 1), ("", 1)).tolist() == [[1.0] * 4] * 3


def test_default_is_for_models_that_the_table_does_not_list():
    rows = slowdowns("penalty:default=1/1.2/1.5", ("secret", 4), ("", 2), ("alexnet", 2))
    assert rows[0].tolist() == rows[1].tolist() == [1.0, 1.0, 1.2, 1.5]
    assert rows[2][RACK] == pytest.approx(1 / 0.7450686884120468)


def test_an_unknown_model_names_the_job_the_model_the_table_and_the_way_out():
    workload = jobs(("alexnet", 2), ("ResNet50", 8), job_id=np.array(["j7", "j8"], dtype=object))
    with pytest.raises(InputError) as raised:
        load_network("penalty").tier_factors(workload, None)
    for word in ("job j8", "8 GPUs", "'ResNet50'", "chronus", "vgg16", "default=MACHINE/RACK/NETWORK"):
        assert word in str(raised.value)


def test_no_jobs_are_no_problem():
    empty = SimpleNamespace(model=np.zeros(0, object), gpus=np.zeros(0, np.int64))
    profile, factors = load_network("penalty").tier_factors(empty, None)
    assert profile.shape == (0,) and factors.shape[1] == 4


def test_a_hundred_thousand_jobs_share_profiles():
    rng = np.random.default_rng(0)
    models = np.array(list(CHRONUS_SPEEDS), dtype=object)[rng.integers(0, 5, 100_000)]
    workload = SimpleNamespace(model=models, gpus=rng.choice([1, 2, 4, 8], 100_000))
    profile, factors = load_network("penalty").tier_factors(workload, None)
    assert len(factors) == 1 + 5 * 3
    for job in (0, 17, 99_999):
        expected = TABLES["chronus"].factors(models[job], workload.gpus[job]) if workload.gpus[job] > 1 else [1.0] * 4
        assert factors[profile[job]].tolist() == list(expected)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([*CHRONUS_SPEEDS, "other"]), st.integers(1, 64)), min_size=1))
def test_profiles_give_each_job_its_own_row(pairs):
    network = load_network("penalty:default=1/2/3")
    profile, factors = network.tier_factors(jobs(*pairs), None)
    assert (factors >= 1.0).all() and len(factors) == len(set(profile))
    for (model, gpus), row in zip(pairs, factors[profile], strict=True):
        expected = TABLES["chronus"].factors(model, gpus) or (1.0, 1.0, 2.0, 3.0)
        assert tuple(row) == ((1.0,) * 4 if gpus == 1 else expected)


def test_a_users_table_from_csv(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("model,slot,machine,rack,network\nMy-Model,1,1.1,1.5,3\n other ,,1,2,2\n")
    rows = slowdowns(f"penalty:table={path}", ("my_model", 64), ("other", 2))
    assert rows.tolist() == [[1.0, 1.1, 1.5, 3.0], [1.0, 1.0, 2.0, 2.0]]
    assert load_network(f"penalty:table={path}").describe() == f"penalty:table={path},default=none,duration=isolated"


BAD_TABLES = [
    ("", "is empty"),
    ("model,machine,rack,network\n", "no rows"),
    ("model,machine,rack\nm,1,1\n", "column 'network' is missing"),
    ("modle,machine,rack,network\nm,1,1,1\n", "did you mean 'model'"),
    ("model,machine,rack,network,rack\nm,1,1,1,1\n", "'rack' is given twice"),
    ("mine,1,2,4\n", "unknown column 'mine'"),
    ("model,machine,rack,network\nm,1,2\n", "line 2: expected 4 values"),
    ("model,machine,rack,network\nm,1,2,3,4\n", "line 2: expected 4 values"),
    ("model,machine,rack,network\n,1,2,3\n", "line 2, column model"),
    ("model,machine,rack,network\nm,fast,2,3\n", "line 2, column machine: 'fast'"),
    ("model,machine,rack,network\nm,1,nan,3\n", "line 2, column rack: 'nan'"),
    ("model,machine,rack,network\nm,1,inf,3\n", "column rack: 'inf'"),
    ("model,machine,rack,network\nm,1,0.5,3\n", "column rack: '0.5', expected a slowdown from 1"),
    ("model,machine,rack,network\nm,1,-2,3\n", "column rack: '-2'"),
    ("model,machine,rack,network\nm,1,,3\n", "column rack: ''"),
    (GOOD + "Mine,1,1,1\n", "line 3: model 'Mine' has a second row for every gang size"),
    ("model,gpus,machine,rack,network\nm,2,1,1,1\nm,2,1,1,1\n", "second row for 2 GPUs"),
    ("model,gpus,machine,rack,network\nm,2,1,1,1\nm,,1,1,1\n", "with and without gpus"),
    ("model,gpus,machine,rack,network\nm,0,1,1,1\n", "column gpus: '0'"),
    ("model,gpus,machine,rack,network\nm,2.5,1,1,1\n", "column gpus: '2.5'"),
    ("model,gpus,machine,rack,network\nm," + "9" * 6000 + ",1,1,1\n", "column gpus"),
    ('model,machine,rack,network\n"m,1,2,3\n', "not csv"),
    ("model,machine,rack,network\n" + "m" * 200_000 + ",1,2,3\n", "not csv"),
    ("model,machine,rack,network\nm\0,1,2,3\n", "not text"),
]


@pytest.mark.parametrize(("text", "says"), BAD_TABLES, ids=range(len(BAD_TABLES)))
def test_a_bad_table_is_one_sentence_with_its_place(tmp_path, text, says):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(InputError) as raised:
        load_table(str(path))
    assert says in str(raised.value)
    assert "bad.csv" in str(raised.value) and "\n" not in str(raised.value) and len(str(raised.value)) < 400


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=120) | st.text(alphabet="mod,1.5\n\"'nae", max_size=80).map(lambda t: (GOOD + t).encode()))
def test_random_tables_are_read_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "random.csv"
    path.write_bytes(content)
    try:
        assert load_table(str(path)).models()
    except InputError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("allreduc", "did you mean 'allreduce'"),
        ("fluid", "known: allreduce, contention, none, penalty"),
        ("contentio", "did you mean 'contention'"),
        ("penalti", "did you mean 'penalty'"),
        ("", "empty"),
        ("none:table=chronus", "unknown parameter 'table'"),
        ("penalty:tabel=chronus", "did you mean 'table'"),
        ("penalty:table=cronus", "did you mean 'chronus'"),
        ("penalty:table=nowhere.csv", "there is no such file"),
        ("penalty:table=/", "is a folder"),
        ("penalty:default=1/2", "three slowdowns"),
        ("penalty:default=1/2/0.5", "three slowdowns from 1"),
        ("penalty:default=1/2/inf", "three slowdowns"),
        ("penalty:default=1/2/nan", "expected a number"),
        ("penalty:default=a/b/c", "expected a number"),
        ("penalty:default=", "three slowdowns"),
        (17, "expected a name"),
        (None, "expected a name"),
    ],
)
def test_a_bad_network_is_one_sentence(source, says):
    with pytest.raises(InputError) as raised:
        load_network(source)
    assert says in str(raised.value) and "\n" not in str(raised.value)


def test_load_network_passes_objects_through_and_describes_itself():
    network = NoNetwork()
    assert load_network(network) is network and isinstance(network, Network)
    text = "penalty:table=gavel,default=1/1.2/1.5,duration=compute"
    assert load_network(text).describe() == text
    assert load_network(load_network(text).describe()) == load_network(text)


def test_list_networks_lists_only_what_loads():
    assert [entry["name"] for entry in list_networks()] == ["none", "penalty", "allreduce", "contention"]
    assert list_networks()[1]["parameters"] == {"table": "chronus", "default": None, "duration": "isolated"}


def test_chronus_numbers_equal_the_real_file():
    file = json.loads(real("chronus/code/data/model_info.json").read_text())
    assert file == {
        model: {str(gpus): {"1": 1.0, **{str(n): v for n, v in nodes.items()}} for gpus, nodes in sizes.items()}
        for model, sizes in CHRONUS_SPEEDS.items()
    }


def test_gavel_numbers_are_the_medians_of_the_real_file():
    measured = defaultdict(list)
    with real("tables/gavel_unconsolidated_slowdown.csv").open() as file:
        for row in csv.DictReader(file):
            if row["gpu"] == "v100":
                measured[row["model"], int(row["scale_factor"])].append(float(row["slowdown_unconsolidated"]))
    medians = {key: statistics.median(values) for key, values in measured.items()}
    embedded = {(model, gpus): v for model, sizes in GAVEL_SLOWDOWNS.items() for gpus, v in sizes.items()}
    assert embedded == pytest.approx(medians)


def test_dally_numbers_equal_the_papers_table():
    with real("tables/dally_table1_comm_pct_of_compute.csv").open() as file:
        for row in csv.DictReader(file):
            expected = [1 + float(row[f"{tier}_pct"]) / 100 for tier in ("machine", "machine", "rack", "network")]
            assert list(TABLES["dally-table1"].factors(row["model"], 8)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("trace", "column", "table"),
    [
        ("dally/batch_500.csv", "model", "dally-table1"),
        ("dally/poisson_411_week1.csv", "model", "dally-table1"),
        ("chronus/code/data/exp/trace_job_Philly_MIX1.csv", "model_name", "chronus"),
    ],
)
def test_the_tables_list_every_model_of_their_own_traces(trace, column, table):
    with real(trace).open() as file:
        models = {row[column] for row in csv.DictReader(file)}
    assert models and all(TABLES[table].factors(model, 8) for model in models)


@pytest.mark.parametrize(
    ("spellings", "name"),
    [
        (("ResNet-18", "resnet18", "ResNet18", "ResNet-18 (batch size 32)"), "resnet18"),
        (("VGG", "vgg11", "VGG-11"), "vgg11"),
        (("BERT", "BERT-large", "bert_large"), "bertlarge"),
        (("inception_v3", "inception3"), "inception3"),
        (("", " ", "(x)"), ""),
    ],
)
def test_spellings_of_one_model_are_one(spellings, name):
    assert {normalised(spelling) for spelling in spellings} == {name}


@pytest.mark.parametrize("threshold", [0.21, DEFAULT_THRESHOLD, 0.41])
def test_skew_column_of_dally_table_1(threshold):
    """Paper dally, Table I: high VGG11, AlexNet, MobileNetV3; low ResNet18, ResNet50, BERT-large."""
    models = np.array(["VGG", "AlexNet", "MobileNetV3", "ResNet18", "ResNet50", "BERT"], dtype=object)
    assert is_skewed(models, threshold).tolist() == [True, True, True, False, False, False]


def test_skew_is_largest_over_total():
    """VGG11: 411,041,792 of 531,405,568 bytes = .7735; ResNet-50: 9,437,184 of 102,011,648 = .0925."""
    assert skew_of("VGG") == pytest.approx(0.7735, abs=5e-5)
    assert skew_of("resnet-50") == pytest.approx(0.0925, abs=5e-5)
    assert math.isnan(skew_of("no such model"))


def test_unknown_models_are_consolidated_unless_told_otherwise():
    models = np.array(["mystery", "", "vgg19", "resnet101"], dtype=object)
    assert is_skewed(models).tolist() == [True, True, True, False]
    assert is_skewed(models, unknown=False).tolist() == [False, False, True, False]
    assert is_skewed(models[:0]).tolist() == []


def test_the_rule_is_strictly_above_the_threshold():
    skew = skew_of("AlexNet")
    assert not is_skewed(np.array(["AlexNet"], dtype=object), skew)[0]
    assert is_skewed(np.array(["AlexNet"], dtype=object), np.nextafter(skew, 0))[0]


@pytest.mark.parametrize(
    ("gpus", "models", "says"),
    [
        ((1, 2, 4), ("VGG11", "", "mystery"), "no model of its jobs"),  # the known one is that of a job of one GPU
        ((1, 2, 4), ("mystery", "", "VGG11"), "1 of the 2 models"),
        ((1, 2, 4), ("mystery", "BERT", "VGG11"), ""),
        ((1, 1, 1), ("", "", ""), ""),  # nothing to consolidate
    ],
)
def test_tiresias_says_where_the_skew_of_models_is_not_known(gpus, models, says):
    """Where none is, it is `las:placer=consolidated`, whatever the models are: the same ends."""
    workload = Workload.from_arrays("by hand", [0.0] * 3, gpus, [5.0] * 3, model=models)
    place = "flat:machines=2,gpus_per_machine=2", "penalty:table=chronus,default=1/1.2/1.5"
    simulator = Simulator(*place, rule=policies.make("tiresias").rule)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        simulator.reset(workload)
    assert [warning.category for warning in caught] == [WorkloadWarning] * bool(says)
    assert not says or says in str(caught[0].message)
    simulator.run()
    other = Simulator(*place, rule=policies.make("las:placer=consolidated").rule)
    other.reset(workload)
    other.run()
    alike = simulator.jobs()["finish_s"].tolist() == other.jobs()["finish_s"].tolist()
    assert alike or not says.startswith("no model")


def test_tiresias_says_nothing_of_models_where_no_network_knows_them():
    workload = Workload.from_arrays("by hand", [0.0], [4], [5.0], model=["mystery"])
    simulator = Simulator("flat:machines=2,gpus_per_machine=2", "none", rule=policies.make("tiresias").rule)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simulator.reset(workload)


@pytest.mark.parametrize("threshold", [-0.1, 1.5, float("nan"), float("inf")])
def test_skew_threshold_out_of_range(threshold):
    with pytest.raises(InputError, match="skew threshold"):
        is_skewed(np.array(["VGG"], dtype=object), threshold)


def test_every_skew_profile_is_a_fraction_with_a_source_and_named_once():
    names = [normalised(profile.model) for profile in PROFILES]
    assert len(set(names)) == len(names)
    assert all(0 < profile.skew <= 1 and profile.source for profile in PROFILES)


def test_dally_skews_equal_the_real_layer_files():
    with real("dally/models_summary.csv").open() as file:
        for row in csv.DictReader(file):
            assert skew_of(row["model"]) == pytest.approx(float(row["skew_largest_over_total"]), abs=5e-5)
    for profile in PROFILES[:6]:
        name = {"VGG11": "VGG", "BERT-large": "BERT"}.get(profile.model, profile.model)
        with real(f"dally/layers_{name}.csv").open() as file:
            sizes = [int(row["allreduce_bytes"]) for row in csv.DictReader(file)]
        assert (max(sizes), sum(sizes)) == (profile.largest, profile.total)
