"""A grant where work counts in chunks (semantics.py): when it ends, what is done by then, what goes past the work."""

import math

from ..compiler.jit import kernel
from ..numerics.heap import schedule_event

MOST_CHUNKS = 5_000_000  # in one grant; where there would be more, one is too short to matter


@kernel
def plan_grant(s, job, move_s):
    """Modify `s`: set the end of a grant: the end of the job, or of the last chunk that its lease has room for.

    A chunk is `chunk` iterations per GPU, whose progress counts when it is done. The grant ends after the first chunk
    whose end is past the lease, or from whose end one GPU's share of the next chunk would be (as in the authors'
    simulator), or, of a job that is to move, after `move_s`. Chunks are added up one by one, for rounding.
    """
    gpus = s.gpus[job]
    size = s.chunk * gpus
    chunk_s = s.iteration_s[job] * size
    lease_end_s = s.leased_s[job] + s.lease_s if s.lease_s > 0.0 else math.inf
    end_s = s.since_s[job]
    left = s.iterations_left[job]
    ran_s = s.ran_s[job]
    service_gpu_s = s.service_gpu_s[job]
    is_continuous = chunk_s * MOST_CHUNKS <= min(lease_end_s - end_s, left * s.iteration_s[job])
    if is_continuous:
        room_s = max(0.0, min(lease_end_s, move_s) - end_s)
        chunk_s = min(left * s.iteration_s[job], room_s)
        size = left if chunk_s < room_s else chunk_s / s.iteration_s[job]  # by durations: sums of times are rounded
    while True:
        end_s += chunk_s
        ran_s += chunk_s
        service_gpu_s += gpus * chunk_s
        left = max(0.0, left - size)
        if left == 0.0 or end_s >= lease_end_s or end_s + chunk_s / gpus > lease_end_s or end_s > move_s:
            break
        if is_continuous:
            break
    if is_continuous and left > 0.0:
        end_s = max(end_s, min(lease_end_s, move_s))
    s.grant_left[job] = left
    s.grant_ran_s[job] = ran_s
    s.grant_service_gpu_s[job] = service_gpu_s
    s.grant_pause_s[job] = s.release_s * gpus if left == 0.0 or end_s >= lease_end_s else 0.0
    s.lease_end_s[job] = end_s
    s.planned_finish_s[job] = max(end_s, s.since_s[job] + s.iterations_left[job] * s.iteration_s[job])
    schedule_event(s, job, end_s)


@kernel
def overrun_s(s, job):
    """Seconds until now that a running job has gone on past its work, since its last chunk counts whole."""
    if s.chunk == 0.0:
        return 0.0
    return max(0.0, s.now_s - s.since_s[job] - s.iterations_left[job] * s.iteration_s[job])


@kernel
def book_grant(s, job):
    """Modify `s`: the chunks of a grant that is over count as they were planned."""
    s.iterations_left[job] = s.grant_left[job]
    s.ran_s[job] = s.grant_ran_s[job]
    s.service_gpu_s[job] = s.grant_service_gpu_s[job]
