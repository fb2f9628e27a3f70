"""The log of decisions: how many there were, which was the last, and, while `log_on`, all of the present instant."""

from ..base.codes import HOLD
from ..compiler.jit import kernel
from ..record.feature_groups import gpu_of
from .rates import logged_value


@kernel
def note(s, kind, job):
    """Modify `s`: a decision is carried out."""
    s.decisions += 1
    s.last_kind = kind
    s.last_job = job


@kernel
def log(s, kind, job):
    """Modify `s`: append a decision and the GPUs that the job holds, if logging is on."""
    if s.log_on == 0:
        return
    entry = s.log_count
    if entry >= s.log_kind.size or s.log_gpus + s.gpus[job] > s.log_gpu.size:
        s.log_overflow = 1
        return
    s.log_kind[entry] = kind
    s.log_job[entry] = job
    s.log_first[entry] = s.log_gpus
    s.log_size[entry] = 0
    s.log_value[entry] = logged_value(s, kind, job)
    s.log_time_s[entry] = s.now_s
    if kind != HOLD:
        berth = s.first_gpu[job]
        while berth >= 0:
            s.log_gpu[s.log_gpus] = gpu_of(s, berth)
            s.log_gpus += 1
            s.log_size[entry] += 1
            berth = s.gpu_next[berth]
    s.log_count = entry + 1


@kernel
def log_table(s, kind, table, region, value):
    """Modify `s`: append a decision about a table, with the region in the place of GPUs, if logging is on."""
    if s.log_on == 0:
        return
    entry = s.log_count
    if entry >= s.log_kind.size or s.log_gpus >= s.log_gpu.size:
        s.log_overflow = 1
        return
    s.log_kind[entry] = kind
    s.log_job[entry] = table
    s.log_first[entry] = s.log_gpus
    s.log_size[entry] = 1
    s.log_value[entry] = value
    s.log_time_s[entry] = s.now_s
    s.log_gpu[s.log_gpus] = region
    s.log_gpus += 1
    s.log_count = entry + 1
