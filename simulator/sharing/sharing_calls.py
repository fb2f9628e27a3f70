"""The kernels of GPU sharing as Python calls them, by array of records and row; see clock_calls.py."""

from ..compiler.jit import entry
from ..network import step_time
from . import berths


@entry
def largest_sub_batch(states, row, job):
    return berths.largest_sub_batch(states[row], job)


@entry
def slowdown_beside(states, row, job, partner):
    """How many times longer an iteration of a job takes beside another one, both with their present sub-batches."""
    s = states[row]
    return s.xi[berths.kind_now(s, job), berths.kind_now(s, partner)]


@entry
def first_without_room(states, row):
    """The first job that does not fit an empty GPU even with one sample a pass, or -1."""
    s = states[row]
    for job in range(s.n_jobs):
        if berths.alone_sub_batch(s, job) == 0:
            return job
    return -1


@entry
def write_best_steps(states, row):
    """Modify the record: `best_step_s` of every job whose model has a fit."""
    s = states[row]
    for job in range(s.n_jobs):
        step_time.write_best_step(s, job)
