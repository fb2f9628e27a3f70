"""Whether a workload may need copies of tables (copies_on_demand.py), as a kernel asks it."""

from ...simulator.compiler.jit import kernel
from ...simulator.regions.region_starts import needs_home
from ...simulator.regions.wan import transfer_to


@kernel
def needs_copies(s, job):
    """False: `on_demand` decides nothing for a job that no region can run now.

    So it is if all its missing tables are on the way to one region, or no region could get them.
    """
    first = s.first_read[job]
    if needs_home(s, job):
        for use in range(first, first + s.n_reads[job]):
            if s.table_target[s.read_table[use]] >= 0:
                return False
        return True
    waits, lacks = False, False
    hosts = s.job_hosts[job] & s.up_regions
    for region in range(s.n_regions):
        if hosts >> region & 1:
            missing, size = 0, 0
            for use in range(first, first + s.n_reads[job]):
                table = s.read_table[use]
                copies = s.table_copies[table]
                if (copies & ~s.table_doomed[table]) >> region & 1 or transfer_to(s, table, region) >= 0:
                    continue
                if copies & s.up_regions == 0:
                    missing = -1
                    break
                missing += 1
                size += 0 if copies >> region & 1 else s.replica_size[table]
            if missing > 0 and size == 0:
                return True  # copies that are about to be deleted
            waits |= missing == 0 and s.stored_bytes[region] <= s.storage_bytes[region]
            lacks |= missing > 0
    return lacks and not waits
