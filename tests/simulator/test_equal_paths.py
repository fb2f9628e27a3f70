"""Equal paths, flows that are hashed onto them, and jobs that collide or do not. Networkx counts the paths again."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections import Counter

import networkx
import numpy as np
import pytest

from clustergym.simulator.base.decisions import Start
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.cluster.routes import EqualPaths, drawn_path, link_use, route
from clustergym.simulator.cluster.topology import Topology
from clustergym.simulator.configuration.network_choice import load_network
from clustergym.tests.support.random_contended import PHASES, workload
from clustergym.tests.support.scripted_contention import Script, contended

SPINES = "leaf-spine:leaves=2,spines=2,machines=2,link_gbps=50,uplink_gbps=50,gpus_per_machine=1"
STARTS = (0.0, Start(0, (0, 2))), (0.0, Start(1, (1, 3)))
PLAYS = """
import sys
from clustergym.tests.simulator.test_equal_paths import jct_s
print([jct_s(seed, sys.argv[1]) for seed in range(8)])
"""


def all_paths(links, start, end, up=None):
    """As networkx enumerates them; parallel cables are told apart."""
    graph = networkx.MultiDiGraph()
    graph.add_nodes_from(range(links.num_nodes))
    ends = links.machine_node[[start, end]].tolist()
    for link, (source, target) in enumerate(zip(links.source.tolist(), links.target.tolist(), strict=True)):
        if (up is None or up[link]) and (links.forwards[source] or source == ends[0]):
            graph.add_edge(source, target, link)
    if not networkx.has_path(graph, *ends):
        return []
    nodes = {tuple(path) for path in networkx.all_shortest_paths(graph, *ends)}
    return sorted(
        list(path)
        for way in nodes
        for path in itertools.product(*(graph[first][second] for first, second in itertools.pairwise(way)))
    )


def jct_s(seed: int, mode: str = "exact", words: str = "", jobs: int = 2) -> list[float]:
    rows = [(0.0, 2, "half", 10.0)] * jobs
    words = f",mode={mode},routes=hash,route_seed={seed}{words}"
    simulator = contended(*rows, words=words, topology=Topology.load(SPINES))
    simulator.run(Script(*STARTS[:jobs]))
    return simulator.jobs()["jct_s"].tolist()


# Paths


@pytest.mark.parametrize("word", ["fat-tree:k=4", "leaf-spine:leaves=3,spines=3", "cassini-testbed"])
def test_paths_are_those_that_networkx_enumerates(word):
    links = Topology.load(word).links
    paths = EqualPaths(links)
    most = 0
    for start, end in itertools.permutations(range(0, links.num_machines, 3), 2):
        found = [paths.path(start, end, rank) for rank in range(paths.count(start, end))]
        assert found == sorted(found) == all_paths(links, start, end)
        assert route(links, start, end) in found
        most = max(most, len(found))
    assert most > 1


def test_paths_avoid_links_that_are_down():
    links = Topology.load("fat-tree:k=4").links
    rng = np.random.default_rng(0)
    for _ in range(20):
        up = rng.random(links.num_links) < 0.8
        paths = EqualPaths(links, up)
        for start, end in rng.choice(16, (6, 2)).tolist():
            if start != end:
                found = [paths.path(start, end, rank) for rank in range(paths.count(start, end))]
                assert found == all_paths(links, start, end, up)
                if not found:
                    with pytest.raises(InputError, match=r"'server\d+' to 'server\d+': there are 0"):
                        drawn_path(paths, 0, 0, start, end)


def test_more_paths_than_can_be_counted_are_paths():
    """Forty times two parallel cables in a row: 2 ** 40 paths, of which 2 ** 31 are counted."""
    graph = networkx.MultiGraph()
    graph.add_nodes_from([("a", {"gpus": 1}), *((f"s{at}", {}) for at in range(39)), ("b", {"gpus": 1})])
    for first, second in itertools.pairwise(["a", *(f"s{at}" for at in range(39)), "b"]):
        graph.add_edges_from([(first, second, {"capacity_gbps": 10})] * 2)
    links = Topology.from_graph(graph).links
    paths = EqualPaths(links)
    assert paths.count(0, 1) == 2**31
    for job in range(20):
        path = drawn_path(paths, 0, job, 0, 1)
        assert len(path) == 40
        assert (links.target[path[:-1]] == links.source[path[1:]]).all()


def test_every_path_is_as_likely():
    """16 paths between pods of a fat tree of 8 ports; chi-squared of 15 degrees is below 37.7 in 999 of 1,000 draws."""
    paths = EqualPaths(Topology.load("fat-tree:k=8").links)
    for drawn in (
        [tuple(drawn_path(paths, seed, 0, 0, 100)) for seed in range(3200)],
        [tuple(drawn_path(paths, 0, job, 0, 100)) for job in range(3200)],
        [tuple(drawn_path(paths, 0, 0, 0, 100, channel)) for channel in range(3200)],
    ):
        counts = np.array(list(Counter(drawn).values()))
        assert len(counts) == 16 and ((counts - 200) ** 2 / 200).sum() < 37.7


def test_channels_split_a_flow_evenly():
    links = Topology.load("leaf-spine:leaves=2,spines=4").links
    paths = EqualPaths(links)
    drawn = {(a, b): [drawn_path(paths, 1, 0, a, b, channel) for channel in range(8)] for a, b in [(0, 4), (4, 0)]}
    use = link_use(links, [0, 4], paths=lambda start, end: drawn[start, end])
    by_hand = np.zeros(links.num_links)
    for split in drawn.values():
        for path in split:
            by_hand[path] += 1 / 8
    assert use.links.tolist() == np.flatnonzero(by_hand).tolist()
    assert use.flows.tolist() == by_hand[use.links].tolist() and 0 < min(use.flows) < 1


# Jobs


@pytest.mark.parametrize("mode", ["exact", "averaged"])
def test_flows_that_collide_share_and_others_are_alone(mode):
    """Two jobs of .1 s Down and .08 s Up, which fills a link: .18 s an iteration, .26 s where they share an uplink."""
    paths = EqualPaths(Topology.load(SPINES).links)
    collided = []
    for seed in range(12):
        taken = [
            {link for ends in (pair, pair[::-1]) for link in drawn_path(paths, seed, job, *ends)}
            for job, pair in enumerate([(0, 2), (1, 3)])
        ]
        collided.append(bool(taken[0] & taken[1]))
        assert jct_s(seed, mode) == pytest.approx([10 * (0.26 if collided[-1] else 0.18)] * 2, rel=1e-6)
    assert {True, False} == set(collided)


def test_channels_lessen_a_collision():
    """All of both uplinks or a part of them is shared: never as bad as .26 s, and alone where nothing is."""
    whole, split = ([jct_s(seed, words=words)[0] for seed in range(16)] for words in ("", ",channels=16"))
    assert max(split) < max(whole) and np.std(split) < np.std(whole)


@pytest.mark.parametrize("mode", ["exact", "averaged"])
def test_what_ran_before_does_not_matter(mode):
    """One network object plays other jobs and seeds first; then again without compiled kernels."""
    first = [jct_s(seed, mode) for seed in range(8)]
    assert first == [jct_s(seed, mode) for seed in reversed(range(8))][::-1]
    network = load_network(f"contention:models={PHASES},routes=hash,route_seed=3")
    topology = Topology.load(SPINES)
    seen = network.alone(topology, workload(*[(0.0, 2, "half", 10.0)] * 2), 1, (1, 3))[1].links.tolist()
    network.alone(topology, workload(*[(0.0, 2, "twice", 10.0)] * 9), 8, (1, 3))
    again = network.alone(topology, workload(*[(0.0, 2, "half", 10.0)] * 2), 1, (1, 3))[1].links.tolist()
    assert seen == again


@pytest.mark.slow
def test_plain_python_draws_the_same_paths():
    plain = subprocess.run(
        [sys.executable, "-c", PLAYS, "exact"],
        capture_output=True, text=True, check=True, env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    )  # fmt: skip
    assert plain.stdout.strip() == str([jct_s(seed) for seed in range(8)])


def test_a_placement_is_seen_as_the_job_gets_it():
    simulator = contended(
        *[(0.0, 2, "half", 10.0)] * 2, words=",routes=hash,route_seed=5", topology=Topology.load(SPINES)
    )
    seen = [simulator.view.links_of(job, gpus).links.tolist() for job, gpus in enumerate([(0, 2), (1, 3)])]
    got = {}

    class Looks(Script):
        def decide(self, view):
            for job in view.running.tolist():
                got[job] = view.links_of(job).links.tolist()
                s = simulator.state
                laid, use = [], int(s.first_use[job])
                while use >= 0:
                    laid.append(int(s.use_link[use]))
                    use = int(s.use_after[use])
                if s.stays[job]:
                    assert sorted(laid) == got[job]
            return super().decide(view)

    simulator.run(Looks(*STARTS))
    assert [got[0], got[1]] == seen


# Words


def test_descriptions_name_routes_that_are_drawn():
    assert "rout" not in load_network("contention").describe()
    network = load_network("contention:routes=hash,route_seed=7,channels=2")
    assert "routes=hash,route_seed=7,channels=2" in network.describe()
    assert load_network(network.describe()).describe() == network.describe()
    assert "routes=hash,route_seed=0" in load_network("contention:routes=hash").describe()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("routes=hash,route_seed=-1", r"route_seed = -1: expected 0 to"),
        ("routes=hash,channels=0", "channels = 0: expected 1 to 64"),
        ("routes=hash,channels=65", "channels = 65: expected 1 to 64"),
        ("routes=hash,route_seed=0.5", "route_seed"),
        ("routes=ecmp", "routes"),
        ("route_seed=3", "route_seed = 3: it means nothing with routes=table; expected routes=hash"),
        ("channels=2", "channels = 2: it means nothing with routes=table"),
    ],
)
def test_words_that_are_none(words, said):
    with pytest.raises(InputError, match=f"network contention: {said}"):
        load_network(f"contention:{words}")
