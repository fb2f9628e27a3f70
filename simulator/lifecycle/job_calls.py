"""What happens to one job, as Python calls it, by array of records and row; see clock_calls.py."""

from ..base.codes import FREE
from ..compiler.jit import entry
from ..record.feature_groups import gpu_of
from . import lifecycle, rerating, resizing


@entry
def preempt(states, row, job):
    lifecycle.preempt(states[row], job)


@entry
def migrate(states, row, job):
    lifecycle.migrate(states[row], job)


@entry
def resize(states, row, job, batch):
    resizing.resize(states[row], job, batch)


@entry
def set_passes(states, row, job, sub_batch):
    resizing.set_passes(states[row], job, sub_batch)


@entry
def hold(states, row, job, until_s):
    lifecycle.hold(states[row], job, until_s)


@entry
def bring_to_date(states, row):
    rerating.bring_to_date(states[row])


@entry
def set_rate(states, row, job, solo_s, phase_left):
    rerating.set_rate(states[row], job, solo_s, phase_left)


@entry
def change_rate(states, row, job, solo_s):
    """`rerating.cut`, then `rerating.set_rate`: another rate from now on."""
    rerating.cut(states[row], job)
    rerating.set_rate(states[row], job, solo_s, 0.0)


@entry
def write_gangs(states, row, jobs, ends, gpus):
    """Modify `gpus`, int64: those of running `jobs`, int64 (n,), job after job; `ends`, int64 (n,): where each ends."""
    s = states[row]
    place = 0
    for i in range(jobs.size):
        berth = s.first_gpu[jobs[i]]
        while berth != FREE:
            gpus[place] = gpu_of(s, berth)
            place += 1
            berth = s.gpu_next[berth]
        ends[i] = place
