"""The log of job groups while `log_on`: decisions, executions; `log_gpu` has the group and machines of entry i."""

from ...compiler.jit import kernel


@kernel
def note(s, kind, job, group, machines, value):
    """Modify `s`: one more entry."""
    if s.log_on == 0:
        return
    if s.log_count == s.log_kind.size:
        s.log_overflow = 1
        return
    i = s.log_count
    s.log_kind[i], s.log_job[i] = kind, job
    s.log_first[i], s.log_size[i] = s.log_gpus, 2
    s.log_gpu[s.log_gpus], s.log_gpu[s.log_gpus + 1] = group, machines
    s.log_seconds[i], s.log_time_s[i] = value, s.now_s
    s.log_gpus += 2
    s.log_count += 1
