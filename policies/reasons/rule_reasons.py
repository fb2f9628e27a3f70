"""Decisions of a compiled rule with their reasons: its order, what was accepted, who was passed over and why."""

from __future__ import annotations

from collections.abc import Sequence

from ...simulator.base.decisions import Decision, Migrate, Preempt, Resize, Start
from ...simulator.engine.view import ClusterView
from ...simulator.rules.rule import Rule
from .mid_instant import Moment
from .order import ahead_of, seconds, value
from .places import accepted, refusal

FEW = 2


def reasons(view: ClusterView, rule: Rule, decisions: Sequence[Decision]) -> list[str]:
    """Why a rule decides so, one text a decision.

    Args:
        view: the cluster before the first of them.
        rule: whose pass it is.
        decisions: of one instant, as they follow each other.
    """
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
    if rule.delays:  # all whose lease is over bid again
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
    """Who starts next on some of a job's GPUs, or else next."""
    held = set(moment.gang(job))
    starts = [one for one in coming if isinstance(one, Start) and one.job != job]
    taking = [one.job for one in starts if held.intersection(one.gpus)]
    return taking[0] if taking else starts[0].job if starts else None
