"""TimeShift-v0: what its actions, masks and features mean; every policy through it is the simulator alone."""

from __future__ import annotations

import re
from functools import partial

import gymnasium
import numpy as np
import pytest

from clustergym import policies
from clustergym.envs.rendering.ansi import draw_ansi
from clustergym.envs.timeshift.columns import CLUSTER
from clustergym.envs.timeshift.shared_links import Place, SharedLinks, UnifiedCircle
from clustergym.policies.cassini.compatibility import BUCKETS, Overlay, SharedLink, bucket_s, link_scores
from clustergym.simulator.base.decisions import Advance, Shift, Start
from clustergym.simulator.base.errors import InputError, InvalidDecision
from clustergym.simulator.cluster.routes import LinkUse
from clustergym.simulator.contention.circle import Grid, unify
from clustergym.simulator.engine.plans import Plan, plan_now
from clustergym.simulator.profiles.cassini_models import phases_of
from clustergym.simulator.profiles.phases import in_order
from clustergym.simulator.workloads import Workload
from clustergym.tests.support.env_terms import EQUAL_PATHS, differences

TIMESHIFT = "clustergym/TimeShift-v0"
SMALL = {"workload": "cassini-poisson:jobs=16,load=1.0,iteration_s=0.8", "slots": 8, "running_slots": 12}
PLACING, SHIFTING = "1: place", "1: shift"
SHIFT, LEAVE, FREE = 1, 2, 3
VGG = phases_of("VGG16", 2, 1400)
APART, NEAR = ((0, 3), (1, 4), (2, 5)), ((0, 1), (3, 4), (2, 5))
DOWN_S, UP_S = VGG.start_s[0], VGG.duration_s[0]


class TwoWays:
    """Proposes to place the waiting jobs, of two GPUs, across both leaves, or as near as servers are free."""

    def candidates(self, view, n):
        return [placed(view, APART), placed(view, NEAR)][:n]


def placed(view, ways):
    """The plan that gives each waiting job the first of `ways` that is free."""
    gangs, free = dict(plan_now(view).gangs), set(view.free_gpus.tolist())
    for job in view.queue.tolist():
        for pair in ways:
            if free.issuperset(pair):
                gangs[job] = pair
                free.difference_update(pair)
                break
    return Plan(gangs)


def timeshift(**options):
    return gymnasium.make(TIMESHIFT, **{**SMALL, **options}).unwrapped


def by_hand(jobs, **options):
    """Six servers under two leaves (0 to 2, 3 to 5) and one spine; jobs of VGG16 on two GPUs, (arrival, iterations)."""
    arrival_s, iterations = (np.array(column) for column in zip(*jobs, strict=True))
    workload = Workload.from_arrays(
        "by hand",
        arrival_s,
        np.full(len(jobs), 2),
        iterations * VGG.iteration_s,
        iterations=iterations,
        iteration_s=np.full(len(jobs), VGG.iteration_s),
        model=np.array(["VGG16"] * len(jobs), object),
        batch_size=np.full(len(jobs), 2800),
    )
    topology = "leaf-spine:leaves=2,spines=1,machines=3"
    env = timeshift(**{"topology": topology, "workload": workload, "scheduler": TwoWays(), **options})
    env.reset(seed=0)
    return env


def place_apart(env):
    """Two jobs from leaf to leaf: on servers 0 and 3, and on 1 and 4; they meet on the links of the spine."""
    assert stage(env) == PLACING
    observation, *_ = env.step((1, 0))
    assert [env.view.gpus_of(job) for job in (0, 1)] == [[0, 3], [1, 4]] and stage(env) == SHIFTING
    return observation


def turning(env):
    """The jobs whose shift is still to be chosen."""
    m = env.interface.memory
    return m["turning"][: m["n_turning"]].tolist()


def stage(env):
    return SHIFTING if turning(env) else PLACING


def meetings(env):
    """Where jobs meet, as the environment knows it: {jobs of a component: their periods, flows on its vertices}."""
    m, found = env.interface.memory, {}
    for component in range(m["n_components"]):
        (at,) = np.nonzero(m["component"][: m["n_placed"]] == component)
        flows = m["flows"][at][:, m["vertex_link"][: m["n_vertices"]]]
        found[tuple(m["job"][at].tolist())] = (m["perimeter_s"][at] / m["iterations"][at]).tolist(), flows.tobytes()
    return found


def legal(env):
    return np.flatnonzero(env.action_masks()[: env.action_space.nvec[0]]).tolist()


def test_policies_that_tune_workers_play_under_the_default_and_under_those_that_do_so():
    for options in ({}, {"scheduler": "themis"}):
        env = timeshift(**options)
        env.reset(seed=0)
        assert not env.step(env.act_of(policies.make("themis")))[4]["invalid_action"]
    env = timeshift(scheduler="dally+cassini")
    env.reset(seed=0)
    with pytest.raises(InputError, match=r"^policy themis tunes the number of workers: expected an environment with"):
        env.act_of(policies.make("themis"))
    for word, needed in (("ideal", "mode=dedicated"), ("themis+crux:workers=fixed", "rates=crux")):
        with pytest.raises(InputError, match=rf"^policy {re.escape(word)}: expected network='contention:{needed}'$"):
            env.act_of(policies.make(word))


def test_in_lockstep_both_jobs_send_at_the_same_time():
    """45 Gbps are wanted twice of links of 50: 1.8 times longer Up phases, in every iteration."""
    env = by_hand([(0, 100), (0, 100)])
    place_apart(env)
    *_, terminated, _, info = env.step((0, 0))
    assert terminated
    assert info["metrics"]["makespan"] == pytest.approx(100 * (DOWN_S + 1.8 * UP_S), rel=1e-6)
    assert info["metrics"]["congestion_bytes"] > 0.0


def test_half_a_turn_apart_no_job_waits():
    env = by_hand([(0, 100), (0, 100)])
    place_apart(env)
    assert turning(env) == [0, 1]
    env.step((SHIFT, 0))
    env.step((SHIFT, 36))
    *_, terminated, _, info = env.step((0, 0))  # the first has ended; the other meets no job
    assert terminated and info["metrics"]["congestion_bytes"] == 0.0
    assert env.simulator.jobs()["finish_s"].tolist() == pytest.approx([100 * VGG.iteration_s, 100.5 * VGG.iteration_s])


def test_rotations_are_what_each_bucket_would_come_to():
    """Of the second job, the first one being shifted by 0: one less the compatibility score of the links they share."""
    env = by_hand([(0, 100), (0, 100)])
    place_apart(env)
    observation, *_ = env.step((SHIFT, 0))
    overlay = Overlay.of([VGG, VGG], unify([VGG.iteration_s] * 2), [SharedLink((0, 1), (1, 1), 50e9 / 8)], Grid())
    expected = [1.0 - link_scores(overlay, [0, step])[0] for step in range(BUCKETS)]
    assert observation["rotations"] == pytest.approx(expected, abs=1e-6)
    assert observation["rotations"].min() == 0.0 < observation["rotations"][0]


@pytest.mark.parametrize("padding", [0.0, 0.01, 0.2])
def test_the_observation_turns_the_circles_of_the_simulator(padding):
    """Whatever the padding: in every decision the periods of a component are those that a shift would have now."""
    env, policy = timeshift(network=f"contention:padding={padding}"), policies.make("random")
    env.reset(seed=0)
    decisions, ended = 0, False
    while not ended:
        action = policy.act(env)
        for jobs, (periods_s, _) in meetings(env).items() if stage(env) == SHIFTING else ():
            assert periods_s == [env.simulator.network.period_s(env.simulator, job) for job in jobs]
            decisions += 1
        *_, terminated, truncated, _ = env.step(action)
        ended = terminated or truncated
    assert decisions > 10


def test_circles_of_another_padding_are_not_remembered():
    """100 and 119 ms: 24 around with one padding, one and one with the other."""
    phases = [in_order([(seconds - 0.05, 0.0), (0.05, 5e9)]) for seconds in (0.1, 0.119)]
    places = {job: Place(one, LinkUse(np.array([0]), np.array([1]))) for job, one in enumerate(phases)}
    found = [SharedLinks(places, np.array([6.25e9]), padding).components[0].circle for padding in (0.01, 0.2)]
    assert found[1].circle.iterations == (1, 1) != found[0].circle.iterations


def test_the_stages_of_an_instant():
    env = by_hand([(0, 100), (0, 50), (40, 10)])
    observation = place_apart(env)
    assert legal(env) == [0, SHIFT, LEAVE]
    assert observation["cluster"][CLUSTER.placing] == 0.0
    env.step((SHIFT, 10))
    assert turning(env) == [1]
    env.step((LEAVE, 5))  # its shift stays as it is: it has none
    # The shorter one ends; the other meets no job any more, but has a shift, which may be taken away.
    assert env.view.running.tolist() == [0] and turning(env) == [0]
    assert env.view.shift_s(0) == bucket_s(10, VGG.iteration_s) and env.view.shift_s(1) is None
    assert legal(env) == [0, SHIFT, LEAVE, FREE]
    env.step((FREE, 0))
    assert env.view.shift_s(0) is None


def test_no_more_now_leaves_the_shifts_of_the_others():
    env = by_hand([(0, 100), (0, 50), (40, 10)])
    place_apart(env)
    env.step((SHIFT, 10))
    before = env.view.now_s
    env.step((0, 0))
    assert env.view.now_s > before and env.view.shift_s(1) is None


def test_shifts_are_asked_for_where_a_component_has_changed():
    """Two jobs that come later: one is left waiting, which touches no job; then one joins the two that run."""
    env = by_hand([(0, 1000), (0, 1000), (10, 1000), (20, 1000)])
    place_apart(env)
    env.step((0, 0))
    assert env.view.now_s == 10.0 and stage(env) == PLACING and legal(env) == [0, 1]
    env.step((0, 0))
    assert env.view.now_s == 20.0 and stage(env) == PLACING
    env.step((1, 0))  # on servers 2 and 5: no others are free
    assert env.view.gpus_of(2) == [2, 5] and turning(env) == [0, 1, 2]


def test_shifts_are_asked_for_where_a_link_has_come_to_carry_less(tmp_path):
    """The cable that the two meet on is at half from 5 s on: the player is asked, and rotations are others."""
    path = tmp_path / "links.csv"
    path.write_text("time_s,from,to,scale\n5,leaf0,spine0,0.5\n")
    env = by_hand([(0, 1000), (0, 1000)], network=f"contention:degraded={path}")
    before = place_apart(env)["rotations"]
    observation, *_ = env.step((0, 0))
    assert env.view.now_s == 5.0 and turning(env) == [0, 1]
    assert observation["rotations"].max() > before.max()


@pytest.mark.parametrize("routes", ["table", "least"])
def test_shifts_are_asked_for_where_flows_have_changed(routes):
    """A job that keeps its GPUs may meet the same jobs on other links: paths avoid what is down."""
    words = f"routes={routes},link_mtbf_s=4000,link_mttr_s=400"
    workload = f"{SMALL['workload']},gangs=3/4"
    env = timeshift(topology=EQUAL_PATHS, network=f"contention:{words}", workload=workload, scheduler="themis")
    moved, seeds = 0, iter(range(6))
    while not moved:
        env.reset(seed=next(seeds))
        known, now_s, terminated = {}, -1.0, False
        while not terminated:
            if stage(env) == SHIFTING and env.view.now_s > now_s:
                now_s, met = env.view.now_s, meetings(env)
                found = {tuple((job, *env.view.gpus_of(job)) for job in jobs): met[jobs][1] for jobs in met}
                for gangs, flows in found.items():
                    if known.get(gangs, flows) != flows:
                        moved += 1
                        assert {job for job, *_ in gangs} <= set(turning(env))
                known = found
            offers = int(env.interface.memory["n_offers"])
            *_, terminated, _, _ = env.step((min(1, offers), 0) if stage(env) == PLACING else (2, 0))


def test_a_bucket_out_of_range_becomes_the_nearest():
    env = by_hand([(0, 100), (0, 100), (1000, 1)])
    place_apart(env)
    assert env.step((SHIFT, 99))[-1]["adjusted_action"] and env.view.shift_s(0) == bucket_s(71, VGG.iteration_s)
    info = env.step((LEAVE, 99))[-1]
    assert not info["adjusted_action"] and not info["invalid_action"]


@pytest.mark.parametrize("name", [name for name in policies.list("TimeShift") if name.endswith("+cassini")])
def test_shifting_policies_do_so_in_turns_of_the_environment(name):
    seen = differences(TIMESHIFT, partial(policies.make, name), lambda env, action: (stage(env), int(action[0])))[1]
    assert (SHIFTING, SHIFT) in seen


@pytest.mark.parametrize(
    ("word", "options"),
    [
        ("themis:lease=120,preemption_cost=30", {}),
        ("themis+cassini:candidates=3,ranking=worst", {"candidates": 3}),
        ("sjf-bsbf+cassini", {"jobs_per_gpu": 2, "interference": "constant:xi=1.1"}),
        ("dally+cassini", {"network": "contention:pacing=off"}),
    ],
)
def test_with_parameters_too(word, options):
    assert differences(TIMESHIFT, partial(policies.make, word), **options)[0] == []


@pytest.mark.parametrize("word", ["themis+cassini", "themis+cassini:workers=fixed,equal=locality", "pollux+cassini"])
def test_where_cassini_turns_jobs_an_agent_places_them_and_no_more(word):
    """A policy with CASSINI's shifts does there what it does alone, in steps that place."""
    differ, seen = differences(
        TIMESHIFT, partial(policies.make, word), lambda env, action: (stage(env), int(action[1])), shifts="cassini"
    )
    assert differ == [] and set(seen) == {(PLACING, 0)}


def test_where_cassini_turns_jobs_it_turns_those_of_any_placement():
    """Two jobs across the spine, the second some while after the first: turned they hardly meet, unturned they do."""
    ends_s = {}
    for shifts in ("cassini", "asked"):
        env = by_hand([(0.0, 400), (1.0, 400)], shifts=shifts)
        ended, steps = False, 0
        while not ended:
            *_, ended, _, info = env.step((1, 0) if stage(env) == PLACING else (0, 0))
            steps += 1
        assert steps == (2 if shifts == "cassini" else 3)
        ends_s[shifts] = info["metrics"]["makespan"]
    alone_s = 1.0 + 400 * VGG.iteration_s
    assert alone_s <= ends_s["cassini"] < 1.02 * alone_s < ends_s["asked"]


@pytest.mark.parametrize(
    ("word", "is_known"), [("themis+cassini:workers=fixed,equal=locality", True), ("dally+cassini", False)]
)
def test_lessons_are_what_an_agent_sees_and_can_do(word, is_known):
    """An imitator of a policy sees what is there without it, and learns only what the scheduler proposes too."""
    env, policy = timeshift(observation="flat"), policies.make(word)
    known_at_all = []
    for seed in range(6):
        seen, _ = env.reset(seed=seed)
        action, features, known = env.demonstration(policy)
        known_at_all.append(known)
        assert env.action_masks()[action[0]]
        assert not known or np.array_equal(features, seen)
        assert not env.step(action)[4]["invalid_action"]
    assert all(known_at_all) if is_known else not all(known_at_all)


def test_a_shift_that_is_no_bucket_is_one_sentence():
    class Odd(policies.Policy):
        def decide(self, view):
            s = view._simulator.state
            if len(view.queue):
                return Start(int(view.queue[0]), view.free_gpus[[0, 3] if s.running == 0 else [0, 2]])
            return Shift(0, 0.01) if view.shift_s(0) != 0.01 else Advance()

    env = by_hand([(0, 100), (0, 100)])
    policy = Odd()
    env.step(policy.act(env))
    with pytest.raises(InvalidDecision, match="expected one of 72 even parts of its period"):
        policy.act(env)


def test_a_wheel_turns_as_the_overlay_of_the_simulator():
    """Three jobs of different periods on two links, at rotations drawn at random."""
    rng = np.random.default_rng(3)
    phases = tuple(in_order([(0.1, 0.0), (0.05, 4e9), (0.05, 0.0), (up_s, 5e9)]) for up_s in (0.1, 0.04, 0.2))
    flows = np.array([[1, 2, 0], [1, 1, 1]])
    capacity = np.array([6.25e9, 6.25e9])
    places = {
        job: Place(phases[job], LinkUse(np.flatnonzero(flows[:, job]), flows[flows[:, job] > 0, job]))
        for job in range(3)
    }
    (component,) = SharedLinks(places, capacity).components
    circle = unify([one.iteration_s for one in phases])
    links = [SharedLink((0, 1), (1, 2), 6.25e9), SharedLink((0, 1, 2), (1, 1, 1), 6.25e9)]
    overlay, unified_circle = Overlay.of(phases, circle, links, Grid()), UnifiedCircle(component)
    for _ in range(20):
        steps = [int(rng.integers(len(shifts))) for shifts in overlay.shifts]
        turned = np.array([shifts[step] for shifts, step in zip(overlay.shifts, steps, strict=True)])
        expected = 1.0 - link_scores(overlay, steps)
        assert unified_circle.links_at(turned) == pytest.approx(expected, abs=1e-9)


def test_links_with_the_same_jobs_are_one():
    phases = in_order([(0.1, 0.0), (0.1, 5e9)])
    places = {job: Place(phases, LinkUse(np.array([0, 1, 2 + job]), np.array([1, 2, 1]))) for job in range(3)}
    meetings = SharedLinks(places, np.full(5, 6.25e9))
    (component,) = meetings.components
    assert component.links == (1,)


def test_pictures_show_links_and_circles():
    pytest.importorskip("PIL")
    from clustergym.envs.rendering.pictures.circles import VARIANTS
    from clustergym.envs.rendering.pictures.network_picture import load_colour
    from clustergym.envs.rendering.scenes.link_scene import read_network

    env = by_hand([(0, 100), (0, 100), (1000, 1)], render_mode="rgb_array")
    empty = env.render()
    place_apart(env)
    env.step((SHIFT, 0))
    env.simulator.apply(Shift(1, bucket_s(36, VGG.iteration_s)))
    network = read_network(env.simulator)
    crossing = network.crossing
    assert crossing.jobs == (0, 1) and crossing.link in {
        "leaf0->spine0",
        "spine0->leaf1",
        "leaf1->spine0",
        "spine0->leaf0",
    }
    assert crossing.scores[0] < crossing.scores[1] == 1.0 and len(VARIANTS) == len(crossing.use)
    at_once, turned = (sent.sum(axis=1).max() for _, sent in crossing.use)
    assert at_once == pytest.approx(50e9 / 8, rel=1e-6) and turned == pytest.approx(45e9 / 8, rel=1e-6)
    picture = env.render()
    assert (
        picture.shape == empty.shape == (640, 960, 3)
        and picture.dtype == np.uint8
        and not np.array_equal(picture, empty)
    )
    fullest = np.array(load_colour(float(network.load.max())))
    assert (picture == fullest).all(axis=2).any()
    assert "links 4 of" in draw_ansi(env.simulator) and "1.00 as they are turned" in draw_ansi(env.simulator)


MALFORMED = {
    "disconnected": (("a", "s"), ("b", "t"), {}, "reach"),
    "negative capacity": (("a", "s"), ("b", "s"), {"capacity_gbps": -5}, "capacity_gbps = -5"),
    "unknown node": (("a", "s"), ("c", "s"), {}, "'c'"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_topology_is_one_sentence(name):
    *edges, changes, part = MALFORMED[name]
    nodes = [{"id": "a", "gpus": 1}, {"id": "b", "gpus": 1}, {"id": "s"}, {"id": "t"}]
    if name != "disconnected":
        nodes.pop()
    listed = [{"source": source, "target": target, "capacity_gbps": 50, **changes} for source, target in edges]
    with pytest.raises(InputError) as error:
        timeshift(topology={"nodes": nodes, "edges": listed})
    assert part in str(error.value) and "\n" not in str(error.value)
