"""How often 95 % intervals from one trace (`resampled:`) hold the ratio of greedy's mean JCT to fifo's.

Traces of `poisson` on 32 GPUs, 1,000 jobs each (a week at load 0.7), stand for logs, so the truth is known: the ratio
of the means over 600 others. `another log` is the interval that tables have for `resampled:`; `of the mean` that of
the mean over seeds, which shrinks as seeds are added.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from _measure import Row, bench

from clustergym.experiments.comparing.intervals import paired_ratio
from clustergym.policies import make_for
from clustergym.policies.loop import loop_calls
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.jobs.workload import Workload
from clustergym.simulator.workloads import open_workload
from clustergym.simulator.workloads.resampled_log import Resampled

BLOCKS_H, SEEDS, OTHERS = (3.0, 6.0, 24.0), 10, 10_000


def main(argv: list[str] | None = None) -> int:
    """Measure and print."""
    more = {"load": "of the traces, percent (default: 70 and 100)", "jobs": "of a trace (default: 1,000)"}
    return bench(__doc__.splitlines()[0], argv, coverage, **more)


def coverage(options: Any) -> Iterator[Row]:
    """Shares of traces whose interval holds the truth, by load and block; width: of the interval, over the truth."""
    traces = 4 if options.quick else 200
    for load in [options.load] if options.load else [70, 100]:
        truth = _ratio([_trace(options, load, OTHERS + number) for number in range(3 * traces)])
        for block_h in BLOCKS_H:
            logs = (Resampled(_trace(options, load, number), block_h) for number in range(traces))
            played = [tuple(zip(*(_jcts(log.workload(seed)) for seed in range(SEEDS)), strict=True)) for log in logs]
            row: Row = {"load": load / 100.0, "block_h": block_h, "truth": truth}
            for name, resampled in (("another log", True), ("of the mean", False)):
                found = [paired_ratio(*pair, resampled) for pair in played]
                row[name] = float(np.mean([one.low <= truth <= one.high for one in found]))
                row[f"{name}, width"] = float(np.mean([one.high - one.low for one in found])) / truth
            yield row | {"mean": float(np.mean([paired_ratio(*pair).mean for pair in played]))}


def _trace(options: Any, load: int, number: int) -> Workload:
    word = f"poisson:jobs={options.jobs or 1000},load={load / 100.0},cluster_gpus=32,gpus=1/2/4/8"
    return open_workload(word, seed=options.seed + number)


def _jcts(workload: Workload) -> tuple[float, ...]:
    """Of greedy and of fifo, as `evaluate Delay --network none` plays them."""
    return tuple(_mean_jct(simulator, workload) for simulator in _simulators())


@cache
def _simulators() -> tuple[Simulator, ...]:
    rules = (make_for(policy, "clustergym/Delay-v0").rule for policy in ("greedy", "fifo"))
    return tuple(Simulator("flat:machines=4", "none", rule=rule) for rule in rules)


def _mean_jct(simulator: Simulator, workload: Workload) -> float:
    simulator.reset(workload)
    loop_calls.schedule(simulator.records, 0)
    simulator.note(int(loop_calls.run(simulator.records, 0, 1 << 62)))
    return float(simulator.jobs()["jct_s"].mean())


def _ratio(workloads: list[Workload]) -> float:
    return paired_ratio(*np.array([_jcts(one) for one in workloads]).T.tolist()).mean


if __name__ == "__main__":
    raise SystemExit(main())
