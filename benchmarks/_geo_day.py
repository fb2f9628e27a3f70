"""A day of paper mast's size under `mast`: 100,000 GPUs and as many CPU machines in 20 regions, tables moved too."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

from _measure import resident_bytes

from clustergym import policies
from clustergym.policies.tetris import VERSIONS, Tetris
from clustergym.simulator.base.decisions import Start
from clustergym.simulator.cluster.topology import Topology
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.workloads import open_workload

HOUR_S, DAY_S = 3600.0, 86400.0
GOAL_S = 300.0  # of CPU
GOAL_ATTEMPTS = 100_000  # a day, paper mast, Sec. 5.1


@dataclass(frozen=True)
class Scale:
    """How large, how long, at which load, and after how many hours a run ends at the latest (so many starts a day)."""

    regions: int
    gpus: int
    hours: float
    load: float = 1.3
    longest_h: float = 12.0

    @property
    def words(self) -> tuple[str, str]:
        """The topology and the workload."""
        size = f"regions={self.regions},gpus={self.gpus}"
        return (
            f"mast:{size}",
            f"mast-like:{size},days={self.hours / 24.0!r},load={self.load},longest_h={self.longest_h}",
        )


WHOLE = Scale(20, 100_000, 24.0)
QUICK = Scale(4, 256, 1.0)


def run_mast(scale: Scale, seed: int) -> dict[str, Any]:
    """`mast` as it is by default, from full regions whose tables Tetris has placed the day before, and places again.

    CPU seconds of each part, in this very process. An attempt is a start, of a workload that is new or was preempted
    (the paper: "on average, each workload gets preempted once, which leads to about 100,000 scheduling attempts
    daily").
    """
    began_s = time.process_time()
    topology, workload = Topology.load(scale.words[0]), open_workload(scale.words[1], seed=seed)
    geo = workload.geo
    assert geo is not None
    warehouse = geo.warehouse(topology)
    for version in ("static", "tetris-v2"):
        warehouse = Tetris(VERSIONS[version]).plan(warehouse).applied(warehouse)
    workload = workload.with_geo(replace(geo, tables=warehouse.tables))
    drawn_s = time.process_time()
    simulator = Simulator(topology, horizon_s=scale.hours * HOUR_S, tables_every_s=DAY_S)
    simulator.reset(workload, seed)
    laid_s = time.process_time()
    policy, attempts = policies.make("mast"), 0
    while not simulator.ended:
        for decision in simulator.asked(policy):
            simulator.apply(decision)
            attempts += isinstance(decision, Start)
        simulator.advance()
    ended_s = time.process_time()
    metrics = simulator.metrics()
    return {
        "regions": scale.regions,
        "gpus": scale.gpus,
        "load": scale.load,
        "tables": len(geo.tables),
        "hours": scale.hours,
        "workloads": len(workload),
        "attempts": attempts,
        "preemptions": int(metrics["preemptions"]),
        "allocation_rate": metrics["allocation_rate"],
        "cpu_allocation_rate": metrics["cpu_allocation_rate"],
        "draw_s": drawn_s - began_s,
        "reset_s": laid_s - drawn_s,
        "play_s": ended_s - laid_s,
        "cpu_s": ended_s - began_s,
        "peak_bytes": resident_bytes(peak=True),
    }
