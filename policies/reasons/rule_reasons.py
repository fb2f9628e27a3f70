"""Decisions of a compiled rule with their reasons: its order, the GPUs accepted, the jobs passed over."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...simulator.base.decisions import Decision, Migrate, Preempt, Resize, Start
from ...simulator.base.tiers import MACHINE, RACK
from ...simulator.engine.view import ClusterView
from ...simulator.rules.rule import Rule
from .mid_instant import Moment
from .order import ahead_of, amount, seconds, value

FEW = 2


def reasons(view: ClusterView, rule: Rule, decisions: Sequence[Decision]) -> list[str]:
    """Reasons of a rule, one text for each decision of an instant; `view`: the cluster before the first of them."""
    moment = Moment(view)
    found = []
    for place, decision in enumerate(decisions):
        found.append(_reason(moment, rule, decision, decisions[place + 1 :]))
        moment.follow(decision)
    return found


def _reason(moment: Moment, rule: Rule, decision: Decision, coming: Sequence[Decision]) -> str:
    if isinstance(decision, Start):
        return _start(moment, rule, decision)
    if isinstance(decision, Preempt):
        return _preempt(moment, rule, decision.job, coming)
    if isinstance(decision, Migrate):
        return _migrate(moment, rule, decision, coming)
    if isinstance(decision, Resize):
        before = moment.view.sub_batch(decision.job)
        return f"partners have left: passes of {decision.sub_batch} instead of {before}"
    return ""


def _start(moment: Moment, rule: Rule, start: Start) -> str:
    parts = [value(moment, rule, start.job), accepted(moment, rule, start)]
    passed = ahead_of(moment, rule, start.job)
    if passed:
        how = "no later for it" if rule.backfills else "before it"
        told = ", ".join(f"{moment.name(job)} {refusal(moment, rule, job)}" for job in passed[:FEW])
        more = len(passed) - FEW
        parts.append(f"{how}: {told}" + (f", and {more} more wait{'s' * (more == 1)}" if more > 0 else ""))
    return "; ".join(part for part in parts if part)


def _preempt(moment: Moment, rule: Rule, job: int, coming: Sequence[Decision]) -> str:
    own = value(moment, rule, job)
    if rule.delays:  # all with ended leases bid again
        waiting = len(moment.waiting - moment.stopped)
        return f"its lease is over while {waiting} {'jobs wait' if waiting > 1 else 'job waits'}; {own}"
    for_whom = _for_whom(moment, job, coming)
    if for_whom is None:
        return own
    name, theirs = moment.name(for_whom), value(moment, rule, for_whom)
    if rule.slicing:
        return f"its slice of {seconds(rule.slicing)} is over; makes way for {name} ({theirs})"
    lease = "its lease is over; " if rule.lease else ""
    times = f", more than {rule.theta:g} times that" if rule.preempt else ""
    return f"{lease}makes way for {name} ({theirs}); its own {own}{times}"


def _migrate(moment: Moment, rule: Rule, decision: Migrate, coming: Sequence[Decision]) -> str:
    before, after = moment.gang(decision.job), moment.place(decision.gpus)
    for_whom = _for_whom(moment, decision.job, coming) if rule.preempt else None
    if for_whom is not None:
        return f"moves to {after} out of the way of {moment.name(for_whom)}: {value(moment, rule, for_whom)}"
    return f"room on {after}, instead of {moment.place(before)}"


def _for_whom(moment: Moment, job: int, coming: Sequence[Decision]) -> int | None:
    """The next job that starts on some of a job's GPUs, else the next."""
    held = set(moment.gang(job))
    starts = [one for one in coming if isinstance(one, Start) and one.job != job]
    taking = [one.job for one in starts if held.intersection(one.gpus)]
    return taking[0] if taking else starts[0].job if starts else None


TIERS = {MACHINE: "machine", RACK: "rack"}


def accepted(moment: Moment, rule: Rule, start: Start) -> str:
    """The GPUs of a start, and why the job accepts them."""
    if moment.view.jobs_per_gpu > 1 and any(moment.jobs_on(gpu) for gpu in start.gpus):
        return _beside(moment, rule, start)
    where, tier = moment.place(start.gpus), moment.tier(start.gpus)
    best = moment.best_tier(start.job)
    if rule.delays:
        return f"{where}{_by_timers(moment, rule, start.job, best, tier)}"
    if rule.margin is not None and tier > best:
        return f"{where}{_rather_than_wait(moment, rule, start.job, best, tier)}"
    if rule.placer in ("tier", "first") and tier > best:
        return f"{where}: no {TIERS[best]} has {moment.view.gpus(start.job)} free"
    return f"{where} (placer {rule.placer})" if rule.placer in ("random", "affinity") else where


def _by_timers(moment: Moment, rule: Rule, job: int, best: int, tier: int) -> str:
    if tier <= best:
        return ", the best tier for its size" if moment.view.gpus(job) > 1 else ""
    waited_s = moment.waited_s(job)
    over = [
        f"no {TIERS[better]} has room and its {TIERS[better]} timer{_timer(moment, rule, job, better)} is over"
        for better in (MACHINE, RACK)
        if best <= better < tier
    ]
    return f": {', '.join(over)} (it has waited {seconds(waited_s)})"


def _timer(moment: Moment, rule: Rule, job: int, tier: int) -> str:
    if rule.timers is not None:
        return f" of {seconds(rule.timers[tier - MACHINE])}"
    s = moment.s
    moment.view.timer_s(job, tier)  # computes a tuned timer
    waits = 2 * int(s["demand"][job]) + tier - MACHINE
    return f" of {seconds(float(s['waits_timer'][waits] * s['tuner_unit_s']))}" if s["waits_known"][waits] else ""


def _rather_than_wait(moment: Moment, rule: Rule, job: int, best: int, tier: int) -> str:
    """The end now, and after a wait for each better tier (`policies/greedy/greedy_wait.py`)."""
    if moment.s["net_models"] > 0:  # where the shape of a gang counts too
        return ": waiting for a better tier is not worth it"
    now_s, waits = _weighed(moment, job, best, tier)
    after = ", ".join(
        f"{seconds(then_s)} after waiting {seconds(wait_s)} for one {name}" for name, wait_s, then_s in waits
    )
    if not waits:
        return ", where it is no slower" if _is_as_fast(moment, job, best, tier) else ": no better tier is to have room"
    return f": done in {seconds(now_s)}, not more than {rule.margin:g} x {after}"


def _is_as_fast(moment: Moment, job: int, best: int, tier: int) -> bool:
    slowdown = moment.view.slowdown
    return all(slowdown(job, better) >= slowdown(job, tier) for better in range(best, tier))


def _weighed(moment: Moment, job: int, best: int, tier: int) -> tuple[float, list[tuple[str, float, float]]]:
    """Seconds to the end now; for each better tier its name, the wait, and seconds to the end then."""
    view = moment.view
    left_s = view.remaining_s(job)
    waits = []
    for better in (MACHINE, RACK):
        if best <= better < tier and view.slowdown(job, better) < view.slowdown(job, tier):
            wait_s = moment.soonest_s(job, better) - view.now_s
            if math.isfinite(wait_s):
                waits.append((TIERS[better], wait_s, wait_s + left_s * view.slowdown(job, better)))
    return left_s * view.slowdown(job, tier), waits


def refusal(moment: Moment, rule: Rule, job: int) -> str:
    """Why an earlier job does not start."""
    need, free = moment.view.gpus(job), moment.free
    if rule.sharing != "none" and moment.view.jobs_per_gpu > 1:
        gains = "with which sharing pays" if rule.sharing == "best-benefit" else "with room"
        return f"needs {need} GPUs, {_free(free)}, and finds too few partners {gains}"
    if need > free:
        return f"needs {need} GPUs, {_free(free)}"
    best = moment.best_tier(job)
    if rule.delays and not moment.has_room(job, best):
        offered = RACK if moment.has_room(job, RACK) else RACK + 1
        better = next((tier for tier in (MACHINE, RACK) if best <= tier < offered and _left_s(moment, job, tier)), best)
        return f"waits for one {TIERS.get(better, 'machine')}, for {_at_most(_left_s(moment, job, better))}"
    if rule.margin is not None and not moment.has_room(job, best):
        tier = RACK if moment.has_room(job, RACK) else RACK + 1
        now_s, waits = _weighed(moment, job, best, tier)
        told = [f"{seconds(then_s)} after {seconds(wait_s)} for one {name}" for name, wait_s, then_s in waits]
        return (
            f"would rather wait: done in {' or '.join(told)}, now in {seconds(now_s)}" if told else "would rather wait"
        )
    return f"finds no place of its kind (placer {rule.placer}), {_free(free)}"


def _free(free: int) -> str:
    return "1 is free" if free == 1 else f"{free} are free"


def _left_s(moment: Moment, job: int, tier: int) -> float:
    return moment.view.timer_s(job, tier) if tier <= RACK else 0.0


def _at_most(left_s: float) -> str:
    return f"{amount(left_s)} s more" if math.isfinite(left_s) else "as long as that takes"


def _beside(moment: Moment, rule: Rule, start: Start) -> str:
    """The partners of a start, its sub-batch, and the sums of Theorem 1 of paper sjf-bsbf."""
    partners = sorted({job for gpu in start.gpus for job in moment.jobs_on(gpu)})
    free = sum(not moment.jobs_on(gpu) for gpu in start.gpus)
    where = f"beside {moment.names(partners)}" + (f" and on {free} free GPUs" if free else "")
    batch = moment.view.batch(start.job)
    small = f", in passes of {start.sub_batch} of {batch}" if start.sub_batch and start.sub_batch < batch else ""
    if rule.packing:
        return f"{where}{small}: no GPU is free"
    if rule.sharing != "best-benefit":
        return f"{where}{small}: the first GPUs that hold one job and have the memory"
    sums = [words for partner in partners[:2] if (words := _sums(moment, start, partner))]
    return f"{where}{small}: {'; '.join(sums)}" if sums else f"{where}{small}"


def _sums(moment: Moment, start: Start, partner: int) -> str:
    """The two sums of completion times of a pair; empty where the job accumulates more than alone."""
    view, s = moment.view, moment.s
    if start.sub_batch is not None and start.sub_batch < view.sub_batch(start.job):
        return ""
    new_s = view.remaining_s(start.job)
    running_s = view.remaining_s(partner) * float(s["solo_s"][partner] / s["base_iteration_s"][partner])
    kinds = _kind(moment, start.job), _kind(moment, partner)
    own, theirs = float(s["xi"][kinds]), float(s["xi"][kinds[::-1]])
    both_s = min(new_s * own, running_s * theirs)
    together_s = 2.0 * both_s + (new_s - both_s / own) + (running_s - both_s / theirs)
    apart_s = 2.0 * running_s + new_s
    slower = f"{own:.3g} and {theirs:.3g} times slower"
    return (
        f"with {moment.name(partner)} both need {seconds(together_s)} in all ({slower}), {seconds(apart_s)} if it waits"
    )


def _kind(moment: Moment, job: int) -> int:
    s, kinds = moment.s, moment.s["kind"][job]
    halvings = 0
    while s["kinds_by_pass"] and halvings < len(kinds) - 1 and s["own_batch"][job] >> halvings > s["sub_batch"][job]:
        halvings += 1
    return int(kinds[halvings])
