"""Plans: what leads to them, and other realisations of the same gangs."""

from __future__ import annotations

import numpy as np
import pytest

from clustergym.policies.equivalent_placements import equivalent_placements, locality, place
from clustergym.simulator.base.decisions import Hold, Migrate, Preempt, Start
from clustergym.simulator.cluster.topology import Topology
from clustergym.simulator.engine.plans import Plan, decisions_of, plan_now
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.jobs.workload import Workload


def two_machines(*gpus: int) -> Simulator:
    """Jobs of these sizes, all there at time 0, on two machines of two GPUs; none runs."""
    simulator = Simulator("flat:machines=2,gpus_per_machine=2")
    n = len(gpus)
    simulator.reset(Workload.from_arrays("jobs", np.zeros(n), np.array(gpus), np.full(n, 100.0)))
    return simulator


def carry_out(simulator: Simulator, plan: Plan) -> list:
    """Apply the decisions; returns them."""
    decisions = decisions_of(simulator.view, plan)
    for decision in decisions:
        simulator.apply(decision)
    return decisions


def test_a_plan_starts_stops_and_holds():
    simulator = two_machines(1, 1, 2, 4)
    assert carry_out(simulator, Plan({0: (0,), 1: (2,)})) == [Start(0, (0,)), Start(1, (2,))]
    plan = Plan({0: (0,), 2: (1, 3)}, held=(3,))
    assert carry_out(simulator, plan) == [Preempt(1), Start(2, (1, 3)), Hold(3)]
    assert plan_now(simulator.view).placement == plan.placement
    assert carry_out(simulator, Plan(plan.gangs)) == []


def test_moves_wait_for_the_gpus_that_others_leave():
    """Job 1 moves out of the way of job 0, whatever the order of the plan."""
    simulator = two_machines(1, 1)
    carry_out(simulator, Plan({0: (0,), 1: (1,)}))
    assert carry_out(simulator, Plan({0: (1,), 1: (3,)})) == [Migrate(1, (3,)), Migrate(0, (1,))]


def test_a_circle_of_moves_is_broken_by_a_stop():
    """Two jobs change places: one stops, the other moves, the first starts again."""
    simulator = two_machines(2, 2)
    carry_out(simulator, Plan({0: (0, 1), 1: (2, 3)}))
    wanted = Plan({0: (2, 3), 1: (0, 1)})
    assert carry_out(simulator, wanted) == [Preempt(1), Migrate(0, (2, 3)), Start(1, (0, 1))]
    assert plan_now(simulator.view).placement == wanted.placement


def test_the_order_of_gpus_does_not_make_another_plan():
    assert Plan({0: (0, 1), 1: (2,)}).placement == Plan({1: (2,), 0: (1, 0)}).placement
    assert Plan({0: (0, 1)}).placement != Plan({0: (0, 2)}).placement


TESTBED = Topology.load("cassini-testbed")


def test_gangs_lie_as_close_together_as_they_can():
    """Racks of four servers: 0-3, 4-7, ...; the rack with the fewest free ones that suffice, then the fullest."""
    free = {0, 1, 2, 4, 5, 8, 9, 10, 11}
    assert place(TESTBED, free, 2) == (4, 5)
    assert place(TESTBED, free, 3) == (0, 1, 2)
    assert place(TESTBED, free, 5) == (4, 8, 9, 10, 11)
    assert place(TESTBED, free, 6) == (4, 5, 8, 9, 10, 11)
    assert locality(TESTBED, (4, 5, 8)) == (2, 3)


def test_gangs_prefer_whole_machines():
    """Servers of two GPUs: a gang of two takes the server that is free, one of three a server and half."""
    two = Topology.load("cassini-two-gpu")
    assert place(two, {0, 2, 3, 5}, 2) == (2, 3)
    assert place(two, {0, 2, 3, 5}, 3) == (0, 2, 3)
    assert place(two, {0, 2, 3, 5}, 1) == (0,)


@pytest.mark.parametrize("seed", range(5))
def test_realisations_are_distinct_and_as_close_together(seed):
    rng = np.random.default_rng(seed)
    pool = set(rng.choice(24, 18, replace=False).tolist())
    free, gangs = set(pool), {}
    for job, size in enumerate((3, 4, 6)):
        gangs[job] = place(TESTBED, free, size)
        free -= set(gangs[job])
    outside = min(set(range(24)) - pool)
    plan = Plan({9: (outside,), **gangs})
    found = equivalent_placements(TESTBED, plan, [0, 1, 2], pool, 10, rng)
    assert found[0] is plan and len({one.placement for one in found}) == len(found) > 1
    for one in found:
        taken = [gpu for gpus in one.gangs.values() for gpu in gpus]
        assert len(set(taken)) == len(taken) and one.gangs[9] == (outside,)
        for job, gpus in gangs.items():
            assert pool.issuperset(one.gangs[job])
            assert locality(TESTBED, one.gangs[job]) == locality(TESTBED, gpus)


def test_one_way_is_one_realisation():
    """All free GPUs are taken by one job: there is no other plan."""
    plan = Plan({0: (0, 1, 2, 3)})
    assert equivalent_placements(TESTBED, plan, [0], {0, 1, 2, 3}, 10, np.random.default_rng(0)) == [plan]
    assert equivalent_placements(TESTBED, plan, [], set(), 10, np.random.default_rng(0)) == [plan]


def chosen(counts: np.ndarray, size: int, rng: np.random.Generator) -> int:
    """Any of the groups that suffice, else any that has a free GPU."""
    enough = np.flatnonzero(counts >= size)
    groups = enough if len(enough) else np.flatnonzero(counts)
    return int(groups[rng.integers(len(groups))])


def drawn(free: set[int], size: int, rng: np.random.Generator) -> tuple[int, ...]:
    """A gang on the testbed, whose machines have one GPU each, as numpy draws it: a whole rack, else several."""
    gpus = np.array(sorted(free))
    if size == 1:
        return (int(gpus[rng.integers(len(gpus))]),)
    rack = TESTBED.gpu_rack[gpus]
    shares, taken, counts = [], [], np.bincount(rack)
    while size > 0:
        one = chosen(counts, size, rng)
        shares.append((one, min(int(counts[one]), size)))
        size -= shares[-1][1]
        counts[one] = 0
    for one, share in shares:
        inside = gpus[rack == one].tolist()
        for _ in range(share):
            taken.append(inside.pop(rng.integers(len(inside)) if len(inside) > 1 else 0))
    return tuple(sorted(taken))


@pytest.mark.parametrize("size", [1, 2, 4, 7, 13])
def test_gangs_are_drawn_as_numpy_draws(size):
    """Kernels use up the numbers of a generator as its methods do, and leave it where these would."""
    for seed in range(40):
        ours, theirs = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 1])
        for rng in (ours, theirs):
            rng.integers(3, size=seed % 3)  # which may leave half a word
        free = set(ours.permutation(TESTBED.num_gpus)[:14].tolist())
        assert free == set(theirs.permutation(TESTBED.num_gpus)[:14].tolist())
        assert place(TESTBED, free, size, ours) == drawn(free, size, theirs)
        assert ours.bit_generator.state == theirs.bit_generator.state
