"""Why a job shares GPUs with others: with whom, at which sub-batch, and what Theorem 1 of paper sjf-bsbf says."""

from __future__ import annotations

from ...simulator.base.decisions import Start
from ...simulator.rules.rule import Rule
from .mid_instant import Moment
from .order import seconds


def beside(moment: Moment, rule: Rule, start: Start) -> str:
    """Who holds the GPUs of a start already, and why that pays."""
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
    """The two sums of completion times of a pair; nothing where the job accumulates more gradients than alone."""
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
    """The row of the table of interference that holds for a job with its present sub-batch."""
    s, kinds = moment.s, moment.s["kind"][job]
    halvings = 0
    while s["kinds_by_pass"] and halvings < len(kinds) - 1 and s["own_batch"][job] >> halvings > s["sub_batch"][job]:
        halvings += 1
    return int(kinds[halvings])
