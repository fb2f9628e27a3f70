"""One run on links for the tables of paper cassini: how slow jobs are, and who shares links with whom, for how long.

Two jobs meet while both have flows on a link. A link is crowded while its jobs would send more than it has if all sent
at once at the rates of their Up phases: on others nobody can be in anybody's way.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from ....simulator.cluster.routes import sharing
from ...settings.evaluation_setting import Setting
from ..case import Case, Outcome
from ..case_runs import Take

ON_LINKS = Case(
    "", Setting.of("clustergym/TimeShift-v0", "", "", "contention"), how="cassini.cassini_on_links:on_links"
)


class Meetings:
    """Seconds that jobs share links, counted while a run is played.

    Attributes:
        running_s, shared_s, crowded_s: of each job, on GPUs, on links with anybody, and on crowded ones, float64 (n,).
        partner_s: the others on its crowded links, times seconds, float64 (n,).
        together_s: seconds that two jobs, the lower number first, are on a crowded link.
    """

    def __init__(self, jobs: int) -> None:
        self.running_s, self.shared_s, self.crowded_s, self.partner_s = np.zeros((4, jobs))
        self.together_s: dict[tuple[int, int], float] = {}

    def advance(self, simulator: Any) -> None:
        """Let the simulator go on to its next decision; until then everybody stays where he is."""
        joined, capacity = simulator.network.joined(simulator), simulator.state.link_capacity
        running = simulator.view.running
        crowded = []
        for link, jobs in sharing(joined.uses).items():
            offered = 0.0
            for job in jobs:
                use = joined.uses[job]
                offered += joined.phases[job].peak * float(use.flows[use.links == link].sum())
            if offered > capacity[link]:
                crowded.append(jobs)
        since_s = float(simulator.state.now_s)
        simulator.advance()
        spent_s = float(simulator.state.now_s) - since_s
        self.running_s[running] += spent_s
        self.shared_s[[job for job, jobs in joined.component.items() if len(jobs) > 1]] += spent_s
        self.crowded_s[sorted({job for jobs in crowded for job in jobs})] += spent_s
        for first, second in {pair for jobs in crowded for pair in combinations(sorted(jobs), 2)}:
            self.together_s[first, second] = self.together_s.get((first, second), 0.0) + spent_s
            self.partner_s[[first, second]] += spent_s


def on_links(case: Case, table: str = "") -> Mapping[str, Any]:
    """Play it; arrays of shape (jobs,), in order of arrival.

    Args:
        table: hash of the file that the topology names, if it names one: a run is known by it.

    Returns:
        `slowdown`: each job's mean iteration time, over that alone with as many workers; `congestion_bytes`: its part
        of the congestion; `model`: names, without how they are parallelised; `running_s`, `shared_s`, `crowded_s`,
        `partner_s`: of `Meetings`. Of shape (pairs,): `pair_first`, `pair_second`, `pair_s`: jobs that are on a crowded
        link together, and how long. Of a compiled rule, which is not asked, there are no pairs and no seconds. One
        number: `jobs_at_once`, how many hold GPUs on average until the last has finished.
    """
    simulator, policy = case.begun()
    meetings = Meetings(len(simulator.workload))
    decider = policy.decider(simulator)
    if decider is None:
        simulator.run()
    else:
        while not simulator.ended:
            for decision in simulator.asked(decider):
                simulator.apply(decision)
            meetings.advance(simulator)
    s, workload = simulator.state, simulator.workload
    jobs = len(workload)
    rounds = s.job_rounds[:jobs]
    # Of a job that never was in the network no iterations are counted: it ran as if alone.
    alone_s = np.where(rounds > 0, s.job_alone_s[:jobs], 1.0)
    metrics, played = simulator.metrics(), simulator.jobs()
    running_s = float((played["jct_s"] - played["queueing_delay_s"]).sum())
    pairs = sorted(meetings.together_s)
    return {
        "metrics": {**metrics, "jobs_at_once": running_s / metrics["makespan"]},
        "slowdown": np.where(rounds > 0, s.job_rounds_s[:jobs], 1.0) / alone_s,
        "congestion_bytes": s.job_congestion[:jobs].copy(),
        "model": [str(name).partition("/")[0] for name in workload.model],
        "running_s": meetings.running_s,
        "shared_s": meetings.shared_s,
        "crowded_s": meetings.crowded_s,
        "partner_s": meetings.partner_s,
        "pair_first": np.array([first for first, _ in pairs], np.int64),
        "pair_second": np.array([second for _, second in pairs], np.int64),
        "pair_s": np.array([meetings.together_s[pair] for pair in pairs], np.float64),
    }


def mean_s(outcome: Outcome) -> float:
    """Mean iteration time, seconds."""
    return outcome.metrics["iteration_time_mean"]


def p99_s(outcome: Outcome) -> float:
    """99th percentile of iteration times, seconds."""
    return outcome.metrics["iteration_time_p99"]


def load(outcome: Outcome) -> float:
    """Sec. 5.1: "the average fraction of GPUs that are serving active jobs", until the last has finished, %."""
    return 100.0 * outcome.metrics["allocation_rate"]


def jobs_at_once(outcome: Outcome) -> float:
    """Jobs that hold GPUs, on average."""
    return outcome.metrics["jobs_at_once"]


def slowdown(outcome: Outcome) -> float:
    """Iteration time over that alone, mean over jobs: short iterations and long ones count alike."""
    return float(outcome["slowdown"].mean())


def slowdown_of(model: str) -> Take:
    """The same of the jobs of a model; nan: the trace has none."""

    def mean(outcome: Outcome) -> float:
        found = outcome["slowdown"][outcome["model"] == model]
        return float(found.mean()) if len(found) else float("nan")

    return mean


def slowdown_of_newcomer(model: str) -> Take:
    """The same of the last job of a model: a newcomer of a dynamic trace."""
    return lambda outcome: float(outcome["slowdown"][outcome["model"] == model][-1])


def congestion_of(model: str | None) -> Take:
    """Bytes of congestion of a model's jobs, or of all."""
    if model is None:
        return lambda outcome: float(outcome["congestion_bytes"].sum())
    return lambda outcome: float(outcome["congestion_bytes"][outcome["model"] == model].sum())


def part_of_time(name: str, model: str | None = None) -> Take:
    """Which part of the time that jobs hold GPUs they spend so, %.

    Args:
        name: `shared_s`, or `crowded_s`.
        model: of the jobs of a model; None: of all.
    """

    def part(outcome: Outcome) -> float:
        mine = np.ones(len(outcome["model"]), bool) if model is None else outcome["model"] == model
        running_s = outcome["running_s"][mine].sum()
        return 100.0 * float(outcome[name][mine].sum() / running_s) if running_s > 0 else float("nan")

    return part


def partners(outcome: Outcome) -> float:
    """How many others are on a job's crowded links, on average over the time that it is on such; nan: never."""
    crowded_s = outcome["crowded_s"].sum()
    return float(outcome["partner_s"].sum() / crowded_s) if crowded_s > 0 else float("nan")
