"""Writing a topology, a workload, a network and a rule into a state record. Plain numpy; the kernels check nothing.

Fields are named by item, `s["gpus"]`: as attributes they cost 1 us each, and environments are reset often.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..base.arguments import expect_single, number
from ..base.codes import BEST_BENEFIT, FIRST_FIT, FREE, LANES, NOT_SHARED, RUNNING, WAITING, WORD
from ..base.errors import InputError
from ..base.tiers import TIERS, UNPLACED
from ..cluster.topology import Topology
from ..files.file_marks import A_FILE, MARK, path_unless
from ..jobs.job_kinds import first_kinds
from ..jobs.part_gangs import PartGangs
from ..jobs.workload import Workload
from ..network.isolated import gang_factors, iteration_times_s
from ..network.network_model import Network
from ..numerics.bitset import words
from ..numerics.rounding import EQUAL
from ..record.raw_record import RawRecord
from ..record.region_fields import MOST_PARTS
from ..record.state import CLASSES, CLUSTER_ARRAYS, PER_BERTH, PROFILES, outage_events
from ..rules.rule import COST_SPLIT_GPUS, ORDERS, PLACERS, SHARINGS, Rule
from ..rules.semantics import LEASE_S, Semantics
from .column_writers import write_columns, write_demands, write_gpus
from .outage_list import OutageList

MEANS = ("mtbf_s", "region_mtbf_s", "group_mtbf_s")
REPAIRS = ("mttr_s", "region_mttr_s", "group_mttr_s")
WORDS = ("outages", "fault_groups")
TOGETHER: dict[str, Any] = {"feature": "outages"}


@dataclass(frozen=True)
class Failures:
    """Failures of machines, and of regions: exponential times between failures of one and to repair, seconds.

    A region that is down has no running machine and no copies from or to it; its data stays. Each fails by itself,
    except within `fault_groups`.

    Args:
        mtbf_s: mean time between failures of a machine, > 0; inf: none.
        mttr_s: mean time to repair, > 0.
        checkpoint_s: seconds of progress between checkpoints; a failure undoes the work since the last one (0: none).
        region_mtbf_s: mean time between failures of a region, > 0; inf: none. Only where there are regions.
        region_mttr_s: mean time until it is up again, > 0.
        outages: a csv of outages of regions, clusters, racks, machines and fault groups, with notice or without
            (events/outage_list.py); none: there are none but those at random.
        fault_groups: what fails together: `racks`, `regions` (fault groups of the topology), or a csv of named sets.
        group_mtbf_s: mean time between failures of a fault group, > 0; inf: none fails at random.
        group_mttr_s: mean time until it is up again, > 0.
    """

    mtbf_s: float = math.inf
    mttr_s: float = field(default=3600.0, metadata={"needs": ("mtbf_s",)})
    checkpoint_s: float = field(default=1800.0, metadata={"needs": (*MEANS, "outages")})
    region_mtbf_s: float = field(default=math.inf, metadata={"feature": "regions"})
    region_mttr_s: float = field(default=3600.0, metadata={"feature": "regions", "needs": ("region_mtbf_s",)})
    outages: str | None = field(default=None, metadata=TOGETHER | {MARK: A_FILE})
    fault_groups: str | None = field(
        default=None,
        metadata=TOGETHER | {"needs": ("group_mtbf_s", "outages"), MARK: path_unless(("racks", "regions"))},
    )
    group_mtbf_s: float = field(default=math.inf, metadata=TOGETHER | {"needs": ("fault_groups",)})
    group_mttr_s: float = field(default=3600.0, metadata=TOGETHER | {"needs": ("group_mtbf_s",)})

    @classmethod
    def of(cls, **given: float | str | None) -> Failures | None:
        """Failures where a mean time between them is given and not 0, or a list of outages; None where none is."""
        words = {key: given[key] for key in WORDS if given.get(key) not in (None, "", "none")}
        values = {key: number(key, value) for key, value in given.items() if value is not None and key not in WORDS}
        failures = cls(**words, **{key: value for key, value in values.items() if value or "mtbf_s" not in key})  # type: ignore[arg-type]
        return failures if failures.outages or min(getattr(failures, name) for name in MEANS) < math.inf else None

    def __post_init__(self) -> None:
        expect_single(vars(self))
        for name in WORDS:
            if not isinstance(getattr(self, name), str | None):
                raise InputError(f"{name} = {getattr(self, name)!r}: expected the path of a csv")
        for name in (*MEANS, *REPAIRS, "checkpoint_s"):
            if not isinstance(getattr(self, name), int | float | np.number):
                raise InputError(f"failures: {name} = {getattr(self, name)!r}: expected a number of seconds")
        for name in MEANS:
            if not getattr(self, name) > 0.0:
                raise InputError(f"failures: {name} = {getattr(self, name):g}: expected a number > 0")
        for name in REPAIRS:
            if not 0.0 < getattr(self, name) < math.inf:
                raise InputError(f"failures: {name} = {getattr(self, name):g}: expected a finite number > 0")
        if not 0.0 <= self.checkpoint_s < math.inf:
            raise InputError(f"failures: checkpoint_s = {self.checkpoint_s:g}: expected a finite number >= 0")
        if self.group_mtbf_s < math.inf and not self.fault_groups:
            raise InputError("group_mtbf_s is given without fault_groups: expected racks, regions or a csv of sets")

    def listed(self, topology: Topology) -> OutageList | None:
        """The fault groups and the list of outages; None: none. InputError: a file that does not fit the topology."""
        if not self.outages and not self.fault_groups:
            return None
        return OutageList.load(self.outages or "", self.fault_groups or "", topology, self.group_mtbf_s < math.inf)

    def write_into(self, s: np.void) -> None:
        """Write them into a record; a mean time between failures of 0 turns them off there."""
        for name in MEANS:
            if name in (s.dtype.names or ()):
                value = getattr(self, name)
                s[name] = value if value < math.inf else 0.0
        s["mttr_s"], s["region_mttr_s"], s["checkpoint_s"] = self.mttr_s, self.region_mttr_s, self.checkpoint_s
        if "group_mttr_s" in (s.dtype.names or ()):
            s["group_mttr_s"] = self.group_mttr_s


@dataclass(frozen=True)
class Cluster:
    """The output of `write_cluster`.

    Attributes:
        scalars: int by field. sets: int64 by field: every GPU is free.
        arrays: int64 (arrays of CLUSTER_ARRAYS, GPUs). berths: int64 (arrays of PER_BERTH,), for each berth.
    """

    scalars: Mapping[str, int]
    arrays: np.ndarray
    berths: np.ndarray
    sets: Mapping[str, np.ndarray]


OURS = f"{__package__.partition('.')[0]}."  # beginning of the names of modules of networks that need no look
EMPTY_BERTH = {"gpu_job": FREE, "gpu_next": FREE, "gpu_last_job": UNPLACED, "gpu_last_start": 0}


def cluster_of(topology: Topology) -> Cluster:
    """A topology whose GPUs are all free, as records have it."""
    values = _cluster_values(topology)
    scalars = {name: value for name, value in values.items() if isinstance(value, int)}
    arrays = np.zeros((len(CLUSTER_ARRAYS), topology.num_gpus), np.int64)
    for name in values.keys() - scalars.keys():
        arrays[CLUSTER_ARRAYS.index(name), : len(values[name])] = values[name]
    names = ("free_low", "free_mid", "free_top")
    sets = {name: np.zeros(size, np.int64) for name, size in zip(names, words(topology.num_gpus), strict=True)}
    _fill_set(sets["free_low"], sets["free_mid"], sets["free_top"], topology.num_gpus)
    return Cluster(scalars, arrays, np.array([EMPTY_BERTH[name] for name in PER_BERTH], np.int64), sets)


def _cluster_values(topology: Topology) -> dict[str, Any]:
    gpus, slots, machines, racks = topology.num_gpus, topology.num_slots, topology.num_machines, topology.num_racks
    first_slot = np.searchsorted(topology.slot_machine, np.arange(machines + 1))
    rack_gpus = np.bincount(topology.machine_rack, weights=topology.machine_gpus, minlength=racks).astype(np.int64)
    return {
        "n_gpus": gpus,
        "n_slots": slots,
        "n_machines": machines,
        "n_racks": racks,
        "largest_machine": int(topology.machine_gpus.max()),
        "largest_rack": int(rack_gpus.max()),
        "free_gpus": gpus,
        "machine_scan": topology.machine_scan,
        "gpu_slot": topology.gpu_slot,
        "gpu_machine": topology.gpu_machine,
        "slot_machine": topology.slot_machine,
        "slot_first_gpu": topology.slot_first_gpu,
        "slot_gpus": topology.slot_gpus,
        "slot_free": topology.slot_gpus,
        "machine_first_gpu": topology.machine_first_gpu,
        "machine_gpus": topology.machine_gpus,
        "machine_free": topology.machine_gpus,
        "machine_rack": topology.machine_rack,
        "machine_first_slot": first_slot[:-1],
        "machine_slots": np.diff(first_slot),
        "rack_first_machine": topology.rack_first_machine,
        "rack_machines": topology.rack_machines,
        "rack_free": rack_gpus,
    }


def write_cluster(raw: RawRecord, cluster: Cluster) -> None:
    """Write a cluster into a cleared record."""
    write_sizes(raw.record, cluster)
    write_machines(raw, cluster)


def write_sizes(s: np.void, cluster: Cluster) -> None:
    """Write the numbers of a cluster."""
    for name, value in cluster.scalars.items():
        s[name] = value


def write_machines(raw: RawRecord, cluster: Cluster) -> None:
    """Write the arrays of a cluster."""
    s = raw.record
    write_gpus(raw.cluster, cluster.arrays, raw.berths, cluster.berths)
    for name, level in cluster.sets.items():
        s[name][: len(level)] = level


def _fill_set(low: np.ndarray, mid: np.ndarray, top: np.ndarray, items: int) -> None:
    for level in (low, mid, top):
        words, rest = divmod(items, 32)
        level[:words] = 2**32 - 1
        if rest:
            level[words] = 2**rest - 1
        items = words + bool(rest)


def copy_state(old: np.record, new: np.record) -> None:
    """Write a run into a zeroed record with room for at least as many jobs and GPUs, where it goes on the same."""
    for name in old.dtype.names or ():
        value = old[name]
        if name in PER_BERTH:
            continue
        if old.dtype[name].shape:
            new[name][tuple(slice(0, size) for size in value.shape)] = value
        else:
            new[name] = value
    _copy_berths(old, new)
    write_event_ids(new)
    items = new["event_item"][: int(old["event_count"])]
    items[:] = _renumbered(items, old, new)
    new["event_position"][:] = -1
    new["event_position"][items] = np.arange(len(items))


def _renumbered(ids: np.ndarray, old: np.record, new: np.record) -> np.ndarray:
    """What the heap of events calls in `new` what it calls `ids`, int64 (n,), in `old`; jobs keep their numbers."""
    found, shapes = ids.copy(), _event_shapes(new)
    for first, shape in _event_shapes(old).items():
        number = ids - old[first]
        mine = (number >= 0) & (number < math.prod(shape))
        place = np.unravel_index(number[mine], shape)
        found[mine] = new[first] + np.ravel_multi_index(place, shapes[first])
    return found


def _event_shapes(s: np.void) -> dict[str, tuple[int, ...]]:
    """What has events beside jobs, by the field with its first id: how many of it, and how they are counted."""
    regions, groups = len(s["stored_bytes"]), len(s["group_down"])
    shapes: dict[str, tuple[int, ...]] = {"first_machine_event": (len(s["gpu_slot"]),), "round_event": (2,)}
    if groups > 1:
        shapes |= {"first_group_event": (groups,), "outage_event": (1,)}
    if len(s["cluster_region"]) > 1:
        links = (LANES, regions, regions)
        return shapes | {"first_region_event": (regions,), "first_link_event": links, "tables_event": (2,)}
    return shapes | {"first_cable_event": (len(s["link_capacity"]) + 1,)}


def write_event_ids(s: np.void) -> None:
    """Write from where on the heap of events numbers what follows the jobs: machines, the round, regions and so on."""
    regions = len(s["stored_bytes"])
    s["first_machine_event"] = len(s["arrival_s"])
    s["round_event"] = s["first_machine_event"] + len(s["gpu_slot"])
    s["auction_event"] = s["round_event"] + 1
    s["first_group_event"] = s["round_event"] + 2
    room = len(s["group_down"])
    s["outage_event"] = s["first_group_event"] + room
    s["first_region_event"] = s["first_group_event"] + outage_events(room if room > 1 else 0)
    s["first_link_event"] = s["first_region_event"] + regions
    s["tables_event"] = s["first_link_event"] + LANES * regions * regions
    s["first_cable_event"] = s["first_region_event"]  # there are no regions where jobs share links


def _copy_berths(old: np.record, new: np.record) -> None:
    """Berths are numbered by layers, as long as there is room for GPUs: where the room differs, so do the numbers."""
    before, after = len(old["gpu_slot"]), len(new["gpu_slot"])
    for name in PER_BERTH:
        value = old[name].reshape(-1, before)
        layers = new[name].reshape(-1, after)
        layers[:, : old["n_gpus"]] = EMPTY_BERTH[name]
        layers[: len(value), :before] = value
    for name in ("gpu_next", "first_gpu", "next_first_gpu"):
        berth = new[name]
        berth[:] = np.where(berth >= before, berth // before * after + berth % before, berth)


def _expect_factors(network: Network, jobs: int, profile: np.ndarray, factors: np.ndarray) -> None:
    shapes, said = (np.shape(profile), np.shape(factors)), f"network {network.name!r}: tier_factors gave"
    if shapes[0] != (jobs,) or len(shapes[1]) != 2 or shapes[1][1] != TIERS:
        raise InputError(f"{said} arrays of shapes {shapes[0]} and {shapes[1]}; expected ({jobs},) and (P, {TIERS})")
    if not (np.isfinite(factors).all() and np.min(factors) > 0.0):
        raise InputError(f"{said} factors from {np.min(factors)} to {np.max(factors)}; expected finite numbers > 0")
    if not (np.min(profile) >= 0 and np.max(profile) < len(factors)):
        raise InputError(f"{said} profiles from {np.min(profile)} to {np.max(profile)}; there are {len(factors)}")


def write_job_columns(raw: RawRecord, workload: Workload, topology: Topology, network: Network) -> None:
    """Write the jobs and the slowdowns of their profiles; no job has arrived."""
    s, n = raw.record, len(workload)
    if n == 0:
        raise InputError(f"workload {workload.name!r} has no jobs")
    gangs = workload.gangs
    profile, factors = gang_factors(network, workload, topology)
    if not type(network).__module__.startswith(OURS):
        _expect_factors(network, len(gangs), profile, factors)
    if len(factors) > len(s["tier_factor"]):  # some stand for no job, or there are too many
        used, profile = np.unique(profile, return_inverse=True)
        factors = factors[used]
    if len(factors) > PROFILES:
        raise InputError(f"workload {workload.name!r}: {len(factors)} pairs of model and GPUs; at most {PROFILES}")
    s["tier_factor"][: len(factors)] = factors
    compute_s, base_s = iteration_times_s(network, workload, topology, profile, factors)
    # A user's own workload may have its columns in another way.
    arrival_s, deadline_s, iterations, compute_s, base_s = (
        np.ascontiguousarray(column, np.float64)
        for column in (workload.arrival_s, workload.deadline_s, workload.iterations, compute_s, base_s)
    )
    gpus, profile = np.ascontiguousarray(workload.gpus, np.int64), np.ascontiguousarray(profile, np.int64)
    first = profile
    if isinstance(gangs, PartGangs):
        s["part_profile"][:n], first = gangs.by_part(profile, MOST_PARTS), profile[gangs.first]
    if raw.call(write_columns, arrival_s, deadline_s, gpus, iterations, first, compute_s, base_s):
        write_due(s, deadline_s)
    if hasattr(network, "write_into"):  # a ShapedNetwork; asking so by isinstance takes longer than all the rest
        network.write_into(s, gangs, profile)


def write_due(s: np.void, deadline_s: np.ndarray) -> None:
    """Write the jobs with a deadline, in their order; of several at one instant by arrival."""
    (jobs,) = np.isfinite(deadline_s).nonzero()
    s["n_due"], s["due"][: len(jobs)] = len(jobs), jobs[deadline_s[jobs].argsort(kind="stable")]


def write_window_order(s: np.void, order: np.ndarray) -> None:
    """Order the window of waiting jobs, and that of running ones: job `order[0]` first; also on a run in progress."""
    n = len(order)
    if s["job_at_rank"][:n].tobytes() == order.tobytes():  # in a fifth of the time that comparing them takes
        return
    s["job_at_rank"][:n] = order
    s["rank"][order] = np.arange(n)
    status = s["status"][order]
    _write_set(s["window_low"], s["window_mid"], s["window_top"], status == WAITING)
    _write_set(s["running_low"], s["running_mid"], s["running_top"], status == RUNNING)


def _write_set(low: np.ndarray, mid: np.ndarray, top: np.ndarray, is_member: np.ndarray) -> None:
    """Modify a set of bitset.py: its members are the True places of `is_member`."""
    for level in (low, mid, top):
        bits = np.zeros(len(level) * WORD, np.int64)
        bits[: len(is_member)] = is_member
        level[:] = bits.reshape(-1, WORD) @ (1 << np.arange(WORD))
        is_member = level != 0


def write_semantics(s: np.void, semantics: Semantics) -> None:
    """Write how leases end, and when passes are made; whether the jobs progress in steps, `Semantics.chunk_on` says."""
    s["auctions"], s["release_s"] = semantics.auctions, semantics.release_s


def write_rule(s: np.void, rule: Rule, skewed: np.ndarray | None, semantics: Semantics) -> None:
    """Write a rule into a record before the first arrival; see `engine.rule_loop.hand_over` for later ones.

    `skewed`: bool (n,), the jobs whose model asks for consolidation; None: none. Auctions use the semantics' lease.
    """
    write_terms(s, rule, semantics)
    write_classes(s, rule, skewed)


def write_terms(s: np.void, rule: Rule, semantics: Semantics) -> None:
    """Write what a rule says whatever the jobs: numbers and arrays of a few; arguments as for `write_rule`."""
    if rule.backfills and semantics.auctions:
        raise InputError(
            f"head={rule.head} plans the ends of jobs, semantics={semantics.name} ends leases and holds auctions; "
            "expected semantics=events, or head=skip"
        )
    s["order"], s["placer"] = ORDERS[rule.order], PLACERS[rule.placer]
    s["strict"], s["backfills"], s["preemptive"] = rule.head == "strict", rule.backfills, rule.preemptive
    s["round_s"], s["quantum_s"] = rule.round, rule.quantum
    s["lease_s"] = lease_s = semantics.lease_s if semantics.auctions else rule.lease
    s["slicing_s"], s["turn_s"] = 0.0 if semantics.auctions else rule.slicing, np.inf
    _write_delays(s, rule, lease_s)
    s["waits"], s["margin"] = rule.margin is not None, rule.margin or 0.0
    s["cost_small_s"], s["cost_large_s"] = rule.preemption_cost[0], rule.preemption_cost[-1]
    s["cost_split"] = COST_SPLIT_GPUS
    # Every rule has them: any decider may ask for room.
    s["preempts"], s["theta"], s["survey_version"] = rule.preempt, rule.theta, 0
    s["n_thresholds"] = len(rule.thresholds)
    s["thresholds"][: len(rule.thresholds)] = rule.thresholds
    if not _may_share(s):
        _write_sharing_terms(s, rule)


def write_classes(s: np.void, rule: Rule, skewed: np.ndarray | None) -> None:
    """Write how a rule tells the jobs apart; arguments as for `write_rule`."""
    n = int(s["n_jobs"])
    gpus = s["gpus"][:n]
    s["weight"][:n] = gpus**rule.exponent
    kinds, kind = 1, NOTHING
    if _may_share(s):
        gpus = s["own_gpus"][:n]
        kinds, kind = _write_shares(s, rule, n)
    elif len(s["stored_bytes"]) > 1:  # compiled rules, which ask by demand, place nothing in regions
        gpus = np.zeros(n, np.int64)
    asked, table = NO_FLAGS if skewed is None else skewed, (s["class_gpus"], s["class_skewed"], s["class_base"])
    classes = write_demands(gpus, asked, kind, kinds, s["demand"][:n], *table)
    if classes < 0:
        columns = [column for column in (gpus, asked, kind) if len(column)]
        different = len(np.unique(np.column_stack(columns), axis=0))
        what = "GPU demands" if kinds == 1 else "triples of GPUs, model and batch"
        raise InputError(f"{different} different {what}; one simulator tells at most {CLASSES} apart")
    s["n_classes"] = classes


def write_logged(s: np.void, workload: Workload) -> None:
    """Write when each job started according to its log, and where that is unknown, when it arrived."""
    start_s = workload.start_s
    s["logged_s"][: len(workload)] = np.where(np.isfinite(start_s), start_s, workload.arrival_s)


NO_FLAGS, NOTHING = np.zeros(0, np.bool_), np.zeros(0, np.int64)


def _may_share(s: np.void) -> bool:
    return len(s["gpu_job"]) > len(s["gpu_slot"])


def _write_sharing_terms(s: np.void, rule: Rule) -> None:
    shares = SHARINGS[rule.sharing] if s["jobs_per_gpu"] > 1 else NOT_SHARED
    s["shares"], s["free_first"], s["free_last"] = shares, rule.free == "first", rule.free == "last"
    s["packs"] = s["slices"] = rule.packing and s["jobs_per_gpu"] > 1
    s["restores"] = restores = rule.restore and shares != NOT_SHARED and not s["elastic"]
    s["eases"] = restores or (bool(s["lists_always"]) and not s["elastic"])
    limited = s["gpu_memory"] < np.inf
    s["lists"] = shares == BEST_BENEFIT or (shares == FIRST_FIT and limited) or bool(s["lists_always"])


def _write_shares(s: np.void, rule: Rule, n: int) -> tuple[int, np.ndarray]:
    """Write how the rule shares GPUs; returns the number of kinds of jobs and the kind of each; (0,): one kind."""
    _write_sharing_terms(s, rule)
    if not s["lists"]:
        return 1, NOTHING
    xi = s["xi"]
    ratio = xi * (2.0 - 1.0 / xi.T) - 1.0
    ratio = np.where(xi.T * (2.0 - 1.0 / xi) <= 2.0 * EQUAL, 0.0, np.maximum(0.0, ratio))
    # Which kind the new job will be is not known when it is looked up: of its model the one that asks least.
    s["pair_ratio"][:] = np.inf
    np.minimum.at(s["pair_ratio"], s["kind_model"][: s["n_kinds"]], ratio[: s["n_kinds"]])
    described, batch = first_kinds(s, n), s["own_batch"][:n]
    if s["gpu_memory"] < np.inf or s["kinds_by_pass"]:
        described = described * (int(batch.max()) + 1) + batch
    values, kind = np.unique(described, return_inverse=True)
    return len(values), kind.astype(np.int64, copy=False)


def _write_delays(s: np.void, rule: Rule, lease_s: float) -> None:
    s["delays"], s["timing"] = rule.delays, rule.timing
    s["migrates"], s["fallback_defect"] = rule.migrates, rule.fallback == "last"
    if rule.timers is not None:
        s["timer_s"] = rule.timers
    if rule.tuner is not None:
        tuner = rule.tuner
        s["tuner_unit_s"] = unit_s = lease_s if lease_s > 0.0 else LEASE_S
        s["history_s"], s["tuner_initial"] = tuner.history * unit_s, tuner.initial
        s["tuner_whole"], s["tuner_population"] = tuner.floors is not None, tuner.deviation == "population"
        s["tuner_floor"], s["tuner_cap"] = tuner.floors or (0.0, 0.0), tuner.caps


def gpus_of(s: np.void, job: int) -> list[int]:
    """The GPUs that a running job holds, in the order of its gang."""
    room, following = len(s["gpu_slot"]), s["gpu_next"].item
    held, berth = [], int(s["first_gpu"][job])
    while berth != FREE:
        held.append(berth % room)
        berth = following(berth)
    return held
