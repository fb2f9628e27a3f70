"""Do the published orders of paper sjf-bsbf hold, whatever the paper leaves open? Every order in every cell of a grid.

An order is a pair of policies of Table III or IV of which one is more than 10 % below the other in average JCT over all
jobs. It holds in a cell if its mean over the cell's workloads is below the other's. The grid is the full product of
what decides most (PRODUCT) and the base cell with one other value of each of the rest (ALONE). Cells that differ in
what touches neither policy of an order are one cell for it: only different ones are counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path

import numpy as np

from ...charts import axes
from ...charts import chart as charts
from ...charts.chart import Chart, Label, Shape, segment, upright
from ...comparing.intervals import Estimate, paired_ratio
from ..findings import Findings, Options
from ..paper_pictures import if_asked, looks, picture
from ..rows import Row, order, printed
from ..sweep import sweep_by
from . import bsbf_published as published
from .bsbf_runs import PASSED, WITHOUT_POLLUX, Cell, Experiment, jct_h, offered, quick, said, workloads_of
from .bsbf_tables import HEADLINE, PROTOCOL, READING

CLAIMED_XI = ("constant:xi=1", "constant:xi=1.1", "constant:xi=1.25", "lucid")
PRODUCT: Mapping[str, tuple] = {
    "interference": (*CLAIMED_XI, "constant:xi=1.5", "measured"),
    "memory": ("assumed", "middle", "measured", "none"),
    "exclusive_head": ("strict", "skip"),
    "sharing_head": ("strict", "skip"),
    "net": ("paper", "measured"),
}
ALONE: Mapping[str, tuple] = {
    "gpu": ("2080ti", "t4"),
    "thresholds": ("57600", "3250/7200"),
    "cost_s": (30, 0),
    "exclusive_placer": ("consolidated", "tier"),
    "models": ("gpu-hours", "submission"),
    "batches": ("1/2", "1"),
    "fit": (1, 2, 3, 4, 5, 0),
}
QUICK: Mapping[str, tuple] = {"memory": ("assumed",), "net": ("paper",), "interference": CLAIMED_XI[2:]}
WORKLOADS = 20
OURS = (("sjf-bsbf", PASSED), ("sjf-ffs", PASSED), (PASSED, "sjf"))

Means = Mapping[tuple[str, Experiment], np.ndarray]


@dataclass(frozen=True)
class Grid:
    """Cells to play: the product's, and the base cell with one other value each."""

    product: tuple[Cell, ...]
    alone: tuple[tuple[str, Cell], ...]  # factor, cell

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """All, each once."""
        return tuple(dict.fromkeys((*self.product, *(cell for _, cell in self.alone))))


def grid(options: Options) -> Grid:
    """The grid; the quick one has fewer values."""
    values = {name: (QUICK.get(name, some) if options.quick else some) for name, some in PRODUCT.items()}
    cells = tuple(Cell(**dict(zip(values, chosen, strict=True))) for chosen in product(*values.values()))
    alone = tuple((name, replace(Cell(), **{name: value})) for name, some in ALONE.items() for value in some[1:])
    return Grid(cells, alone[:1] if options.quick else alone)


@dataclass(frozen=True)
class Verdict:
    """One order over the grid.

    Attributes:
        jobs, better, worse: whose.
        paper: published ratio of the two average JCTs; nan: none was.
        cells: all.
        ratios: ours, float64 (cells,).
        different: numbers of cells, one of every group that the two policies cannot tell apart.
    """

    jobs: int
    better: str
    worse: str
    paper: float
    cells: tuple[Cell, ...]
    ratios: np.ndarray
    different: tuple[int, ...]

    @property
    def name(self) -> str:
        """In words."""
        return f"{self.jobs} jobs: {self.better} below {self.worse}"

    @property
    def holds(self) -> np.ndarray:
        """In which cells it holds, bool (cells,)."""
        return self.ratios < 1.0

    def row(self) -> Row:
        """In how many different cells it holds."""
        held = self.holds[list(self.different)].sum()
        return printed(f"{self.name}: different cells in which it holds, of {len(self.different)}", float(held))

    def note(self) -> str:
        """Where it holds, by each factor alone that makes a difference."""
        own = [
            i for i in self.different if all(getattr(self.cells[i], name) == getattr(Cell(), name) for name in ALONE)
        ]
        parts = [part for factor, values in PRODUCT.items() if (part := self._by(own, factor, values))]
        paper = "" if np.isnan(self.paper) else f" (paper {self.paper:.2f})"
        least, most = self.ratios.min(), self.ratios.max()
        return f"{self.name}: ours {least:.2f} to {most:.2f}{paper}; median ratio and cells: {'; '.join(parts)}"

    def _by(self, own: Sequence[int], factor: str, values: Sequence) -> str:
        """Median and count by the value of a factor; "" if all of `own` have the same."""
        chosen = {value: [i for i in own if getattr(self.cells[i], factor) == value] for value in values}
        if sum(map(bool, chosen.values())) < 2:
            return ""
        counts = (
            f"{_short(value)} {np.median(self.ratios[some]):.2f} {self.holds[some].sum()}/{len(some)}"
            for value, some in chosen.items()
            if some
        )
        return f"{factor} {', '.join(counts)}"


def orders(options: Options) -> Findings:
    """Every published order of Tables III and IV in every cell."""
    cells = grid(options)
    sizes = (240,) if options.quick else tuple(published.JCT)
    rows, verdicts, notes = [], [], []
    for jobs in sizes:
        means = _means(options, jobs, cells)
        rows += [_claimed(means, *one, jobs) for one in _published(jobs)]
        mine = [verdict_of(means, *one, jobs, cells.cells) for one in (*_published(jobs), *_ours())]
        verdicts += mine
        notes += [_one_at_a_time(means, jobs, cells), *(one.note() for one in mine if not one.holds.all())]
    rows += [one.row() for one in verdicts]
    rows += [_most(jobs, verdicts) for jobs in sizes]
    told = [
        said(options, WORKLOADS, with_pollux=False),
        *offered(options, [Experiment(jobs) for jobs in sizes], WORKLOADS),
        PROTOCOL,
        READING,
        f"{len(cells.cells)} cells: the product of "
        + "; ".join(f"{name} {', '.join(map(_short, values))}" for name, values in PRODUCT.items())
        + ", and the base cell with one other value of "
        + "; ".join(f"{name} {', '.join(map(_short, values[1:]))}" for name, values in ALONE.items())
        + ". A cell that differs in nothing that touches the two policies is not counted again",
        HEADLINE,
    ]
    return Findings(rows, told + notes, _picture(options, verdicts))


def _short(value: object) -> str:
    return str(value).replace("constant:xi=", "xi ")


def _published(jobs: int) -> list[tuple[str, str, float]]:
    return [one for one in published.orders(jobs) if "pollux" not in one]


def _ours() -> list[tuple[str, str, float]]:
    return [(better, worse, float("nan")) for better, worse in OURS]


def _means(options: Options, jobs: int, cells: Grid) -> Means:
    """Average JCT, hours, one a workload, of every policy in every cell; the runs themselves are not kept."""
    found: dict[tuple[str, Experiment], np.ndarray] = {}
    seeds = workloads_of("fifo", options, WORKLOADS)
    for policy in (*WITHOUT_POLLUX, PASSED):
        experiments = [Experiment(jobs, cell) for cell in cells.cells]
        cases = {(policy, one): [quick(one, options).case(policy, seed) for seed in seeds] for one in experiments}
        played = sweep_by(f"bsbf-orders, {jobs} jobs, {policy}", cases, options)
        found.update({place: np.array(list(map(jct_h(), some))) for place, some in played.items()})
    return found


def _ratio(means: Means, better: str, worse: str, experiment: Experiment) -> Estimate:
    return paired_ratio(*(means[policy, experiment].tolist() for policy in (better, worse)))


def _claimed(means: Means, better: str, worse: str, paper: float, jobs: int) -> Row:
    """The base cell with each of CLAIMED_XI: the largest ratio must be below 1."""
    played = {xi: Experiment(jobs, Cell(interference=xi)) for xi in CLAIMED_XI}
    found = {xi: _ratio(means, better, worse, one) for xi, one in played.items() if ("sjf", one) in means}
    worst = max(found.values(), key=lambda one: one.mean)
    of = ", ".join(_short(xi) for xi in found)
    return order(f"{jobs} jobs: {better} / {worse}, largest at {of}", f"below 1 ({paper:.2f})", worst)


def verdict_of(means: Means, better: str, worse: str, paper: float, jobs: int, cells: Sequence[Cell]) -> Verdict:
    """An order over the cells, with those that differ for it."""
    played = [Experiment(jobs, cell) for cell in cells]
    ratios = [float(means[better, one].mean() / means[worse, one].mean()) for one in played]
    different: dict[tuple, int] = {}
    for i, one in enumerate(played):
        different.setdefault((one.case(better, 0), one.case(worse, 0)), i)
    return Verdict(jobs, better, worse, paper, tuple(cells), np.array(ratios), tuple(different.values()))


def _one_at_a_time(means: Means, jobs: int, cells: Grid) -> str:
    """What the factors outside of the product do to the ratio that is spoken of most."""
    changed = (f"{name} {_short(getattr(cell, name))} {_all_three(means, jobs, cell)}" for name, cell in cells.alone)
    return (
        f"{jobs} jobs, sjf-bsbf over sjf / over {PASSED} / over sjf-ffs: base cell {_all_three(means, jobs, Cell())}; "
        f"with one other value: {'; '.join(changed)}"
    )


def _all_three(means: Means, jobs: int, cell: Cell) -> str:
    one = Experiment(jobs, cell)
    return " / ".join(
        f"{means['sjf-bsbf', one].mean() / means[other, one].mean():.2f}" for other in ("sjf", PASSED, "sjf-ffs")
    )


def _most(jobs: int, verdicts: Sequence[Verdict]) -> Row:
    """In how many cells all published orders hold at once."""
    mine = [one.holds for one in verdicts if one.jobs == jobs and not np.isnan(one.paper)]
    held = np.all(mine, axis=0)
    return printed(f"{jobs} jobs: cells in which all {len(mine)} hold, of {len(held)}", float(held.sum()))


@if_asked
def _picture(options: Options, verdicts: Sequence[Verdict]) -> list[Path]:
    """A row an order, a dot a cell in which it is another number: the ratio of the two average completion times."""
    base = [float(one.ratios[one.cells.index(type(one.cells[0])())]) for one in verdicts]
    papers = [one.paper for one in verdicts]
    every = [*(float(ratio) for one in verdicts for ratio in one.ratios), *(one for one in papers if one == one)]
    x, look = axes.log_ratios(0.97 * min(every), 1.03 * max(every)), looks(("a cell", "base cell", "published"))
    kinds = zip(("seed", "mean", "dot"), look.values(), strict=True)
    cell, at_base, published_at = (f"{kind} {style.classes}" for kind, style in kinds)
    shapes = [charts.grid(x, None), Shape("one", [upright(float(x.at(1.0)), 0.0, 1.0)])]
    rows = []
    for row, (one, mine, paper) in enumerate(zip(verdicts, base, papers, strict=True)):
        y = 1.0 - (row + 0.5) / len(verdicts)
        shift = np.random.default_rng(row).uniform(-0.25, 0.25, len(one.different)) / len(verdicts)
        places = zip(x.at(one.ratios[list(one.different)]).tolist(), shift.tolist(), strict=True)
        shapes.append(Shape(cell, [segment(at, at, y + by) for at, by in places]))
        for ratio, classes in ((mine, at_base), (paper, published_at)):
            at = float(x.at(ratio))
            shapes += [Shape(classes, [segment(at, at, y)])] if ratio == ratio else []
        rows.append(Label("", 100.0 * (1.0 - y), one.name))
    chart = Chart(
        title="Orders of average completion time, over all readings",
        summary="; ".join(f"{one.name} {mine:.2f} in the base cell" for one, mine in zip(verdicts, base, strict=True)),
        height=27 * len(verdicts),
        x=x,
        y=None,
        x_label="ratio of average completion times (log scale)",
        y_label="",
        shapes=shapes,
        rows=rows,
        legend=list(zip((cell, at_base, published_at), look, strict=True)),
    )
    return picture(options, "bsbf-orders", [chart])
