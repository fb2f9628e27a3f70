"""Regions and their data as values: what is refused, specifications, and the generator's statistics."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import json

import numpy as np
import pytest
from scipy.stats import spearmanr

from clustergym.simulator.base.errors import InputError
from clustergym.simulator.table_placement.placement import Objective, Placement
from clustergym.simulator.table_placement.placement_metrics import placement_state_of, runs_in
from clustergym.simulator.warehouse import mast_statistics
from clustergym.simulator.warehouse.job_families import draw_families, draw_work
from clustergym.simulator.warehouse.mast_data import mast_like, skewed_loads
from clustergym.simulator.warehouse.warehouse_files import load_warehouse, warehouse_from_mapping
from clustergym.tests.support.geo_random import random_warehouse

SPEC = {
    "wan_gbps": 100.0,
    "links": [{"from": "east", "to": "west", "gbps": 8.0}],
    "regions": [
        {
            "name": "east",
            "storage_tb": 50.0,
            "clusters": [
                {"name": "a", "gpu_type": "A100", "gpu_machines": 4},
                {"name": "b", "cpu_machines": 10},
            ],
        },
        {
            "name": "west",
            "storage_tb": 20.0,
            "clusters": [{"name": "a", "gpu_type": "V100", "gpu_machines": 2, "gpus_per_machine": 4}],
        },
    ],
    "apps": [{"name": "spark", "cpu_hours": {"west": 10.0}}],
    "tables": [
        {"name": "clicks", "size_tb": 1.5, "home": "east", "replicas": ["west"]},
        {"name": "users", "size_tb": 2.0, "home": "west"},
    ],
    "jobs": [
        {
            "name": "rank",
            "tables": ["clicks", "users"],
            "gpu_type": "V100",
            "gpus": 8,
            "gpu_hours": 20.0,
            "priority": 0,
        },
        {"name": "count", "tables": ["users"], "kind": "analytics", "cpu_hours": 5.0, "app": "spark"},
    ],
}


def test_a_specification_becomes_a_warehouse(tmp_path):
    (tmp_path / "two.json").write_text(json.dumps(SPEC))
    warehouse = load_warehouse(tmp_path / "two.json")
    world = warehouse.world
    assert (world.name, world.regions, world.gpu_types) == ("two", ("east", "west"), ("A100", "V100"))
    assert world.gpus.tolist() == [[32, 0], [0, 8]]
    assert world.cpu_machines.tolist() == [10, 0]
    assert world.wan_bytes_per_s[0, 1] == 1e9 and world.wan_bytes_per_s[1, 0] == 12.5e9
    assert warehouse.tables.copies.tolist() == [[True, True], [False, True]]
    assert warehouse.jobs.table.tolist() == [0, 1, 1] and warehouse.jobs.gpu_type.tolist() == [1, -1]
    assert warehouse.app_cpu_hours.tolist() == [[0.0, 10.0]]


def test_yaml_is_read_too(tmp_path):
    path = tmp_path / "one.yaml"
    path.write_text(
        "regions: [{name: r, storage_tb: 5, clusters: []}]\ntables: [{name: t, size_tb: 1, home: r}]\n",
        encoding="utf-8",
    )
    assert len(load_warehouse(path).tables) == 1


def changed(path, value):
    """SPEC with another value at a path of keys."""
    spec = copy.deepcopy(SPEC)
    inner = spec
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return spec


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("tables", 0, "home"), "easst", "did you mean 'east'"),
        (("tables", 0, "size_tb"), -1.0, "tables[0].size_tb = -1.0: expected more than 0"),
        (("tables", 1, "name"), "clicks", "'clicks' is used more than once"),
        (("tables", 0, "replicas"), ["north"], "unknown replica of here: table 'clicks' 'north'"),
        (("jobs", 0, "tables"), ["user"], "did you mean 'users'"),
        (("jobs", 0, "tables"), ["users", "users"], "job 0 reads table 1 twice"),
        (("jobs", 0, "tables"), [], "jobs[0].tables = an empty list: expected a list with at least one item"),
        (("jobs", 0, "priority"), 7, "jobs[0].priority = 7: expected at most 6"),
        (("jobs", 0, "gpu_type"), None, "gpu_type of job '0': -1 is out of range, expected the type of its GPUs"),
        (("jobs", 1, "app"), "presto", "unknown app of here: job 'count' 'presto'"),
        (("jobs", 1, "gpu_hours"), 3.0, "gpu_type of job '1': -1 is out of range"),
        (("jobs", 0, "kind"), "inference", "jobs[0].kind"),
        (("regions", 0, "storage_tb"), float("nan"), "regions[0].storage_tb"),
        (("regions", 0, "storage"), 1.0, "unknown key; did you mean 'storage_tb'"),
        (("regions", 1, "name"), "east", "'east' is used more than once"),
        (("links", 0, "gbps"), 0.0, "links[0].gbps = 0.0: expected more than 0"),
        (("links", 0, "to"), "south", "unknown region of here: links 'south'"),
        (("apps", 0, "cpu_hours"), {"wst": 1.0}, "did you mean 'west'"),
    ],
)
def test_a_bad_specification_is_one_sentence(path, value, said):
    with pytest.raises(InputError) as error:
        warehouse_from_mapping(changed(path, value), "here")
    assert said in str(error.value) and "here" in str(error.value) and "\n" not in str(error.value)


def test_values_made_by_hand_are_checked_too():
    warehouse = warehouse_from_mapping(SPEC, "here")
    with pytest.raises(InputError, match="home of table '0': 5 is out of range, expected a region"):
        warehouse.at(np.array([5, 0]))
    with pytest.raises(InputError, match="slowest link of region 'east'"):
        dataclasses.replace(warehouse.world, wan_bytes_per_s=np.zeros((2, 2)))
    with pytest.raises(InputError, match="objective"):
        Objective(remote=-1.0)
    with pytest.raises(InputError, match="table 2: expected 0 to 1"):
        Placement(warehouse, Objective()).change(2, 0)


@pytest.mark.parametrize(
    "parameters", [{"tables": 10}, {"tables": 10**8}, {"regions": 2}, {"regions": 65}, {"reads": 0}]
)
def test_the_generator_refuses_sizes_out_of_range(parameters):
    with pytest.raises(InputError, match=r"mast-like: (tables|regions|reads)=\d+; expected \d+ to \d+"):
        mast_like(**parameters)


@pytest.fixture(scope="module")
def generated():
    return mast_like(20_000, seed=1)


def near(values, published_quantiles, tolerance):
    for probability, value in published_quantiles.items():
        assert np.quantile(values, probability) == pytest.approx(value, rel=tolerance), probability


def test_table_sharing_is_that_of_figure_3(generated):
    jobs = generated.jobs
    near(np.bincount(jobs.table[jobs.training[jobs.owner]], minlength=20_000), mast_statistics.SHARING, 0.35)


def test_sizes_and_demands_have_the_published_percentiles(generated):
    """Within a third: one log-normal does not meet three percentiles of heavy tails, and P99 of sizes is noisy."""
    jobs = generated.jobs
    near(generated.tables.size_bytes, mast_statistics.REPLICATION_BYTES, 0.35)
    with_gpu = jobs.gpus > 0
    near(jobs.gpus[with_gpu], mast_statistics.GPUS, 0.3)
    machines = jobs.cpu_hours[with_gpu] / (jobs.gpu_hours[with_gpu] / jobs.gpus[with_gpu])
    near(machines, mast_statistics.MACHINES, 0.05)
    hours = jobs.gpu_hours[with_gpu] / jobs.gpus[with_gpu]
    near(3600 * hours, {0.5: 1200.0, 0.9: 24_120.0}, 0.2)
    assert hours.max() == pytest.approx(24.0)


def test_shares_of_kinds_and_priorities_are_the_published_ones(generated):
    jobs = generated.jobs
    training = jobs.training
    assert (jobs.gpus[training] > 0).mean() == pytest.approx(mast_statistics.GPU_SHARE, abs=0.02)
    assert jobs.recurring[training].mean() == pytest.approx(mast_statistics.RECURRING_SHARE, abs=0.02)
    shares = np.bincount(jobs.level[training], minlength=7) / training.sum()
    np.testing.assert_allclose(
        shares, np.array(mast_statistics.PRIORITIES) / sum(mast_statistics.PRIORITIES), atol=0.01
    )


def test_v0_is_what_it_was_fitted_to(generated):
    """Demand over supply of high-priority jobs, worst 2.63 and standard deviation 0.76; 90.82 % at home."""
    ledger = Placement(generated, Objective()).ledger
    load = ledger.demand[:, :, :3].sum(axis=(1, 2)) / ledger.supply.sum(axis=1)
    assert load.max() == pytest.approx(mast_statistics.OVERLOAD["V0"], rel=0.1)
    assert load.std() == pytest.approx(mast_statistics.OVERLOAD_DEVIATION["V0"], rel=0.15)
    seated = Placement(generated, Objective(), np.ones(len(generated.jobs), bool)).ledger
    at_home = (seated.region[seated.training == 1] >= 0).mean()
    assert 100 * at_home == pytest.approx(mast_statistics.HOME_RATE["V0"], abs=1.0)
    assert skewed_loads(1000).std() == pytest.approx(mast_statistics.OVERLOAD_DEVIATION["V0"], rel=0.01)


def test_members_of_a_family_read_the_same_tables_and_one_recurs(generated):
    """Mast, Sec. 3.1: experiments about a recurring job; those that nothing recurs of are the fewer."""
    jobs = generated.jobs
    members: dict[tuple[int, ...], list[int]] = {}
    for job in np.flatnonzero(jobs.training).tolist():
        members.setdefault(tuple(jobs.table[jobs.first[job] : jobs.first[job + 1]].tolist()), []).append(job)
    sizes = np.array([len(rows) for rows in members.values()])
    recurring = np.array([jobs.recurring[rows].sum() for rows in members.values()])
    assert sizes.mean() > 2.0 and (recurring < sizes)[sizes > 3].mean() > 0.9
    assert sizes[recurring > 0].sum() > 0.7 * sizes.sum()


def test_gpu_hours_go_with_the_number_of_tables_as_asked():
    """The correlation changes which job asks how much; what is asked stays the same, pair by pair."""
    found, pairs = [], []
    for size_reads in (0.0, 0.5, 1.0):
        families = draw_families(np.random.default_rng(3), 500, 5, 2.0, size_reads)
        family = np.repeat(np.arange(len(families)), families.size)
        work = draw_work(np.random.default_rng(4), families, family, 86_400.0)
        assert (work.gpus[~families.with_gpu[family]] == 0).all()
        some = work.gpus > 0
        hours, reads = (work.gpus * work.run_s)[some], families.reads[family][some]
        pairs.append(sorted(zip(work.gpus[some].tolist(), work.run_s[some].tolist(), strict=True)))
        found.append(float(spearmanr(hours, reads).statistic))
        if size_reads == 1.0:
            bounds = [(hours[reads == count].min(), hours[reads == count].max()) for count in np.unique(reads)]
            assert all(one[1] <= other[0] for one, other in itertools.pairwise(bounds))
    assert pairs[0] == pairs[1] == pairs[2]
    assert abs(found[0]) < 0.1 and 0.3 < found[1] < 0.6 and found[2] > 0.8


def test_hardware_is_uneven(generated):
    world = generated.world
    gpus = world.gpus.sum(axis=1)
    assert (world.gpus > 0).any(axis=1).all() and ((world.gpus > 0).sum(axis=0) >= 2).all()
    assert gpus.max() > 3 * gpus.min()
    assert Placement(generated, Objective()).is_sound()


def test_same_seed_same_arrays():
    one, two, other = mast_like(500, seed=4), mast_like(500, seed=4), mast_like(500, seed=5)
    for name in ("size_bytes", "home"):
        np.testing.assert_array_equal(getattr(one.tables, name), getattr(two.tables, name))
    np.testing.assert_array_equal(one.jobs.table, two.jobs.table)
    np.testing.assert_array_equal(one.world.gpus, two.world.gpus)
    assert not np.array_equal(one.tables.size_bytes, other.tables.size_bytes)


@pytest.mark.parametrize(("tables", "regions"), [(50, 3), (50, 64), (300, 7), (5000, 40)])
def test_any_scale_is_sound(tables, regions):
    warehouse = mast_like(tables, regions, seed=2)
    assert len(warehouse.tables) == tables and len(warehouse.world) == regions
    assert Placement(warehouse, Objective()).is_sound()


def test_no_worst_region_is_below_all_regions_together():
    """Both count the same jobs: those that no region can run are in neither, nor are first-time ones."""
    stranded = 0
    for seed in range(200):
        warehouse = random_warehouse(seed)
        found, jobs = placement_state_of(warehouse), warehouse.jobs
        runs = runs_in(warehouse).any(axis=1)
        counted = jobs.high & jobs.recurring & runs
        supply_h = max(24.0 * warehouse.world.gpus.sum(), 1e-9)
        assert found.least == pytest.approx(jobs.gpu_hours[counted].sum() / supply_h)
        assert found.worst >= found.least * (1.0 - 1e-12)
        stranded += bool((jobs.high & ~runs & (jobs.gpu_hours > 0)).any())
    assert stranded > 20
