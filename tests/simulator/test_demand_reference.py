"""The slow path's sums against Figure 4 of paper mast in plain Python, on small warehouses with several GPU types."""

from __future__ import annotations

import statistics
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustergym.simulator.cluster.region_hardware import NO_GPU, Clusters, RegionHardware
from clustergym.simulator.table_placement.placement import Objective, Placement
from clustergym.simulator.table_placement.placement_metrics import placement_state_of, runs_in
from clustergym.simulator.warehouse.warehouse import NO_APP, Jobs, Tables, Warehouse
from clustergym.tests.support.demand_reference import HIGH, FigureFour, moved
from clustergym.tests.support.drawn import calm

KIB = 1024
HOURS = st.integers(0, 1600).map(lambda count: count / 16)  # 225 s each: whole seconds, odd ones too


@st.composite
def worlds(draw: st.DrawFn) -> RegionHardware:
    """2 to 5 regions, 1 to 4 types; a region may lack some of the types, or all, and some types are nowhere."""
    regions, types = draw(st.integers(2, 5)), draw(st.integers(1, 4))
    counts = st.lists(st.sampled_from([0, 0, 1, 1, 2, 3, 7]), min_size=regions, max_size=regions)
    nowhere = st.just([0] * regions)
    gpus = draw(st.lists(st.one_of(counts, counts, nowhere), min_size=types, max_size=types))
    rows = [(region, gpu, gpus[gpu][region]) for region in range(regions) for gpu in range(types)]
    rows = [row for row in rows if row[2]] + [(region, NO_GPU, 0) for region in range(regions)]
    region, gpu_type, machines = (np.array(column) for column in zip(*rows, strict=True))
    ones = np.ones(len(rows), np.int64)
    return RegionHardware(
        name="drawn",
        regions=tuple(f"r{region}" for region in range(regions)),
        gpu_types=tuple(f"g{gpu}" for gpu in range(types)),
        clusters=Clusters(tuple(f"c{row}" for row in range(len(rows))), region, gpu_type, machines, ones, ones, ones),
        storage_bytes=np.array(draw(st.lists(st.integers(0, 40), min_size=regions, max_size=regions))) * KIB,
        wan_bytes_per_s=np.ones((regions, regions)),
        fault_group=np.arange(regions),
    )


@st.composite
def warehouses(draw: st.DrawFn) -> Warehouse:
    """1 to 12 tables, 1 to 15 jobs that train or analyse, some of which accept several types or come once."""
    world = draw(worlds())
    tables, count, apps = draw(st.integers(1, 12)), draw(st.integers(1, 15)), draw(st.integers(0, 2))
    regions, types = len(world), len(world.gpu_types)
    few_tables = st.lists(st.integers(0, tables - 1), min_size=1, max_size=3, unique=True)
    names = ("training", "gpu_hours", "cpu_hours", "accepts", "level", "app", "recurring")
    columns: dict[str, list] = {name: [] for name in names}
    reads = []
    for _ in range(count):
        training = draw(st.booleans())
        accepts = draw(st.integers(0, 2**types - 1)) if training else draw(st.sampled_from([0, 1]))
        columns["training"].append(training)
        columns["accepts"].append(accepts)
        columns["gpu_hours"].append(draw(HOURS) if training and accepts else 0.0)
        columns["cpu_hours"].append(draw(HOURS))
        columns["level"].append(draw(st.sampled_from([0, 1, 2, 2, 3, 6])))
        columns["app"].append(draw(st.integers(NO_APP, apps - 1)))
        columns["recurring"].append(draw(st.integers(0, 4)) > 0)
        reads.append(draw(few_tables))
    arrays = {name: np.array(column) for name, column in columns.items()}
    lowest = [(accepts & -accepts).bit_length() - 1 for accepts in columns["accepts"]]
    jobs = Jobs(
        **arrays,
        gpu_type=np.array(lowest),
        gpus=np.ones(count, np.int64),
        team=np.zeros(count, np.int64),
        first=np.cumsum([0] + [len(row) for row in reads]),
        table=np.array([table for row in reads for table in row]),
    )
    sizes = np.array(draw(st.lists(st.integers(1, 10), min_size=tables, max_size=tables))) * 2 * KIB
    home = np.array(draw(st.lists(st.integers(0, regions - 1), min_size=tables, max_size=tables)))
    lies = draw(st.lists(st.booleans(), min_size=tables * regions, max_size=tables * regions))
    copies = np.array(lies).reshape(tables, regions) | (np.arange(regions) == home[:, None])
    quota = draw(st.lists(st.sampled_from([0.0, 20.0, 60.5, 300.0]), min_size=apps * regions, max_size=apps * regions))
    stored = replace(Tables.at(sizes, home, regions, draw(st.sampled_from([0.5, 1.0]))), copies=copies)
    return Warehouse(world, stored, jobs, np.array(quota).reshape(apps, regions))


OBJECTIVES = st.builds(
    Objective,
    remote=st.sampled_from([0.0, 1.0, 0.3]),
    gpu=st.sampled_from([1.0, 2.5]),
    storage=st.sampled_from([0.0, 1.0]),
    overload=st.booleans(),
    at_home=st.sampled_from(["gpu-hours", "jobs"]),
    home_share=st.sampled_from([None, 0.0, 0.5, 1.0]),
)


def compare(placement: Placement, figure: FigureFour, home: list[int]) -> None:
    """The cost and what it is made of, what must hold, and every move of one table."""
    assert list(placement.home) == home
    np.testing.assert_allclose(placement.terms, figure.terms(home), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(placement.cost, figure.cost(home), rtol=1e-9, atol=1e-12)
    assert placement.is_sound() == figure.is_sound(home)
    best = np.zeros(len(home))
    for table in range(len(home)):
        for target in figure.regions:
            change = figure.cost(moved(home, table, target)) - figure.cost(home)
            np.testing.assert_allclose(placement.change(table, target), change, rtol=1e-9, atol=1e-12)
            allowed = figure.allows(home, table, target)
            assert placement.allows(table, target) == allowed, (table, target)
            best[table] = max(best[table], -change if allowed else 0.0)
    np.testing.assert_allclose(placement.best_moves(), best, rtol=1e-9, atol=1e-12)


@calm(120)
@given(warehouses(), OBJECTIVES, st.booleans(), st.data())
def test_every_move_changes_the_cost_and_is_allowed_as_figure_4_has_it(warehouse, objective, everything, data):
    """Before and after random moves, allowed or not; jobs that come once count only where they are said to be known."""
    known = np.ones(len(warehouse.jobs), bool) if everything else None
    placement, figure = Placement(warehouse, objective, known), FigureFour(warehouse, objective, known)
    home = [int(region) for region in warehouse.tables.home]
    compare(placement, figure, home)
    assert placement.moved_kib == 0
    moves = st.tuples(st.integers(0, len(home) - 1), st.integers(0, len(warehouse.world) - 1))
    for table, target in data.draw(st.lists(moves, max_size=6)):
        placement.move(table, target)
        home[table] = target
    compare(placement, figure, home)
    lacking = 0.0  # a replica lacks the partitions that jobs do not read
    for table, (was, now) in enumerate(zip(warehouse.tables.home, home, strict=True)):
        replica = float(warehouse.tables.read_share[table]) if warehouse.tables.copies[table, now] else 0.0
        lacking += figure.size[table] / KIB * (1.0 - (1.0 if was == now else replica))
    assert placement.moved_kib == lacking


def share(jobs: list[int], weights: dict[int, float]) -> float:
    """Percentage of the weights that these have; 0 of nothing."""
    total = sum(weights.values())
    return 100.0 * sum(weights[job] for job in jobs if job in weights) / total if total else 0.0


@calm(450)
@given(warehouses())
def test_a_warehouse_stands_as_its_homes_copies_and_accepted_types_have_it(warehouse):
    """Candidates are counted for all training jobs, what trains at home and the GPU-hours of those that recur."""
    figure = FigureFour(warehouse, Objective(), [True] * len(warehouse.jobs))
    home, copies = [int(region) for region in warehouse.tables.home], warehouse.tables.copies.tolist()
    at_home = [[region == at for region in figure.regions] for at in home]
    hosts = [figure.runs_in(reader, copies) for reader in figure.readers]
    assert [list(np.flatnonzero(row)) for row in runs_in(warehouse)] == hosts
    state, known = placement_state_of(warehouse), FigureFour(warehouse, Objective())
    training = {job: 1.0 for job, reader in enumerate(figure.readers) if reader.training}
    recurring = {job: 1.0 for job in training if warehouse.jobs.recurring[job]}
    high = {job: float(figure.readers[job].gpu_s) for job in recurring if figure.readers[job].level in HIGH}
    homely = [job for job, reader in enumerate(figure.readers) if figure.runs_in(reader, at_home)]
    told = (state.home, state.waiting, state.two, state.four)
    candidates = (
        [job for job, of in enumerate(hosts) if low <= len(of) <= most] for low, most in ((0, 0), (2, 5), (4, 5))
    )
    assert told == pytest.approx((share(homely, recurring), *(share(jobs, training) for jobs in candidates)))
    collocated = share([job for job, of in enumerate(hosts) if of], high), share(homely, high)
    assert (state.collocated, state.collocated_at_home) == pytest.approx(collocated)
    loads = known.loads(home, copies)
    assert (state.worst, state.deviation) == pytest.approx((max(loads), statistics.pstdev(loads)))
