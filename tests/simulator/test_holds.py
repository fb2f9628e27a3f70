"""Holds that wait for a tier, by hand; timers that bind no job; Algorithm 1 as a fixed policy of holds."""

from __future__ import annotations

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

from clustergym.experiments.playing.recording import WORDS, decisions, timeline
from clustergym.simulator.base.codes import DONE, HELD, RUNNING
from clustergym.simulator.base.decisions import Advance, Hold, Preempt, Start
from clustergym.simulator.base.errors import InputError, InvalidDecision, Stalled
from clustergym.simulator.base.tiers import MACHINE, NETWORK, RACK, SLOT
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.events.initialise import Failures
from clustergym.simulator.rules.rule import PLACERS, Rule, Tuner
from clustergym.simulator.sharing.sharing_model import Sharing
from clustergym.simulator.workloads import Workload
from clustergym.tests.support import invariants, random_holds
from clustergym.tests.support.drawn import calm, some
from clustergym.tests.support.paths import SUPPORT

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
    """2 GPUs are asked for at 10 and held for a machine until 150: job 0 ends at 100, and nothing is asked there."""
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
    """Two racks of two machines of 8. At 100 those of rack 0 have 2 and 6 free GPUs, those of rack 1 have 4 and 4.

    Three are held for the network: 5 GPUs take the machine with 6; then 6 find no machine, and a rack, the one with 8;
    then 3 find no machine either (2, 1, 0 and 2 are free), and rack 0.
    """
    simulator = laid(
        TWO_BY_TWO, (0, 6, LONG), (0, 2, LONG), (0, 4, LONG), (0, 4, LONG), *[(100, n, 5.0) for n in (5, 6, 3)]
    )
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
    """Jobs 2 (50 s) and 3 (40 s), of 4 GPUs each, wait for machines, 3 held first; 0 ends at 100, 1 at 300."""
    simulator = filled((10, 4, 50), (10, 4, 40), rule=replace(TIERED, order=order))
    apply(simulator, Hold(3, LONG, MACHINE), Hold(2, LONG, MACHINE))
    simulator.run()
    start_s = simulator.jobs()["first_start_s"]
    assert start_s[first] == 100.0
    assert start_s[5 - first] == simulator.jobs()["finish_s"][first]


def test_a_job_that_finds_none_does_not_stop_those_behind_it():
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


def test_a_job_stopped_and_held_that_gets_its_own_gpus_back_has_not_stopped():
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


def test_until_gpus_are_freed_the_one_that_frees_some_decides_about_it():
    """Job 2 is held without a time for a machine at 10. At 20 job 0 is stopped: job 2 is in the queue at once."""
    simulator = filled((10, 2, 500), (20, 1, 5))
    apply(simulator, Hold(2, None, MACHINE))
    simulator.advance()
    apply(simulator, Preempt(0))
    assert (simulator.view.queue.tolist(), simulator.view.held.tolist()) == ([0, 2, 3], [])


def test_a_held_job_can_still_be_started():
    """Held for a machine, job 2 is started on two machines at 10; at 100 no job is served in its place."""
    simulator = filled((10, 2, 500), (10, 4, 50))
    apply(simulator, Hold(2, LONG, MACHINE), Hold(3, LONG, MACHINE), Start(2, [3, 7]))
    assert (simulator.state.n_tier_holds, simulator.state.tier_hold_jobs[0]) == (1, 3)
    simulator.run()
    assert simulator.jobs()["first_start_s"].tolist() == [0.0, 0.0, 10.0, 510.0]


def test_a_hold_outlives_a_failure_and_takes_what_comes_back():
    """One machine. It fails under job 0, which is held then for nothing: job 1, held for it all along, gets it back."""
    failures = Failures(500.0, 100.0, 0.0)
    simulator = laid("flat:machines=1,gpus_per_machine=4", (0, 4, 5000), (10, 4, 50), failures=failures)
    apply(simulator, Start(0, range(4)))
    simulator.advance()
    apply(simulator, Hold(1, LONG, MACHINE))
    simulator.advance()
    s, view = simulator.state, simulator.view
    assert (s.failures, view.queue.tolist(), view.held.tolist()) == (1, [0], [1])
    back_s = float(s.event_key[s.event_position[s.first_machine_event]])
    apply(simulator, Hold(0, LONG))
    simulator.run()
    assert started(simulator, 1)[0] == back_s > view.workload.arrival_s[1]


@pytest.mark.parametrize("placer", sorted(PLACERS))
def test_other_placers_give_what_they_give_if_its_tier_is_good_enough(placer):
    """GPUs 3 and 7 are free at 10, on two machines of one rack, and machine 0 from 100 on.

    `consolidated`, `skew` and `first-skew` (an unknown model), and `affinity` never spread a gang that a machine could
    hold. `random` may draw GPUs of two machines at 100 too.
    """
    for tier, start_s in ((MACHINE, 100.0), (RACK, 10.0)):
        if placer == "random" and tier == MACHINE:
            continue
        simulator = filled((10, 2, 50), rule=Rule("fifo", placer=placer))
        apply(simulator, Hold(2, LONG, tier))
        simulator.run()
        waits = placer in ("consolidated", "skew", "affinity", "first-skew")
        assert simulator.jobs()["first_start_s"][2] == (100.0 if waits else start_s)


# Rounds, leases, auctions, sharing, regions.


def test_with_rounds_a_hold_is_served_at_rounds():
    """Rounds of 80 s: room from 100 on is taken at 160, with no decision; a hold that ends at 130 is over at 130."""
    for until_s, start_s in ((LONG, 160.0), (130.0, -1.0)):
        simulator = laid(
            TWO_MACHINES, (0, 3, 100), (0, 3, 900), (0, 2, 50), (300, 1, 5), rule=replace(TIERED, round=80.0)
        )
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
    """Job 0 (4 GPUs, 1,000 s, a lease of 400) is released at 400, its GPUs are auctioned 4 s later: job 1 starts."""
    options = {"semantics": "artist-sim:lease_s=400,chunk=0", "rule": Rule("fifo", placer="first")}
    simulator = laid("flat:machines=1,gpus_per_machine=4", (0, 4, 1000), (0, 4, 50), **options)
    apply(simulator, Start(0, range(4)), Hold(1, LONG, MACHINE))
    simulator.advance()
    assert (simulator.view.now_s, simulator.view.queue.tolist(), started(simulator, 1)[0]) == (404.0, [0], 404.0)


def test_where_gpus_are_shared_it_takes_free_ones_only():
    """2 GPUs a machine, 2 jobs a GPU: job 1 finds GPU 1 free only, and waits for two until job 0 ends at 100."""
    simulator = laid(
        "flat:machines=1,gpus_per_machine=2", (0, 1, 100), (0, 2, 50), sharing=Sharing(interference="constant:xi=1.5")
    )
    apply(simulator, Start(0, [0]), Hold(1, LONG, MACHINE))
    simulator.run()
    assert simulator.jobs()["first_start_s"].tolist() == [0.0, 100.0]


@pytest.mark.parametrize("tier", [0, 4, -1, True, 1.5, "rack"])
def test_a_tier_that_is_none_is_refused_in_a_sentence(tier):
    simulator = laid(TWO_MACHINES, (0, 2, 50))
    before = simulator.snapshot().tobytes()
    with pytest.raises(
        InvalidDecision, match=r"^hold job 0: tier .*: expected 1 \(machine\), 2 \(rack\), 3 \(network\)"
    ):
        simulator.apply(Hold(0, 10.0, tier))
    assert simulator.snapshot().tobytes() == before


def test_no_job_to_come_and_no_room_is_a_stall():
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


# Timers that bind no job.


def pressed(seed, whole=False, n=60):
    """60 jobs of 1 to 32 GPUs at a load of 1.2 on 32 GPUs, at any times; `whole`: whole seconds, so many ties."""
    rng = np.random.default_rng(seed)
    gpus, duration_s = 2 ** rng.integers(0, 6, n), rng.lognormal(6, 1.2, n)
    arrival_s = np.sort(rng.uniform(0, (gpus * duration_s).sum() / 32 / 1.2, n))
    if whole:
        arrival_s, duration_s = np.floor(arrival_s), np.ceil(duration_s)
    return Workload.from_arrays("pressed", arrival_s, gpus, duration_s)


def outcome(rule, workload, policy=None, topology=TWO_BY_TWO):
    """Every column and metric of a run, as text, and the state."""
    simulator = Simulator(topology, NETWORK_SLOWS, rule=rule)
    simulator.reset(workload)
    metrics = simulator.run(policy)
    table = {name: values.tolist() for name, values in simulator.jobs().items()}
    return repr((metrics, table, int(simulator.state.instants), int(simulator.state.events))), simulator


@pytest.mark.parametrize("placer", sorted(PLACERS))
@pytest.mark.parametrize("order", ["fifo", "las", "nw-sens"])
@pytest.mark.filterwarnings("ignore::clustergym.simulator.workloads.WorkloadWarning")
def test_timers_to_look_at_change_nothing(order, placer):
    """All results, decision points and events are those of the rule without them, and waits have been recorded."""
    rule = Rule(order, placer=placer, preemption_cost=(20.0,))
    for timers in ({"tuner": Tuner()}, {"timers": (50.0, 90.0)}):
        advised, simulator = outcome(replace(rule, advisory=True, **timers), pressed(3))
        assert advised == outcome(rule, pressed(3))[0]
        assert (simulator.state.next_wait > 0) == ("tuner" in timers)


def test_timers_to_look_at_follow_what_is_accepted_by_any_player():
    """Initial timers of an hour. Job 2 takes a machine after 90 s, so a gang of 2 that comes at 110 has until 200.

    One of 4, of which none was seen, has an hour for each. At 150 job 3 takes a rack after 40 s, before its timer of
    the machine has run out: the timer of the rack is 40 s, and that of job 4, which came at 110 too, has run out.
    """
    rule = replace(TIERED, tuner=Tuner(), advisory=True)
    rows = [(10, 2, 500), (110, 2, 5), (110, 2, 5), (120, 4, 5), (150, 1, 5)]
    simulator = filled(*rows, rule=rule)
    view = simulator.view
    assert [view.timer_s(2, tier) for tier in (MACHINE, RACK)] == [3600.0, 3600.0]
    apply(simulator, Hold(2, LONG, MACHINE))
    simulator.advance()
    assert (view.now_s, started(simulator, 2)[0]) == (110.0, 100.0)
    assert [view.timer_end_s(3, tier) for tier in (MACHINE, RACK)] == [200.0, 3710.0]
    apply(simulator, Hold(3, LONG), Hold(4, LONG))
    simulator.advance()
    assert (view.now_s, view.timer_end_s(5, MACHINE), view.timer_end_s(5, RACK)) == (120.0, 3720.0, 3720.0)
    apply(simulator, Hold(5, LONG))
    simulator.advance()
    apply(simulator, Start(3, [2, 7]))
    assert (view.tier_of(3), view.now_s) == (RACK, 150.0)
    assert [view.timer_s(4, tier) for tier in (MACHINE, RACK)] == [50.0, 0.0]
    assert [view.timer_end_s(4, tier) for tier in (MACHINE, RACK)] == [200.0, math.inf]


def test_without_timers_there_is_nothing_to_look_at():
    simulator = laid(TWO_MACHINES, (0, 2, 5))
    view = simulator.view
    assert (view.timer_s(0, RACK), view.timer_end_s(0, MACHINE)) == (0.0, math.inf)
    with pytest.raises(InputError, match="tier 3: there are timers of 1"):
        view.timer_s(0, NETWORK)
    with pytest.raises(InputError, match="advisory = True: there are no delay timers"):
        Rule("fifo", advisory=True)


# Algorithm 1 as a policy that decides about one job at a time.


class AlgorithmOne:
    """A waiting job is held for the worst tier that it takes now, until it takes a worse: line 10, line 18, line 21."""

    def decide(self, view):
        for job in view.queue.tolist():
            for tier in (MACHINE, RACK):
                if view.timer_s(job, tier) > 0.0:
                    return Hold(job, view.timer_end_s(job, tier), tier)
            return Hold(job, None, NETWORK)
        return Advance()


@pytest.mark.parametrize("order", ["fifo", "nw-sens", "srsf"])
@pytest.mark.parametrize("timers", [(0.0, 0.0), (math.inf, math.inf), (200.0, 900.0), (900.0, 200.0), (0.0, 300.0)])
def test_algorithm_one_with_fixed_timers_is_a_policy_of_holds(timers, order):
    """No-wait, consolidated and three manual ones: all starts, ends and tiers, on up to 12 workloads without ties."""
    for seed in range(some(12, 4)):
        rule = Rule(order, placer=("tier", "first")[seed % 2], timers=timers)
        _, bound = outcome(rule, pressed(seed))
        _, free = outcome(replace(rule, advisory=True), pressed(seed), AlgorithmOne())
        for column in ("first_start_s", "finish_s", "tier", "queueing_delay_s", "comm_time_s"):
            assert free.jobs()[column].tolist() == bound.jobs()[column].tolist(), (seed, column)


def test_a_hold_keeps_the_tuned_timer_of_the_instant_at_which_it_was_made():
    """Machines of 4 with 1 free GPU each; 2 GPUs are asked for at 0 and 50, timers are an hour; 2 are free at 100.

    Job 4 starts at 100, after 100 s: that is the timer now. Where it binds job 5 takes a rack at 150; its hold, of 50,
    goes on until 3650. A policy that wants what Algorithm 2 gives in between makes holds that end before.
    """
    rows = [(0, 1, 100), (0, 1, 100), (0, 1, LONG), (0, 3, LONG), (0, 2, LONG), (50, 2, 10)]
    for rule, policy, start_s in (
        (replace(TIERED, tuner=Tuner()), None, 150.0),
        (replace(TIERED, tuner=Tuner(), advisory=True), AlgorithmOne(), 3650.0),
    ):
        simulator = laid(TWO_MACHINES, *rows, rule=rule)
        apply(simulator, *(Start(job, [job]) for job in range(3)), Start(3, [4, 5, 6]))
        simulator.run(policy)
        table = simulator.jobs()
        assert (table["first_start_s"][4:].tolist(), table["tier"][5]) == ([100.0, start_s], RACK)


def test_the_tuner_sees_the_same_waits_whether_it_binds_or_not():
    """Timers that are never reached (an hour; jobs of minutes on a calm cluster): same runs, same lists of waits."""
    rule = replace(TIERED, tuner=Tuner(initial=(1000.0,)))
    for seed in range(4):
        _, bound = outcome(rule, pressed(seed))
        _, free = outcome(replace(rule, advisory=True), pressed(seed), AlgorithmOne())
        kept = bound.state.next_wait
        assert kept == free.state.next_wait > 30
        for name in ("wait_time_s", "wait_value", "wait_list"):
            assert bound.state[name][:kept].tolist() == free.state[name][:kept].tolist()


# Random holds.


def test_interpreted_holds_are_the_compiled_ones_bit_for_bit():
    """40 random runs, under any placer, with rounds and failures: starts, ends, tiers, metrics and tuned timers."""
    quiet = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA_") or key.endswith("_DIR")}
    command = [sys.executable, "-P", "-W", "ignore", str(SUPPORT / "random_holds.py"), "40"]
    played = subprocess.run(
        command, check=False, capture_output=True, text=True, env=quiet | {"NUMBA_DISABLE_JIT": "1"}, timeout=300
    )
    assert played.returncode == 0, played.stderr[-2000:]
    assert json.loads(played.stdout) == json.loads(json.dumps([random_holds.play(seed) for seed in range(40)]))


class Witness:
    """Random holds, noted as they are made, of all jobs but the first, which always waits: so all instants are seen."""

    def __init__(self, seed):
        self.inner = random_holds.RandomHolds(seed)
        self.held = {}  # job -> (until, tier, starts when it was held)

    def decide(self, view):
        decision = self.inner.decide(_Without(view, 0))
        if isinstance(decision, Hold):
            until_s = math.inf if decision.until_s is None else decision.until_s
            self.held[decision.job] = until_s, decision.tier, int(view._simulator.state.starts[decision.job])
        elif not isinstance(decision, Advance):
            self.held.pop(decision.job, None)
        return decision


class _Without:
    """A view without a job in its queue."""

    def __init__(self, view, job):
        self.view, self.job = view, job

    def __getattr__(self, name):
        return getattr(self.view, name)

    @property
    def queue(self):
        return np.array([job for job in self.view.queue.tolist() if job != self.job], np.int64)


def check_holds(simulator, witness):
    """What has become of all that was held at earlier instants."""
    s, view = simulator.state, simulator.view
    for job, (until_s, tier, starts) in list(witness.held.items()):
        if s.starts[job] > starts or s.status[job] in (RUNNING, DONE):
            assert tier is not None and view.now_s >= s.held_since_s[job]
            if s.status[job] == RUNNING and s.starts[job] == starts + 1:
                assert view.tier_of(job) <= tier and s.started_s[job] <= until_s
            del witness.held[job]
        elif s.status[job] == HELD:
            assert view.now_s <= until_s or until_s == math.inf
            if tier is not None and simulator.rule.placer in ("tier", "first"):
                assert view.find_gpus_within(job, tier) is None
        else:
            has_run = s.stopped_s[job] > s.held_since_s[job]  # on its own GPUs, as if never stopped, until one failed
            assert until_s == math.inf or view.now_s >= until_s or has_run
            del witness.held[job]
    assert s.n_tier_holds == sum(tier is not None for _, tier, _ in witness.held.values())
    assert sorted(s.tier_hold_jobs[: s.n_tier_holds].tolist()) == np.flatnonzero(s.hold_tier[: s.n_jobs]).tolist()


@calm(120)
@given(st.integers(0, 1_000_000))
@pytest.mark.filterwarnings("ignore::clustergym.simulator.workloads.WorkloadWarning")
def test_a_held_job_starts_by_itself_exactly_when_it_should(seed):
    """At every instant: GPUs are conserved; a job held for a tier has no room there; none starts late or worse."""
    simulator = random_holds.random_run(seed, rounds=False)
    witness = Witness(seed)
    for _ in range(400):
        while not isinstance(decision := simulator.ask(witness), Advance):
            simulator.apply(decision)
            invariants.check_gangs(simulator)
        s = simulator.state
        if s.next_arrival == s.n_jobs and s.running == s.held == 0:
            break
        simulator.advance()
        invariants.check_gangs(simulator)
        check_holds(simulator, witness)
    simulator.run()
    assert simulator.done
