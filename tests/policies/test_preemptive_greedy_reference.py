"""The reference of `greedy:preempt=on`: by hand, and what the compiled rule plays against it."""

from __future__ import annotations

import inspect
import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest

from clustergym import policies
from clustergym.policies.greedy.greedy import greedy
from clustergym.simulator.base.decisions import Advance
from clustergym.simulator.base.tiers import MACHINE, NETWORK, RACK
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.rules.rule import Rule
from clustergym.simulator.workloads import Workload
from clustergym.tests.support.preemptive_greedy_reference import PreemptiveGreedy as Reference

pytestmark = pytest.mark.filterwarnings("ignore:network allreduce")
ONE = "flat:machines=1,gpus_per_machine=4"
TWO = "flat:machines=2,gpus_per_machine=4"
EIGHT = "flat:machines=2,gpus_per_machine=8"
RACKS = "dally:racks=2,machines=2"  # of 8 GPUs
SLOWER = "penalty:default=1/2/4"  # machine, rack, network
COST = (30.0,)
LONG = 10_000
CASES = 50


def decisions_of(policy, simulator):
    """All of (time, verb, job, GPUs in order of index) until the end of the run."""
    found = []
    while not simulator.ended:
        decision = simulator.ask(policy)
        if not isinstance(decision, Advance):
            gpus = tuple(sorted(getattr(decision, "gpus", ())))
            found.append((float(simulator.view.now_s), type(decision).__name__, decision.job, gpus))
        simulator.apply(decision)
    return found


def played(topology, rows, network=SLOWER, cost=COST, **parameters):
    """(decisions, job table) of (arrival_s, gpus, duration_s)."""
    workload = Workload.from_arrays("by hand", *map(list, zip(*rows, strict=True)))
    simulator = Simulator(topology, network, rule=Rule("fifo", preemption_cost=cost))
    simulator.reset(workload)
    return decisions_of(Reference(cost, **parameters), simulator), simulator.jobs()


def verbs(decisions, at_s):
    """What was decided at an instant, without the GPUs."""
    return [(verb, job) for now_s, verb, job, _ in decisions if now_s == at_s]


def test_a_short_job_stops_a_long_one():
    """At 5 the long one has 995 s left. The short one runs from 5 to 15; 30 s of restore: 15 + 30 + 995 = 1040."""
    decisions, table = played(ONE, [(0, 4, 1000), (5, 4, 10)])
    assert verbs(decisions, 5.0) == [("Preempt", 0), ("Start", 1)]
    assert table["finish_s"].tolist() == [1040.0, 15.0]


@pytest.mark.parametrize(("left", "stops"), [(54, False), (54.5, True)])
def test_a_stop_must_be_worth_it_to_the_point(left, stops):
    """4 GPUs against 4, weights 2: left x 2 > 1.2 x 32.5 x 2 + 30 = 108, so from more than 54 s left on."""
    decisions, _ = played(ONE, [(0, 4, 5 + left), (5, 4, 32.5)])
    assert (verbs(decisions, 5.0) != []) is stops


@pytest.mark.parametrize(("left", "stops"), [(174, False), (174.5, True)])
def test_a_job_that_has_run_before_counts_its_own_restore(left, stops):
    """Job 2 stops job 0, which has 90 s left. At 11 this one asks for job 1: more than 1.2 (90 + 30) + 30 = 174 s."""
    rows = [(0, 1, 100), (0, 1, 11 + left), (10, 1, 10), (11, 1, LONG)]
    decisions, _ = played("flat:machines=2,gpus_per_machine=1", rows)
    assert verbs(decisions, 10.0) == [("Preempt", 0), ("Start", 2)]
    assert verbs(decisions, 11.0) == ([("Preempt", 1), ("Start", 0)] if stops else [])


def test_a_stopped_job_stops_none_at_that_instant():
    """Job 0 (490 s left) would stop job 1 (long) for itself: not at 10, when it was stopped, but at 12, when it may."""
    decisions, _ = played(TWO, [(0, 4, 500), (0, 4, LONG), (10, 4, 50), (12, 4, 2 * LONG)])
    assert verbs(decisions, 10.0) == [("Preempt", 0), ("Start", 2)]
    assert verbs(decisions, 12.0) == [("Preempt", 1), ("Start", 0)]


def test_a_job_started_now_is_no_victim():
    """Free moves, stops and theta 0: job 1 is first in the order (5 x 2 < 20 x 1), and job 2 does not stop it."""
    decisions, _ = played(ONE, [(0, 4, 10), (10, 4, 5), (10, 1, 20)], cost=(0.0,), theta=0.0)
    assert verbs(decisions, 10.0) == [("Start", 1)]


ONE_PAIR_EACH = [(0, 2, 10), (0, 2, 100), (0, 2, 100)]  # from 10 on: machine 0 GPUs 2, 3; machine 1 GPUs 4, 5


@pytest.mark.parametrize("seconds", [100, LONG])
def test_a_job_that_would_rather_wait_moves_others_away(seconds):
    """At 20, 2 + 2 GPUs are free: 2 L now, .9 (80 + L) later, so it would wait from L = 65.5 on. A move costs 30 either
    way, so the tie goes to machine 0: job 1 joins job 2 on machine 1."""
    decisions, _ = played(TWO, [*ONE_PAIR_EACH, (20, 4, seconds)])
    assert [row[1:] for row in decisions if row[0] == 20.0] == [("Migrate", 1, (6, 7)), ("Start", 3, (0, 1, 2, 3))]


def test_a_job_that_takes_what_is_free_moves_none():
    """As above, but 2 x 65 <= .9 (80 + 65) = 130.5."""
    decisions, _ = played(TWO, [*ONE_PAIR_EACH, (20, 4, 65)])
    assert [row[1:] for row in decisions if row[0] == 20.0] == [("Start", 3, (0, 1, 6, 7))]


def test_the_cheapest_for_each_gpu_goes_first():
    """Job 0 could move (30 s for 2 GPUs), but stopping job 1 for 1 s costs 31 for 5, and 4 are enough.

    On machine 1, stopping job 2 costs 31 as well.
    """
    decisions, _ = played(EIGHT, [(0, 2, LONG), (0, 5, LONG), (0, 6, LONG), (20, 4, 1)])
    assert verbs(decisions, 20.0) == [("Preempt", 1), ("Start", 3)]


def test_a_job_not_needed_in_the_end_stays():
    """Machine 0: job 0 of 2 GPUs could move (30 / 2 = 15 a GPU), job 1 of 6 be stopped (100 + 30, 21.7 a GPU).

    6 GPUs take both; then job 0 is not needed. Machine 1 (job 2 of 6, 2 free) would cost 130 as well.
    """
    decisions, _ = played(EIGHT, [(0, 2, LONG), (0, 6, LONG), (0, 6, LONG), (20, 6, 100)])
    assert verbs(decisions, 20.0) == [("Preempt", 1), ("Start", 3)]


def test_a_mover_without_room_left_is_stopped_if_it_may_be():
    """3 GPUs are free on machine 1. Machine 0: jobs 0 and 1 of 3 GPUs each may move, once; the other one is stopped.

    So is job 2 of 2 GPUs. Machine 1 is job 3's, of 5 GPUs and of so few seconds left that it stays.
    """
    rows = [(0, 3, LONG), (0, 3, LONG), (0, 2, LONG), (1, 5, 40), (20, 8, 10)]
    decisions, _ = played(EIGHT, rows)
    assert verbs(decisions, 20.0) == [("Preempt", 1), ("Preempt", 2), ("Migrate", 0), ("Start", 4)]


def test_a_mover_without_room_left_stays_if_it_may_not_be_stopped():
    """As above, but no job is worth a stop: then the area does not serve."""
    rows = [(0, 3, 60), (0, 3, 60), (0, 2, 60), (1, 5, 40), (20, 8, 50)]
    decisions, _ = played(EIGHT, rows)
    assert verbs(decisions, 20.0) == []


def test_a_gang_larger_than_a_machine_makes_room_in_a_rack():
    """4 machines of 8 GPUs are held. 16 GPUs for 100 s: in rack 0 one job has little left; so rack 1, two stops."""
    rows = [(0, 8, LONG), (0, 8, 150), (0, 8, LONG), (0, 8, LONG), (20, 16, 100)]
    decisions, _ = played(RACKS, rows, network="none")
    assert verbs(decisions, 20.0) == [("Preempt", 2), ("Preempt", 3), ("Start", 4)]
    assert next(row[3] for row in decisions if row[:2] == (20.0, "Start")) == tuple(range(16, 32))


def test_a_gang_larger_than_a_rack_makes_room_anywhere():
    """24 of 32 GPUs: three of the long ones are stopped, lowest index first; the rest cannot be moved anywhere."""
    rows = [(0, 8, LONG), (0, 8, 150), (0, 8, LONG), (0, 8, LONG), (20, 24, 100)]
    decisions, _ = played(RACKS, rows, network="none")
    assert verbs(decisions, 20.0) == [("Preempt", 0), ("Preempt", 2), ("Preempt", 3), ("Start", 4)]


def test_large_gangs_have_a_cost_of_their_own():
    """16 GPUs pay 60 s, not 40: stopped at 20 by 10 s of 16 GPUs, the long one ends at 30 + 60 + (LONG - 20)."""
    rows = [(0, 16, LONG), (20, 16, 10)]
    _, table = played("dally:racks=1,machines=2", rows, network="none", cost=(40.0, 60.0))
    assert table["finish_s"].tolist() == [LONG + 70.0, 30.0]


# The compiled rule

NETWORKS = ("none", "penalty:table=chronus", "allreduce")
MODELS = ("vgg16", "resnet101", "alexnet", "inception_v3", "mobilenet_v2")
MODELS_WITH_LAYERS = ("VGG11", "AlexNet", "MobileNetV3", "ResNet18", "BERT-large")
COSTS = ((0.0,), (30.0,), (40.0, 60.0))
CLUSTERS = ("dally:racks=2,machines=4", "dally:racks=3,machines=2")  # of 8 GPUs


@dataclass(frozen=True)
class Case:
    cluster: str
    network: str
    cost: tuple[float, ...]
    round_s: float
    parameters: dict[str, object]
    workload: Workload

    def simulator(self, rule):
        simulator = Simulator(self.cluster, self.network, rule=rule)
        simulator.reset(self.workload)
        return simulator


def random_case(seed):
    """Every cluster, network and cost in turn, all 18 together; from seed 30 on with other parameters than its own."""
    cluster, network, cost = CLUSTERS[seed % 2], NETWORKS[seed % 3], COSTS[seed // 3 % 3]
    models = MODELS_WITH_LAYERS if network == "allreduce" else MODELS
    rng, round_s, parameters = np.random.default_rng([seed, 1]), 0.0, {}
    if seed >= 30:
        round_s = float(rng.choice([0.0, 0.0, 60.0]))
        parameters = {
            "theta": float(rng.choice([0.5, 1.0, 2.0])),
            "exponent": float(rng.choice([0.0, 0.25, 1.0])),
            "margin": float(rng.choice([0.0, 0.5, 1.0, math.inf])),
            "placer": str(rng.choice(["tier", "first"])),
        }
    return Case(cluster, network, cost, round_s, parameters, random_workload(seed, 64 if seed % 2 == 0 else 48, models))


def random_workload(seed, cluster_gpus, models):
    """24 to 40 jobs of 1 to 32 GPUs at a load of 0.8 to 2, a third of them there from the start; many ties."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(24, 41))
    gpus = 2 ** rng.integers(0, 6, n)
    if rng.random() < 0.4:
        gpus = np.where(rng.random(n) < 0.4, rng.integers(1, 33, n), gpus)
    duration_s = rng.lognormal(6.5, 1.2, n)
    if rng.random() < 0.5:
        duration_s = np.ceil(duration_s / 100.0) * 100.0
    arrival_s = np.sort(rng.uniform(0.0, (gpus * duration_s).sum() / cluster_gpus / rng.uniform(0.8, 2.0), n))
    arrival_s[: n // 3] = 0.0
    if rng.random() < 0.3:
        arrival_s = np.floor(arrival_s / 50.0) * 50.0
    return Workload.from_arrays("random", arrival_s, gpus, duration_s, model=rng.choice(models, n))


def played_by_the_words(case):
    """(decisions, job table, rooms that were made)."""
    simulator = case.simulator(Rule("fifo", preemption_cost=case.cost, round=case.round_s))
    reference = Reference(case.cost, **case.parameters)
    return decisions_of(reference, simulator), simulator.jobs(), reference.rooms


def test_the_random_cases_ask_for_everything():
    """Stops, moves, areas of each tier, several victims, jobs stopped again and again."""
    tiers, verbs, stops, most = Counter(), Counter(), 0, 0
    for seed in range(0, CASES, 5):
        decisions, table, rooms = played_by_the_words(random_case(seed))
        assert np.isfinite(table["finish_s"]).all()
        tiers.update(room.area.tier for _, _, room in rooms)
        verbs.update(verb for _, verb, _, _ in decisions)
        most = max(most, *(len(room.victims) for _, _, room in rooms))
        stops = max(stops, table["preemptions"].max())
    assert min(tiers[tier] for tier in (MACHINE, RACK, NETWORK)) >= 5
    assert verbs["Preempt"] > 50 and verbs["Migrate"] > 20
    assert most >= 4 and stops >= 3


def test_without_stops_and_moves_it_is_ordinary_greedy():
    """Which jobs it asks, what it takes and where it waits: decision by decision, with an exponent of 0."""
    for seed in range(0, CASES, 3):
        case = random_case(seed)
        parameters = {name: case.parameters[name] for name in case.parameters.keys() & {"margin", "placer"}}
        reference = Reference(exponent=0.0, **parameters)
        reference.find_room = lambda *_: None
        plain = greedy(**parameters)
        assert decisions_of(reference, case.simulator(Rule("fifo"))) == decisions_of(plain, case.simulator(plain.rule))


KNOWS_PREEMPT = "preempt" in inspect.signature(greedy).parameters


@pytest.mark.skipif(not KNOWS_PREEMPT, reason="greedy:preempt=on is not there yet")
@pytest.mark.parametrize("seed", range(CASES))
def test_compiled_rule_plays_what_the_words_say(seed):
    """Every decision at its time and on its GPUs; every start and end of a job."""
    case = random_case(seed)
    options = {"preemption_cost": "/".join(map(str, case.cost)), "round": case.round_s, **case.parameters}
    policy = policies.make("greedy:preempt=on," + ",".join(f"{name}={value}" for name, value in options.items()))
    simulator = case.simulator(policy.rule)
    compiled = decisions_of(policy, simulator)
    expected, table, _ = played_by_the_words(case)
    assert compiled == expected, first_difference(compiled, expected)
    at_once = case.simulator(policy.rule)
    at_once.run()
    for jobs in (simulator.jobs(), at_once.jobs()):
        for column in ("first_start_s", "finish_s", "preemptions"):
            assert jobs[column].tolist() == table[column].tolist(), column


def first_difference(found, expected):
    """Where two lists of decisions part."""
    same = next((i for i, (a, b) in enumerate(zip(found, expected, strict=False)) if a != b), len(expected))
    return f"after {same} decisions {found[same : same + 3]}, expected {expected[same : same + 3]}"
