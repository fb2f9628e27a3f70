"""Paper harmony, Sec. V-G: eight jobs on 32 machines, by one share of input on disk for all and by one for each.

The collector's cost curve has one constant, fitted on the published 52.9 s at alpha .3 (simulator/groups/reload.py);
what climbing then reaches is judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ....simulator.base.errors import InputError
from ....simulator.groups.group_memory import EXPANSION_BOUNDS, GC_SLOPE, MemoryTerms, settled
from ....simulator.groups.reload import (
    MACHINES,
    PUBLISHED_ALPHA,
    PUBLISHED_DYNAMIC_S,
    PUBLISHED_FIXED_S,
    ReloadTable,
    fit_gc_slope,
    reload_jobs,
    reload_table,
)
from ..findings import Findings, Options
from ..rows import Row, printed, ratio, table

FACTORS = (0.5, 2.0)  # of the slope: how much hangs on it
EXPANSIONS = (1.34, 1.36, 1.4, 1.5, EXPANSION_BOUNDS[1])
KAPPAS = (1.1, 1.18)
FINE = np.linspace(0.0, 1.0, 2_001)
NOTES = (
    f"fitted: the slope of the collector's cost, {GC_SLOPE:g}, on {PUBLISHED_FIXED_S} s at alpha {PUBLISHED_ALPHA:g} "
    "alone; the best alpha and what climbing reaches are judged",
    "two groups of four jobs on 16 machines each: that the eight form one group, 1 <= kappa would give 73.8 s; an "
    "iteration time is the mean over the two groups; kappa 1, expansion 1.36, threshold .7, 125 MB/s a disk, an "
    "iteration reads its whole input",
    "the miss: at alpha .3 the collector costs one group only, by .016 of its memory above the threshold; Eq. 1 "
    "without any of it is 44.7 s here, so the published 44.3 s leave neither collector nor disk anything",
    "four constants stand behind three numbers: this is no evidence for any of them",
)


def reload(options: Options) -> Findings:
    """The published two numbers, and what hangs on the slope, the expansion and kappa."""
    found = reload_table()
    best_alpha, best_s = found.best
    mean, least, most = found.alpha_mean_min_max
    rows = [
        Row("iteration at alpha .3 for all (fitted)", PUBLISHED_FIXED_S, _at(found, PUBLISHED_ALPHA), unit="s"),
        Row("best alpha of 0, .1, ... 1", PUBLISHED_ALPHA, best_alpha, (PUBLISHED_ALPHA, PUBLISHED_ALPHA)),
        table("iteration with an alpha for each job", PUBLISHED_DYNAMIC_S, found.dynamic_s),
        ratio(
            "the same below the best alpha for all",
            100.0 * (1.0 - PUBLISHED_DYNAMIC_S / PUBLISHED_FIXED_S),
            100.0 * (1.0 - found.dynamic_s / best_s),
        ),
        printed("the least that any alphas could give", least_s(), "s"),
        printed("alphas that climbing reaches: mean", mean),
        printed("the least of them", least),
        printed("the largest", most),
        *(printed(f"alpha {alpha:g} for all", s, "s") for alpha, s in zip(found.alphas, found.fixed_s, strict=True)),
    ]
    for factor in FACTORS:
        rows += _varied(f"{factor:g} times the slope", MemoryTerms(gc_slope=factor * GC_SLOPE))
    slower = fit_gc_slope(slowest=True)
    other = reload_table(MemoryTerms(gc_slope=slower))
    words = f"52.9 s as the slower group's (slope {slower:.3g})"
    rows.append(printed(f"{words}: with an alpha for each job, slower group", other.dynamic_slowest_s, "s"))
    for expansion in EXPANSIONS[:2] if options.quick else EXPANSIONS:
        rows += _refitted(f"expansion {expansion:g}", MemoryTerms(expansion=expansion))
    for kappa in KAPPAS[:1] if options.quick else KAPPAS:
        rows += _refitted(f"kappa {kappa:g}", MemoryTerms(), kappa)
    return Findings(rows, list(NOTES))


def least_s() -> float:
    """Seconds of an iteration at the best share of the input on disk of either group, mean over the groups.

    Memory and disks see only how much of all input of a group is on disk, so one share for a group is as good as any
    others for its jobs.
    """
    jobs = reload_jobs()
    rounds = []
    for members in map(list, jobs.groups):
        comp_machine_s, comm_s = jobs.comp_machine_s[members], jobs.comm_s[members]
        input_bytes, model_bytes = jobs.input_bytes[members], jobs.model_bytes[members]
        same = [np.full(len(members), alpha) for alpha in FINE]
        found = [
            settled(comp_machine_s, comm_s, input_bytes, model_bytes, MACHINES // 2, asked=asked) for asked in same
        ]
        rounds.append(min(group.round_s for group in found if not group.out_of_memory))
    return float(np.mean(rounds))


def _at(found: ReloadTable, alpha: float) -> float:
    return found.fixed_s[found.alphas.index(alpha)]


def _varied(words: str, terms: MemoryTerms, kappa: float = 1.0) -> Sequence[Row]:
    found = reload_table(terms, kappa)
    alpha, seconds = found.best
    return [
        printed(f"{words}: best alpha for all", alpha),
        printed(f"{words}: iteration there", seconds, "s"),
        printed(f"{words}: with an alpha for each job", found.dynamic_s, "s"),
    ]


def _refitted(words: str, terms: MemoryTerms, kappa: float = 1.0) -> Sequence[Row]:
    """The slope fitted anew under another assumption."""
    try:
        slope = fit_gc_slope(terms=terms, kappa=kappa)
    except InputError:
        return [printed(f"{words}: no slope gives {PUBLISHED_FIXED_S} s", float("nan"))]
    return _varied(f"{words}, fitted anew (slope {slope:.3g})", replace(terms, gc_slope=slope), kappa)
