"""What a policy may see of regions and tables; the rest of a `ClusterView` is in view.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.errors import InputError
from ..jobs.run_view import RunView
from ..network.simulated import Simulated
from ..record.record_view import sealed
from .initialise_regions import parts_of
from .region_calls import candidate_regions, left_bytes, missing_bytes, write_projected

if TYPE_CHECKING:
    from ..costs.electricity import Electricity
    from ..warehouse.demands import Demands
    from ..warehouse.warehouse import Warehouse


def regions_in(bits: int) -> list[int]:
    """The members of a set of regions, ascending."""
    return [region for region in range(int(bits).bit_length()) if int(bits) >> region & 1]


class RegionView(RunView):
    """The part of a `ClusterView` about regions; InputError without them. `topology` and `demands` name indices."""

    _simulator: Simulated

    @property
    def demands(self) -> Demands:
        """What the jobs ask beyond GPUs and time."""
        geo = self._simulator.workload.geo
        if geo is None:
            name = self._simulator.workload.name
            raise InputError(f"workload {name!r} asks nothing of regions; expected one that does, as mast-like")
        return geo

    @property
    def _fields(self) -> np.void:
        _ = self.demands
        return self._simulator.raw.record

    @property
    def terms(self) -> tuple[Any, ...]:
        """What holds throughout a run: its workload, its topology, and how fast models are on unit types."""
        return self._simulator.workload, self._simulator.topology, self._simulator.config.speeds

    def has_terms(self, terms: tuple[Any, ...] | None) -> bool:
        """Whether the `terms` of a run, None of no run, are those of this one."""
        own = self.terms
        return terms is not None and terms[0] is own[0] and terms[1] is own[1] and terms[2] == own[2]

    @property
    def electricity(self) -> Electricity | None:
        """Price and carbon intensity of electricity by region and hour, future ones too; None: not given."""
        tariff = self._simulator.config.tariff
        return None if tariff is None else tariff.electricity(self._simulator.topology)

    @property
    def up_regions(self) -> list[int]:
        """The regions that have not failed."""
        return regions_in(self._fields["up_regions"])

    def regions_of(self, job: int) -> list[int]:
        """The regions where a job could run now if they were empty: up, large enough, with all its tables."""
        _ = self.demands
        return regions_in(self._simulator.raw.call(candidate_regions, int(job)))

    def needs_home(self, job: int) -> bool:
        """Whether a job needs data that by now only the homes of its tables have."""
        return bool(self._simulator.state.now_s < self._fields["home_until_s"][job])

    def hosts_of(self, job: int) -> list[int]:
        """The regions whose clusters could hold a job if they were empty, whatever lies there."""
        return regions_in(self._fields["job_hosts"][job])

    def region_of(self, job: int) -> int | None:
        """The region where a job runs; None: it does not."""
        region = int(self._fields["job_region"][job])
        return region if region >= 0 else None

    def clusters_of(self, job: int) -> list[int]:
        """The cluster of each part of a running job; empty if it does not run."""
        s = self._fields
        parts = int((s["part_units"][job] > 0).sum())
        return s["part_cluster"][job, :parts].tolist() if s["job_region"][job] >= 0 else []

    def parts(self, job: int) -> list[tuple[str, int]]:
        """The unit type (`A100|H100`: one of these) and the units of each part of a job, in the order of `Start`."""
        return parts_of(self.demands, job)

    @property
    def unit_speeds(self) -> np.ndarray:
        """Speed of each job on each of `demands.gpu_types`, over its duration's, float64 (jobs, types)."""
        s, demands = self._fields, self.demands
        shape, speeds = (len(demands), len(demands.gpu_types)), s["type_speed"]
        return speeds[s["speed_row"][: shape[0]], : shape[1]] if speeds[0, 0] > 0.0 else np.ones(shape)

    def tables_of(self, job: int) -> np.ndarray:
        """The tables that a job reads, int64."""
        first = self.demands.first
        return self.demands.table[first[job] : first[job + 1]]

    def level(self, job: int) -> int:
        """Priority of a job, 0 (highest) to 6."""
        return int(self._fields["job_level"][job])

    def tenant(self, job: int) -> int:
        """The tenant whose quota a job counts against, a row of `demands.quota`."""
        return int(self._fields["job_tenant"][job])

    @property
    def free_by_cluster(self) -> np.ndarray:
        """Free units of each cluster, int64 (clusters,)."""
        s = self._fields
        return sealed(s["cluster_free"][: s["n_clusters"]].astype(np.int64))

    def copies(self, table: int) -> list[int]:
        """The regions with a complete copy of a table."""
        return regions_in(self._fields["table_copies"][table])

    def doomed(self, table: int) -> list[int]:
        """Those whose copy is deleted once no job reads it; none may start to."""
        return regions_in(self._fields["table_doomed"][table])

    def home(self, table: int) -> int:
        """The region of a table's home."""
        return int(self._fields["table_home"][table])

    def moving_to(self, table: int) -> int | None:
        """The region to which a table's home is about to move; None: it stays."""
        target = int(self._fields["table_target"][table])
        return target if target >= 0 else None

    @property
    def stored_bytes(self) -> np.ndarray:
        """Bytes of storage that are taken in each region, int64 (regions,), what is on the way there included."""
        s = self._fields
        return sealed(s["stored_bytes"][: s["n_regions"]].astype(np.int64))

    @property
    def storage_bytes(self) -> np.ndarray:
        """Bytes of storage of each region, int64 (regions,)."""
        s = self._fields
        return sealed(s["storage_bytes"][: s["n_regions"]].astype(np.int64))

    def missing_bytes(self, table: int, region: int) -> int:
        """What a complete copy of a table in a region would have to copy there now, bytes."""
        _ = self.demands
        return int(self._simulator.raw.call(missing_bytes, int(table), int(region)))

    @property
    def transfers(self) -> list[tuple[int, int | None, int, float]]:
        """Copies on the way: table, from (None: it waits for a source), to, bytes left; by table."""
        s = self._fields
        found: list[tuple[int, int | None, int, float]] = []
        if s["n_transfers"] == 0:
            return found
        for table in np.flatnonzero(s["table_transfer"][: s["n_tables"]] >= 0).tolist():
            transfer = int(s["table_transfer"][table])
            while transfer >= 0:
                source, target = int(s["transfer_from"][transfer]), int(s["transfer_to"][transfer])
                left = float(self._simulator.raw.call(left_bytes, transfer))
                found.append((table, source if source >= 0 else None, target, left))
                transfer = int(s["transfer_after"][transfer])
        return found

    @property
    def tables_due(self) -> bool:
        """Whether this is an instant at which tables may be looked at (`Simulator(tables_every_s=...)`)."""
        return bool(self._simulator.raw.record["tables_due"])

    def lying(self) -> np.ndarray:
        """Where complete copies of the tables lie that stay, bool (tables, regions)."""
        s = self._fields
        return self._sets((s["table_copies"] & ~s["table_doomed"])[: s["n_tables"]])

    def warehouse(self) -> Warehouse:
        """The tables at present homes, without copies to be deleted, and the slow path's knowledge of their readers."""
        s, demands, copies = self._fields, self.demands, self.lying()
        whole = self._sets(s["table_whole"][: s["n_tables"]])
        home = s["table_home"][: s["n_tables"]].astype(np.int64)
        return demands.warehouse(self._simulator.topology, home, copies, whole, float(s["now_s"]))

    def projected(self, first: int = 0, count: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Homes, int64 (n,), and places, bool (n, regions), of tables from `first` on after all transfers."""
        s = self._fields
        homes, bits = np.zeros((2, int(s["n_tables"]) - first if count is None else count), np.int64)
        self._simulator.raw.call(write_projected, int(first), homes, bits)
        return homes, self._sets(bits)

    def projected_warehouse(self) -> Warehouse:
        """The tables so, with the slow path's knowledge of their readers: what it plans on."""
        s = self._fields
        complete = self._sets(s["table_complete"][: s["n_tables"]])
        return self.demands.warehouse(self._simulator.topology, *self.projected(), complete, float(s["now_s"]))

    def _sets(self, bits: np.ndarray) -> np.ndarray:
        return (bits[:, None] >> np.arange(int(self._fields["n_regions"])) & 1).astype(bool)
