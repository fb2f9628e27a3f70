"""Jobs in other rows: with decisions that are bound to ids nothing that becomes of a job may change.

Rows are read in order of arrival, so only those that arrive at once can change places. Among these the row decides what
rules decide: which is next, which of those held starts, the priorities that Crux gives to equal jobs, and which goes
first of those that begin at once in a job group. And what chance draws for a job it draws for its row: jitter, offsets,
hashed routes, durations and metrics of job groups. So these are not asked here.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from clustergym.experiments.storing.identity import fingerprint
from clustergym.simulator.cluster.topology import Topology
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.workloads import Workload, read_trace
from clustergym.tests.support.invariance import Player, pairs
from clustergym.tests.support.row_orders import (
    InPlace,
    at_once,
    in_rows,
    on_fabric,
    others,
    permuted,
    random_places,
    replayed,
    scripted,
    told_apart,
)


def differences(make, seed: int, folder: Path, orders: int) -> list[str]:
    """What becomes of the jobs of a random play in so many orders of rows that differs from the first."""
    rng = np.random.default_rng([seed, 11])
    world = make(seed, folder)
    workload = at_once(world.simulator.workload, rng)
    world.simulator.reset(workload, seed)
    decisions, found = scripted(world, rng), []
    for _ in range(orders - 1):
        other, rows = make(seed, folder).simulator, permuted(workload, rng)
        other.reset(in_rows(workload, rows), seed)
        how = replayed(other, decisions, np.argsort(rows)) or told_apart(world.simulator, other, rows)
        found += [f"seed {seed}: {how}"] if how else []
    return found


def started_in_rows(seed: int, folder: Path) -> list[str]:
    """What differs where each job has GPUs of its own and jobs start in the order of their rows, of three."""
    rng, plays = np.random.default_rng([seed, 14]), []
    jobs = on_fabric(seed, folder).simulator.workload
    places = random_places(jobs, on_fabric(seed, folder).simulator.topology.num_gpus, rng)
    workload = at_once(jobs.take(range(len(places))), rng)
    for rows in (np.arange(len(workload)), *(permuted(workload, rng) for _ in range(2))):
        simulator = on_fabric(seed, folder).simulator
        simulator.reset(in_rows(workload, rows), seed)
        simulator.run(InPlace(places))
        plays.append((simulator, rows))
    found = [told_apart(plays[0][0], other, rows) for other, rows in plays[1:]]
    return [f"seed {seed}: {how}" for how in found if how]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("block", [range(20), pytest.param(range(20, 500), marks=pytest.mark.slow)])
def test_jobs_that_start_on_links_in_three_orders(block, tmp_path):
    """Of plays on shipped topologies, as below, on GPUs that are drawn for a job's id."""
    found = [how for seed in block for how in started_in_rows(seed, tmp_path)]
    assert not found, "\n".join(found)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("block", [range(10), pytest.param(range(10, 500), marks=pytest.mark.slow)])
def test_decisions_on_links_in_three_orders(block, tmp_path):
    """Of plays on shipped topologies, with any rates, what is carried, least congested paths and failing cables."""
    found = [how for seed in block for how in differences(on_fabric, seed, tmp_path, 3)]
    assert not found, "\n".join(found)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("block", [range(12), pytest.param(range(12, 300), marks=pytest.mark.slow)])
def test_decisions_on_everything_else_in_two_orders(block, tmp_path):
    """Of gangs under any rule and network, of shared GPUs, elastic jobs, regions and job groups."""
    found = [how for seed in block for how in differences(others, seed, tmp_path, 2)]
    assert not found, "\n".join(found)


# Rules


QUICK = [pair for pair in pairs() if pair[1] not in ("best-rotations", "lookahead", "milp") and "pollux" not in pair[1]]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("block", [range(4), pytest.param(range(4, 300), marks=pytest.mark.slow)])
def test_rows_of_a_file_in_any_order_under_rules(block, tmp_path):
    """Without equal arrivals: rows are sorted before they are numbered, with all that is known of them."""
    for seed in block:
        player = Player(*QUICK[int(np.random.default_rng(seed).integers(len(QUICK)))])
        workload = player.workload(seed)
        later_s = 1e-3 * np.arange(len(workload))
        workload = replace(workload, arrival_s=workload.arrival_s + later_s, deadline_s=workload.deadline_s + later_s)
        one, other = (read_in_any_order(workload, tmp_path / "jobs.csv", rng) for rng in (None, seed))
        assert fingerprint(one) == fingerprint(other), player.env_id
        assert not player.play(one, seed).differs(player.play(other, seed)), (player.env_id, player.policy.name)


def read_in_any_order(workload: Workload, path: Path, seed: int | None) -> Workload:
    """The workload, read from a file whose rows are in an order that is drawn; without a seed in that of arrival."""
    workload.save(path)
    head, *rows = path.read_text().splitlines()
    if seed is not None:
        rows = np.random.default_rng(seed).permutation(rows).tolist()
    path.write_text("\n".join([head, *rows]) + "\n")
    return read_trace(path)


# By hand


TREE = [("h0", "s0"), ("h1", "s0"), ("h2", "s1"), ("h3", "s1"), ("s0", "s1")]
DOWN_UP_GBPS = {"a": (0.1, 0.1, 20.0), "b": (0.1, 0.1, 40.0), "c": (0.1, 0.2, 40.0)}
PLACES = {"a": (0, 4), "b": (2, 6), "c": (3, 7)}


@pytest.mark.parametrize(
    ("words", "ends_s"),
    [
        ("", {"a": 0.22, "b": 0.30, "c": 0.40}),
        (",rates=crux", {"c": 0.419}),
        (",rates=mltcp", {"c": 0.410}),
        (",carried=0.9", {"c": 0.422}),
    ],
)
@pytest.mark.parametrize("order", list(permutations("abc")))
def test_three_jobs_on_a_tree_of_equal_cables(order, words, ends_s, tmp_path):
    """Cables of 50 Gbps; a lies on h0 and h2, b and c on h1 and h3, all send from .1 s on, 16.67 Gbps each.

    a has sent its 2 Gb at .22; then b and c have 25 each, and b has sent its 4 at .30; c has 4 of 8 left and 40 Gbps of
    its own: it ends at .40. After a has left, h1-s0 and s0-s1 have the same jobs and the same capacity.
    """
    graph = nx.Graph()
    graph.add_nodes_from(["h0", "h1", "h2", "h3"], gpus=2)
    graph.add_edges_from(TREE, capacity_gbps=50.0)
    models = {
        name: [
            {"iteration_s": down + up, "local_s": down, "phases": [{"start_s": down, "duration_s": up, "gbps": gbps}]}
        ]
        for name, (down, up, gbps) in DOWN_UP_GBPS.items()
    }
    path = tmp_path / "phases.json"
    path.write_text(json.dumps({"models": models}))
    jobs = Workload.from_arrays(
        *("three", [0.0] * 3, [2] * 3, [0.1] * 3), iterations=[1] * 3, model=order, batch_size=[8] * 3, job_id=order
    )
    simulator = Simulator(Topology.from_graph(graph), f"contention:models={path}{words}")
    simulator.reset(jobs, 0)
    simulator.run(InPlace(PLACES))
    found = dict(zip(order, simulator.jobs()["finish_s"].tolist(), strict=True))
    assert {name: found[name] for name in ends_s} == pytest.approx(ends_s, abs=5e-4)
