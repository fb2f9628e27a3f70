"""Rewards: the difference of a cost before and after each step.

| name | over the whole episode it sums to |
| --- | --- |
| `jct` | minus the mean JCT, in mean isolated run times; with a reference 1 - mean JCT / its mean JCT |
| `makespan` | minus the makespan, in units of its lower bound (all work on all GPUs) |
| `slowdown` | minus the mean slowdown (JCT / isolated run time) |
| `slo` | minus the share of jobs with a deadline that miss it; in regions, with a limit, that start late |
| `queueing` | in regions: minus the mean time without units, in mean isolated run times |

With a reference a step earns the job-seconds of the reference in the same time minus the own ones, and the last step
also the job-seconds that the reference has left. `slo` charges a job at its deadline, even if it never finishes. In
regions `level_weights` weigh `slo` and `queueing` by priority level, 0 to 6; with prices `cost_weight` and
`carbon_weight` charge each $ and each kg of CO2 beside a name; future spending of unfinished jobs is free.

The last step of a truncated episode is charged for the unfinished jobs, those still to arrive included, so that the
table above holds. At the horizon each of them ends as if it then ran alone at the best placement, or from its arrival
on; after `max_decisions` as if they did so one after another, in order of arrival, which is worse than any useful play.
If both happen at once, the horizon counts.

A function in place of a name is called once a step with the snapshots before and after it. The first step is charged
for the time before its decision: its `before` is the first arrival, without jobs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..simulator.base.arguments import numbers
from ..simulator.base.codes import DONE, HORIZON, LEVELS
from ..simulator.base.errors import InputError
from ..simulator.compiler.jit import kernel
from ..simulator.files.user_code import is_user_code, own
from ..simulator.lifecycle.lifecycle import isolated_s
from ..simulator.numerics.rounding import SAME_INSTANT
from ..simulator.record.feature_groups import has_regions
from ..simulator.regions.spent import CARBON_KG, EGRESS_COST, ENERGY_COST, STORAGE_COST, count_spent
from ..simulator.rules.orders import left_now
from ..simulator.running.deadlines import late_now
from .snapshot import Snapshot

if TYPE_CHECKING:
    from ..simulator.costs.tariff import Tariff

JCT, MAKESPAN, SLOWDOWN, SLO, QUEUEING = 0, 1, 2, 3, 4
REWARDS = {"jct": JCT, "makespan": MAKESPAN, "slowdown": SLOWDOWN, "slo": SLO}
REGION_REWARDS = {**REWARDS, "queueing": QUEUEING}
WEIGHTED = ("slo", "queueing")  # by level

Reward = Callable[[Snapshot, Snapshot], float]


@kernel
def total_cost(s, w, reference):
    """Modify the reference's counters in `w`: the growing cost whose increase a step is charged, before scaling.

    `reference`: finish times of the jobs in the reference's run, seconds, ascending; see `reference_integral`.
    """
    cost = _named_cost(s, w, reference)
    return cost + _spent_cost(s, w) if has_regions(s) else cost


@kernel
def _spent_cost(s, w):
    if w.cost_weight == 0.0 and w.carbon_weight == 0.0:
        return 0.0
    count_spent(s)
    dollars = s.spent[ENERGY_COST] + s.spent[EGRESS_COST] + s.spent[STORAGE_COST]
    return w.reward_scale * (w.cost_weight * dollars + w.carbon_weight * s.spent[CARBON_KG])


@kernel
def _named_cost(s, w, reference):
    """Modify the reference's counters in `w`: `total_cost` of the reward's name alone."""
    kind = w.reward_kind
    if kind == JCT:
        return s.active_integral - reference_integral(s, w, reference) if w.ref_on else s.active_integral
    if kind == MAKESPAN:
        return s.now_s
    if kind == SLOWDOWN:
        return s.slowdown_integral
    if kind == QUEUEING:
        return _by_level(w, s.level_waited_s)
    return _by_level(w, s.level_late) if has_regions(s) else float(late_now(s))


@kernel
def _by_level(w, sums):
    total = 0.0
    for level in range(LEVELS):
        total += w.level_weight[level] * sums[level]
    return total


@kernel
def first_cost(s, w):
    """The cost before an episode begins: the clock is at the first arrival, and nothing has been charged."""
    return s.start_s if w.reward_kind == MAKESPAN else 0.0


@kernel
def reference_integral(s, w, finish_s):
    """Modify `w`: job-seconds of the reference until now; all of them once every job is done."""
    while w.ref_arrived < s.next_arrival:
        w.ref_arrived_s += s.arrival_s[w.ref_arrived] - s.start_s
        w.ref_arrived += 1
    now_s = max(s.now_s, w.ref_end_s) if s.done == s.n_jobs else s.now_s
    while w.ref_done < w.ref_jobs and finish_s[w.ref_done] <= now_s:
        w.ref_done_s += finish_s[w.ref_done] - s.start_s
        w.ref_done += 1
    passed_s = now_s - s.start_s
    return (w.ref_arrived * passed_s - w.ref_arrived_s) - (w.ref_done * passed_s - w.ref_done_s)


@kernel
def cut_cost(s, w, reference):
    """`total_cost` of an episode that is truncated now, with the work left here and in the reference's run."""
    cost = _cost_left(s, w)
    if w.reward_kind == JCT and w.ref_on:
        cost += s.active_integral
        for job in range(s.n_jobs):
            cost += s.arrival_s[job] - s.start_s
        for place in range(w.ref_jobs):
            cost -= reference[place] - s.start_s
        return cost + _spent_cost(s, w) if has_regions(s) else cost
    return total_cost(s, w, reference) + cost


@kernel
def _cost_left(s, w):
    """The further cost of the unfinished jobs, before scaling; the head of the module gives their ends."""
    one_by_one = w.code != HORIZON
    cost, free_s, last_s = 0.0, s.now_s, s.now_s
    for job in range(s.n_jobs):
        if s.status[job] == DONE:
            continue
        from_s = max(s.now_s, s.arrival_s[job])
        start_s = max(from_s, free_s) if one_by_one else from_s
        free_s = start_s + max(0.0, left_now(s, job)) * s.base_iteration_s[job]
        last_s = max(last_s, free_s)
        if w.reward_kind == JCT:
            cost += free_s - from_s
        elif w.reward_kind == SLOWDOWN:
            cost += (free_s - from_s) / isolated_s(s, job)
        elif w.reward_kind == SLO:
            cost += _weight(s, w, job) * _will_be_late(s, job, start_s, free_s)
        elif w.reward_kind == QUEUEING:
            cost += _weight(s, w, job) * (start_s - from_s)
    return last_s - s.now_s if w.reward_kind == MAKESPAN else cost


@kernel
def _weight(s, w, job):
    return w.level_weight[s.job_level[job]] if has_regions(s) else 1.0


@kernel
def _will_be_late(s, job, start_s, end_s):
    """True if a job that continues at `start_s` and ends at `end_s` is late and has not been charged for it yet."""
    if has_regions(s):
        return s.starts[job] == 0 and start_s - s.arrival_s[job] > s.slo_s[s.job_level[job]]
    return s.deadline_s[job] > s.now_s and s.deadline_s[job] * (1.0 + SAME_INSTANT) < end_s


def reward_scale(s: np.void, w: np.void, workload: str) -> float:
    """The divisor of the increase, so that returns mean the same on any workload; InputError: no job can be charged."""
    kind = int(w["reward_kind"])
    n = int(s["n_jobs"])
    isolated_s = s["iterations"][:n] * s["base_iteration_s"][:n]
    if kind == JCT:
        return float(np.add.reduce(isolated_s))  # as `sum`, which takes twice as long to begin
    if kind == MAKESPAN:
        return float((isolated_s * s["gpus"][:n]).sum() / s["n_gpus"])
    if kind == SLOWDOWN:
        return float(n)
    if len(s["stored_bytes"]) > 1:
        level = s["job_level"][:n]
        counts = w["level_weight"][level]
        if not counts.any():
            raise InputError(f"level_weights: no job of workload {workload!r} has a level that counts")
        if kind == QUEUEING:
            return float(np.add.reduce(counts * isolated_s))
        limited = counts[np.isfinite(s["slo_s"][level])].sum()
        expected = "has a level that limits its wait; expected a level with a finite slo_s"
    else:
        limited = s["n_due"]
        expected = "has a deadline; expected deadlines=LOW/HIGH of its generator, or the column deadline_s"
    if not limited:
        raise InputError(f"reward = 'slo': no job of workload {workload!r} {expected}")
    return float(limited)


def weigh(
    window: Any,
    tariff: Tariff | None,
    reward: str | Reward,
    cost_weight: float,
    carbon_weight: float,
    level_weights: Sequence[float] | None,
) -> None:
    """Write into a window the charges for $ and kg of CO2, and the weights of levels; InputError: an invalid one."""
    if level_weights is not None:
        window.level_weight[:] = _checked_levels(level_weights, reward)
    for name, value in (("cost_weight", cost_weight), ("carbon_weight", carbon_weight)):
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise InputError(f"{name} = {value!r}: expected a finite number")
        if value and tariff is None:
            raise InputError(f"{name} = {value:g}: nothing is said of costs; expected prices, as prices='prices.csv'")
        if value and not (isinstance(reward, str) and reward in REGION_REWARDS):
            raise InputError(f"{name} = {value:g}: expected a reward of {', '.join(REGION_REWARDS)}")
    window.cost_weight, window.carbon_weight = cost_weight, carbon_weight


def _checked_levels(given: Sequence[float], reward: str | Reward) -> tuple[float, ...]:
    found = numbers("level_weights", given)
    if len(found) != LEVELS or not all(0.0 <= value < math.inf for value in found) or not any(found):
        raise InputError(f"level_weights = {given!r}: expected {LEVELS} numbers of at least 0, a level each, one above")
    if not isinstance(reward, str) or reward not in WEIGHTED:
        raise InputError(f"level_weights = {given!r}: expected a reward of {', '.join(WEIGHTED)}")
    return found


def own_reward(reward: Any) -> Reward | None:
    """The function of the argument `reward`; None: it is a name. InputError: a word `py:...` that names none."""
    if is_user_code(reward):
        return own(reward, "reward").function(2)
    return reward if callable(reward) else None


def paid(reward: Reward, before: Snapshot, after: Snapshot) -> float:
    """The value of a user's reward; InputError: it is no finite number."""
    found = reward(before, after)
    try:
        value = float(found)
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not math.isfinite(value):
        name = getattr(reward, "__name__", type(reward).__name__)
        raise InputError(f"reward {name}: it gave {found!r}; expected a finite number")
    return value
