"""Machines that fail and come back, alone or with their region, at random times."""

from ..base.codes import DOWN, FAILED, FREE, REGION_FAILED
from ..compiler.jit import kernel
from ..numerics.heap import schedule_event
from ..numerics.random import exponential
from ..record.feature_groups import has_regions
from ..regions.region_starts import note_data
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
        schedule_event(s, item, s.now_s + exponential(s.seed, -1 - machine, 2 * count, s.mtbf_s))
        return _mend(s, machine, FAILED)
    s.machine_failures[machine] = count + 1
    s.failures += 1
    schedule_event(s, item, s.now_s + exponential(s.seed, -1 - machine, 2 * count + 1, s.mttr_s))
    return _break(s, machine, FAILED)


@kernel
def _break(s, machine, why):
    """Modify `s`: a machine is down, or for one more reason; True if GPUs were freed."""
    freed = False
    if s.machine_down[machine] == 0:
        first = s.machine_first_gpu[machine]
        layers = s.gpu_job.size // s.gpu_slot.size
        for gpu in range(first, first + s.machine_gpus[machine]):
            for layer in range(layers):
                job = s.gpu_job[layer * s.gpu_slot.size + gpu]
                if job >= 0:
                    lifecycle.fail(s, job)
                    freed = True
        if s.auctions:
            call_auction(s, s.now_s)
        _set_machine(s, machine, DOWN)
    s.machine_down[machine] |= why
    return freed


@kernel
def _mend(s, machine, why):
    """Modify `s`: a reason for which a machine is down has ended; True if it is up again."""
    s.machine_down[machine] &= ~why
    if s.machine_down[machine]:
        return False
    _set_machine(s, machine, FREE)
    if s.auctions:
        call_auction(s, s.now_s)
    return True


@kernel
def _set_machine(s, machine, owner):
    note_change(s)
    first, gpus = s.machine_first_gpu[machine], s.machine_gpus[machine]
    for gpu in range(first, first + gpus):
        s.gpu_job[gpu] = owner
        if owner == DOWN:
            count_taken(s, gpu)
            s.down_gpus += 1
        else:
            count_free(s, gpu)
            s.down_gpus -= 1
    if has_regions(s):
        cluster = s.machine_cluster[machine]
        down = gpus if owner == DOWN else -gpus
        s.cluster_free[cluster] -= down
        s.type_down[s.cluster_type[cluster]] += down


@kernel
def region_event(s, region):
    """Modify `s`: a region fails with all its machines, or is up again; True if GPUs were freed, or data is there."""
    count = s.region_failures[region]
    item = s.first_region_event + region
    first = s.region_first_machine[region]
    freed = False
    if s.up_regions >> region & 1:
        s.up_regions &= ~(1 << region)
        s.region_failures[region] = count + 1
        s.region_outages += 1
        stop_transfers(s, region)
        for machine in range(first, first + s.region_machines[region]):
            freed |= _break(s, machine, REGION_FAILED)
        schedule_event(s, item, s.now_s + exponential(s.seed, REGIONS - region, 2 * count + 1, s.region_mttr_s))
        return freed
    s.up_regions |= 1 << region
    for machine in range(first, first + s.region_machines[region]):
        freed |= _mend(s, machine, REGION_FAILED)
    resume_transfers(s)
    s.sweep = 1
    if s.waited_for_data > 0:
        for job in range(s.next_arrival):
            note_data(s, job)
    schedule_event(s, item, s.now_s + exponential(s.seed, REGIONS - region, 2 * count, s.region_mtbf_s))
    return True


@kernel
def lay_failures(s):
    """Modify `s`: draw the first failure of every machine and region."""
    if s.mtbf_s > 0.0:
        for machine in range(s.n_machines):
            first_s = s.start_s + exponential(s.seed, -1 - machine, 0, s.mtbf_s)
            schedule_event(s, s.first_machine_event + machine, first_s)
    if has_regions(s) and s.region_mtbf_s > 0.0:
        for region in range(s.n_regions):
            first_s = s.start_s + exponential(s.seed, REGIONS - region, 0, s.region_mtbf_s)
            schedule_event(s, s.first_region_event + region, first_s)
