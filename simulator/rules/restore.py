"""Larger passes for jobs whose partners have left: `restore=on` of the rules that share GPUs.

Our own reading, and off unless asked for: paper sjf-bsbf never gives a job that has once started in small passes larger
ones, not even when it is alone on its GPUs. A job accumulates gradients anew in every iteration, so a larger sub-batch
costs nothing but the memory that a partner has left.

After a pass, when the jobs that wait have had what they want of the memory, every job that a partner has left since the
last one, and that runs in smaller passes than an empty GPU admits, gets the largest sub-batch that fits its GPUs beside
those who are there then; in order of the index. Nobody else is looked at: who has lost no partner has no more room.
"""

from ..kernels.jit import kernel
from ..kernels.resizing import set_passes, wider_passes


@kernel
def restore(s):
    """Modify `s`: those whom partners have left run in the largest passes that fit."""
    _sort_eased(s)
    for i in range(s.n_eased):
        job = s.eased[i]
        sub_batch = wider_passes(s, job)
        if sub_batch > 0:
            set_passes(s, job, sub_batch)


@kernel
def _sort_eased(s):
    """Modify `s.eased`: in order of the index. They are few: insertion sort."""
    for i in range(1, s.n_eased):
        job = s.eased[i]
        j = i
        while j > 0 and s.eased[j - 1] > job:
            s.eased[j] = s.eased[j - 1]
            j -= 1
        s.eased[j] = job
