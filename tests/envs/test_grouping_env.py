"""Grouping-v0: what its actions, masks and features mean; every policy through it is the simulator alone."""

from __future__ import annotations

from dataclasses import fields

import gymnasium
import numpy as np
import pytest

from clustergym.envs.grouping.columns import CANDIDATES, CLUSTER, GROUP, QUEUE
from clustergym.envs.rendering.pictures.group_picture import draw_groups
from clustergym.policies.base import Policy
from clustergym.simulator.base.decisions import Advance, AssignGroup, Hold, Preempt, SetMachines, SetSpill
from clustergym.simulator.base.errors import InputError, InvalidDecision
from clustergym.simulator.groups.group_config import GroupConfig
from clustergym.simulator.jobs.ps_jobs import PsJobs
from clustergym.simulator.workloads import Workload
from clustergym.tests.support.env_terms import TERMS, differences

GROUPING = "clustergym/Grouping-v0"
G = 3  # group slots of `by_hand`, which has three waiting and three running slots too
OPEN, PAUSE, MOVE_OUT, SWAP = 0, 0, 1 + G, 2 + G
FIRST_RUNNING, FIRST_GROUP = 1 + (1 + G) * 3, 1 + (1 + G) * 3 + (3 + G) * 3


def grouping(**options):
    return gymnasium.make(GROUPING, **options).unwrapped


def by_hand(jobs, machines=8, input_gb=0.0, model_gb=0.0, **options):
    """An environment at its first decision; jobs are (arrival, w machine-seconds, c seconds, iterations) on 8 machines.

    Nothing is loaded, so rounds begin at once.
    """
    arrival, comp, comm, iterations = (np.array(column, float) for column in zip(*jobs, strict=True))
    n = len(jobs)
    ps = PsJobs.of(comp, comm, np.full(n, input_gb * 1e9), np.full(n, model_gb * 1e9), np.ones(n, np.int64))
    iteration_s = comp / machines + comm
    workload = Workload.from_arrays(
        "by hand",
        arrival,
        np.full(n, machines),
        iterations * iteration_s,
        iterations=iterations,
        iteration_s=iteration_s,
        model=np.array(["nmf"] * n, object),
    ).with_ps(ps)
    slots = {"slots": 3, "running_slots": 3, "group_slots": G}
    env = grouping(topology=f"harmony:machines={machines}", workload=workload, move_s=0.0, **{**slots, **options})
    env.reset(seed=0)
    return env


def waiting(slot, kind, machines=0, spill=0):
    return (1 + (1 + G) * slot + kind, machines, spill)


def running(slot, kind, machines=0, spill=0):
    return (FIRST_RUNNING + (3 + G) * slot + kind, machines, spill)


def size(slot, machines=0):
    return (FIRST_GROUP + slot, machines, 0)


def legal(env):
    return np.flatnonzero(env.action_masks()[: env.action_space.nvec[0]]).tolist()


def offered(env, candidate, column):
    row = env.observe()["candidates"].reshape(-1, len(CANDIDATES))[candidate[0]]
    return float(row[column])


def change(value):
    """A change as a feature."""
    return pytest.approx(0.5 + 0.5 * value / (1.0 + abs(value)), abs=1e-6)


PAIR = [(0, 24, 2, 10), (0, 16, 3, 10)]  # G and H of the review's third hand case: sums of 5 and 5 on 8 machines


def test_a_perfect_pair_takes_five_seconds_a_round():
    """w 24 and 16, c 2 and 3 on 8 machines: sums 5 and 5. Ten rounds of each: COMM ends at 5, 10, ... and 8, 13, ..."""
    env = by_hand(PAIR)
    env.step(waiting(0, OPEN, 8))
    assert env.view.members(0) == [0] and env.view.machines_of(0) == 8 and env.view.free_machines == 0
    env.step(waiting(0, 1))
    assert env.view.members(0) == [0, 1] and env.view.cycle_s(0) == 5.0
    env.step((0, 0, 0))
    *_, terminated, _, info = env.step((0, 0, 0))
    assert terminated
    assert env.simulator.jobs()["finish_s"].tolist() == [50.0, 53.0]
    assert info["metrics"]["makespan"] == 53.0


def test_what_eq_1_predicts_is_offered():
    """Alone on 8 machines job 0 takes 5 s; with job 1, which takes 5 s alone, a round of both takes 5 s."""
    env = by_hand([*PAIR, (7, 8, 1, 5)])
    assert offered(env, waiting(0, OPEN), CANDIDATES.machines) == 1.0  # 24 / 2 = 12, and there are 8
    assert offered(env, waiting(0, OPEN), CANDIDATES.speeds) == change(1.0)
    assert offered(env, waiting(0, OPEN), CANDIDATES.use) == change(3 / 5 + 0.5 * 2 / 5)
    env.step(waiting(0, OPEN))
    join = waiting(0, 1)
    assert offered(env, join, CANDIDATES.speeds) == change(1.0)
    assert offered(env, join, CANDIDATES.use) == change(1.5 - 0.8)
    assert offered(env, join, CANDIDATES.speed) == 0.5
    assert offered(env, join, CANDIDATES.speed_now) == 0.0
    assert offered(env, join, CANDIDATES.cpu) == pytest.approx(1.0)
    assert offered(env, join, CANDIDATES.net) == pytest.approx(1.0)
    env.step(join)
    env.step((0, 0, 0))
    assert offered(env, running(0, PAUSE), CANDIDATES.speeds) == change(-1.0)
    group = env.observe()["groups"].reshape(-1, len(GROUP))[0]
    assert group[GROUP.cpu] == group[GROUP.net] == pytest.approx(1.0)


def test_the_second_part_is_the_number_of_machines():
    """0: 16 / 3 = 5.3 is 5; 9 of 8 is 8, and told."""
    for asked, taken, adjusted in ((0, 5, False), (3, 3, False), (9, 8, True)):
        env = by_hand(PAIR, machine_choices=9)
        *_, info = env.step(waiting(1, OPEN, asked))
        assert (env.view.machines_of(0), info["adjusted_action"]) == (taken, adjusted)


def test_a_group_gets_machines_once_an_instant():
    env = by_hand(PAIR)
    env.step(waiting(0, OPEN, 3))
    *_, info = env.step(size(0, 8))
    assert env.view.machines_of(0) == 8 and not info["adjusted_action"]
    assert size(0)[0] not in legal(env)
    env.step(waiting(0, 1))
    env.step((0, 0, 0))  # job 0 ends
    assert size(0)[0] in legal(env)
    env.step(size(0))
    assert env.view.machines_of(0) == 5  # 16 / 3


def test_a_job_changes_its_place_once_an_instant():
    env = by_hand(PAIR)
    env.step(waiting(0, OPEN, 4))
    env.step(waiting(0, OPEN, 4))
    assert env.view.groups.tolist() == [0, 1]
    jobs = [running(slot, kind)[0] for slot in (0, 1) for kind in (PAUSE, 1 + (1 - slot), MOVE_OUT, SWAP)]
    assert not set(jobs) & set(legal(env))


def test_a_job_makes_room_for_the_one_that_gains_most():
    """Beside w 24, c 2 the job with w 16, c 3 makes a perfect pair; the one with c 30 would be a burden."""
    env = by_hand([(0, 24, 2, 10), (0, 16, 5, 4), (5, 16, 30, 10), (5, 16, 3, 10)])
    env.step(waiting(0, OPEN, 8))
    env.step(waiting(0, 1))
    env.step((0, 0, 0))
    assert env.view.now_s == 5.0 and env.view.queue.tolist() == [2, 3]
    swap = running(1, SWAP)
    assert env.interface.decisions(swap) == [AssignGroup(3, 0), Preempt(1)]
    env.step(swap)
    assert env.view.members(0) == [0, 3] and env.view.queue.tolist() == [1, 2]


def test_the_third_part_is_the_spill_ratio():
    """4 of 16 GB are asked to lie on disk; in its own group a job stays, and gets another ratio."""
    env = by_hand(PAIR, input_gb=16.0)
    env.step(waiting(0, OPEN, 8, 3))
    assert env.simulator.state.alpha_asked[0] == 0.2
    env.step(waiting(0, 1))
    assert env.simulator.state.alpha_asked[1] == -1.0
    env.step((0, 0, 0))
    stay = running(0, 1, 0, 11)
    assert stay[0] in legal(env) and env.interface.decisions(stay) == [SetSpill(1, 1.0)]
    env.step(stay)
    assert env.simulator.state.alpha_asked[1] == 1.0 and stay[0] not in legal(env)


def test_a_ratio_that_leaves_too_much_in_memory_becomes_the_next_that_does_not():
    """400 GB x 1.36 on 8 machines of 32 GB, 256: 0.6 of it is to lie on disk, for 0.5 leaves 272."""
    env = by_hand(PAIR, input_gb=400.0, ram_gb=32.0)
    *_, info = env.step(waiting(0, OPEN, 8, 1))
    assert info["adjusted_action"] and env.simulator.state.alpha_asked[0] == 0.6


def test_numbers_can_be_left_to_the_environment():
    """What is asked for beyond the choices is what 0 stands for, and told."""
    env = by_hand(PAIR, machine_choices=0, spill_choices=1, input_gb=16.0)
    assert env.action_space.nvec.tolist() == [FIRST_GROUP + G, 1, 1]
    assert env.interface.decisions(waiting(1, OPEN, 2, 4)) == [AssignGroup(1, None, 5)]
    *_, info = env.step(waiting(1, OPEN, 2, 4))
    assert info["adjusted_action"]
    assert (env.view.machines_of(0), env.simulator.state.alpha_asked[1]) == (5, -1.0)
    *_, info = env.step(waiting(0, 1))
    assert not info["adjusted_action"]


def test_the_last_job_in_a_group_is_not_paused_for_ever():
    """With nothing to come some job must run: a single one cannot be paused, and none can wait at first."""
    env = by_hand(PAIR[:1])
    assert legal(env) == [waiting(0, OPEN)[0]]
    env.step(waiting(0, OPEN, 4))
    assert 0 in legal(env) and running(0, PAUSE)[0] not in legal(env)


def test_every_setting_of_the_simulator_is_a_keyword_argument():
    """But for the one that says so, defaults are the simulator's."""
    config = grouping().config.groups
    assert config == GroupConfig(profile_iterations=0)
    for field in fields(GroupConfig):
        value = "split" if field.name == "comm" else 2 if field.name == "profile_iterations" else 0.625
        beside = {"comm": "split"} if field.name == "pull_share" else {}
        assert getattr(grouping(**{field.name: value, **beside}).config.groups, field.name) == value


def test_work_left_is_shown_as_far_as_it_is_known():
    shown = {}
    for estimates in ("exact", "none", "lognormal:sigma=1"):
        env = by_hand(PAIR, estimates=estimates)
        shown[estimates] = float(env.observe()["queue"][QUEUE.time_left])
        assert env.observe()["cluster"][CLUSTER.times_unknown] == {"exact": 0.0, "none": 1.0}.get(estimates, 0.5)
        value = offered(env, waiting(0, OPEN), CANDIDATES.value)
        assert (value == 0.5) is (estimates == "none")
    assert shown["none"] == 0.0 and len(set(shown.values())) == 3


class Anything(Policy):
    """Draws decisions of every kind, jobs and groups several times an instant, in and beyond the window."""

    name = "anything"
    environments = (GROUPING,)

    def __init__(self, most=6):
        self.most, self._now, self._made = most, None, 0

    def decide(self, view):
        now = (view._simulator.runs, view.instant)
        if now != self._now:
            self._now, self._made = now, 0
        self._made += 1
        rng = np.random.default_rng([view.instant, self._made])
        queue, inside, groups = view.queue.tolist(), view.running.tolist(), view.groups.tolist()
        if self._made > self.most and inside:
            return Advance()
        if not inside or (queue and view.free_machines and rng.random() < 0.4):
            return AssignGroup(int(rng.choice(queue)), None, int(rng.integers(1, view.free_machines + 1)))
        job = int(rng.choice(inside))
        group = int(rng.choice(groups))
        kind = rng.integers(5)
        if kind == 0 and len(inside) > 1:
            return Preempt(job)
        if kind == 1:
            return SetSpill(job, [None, 0.9, 1.0][rng.integers(3)])
        if kind == 2:
            return SetMachines(group, int(rng.integers(1, view.machines_of(group) + view.free_machines + 1)))
        if kind == 3 and view.free_machines:
            return AssignGroup(job, None, int(rng.integers(1, view.free_machines + 1)))
        one = int(rng.choice(queue + inside))
        return AssignGroup(one, group) if view.group_of(one) != group else SetSpill(job, None)


@pytest.mark.parametrize("options", TERMS[GROUPING].settings.values(), ids=TERMS[GROUPING].settings)
def test_whatever_is_decided_is_played_exactly(options):
    different, seen = differences(
        GROUPING, Anything, lambda env, action: frozenset(map(type, env.interface.decisions(action))), **options
    )
    assert different == []
    assert frozenset().union(*seen) == {Advance, AssignGroup, Preempt, SetMachines, SetSpill}


def test_what_the_window_cannot_say_is_one_sentence():
    env = by_hand(PAIR)
    env.step(waiting(0, OPEN, 4))
    for decision, words in (
        (Hold(1, None), "no candidate of this environment stands for it"),
        (AssignGroup(1, 2), "the window does not show group 2"),
        (SetSpill(0, 0.25), "spill ratios 0, 0.1"),
        (AssignGroup(1, None, 9), "expected 1 to 8 machines"),
    ):
        with pytest.raises(InvalidDecision, match=words):
            env.interface.action(decision)


def test_groups_are_drawn_as_text_and_as_pixels():
    """w 24 and 16, c 2 and 3 on 8 machines: in each round of 5 s the CPU has 0 for 3 s and 1 for 2 s."""
    pytest.importorskip("PIL")
    env = by_hand([*PAIR, (20, 8, 1, 5)], render_mode="ansi")
    env.step(waiting(0, OPEN, 8))
    env.step(waiting(0, 1))
    env.step((0, 0, 0))
    lines = env.render().split("\n")
    assert "8/8 used" in lines[0] and "CPU 100%, network 100%" in lines[0]
    cpu, net = (line.split()[1] for line in lines if line.startswith(("  cpu", "  net")))
    assert len(cpu) == len(net) == 94 and set(cpu) == set(net) == {"0", "1"}
    assert abs(cpu.count("0") / 94 - 0.6) < 0.02 and abs(net.count("0") / 94 - 0.4) < 0.02
    assert "waiting 2[2]" in lines[-1]
    frames = [draw_groups(env.simulator) for _ in range(2)]
    assert frames[0].shape == (640, 960, 3) and np.array_equal(*frames)
    assert draw_groups(env.simulator, (640, 420)).shape == (420, 640, 3)
    empty = by_hand(PAIR)
    assert "0/8 used" in empty.as_text() and empty.as_picture().std() > 0.0
    with pytest.raises(InputError, match="size 10x10"):
        draw_groups(env.simulator, (10, 10))


def test_pictures_show_how_busy_the_machines_have_been():
    """Where there are pictures each step is looked at; in between CPU and network were as busy as the metrics tell."""
    pytest.importorskip("PIL")
    env = by_hand(PAIR, render_mode="rgb_array")
    before = env.render()
    env.step(waiting(0, OPEN, 8))
    env.step(waiting(0, 1))
    done = False
    while not done:
        _, _, done, _, info = env.step((0, 0, 0))
    past = env.simulator.meter
    assert env.render().shape == before.shape
    seen = past.over_time()
    assert len(seen.time_s) > 2 and (seen.time_s[0], seen.time_s[-1]) == (0.0, env.view.now_s)
    told = (info["metrics"]["cpu_utilisation"], info["metrics"]["network_utilisation"])
    lasted_s = np.diff(seen.time_s)
    means = [float(share[:-1] @ lasted_s) / env.view.now_s for share in (seen.cpu, seen.network)]
    assert means == pytest.approx(told)
