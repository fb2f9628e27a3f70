"""Least congested paths: of a flow against all paths, of jobs by hand, in the whole simulator, whatever came before."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustergym import policies
from clustergym.simulator.base.decisions import Start
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.cluster.routes import EqualPaths
from clustergym.simulator.cluster.topology import Topology
from clustergym.simulator.configuration.network_choice import load_network, network_for
from clustergym.simulator.contention.least_paths import Sender, least_congested
from clustergym.simulator.profiles.phases import in_order
from clustergym.tests.support.drawn import calm
from clustergym.tests.support.random_contended import BYTES, PHASES, Random, outcome, workload
from clustergym.tests.support.scripted_contention import Script, contended

SPINES = "leaf-spine:leaves=2,spines=2,machines=3,link_gbps=50,uplink_gbps=50,gpus_per_machine=1"
PAIRS = (0, 3), (1, 4), (2, 5)  # GPUs under both leaves
FABRICS = {
    "two spines": SPINES,
    "fat tree": "fat-tree:k=4,gpus_per_machine=2",
    "rails": "leaf-spine:leaves=4,spines=3,machines=2,gpus_per_machine=4,nics=2,rails=on",
}
B = 50e9 / 8
PLAYS = """
from clustergym.tests.simulator.test_least_paths import random_least, Random, outcome
for seed in range(4):
    simulator = random_least(seed)
    simulator.run(Random(seed))
    print(outcome(simulator))
"""


def spines(*rows, words="", starts=None):
    """A run of jobs on the pairs of GPUs, by default from 0 s on, each as wide as a pair."""
    topology = Topology.load(SPINES)
    simulator = contended(*rows, words=",routes=least" + words, topology=topology)
    starts = starts or [(row[0], Start(job, PAIRS[job])) for job, row in enumerate(rows)]
    return simulator, Script(*starts)


def uplinks(links, path) -> list[str]:
    """The spine of each way between the leaves, there and back."""
    names = [links.link_names[link] for link in path]
    return [name.partition("->")[2] for name in names if name.startswith(("leaf0->spine", "leaf1->spine"))]


def random_least(seed: int, words: str = "", jobs: int = 10):
    """A simulator at its first decision: random jobs on a fabric with equal paths."""
    rng = np.random.default_rng(seed)
    topology = Topology.load(list(FABRICS.values())[seed % 3])
    rows = [
        (at, int(rng.integers(2, 6)), str(rng.choice(["half", "twice", "light"])), float(rng.integers(5, 40)))
        for at in sorted(np.round(rng.random(jobs) * 6.0, 1).tolist())
    ]
    simulator = contended(*rows, words=f",routes=least{words}", topology=topology)
    simulator.reset(simulator.workload, seed)
    return simulator


def laid(simulator, job):
    """The links of a job in the record, ascending, and its flows on them."""
    s, found = simulator.state, []
    use = int(s.first_use[job])
    while use >= 0:
        found.append((int(s.use_link[use]), float(s.use_flows[use])))
        use = int(s.use_after[use])
    return sorted(found)


class Watched(Random):
    """As `Random`; counts how often a job that kept its GPUs is on other links than at the last decision point."""

    def __init__(self, seed, simulator):
        super().__init__(seed)
        self.simulator, self.moved, self.before = simulator, 0, {}

    def decide(self, view):
        if view.instant != self.at:
            now = {job: (view.gpus_of(job), laid(self.simulator, job)) for job in view.running.tolist()}
            both = [(now[job], self.before[job]) for job in now if job in self.before]
            self.moved += sum(one[0] == other[0] and one[1] != other[1] and other[1] != [] for one, other in both)
            self.before = now
        return super().decide(view)


def test_a_job_that_sends_nothing_slows_none():
    """A job that only computes has no bytes, and so no intensity to be ordered by; the two others take a spine each."""
    simulator, script = spines((0.0, 2, "quiet", 20.0), (0.0, 2, "half", 10.0), (0.0, 2, "half", 10.0))
    simulator.run(script)
    assert simulator.jobs()["jct_s"] == pytest.approx([1.0, 1.8, 1.8], rel=1e-9)


# A flow


@pytest.mark.parametrize("word", FABRICS.values(), ids=FABRICS)
def test_a_flow_takes_the_best_of_all_paths(word):
    """Whose loads, the largest first, are the least; of equal ones the first."""
    links = Topology.load(word).links
    rng, chosen = np.random.default_rng(0), set()
    for trial in range(60):
        up = rng.random(links.num_links) < (0.85 if trial % 2 else 1.1)
        paths, load = EqualPaths(links, up), rng.integers(0, 4, links.num_links)
        start, end = rng.choice(links.nic_node.size, 2, replace=False).tolist()
        every = [paths.path(start, end, rank) for rank in range(paths.count(start, end))]
        rank = min(range(len(every)), key=lambda rank: sorted(load[every[rank]].tolist(), reverse=True), default=None)
        assert paths.least(start, end, load) == ([] if rank is None else every[rank])
        chosen.add(rank)
    assert len(chosen) > 2
    assert paths.least(0, 0, load) == []


def test_more_paths_than_can_be_counted_cost_no_more():
    """Thirty times two parallel cables in a row: on the first of each pair but in the middle, which is full."""
    graph = networkx.MultiGraph()
    graph.add_nodes_from([("a", {"gpus": 1}), *((f"s{at}", {}) for at in range(29)), ("b", {"gpus": 1})])
    for first, second in itertools.pairwise(["a", *(f"s{at}" for at in range(29)), "b"]):
        graph.add_edges_from([(first, second, {"capacity_gbps": 10})] * 2)
    links = Topology.from_graph(graph).links
    paths = EqualPaths(links)
    free = paths.least(0, 1, np.zeros(links.num_links, np.int64))
    load = np.zeros(links.num_links, np.int64)
    load[free[15]] = 1
    assert paths.least(0, 1, load) == [*free[:15], free[15] + 1, *free[16:]]


# Jobs by hand


def sender(down_s: float, up_s: float) -> Sender:
    return Sender(2 * down_s, in_order([(down_s, 0.0), (up_s, B)]), B)


def test_the_highest_intensity_comes_first():
    """Of intensities 2, 8 and 4 with loads of 1/2, 1/5 and 1/3: the second is on spine 0, the third on spine 1.

    The first takes the spine of the second, whose load is less.
    """
    links = Topology.load(SPINES).links
    senders = {0: sender(0.1, 0.1), 1: sender(0.4, 0.1), 2: sender(0.2, 0.1)}
    assert [senders[job].intensity for job in range(3)] == pytest.approx([2.0, 8.0, 4.0])
    flows = {job: {pair: 1.0, pair[::-1]: 1.0} for job, pair in enumerate(PAIRS)}
    found = least_congested(links, EqualPaths(links), senders, flows)
    taken = {job: uplinks(links, itertools.chain(*paths.values())) for job, paths in found.items()}
    assert taken == {1: ["spine0", "spine0"], 2: ["spine1", "spine1"], 0: ["spine0", "spine0"]}


def test_flows_of_one_job_spread_too():
    """Two streams from one leaf to the other: one over each spine."""
    links = Topology.load(SPINES).links
    found = least_congested(links, EqualPaths(links), {0: sender(0.1, 0.1)}, {0: {(0, 3): 1.0, (1, 4): 1.0}})
    assert {links.link_names[path[1]] for path in found[0].values()} == {"leaf0->spine0", "leaf0->spine1"}


@pytest.mark.parametrize("mode", ["exact", "averaged"])
@pytest.mark.parametrize("rates", ["fair", "crux"])
def test_two_jobs_never_meet_and_three_do(mode, rates):
    """Of "half", .1 s and .08 s of a whole link, two are alone; of three the first and the last share a spine.

    They do, .26 s an iteration, until the second has ended at 3.6 s: .06 s of .08 s of their 14th are sent then. The
    rest of it takes .02 s, and the other six .18 s each. Averages know no phases: 3.6 / .26 iterations are over.
    """
    words = f",mode={mode},rates={rates}"
    simulator, script = spines(*[(0.0, 2, "half", 20.0)] * 2, words=words)
    simulator.run(script)
    assert simulator.jobs()["jct_s"] == pytest.approx([3.6] * 2, rel=1e-6)
    simulator, script = spines(*[(0.0, 2, "half", 20.0)] * 3, words=words)
    simulator.run(script)
    jct_s = simulator.jobs()["jct_s"]
    assert jct_s[1] == pytest.approx(3.6, rel=1e-6)
    if rates == "fair":
        last_s = 3.6 + 0.02 + 6 * 0.18 if mode == "exact" else 3.6 + (20 - 3.6 / 0.26) * 0.18
        assert [jct_s[0], jct_s[2]] == pytest.approx([last_s] * 2, rel=1e-6)
    else:
        assert jct_s[0] == pytest.approx(3.6, rel=1e-3) and jct_s[2] < 3.8  # one goes first


def test_a_running_job_moves_in_the_middle_of_a_phase():
    """From .14 s to 2.14 s spine 0 is for "light", and "half" is on the other; no job loses any time.

    Intensities are 2 x .1 / .08 = 2.5 of "half" and 2 x .16 / (.04 x 20 / 50) = 20 of "light". At .14 s half of the
    bytes of the first iteration are sent, at 2.14 s three quarters of those of the twelfth, which began at 1.98 s.
    """
    simulator, script = spines((0.0, 2, "half", 20.0), (0.14, 2, "light", 10.0))
    simulator.run(script)
    assert simulator.jobs()["jct_s"] == pytest.approx([3.6, 2.0], rel=1e-9)
    links, sent = simulator.topology.links, simulator.state.link_bytes
    crossed = {name: sent[link] for link, name in enumerate(links.link_names) if name.startswith("leaf0->")}
    first, last = 0.5, 8 + 0.25  # iterations whose bytes go over spine 0, before and after
    assert crossed["leaf0->spine0"] == pytest.approx((first + last) * BYTES["half"] + 10 * BYTES["light"], rel=1e-6)
    assert crossed["leaf0->spine1"] == pytest.approx((20 - first - last) * BYTES["half"], rel=1e-6)


def test_a_spine_that_is_down_is_no_way(tmp_path):
    """Two jobs that never meet share the spine that is left from 1.8 s to 4.4 s, .26 for .18 s an iteration."""
    path = tmp_path / "links.csv"
    rows = [f"{at},{pair},{scale}" for at, scale in ((1.8, 0), (4.4, 1)) for pair in ("leaf0,spine1", "spine1,leaf0")]
    path.write_text("\n".join(["time_s,from,to,scale", *rows]) + "\n")
    simulator, script = spines(*[(0.0, 2, "half", 100.0)] * 2, words=f",degraded={path}")
    simulator.run(script)
    assert simulator.jobs()["jct_s"] == pytest.approx([1.8 + 2.6 + 80 * 0.18] * 2, rel=1e-9)


def test_never_worse_than_a_hash_where_paths_collide():
    """Three jobs of one kind on two spines: no seed of the hash has a lower mean JCT, some have one far higher."""
    rows = [(0.0, 2, "half", 20.0)] * 3
    simulator, script = spines(*rows)
    least = simulator.run(script)["jct_mean"]
    hashed = []
    for seed in range(12):
        other = contended(*rows, words=f",routes=hash,route_seed={seed}", topology=Topology.load(SPINES))
        hashed.append(other.run(Script(*[(0.0, Start(job, PAIRS[job])) for job in range(3)]))["jct_mean"])
    assert least <= min(hashed) * (1 + 1e-9) and max(hashed) > 1.1 * least


# Jobs that came before


@calm(40)
@given(st.integers(0, 10_000), st.randoms(use_true_random=False))
def test_paths_follow_from_the_running_jobs_and_from_nothing_else(seed, random):
    """In whatever order jobs are named, and whatever the network was asked before."""
    rng = np.random.default_rng(seed)
    topology = Topology.load(list(FABRICS.values())[seed % 3])
    free, gangs, rows = rng.permutation(topology.num_gpus).tolist(), {}, []
    while len(free) > 1 and len(gangs) < 6:
        gangs[len(gangs)] = [free.pop() for _ in range(min(len(free), int(rng.integers(2, 5))))]
        rows.append((0.0, len(gangs[len(gangs) - 1]), str(rng.choice(["half", "twice", "light"])), 10.0))
    jobs = workload(*rows)
    network = load_network(f"contention:models={PHASES},routes=least")
    expected = network.together(topology, jobs, gangs)
    order = list(gangs)
    random.shuffle(order)
    other = load_network(network.describe())
    for count in range(1, len(order)):
        other.together(topology, jobs, {job: gangs[job] for job in order[:count]})
    found = other.together(topology, jobs, {job: gangs[job] for job in order})
    assert list(found) == order
    for job, (phases, use) in expected.items():
        assert found[job][0] == phases
        assert found[job][1].links.tolist() == use.links.tolist() and found[job][1].flows.tolist() == use.flows.tolist()
    for job, gpus in gangs.items():  # alone: with no other job
        alone, lone = network.alone(topology, jobs, job, gpus), other.together(topology, jobs, {job: gpus})[job]
        assert alone[0] == lone[0] and alone[1].links.tolist() == lone[1].links.tolist()


@pytest.mark.parametrize("words", ["", ",rates=crux", ",rates=mltcp,link_mtbf_s=20,link_mttr_s=3"])
def test_same_run_from_a_snapshot_in_the_middle(words):
    moved = 0
    for seed in range(4):
        first = random_least(seed, words)
        policy = Watched(seed, first)
        first.run(policy)
        moved += policy.moved
        expected = outcome(first)
        again, kept = random_least(seed, words), None
        other = Random(seed)
        while not again.ended:
            again._play(other)
            if kept is None and again.state.done > 2 and not again.ended:
                kept = again.snapshot()
        assert outcome(again) == expected and kept is not None
        again.restore(kept)
        again.run(Random(seed))
        assert outcome(again) == expected
    assert moved > 3  # jobs that kept their GPUs and got other links


@pytest.mark.slow
def test_plain_python_plays_the_same():
    plain = subprocess.run(
        [sys.executable, "-c", PLAYS],
        capture_output=True, text=True, check=True, env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    )  # fmt: skip
    compiled = subprocess.run([sys.executable, "-c", PLAYS], capture_output=True, text=True, check=True)
    assert plain.stdout == compiled.stdout and plain.stdout.count("finish_s") == 4


@pytest.mark.parametrize("words", ["", ",rates=crux"])
def test_a_job_is_on_the_links_that_the_network_has_for_it(words):
    simulator, policy, seen = random_least(1, words), Random(1), 0
    while not simulator.ended:
        for decision in simulator.asked(policy):
            simulator.apply(decision)
        expected = {job: simulator.view.links_of(job) for job in simulator.view.running.tolist()}
        done = int(simulator.state.done)
        simulator.advance()
        if simulator.state.done == done:  # else paths have been chosen without jobs that have ended
            for job, use in expected.items():
                assert laid(simulator, job) == list(zip(use.links.tolist(), use.flows.tolist(), strict=True))
                seen += len(use.links) > 0
    assert seen > 10


def test_a_placement_is_seen_beside_running_jobs():
    """A job that would start on the second pair is seen on the other spine."""
    simulator, _ = spines(*[(0.0, 2, "half", 10.0)] * 2)
    links = simulator.topology.links
    assert uplinks(links, simulator.view.links_of(1, PAIRS[1]).links) == ["spine0", "spine0"]
    simulator.apply(Start(0, PAIRS[0]))
    assert uplinks(links, simulator.view.links_of(0).links) == ["spine0", "spine0"]
    assert uplinks(links, simulator.view.links_of(1, PAIRS[1]).links) == ["spine1", "spine1"]


# Words


def test_words_of_networks_and_policies():
    network = load_network("contention:routes=least")
    assert "routes=least" in network.describe() and "route_seed" not in network.describe()
    assert load_network(network.describe()).describe() == network.describe()
    for word, routes in ("themis+crux", "table"), ("themis+crux:paths=on", "least"), ("dally+crux:paths=on", "least"):
        policy = policies.make(word)
        assert policy.name == word
        assert network_for(policy, load_network("contention")).routes == routes


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("routes=least,route_seed=3", "route_seed = 3: it means nothing with routes=least; expected routes=hash"),
        ("routes=least,channels=2", "channels = 2: it means nothing with routes=least"),
        ("routes=lest", "routes"),
    ],
)
def test_words_that_are_none(words, said):
    with pytest.raises(InputError, match=f"network contention: {said}"):
        load_network(f"contention:{words}")
