"""Topologies from lists of machines: by hand, bad lists, and the real ones."""

from __future__ import annotations

import pytest

from clustergym.simulator.base.errors import InputError
from clustergym.simulator.base.said_once import SettingWarning
from clustergym.simulator.cluster.topology import Topology
from clustergym.simulator.engine.simulator import Simulator
from clustergym.tests.support.paths import DATA, TRACES

NODES = DATA / "nodes.csv"


def test_a_list_by_hand():
    """T4: n1 of 2 and n3 of 4; V100: n2 of 8; n4 has one GPU of a type that is not given, n0 none."""
    topology = Topology.load(f"nodes:file={NODES}")
    assert topology.cluster_gpu_type == ("T4", "V100", "") and topology.cluster_names == ("T4", "V100", "unknown")
    assert topology.machine_gpus.tolist() == [2, 4, 8, 1] and topology.rack_machines.tolist() == [2, 1, 1]
    assert topology.gpu_label(7) == "region0.V100.0.0.1"
    assert topology.about == (
        "6 T4 in 2, 8 V100 in 1, 1 of unknown type in 1; machines without GPUs, left out: 1; racks are not listed: "
        "one for each type"
    )
    assert Topology.load(f"nodes:machine_order=3,file={NODES}").machine_order == "3"


def test_names_of_other_lists_and_any_order_of_columns_are_read(tmp_path):
    path = tmp_path / "list.csv"
    path.write_text("gpu_model,gpu_capacity_num,cpu_num,node_name\nA10,1,128,0\nA10,2,128,1\n")
    assert Topology.load(f"nodes:file={path}").machine_gpus.tolist() == [1, 2]


def test_types_that_nothing_heeds_are_said():
    with pytest.warns(SettingWarning, match="topology 'nodes': network none does not use gpu_type"):
        Simulator(f"nodes:file={NODES}")


HEAD = "sn,gpu,model\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the file is empty; expected a csv list of machines"),
        ("sn,model\nx,T4\n", "line 1: 0 columns of gpus; expected one of gpu, gpu_capacity_num, cap_gpu, gpus"),
        ("sn,gpu,gpus,model\nx,1,1,T4\n", "line 1: 2 columns of gpus"),
        (HEAD, "none of 0 machines has a GPU"),
        (HEAD + "a,0,\n", "none of 1 machines has a GPU"),
        (HEAD + "a,1,T4\na,1,T4\n", "line 3, column sn: 'a' is in line 2 too"),
        (HEAD + "a,two,T4\n", "line 2, column gpu: 'two', expected a whole number of GPUs up to 1024"),
        (HEAD + "a,-1,T4\n", "line 2, column gpu: '-1'"),
        (HEAD + "a,9999999999999,T4\n", "line 2, column gpu: '9999999999999'"),
        (HEAD + "a,1\n", "line 2: 2 values; expected 3"),
        (HEAD + 'a,1,"T4\n', "not csv"),
    ],
)
def test_lists_that_cannot_be_used_are_one_sentence(text, says, tmp_path):
    path = tmp_path / "list.csv"
    path.write_text(text)
    with pytest.raises(InputError) as failure:
        Topology.load(f"nodes:file={path}")
    assert says in str(failure.value) and str(path) in str(failure.value) and "\n" not in str(failure.value)


def test_a_csv_alone_is_answered_with_the_words_that_read_one():
    with pytest.raises(InputError, match="is read as nodes:file=PATH, one of hosts and their switches as hosts:file="):
        Topology.load(str(NODES))
    with pytest.raises(InputError, match="file is missing; write it last, as in nodes:file=PATH"):
        Topology.load("nodes")


@pytest.mark.parametrize(
    ("file", "machines", "gpus", "types"),
    [
        ("alibaba/cluster-trace-gpu-v2023/csv/openb_node_list_all_node.csv", 1213, 6212, 7),
        ("alibaba/cluster-trace-gpu-v2023/csv/openb_node_list_gpu_node.csv", 1213, 6212, 7),
        ("alibaba/cluster-trace-v2026-spot-gpu/node_info_df.csv", 4278, 10412, 6),
    ],
)
def test_real_lists_have_the_published_counts(file, machines, gpus, types):
    if not (TRACES / file).is_file():
        pytest.skip(f"{file} is not among the traces here")
    topology = Topology.load(f"nodes:file={TRACES / file}")
    assert (topology.num_machines, topology.num_gpus, topology.num_clusters) == (machines, gpus, types)
