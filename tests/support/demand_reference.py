"""Figure 4 of paper mast in plain Python, summed from the homes of the tables alone: what they cost, what is allowed.

Written from the paper and the documented readings of it, it shares no code with the slow path: nothing is kept up, no
sum is multiplied out. The readings: Expression 1 is a share of all bytes that jobs read; Expressions 4 and 5 are "at
most"; a GPU type that jobs of a level accept, with hours or without, but which no job counts as its own, has a
share of 0 in each region's demand; where no region has a type, or storage, each has a share of 0 in its supply. A job
that accepts several types counts in a region as GPUs of each by their share there.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from clustergym.simulator.table_placement.placement import Objective
from clustergym.simulator.warehouse.warehouse import Warehouse

HOUR_S, DAY_H = 3600, 24
HIGH = range(3)  # levels of high priority


@dataclass(frozen=True)
class Reader:
    """A job that the slow path knows: numbers of tables and of GPU types, whole seconds a day."""

    training: bool
    tables: list[int]
    types: list[int]
    gpu_s: int
    cpu_s: int
    level: int
    app: int


class FigureFour:
    """The sums of Figure 4 for any homes, each list by table; `home` of the warehouse is where thresholds come from."""

    def __init__(self, warehouse: Warehouse, objective: Objective, known: Sequence[bool] | None = None) -> None:
        jobs, world = warehouse.jobs, warehouse.world
        self.objective = objective
        self.size = [int(size) for size in warehouse.tables.size_bytes]
        self.storage = [int(size) for size in world.storage_bytes]
        self.quota_s = [[float(hours) * HOUR_S for hours in row] for row in warehouse.app_cpu_hours]
        self.regions, self.types = range(len(world.regions)), range(len(world.gpu_types))
        self.gpus = [[0 for _ in self.types] for _ in self.regions]
        clusters = world.clusters
        for row in range(len(clusters.names)):
            if clusters.gpu_type[row] >= 0:
                machines = int(clusters.gpu_machines[row]) * int(clusters.gpus_per_machine[row])
                self.gpus[int(clusters.region[row])][int(clusters.gpu_type[row])] += machines
        counted = jobs.recurring if known is None else known
        self.readers = [self._reader(jobs, job) for job in range(len(jobs)) if counted[job]]
        all_met = sum(self._weight(reader) for reader in self.readers)
        share = objective.home_share
        at_start = [int(region) for region in warehouse.tables.home]
        self.threshold = self.met(at_start) if share is None else share * all_met

    def _reader(self, jobs: Any, job: int) -> Reader:
        return Reader(
            training=bool(jobs.training[job]),
            tables=[int(table) for table in jobs.table[jobs.first[job] : jobs.first[job + 1]]],
            types=[gpu for gpu in self.types if int(jobs.accepts[job]) >> gpu & 1],
            gpu_s=round(float(jobs.gpu_hours[job]) * HOUR_S),
            cpu_s=round(float(jobs.cpu_hours[job]) * HOUR_S),
            level=int(jobs.level[job]),
            app=int(jobs.app[job]),
        )

    # where a job is, and as what it counts there

    def region_of(self, reader: Reader, home: Sequence[int]) -> int | None:
        """R(job), Sec. 3.3; None is its NULL. The majority is the largest number of tables, the first among equals."""
        tables_at = Counter(home[table] for table in reader.tables)
        if reader.training:
            return home[reader.tables[0]] if len(tables_at) == 1 else None
        return min(tables_at, key=lambda region: (-tables_at[region], region))

    def share(self, reader: Reader, region: int, gpu: int) -> float:
        """As GPUs of a type it counts by this share of its demand."""
        if gpu not in reader.types:
            return 0.0
        here = {other: self.gpus[region][other] for other in reader.types}
        if sum(here.values()) == 0:
            here = {other: sum(self.gpus[row][other] for row in self.regions) for other in reader.types}
        if sum(here.values()) == 0:
            return 1.0 / len(reader.types)
        return here[gpu] / sum(here.values())

    def finds_gpus(self, reader: Reader, region: int) -> bool:
        """I(GPU-Type, R): the region has GPUs of a type that the job accepts, or it needs none."""
        return not reader.types or any(self.gpus[region][gpu] > 0 for gpu in reader.types)

    # what is minimised

    def terms(self, home: Sequence[int]) -> tuple[float, float, float]:
        """Expressions 1, 2 and 3, weighted."""
        weights = self.objective
        return (
            weights.remote * self.read_elsewhere(home),
            weights.gpu * self.uneven_demand(home),
            weights.storage * self.uneven_storage(home),
        )

    def cost(self, home: Sequence[int]) -> float:
        """Their sum."""
        return sum(self.terms(home))

    def read_elsewhere(self, home: Sequence[int]) -> float:
        """Expression 1 over all that is read."""
        far = total = 0
        for reader in self.readers:
            region = self.region_of(reader, home)
            for table in reader.tables:
                total += self.size[table]
                far += self.size[table] * (home[table] != region)
        return far / total if total else 0.0

    def demand_s(self, home: Sequence[int]) -> Counter[tuple[int, int, int]]:
        """Whole GPU-seconds a day by region, GPU type and level."""
        demand: Counter[tuple[int, int, int]] = Counter()
        for reader in self.readers:
            region = self.region_of(reader, home)
            if region is not None:
                for gpu in reader.types:
                    demand[region, gpu, reader.level] += int(reader.gpu_s * self.share(reader, region, gpu))
        return demand

    def uneven_demand(self, home: Sequence[int]) -> float:
        """Expression 2: Expressions 7 x 8 of every region, type and level at which the type is asked."""
        demand = self.demand_s(home)
        asked = {(gpu, reader.level) for reader in self.readers for gpu in reader.types}
        total = 0.0
        for gpu, level in asked:
            of_level = sum(demand[region, gpu, level] for region in self.regions)
            supply = sum(self.gpus[region][gpu] for region in self.regions)
            for region in self.regions:
                wanted = demand[region, gpu, level] / of_level if of_level else 0.0
                there = self.gpus[region][gpu] / supply if supply else 0.0
                all_levels = sum(demand[region, gpu, other] for other in range(len(self.objective.levels)))
                pressed = self.overload(all_levels / HOUR_S - self.gpus[region][gpu] * DAY_H)
                total += self.objective.levels[level] * (wanted - there) ** 2 * pressed
        return total

    def overload(self, excess_h: float) -> float:
        """Expression 8, of GPU-hours of demand above supply."""
        return 1.0 / (1.0 + math.exp(-max(0.0, excess_h))) if self.objective.overload else 0.5

    def uneven_storage(self, home: Sequence[int]) -> float:
        """Sum of Expression 9 over the regions."""
        stored, room = self.stored(home), sum(self.storage)
        shares = ((stored[region] / sum(self.size), self.storage[region]) for region in self.regions)
        return sum((held - (capacity / room if room else 0.0)) ** 2 for held, capacity in shares)

    # what must hold

    def stored(self, home: Sequence[int]) -> list[int]:
        """Left side of Expression 4 by region, bytes."""
        return [sum(size for size, at in zip(self.size, home, strict=True) if at == region) for region in self.regions]

    def computed_s(self, home: Sequence[int]) -> Counter[tuple[int, int]]:
        """Left side of Expression 5 by application and region, CPU-seconds."""
        computed: Counter[tuple[int, int]] = Counter()
        for reader in self.readers:
            region = self.region_of(reader, home)
            if reader.app >= 0 and region is not None:
                computed[reader.app, region] += reader.cpu_s
        return computed

    def met(self, home: Sequence[int]) -> int:
        """Left side of Expression 6: GPU-seconds of high priority, or a number of jobs, that train at home."""
        total = 0
        for reader in self.readers:
            region = self.region_of(reader, home)
            if region is not None and self.finds_gpus(reader, region):
                total += self._weight(reader)
        return total

    def _weight(self, reader: Reader) -> int:
        if self.objective.at_home == "jobs":
            return int(reader.training)
        return reader.gpu_s if reader.training and reader.level in HIGH else 0

    def excesses(self, home: Sequence[int]) -> Iterator[float]:
        """By how much each constraint is broken, 0 where it holds, always in the same order."""
        for held, capacity in zip(self.stored(home), self.storage, strict=True):
            yield max(0, held - capacity)
        computed = self.computed_s(home)
        for app, quotas in enumerate(self.quota_s):
            for region, quota in enumerate(quotas):
                yield max(0.0, computed[app, region] - quota)
        yield max(0.0, self.threshold - self.met(home))

    def is_sound(self, home: Sequence[int]) -> bool:
        """Whether Expressions 4 to 6 hold."""
        return not any(self.excesses(home))

    def allows(self, home: Sequence[int], table: int, target: int) -> bool:
        """Whether they hold after a move, or are broken by no more than before."""
        after = moved(home, table, target)
        return all(now <= before for before, now in zip(self.excesses(home), self.excesses(after), strict=True))

    # how it stands

    def runs_in(self, reader: Reader, copies: Sequence[Sequence[bool]]) -> list[int]:
        """Regions that have all its tables, copies given by table and region, and GPUs that it accepts."""
        there = (region for region in self.regions if all(copies[table][region] for table in reader.tables))
        return [region for region in there if self.finds_gpus(reader, region)]

    def loads(self, home: Sequence[int], copies: Sequence[Sequence[bool]]) -> list[float]:
        """Demand of high priority over supply by region: where tables have their home, else where replicas let it run.

        There with most GPUs that it accepts, as Sec. 3.5 has it, the first among equals; 0 where there are no GPUs.
        """
        demand_s = [0 for _ in self.regions]
        for reader in self.readers:
            if reader.training and reader.level in HIGH:
                region = self.region_of(reader, home)
                hosts = [region] if region is not None and self.finds_gpus(reader, region) else []
                for host in sorted(hosts or self.runs_in(reader, copies), key=lambda at: -self.accepted(reader, at))[
                    :1
                ]:
                    demand_s[host] += reader.gpu_s
        supply_s = [sum(row) * DAY_H * HOUR_S for row in self.gpus]
        return [demand / supply if supply else 0.0 for demand, supply in zip(demand_s, supply_s, strict=True)]

    def accepted(self, reader: Reader, region: int) -> int:
        """GPUs of a region that it accepts."""
        return sum(self.gpus[region][gpu] for gpu in reader.types)


def moved(home: Sequence[int], table: int, target: int) -> list[int]:
    """The homes with one table elsewhere."""
    return [target if row == table else at for row, at in enumerate(home)]
