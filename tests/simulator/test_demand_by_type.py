"""As GPUs of which types jobs that accept several count in the slow path: by hand, and in any order of types."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from clustergym.policies.mast.mast import hours_of_a_day
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.table_placement.placement import Objective, Placement
from clustergym.simulator.warehouse.warehouse import Warehouse, type_shares
from clustergym.simulator.workloads import open_workload
from clustergym.tests.support import geo_small
from clustergym.tests.support.geo_random import random_warehouse
from clustergym.tests.support.geo_small import A100, V100

BOTH = 1 << A100 | 1 << V100


def choosing_history():
    """The history of `geo_small`: 64 hours at `clicks` and `users`, now on A100 or V100; 16 on V100 at `ads`."""
    plain = geo_small.small_history()
    return replace(plain, accepts=np.array([BOTH, 1 << V100, 0], np.int64))


def placement_of(home):
    """One job of 64 GPU-hours that accepts both types, and reads tables 0 and 1, with homes as told."""
    jobs = choosing_history().only(np.array([True, False, False]))
    world, tables = geo_small.small_world(), geo_small.small_tables()
    warehouse = Warehouse(world, tables, jobs, np.zeros((0, 3)))
    return Placement(warehouse.at(np.array(home)), Objective())


@pytest.mark.parametrize(("region", "hours"), [(0, [64, 0]), (1, [64 / 3, 128 / 3]), (2, [64, 0])])
def test_a_job_counts_as_each_type_by_its_share_of_the_regions_gpus(region, hours):
    """The east has 48 A100, the west 16 A100 and 32 V100, the south 16 A100."""
    ledger = placement_of([region, region, 1, 1, 2]).ledger
    expected = np.zeros((3, 2))
    expected[region] = np.floor(3600.0 * np.array(hours))
    assert ledger.demand[:, :, 0].tolist() == expected.tolist() and ledger.demand.sum() == expected.sum()


def test_where_a_region_has_none_the_shares_are_those_of_all_and_where_none_has_any_they_are_even():
    sets = choosing_history().type_sets
    found = type_shares(sets, np.array([[0, 0], [6, 2]]))[sets.row]
    assert found[0].tolist() == [[0.75, 0.25], [0.75, 0.25]]
    assert type_shares(sets, np.zeros((1, 2), np.int64))[sets.row[0]].tolist() == [[0.5, 0.5]]
    assert found[1].tolist() == [[0.0, 1.0]] * 2 and not found[2].any()


@pytest.mark.parametrize("seed", range(10))
def test_the_order_of_types_changes_no_cost(seed):
    """Types numbered the other way round, in clusters and in what jobs accept."""
    types = 3
    warehouse = random_warehouse(seed, types=types, jobs=12, choosing=0.7)
    world, jobs = warehouse.world, warehouse.jobs
    turned = np.where(world.clusters.gpu_type < 0, -1, types - 1 - world.clusters.gpu_type)
    accepts = jobs.type_sets.accepted(types)[jobs.type_sets.row, ::-1] @ (1 << np.arange(types))
    lowest = np.array([(bits & -bits).bit_length() - 1 for bits in accepts.tolist()])
    other = replace(
        warehouse,
        world=replace(world, gpu_types=world.gpu_types[::-1], clusters=replace(world.clusters, gpu_type=turned)),
        jobs=replace(jobs, gpu_type=lowest, accepts=accepts),
    )
    one, two = Placement(warehouse, Objective()), Placement(other, Objective())
    assert two.cost == pytest.approx(one.cost, rel=1e-12)
    assert two.best_moves() == pytest.approx(one.best_moves(), abs=1e-12)
    assert (two.ledger.demand[:, ::-1] == one.ledger.demand).all()


def test_early_binding_by_the_demand_of_a_day_counts_so_too():
    """`clicks` at home in the east: 64 h of A100, as nothing else is there; in the west a third of it."""
    tables = geo_small.small_tables()
    supply = np.array([[48, 0, 0], [16, 32, 0], [16, 0, 0]], np.float64)
    for home, hours in ((0, [64.0, 0.0]), (1, [64 / 3, 128 / 3])):
        lying = replace(tables, home=np.array([home, 0, 2, 1, 2]), copies=np.ones((5, 3), bool))
        asked = geo_small.demands([([(A100, 8)], [0], 0, 0, 0.0)], tables=lying, history=choosing_history())
        assert hours_of_a_day(asked, supply)[home, :2] == pytest.approx(hours)


def test_what_the_slow_path_knows_accepts_what_the_workload_does(tmp_path):
    """Of families of any type, and of files with and without a history of their own."""
    geo = open_workload("mast-like:jobs=40,days=0.3,tables=12,any_type=1", seed=1).geo
    asks = geo.history.gpu_type >= 0
    assert asks.any() and (geo.history.accepts[asks] == (1 << len(geo.gpu_types) - 1) - 1).all()
    workload = geo_small.choosing_workload(3, share=1.0)
    workload = workload.with_geo(replace(workload.geo, history=choosing_history()))
    path = tmp_path / "w.csv"
    workload.save(path)
    assert open_workload(str(path)).geo == workload.geo
    (tmp_path / "w.history.csv").unlink()
    read = open_workload(str(path)).geo.history
    assert (read.accepts[read.gpu_type >= 0] == BOTH).all() and (read.gpu_type >= 0).any()


def test_a_set_that_does_not_fit_is_refused():
    jobs = replace(choosing_history(), accepts=np.array([1 << V100, 1 << V100, 0], np.int64))
    with pytest.raises(InputError, match="accepted types of job '0': 2"):
        Warehouse(geo_small.small_world(), geo_small.small_tables(), jobs, np.zeros((0, 3)))
