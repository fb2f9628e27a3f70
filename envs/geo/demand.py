"""What workloads ask of regions, by type of units, and what there is of them; and where tables lie, or will."""

from ...policies.mast.region_units import IMPORTANCES
from ...simulator.base.codes import HIGH_LEVELS
from ...simulator.compiler.jit import kernel


@kernel
def count_regions(bits):
    """The size of a set of regions."""
    count = 0
    while bits != 0:
        bits &= bits - 1
        count += 1
    return count


@kernel
def staying(s, table):
    """Set of the regions where a copy of a table lies to stay."""
    return s.table_copies[table] & ~s.table_doomed[table]


@kernel
def coming(s, table):
    """Set of the regions to which a copy of a table is on the way."""
    found, transfer = 0, s.table_transfer[table]
    while transfer >= 0:
        found |= 1 << s.transfer_to[transfer]
        transfer = s.transfer_after[transfer]
    return found


@kernel
def regions_to_come(s, job):
    """Regions that could hold a workload and will have all its tables, some of which are on the way."""
    hosts, absent, lacking = s.job_hosts[job] & s.up_regions, 0, 0
    for use in range(s.first_read[job], s.first_read[job] + s.n_reads[job]):
        table = s.read_table[use]
        there = hosts & ~staying(s, table)
        absent |= there
        if there != 0:
            lacking |= there & ~coming(s, table)
    return absent & ~lacking


@kernel
def weigh_demand(s, w, m):
    """Modify the window in place: units asked by region and type, GPUs held by priority.

    A pending workload asks in the regions that could run it and in those to which its tables are on the way.
    """
    for region in range(s.n_regions):
        w.high[region] = w.low[region] = 0.0
        for kind in range(s.n_types):
            w.demand[region, kind] = w.supply[region, kind] = 0.0
    for cluster in range(s.n_clusters):
        w.supply[s.cluster_region[cluster], s.cluster_type[cluster]] += s.cluster_gpus[cluster]
    for i in range(s.running):
        job = s.runner[i]
        region, level = s.job_region[job], m.level[job]
        for part in range(s.part_type.shape[1]):
            if s.part_units[job, part] > 0:
                w.demand[region, s.part_type[job, part]] += s.part_units[job, part]
        w.high[region] += s.gpu_units[job] if level < HIGH_LEVELS else 0
        w.low[region] += s.gpu_units[job] if level == IMPORTANCES - 1 else 0
    for i in range(w.pending):
        job = m.order[i]
        if not w.data_valid:
            m.coming[job] = regions_to_come(s, job)
        _ask(s, w, job, m.bits[job] | m.coming[job])
    w.data_valid = 1


@kernel
def _ask(s, w, job, bits):
    """Modify the window in place: a workload asks evenly in these regions, of accepted types by their supply there."""
    count = count_regions(bits)
    for part in range(s.part_type.shape[1]):
        kinds, units = s.part_accepts[job, part], s.part_units[job, part]
        for region in range(s.n_regions if units > 0 else 0):
            there = 0.0
            if (bits >> region) & 1:
                for kind in range(s.n_types):
                    there += w.supply[region, kind] if (kinds >> kind) & 1 else 0.0
            for kind in range(s.n_types if there > 0.0 else 0):
                if (kinds >> kind) & 1:
                    w.demand[region, kind] += units / count * (w.supply[region, kind] / there)


@kernel
def demand_of(s, w, region, kinds):
    """Demand in a region for a set of types of units, and their supply."""
    asked, there = 0.0, 0.0
    for kind in range(s.n_types):
        if (kinds >> kind) & 1:
            asked += w.demand[region, kind]
            there += w.supply[region, kind]
    return asked, there
