"""Machines and regions that fail together, at random times or as a list of outages says, with notice or without.

A group is a set of machines and of regions. The first groups fail at random (outages.py), the others as listed. Every
outage is one more reason for which a machine or a region is down. After a notice no job starts there, and running jobs
go on; when the outage begins, they are stopped with their state saved.
"""

import math

from ..base.codes import BROKEN, MAINTAINED, NOTICE, NOTICED, OUTAGE, OVER_NOTICED
from ..compiler.jit import kernel
from ..numerics.heap import schedule_event
from ..numerics.random import exponential, seed_of
from ..record.feature_groups import has_regions
from .outages import give_notice, mend, mend_region, take_down, take_down_region

GROUPS = -(1 << 26)  # random numbers: streams from here on down; those of machines, regions and cables lie above


@kernel
def outage_event(s, item):
    """Modify `s`: what an id of the heap stands for, from `first_group_event` on; True if GPUs were freed."""
    if item == s.outage_event:
        return _next_row(s)
    return _group_event(s, item - s.first_group_event)


@kernel
def _group_event(s, group):
    count = s.group_failures[group]
    item = s.first_group_event + group
    if s.group_down[group]:
        s.group_down[group] = 0
        schedule_event(s, item, s.now_s + exponential(seed_of(s), GROUPS - group, 2 * count, s.group_mtbf_s))
        return _end(s, group)
    s.group_down[group] = 1
    s.group_failures[group] = count + 1
    schedule_event(s, item, s.now_s + exponential(seed_of(s), GROUPS - group, 2 * count + 1, s.group_mttr_s))
    return _begin(s, group, False)


@kernel
def _next_row(s):
    row = s.next_outage
    group, kind = s.outage_group[row], s.outage_kind[row]
    s.next_outage = row + 1
    schedule_event(s, s.outage_event, s.outage_s[row + 1] if row + 1 < s.n_outages else math.inf)
    if kind == NOTICED:
        _change_notices(s, group, True)
        return False
    if kind == MAINTAINED or kind == BROKEN:
        return _begin(s, group, kind == MAINTAINED)
    freed = _change_notices(s, group, False) if kind == OVER_NOTICED else False
    return _end(s, group) or freed


@kernel
def _begin(s, group, is_saved):
    s.outages += 1
    freed = False
    first = s.group_first[group]
    for i in range(first, first + s.group_machines[group]):
        freed |= take_down(s, s.group_machine[i], OUTAGE, is_saved)
    if has_regions(s):
        for region in range(s.n_regions):
            if s.group_regions[group] >> region & 1:
                freed |= take_down_region(s, region, OUTAGE, is_saved)
    return freed


@kernel
def _end(s, group):
    is_up = False
    first = s.group_first[group]
    for i in range(first, first + s.group_machines[group]):
        is_up |= mend(s, s.group_machine[i], OUTAGE)
    if has_regions(s):
        for region in range(s.n_regions):
            if s.group_regions[group] >> region & 1:
                is_up |= mend_region(s, region, OUTAGE)
    return is_up


@kernel
def _change_notices(s, group, are_given):
    """Modify `s`: machines of a group, and of its regions, are given notice, or it ends; True if one is up again."""
    is_up = False
    first = s.group_first[group]
    for i in range(first, first + s.group_machines[group]):
        is_up |= _change_notice(s, s.group_machine[i], are_given)
    if has_regions(s):
        for region in range(s.n_regions):
            if s.group_regions[group] >> region & 1:
                first = s.region_first_machine[region]
                for machine in range(first, first + s.region_machines[region]):
                    is_up |= _change_notice(s, machine, are_given)
    return is_up


@kernel
def _change_notice(s, machine, is_given):
    if is_given:
        give_notice(s, machine)
        return False
    return mend(s, machine, NOTICE)


@kernel
def draw_outages(s):
    """Modify `s`: draw the first failure of every group that fails at random; the first row of the list is to come."""
    for group in range(s.failing_groups):
        first_s = s.start_s + exponential(seed_of(s), GROUPS - group, 0, s.group_mtbf_s)
        schedule_event(s, s.first_group_event + group, first_s)
    if s.n_outages > 0:
        schedule_event(s, s.outage_event, s.outage_s[0])


@kernel
def more_outages(s):
    """True if an outage of a group, or its end, is still to come."""
    return s.failing_groups > 0 or s.next_outage < s.n_outages
