"""Machines that go down and come back: alone or with their region, at random times, or as fault_groups.py says."""

from ..base.codes import DOWN, FAILED, FREE, NOTICE, REGION_FAILED
from ..compiler.jit import kernel
from ..numerics.heap import schedule_event
from ..numerics.random import exponential, seed_of
from ..record.feature_groups import has_regions
from ..regions.region_starts import count_closed, note_data
from ..regions.wan import resume_transfers, stop_transfers
from ..running.auctions import call_auction
from ..running.gpu_allocation import count_free, count_taken, note_change
from . import lifecycle

REGIONS = -(1 << 24)  # random numbers of regions: streams from here on down; those of machines go down from -1


@kernel
def machine_event(s, machine):
    """Modify `s`: the machine fails or comes back; True if GPUs were freed."""
    count = s.machine_failures[machine]
    item = s.first_machine_event + machine
    if s.machine_down[machine] & FAILED:
        schedule_event(s, item, s.now_s + exponential(seed_of(s), -1 - machine, 2 * count, s.mtbf_s))
        return mend(s, machine, FAILED)
    s.machine_failures[machine] = count + 1
    s.failures += 1
    schedule_event(s, item, s.now_s + exponential(seed_of(s), -1 - machine, 2 * count + 1, s.mttr_s))
    return take_down(s, machine, FAILED, False)


@kernel
def take_down(s, machine, why, is_saved):
    """Modify `s`: a machine is down, or for one more reason; jobs fail unless `is_saved`. True if GPUs were freed."""
    freed = False
    if s.machine_down[machine] % NOTICE == 0:
        first = s.machine_first_gpu[machine]
        layers = s.gpu_job.size // s.gpu_slot.size
        for gpu in range(first, first + s.machine_gpus[machine]):
            for layer in range(layers):
                job = s.gpu_job[layer * s.gpu_slot.size + gpu]
                if job >= 0:
                    lifecycle.fail(s, job, is_saved)
                    freed = True
        if s.auctions:
            call_auction(s, s.now_s)
        _close(s, machine)
    s.machine_down[machine] += why
    return freed


@kernel
def give_notice(s, machine):
    """Modify `s`: a machine is to go down: no job starts there any more, running jobs go on."""
    s.closing_machines += 1
    _close(s, machine)
    s.machine_down[machine] += NOTICE


@kernel
def mend(s, machine, why):
    """Modify `s`: a reason for which a machine is down has ended; True if it is up again."""
    s.machine_down[machine] -= why
    if why >= NOTICE:
        s.closing_machines -= 1
    if s.machine_down[machine]:
        return False
    _open(s, machine)
    if s.auctions:
        call_auction(s, s.now_s)
    return True


@kernel
def _close(s, machine):
    note_change(s)
    first, closed = s.machine_first_gpu[machine], 0
    for gpu in range(first, first + s.machine_gpus[machine]):
        if s.gpu_job[gpu] == FREE:
            s.gpu_job[gpu] = DOWN
            count_taken(s, gpu)
            closed += 1
    _count_down(s, machine, closed)


@kernel
def _open(s, machine):
    note_change(s)
    first, opened = s.machine_first_gpu[machine], 0
    for gpu in range(first, first + s.machine_gpus[machine]):
        if s.gpu_job[gpu] == DOWN:
            s.gpu_job[gpu] = FREE
            count_free(s, gpu)
            opened += 1
    _count_down(s, machine, -opened)


@kernel
def _count_down(s, machine, more):
    s.down_gpus += more
    if has_regions(s):
        count_closed(s, machine, more)


@kernel
def region_event(s, region):
    """Modify `s`: a region fails with all its machines, or is up again; True if GPUs were freed, or data is there."""
    count = s.region_failures[region]
    item = s.first_region_event + region
    if s.region_down[region] & FAILED:
        changed = mend_region(s, region, FAILED)
        schedule_event(s, item, s.now_s + exponential(seed_of(s), REGIONS - region, 2 * count, s.region_mtbf_s))
        return changed
    s.region_failures[region] = count + 1
    freed = take_down_region(s, region, FAILED, False)
    schedule_event(s, item, s.now_s + exponential(seed_of(s), REGIONS - region, 2 * count + 1, s.region_mttr_s))
    return freed


@kernel
def take_down_region(s, region, why, is_saved):
    """Modify `s`: a region is down with all its machines, or for one more reason; True if GPUs were freed."""
    was_up = s.region_down[region] == 0
    s.region_down[region] += why
    if not was_up:
        return False
    freed = False
    s.up_regions &= ~(1 << region)
    stop_transfers(s, region)
    first = s.region_first_machine[region]
    for machine in range(first, first + s.region_machines[region]):
        freed |= take_down(s, machine, REGION_FAILED, is_saved)
    return freed


@kernel
def mend_region(s, region, why):
    """Modify `s`: a reason for which a region is down has ended; True if it is up again."""
    s.region_down[region] -= why
    if s.region_down[region]:
        return False
    s.up_regions |= 1 << region
    first = s.region_first_machine[region]
    for machine in range(first, first + s.region_machines[region]):
        mend(s, machine, REGION_FAILED)
    resume_transfers(s)
    s.sweep = 1
    if s.waited_for_data > 0:
        for job in range(s.next_arrival):
            note_data(s, job)
    return True


@kernel
def draw_failures(s):
    """Modify `s`: draw the first failure of every machine and region."""
    if s.mtbf_s > 0.0:
        for machine in range(s.n_machines):
            first_s = s.start_s + exponential(seed_of(s), -1 - machine, 0, s.mtbf_s)
            schedule_event(s, s.first_machine_event + machine, first_s)
    if has_regions(s) and s.region_mtbf_s > 0.0:
        for region in range(s.n_regions):
            first_s = s.start_s + exponential(seed_of(s), REGIONS - region, 0, s.region_mtbf_s)
            schedule_event(s, s.first_region_event + region, first_s)
