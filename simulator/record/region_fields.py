"""Fields of a record with regions: clusters of unit types, tables and their copies, and transfers between.

A unit is a GPU, or one CPU machine. Without regions each field is one unused entry. Sets of regions are bits of a word.
"""

from __future__ import annotations

from ..base.codes import LANES, LEVELS
from ..numerics.bitset import words
from .field_axes import CALL, COUNTED, GPU, JOB, LOGGED, OVERWRITTEN, READ, Axis, Field

MOST_PARTS = 4  # of a workload: units of one type, in one cluster
MOST_TYPES = 16
MOST_SPEEDS = 64  # models whose speeds by type differ
MOST_REGIONS = 63  # a word has a sign
CLUSTERS_PER_REGION = 16  # room for so many on average
COPY_ENTRIES = 8  # of the log of copies, for every table that there is room for
MOST_HOURS = 8_784  # of prices by the hour: a leap year
COPY_KINDS = 3  # regions/copy_times.py
COPY_COLUMNS = 6  # regions/copy_log.py
COPY_BINS = 384  # of how long copies took
USAGE_BINS = 100  # of how much was in use when
USAGE_BIN_S = 60.0  # at first; they become twice as wide whenever time has gone beyond the last


def clusters_in(regions: int) -> int:
    """Room for clusters beside so many regions; never as many as jobs or GPUs (see `raw_record.py`)."""
    return CLUSTERS_PER_REGION * regions - 8


def events_in(regions: int) -> int:
    """Ids that regions add to the heap of events: outages, lanes of links, the slow path's look, replicas caught up."""
    return regions + LANES * regions * regions + 2 if regions > 0 else 0


def region_fields(jobs: Axis, gpus: Axis, regions: int, tables: int, uses: int, hours: int = 0) -> list[Field]:
    """All of them. Without `regions` every field is one entry.

    `tables`: also room for copies on the way. `uses`: pairs of a job and a table that it reads. `hours`: of prices.
    """
    if regions == 0:
        regions = tables = uses = clusters = types = parts = 1
        jobs, gpus = Axis(JOB, 1), Axis(GPU, 1)
    else:
        clusters, types, parts = clusters_in(regions), MOST_TYPES, MOST_PARTS
    speeds = MOST_SPEEDS if regions > 1 else 1
    return (
        _scalars(regions > 1)
        + _place_fields(gpus, regions, clusters, types, speeds)
        + _job_fields(jobs, parts, Axis(READ, uses))
        + _table_fields(tables)
        + _transfer_fields(regions, tables)
        + (_cost_fields(regions, types, hours) if hours > 0 else _cost_fields(1, 1, 0))
    )


def _scalars(has_regions: bool) -> list[Field]:
    bins, gpu_or_cpu, levels, kinds, copy_bins = (
        (USAGE_BINS, 2, LEVELS, COPY_KINDS, COPY_BINS) if has_regions else (1, 1, 1, 1, 1)
    )
    return [
        ("n_regions", "i8"),
        ("n_clusters", "i8"),
        ("n_types", "i8"),
        ("n_tables", "i8"),
        ("cpu_type", "i8"),  # whose units are machines without GPUs
        ("up_regions", "i8"),  # set
        ("region_mtbf_s", "f8"),  # 0 = none
        ("region_mttr_s", "f8"),
        ("first_region_event", "i8"),  # ids in the heap of events
        ("first_link_event", "i8"),
        ("tables_event", "i8"),
        ("tables_every_s", "f8"),
        ("tables_due", "i8"),  # the slow path is to look
        ("tables_seen", "i8"),  # decisions before it last did
        ("lag_next", "i8"),  # workload for which replicas next have caught up: the id in the heap after `tables_event`
        ("save_s", "f8"),  # to save the state of a workload that is stopped for another
        ("slo_s", "f8", (levels,)),  # how long a workload may wait for its first start and such a saving, by level
        ("usage_bin_s", "f8"),  # width of a bin
        ("usage_held_s", "f8", (gpu_or_cpu, bins)),  # unit-seconds held in each: of GPUs, of CPU machines
        ("late_starts", "i8"),  # how many waited longer,
        ("level_late", "i8", (levels,)),  # by level
        ("level_waits", "i8", (levels,)),  # workloads without units now, by level,
        ("level_waited_s", "f8", (levels,)),  # and its integral
        ("gpu_compute_s", "f8"),  # compute_gpu_s, of GPUs alone
        ("waited_for_data", "i8"),  # workloads that no region could run when they arrived: tables, or outages
        ("bytes_moved", "f8"),  # by copies that are complete,
        ("bytes_wasted", "f8"),  # and by those that were broken off
        ("copy_published", "i8"),  # 1: a copy takes a time that is drawn; 0: what its share of a link allows
        ("copy_urgent", "i8"),  # 1: copies that are asked on demand, and for high priority, go before the others
        ("copies_coupled", "i8"),  # 1: links of one region share what it may send, or receive
        ("copy_times", "i8", (kinds, copy_bins)),  # complete copies by kind and by how long they took
        ("n_transfers", "i8"),
        ("free_transfer", "i8"),  # head of the list of free ones; -1 = none is left
        ("n_doomed", "i8"),  # tables with a copy that is to be deleted
        ("sweep", "i8"),  # one of them may go now
    ]


def _place_fields(gpus: Axis, regions: int, clusters: int, types: int, speeds: int) -> list[Field]:
    per_region = (
        "region_first_machine",
        "region_machines",
        "region_failures",
        "region_down",  # why, as `machine_down` says it of machines; 0 = it is up
        "storage_bytes",
        "stored_bytes",
    )
    per_cluster = ("cluster_region", "cluster_type", "cluster_gpus", "cluster_free")
    return [
        *[(name, "i8", (regions,)) for name in per_region],
        *[(name, "i8", (clusters,)) for name in per_cluster],
        ("machine_cluster", "i8", (gpus,)),
        ("type_gpus", "i8", (types,)),  # units of each type: all,
        ("type_held", "i8", (types,)),  # held by workloads now,
        ("type_down", "i8", (types,)),  # on failed machines now,
        ("type_held_s", "f8", (types,)),  # and their integrals
        ("type_down_s", "f8", (types,)),
        ("type_speed", "f8", (speeds, types)),  # of a row's models, over that of their duration; 0: all alike
    ]


def _job_fields(jobs: Axis, parts: int, uses: Axis) -> list[Field]:
    integers = (
        "job_level",
        "job_tenant",
        "job_hosts",  # set of the regions that could hold it if they were empty
        "job_region",  # where it runs; -1 = nowhere
        "last_region",  # where it ran last
        "gpu_units",  # its units that are GPUs
        "home_start",  # 1: it started first where they had it
        "lacks_data",  # 1: no region could run it when it arrived, nor since; 2: one can by now
        "first_read",  # first of the tables that it reads
        "n_reads",
        "speed_row",  # of `type_speed`
    )
    return [
        *[(name, "i8", (jobs,)) for name in integers],
        ("container_s", "f8", (jobs,)),  # of every start, until work begins
        ("home_until_s", "f8", (jobs,)),  # until when it runs only where its tables have their home; -inf: never
        ("data_wait_s", "f8", (jobs,)),  # from its arrival until a region could run it
        ("first_save_s", "f8", (jobs,)),  # that its first start waits until the state of others is saved
        ("own_iteration_s", "f8", (jobs,)),  # `compute_iteration_s` on types of speed 1
        ("part_type", "i8", (jobs, parts)),  # that it runs on or ran on last; before that, one it accepts; -1 = no part
        ("part_accepts", "i8", (jobs, parts)),  # set of types
        ("part_units", "i8", (jobs, parts)),
        ("part_profile", "i8", (jobs, parts)),  # of its GPUs, a gang of their own; -1: it has none
        ("part_tier", "i8", (jobs, parts)),  # of its GPUs, where it runs or ran last
        ("part_cluster", "i8", (jobs, parts)),  # of a running one
        ("read_table", "i8", (uses,)),
        ("reader_job", "i8", (uses,)),
        ("reader_next", "i8", (uses,)),  # of the same table, from `table_reader` on: those that run or lack data
        ("reader_prev", "i8", (uses,)),
        ("ended", "i8", (words(jobs.length)[0],)),  # of every 32 jobs in a row: how many are done,
        ("ended_s", "f8", (words(jobs.length)[0],)),  # and when the last of them was
    ]


def _table_fields(tables: int) -> list[Field]:
    names = (
        "table_size",  # bytes
        "replica_size",  # of a copy that is not at home: partitions that are read
        "table_home",
        "table_target",  # where its home moves to; -1 = it stays
        "table_copies",  # set: complete ones, of which
        "table_whole",  # have all partitions: at home, or at an old home,
        "table_wanted",  # stay if they are no home,
        "table_complete",  # of these keep all partitions,
        "table_doomed",  # and are deleted when no job reads them
        "table_high",  # 1: a job of high priority that the slow path knows reads it
        "table_reader",  # head of the list of its readers
        "table_transfer",  # head of the list of its copies on the way
        "doomed_table",  # tables with doomed copies,
        "doomed_place",  # and back
    )
    return [(name, "i8", (tables,)) for name in names]


def _transfer_fields(regions: int, transfers: int) -> list[Field]:
    """A pool of copies on the way; and links of two lanes, whose flow the transfers share by weight.

    `wan_served`: the bytes of an imagined transfer of weight 1; with drawn times it is seconds.
    """
    integers = (
        "transfer_table",
        "transfer_from",  # -1 = it waits for a source
        "transfer_to",
        "transfer_bytes",  # to send
        "transfer_room",  # that it takes at its target
        "transfer_kind",  # regions/copy_times.py
        "transfer_lane",  # 0 goes first
        "transfer_next",  # of the lane, by end; of the free ones
        "transfer_prev",
        "transfer_after",  # of the table
    )
    entries, columns, n_lanes = (COPY_ENTRIES * transfers, COPY_COLUMNS, LANES) if regions > 1 else (1, 1, 1)
    links, lanes = (regions, regions), (n_lanes, regions, regions)
    ends = ("egress_rate", "ingress_rate", "egress_left", "ingress_left", "egress_asked", "ingress_asked")
    return [
        *[(name, "i8", (transfers,)) for name in integers],
        ("copy_log_on", "i8"),
        ("copy_log_count", "i8"),
        ("copy_log_overflow", "i8"),
        ("copy_log", "f8", (Axis(LOGGED, entries), columns), COUNTED),  # regions/copy_log.py
        ("transfer_end", "f8", (transfers,)),  # `wan_served` when it is complete
        ("transfer_weight", "f8", (transfers,)),
        ("transfer_since_s", "f8", (transfers,)),  # when it was decided
        ("wan_rate", "f8", links),  # bytes per second, from a region to another
        ("wan_bytes", "f8", links),  # sent until `wan_since_s`
        ("wan_left", "f8", links),  # bytes per second that a lane leaves, while flows are shared out
        ("wan_served", "f8", lanes),
        ("wan_since_s", "f8", lanes),  # until when that is counted
        ("wan_flow", "f8", lanes),  # bytes per second that go over it now
        ("wan_weight", "f8", lanes),  # of all its transfers
        ("wan_count", "i8", lanes),
        ("wan_first", "i8", lanes),  # head of its transfers; -1 = none
        *[(name, "f8", (regions,)) for name in ends],  # bytes per second of all links of a region: caps; scratch
    ]


def _cost_fields(regions: int, types: int, hours: int) -> list[Field]:
    by_region = ("stored_byte_s", "stored_since_s", "free_w")  # bytes stored until when; watts, were all units free
    by_type = (
        "held_unit_s",  # unit-seconds held, of a type in a region,
        "held_price",  # their price, $/MWh x hours,
        "held_carbon",  # and carbon, g/kWh x hours
        "metered_s",  # until when these are booked
    )
    return [
        ("n_hours", "i8"),  # 0 = no prices
        ("egress_per_byte", "f8"),  # $
        ("storage_per_byte_s", "f8"),  # $
        ("spent", "f8", (5 if hours > 0 else 1,), CALL),  # scratch: what regions/spent.py counts
        ("held_w", "f8", (types,)),  # watts that a unit of a type draws more when it is held
        ("region_held", "i8", (regions, types)),  # units held now
        *[(name, "f8", (regions,)) for name in by_region],
        *[(name, "f8", (regions, types)) for name in by_type],
        ("price_sum", "f8", (regions, hours + 1), OVERWRITTEN),  # from hour 0 to the beginning of each, $/MWh x hours
        ("carbon_sum", "f8", (regions, hours + 1), OVERWRITTEN),  # g/kWh x hours
    ]
