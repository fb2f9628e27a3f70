"""Start a waiting job on free GPUs, or on GPUs that it shares with running jobs, in passes of a sub-batch.

Which GPUs a candidate means is said in share_gangs.py, what it would bring in share_offers.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...policies.passes.starts import start
from ...simulator.base.arguments import check_range
from ...simulator.base.decisions import Start
from ...simulator.checks.check_gangs import check_gang
from ...simulator.compiler.jit import kernel
from ...simulator.sharing.exclusive_gpus import single_gpus
from ..window import MAX_SLOTS, waiting_candidate
from .family import Family
from .share_gangs import FIRST_FIT_KIND, FREE_KIND, PARTNER_KIND, exponent_taken, exponents_of, find_start
from .share_offers import OFFER, describe_offer

MAX_PARTNERS = 8
MOST_STARTS = PARTNER_KIND + MAX_PARTNERS
MAX_EXPONENTS = 32
OFFER_COLUMNS = len(OFFER)


@kernel
def mark(s, w, m, first):
    """Modify `w`: the starts of waiting jobs, with what they would bring."""
    w.least_exponent, w.most_exponent = MAX_EXPONENTS, 0
    for slot in range(w.waiting_shown):
        job = w.waiting_job[slot]
        here = waiting_candidate(w, slot, first)
        if s.gpus[job] <= s.free_gpus + single_gpus(s) or job == w.forced_job:
            for kind in range(PARTNER_KIND + w.partners):
                if find_start(s, w, job, kind):
                    w.legal[here + kind] = 1
                    w.can_act = 1
                    describe_offer(s, w, job, w.offer[slot, kind])
                    least, most = exponents_of(s, job)
                    admit_exponents(w, least, most)


@kernel
def admit_exponents(w, least, most):
    """Modify `w`: a legal candidate can have these exponents."""
    w.least_exponent = min(w.least_exponent, least)
    w.most_exponent = max(w.most_exponent, most)


@kernel
def write_exponents(w, mask, at):
    """Write the mask of sub-batch exponents from `at` on: the union over legal candidates."""
    most = w.n_exponents - 1
    first = min(w.least_exponent, most)
    last = min(w.most_exponent, most)
    if w.least_exponent > w.most_exponent:  # nothing can start
        first = last = 0
    for exponent in range(w.n_exponents):
        mask[at + exponent] = first <= exponent <= last


@kernel
def describe(s, w, m, slot, job, kind, shown, of, offer, to, is_new):
    """Write a start."""
    offer[to.start] = offer[to.on_free + min(kind, PARTNER_KIND)] = offer[to.takes_second] = 1.0
    for column in range(OFFER_COLUMNS):
        offer[to.tier + column] = w.offer[slot, kind, column]
    offer[to.gpus] = shown[of.gpus]


@kernel
def carry_out(s, w, m, slot, job, kind, action):
    """Modify `s`: start a job; True if another sub-batch was taken than asked for."""
    find_start(s, w, job, kind)
    nearest = exponent_taken(s, job, action[1])
    s.gpus[job] = s.gang_size  # another number only of elastic jobs
    s.sub_batch[job] = s.batch[job] >> nearest
    start(s, job)
    return nearest != action[1]


@kernel
def may_act(s, w):
    """True if a waiting job has room on GPUs that are free or hold one job."""
    room = s.free_gpus + single_gpus(s)
    fits = False
    for demand in range(s.n_classes):
        fits |= s.class_count[demand] > 0 and s.class_gpus[demand] <= room
    return fits


@kernel
def acts_beyond(s, w):
    """True if a job that waits outside the window could start: holding others brings it in.

    All jobs of a class can start, or none: first fit finds partners wherever another candidate does.
    """
    if s.waiting > w.slots:
        for demand in range(s.n_classes):
            if s.class_count[demand] > 0 and s.class_gpus[demand] <= s.free_gpus + single_gpus(s):
                job = s.queue_item[s.class_base[demand]]
                if find_start(s, w, job, FREE_KIND) or find_start(s, w, job, FIRST_FIT_KIND):
                    return True
    return False


class Sharing(Family):
    """Start on free GPUs, beside the best partners, beside those that fit first, or beside one of `partners` alone.

    A part of an action belongs to it: how often the batch is halved, of `exponents` numbers.
    """

    name, table, stands_for = "share", "queue", (Start,)
    kinds = ("on_free", "beside_best", "beside_first_fit", "beside_partner")
    is_counted = True
    fields = (
        ("partners", "i8"),
        ("n_exponents", "i8"),
        ("least_exponent", "i8"),  # of the legal candidates
        ("most_exponent", "i8"),
        ("offer", "f4", (MAX_SLOTS, MOST_STARTS, OFFER_COLUMNS)),  # of the legal starts: their features
        ("ranked_s", "f8", (MAX_PARTNERS,)),  # scratch of share_gangs.py
        ("ranked_place", "i8", (MAX_PARTNERS,)),
    )
    mark, describe, carry_out = staticmethod(mark), staticmethod(describe), staticmethod(carry_out)
    may_act, acts_beyond = staticmethod(may_act), staticmethod(acts_beyond)

    def __init__(self, partners: int, exponents: int) -> None:
        check_range("partners", partners, 0, MAX_PARTNERS)
        check_range("exponents", exponents, 1, MAX_EXPONENTS)
        self.partners, self.exponents = partners, exponents

    def set_up(self, window: Any) -> None:
        """Modify the window: its options."""
        window.partners, window.n_exponents = self.partners, self.exponents

    def count(self) -> int:
        """Starts of a waiting job."""
        return PARTNER_KIND + self.partners

    def actions_for(self, window: Any, decision: Start) -> Iterator[tuple[int, ...]]:
        """Free GPUs and all others, the likelier first, with the decision's sub-batch."""
        exponent, gpu_load = exponent_of(window, decision), window.simulator.raw.record["gpu_load"]
        others = range(FREE_KIND + 1, self.count())
        shares = any(gpu_load[gpu] > 0 for gpu in decision.gpus)
        for kind in (*others, FREE_KIND) if shares else (FREE_KIND, *others):
            yield kind, exponent

    def hint(self, window: Any, decision: Start, likely: list[Any] | None) -> str:
        """Which GPUs and sub-batches there are."""
        if likely and decision.gpus != likely[0].gpus:
            return "; give it the policy's placer, or more partners"
        return HINT_EXPONENTS if likely else ""


HINT_EXPONENTS = "; a sub-batch is the batch, halved until it fits or more often; or give it more exponents"


def exponent_of(window: Any, decision: Any) -> int:
    """How often the batch is halved by a `Start` or a `Resize`, at most as often as an action can say."""
    sub_batch = decision.sub_batch or check_gang(window.simulator, decision)[1]
    batch, exponent = int(window.simulator.raw.record["batch"][decision.job]), 0
    while batch >> exponent > sub_batch and exponent < window.parts[1] - 1:
        exponent += 1
    return exponent
