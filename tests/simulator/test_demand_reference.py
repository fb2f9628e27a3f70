"""The slow path's sums against Figure 4 of paper mast in plain Python, on random small warehouses with several types."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clustergym.simulator.cluster.region_hardware import NO_GPU, Clusters, World
from clustergym.simulator.table_placement.placement import Objective, Placement
from clustergym.simulator.warehouse.warehouse import NO_APP, Jobs, Tables, Warehouse
from clustergym.tests.support.demand_reference import FigureFour, moved
from clustergym.tests.support.drawn import calm

KIB = 1024
QUARTER_HOURS = st.integers(0, 400).map(lambda quarters: quarters / 4)  # exact in whole seconds


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """2 to 5 regions, 1 to 4 types; a region may lack some of the types, or all, and a type may be nowhere."""
    regions, types = draw(st.integers(2, 5)), draw(st.integers(1, 4))
    gpus = draw(st.lists(st.sampled_from([0, 0, 1, 1, 2, 3, 7]), min_size=regions * types, max_size=regions * types))
    rows = [(region, gpu, gpus[region * types + gpu]) for region in range(regions) for gpu in range(types)]
    rows = [row for row in rows if row[2]] + [(region, NO_GPU, 0) for region in range(regions)]
    region, gpu_type, machines = (np.array(column) for column in zip(*rows, strict=True))
    ones = np.ones(len(rows), np.int64)
    return World(
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
    columns: dict[str, list] = {name: [] for name in "training gpu_hours cpu_hours accepts level app recurring".split()}
    reads = []
    for _ in range(count):
        training = draw(st.booleans())
        accepts = draw(st.integers(0, 2**types - 1)) if training else draw(st.sampled_from([0, 1]))
        columns["training"].append(training)
        columns["accepts"].append(accepts)
        columns["gpu_hours"].append(draw(QUARTER_HOURS) if training and accepts else 0.0)
        columns["cpu_hours"].append(draw(QUARTER_HOURS))
        columns["level"].append(draw(st.integers(0, 6)))
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
    sizes = np.array(draw(st.lists(st.integers(1, 20), min_size=tables, max_size=tables))) * KIB
    home = np.array(draw(st.lists(st.integers(0, regions - 1), min_size=tables, max_size=tables)))
    quota = draw(st.lists(st.sampled_from([0.0, 20.0, 60.5, 300.0]), min_size=apps * regions, max_size=apps * regions))
    return Warehouse(world, Tables.at(sizes, home, regions), jobs, np.array(quota).reshape(apps, regions))


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


@calm(90)
@given(warehouses(), OBJECTIVES, st.booleans(), st.data())
def test_every_move_changes_the_cost_and_is_allowed_as_figure_4_has_it(warehouse, objective, everything, data):
    """Before and after random moves, allowed or not; jobs that come once count only where they are said to be known."""
    known = np.ones(len(warehouse.jobs), bool) if everything else None
    placement, figure = Placement(warehouse, objective, known), FigureFour(warehouse, objective, known)
    home = [int(region) for region in warehouse.tables.home]
    compare(placement, figure, home)
    moves = st.tuples(st.integers(0, len(home) - 1), st.integers(0, len(warehouse.world) - 1))
    for table, target in data.draw(st.lists(moves, max_size=6)):
        placement.move(table, target)
        home[table] = target
    compare(placement, figure, home)
