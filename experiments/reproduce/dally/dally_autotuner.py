"""Paper dally, Figure 4: the tuned rack timer over time, by cluster size."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from ...comparing.intervals import paired_difference
from ..case import Outcome
from ..findings import Findings, Options
from ..loads import offered_load_note
from ..rows import Row, printed
from . import dally_plots
from .dally_grid import AS_THE_PAPER, RACK_GPUS, Grid, grid
from .dally_jobs import dally_batch

RACKS = (2, 4, 8, 16)
GANG = 16  # P95 of the GPU demands: the paper shows "a typical P95 job"
# The tuner of the paper alone: the floors of the authors' simulator would hold most timers at 12 leases.
POLICY = "dally:history=24"
TIMED = replace(AS_THE_PAPER, how="dally.dally_series:timed", given=(("gpus", GANG),))
CROWDED = 0.5  # a timer settles while the cluster is crowded: until so many of the jobs are left


def autotuner(options: Options) -> Findings:
    """Rack timers at four cluster sizes: smaller clusters settle at longer ones."""
    batch = dally_batch(options)
    racks = (2, 8) if options.quick else RACKS
    runs = grid("dally-autotuner", options, (POLICY,), racks, [batch], TIMED)
    rows = [
        printed(f"rack timer of {GANG} GPUs while more than half of the jobs are left, {size} racks", settled, "h")
        for size, settled in ((size, runs.mean(settled_h, POLICY, size)) for size in racks)
    ]
    rows += [_longer(runs, smaller, larger) for smaller, larger in pairwise(racks)]
    notes = [f"semantics=artist-sim, {POLICY}, {len(options.order_seeds)} machine orders", batch.says]
    notes.append(offered_load_note({batch.name: [batch.path]}, [RACK_GPUS * size for size in racks]))
    return Findings(rows, notes, dally_plots.timers(options, {size: _curves(runs, size) for size in racks}, GANG))


def _longer(runs: Grid, smaller: int, larger: int) -> Row:
    found = paired_difference(runs.each(settled_h, POLICY, smaller), runs.each(settled_h, POLICY, larger))
    low, high = (None, None) if found.is_sure else (found.low, found.high)
    what = f"rack timer of {GANG} GPUs, {smaller} racks minus {larger} racks"
    return Row(what, "above 0", found.mean, (float(np.nextafter(0.0, 1.0)), float("inf")), low, high, unit="h")


def _crowded(outcome: Outcome) -> np.ndarray:
    return outcome["jobs_left"] > CROWDED * len(outcome["jct_s"])


def settled_h(outcome: Outcome) -> float:
    """Mean of the timer over the time in which more than CROWDED of the jobs are left, hours."""
    crowded = _crowded(outcome)
    return float(outcome["timer_s"][crowded].mean() / 3600.0) if crowded.any() else 0.0


def _curves(runs: Grid, size: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """(times, one curve in hours a machine order), nan once the cluster is no longer crowded."""
    crowded = [(one["time_s"][_crowded(one)], one["timer_s"][_crowded(one)] / 3600.0) for one in runs.of(POLICY, size)]
    stop_s = max((float(time_s[-1]) for time_s, _ in crowded if len(time_s)), default=0.0)
    grid_s = np.linspace(0.0, stop_s, 400)
    return grid_s, [
        np.interp(grid_s, time_s, timer_h, right=np.nan) if len(time_s) else np.full(len(grid_s), np.nan)
        for time_s, timer_h in crowded
    ]
