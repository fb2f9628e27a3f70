"""Pollux (OSDI'21): goodput-optimal allocation of elastic jobs, searched anew every round.

Each round it predicts the goodput of each job on any number of GPUs, in one machine or over several, from measurements
so far (simulator/elastic/elastic.py), over that on its fair share (all GPUs / jobs, in one machine); a job that never
ran is assumed to scale perfectly, on one GPU. It searches the allocation with the best power mean of these speed-ups
(Eq. 14; exponent -1 as in the paper's evaluation; pollux_search.py). A job whose GPUs change counts for less (Sec.
4.2.1):

    max(age - cost x restarts, 0) / (age + cost)

With `adapt=off`, and under the network `contention`, jobs are not elastic: they have the GPUs and the batch of their
request, and Pollux only decides when and where they run (pollux_fixed_size.py).

Interference is avoided: no two jobs that span machines share one. Jobs stand in order of attained service, then of
arrival. Rounds of 60 s and 30 s for every start are those of the published simulator (OSDI'21 artifact).
"""

from __future__ import annotations

import math

import numpy as np

from ...simulator.base.decisions import Decision, Migrate, Preempt, Start
from ...simulator.base.errors import InputError
from ...simulator.contention.contention import Contention
from ...simulator.elastic.elastic import MOST_GPUS, TrainingRates
from ...simulator.engine.plans import Plan, decisions_of, plan_now
from ...simulator.engine.view import ClusterView
from ..planning import RoundPolicy, is_round
from ..reasons.mid_instant import MidInstant
from .pollux_fixed_size import allocations, present, stops_and_starts, take
from .pollux_search import Problem, Search


class Pollux(RoundPolicy):
    """Reallocates all jobs at every round. Jobs must be elastic: `Simulator(..., rate_provider=TrainingRates(...))`.

    With `adapt=False`, and under the network `contention`, they must not be. There it is a candidate source.

    Args:
        round: seconds between searches, > 0.
        preemption_cost: seconds without progress at every start, also of the restart penalty.
        exponent: of the power mean of speed-ups, not 0; lower is fairer.
        individuals, generations, patience: of the search (`Search`).
        adapt: True: GPUs and batches are chosen; False: a job has its request, or nothing.

    Paper: pollux, Sec. 4.2.
    """

    def __init__(
        self,
        round: float = 60.0,
        preemption_cost: float = 30.0,
        exponent: float = -1.0,
        individuals: int = 100,
        generations: int = 100,
        patience: int = 15,
        adapt: bool = True,
    ) -> None:
        super().__init__("pollux", round, preemption_cost)
        if not abs(exponent) > 0.0 or not math.isfinite(exponent):
            raise InputError(f"exponent = {exponent:g}: expected a number other than 0")
        if individuals < 2 or generations < 1 or patience < 1:
            raise InputError(
                f"individuals={individuals}, generations={generations}, patience={patience}: "
                "expected at least 2 individuals, 1 generation and a patience of 1"
            )
        self.elastic = adapt
        self.exponent = exponent
        self.bounds = {"individuals": individuals, "generations": generations, "patience": patience}

    def begin(self, view: ClusterView) -> None:
        """Forget all jobs and allocations."""
        if not self.elastic:
            _expect_asked(view)
        self._search = Search(np.random.default_rng(view.seed), **self.bounds)
        self._tables: dict[int, tuple[tuple[int, int, int], np.ndarray]] = {}

    def plan(self, view: ClusterView) -> list[Decision]:
        """Stops and starts that lead to the allocation found."""
        if isinstance(view.network, Contention):
            return decisions_of(view, self.candidates(view, 1)[0])
        if not self.elastic:
            return stops_and_starts(view, self.candidates(view, 1)[0])
        jobs, held, gpus_of = present(view)
        if not len(jobs):
            return []
        machine_of = view.topology.gpu_machine
        problem = self._problem(view, jobs, held)
        wanted = self._search.best(problem, jobs.tolist())
        changed = [row for row in range(len(jobs)) if not np.array_equal(held[row], wanted[row])]
        free = set(view.free_gpus.tolist())
        decisions: list[Decision] = []
        for job in jobs[changed].tolist():
            if job in gpus_of:
                free.update(gpus_of[job])
                decisions.append(Preempt(job))
        for row in changed:
            if wanted[row].any():
                gpus = take(free, wanted[row], machine_of)
                decisions.append(Start(int(jobs[row]), gpus))
        return decisions

    def candidates(self, view: ClusterView, n: int) -> list[Plan]:
        """Up to n equal allocations of this round, of jobs of fixed size. Raises InputError if jobs are elastic."""
        _expect_asked(view)
        if not is_round(view.now_s, self.clock.round):
            return [plan_now(view)]
        cost_s = self.clock.preemption_cost[0]
        return allocations(view, n, self.exponent, cost_s, counts_first=self.elastic, **self.bounds)

    def why(self, view: ClusterView, decision: Decision) -> str:
        """The job's GPUs in the best allocation."""
        if isinstance(decision, Start | Migrate):
            gpus = f"{len(decision.gpus)} GPUs" if len(decision.gpus) > 1 else "1 GPU"
            return f"best mean speed-up found in this round: {gpus} on {MidInstant(view).place(decision.gpus)}"
        return "best mean speed-up found in this round: other GPUs or none" if isinstance(decision, Preempt) else ""

    def _problem(self, view: ClusterView, jobs: np.ndarray, held: np.ndarray) -> Problem:
        if not isinstance(view.rate_provider, TrainingRates) or not view.rate_provider.elastic:
            raise InputError(
                "policy pollux: jobs must be elastic; give the simulator a TrainingRates that tunes, or play "
                "pollux:adapt=off, where they have what they ask"
            )
        s = view.record
        trainees = [view.trainee(int(job)) for job in jobs]
        room = view.free_by_machine + held.sum(axis=0, dtype=np.int64)
        total = int(room.sum())
        fair = min(math.ceil(total / len(jobs)), MOST_GPUS)
        most = np.array([min(trainee.most_gpus, total) for trainee in trainees])
        speedups = np.zeros((len(jobs), 2, int(most.max()) + 1))
        for row, (job, trainee) in enumerate(zip(jobs.tolist(), trainees, strict=True)):
            if trainee.fit is None:
                speedups[row, :, : most[row] + 1] = np.arange(most[row] + 1) / fair
                continue
            key, known = (trainee.versions, fair, int(most[row])), self._tables.get(job)
            if known is None or known[0] != key:
                table = trainee.goodputs(int(most[row])) / trainee.fair_goodput(fair)
                self._tables[job] = known = key, table
            speedups[row, :, : most[row] + 1] = known[1]
        # As in the published code: the share of one machine in the cluster is a speed-up of 1.
        speedups *= len(room) / total
        # To a microsecond: rounding of an age must not make equal allocations differ.
        age_s = np.round(view.now_s - s["arrival_s"][jobs], 6)
        cost_s = self.clock.preemption_cost[0]
        restarts = np.maximum(s["starts"][jobs] - 1, 0)
        kept = np.maximum(age_s - restarts * cost_s, 0.0) / np.maximum(age_s + cost_s, 1e-3)
        return Problem(held, room.astype(np.int8), most, speedups, kept, self.exponent)


def _expect_asked(view: ClusterView) -> None:
    if getattr(view.rate_provider, "elastic", False) and not isinstance(view.network, Contention):
        raise InputError(
            "policy pollux:adapt=off, or as a source of candidates: the jobs of this simulator are elastic; expected "
            "jobs that have what they ask (Sharing-v0 without elastic=True)"
        )
