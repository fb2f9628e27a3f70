"""Types of the parts of a workload, where parts accept several, the fastest first.

Paper mast has one type a part; several are our own. Without preemption the fastest types with room in a region win;
else the plan that preempts with the best score, the faster types on ties. A workload does not wait for faster units
while slower ones are free, and no workload is stopped only for speed.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from ...simulator.base.errors import InputError
from ...simulator.engine.view import ClusterView
from ...simulator.warehouse.demands import MOST_PARTS, NO_TYPE, Demands


@dataclass(frozen=True)
class TypeChoices:
    """Choices, int64 unless said otherwise; J workloads, V choices, shared by workloads with equal ones."""

    own: np.ndarray  # (J, 4), types of the parts without choice, or before it
    units: np.ndarray  # (J, 4)
    count: np.ndarray  # (J,), number of choices; 0: the types are `own`
    first: np.ndarray  # (J,), first choice; the others follow, the fastest first, then by types
    kind: np.ndarray  # (V, 4), types of the parts, -1 after the last
    speed: np.ndarray  # float64 (V,), speed of the workload on these types, over that of its duration

    @classmethod
    def of(cls, view: ClusterView) -> TypeChoices:
        """The choices of a run's workloads."""
        return cls.between(view.demands, view.unit_speeds)

    @classmethod
    def between(cls, demands: Demands, speeds: np.ndarray) -> TypeChoices:
        """The choices of workloads with these speeds on unit types, float64 (jobs, types)."""
        jobs, cpu = len(demands), len(demands.gpu_types) - 1
        count, first = np.zeros((2, jobs), np.int64)
        kinds: list[tuple[int, ...]] = [(NO_TYPE,) * MOST_PARTS]
        speed = [1.0]
        (rows,) = np.nonzero(demands.chooses)
        keys = np.concatenate([demands.accepts[rows], speeds[rows]], axis=1)
        _, example, index = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        for number, row in enumerate(rows[example].tolist()):
            found = sorted(
                (-min(float(speeds[row, kind]) for kind in kinds_ if kind != cpu), kinds_)
                for kinds_ in product(*demands.types_of(row))
            )
            same = rows[index.ravel() == number]
            count[same], first[same] = len(found), len(kinds)
            kinds += [(*own, *[NO_TYPE] * (MOST_PARTS - len(own))) for _, own in found]
            speed += [-slowness for slowness, _ in found]
        own = np.array(demands.part_type, np.int64)
        return cls(own, demands.part_units, count, first, np.array(kinds, np.int64), np.array(speed))

    def write(self, m: np.void) -> None:
        """Modify `m`, fields by item (mast_record.py): types and units of parts, and choices. InputError: too many."""
        jobs, rows, room = len(self.own), len(self.kind), len(m["choice_kind"])
        if rows > room:
            given = f"{rows} ways to choose types for the parts of workloads"
            raise InputError(f"{given}: one simulator holds at most {room}; let parts accept fewer types")
        m["kind"][:jobs], m["need"][:jobs] = self.own, self.units
        m["choices"][:jobs], m["first_choice"][:jobs], m["choice_kind"][:rows] = self.count, self.first, self.kind

    def types(self, job: int) -> list[list[int]]:
        """The types of a workload's parts by choice, the fastest first."""
        first, count = int(self.first[job]), int(self.count[job])
        ways = self.kind[first : first + count] if count else self.own[job : job + 1]
        return [[kind for kind in way if kind != NO_TYPE] for way in ways.tolist()]

    def speeds(self, job: int) -> list[float]:
        """Speed of a workload by choice; none without choices."""
        first = int(self.first[job])
        return self.speed[first : first + int(self.count[job])].tolist()

    def first_types(self, job: int) -> list[int]:
        """Types for the first part, the fastest first."""
        return list(dict.fromkeys(way[0] for way in self.types(job)))

    def parts(self, job: int, first: int) -> list[list[tuple[int, int]]]:
        """Type and units of each part by choice, the fastest first, where the first part has the type `first`."""
        units = self.units[job].tolist()
        return [list(zip(way, units, strict=False)) for way in self.types(job) if way[0] == first]
