"""Several jobs on one GPU: their berths, their memory, and how they slow each other down.

Source: paper sjf-bsbf, Sec. IV-A3 (Eq. 5, 6: beside another job an iteration takes xi times as long) and IV-A4
(gradient accumulation: a smaller sub-batch needs less memory). The paper has two jobs a GPU and the same GPUs for both.
Where it is silent: with several partners on a GPU their excesses over 1 add up, so that three equal jobs at xi 2 take
turns; and a gang goes at the pace of its slowest GPU. A job that restores slows its partners down as one that runs. GPU
slices (sharing/mig_slices.py) slow every job by a fixed factor, and each job has its own memory there.
"""

from ..base.codes import FREE
from ..compiler.jit import kernel
from ..record.feature_groups import gpu_of, has_berths


@kernel
def free_berth(s, gpu):
    """The first berth of a GPU that no job is in; there must be one."""
    while s.gpu_job[gpu] != FREE:
        gpu += s.gpu_slot.size
    return gpu


@kernel
def other_on(s, gpu, job):
    """The first job on a GPU that is not `job`; there must be one."""
    while s.gpu_job[gpu] == FREE or s.gpu_job[gpu] == job:
        gpu += s.gpu_slot.size
    return s.gpu_job[gpu]


@kernel
def memory_of(s, job, sub_batch):
    """Bytes that a job needs on each of its GPUs with a sub-batch."""
    model = s.model[job]
    return s.memory_base[model] + s.memory_sample[model] * sub_batch


@kernel
def memory_taken(s, job):
    """Bytes that a job leaves its partners less on each of its GPUs."""
    return s.memory_shared * memory_of(s, job, s.sub_batch[job])


@kernel
def fits(s, job, sub_batch, gpu):
    """True if a GPU has the memory for another job with that sub-batch."""
    return s.gpu_memory_used[gpu] + memory_of(s, job, sub_batch) <= s.gpu_memory


@kernel
def _largest_beside(s, job, used):
    sub_batch = s.batch[job]
    while sub_batch > 0 and used + memory_of(s, job, sub_batch) > s.gpu_memory:
        sub_batch //= 2
    return sub_batch


@kernel
def largest_sub_batch(s, job):
    """The largest of batch, batch / 2, ..., 1 that fits every GPU of `s.gang` beside the jobs there; 0 if none."""
    used = 0.0
    for i in range(s.gang_size):
        used = max(used, s.gpu_memory_used[s.gang[i]])
    return _largest_beside(s, job, used)


@kernel
def alone_sub_batch(s, job):
    """The largest of batch, batch / 2, ..., 1 that fits an empty GPU; 0 if none."""
    return _largest_beside(s, job, 0.0)


@kernel
def own_sub_batch(s, job):
    """The largest of batch, batch / 2, ..., 1 that a running job could have on its GPUs, beside the jobs there."""
    mine = memory_taken(s, job)
    used = 0.0
    berth = s.first_gpu[job]
    while berth != FREE:
        used = max(used, s.gpu_memory_used[gpu_of(s, berth)] - mine)
        berth = s.gpu_next[berth]
    return _largest_beside(s, job, used)


@kernel
def ease(s, job):
    """Modify `s`: a partner leaves a running job; if it runs in small passes, larger ones may fit from now on."""
    if s.eases and s.is_eased[job] == 0 and s.sub_batch[job] < alone_sub_batch(s, job):
        s.is_eased[job] = 1
        s.eased[s.n_eased] = job
        s.n_eased += 1


@kernel
def forget_eased(s):
    """Modify `s`: the policy has seen the jobs that partners have left."""
    for i in range(s.n_eased):
        s.is_eased[s.eased[i]] = 0
    s.n_eased = 0


@kernel
def rest_sub_batch(s, job):
    """Modify `s`: a waiting job has the largest sub-batch that an empty GPU admits, where GPUs are shared."""
    if has_berths(s):
        s.sub_batch[job] = alone_sub_batch(s, job)


@kernel
def kind_of(s, job, sub_batch):
    """The row of `s.xi` that holds for a job in passes of `sub_batch` (see simulator/jobs/job_kinds.py)."""
    if s.kinds_by_pass:
        return s.kind[job, _halvings_to(s, job, sub_batch)]
    return s.kind[job, 0]


@kernel
def _halvings_to(s, job, sub_batch):
    halvings = 0
    while halvings < s.kind.shape[1] - 1 and s.own_batch[job] >> halvings > sub_batch:
        halvings += 1
    return halvings


@kernel
def kind_now(s, job):
    """The row of `s.xi` that holds for a job with its present sub-batch."""
    return kind_of(s, job, s.sub_batch[job])


@kernel
def excess(s, job, partner):
    """By how much more than 1 a partner slows a job down on a GPU that both hold, with their present sub-batches."""
    if s.kinds_by_pass:
        return excess_of(s, kind_now(s, job), kind_now(s, partner))
    return excess_of(s, s.kind[job, 0], s.kind[partner, 0])


@kernel
def excess_of(s, kind, other):
    """The slowdown minus 1 of a job of kind `kind` beside one of `other`; `slices`: turns of half speed bound it."""
    xi = s.xi[kind, other]
    if s.slices and 1.0 / xi + 1.0 / s.xi[other, kind] <= 1.0:
        return 1.0
    return xi - 1.0


@kernel
def excess_on(s, job, gpu):
    """By how much more than 1 all its partners on a GPU slow a job down."""
    more = 0.0
    for layer in range(s.jobs_per_gpu):
        other = s.gpu_job[layer * s.gpu_slot.size + gpu]
        if other >= 0 and other != job:
            more += excess(s, job, other)
    return more


@kernel
def slowdown_now(s, job):
    """How many times longer an iteration of a running job takes beside its present partners."""
    worst = 0.0
    berth = s.first_gpu[job]
    while berth != FREE:
        gpu = berth % s.gpu_slot.size
        if s.gpu_load[gpu] > 1:
            worst = max(worst, excess_on(s, job, gpu))
        berth = s.gpu_next[berth]
    return slowed(s, worst)


@kernel
def slowed(s, more):
    """How many times longer an iteration takes by an excess over 1, and by the part of a GPU that every job has."""
    return s.slice_slowdown * (1.0 + more)


@kernel
def ask_rate(s, job, how):
    """Modify `s`: the rate of a running job is due before time passes: codes.SLOWED, RATED or ASKED."""
    if s.is_asked[job] == 0:
        s.asked[s.n_asked] = job
        s.n_asked += 1
    s.is_asked[job] = max(s.is_asked[job], how)
