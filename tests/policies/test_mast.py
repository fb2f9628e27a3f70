"""The fast path of paper mast in the simulator: GMS, the auction, Table 1's cells, copies on demand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from clustergym.policies import make
from clustergym.policies.mast import Hardware, RegionalScheduler, global_scheduler
from clustergym.policies.mast.copies_on_demand import lacking, on_demand
from clustergym.policies.mast.global_scheduler import write_ranking
from clustergym.policies.mast.mast_record import MAST, empty_record
from clustergym.policies.mast.regional_scheduler import write_regions
from clustergym.policies.mast.type_choices import TypeChoices
from clustergym.simulator.base.decisions import Drop, Hold, Move, Preempt, Replicate, Start
from clustergym.simulator.base.errors import InputError, InvalidDecision
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.events.initialise import Failures
from clustergym.simulator.record.packed_records import packed, unpack
from clustergym.simulator.record.solver_records import SolverRecord
from clustergym.simulator.warehouse.warehouse import Tables
from clustergym.simulator.workloads import Workload
from clustergym.tests.support import geo_small
from clustergym.tests.support.geo_small import A100, CPU, V100
from clustergym.tests.support.mast_reference import ranking

CELLS = {
    1: "scope:queue=cluster,allocation=cluster",
    2: "scope:queue=region,allocation=cluster",
    3: "scope:queue=global,allocation=cluster",
    5: "scope:queue=region,allocation=region",
    6: "mast",
    9: "global",
}


def started(workload, seed=0):
    simulator = Simulator(geo_small.small_topology())
    simulator.reset(workload, seed)
    return simulator


def workload_of(rows, arrival_s=None, duration_s=None, **changes):
    geo = geo_small.demands(rows, **changes)
    arrival_s = np.zeros(len(rows)) if arrival_s is None else np.array(arrival_s)
    duration_s = np.full(len(rows), 1000.0) if duration_s is None else np.array(duration_s)
    return Workload.from_arrays("by hand", arrival_s, geo.units, duration_s).with_geo(geo)


def scanned(view, **weights):
    """Number of pending workloads, and MAST's record with their ranking."""
    solvers, m = empty_record(Hardware.of(view.topology, view.demands), len(view.workload))
    write_ranking(m, view.demands, **weights)
    return view.read_by(global_scheduler.scan, solvers), solvers[0]


def play(word, workload, seed=0, watch=None):
    """All decisions with their times, and the metrics."""
    simulator, policy, log = started(workload, seed), make(word), []
    while not simulator.ended:
        while True:
            decision = simulator.ask(policy)
            if watch is not None:
                watch(simulator.view, policy, decision)
            if type(decision).__name__ == "Advance":
                break
            log.append((float(simulator.state.now_s), decision))
            simulator.apply(decision)
        simulator.advance()
    return log, simulator.metrics()


def test_credit_grows_with_the_wait_and_falls_with_what_the_tenant_used():
    """After an hour, of which tenant 0 has held all GPUs in use: credits 1/24 + 1 - 1 and 1/24 + 1 - 0."""
    rows = [([(A100, 32)], [], 3, 0, 0.0), ([(A100, 32)], [], 3, 0, 0.0), ([(V100, 8)], [], 3, 1, 0.0)]
    simulator = started(workload_of(rows))
    simulator.apply(Start(0, range(32)))
    simulator.advance()
    while simulator.state.now_s < 1000.0:
        simulator.advance()
    count, found = scanned(simulator.view)
    assert count == 2
    age = 1000.0 / 86_400.0
    assert found.credit[[1, 2]] == pytest.approx([age, age + 1.0], abs=1e-9)
    assert found.order[:2].tolist() == [2, 1]


def test_a_preempted_workload_waits_since_then():
    """Sec. 4.2: "if it has been waiting longer". It arrived 1,000 s ago, ran for 400 s, and has waited for 600 s."""
    rows = [([(A100, 16)], [], 3, 0, 0.0), ([(V100, 8)], [], 3, 1, 0.0)]
    simulator = started(workload_of(rows, arrival_s=[0.0, 400.0], duration_s=[5000.0, 600.0]))
    simulator.apply(Start(0, range(16)))
    simulator.advance()
    simulator.apply(Preempt(0))
    simulator.apply(Start(1, range(64, 72)))
    simulator.advance()
    count, found = scanned(simulator.view, fair_weight=0.0)
    assert simulator.state.now_s == 1000.0 and count == 1
    assert found.credit[0] == pytest.approx(600.0 / 86_400.0)


def test_over_quota_is_the_lowest_level_and_quota_goes_by_credit():
    """A quota of 16 GPUs: of three workloads with 8 each the two that came first are within it."""
    rows = [([(A100, 8)], [], 2, 0, 0.0)] * 3
    simulator = started(workload_of(rows, arrival_s=[0.0, 0.0, 0.0], quota=np.array([[16, 0]])))
    _, found = scanned(simulator.view)
    assert found.level[:3].tolist() == [2, 2, 6]
    for job in range(3):  # running, they count in the order in which they started
        simulator.apply(Start(job, range(8 * job, 8 * job + 8)))
    _, found = scanned(simulator.view)
    assert found.level[:3].tolist() == [2, 2, 6]


@pytest.mark.parametrize("seed", range(6))
def test_gms_is_that_of_the_reference(seed):
    seen = []

    def watch(view, policy, decision):
        count, found = scanned(view)
        level, pending, credit = ranking(view)
        assert found.order[:count].tolist() == pending
        assert all(found.level[job] == one for job, one in level.items())
        assert found.credit[pending] == pytest.approx([credit[job] for job in pending], rel=1e-12)
        seen.append(count)

    play("mast:slow=none,scan_s=0", geo_small.random_workload(seed), watch=watch)
    assert max(seen) > 3


def test_a_scan_does_not_look_at_those_that_ended_before_the_window():
    """200 workloads over ten days. Of 32 in a row that ended long ago none is looked at, and the credits are right."""
    passed = []

    def watch(view, policy, decision):
        s = view._simulator.state
        old = np.flatnonzero((s.ended == 32) & (s.ended_s <= s.now_s - 86_400.0))
        count, found = scanned(view)
        _, pending, credit = ranking(view)
        assert found.order[:count].tolist() == pending
        assert found.credit[pending] == pytest.approx([credit[job] for job in pending], rel=1e-12)
        if count > 0 and len(old) > 0:
            job, ended_s = 32 * int(old[0]), float(s.finish_s[32 * old[0]])
            s.finish_s[job] = s.now_s  # readers see it
            _, again = scanned(view)
            s.finish_s[job] = ended_s
            assert (again.credit == found.credit).all()
            passed.append(len(old))

    play("mast:slow=none", geo_small.random_workload(1, jobs=200, span_s=864_000.0, mean_s=20_000.0), watch=watch)
    assert max(passed) > 3


@pytest.mark.parametrize("word", [*CELLS.values(), "random"])
@pytest.mark.parametrize("parts", [[16, 32], [32, 16]])
def test_what_a_region_can_hold_starts_in_it_whatever_the_order_of_its_parts(word, parts):
    """The east's clusters have 32 and 16 A100: the part of 16 must not take the larger one."""
    workload = workload_of([([(A100, units) for units in parts], [0], 3, 0, 0.0)], quota=np.array([[64, 64]]))
    log, metrics = play(word if word == "random" else f"{word}{',' if ':' in word else ':'}slow=none", workload)
    assert metrics["jobs_finished"] == 1 and [type(decision).__name__ for _, decision in log] == ["Start"]


def test_a_workload_that_lacks_data_is_bound_when_it_is_there():
    """The first holds the east's first cluster for 10 s; the data of the second arrives after 50: no job is there."""
    rows = [([(A100, 8)], [0], 3, 0, 0.0), ([(A100, 8)], [0, 2], 3, 0, 0.0)]
    log, _ = play(f"{CELLS[1]},slow=none", workload_of(rows, duration_s=[10.0, 10.0]))
    cluster = geo_small.small_topology().gpu_cluster
    starts = [(decision.job, int(cluster[decision.gpus[0]])) for _, decision in log if isinstance(decision, Start)]
    assert starts == [(0, 0), (1, 0)]


def test_tables_are_asked_for_before_a_pass_and_not_in_its_place():
    simulator, policy, decisions = started(geo_small.random_workload(0)), make("mast:slow=none"), []
    while not simulator.ended:
        decisions.clear()
        while type(decision := simulator.ask(policy)).__name__ != "Advance":
            decisions.append(type(decision).__name__)
            simulator.apply(decision)
        if {"Replicate", "Start"} <= set(decisions) and "Preempt" not in decisions:
            assert policy.fast._passes == 1
            assert decisions == sorted(decisions)  # Drop, Move, Replicate, then Start
            return
        simulator.advance()
    pytest.fail("expected an instant with both")


@pytest.mark.parametrize("word", [*CELLS.values(), "random"])
def test_every_scheduler_finishes_all_workloads_and_is_deterministic(word):
    word = word if word == "random" else f"{word}{',' if ':' in word else ':'}slow=none"
    for seed in range(3):
        workload = geo_small.random_workload(seed)
        first, metrics = play(word, workload, seed)
        again, same = play(word, workload, seed)
        assert first == again and metrics == same
        assert metrics["jobs_finished"] == len(workload)


@pytest.mark.parametrize("word", ["mast:slow=none", "global:slow=none", "federated:slow=none", "random"])
def test_every_scheduler_goes_on_through_outages_of_machines_and_regions(word):
    failures = Failures(mtbf_s=40_000.0, mttr_s=500.0, region_mtbf_s=5000.0, region_mttr_s=800.0)
    for seed in range(3):
        workload = geo_small.random_workload(seed)
        simulator = Simulator(geo_small.small_topology(), failures=failures)
        simulator.reset(workload, seed)
        metrics = simulator.run(make(word))
        assert metrics["jobs_finished"] == len(workload) and simulator.state.region_failures.sum() > 0


@pytest.mark.parametrize("word", ["mast:slow=none", "global:slow=none", "random"])
def test_a_policy_asked_first_in_the_middle_decides_as_one_that_was_there_all_the_time(word):
    workload = geo_small.random_workload(4)
    simulator, policy = started(workload, 4), make(word)
    while simulator.state.done < len(workload) // 2:
        while type(decision := simulator.ask(policy)).__name__ != "Advance":
            simulator.apply(decision)
        simulator.advance()
    half = simulator.snapshot()
    rest = simulator.run(policy)
    simulator.restore(half)
    assert simulator.run(make(word)) == rest


@pytest.mark.parametrize("seed", range(10))
def test_quota_order_is_never_broken(seed):
    """A preempted workload has a lower priority than the one that starts for it; starts come in GMS's order."""
    state = {"passes": 0, "level": {}, "order": [], "leavers": [], "before": None}
    preempted = []

    def watch(view, policy, decision):
        now = (view.instant, policy.fast._passes)
        if now != state["passes"]:
            state["passes"] = now
            state["level"], state["order"], _ = ranking(view)
            state["place"] = -1
        if isinstance(decision, Preempt):
            state["leavers"].append(decision.job)
        if isinstance(decision, Start):
            for leaver in state["leavers"]:
                assert state["level"][leaver] > state["level"][decision.job]
                preempted.append(leaver)
            state["leavers"] = []
            place = state["order"].index(decision.job)
            assert place > state["place"]
            state["place"] = place

    play("mast:slow=none", geo_small.random_workload(seed, jobs=60, span_s=2000.0), watch=watch)
    assert not state["leavers"]
    assert preempted or seed != 0


@pytest.mark.parametrize("seed", range(5))
def test_no_workload_waits_that_fits_without_preemption(seed):
    def watch(view, policy, decision):
        if type(decision).__name__ != "Advance" or view.now_s % 34.0 > 1e-6:
            return
        demands = view.demands
        scheduler = RegionalScheduler(Hardware.of(view.topology, demands), len(view.workload), use_cache=False)
        scheduler.follow(view, demands.level)
        for job in view.queue.tolist():
            parts = [(k, n) for k, n in zip(demands.part_type[job], demands.part_units[job], strict=True) if k >= 0]
            for region in view.regions_of(job):
                assert scheduler.plan(job, 6, parts, view.now_s, region=region, preempts=False) is None

    play("mast:slow=none", geo_small.random_workload(seed), watch=watch)


@pytest.mark.parametrize("word", ["mast:slow=none", "global:slow=none", f"{CELLS[3]},slow=none"])
def test_the_negative_cache_changes_no_decision(word):
    for seed in range(4):
        workload = geo_small.random_workload(seed, jobs=60, span_s=1500.0)
        assert play(word, workload)[0] == play(f"{word},cache=False", workload)[0]


def test_placing_one_at_a_time_global_allocation_decides_as_mast():
    """Table 1: "among algorithms that schedule one job at a time", (6) is as good as (9)."""
    for seed in range(6):
        workload = geo_small.random_workload(seed, jobs=60, span_s=1500.0)
        assert play("mast:slow=none", workload)[0] == play("global:slow=none,joint=1", workload)[0]


def test_joint_placement_makes_room_for_one_that_fits_nowhere_else():
    """16 A100 of the south hold the second only (its table lies there). mast gives them to the first by its number.

    The first fits east, west and south, and is made to prefer the south: the others are on two racks, or held.
    """
    rows = [
        ([(A100, 32)], [0], 3, 0, 0.0),  # the east's larger cluster
        ([(A100, 16)], [0], 3, 0, 0.0),  # the east's smaller one
        ([(A100, 16)], [], 3, 1, 0.0),  # west or south: west, the lower number
        ([(A100, 16)], [2], 3, 1, 0.0),  # its table lies in the west only
    ]
    workload = workload_of(rows, quota=np.array([[64, 16], [64, 16]]))
    alone = [decision.job for time_s, decision in play("mast:slow=none", workload)[0] if time_s == 0.0]
    jointly = [decision for time_s, decision in play("global:slow=none", workload)[0] if time_s == 0.0]
    assert alone == [0, 1, 2]
    assert [decision.job for decision in jointly] == [0, 1, 2, 3]
    region = geo_small.small_topology().cluster_region
    clusters = geo_small.small_topology().gpu_cluster
    assert [int(region[clusters[decision.gpus[0]]]) for decision in jointly] == [0, 0, 2, 1]


def test_federated_binds_to_the_region_with_the_lowest_demand_over_supply():
    """A100: 48 in the east, 16 west, 16 south. 16 go east (0/48), then 8 west (0/16 < 16/48), 8 south, 8 east."""
    rows = [([(A100, size)], [], 3, 0, 0.0) for size in (16, 8, 8, 8, 8)]
    log, _ = play("federated:slow=none", workload_of(rows, quota=np.array([[64, 64]])))
    topology = geo_small.small_topology()
    found = [int(topology.cluster_region[topology.gpu_cluster[decision.gpus[0]]]) for _, decision in log]
    assert found == [0, 1, 2, 0, 0]


def test_by_the_demand_of_a_day_federated_binds_all_to_one_region():
    """A100: 64 hours a day are asked in the east, none in the west, which comes before the south."""
    rows = [([(A100, 8)], [], 3, 0, 0.0)] * 4
    log, _ = play("federated:slow=none,demand=day", workload_of(rows, quota=np.array([[64, 64]])))
    topology = geo_small.small_topology()
    found = [int(topology.cluster_region[topology.gpu_cluster[decision.gpus[0]]]) for _, decision in log]
    assert found == [1, 1, 1, 1]
    assert [time_s for time_s, _ in log][:2] == [0.0, 0.0] and log[2][0] > 0.0


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize(("word", "before"), [("federated", [16]), (CELLS[1], [16, 8])])
def test_a_workload_bound_without_regard_to_data_waits_for_its_tables(word, before, fresh):
    """`clicks` (100 GB) lies in the east. 16 of its 48 A100 are asked already, by clusters 16 of 32 and 8 of 16.

    By data the reader is bound to the east and starts; without regard to it to the west, which comes before the south:
    there it waits for a copy, 100 s on an idle link, or for the home if it needs fresh data, and the pass after that.
    """
    rows = [*(([(A100, size)], [], 3, 0, 0.0) for size in before), ([(A100, 8)], [0], 3, 0, 0.0)]
    reader, word = len(before), f"{word}{',' if ':' in word else ':'}slow=none"
    region = geo_small.small_topology().cluster_region[geo_small.small_topology().gpu_cluster]
    moved = [Move(0, 1) if fresh else Replicate(0, 1)]
    for bind, decided, where, start_s in (("data", [], 0, 0.0), ("any", moved, 1, 102.0)):
        workload = workload_of(rows, quota=np.array([[64, 64]]), fresh=np.full(len(rows), fresh))
        log, _ = play(f"{word},bind={bind}", workload)
        assert [decision for _, decision in log if not isinstance(decision, Start)] == decided
        ((time_s, start),) = [(time_s, one) for time_s, one in log if isinstance(one, Start) and one.job == reader]
        assert (time_s, int(region[start.gpus[0]])) == (start_s, where)


def test_a_workload_bound_without_regard_to_data_goes_nowhere_that_cannot_store_its_tables():
    """`logs` and `videos` are 1.4 TB: the south, which stores 1.2, can never hold them."""
    rows = [([(A100, 16)], [], 3, 0, 0.0)] * 2 + [([(A100, 8)], [3, 4], 3, 0, 0.0)]
    log, metrics = play("federated:slow=none,bind=any", workload_of(rows, quota=np.array([[64, 64]])))
    region = geo_small.small_topology().cluster_region[geo_small.small_topology().gpu_cluster]
    assert [int(region[one.gpus[0]]) for _, one in log if isinstance(one, Start)] == [0, 1, 0]
    assert metrics["jobs_finished"] == 3.0


def test_federated_waits_in_its_region_while_mast_starts_elsewhere():
    """Bound early to the west, the third waits there for 1,000 s; south has room all the while."""
    rows = [([(A100, 48)], [0], 3, 0, 0.0), ([(A100, 16)], [], 3, 0, 0.0), ([(A100, 16)], [], 3, 0, 0.0)]
    rows = [([(A100, 16)], [], 3, 0, 0.0)] * 3 + [([(A100, 16)], [2], 3, 0, 0.0), ([(A100, 16)], [], 3, 0, 0.0)]
    workload = workload_of(rows, arrival_s=[0.0, 1.0, 2.0, 3.0, 4.0], quota=np.array([[999, 99]]))
    late = {
        word: max(time_s for time_s, decision in play(f"{word}:slow=none", workload)[0] if isinstance(decision, Start))
        for word in ("mast", "federated")
    }
    assert late["mast"] <= late["federated"]


def test_copies_are_made_where_the_fewest_bytes_are_missing():
    """V100 are in the west only; A100 in all three: `clicks` (100 GB, east) and `videos` (1 TB, south) go south."""
    rows = [([(V100, 8)], [0], 3, 0, 0.0), ([(A100, 8)], [0, 4], 3, 0, 0.0), ([(CPU, 4)], [1], 3, 0, 0.0)]
    simulator = started(workload_of(rows))
    assert lacking(simulator.view) == [0, 1]
    decisions = on_demand(simulator.view)
    assert decisions == [Replicate(0, 1), Replicate(0, 2)]
    for decision in decisions:
        simulator.apply(decision)
    assert on_demand(simulator.view) == []  # they are on the way


def test_homes_move_together_for_fresh_data_and_stay_for_a_workload_that_waits_there():
    """`clicks` (100 GB, east) and `ads` (50 GB, west): both homes to the east. Job 1 is at home and stays."""
    rows = [([(A100, 8)], [0, 2], 0, 0, 0.0), ([(A100, 8)], [2], 0, 0, 0.0)]
    alone = started(workload_of(rows[:1], fresh=np.ones(1, bool)))
    assert lacking(alone.view) == [0] and on_demand(alone.view) == [Move(2, 0)]
    alone.apply(Move(2, 0))
    assert on_demand(alone.view) == []  # it is on the way
    both = started(workload_of(rows, fresh=np.ones(2, bool)))
    assert lacking(both.view) == [0] and on_demand(both.view) == []
    log, metrics = play("mast:slow=none", workload_of(rows, fresh=np.ones(2, bool)))
    assert [decision.job for _, decision in log if isinstance(decision, Start)] == [1, 0]
    assert metrics["home_start_rate"] == 1.0 and metrics["jobs_finished"] == 2.0


def test_a_replica_to_which_a_home_has_just_moved_is_not_dropped():
    """`ads` have a replica in the east, the first to go for job 1, unless their home has moved there for job 0.

    Of 2,000 GB 1,650 are free there, and job 1 asks for 1,680.
    """
    tables = Tables.at(np.array([100, 200, 50, 680, 1000]) * 10**9, geo_small.HOME, 3)
    tables.copies[2, 0] = True
    rows = [([(A100, 8)], [0, 2], 0, 0, 0.0), ([(A100, 32)], [3, 4], 3, 0, 0.0)]
    view = started(workload_of(rows, fresh=np.array([True, False]), tables=tables)).view
    assert on_demand(view) == [Move(2, 0), Move(1, 1)]
    alone = started(workload_of(rows[1:], tables=tables)).view
    assert on_demand(alone) == [Drop(2, 0), Replicate(3, 0), Replicate(4, 0)]


def with_videos_in_the_west():
    """Of 1,500 GB in the west 50 are free beside `ads` (50) and `logs` (400), at home, and a replica of `videos`."""
    tables = geo_small.small_tables()
    tables.copies[4, 1] = True
    return tables


FRESH_WEST = ([(V100, 8)], [0, 2], 0, 0, 0.0)  # `clicks`, 100 GB, have their home in the east, V100 are in the west


def test_replicas_go_where_homes_are_to_lie_together():
    workload = workload_of([FRESH_WEST], fresh=np.ones(1, bool), tables=with_videos_in_the_west())
    assert on_demand(started(workload).view) == [Drop(4, 1), Move(0, 1)]
    assert play("mast:slow=none", workload)[1]["jobs_finished"] == 1.0


def test_homes_go_where_homes_are_to_lie_together():
    """`clicks` and `videos` are 1,100 GB, of which 1,050 are free in the west: `logs` move, where most room is."""
    workload = workload_of([([(V100, 8)], [0, 4], 0, 0, 0.0)], fresh=np.ones(1, bool))
    simulator = started(workload)
    assert on_demand(simulator.view) == [Move(3, 0)]
    simulator.apply(Move(3, 0))
    assert on_demand(simulator.view) == []  # it is on the way
    simulator.advance()
    assert simulator.view.home(3) == 0 and on_demand(simulator.view) == [Move(0, 1), Move(4, 1)]
    assert play("mast:slow=none", workload)[1]["jobs_finished"] == 1.0


def test_a_replica_that_a_workload_waits_beside_stays_where_homes_are_to_lie_together():
    """Job 1 waits for V100 beside `videos` in the west: `logs`, which no job reads, move instead."""
    rows = [FRESH_WEST, ([(V100, 8)], [4], 3, 0, 0.0)]
    tables, fresh = with_videos_in_the_west(), np.array([True, False])
    assert on_demand(started(workload_of(rows, fresh=fresh, tables=tables)).view) == [Move(3, 0)]


def test_what_has_just_been_dropped_is_missing():
    """Job 1 finds `videos` in the west until they go for job 0, which leaves 950 GB.

    They and `users` are 1,200 GB: `logs` (400) move.
    """
    rows = [FRESH_WEST, ([(V100, 8)], [1, 4], 0, 0, 0.0)]
    workload = workload_of(rows, fresh=np.ones(2, bool), tables=with_videos_in_the_west())
    assert on_demand(started(workload).view) == [Drop(4, 1), Move(0, 1), Move(3, 0)]
    assert play("mast:slow=none", workload)[1]["jobs_finished"] == 2.0


def test_a_home_stays_that_a_workload_has_just_been_promised():
    """Job 0's `clicks` come to its `logs` in the west, of whose 1,050 free GB 950 are left; job 1 asks for `videos`.

    Only `logs` would make room for them, so job 1 waits.
    """
    rows = [([(V100, 8)], [0, 3], 0, 0, 0.0), ([(V100, 8)], [2, 4], 0, 0, 0.0)]
    for fresh in (np.ones(2, bool), np.array([True, False])):
        workload = workload_of(rows, fresh=fresh)
        assert on_demand(started(workload).view) == [Move(0, 1)]
        assert play("mast:slow=none", workload)[1]["jobs_finished"] == 2.0


@pytest.mark.parametrize(
    "word", ["mast", "federated", "federated:bind=any", "global", "greedy", "random-start", "bring"]
)
def test_workloads_with_fresh_data_all_find_a_home(word):
    """No replica ever ages, so a workload that needs fresh data runs where the homes of its tables come together."""
    for seed in range(14, 18):
        workload = geo_small.choosing_workload(seed)
        fresh = replace(workload.geo, fresh=workload.geo.level < 4)
        slow = f"{word}{',' if ':' in word else ':'}slow=none"
        assert play(slow, workload.with_geo(fresh), seed)[1]["jobs_finished"] == 40.0


def test_copies_are_made_for_held_workloads_too():
    simulator = started(workload_of([([(V100, 8)], [0], 3, 0, 0.0), ([(A100, 8)], [0, 4], 3, 0, 0.0)]))
    simulator.apply(Hold(0))
    assert lacking(simulator.view) == [0, 1]
    assert on_demand(simulator.view) == [Replicate(0, 1), Replicate(0, 2)]


def test_a_hold_for_a_tier_is_refused():
    simulator = started(workload_of([([(V100, 8)], [0], 3, 0, 0.0)]))
    with pytest.raises(InvalidDecision, match="hold job 0 for tier 1: in regions no job starts by itself"):
        simulator.apply(Hold(0, 100.0, 1))


def test_ties_among_regions_go_to_the_least_loaded():
    """Job 0 holds 32 of the 48 A100 of the east, job 1 half of the 16 of the west: job 2, of 8, goes south."""
    rows = [([(A100, 32)], [0], 3, 0, 0.0), ([(A100, 8)], [2], 3, 0, 0.0), ([(A100, 8)], [], 3, 0, 0.0)]
    log, _ = play("mast:scan_s=0,slow=none", workload_of(rows, [0.0, 0.0, 1.0], quota=np.array([[99, 99]])))
    topology = geo_small.small_topology()
    places = {one.job: int(topology.cluster_region[topology.gpu_cluster[one.gpus[0]]]) for _, one in log[:3]}
    assert places == {0: 0, 1: 1, 2: 2}


def test_a_copy_goes_where_fewest_bytes_are_missing_and_among_equals_to_the_least_loaded():
    """`clicks` and a fifth table of its size have their homes in the east and the south: either could be copied."""
    tables = Tables.at(np.array([100, 200, 50, 400, 100]) * 10**9, geo_small.HOME, 3)
    rows = [([(A100, 8)], [0], 3, 0, 0.0), ([(A100, 8)], [0, 4], 3, 0, 0.0)]
    simulator = started(workload_of(rows, tables=tables))
    assert on_demand(simulator.view) == [Replicate(4, 0)]  # none holds anything yet
    units = [int(unit) for unit in np.flatnonzero(simulator.topology.gpu_cluster == 0)[:8]]
    simulator.apply(Start(0, units))
    assert on_demand(simulator.view) == [Replicate(0, 2)]


def test_a_region_without_room_for_a_copy_is_passed():
    """The south has 1,200 GB and holds `videos` (1,000): `logs` (400 GB) does not fit; it goes east."""
    rows = [([(A100, 8)], [0, 3], 3, 0, 0.0)]
    simulator = started(workload_of(rows))
    assert on_demand(simulator.view) == [Replicate(0, 1)]


@pytest.mark.parametrize("holds", [False, True])
def test_a_table_stays_where_another_job_waits_for_the_rest(holds):
    """V100 are in the west alone. `clicks` is on its way there for job 0, whose `users` lie there as a replica.

    Job 1 asks for `videos`, 1 TB, where 750 GB are free: `logs` (400 GB) moves, `users` stay.
    """
    tables = geo_small.small_tables()
    tables.copies[1, 1] = True
    rows = [([(V100, 8)], [0, 1], 3, 0, 0.0), ([(V100, 8)], [4], 3, 0, 0.0)]
    simulator = started(workload_of(rows, arrival_s=[0.0, 40.0], tables=tables))
    assert on_demand(simulator.view) == [Replicate(0, 1)]
    simulator.apply(Replicate(0, 1))
    simulator.advance()
    if holds:
        simulator.apply(Hold(0))
    assert simulator.state.now_s == 40.0 and lacking(simulator.view) == [0, 1]
    assert on_demand(simulator.view) == [Move(3, 0)]


def test_a_table_stays_where_it_is_read_once_it_has_gone_from_elsewhere():
    """Job 0 could run beside `logs` in the west or in the south, where they go for `users`, which job 1 asks for.

    Job 2 asks for 1,300 GB in the west, where 1,250 are free: `logs` may move only as long as they lie in the south.
    """
    tables = Tables.at(np.array([100, 200, 100, 150, 1000], np.int64) * 10**9, geo_small.HOME, 3)
    tables.copies[3, 2] = True
    rows = [([(A100, 16)], [3], 3, 0, 0.0), ([(A100, 16)], [1], 3, 0, 0.0), ([(V100, 8)], [0, 1, 4], 3, 0, 0.0)]
    view = started(workload_of(rows, tables=tables)).view
    assert on_demand(view, [2]) == [Move(3, 2)]
    assert on_demand(view, [1, 2], {1: 2}) == [Drop(3, 2), Replicate(1, 2), Move(2, 0)]


@pytest.mark.parametrize("word", ["random", *(f"{word}:slow=none" for word in ("random-start", "mast", "greedy"))])
def test_a_start_reads_nothing_for_which_room_was_made_at_the_same_instant(word):
    """V100 are in the west alone, where 850 GB are free: for `videos`, 1 TB, goes the replica of `users`, 200 GB.

    Job 0, which could have read it there, starts in the east, at the home of `users`, wherever chance sends it first.
    """
    tables = geo_small.small_tables()
    tables.copies[1, 1] = True
    rows = [([(A100, 8)], [1], 3, 0, 0.0), ([(V100, 8)], [4], 3, 0, 0.0)]
    topology = geo_small.small_topology()
    for seed in range(8):
        log, metrics = play(word, workload_of(rows, tables=tables), seed)
        decided = [decision for _, decision in log]
        assert decided[:2] == [Drop(1, 1), Replicate(4, 1)] and metrics["jobs_finished"] == 2.0
        assert isinstance(decided[2], Start) and topology.cluster_region[topology.gpu_cluster[decided[2].gpus[0]]] == 0


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("scope:queue=cluster,allocation=region", "Table 1"),
        ("scope:queue=region,allocation=global", "Table 1"),
        ("scope:queue=rack", "unknown scope"),
        ("mast:joint=2", "joint"),
        ("global:joint=0", "joint"),
        ("mast:demand=day", "demand"),
        ("scope:queue=cluster,allocation=cluster,demand=now", "demand"),
        ("federated:demand=dya", "did you mean 'day'"),
        ("mast:bind=any", "bind = any: expected none, as a global queue binds no workload early"),
        ("federated:bind=all", "unknown bind of policy federated"),
        ("mast:scan_s=-1", "scan_s = -1"),
        ("mast:window_s=0", "window_s"),
        ("mast:age_weight=-1", "age_weight"),
        ("mast:slow=tetris-v9", "unknown"),
    ],
)
def test_bad_parameters_are_one_sentence(word, says):
    with pytest.raises(InputError, match=says):
        policy = make(word if "slow" in word else f"{word},slow=none")
        started(geo_small.small_workload()).run(policy)


def test_what_is_remembered_moves_to_larger_records_and_is_saved_as_far_as_it_is_in_use():
    """Of 3 workloads: what counts for them comes along, scratch does not."""
    view = started(workload_of([([(A100, 8)], [], 2, 0, 0.0)] * 3)).view
    hardware, capacity = Hardware.of(view.topology, view.demands), view._simulator.capacity
    solvers, m = empty_record(hardware, 3)
    write_regions(solvers, m, hardware, 3, TypeChoices.of(view))
    write_ranking(m, view.demands)
    view.read_by(global_scheduler.scan, solvers)
    own, saved = SolverRecord(MAST, solvers, capacity), MAST.empty(capacity)
    extent = view._simulator.raw.extent
    unpack(SolverRecord(MAST, saved, capacity, extent), extent, packed(own, extent))
    moved = SolverRecord(MAST, MAST.empty(capacity.large), capacity.large)
    moved.become(SolverRecord(MAST, saved, capacity))
    n = len(hardware.machine_units)
    for name, entries in (
        ("level", 3),
        ("order", 3),
        ("need", 3),
        ("cluster", 12),
        ("free", n),
        ("machine_unit", n + 1),
    ):
        assert (moved.record[name][:entries] == m[name][:entries]).all() and (m[name][:entries] != 0).any()
    assert m["key"][:3].any() and not moved.record["key"].any()
    assert len(packed(own, extent)) < own.data.nbytes / 2
