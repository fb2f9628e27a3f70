"""Paper harmony: what it leaves open, one thing at a time, and what each moves JCT 2.11 and makespan 1.60 by."""

from __future__ import annotations

from dataclasses import replace

from ..estimates import Estimate
from . import harmony_published as published
from .harmony_runs import (
    HARMONY,
    NO_LIMIT,
    WORKLOADS,
    Cell,
    jct_h,
    makespan_h,
    metric,
    offered,
    play_pairs,
    said,
    under,
)
from .registry import Findings, Options, Reproduction
from .rows import Row, printed

BASE = Cell()
Reading = tuple[str, Cell, str]  # of Harmony, the cell, and isolated's word


def readings() -> dict[str, Reading]:
    """By what is read otherwise."""
    found: dict[str, Reading] = {"as it stands": (HARMONY, BASE, "isolated")}
    for words in ("order=arrival", "order=short", "stop=printed", "balance=group", "regroup=always", "profile=largest"):
        found[words] = (f"{HARMONY}:{words}", BASE, "isolated")
    for beta in (0.1, 0.25, 0.75, 1.0):
        found[f"beta={beta:g}"] = (f"{HARMONY}:beta={beta:g}", BASE, "isolated")
    for share in (0.0, 0.2, 0.3, 0.5, 1.0):
        found[f"alpha={share:g}, input that may be on disk"] = (f"{HARMONY}:alpha={share:g}", BASE, "isolated")
    for dop in (4, 6, 9, 12):
        found[f"isolated on {dop} machines"] = (HARMONY, BASE, f"isolated:dop={dop}")
    found["isolated passes over jobs that do not fit"] = (HARMONY, BASE, "isolated:head=skip")
    for sigma in (0.6, 1.0):
        found[f"lengths of sigma {sigma:g}"] = (HARMONY, replace(BASE, length_sigma=sigma), "isolated")
    for sigma in (0.6, 0.8):
        found[f"ratios of sigma {sigma:g}"] = (HARMONY, replace(BASE, ratio_sigma=sigma), "isolated")
    for hours in (1.0, 4.0):
        found[f"lengths of {hours:g} h"] = (HARMONY, replace(BASE, mean_hours=hours), "isolated")
    for kappa in (1.0, 1.2):
        found[f"kappa {kappa:g}"] = (HARMONY, replace(BASE, kappa=kappa), "isolated")
    for words, config in CONFIGS.items():
        found[words] = (HARMONY, under(BASE, config), "isolated")
    return found


CONFIGS = {
    "metrics known on arrival": "profile_iterations=0",
    "profiling for 10 iterations": "profile_iterations=10",
    "moves for nothing": "move_s=0",
    "moves of 300 s": "move_s=300",
    "PULL and PUSH apart": "comm=split",
    "secondary COMM, busy .83": "busy=0.83",
    "memory without limit": NO_LIMIT,
    "collector twice as dear": "gc_slope=17.86",
    "collector half as dear": "gc_slope=4.465",
    "expansion 1.5, slope fitted anew": "expansion=1.5,gc_slope=1.21",
    "expansion 1.86, slope fitted anew": "expansion=1.86,gc_slope=0.0356",
    "disks of 250 MB/s": "disk_mb_s=250",
    "disks of 500 MB/s": "disk_mb_s=500",
    "an iteration reads half its input": "pass_fraction=0.5",
}
QUICK = ("as it stands", "stop=printed", "isolated on 4 machines", "memory without limit")


def compared(options: Options) -> Findings:
    """Everything one by one."""
    chosen = {name: one for name, one in readings().items() if not options.quick or name in QUICK}
    pairs = [(word, cell) for one, cell, other in chosen.values() for word in (one, other)]
    runs = play_pairs("harmony-readings", options, list(dict.fromkeys(pairs)), options.seeds(WORKLOADS))
    paper = (published.MAIN.jct, published.MAIN.makespan)
    rows: list[Row] = []
    base: list[Estimate] = []
    for name, (one, cell, other) in chosen.items():
        both = [runs.ratio(number, other, one, cell) for number in (jct_h, makespan_h)]
        base = base or both
        rows += [
            printed(
                f"{name}: {words}", found, "x", f"{value:g}; moved {100.0 * (found.mean / first.mean - 1.0):+.1f} %"
            )
            for words, value, found, first in zip(("average JCT", "makespan"), paper, both, base, strict=True)
        ]
        running = runs.mean(metric("jobs_running_mean"), one, cell)
        rows.append(printed(f"{name}: jobs that run together", running, "", f"{published.JOBS_RUNNING}"))
    notes = [
        said(options),
        offered(options, {"80 jobs": BASE}),
        "rows are isolated's time over Harmony's, and what the reading moves that by; isolated is played under the "
        "same reading of jobs and machines, on the machines that were calibrated once",
    ]
    return Findings(rows, notes)


REPRODUCTIONS = (
    Reproduction("harmony-readings", "harmony", "ours", "each thing that the paper leaves open, one by one", compared),
)
