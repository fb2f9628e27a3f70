"""Regions as a topology, and workloads that ask for parts, tables and levels."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clustergym.experiments.storing.identity import fingerprint
from clustergym.policies.tetris import VERSIONS, Tetris
from clustergym.simulator.base.decisions import Replicate
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.cluster.region_hardware import RegionHardware
from clustergym.simulator.cluster.region_network import CPU_TYPE
from clustergym.simulator.cluster.topology import Topology
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.workloads import Workload, open_workload
from clustergym.tests.support import geo_small


def test_a_world_is_a_topology_and_back() -> None:
    world = geo_small.small_world()
    topology = world.topology()
    assert topology.region_names == geo_small.REGIONS
    assert topology.cluster_names == ("a", "b", "b-cpu", "a", "a-cpu", "b", "a")
    assert topology.cluster_gpu_type == ("A100", "A100", CPU_TYPE, "V100", CPU_TYPE, "A100", "A100")
    units = np.bincount(topology.gpu_cluster)
    assert units.tolist() == [32, 16, 16, 32, 8, 16, 16]
    assert set(topology.machine_gpus[topology.rack_cluster[topology.machine_rack] == 2]) == {1}
    again = RegionHardware.of(topology)
    assert np.array_equal(again.gpus, world.gpus) and np.array_equal(again.cpu_machines, world.cpu_machines)
    assert again.gpu_types == world.gpu_types
    assert again.topology() == topology and hash(again.topology()) == hash(topology)
    assert RegionHardware.of(topology, ("V100",)).gpu_types == ("V100", "A100")


def test_lands_are_part_of_what_a_topology_is() -> None:
    one = geo_small.small_topology()
    other = replace(geo_small.small_world(), storage_bytes=np.array([1, 1, 1])).topology()
    assert one != other and one == geo_small.small_topology()
    assert Topology.load("flat").region_network is None


def test_a_region_without_machines_is_one_sentence() -> None:
    world = geo_small.small_world()
    with pytest.raises(InputError, match=r"'south': 0 is out of range, expected one at least"):
        machines = np.where(world.clusters.region == 2, 0, world.clusters.gpu_machines)
        replace(world, clusters=replace(world.clusters, gpu_machines=machines)).topology()
    with pytest.raises(InputError, match="no regions with storage; expected such as mast:regions=4"):
        RegionHardware.of(Topology.load("flat"))


SPEC = {
    "wan_gbps": 8,
    "links": [{"from": "east", "to": "west", "gbps": 16}],
    "regions": [
        {"name": "east", "storage_tb": 2.5, "clusters": [{"name": "a", "gpu_type": "A100", "gpu_machines": 3}]},
        {
            "name": "west",
            "storage_tb": 1,
            "fault_group": "east",
            "clusters": [{"name": "a", "gpu_type": "V100", "gpu_machines": 1, "cpu_machines": 20}],
        },
    ],
}


def test_a_specification_with_storage_is_a_topology_with_lands(tmp_path: Path) -> None:
    topology = Topology.from_spec(SPEC)
    assert topology.region_network is not None
    assert topology.region_network.storage_bytes.tolist() == [25 * 10**11, 10**12]
    assert topology.region_network.wan_bytes_per_s[0, 1] == 2e9 and topology.region_network.wan_bytes_per_s[1, 0] == 1e9
    assert topology.region_network.fault_group.tolist() == [0, 0]
    assert topology.cluster_names == ("a", "a", "a-cpu") and topology.num_cpu_machines == 20
    assert repr(topology) == "<Topology custom: 2 regions, 3 clusters, 4 racks, 24 machines, 32 GPUs, 20 CPU machines>"
    (tmp_path / "mine.json").write_text(json.dumps(SPEC), encoding="utf-8")
    assert Topology.load(tmp_path / "mine.json").name == "mine"
    whole = {**SPEC, "tables": [{"name": "t", "size_tb": 1.0, "home": "west"}]}
    assert Topology.from_spec(whole) == topology


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("regions", 0, "storage_tb"), -1.0, "regions[0].storage_tb = -1.0: expected at least 0"),
        (("regions", 1, "name"), "east", "the name 'east' is used more than once"),
        (("regions", 0, "clusters"), [], "'east': 0 is out of range, expected one at least"),
        (("regions", 0, "clusters", 0, "gpu_type"), "CPU", "has a GPU type 'CPU'; expected another name"),
        (("regions", 0, "clusters", 0, "gpus"), 8, "clusters[0].gpus: unknown key; known: name, gpu_type"),
        (("links", 0, "to"), "wst", "did you mean 'west'"),
        (("wan_gbps",), "fast", "wan_gbps = 'fast': expected a number"),
        (("regions", 0, "clusters", 0, "gpu_machines"), 10**6, "8000028 GPUs are too many"),
    ],
)
def test_a_bad_specification_is_one_sentence(path: tuple[str | int, ...], value: object, said: str) -> None:
    spec = copy.deepcopy(SPEC)
    inner: Any = spec
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises(InputError) as error:
        Topology.from_spec(spec, "here")
    assert said in str(error.value) and "here" in str(error.value) and "\n" not in str(error.value)


def test_preset_mast_is_uneven_and_of_the_size_asked() -> None:
    topology = Topology.load("mast:regions=20,gpus=100000")
    world = RegionHardware.of(topology)
    assert topology.num_gpus == 200_000 and topology.num_cpu_machines == 100_000
    assert int(world.gpus.sum()) == 100_000 and int(world.cpu_machines.sum()) == 100_000
    units = np.bincount(topology.gpu_cluster)
    assert units[np.array(topology.cluster_gpu_type) != CPU_TYPE].max() <= 1024
    share = world.gpus.sum(axis=1) / 100_000
    assert share.max() > 3 * share.min()
    assert ((world.gpus > 0).sum(axis=0) >= 2).all() and (world.gpus.sum(axis=1) > 0).all()
    assert share.argmin() == world.storage_bytes.argmax()
    assert (
        topology == Topology.load("mast:regions=20,gpus=100000") != Topology.load("mast:regions=20,gpus=100000,seed=1")
    )


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("mast:regions=0", "regions=0; expected a whole number from 1 to 64"),
        ("mast:regions=65", "regions=65; expected"),
        ("mast:gpus=100", "gpus=100; expected a multiple of 8"),
        ("mast:gpus=8", "expected at least 96, a machine of 8 each"),
        ("mast:cpu_machines=-1", "cpu_machines=-1; expected"),
        ("mast:storage_tb=0", "storage_tb=0; expected a number above 0"),
        ("mast:wan_gbps=-3", "wan_gbps=-3; expected"),
        ("mast:gpus=1000000", "2000000 GPUs are too many"),
        ("mast:region=4", "did you mean 'regions'"),
    ],
)
def test_bad_parameters_of_preset_mast_are_one_sentence(word: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        Topology.load(word)
    assert said in str(error.value) and "\n" not in str(error.value)


def test_taking_jobs_takes_what_they_ask() -> None:
    workload = geo_small.small_workload()
    some = workload.take([8, 5, 9])
    geo = some.geo
    assert geo is not None and len(geo) == 3
    assert some.gpus.tolist() == geo.units.tolist() == [28, 24, 8]
    assert geo.first.tolist() == [0, 2, 3, 5]
    assert geo.table.tolist() == [2, 3, 0, 4, 1]
    assert geo.level.tolist() == [2, 1, 4]
    assert geo.tables is workload.geo.tables  # type: ignore[union-attr]
    assert geo == workload.take([5, 8, 9]).geo and geo != workload.geo


def test_hosts_are_the_regions_that_could_hold_all_parts() -> None:
    geo = geo_small.small_workload().geo
    assert geo is not None
    hosts = geo.hosts(geo_small.small_topology())
    assert hosts.astype(int).tolist() == [
        [1, 1, 1],
        [1, 1, 0],
        [0, 1, 0],
        [1, 1, 1],
        [1, 0, 0],
        [0, 1, 0],
        [1, 1, 0],
        [0, 1, 0],
        [1, 0, 0],
        [1, 1, 1],
    ]


def test_parts_of_one_type_may_need_several_clusters() -> None:
    geo = geo_small.demands([([(0, 32), (0, 16)], [], 6, 0, 0.0), ([(0, 24), (0, 24)], [], 6, 0, 0.0)])
    assert geo.hosts(geo_small.small_topology()).tolist() == [[True, False, False], [False, False, False]]


def test_the_warehouse_of_a_workload() -> None:
    geo = geo_small.small_workload().geo
    assert geo is not None
    topology = geo_small.small_topology()
    warehouse = geo.warehouse(topology)
    assert warehouse.world.gpu_types == ("A100", "V100")
    assert np.array_equal(warehouse.tables.home, geo_small.HOME) and warehouse.jobs is geo.history
    copies = geo.tables.copies.copy()
    copies[0, 1] = True
    moved = geo.warehouse(topology, home=np.array([1, 0, 1, 1, 2]), copies=copies)
    assert moved.tables.home[0] == 1 and moved.tables.copies[0].tolist() == [True, True, False]


def test_a_workload_that_does_not_fit_the_topology_is_one_sentence() -> None:
    geo = geo_small.small_workload().geo
    assert geo is not None
    topology = geo_small.small_topology()
    with pytest.raises(InputError, match="'flat' has no regions with storage"):
        geo.check_fits(Topology.load("flat"))
    with pytest.raises(InputError, match="has the regions east, west, south, but the workload's tables lie in a, b, c"):
        replace(geo, regions=("a", "b", "c")).check_fits(topology)
    with pytest.raises(InputError, match="no cluster of type 'H100', which the workload asks; it has A100, CPU, V100"):
        replace(geo, gpu_types=("A100", "H100", CPU_TYPE)).check_fits(topology)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"level": np.array([7])}, "level of job '1': 7 is out of range, expected 0 to 6"),
        ({"tenant": np.array([2])}, "tenant of job '1': 2 is out of range, expected 0 to 1"),
        ({"part_type": np.array([[-1, 0, -1, -1]])}, "parts of job '1'"),
        ({"part_units": np.array([[0, 0, 0, 0]])}, "units of job '1'"),
        ({"container_s": np.array([-1.0])}, "container_s of job '1': -1.0 is out of range"),
        ({"table": np.array([9])}, "job 1 reads table 9; expected 0 to 4"),
        ({"table": np.array([1, 1]), "first": np.array([0, 2])}, "job 1 reads table 'users' twice"),
        ({"gpu_types": ("A100", "V100")}, "CPU last"),
        ({"slo_s": np.zeros(7)}, "slo_s"),
        ({"checkpoint_s": -1.0}, "checkpoint_s = -1.0"),
        ({"table_names": ("a", "b", "c", "d", "a")}, "5 names of 5 tables; expected one each, no two alike"),
    ],
)
def test_demands_out_of_range_are_one_sentence(changes: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        geo_small.demands([([(0, 8)], [0], 6, 0, 0.0)], **changes)


def test_units_are_those_of_the_workload() -> None:
    workload = geo_small.small_workload()
    with pytest.raises(InputError, match="parts do not add up to their gpus"):
        workload.take([0]).with_geo(geo_small.demands([([(0, 9)], [0], 6, 0, 0.0)]))


@pytest.fixture(scope="module")
def drawn() -> Workload:
    """A day at the scale of the paper, nothing capped but by clusters of 1,024 GPUs."""
    return open_workload("mast-like:regions=20,gpus=100000,load=1.3,machine_share=1,backlog=false,seed=3")


def quantiles(values: np.ndarray) -> list[float]:
    return np.quantile(values, [0.5, 0.9, 0.99]).tolist()


def test_percentiles_are_those_published(drawn: Workload) -> None:
    """Paper mast, Sec. 2, 3.4, 5.1, 5.5; some 48,000 workloads."""
    geo = drawn.geo
    assert geo is not None and len(drawn) > 40_000
    gpus, machines = geo.asked.T
    assert quantiles(gpus[gpus > 0]) == pytest.approx([16, 64, 128], rel=0.03)
    assert quantiles(machines + np.ceil(gpus / 8)) == pytest.approx([72, 180, 205], rel=0.03)
    minutes = drawn.duration_s / 60.0
    assert quantiles(minutes[gpus > 0]) == pytest.approx([20, 6.7 * 60, 66 * 60], rel=0.1)
    assert quantiles(minutes[gpus == 0]) == pytest.approx([38, 7.9 * 60, 38 * 60], rel=0.1)
    assert quantiles(geo.container_s) == pytest.approx([150, 278, 449], rel=0.03)
    assert quantiles(geo.tables.size_bytes / 1e9) == pytest.approx([0.565, 103, 7500], rel=0.35)
    readers = np.bincount(geo.table, minlength=len(geo.tables))
    assert quantiles(readers)[:2] == pytest.approx([3, 17], abs=1) and quantiles(readers)[2] == pytest.approx(
        45, rel=0.15
    )
    assert (gpus > 0).mean() == pytest.approx(0.7, abs=0.01)
    assert geo.recurring.mean() == pytest.approx(0.3, abs=0.005)
    shares = np.bincount(geo.level, minlength=7) / len(drawn)
    assert shares == pytest.approx([0.03, 0.20, 0.16, 0.54, 0.002, 0.005, 0.0602], abs=0.008)


def test_the_load_is_what_was_asked(drawn: Workload) -> None:
    geo = drawn.geo
    assert geo is not None
    offered = (geo.asked[:, 0] * drawn.duration_s).sum() / 86400.0 / 100_000
    assert offered == pytest.approx(1.3, rel=0.08)
    hour = (drawn.arrival_s // 3600.0).astype(int)
    arriving = np.bincount(hour, minlength=24) / len(drawn) * 24
    assert arriving[14:16] == pytest.approx(1.4, abs=0.06) and arriving[2:4] == pytest.approx(0.6, abs=0.06)


def test_a_workload_fits_its_preset_where_its_tables_lie(drawn: Workload) -> None:
    geo, topology = drawn.geo, Topology.load("mast:regions=20,gpus=100000")
    assert geo is not None
    hosts = geo.hosts(topology)
    assert hosts.any(axis=1).all()
    home = geo.tables.home[geo.table]
    main = home[geo.first[:-1]]
    apart = np.maximum.reduceat(home != np.repeat(main, np.diff(geo.first)), geo.first[:-1])
    assert hosts[np.arange(len(drawn)), main].all()
    assert apart.mean() == pytest.approx(0.09, abs=0.02)
    warehouse = geo.warehouse(topology)
    stored = np.bincount(geo.tables.home, geo.tables.size_bytes, 20)
    assert (1.19 * stored <= warehouse.world.storage_bytes).all()
    training = warehouse.jobs.training
    assert training.sum() == geo.recurring.sum() and warehouse.jobs.recurring.all() and (~training).any()


def test_the_backlog_fills_the_regions() -> None:
    workload = open_workload("mast-like:regions=20,gpus=100000,load=0.9")
    geo = workload.geo
    assert geo is not None
    there = workload.arrival_s == 0.0
    assert geo.asked[there, 0].sum() / 100_000 == pytest.approx(0.9, abs=0.15)
    assert (geo.container_s[there] == 0.0).all() and (geo.container_s[~there] > 0.0).all()


def test_recurring_workloads_come_every_day_alike() -> None:
    workload = open_workload("mast-like:days=3,jobs=600,gpus=512,seed=2")
    geo = workload.geo
    assert geo is not None and len(workload) == 600
    by_name: dict[str, list[int]] = {}
    for row, name in enumerate(workload.job_id):
        if name.startswith("r"):
            by_name.setdefault(name.split(".")[0], []).append(row)
    assert max(map(len, by_name.values())) == 3
    for rows in by_name.values():
        assert len(set(workload.gpus[rows])) == len(set(geo.level[rows])) == 1
        assert np.ptp(workload.arrival_s[rows] % 86400.0) < 7200 or np.ptp(workload.arrival_s[rows] % 86400.0) > 79200


def test_replicas_hold_the_share_of_the_partitions_that_jobs_read() -> None:
    """Nothing else is drawn; a quarter of the bytes in storage, on the links, and in what Tetris counts on."""
    word, topology = "mast-like:jobs=60,scale=1,tables=24,seed=3", Topology.load("mast:regions=4,gpus=256")
    whole, quarter = open_workload(word), open_workload(f"{word},read_share=0.25")
    assert whole.geo is not None and quarter.geo is not None
    tables = quarter.geo.tables
    again = quarter.with_geo(replace(quarter.geo, tables=replace(tables, read_share=np.ones(24))))
    assert fingerprint(again) == fingerprint(whole) != fingerprint(quarter)
    table = int(tables.size_bytes.argmax())
    to = int(np.argmax(np.arange(4) != tables.home[table]))
    found = []
    for workload in (whole, quarter):
        simulator = Simulator(topology)
        simulator.reset(workload, 0)
        stored = simulator.view.stored_bytes[to]
        simulator.apply(Replicate(table, to))
        (_, _, _, sent) = simulator.view.transfers[0]
        plan = Tetris(VERSIONS["static"]).plan(workload.geo.warehouse(topology))
        had = workload.geo.tables
        has = replace(had, copies=plan.copies, whole=plan.whole).held_bytes.sum() - had.held_bytes.sum()
        assert plan.copied_bytes == pytest.approx(has, rel=1e-3) and plan.whole.any(axis=1).all()
        found.append((sent, simulator.view.stored_bytes[to] - stored, has, plan.copies.sum()))
    (sent, held, counted, copies), (less_sent, less_held, less_counted, less_copies) = found
    assert sent == held == tables.size_bytes[table] and less_sent == less_held == np.ceil(sent / 4)
    assert copies == less_copies and tables.size_bytes.sum() <= less_counted <= counted  # disasters take all of each


def test_fresh_levels_are_those_above_and_go_through_files(tmp_path) -> None:
    word = "mast-like:jobs=60,scale=1,tables=24,seed=3"
    plain, fresh = open_workload(word), open_workload(f"{word},fresh_levels=3")
    assert plain.geo is not None and fresh.geo is not None and not plain.geo.fresh.any()
    assert (fresh.geo.fresh == (plain.geo.level < 3)).all() and 0 < fresh.geo.fresh.sum() < 60
    fresh.save(tmp_path / "week.csv")
    assert (open_workload(str(tmp_path / "week.csv")).geo.fresh == fresh.geo.fresh).all()
    with pytest.raises(InputError, match="fresh_levels=8; expected 0 to 7"):
        open_workload(f"{word},fresh_levels=8")


def test_families_of_any_type_change_nothing_else(tmp_path) -> None:
    word = "mast-like:jobs=80,scale=1,tables=24,seed=3"
    plain, some, all_ = (open_workload(f"{word}{more}") for more in ("", ",any_type=0.5", ",any_type=1"))
    for found in (some, all_):
        assert found.geo is not None and (found.arrival_s == plain.arrival_s).all() and (found.gpus == plain.gpus).all()
        assert (found.geo.part_units == plain.geo.part_units).all() and (found.geo.table == plain.geo.table).all()
        kept = ~found.geo.chooses
        assert (found.geo.accepts[kept] == plain.geo.accepts[kept]).all()
    with_gpu = plain.geo.asked[:, 0] > 0
    assert (all_.geo.chooses == with_gpu).all() and 0.2 < some.geo.chooses.sum() / with_gpu.sum() < 0.8
    assert set(some.geo.accepts[some.geo.chooses][:, 0].tolist()) == {0b111}
    assert (all_.geo.hosts(Topology.load("mast")) | ~plain.geo.hosts(Topology.load("mast"))).all()
    some.save(tmp_path / "some.csv")
    assert open_workload(str(tmp_path / "some.csv")).geo == some.geo


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("days=0", "days=0; expected a number above 0, up to 366"),
        ("load=-1", "load=-1; expected"),
        ("reads=0.5", "reads=0.5; expected 1 to 100"),
        ("size_reads=1.5", "size_reads=1.5; expected 0 to 1"),
        ("scale=2", "scale=2; expected a number above 0, up to 1"),
        ("machine_share=0", "machine_share=0; expected"),
        ("read_share=0", "read_share=0; expected a number above 0, up to 1"),
        ("read_share=1.01", "read_share=1.01; expected a number above 0, up to 1"),
        ("longest_h=-3", "longest_h=-3; expected"),
        ("tables=0", "tables=0; expected 1 to 1000000"),
        ("drift=1.5", "drift=1.5; expected 0 to 1"),
        ("any_type=2", "any_type=2; expected 0 to 1"),
        ("zones=maybe", "zones 'maybe'; known: off, on"),
        ("storage_ratio=0.9", "storage_ratio=0.9; expected 1 to 100"),
        ("cpu_machines=0", "has no CPU machines"),
        ("gpus=12", "gpus=12; expected a multiple of 8"),
        ("regins=3", "did you mean 'regions'"),
        ("seed=-1", "seed = -1: expected a whole number of at least 0"),
        ("world=-1", "world=-1; expected a whole number of at least 0"),
    ],
)
def test_bad_parameters_of_the_generator_are_one_sentence(word: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        open_workload(f"mast-like:{word}")
    assert said in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "word",
    [
        "regions=1,gpus=64,jobs=5",
        "jobs=1",
        "tables=1,jobs=30",
        "reads=9,jobs=50,regions=3",
        "days=0.1",
        "days=0.1,drift=1",
        "jobs=2,tables=1,days=2,drift=0.01",
    ],
)
def test_small_workloads_can_be_drawn_too(word: str) -> None:
    workload = open_workload(f"mast-like:{word}")
    assert workload.geo is not None and len(workload.geo) == len(workload)


def test_quotas_share_out_the_supply_and_types_are_asked_alike(drawn: Workload) -> None:
    geo = drawn.geo
    assert geo is not None
    world = RegionHardware.of(Topology.load("mast:regions=20,gpus=100000"), geo.gpu_types[:-1])
    hours = drawn.duration_s / 3600.0
    asked = [(np.where(geo.part_type == kind, geo.part_units, 0).sum(axis=1) * hours).sum() for kind in range(3)]
    load = np.array(asked) / world.gpus.sum(axis=0) / 24.0
    assert load == pytest.approx(1.3, rel=0.15)
    lowest = np.isin(np.arange(len(geo.quota)), geo.tenant[geo.level == 6])
    assert (geo.quota[lowest] == 0).all()
    assert 100_000 <= geo.quota[:, 0].sum() < 170_000
    for tenant in range(0, len(geo.quota), 97):
        own = geo.asked[geo.tenant == tenant, 0]
        assert lowest[tenant] or geo.quota[tenant, 0] >= np.quantile(own, 0.9, method="lower")
