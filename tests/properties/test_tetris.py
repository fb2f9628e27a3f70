"""The slow path on random small instances, against the definitions of paper mast's Figure 4 in plain Python."""

from __future__ import annotations

import itertools
import json
import math
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustergym.policies.tetris import VERSIONS, Tetris, optimum
from clustergym.policies.tetris.milp import best_homes
from clustergym.policies.tetris.table_search import climb, climb_jobs, converged_moves, wander
from clustergym.simulator.table_placement.placement import KIB, Objective, Placement
from clustergym.simulator.table_placement.placement_metrics import runs_in
from clustergym.tests.support import geo_random
from clustergym.tests.support.drawn import calm
from clustergym.tests.support.geo_random import cost_of, excess, random_warehouse
from clustergym.tests.support.paths import SUPPORT

SCRIPT = SUPPORT / "geo_random.py"

tried = calm(150)
seeds = st.integers(0, 2**31)
V1, V2 = VERSIONS["tetris-v1"].objective, VERSIONS["tetris-v2"].objective
objectives = st.sampled_from([V1, V2, Objective(remote=3.0, gpu=0.2, storage=5.0, home_share=0.3)])
sizes = st.tuples(st.integers(1, 6), st.integers(1, 12), st.integers(1, 25), st.integers(1, 3))


def warehouse_of(seed, **sizes):
    """Every other one with jobs that accept several types of GPUs."""
    return random_warehouse(seed, **sizes, choosing=0.6 if seed % 4 > 1 else 0.0)


def drawn(seed, size):
    regions, tables, jobs, types = size
    return warehouse_of(seed, regions=regions, tables=tables, jobs=jobs, types=types, most_reads=5)


def kicked(placement, quota_bytes):
    return wander(placement, quota_bytes, 10, np.random.default_rng(0))


@tried
@given(seeds, sizes, objectives)
def test_a_moves_cost_is_the_difference_of_two_full_sums(seed, size, objective):
    """And after each of many moves the kept-up cost is that of a sum from the start."""
    warehouse = drawn(seed, size)
    placement = Placement(warehouse, objective)
    rng = np.random.default_rng(seed)
    home = placement.home
    before = cost_of(warehouse, objective, home)
    assert placement.cost == pytest.approx(before, rel=1e-9, abs=1e-12)
    for _ in range(12):
        table, target = int(rng.integers(len(home))), int(rng.integers(size[0]))
        placement.change(int(rng.integers(len(home))), target)  # looking at another table leaves nothing behind
        change = placement.change(table, target)
        away, back = int(rng.integers(len(home))), int(rng.integers(size[0]))
        was = int(placement.home[away])
        placement.move(away, back)
        placement.move(away, was)
        placement.move(table, target)
        home[table] = target
        after = cost_of(warehouse, objective, home)
        assert change == pytest.approx(after - before, rel=1e-9, abs=1e-10)
        assert placement.cost == pytest.approx(after, rel=1e-9, abs=1e-10)
        before = after
    fresh = Placement(warehouse.at(home), objective).ledger
    for name in ("region", "tables_at", "kib_at", "demand", "asked_s", "stored", "cpu", "met", "remote"):
        np.testing.assert_array_equal(getattr(placement.ledger, name), getattr(fresh, name), name)
    assert not placement.ledger.cpu_change.any()


@tried
@given(seeds, sizes, objectives)
def test_constraints_never_get_worse(seed, size, objective):
    """Expressions 4 to 6: what holds before a move that is made holds after it."""
    warehouse = drawn(seed, size)
    placement = Placement(warehouse, objective)
    threshold = int(placement.ledger.threshold[0])
    home = placement.home
    storage, cpu, met = excess(warehouse, objective, home)
    assert placement.is_sound() == (not storage.any() and not cpu.any() and met >= threshold)
    cost = placement.cost
    for move in converged_moves(placement, 3):
        assert home[move.table] == move.source
        home[move.table] = move.target
        then_storage, then_cpu, then_met = excess(warehouse, objective, home)
        assert (then_storage <= storage).all() and (then_cpu <= cpu).all()
        assert then_met >= min(met, threshold)
        storage, cpu, met = then_storage, then_cpu, then_met
        then_cost = cost_of(warehouse, objective, home)
        assert then_cost < cost
        cost = then_cost
    assert (home == placement.home).all()


@tried
@given(seeds, objectives)
def test_the_best_move_is_the_best_of_all_that_are_allowed(seed, objective):
    warehouse = warehouse_of(seed, regions=4, tables=8, jobs=14)
    placement = Placement(warehouse, objective)
    gains = placement.best_moves()
    storage, cpu, met = excess(warehouse, objective, placement.home)
    threshold = min(met, int(placement.ledger.threshold[0]))
    for table in range(8):
        best = 0.0
        for target in range(4):
            home = placement.home
            home[table] = target
            then_storage, then_cpu, then_met = excess(warehouse, objective, home)
            sound = (then_storage <= storage).all() and (then_cpu <= cpu).all() and then_met >= threshold
            assert placement.allows(table, target) == sound
            if sound:
                best = max(best, -placement.change(table, target))
        assert gains[table] == pytest.approx(best, abs=2e-12)


@tried
@given(seeds, objectives, st.booleans())
def test_moving_all_tables_of_a_job_gains_the_difference_of_two_full_sums(seed, objective, free):
    """And it is the best such move, where no CPU quota stands in the way; what holds before holds after it."""
    warehouse = warehouse_of(seed, regions=4, tables=8, jobs=14, most_reads=5)
    if free:
        warehouse = replace(warehouse, app_cpu_hours=np.full_like(warehouse.app_cpu_hours, 1e9))
    placement = Placement(warehouse, objective)
    jobs = np.arange(len(placement.jobs))
    gains = placement.job_gains(jobs)
    threshold = int(placement.ledger.threshold[0])
    for job in jobs.tolist():
        home = placement.home
        before, (storage, cpu, met) = cost_of(warehouse, objective, home), excess(warehouse, objective, home)
        gain = float(placement.job_gains(np.array([job]))[0])
        if job == 0:
            assert gain == gains[0]
        best = 0.0
        for target in range(4):
            there = home.copy()
            there[placement.tables_of(job)] = target
            then_storage, _, then_met = excess(warehouse, objective, there)
            if (then_storage <= storage).all() and then_met >= min(met, threshold):
                best = max(best, before - cost_of(warehouse, objective, there))
        if free:
            assert gain == pytest.approx(best, rel=1e-9, abs=1e-10)
        assert gain <= best + 1e-9 and (placement.home == home).all()
        assert placement.follow_jobs(np.array([job]), math.inf) == (gain > 0)
        then_storage, then_cpu, then_met = excess(warehouse, objective, placement.home)
        assert (then_storage <= storage).all() and (then_cpu <= cpu).all() and then_met >= min(met, threshold)
        after = cost_of(warehouse, objective, placement.home)
        assert gain == pytest.approx(before - after, rel=1e-9, abs=1e-10)
        assert len(set(placement.home[placement.tables_of(job)].tolist())) == 1 or gain == 0
    fresh = Placement(warehouse.at(placement.home), objective).ledger
    for name in ("region", "tables_at", "kib_at", "demand", "asked_s", "stored", "cpu", "met", "remote"):
        np.testing.assert_array_equal(getattr(placement.ledger, name), getattr(fresh, name), name)
    assert not placement.ledger.cpu_change.any()


@tried
@given(seeds, st.floats(0.0, 1.0), st.sampled_from([climb, climb_jobs, best_homes, kicked]))
def test_a_day_stays_within_its_quota(seed, share, search):
    """And says how many bytes it copies: what the plan has in a region and the tables do not have there yet."""
    warehouse, rng = warehouse_of(seed, regions=4, tables=10, jobs=20), np.random.default_rng(seed)
    copies = warehouse.tables.copies | (rng.random((10, 4)) < 0.3)
    tables = replace(warehouse.tables, copies=copies, read_share=rng.choice([1.0, 0.3], 10))
    warehouse = replace(warehouse, tables=tables)
    quota = share * float(tables.size_bytes.sum())
    plan = Tetris(VERSIONS["tetris-v2"], quota, search).plan(warehouse)
    stored = replace(tables, home=plan.home, copies=plan.copies, whole=plan.whole).held_bytes
    assert not (plan.whole & ~plan.copies).any() and (plan.whole.sum(axis=1) <= 1).all()
    copied = np.maximum(stored - tables.held_bytes, 0).sum()
    completed = KIB * plan.whole.sum()  # what completes a copy is a difference of whole KiB
    assert copied - completed <= plan.copied_bytes <= min(quota, float(copied + KIB * copies.size))
    assert plan.copies[np.arange(10), plan.home].all()
    stored = stored.sum(axis=0)
    fitted = np.bincount(warehouse.tables.home, warehouse.tables.size_bytes, 4) <= warehouse.world.storage_bytes
    assert (stored <= warehouse.world.storage_bytes)[fitted].all()
    assert plan.cost[1] <= plan.cost[0] + 1e-12


@tried
@given(seeds)
def test_static_moves_nothing(seed):
    warehouse = warehouse_of(seed)
    plan = Tetris(VERSIONS["static"]).plan(warehouse)
    assert plan.moves == [] and (plan.home == warehouse.tables.home).all()


@tried
@given(seeds)
def test_runs_in_is_where_all_tables_and_the_gpus_are(seed):
    warehouse = warehouse_of(seed, regions=4, tables=8, jobs=15)
    rng = np.random.default_rng(seed)
    copies = warehouse.tables.copies | (rng.random((8, 4)) < 0.4)
    found, jobs = runs_in(warehouse, copies), warehouse.jobs
    for job, region in itertools.product(range(15), range(4)):
        here = copies[jobs.table[jobs.first[job] : jobs.first[job + 1]], region].all()
        kinds = geo_random.accepted(warehouse, job)
        gpus = not kinds or warehouse.world.gpus[region, kinds].any()
        assert found[job, region] == (here and gpus)


@calm(60)
@given(seeds)
def test_milp_is_the_least_of_all_placements(seed):
    """4 tables in 3 regions: all 81 placements."""
    objective = V2 if seed % 2 else V1
    warehouse = warehouse_of(seed, tables=4, jobs=5)
    placement = Placement(warehouse, objective)
    if not placement.is_sound():
        return
    threshold = int(placement.ledger.threshold[0])
    least = np.inf
    for homes in itertools.product(range(3), repeat=4):
        storage, cpu, met = excess(warehouse, objective, np.array(homes))
        if not storage.any() and not cpu.any() and met >= threshold:
            least = min(least, cost_of(warehouse, objective, np.array(homes)))
    home, cost = optimum(placement)
    assert cost == pytest.approx(least, abs=1e-7)
    assert cost_of(warehouse, objective, home) == pytest.approx(least, abs=1e-7)


@tried
@given(seeds, objectives)
def test_pairs_that_move_gain_and_break_nothing(seed, objective):
    warehouse = warehouse_of(seed, regions=4, tables=8, jobs=14)
    placement = Placement(warehouse, objective)
    home, threshold = placement.home, int(placement.ledger.threshold[0])
    storage, cpu, met = excess(warehouse, objective, home)
    for table in range(8):
        before = cost_of(warehouse, objective, home)
        moves = placement.pair_up(table, np.delete(np.arange(8), table))
        for move in moves:
            assert home[move.table] == move.source != move.target
            home[move.table] = move.target
        assert (home == placement.home).all()
        if moves:
            assert cost_of(warehouse, objective, home) < before
        then_storage, then_cpu, then_met = excess(warehouse, objective, home)
        assert (then_storage <= storage).all() and (then_cpu <= cpu).all() and then_met >= min(met, threshold)
        storage, cpu, met = then_storage, then_cpu, then_met


CLIMBS = ("one table at a time", "pairs too", "pairs and 300 kicks")


@pytest.mark.slow
def test_how_near_hill_climbing_comes_to_the_optimum_on_200_instances(capsys):
    """The paper's climb, one table at a time, stays in local optima; with pairs and kicks it gets out of them."""
    gaps = gaps_to_optimum(200)
    with capsys.disabled():
        for what, of_climb in zip(CLIMBS, gaps, strict=True):
            print_gaps(what, of_climb)
    assert (gaps >= -1e-7).all()
    assert np.mean(gaps[0] <= 0.05) >= 0.4
    assert gaps[2].max() <= 0.05


def test_hill_climbing_is_near_the_optimum_on_30_instances():
    gaps = gaps_to_optimum(30)
    assert (gaps >= -1e-7).all() and (gaps[1] <= gaps[0] + 1e-9).mean() > 0.8
    assert gaps[2].max() <= 0.05


def gaps_to_optimum(count: int) -> np.ndarray:
    """Cost over the optimum - 1, of each kind of climb: (3, count).

    Instances of 8 tables in 3 regions that satisfy Expressions 4 to 6 at the start.
    """
    gaps: list[list[float]] = []
    for seed in itertools.count():
        placement = Placement(random_warehouse(seed, tables=8, jobs=9), V2)
        if not placement.is_sound():
            continue
        best = optimum(placement)[1]
        costs = []
        converged_moves(placement)
        costs.append(placement.cost)
        converged_moves(placement, pairs=True)
        costs.append(placement.cost)
        kicked = Placement(placement.warehouse, V2)
        wander(kicked, np.inf, 300, np.random.default_rng(0))
        costs.append(kicked.cost)
        gaps.append([cost / best - 1.0 for cost in costs])
        if len(gaps) == count:
            break
    return np.array(gaps).T


def print_gaps(what: str, gaps: np.ndarray) -> None:
    near = f"at the optimum {np.mean(gaps < 1e-6):.0%}, within 5 % {np.mean(gaps <= 0.05):.0%}"
    quantiles = ", ".join(f"P{100 * q:g} {np.quantile(gaps, q):.1%}" for q in (0.5, 0.75, 0.9, 0.95, 0.99, 1.0))
    print(f"\n{what}, {len(gaps)} instances: {near}; gap {quantiles}")


@calm(40)
@given(seeds, st.floats(0.0, 1.0), st.booleans())
def test_wider_searches_keep_quota_and_constraints(seed, share, is_exact):
    """One move a table; what satisfied Expressions 4 to 6 still does."""
    warehouse = warehouse_of(seed, regions=4, tables=10, jobs=16)
    placement, climbed = Placement(warehouse, V2), Placement(warehouse, V2)
    home, before, sound = placement.home, placement.cost, placement.is_sound()
    quota = share * float(warehouse.tables.size_bytes.sum())
    wander(climbed, quota, 30, np.random.default_rng(0))
    found = climbed
    if is_exact:
        moves, found = best_homes(placement, quota), placement
        assert len({move.table for move in moves}) == len(moves)
        assert all(home[move.table] == move.source != move.target == found.home[move.table] for move in moves)
    assert found.cost <= before + 1e-12
    assert found.is_sound() or not sound
    assert KIB * found.ledger.kib[found.home != home].sum() <= quota + KIB * len(home)
    assert found.cost == pytest.approx(cost_of(warehouse, V2, found.home), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_blocks_of_a_small_instance_come_to_its_optimum(seed, monkeypatch):
    placement = Placement(warehouse_of(seed, tables=8, jobs=9), V2)
    if not placement.is_sound():
        return
    best = optimum(placement)[1]
    monkeypatch.setattr("clustergym.policies.tetris.milp.EXACT_WAYS", 0)
    best_homes(placement, np.inf)
    assert placement.cost == pytest.approx(best, rel=1e-6)


def test_climbing_makes_the_move_that_gains_most_first():
    warehouse = random_warehouse(3, tables=10, jobs=20)
    placement = Placement(warehouse, V2)
    gains = placement.best_moves()
    moves = climb(placement, np.inf)
    assert moves[0].table == int(gains.argmax())


@pytest.mark.parametrize(
    "flags", [{"NUMBA_DISABLE_JIT": "1"}, pytest.param({"NUMBA_BOUNDSCHECK": "1"}, marks=pytest.mark.slow)]
)
def test_same_bits_without_jit_and_with_bounds_checked(flags):
    outcome = subprocess.run(
        [sys.executable, "-P", str(SCRIPT)],
        check=False,
        capture_output=True,
        text=True,
        env={key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"} | flags,
    )
    assert outcome.returncode == 0, outcome.stderr
    assert json.loads(outcome.stdout.splitlines()[-1]) == json.loads(json.dumps(geo_random.two_days()))
