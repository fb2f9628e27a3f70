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
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ....simulator.workloads.bsbf_jobs import LARGE_GANGS, SMALL_GANGS, TESTBED_LARGE, TESTBED_SMALL, shipped_fits
from ...settings.evaluation_setting import Setting
from ..case import Case, Outcome
from ..engine import Play
from ..rows import Row, printed
from ..sweep import sweep

EXCLUSIVE = ("fifo", "sjf", "tiresias")
SEEDS = tuple(range(1000, 1008))  # of the workloads that are fitted
OTHER_SEEDS = tuple(range(40))  # those that the tables are judged on
BEST = 5
ALL_READINGS = 40  # candidates that are played under the other readings too
QUICK = 6  # candidates
POOL = 200_000  # sets of parameters that the candidates are taken from
READINGS = {  # head, placer, Tiresias' thresholds
    "": ("strict", "consolidated", "57600"),
    "a gang takes any GPUs (placer=tier)": ("strict", "tier", "57600"),
    "thresholds 3250/7200": ("strict", "consolidated", "3250/7200"),
    "jobs behind may pass (head=skip)": ("skip", "consolidated", "57600"),
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
        generator: the workload's name. what: the rows, in words.
        topology, jobs, by_class: see `calibrated`.
        tables: the reproductions that publish the numbers; these are in the order of `numbers` of `calibrated`.
        unit: of the numbers.
        draw: so many sets of parameters, `candidates`; a few are drawn twice. seed: of the draws.
    """

    generator: str
    what: str
    topology: str
    jobs: tuple[int, ...]
    by_class: bool
    tables: tuple[str, ...]
    unit: str
    draw: Callable[[np.random.Generator, int], list[Parameters]]
    candidates: int
    seed: int

    def case(self, parameters: Parameters, seeds: tuple[int, ...] = SEEDS, reading: str = "") -> Case:
        """The parameters, to be played."""
        word = f"{self.generator}:" + ",".join(f"{key}={_text(value)}" for key, value in parameters.items())
        head, placer, thresholds = READINGS[reading]
        words = [f"{policy}:head={head},placer={placer}" for policy in EXCLUSIVE]
        words[-1] += f",thresholds={thresholds},preemption_cost=30"
        given = {"policies": tuple(words), "jobs": self.jobs, "seeds": seeds, "by_class": self.by_class}
        sharing: dict[str, Any] = {"jobs_per_gpu": 2, "interference": "measured", "gpu": "2080ti"}
        network = "allreduce:calibration=measured,gpu=2080ti"
        setting = Setting.of("Sharing", self.topology, word, network, **sharing, memory_gb=11.0, memory="assumed")
        return Case("", setting, 0, "bsbf.bsbf_runs:calibrated", tuple(given.items()))

    def drawn(self, candidates: int) -> list[Parameters]:
        """So many candidates, the same every time."""
        return self.draw(np.random.default_rng(self.seed), candidates)

    def published(self, play: Play) -> dict[str, float]:
        """The numbers, by what they are of."""
        found: dict[str, float] = {}
        for jobs, table in zip(self.jobs, self.tables, strict=True):
            line = play.paper.reproductions[table].rows[0]
            where = f", {jobs} jobs" if self.by_class else ""
            what = f"{line.what}, " if line.what else ""
            found |= {
                f"{policy}: {what}{column}{where}": float(value)
                for policy in EXCLUSIVE
                for column, value in zip(line.columns, line.paper[policy], strict=True)
            }
        return found


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
    ("bsbf-table3", "bsbf-table4"),
    "h",
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
    ("bsbf-table2",),
    "s",
    draw_table2,
    400,
    21,
)


def calibration(play: Play) -> Iterator[Row]:
    """Search the parameters of both workloads, and compare them with those that are shipped."""
    best: dict[str, list[Parameters]] = {}
    play.notes.append(
        f"loss: mean |log(ours / published)|; no row of SJF-FFS, SJF-BSBF or Pollux is looked at. Workloads of the fit:"
        f" seeds {SEEDS[0]} to {SEEDS[-1]}; of the tables: {OTHER_SEEDS[0]} to {OTHER_SEEDS[-1]}. Reading that is"
        " fitted: strict head, consolidated, Tiresias with thresholds 57600 and 30 s a restart, 2080 Ti"
    )
    for target in (TABLES, TABLE_2):
        parameters = target.drawn(QUICK if play.options.quick else target.candidates)
        few = "; --quick: so other fits than the shipped ones" if play.options.quick else ""
        play.notes.append(f"{target.generator}: {len(parameters)} candidates for the {target.what}{few}")
        best[target.generator] = yield from _search(play, target, parameters)
    for name, fits in best.items():
        for rank, one in enumerate(fits):
            shown = ",".join(f"{key}={_text(value)}" for key, value in one.items())
            play.notes.append(f"{name}, fit {rank + 1}: {shown}")
    if play.options.out is not None:
        play.written.append(_written(play.options.out, best))


def _search(play: Play, target: Target, parameters: list[Parameters]) -> Generator[Row, None, list[Parameters]]:
    """Play every candidate and rank them; the rows, and as the value the best parameters."""
    name, published, quick = target.generator, target.published(play), play.options.quick
    cases, few = [target.case(one) for one in parameters], parameters[:ALL_READINGS]
    played = sweep(f"bsbf-calibration, {name}", cases, play.options)
    losses = [loss(played[case], published) for case in cases]
    order = np.argsort(losses, kind="stable")[:BEST].tolist()
    best = [parameters[i] for i in order]
    judged = [target.case(one, OTHER_SEEDS[:2] if quick else OTHER_SEEDS) for one in best]
    own = {says: target.case(best[0], reading=says) for says in READINGS if says}
    readings = {says: [target.case(one, reading=says) for one in few] for says in READINGS if says}
    more = [*judged, *own.values(), *(case for some in readings.values() for case in some)]
    also = {
        case: loss(one, published)
        for case, one in sweep(f"bsbf-calibration, {name}, others", more, play.options).items()
    }
    for rank, i in enumerate(order):
        fit = f"{name}, fit {rank + 1}"
        yield printed(f"{fit}: loss", losses[i])
        yield printed(f"{fit}: loss on the seeds of the tables", also[judged[rank]])
        loads = zip(target.jobs, played[cases[i]]["loads"].tolist(), strict=True)
        yield from (printed(f"{fit}: offered load, {jobs} jobs", load) for jobs, load in loads)
    yield from (printed(f"{name}, fit 1: loss, {says}", also[case]) for says, case in own.items())
    least = {"the reading that is fitted": min(losses[: len(few)])}
    least |= {says: min(also[case] for case in some) for says, some in readings.items()}
    count = min(ALL_READINGS, QUICK if quick else target.candidates)
    yield from (printed(f"{name}: least loss of {count} candidates, {says}", one) for says, one in least.items())
    numbers = played[cases[order[0]]]["numbers"].tolist()
    for (label, value), ours in zip(published.items(), numbers, strict=True):
        yield Row(f"{name}, fit 1: {label}", value, ours, unit=target.unit)
    same = sum(one == other for one, other in zip(best, shipped_fits()[name], strict=True))
    yield Row(f"{name}: shipped fits that are found again", 5.0, same, None if quick else (5.0, 5.0))
    return best


def loss(outcome: Outcome, published: Mapping[str, float]) -> float:
    """Mean |log(ours / published)|."""
    return float(np.abs(np.log(outcome["numbers"] / np.array(list(published.values())))).mean())


def _written(folder: Path, best: Mapping[str, list[Parameters]]) -> Path:
    """The file of the fits, as it is shipped."""
    path = folder / "bsbf_fits.json"
    about = "Parameters of the workloads bsbf-tables and bsbf-table2, best first, as bsbf-calibration finds them."
    lists = [
        f'  "{name}": [\n' + ",\n".join(f"   {json.dumps(one)}" for one in fits) + "\n  ]"
        for name, fits in best.items()
    ]
    text = f'{{\n "about": "{about}",\n "fits": {{\n' + ",\n".join(lists) + "\n }\n}\n"
    path.write_text(text, encoding="utf-8")
    return path
