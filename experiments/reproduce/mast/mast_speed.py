"""Paper mast, Sec. 5.4: how long a GMS-scan pass takes, and the decision about one workload at the slowest RMS.

The region is the largest that the paper describes: about 20 clusters with 20,000 GPUs and 64,000 CPU machines. CPU
seconds of calls from Python.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from ....policies.mast.global_scheduler import scan, write_ranking
from ....policies.mast.mast_record import empty_record
from ....policies.mast.regional_scheduler import Hardware, RegionalScheduler
from ....simulator.base.codes import WAITING
from ....simulator.record.state import Capacity, empty_state
from ....simulator.warehouse import mast_statistics
from ....simulator.workloads import open_workload
from ..engine import Play
from ..rows import Row

PENDING, SCANS = 10_000, 20
CLUSTERS, CLUSTER_MACHINES, MACHINE_GPUS, RACK_MACHINES = 20, 125, 8, 16  # 20,000 GPUs in a region
CPU_CLUSTERS, CPU_MACHINES = 20, 3200  # 64,000
DECISIONS, QUICK_DECISIONS, ASKING = 2000, 20, 20_000
LOWEST, SECOND = 6, 1
SCAN_PAPER_S = 34.0
WITHOUT, WITH = "without preemption", "with preemption"
PAPER_S = {WITHOUT: 1.3e-3, WITH: 5.5e-3}


def scan_s(pending: int, seed: int) -> float:
    """CPU seconds of a GMS-scan pass over so many pending workloads of `mast-like`, with their tenants and quotas."""
    workload = open_workload(f"mast-like:jobs={pending},regions=8,gpus=4096", seed=seed)
    demands, jobs = workload.geo, len(workload)
    assert demands is not None
    machines = np.ones(1, np.int64)
    ranking, m = empty_record(Hardware.from_clusters([0], [0], [machines], [machines]), jobs)
    write_ranking(m, demands)
    records = empty_state(Capacity.with_regions(jobs, 1, 1, 1, 0, 0))
    s = records[0]
    s.n_jobs = s.next_arrival = s.waiting = jobs
    s.status[:jobs] = WAITING
    s.arrival_s[:jobs] = workload.arrival_s
    s.now_s = workload.arrival_s[-1]
    s.job_level[:jobs] = demands.level
    scan(records, 0, ranking)  # may compile
    taken_s = []
    for _ in range(SCANS):
        began_s = time.process_time()
        count = scan(records, 0, ranking)
        taken_s.append(time.process_time() - began_s)
        assert count == jobs
    return float(np.mean(taken_s))


def decisions_s(seed: int, quick: bool) -> dict[str, float]:
    """CPU seconds of one in a full region, and in one that one workload in twenty has left; the negative cache is off.

    Workloads have the published GPUs and a quarter as many CPU machines; those that run have the lowest level, those
    that ask the second.
    """
    rng = np.random.default_rng(seed)
    region = full_region(rng, 4 if quick else CLUSTERS, 4 if quick else CPU_CLUSTERS)
    full = _decide(WITH, region, rng, quick)
    for job in rng.permutation(region.running)[: max(1, len(region.running) // 20)].tolist():
        region.end(job)
    return {WITHOUT: _decide(WITHOUT, region, rng, quick), WITH: full}


def full_region(rng: np.random.Generator, clusters: int, cpu_clusters: int) -> RegionalScheduler:
    """A region without a free GPU."""
    gpu = [np.full(CLUSTER_MACHINES, MACHINE_GPUS)] * clusters
    cpu = [np.ones(CPU_MACHINES, np.int64)] * cpu_clusters
    racks = [np.arange(len(machines)) // RACK_MACHINES for machines in (*gpu, *cpu)]
    kinds = [0] * clusters + [1] * cpu_clusters
    hardware = Hardware.from_clusters([0] * len(kinds), kinds, [*gpu, *cpu], racks)
    region = RegionalScheduler(hardware, ASKING + 1, use_cache=False)
    gpu_machines, job = clusters * CLUSTER_MACHINES, 0
    while left := int(region.free[:gpu_machines].sum()):
        gpus = min(drawn_gpus(rng), left)
        while region.start(job, LOWEST, _parts(gpus), 60.0 * job) is None:  # no cluster has so many
            gpus = max(1, gpus // 2)
        job += 1
    return region


def _parts(gpus: int) -> list[tuple[int, int]]:
    return [(0, gpus), (1, -(-gpus // 4))]


def drawn_gpus(rng: np.random.Generator) -> int:
    """GPUs of a workload, as published, 512 at most."""
    mu, sigma = mast_statistics.lognormal(mast_statistics.GPUS)
    return int(np.clip(np.rint(np.exp(mu + sigma * rng.standard_normal())), 1, 512))


def _decide(kind: str, region: RegionalScheduler, rng: np.random.Generator, quick: bool) -> float:
    taken_s: list[float] = []
    while len(taken_s) < (QUICK_DECISIONS if quick else DECISIONS) + 1:
        parts = _parts(drawn_gpus(rng))
        began_s = time.process_time()
        plan = region.plan(ASKING, SECOND, parts, 1e7)
        spent_s = time.process_time() - began_s
        if plan is not None and bool(plan.leaves) == (kind == WITH):
            taken_s.append(spent_s)
    return float(np.mean(taken_s[1:]))  # the first may have compiled


def gms(play: Play) -> Iterator[Row]:
    """One pass over the queue."""
    pending = 1000 if play.options.quick else PENDING
    ours_s = scan_s(pending, play.options.seed)
    yield Row(f"a GMS-scan pass over {pending:,} workloads", SCAN_PAPER_S, ours_s, (0.0, SCAN_PAPER_S), unit="s")
    play.notes.append(f"CPU time, mean of {SCANS}; the paper's scans 6,000 to 10,000, in Python with a database")


def rms(play: Play) -> Iterator[Row]:
    """One decision in the largest region."""
    for kind, ours_s in decisions_s(play.options.seed, play.options.quick).items():
        yield Row(f"a decision {kind}", PAPER_S[kind], ours_s, (0.0, PAPER_S[kind]), unit="s")
    play.notes.append(
        f"CPU time, the call from Python included, negative cache off: {CLUSTERS} clusters with 20,000 GPUs, "
        f"{CPU_CLUSTERS} with 64,000 CPU machines, workloads of two parts"
    )


def headroom(play: Play) -> Iterator[Row]:
    """A scan every five minutes over its time, and the root of a day's decisions over 100,000, as Sec. 5.4 counts."""
    options = play.options
    scans = 300.0 / scan_s(1000 if options.quick else PENDING, options.seed)
    decisions = 86_400.0 / decisions_s(options.seed, options.quick)[WITH]
    yield Row("GMS: times more workloads", 8.8, scans, (8.8, np.inf), unit="x")
    yield Row("RMS: times more workloads", 12.0, float(np.sqrt(decisions / 1e5)), (12.0, np.inf), unit="x")
    play.notes.append("ours are of compiled code in one process, without the database that the paper's write to")
