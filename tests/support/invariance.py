"""Random workloads for every policy of every environment, and three changes that must not change what happens on them.

A policy plays in the default setting of its environment, on jobs drawn as the environment draws them and made hard:
few, crowded, some arriving in bursts, some twice, some as long as others.
"""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from clustergym.envs.registration import ENVIRONMENTS
from clustergym.experiments.playing.evaluation import simulator_of
from clustergym.experiments.settings.evaluation_setting import Setting, workload_of
from clustergym.policies import list as list_policies
from clustergym.policies import make
from clustergym.simulator.cluster.topology import Topology
from clustergym.simulator.configuration.network_choice import Contention, load_network
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.jobs.workload import COLUMNS, text_array
from clustergym.simulator.workloads import Workload

GEO_ROWS = ("level", "tenant", "recurring", "part_type", "part_units", "container_s")
UNITS = (2.0, 3.7, 1 / 7)
CLOSE = 1e-6  # relative
JOBS = (6, 28)  # of a random workload without twins: at least, and below,
ELASTIC_JOBS = (3, 8)  # and where a search is made every minute
LONGEST_S = 20_000.0  # the longest of their jobs,
CONTENDED_S = 600.0  # where every iteration is played,
ELASTIC_S = 100.0  # and in such searches
FURTHER = {  # rules apart from their defaults
    "clustergym/Delay-v0": ("greedy:preempt=on", "fifo:head=reserve", "fifo:head=conservative")
}


@dataclass(frozen=True)
class Outcome:
    """What became of the jobs: when each first started and ended, after the first arrival, its gang and last tier."""

    start_s: np.ndarray
    end_s: np.ndarray
    gang: np.ndarray
    tier: np.ndarray

    def differs(self, other: Outcome) -> str:
        """Where the other is not the same, in a few words; empty: nowhere."""
        for name in ("gang", "tier"):
            if not np.array_equal(getattr(self, name), getattr(other, name)):
                return f"{name} of {int((getattr(self, name) != getattr(other, name)).sum())} jobs"
        for name in ("start_s", "end_s"):
            one, two = getattr(self, name), getattr(other, name)
            far = ~np.isclose(one, two, rtol=CLOSE, atol=CLOSE, equal_nan=True)
            if far.any():
                job = int(np.argmax(far))
                return f"{name} of {int(far.sum())} jobs, one from {one[job]:.6f} to {two[job]:.6f}"
        return ""

    def sorted(self) -> Outcome:
        """The same jobs, in an order that does not depend on their places."""
        order = np.lexsort((self.tier, self.gang, np.round(self.end_s, 3), np.round(self.start_s, 3)))
        return Outcome(self.start_s[order], self.end_s[order], self.gang[order], self.tier[order])


def pairs() -> list[tuple[str, str]]:
    """Every environment with every policy that is registered for it, and `FURTHER`; of gangs, not of job groups.

    Those have units of their own (properties/test_group_invariants.py).
    """
    of_gangs = [env_id for env_id, entry in ENVIRONMENTS.items() if "leases" in entry.features]
    return [(env_id, policy) for env_id in of_gangs for policy in (*list_policies(env_id), *FURTHER.get(env_id, ()))]


def setting_of(env_id: str) -> Setting:
    """The default setting of an environment."""
    return Setting.of(env_id)


class Player:
    """One policy in one environment; it may be asked again and again."""

    def __init__(self, env_id: str, word: str) -> None:
        self.env_id, self.policy = env_id, make(word)
        self.simulator: Simulator = simulator_of(setting_of(env_id).config, self.policy)

    def workload(self, seed: int) -> Workload:
        """A random workload to play."""
        if self.policy.elastic:
            return workload_for(self.env_id, seed, ELASTIC_S, ELASTIC_JOBS)
        found = workload_for(self.env_id, seed, LONGEST_S if has_units(self.env_id) else CONTENDED_S)
        if self.policy.name != "replay":
            return found
        waits_s = np.random.default_rng(seed).integers(0, 3600, len(found))
        return replace(found, start_s=found.arrival_s + waits_s)

    def play(self, workload: Workload, seed: int) -> Outcome:
        """The whole run."""
        simulator = self.simulator
        simulator.reset(self.policy.workload_for(workload), seed)
        simulator.run(self.policy.decider(simulator))
        s, n = simulator.state, len(workload)
        began_s = workload.arrival_s[0]
        return Outcome(
            s.first_start_s[:n] - began_s, s.finish_s[:n] - began_s, np.array(workload.gpus), s.tier[:n].copy()
        )


@functools.lru_cache(maxsize=64)
def workload_for(env_id: str, seed: int, longest_s: float = LONGEST_S, count: tuple[int, int] = JOBS) -> Workload:
    """A random workload for an environment, no job longer than `longest_s`; the first arrives at 0 s."""
    rng = np.random.default_rng([seed, sum(map(ord, env_id))])
    setting = setting_of(env_id)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        drawn = workload_of(setting, seed if setting.is_drawn else 0)
    jobs = drawn_rows(drawn, rng.permutation(len(drawn))[: int(rng.integers(*count))])
    n = len(jobs)
    duration_s = jobs.duration_s * min(1.0, longest_s / jobs.duration_s.max())
    # Some take as long as others, or half as long: where such jobs follow each other, ends coincide.
    like = duration_s[rng.integers(0, n, n)] * rng.choice([1.0, 0.5], n)
    duration_s = np.where(rng.random(n) < 0.3, like, duration_s)
    cut = rng.choice([1.0, 1.0, 0.37, 13.0], n) if has_units(env_id) else np.ones(n)
    iteration_s = jobs.iteration_s * cut
    gpus = Topology.load(setting.topology).num_gpus
    span_s = float((jobs.gpus * duration_s).sum()) / gpus / rng.choice([0.5, 1.0, 3.0])
    arrival_s = np.sort(rng.uniform(0.0, span_s, n))
    if rng.random() < 0.4:
        arrival_s = np.floor(arrival_s / 60.0) * 60.0
    for first in np.flatnonzero(rng.random(n) < 0.25).tolist():
        arrival_s[first : first + int(rng.integers(2, 5))] = arrival_s[first]
    rows = np.concatenate([np.arange(n), rng.choice(n, n // 4)])  # a fifth has a twin
    rows = rows[np.lexsort((rng.random(len(rows)), arrival_s[rows]))]
    due_s = arrival_s + (jobs.deadline_s - jobs.arrival_s)
    return replace(
        drawn_rows(jobs, rows),
        job_id=text_array([f"job-{i}" for i in range(len(rows))]),
        arrival_s=arrival_s[rows] - arrival_s[0],
        duration_s=duration_s[rows],
        iterations=(duration_s / iteration_s)[rows],
        iteration_s=iteration_s[rows],
        deadline_s=due_s[rows] - arrival_s[0],
    )


def drawn_rows(workload: Workload, rows: np.ndarray) -> Workload:
    """The rows in this order, some perhaps twice."""
    columns = {name: getattr(workload, name)[rows] for name in COLUMNS}
    geo = None if workload.geo is None else workload.geo.take(rows)
    return Workload(workload.name, **columns, geo=geo)


def has_units(env_id: str) -> bool:
    """Whether an iteration is only a unit of work on the network of an environment."""
    return not isinstance(load_network(setting_of(env_id).network), Contention)


def in_units(workload: Workload, factor: float) -> Workload:
    """The same jobs, their work cut into `factor` times as many iterations."""
    return replace(
        workload,
        iterations=workload.iterations * factor,
        iteration_s=workload.duration_s / (workload.iterations * factor),
    )


def later(workload: Workload, seconds: float) -> Workload:
    """The same jobs, on a clock that is so many seconds ahead."""
    times = ("arrival_s", "deadline_s", "start_s")
    moved = replace(workload, **{name: getattr(workload, name) + seconds for name in times})
    if moved.geo is None or not len(moved.geo.known_s):
        return moved
    return replace(moved, geo=replace(moved.geo, known_s=moved.geo.known_s + seconds))


def exchanged(workload: Workload, rng: np.random.Generator) -> Workload:
    """The same jobs where those that are equal in every column have exchanged their ids and their places in the trace.

    All jobs have other ids, too, in another order of the alphabet.
    """
    rows = np.arange(len(workload))
    groups: dict[tuple[Any, ...], list[int]] = {}
    for row in rows.tolist():
        groups.setdefault(columns_of_row(workload, row), []).append(row)
    for group in groups.values():
        rows[group] = rng.permutation(group)
    number = rng.permutation(len(workload))
    return replace(drawn_rows(workload, rows), job_id=text_array([f"other-{i}" for i in number]))


def columns_of_row(workload: Workload, row: int) -> tuple[Any, ...]:
    """Every column of one job but its id."""
    found = tuple(getattr(workload, name)[row] for name in COLUMNS if name != "job_id")
    geo = workload.geo
    if geo is None:
        return found
    rows = tuple(np.asarray(getattr(geo, name)[row]).tobytes() for name in GEO_ROWS)
    return (*found, *rows, geo.table[geo.first[row] : geo.first[row + 1]].tobytes())
