"""RMS: the regional schedulers' exhaustive search for a workload's place, with a negative cache (paper mast, Sec. 4.3).

In a region every part of a workload is tried in every cluster of its type; the plan with the highest placement score
wins, the lowest number among equals. A workload's score is the sum over its parts, each planned on the state that
earlier ones left. The region with the highest score wins the auction; ties go to the least loaded type of the first
part (ours), then to the lowest number.

* Without preemption: units on as few neighbouring racks as suffice, there on the machines with the most free ones.
  Fewer racks score higher, which is the paper's packing, not its score.
* With preemption, only of workloads with a lower priority: the score falls with the highest priority that leaves, then
  with the number that leave, then with a shorter run of the youngest: the paper's order without its weights. Where the
  paper scans by a heuristic, this finds the best plan.

The search is over all clusters that leave the later parts of the type room, all neighbouring racks there, all sets that
may leave; not over all combinations of parts. The score counts at most 900 that leave a cluster. The negative cache
keeps refusals of single parts; after a start that preempts it forgets those of lower priorities in that region, after a
joint move all.

A plan that does not preempt beats all that do. A workload that leaves takes all its parts with it. Departures: GPUs and
CPU machines are the only resources, and a part takes them from any machines of its cluster in any pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...simulator.base.codes import LEVELS
from ...simulator.base.errors import InputError
from ...simulator.engine.view import ClusterView
from . import place_search
from . import region_units as kernels
from .hardware import Hardware
from .mast_record import empty_record
from .type_choices import TypeChoices

PARTS = kernels.PARTS
ANY = -1


@dataclass(frozen=True)
class Plan:
    """A place where a workload could run now."""

    region: int
    clusters: tuple[int, ...]  # of each part
    score: float  # <= 0; higher is better
    leaves: tuple[int, ...]  # workloads to preempt
    gpus: tuple[int, ...]  # units, in the order of the parts: argument of `Start`


Parts = Sequence[tuple[int, int]]


def write_regions(
    solvers: np.recarray, m: np.void, hardware: Hardware, workloads: int, choices: TypeChoices | None = None
) -> None:
    """Modify the only record of `solvers`, `m` by item: empty regions for workloads 0 to `workloads` - 1.

    Without `choices` types and units of their parts are still to be written.
    """
    clusters, racks, machines = len(hardware.region), len(hardware.rack_cluster), len(hardware.machine_units)
    units, groups = int(hardware.machine_units.sum()), hardware.regions * hardware.types
    group = hardware.region * hardware.types + hardware.kind
    m["n_regions"], m["n_types"], m["n_clusters"] = hardware.regions, hardware.types, clusters
    m["n_racks"], m["n_machines"], m["n_units"] = racks, machines, units
    m["first_cluster"][: groups + 1] = _ends(group, groups)
    m["clusters"][:clusters] = np.argsort(group, kind="stable")
    m["cluster_group"][:clusters] = group
    m["cluster_rack"][: clusters + 1] = _ends(hardware.rack_cluster, clusters)
    m["rack_machine"][: racks + 1] = _ends(hardware.machine_rack, racks)
    m["rack_cluster"][:racks] = hardware.rack_cluster
    m["machine_unit"][1 : machines + 1] = np.cumsum(hardware.machine_units)
    m["machine_rack"][:machines] = hardware.machine_rack
    m["unit_machine"][:units] = np.repeat(np.arange(machines), hardware.machine_units)
    m["cluster"][: PARTS * workloads], m["running"][:clusters] = kernels.NONE, 0
    if choices is None:
        m["kind"][:workloads] = kernels.NONE
    else:
        choices.write(m)
    kernels.vacate(solvers)


def _ends(row: np.ndarray, rows: int) -> np.ndarray:
    """Begin of each row's items, sorted by row, and the end, int64 (rows + 1,)."""
    return np.concatenate([[0], np.cumsum(np.bincount(row, minlength=rows))]).astype(np.int64)


class RegionalScheduler:
    """The machines and running workloads (up to `workloads`) of all regions, and the search in any of them."""

    def __init__(self, hardware: Hardware, workloads: int = 4096, use_cache: bool = True) -> None:
        self.hardware = hardware
        self.use_cache = use_cache
        self.workloads = workloads
        self.solvers, self.record = empty_record(hardware, workloads)
        write_regions(self.solvers, self.record, hardware, workloads)

    @property
    def free(self) -> np.ndarray:
        """Free units of each machine, int64 (machines,); a copy."""
        return np.array(self.record["free"][: len(self.hardware.machine_units)])

    @property
    def running(self) -> list[int]:
        """The workloads that run, ascending."""
        return np.flatnonzero(self.record["cluster"][: PARTS * self.workloads : PARTS] >= 0).tolist()

    @property
    def asked(self) -> int:
        """Regions asked for a plan since `begin_scan`."""
        return int(self.record["count"][kernels.ASKED])

    @property
    def spared(self) -> int:
        """Those that the negative cache answered."""
        return int(self.record["count"][kernels.SPARED])

    def begin_scan(self) -> None:
        """Empty the negative cache: at the start of a scan of the queue, and after the end of a workload."""
        kernels.clear_cache(self.solvers)

    def follow(self, view: ClusterView, level: np.ndarray) -> None:
        """Take over the state of a run; `level`: int64 (jobs,), the present priority."""
        self.record["level"][: len(level)] = level
        view.read_by(kernels.follow, self.solvers)

    def plan(
        self,
        job: int,
        level: int,
        parts: Parts,
        now_s: float,
        *,
        region: int = ANY,
        cluster: int = ANY,
        preempts: bool = True,
    ) -> Plan | None:
        """The best plan for a workload that does not run; None: there is none. Only the cache changes.

        Args:
            job: its number.
            level: the present priority, 0 (highest) to 6.
            parts: type and units of each, 1 to 4.
            now_s: the time, not before any start.
            region: the only one to look at; ANY: all.
            cluster: the only one for the first part; ANY: all.
            preempts: others may leave.

        Raises:
            InputError: a number out of range, or a workload that runs.
        """
        found = self._find(job, level, parts, now_s, region, cluster, preempts)
        if found is not None:
            place_search.put_back(self.solvers, job)
        return found

    def start(
        self,
        job: int,
        level: int,
        parts: Parts,
        now_s: float,
        *,
        region: int = ANY,
        cluster: int = ANY,
        preempts: bool = True,
    ) -> Plan | None:
        """Carry out the best plan; None: there is none. Preemption clears refusals."""
        found = self._find(job, level, parts, now_s, region, cluster, preempts)
        if found is not None and found.leaves:
            place_search.forgive(self.solvers, found.region, level)
        return found

    def end(self, job: int) -> None:
        """A workload ends: its units are free, and refusals are cleared."""
        if not (0 <= job < self.workloads and self.record["cluster"][PARTS * job] >= 0):
            raise InputError(f"workload {job}: expected one that runs")
        kernels.end(self.solvers, job)

    def _find(
        self, job: int, level: int, parts: Parts, now_s: float, region: int, cluster: int, preempts: bool
    ) -> Plan | None:
        """The best plan, carried out."""
        m = self.record
        self._check(job, level, parts, region, cluster)
        bits = (1 << self.hardware.regions) - 1 if region == ANY else 1 << region
        if cluster != ANY:
            bits &= 1 << int(self.hardware.region[cluster])
        m["kind"][job], m["need"][job] = kernels.NONE, 0
        for part, (kind, units) in enumerate(parts):
            m["kind"][job, part], m["need"][job, part] = kind, units
        m["importance"][job], m["start_s"][job] = LEVELS - 1 - level, now_s
        where = place_search.best(self.solvers, job, bits, cluster, preempts, self.use_cache, now_s)
        if where < 0:
            return None
        count = m["count"].tolist()
        return Plan(
            where,
            tuple(m["part_cluster"][job, : len(parts)].tolist()),
            float(m["score"][1]),
            tuple(m["leaving"][: count[kernels.LEAVES]].tolist()),
            tuple(m["taken"][: count[kernels.TAKEN]].tolist()),
        )

    def _check(self, job: int, level: int, parts: Parts, region: int, cluster: int) -> None:
        if not (0 <= job < self.workloads and self.record["cluster"][PARTS * job] < 0):
            raise InputError(f"workload {job}: expected one of 0 to {self.workloads - 1} that does not run")
        if not (0 <= level < LEVELS and 1 <= len(parts) <= PARTS):
            raise InputError(f"workload of {len(parts)} parts at level {level}: expected 1 to 4, and 0 to 6")
        for kind, units in parts:
            if not (0 <= kind < self.hardware.types and units >= 1):
                raise InputError(
                    f"part of {units} units of type {kind}: expected 1 or more, and 0 to {self.hardware.types - 1}"
                )
        if not ANY <= region < self.hardware.regions or not ANY <= cluster < len(self.hardware.region):
            raise InputError(f"region {region}, cluster {cluster}: expected one that there is, or -1 for all")
