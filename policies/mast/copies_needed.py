"""Whether copies of tables may have to be decided on for a workload (copies_on_demand.py), as a kernel asks it."""

from ...simulator.compiler.jit import kernel
from ...simulator.regions.wan import transfer_to


@kernel
def needs_copies(s, job):
    """Whether `on_demand` may decide anything for a job that no region can run now; if not, it surely does not.

    It does not where all that the job reads is on the way to one region, nor where no region could get it.
    """
    first = s.first_read[job]
    if s.job_fresh[job]:
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
                return True  # copies that are about to be deleted may stay
            waits |= missing == 0 and s.stored_bytes[region] <= s.storage_bytes[region]
            lacks |= missing > 0
    return lacks and not waits
