"""A run over regions where everything is a user's file: regions, speeds, workloads, tables; charts of jobs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from clustergym import Setting, Topology, evaluate, open_workload

COLUMNS = "job_id,arrival_s,gpus,duration_s,parts,tables,level,container_s,fresh,model"


@dataclass(frozen=True)
class Files:
    """What users write, by file; `speeds` are rows, `gpu_types` and `checkpoint_s` of the file beside workloads."""

    regions: str
    speeds: Sequence[str]
    tables: Sequence[str]
    gpu_types: Sequence[str]
    checkpoint_s: float

    def lay(self, folder: Path, rows: Sequence[str]) -> tuple[Topology, str, str]:
        """Write them, with workloads in `rows` of COLUMNS: the topology, and the paths of the workload and speeds."""
        (folder / "regions.yaml").write_text(self.regions)
        (folder / "speeds.csv").write_text("\n".join(["model,type,speed", *self.speeds]))
        (folder / "w.csv").write_text("\n".join([COLUMNS, *rows]))
        (folder / "w.tables.csv").write_text("\n".join(["table,size_tb,home,replicas", *self.tables]))
        topology = Topology.load(folder / "regions.yaml")
        whole = {"regions": topology.region_names, "gpu_types": self.gpu_types, "checkpoint_s": self.checkpoint_s}
        (folder / "w.regions.json").write_text(json.dumps(whole))
        return topology, str(folder / "w.csv"), str(folder / "speeds.csv")


@dataclass(frozen=True)
class Stretch:
    """A time in which a workload held units, of clusters by their numbers."""

    job: int
    start_s: float
    end_s: float
    units: frozenset[int]
    held: dict[int, int]


class Played:
    """A run of one policy on workloads in `rows`; `options` of the simulator."""

    def __init__(self, files: Files, folder: Path, rows: Sequence[str], policy: str, **options: Any) -> None:
        self.topology, path, speeds = files.lay(folder, rows)
        setting = Setting.of("Geo", self.topology, path, speeds=speeds, **options)
        (run,) = evaluate(setting, [policy], [0], record="all")
        self.metrics, told = run.metrics, run.timeline
        self.workload = open_workload(path)
        assert told is not None and len(told.leave_s) == len(self.workload)
        self.leave_s = told.leave_s.tolist()
        rows_of = zip(told.job.tolist(), told.start_s.tolist(), told.end_s.tolist(), told.gpus, strict=True)
        self.stretches = [Stretch(*row, frozenset(units), self._by_cluster(units)) for *row, units in rows_of]

    def _by_cluster(self, units: Sequence[int]) -> dict[int, int]:
        clusters, counts = np.unique(self.topology.gpu_cluster[list(units)], return_counts=True)
        return dict(zip(clusters.tolist(), counts.tolist(), strict=True))

    def region(self, cluster: int) -> str:
        """The region of a cluster."""
        return self.topology.region_names[self.topology.cluster_region[cluster]]

    def of(self, job_id: str) -> list[tuple[str, str, float, float]]:
        """(region, types, from, until) of each stretch of a workload."""
        kinds, job = self.topology.cluster_gpu_type, list(self.workload.job_id).index(job_id)
        mine = (stretch for stretch in self.stretches if stretch.job == job)
        return [(self.region(min(s.held)), "+".join(kinds[at] for at in s.held), s.start_s, s.end_s) for s in mine]

    def stopped_for(self, start: Stretch) -> bool:
        """Whether a unit of a start was taken from a workload that a decision stopped at the same instant."""
        ended = (s for s in self.stretches if s.job != start.job and s.end_s == start.start_s)
        return any(s.units & start.units and self.leave_s[s.job] != s.end_s for s in ended)
