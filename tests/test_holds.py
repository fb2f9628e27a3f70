"""Holds that wait for a tier, by hand; timers that bind nobody; Algorithm 1 as a fixed policy of holds."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustergym.experiments.recording import WORDS, decisions, timeline
from clustergym.simulator.decisions import Advance, Hold, Migrate, Preempt, Start
from clustergym.simulator.engine import Simulator
from clustergym.simulator.errors import InputError, InvalidDecision, Stalled
from clustergym.simulator.layout import Failures
from clustergym.simulator.rules.rule import PLACERS, Rule, Tuner
from clustergym.simulator.tiers import MACHINE, NETWORK, RACK, SLOT
from clustergym.simulator.workloads import Workload

LONG = 1e6
TWO_MACHINES = "flat:machines=2,gpus_per_machine=4"  # in one rack
TWO_RACKS = "dally:racks=2,machines=1"  # a machine of 8 GPUs each
TWO_BY_TWO = "dally:racks=2,machines=2"  # machines of 8 GPUs, racks of 16
NETWORK_SLOWS = "penalty:default=1/1.2/1.5"
TIERED = Rule("fifo", placer="tier")


def jobs_of(*rows):
    """Workload of (arrival_s, gpus, duration_s)."""
    return Workload.from_arrays("by hand", *map(list, zip(*rows, strict=True)))


def laid(topology, *rows, rule=TIERED, network="none", **options):
    simulator = Simulator(topology, network, rule=rule, **options)
    simulator.reset(jobs_of(*rows))
    return simulator


def apply(simulator, *made):
    for decision in made:
        simulator.apply(decision)


def started(simulator, job):
    """(first start, tier) of a job; -1 where it has not started."""
    s = simulator.state
    return float(s.first_start_s[job]), int(s.tier[job])


def filled(*rows, topology=TWO_MACHINES, until=100.0, **options):
    """3 of the 4 GPUs of each machine are held from 0 on: on machine 0 until 100, on 1 until 300. Then `rows` come."""
    simulator = laid(topology, (0, 3, until), (0, 3, 300.0), *rows, **options)
    apply(simulator, Start(0, [0, 1, 2]), Start(1, [4, 5, 6]))
    simulator.advance()
    return simulator


# What a hold does.


def test_a_job_starts_by_itself_when_its_tier_has_room_before_its_time():
    """2 GPUs are asked for at 10 and held for a machine until 150: job 0 ends at 100, and nobody is asked there."""
    simulator = filled((10, 2, 50), (200, 1, 5))
    apply(simulator, Hold(2, 150.0, MACHINE))
    simulator.advance()
    assert (simulator.view.now_s, simulator.view.queue.tolist()) == (200.0, [3])
    assert started(simulator, 2)[0] == 100.0
    assert simulator.jobs()["finish_s"][2] == 150.0


def test_room_after_its_time_is_not_taken():
    """Held until 60: it is back in the queue at 60, and at 100, when a machine has room, still there."""
    simulator = filled((10, 2, 50))
    apply(simulator, Hold(2, 60.0, MACHINE))
    for now_s in (60.0, 100.0):
        simulator.advance()
        assert (simulator.view.now_s, simulator.view.queue.tolist()) == (now_s, [2])
    assert started(simulator, 2)[0] == -1.0


def test_without_room_it_is_back_in_the_queue_at_its_time():
    """5 GPUs fit no machine of 4: held for one until 500, past the ends of all others, the job waits at 500."""
    simulator = filled((10, 5, 50))
    apply(simulator, Hold(2, 500.0, MACHINE))
    simulator.advance()
    assert (simulator.view.now_s, simulator.view.queue.tolist(), simulator.view.held.tolist()) == (500.0, [2], [])


def test_room_at_the_very_end_of_its_time_is_taken():
    """Job 0 ends at 100, the hold too: the job starts, although the end of its time comes after that of job 0."""
    simulator = filled((10, 2, 50), (200, 1, 5))
    apply(simulator, Hold(2, 100.0, MACHINE))
    simulator.advance()
    assert (simulator.view.now_s, started(simulator, 2)[0]) == (200.0, 100.0)


def test_a_hold_without_a_tier_starts_nothing():
    """As today: held until 150 the job stays away while a machine has room from 100 on."""
    simulator = filled((10, 2, 50))
    apply(simulator, Hold(2, 150.0))
    simulator.advance()
    assert (simulator.view.now_s, simulator.view.queue.tolist(), started(simulator, 2)[0]) == (150.0, [2], -1.0)


def test_the_best_tier_with_room_is_taken():
    """Two racks of two machines of 8. At 100 the machines of rack 0 have 2 and 6 free GPUs, those of rack 1 have 4 and 4.

    Three are held for the network: 5 GPUs take the machine with 6; then 6 find no machine, and a rack, the one with 8;
    then 3 find no machine either (2, 1, 0 and 2 are free), and rack 0.
    """
    simulator = laid(TWO_BY_TWO, (0, 6, LONG), (0, 2, LONG), (0, 4, LONG), (0, 4, LONG), *[(100, n, 5.0) for n in (5, 6, 3)])
    apply(simulator, Start(0, range(6)), Start(1, (8, 9)), Start(2, range(16, 20)), Start(3, range(24, 28)))
    simulator.advance()
    apply(simulator, *(Hold(job, 200.0, NETWORK) for job in (4, 5, 6)))
    simulator.serve_holds()
    view = simulator.view
    taken = [sorted(view.gpus_of(job)) for job in (4, 5, 6)]
    assert taken == [[10, 12, 13, 14, 15], [20, 21, 22, 23, 28, 29], [6, 7, 11]]
    assert [view.tier_of(job) for job in (4, 5, 6)] == [MACHINE, RACK, RACK]


@pytest.mark.parametrize(("tier", "start_s"), [(MACHINE, 300.0), (RACK, 300.0), (NETWORK, 10.0)])
def test_a_worse_tier_than_asked_is_never_taken(tier, start_s):
    """Two racks of one machine of 8, 7 GPUs of each held until 300: 2 GPUs are free, but only across racks."""
    simulator = laid(TWO_RACKS, (0, 7, 300), (0, 7, 300), (10, 2, 50))
    apply(simulator, Start(0, range(7)), Start(1, range(8, 15)))
    simulator.advance()
    apply(simulator, Hold(2, LONG, tier))
    simulator.run()
    table = simulator.jobs()
    assert (table["first_start_s"][2], table["tier"][2]) == (start_s, NETWORK if tier == NETWORK else SLOT)


@pytest.mark.parametrize(("order", "first"), [("fifo", 2), ("sjf", 3)])
def test_of_two_holds_of_one_machine_the_first_in_the_order_is_served(order, first):
    """Jobs 2 (50 s) and 3 (40 s), of 4 GPUs each, wait for machines; 0 ends at 100, 1 at 300, whoever was held first."""
    simulator = filled((10, 4, 50), (10, 4, 40), rule=replace(TIERED, order=order))
    apply(simulator, Hold(3, LONG, MACHINE), Hold(2, LONG, MACHINE))
    simulator.run()
    start_s = simulator.jobs()["first_start_s"]
    assert start_s[first] == 100.0
    assert start_s[5 - first] == simulator.jobs()["finish_s"][first]


def test_whoever_finds_none_does_not_stop_those_behind_it():
    """Job 2 wants 8 GPUs of one rack, job 3 wants 3: at 100 machine 0 is free, which is enough for 3 only."""
    simulator = filled((10, 8, 50), (10, 3, 40))
    apply(simulator, Hold(2, LONG, RACK), Hold(3, LONG, MACHINE))
    simulator.run()
    assert simulator.jobs()["first_start_s"].tolist() == [0.0, 0.0, 300.0, 100.0]


def test_with_room_already_there_it_starts_when_the_instant_is_over():
    """At 10 a machine has 1 GPU for a job of 1: it is held until LONG, and starts at 10, not before all is decided."""
    simulator = filled((10, 1, 50), (20, 1, 5))
    apply(simulator, Hold(2, LONG, MACHINE))
    assert simulator.view.held.tolist() == [2]
    simulator.advance()
    assert (simulator.view.now_s, started(simulator, 2)[0]) == (20.0, 10.0)


def test_room_that_a_preemption_of_the_same_instant_makes_is_taken():
    """At 10 job 2 (2 GPUs) is held for a machine, then job 0 is stopped: 2 starts at 10 on what 0 has left."""
    simulator = filled((10, 2, 50), (20, 1, 5))
    apply(simulator, Hold(2, LONG, MACHINE), Preempt(0), Hold(0, 15.0))
    simulator.advance()
    assert started(simulator, 2)[0] == 10.0
    assert (simulator.view.now_s, simulator.view.queue.tolist()) == (15.0, [0])


def test_who_is_stopped_and_held_and_gets_its_own_gpus_back_has_not_stopped():
    """7 s to restore. At 10 job 0 is stopped and held for a machine: it gets the same GPUs, and ends at 100."""
    simulator = filled((10, 4, 50), rule=replace(TIERED, preemption_cost=(7.0,)))
    apply(simulator, Preempt(0), Hold(0, LONG, MACHINE), Hold(2, LONG, MACHINE))
    metrics = simulator.run()
    assert (metrics["preemptions"], simulator.jobs()["finish_s"][0]) == (0, 100.0)


def test_until_gpus_are_freed_its_tier_is_tried_first_and_else_it_is_back_in_the_queue():
    """Held without a time for a machine: at 100 the 2 GPUs of job 2 fit, the 5 of job 3 do not, and never will."""
    simulator = filled((10, 2, 500), (10, 5, 50))
    apply(simulator, Hold(2, None, MACHINE), Hold(3, None, MACHINE))
    simulator.advance()
    assert (simulator.view.now_s, simulator.view.queue.tolist(), started(simulator, 2)[0]) == (100.0, [3], 100.0)


def test_until_gpus_are_freed_whoever_frees_some_decides_about_it():
    """Job 2 is held without a time for a machine at 10. At 20 job 0 is stopped: job 2 is in the queue at once."""
    simulator = filled((10, 2, 500), (20, 1, 5))
    apply(simulator, Hold(2, None, MACHINE))
    simulator.advance()
    apply(simulator, Preempt(0))
    assert (simulator.view.queue.tolist(), simulator.view.held.tolist()) == ([0, 2, 3], [])


def test_a_held_job_can_still_be_started():
    """Held for a machine, job 2 is started on two machines at 10; at 100 nobody is served in its place."""
    simulator = filled((10, 2, 500), (10, 4, 50))
    apply(simulator, Hold(2, LONG, MACHINE), Hold(3, 50.0, MACHINE), Start(2, [3, 7]))
    assert (simulator.state.n_standing, simulator.state.standing[0]) == (1, 3)
    simulator.run()
    assert simulator.jobs()["first_start_s"].tolist() == [0.0, 0.0, 10.0, 510.0]


def test_a_hold_outlives_a_failure_and_takes_what_comes_back():
    """One machine fails now and then: whoever is held for it starts at an instant at which it is up, by itself."""
    simulator = laid("flat:machines=1,gpus_per_machine=4", (0, 4, 5000), (10, 4, 50), failures=Failures(2000.0, 100.0, 0.0))
    apply(simulator, Start(0, range(4)))
    simulator.advance()
    apply(simulator, Hold(1, LONG, MACHINE))
    simulator.advance()
    assert (simulator.state.failures, simulator.view.queue.tolist(), simulator.view.held.tolist()) == (1, [0], [1])
    failed_s = simulator.view.now_s
    apply(simulator, Hold(0, LONG, MACHINE))
    simulator.advance()
    back_s = started(simulator, 1)[0]
    assert back_s == -1.0 and simulator.view.queue.tolist() == [0]  # the first in the order is 0, and it fails again
    assert simulator.state.starts[0] == 2 and simulator.view.now_s > failed_s
    simulator.run()
    assert simulator.done


@pytest.mark.parametrize("placer", sorted(PLACERS))
def test_other_placers_give_what_they_give_if_its_tier_is_good_enough(placer):
    """GPUs 3 and 7 are free at 10, on two machines of one rack: for a machine nobody has room, for a rack those who do.

    `consolidated` and `skew` (an unknown model) never spread a gang that one machine could hold.
    """
    for tier, start_s in ((MACHINE, 100.0), (RACK, 10.0)):
        simulator = filled((10, 2, 50), rule=Rule("fifo", placer=placer))
        apply(simulator, Hold(2, LONG, tier))
        simulator.run()
        waits = placer in ("consolidated", "skew", "affinity", "first-skew")
        assert simulator.jobs()["first_start_s"][2] == (100.0 if waits else start_s)


# Rounds, leases, auctions, sharing, regions.


def test_with_rounds_a_hold_is_served_at_rounds():
    """Rounds of 80 s: room from 100 on is taken at 160, nobody is asked; a hold that ends at 130 is over at 130."""
    for until_s, start_s in ((LONG, 160.0), (130.0, -1.0)):
        simulator = laid(TWO_MACHINES, (0, 3, 100), (0, 3, 900), (0, 2, 50), (300, 1, 5), rule=replace(TIERED, round=80.0))
        apply(simulator, Start(0, [0, 1, 2]), Start(1, [4, 5, 6]), Hold(2, until_s, MACHINE))
        simulator.advance()
        assert started(simulator, 2)[0] == start_s
        assert (simulator.view.now_s, simulator.view.queue.tolist()) == ((320.0, [3]) if start_s > 0 else (160.0, [2]))


def test_a_start_by_itself_begins_a_lease():
    """Leases of 60 s: job 2 starts by itself at 100, and cannot be stopped at 150; at 160 it can."""
    simulator = filled((10, 2, 500), (150, 1, 500), (160, 1, 500), rule=replace(TIERED, lease=60.0))
    apply(simulator, Hold(2, LONG, MACHINE))
    simulator.advance()
    with pytest.raises(InvalidDecision, match="its lease runs until 160 s"):
        simulator.apply(Preempt(2))
    apply(simulator, Hold(3, 1000.0))
    simulator.advance()
    simulator.apply(Preempt(2))


def test_at_auctions_a_hold_is_served_at_auctions():
    """Job 0 (4 GPUs, one lease of 400 s of its 1,000) is released at 400, its GPUs are auctioned 4 s later: job 1 there."""
    options = {"semantics": "artist-sim:lease_s=400,chunk=0", "rule": Rule("fifo", placer="first")}
    simulator = laid("flat:machines=1,gpus_per_machine=4", (0, 4, 1000), (0, 4, 50), **options)
    apply(simulator, Start(0, range(4)), Hold(1, LONG, MACHINE))
    simulator.advance()
    assert (simulator.view.now_s, simulator.view.queue.tolist(), started(simulator, 1)[0]) == (404.0, [0], 404.0)


def test_where_gpus_are_shared_it_takes_free_ones_only():
    """2 GPUs a machine, 2 jobs a GPU: job 1 finds GPU 1 free only, and waits for two until job 0 ends at 100."""
    simulator = laid("flat:machines=1,gpus_per_machine=2", (0, 1, 100), (0, 2, 50), sharing="none:jobs_per_gpu=2")
    apply(simulator, Start(0, [0]), Hold(1, LONG, MACHINE))
    simulator.run()
    assert simulator.jobs()["first_start_s"].tolist() == [0.0, 100.0]


@pytest.mark.parametrize("tier", [0, 4, -1, True, 1.5, "rack"])
def test_a_tier_that_is_none_is_refused_in_a_sentence(tier):
    simulator = laid(TWO_MACHINES, (0, 2, 50))
    before = simulator.snapshot().tobytes()
    with pytest.raises(InvalidDecision, match=r"^hold job 0: tier .*: expected 1 \(machine\), 2 \(rack\), 3 \(network\)"):
        simulator.apply(Hold(0, 10.0, tier))
    assert simulator.snapshot().tobytes() == before


def test_nobody_to_come_and_no_room_is_a_stall():
    """5 GPUs never fit a machine of 4. Held for one without a time the job never comes back, and nothing runs."""
    simulator = laid(TWO_MACHINES, (0, 5, 50))
    apply(simulator, Hold(0, None, MACHINE))
    with pytest.raises(Stalled):
        simulator.advance()
    apply(simulator, Start(0, range(5)))
    simulator.run()
    assert simulator.done


# What is recorded of them.


def test_a_start_by_itself_is_a_row_of_the_record_at_its_own_time():
    """Job 2 starts by itself at 100, job 3 at 20 when its instant is over, job 4 at 300, after the last decision."""
    simulator = laid(TWO_MACHINES, (0, 3, 100.0), (0, 3, 300.0), (10, 2, 40), (20, 1, 5), (20, 3, 7))

    class Holds:
        def decide(self, view):
            if not len(view.queue):
                return Advance()
            job = int(view.queue[0])
            return Start(job, view.find_gpus(job)) if view.now_s == 0 else Hold(job, LONG, MACHINE)

    rows = []

    def kept():
        for row in decisions(simulator, Holds()):
            rows.append((row.time_s, row.job, WORDS[row.kind]))
            yield row

    seen = timeline(simulator, kept())
    by_themselves = [(20.0, 3, "start"), (100.0, 2, "start"), (140.0, 4, "start")]
    assert [row for row in rows if row[2] == "start"] == [(0.0, 0, "start"), (0.0, 1, "start"), *by_themselves]
    assert seen.job.tolist() == [0, 1, 3, 2, 4]
    assert seen.start_s.tolist() == [0.0, 0.0, 20.0, 100.0, 100.0 if seen.start_s[4] == 100.0 else 140.0]
    assert seen.end_s.tolist() == [100.0, 300.0, 25.0, 140.0, seen.start_s[4] + 7]


def test_a_snapshot_carries_holds_along():
    simulator = filled((10, 2, 50), (200, 1, 5))
    apply(simulator, Hold(2, 150.0, MACHINE))
    snapshot = simulator.snapshot()
    simulator.run()
    first = simulator.jobs()["first_start_s"].tolist()
    simulator.restore(snapshot)
    simulator.run()
    assert simulator.jobs()["first_start_s"].tolist() == first


def test_another_rule_serves_the_holds_that_stand_in_its_own_order():
    """Held under fifo, jobs 2 (50 s) and 3 (40 s) of 4 GPUs are served by sjf: 3 at 100, when the rule is another."""
    simulator = filled((10, 4, 50), (10, 4, 40))
    apply(simulator, Hold(2, LONG, MACHINE), Hold(3, LONG, MACHINE))
    simulator.use(replace(TIERED, order="sjf"))
    simulator.run()
    assert simulator.jobs()["first_start_s"][2:].tolist() == [140.0, 100.0]
