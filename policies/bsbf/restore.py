"""Larger passes for jobs whose partners have left: `restore=on` of the rules that share GPUs. Ours, off by default.

After a pass, a job that a partner has left since the last one, and whose sub-batch is smaller than on an empty GPU,
gets the largest sub-batch that fits beside its present partners. Where interference depends on the sub-batch, it does
so only if its iterations get shorter. Jobs come in order of the index.
"""

from ...simulator.compiler.jit import kernel
from ...simulator.lifecycle.resizing import set_passes, wider_passes
from ...simulator.running.iteration_time import iteration_time_s
from ...simulator.sharing.berths import slowdown_now


@kernel
def restore(s):
    """Modify `s`: jobs that partners have left run in the largest passes that fit."""
    _sort_eased(s)
    for i in range(s.n_eased):
        job = s.eased[i]
        sub_batch = wider_passes(s, job)
        if sub_batch > 0 and (s.kinds_by_pass == 0 or _is_faster(s, job, sub_batch)):
            set_passes(s, job, sub_batch)


@kernel
def _is_faster(s, job, sub_batch):
    """True if the iterations of a running job are shorter in passes of `sub_batch`, beside its present partners."""
    present = s.sub_batch[job]
    s.sub_batch[job] = sub_batch
    iteration_s = iteration_time_s(s, job) * slowdown_now(s, job)
    s.sub_batch[job] = present
    return iteration_s < s.iteration_s[job]


@kernel
def _sort_eased(s):
    """Modify `s.eased`: insertion sort by index, as jobs are few."""
    for i in range(1, s.n_eased):
        job = s.eased[i]
        j = i
        while j > 0 and s.eased[j - 1] > job:
            s.eased[j] = s.eased[j - 1]
            j -= 1
        s.eased[j] = job
