"""Paper harmony, Secs. V-C and V-D: Harmony against isolated jobs, on all jobs, on some, and as they arrive.

The paper's jobs are not published: `harmony-like` draws them from what is (workloads/harmony_jobs.py). A published
figure that is missed is printed as missed; beside JCT 2.11 with makespan 1.60 stands what policies reach that know the
length of every job, or search longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ...charts import axes, plots
from ...charts.chart import Shape, upright
from ...comparing.intervals import Estimate, estimate, paired_ratio
from ...playing.over_time import bin_means
from ..case import Outcome
from ..case_runs import metric
from ..findings import Findings, Options
from ..paper_pictures import if_asked, looks, picture
from ..rows import Row, bounded, order, printed, ratio, table, up_to
from . import harmony_published as published
from .harmony_runs import (
    BEST_BLIND,
    BEST_KNOWN,
    CPU,
    HARMONY,
    MACHINES,
    NETWORK,
    NO_LIMIT,
    UNAWARE,
    WORK,
    Cell,
    GroupRuns,
    jct_h,
    jobs_of,
    makespan_h,
    offered,
    play,
    said,
    under,
)

OURS = (BEST_BLIND, BEST_KNOWN)  # beside the published ones
BIN_S = 600.0  # of a picture: fluctuations between two decision points that lie nearer are averaged
SAME_WORK = 0.01  # relative: CPU ratio and makespan ratio are one result
FLAT = 0.1  # relative: the published ratios fall by 5 and 3 %
REGROUPING = metric("move_time_share", 100.0)
JOBS, GROUPS, DOP = "jobs_running_mean", "groups_mean", "dop_mean"
MEMORY = (
    "memory: Algorithm 1 as printed does not look at it (alpha=1). With the constants of harmony-reload (125 MB/s a "
    "disk, an iteration reads all its input) it then runs more than 40 jobs, which wait for disks. So harmony takes no "
    "grouping of which more than .34 of a group's input, the mean that Sec. V-G tells, does not fit below the "
    "collector's threshold"
)
BOUND = (
    "the bound: greedy searches for the largest sum of rates, remaining=known for that of rates by what is left of "
    "each job, which no published policy knows; what neither reaches is out of reach of this model. Isolated jobs, "
    "first come first served, have an average JCT of about .5 of their makespan: JCT 2.11 with makespan 1.60 asks "
    "for .38 from Harmony"
)


def speedups(runs: GroupRuns, cell: Cell, policy: str, paper: published.Against | None, words: str = "") -> list[Row]:
    """JCT and makespan against isolated."""
    rows = []
    for name, number, value in (
        ("average JCT", jct_h, None if paper is None else paper.jct),
        ("makespan", makespan_h, None if paper is None else paper.makespan),
    ):
        found = runs.speedup(number, policy, cell)
        told = f"{words}isolated's {name} over {policy}'s"
        rows.append(printed(told, found, "x") if value is None else ratio(told, value, found, "x"))
    return rows


def uses(runs: GroupRuns, cell: Cell, paper: published.Use, words: str = "", policy: str = HARMONY) -> list[Row]:
    """CPU and network."""
    return [
        table(f"{words}CPU use", paper.cpu, runs.mean(WORK, policy, cell), "%"),
        table(f"{words}network use", paper.network, runs.mean(NETWORK, policy, cell), "%"),
    ]


def hours(runs: GroupRuns, cell: Cell, policies: Sequence[str], words: str = "") -> list[Row]:
    """The times themselves."""
    return [
        printed(f"{words}{policy}: {name}", runs.mean(number, policy, cell), "h")
        for policy in policies
        for name, number in (("average JCT", jct_h), ("makespan", makespan_h))
    ]


def main(options: Options) -> Findings:
    """Figures 10 and 11: 80 jobs, all at once."""
    cell = Cell()
    free, ample = under(cell, "move_s=0"), under(cell, NO_LIMIT)
    runs = play("harmony-main", options, [cell, free, ample], ("isolated", HARMONY, UNAWARE, *OURS))
    rows = [*_run(runs, cell), _same_work(runs, free, HARMONY), *_unaware(runs, cell)]
    rows += [
        row for policy in (HARMONY, *OURS) for row in speedups(runs, ample, policy, None, "memory without limit: ")
    ]
    rows += [
        printed("memory without limit, harmony: CPU use", runs.mean(CPU, HARMONY, ample), "%"),
        printed("memory without limit, harmony: jobs that run together", runs.mean(JOBS, HARMONY, ample)),
        *(row for policy in OURS for row in speedups(runs, cell, policy, None, "bound: ")),
        _comp_bound(options, runs, cell),
        printed("isolated: CPU use", runs.mean(CPU, "isolated", cell), "%", "58.3 (derived)"),
        printed("isolated: network use", runs.mean(NETWORK, "isolated", cell), "%"),
        printed("isolated: jobs that run together", runs.mean(JOBS, "isolated", cell)),
        *hours(runs, cell, ("isolated", HARMONY, UNAWARE, *OURS)),
    ]
    notes = [said(options), f"{offered(options, {'80 jobs': cell})}; a move takes 60 s, profiling 3 iterations"]
    return Findings(rows, [*notes, MEMORY, BOUND], of_use(options, runs, cell))


def _run(runs: GroupRuns, cell: Cell) -> list[Row]:
    """What Secs. V-C and V-G say of the run."""
    cpu_gain = runs.ratio(WORK, HARMONY, "isolated", cell)
    on_disk = {name: runs.mean(f"alpha_{name}", HARMONY, cell) for name in ("mean", "least", "most")}
    return [
        *speedups(runs, cell, HARMONY, published.MAIN),
        *uses(runs, cell, published.MAIN_USE),
        up_to("CPU use over isolated's", published.CPU_GAIN, cpu_gain, "x"),
        printed("CPU use, collecting garbage included", runs.mean(CPU, HARMONY, cell), "%"),
        _regrouping(runs, cell),
        ratio("jobs that run together", published.JOBS_RUNNING, runs.mean(JOBS, HARMONY, cell), ""),
        ratio("groups", published.GROUPS, runs.mean(GROUPS, HARMONY, cell), ""),
        ratio("share of input on disk, mean", published.ALPHA_MEAN, on_disk["mean"], ""),
        printed("the least", on_disk["least"], "", f"{published.ALPHA_LEAST}"),
        printed("the largest", on_disk["most"], "", f"{published.ALPHA_MOST:g}"),
    ]


def _unaware(runs: GroupRuns, cell: Cell) -> list[Row]:
    """The same of the algorithm as printed."""
    words = f"{UNAWARE}: "
    return [
        *speedups(runs, cell, UNAWARE, None),
        printed(f"{words}CPU use", runs.mean(WORK, UNAWARE, cell), "%", f"{published.MAIN_USE.cpu}"),
        printed(f"{words}CPU use, collecting garbage included", runs.mean(CPU, UNAWARE, cell), "%"),
        printed(f"{words}jobs that run together", runs.mean(JOBS, UNAWARE, cell), "", f"{published.JOBS_RUNNING}"),
        printed(f"{words}share of input on disk, mean", runs.mean("alpha_mean", UNAWARE, cell)),
    ]


def _regrouping(runs: GroupRuns, cell: Cell) -> Row:
    found = runs.mean(REGROUPING, HARMONY, cell)
    words = "time of jobs in groups for which they load, not run"
    return bounded(words, "below 2 %", found, (0.0, published.REGROUPING), "%")


def _same_work(runs: GroupRuns, cell: Cell, policy: str) -> Row:
    """COMP is conserved, so without moves, and but for the collector, CPU and makespan are one result."""
    cpu, makespan = runs.ratio(WORK, policy, "isolated", cell), runs.speedup(makespan_h, policy, cell)
    bounds = (1.0 - SAME_WORK, 1.0 + SAME_WORK)
    words = "without move costs: ratio of CPU use over that of makespans"
    return Row(words, "1 (one result)", cpu.mean / makespan.mean, bounds, unit="x")


def _comp_bound(options: Options, runs: GroupRuns, cell: Cell) -> Row:
    """Were the CPU of all machines busy all the time."""
    jobs = jobs_of(options)
    least = []
    for seed in options.seeds(10):
        workload = cell.drawn(seed, jobs)
        assert workload.ps is not None
        least.append(float((workload.iterations * workload.ps.comp_machine_s).sum()) / MACHINES / 3600.0)
    isolated = runs.each(makespan_h, "isolated", cell)
    found: Estimate = estimate([one / two for one, two in zip(isolated, least, strict=True)])
    return printed("bound: isolated's makespan over that with the CPU always busy", found, "x")


def by_ratio(options: Options) -> Findings:
    """Figure 12 and its text: the 60 jobs that compute more, and the 60 that communicate more."""
    cells = {"compute-heavy": Cell("compute"), "communication-heavy": Cell("communication")}
    both = {**cells, "all": Cell()}
    runs = play("harmony-ratio", options, list(both.values()), ("isolated", HARMONY))
    rows: list[Row] = []
    for (name, cell), against, use in zip(
        cells.items(),
        (published.COMPUTE, published.COMMUNICATION),
        (published.COMPUTE_USE, published.COMMUNICATION_USE),
        strict=True,
    ):
        rows += [*speedups(runs, cell, HARMONY, against, f"{name}: "), *uses(runs, cell, use, f"{name}: ")]
    for name, number in (("machines a group", DOP), ("jobs that run together", JOBS)):
        compute, communication = (runs.each(number, HARMONY, cell) for cell in cells.values())
        found = paired_ratio(compute, communication)
        above = number is DOP
        words = f"{name}, compute-heavy over communication-heavy"
        rows.append(order(words, "above 1" if above else "below 1", found, below=not above))
    for (name, cell), derived in zip(both.items(), ("57.3", "58.5", "58.3"), strict=True):
        a_group = paired_ratio(runs.each(JOBS, HARMONY, cell), runs.each(GROUPS, HARMONY, cell))
        rows += [
            printed(f"{name}: machines a group", runs.mean(DOP, HARMONY, cell)),
            printed(f"{name}: groups", runs.mean(GROUPS, HARMONY, cell)),
            printed(f"{name}: jobs a group", a_group),
            printed(f"{name}, isolated: CPU use", runs.mean(CPU, "isolated", cell), "%", f"{derived} (derived)"),
        ]
    return Findings(rows, [said(options), offered(options, cells), MEMORY])


def arrivals(options: Options) -> Findings:
    """The text of Sec. V-D: Poisson arrivals with mean gaps of 0 to 8 minutes."""
    gaps = (0.0, 8.0) if options.quick else published.GAPS_MIN
    cells = {f"gap {gap:g} min": Cell(gap_min=gap) for gap in gaps}
    runs = play("harmony-arrivals", options, list(cells.values()), ("isolated", HARMONY))
    papers = {gaps[0]: published.MAIN, gaps[-1]: published.GAP_8}
    rows: list[Row] = []
    ends = list(cells.values())[:: len(cells) - 1]
    for gap, (name, cell) in zip(gaps, cells.items(), strict=True):
        rows += speedups(runs, cell, HARMONY, papers.get(gap), f"{name}: ")
    for name, number, paper in (
        ("average JCT", jct_h, published.GAP_8.jct / published.MAIN.jct),
        ("makespan", makespan_h, published.GAP_8.makespan / published.MAIN.makespan),
    ):
        at_once, spread = (runs.speedup(number, HARMONY, cell).mean for cell in ends)
        words = f"ratio of {name} at a gap of 8 minutes over that at 0"
        rows.append(table(words, paper, spread / at_once, "x", FLAT))
    rows += [row for name, cell in cells.items() for row in hours(runs, cell, ("isolated", HARMONY), f"{name}: ")]
    return Findings(rows, [said(options), offered(options, cells), MEMORY])


def google(options: Options) -> Findings:
    """The text of Sec. V-D: arrivals of windows of Google's trace; ours have its burstiness, not its times."""
    cells = {
        f"windows like Google's, mean gap {gap:g} min": Cell(gap_min=gap, arrivals="google") for gap in (4.0, 2.0, 8.0)
    }
    bursts = {"bursts of 8, mean gap 4 min": Cell(gap_min=4.0, arrivals="bursts")}
    runs = play("harmony-google", options, [*cells.values(), *bursts.values()], ("isolated", HARMONY))
    first, *others = cells.items()
    rows = speedups(runs, first[1], HARMONY, published.GOOGLE, f"{first[0]}: ")
    for name, cell in (*others, *bursts.items()):
        rows += speedups(runs, cell, HARMONY, None, f"{name}: ")
    note = (
        "the trace is not at hand and the paper does not say which windows: each of ours is a seed with a load of its "
        "own; the mean gap that is judged, 4 minutes, is the middle of the paper's Poisson arrivals"
    )
    return Findings(rows, [said(options), offered(options, {**cells, **bursts}), note, MEMORY])


@if_asked
def of_use(options: Options, runs: GroupRuns, cell: Cell) -> list[Path]:
    """Figure 11: CPU above, network below, of the first workload; an upright line where a policy's last job is done."""
    outcomes = {policy: runs.of(policy, cell)[0] for policy in ("isolated", HARMONY)}
    stop_s = max(float(one["use_s"][-1] - one["use_s"][0]) for one in outcomes.values())
    x, y = axes.durations(0.0, stop_s), axes.linear(0.0, 102.0)
    look, charts = looks(outcomes), []
    for what, key, mean in (("CPU", "cpu_use", CPU), ("network", "network_use", NETWORK)):
        lines = {policy: binned(one, 100.0 * one[key]) for policy, one in outcomes.items()}
        names = {policy: f"{policy} (mean {mean(one):.0f} %)" for policy, one in outcomes.items()}
        about: dict[str, Any] = {"x_label": "time; upright: all jobs are done", "y_label": f"{what} use [%]"}
        title = f"{jobs_of(options)} jobs on 100 machines, first workload: {what} (Figure 11)"
        chart = plots.curves(
            lines, look := looks(outcomes), x, y, title=title, summary="; ".join(names.values()), **about
        )
        ends = [
            Shape(f"thin {look[policy].classes}", [upright(float(x.at(edges_s[-1])), 0.0, 1.0)])
            for policy, (edges_s, _) in lines.items()
        ]
        named = [(look[policy].classes, name) for policy, name in names.items()]
        charts.append(replace(chart, legend=named).with_shapes(*ends))
    return picture(options, "harmony-use", charts)


def binned(outcome: Outcome, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Edges from 0 s to the end, and the means of a share between them."""
    begin_s, stop_s = outcome["use_s"][0], outcome["use_s"][-1]
    edges_s = np.append(np.arange(begin_s, stop_s, BIN_S), stop_s)
    return edges_s - begin_s, bin_means(outcome["use_s"], share, edges_s)
