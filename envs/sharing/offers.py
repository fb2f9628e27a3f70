"""What a start candidate offers: the features of the gang in `s.gang`, with the largest sub-batch that fits there."""

from __future__ import annotations

import math

from ...simulator.kernels.codes import FREE
from ...simulator.kernels.jit import kernel
from ...simulator.kernels.logs import log_from_one
from ...simulator.kernels.placement import tier_of_gang
from ...simulator.kernels.sharing import excess, largest_sub_batch, memory_of
from ...simulator.network.speed import solo_iteration_s
from ...simulator.rules.estimates import known_left, weighed_left
from ...simulator.rules.pairs import apart_s, together_s
from ...simulator.tiers import NETWORK
from ..window import scaled_slowdown, scaled_time

OFFER = (
    "tier of the gang / 3",
    "slowdown of the gang with nobody beside it, accumulation included",
    "interference that it suffers there",
    "interference that its partners suffer, the most of them",
    "what the pair gains by running together, of its JCT apart: 0.5 nothing; the partner with the least",
    "GPUs of the gang that are shared, of all of it",
    "partners p: p / (p + 1)",
    "run time left: there, beside its partners (start), isolated (hold), until its end (running)",
    "most work left of a partner, alone",
    "memory left on its fullest GPU",
    "log2(passes of an iteration) / 16",
    "GPUs that would be free afterwards",
)
OFFER_COLUMNS = len(OFFER)
TIER, SOLO, SUFFERED, CAUSED, GAIN, SHARED, PARTNERS, TIME_LEFT, WORK_LEFT, MEMORY, PASSES, FREE_AFTER = range(12)
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
    """Modify `offer`, float32 (OFFER_COLUMNS,): what a waiting job would have on `s.gang`."""
    tier = tier_of_gang(s)
    sub_batch = largest_sub_batch(s, job)
    solo_s = solo_iteration_s(s, job, tier, sub_batch)
    offer[TIER] = tier / NETWORK
    offer[SOLO] = scaled_slowdown(solo_s / s.base_iteration_s[job])
    offer[PASSES] = scaled_passes(-(-s.batch[job] // sub_batch))
    suffered = _describe_partners(s, w, job, weighed_left(s, job) * solo_s, offer)
    offer[SUFFERED] = scaled_interference(1.0 + suffered)
    offer[TIME_LEFT] = scaled_time(w, known_left(s, job) * solo_s * (1.0 + suffered))
    offer[MEMORY] = _memory_left(s, job, sub_batch)


@kernel
def _describe_partners(s, w, job, new_s, offer):
    """Modify `offer`: what it says about who lies on `s.gang`; returns by how much more than 1 they slow the job."""
    suffered = caused = longest_s = 0.0
    gain = 1.0
    shared = partners = 0
    for i in range(s.gang_size):
        more = 0.0
        berth = s.gang[i]
        shared += s.gpu_load[berth] > 0
        for _ in range(s.jobs_per_gpu):
            other = s.gpu_job[berth]
            berth += s.gpu_slot.size
            if other <= FREE:
                continue
            more += excess(s, job, other)
            if _is_first(s, i, other):
                partners += 1
                own, theirs = 1.0 + excess(s, job, other), 1.0 + excess(s, other, job)
                left_s = weighed_left(s, other) * s.solo_s[other]
                apart = apart_s(new_s, left_s)
                gain = min(gain, (apart - together_s(new_s, own, left_s, theirs)) / apart)
                caused = max(caused, theirs)
                longest_s = max(longest_s, known_left(s, other) * s.solo_s[other])
        suffered = max(suffered, more)
    offer[CAUSED] = scaled_interference(caused)
    offer[GAIN] = 0.5 + 0.5 * max(-1.0, gain) if partners > 0 else 0.5
    offer[SHARED] = shared / s.gang_size
    offer[FREE_AFTER] = (s.free_gpus - (s.gang_size - shared)) / s.n_gpus
    offer[PARTNERS] = partners / (partners + 1)
    offer[WORK_LEFT] = scaled_time(w, longest_s)
    return suffered


@kernel
def _is_first(s, i, other):
    """True if `s.gang[i]` is the first GPU of the gang that another job holds."""
    for before in range(i):
        berth = s.gang[before]
        for _ in range(s.jobs_per_gpu):
            if s.gpu_job[berth] == other:
                return False
            berth += s.gpu_slot.size
    return True


@kernel
def _memory_left(s, job, sub_batch):
    """Share of memory that is left on the fullest GPU of `s.gang` once the job is there; 1 where it has no limit."""
    if s.gpu_memory == math.inf:
        return 1.0
    used = 0.0
    for i in range(s.gang_size):
        used = max(used, s.gpu_memory_used[s.gang[i]])
    return max(0.0, 1.0 - (used + memory_of(s, job, sub_batch)) / s.gpu_memory)
