"""The speed of a running job where it changes: partners come and go, or its rate is asked for.

A stretch on GPUs is booked in pieces (`booked_s`), each at one rate. A job whose GPUs are stopped and started again at
one instant keeps its rate until all are rated at the instant's end.
"""

import math

from ..base.codes import ASKED, RATED, RESIZE, START
from ..compiler.jit import kernel
from ..flows.sessions import come_back, computing_s
from ..record.feature_groups import has_berths
from ..sharing.berths import ask_rate, slowdown_now
from .iteration_time import iteration_time_s


@kernel
def shared_iteration_s(s, job, back):
    """Modify `s`: the iteration time, beside its partners, of a job that just got GPUs; `back`: its earlier ones."""
    s.solo_s[job] = iteration_time_s(s, job)
    s.slowdown[job] = slowdown_now(s, job)
    if back:
        come_back(s, job)
        ask_rate(s, job, RATED)
    elif s.asks:
        ask_rate(s, job, ASKED)
    return s.solo_s[job] * s.slowdown[job]


@kernel
def logged_value(s, kind, job):
    """What a decision says besides GPUs: the sub-batch, of an elastic job's new size the batch a GPU; 0: nothing."""
    if has_berths(s) and kind == RESIZE and s.elastic:
        return s.batch[job]
    if has_berths(s) and (kind == START or kind == RESIZE):
        return s.sub_batch[job]
    return 0


@kernel
def begin_stretch(s, job):
    """Modify `s`: a running job is on other GPUs from now on; its progress begins at `since_s`."""
    s.booked_s[job] = s.now_s
    s.progress_s[job] = s.since_s[job]
    s.unsaved[job] = 0.0
    s.unsaved_hindered_s[job] = 0.0


@kernel
def plan_phase(s, job):
    """Modify `s`: when the present phase of a running job will end, which is returned; infinity if it has none."""
    left = s.iterations_left[job] - s.phase_left[job]
    s.phase_s[job] = s.since_s[job] + left * s.iteration_s[job] if s.phase_left[job] > 0.0 else math.inf
    return s.phase_s[job]


@kernel
def remember_rate(s, job):
    """Modify `s`: what `recall_rate` gives back."""
    s.stop_booked_s[job] = s.booked_s[job]
    s.stop_solo_s[job] = s.solo_s[job]
    s.stop_iteration_s[job] = s.iteration_s[job]
    s.stop_progress_s[job] = s.progress_s[job]
    s.stop_unsaved[job] = s.unsaved[job]
    s.stop_unsaved_hindered_s[job] = s.unsaved_hindered_s[job]
    s.stop_service_gpu_s[job] = s.service_gpu_s[job]
    s.stop_batch[job] = s.batch[job]
    s.stop_sub_batch[job] = s.sub_batch[job]
    s.stop_gpus[job] = s.gpus[job]


@kernel
def recall_rate(s, job):
    """Modify `s`: the job goes on as it was when it left its GPUs at this instant."""
    s.booked_s[job] = s.stop_booked_s[job]
    s.solo_s[job] = s.stop_solo_s[job]
    s.iteration_s[job] = s.stop_iteration_s[job]
    s.progress_s[job] = s.stop_progress_s[job]
    s.unsaved[job] = s.stop_unsaved[job]
    s.unsaved_hindered_s[job] = s.stop_unsaved_hindered_s[job]
    s.service_gpu_s[job] = s.stop_service_gpu_s[job]


@kernel
def is_as_it_was(s, job):
    """True if a job that left its GPUs at this instant has the batch and sub-batch that it had there."""
    return s.batch[job] == s.stop_batch[job] and s.sub_batch[job] == s.stop_sub_batch[job]


@kernel
def keep_unsaved(s, job):
    """Modify `s`: the work of a running job since its last checkpoint, until now; its rate is about to end.

    Checkpoints come every `checkpoint_s` of progress; 0: nothing is ever lost. A failure needs it piece by piece.
    """
    if s.checkpoint_s <= 0.0 or s.now_s <= s.progress_s[job]:
        return
    from_s = s.since_s[job]
    saved_s = last_checkpoint_s(s, job)
    if saved_s >= from_s:
        from_s = saved_s
        s.unsaved[job] = 0.0
        s.unsaved_hindered_s[job] = 0.0
    ran_s = max(0.0, s.now_s - from_s)
    iterations = ran_s / s.iteration_s[job]
    s.unsaved[job] += iterations
    if s.iteration_s[job] != s.solo_s[job]:
        s.unsaved_hindered_s[job] += ran_s - iterations * s.solo_s[job]


@kernel
def last_checkpoint_s(s, job):
    """When a running job that makes progress wrote its last checkpoint, or began."""
    begun_s = s.progress_s[job]
    return begun_s + (s.now_s - begun_s) // s.checkpoint_s * s.checkpoint_s


@kernel
def lose_unsaved(s, job):
    """Modify `s`: take what it did since its last checkpoint back from a job that has just lost its GPUs."""
    iterations = s.unsaved[job]
    if iterations <= 0.0:
        return
    gpus = s.gpus[job]
    lost_s = s.now_s - last_checkpoint_s(s, job)
    hindered = s.unsaved_hindered_s[job]
    computed = computing_s(s, job, iterations)
    s.iterations_left[job] += iterations
    s.lost_gpu_s += gpus * lost_s
    s.compute_gpu_s -= gpus * computed
    s.interference_gpu_s -= gpus * hindered
    s.comm_gpu_s -= gpus * (lost_s - hindered - computed)
