"""What holds in job groups, whatever is decided: machines, counts, work, memory, order, the same bits again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustergym.simulator.base.codes import SIZED
from clustergym.simulator.base.decisions import Advance, AssignGroup
from clustergym.simulator.groups.group_config import GroupTerms
from clustergym.tests.support import random_groups
from clustergym.tests.support.drawn import calm
from clustergym.tests.support.invariants import check_end_of_groups as check_end
from clustergym.tests.support.invariants import check_groups as check_record
from clustergym.tests.support.paths import SUPPORT
from clustergym.tests.support.random_groups import (
    MOST_DECISIONS,
    any_decision,
    finish,
    group_simulator,
    play,
    ps_workload,
    random_simulator,
)

SCRIPT = SUPPORT / "random_groups.py"
SEEDS = st.integers(0, 100_000)


class Held:
    """Machine-seconds of groups, from the log of how many machines they had when."""

    def __init__(self, simulator):
        self.simulator, self.size, self.since_s, self.total = simulator, defaultdict(int), 0.0, 0.0

    def note(self):
        """Read the log of the instant that is about to be closed."""
        s = self.simulator.state
        for i in range(s.log_count):
            if s.log_kind[i] == SIZED:
                group, machines = s.log_gpu[s.log_first[i] : s.log_first[i] + 2]
                self._pass(float(s.log_time_s[i]))
                self.size[int(group)] = int(machines)

    def until(self, now_s):
        self._pass(now_s)
        return self.total

    def _pass(self, now_s):
        self.total += (now_s - self.since_s) * sum(self.size.values())
        self.since_s = now_s


def played(simulator, rng, look):
    """Random decisions, then to the end; `look` sees every state."""
    now_s = simulator.state.now_s
    for _ in range(MOST_DECISIONS):
        if simulator.ended:
            return
        decision = any_decision(simulator.view, rng)
        look(simulator, decision)
        simulator.apply(decision)
        assert simulator.state.now_s >= now_s
        now_s = simulator.state.now_s
    finish(simulator)


@calm(80)
@given(SEEDS)
def test_whatever_is_decided_machines_jobs_work_and_memory_add_up(seed):
    """At every decision, with failures, moves, naive groups and asked spills; each job ends once, with all its work."""
    simulator, rng = random_simulator(seed), np.random.default_rng(seed)

    def look(simulator, decision):
        check_record(simulator)

    played(simulator, rng, look)
    check_record(simulator)
    check_end(simulator)


@calm(40)
@given(SEEDS)
def test_machine_seconds_of_groups_are_those_of_the_log(seed):
    simulator, rng = random_simulator(seed), np.random.default_rng(seed)
    simulator.state.log_on = 1
    held = Held(simulator)

    def look(simulator, decision):
        if isinstance(decision, Advance):
            held.note()

    for _ in range(MOST_DECISIONS):
        if simulator.ended:
            break
        decision = any_decision(simulator.view, rng)
        look(simulator, decision)
        simulator.apply(decision)
    s = simulator.state
    held.note()
    assert not s.log_overflow
    assert held.until(float(s.now_s)) == pytest.approx(float(s.held_integral), rel=1e-9, abs=1e-6)


@calm(60)
@given(SEEDS)
def test_subtasks_overlap_only_as_the_rule_says(seed):
    """What a group will execute: one COMP at a time, and one COMM, or two below `busy` 1; a job one subtask."""
    simulator, rng = random_simulator(seed, terms=GroupTerms()), np.random.default_rng(seed)
    seen = 0
    for _ in range(60):
        if simulator.ended:
            break
        for group in simulator.view.groups.tolist():
            record = simulator.records.tobytes()
            subtasks = simulator.subtasks(group, 200.0)
            assert simulator.records.tobytes() == record
            seen += len(subtasks)
            networks = 1 if simulator.config.groups.busy == 1.0 else 2
            assert overlap([t for t in subtasks if t.kind == "COMP"]) <= 1
            assert overlap([t for t in subtasks if t.kind != "COMP"]) <= networks
            for job in {t.job for t in subtasks}:
                own = [t for t in subtasks if t.job == job]
                assert overlap(own) == 1
                order = ["COMP", "COMM"] if simulator.config.groups.comm == "merged" else ["PULL", "COMP", "PUSH"]
                follows = {kind: order[(i + 1) % len(order)] for i, kind in enumerate(order)}
                if simulator.state.n_loading == 0 and simulator.state.n_dirty_jobs == 0:
                    assert all(b.kind == follows[a.kind] for a, b in pairwise(own))
        simulator.apply(any_decision(simulator.view, rng))
    assert seen > 0 or len(simulator.workload) < 4


def overlap(subtasks):
    """How many there are at once, at most; what begins as another ends is not beside it."""
    edges = sorted([(t.end_s, -1) for t in subtasks] + [(t.begin_s, 1) for t in subtasks])
    return int(np.max(np.cumsum([step for _, step in edges]), initial=0))


@calm(30)
@given(SEEDS)
def test_a_run_goes_on_from_a_snapshot_and_repeats_bit_for_bit(seed):
    simulator, rng = random_simulator(seed), np.random.default_rng(seed)
    snapshot, decisions = simulator.snapshot(), []
    place = int(np.random.default_rng(seed + 1).integers(60))
    for i in range(MOST_DECISIONS):
        if simulator.ended:
            break
        if i == place:
            snapshot, decisions = simulator.snapshot(), []
        decisions.append(any_decision(simulator.view, rng))
        simulator.apply(decisions[-1])
    end = simulator.records.tobytes()
    simulator.restore(snapshot)
    for decision in decisions:
        simulator.apply(decision)
    assert simulator.records.tobytes() == end
    assert play(seed) == play(seed)


def test_the_same_bits_without_compiled_code():
    count = 10
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-P", str(SCRIPT), str(count)]
    outcome = subprocess.run(command, check=True, capture_output=True, text=True, env=environment, timeout=600)
    assert json.loads(outcome.stdout) == [play(seed) for seed in range(count)]


def recorded(simulator, decisions):
    """Finish times of a run with these decisions at these places."""
    for decision in decisions:
        simulator.apply(decision)
    finish(simulator)
    return simulator.state.finish_s[: simulator.state.n_jobs].copy()


def tape(seed, **given):
    """A random run without random numbers in it: its decisions, its finish times."""
    simulator, rng, decisions = random_simulator(seed, **given), np.random.default_rng(seed), []
    for _ in range(MOST_DECISIONS):
        if simulator.ended:
            break
        decisions.append(any_decision(simulator.view, rng))
        simulator.apply(decisions[-1])
    finish(simulator)
    return simulator, decisions, simulator.state.finish_s[: simulator.state.n_jobs].copy()


def again(simulator, decisions, *, factor=1.0, shift_s=0.0):
    """The same run with all times multiplied, or later."""
    workload, ps, config = simulator.workload, simulator.workload.ps, simulator.config.groups
    changed = ps_workload(
        list(zip((ps.comp_machine_s * factor).tolist(), (ps.comm_s * factor).tolist(), strict=True)),
        workload.iterations,
        gpus=int(workload.gpus[0]),
        arrivals=workload.arrival_s * factor + shift_s,
        inputs=ps.input_bytes,
        models=ps.model_bytes,
        epochs=ps.epoch_iterations,
    )
    settings = {name: getattr(config, name) for name in ("comm", "busy", "loss", "profile_iterations", "model_error")}
    settings |= {"move_s": config.move_s * factor, "disk_mb_s": config.disk_mb_s / factor}
    other = group_simulator(
        changed, int(simulator.state.n_machines), terms=simulator.rule, seed=int(simulator.state.seed), **settings
    )
    return recorded(other, decisions)


@calm(40)
@given(SEEDS, st.sampled_from([0.25, 2.0, 1024.0]))
def test_twice_the_times_are_twice_the_finish_times_bit_for_bit(seed, factor):
    simulator, decisions, ends = tape(seed, jitter=0.0, failures=None)
    assert (again(simulator, decisions, factor=factor) == ends * factor).all()


@calm(40)
@given(SEEDS)
def test_a_run_that_begins_later_is_as_long(seed):
    """Times differ by rounding, which naive groups with a loss make grow: hence without it."""
    simulator, decisions, ends = tape(seed, jitter=0.0, loss=0.0, failures=None)
    assert again(simulator, decisions, shift_s=4096.0) == pytest.approx(ends + 4096.0, rel=1e-9)


@calm(40)
@given(SEEDS)
def test_jobs_elsewhere_change_nothing(seed):
    """A group beside up to 80 jobs that come, each on a machine of its own: another 80 decision points.

    Naive groups to the bit, for their errors would grow.
    """
    ends, rng = [], np.random.default_rng(seed)
    n, machines = int(rng.integers(1, 6)), int(rng.integers(1, 9))
    jobs = rng.uniform(1, 10, (n, 2)).tolist()
    others = np.sort(rng.uniform(0, 2000, 80)).tolist()
    naive, comm = bool(rng.random() < 0.4), str(rng.choice(["merged", "split"]))
    config = {"comm": comm, "busy": float(rng.choice([1.0, 0.8])), "loss": 0.22, "disk_mb_s": 2000.0}
    inputs = 0.0 if naive else rng.uniform(0, 60e9 * machines / n, n)
    for count in (0, 80):
        workload = ps_workload(
            [*jobs, *[(1, 1)] * count],
            [100] * n + [3] * count,
            arrivals=[0.0] * n + others[:count],
            inputs=np.concatenate([np.broadcast_to(inputs, n), np.zeros(count)]),
        )
        terms = GroupTerms("naive", False) if naive else GroupTerms()
        simulator = group_simulator(workload, machines + 80, terms=terms, **config)
        random_groups.join_one_group(simulator, machines)
        while not simulator.ended:
            for job in simulator.view.queue.tolist():
                simulator.apply(AssignGroup(job, None, 1))
            simulator.advance()
        ends.append(simulator.state.finish_s[:n].tolist())
    assert ends[1] == (ends[0] if naive else pytest.approx(ends[0], rel=1e-9))


@calm(40)
@given(SEEDS)
def test_names_of_groups_do_not_matter(seed):
    """Groups of up to three jobs, opened in one order or the other: the same finish times to the bit."""
    rng = np.random.default_rng(seed)
    groups = [rng.uniform(1, 10, (int(rng.integers(1, 4)), 2)).tolist() for _ in range(int(rng.integers(2, 5)))]
    sizes = rng.integers(1, 5, len(groups)).tolist()
    naive = GroupTerms("naive", False) if rng.random() < 0.3 else GroupTerms()
    ends = []
    for order in (range(len(groups)), reversed(range(len(groups)))):
        order = list(order)
        jobs = [job for g in order for job in groups[g]]
        simulator = group_simulator(ps_workload(jobs, 30), sum(sizes), terms=naive)
        job = 0
        for place, g in enumerate(order):
            for i in range(len(groups[g])):
                simulator.apply(AssignGroup(job, None, sizes[g]) if i == 0 else AssignGroup(job, place))
                job += 1
        while not simulator.ended:
            simulator.advance()
        found, job = {}, 0
        for g in order:
            found[g] = simulator.state.finish_s[job : job + len(groups[g])].tolist()
            job += len(groups[g])
        ends.append(found)
    assert ends[0] == ends[1]


CHAINS = [
    ("ram_gb", [32.0, 40.0, 64.0], 1e-3),  # ratios are climbed to, step by step, so not always to the best
    ("disk_mb_s", [60.0, 125.0, 500.0], 1e-9),
    ("move_s", [60.0, 30.0, 0.0], 1e-9),
    ("loss", [0.4, 0.22, 0.0], 1e-9),
]


@pytest.mark.parametrize(("name", "values", "slack"), CHAINS)
def test_better_machines_never_hurt_a_group_alone(name, values, slack):
    """More memory, faster disks, shorter moves, and less lost by meeting: 60 random groups that spill or are naive."""
    naive, helped = name == "loss", 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, machines = int(rng.integers(1, 7)), int(rng.integers(1, 33))
        comm = rng.uniform(1, 10, n)
        comp = comm * rng.lognormal(0, 0.6, n) * machines
        room = 0.0 if naive else machines * 32e9 / 1.36
        workload = ps_workload(
            list(zip(comp.tolist(), comm.tolist(), strict=True)),
            rng.integers(20, 80, n),
            gpus=machines,
            inputs=rng.dirichlet(np.ones(n)) * room * rng.uniform(0.5, 2.0),
            models=rng.dirichlet(np.ones(n)) * room * rng.uniform(0.0, 0.4),
        )
        ends = []
        for value in values:
            terms = GroupTerms("naive", False) if naive else GroupTerms()
            simulator = group_simulator(workload, machines, terms=terms, **{name: value})
            random_groups.play_one_group(simulator, machines)
            ends.append(float(simulator.state.finish_s[:n].max()))
        assert all(after <= before * (1 + slack) for before, after in pairwise(ends)), seed
        helped += ends[-1] < ends[0]
    assert helped > 20
