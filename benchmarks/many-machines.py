"""What a sweep costs: CPU seconds of a run by policy and load; with --nodes N, the same runs on N Ray nodes here.

A run is what `evaluate --logdir` does for one policy on one seed: the workload is drawn, played, and kept as a file.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _measure import Row, bench, cpu_seconds

from clustergym.experiments.playing.evaluation import evaluate
from clustergym.experiments.settings.evaluation_setting import Setting
from clustergym.experiments.storing.store import open_store

LOADS = (0.5, 0.9, 1.3)
POLICIES = ("random", "greedy", "fifo", "sjf", "srtf", "las", "tiresias", "gandiva", "dally")
SIZES = {128: "dally:racks=2,machines=4", 2000: "dally:racks=4,machines=8", 20_000: "dally:racks=16,machines=8"}


def main(argv: list[str] | None = None) -> int:
    """Measure and print."""
    more = {"nodes": "play on N Ray nodes here, one CPU each", "jobs": "with --nodes: of a workload (default: 2000)"}
    return bench(__doc__.splitlines()[0], argv, runs, nodes, **more)


def runs(options: Any) -> Iterator[Row]:
    """CPU seconds of a run of Delay-v0, the mean over seeds."""
    seeds = range(options.seed, options.seed + (1 if options.quick else 3))
    for jobs, topology in () if options.nodes else list(SIZES.items())[: 1 if options.quick else None]:
        for policy in POLICIES[:2] if options.quick else (*POLICIES, *["zoo:Delay"] * (jobs == 128)):
            costs = {f"load_{load}_s": _cost(policy, _setting(jobs, topology, load), seeds) for load in LOADS}
            yield {"policy": policy, "topology": topology, "jobs": jobs, **costs}


def _cost(policy: str, setting: Setting, seeds: range) -> float:
    with tempfile.TemporaryDirectory(prefix="clustergym-bench-") as folder:
        store = open_store(Path(folder), setting, [policy])
        evaluate(setting, [policy], [seeds[0] + 10_000], store=store)  # compiles, where that has not been done
        return cpu_seconds(lambda: evaluate(setting, [policy], seeds, store=store)) / len(seeds)


def _setting(jobs: int, topology: str, load: float) -> Setting:
    return Setting.of("Delay", topology, f"poisson:jobs={jobs},load={load}")


def nodes(options: Any) -> Iterator[Row]:
    """Wall seconds of the same runs in one process and on a cluster of Ray nodes, all of them on this machine."""
    if not options.nodes:
        return
    import ray
    from ray.cluster_utils import Cluster

    from clustergym.experiments.playing.on_ray import RayCluster

    small = {"num_cpus": 1, "object_store_memory": 100 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args={**small, "include_dashboard": False})
    setting, seeds = _setting(options.jobs or 2000, SIZES[2000], 0.9), range(1 if options.quick else 20)
    one: list[Any] = []
    try:
        for _ in range(options.nodes - 1):
            cluster.add_node(**small)
        for count, executor in ((0, None), (options.nodes, RayCluster(cluster.address))):
            evaluate(setting, list(POLICIES), range(10_000, 10_002), executor=executor)  # starts processes, compiles
            began_s = time.perf_counter()
            played = evaluate(setting, list(POLICIES), seeds, executor=executor)
            wall_s = time.perf_counter() - began_s
            one = one or played
            same = all(ours.metrics == theirs.metrics for ours, theirs in zip(one, played, strict=True))
            yield {"ray_nodes": count, "runs": len(played), "wall_s": wall_s, "same_numbers": same}
    finally:
        ray.shutdown()
        cluster.shutdown()
