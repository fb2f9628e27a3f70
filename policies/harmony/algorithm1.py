"""Algorithm 1 of the paper (Sec. IV-B3): grow the set of jobs, group each prefix, keep what uses the cluster best.

Departures and readings, where the paper is silent or contradicts itself:

* As printed the loop never takes the last job, and returns the grouping that failed the test: `stop="printed"`. The
  default tries all prefixes, from a single job to all, and keeps the best; beyond 200 jobs each prefix is 5 % longer
  than the last.
* "Utilisation" of line 10 is a vector; compared is u_cpu + beta u_net.
* Line 6 balances each job by itself; `balance="group"` balances their sums, in closed form.
* Jobs are sorted by iteration time where all groups have equal shares of the machines. A group takes the longest left,
  then, up to its size, whoever of the next few (as many as its size) balances it most.
* Swaps are between the most imbalanced group and the one most opposite to it, until none of theirs helps.
* The machine goes to the group whose COMP is longest beside its COMM.
* A grouping in which a group's models exceed its memory is not taken.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from ...simulator.base.errors import InputError
from .kernels.grouping import BY_GROUP, BY_JOB, schedule
from .problem import Plan, Problem

BALANCES = {"job": BY_JOB, "group": BY_GROUP}
STOPS = ("all", "printed")


class Scheduled(NamedTuple):
    """What Algorithm 1 found, and what it took."""

    plan: Plan
    prefixes: int
    swaps: int


def algorithm1(
    problem: Problem, stop: Literal["all", "printed"] = "all", balance: Literal["job", "group"] = "job"
) -> Plan:
    """The grouping that Algorithm 1 finds.

    Args:
        problem: jobs in the order in which they are taken: running, paused, profiled, each by submission.
        stop: `all` tries every prefix and keeps the best; `printed` stops at the first that is no better than the one
            before, returns that one, and never takes the last job (of one job in all, that).
        balance: what the number of groups balances: `job`, the COMP and COMM of every job; `group`, their sums.

    Returns:
        Groups in the order in which they were filled; an empty plan where no grouping is legal.

    Raises:
        InputError: another word.
    """
    return counted(problem, stop, balance).plan


def counted(problem: Problem, stop: str = "all", balance: str = "job") -> Scheduled:
    """As `algorithm1`, with the prefixes tried and the swaps made."""
    if stop not in STOPS:
        raise InputError(f"stop={stop}: expected one of {', '.join(STOPS)}")
    if balance not in BALANCES:
        raise InputError(f"balance={balance}: expected one of {', '.join(BALANCES)}")
    jobs = problem.jobs
    group_of, machines, counts = (np.zeros(size, dtype=np.int64) for size in (jobs, jobs, 2))
    ints, floats = np.zeros((10, jobs + 1), dtype=np.int64), np.zeros((7, jobs + 1))
    groups = schedule(
        problem.comp,
        problem.comm,
        problem.models_in_memory,
        int(problem.machines),
        float(problem.beta),
        float(problem.ram_bytes),
        stop == "printed",
        BALANCES[balance],
        ints,
        floats,
        group_of,
        machines,
        counts,
    )
    return Scheduled(Plan(group_of, machines[:groups].copy()), int(counts[0]), int(counts[1]))
