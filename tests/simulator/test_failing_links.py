"""Links that fail, come back, or carry less for a while: by hand, by closed forms, and what a user gets wrong."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from clustergym.experiments.storing.identity import fingerprint
from clustergym.simulator.base.decisions import Start
from clustergym.simulator.base.errors import Endless, InputError
from clustergym.simulator.cluster.links import detours
from clustergym.simulator.cluster.routes import link_use
from clustergym.simulator.cluster.topology import Topology
from clustergym.simulator.configuration.network_choice import load_network
from clustergym.simulator.flows.cable_failures import CABLES
from clustergym.simulator.numerics.random import exponential
from clustergym.tests.support.paths import DATA
from clustergym.tests.support.random_contended import BYTES, Random, outcome, random_run, workload
from clustergym.tests.support.scripted_contention import ACROSS, Script, contended


def changes(folder, *rows, head="time_s,link,scale"):
    path = folder / "links.csv"
    path.write_text("\n".join([head, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return f",degraded={path}"


def test_half_a_link_for_ten_seconds(tmp_path):
    """An iteration of "half" is .1 s of computing and .08 s of the whole link: .26 s at half of it.

    From 1.8 s, when 10 iterations are over, to 11.8 s: 38 take .26 s each, until 11.68 s; the next sends from 11.78 s,
    .02 s at half, that is 1/8 of its bytes, and the rest in .07 s, until 11.87 s. The other 51 take .18 s: 21.05 s.
    """
    words = changes(tmp_path, (1.8, "left->right", 0.5), (11.8, "left->right", 1))
    simulator = contended((0.0, 2, "half", 100.0), words=words)
    metrics = simulator.run(Script((0.0, Start(0, ACROSS))))
    assert simulator.jobs()["jct_s"] == pytest.approx(21.05, rel=1e-9)
    # What it offers above what it gets, 25 Gbps while it sends at half, waits: 38 x .16 + .02 seconds.
    assert metrics["congestion_bytes"] == pytest.approx(25e9 / 8 * (38 * 0.16 + 0.02), rel=1e-9)
    assert (metrics["stalled_s"], metrics["link_failures"]) == (0.0, 0.0)


def test_one_of_two_links_at_half(tmp_path):
    """Two jobs on machines of their own leaf switch: only that with the degraded cable is slower, .26 for .18 s."""
    words = changes(tmp_path, (0, "left", "right", 0.5), head="time_s,from,to,scale")
    rows = [(0.0, 2, "half", 100.0)] * 2
    simulator = contended(*rows, words=words)
    simulator.run(Script((0.0, Start(0, ACROSS)), (0.0, Start(1, (2, 3)))))
    assert simulator.jobs()["jct_s"] == pytest.approx([26.0, 18.0], rel=1e-9)


def test_down_without_another_way(tmp_path):
    """Down from 1.85 s to 11.85 s: the 11th iteration computes until 1.9 s, waits 9.95 s and sends until 11.93 s.

    The other 89 take .18 s each: 27.95 s.
    """
    words = changes(tmp_path, (1.85, "left->right", 0), (11.85, "left->right", 1))
    simulator = contended((0.0, 2, "half", 100.0), words=words)
    metrics = simulator.run(Script((0.0, Start(0, ACROSS))))
    assert simulator.jobs()["jct_s"] == pytest.approx(27.95, rel=1e-9)
    assert metrics["stalled_s"] == pytest.approx(9.95) and metrics["congestion_bytes"] == 0.0


def test_what_was_sent_before_a_link_went_down_is_sent(tmp_path):
    """Down from .12 s, when a quarter of the bytes is over, to 5.12 s: the iteration ends 5 s later, at 5.18 s."""
    words = changes(tmp_path, (0.12, "left->right", 0), (5.12, "left->right", 1))
    simulator = contended((0.0, 2, "half", 1.0), words=words)
    metrics = simulator.run(Script((0.0, Start(0, ACROSS))))
    assert simulator.jobs()["jct_s"] == pytest.approx(5.18, rel=1e-9)
    assert metrics["stalled_s"] == pytest.approx(5.0)
    bytes_ = simulator.state.link_bytes[: simulator.topology.links.num_links]
    assert sorted(set(np.round(bytes_))) == pytest.approx([0.0, BYTES["half"]])


def test_a_job_that_starts_without_a_way_waits_for_one(tmp_path):
    words = changes(tmp_path, (0, "left->right", 0), (4, "left->right", 1))
    simulator = contended((0.0, 2, "half", 10.0), words=words)
    simulator.run(Script((0.0, Start(0, ACROSS))))
    assert simulator.jobs()["jct_s"] == pytest.approx(4.0 + 0.08 + 9 * 0.18, rel=1e-9)


def spines(*rows, words="", **options):
    """Two leaves of two machines, two spines, 50 Gbps each."""
    topology = Topology.load("leaf-spine:leaves=2,spines=2,machines=2")
    return contended(*rows, words=words, topology=topology, **options)


def test_down_with_a_second_way(tmp_path):
    """The ways of a ring between two leaves lie over a spine; when that is down they lie over the other, as fast."""
    whole = spines((0.0, 2, "half", 100.0))
    whole.run(Script((0.0, Start(0, (0, 2)))))
    names = whole.topology.links.link_names
    sent = dict(zip(names, whole.state.link_bytes.tolist(), strict=False))
    up = next(name for name in names if name.startswith("leaf0->spine") and sent[name] > 0)
    spine = up.removeprefix("leaf0->")
    other = {"spine0": "spine1", "spine1": "spine0"}[spine]
    change = (9.14, "leaf0", spine, 0)  # after 50 iterations and half the bytes of the next
    words = changes(tmp_path, change, head="time_s,from,to,scale")
    simulator = spines((0.0, 2, "half", 100.0), words=words)
    metrics = simulator.run(Script((0.0, Start(0, (0, 2)))))
    assert simulator.jobs()["jct_s"] == pytest.approx(18.0, rel=1e-9)
    assert metrics["stalled_s"] == 0.0
    now = dict(zip(names, simulator.state.link_bytes.tolist(), strict=False))
    assert now[up] == pytest.approx(50.5 * BYTES["half"], rel=1e-6)
    assert now[f"leaf0->{other}"] == pytest.approx(49.5 * BYTES["half"], rel=1e-6)


def test_a_flow_that_must_go_another_way_shares_it(tmp_path):
    """Two jobs in lockstep over two spines, .18 s an iteration; over the one that is left .26 s, from 1.8 to 4.4 s."""
    links = Topology.load("leaf-spine:leaves=2,spines=2,machines=2").links
    uses = [link_use(links, workers).links.tolist() for workers in ([0, 2], [1, 3])]
    assert not set(uses[0]) & set(uses[1])  # the tables spread them
    name = next(links.link_names[link] for link in uses[0] if "spine" in links.link_names[link])
    ends = name.split("->")
    rows = [(at, *pair, scale) for at, scale in ((1.8, 0), (4.4, 1)) for pair in (ends, ends[::-1])]
    words = changes(tmp_path, *rows, head="time_s,from,to,scale")
    simulator = spines(*[(0.0, 2, "half", 100.0)] * 2, words=words)
    simulator.run(Script((0.0, Start(0, (0, 2))), (0.0, Start(1, (1, 3)))))
    assert simulator.jobs()["jct_s"] == pytest.approx([1.8 + 2.6 + 80 * 0.18] * 2, rel=1e-9)


def test_hashed_ways_avoid_what_is_down(tmp_path):
    """A flow whose spine goes down draws the other one; the way back stays where it is whole, and no time is lost."""
    words = ",routes=hash,route_seed=1"
    whole = spines((0.0, 2, "half", 100.0), words=words)
    whole.run(Script((0.0, Start(0, (0, 2)))))
    links = whole.topology.links
    used = np.flatnonzero(whole.state.link_bytes[: links.num_links])
    up = next(links.link_names[link] for link in used if links.link_names[link].startswith("leaf0->spine"))
    change = (9.14, up, 0)  # after 50 iterations and half the bytes of the next
    simulator = spines((0.0, 2, "half", 100.0), words=words + changes(tmp_path, change))
    simulator.run(Script((0.0, Start(0, (0, 2)))))
    assert simulator.jobs()["jct_s"] == pytest.approx(18.0, rel=1e-9)
    now = dict(zip(links.link_names, simulator.state.link_bytes.tolist(), strict=False))
    other = {"leaf0->spine0": "leaf0->spine1", "leaf0->spine1": "leaf0->spine0"}[up]
    assert now[up] == pytest.approx(50.5 * BYTES["half"], rel=1e-6)
    assert now[other] == pytest.approx(49.5 * BYTES["half"], rel=1e-6)
    rows = [(9.14, "leaf0", spine, 0) for spine in ("spine0", "spine1")]
    words += changes(tmp_path, *rows, head="time_s,from,to,scale")
    with pytest.raises(Endless, match="links are down"):
        spines((0.0, 2, "half", 100.0), words=words).run(Script((0.0, Start(0, (0, 2)))))


def test_a_run_whose_links_stay_down_ends_with_a_sentence(tmp_path):
    simulator = contended((0.0, 2, "half", 100.0), words=changes(tmp_path, (1.0, "left->right", 0)))
    with pytest.raises(Endless, match=r"the run has no end: 1 jobs are there .* links are down, and no way is left"):
        simulator.run(Script((0.0, Start(0, ACROSS))))
    simulator = contended((0.0, 2, "half", 100.0), words=changes(tmp_path, (1.0, "left->right", 0)), horizon_s=50.0)
    metrics = simulator.run(Script((0.0, Start(0, ACROSS))))
    assert simulator.at_horizon and metrics["stalled_s"] == pytest.approx(50.0 - 1.0)


def when_down(seed, link, mtbf_s, mttr_s, until_s):
    """The seconds from which and until which a cable is down."""
    at, count, found = exponential(seed, CABLES - link, 0, mtbf_s), 0, []
    while at < until_s:
        back = at + exponential(seed, CABLES - link, 2 * count + 1, mttr_s)
        found.append((at, back))
        count += 1
        at = back + exponential(seed, CABLES - link, 2 * count, mtbf_s)
    return found


@pytest.mark.parametrize("seed", range(4))
def test_cables_fail_as_drawn(seed):
    """One job: every iteration computes .1 s, whatever is down, and sends for .08 s in which its cables are all up."""
    simulator = contended((0.0, 2, "half", 400.0), words=",link_mtbf_s=25,link_mttr_s=3")
    simulator.reset(workload((0.0, 2, "half", 400.0)), seed)
    metrics = simulator.run(Script((0.0, Start(0, ACROSS))))
    links = simulator.topology.links
    mine = np.unique(links.cable[link_use(links, [0, 4]).links])
    assert len(mine) == 3
    down = sorted(window for link in mine for window in when_down(seed, int(link), 25.0, 3.0, 1000.0))
    at, stalled_s = 0.0, 0.0
    for _ in range(400):
        at, left = at + 0.1, 0.08
        for begin, end in down:
            if end <= at or begin >= at + left:
                continue
            left -= max(0.0, begin - at)
            stalled_s += end - max(begin, at)
            at = end
        at += left
    assert simulator.jobs()["jct_s"] == pytest.approx(at, rel=1e-9)
    assert metrics["stalled_s"] == pytest.approx(stalled_s) and stalled_s > 0.0
    cables = np.unique(links.cable).tolist()
    assert metrics["link_failures"] == sum(
        begin <= at for link in cables for begin, _ in when_down(seed, link, 25.0, 3.0, 1000.0)
    )


@pytest.mark.parametrize("seed", [1, 3])
def test_same_seed_same_run_whatever_came_before(seed):
    """Of one network object, from a snapshot in the middle, and of a pickled copy."""
    words = [f"link_mtbf_s=20,link_mttr_s=4,degraded={DATA / 'degraded_links.csv'}"]
    first = random_run(seed, 20, words=list(words))
    first.run(Random(seed))
    expected = outcome(first)
    assert first.metrics()["link_failures"] > 0
    again = random_run(seed, 20, words=list(words))
    policy, kept = Random(seed), None
    while not again.ended:
        again._play(policy)
        if kept is None and again.state.link_failures > 0 and not again.ended:
            kept = again.snapshot()
    assert outcome(again) == expected and kept is not None
    again.restore(kept)
    assert again.state.link_failures <= first.metrics()["link_failures"]
    again.run(Random(seed))
    assert outcome(again) == expected
    other = random_run(seed, 20, words=list(words))
    other.network = pickle.loads(pickle.dumps(first.network))
    assert other.network.describe() == first.network.describe()
    other.reset(other.workload, seed + 1)
    other.run(Random(seed))
    other.reset(other.workload, seed)
    other.run(Random(seed))
    assert outcome(other) == expected


def test_what_a_file_says_counts_not_what_it_is_called(tmp_path):
    words = changes(tmp_path, (1.0, "left->right", 0.5)).removeprefix(",")
    before = fingerprint(load_network(f"contention:{words}"))
    assert fingerprint(load_network(f"contention:{words}")) == before
    changes(tmp_path, (1.0, "left->right", 0.25))
    assert fingerprint(load_network(f"contention:{words}")) != before


def test_ways_that_are_whole_stay():
    """Of all pairs of machines those keep their way whose links are up; the others get one, if any is left."""
    links = Topology.load("fat-tree:k=4").links
    rng = np.random.default_rng(3)
    for _ in range(20):
        up = rng.random(links.num_links) < 0.85
        table = detours(links, up)
        for _ in range(40):
            pair = rng.choice(links.num_machines, 2, replace=False).tolist()
            whole, found = link_use(links, pair, "line"), link_use(links, pair, "line", table=table)
            if up[whole.links].all():
                assert found.links.tolist() == whole.links.tolist()
            elif len(found.links):
                assert up[found.links].all()
            else:
                assert links.hops_over(up)[links.machine_node[pair[0]], pair[1]] < 0


@pytest.mark.parametrize(
    ("head", "row", "said"),
    [
        ("time_s,link,scale", "1,left->rihgt,0", r"line 2, column 'link': 'left->rihgt'; expected a link of topology "
         r"'dumbbell', perhaps 'left->right'"),
        ("time_s,link,scale", "1,left->right,1.5", "line 2, column 'scale': '1.5'; expected a number from 0 to 1"),
        ("time_s,link,scale", "-1,left->right,1", "line 2, column 'time_s': '-1'; expected a number from 0 to"),
        ("time_s,from,to,scale", "1,left,middle,0", "line 2, column 'to': 'middle'; expected a node of topology"),
        ("time_s,from,to,scale", "1,left0,right,0", "line 2, column 'to': 'right'; expected a node to which a link"),
        ("time_s,scale", "1,0", "column 'link' is missing; it has: 'time_s, scale'"),
        ("time_s,link,scale", "1,left->right,0\n1,left->right,1", "line 3, column 'link': 'left->right'; expected one "
         r"scale of a link at one time \(line 2 has one too\)"),
    ],
)  # fmt: skip
def test_a_file_that_says_what_cannot_be(tmp_path, head, row, said):
    with pytest.raises(InputError, match=said):
        contended((0.0, 2, "half", 1.0), words=changes(tmp_path, (row,), head=head))


def test_options_that_do_not_fit(tmp_path):
    for words, said in (
        ("link_mtbf_s=0", "link_mtbf_s = 0.0: expected a number above 0"),
        ("link_mtbf_s=5,link_mttr_s=inf", "link_mttr_s = inf: expected a finite number above 0"),
        ("link_mtbf_s=5,mode=averaged", "link_mtbf_s is given with mode=averaged"),
        (f"mode=averaged{changes(tmp_path, (0, 'left->right', 0))}", "degraded is given with mode=averaged"),
        ("degraded=nowhere.csv", "nowhere.csv: there is no such file; expected a csv of time_s, link"),
    ):
        with pytest.raises(InputError, match=said):
            load_network(f"contention:{words}")
    assert load_network("contention").link_mtbf_s == math.inf
    assert "link" not in load_network("contention").describe()
    again = load_network(load_network("contention:link_mtbf_s=5,link_mttr_s=2").describe())
    assert (again.link_mtbf_s, again.link_mttr_s) == (5.0, 2.0)
