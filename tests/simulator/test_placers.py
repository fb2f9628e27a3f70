"""Which GPUs a gang gets: by hand on Dally's topology, where a machine is two slots of four GPUs."""

from __future__ import annotations

import numpy as np
import pytest

from clustergym.simulator.base.decisions import Start
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.base.tiers import MACHINE, NETWORK, RACK, SLOT
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.rules.rule import Rule
from clustergym.simulator.workloads import Workload

# 2 racks x 2 machines x 2 slots x 4 GPUs: machine m has GPUs 8m to 8m + 7.
DALLY = "dally:racks=2,machines=2"


def among(taken, need, topology=DALLY, model="", seed=0):
    """The view of a cluster on which job 0 holds `taken`; job 1 asks for `need` GPUs."""
    simulator = Simulator(topology)
    gangs = [max(1, len(taken)), need]
    simulator.reset(Workload.from_arrays("two", [0, 0], gangs, [9, 9], model=["", model]), seed)
    if taken:
        simulator.apply(Start(0, taken))
    return simulator.view


def span(first, end):
    return list(range(first, end))


@pytest.mark.parametrize(
    ("placer", "taken", "need", "gpus"),
    [
        # count: the lowest free ones, wherever they are.
        ("count", [0, 2], 3, [1, 3, 4]),
        ("count", span(0, 7), 3, [7, 8, 9]),
        # consolidated: the machine with the fewest free GPUs that suffice (machine 1 has 3), lowest on ties.
        ("consolidated", [*span(0, 2), *span(8, 13)], 3, [13, 14, 15]),
        ("consolidated", [*span(8, 13), *span(16, 21)], 3, [13, 14, 15]),
        # It waits rather than spill.
        ("consolidated", [g for m in range(4) for g in span(8 * m, 8 * m + 5)], 4, None),
        # A larger gang takes whole machines, lowest first, the last in part, or waits.
        ("consolidated", [0], 10, span(16, 26)),
        ("consolidated", [0, 8, 16], 9, None),
        # Of one rack, though machine 1 is free too and comes first; without such a rack the lowest, as they come.
        ("consolidated", [0], 16, span(16, 32)),
        ("consolidated", [0, 16], 16, [*span(8, 16), *span(24, 32)]),
        # In a machine: the slot with the fewest free that suffice, here the second one of machine 0.
        ("consolidated", [4, 5], 2, [6, 7]),
        ("tier", [4, 5], 2, [6, 7]),
        # Too large for either slot: all of the one with most free GPUs, the rest in the other.
        ("tier", [0, 1, *span(8, 32)], 5, [4, 5, 6, 7, 2]),
        # tier: a machine if one has room, else the rack with the fewest free GPUs that suffice, and there few machines.
        ("tier", [*span(0, 6), *span(8, 13), *span(16, 20), *span(24, 28)], 4, [20, 21, 22, 23]),
        ("tier", [*span(0, 5), *span(8, 13), *span(16, 20), *span(24, 28)], 6, [5, 6, 7, 13, 14, 15]),
        # Nor does a rack have 9: all of the rack with most free GPUs, then the rest.
        ("tier", [*span(0, 5), *span(8, 13), *span(16, 20), *span(24, 28)], 9, [*span(20, 24), *span(28, 32), 5]),
        ("tier", span(0, 31), 2, None),
        ("random", span(0, 30), 2, [30, 31]),
        # first: the first slot with room (the second of machine 0), though machine 1 would be tighter.
        ("first", [0, 1, *span(8, 14)], 3, [4, 5, 6]),
        # No slot has 5: the first machine that has, its lowest GPUs.
        ("first", [*span(0, 4), 9], 5, [8, 10, 11, 12, 13]),
        # No machine has 6: the first rack with room, its lowest free GPUs; no rack has 9: the lowest of all.
        ("first", [*span(0, 5), *span(8, 11), *span(16, 20), *span(24, 28)], 6, [5, 6, 7, 11, 12, 13]),
        ("first", [*span(0, 5), *span(8, 11), *span(16, 20), *span(24, 28)], 9, [5, 6, 7, *span(11, 16), 20]),
        # affinity: a gang that fits no machine takes any GPUs, one that does some of the most free machine.
        ("affinity", span(0, 20), 12, span(20, 32)),
        ("affinity", [*span(0, 4), *span(16, 28)], 8, span(8, 16)),
    ],
)
def test_placers_by_hand(placer, taken, need, gpus):
    found = among(taken, need).find_gpus(1, placer)
    assert (found and sorted(found)) == (gpus and sorted(gpus))


# Racks of 3, 2, 2 machines of 8: machines 0-2, 3-4, 5-6.
THREE_RACKS = {
    "name": "three-racks",
    "regions": [
        {"name": "r", "clusters": [{"name": "c", "racks": [
            {"machines": [{"count": 3, "slots": 2, "gpus_per_slot": 4}]},
            {"count": 2, "machines": [{"count": 2, "slots": 2, "gpus_per_slot": 4}]},
        ]}]}
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("taken", "need", "machines"),
    [
        ([], 16, [3, 4]),  # the fullest rack that suffices: 2 wholly free machines, not 3; of two such the lower
        ([0], 16, [1, 2]),  # of three racks with 2 wholly free machines the lowest
        ([0, 24], 16, [1, 2]),
        ([0, 8, 24], 16, [5, 6]),
        ([0, 8, 24, 40], 16, [2, 4]),  # no rack has two: the lowest
        ([], 17, [0, 1, 2]),  # only rack 0 has three
        ([0], 17, [1, 2, 3]),
        ([0, 8, 24, 40], 17, [2, 4, 6]),
        ([0, 8, 16, 24, 32], 17, None),
    ],
)
def test_a_consolidated_gang_of_several_machines_takes_one_rack_where_it_can(taken, need, machines):
    found = among(taken, need, THREE_RACKS).find_gpus(1, "consolidated")
    assert (found and sorted({gpu // 8 for gpu in found})) == machines
    assert found is None or len(found) == need


def test_machines_of_unequal_size_suffice_by_their_gpus():
    """Racks {4, 8} and {8, 8}; 12 GPUs take rack 0, lowest index first: 4, then 8. 14 take rack 1: 8, then 6 of 8."""
    racks = [
        {"machines": [{"gpus_per_slot": 4}, {"gpus_per_slot": 8}]},
        {"machines": [{"count": 2, "gpus_per_slot": 8}]},
    ]
    topology = {"name": "uneven", "regions": [{"name": "r", "clusters": [{"name": "c", "racks": racks}]}]}
    assert sorted(among([], 12, topology).find_gpus(1, "consolidated")) == span(0, 12)
    assert sorted(among([], 14, topology).find_gpus(1, "consolidated")) == span(12, 26)


@pytest.mark.parametrize(("model", "waits"), [("VGG11", True), ("alexnet", True), ("ResNet50", False), ("", True)])
def test_skew_consolidates_skewed_and_unknown_models(model, waits):
    """Every machine has 3 free GPUs; a gang of 4 waits, or takes the lowest free ones."""
    taken = [g for m in range(4) for g in span(8 * m, 8 * m + 5)]
    simulator = Simulator(DALLY)
    simulator.reset(Workload.from_arrays("two", [0, 0], [20, 4], [9, 9], model=["", model]))
    from clustergym import policies

    simulator.use(policies.make("tiresias").rule)
    simulator.apply(Start(0, taken))
    assert simulator.view.find_gpus(1, "skew") == (None if waits else [5, 6, 7, 13])


def test_random_gpus_come_from_the_seed_and_differ_by_job():
    """The same however often asked; other seeds give other GPUs; over 200 seeds each GPU is drawn about as often."""
    draws = [tuple(among([], 4, seed=seed).find_gpus(1, "random")) for seed in range(200)]
    view = among([], 4, seed=7)
    assert tuple(view.find_gpus(1, "random")) == tuple(view.find_gpus(1, "random")) == draws[7]
    assert len(set(draws)) > 190
    assert all(len(set(draw)) == 4 for draw in draws)
    # 800 draws of 32 GPUs: 25 each, standard deviation 4.7 (without replacement).
    assert 8 <= np.bincount(np.ravel(draws), minlength=32).min() <= np.bincount(np.ravel(draws)).max() <= 45


@pytest.mark.parametrize(
    ("taken", "need", "within"),
    [
        ([], 4, {MACHINE: span(0, 4), RACK: span(0, 4), NETWORK: span(0, 4)}),
        ([], 8, {MACHINE: span(0, 8), RACK: span(0, 8), NETWORK: span(0, 8)}),
        ([], 12, {MACHINE: None, RACK: span(0, 12), NETWORK: span(0, 12)}),
        ([], 20, {MACHINE: None, RACK: None, NETWORK: span(0, 20)}),
        ([], 32, {MACHINE: None, RACK: None, NETWORK: span(0, 32)}),
        # Rack 1 has 8 free, rack 0 has 16: the tighter rack, though a whole machine of rack 0 is free.
        (
            span(20, 28),
            8,
            {MACHINE: span(0, 8), RACK: [*span(16, 20), *span(28, 32)], NETWORK: [*span(16, 20), *span(28, 32)]},
        ),
    ],
)
def test_within_a_machine_a_rack_or_anywhere(taken, need, within):
    view = among(taken, need)
    found = {tier: view.find_gpus_within(1, tier) for tier in within}
    assert {tier: gpus and sorted(gpus) for tier, gpus in found.items()} == within


@pytest.mark.parametrize(
    ("gpus", "tier"),
    [([0], SLOT), ([1, 3], SLOT), ([3, 4], MACHINE), ([7, 8], RACK), ([0, 31], NETWORK), ([0, 8, 16], NETWORK)],
)
def test_the_tier_of_a_gang_is_the_innermost_level_that_holds_it(gpus, tier):
    for order in (gpus, gpus[::-1]):
        view = among([], len(gpus))
        view._simulator.apply(Start(1, order))
        assert (view.tier_of(1), view.gpus_of(1)) == (tier, order)


def test_asking_takes_nothing_and_bad_questions_are_one_sentence():
    view = among([0, 1], 4)
    view.find_gpus(1, "tier")
    assert view.free_gpus.tolist() == span(2, 32)
    with pytest.raises(InputError, match="consolidated"):
        view.find_gpus(1, "consolidate")
    with pytest.raises(InputError, match="tier 0"):
        view.find_gpus_within(1, SLOT)


@pytest.mark.parametrize("order", range(6))
def test_first_follows_the_order_of_the_machines(order):
    """Machines of all racks in the order that numpy draws from the seed; slots and GPUs ascending inside them."""
    scan = np.random.default_rng(order).permutation(4).tolist()
    topology = f"{DALLY},machine_order={order}"
    assert among([], 3, topology).find_gpus(1, "first") == span(8 * scan[0], 8 * scan[0] + 3)
    taken = span(8 * scan[0], 8 * scan[0] + 8)
    assert among(taken, 8, topology).find_gpus(1, "first") == span(8 * scan[1], 8 * scan[1] + 8)


FIVE_TAKEN_EACH = [gpu for machine in range(4) for gpu in span(8 * machine, 8 * machine + 5)]


@pytest.mark.parametrize(
    ("model", "taken", "need", "gpus"),
    [
        ("VGG11", [0], 8, span(8, 16)),  # the first machine with room
        # Else a rack: for a skewed model only while at least as many GPUs are free as a machine has, but one.
        ("VGG11", FIVE_TAKEN_EACH, 6, [5, 6, 7, 13, 14, 15]),
        ("VGG11", [*FIVE_TAKEN_EACH, *span(21, 24), *span(29, 32)], 4, None),
        ("ResNet50", [*FIVE_TAKEN_EACH, *span(21, 24), *span(29, 32)], 4, [5, 6, 7, 13]),
        # Else anywhere, if the model is not skewed or the gang is larger than a rack.
        ("VGG11", FIVE_TAKEN_EACH, 9, None),
        ("ResNet50", FIVE_TAKEN_EACH, 9, [5, 6, 7, 13, 14, 15, 21, 22, 23]),
        ("VGG11", [0], 20, span(1, 21)),
    ],
)
def test_first_skew_by_hand(model, taken, need, gpus):
    """Tiresias in the authors' simulator of paper dally; machines of 8, racks of 16."""
    simulator = Simulator(DALLY, rule=Rule("fifo", placer="first-skew"))
    simulator.reset(Workload.from_arrays("two", [0, 0], [len(taken), need], [9, 9], model=["", model]))
    simulator.apply(Start(0, taken))
    found = simulator.view.find_gpus(1, "first-skew")
    assert (found and sorted(found)) == gpus
