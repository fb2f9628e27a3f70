"""Paper sjf-bsbf, Figure 6b: one interference ratio xi for all pairs, from 1.0 to 2.0, with and without a memory limit.

The published curves need free memory: where a job must accumulate to fit beside another, SJF-BSBF refuses pairs that
SJF-FFS takes at every xi, and the two are never the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from ...comparing.intervals import Estimate, paired_ratio
from ..case_runs import Runs
from ..findings import Findings, Options
from ..rows import Row, printed
from . import bsbf_plots
from . import bsbf_published as published
from .bsbf_case import NO_LIMIT
from .bsbf_runs import PASSED, SHARING, Cell, Experiment, jct_h, offered, play, said
from .bsbf_tables import BASE, PROTOCOL

BREAK_EVEN = 1.5  # of two equal jobs
XI = (1.0, 1.1, 1.25, 1.4, BREAK_EVEN, 1.501, 1.6, 1.75, 2.0)
SAME_UP_TO, BELOW_FROM, PUBLISHED_FROM = 1.25, 1.6, 1.5
SAME, LEAST_BELOW = 0.02, 4.0  # relative, %
# Two policies that decide alike differ by 10 % on one workload, by chance; so many show 2 %.
XI_WORKLOADS = 50
TIES = (
    f". Up to {BREAK_EVEN:g} Theorem 1 lets a job begin beside one that has less left; at {BREAK_EVEN:g} that gains "
    "the two nothing, and keeps their GPUs from those who wait. Just above it refuses"
)
LIMITS = {NO_LIMIT: "no limit of memory", "assumed": "11 GiB"}


def interference(options: Options) -> Findings:
    """Average JCT of SJF-BSBF against SJF-FFS with one xi for all pairs."""
    values = (1.0, 1.25, 1.5, 2.0) if options.quick else XI
    experiments = {memory: {xi: _constant(xi, memory) for xi in values} for memory in LIMITS}
    played = [one for some in experiments.values() for one in some.values()]
    runs = play("bsbf-interference", options, played, (PASSED, *SHARING), XI_WORKLOADS)
    rows = [_against_ffs(runs, one, xi) for xi, one in experiments[NO_LIMIT].items()]
    rows += [
        printed(f"average JCT below sjf-ffs, xi {xi:g}, {LIMITS['assumed']}", _below_ffs(runs, one), "%")
        for xi, one in experiments["assumed"].items()
    ]
    first = experiments[NO_LIMIT][values[0]]
    rows.append(printed(f"{PASSED}: average JCT", runs.mean(jct_h(), PASSED, first), "h"))
    rows += [row for memory, some in experiments.items() for row in _curves(runs, some, memory)]
    notes = [
        said(options, XI_WORKLOADS, with_pollux=False),
        *offered(options, [first], XI_WORKLOADS),
        PROTOCOL,
        "by Theorem 1 one constant xi refuses nobody up to 1.5, as long as no job must accumulate: until then the two "
        "differ in the choice of partners alone; above it two jobs share only if the running one has 2 xi - 2 times "
        "the work of the new one left",
        *(note for memory, some in experiments.items() for note in falls(runs, some, memory)),
    ]
    return Findings(rows, notes, bsbf_plots.of_interference(options, runs, experiments, LIMITS))


def _constant(xi: float, memory: str) -> Experiment:
    return Experiment(BASE, Cell(interference=f"constant:xi={xi:g}", memory=memory))


def _against_ffs(runs: Runs, experiment: Experiment, xi: float) -> Row:
    """Equal as published up to 1.25; below from 1.6 on, beside the published range; between, printed."""
    where = f"xi {xi:g}, {LIMITS[NO_LIMIT]}"
    if xi <= SAME_UP_TO:
        found = runs.ratio(jct_h(), "sjf-bsbf", "sjf-ffs", experiment)
        bounds = (1.0 - SAME, 1.0 + SAME)
        return Row(f"average JCT, sjf-bsbf / sjf-ffs, {where}", "equal", found.mean, bounds, found.low, found.high, "x")
    found = _below_ffs(runs, experiment)
    what = f"average JCT below sjf-ffs, {where}"
    if xi < BELOW_FROM:
        return Row(what, published.INTERFERENCE if xi >= PUBLISHED_FROM else None, *_drawn(found), unit="%")
    return Row(what, published.INTERFERENCE, found.mean, (LEAST_BELOW, math.inf), found.low, found.high, "%")


def _drawn(found: Estimate) -> tuple[float, None, float, float]:
    return found.mean, None, found.low, found.high


def _below_ffs(runs: Runs, experiment: Experiment) -> Estimate:
    return runs.improvement(jct_h(), "sjf-bsbf", "sjf-ffs", experiment)


def _curves(runs: Runs, experiments: Mapping[float, Experiment], memory: str) -> list[Row]:
    """Mean JCT over xi, and how much is shared."""
    rows = []
    for policy in SHARING:
        for xi, one in experiments.items():
            where = f"xi {xi:g}, {LIMITS[memory]}"
            rows.append(printed(f"{policy}: average JCT, {where}", runs.mean(jct_h(), policy, one), "h"))
            rows.append(
                printed(f"{policy}: held GPU time with two jobs, {where}", shared_percent(runs, policy, one), "%")
            )
    return rows


def falls(
    runs: Runs, experiments: Mapping[float, Experiment], memory: str, policies: Sequence[str] = SHARING
) -> list[str]:
    """Where more interference gives a lower mean JCT, and what changed there."""
    return [
        f"{policy}, {LIMITS[memory]}: from xi {few:g} to {more:g} the average JCT falls by {_percent(found)}; held GPU "
        f"time with two jobs {shared_percent(runs, policy, experiments[few]):.1f} % before, "
        f"{shared_percent(runs, policy, experiments[more]):.1f} % after{_why(policy, found, few, more)}"
        for policy in policies
        for few, more in pairwise(experiments)
        for found in [_step(runs, policy, experiments[few], experiments[more])]
        if found.mean < 1.0
    ]


def _why(policy: str, found: Estimate, few: float, more: float) -> str:
    if found.high >= 1.0:
        return "; its interval has no fall, too"
    return TIES if policy == "sjf-bsbf" and few <= BREAK_EVEN < more else ""


def _step(runs: Runs, policy: str, before: Experiment, after: Experiment) -> Estimate:
    return paired_ratio(runs.each(jct_h(), policy, after), runs.each(jct_h(), policy, before))


def _percent(found: Estimate) -> str:
    """A ratio below 1 as a fall."""
    mean, low, high = (100.0 * (1.0 - value) for value in (found.mean, found.high, found.low))
    return f"{mean:.1f} % [{low:.1f}, {high:.1f}]"


def shared_percent(runs: Runs, policy: str, experiment: Experiment) -> float:
    """Of the time that GPUs are held, how much two jobs hold them, %."""
    return 100.0 * float(np.mean(runs.each("shared_rate", policy, experiment)))
