"""A day of Tetris on instances of a few tables: what is charged to the quota, who gets copies, and what `milp` does."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clustergym.policies.tetris import VERSIONS, Tetris, optimum
from clustergym.policies.tetris.milp import best_homes
from clustergym.policies.tetris.table_search import climb, wander
from clustergym.policies.tetris.tetris import replicate
from clustergym.simulator.table_placement.placement import Placement
from clustergym.simulator.warehouse.warehouse_files import warehouse_from_mapping

V0, V2 = VERSIONS["static"], VERSIONS["tetris-v2"]
TB = 1e12


def region(name, machines, group=None, storage_tb=1000.0):
    """GPU machines of 8 GPUs by type."""
    clusters = [{"name": gpu, "gpu_type": gpu, "gpu_machines": count} for gpu, count in machines.items()]
    found = {"name": name, "storage_tb": storage_tb, "clusters": clusters}
    return found if group is None else {**found, "fault_group": group}


def table(name, home, size_tb=1.0, replicas=(), read_share=1.0):
    return {"name": name, "size_tb": size_tb, "home": home, "replicas": list(replicas), "read_share": read_share}


def training(name, tables, gpu, hours=50.0, priority=0):
    return {"name": name, "tables": tables, "gpu_type": gpu, "gpus": 8, "gpu_hours": hours, "priority": priority}


def warehouse_of(regions, tables, jobs):
    return warehouse_from_mapping(
        {"wan_gbps": 100.0, "regions": regions, "tables": tables, "jobs": jobs}, "the warehouse of a test"
    )


def copies_of(warehouse, version=V0, quota_bytes=math.inf):
    copies, copied_bytes = replicate(warehouse, warehouse.tables.home, version, quota_bytes)
    return copies.astype(int).tolist(), copied_bytes


@pytest.mark.parametrize("search", [climb, best_homes, lambda placement, quota: wander(placement, quota, 0, None)])
@pytest.mark.parametrize(("read_share", "missing"), [(1.0, 0.0), (0.25, 0.75 * TB)])
def test_a_move_to_where_a_copy_lies_takes_what_the_copy_lacks(search, read_share, missing):
    warehouse = warehouse_of(
        [region("small", {"A": 1}), region("large", {"A": 40})],
        [table("t", "small", replicas=["large"], read_share=read_share)],
        [training("a", ["t"], "A", 500.0)],
    )
    plan = Tetris(V2, missing + 1e7 if missing else 0.0, search).plan(warehouse)
    assert plan.home.tolist() == [1] and plan.copies.tolist() == [[True, True]]
    assert missing <= plan.copied_bytes < missing + 1024.0
    if missing:
        assert not Tetris(V2, missing - 1024.0, search).plan(warehouse).moves
    assert Placement(warehouse, V2.objective).moved_kib == 0


def test_the_optimum_within_a_quota_counts_what_lies_there_as_nothing():
    warehouse = warehouse_of(
        [region("small", {"A": 1}), region("large", {"A": 40}, storage_tb=9000.0)],
        [table("t", "small", replicas=["large"]), table("u", "small", 2.0)],
        [training("a", ["t"], "A", 500.0), training("b", ["u"], "A", 500.0)],
    )
    for quota_bytes, home in ((0.0, [1, 0]), (2.1 * TB, [1, 1])):
        assert optimum(Placement(warehouse, V2.objective), quota_bytes)[0].tolist() == home


@pytest.mark.parametrize("quota_bytes", [0.0, 1.5 * TB, math.inf])
def test_copies_of_stranded_jobs_that_lie_already_stay_whatever_the_quota(quota_bytes):
    """Two tables of 1 TB lie where the only B GPUs are; the copy for disasters lies elsewhere."""
    warehouse = warehouse_of(
        [region("home", {"A": 4}), region("refuge", {"A": 9}), region("b", {"B": 8})],
        [table(name, "home", replicas=["refuge", "b"]) for name in ("t", "u")],
        [training("a", ["t"], "A"), training("a2", ["t", "u"], "A"), training("b", ["t", "u"], "B")],
    )
    assert copies_of(warehouse, V0, quota_bytes) == ([[1, 1, 1], [1, 1, 1]], 0.0)


def test_a_quota_goes_to_tables_of_high_priority_first():
    warehouse = warehouse_of(
        [region("a", {"A": 4}), region("b", {"B": 4})],
        [table("unread", "a", 9.0), table("cold", "a", 2.0), table("hot", "a")],
        [training("b", ["hot"], "B", 500.0), training("low", ["cold"], "A", 500.0, priority=6)],
    )
    assert copies_of(warehouse, V2, 9.5 * TB) == ([[1, 0], [1, 1], [1, 1]], 3.0 * TB)


def test_a_job_asks_its_gpus_once_however_many_tables_it_reads():
    """60 h are asked in the first region and 100 h in the second: the first has more to spare."""
    warehouse = warehouse_of(
        [region(name, {"A": 1}) for name in ("two", "one", "home")],
        [table("t", "two"), table("s", "two"), table("v", "one"), table("u", "home", 9.0)],
        [
            training("reads two", ["t", "s"], "A", 60.0, 3),
            training("one", ["v"], "A", 100.0, 3),
            training("u", ["u"], "A", 10.0),
        ],
    )
    assert copies_of(warehouse)[0][3] == [1, 0, 1]


def test_a_table_whose_fault_group_is_all_there_is_gets_a_copy_inside_it():
    regions = [region("home", {"A": 1}, "one"), region("near", {"A": 9}, "one")]
    tables, jobs = [table("t", "home")], [training("a", ["t"], "A")]
    assert copies_of(warehouse_of(regions, tables, jobs))[0] == [[1, 1]]
    far = [*regions, region("far", {"A": 1}, "other")]
    assert copies_of(warehouse_of(far, tables, jobs))[0] == [[1, 0, 1]]


def test_milp_climbs_what_is_too_much_for_it():
    """Few tables and a single way to seat each job, but 50 analytics jobs of six tables in four regions."""
    rng = np.random.default_rng(0)
    names = [f"t{i}" for i in range(8)]
    jobs = [{"name": f"j{i}", "tables": rng.permutation(names)[:6].tolist(), "kind": "analytics"} for i in range(50)]
    warehouse = warehouse_of(
        [region("small", {"A": 1}), *(region(name, {"A": 9}) for name in ("b", "c", "d"))],
        [table(name, "small" if i < 5 else "b") for i, name in enumerate(names)],
        [*jobs, training("g", ["t0"], "A", 500.0)],
    )
    climbed, found = Placement(warehouse, V2.objective), Placement(warehouse, V2.objective)
    climb(climbed, math.inf)
    best_homes(found, math.inf)
    assert found.cost <= climbed.cost < Placement(warehouse, V2.objective).cost


def test_milp_climbs_from_a_start_that_nothing_makes_sound():
    """No storage holds the large table, so that Expression 4 cannot be satisfied; the small one gains all the same."""
    warehouse = warehouse_of(
        [region("small", {"A": 1}, storage_tb=3.0), region("large", {"A": 40}, storage_tb=3.0)],
        [table("huge", "small", 9.0), table("t", "small")],
        [training("a", ["t"], "A", 500.0)],
    )
    placement = Placement(warehouse, V2.objective)
    assert not placement.is_sound() and best_homes(placement, math.inf) and placement.home.tolist() == [0, 1]
