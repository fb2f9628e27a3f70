"""Running jobs that a job may stop, and its choice among them.

They stand behind it in the order and have no running lease. They are given up worst first; then, best first, those not
needed keep their GPUs.
"""

from ...simulator.compiler.jit import kernel
from ...simulator.lifecycle.lifecycle import preempt
from ...simulator.rules.orders import has_levels, is_leased, key_now, lease_is_over, running_key
from ...simulator.running.gpu_allocation import lift, lower
from ...simulator.running.placers import find_gang


@kernel
def pick_evictable(s, head_job):
    """Modify `s.pick_*`: a heap, worst first, of running jobs behind `head_job` without leases. Returns their GPUs."""
    head_key = key_now(s, head_job)
    if has_levels(s) and s.demoted_now == 0 and not _runs_below(s, s.level[head_job]):
        return 0
    gpus = 0
    for i in range(s.running):
        job = s.runner[i]
        if is_leased(s, job):
            continue
        key = running_key(s, job)
        if key > head_key or (key == head_key and job > head_job):
            push_pick(s, key, job)
            gpus += s.gpus[job]
    return gpus


@kernel
def pick_leases_over(s):
    """Modify `s.pick_*`: a heap, lowest index first, of jobs with ended leases, but those back at this instant."""
    s.n_picked = 0
    for i in range(s.running):
        job = s.runner[i]
        if lease_is_over(s, job) and s.left_s[job] != s.now_s:
            push_pick(s, -float(job), job)


@kernel
def _runs_below(s, level):
    """True if a running job is in a lower queue than `level`; within a level running jobs precede waiting ones."""
    for lower_level in range(level + 1, s.n_thresholds + 1):
        if s.level_running[lower_level] > 0:
            return True
    return False


@kernel
def gpus_behind(s, job):
    """GPUs of the running jobs that may be stopped, behind a waiting job."""
    key = s.order_key[job]
    gpus = 0
    for i in range(s.n_picked):
        if s.pick_key[i] > key or (s.pick_key[i] == key and s.pick_job[i] > job):
            gpus += s.gpus[s.pick_job[i]]
    return gpus


@kernel
def give_up(s, out, need):
    """Modify `s.out_job[out:]`: running jobs with at least `need` GPUs together, none spare. Returns the new length."""
    first = out
    gpus = 0
    while gpus < need:
        s.out_key[out] = s.pick_key[0]
        s.out_job[out] = s.pick_job[0]
        gpus += s.gpus[s.pick_job[0]]
        out += 1
        pop_pick(s)
    for i in range(out - 1, first - 1, -1):
        job = s.out_job[i]
        if gpus - s.gpus[job] >= need:
            gpus -= s.gpus[job]
            push_pick(s, s.out_key[i], job)
            s.out_job[i] = -1
    length = first
    for i in range(first, out):
        if s.out_job[i] >= 0:
            s.out_job[length] = s.out_job[i]
            s.out_key[length] = s.out_key[i]
            length += 1
    return length


@kernel
def evict_for(s, job):
    """Modify `s`: stop running jobs so that the waiting `job` finds a gang, left in `s.gang`.

    Returns the number stopped, left in `s.out_job`; 0, and no change, if even all jobs behind it would not suffice.
    """
    key = key_now(s, job)
    if s.pick_key[0] < key or (s.pick_key[0] == key and s.pick_job[0] < job):  # none stands behind it
        return 0
    if s.free_gpus + gpus_behind(s, job) < s.gpus[job]:
        return 0
    out = 0
    found = False
    while not found and s.n_picked > 0:
        worst_key = s.pick_key[0]
        worst = s.pick_job[0]
        if worst_key < key or (worst_key == key and worst <= job):
            break
        pop_pick(s)
        if s.started_s[worst] == s.now_s:  # moved since it was picked
            continue
        s.out_key[out] = worst_key
        s.out_job[out] = worst
        out += 1
        lift(s, worst)
        found = find_gang(s, job, s.placer)
    for i in range(out - 1, -1, -1):
        spared = not found
        if found and s.free_gpus - s.gpus[s.out_job[i]] >= s.gpus[job]:
            lower(s, s.out_job[i])
            spared = find_gang(s, job, s.placer)
            if not spared:
                lift(s, s.out_job[i])
        elif spared:
            lower(s, s.out_job[i])
        if spared:
            push_pick(s, s.out_key[i], s.out_job[i])
            s.out_job[i] = -1
    stopped = 0
    for i in range(out):
        if s.out_job[i] >= 0:
            lower(s, s.out_job[i])
            s.out_job[stopped] = s.out_job[i]
            stopped += 1
    for i in range(stopped):
        preempt(s, s.out_job[i])
    if stopped > 0:
        find_gang(s, job, s.placer)
    return stopped


@kernel
def push_pick(s, key, job):
    """Modify `s.pick_*`: add a running job that may be stopped; the largest keys first."""
    hole = s.n_picked
    s.n_picked += 1
    while hole > 0:
        parent = (hole - 1) // 2
        parent_key = s.pick_key[parent]
        parent_job = s.pick_job[parent]
        if parent_key > key or (parent_key == key and parent_job > job):
            break
        s.pick_key[hole] = parent_key
        s.pick_job[hole] = parent_job
        hole = parent
    s.pick_key[hole] = key
    s.pick_job[hole] = job


@kernel
def pop_pick(s):
    """Modify `s.pick_*`: remove the first of the heap."""
    count = s.n_picked - 1
    s.n_picked = count
    key = s.pick_key[count]
    job = s.pick_job[count]
    hole = 0
    while True:
        child = 2 * hole + 1
        if child >= count:
            break
        right = child + 1
        if right < count and (
            s.pick_key[right] > s.pick_key[child]
            or (s.pick_key[right] == s.pick_key[child] and s.pick_job[right] > s.pick_job[child])
        ):
            child = right
        if s.pick_key[child] < key or (s.pick_key[child] == key and s.pick_job[child] < job):
            break
        s.pick_key[hole] = s.pick_key[child]
        s.pick_job[hole] = s.pick_job[child]
        hole = child
    s.pick_key[hole] = key
    s.pick_job[hole] = job
