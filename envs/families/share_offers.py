"""Features of a start candidate: the gang in `s.gang`, with the largest sub-batch that fits there."""

import math

from ...policies.bsbf.sjf_bsbf_partners import apart_s, side_by_side_s, together_s
from ...simulator.base.codes import FREE
from ...simulator.base.tiers import NETWORK
from ...simulator.compiler.jit import kernel
from ...simulator.jobs.remaining_time import expected_end_s, known_left, weighed_left
from ...simulator.numerics.fast_log import log_from_one
from ...simulator.running.gpu_allocation import recall_gang, tier_of_gang
from ...simulator.running.iteration_time import solo_iteration_s
from ...simulator.sharing.berths import (
    excess_of,
    kind_now,
    kind_of,
    largest_sub_batch,
    memory_of,
    memory_taken,
    slowdown_now,
    slowed,
)
from ..columns import RATIO, THIRDS, TIME, Column, table
from ..window import scaled_slowdown, scaled_time

INTERFERENCE = "interference ratio, logarithmic"
MEMORY = "share of a GPU's memory"
PASSES = "passes n: log2(n) / 16"
OFFER = table(
    tier=Column("tier of the gang", THIRDS),
    slowdown=Column("slowdown of the gang with no partner, accumulation included", RATIO),
    suffered=Column("interference that it suffers there", INTERFERENCE),
    caused=Column("interference that its partners suffer, the most of them", INTERFERENCE),
    gain=Column(
        "what the pair gains by running together, of its JCT apart; the partner with the least, which decides",
        "share x: (1 + x) / 2",
    ),
    shared=Column("GPUs of the gang that are shared, of all of it"),
    partners=Column("partners", "partners p: p / (p + 1)"),
    time_left=Column(
        "run time left: there, beside its partners (start), isolated (hold), until its end (running)", TIME
    ),
    work_left=Column("most work left of a partner, alone", TIME),
    memory_left=Column("memory left on its fullest GPU", MEMORY),
    passes=Column("passes of an iteration", PASSES),
    free_after=Column("GPUs that would be free afterwards"),
    new_together=Column("time to its end if it starts now: with the partner that decides; alone without one", TIME),
    other_together=Column("time to that partner's end if it starts now", TIME),
    new_apart=Column(
        "time to its end if it starts in its whole passes when that partner has ended; alone, where there is none", TIME
    ),
    other_apart=Column("time to that partner's end if it is left alone", TIME),
)
NO_PARTNER = -1
LOG_HARSHEST = math.log(10.0)  # interference is no worse, as a feature


@kernel
def scaled_interference(factor):
    """An interference ratio as a feature."""
    return min(1.0, log_from_one(max(1.0, factor)) / LOG_HARSHEST)


@kernel
def scaled_passes(passes):
    """A number of passes, or of samples in one, as a feature."""
    return min(1.0, math.log2(passes) / 16.0)


@kernel
def describe_offer(s, w, job, offer):
    """Modify `offer`, float32 (len(OFFER),): a waiting job on `s.gang`."""
    tier = tier_of_gang(s)
    sub_batch = largest_sub_batch(s, job)
    solo_s = solo_iteration_s(s, job, tier, sub_batch)
    offer[OFFER.tier] = tier / NETWORK
    offer[OFFER.slowdown] = scaled_slowdown(solo_s / s.base_iteration_s[job])
    offer[OFFER.passes] = scaled_passes(-(-s.batch[job] // sub_batch))
    whole_s = solo_iteration_s(s, job, tier, s.sub_batch[job])
    suffered = _describe_partners(s, w, job, kind_of(s, job, sub_batch), solo_s, whole_s, offer)
    offer[OFFER.suffered] = scaled_interference(1.0 + suffered)
    offer[OFFER.time_left] = scaled_time(w, known_left(s, job) * solo_s * slowed(s, suffered))
    offer[OFFER.memory_left] = _memory_left(s, memory_of(s, job, sub_batch))


@kernel
def _describe_partners(s, w, job, kind, solo_s, whole_s, offer):
    """Modify `offer`: the partners on `s.gang`; returns by how much more than 1 they slow the job.

    An iteration takes `solo_s` alone there in the passes that fit beside them, with which the job is of `kind`, and
    `whole_s` in those that an empty GPU admits, as after a partner's end.
    """
    suffered = caused = longest_s = 0.0
    gain = 1.0
    shared = partners = 0
    decides = NO_PARTNER
    left = weighed_left(s, job)
    for i in range(s.gang_size):
        more = 0.0
        berth = s.gang[i]
        shared += s.gpu_load[berth] > 0
        for _ in range(s.jobs_per_gpu):
            other = s.gpu_job[berth]
            berth += s.gpu_slot.size
            if other <= FREE:
                continue
            more += excess_of(s, kind, kind_now(s, other))
            if _is_first(s, i, other):
                partners += 1
                own = 1.0 + excess_of(s, kind, kind_now(s, other))
                theirs = 1.0 + excess_of(s, kind_now(s, other), kind)
                left_s = weighed_left(s, other) * s.solo_s[other]
                apart = apart_s(left * whole_s, left_s)
                gained = (apart - together_s(left * solo_s, own, left_s, theirs)) / apart
                if decides == NO_PARTNER or gained < gain:
                    decides, gain = other, gained
                caused = max(caused, theirs)
                longest_s = max(longest_s, known_left(s, other) * s.solo_s[other])
        suffered = max(suffered, more)
    offer[OFFER.caused] = scaled_interference(caused)
    offer[OFFER.gain] = 0.5 + 0.5 * max(-1.0, gain) if partners > 0 else 0.5
    offer[OFFER.shared] = shared / s.gang_size
    offer[OFFER.free_after] = (s.free_gpus - (s.gang_size - shared)) / s.n_gpus
    offer[OFFER.partners] = partners / (partners + 1)
    offer[OFFER.work_left] = scaled_time(w, longest_s)
    _describe_ends(s, w, job, kind, decides, solo_s, whole_s, offer)
    return suffered


@kernel
def _describe_ends(s, w, job, kind, other, solo_s, whole_s, offer):
    """Modify `offer`: ends of a waiting job and a partner, together and one after the other (Theorem 1)."""
    left = known_left(s, job) * s.slice_slowdown
    if other == NO_PARTNER:
        offer[OFFER.new_together] = offer[OFFER.new_apart] = scaled_time(w, left * solo_s)
        offer[OFFER.other_together] = offer[OFFER.other_apart] = 0.0
        return
    own = 1.0 + excess_of(s, kind, kind_now(s, other))
    theirs = 1.0 + excess_of(s, kind_now(s, other), kind)
    left_s = known_left(s, other) * s.solo_s[other] * s.slice_slowdown
    both_s, new_s, other_s = side_by_side_s(left * solo_s, own, left_s, theirs)
    offer[OFFER.new_together] = scaled_time(w, both_s + new_s)
    offer[OFFER.other_together] = scaled_time(w, both_s + other_s)
    offer[OFFER.new_apart] = scaled_time(w, left_s + left * whole_s)
    offer[OFFER.other_apart] = scaled_time(w, left_s)


@kernel
def _is_first(s, i, other):
    for before in range(i):
        berth = s.gang[before]
        for _ in range(s.jobs_per_gpu):
            if s.gpu_job[berth] == other:
                return False
            berth += s.gpu_slot.size
    return True


@kernel
def _memory_left(s, more):
    """Share of memory left on the fullest GPU of `s.gang` with `more` bytes in use; 1 without a limit."""
    if s.gpu_memory == math.inf:
        return 1.0
    used = 0.0
    for i in range(s.gang_size):
        used = max(used, s.gpu_memory_used[s.gang[i]])
    return max(0.0, 1.0 - (used + more) / s.gpu_memory)


@kernel
def describe_wider(s, w, job, sub_batch, offer):
    """Modify `offer`, float32 (len(OFFER),): a running job that gets passes of `sub_batch` samples."""
    recall_gang(s, job)
    solo_s = solo_iteration_s(s, job, s.tier[job], sub_batch)
    left_s = max(0.0, expected_end_s(s, job) - s.now_s)
    restoring_s = min(left_s, max(0.0, s.since_s[job] - s.now_s))
    left_s = restoring_s + (left_s - restoring_s) / s.iteration_s[job] * solo_s * _slowdown_with(s, job, sub_batch)
    offer[OFFER.slowdown] = scaled_slowdown(solo_s / s.base_iteration_s[job])
    offer[OFFER.passes] = scaled_passes(-(-s.batch[job] // sub_batch))
    offer[OFFER.time_left] = scaled_time(w, left_s)
    offer[OFFER.memory_left] = _memory_left(s, memory_of(s, job, sub_batch) - memory_taken(s, job))


@kernel
def _slowdown_with(s, job, sub_batch):
    present = s.sub_batch[job]
    s.sub_batch[job] = sub_batch
    slowdown = slowdown_now(s, job)
    s.sub_batch[job] = present
    return slowdown
