"""Random small regions with tables and jobs, and what the slow path's definitions say of them in plain Python.

The script is for the modes chosen when Python starts: `NUMBA_DISABLE_JIT=1 python geo_random.py` prints one line
of JSON, what two days of Tetris come to.
"""

from __future__ import annotations

import json
import math

import numpy as np

from clustergym.simulator.cluster.region_hardware import NO_GPU, Clusters, RegionHardware
from clustergym.simulator.table_placement.placement import DAY_S, KIB, Objective, Placement, kib, seconds
from clustergym.simulator.warehouse.warehouse import NO_APP, Jobs, Tables, Warehouse


def random_world(rng: np.random.Generator, regions: int, types: int, table_bytes: float) -> RegionHardware:
    rows = [(region, gpu) for region in range(regions) for gpu in range(types) if rng.random() < 0.7]
    rows += [(region, NO_GPU) for region in range(regions)]
    region, gpu = np.array(rows, np.int64).T
    slack = rng.uniform(0.6, 2.0, regions) * 2.5 * table_bytes / regions
    return RegionHardware(
        name="random",
        regions=tuple(f"r{i}" for i in range(regions)),
        gpu_types=tuple(f"g{i}" for i in range(types)),
        clusters=Clusters(
            names=tuple(f"c{i}" for i in range(len(rows))),
            region=region,
            gpu_type=gpu,
            gpu_machines=np.where(gpu == NO_GPU, 0, rng.integers(1, 6, len(rows))),
            gpus_per_machine=np.where(gpu == NO_GPU, 0, 8),
            cpu_machines=rng.integers(0, 10, len(rows)),
            machines_per_rack=np.full(len(rows), 4),
        ),
        storage_bytes=slack.astype(np.int64),
        wan_bytes_per_s=rng.uniform(1e6, 1e8, (regions, regions)),
        fault_group=np.arange(regions),
    )


def random_warehouse(
    seed: int,
    *,
    regions: int = 3,
    tables: int = 6,
    jobs: int = 7,
    types: int = 2,
    apps: int = 2,
    most_reads: int = 3,
    choosing: float = 0.0,
) -> Warehouse:
    """`choosing`: share of the jobs with GPUs that may accept other types too."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 2000, tables) * 2**20
    world = random_world(rng, regions, types, float(size.sum()))
    reads = rng.integers(1, min(most_reads, tables) + 1, jobs)
    table = np.concatenate([rng.permutation(tables)[:count] for count in reads])
    training = rng.random(jobs) < 0.7
    gpu = np.where(training & (rng.random(jobs) < 0.85), rng.integers(0, types, jobs), NO_GPU)
    app = np.where(training, NO_APP, rng.integers(0, apps, jobs))
    cpu = rng.integers(0, 100, jobs).astype(float)
    of_types = np.random.default_rng([seed, 1])
    chosen = (gpu != NO_GPU) & (of_types.random(jobs) < choosing)
    accepts = np.where(gpu == NO_GPU, 0, 1 << np.maximum(gpu, 0))
    accepts |= np.where(chosen, of_types.integers(0, 1 << types, jobs), 0)
    lowest = [(bits & -bits).bit_length() - 1 for bits in accepts.tolist()]
    return Warehouse(
        world,
        Tables.at(size, _fitting_homes(rng, size, world.storage_bytes), regions),
        Jobs(
            training=training,
            gpu_type=np.array(lowest, np.int64),
            gpus=np.where(gpu == NO_GPU, 0, 8),
            gpu_hours=np.where(gpu == NO_GPU, 0.0, rng.uniform(1, 900, jobs)),
            cpu_hours=cpu,
            level=rng.integers(0, 4, jobs),
            app=app,
            team=np.zeros(jobs, np.int64),
            recurring=np.ones(jobs, bool),
            first=np.concatenate([[0], np.cumsum(reads)]),
            table=table.astype(np.int64),
            accepts=accepts,
        ),
        rng.uniform(80.0, 300.0, (apps, regions)),
    )


def _fitting_homes(rng: np.random.Generator, size: np.ndarray, storage: np.ndarray) -> np.ndarray:
    """Homes at random, but where there is room, the largest first."""
    room = storage.copy()
    home = np.zeros(len(size), np.int64)
    for table in np.argsort(-size):
        fits = np.flatnonzero(room >= size[table] + KIB)
        home[table] = rng.choice(fits) if len(fits) else room.argmax()
        room[home[table]] -= size[table]
    return home


def region_of(warehouse: Warehouse, home: np.ndarray, job: int) -> int | None:
    """R(job) by its definition."""
    jobs = warehouse.jobs
    places = [int(home[table]) for table in jobs.table[jobs.first[job] : jobs.first[job + 1]]]
    if jobs.training[job]:
        return places[0] if len(set(places)) == 1 else None
    return max(range(len(warehouse.world)), key=lambda region: (places.count(region), -region))


def accepted(warehouse: Warehouse, job: int) -> list[int]:
    return [gpu for gpu in range(len(warehouse.world.gpu_types)) if warehouse.jobs.accepts[job] >> gpu & 1]


def counted(warehouse: Warehouse, job: int, region: int) -> dict[int, int]:
    """As how many GPU-seconds of which types a job counts in a region."""
    gpus, kinds = warehouse.world.gpus, accepted(warehouse, job)
    rooms = [int(gpus[region, gpu]) for gpu in kinds]
    if not sum(rooms):
        rooms = [int(gpus[:, gpu].sum()) for gpu in kinds]
    if not sum(rooms):
        rooms = [1 for _ in kinds]
    asked = int(seconds(warehouse.jobs.gpu_hours)[job])
    return {gpu: int(asked * (room / sum(rooms))) for gpu, room in zip(kinds, rooms, strict=True)}


def cost_of(warehouse: Warehouse, objective: Objective, home: np.ndarray) -> float:
    """Expressions 1 to 3 as printed in Figure 4, term by term."""
    jobs, world, size = warehouse.jobs, warehouse.world, kib(warehouse.tables.size_bytes).tolist()
    regions = range(len(world))
    supply = (world.gpus * DAY_S).tolist()
    remote = read = 0
    demand: dict[tuple[int, int, int], int] = {}
    kinds = set()
    for job in range(len(jobs)):
        region, level = region_of(warehouse, home, job), int(jobs.level[job])
        for table in jobs.table[jobs.first[job] : jobs.first[job + 1]].tolist():
            read += size[table]
            remote += size[table] * (region is None or region != home[table])
        kinds |= {(gpu, level) for gpu in accepted(warehouse, job)}
        if region is not None:
            for gpu, part in counted(warehouse, job, region).items():
                demand[region, gpu, level] = demand.get((region, gpu, level), 0) + part
    cost = objective.remote * remote / max(read, 1)
    for gpu, level in sorted(kinds):
        asked = sum(demand.get((region, gpu, level), 0) for region in regions)
        total = sum(supply[region][gpu] for region in regions)
        for region in regions:
            share = demand.get((region, gpu, level), 0) / asked if asked else 0.0
            of_all = sum(demand.get((region, gpu, other), 0) for other in range(7))
            over_h = max(0, of_all - supply[region][gpu]) / 3600.0
            pressed = 1.0 / (1.0 + math.exp(-over_h)) if objective.overload else 0.5
            deviation = share - (supply[region][gpu] / total if total else 0.0)
            cost += objective.gpu * objective.levels[level] * deviation**2 * pressed
    for region in regions:
        stored = sum(size[table] for table in range(len(size)) if home[table] == region)
        share = stored / sum(size) - float(world.storage_bytes[region]) / float(world.storage_bytes.sum())
        cost += objective.storage * share**2
    return cost


def excess(warehouse: Warehouse, objective: Objective, home: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """By how much Expressions 4 and 5 are broken, KiB and CPU-seconds, and the left side of 6."""
    jobs, world = warehouse.jobs, warehouse.world
    stored = np.bincount(home, kib(warehouse.tables.size_bytes), len(world)).astype(np.int64)
    cpu = np.zeros(warehouse.app_cpu_hours.shape, np.int64)
    met = 0
    for job in range(len(jobs)):
        region = region_of(warehouse, home, job)
        if region is None:
            continue
        if jobs.app[job] != NO_APP:
            cpu[jobs.app[job], region] += seconds(jobs.cpu_hours)[job]
        found = accepted(warehouse, job)
        if jobs.training[job] and (not found or world.gpus[region, found].any()):
            by_hours = int(seconds(jobs.gpu_hours)[job]) if jobs.high[job] else 0
            met += by_hours if objective.at_home == "gpu-hours" else 1
    over_storage = np.maximum(stored - world.storage_bytes // KIB, 0)
    return over_storage, np.maximum(cpu - seconds(warehouse.app_cpu_hours), 0), met


def two_days() -> list[object]:
    """Costs, moves and copies of two days, exactly."""
    from clustergym.policies.tetris import VERSIONS, Tetris
    from clustergym.policies.tetris.table_search import converged_moves, wander
    from clustergym.simulator.warehouse.mast_data import mast_like

    warehouse = mast_like(300, 8, seed=5)
    said: list[object] = []
    for version in ("tetris-v1", "tetris-v2"):
        plan = Tetris(VERSIONS[version], 1e13).plan(warehouse)
        said += [plan.cost[0].hex(), plan.cost[1].hex(), len(plan.moves), plan.home.tolist(), int(plan.copies.sum())]
        warehouse = plan.applied(warehouse)
    small = Placement(random_warehouse(1, tables=8, jobs=9), Objective())
    converged_moves(small, pairs=True)
    wander(small, 1e12, 20, np.random.default_rng(0))
    return [*said, small.cost.hex(), small.home.tolist()]


if __name__ == "__main__":
    print(json.dumps(two_days()))
