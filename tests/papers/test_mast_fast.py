"""Paper mast's fast path on two short traces of small regions, and that its rows print what they claim."""

from __future__ import annotations

import numpy as np
import pytest

from clustergym.experiments.reproduce.case import Outcome
from clustergym.experiments.reproduce.mast.mast_fast import hit_share
from clustergym.experiments.reproduce.reproductions import reproductions
from clustergym.experiments.reproduce.rows import Options
from clustergym.tests.support.reproducing import rows_of

pytestmark = pytest.mark.reproduction
WORST = "in the worst hour of each trace, "


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    options = Options(cache=tmp_path_factory.mktemp("cache"), quick=True, quiet=True)
    names = ("slo", "designspace", "allocation", "noncollocated", "negative-cache", "gms", "rms")
    found = [reproductions()[f"mast-{name}"].run(options) for name in names]
    assert all(one.notes for one in found)
    return {row.quantity: row for one in found for row in one.rows}


def test_mast_keeps_more_gpus_allocated_than_early_binding(rows):
    """Two traces of twelve hours: enough to tell (6) and (3) from the others, not to tell those apart."""
    allocated = {name: rows[f"GPUs allocated, {name}"].ours for name in ("(6)", "(3)", "(5)", "(2)", "(1)")}
    assert min(allocated["(6)"], allocated["(3)"]) > max(allocated["(5)"], allocated["(2)"], allocated["(1)"])


def test_global_allocation_of_one_at_a_time_is_mast(rows):
    assert rows["traces on which (9), one at a time, starts all as (6) does"].ok


def test_the_cache_answers_most_attempts(rows):
    row = rows["hit rate of the negative cache"]
    assert row.paper == 80.0 and 50.0 < row.ours < 100.0


def test_the_cache_is_counted_by_the_length_of_the_queue():
    passes = {
        "pass_pending": np.array([10.0, 60.0, 60.0]),
        "pass_asked": np.array([100.0, 300.0, 500.0]),
        "pass_spared": np.array([20.0, 240.0, 440.0]),
    }
    outcome = Outcome({}, passes)
    assert hit_share(outcome) == pytest.approx(100.0 * 700.0 / 900.0)
    assert hit_share(outcome, "0/50") == pytest.approx(20.0)
    assert hit_share(outcome, "50/100") == pytest.approx(85.0)
    assert np.isnan(hit_share(outcome, "100/inf"))


def test_more_is_allocated_where_more_is_asked(rows):
    """And the CPU machines are more than are needed."""
    assert rows["GPU allocation rate, mast, load 1.3"].ours > rows["GPU allocation rate, mast"].ours
    asked = rows["GPU-hours asked over those that there are"].ours
    assert rows["the same in the trace that asks least"].ours <= asked


def test_the_table_of_loads_and_quotas_has_every_combination_and_says_the_most_of_each(tmp_path):
    """More quota lets more be stopped for others, at a load that asks for more than there is."""
    found = rows_of("mast-quotas", Options(cache=tmp_path, quick=True, quiet=True, orders=1))
    told = {name: row.ours for name, row in found.items()}
    names = [f"load {load}, quotas x {factor}: " for load in ("1.1", "2", "3") for factor in (1, 3, 250)]
    for what, most in (
        ("preemptions a workload, mast", "most preemptions a workload of all, mast"),
        ("GPUs allocated, mast", "most GPUs allocated of all, mast"),
        ("worst hour of high priority, federated", "highest worst hour of all, federated"),
    ):
        assert told[most] == max(told[name + what] for name in names)
    what = "preemptions a workload, mast"
    assert told[f"load 2, quotas x 3: {what}"] > told[f"load 1.1, quotas x 1: {what}"]


def test_high_priority_holds_more_where_level_3_is_of_it(rows):
    for name in ("mast", "federated"):
        words = f"GPUs held by high priority where that is most, {name}"
        assert rows[f"{words[: -len(name) - 2]}, were level 3 of it too, {name}"].ours > rows[words].ours


def waiting_for_data(rows):
    return [rows[f"workloads that wait for data, tables placed by {name}"].ours for name in ("V2", "V0")]


def test_hardly_any_wait_for_data_and_not_more_where_tetris_has_placed_the_tables(rows):
    """It is one workload or none in such short traces."""
    tetris, users = waiting_for_data(rows)
    assert tetris <= users < 1.0


@pytest.mark.slow
def test_fewer_wait_for_data_over_weeks_where_tetris_has_placed_the_tables(tmp_path):
    options = Options(cache=tmp_path, quiet=True)
    tetris, users = waiting_for_data(rows_of("mast-noncollocated", options))
    assert tetris < 0.1 and tetris < users


def test_high_priority_within_quota_starts_in_time_under_mast(rows):
    assert rows["the same of high priority, mast"].ok
    busy, worst = (rows[f"start too late, within quota, {when}mast"] for when in ("", WORST))
    assert worst.paper == (0.0, 1.3) and worst.ours >= busy.ours
    assert rows["start too late, over quota, mast"].ours > rows["start too late, within quota, mast"].ours


def test_gms_and_rms_are_faster_than_the_papers(rows):
    assert rows["a GMS-scan pass over 1,000 workloads"].ok
    assert rows["a decision without preemption"].ok and rows["a decision with preemption"].ok


@pytest.mark.slow
def test_the_order_of_table_1_holds_over_weeks(tmp_path):
    options = Options(cache=tmp_path, quiet=True)
    found = rows_of("mast-designspace", options)
    assert all(row.ok for name, row in found.items() if " / " in name)
    assert found["traces on which (9), one at a time, starts all as (6) does"].ok
