"""A running job goes on otherwise: an elastic one on other GPUs or with another batch, any other in other passes."""

from ..base.codes import ASKED, FREE, RESIZE, RUNNING
from ..compiler.jit import kernel
from ..record.feature_groups import gpu_of, has_links
from ..rules.orders import restore_cost_s
from ..running.decision_log import log, note
from ..running.gpu_allocation import is_spread, occupy, vacate
from ..running.iteration_time import iteration_time_s
from ..running.rates import begin_stretch, is_as_it_was, shared_iteration_s
from ..sharing.berths import ask_rate, largest_sub_batch, memory_taken, own_sub_batch, slowdown_now
from ..sharing.exclusive_gpus import gain_again
from ..sharing.partners import rate_partners
from .lifecycle import began_now, is_back, offer, plan, recount, remember, undo, update_progress
from .rerating import cut


@kernel
def resize(s, job, batch):
    """Modify `s`: the job goes on on `s.gang`, with `batch` samples a GPU; other GPUs cost a restore, a migration."""
    note(s, RESIZE, job)
    fresh = began_now(s, job)
    if not fresh:
        remember(s, job)
    stays = not fresh and is_back(s, job)
    update_progress(s, job)
    vacate(s, job)
    s.spread -= is_spread(s, job)
    s.gpus[job] = s.gang_size
    s.batch[job] = batch
    s.sub_batch[job] = largest_sub_batch(s, job)
    back = stays and is_as_it_was(s, job)
    s.tier[job] = occupy(s, job)
    s.spread += is_spread(s, job)
    s.iteration_s[job] = shared_iteration_s(s, job, back)
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


@kernel
def set_passes(s, job, sub_batch):
    """Modify `s`: the job has passes of `sub_batch` samples, which fit its GPUs; only iteration times change."""
    note(s, RESIZE, job)
    cut(s, job)
    if sub_batch < s.sub_batch[job]:
        gain_again(s, job)
    before = memory_taken(s, job)
    s.sub_batch[job] = sub_batch
    more = memory_taken(s, job) - before
    berth = s.first_gpu[job]
    while berth != FREE:
        gpu = gpu_of(s, berth)
        s.gpu_memory_used[gpu] += more
        if s.gpu_load[gpu] > 1:  # how they slow each other down may depend on the passes
            rate_partners(s, gpu, job)
        berth = s.gpu_next[berth]
    s.solo_s[job] = iteration_time_s(s, job)
    s.slowdown[job] = slowdown_now(s, job)
    s.iteration_s[job] = s.solo_s[job] * s.slowdown[job]
    if s.asks:
        ask_rate(s, job, ASKED)
    plan(s, job)
    log(s, RESIZE, job)


@kernel
def wider_passes(s, job):
    """The largest sub-batch of a running job on its GPUs, if above its own; else 0, as on links and at its start."""
    if s.status[job] != RUNNING or s.elastic or has_links(s) or s.started_s[job] == s.now_s:
        return 0
    largest = own_sub_batch(s, job)
    return largest if largest > s.sub_batch[job] else 0
