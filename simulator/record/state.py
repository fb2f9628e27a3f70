"""The state of one simulated cluster: a single structured record, composed of one dtype per concept.

A record of fixed shape makes kernels fast (one pointer, no reference counting) and snapshots one assignment. Every
shape compiles once, so capacities come in few sizes; the real sizes are scalar fields (`n_jobs`, `n_gpus`, ...). Times
are seconds, work is iterations, GPU time is GPU-seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, lru_cache

import numpy as np

from ..base.errors import InputError
from ..base.tiers import TIERS
from ..numerics.bitset import words
from .contention_fields import cable_events, contention_fields, stay_fields
from .field_axes import CHANCE, COUNTED, GPU, JOB, LOGGED, MEMO, OVERWRITTEN, SEAT, Axis, Field, dtype_of
from .region_fields import MOST_HOURS, MOST_REGIONS, clusters_in, events_in, region_fields
from .rule_fields import backfill_fields, delay_fields, foresight_fields, room_fields, rule_fields, semantics_fields
from .sharing_fields import sharing_fields
from .zeroed import zeroed

# No powers of two: at the same place of arrays that lie a multiple of 4 KB apart, one would drive the other out of the
# processor's cache.
# Few, so that most of what users simulate needs one class beside that of the small ones; room that is not used is
# never touched, and takes no memory.
SMALL = (136, 72, 104)  # jobs, GPUs, links: what agents train on by default, without layers of models and auctions
JOB_SIZES = (16_392, 131_072, 1_048_576, 8_388_608)
GPU_SIZES = (8_200, 131_072, 262_152)
BERTH_SIZES = (1, 8)  # jobs that may hold one GPU at once
LINK_SIZES = (8_264, 65_608)
SMALL_GEO = (520, 520, 8, 152, 4_160)  # jobs, GPUs and CPU machines, regions, tables, tables read by all jobs
TABLE_SIZES = (8_264, 131_144, 1_048_648)
READS = 64  # tables that a job reads, on average
AUCTIONS = 512  # at least
CLASSES = 256  # of jobs by demand, at most,
PROFILES = 512  # and pairs of a model and a number of GPUs; never more than jobs
WAITS, SMALL_WAITS = 2048, 512  # that delay timers remember
OUTAGE_SIZES = (1_032, 65_544, 2_097_160)  # machines in all fault groups, groups, and rows of a list of outages
MODELS = 64
LAYERS = 1024  # of all models of a workload
SHAPES = 2048  # a power of two


@dataclass(frozen=True)
class Capacity:
    """The shape of a record: how many jobs and GPUs it can hold, how many jobs one GPU, and how many links.

    With one berth a GPU, jobs have their GPUs to themselves and one speed for as long as they hold them; the fields of
    `sharing_fields.py` are there with more only. Those of `contention_fields.py` are there with links only, those of
    `region_fields.py` with regions only; `uses` are pairs of a job and a table that it reads, `hours` those of prices,
    `outages` rows of a list of outages, or machines of fault groups.
    So there are four groups of records (`features`), each with one small class and larger ones.
    """

    jobs: int
    gpus: int
    berths: int = 1
    links: int = 0
    regions: int = 0
    tables: int = 0
    uses: int = 0
    hours: int = 0
    outages: int = 0

    @property
    def seats(self) -> int:
        """Berths of all GPUs: no more jobs can run."""
        return self.gpus * self.berths

    @property
    def features(self) -> str:
        """Which group of fields there is room for: plain, sharing, links (and sharing), or regions."""
        if self.regions:
            return "regions"
        return "links" if self.links else "plain" if self.berths == 1 else "sharing"

    @property
    def is_small(self) -> bool:
        """The class of small workloads and clusters, without room for layers of models and auctions."""
        return self.jobs < JOB_SIZES[0]

    @property
    def large(self) -> Capacity:
        """The class that all but the smallest workloads and clusters of this kind need."""
        jobs, gpus = max(self.jobs, JOB_SIZES[0]), max(self.gpus, GPU_SIZES[0])
        if self.regions:
            regions, tables = MOST_REGIONS + 1, max(self.tables, TABLE_SIZES[0])
            uses = READS * jobs
            return replace(self, jobs=jobs, gpus=gpus, regions=regions, tables=tables, uses=uses)
        links = max(self.links, LINK_SIZES[0]) if self.links else 0
        return replace(self, jobs=jobs, gpus=gpus, links=links)

    def with_outages(self, wanted: int) -> Capacity:
        """The same with room for rows of a list of outages and machines of fault groups; InputError: too many."""
        if wanted == 0:
            return self
        return replace(self, outages=_class_of(wanted, OUTAGE_SIZES, "outages and machines of fault groups"))

    @property
    def words(self) -> str:
        """It for people."""
        return f"{self.jobs:,} jobs on {self.gpus:,} GPUs"

    def empty(self, n: int = 1) -> np.recarray:
        """`n` zeroed records of this shape."""
        return empty_state(self, n)

    @classmethod
    @lru_cache(maxsize=256)
    def fitting(cls, jobs: int, gpus: int, berths: int = 1, links: int = 0, *, layered: bool = False) -> Capacity:
        """The smallest size class that holds `jobs` jobs on `gpus` GPUs; InputError: none does.

        Args:
            berths: jobs that may hold one GPU at once.
            links: how many jobs share; 0: none.
            layered: with layers of models (network allreduce), or auctions (semantics artist-sim).
        """
        berths = _class_of(berths, BERTH_SIZES, "jobs on a GPU")
        if jobs <= SMALL[0] and gpus <= SMALL[1] and links <= SMALL[2] and not layered:
            return cls(*SMALL[:2], berths, SMALL[2] if links > 0 else 0)
        links = _class_of(links, LINK_SIZES, "links") if links > 0 else 0
        return cls(_class_of(jobs, JOB_SIZES, "jobs"), _class_of(gpus, GPU_SIZES, "GPUs"), berths, links)

    @classmethod
    def with_regions(
        cls,
        jobs: int,
        gpus: int,
        regions: int,
        clusters: int,
        tables: int,
        uses: int,
        *,
        layered: bool = False,
        priced: bool = False,
    ) -> Capacity:
        """The smallest size class for these, see `fitting`; `priced`: with hourly prices; InputError: none fits."""
        if regions > MOST_REGIONS:
            raise InputError(f"{regions} regions: one simulator holds at most {MOST_REGIONS}")
        if clusters > clusters_in(MOST_REGIONS + 1):
            raise InputError(f"{clusters} clusters: one simulator holds at most {clusters_in(MOST_REGIONS + 1)}")
        wanted, hours = (jobs, gpus, regions, tables, uses), MOST_HOURS if priced else 0
        is_small = all(size <= most for size, most in zip(wanted, SMALL_GEO, strict=True))
        if is_small and clusters <= clusters_in(SMALL_GEO[2]) and not layered:
            jobs, gpus, regions, tables, uses = SMALL_GEO
            return cls(jobs, gpus, regions=regions, tables=tables, uses=uses, hours=hours)
        jobs = _class_of(jobs, JOB_SIZES, "jobs")
        return cls(
            jobs,
            _class_of(gpus, GPU_SIZES, "GPUs and CPU machines"),
            regions=MOST_REGIONS + 1,
            tables=_class_of(tables, TABLE_SIZES, "tables"),
            uses=_class_of(uses, (READS * jobs,), "tables read by all jobs"),
            hours=hours,
        )


def _class_of(wanted: int, sizes: tuple[int, ...], noun: str) -> int:
    for size in sizes:
        if wanted <= size:
            return size
    raise InputError(f"{wanted} {noun}: one simulator holds at most {sizes[-1]}; split the workload or the cluster")


def clock_fields() -> list[Field]:
    """Time, progress of the run and its totals (scalars)."""
    return [
        *CHANCE,
        ("now_s", "f8"),
        ("start_s", "f8"),  # first arrival
        ("horizon_s", "f8"),  # absolute; inf = none
        ("next_arrival", "i8"),  # index of the first job that has not arrived
        ("waiting", "i8"),  # jobs in the queue, held ones not counted
        ("held", "i8"),
        ("running", "i8"),
        ("done", "i8"),
        ("events", "i8"),
        ("endless_check_at", "i8"),  # how many there may be until progress is checked (endless_runs.py),
        ("best_left_s", "f8"),  # and the work that was left then
        ("instants", "i8"),  # decision points so far
        ("decisions", "i8"),  # starts, stops, moves and holds so far, and the last of them:
        ("last_kind", "i8"),
        ("last_job", "i8"),
        ("active_integral", "f8"),  # job-seconds in the system
        ("slowdown_rate", "f8"),  # sum of 1 / isolated run time over the jobs in the system
        ("slowdown_integral", "f8"),  # its integral: the sum of slowdowns, once all are finished
        ("late", "i8"),  # jobs that had not finished at their deadline, of those due before now
        ("next_due", "i8"),  # place in `due` of the first deadline that is not before now
        ("n_due", "i8"),  # jobs with a deadline
        ("fragmented_integral", "f8"),  # GPU-seconds free on partly used machines
        ("down_integral", "f8"),  # GPU-seconds on failed machines
        ("used_gpu_s", "f8"),  # held by jobs; compute + communication + restore + lost
        ("compute_gpu_s", "f8"),
        ("comm_gpu_s", "f8"),
        ("restore_gpu_s", "f8"),
        ("lost_gpu_s", "f8"),  # undone by failures, or past the work of a job (not in compute_gpu_s)
        ("preemptions", "i8"),
        ("migrations", "i8"),
        ("failures", "i8"),
    ]


JOB_FLOATS = (
    "arrival_s",
    "deadline_s",  # absolute; inf = none
    "iterations",
    "base_iteration_s",  # isolated: seconds per iteration on the best placement of the empty cluster;
    "compute_iteration_s",  # of these what the network does not add: `tier_factor` is relative to it
    "iterations_left",  # when progress was last updated
    "iteration_s",  # seconds per iteration at the present placement
    "started_s",  # present stretch on GPUs: when it began,
    "since_s",  # and when its progress began (after the restore)
    "planned_finish_s",
    "check_s",  # next instant at which the rule looks at the running job (demotion); inf = none
    "lease_end_s",
    "stopped_s",  # last time that it lost its GPUs; -1 = never
    "left_s",  # last instant at which it left the GPUs that it held when the instant began; -1 = never
    "stop_left",  # what it had then, in case that it is back on them before the instant ends
    "stop_since_s",
    "stop_started_s",
    "stop_attained_s",
    "waiting_since_s",
    "held_since_s",
    "first_start_s",
    "finish_s",
    "queued_s",  # total time without GPUs since arrival
    "attained_s",  # total time on GPUs, until the last stop
    "begun_s",  # last time that it got GPUs, or a lease of those that it has; -1 = never
    "comm_s",
    "restore_s",
    "logged_s",  # when the log says that it started, under the order LOGGED
    "order_key",  # place in the order while waiting
    "run_key",  # place in the order while running (LAS)
    "active_at_arrival",  # active_integral when it arrived
    "mean_active",  # mean number of active jobs over its life
)
JOB_INTEGERS = (
    "gpus",
    "status",
    "profile",
    "demand",  # its demand class
    "level",  # LAS
    "preempted",
    "migrated",
    "starts",
    "stop_preempted",  # see left_s
    "stop_migrated",
    "stop_starts",
    "tier",
    "first_gpu",  # head of its gang's list
    "runner_place",  # in `runner`
    "queue_place",  # in its class's heap; -1 = not queued
    "offer_place",  # in `offered`, from 1; 0 = not in it
    "is_joined",
    "rank",  # place in the window's order, and back:
    "job_at_rank",
    "due",  # the jobs with a deadline, the next one first
)


def job_fields(jobs: Axis) -> list[Field]:
    """One entry a job, in order of arrival."""
    columns: list[Field] = [(name, "f8", (jobs,)) for name in JOB_FLOATS]
    columns += [(name, "i8", (jobs,)) for name in JOB_INTEGERS]
    return columns


def estimate_fields(jobs: Axis) -> list[Field]:
    """What is known of run times (jobs/remaining_time.py)."""
    return [
        ("known_times", "i8"),  # whether they are exact, estimates, or not known
        ("estimate_s", "f8", (jobs,)),  # where they are estimates: the isolated run time of the whole job
    ]


def grant_fields(jobs: Axis, serves: Axis) -> list[Field]:
    """Per job, where a grant is one lease and work counts in chunks; `serves`: jobs with summed GPU-seconds."""
    floats = (
        "ran_s",  # chunks: sum of their durations,
        "grant_left",  # and what these and the iterations left will be when the present grant ends
        "grant_ran_s",
        "grant_service_gpu_s",
        "grant_pause_s",  # from its end to the auction
        "leased_s",  # when its lease began
        "reserved_s",  # since when it holds a second gang, to which it will move
    )
    integers = (
        "next_first_gpu",  # head of the list of the gang that it will move to; -1 = none
        "next_tier",
    )
    columns: list[Field] = [("service_gpu_s", "f8", (serves,))]  # and of GPUs x duration
    columns += [(name, "f8", (jobs,)) for name in floats]
    columns += [(name, "i8", (jobs,)) for name in integers]
    return columns


def event_fields(jobs: int, gpus: int, regions: int, links: int, auctions: int, outages: int) -> list[Field]:
    """The heap of next events: ids are jobs, machines, the scheduling round, the next auction.

    Then fault groups and their list of outages; with regions these, the links between them, and the slow path; links.
    """
    ids = jobs + gpus + 2 + outage_events(outages) + events_in(regions) + cable_events(links)
    return [
        ("event_key", "f8", (ids,)),
        ("event_item", "i8", (ids,)),
        ("event_position", "i8", (ids,)),  # place of an id in the heap, -1 = none
        ("event_count", "i8"),
        ("first_machine_event", "i8"),
        ("round_event", "i8"),
        ("auction_event", "i8"),
        ("auction_s", "f8", (auctions,)),  # auctions to come, latest first
        ("n_auctions", "i8"),
    ]


def queue_fields(jobs: Axis, classes: int) -> list[Field]:
    """Waiting jobs: one heap per demand class (GPUs, skewed or not) in shared arrays, and sets in window order."""
    low, mid, top = words(jobs.length)
    return [
        ("queue_key", "f8", (jobs,)),
        ("queue_item", "i8", (jobs,)),
        ("n_classes", "i8"),
        ("class_gpus", "i8", (classes,)),  # ascending
        ("class_skewed", "i8", (classes,)),
        ("class_base", "i8", (classes,)),
        ("class_count", "i8", (classes,)),
        ("class_blocked", "i8", (classes,)),  # number of the pass in which no placement was found
        ("class_refused", "i8", (classes,)),  # 4 x number of the pass + tiers that the job took; offer_pass.py
        ("window_low", "i8", (low,)),
        ("window_mid", "i8", (mid,)),
        ("window_top", "i8", (top,)),
        ("running_low", "i8", (low,)),  # the running jobs, in the same order
        ("running_mid", "i8", (mid,)),
        ("running_top", "i8", (top,)),
    ]


PER_BERTH = ("gpu_job", "gpu_next", "gpu_last_job", "gpu_last_start")
PER_GPU = ("gpu_slot", "gpu_machine", "gang")
PER_SLOT = ("slot_free", "slot_first_gpu", "slot_gpus", "slot_machine")
PER_MACHINE = (
    "machine_free",
    "machine_first_gpu",
    "machine_gpus",
    "machine_first_slot",
    "machine_slots",
    "machine_rack",
    "machine_down",
    "machine_failures",
    "machine_scan",
    "machine_affinity",
)
PER_RACK = ("rack_free", "rack_first_machine", "rack_machines")
CLUSTER_ARRAYS = PER_GPU + PER_SLOT + PER_MACHINE + PER_RACK


def cluster_fields(gpus: Axis, berths: int) -> list[Field]:
    """GPUs, slots, machines and racks, and what each job holds.

    The jobs on a GPU lie in berths: layer x (capacity for GPUs) + GPU, so that the first of a GPU has its number. The
    berths of a gang are a linked list through `gpu_next`, from `first_gpu` on.
    """
    low, mid, top = words(gpus.length)
    return [
        *[(name, "i8", (gpus._replace(layers=berths),)) for name in PER_BERTH],
        *[(name, "i8", (gpus,)) for name in CLUSTER_ARRAYS],
        ("free_low", "i8", (low,)),
        ("free_mid", "i8", (mid,)),
        ("free_top", "i8", (top,)),
        ("free_gpus", "i8"),
        ("fragmented_gpus", "i8"),
        ("down_gpus", "i8"),
        ("spread", "i8"),  # running jobs on a worse tier than their size needs
        ("gang_size", "i8"),
    ]


def size_fields() -> list[Field]:
    """Real sizes within the capacity (scalars)."""
    names = ("n_jobs", "n_gpus", "n_slots", "n_machines", "n_racks", "largest_machine", "largest_rack")
    return [
        *[(name, "i8") for name in names],
        ("n_apart", "i8"),  # regions none of whose gangs may lie in another one too; 0: gangs may lie anywhere
        ("apart_end", "i8", (MOST_REGIONS + 1,)),  # where the GPUs of each of them end
        ("spanning", "i8"),  # 1 + a job that has got GPUs in several of them; 0: none has
    ]


def network_fields(profiles: int) -> list[Field]:
    """Slowdown of one iteration by profile and tier."""
    return [("tier_factor", "f8", (profiles, TIERS), OVERWRITTEN)]


def layer_fields(gpus: Axis, profiles: int, models: int, layers: int, shapes: int) -> list[Field]:
    """What network allreduce needs (network/collectives.py)."""
    return [
        ("net_models", "i8"),  # models of the tables below; 0: tier_factor is the network
        ("net_kind", "i8", (TIERS,)),
        ("net_links", "i8", (TIERS,)),  # of one member; 0: as many as there are members
        ("net_latency_ns", "f8", (TIERS,)),  # of one message
        ("net_bandwidth", "f8", (TIERS,)),  # of one link, bytes per ns
        ("net_memory_bandwidth", "f8"),
        ("net_endpoint_ns", "i8"),
        ("net_fifo", "i8"),
        ("net_single", "i8"),
        ("net_flattened", "i8"),
        ("profile_model", "i8", (profiles,), OVERWRITTEN),  # -1: one GPU
        ("model_first", "i8", (models + 1,)),  # first layer of a model
        ("model_compute_ns", "i8", (models,)),
        ("model_end_ns", "i8", (models,)),  # when the backward pass ends, from the start of the forward pass
        ("layer_bytes", "i8", (layers,), OVERWRITTEN),
        ("layer_ready_ns", "i8", (layers,), OVERWRITTEN),  # when its gradient is computed
        ("layer_update_ns", "i8", (layers,), OVERWRITTEN),  # from the end of its all-reduce to its completion
        ("layer_order", "i8", (layers,), COUNTED),  # scratch
        ("layer_done_ns", "i8", (layers,), COUNTED),  # scratch
        ("layer_waiting", "i8", (layers,), COUNTED),  # scratch
        ("units", "i8", (TIERS,)),  # scratch: the shape of a placement
        ("slot_held", "i8", (gpus,)),  # scratch, 0 between calls: GPUs of the gang in a slot,
        ("machine_held", "i8", (gpus,)),  # slots of a machine,
        ("rack_held", "i8", (gpus,)),  # and machines of a rack
        ("shapes", "i8"),  # memo by shape and model: how many are in it, the two halves of the key,
        ("shape_first", "i8", (shapes,), MEMO),
        ("shape_second", "i8", (shapes,), MEMO),
        ("shape_fraction", "f8", (shapes,), MEMO),  # and compute over duration of an iteration
    ]


def failure_fields() -> list[Field]:
    """Machine failures; a mean time between failures of 0 turns them off."""
    return [("mtbf_s", "f8"), ("mttr_s", "f8"), ("checkpoint_s", "f8")]


def outage_events(room: int) -> int:
    """Ids that outages add to the heap of events: every fault group, and the next row of the list."""
    return room + 1 if room > 0 else 0


def outage_fields(room: int) -> list[Field]:
    """Fault groups of machines and regions, a list of their outages (fault_groups.py); one entry each without room."""
    scalars = (
        "first_group_event",  # ids in the heap of events
        "outage_event",
        "failing_groups",  # the first so many groups fail at random
        "n_outages",
        "next_outage",  # the first row that has not come yet
        "closing_machines",  # those that have been given notice
        "outages",  # that have begun: of groups at random, and of the list
        "stopped_for_outages",  # jobs that an outage with notice stopped
    )
    arrays = ("group_first", "group_machines", "group_regions", "group_machine", "outage_group", "outage_kind")
    return [
        ("group_mtbf_s", "f8"),  # 0 = none
        ("group_mttr_s", "f8"),
        *[(name, "i8") for name in scalars],
        *[(name, "i8", (room,), OVERWRITTEN) for name in arrays],
        ("group_down", "i8", (room,)),  # 1: it has failed at random
        ("group_failures", "i8", (room,)),
        ("outage_s", "f8", (room,), OVERWRITTEN),  # ascending
    ]


def log_fields(entries: Axis, gpus: Axis) -> list[Field]:
    """Decisions of the present instant, in order, and their GPUs; kept while `log_on`; first those of tier_holds.py."""
    return [
        ("log_on", "i8"),
        ("log_count", "i8"),
        ("log_gpus", "i8"),
        ("log_overflow", "i8"),
        ("log_kind", "i1", (entries,), COUNTED),
        ("log_job", "i4", (entries,), COUNTED),
        ("log_first", "i4", (entries,), COUNTED),
        ("log_size", "i4", (entries,), COUNTED),
        ("log_value", "i8", (entries,), COUNTED),  # sub-batch of a start, batch of a new size; 0 = none
        ("log_gpu", "i4", (gpus,), COUNTED),
        ("log_time_s", "f8", (entries,), COUNTED),
    ]


@cache
def state_fields(capacity: Capacity) -> tuple[Field, ...]:
    """All fields of the record of one size class."""
    jobs, gpus, seats = Axis(JOB, capacity.jobs), Axis(GPU, capacity.gpus), Axis(SEAT, capacity.seats)
    layered, waits = not capacity.is_small, SMALL_WAITS if capacity.is_small else WAITS
    granted, shaped = (jobs, gpus) if layered else (Axis(JOB, 1), Axis(GPU, 1))
    classes, profiles = min(CLASSES, capacity.jobs), min(PROFILES, capacity.jobs)
    # At one instant a job may start, be stopped and held, and a table be copied to or dropped from every region.
    log = Axis(LOGGED, 3 * capacity.jobs + 8 * capacity.tables)
    fields = (
        size_fields()
        + clock_fields()
        + job_fields(jobs)
        + estimate_fields(jobs)
        + grant_fields(granted, granted if capacity.berths == 1 else jobs)
        + event_fields(
            capacity.jobs,
            capacity.gpus,
            capacity.regions,
            capacity.links,
            max(capacity.gpus, AUCTIONS) if layered else 1,
            capacity.outages,
        )
        + queue_fields(jobs, classes)
        + cluster_fields(gpus, capacity.berths)
        + rule_fields(jobs, seats)
        + semantics_fields()
        + delay_fields(classes, waits)
        + foresight_fields(jobs, gpus, seats)
        + room_fields(jobs, gpus, seats)
        + backfill_fields(jobs)
        + network_fields(profiles)
        + (layer_fields(shaped, profiles, MODELS, LAYERS, SHAPES) if layered else layer_fields(shaped, 1, 1, 1, 1))
        + failure_fields()
        + outage_fields(max(1, capacity.outages))
        + log_fields(log, Axis(LOGGED, 8 * capacity.seats))
        + sharing_fields(jobs, gpus, classes, capacity.berths)
        + contention_fields(capacity.jobs, capacity.links)
        + stay_fields(jobs, capacity.links, log)
        + region_fields(jobs, gpus, capacity.regions, capacity.tables, capacity.uses, capacity.hours)
    )
    return tuple(fields)


@cache  # numba compares dtypes by identity first, by their many fields otherwise
def state_dtype(capacity: Capacity) -> np.dtype:
    """The whole record for one size class."""
    return dtype_of(state_fields(capacity))


def empty_state(capacity: Capacity, n: int = 1) -> np.recarray:
    """`n` zeroed records; `state[i]` is what kernels take."""
    return zeroed(n, state_dtype(capacity))
