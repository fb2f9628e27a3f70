"""Greedy by hand, against a second implementation, and through the environment."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustergym import policies
from clustergym.simulator.base.decisions import Hold, Preempt, Start
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.base.tiers import MACHINE, NETWORK, RACK
from clustergym.simulator.cluster.topology import Topology
from clustergym.simulator.configuration.network_choice import load_network
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.rules.rule import Rule
from clustergym.simulator.workloads import Workload, open_workload
from clustergym.tests.support.drawn import calm
from clustergym.tests.support.greedy_reference import simulate

TWO = "flat:machines=2,gpus_per_machine=4"
SLOWER = "penalty:default=1/2/4"  # machine, rack, network
LONG = 1e6


def played(policy, topology, *rows, network=SLOWER, models=None):
    """The simulator after a run of (arrival_s, gpus, duration_s)."""
    workload = Workload.from_arrays("by hand", *map(list, zip(*rows, strict=True)), model=models)
    simulator = Simulator(topology, network, rule=policies.make(policy).rule)
    simulator.reset(workload)
    simulator.run()
    return simulator


def last_start(policy, topology, *rows, **options):
    """(first start, tier at the end; a slot counts as its machine) of the last job."""
    table = played(policy, topology, *rows, **options).jobs()
    return float(table["first_start_s"][-1]), max(MACHINE, int(table["tier"][-1]))


ONE_FREE_EACH = [(0, 3, 10), (0, 3, 100)]  # of two machines of 4 GPUs; a machine has room for 2 GPUs at 10


@pytest.mark.parametrize(("seconds", "expected"), [(7, (1.0, RACK)), (8, (10.0, MACHINE))])
def test_a_job_waits_if_it_ends_sooner_so_by_a_tenth(seconds, expected):
    """At 1, over two machines: 2 L. A machine has room in 9 s: 9 + L. 2 L <= 0.9 (9 + L) up to L = 7.36."""
    assert last_start("greedy", TWO, *ONE_FREE_EACH, (1, 2, seconds)) == expected


@pytest.mark.parametrize(
    ("margin", "seconds", "starts"),
    [("1", 9, True), ("1", 9.01, False), ("1.5", 27, True), ("1.5", 27.1, False), ("0", 0.01, False)],
)
def test_the_margin_is_kept_to_the_point(margin, seconds, starts):
    """Margin 1: 2 L <= 9 + L up to L = 9, included. Margin 1.5: 2 L <= 13.5 + 1.5 L up to 27. Margin 0: never."""
    expected = (1.0, RACK) if starts else (10.0, MACHINE)
    assert last_start(f"greedy:margin={margin}", TWO, *ONE_FREE_EACH, (1, 2, seconds)) == expected


def test_without_a_margin_that_binds_no_job_waits():
    assert last_start("greedy:margin=inf", TWO, *ONE_FREE_EACH, (1, 2, LONG)) == (1.0, RACK)


def test_an_infinite_margin_is_shortest_first_at_the_best_tier():
    """On the default setting of Delay-v0, with no job stopped: the same run, to the last bit."""
    runs = []
    for word in ("greedy:margin=inf", "sjf:placer=tier"):
        simulator = Simulator("dally:racks=2,machines=4", "penalty:table=chronus", rule=policies.make(word).rule)
        simulator.reset(open_workload("poisson:jobs=128,backlog=48,load=1.1", seed=3, cluster_gpus=64), 3)
        runs.append(repr([simulator.run(), simulator.jobs()["finish_s"].tolist()]))
    assert runs[0] == runs[1]


def test_the_shortest_is_asked_first():
    """4 GPUs are free at 10; of three jobs that need them, the one that came last and is shortest runs first."""
    rows = [(0, 4, 10), (0, 4, 1000), (1, 4, 30), (2, 4, 20), (3, 4, 5)]
    table = played("greedy", TWO, *rows).jobs()
    assert table["first_start_s"].tolist()[2:] == [35.0, 15.0, 10.0]


def test_a_job_that_finds_no_room_is_passed():
    """The first in the order needs 4 GPUs and 2 are free; the next one, of one GPU, starts at once."""
    table = played("greedy", TWO, *ONE_FREE_EACH, (1, 4, 1), (1, 1, 50)).jobs()
    assert table["first_start_s"].tolist()[2:] == [10.0, 1.0]


def test_what_one_refuses_another_of_its_size_takes():
    """Two gangs of 2; the shorter one is slowed down by 2, the other (resnet101) by 1.0096: 20.2 <= 0.9 (9 + 20)."""
    rows = [*ONE_FREE_EACH, (1, 2, 8), (1, 2, 20)]
    simulator = played(
        "greedy", TWO, *rows, network="penalty:table=chronus,default=1/2/4", models=["", "", "", "resnet101"]
    )
    assert simulator.jobs()["first_start_s"].tolist()[2:] == [10.0, 1.0]


def test_no_job_waits_for_a_tier_that_is_not_faster():
    assert last_start("greedy", TWO, *ONE_FREE_EACH, (1, 2, 8), network="none") == (1.0, RACK)


def test_ends_on_one_machine_add_up():
    """A gang of 3 has room at 20, when two jobs of one machine have ended, not at 10 and 15 on different ones."""
    rows = [(0, 3, 100), (0, 3, 100), (0, 1, 20), (0, 1, 5), (6, 2, 100)]
    # Machine 0: 3 until 100, 1 until 20; machine 1: 3 until 100, 1 until 5. From 5 on one GPU is free there.
    assert last_start("greedy:margin=0", TWO, *rows) == (100.0, MACHINE)
    rows = [(0, 2, 10), (0, 2, 100), (0, 2, 20), (0, 1, 90), (1, 3, 50)]
    assert last_start("greedy:margin=0", TWO, *rows) == (20.0, MACHINE)


def test_of_two_better_tiers_either_may_be_worth_the_wait():
    """2 racks of 2 machines of 8: 4 x 7 GPUs run; a gang of 2 in a rack at once (2 L), or in a machine at 50 (50 + L).

    A gang of 4, across racks at once (4 L): a rack has room at 50 (50 + 2 L), a machine too (50 + L).
    """
    topology = "dally:racks=2,machines=2"
    rows = [(0, 7, 51), *[(0, 7, LONG)] * 3]
    assert last_start("greedy", topology, *rows, (1, 2, 40)) == (1.0, RACK)
    assert last_start("greedy", topology, *rows, (1, 2, 42)) == (51.0, MACHINE)
    assert last_start("greedy", topology, *rows, (1, 4, 14)) == (1.0, NETWORK)
    assert last_start("greedy", topology, *rows, (1, 4, 15)) == (51.0, MACHINE)
    rows = [(0, 8, 51), (0, 7, 500), (0, 8, LONG)]  # no machine holds 9; a rack has them at 51: 2 L <= 0.9 (50 + L)
    assert last_start("greedy", topology, *rows, (1, 9, 40)) == (1.0, NETWORK)
    assert last_start("greedy", topology, *rows, (1, 9, 41)) == (51.0, RACK)


def test_a_gang_that_would_lie_badly_in_a_rack_waits_for_whole_machines():
    """16 GPUs as 8 + 3 + 3 + 2 run some ten times slower than as 8 + 8 (allreduce), which will be free at 10."""
    network, topology = load_network("allreduce:calibration=artist"), Topology.load("dally:racks=1,machines=4")
    rows = [(0, 5, 10), (0, 5, LONG), (0, 5, LONG), (1, 16, 100)]
    models = ["VGG", "VGG", "VGG", "MobileNetV3"]
    start_s, tier = last_start("greedy", topology, *rows, network=network, models=models)
    assert tier == RACK and 10.0 <= start_s < 20.0
    assert last_start("greedy:margin=inf", topology, *rows, network=network, models=models) == (1.0, RACK)
    rows[0] = (0, 5, LONG)
    assert last_start("greedy", topology, *rows, network=network, models=models) == (1.0, RACK)


def test_no_job_waits_where_nothing_runs():
    """Best fit gives 10 GPUs on 5 machines of a rack, though 2 machines of the other one would be faster."""
    topology = Topology.from_counts(
        "odd", slot_gpus=[2] * 5 + [8] * 2, machine_slots=[1] * 7, rack_machines=[5, 2], machine_order="natural"
    )
    network = load_network("allreduce:calibration=artist")
    assert last_start("greedy:margin=0", topology, (3, 10, 5), network=network, models=["MobileNetV3"]) == (3.0, RACK)


def test_a_start_in_a_pass_changes_what_the_next_one_foresees():
    """Five machines with a GPU free each, four of them for long, the first one wholly at 10. Slowdown in a rack 1.5.

    At 1: 2 GPUs for 14 s wait (21 > 0.9 (9 + 14)); 1 GPU for 20 s takes the first machine's; so 4 GPUs for 25 s, which
    would have waited till 10 (37.5 > 0.9 (9 + 25)), but not till 21, start at once.
    """
    rows = [(0, 3, 10), *[(0, 3, LONG)] * 4, (1, 2, 14), (1, 1, 20), (1, 4, 25)]
    table = played("greedy", "flat:machines=5,gpus_per_machine=4", *rows, network="penalty:default=1/1.5/4").jobs()
    assert table["first_start_s"].tolist()[5:] == [10.0, 1.0, 1.0]


def test_what_was_foreseen_is_forgotten_when_another_decides():
    """The job waits for GPUs that come free at 10; at 2 another job gets them for long by hand: now it takes a rack."""
    rows = [*ONE_FREE_EACH, (1, 2, 8), (2, 3, LONG)]
    simulator = Simulator(TWO, SLOWER, rule=policies.make("greedy").rule)
    simulator.reset(Workload.from_arrays("by hand", *map(list, zip(*rows, strict=True))))
    simulator.schedule()
    simulator.advance()
    assert simulator.schedule() == 0
    simulator.advance()
    gpus = simulator.view.gpus_of(0)
    simulator.apply(Preempt(0))
    simulator.apply(Hold(0, LONG))
    simulator.apply(Start(3, gpus))
    assert simulator.schedule() == 1 and simulator.state.tier[2] == RACK


def test_a_job_that_lost_its_gpus_stands_where_the_rest_of_its_work_puts_it():
    """Stopped with 10 of 100 s to do, it comes before one of 20 s; by `sjf` it would come after."""
    workload = Workload.from_arrays("three", [0.0, 0.0, 90.0], [4, 4, 4], [100.0, 100.0, 20.0])
    simulator = Simulator(TWO, rule=policies.make("greedy").rule)
    simulator.reset(workload)
    simulator.schedule()
    simulator.advance()
    simulator.apply(Preempt(0))
    assert simulator.view.now_s == 90.0 and simulator.ask(policies.make("greedy")).job == 0


@st.composite
def cases(draw):
    """(jobs, machines by rack, machine sizes, margin): 1 to 3 racks of unequal machines, models of three kinds."""
    rng = np.random.default_rng(draw(st.integers(0, 1_000_000)))
    machines = rng.integers(1, 4, rng.integers(1, 4)).tolist()
    first = np.cumsum([0, *machines]).tolist()
    racks = [list(range(a, b)) for a, b in itertools.pairwise(first)]
    sizes = rng.choice([1, 2, 4, 8], first[-1]).tolist()
    n, total = int(rng.integers(1, 30)), sum(sizes)
    arrival = np.sort(np.floor(rng.uniform(0, rng.choice([1, 200]), n))).tolist()
    gpus = np.minimum(rng.choice([1, 2, 2, 3, 4, 6, 8, total], n), total).tolist()
    kinds = [(1.0, 2.0, 3.0), (1.0, 1.0, 4.0), (1.0, 1.0, 1.0)]
    jobs = [
        (
            arrival[i],
            gpus[i],
            float(np.ceil(rng.lognormal(3.5, 1))),
            kinds[rng.integers(3)] if gpus[i] > 1 else (1.0,) * 3,
        )
        for i in range(n)
    ]
    return jobs, racks, sizes, draw(st.sampled_from([0.0, 0.5, 0.9, 0.9, 1.0, 1.25, math.inf]))


class Kinds:
    """A network whose slowdown of a job is what its model's name says."""

    name = "kinds"

    def describe(self):
        return "kinds"

    def tier_factors(self, workload, topology):
        rows = [tuple(map(float, model.split("/"))) for model in workload.model]
        known = sorted(set(rows))
        return np.array([known.index(row) for row in rows]), np.array([(a, a, b, c) for a, b, c in known])


@calm(200)
@given(cases())
def test_decision_by_decision_as_the_reference(case):
    jobs, racks, sizes, margin = case
    topology = Topology.from_counts(
        "random", slot_gpus=sizes, machine_slots=[1] * len(sizes), rack_machines=[len(rack) for rack in racks]
    )
    names = ["/".join(map(str, job[3])) for job in jobs]
    workload = Workload.from_arrays(
        "random", *(list(column) for column in list(zip(*jobs, strict=True))[:3]), model=names
    )
    policy = policies.make("greedy", margin=margin)
    simulator = Simulator(topology, Kinds(), rule=policy.rule)
    simulator.reset(workload)
    found = []
    while not simulator.ended:
        decision = simulator.ask(policy)
        if isinstance(decision, Start):
            machines, counts = np.unique(topology.gpu_machine[list(decision.gpus)], return_counts=True)
            held = dict(zip(machines.tolist(), counts.tolist(), strict=True))
            found.append((float(simulator.view.now_s), decision.job, held))
        simulator.apply(decision)
    assert found == simulate([isolated(job, racks, sizes) for job in jobs], racks, sizes, margin)


def isolated(job, racks, sizes):
    """The job as the reference has it: slowdowns relative to the best tier that holds the gang when all is free."""
    arrival, gpus, duration, slowdowns = job
    room = max(sizes), max(sum(sizes[machine] for machine in rack) for rack in racks)
    best = slowdowns[sum(gpus > most for most in room)]
    return arrival, gpus, duration, tuple(slowdown / best for slowdown in slowdowns)


BAD = {
    "negative": ({"margin": -0.1}, "margin = -0.1"),
    "not a number": ({"margin": math.nan}, "margin = nan"),
    "text": ({"margin": "soon"}, "margin"),
    "placer": ({"margin": 0.9, "placer": "count"}, "placer with margin"),
    "lease": ({"margin": 0.9, "lease": 60.0}, "leases"),
    "timers": ({"margin": 0.9, "timers": (1.0, 2.0)}, "delay timers"),
    "migration": ({"margin": 0.9, "migrates": True}, "migration"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_rule_says_what_does_not_go_together(case):
    options, message = BAD[case]
    with pytest.raises(InputError, match=message):
        Rule("srtf", **{"placer": "tier", **options})


@pytest.mark.parametrize("word", ["greedy:margin=-1", "greedy:margin=often", "greedy:placer=count", "greedy:lease=5"])
def test_bad_parameters_are_refused(word):
    with pytest.raises(InputError, match=word.partition(":")[2].partition("=")[0]):
        policies.make(word)


def test_the_policy_is_a_rule_and_a_rule_is_a_value():
    assert policies.make("greedy").rule == Rule("srtf", placer="tier", margin=0.9)
    assert hash(policies.make("greedy:margin=0.8").rule) == hash(Rule("srtf", placer="tier", margin=0.8))
    assert not policies.make("greedy").rule.preemptive
