"""A picture of the kind of paper harmony's Figure 11: how busy CPU and network are over a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..over_time import bin_means
from .harmony_case import GroupOutcome
from .harmony_runs import CPU, HARMONY, NETWORK, QUICK_JOBS, Cell, Runs
from .pictures import HOUR_S, figure, finish, save, style
from .registry import Options

BIN_S = 600.0  # fluctuations between two decision points that lie nearer are averaged


def of_use(options: Options, runs: Runs, cell: Cell, policies: Sequence[str] = ("isolated", HARMONY)) -> list[Path]:
    """Figure 11: CPU above, network below, of the first workload; an upright line where a policy's last job is done."""
    if options.out is None:
        return []
    drawn = figure(9.0, 6.0)
    axes = drawn.subplots(2, 1, sharex=True)
    outcomes = {policy: runs.of(policy, cell)[0] for policy in policies}
    for number, (policy, outcome) in enumerate(outcomes.items()):
        for axis, share, mean in zip(
            axes, (outcome.cpu_use, outcome.network_use), (CPU(outcome), NETWORK(outcome)), strict=True
        ):
            edges_s, values = binned(outcome, share)
            axis.stairs(
                100.0 * values, edges_s / HOUR_S, baseline=None, **style(number), label=f"{policy} ({mean:.0f} %)"
            )
            axis.axvline(edges_s[-1] / HOUR_S, color=style(number)["color"], linewidth=1.0, alpha=0.7)
    for axis, what in zip(axes, ("CPU", "network"), strict=True):
        axis.set(ylabel=f"{what} use [%]", ylim=(0, 102))
        axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, title="mean of the run")
        finish(axis)
    axes[-1].set(xlabel="time [h]; upright: all jobs are done")
    axes[-1].set_xlim(left=0)
    jobs = QUICK_JOBS if options.quick else 80
    drawn.suptitle(f"{jobs} jobs on 100 machines, first workload (Figure 11)", fontweight="bold")
    return [save(drawn, options.out, "harmony-use")]


def binned(outcome: GroupOutcome, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Edges from 0 s to the end, and the means of a share between them."""
    begin_s, stop_s = outcome.use_s[0], outcome.use_s[-1]
    edges_s = np.append(np.arange(begin_s, stop_s, BIN_S), stop_s)
    return edges_s - begin_s, bin_means(outcome.use_s, share, edges_s)
