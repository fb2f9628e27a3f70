"""Elastic jobs: a running job goes on on another number of GPUs, or with another batch."""

from ..rules.orders import restore_cost_s
from .codes import RESIZE
from .jit import kernel
from .jobs import began_now, is_back, offer, plan, recount, remember, settle, undo
from .log import log, note
from .placement import is_spread, occupy, vacate
from .rates import begin_stretch, is_as_it_was, take_rate
from .sharing import largest_sub_batch


@kernel
def resize(s, job, batch):
    """Modify `s`: the running job goes on on `s.gang`, of any size, with a batch of `batch` samples a GPU.

    Other GPUs cost a restore, as moving does, and count as a migration; another batch on the same GPUs costs nothing.
    """
    note(s, RESIZE, job)
    fresh = began_now(s, job)
    if not fresh:
        remember(s, job)
    stays = not fresh and is_back(s, job)
    settle(s, job)
    vacate(s, job)
    s.spread -= is_spread(s, job)
    s.gpus[job] = s.gang_size
    s.batch[job] = batch
    s.sub_batch[job] = largest_sub_batch(s, job)
    back = stays and is_as_it_was(s, job)
    s.tier[job] = occupy(s, job)
    s.spread += is_spread(s, job)
    take_rate(s, job, back)
    if back:
        undo(s, job)
    elif stays:
        recount(s, job, s.stop_preempted[job], s.stop_migrated[job])
        s.starts[job] = s.stop_starts[job]
        s.since_s[job] = max(s.now_s, s.stop_since_s[job])
    elif not fresh:
        if s.preempted[job] == s.stop_preempted[job]:
            recount(s, job, s.preempted[job], s.stop_migrated[job] + 1)
        s.starts[job] = s.stop_starts[job] + 1
        s.since_s[job] = s.now_s + restore_cost_s(s, job)
        begin_stretch(s, job)
    plan(s, job)
    log(s, RESIZE, job)
    offer(s)
