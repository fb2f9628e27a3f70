"""Workloads in regions: where one may run, the units of its parts, and how long its start takes (paper mast, Sec. 2).

All parts run in one region, each in one cluster of a type that it accepts, beside a copy of every table that the
workload reads. Every start takes the time to set up containers (Sec. 5.5), and that of saving a state if it takes units
from a workload that was stopped for it at the same instant (Sec. 2).

Fresh data (Sec. 3.1): "high-priority jobs requiring fresh data must run in the home regions". Read so: a replica shows
the home a lag before, and a workload needs the data of its arrival; a lag without end, the default, leaves the home
alone. New copies are no fresher than others.
"""

import math

from ..base.codes import DOWN, FREE
from ..compiler.jit import entry, kernel
from ..costs.meters import meter_units
from ..numerics.heap import schedule_event
from ..running.gpu_allocation import count_taken
from .table_copies import begin_reading, end_reading, readable
from .usage_history import book


@kernel
def needs_home(s, job):
    """True if a workload needs data that by now only the homes of its tables have."""
    return s.now_s < s.home_until_s[job]


@entry
def candidate_regions(s, job):
    """Set of the up regions that could hold a workload if empty, and have its tables; home if it needs fresh data."""
    found = s.job_hosts[job] & s.up_regions
    first = s.first_read[job]
    for use in range(first, first + s.n_reads[job]):
        if found == 0:
            return found
        table = s.read_table[use]
        found &= 1 << s.table_home[table] if needs_home(s, job) else readable(s, table)
    return found


@kernel
def is_at_home(s, job, region):
    """True if all tables that a workload reads have their home in a region."""
    first = s.first_read[job]
    for use in range(first, first + s.n_reads[job]):
        if s.table_home[s.read_table[use]] != region:
            return False
    return True


@kernel
def may_run_in(s, job, region):
    """True if a workload may start in a region; in one that it left at this instant it still has its tables."""
    if candidate_regions(s, job) >> region & 1:
        return True
    if s.left_s[job] != s.now_s or s.last_region[job] != region or (s.up_regions >> region & 1) == 0:
        return False
    first = s.first_read[job]
    for use in range(first, first + s.n_reads[job]):
        if (s.table_copies[s.read_table[use]] >> region & 1) == 0:
            return False
    return not needs_home(s, job) or is_at_home(s, job, region)


@kernel
def takes_units(s, job, units):
    """True if a workload that holds nothing may start on `units`: free ones, part after part, where it may run."""
    region = -1
    place = 0
    for part in range(s.part_units.shape[1]):
        size = s.part_units[job, part]
        if size == 0:
            break
        cluster = -1
        for i in range(place, place + size):
            unit = units[i]
            if unit < 0 or unit >= s.n_gpus or s.gpu_job[unit] != FREE:
                return False
            here = s.machine_cluster[s.gpu_machine[unit]]
            if cluster >= 0 and here != cluster:
                return False
            cluster = here
        place += size
        if (s.part_accepts[job, part] >> s.cluster_type[cluster]) & 1 == 0:
            return False
        if region >= 0 and s.cluster_region[cluster] != region:
            return False
        region = s.cluster_region[cluster]
    return may_run_in(s, job, region)


@kernel
def speed_on(s, job, kind):
    """The speed of a workload on types `kind`, int64, by part: of its slowest GPUs; without any, of its machines."""
    machines = s.gpu_units[job] == 0
    slowest = math.inf
    for part in range(s.part_units.shape[1]):
        if s.part_units[job, part] > 0 and (machines or kind[part] != s.cpu_type):
            slowest = min(slowest, s.type_speed[s.speed_row[job], kind[part]])
    return slowest


@kernel
def note_arrival(s, job):
    """Modify `s`: a workload waits; one that no region can run now waits for data."""
    s.level_waits[s.job_level[job]] += 1
    if candidate_regions(s, job) == 0:
        s.lacks_data[job] = 1
        s.waited_for_data += 1
        begin_reading(s, job)


@kernel
def note_data(s, job):
    """Modify `s`: a copy is complete, or a region is up: a workload that waits for data may have found it."""
    if s.lacks_data[job] == 1 and candidate_regions(s, job) != 0:
        _end_data_wait(s, job)


@kernel
def catch_up(s):
    """Modify `s`: replicas have by now what the workload `s.lag_next` needs, and those that came with it."""
    while s.lag_next < s.n_jobs and s.home_until_s[s.lag_next] <= s.now_s:
        note_data(s, s.lag_next)
        s.lag_next += 1
        while s.lag_next < s.n_jobs and s.home_until_s[s.lag_next] == -math.inf:
            s.lag_next += 1
    next_s = s.home_until_s[s.lag_next] if s.lag_next < s.n_jobs else math.inf
    schedule_event(s, s.tables_event + 1, next_s)


@kernel
def _end_data_wait(s, job):
    end_reading(s, job)
    s.lacks_data[job] = 2
    s.data_wait_s[job] = s.now_s - s.arrival_s[job]


@kernel
def note_copy(s, table):
    """Modify `s`: a table can be read in one more region."""
    use = s.table_reader[table]
    while use >= 0:
        after = s.reader_next[use]
        note_data(s, s.reader_job[use])
        use = after


@kernel
def enter_region(s, job):
    """Modify `s`: a workload holds `s.gang`, the units of its parts in their order."""
    if s.lacks_data[job] == 1:
        _end_data_wait(s, job)
    s.level_waits[s.job_level[job]] -= 1
    place = 0
    for part in range(s.part_units.shape[1]):
        units = s.part_units[job, part]
        if units > 0:
            cluster = s.machine_cluster[s.gpu_machine[s.gang[place]]]
            s.part_cluster[job, part] = cluster
            s.part_type[job, part] = s.cluster_type[cluster]
            s.cluster_free[cluster] -= units
            s.type_held[s.part_type[job, part]] += units
            s.job_region[job] = s.cluster_region[cluster]
            meter_units(s, s.job_region[job], s.part_type[job, part], units)
            place += units
    if s.type_speed[0, 0] > 0.0:
        s.compute_iteration_s[job] = s.own_iteration_s[job] / speed_on(s, job, s.part_type[job])
    begin_reading(s, job)


@kernel
def leave_region(s, job):
    """Modify `s`: a running workload has no units any more, and waits."""
    s.level_waits[s.job_level[job]] += 1
    for part in range(s.part_units.shape[1]):
        units = s.part_units[job, part]
        if units > 0:
            s.cluster_free[s.part_cluster[job, part]] += units
            s.type_held[s.part_type[job, part]] -= units
            meter_units(s, s.job_region[job], s.part_type[job, part], -units)
    s.last_region[job] = s.job_region[job]
    s.job_region[job] = -1
    end_reading(s, job)


@kernel
def close_left(s, job):
    """Modify `s`: the units that a job has just left on machines about to go down are closed."""
    if s.closing_machines == 0:
        return
    unit = s.first_gpu[job]
    while unit != FREE:
        machine = s.gpu_machine[unit]
        if s.machine_down[machine] > 0:
            s.gpu_job[unit] = DOWN
            count_taken(s, unit)
            s.down_gpus += 1
            count_closed(s, machine, 1)
        unit = s.gpu_next[unit]


@kernel
def count_closed(s, machine, more):
    """Modify `s`: so many more units of a machine are down, of those that its cluster and its type have."""
    cluster = s.machine_cluster[machine]
    s.cluster_free[cluster] -= more
    s.type_down[s.cluster_type[cluster]] += more


@kernel
def set_up(s, job):
    """Modify `s`: a workload that starts on `s.gang` waits for its containers, and for the saved state of others.

    At a first start it is part of the wait (paper mast, Sec. 5.5: "The preemption time of B counts towards A's
    latency").
    """
    save_s = s.save_s if _takes_over(s, job) else 0.0
    s.since_s[job] += s.container_s[job] + save_s
    if s.first_start_s[job] == s.now_s:
        s.first_save_s[job] = save_s
        s.home_start[job] = is_at_home(s, job, s.job_region[job])


@kernel
def _takes_over(s, job):
    """True if another workload lost a unit of `s.gang` at this instant, by a decision."""
    for i in range(s.gang_size):
        other = s.gpu_last_job[s.gang[i]]
        if other >= 0 and other != job and s.left_s[other] == s.now_s:
            if s.gpu_last_start[s.gang[i]] == s.stop_starts[other]:
                return True
    return False


@kernel
def is_late(s, job):
    """True if a workload that starts for the first time has waited longer than its level may."""
    return s.first_start_s[job] + s.first_save_s[job] - s.arrival_s[job] > s.slo_s[s.job_level[job]]


@kernel
def count_late(s, job, by):
    """Modify `s`: by so many more, or fewer, late first starts, if that of a workload is late."""
    if is_late(s, job):
        s.late_starts += by
        s.level_late[s.job_level[job]] += by


@kernel
def end_in_region(s, job):
    """Modify `s`: a workload that has just left its units is done."""
    s.level_waits[s.job_level[job]] -= 1


@kernel
def pass_region_time(s, elapsed_s):
    """Modify `s`: the clock is about to move: waiting jobs, units of each type held, those on failed machines."""
    book(s, elapsed_s)
    for level in range(s.level_waits.size):
        s.level_waited_s[level] += elapsed_s * s.level_waits[level]
    for kind in range(s.n_types):
        s.type_held_s[kind] += elapsed_s * s.type_held[kind]
        s.type_down_s[kind] += elapsed_s * s.type_down[kind]
