"""Dally's rules by hand, through the simulator and through Delay-v0, and against a second implementation."""

from __future__ import annotations

import math

import gymnasium
import numpy as np
import pytest

from clustergym import policies
from clustergym.simulator.base.codes import MILLIONTHS, PLACE_SPAN, RUNNING
from clustergym.simulator.base.decisions import Preempt, Start
from clustergym.simulator.base.tiers import MACHINE, NETWORK, RACK, SLOT
from clustergym.simulator.cluster.topology import Topology
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.rules.rule import Rule, Tuner
from clustergym.simulator.workloads import Workload
from clustergym.tests.support.dally_reference import Dally

HOUR, LONG = 3600.0, 1e6
TWO_BY_TWO = "dally:racks=2,machines=2"  # machines of 8 GPUs, racks of 16
FOUR_RACKS = "dally:racks=4,machines=1"
SLOWER = "penalty:default=1/2/4"  # machine, rack, network


def jobs_of(*rows):
    """Workload of (arrival_s, gpus, duration_s)."""
    return Workload.from_arrays("by hand", *map(list, zip(*rows, strict=True)))


def played(policy, topology, *rows, network="none", seed=0):
    simulator = Simulator(topology, network, rule=policies.make(policy).rule)
    simulator.reset(jobs_of(*rows), seed)
    simulator.run()
    return simulator


def last_start(policy, topology, *rows):
    """(first start, tier) of the last job."""
    table = played(policy, topology, *rows).jobs()
    return float(table["first_start_s"][-1]), int(table["tier"][-1])


ONE_FREE_EACH = [(0, 7, LONG)] * 4  # of the four machines


# Algorithm 1. Without leases, since a job that never ran stands before all that run.


@pytest.mark.parametrize("name", ["dally", "dally-manual", "dally-nowait", "dally-consolidated"])
def test_a_machine_is_taken_at_once(name):
    """Line 5: 4 machines with 1 free GPU; a job of 2 GPUs comes at 100, 8 free GPUs of one machine at 100 as well."""
    rows = [*ONE_FREE_EACH[:3], (0, 8, 100.0), (100, 2, 10)]
    assert last_start(f"{name}:lease=0", TWO_BY_TWO, *rows) == (100.0, SLOT)


@pytest.mark.parametrize(
    ("policy", "rack_s", "network_s"),
    [
        ("dally-manual:timers=1000/3000", 1100, 3100),
        ("dally-manual:timers=3000/1000", 3100, 3100),  # line 10 comes first
        ("dally-manual:timers=1000", 1100, 1100),
        ("dally-manual", 100 + 12 * HOUR, 100 + 24 * HOUR),
        ("dally-nowait", 100, 100),
        ("dally-consolidated", LONG, LONG),
        ("dally-manual:timers=inf/0", LONG, LONG),
        ("dally-manual:timers=1e300", LONG, LONG),
        ("dally:initial=0.5/2", 100 + 0.5 * HOUR, 100 + 2 * HOUR),
        ("dally:initial=3,round=700", 11200, 11200),  # 100 + 3 h = 10900; the next multiple of 700
    ],
)
def test_refuses_a_rack_and_the_network_until_its_timers_run_out_and_starts_exactly_then(policy, rack_s, network_s):
    """Lines 10 to 21: 1 free GPU on each machine; 2 GPUs are asked for at 100. Nothing else happens before LONG."""
    word = policy + (",lease=0" if ":" in policy else ":lease=0")
    rows = [*ONE_FREE_EACH, (100, 2, 10)]
    for topology, start_s, tier in ((TWO_BY_TWO, rack_s, RACK), (FOUR_RACKS, network_s, NETWORK)):
        expected = (start_s, tier) if start_s < LONG else (LONG, SLOT)
        assert last_start(word, topology, *rows) == expected


def test_an_offer_just_before_the_timer_runs_out_is_refused():
    """As above; at 1099 a job of 5 GPUs comes, for which there is no room, so that offers are made."""
    table = played(
        "dally-manual:timers=1000/3000,lease=0", TWO_BY_TWO, *ONE_FREE_EACH, (100, 2, 10), (1099, 5, 10)
    ).jobs()
    assert table["first_start_s"][4] == 1100.0


def test_a_timer_does_not_ring_early_however_its_end_rounds():
    """Starvation is now - arrival: 0.1 + 0.7 is one bit below what makes that difference 0.7."""
    for arrival_s, wait_s in ((0.1, 0.7), (1e6 / 3, 1e-9), (12345.678, 0.3), (7.7, 1e5 / 3)):
        policy = f"dally-manual:timers={wait_s!r}/{wait_s!r},lease=0"
        start_s, _ = last_start(policy, FOUR_RACKS, *[(0, 7, LONG)] * 4, (arrival_s, 2, 10))
        assert start_s - arrival_s >= wait_s
        assert math.nextafter(start_s, 0.0) - arrival_s < wait_s


def test_a_gang_larger_than_a_machine_has_no_machine_timer():
    """12 GPUs on machines of 8: a rack at once; where each of two racks of 24 has 10 free, the rack timer counts."""
    assert last_start("dally-consolidated:lease=0", TWO_BY_TWO, (0, 12, 10)) == (0.0, RACK)
    rows = [(0, 14, LONG), (0, 14, LONG), (100, 12, 10)]
    assert last_start("dally-manual:timers=inf/3000,lease=0", "dally:racks=2,machines=3", *rows) == (3100.0, NETWORK)


def test_a_gang_larger_than_a_rack_has_no_timers():
    assert last_start("dally-consolidated:lease=0", TWO_BY_TWO, (0, 20, 10)) == (0.0, NETWORK)
    assert last_start("dally:initial=inf,lease=0", TWO_BY_TWO, (0, 32, 10)) == (0.0, NETWORK)


def test_starvation_counts_from_the_last_loss_of_the_gpus():
    """2 machines of 4. Job 0 (2 GPUs) runs from 0, is stopped at 100 and finds 1 free GPU on each: the rack at 1100."""
    rule = policies.make("dally-manual:timers=1000/5000,lease=0").rule
    simulator = Simulator("flat:machines=2,gpus_per_machine=4", rule=rule)
    simulator.reset(jobs_of((0, 2, 500), (100, 3, LONG), (100, 3, LONG)))
    simulator.apply(Start(0, [0, 1]))
    simulator.advance()
    for decision in (Preempt(0), Start(1, [0, 1, 2]), Start(2, [4, 5, 6])):
        simulator.apply(decision)
    simulator.run()
    table = simulator.jobs()
    assert (table["queueing_delay_s"][0], table["finish_s"][0], table["tier"][0]) == (1000.0, 1500.0, RACK)


# Algorithm 2. Machines of 2, 2, 1 and 1 GPUs in one rack; its lists are those of gangs of 2.

TUNED = Topology.from_counts("tuned", slot_gpus=[2, 2, 1, 1], machine_slots=[1] * 4, rack_machines=[4])


def tuned_start(options, first_wait_s=600.0, second_wait_s=1200.0, asked=2, arrival_s=1250.0):
    """When a gang that comes at `arrival_s` takes 2 GPUs on the two small machines, free from 1300 on.

    Single GPUs hold the machines of 2 until two gangs of 2, that came at 0, get one each after those waits.
    """
    rows = [(0, 1, 1300.0)] * 2 + [(0, 1, first_wait_s)] * 2 + [(0, 1, second_wait_s)] * 2
    rows += [(0, 2, LONG)] * ((first_wait_s < LONG) + (second_wait_s < LONG)) + [(arrival_s, asked, 10)]
    return last_start(f"dally:lease=0,{options}", TUNED, *rows)


@pytest.mark.parametrize(
    ("options", "waits", "timer_s"),
    [
        ("initial=0.25", (LONG, LONG), 900.0),  # empty: `initial`, in leases of an hour
        ("initial=1", (600.0, LONG), 600.0),  # one entry gives itself
        ("initial=1", (600.0, 1200.0), 900.0 + 2 * 300.0 * math.sqrt(2.0)),  # mean 900, sample deviation
        ("initial=1,deviation=population", (600.0, 1200.0), 900.0 + 2 * 300.0),
        # 600 was recorded at 600, 650 s ago, and is forgotten; 1200 at 1200 is not, though it is itself longer than
        # the history of 540 s
        ("initial=0.3/5,history=0.15", (600.0, 1200.0), 1200.0),
        ("initial=0.5,history=1e-9", (600.0, 1200.0), 1800.0),
        ("initial=1,history=1e9", (600.0, 1200.0), 900.0 + 2 * 300.0 * math.sqrt(2.0)),
        # the authors' tuner: waits below a lease do not count; whole leases between floors and caps
        ("initial=0.5,floors=2/3", (600.0, 1200.0), 2 * HOUR),
        ("initial=2.2,floors=1/1", (600.0, 1200.0), 3 * HOUR),
        ("initial=50,floors=1/1,history=4", (600.0, 1200.0), 4 * HOUR),  # 0.8 x 4 = 3.2, so 4
        ("initial=inf,floors=1/1,history=5", (600.0, 1200.0), 4 * HOUR),
        ("initial=0,floors=1e300,history=5", (600.0, 1200.0), 4 * HOUR),
    ],
)
def test_a_tuned_timer_is_the_mean_of_past_waits_and_two_deviations(options, waits, timer_s):
    start_s, tier = tuned_start(options, *waits)
    assert start_s == pytest.approx(1250.0 + timer_s, rel=1e-12)
    assert tier == RACK


def test_the_authors_tuner_records_waits_of_a_lease_or_more():
    """A machine after 1.5 and 2 leases: mean 1.75, population deviation 0.25, so 2.25: 3. Sample: 2.457, so 3."""
    for deviation in ("population", "sample"):
        options = f"initial=2/9,floors=0/0,deviation={deviation}"
        assert tuned_start(options, 1.5 * HOUR, 2 * HOUR, arrival_s=7300.0)[0] == 7300.0 + 3 * HOUR


def test_a_gang_of_another_size_has_lists_of_its_own():
    """Machines of 2, 4, 1, 1, 1. A gang of 2 got one after 600 s; a gang of 3, since 1250, waits `initial` anyway."""
    topology = Topology.from_counts("other", slot_gpus=[2, 4, 1, 1, 1], machine_slots=[1] * 5, rack_machines=[5])
    rows = [(0, 1, 1300.0)] * 3 + [(0, 1, 600.0)] * 2 + [(0, 4, LONG), (0, 2, LONG), (1250, 3, 10)]
    assert last_start("dally:lease=0,initial=0.5", topology, *rows) == (1250.0 + 1800.0, RACK)


def counts(simulator, gpus):
    """Entries of the lists (machine, rack) of one GPU demand."""
    s = simulator.state
    demand = s.class_gpus[: s.n_classes].tolist().index(gpus)
    return s.waits_count[2 * demand : 2 * demand + 2].tolist()


@pytest.mark.parametrize(
    ("topology", "recorded"), [(TWO_BY_TWO, [0, 1]), (FOUR_RACKS, [0, 0])], ids=["rack", "network"]
)
def test_racks_are_recorded_and_the_network_is_not(topology, recorded):
    simulator = played("dally:lease=0,initial=0.1", topology, *ONE_FREE_EACH, (100, 2, 10))
    assert counts(simulator, 2) == recorded
    assert counts(simulator, 7) == [4, 0]


def test_a_timer_that_shrinks_while_a_job_waits_rings_at_its_new_end():
    """Machines of 4, 4 and 2; a gang of 2 gets one at 600 after 599 s, so another, since 500, the rack at 1099."""
    topology = Topology.from_counts("shrink", slot_gpus=[4, 4, 2], machine_slots=[1] * 3, rack_machines=[3])
    rows = [(0, 1, 600), (0, 1, 600), (0, 3, LONG), (0, 3, LONG), (1, 2, LONG), (500, 2, 10)]
    assert last_start("dally:lease=0,initial=1", topology, *rows) == (1099.0, RACK)


def test_the_authors_tuner_may_open_the_network_before_the_rack():
    """Floors of 6 leases for a machine and 1 for a rack: the network at 3600 s, which is an offer of its own."""
    assert last_start("dally:lease=0,floors=6/1", FOUR_RACKS, *ONE_FREE_EACH, (1, 2, 10)) == (3601.0, NETWORK)


# Nw_sens and leases


def nw_sens(simulator, job):
    """Nw_sens of a waiting job, as its key has it."""
    return simulator.state.order_key[job] // PLACE_SPAN / MILLIONTHS


def test_nw_sens_by_hand():
    """4 machines of 2 in 2 racks, slowdown 4 across racks. Job 0 (2 GPUs, 100 s) runs 40 s across racks: 10 s of work.

    Nw_sens = 0.1 / 0.4. Then 30 s on one machine: 0.4 / 0.7 = 0.571429 in millionths. A job that never ran has 0.
    """
    topology = Topology.from_counts("four", slot_gpus=[2] * 4, machine_slots=[1] * 4, rack_machines=[2, 2])
    simulator = Simulator(topology, SLOWER, rule=policies.make("dally:lease=0").rule)
    simulator.reset(jobs_of((0, 2, 100), (40, 8, 1), (70, 8, 1)))
    assert nw_sens(simulator, 0) == 0.0
    simulator.apply(Start(0, [0, 4]))
    simulator.advance()
    simulator.apply(Preempt(0))
    assert nw_sens(simulator, 0) == 0.25
    simulator.apply(Start(0, [2, 3]))
    simulator.advance()
    assert simulator.view.now_s == 70.0
    simulator.apply(Preempt(0))
    assert nw_sens(simulator, 0) == 0.571429
    assert nw_sens(simulator, 1) == nw_sens(simulator, 2) == 0.0


ONE_MACHINE = "flat:machines=1,gpus_per_machine=4"


@pytest.mark.parametrize(("arrival_s", "start_s"), [(10.0, 100.0), (100.0, 100.0), (130.0, 130.0), (199.0, 199.0)])
def test_a_job_is_stopped_for_one_that_never_ran_once_its_lease_has_ended(arrival_s, start_s):
    """4 GPUs. A lease of 100 s is the least that a job gets, no period. 7 s to restore after 50 s of the other."""
    simulator = played("dally:lease=100,preemption_cost=7", ONE_MACHINE, (0, 4, 1000), (arrival_s, 4, 50))
    table = simulator.jobs()
    assert table["first_start_s"].tolist() == [0.0, start_s]
    assert table["finish_s"].tolist() == [1057.0, start_s + 50.0]
    assert table["preemptions"].tolist() == [1, 0]


def test_without_leases_no_job_is_stopped():
    table = played("dally:lease=0", ONE_MACHINE, (0, 4, 1000), (10, 4, 50)).jobs()
    assert table["first_start_s"].tolist() == [0.0, 1000.0]


@pytest.mark.parametrize(("network", "start_s"), [(SLOWER, 300.0), ("none", 200.0)])
def test_a_job_slowed_down_more_is_not_stopped(network, start_s):
    """2 machines of 2. Job 0 ran at full speed until it was stopped at 100, for job 1, on both machines, 200 s alone.

    Slowed down by 2, job 1 has Nw_sens 0.5 when its lease ends at 200, so runs to 300. Else both have 1, and job 0
    comes first by its number.
    """
    rule = policies.make("dally:lease=100").rule
    simulator = Simulator("flat:machines=2,gpus_per_machine=2", network, rule=rule)
    simulator.reset(jobs_of((0, 2, 1000), (100, 4, 150 if network == "none" else 200)))
    simulator.apply(Start(0, [0, 1]))
    simulator.advance()
    simulator.apply(Preempt(0))
    simulator.apply(Start(1, [0, 1, 2, 3]))
    simulator.run()
    assert simulator.jobs()["queueing_delay_s"][0] == start_s - 100.0


@pytest.mark.parametrize("unit", [1.0, 2.0, 3.7, 1 / 7, 1e-3])
def test_two_jobs_on_one_machine_take_turns_however_their_work_is_cut(unit):
    """8 GPUs: a job of 3 h, and at 0.5 h one of 100 h. Both run at full speed, so a lease each, longest stopped first.

    The first runs from 0 to 1, 2 to 3 and 4 to 5 h; the other from 1, 3 and 5 h on, and ends after 103 h in all.
    """
    seconds = np.array([3 * HOUR, 100 * HOUR])
    workload = Workload.from_arrays("two", [0, 1800], [8, 8], seconds, iterations=seconds * unit)
    simulator = Simulator("flat:machines=1,gpus_per_machine=8", rule=policies.make("dally").rule)
    simulator.reset(workload)
    simulator.run()
    table = simulator.jobs()
    assert table["finish_s"] == pytest.approx([5 * HOUR, 103 * HOUR], rel=1e-9)
    assert table["preemptions"].tolist() == [2, 2]


def test_a_lease_that_ended_while_none_waited_makes_way_at_once():
    """2 machines of 4, leases of 100 s, 5 s to restore: a job of 4, and at 150 one of 8 for 60 s, which never ran.

    It takes both machines at once; the first goes on at 210 after 5 s, with 850 s left.
    """
    rows = [(0, 4, 1000), (150, 8, 60)]
    simulator = played("dally-nowait:lease=100,preemption_cost=5", "flat:machines=2,gpus_per_machine=4", *rows)
    assert simulator.jobs()["finish_s"].tolist() == [1065.0, 210.0]
    assert simulator.metrics()["preemptions"] == 1


def test_a_job_that_gets_its_gpus_back_has_not_stopped_and_begins_a_new_lease():
    """2 machines of 4, leases of 100 s: jobs of 4 from 0 and from 50 on; at 60 one of 8, for which never both are over.

    The first has leases to 100, 200, 300, and ends at 330; the other to 150, 250, 350. So the job of 8 runs from 350 on
    for 10 s, and the other goes on after 5 s, with 700 s left.
    """
    rows = [(0, 4, 330), (50, 4, 1000), (60, 8, 10)]
    simulator = played("dally-nowait:lease=100,preemption_cost=5", "flat:machines=2,gpus_per_machine=4", *rows)
    assert simulator.jobs()["finish_s"].tolist() == [330.0, 1065.0, 360.0]
    assert simulator.jobs()["preemptions"].tolist() == [0, 1, 0]


def test_a_job_back_on_its_gpus_does_not_bid_again_at_the_same_instant():
    """The same jobs: at 100 the first is back; a second look at that instant, as after others decided, is idle."""
    rule = policies.make("dally-nowait:lease=100").rule
    simulator = Simulator("flat:machines=2,gpus_per_machine=4", rule=rule)
    simulator.reset(jobs_of((0, 4, 330), (50, 4, 1000), (60, 8, 10)))
    while simulator.view.now_s < 100.0:
        simulator.schedule()
        simulator.advance()
    simulator.schedule()
    decided = int(simulator.state.decisions)
    simulator.schedule()
    assert simulator.view.now_s == 100.0
    assert int(simulator.state.decisions) == decided


def test_a_job_on_two_machines_bids_anew_when_its_lease_ends_and_another_waits():
    """2 machines of 4, slowdown 2 across them, 5 s to restore, leases of 100 s: jobs of 3 and 3, at 2 one of 2 on both.

    At 150 the first ends; none waits, so none moves. At 350 a job of 4 for 10 s takes the machine whose GPUs are
    free or over. The job of 2, most slowed down (0.5), comes next, with 174 s done: it takes GPUs of the other machine,
    and ends at 355 + 826. The job of 3 waits until 360.
    """
    rows = [(0, 3, 150), (0, 3, LONG), (2, 2, 1000), (350, 4, 10)]
    policy = "dally-nowait:lease=100,preemption_cost=5"
    simulator = Simulator("flat:machines=2,gpus_per_machine=4", SLOWER, rule=policies.make(policy).rule)
    simulator.reset(jobs_of(*rows))
    simulator.apply(Start(0, [0, 1, 2]))
    simulator.apply(Start(1, [4, 5, 6]))
    simulator.advance()
    simulator.apply(Start(2, [3, 7]))
    simulator.run()
    table = simulator.jobs()
    assert table["finish_s"][2] == 1181.0
    assert table["finish_s"][3] == 360.0
    assert table["preemptions"].tolist() == [0, 1, 1, 0]


def test_the_wait_for_a_machine_begins_anew_when_a_lease_ends():
    """As before with machine timers of 1,000 s, and a job of 3 that never ends on each machine: at 350 one of 1 comes.

    GPUs of 3, 3 and 2 jobs are over. By Nw_sens the job of 1 that never ran comes first, then the job of 2 (0.5): a
    machine has 3 free GPUs then, so it takes one of them at once; a job of 3 finds no machine, and starves for one.
    """
    rows = [(0, 3, LONG), (0, 3, LONG), (2, 2, 1000), (350, 1, LONG)]
    rule = policies.make("dally-manual:timers=1000,lease=100").rule
    simulator = Simulator("flat:machines=2,gpus_per_machine=4", SLOWER, rule=rule)
    simulator.reset(jobs_of(*rows))
    simulator.apply(Start(0, [0, 1, 2]))
    simulator.apply(Start(1, [4, 5, 6]))
    simulator.advance()
    simulator.apply(Start(2, [3, 7]))
    while simulator.view.now_s < 350.0:
        simulator.advance()
    simulator.schedule()
    assert simulator.state.status[:4].tolist().count(RUNNING) == 3


def test_without_leases_a_job_on_two_machines_moves_to_one_as_soon_as_it_has_room():
    """The same cluster and jobs, none arrives: the job of 2 moves at 150, with 74 s done, and ends at 155 + 926."""
    rows = [(0, 3, 150), (0, 3, LONG), (2, 2, 1000)]
    policy = "dally-nowait:lease=0,preemption_cost=5"
    simulator = played(policy, "flat:machines=2,gpus_per_machine=4", *rows, network=SLOWER)
    assert simulator.jobs()["finish_s"][2] == 1081.0
    assert (simulator.metrics()["migrations"], simulator.metrics()["preemptions"]) == (1, 0)


# Delay-v0


def env_of(rows, topology=TWO_BY_TWO, **options):
    env = gymnasium.make("clustergym/Delay-v0", topology=topology, workload=jobs_of(*rows), network="none", **options)
    env.reset(seed=0)
    return env


def test_an_agent_takes_the_offers_of_algorithm_1():
    """`dally-manual` through env.step: nothing is offered to the last job until 1100, where it takes the rack."""
    env = env_of([*ONE_FREE_EACH, (100, 2, 10)])
    policy = policies.make("dally-manual:timers=1000/3000,lease=0")
    started = []
    for _ in range(20):
        action = policy.act(env)
        started.append((env.unwrapped.view.now_s, int(action[0])))
        _, _, ended, _, _ = env.step(action)
        if ended:
            break
    assert (1100.0, 2) in started  # the first slot, inside a rack
    assert [row for row in started if row[0] < 1100.0 and row[1] != 0] == [(0.0, 1)] * 4


@pytest.mark.parametrize(
    ("policy", "until_s"), [("dally-manual:timers=1000/3000,lease=0", [1100.0, 3100.0, LONG]), ("fifo", [LONG])]
)
def test_a_hold_until_the_present_timer(policy, until_s):
    """Delay bucket 1: for a machine its timer, for a rack its own, then an offer. As bucket 0 without timers."""
    env = env_of([*ONE_FREE_EACH, (100, 2, 10)], topology=FOUR_RACKS)
    player, base = policies.make(policy), env.unwrapped
    while base.view.now_s < 100.0:
        env.step(player.act(env) if base.view.queue.size else (0, 0, 0))
    seen = []
    for tier in (0, 1, 1)[: len(until_s)]:
        env.step((5, 1, tier))
        seen.append(base.view.now_s)
    assert seen == until_s


@pytest.mark.parametrize("migration", [True, False])
def test_with_migration_a_freed_machine_is_a_decision_point_though_none_waits(migration):
    """2 machines of 4: the job on both can move at 150, when one is freed; the other two end at 150 and 400."""
    rows = [(0, 3, 150), (0, 3, 400), (0, 2, 1000)]
    env = env_of(rows, topology="flat:machines=2,gpus_per_machine=4", migration=migration).unwrapped
    for job_slot in (1, 1, 2):
        _, _, terminated, _, _ = env.step((job_slot, 0, 0))
    if not migration:
        assert terminated
        return
    assert env.view.now_s == 150.0 and env.view.tier_of(2) == RACK
    migrate = np.flatnonzero(env.action_masks()[1 + 5 * 32 : 1 + 5 * 32 + 48].reshape(-1, 3)[:, 1])
    env.step((1 + 5 * 32 + 3 * int(migrate[0]) + 1, 0, 0))
    assert env.view.tier_of(2) <= MACHINE or env.simulator.done


# the second implementation


def random_case(seed):
    """(topology, arguments of `Dally`, rule): unequal machines and racks, 3 to 40 jobs at a load of 0.6 to 2.

    Whole seconds and slowdowns that are powers of 2, so that no two events are at one instant but for rounding.
    """
    rng = np.random.default_rng(seed)
    racks = rng.integers(1, 4, rng.integers(1, 4))
    machines = rng.integers(1, 3, racks.sum())
    slots = rng.choice([1, 2, 4], machines.sum())
    topology = Topology.from_counts(
        "random", slot_gpus=slots, machine_slots=machines, rack_machines=racks,
        machine_order=str(rng.choice(["natural", "1", "7"])),
    )  # fmt: skip
    n, total = int(rng.integers(3, 41)), topology.num_gpus
    gpus = np.minimum(2 ** rng.integers(0, rng.integers(1, 6), n), total)
    if rng.random() < 0.4:
        gpus = np.where(rng.random(n) < 0.4, rng.integers(1, total + 1, n), gpus)
    duration_s = np.ceil(rng.lognormal(5, 1.2, n))
    arrival_s = np.sort(rng.uniform(0, (gpus * duration_s).sum() / total / rng.uniform(0.6, 2), n))
    arrival_s = np.floor(arrival_s / 10) * 10 if rng.random() < 0.5 else np.floor(arrival_s)
    lease, first = float(rng.choice([0.0, 50.0, 50.0, 400.0])), bool(rng.random() < 0.5)
    costs = ((0.0, 0.0), (5.0, 5.0), (3.0, 9.0))[rng.integers(3)]
    moves = lease == 0.0 and bool(rng.random() < 0.6)
    slowdowns = ((1.0, 1.0, 1.0), (1.0, 2.0, 4.0), (1.0, 4.0, 8.0))[rng.integers(3)]
    options = {"lease_s": lease, "first": first, "costs_s": costs, "moves": moves, "slowdowns": slowdowns}
    words = {"placer": "first" if first else "tier", "lease": lease, "preemption_cost": costs, "migrates": moves}
    if rng.random() < 0.4:
        history, initial = float(rng.choice([0.5, 3.0, 24.0])), tuple(rng.choice([0.0, 0.5, 1.0, 2.0], 2).tolist())
        population = bool(rng.random() < 0.5)
        options |= {"history": history, "initial": initial, "population": population}
        words["tuner"] = Tuner(history, initial, "population" if population else "sample")
    else:
        fixed = tuple(rng.choice([0.0, 20.0, 100.0, 300.0, 1000.0], 2).tolist())
        options["timers"] = words["timers"] = [(0.0, 0.0), (math.inf, math.inf), fixed][rng.integers(3)]
    options["jobs"] = list(zip(arrival_s.tolist(), gpus.tolist(), duration_s.tolist(), strict=True))
    return topology, options, Rule("nw-sens", **words)


def nested(topology):
    """Racks of machines of slots of GPUs."""
    slots = [
        list(range(first, first + n)) for first, n in zip(topology.slot_first_gpu, topology.slot_gpus, strict=True)
    ]
    machines = [[slots[i] for i in np.flatnonzero(topology.slot_machine == m)] for m in range(topology.num_machines)]
    return [[machines[i] for i in np.flatnonzero(topology.machine_rack == r)] for r in range(topology.num_racks)]


@pytest.mark.parametrize("block", range(6))
def test_kernels_do_what_the_reference_does(block):
    """First starts, ends, stops and moves of every job of 20 random runs."""
    stops = 0
    for seed in range(20 * block, 20 * block + 20):
        topology, options, rule = random_case(seed)
        runners = Dally(nested(topology), scan=topology.machine_scan.tolist(), **options).run()
        network = "penalty:default={:g}/{:g}/{:g},duration=compute".format(*options["slowdowns"])
        simulator = Simulator(topology, network, rule=rule)
        simulator.reset(jobs_of(*options["jobs"]))
        simulator.run()
        table, moved = simulator.jobs(), simulator.state.migrated[: len(runners)]
        assert table["preemptions"].tolist() == [r.preempted for r in runners], seed
        assert moved.tolist() == [r.moved for r in runners], seed
        assert table["first_start_s"] == pytest.approx([r.first_start_s for r in runners], rel=1e-9), seed
        assert table["finish_s"] == pytest.approx([r.finish_s for r in runners], rel=1e-9), seed
        stops += int(table["preemptions"].sum())
    assert stops > 50
