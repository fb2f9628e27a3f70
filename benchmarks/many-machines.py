"""What a sweep costs: CPU seconds of a run by policy and load; with --nodes N, the same runs on N Ray nodes here.

A run is what `evaluate --logdir` does for one policy on one seed: the workload is drawn, played, and kept as a file.
A sweep of P policies on S seeds at L loads is P x S x L of them.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from _measure import arguments_of, print_document, print_table

from clustergym.experiments.console.terminal import progress, say
from clustergym.experiments.playing.evaluation import evaluate
from clustergym.experiments.playing.executors import Executor
from clustergym.experiments.settings.evaluation_setting import Setting
from clustergym.experiments.storing.store import open_store

LOADS = (0.5, 0.9, 1.3)
POLICIES = ("random", "greedy", "fifo", "sjf", "srtf", "las", "tiresias", "gandiva", "dally")
AGENT = "zoo:Delay"
SIZES = {
    "small": (128, "dally:racks=2,machines=4"),
    "large": (2000, "dally:racks=4,machines=8"),
    "huge": (20_000, "dally:racks=16,machines=8"),
}
SWEEP = (30, 1000, 10)  # policies, seeds, loads


def main(argv: list[str] | None = None) -> int:
    """Measure, and print the tables or the JSON document."""
    options = arguments_of(__doc__.splitlines()[0], argv, _own_arguments)
    if options.nodes:
        document = speed_up(options)
    else:
        document = {"runs": costs(options), "sweep": dict(zip(("policies", "seeds", "loads"), SWEEP, strict=True))}
    (print_document if options.json else _print_tables)(document)
    return 0


def _own_arguments(parser: Any) -> None:
    parser.add_argument("--nodes", type=int, default=0, metavar="N", help="play on N Ray nodes here, one CPU each")
    parser.add_argument("--jobs", type=int, default=2000, metavar="N", help="with --nodes: of a workload")


def costs(options: Any) -> list[dict[str, Any]]:
    """One row a size and a policy: CPU seconds of a run at each load, the mean over seeds."""
    seeds = range(options.seed, options.seed + (1 if options.quick else 3))
    sizes = dict(list(SIZES.items())[:1]) if options.quick else SIZES
    found: list[dict[str, Any]] = []
    with progress("bench many-machines", len(sizes) * len(POLICIES) + 1, options.quiet) as show:
        for size, (jobs, topology) in sizes.items():
            for policy in POLICIES[:2] if options.quick else (*POLICIES, *[AGENT] * (size == "small")):
                row = {"size": size, "jobs": jobs, "topology": topology, "policy": policy}
                row["cpu_s"] = {str(load): _cost(policy, jobs, topology, load, seeds) for load in LOADS}
                found.append(row)
                show(len(found))
    return found


def _cost(policy: str, jobs: int, topology: str, load: float, seeds: range) -> float:
    setting = _setting(jobs, topology, load)
    with tempfile.TemporaryDirectory(prefix="clustergym-bench-") as folder:
        store = open_store(Path(folder), setting, [policy])
        evaluate(setting, [policy], [seeds[0] + 10_000], store=store)  # compiles, where that has not been done
        began_s = time.process_time()
        evaluate(setting, [policy], seeds, store=store)
        return (time.process_time() - began_s) / len(seeds)


def _setting(jobs: int, topology: str, load: float) -> Setting:
    return Setting.of("Delay", topology, f"poisson:jobs={jobs},load={load}")


def speed_up(options: Any) -> dict[str, Any]:
    """Wall seconds of the same runs in one process and on a cluster of so many nodes, all of them on this machine."""
    import ray
    from ray.cluster_utils import Cluster

    from clustergym.experiments.playing.on_ray import RayCluster

    setting, seeds = _setting(options.jobs, SIZES["large"][1], 0.9), range(1 if options.quick else 20)
    one_s, one = _timed(setting, seeds, None)
    say(f"one process: {one_s:.1f} s")
    small = {"num_cpus": 1, "object_store_memory": 100 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args={**small, "include_dashboard": False})
    try:
        for _ in range(options.nodes - 1):
            cluster.add_node(**small)
        nodes_s, nodes = _timed(setting, seeds, RayCluster(cluster.address))
    finally:
        ray.shutdown()
        cluster.shutdown()
    same = all(ours.metrics == theirs.metrics for ours, theirs in zip(one, nodes, strict=True))
    return {"runs": len(one), "nodes": options.nodes, "one_s": one_s, "nodes_s": nodes_s, "same": same}


def _timed(setting: Setting, seeds: range, executor: Executor | None) -> tuple[float, list[Any]]:
    """After some runs that are not counted: they start processes there and compile."""
    evaluate(setting, list(POLICIES), range(10_000, 10_002), executor=executor)
    began_s = time.perf_counter()
    runs = evaluate(setting, list(POLICIES), seeds, executor=executor)
    return time.perf_counter() - began_s, runs


def _print_tables(document: dict[str, Any]) -> None:
    if "nodes" in document:
        print_table(
            f"{document['runs']} runs; the same numbers: {document['same']}",
            ("", "wall s", "speed-up"),
            [
                ("one process", f"{document['one_s']:.1f}", "1.00"),
                (
                    f"{document['nodes']} Ray nodes",
                    f"{document['nodes_s']:.1f}",
                    f"{document['one_s'] / document['nodes_s']:.2f}",
                ),
            ],
        )
        return
    count = SWEEP[0] * SWEEP[1] * SWEEP[2]
    for size in dict.fromkeys(row["size"] for row in document["runs"]):
        rows = [row for row in document["runs"] if row["size"] == size]
        rules = [row for row in rows if row["policy"] != AGENT]
        mean_s = sum(sum(row["cpu_s"].values()) / len(LOADS) for row in rules) / len(rules)
        print_table(
            f"CPU seconds of a run, {rows[0]['jobs']:,} jobs on {rows[0]['topology']}; "
            f"{count:,} runs of rules at their mean, {mean_s:.3f} s: {count * mean_s / 3600:,.1f} CPU hours",
            ("policy", *(f"load {load}" for load in LOADS)),
            [(row["policy"], *(f"{cost:.3f}" for cost in row["cpu_s"].values())) for row in rows],
        )


if __name__ == "__main__":
    raise SystemExit(main())
