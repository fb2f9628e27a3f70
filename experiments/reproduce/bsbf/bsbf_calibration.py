"""Which workload parameters bring the published rows of paper sjf-bsbf's exclusive policies out nearest.

The paper's jobs are not published, so their parameters are searched for: drawn at random around what the paper
implies, played under FIFO, SJF and Tiresias, and ranked by the mean |log(ours / published)|. No row of a policy that
shares GPUs, or of Pollux, is looked at, and the workloads' seeds are used nowhere else: those rows, and all rows on
other seeds, remain predictions. The five best are shipped as `fit=1` to `fit=5` of the workloads `bsbf-tables` and
`bsbf-table2`. That one is fitted to Table II, which the text of Figure 4a contradicts: "nearly 80% of jobs have no more
than 0.75 hour", where Table II has all jobs of all policies over after 0.67 hours.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ....simulator.workloads.bsbf_jobs import LARGE_GANGS, SMALL_GANGS, TESTBED_LARGE, TESTBED_SMALL, shipped_fits
from ..case import Case, Outcome
from ..findings import Findings, Options
from ..rows import Row, printed
from ..sweep import sweep
from . import bsbf_published as published
from .bsbf_case import shared_case
from .bsbf_runs import EXCLUSIVE, Cell

SEEDS = tuple(range(1000, 1008))  # of the workloads that are fitted
OTHER_SEEDS = tuple(range(40))  # those that the tables are judged on
BEST = 5
ALL_READINGS = 40  # candidates that are played under the other readings too
QUICK = 6  # candidates
POOL = 200_000  # sets of parameters that the candidates are taken from
READINGS = {
    "a gang takes any GPUs (placer=tier)": Cell(exclusive_placer="tier"),
    "thresholds 3250/7200": Cell(thresholds="3250/7200"),
    "jobs behind may pass (head=skip)": Cell(exclusive_head="skip"),
}

LARGE_SHARE = 0.122  # every row of Tables III and IV is such a mixture of its two columns
CLASS_HOURS = (1.74, 0.55)  # SJF's completion time less its queueing time, Table III
GPU_HOURS = (550.0, 900.0)  # with 240 jobs
TESTBED_GPU_S = (15_000.0, 36_000.0)  # 16 GPUs x the published makespans are 37,000
TESTBED_MEANS_S = ((50, 200), (100, 600))
TESTBED_SPAN_S = (400.0, 1800.0)
BATCHES = ((1,), (1, 2), (1, 2, 4), (2,), (2, 4), (4,))  # parts of the largest measured batch per GPU

Parameters = dict[str, Any]


@dataclass(frozen=True)
class Target:
    """Published rows, and the parameters that are drawn for them.

    Attributes:
        generator: the workload's name.
        what: the rows, in words.
        topology, jobs, by_class: see `calibrated`.
        published: the numbers, in the order of the `numbers` of `calibrated`. unit: theirs.
        labels: of each.
        draw: so many sets of parameters.
        candidates: how many are asked for; a few are drawn twice.
        seed: of the draws.
    """

    generator: str
    what: str
    topology: str
    jobs: tuple[int, ...]
    by_class: bool
    published: tuple[float, ...]
    unit: str
    labels: tuple[str, ...]
    draw: Callable[[np.random.Generator, int], list[Parameters]]
    candidates: int
    seed: int

    def case(self, parameters: Parameters, seeds: tuple[int, ...] = SEEDS, cell: Cell = Cell()) -> Case:
        """The parameters, to be played."""
        word = f"{self.generator}:" + ",".join(f"{key}={_text(value)}" for key, value in parameters.items())
        given = {"jobs": self.jobs, "seeds": seeds, "by_class": self.by_class}
        policies = tuple(map(cell.word, EXCLUSIVE))
        how = "bsbf.bsbf_case:calibrated"
        return replace(shared_case("", self.topology, word), how=how, given=(("policies", policies), *given.items()))

    def loss(self, played: Outcome) -> float:
        """Mean |log(ours / published)|."""
        return float(np.abs(np.log(played["numbers"] / np.array(self.published))).mean())

    def drawn(self) -> list[Parameters]:
        """The candidates, the same every time."""
        return self.draw(np.random.default_rng(self.seed), self.candidates)


def draw_tables(rng: np.random.Generator, count: int) -> list[Parameters]:
    """Of `bsbf-tables`: any gang mix, class means within 15 % of CLASS_HOURS, sigma .8 to 1.3, GPU_HOURS of work."""
    large, small = _mixes(rng, LARGE_GANGS), _mixes(rng, SMALL_GANGS)
    means = (np.array(CLASS_HOURS) * rng.uniform(0.85, 1.15, (POOL, 2))).round(2)
    sigma = rng.uniform(0.8, 1.3, POOL).round(2)
    gang_hours = means * np.stack([large @ LARGE_GANGS, small @ SMALL_GANGS], axis=1)
    hours = 240 * (LARGE_SHARE * gang_hours[:, 0] + (1.0 - LARGE_SHARE) * gang_hours[:, 1])
    return [
        {
            "large_share": LARGE_SHARE,
            "large_gangs": large[i].tolist(),
            "small_gangs": small[i].tolist(),
            "mean_hours": means[i].tolist(),
            "sigma": float(sigma[i]),
        }
        for i in _evenly(rng, hours, GPU_HOURS, count)
    ]


def draw_table2(rng: np.random.Generator, count: int) -> list[Parameters]:
    """Of `bsbf-table2`: any gang mix, logarithms of class means in TESTBED_MEANS_S, TESTBED_GPU_S of work."""
    large, small = _mixes(rng, TESTBED_LARGE), _mixes(rng, TESTBED_SMALL)
    low, high = np.log(TESTBED_MEANS_S).T
    means = np.exp(low + (high - low) * rng.random((POOL, 2))).round().astype(np.int64)
    sigma = rng.uniform(0.0, 1.0, POOL).round(2)
    span_s = rng.uniform(*TESTBED_SPAN_S, POOL).round().astype(np.int64)
    batches = rng.integers(len(BATCHES), size=POOL)
    work_s = 10 * means[:, 0] * (large @ TESTBED_LARGE) + 20 * means[:, 1] * (small @ TESTBED_SMALL)
    return [
        {
            "span_s": int(span_s[i]),
            "large_gangs": large[i].tolist(),
            "small_gangs": small[i].tolist(),
            "mean_s": means[i].tolist(),
            "sigma": float(sigma[i]),
            "batches": list(BATCHES[batches[i]]),
        }
        for i in _evenly(rng, work_s, TESTBED_GPU_S, count)
    ]


def _mixes(rng: np.random.Generator, gangs: Sequence[int]) -> np.ndarray:
    """(POOL, gangs) weights to a hundredth; any split of all GPUs that are asked between the sizes is as likely."""
    weights = rng.dirichlet(np.ones(len(gangs)), POOL) / gangs
    return (weights / weights.sum(axis=1, keepdims=True)).round(2)


def _evenly(rng: np.random.Generator, work: np.ndarray, between: tuple[float, float], count: int) -> list[int]:
    """About so many of the pool, each once, whose work is evenly spread: the next above amounts that are drawn."""
    order = np.argsort(work, kind="stable")
    chosen = order[np.searchsorted(work[order], rng.uniform(*between, count)).clip(max=POOL - 1)]
    return list(dict.fromkeys(chosen.tolist()))


def _text(value: object) -> str:
    return "/".join(f"{one:g}" for one in value) if isinstance(value, list) else f"{value:g}"


TABLES = Target(
    "bsbf-tables",
    "18 completion times of FIFO, SJF and Tiresias in Tables III and IV",
    "bsbf-simulation",
    (240, 480),
    True,
    tuple(value for jobs in (240, 480) for policy in EXCLUSIVE for value in published.JCT[jobs][policy]),
    "h",
    tuple(
        f"{policy}: average JCT, {column} jobs, {jobs} jobs"
        for jobs in (240, 480)
        for policy in EXCLUSIVE
        for column in published.COLUMNS
    ),
    draw_tables,
    200,
    20,
)
TABLE_2 = Target(
    "bsbf-table2",
    "makespan and completion time of FIFO, SJF and Tiresias in Table II",
    "bsbf-physical",
    (30,),
    False,
    tuple(value for policy in EXCLUSIVE for value in published.TABLE_2[policy]),
    "s",
    tuple(f"{policy}: {what}" for policy in EXCLUSIVE for what in ("makespan", "average JCT")),
    draw_table2,
    400,
    21,
)


@dataclass(frozen=True)
class Found:
    """What a search found.

    Attributes:
        best: the BEST parameters, best first.
        losses, played: theirs, on the workloads of the fit.
        others: their losses on the workloads that tables are judged on.
        readings: by reading, the least loss of the first ALL_READINGS candidates; "" is the reading that is fitted.
        own: by reading, the loss of the best parameters.
    """

    best: list[Parameters]
    losses: list[float]
    played: list[Outcome]
    others: list[float]
    readings: Mapping[str, float]
    own: Mapping[str, float]


def search(target: Target, options: Options) -> Found:
    """Play every candidate and rank them."""
    target = replace(target, candidates=QUICK) if options.quick else target
    parameters = target.drawn()
    cases = [target.case(one) for one in parameters]
    name = f"bsbf-calibration, {target.generator}"
    played = sweep(name, cases, options)
    losses = [target.loss(played[case]) for case in cases]
    order = np.argsort(losses, kind="stable")[:BEST].tolist()
    best = [parameters[i] for i in order]
    judged = [target.case(one, OTHER_SEEDS[:2] if options.quick else OTHER_SEEDS) for one in best]
    few = parameters[:ALL_READINGS]
    readings = {says: [target.case(one, cell=cell) for one in few] for says, cell in READINGS.items()}
    own = {says: target.case(best[0], cell=cell) for says, cell in READINGS.items()}
    more = [*judged, *own.values(), *(case for some in readings.values() for case in some)]
    also = sweep(f"{name}, other seeds and readings", more, options)
    return Found(
        best,
        [losses[i] for i in order],
        [played[cases[i]] for i in order],
        [target.loss(also[case]) for case in judged],
        {"": min(losses[: len(few)])}
        | {says: min(target.loss(also[case]) for case in some) for says, some in readings.items()},
        {says: target.loss(also[case]) for says, case in own.items()},
    )


def calibration(options: Options) -> Findings:
    """Search the parameters of both workloads, and compare them with those that are shipped."""
    targets = (TABLES, TABLE_2)
    found = {target.generator: search(target, options) for target in targets}
    rows = [row for target in targets for row in _rows(target, found[target.generator], options)]
    notes = [_said(target, options) for target in targets]
    notes += [
        f"loss: mean |log(ours / published)|; no row of SJF-FFS, SJF-BSBF or Pollux is looked at. {_seeds()}",
        "reading that is fitted: strict head, consolidated, Tiresias with thresholds 57600 and 30 s a restart, 2080 Ti",
    ]
    for target in targets:
        for rank, parameters in enumerate(found[target.generator].best):
            shown = ",".join(f"{key}={_text(value)}" for key, value in parameters.items())
            notes.append(f"{target.generator}, fit {rank + 1}: {shown}")
    return Findings(rows, notes, [_written(options.out, found)] if options.out is not None else [])


def _rows(target: Target, found: Found, options: Options) -> list[Row]:
    name, rows = target.generator, []
    for rank, (loss, other, played) in enumerate(zip(found.losses, found.others, found.played, strict=True)):
        rows.append(printed(f"{name}, fit {rank + 1}: loss", loss))
        rows.append(printed(f"{name}, fit {rank + 1}: loss on the seeds of the tables", other))
        rows += [
            printed(f"{name}, fit {rank + 1}: offered load, {jobs} jobs", float(load))
            for jobs, load in zip(target.jobs, played["loads"], strict=True)
        ]
    rows += [printed(f"{name}, fit 1: loss, {says}", loss) for says, loss in found.own.items()]
    few = min(ALL_READINGS, QUICK if options.quick else target.candidates)
    rows += [
        printed(f"{name}: least loss of {few} candidates, {says or 'the reading that is fitted'}", loss)
        for says, loss in found.readings.items()
    ]
    rows += [
        Row(f"{name}, fit 1: {label}", value, float(ours), unit=target.unit)
        for label, value, ours in zip(target.labels, target.published, found.played[0]["numbers"], strict=True)
    ]
    same = sum(one == other for one, other in zip(found.best, shipped_fits()[name], strict=True))
    rows.append(Row(f"{name}: shipped fits that are found again", 5.0, same, None if options.quick else (5.0, 5.0)))
    return rows


def _said(target: Target, options: Options) -> str:
    few = f"; --quick: {QUICK} candidates, so other fits than the shipped ones" if options.quick else ""
    return f"{target.generator}: {len(target.drawn())} candidates for the {target.what}{few}"


def _seeds() -> str:
    return (
        f"Workloads of the fit: seeds {SEEDS[0]} to {SEEDS[-1]}; of the tables: {OTHER_SEEDS[0]} to {OTHER_SEEDS[-1]}"
    )


def _written(folder: Path, found: Mapping[str, Found]) -> Path:
    """The file of the fits, as it is shipped."""
    path = folder / "bsbf_fits.json"
    about = "Parameters of the workloads bsbf-tables and bsbf-table2, best first, as bsbf-calibration finds them."
    lists = [
        f'  "{name}": [\n' + ",\n".join(f"   {json.dumps(one)}" for one in each.best) + "\n  ]"
        for name, each in found.items()
    ]
    text = f'{{\n "about": "{about}",\n "fits": {{\n' + ",\n".join(lists) + "\n }\n}\n"
    path.write_text(text, encoding="utf-8")
    return path
