"""Tetris as decisions about tables: within the quota, towards the plan, and malformed words in one sentence."""

from __future__ import annotations

import numpy as np
import pytest

from clustergym import policies
from clustergym.policies.tetris import VERSIONS, Tetris
from clustergym.policies.tetris.table_search import wander, wander_again
from clustergym.policies.tetris.tetris import DATA_POLICIES, ReviewPlan, data_policy, decisions_of
from clustergym.policies.two_paths import TwoPathPolicy
from clustergym.simulator.base.decisions import Advance, Drop, Move, Replicate
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.checks.table_decisions import copied_bytes
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.events.initialise import Failures
from clustergym.simulator.table_placement.placement import Move as PlannedMove
from clustergym.simulator.table_placement.placement import Objective, Placement
from clustergym.simulator.table_placement.placement_metrics import runs_in
from clustergym.simulator.workloads import open_workload


@pytest.fixture(scope="module")
def simulator():
    return Simulator("mast:regions=4,gpus=256", tables_every_s=20_000.0)


def begin(simulator, seed=0):
    simulator.reset(open_workload("mast-like:jobs=120,scale=1,longest_h=6,tables=24", seed=seed), seed)
    return simulator.view


def day_of(simulator, half):
    """All decisions of an instant, carried out, and the bytes that they copy."""
    found, copied = [], 0
    while not isinstance(decision := simulator.ask(half), Advance):
        copied += copied_bytes(simulator, decision)
        simulator.apply(decision)
        found.append(decision)
    return found, copied


@pytest.mark.parametrize("quota", [0.0, 0.1, 1e9])
@pytest.mark.parametrize("name", DATA_POLICIES)
def test_a_day_keeps_the_quota_and_costs_no_more_than_before(simulator, name, quota):
    view = begin(simulator)
    before = view.projected_warehouse()
    found, copied = day_of(simulator, data_policy(f"{name}:quota={quota}"))
    after = view.projected_warehouse()
    assert copied <= quota * float(before.tables.size_bytes.sum())
    moved = [decision for decision in found if isinstance(decision, Move)]
    assert not moved or name != "static"
    assert (after.tables.home != before.tables.home).sum() == len(moved)
    if name in ("tetris-v2", "milp"):
        assert Placement(after, Objective()).cost <= Placement(before, Objective()).cost + 1e-12
        assert moved or quota < 1.0
    assert (view.stored_bytes <= view.storage_bytes).all()


def test_without_bounds_the_tables_come_to_lie_as_planned(simulator):
    view = begin(simulator, seed=1)
    plan = Tetris(VERSIONS["tetris-v1"]).plan(view.projected_warehouse())
    day_of(simulator, data_policy("tetris-v1:quota=1e9,kicks=0"))
    after = view.projected_warehouse()
    assert (after.tables.home == plan.home).all() and (after.tables.copies >= plan.copies).all()
    training = after.jobs.training & after.jobs.recurring
    assert runs_in(after)[training].any(axis=1).all()


def test_the_same_instant_gives_the_same_decisions(simulator):
    begin(simulator, seed=2)
    first, _ = day_of(simulator, data_policy("tetris-v2"))
    begin(simulator, seed=2)
    assert day_of(simulator, data_policy("tetris-v2"))[0] == first


def test_what_was_found_before_is_what_would_be_found_again(simulator):
    """Kept results are those of the search itself, and belong to one placement, quota and number of kicks."""
    found = []
    for seed in (3, 4):
        warehouse = begin(simulator, seed).projected_warehouse()
        bytes_ = float(warehouse.tables.size_bytes.sum())
        for quota, kicks in ((0.25 * bytes_, 20), (0.05 * bytes_, 20), (0.25 * bytes_, 1)):
            plain = Placement(warehouse, Objective())
            moves = wander(plain, quota, kicks, np.random.default_rng(0))
            for _ in range(2):
                again = Placement(warehouse, Objective())
                assert wander_again(again, quota, kicks) == moves
                assert (again.home == plain.home).all()
            found.append(moves)
    assert len({tuple(moves) for moves in found}) >= 3


def test_what_was_copied_for_a_waiting_workload_stays_while_it_waits():
    """At a look no copy goes without which a waiting workload could run nowhere, to be copied again at that instant."""
    simulator = Simulator("mast:regions=4,gpus=256", tables_every_s=10_000.0)
    view, policy = begin(simulator), policies.make("tetris-v2:kicks=0")
    dropped: set[tuple[int, int]] = set()
    looks = 0
    while not simulator.ended:
        decision = simulator.ask(policy)
        if isinstance(decision, Advance):
            simulator.advance()
            dropped.clear()
            looks += view.tables_due
            continue
        if isinstance(decision, Drop):
            stranded = [job for job in view.queue.tolist() if view.regions_of(job) == [decision.region]]
            assert not any(decision.table in view.tables_of(job) for job in stranded)
            dropped.add((decision.table, decision.region))
        assert not (isinstance(decision, Replicate) and (decision.table, decision.region) in dropped)
        simulator.apply(decision)
    assert looks > 5


def test_the_old_home_of_a_table_is_given_up_even_if_it_was_a_replica_before(simulator):
    view = begin(simulator)
    table = int(view.projected_warehouse().tables.size_bytes.argmin())
    first, second, third = [view.home(table), *(region for region in range(4) if region != view.home(table))][:3]
    for decision in (Replicate(table, second), Move(table, second)):
        simulator.apply(decision)
    play_until_all_lies(simulator)
    before = view.projected_warehouse()
    home, copies = before.tables.home.copy(), before.tables.copies.copy()
    home[table], copies[table] = third, [region in (first, third) for region in range(4)]
    plan = ReviewPlan([PlannedMove(table, second, third)], home, copies, np.zeros_like(copies), (0.0, 0.0), 0.0)
    for decision in decisions_of(plan, before, view):
        simulator.apply(decision)
    play_until_all_lies(simulator)
    assert view.home(table) == third and view.copies(table) == sorted([first, third]) and not view.doomed(table)


def play_until_all_lies(simulator):
    """Nothing is decided until no table is on the way."""
    while simulator.view.transfers:
        simulator.advance()


@pytest.mark.parametrize("seed", range(4))
def test_looks_keep_the_quota_and_two_copies_of_what_has_two(seed):
    """Also of tables that are on the move, and whose copy for disasters becomes their home."""
    failures = Failures(region_mtbf_s=100_000.0, region_mttr_s=3000.0)
    simulator = Simulator("mast:regions=4,gpus=256", tables_every_s=5000.0, failures=failures)
    simulator.reset(open_workload("mast-like:jobs=60,scale=1,longest_h=3,tables=24", seed=seed), seed)
    view, policy = simulator.view, policies.make("tetris-v2:kicks=0,quota=0.1")
    assert isinstance(policy, TwoPathPolicy)
    day_of(simulator, data_policy("static:quota=9"))
    quota_bytes = 0.1 * float(view.warehouse().tables.size_bytes.sum())
    had = view.warehouse().tables.copies.sum(axis=1)
    while not simulator.ended:
        if view.tables_due:
            assert day_of(simulator, policy.slow)[1] <= quota_bytes
        while not isinstance(decision := simulator.ask(policy.fast), Advance):
            simulator.apply(decision)
        simulator.advance()
        has = view.warehouse().tables.copies.sum(axis=1)
        assert (has >= np.minimum(had, 2)).all()
        had = has


MALFORMED = {
    "tetris-v3": "tetris-v2",
    "tetris-v2:qouta=1": "quota",
    "tetris-v2:quota=-1": "0 or more",
    "tetris-v1:kicks=-3": "0 or more",
    "tetris-v1:kicks=few": "kicks",
    "milp:kicks=3": "kicks",
}


@pytest.mark.parametrize("word", MALFORMED)
def test_a_malformed_word_is_one_sentence(word):
    with pytest.raises(InputError) as error:
        data_policy(word)
    assert MALFORMED[word] in str(error.value) and "\n" not in str(error.value)


def test_a_scheduler_must_be_one_for_regions():
    with pytest.raises(InputError, match="for regions, such as mast"):
        policies.make("tetris-v2:scheduler=las")
