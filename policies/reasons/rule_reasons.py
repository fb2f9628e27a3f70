"""Decisions of a compiled rule with their reasons: its order, the GPUs accepted, the jobs passed over."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...simulator.base.decisions import Decision, Migrate, Preempt, Resize, Start
from ...simulator.base.tiers import MACHINE, RACK
from ...simulator.engine.view import ClusterView
from ...simulator.rules.rule import Rule
from .mid_instant import MidInstant
from .order import ahead_of, amount, seconds, value

FEW = 2


def reasons(view: ClusterView, rule: Rule, decisions: Sequence[Decision]) -> list[str]:
    """Reasons of a rule, one text for each decision of an instant; `view`: the cluster before the first of them."""
    instant = MidInstant(view)
    found = []
    for place, decision in enumerate(decisions):
        found.append(_reason(instant, rule, decision, decisions[place + 1 :]))
        instant.follow(decision)
    return found


def _reason(instant: MidInstant, rule: Rule, decision: Decision, coming: Sequence[Decision]) -> str:
    if isinstance(decision, Start):
        return _start(instant, rule, decision)
    if isinstance(decision, Preempt):
        return _preempt(instant, rule, decision.job, coming)
    if isinstance(decision, Migrate):
        return _migrate(instant, rule, decision, coming)
    if isinstance(decision, Resize):
        before = instant.view.sub_batch(decision.job)
        return f"partners have left: passes of {decision.sub_batch} instead of {before}"
    return ""


def _start(instant: MidInstant, rule: Rule, start: Start) -> str:
    parts = [value(instant, rule, start.job), accepted(instant, rule, start)]
    passed = ahead_of(instant, rule, start.job)
    if passed:
        how = "no later for it" if rule.backfills else "before it"
        refusals = ", ".join(f"{instant.name(job)} {refusal(instant, rule, job)}" for job in passed[:FEW])
        more = len(passed) - FEW
        parts.append(f"{how}: {refusals}" + (f", and {more} more wait{'s' * (more == 1)}" if more > 0 else ""))
    return "; ".join(part for part in parts if part)


def _preempt(instant: MidInstant, rule: Rule, job: int, coming: Sequence[Decision]) -> str:
    own = value(instant, rule, job)
    if rule.delays:  # all with ended leases bid again
        waiting = len(instant.waiting - instant.stopped)
        return f"its lease is over while {waiting} {'jobs wait' if waiting > 1 else 'job waits'}; {own}"
    for_whom = _for_whom(instant, job, coming)
    if for_whom is None:
        return own
    name, theirs = instant.name(for_whom), value(instant, rule, for_whom)
    if rule.slicing:
        return f"its slice of {seconds(rule.slicing)} is over; makes way for {name} ({theirs})"
    lease = "its lease is over; " if rule.lease else ""
    times = f", more than {rule.theta:g} times that" if rule.preempt else ""
    return f"{lease}makes way for {name} ({theirs}); its own {own}{times}"


def _migrate(instant: MidInstant, rule: Rule, decision: Migrate, coming: Sequence[Decision]) -> str:
    before, after = instant.gang(decision.job), instant.place(decision.gpus)
    for_whom = _for_whom(instant, decision.job, coming) if rule.preempt else None
    if for_whom is not None:
        return f"moves to {after} out of the way of {instant.name(for_whom)}: {value(instant, rule, for_whom)}"
    return f"room on {after}, instead of {instant.place(before)}"


def _for_whom(instant: MidInstant, job: int, coming: Sequence[Decision]) -> int | None:
    """The next job that starts on some of a job's GPUs, else the next."""
    held = set(instant.gang(job))
    starts = [one for one in coming if isinstance(one, Start) and one.job != job]
    taking = [one.job for one in starts if held.intersection(one.gpus)]
    return taking[0] if taking else starts[0].job if starts else None


TIERS = {MACHINE: "machine", RACK: "rack"}


def accepted(instant: MidInstant, rule: Rule, start: Start) -> str:
    """The GPUs of a start, and why the job accepts them."""
    if instant.view.jobs_per_gpu > 1 and any(instant.jobs_on(gpu) for gpu in start.gpus):
        return _beside(instant, rule, start)
    where, tier = instant.place(start.gpus), instant.tier(start.gpus)
    best = instant.best_tier(start.job)
    if rule.delays:
        return f"{where}{_by_timers(instant, rule, start.job, best, tier)}"
    if rule.margin is not None and tier > best:
        return f"{where}{_rather_than_wait(instant, rule, start.job, best, tier)}"
    if rule.placer in ("tier", "first") and tier > best:
        return f"{where}: no {TIERS[best]} has {instant.view.gpus(start.job)} free"
    return f"{where} (placer {rule.placer})" if rule.placer in ("random", "affinity") else where


def _by_timers(instant: MidInstant, rule: Rule, job: int, best: int, tier: int) -> str:
    if tier <= best:
        return ", the best tier for its size" if instant.view.gpus(job) > 1 else ""
    waited_s = instant.waited_s(job)
    over = [
        f"no {TIERS[better]} has room and its {TIERS[better]} timer{_timer(instant, rule, job, better)} is over"
        for better in (MACHINE, RACK)
        if best <= better < tier
    ]
    return f": {', '.join(over)} (it has waited {seconds(waited_s)})"


def _timer(instant: MidInstant, rule: Rule, job: int, tier: int) -> str:
    if rule.timers is not None:
        return f" of {seconds(rule.timers[tier - MACHINE])}"
    s = instant.s
    instant.view.timer_s(job, tier)  # computes a tuned timer
    waits = 2 * int(s["demand"][job]) + tier - MACHINE
    return f" of {seconds(float(s['waits_timer'][waits] * s['tuner_unit_s']))}" if s["waits_known"][waits] else ""


def _rather_than_wait(instant: MidInstant, rule: Rule, job: int, best: int, tier: int) -> str:
    """The end now, and after a wait for each better tier (`policies/greedy/greedy_wait.py`)."""
    if instant.s["net_models"] > 0:  # where the shape of a gang counts too
        return ": waiting for a better tier is not worth it"
    now_s, waits = _weighed(instant, job, best, tier)
    after = ", ".join(
        f"{seconds(then_s)} after waiting {seconds(wait_s)} for one {name}" for name, wait_s, then_s in waits
    )
    if not waits:
        return (
            ", where it is no slower" if _is_as_fast(instant, job, best, tier) else ": no better tier is to have room"
        )
    return f": done in {seconds(now_s)}, not more than {rule.margin:g} x {after}"


def _is_as_fast(instant: MidInstant, job: int, best: int, tier: int) -> bool:
    slowdown = instant.view.slowdown
    return all(slowdown(job, better) >= slowdown(job, tier) for better in range(best, tier))


def _weighed(instant: MidInstant, job: int, best: int, tier: int) -> tuple[float, list[tuple[str, float, float]]]:
    """Seconds to the end now; for each better tier its name, the wait, and seconds to the end then."""
    view = instant.view
    left_s = view.remaining_s(job)
    waits = []
    for better in (MACHINE, RACK):
        if best <= better < tier and view.slowdown(job, better) < view.slowdown(job, tier):
            wait_s = instant.soonest_s(job, better) - view.now_s
            if math.isfinite(wait_s):
                waits.append((TIERS[better], wait_s, wait_s + left_s * view.slowdown(job, better)))
    return left_s * view.slowdown(job, tier), waits


def refusal(instant: MidInstant, rule: Rule, job: int) -> str:
    """Why an earlier job does not start."""
    need, free = instant.view.gpus(job), instant.free
    if rule.sharing != "none" and instant.view.jobs_per_gpu > 1:
        gains = "with which sharing pays" if rule.sharing == "best-benefit" else "with room"
        return f"needs {need} GPUs, {_free(free)}, and finds too few partners {gains}"
    if need > free:
        return f"needs {need} GPUs, {_free(free)}"
    best = instant.best_tier(job)
    if rule.delays and not instant.has_room(job, best):
        offered = RACK if instant.has_room(job, RACK) else RACK + 1
        better = next(
            (tier for tier in (MACHINE, RACK) if best <= tier < offered and _left_s(instant, job, tier)), best
        )
        return f"waits for one {TIERS.get(better, 'machine')}, for {_at_most(_left_s(instant, job, better))}"
    if rule.margin is not None and not instant.has_room(job, best):
        tier = RACK if instant.has_room(job, RACK) else RACK + 1
        now_s, waits = _weighed(instant, job, best, tier)
        ends = [f"{seconds(then_s)} after {seconds(wait_s)} for one {name}" for name, wait_s, then_s in waits]
        return (
            f"would rather wait: done in {' or '.join(ends)}, now in {seconds(now_s)}" if ends else "would rather wait"
        )
    return f"finds no place of its kind (placer {rule.placer}), {_free(free)}"


def _free(free: int) -> str:
    return "1 is free" if free == 1 else f"{free} are free"


def _left_s(instant: MidInstant, job: int, tier: int) -> float:
    return instant.view.timer_s(job, tier) if tier <= RACK else 0.0


def _at_most(left_s: float) -> str:
    return f"{amount(left_s)} s more" if math.isfinite(left_s) else "as long as that takes"


def _beside(instant: MidInstant, rule: Rule, start: Start) -> str:
    """The partners of a start, its sub-batch, and the sums of Theorem 1 of paper sjf-bsbf."""
    partners = sorted({job for gpu in start.gpus for job in instant.jobs_on(gpu)})
    free = sum(not instant.jobs_on(gpu) for gpu in start.gpus)
    where = f"beside {instant.names(partners)}" + (f" and on {free} free GPUs" if free else "")
    batch = instant.view.batch(start.job)
    small = f", in passes of {start.sub_batch} of {batch}" if start.sub_batch and start.sub_batch < batch else ""
    if rule.packing:
        return f"{where}{small}: no GPU is free"
    if rule.sharing != "best-benefit":
        return f"{where}{small}: the first GPUs that hold one job and have the memory"
    sums = [words for partner in partners[:2] if (words := _sums(instant, start, partner))]
    return f"{where}{small}: {'; '.join(sums)}" if sums else f"{where}{small}"


def _sums(instant: MidInstant, start: Start, partner: int) -> str:
    """The two sums of completion times of a pair; empty where the job accumulates more than alone."""
    view, s = instant.view, instant.s
    if start.sub_batch is not None and start.sub_batch < view.sub_batch(start.job):
        return ""
    new_s = view.remaining_s(start.job)
    running_s = view.remaining_s(partner) * float(s["solo_s"][partner] / s["base_iteration_s"][partner])
    kinds = _kind(instant, start.job), _kind(instant, partner)
    own, theirs = float(s["xi"][kinds]), float(s["xi"][kinds[::-1]])
    both_s = min(new_s * own, running_s * theirs)
    together_s = 2.0 * both_s + (new_s - both_s / own) + (running_s - both_s / theirs)
    apart_s = 2.0 * running_s + new_s
    slower = f"{own:.3g} and {theirs:.3g} times slower"
    both = f"with {instant.name(partner)} both need {seconds(together_s)} in all"
    return f"{both} ({slower}), {seconds(apart_s)} if it waits"


def _kind(instant: MidInstant, job: int) -> int:
    s, kinds = instant.s, instant.s["kind"][job]
    halvings = 0
    while s["kinds_by_pass"] and halvings < len(kinds) - 1 and s["own_batch"][job] >> halvings > s["sub_batch"][job]:
        halvings += 1
    return int(kinds[halvings])
