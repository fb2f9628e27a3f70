"""Running jobs that hold GPUs alone: a dense, unordered list for the rule, and their gains.

Kept while a rule that shares GPUs asks for it (`s.lists`). A gain is a GPU that a running job holds alone from now on
(started on it, or left by a partner), or in smaller passes. Consecutive unread gains of a job are one entry.
"""

from ..base.codes import FREE, NOT_SHARED, RUNNING, TIMES_EXACT
from ..compiler.jit import kernel
from ..jobs.remaining_time import weighed_left
from ..record.feature_groups import gpu_of, has_berths
from .berths import kind_now, memory_taken


@kernel
def single_gpus(s):
    """How many GPUs hold exactly one job."""
    return s.busy_gpus - s.shared_gpus


@kernel
def work_left_s(s, place):
    """Seconds that the job at a place of the list still needs, if it had its GPUs to itself, as far as is known."""
    if s.known_times != TIMES_EXACT:
        job = s.alone_job[place]
        return weighed_left(s, job) * s.solo_s[job]
    return s.alone_left_s[place] - max(0.0, s.now_s - s.alone_since_s[place]) * s.alone_speed[place]


@kernel
def hold_alone(s, job, more):
    """Modify the list: `job` holds `more` GPUs alone (fewer if negative)."""
    if s.lists == 0:
        return
    s.alone[job] += more
    if more > 0:
        _gain(s, job, more)
    place = s.alone_place[job] - 1
    if place < 0:
        if s.status[job] == RUNNING:
            enlist(s, job)
    elif s.alone[job] == 0:
        _strike(s, job, place)
    else:
        s.alone_gpus[place] = s.alone[job]


@kernel
def _gain(s, job, gpus):
    s.gained_gpus += gpus
    last = (s.gains - 1) % s.gain_job.size
    if s.gains > s.gains_read and s.gain_job[last] == job:
        s.gain_gpus[last] += gpus
        return
    entry = s.gains % s.gain_job.size
    s.gain_job[entry] = job
    s.gain_gpus[entry] = gpus
    s.gains += 1


@kernel
def gain_again(s, job):
    """Modify the list: a running job is about to need less memory, and to run longer: ask it anew."""
    if s.lists and s.alone[job] > 0:
        _gain(s, job, s.alone[job])


@kernel
def enlist(s, job):
    """Modify the list: a running job that may hold GPUs alone; what is known of it is of now."""
    if s.lists == 0 or s.alone[job] == 0:
        return
    place = s.alone_place[job] - 1
    if place < 0:
        place = s.n_alone
        s.n_alone += 1
        s.alone_place[job] = place + 1
        s.alone_job[place] = job
    solo_s = s.solo_s[job]
    done = max(0.0, s.now_s - s.since_s[job]) / s.iteration_s[job]
    s.alone_gpus[place] = s.alone[job]
    s.alone_left_s[place] = (s.iterations_left[job] - done) * solo_s
    s.alone_since_s[place] = max(s.now_s, s.since_s[job])
    s.alone_speed[place] = solo_s / s.iteration_s[job]
    s.alone_kind[place] = kind_now(s, job)
    s.alone_memory[place] = memory_taken(s, job)


@kernel
def _strike(s, job, place):
    s.alone_place[job] = 0
    s.n_alone -= 1
    last = s.n_alone
    if place == last:
        return
    moved = s.alone_job[last]
    s.alone_job[place] = moved
    s.alone_place[moved] = place + 1
    s.alone_gpus[place] = s.alone_gpus[last]
    s.alone_left_s[place] = s.alone_left_s[last]
    s.alone_since_s[place] = s.alone_since_s[last]
    s.alone_speed[place] = s.alone_speed[last]
    s.alone_kind[place] = s.alone_kind[last]
    s.alone_memory[place] = s.alone_memory[last]


@kernel
def append_alone(s, job):
    """Modify `s.gang`: append the GPUs that a running job holds alone, as its gang has them, while more are needed."""
    berth = s.first_gpu[job]
    while berth != FREE and s.gang_size < s.gang.size:
        gpu = gpu_of(s, berth)
        if s.gpu_load[gpu] == 1:
            s.gang[s.gang_size] = gpu
            s.gang_size += 1
        berth = s.gpu_next[berth]


@kernel
def reset_exclusive(s):
    """Modify `s`: begin anew, for a rule that takes the cluster over."""
    if not has_berths(s) or (s.shares == NOT_SHARED and s.lists == 0):
        return
    s.alone[: s.n_jobs] = 0
    s.alone_place[: s.n_jobs] = 0
    s.n_alone = 0
    s.gains = 0
    s.gains_read = 0
    s.gained_gpus = 0
    s.class_key[:] = 0.0
    s.class_supply[:] = 0
    s.class_gains[:] = 0
    s.class_gained[:] = 0
    s.class_stretch[:, :] = 0.0
    for i in range(s.running):
        job = s.runner[i]
        berth = s.first_gpu[job]
        while berth != FREE:
            if s.gpu_load[gpu_of(s, berth)] == 1:
                hold_alone(s, job, 1)
            berth = s.gpu_next[berth]
