"""Paper mast's slow path: what is reproduced, with small data, and that misses are printed as misses."""

from __future__ import annotations

import pytest

from clustergym.experiments.reproduce.reproductions import reproductions
from clustergym.experiments.reproduce.rows import Options
from clustergym.policies.tetris import VERSIONS, Tetris
from clustergym.simulator.table_placement.placement_metrics import placement_state_of
from clustergym.simulator.warehouse.mast_data import mast_like

pytestmark = pytest.mark.reproduction


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    options = Options(cache=tmp_path_factory.mktemp("cache"), quick=True, quiet=True)
    found = [reproductions()[f"mast-{name}"].run(options) for name in ("overload", "home", "colocation", "storage")]
    assert all(one.notes for one in found)
    return {row.quantity: row for one in found for row in one.rows}


def test_overload_falls_from_v0_to_v1_and_v2(rows):
    for what in ("worst region", "standard deviation"):
        assert rows[f"{what}, V1 / V0"].ours < 1.0
        assert rows[f"{what}, V2"].ours < rows[f"{what}, V0 (fitted)"].ours
        assert rows[f"{what}, V1, jobs that train on one table each"].ours < rows[f"{what}, V1"].ours


def test_more_jobs_train_at_home_under_v1(rows):
    assert rows["training at home, V1 / V0"].ok


def test_replicas_take_the_published_storage(rows):
    assert rows["extra storage for replicas, V2"].ok


def test_collocation_is_judged_with_replicas_and_printed_by_homes_beside_it(rows):
    """MAST, Sec. 3.1: of the regions that a table is replicated to one has to have the GPUs."""
    told = [row for name, row in rows.items() if name.startswith("high-priority GPU-hours collocated") and row.paper]
    assert [(row.paper, row.ok is not None) for row in told] == [
        (paper, judged) for judged in (True, False) for paper in (78.0, 96.0, 18.0)
    ]


def test_the_sweep_has_every_figure_at_every_point_and_says_which_points_have_all(tmp_path):
    options = Options(cache=tmp_path, quick=True, quiet=True, orders=1)
    found = reproductions()["mast-families"].run(options)
    points: dict[str, list] = {}
    for row in found.rows[:-1]:
        points.setdefault(row.quantity.split(":")[0], []).append(row)
    assert next(iter(points)) == "reads=1.22, size_reads=0" and len(points) == 5
    assert all(len(rows) == 9 for rows in points.values())
    whole = [point for point, rows in points.items() if all(row.ok is not False for row in rows)]
    assert found.rows[-1].ours == len(whole)
    assert any(f"points that have all figures: {'; '.join(whole) or 'none'}" in note for note in found.notes)
    single = {row.quantity: row.ours for row in points["reads=1, size_reads=0"]}
    assert single["reads=1, size_reads=0: training at home, V1 - V0, points"] == 0.0  # all do from the start
    assert reproductions()["mast-families"].run(options).rows == found.rows  # read back from disk


def test_the_fit_takes_the_point_with_the_least_miss(tmp_path):
    found = reproductions()["mast-families-fit"].run(Options(cache=tmp_path, quick=True, quiet=True))
    by_name = {row.quantity: row for row in found.rows}
    misses = {name.removesuffix(": miss"): row.ours for name, row in by_name.items() if name.endswith(": miss")}
    whole = [
        name for name in misses if by_name[f"{name}: worst region, V1"].ok and by_name[f"{name}: deviation, V1"].ok
    ]
    best = min(whole or misses, key=misses.__getitem__)
    chosen = by_name["fitted reads"].ours, by_name["fitted size_reads"].ours
    assert best == "reads={:g}, size_reads={:g}".format(*chosen)


def test_a_week_is_the_same_when_played_again():
    first = placement_state_of(
        Tetris(VERSIONS["tetris-v2"]).plan(mast_like(400, 6, seed=1)).applied(mast_like(400, 6, seed=1))
    )
    again = placement_state_of(
        Tetris(VERSIONS["tetris-v2"]).plan(mast_like(400, 6, seed=1)).applied(mast_like(400, 6, seed=1))
    )
    assert first == again
    assert first.collocated >= first.collocated_at_home
    assert first.worst >= first.least


def test_copies_meet_the_published_times_where_caps_allow_and_those_on_demand_go_first(tmp_path):
    options = Options(cache=tmp_path, quick=True, quiet=True)
    found = reproductions()["mast-transfer"].run(options)
    rows = {row.quantity: row for row in found.rows}
    for kind in ("on demand", "high priority", "bulk"):
        assert 0.1 < rows[f"{kind}, P50"].ours < rows[f"{kind}, P90"].ours <= rows[f"{kind}, P99"].ours
    assert rows["on demand, P90"].ours < rows["high priority, P90"].ours
    assert rows["most that a region sent / its cap"].ok and rows["queueing, V2 / V0"].clear
    assert rows["most that a region sent / its cap"].ours > 0.0
    assert reproductions()["mast-transfer"].run(options).rows == found.rows  # read back from disk
