"""How fast models train on types of units, over the speed that their durations are of: a csv, or a table of ours.

The csv has the columns `model`, `type` and `speed` (> 0; 2: an iteration takes half as long). A model `*` stands for
all without a row for that type, jobs without a model too; the default speed is 1. Names are compared without case and
separators. Communication is sped up with the rest.

`gavel`: steps per second on one K80, P100 and V100 over those on the V100, medians over the batch sizes measured
(github stanford-futuredata/gavel, MIT: Gavel, OSDI'20, scheduler/simulation_throughputs.json; Recommendation, whose
rows there are of unconsolidated jobs, from physical_cluster_throughputs.json). It has no A100 and H100.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..base.errors import InputError
from ..cluster.topology import Topology
from ..files.regular_files import Stamp, stamp_of
from ..jobs.trace_columns import read_csv
from ..jobs.workload import Workload
from ..profiles.model_names import normalised

COLUMNS = ("model", "type", "speed")
ANY_MODEL = "*"
LOWEST, HIGHEST = 1e-6, 1e6
GAVEL_SPEEDS = {
    "ResNet-18": {"K80": 0.148, "P100": 0.926, "V100": 1.0},
    "ResNet-50": {"K80": 0.150, "P100": 0.631, "V100": 1.0},
    "Transformer": {"K80": 0.287, "P100": 0.741, "V100": 1.0},
    "A3C": {"K80": 0.479, "P100": 0.792, "V100": 1.0},
    "LM": {"K80": 0.254, "P100": 0.832, "V100": 1.0},
    "Recommendation": {"K80": 0.215, "P100": 0.621, "V100": 1.0},  # of the physical cluster's file
    "CycleGAN": {"K80": 0.114, "P100": 0.543, "V100": 1.0},
}


def no_types(workload: str) -> InputError:
    """What is said where speeds are given for a workload, called so, that knows no types."""
    return InputError(f"workload {workload!r} asks nothing of regions: all its GPUs are as fast; expected no speeds")


@dataclass(frozen=True, eq=False)
class UnitSpeeds:
    """A table of speeds, > 0, by normalised model, or ANY_MODEL, and type."""

    speed: Mapping[tuple[str, str], float]

    @classmethod
    def load(cls, word: str, topology: Topology) -> UnitSpeeds:
        """The table of `gavel`, or of a csv's path, on a topology's types; InputError names file, line and value."""
        if word == "gavel":
            return cls(_GAVEL)
        return _read(word, tuple(dict.fromkeys(topology.cluster_gpu_type)), stamp_of(word))

    def rows(self, workload: Workload) -> tuple[np.ndarray, np.ndarray]:
        """The row of each job, int64 (jobs,), and distinct rows, float64 (rows, types), types as the demands number.

        InputError: the workload has no demands of regions, or no job is of a model of the table.
        """
        if workload.geo is None:
            raise no_types(workload.name)
        names = [normalised(name) for name in workload.model_names]
        known = {model for model, _ in self.speed}
        if ANY_MODEL not in known and known.isdisjoint(names):
            raise InputError(
                f"speeds: no job of workload {workload.name!r} is of one of its models; expected one, or "
                f"a row of model {ANY_MODEL!r}"
            )
        table = np.array([[self._of(name, kind) for kind in workload.geo.gpu_types] for name in names])
        found, row = np.unique(table, axis=0, return_inverse=True)
        return row.ravel()[workload.model_code], found

    def _of(self, model: str, kind: str) -> float:
        return self.speed.get((model, kind), self.speed.get((ANY_MODEL, kind), 1.0))


_GAVEL = {(normalised(model), kind): speed for model, row in GAVEL_SPEEDS.items() for kind, speed in row.items()}


@lru_cache(maxsize=8)
def _read(path: str, types: tuple[str, ...], _stamp: Stamp) -> UnitSpeeds:
    table = read_csv(path, keep=COLUMNS, expected="gavel, or a csv of speeds: model, type, speed")
    models, kinds = table.text("model"), table.text("type")
    speed = table.number("speed", low=LOWEST, high=HIGHEST)
    found: dict[tuple[str, str], float] = {}
    place: dict[tuple[str, str], int] = {}
    for row, (model, kind) in enumerate(zip(models, kinds, strict=True)):
        if kind not in types:
            raise table.error(row, "type", f"a type that the clusters have: {', '.join(types)}")
        key = (model if model == ANY_MODEL else normalised(model), kind)
        if key in found:
            also = f"{table.unit} {table.places[place[key]]}"
            raise table.error(row, "model", f"each model on a type once ({also} has it too)")
        found[key], place[key] = float(speed[row]), row
    return UnitSpeeds(found)
