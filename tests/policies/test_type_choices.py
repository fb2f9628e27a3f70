"""Which type of GPUs a workload that accepts several is given, and that every policy of regions plays with them."""

from __future__ import annotations

import numpy as np
import pytest

from clustergym.policies import make
from clustergym.policies.mast import Hardware, RegionalScheduler, place_search
from clustergym.policies.mast.mast_record import empty_record
from clustergym.policies.mast.regional_scheduler import write_regions
from clustergym.policies.mast.type_choices import TypeChoices
from clustergym.simulator.base.decisions import Preempt, Start
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.workloads import Workload
from clustergym.tests.support import geo_small
from clustergym.tests.support.geo_player import check_regions
from clustergym.tests.support.geo_small import A100, CPU, V100
from clustergym.tests.support.paths import ROOT

EITHER = (A100, V100)
SPEEDS = str(ROOT / "tests" / "data" / "unit_speeds.csv")  # fast: A100 2, V100 4; others: V100 .5
POLICIES = [
    *("mast", "federated", "federated:demand=day", "global", "srtf:preempts=any", "greedy", "bring"),
    *(f"scope:queue={queue},allocation=cluster" for queue in ("cluster", "region", "global")),
    *("random", "random-start"),
]


def workload_of(rows, arrival_s=None, duration_s=1000.0, model="fast"):
    geo = geo_small.demands(rows, quota=np.full((2, 2), 10**9))
    arrival = np.zeros(len(rows)) if arrival_s is None else np.array(arrival_s)
    models = np.full(len(rows), model, object)
    return Workload.from_arrays("rows", arrival, geo.units, np.full(len(rows), duration_s), model=models).with_geo(geo)


def play(word, workload, seed=0, check=None, **options):
    """All decisions with their times; the simulator at its end."""
    simulator = Simulator(geo_small.small_topology(), **{"speeds": SPEEDS, **options})
    simulator.reset(workload, seed)
    policy, log = make(word), []
    while not simulator.ended:
        while type(decision := simulator.ask(policy)).__name__ != "Advance":
            log.append((float(simulator.state.now_s), decision))
            simulator.apply(decision)
        if check is not None:
            check(simulator)
        simulator.advance()
    return log, simulator


def types_given(log, topology):
    """The types of the parts of each start, in order."""
    kinds = topology.cluster_gpu_type
    return [
        (
            one.job,
            "".join(dict.fromkeys(kinds[cluster][0] for cluster in topology.gpu_cluster[list(one.gpus)].tolist())),
        )
        for _, one in log
        if isinstance(one, Start)
    ]


ONE = ([(EITHER, 16)], [], 3, 0, 0.0)


@pytest.mark.parametrize("word", ["mast:scan_s=0", "federated:scan_s=0", "global:scan_s=0", "random-start:scan_s=0"])
@pytest.mark.parametrize("model", ["fast", "slow"])
def test_the_faster_type_is_taken_while_it_is_free_and_the_other_one_rather_than_to_wait(word, model):
    """32 V100 and 80 A100. `fast` is twice as fast on V100, `slow` half as fast: seven of 16 all start at once."""
    log, simulator = play(f"{word},slow=none", workload_of([ONE] * 7, model=model))
    given = [kind for _, kind in types_given(log, simulator.topology)]
    assert all(time_s == 0.0 for time_s, _ in log) and sorted(given) == ["A"] * 5 + ["V"] * 2
    if word.startswith("mast"):
        assert given == (["V"] * 2 + ["A"] * 5 if model == "fast" else ["A"] * 5 + ["V"] * 2)
    ends = [250.0, 500.0] if model == "fast" else [1000.0, 2000.0]
    assert sorted(set(simulator.state.finish_s[:7].tolist())) == ends


def test_no_job_is_stopped_for_speed_alone():
    """A workload of low priority has all V100; the next one, of high priority, takes A100, free and slower."""
    rows = [([(V100, 32)], [], 6, 0, 0.0), ([(EITHER, 16)], [], 0, 0, 0.0)]
    log, simulator = play("mast:slow=none,scan_s=0", workload_of(rows, [0.0, 10.0]))
    assert types_given(log, simulator.topology) == [(0, "V"), (1, "A")] and simulator.metrics()["preemptions"] == 0


def test_a_job_that_stops_others_takes_the_type_where_the_least_important_leave():
    """All A100 are held at level 5, all V100 at level 4: the newcomer is faster on V100, and takes A100."""
    rows = [([(A100, size)], [], 5, 0, 0.0) for size in (32, 16, 16, 16)] + [([(V100, 32)], [], 4, 0, 0.0)]
    rows += [([(EITHER, 16)], [], 0, 0, 0.0)]
    geo = workload_of(rows, [0.0] * 5 + [10.0])
    log, simulator = play("mast:slow=none,scan_s=0", geo)
    assert (5, "A") in types_given(log, simulator.topology)
    assert len([one for _, one in log if isinstance(one, Preempt)]) == 1


def test_a_stopped_job_goes_on_on_what_is_free():
    """100 s on V100 are 400 of 1,000; the other 600 take 300 s on A100, as V100 goes to a higher level."""
    rows = [([(EITHER, 32)], [], 6, 0, 0.0), ([(V100, 32)], [], 0, 1, 0.0)]
    log, simulator = play("mast:slow=none,scan_s=0", workload_of(rows, [0.0, 100.0]))
    assert types_given(log, simulator.topology) == [(0, "V"), (1, "V"), (0, "A")]
    assert simulator.state.finish_s[:2].tolist() == [400.0, 100.0 + 30.0 + 250.0]  # a checkpoint of 30 s before it


def test_parts_may_get_different_types():
    """24 and 12 do not fit what is left in the east, but 32 V100 and 16 A100 in the west: at the pace of A100."""
    rows = [([(A100, 32)], [], 0, 0, 0.0), ([(EITHER, 24), (EITHER, 12)], [], 1, 0, 0.0)]
    log, simulator = play("mast:slow=none,scan_s=0", workload_of(rows))
    assert types_given(log, simulator.topology)[-1] == (1, "VA") and simulator.state.finish_s[1] == 500.0


@pytest.mark.parametrize("seed", range(12))
def test_the_award_is_the_rule_said_over_the_single_choices(seed):
    """Random states; each choice of types asked by itself of a scheduler that knows nothing of choices."""
    rng, topology = np.random.default_rng(seed), geo_small.small_topology()
    rows = [([((A100, V100)[rng.integers(2)], int(rng.choice([4, 8, 16])))], [], 0, 0, 0.0) for _ in range(12)]
    sizes = [int(rng.choice([4, 8, 16, 24])) for _ in range(2)]
    rows += [([(EITHER, size) for size in sizes[: 1 + seed % 2]] + [(CPU, 4)] * (seed % 3 == 0), [], 0, 0, 0.0)]
    demands = geo_small.demands(rows)
    speeds = np.array([[1.0, float(rng.choice([0.5, 1.0, 2.0])), 1.0]] * len(rows))
    choices, hardware = TypeChoices.between(demands, speeds), Hardware.of(topology, demands)
    plain, level, last = RegionalScheduler(hardware, len(rows), False), int(rng.integers(0, 5)), len(rows) - 1
    solvers, m = empty_record(hardware, len(rows))
    r = solvers[0]
    write_regions(solvers, m, hardware, len(rows), choices)
    for job in range(last):
        lower = int(rng.integers(0, 7))
        parts = choices.parts(job, choices.first_types(job)[0])[0]
        if (found := plain.start(job, lower, parts, float(job), preempts=False)) is not None:
            r.importance[job], r.start_s[job] = 6 - lower, float(job)
            assert place_search.best(solvers, job, 7, -1, False, False, float(job)) == found.region
    r.importance[last], r.start_s[last] = 6 - level, 100.0
    ways = [list(zip(way, demands.part_units[last].tolist(), strict=False)) for way in choices.types(last)]
    free = [plain.plan(last, level, way, 100.0, preempts=False) for way in ways]
    expected = next((plan for plan in free if plan is not None), None)
    if expected is None:
        plans = [plan for way in ways if (plan := plain.plan(last, level, way, 100.0)) is not None]
        expected = max(plans, key=lambda plan: plan.score, default=None)
    region = place_search.best(solvers, last, 7, -1, True, True, 100.0)
    assert region == (-1 if expected is None else expected.region)
    if expected is not None:
        assert tuple(r.part_cluster[last, : len(ways[0])].tolist()) == expected.clusters
        assert r.leaving[: r.count[1]].tolist() == list(expected.leaves)


def test_choices_go_by_speed_then_by_type():
    demands = geo_small.demands([([(EITHER, 8), (EITHER, 4), (CPU, 1)], [], 6, 0, 0.0), ([(V100, 8)], [], 6, 0, 0.0)])
    found = TypeChoices.between(demands, np.array([[1.0, 2.0, 1.0]] * 2))
    assert found.types(0) == [[V100, V100, CPU], [A100, A100, CPU], [A100, V100, CPU], [V100, A100, CPU]]
    assert found.types(1) == [[V100]] and found.count.tolist() == [4, 0]
    assert found.first_types(0) == [V100, A100]


@pytest.mark.parametrize("word", POLICIES)
def test_every_policy_plays_with_workloads_that_choose(word):
    """They all end; units, seconds and types are checked after each instant."""
    workload = geo_small.choosing_workload(5, jobs=30, share=0.8)
    log, simulator = play(f"{word}", workload, 2, check_regions)
    assert (simulator.state.finish_s[:30] > 0.0).all()
    chosen = {kind for job, kind in types_given(log, simulator.topology) if workload.geo.chooses[job]}
    assert {kind[0] for kind in chosen} == {"A", "V"}


def test_one_policy_plays_on_clusters_of_other_speeds():
    """What a policy has laid out for one run is not taken for another, of the same workload and the same regions."""
    workload, topology, policy = workload_of([ONE], model="fast"), geo_small.small_topology(), make("mast:slow=none")
    given = []
    for options in ({"speeds": SPEEDS}, {}):
        simulator = Simulator(topology, **options)
        simulator.reset(workload)
        given += types_given([(0.0, simulator.ask(policy))], topology)
    assert given == [(0, "V"), (0, "A")]
