"""A day of Tetris on instances of a few tables: what is charged to the quota, what is copied, and what `milp` does."""

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
    copies, _, copied_bytes = replicate(warehouse, warehouse.tables.home, version, quota_bytes)
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
    """Two tables of 1 TB lie where the only B GPUs are, in another fault group: copies for disasters as well."""
    warehouse = warehouse_of(
        [region("home", {"A": 4}), region("refuge", {"A": 9}), region("b", {"B": 8})],
        [table(name, "home", replicas=["refuge", "b"]) for name in ("t", "u")],
        [training("a", ["t"], "A"), training("a2", ["t", "u"], "A"), training("b", ["t", "u"], "B")],
    )
    assert copies_of(warehouse, V0, quota_bytes) == ([[1, 0, 1], [1, 0, 1]], 0.0)


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


def test_what_a_stranded_job_of_high_priority_lacks_comes_before_disasters_and_those_before_the_rest():
    """1 TB takes the stranded table to the B GPUs, a copy for disasters too; then such ones; then the low job's."""
    warehouse = warehouse_of(
        [region("a", {"A": 4}), region("b", {"B": 4}), region("c", {"A": 9})],
        [table("high", "a"), table("read", "a"), table("low", "a")],
        [
            training("b", ["high"], "B", 5.0),
            training("a", ["read"], "A", 500.0),
            training("later", ["low"], "B", 500.0, priority=5),
        ],
    )
    alone = [1, 0, 0]
    for version in (V0, VERSIONS["tetris-v1"], V2):
        assert copies_of(warehouse, version, 1.5 * TB) == ([[1, 1, 0], alone, alone], TB)
    assert copies_of(warehouse, V2, 2.5 * TB) == ([[1, 1, 0], [1, 0, 1], alone], 2 * TB)
    assert copies_of(warehouse, V0, 4.5 * TB) == ([[1, 1, 0], [1, 0, 1], [1, 1, 0]], 3 * TB)


def test_a_copy_for_disasters_has_all_of_its_table_and_completes_one_that_jobs_read():
    """A quarter of each table is read. The stranded job's copy, in another fault group, is completed, not doubled."""
    regions = [region("a", {"A": 4}), region("b", {"B": 4}), region("c", {"A": 9})]
    warehouse = warehouse_of(
        regions,
        [table("high", "a", read_share=0.25), table("cold", "a", read_share=0.25)],
        [training("b", ["high"], "B", 5.0)],
    )
    copies, whole, copied_bytes = replicate(warehouse, warehouse.tables.home, V0, math.inf)
    assert copies[0].tolist() == [True, True, False] and copies[1].sum() == 2
    assert (whole == copies & [False, True, True]).all() and copied_bytes == pytest.approx(2 * TB, abs=2048)
    copies, whole, copied_bytes = replicate(warehouse, warehouse.tables.home, V0, 0.3 * TB)
    assert copies.tolist() == [[True, True, False], [True, False, False]] and not whole.any()
    assert copied_bytes == pytest.approx(0.25 * TB, abs=1024)
    done = warehouse.at(warehouse.tables.home, *replicate(warehouse, warehouse.tables.home, V0, math.inf)[:2])
    assert replicate(done, done.tables.home, V0, 0.0)[2] == 0.0
    assert done.tables.held_bytes[0].tolist() == [TB, TB, 0]


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
