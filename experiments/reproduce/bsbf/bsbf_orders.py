"""Do the published orders of paper sjf-bsbf hold, whatever the paper leaves open? Every order in every cell of a grid.

An order is a pair of policies of Table III or IV of which one is more than 10 % below the other in average JCT over all
jobs. It holds in a cell if its mean over the cell's workloads is below the other's. The grid is the full product of
what decides most (the file's `cells of`, FACTORS) and the base cell with one other value of each of the rest (`alone
of`). Cells that differ in what touches neither policy of an order are one cell for it: only different ones are counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...charts import axes
from ...charts import chart as charts
from ...charts.chart import Chart, Label, Shape, segment, upright
from ...comparing.intervals import paired_ratio
from ..engine import Play
from ..paper_pictures import looks, picture
from ..rows import Row, order, printed
from .bsbf_runs import jct_h

FACTORS = ("interference", "memory", "exclusive_head", "sharing_head", "net")
BASE = ("xi 1.25", "assumed", "strict", "skip", "paper")
CLAIMED = ("xi 1", "xi 1.1", "xi 1.25", "lucid")  # at which orders are judged
PLAYED = ("fifo", "sjf", "tiresias", "sjf-ffs", "sjf-bsbf", "sjf:head=skip")
OURS = (("sjf-bsbf", "sjf:head=skip"), ("sjf-ffs", "sjf:head=skip"), ("sjf:head=skip", "sjf"))

Means = Mapping[tuple[str, str], np.ndarray]  # average JCTs, hours, one a workload, by policy and cell


@dataclass(frozen=True)
class Verdict:
    """One order over the cells.

    Attributes:
        jobs, better, worse: whose.
        paper: published ratio of the two average JCTs; nan: none was.
        cells: labels of each cell, one a factor; of the cells with one other value that value alone.
        ratios: ours, float64 (cells,).
        different: numbers of cells, one of every group that the two policies cannot tell apart.
    """

    jobs: int
    better: str
    worse: str
    paper: float
    cells: Sequence[tuple[str, ...]]
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
        own = [i for i in self.different if len(self.cells[i]) == len(FACTORS)]
        parts = filter(None, (self._by(own, place, factor) for place, factor in enumerate(FACTORS)))
        paper = "" if np.isnan(self.paper) else f" (paper {self.paper:.2f})"
        least, most = self.ratios.min(), self.ratios.max()
        return f"{self.name}: ours {least:.2f} to {most:.2f}{paper}; median ratio and cells: {'; '.join(parts)}"

    def _by(self, own: Sequence[int], place: int, factor: str) -> str:
        """Median and count by the value of a factor; "" if all of `own` have the same."""
        values = dict.fromkeys(self.cells[i][place] for i in own)
        chosen = {value: [i for i in own if self.cells[i][place] == value] for value in values}
        counts = (
            f"{value} {np.median(self.ratios[some]):.2f} {self.holds[some].sum()}/{len(some)}"
            for value, some in chosen.items()
        )
        return f"{factor} {', '.join(counts)}" if len(chosen) > 1 else ""


def published(play: Play, jobs: int) -> list[tuple[str, str, float]]:
    """Every (better policy, worse policy, ratio) of Table III or IV without Pollux, as its file lists them."""
    table = play.paper.reproductions["bsbf-table3" if jobs == 240 else "bsbf-table4"]
    jct = {policy: times[0] for line in table.rows[:2] for policy, times in line.paper.items()}
    pairs = next(line.pairs for line in table.rows if line.pairs)
    return [(better, worse, jct[better] / jct[worse]) for better, worse, _ in pairs if "pollux" not in (better, worse)]


def cells_of(play: Play, jobs: int) -> dict[str, tuple[str, ...]]:
    """The cells as settings, and their labels; under `--quick` few."""
    cells = {at: tuple(play.label(at).split(", ")) for at in play.group([f"cells of {jobs}"])}
    alone = {at: (play.label(at),) for at in play.group([f"alone of {jobs}"])}
    if play.options.quick:
        cells = {at: one for at, one in cells.items() if (one[1], one[4]) == BASE[1::3] and one[0] in CLAIMED[2:]}
        alone = dict(list(alone.items())[:1])
    return {**cells, **alone}


def orders(play: Play) -> Iterator[Row]:
    """Every published order of Tables III and IV in every cell."""
    verdicts: list[Verdict] = []
    sizes = (240,) if play.options.quick else (240, 480)
    for jobs in sizes:
        cells, known = cells_of(play, jobs), published(play, jobs)
        means = _means(play, jobs, list(cells))
        places = {one: at for at, one in cells.items()}
        yield from (_claimed(means, *one, jobs, places) for one in known)
        ours = ((better, worse, float("nan")) for better, worse in OURS)
        mine = [verdict_of(play, means, *one, jobs, cells) for one in (*known, *ours)]
        verdicts += mine
        play.notes += [_one_at_a_time(means, jobs, cells), *(one.note() for one in mine if not one.holds.all())]
    play.notes[:0] = [play.said(), *play.offered()]
    yield from (one.row() for one in verdicts)
    yield from (_most(jobs, verdicts) for jobs in sizes)
    if play.options.out is not None:
        play.written += _picture(play, verdicts)


def _means(play: Play, jobs: int, cells: Sequence[str]) -> Means:
    """The runs themselves are not kept."""
    found: dict[tuple[str, str], np.ndarray] = {}
    for policy in PLAYED:
        runs = play.sweep(f"bsbf-orders, {jobs} jobs, {policy}", [(policy, at) for at in cells])
        found.update({(policy, at): np.array(runs.each(jct_h, policy, at)) for at in cells})
    return found


def _claimed(means: Means, better: str, worse: str, paper: float, jobs: int, places: Mapping[tuple, str]) -> Row:
    """The base cell with each of CLAIMED: the largest ratio must be below 1."""
    played = {xi: places[xi, *BASE[1:]] for xi in CLAIMED if (xi, *BASE[1:]) in places}
    found = [paired_ratio(*(means[one, at].tolist() for one in (better, worse))) for at in played.values()]
    worst = max(found, key=lambda one: one.mean)
    return order(f"{jobs} jobs: {better} / {worse}, largest at {', '.join(played)}", f"below 1 ({paper:.2f})", worst)


def verdict_of(
    play: Play, means: Means, better: str, worse: str, paper: float, jobs: int, cells: Mapping[str, tuple[str, ...]]
) -> Verdict:
    """An order over the cells, with those that differ for it."""
    ratios = [float(means[better, at].mean() / means[worse, at].mean()) for at in cells]
    different: dict[tuple, int] = {}
    for i, at in enumerate(cells):
        different.setdefault(tuple(play.cases(policy, at)[0] for policy in (better, worse)), i)
    return Verdict(jobs, better, worse, paper, list(cells.values()), np.array(ratios), tuple(different.values()))


def _one_at_a_time(means: Means, jobs: int, cells: Mapping[str, tuple[str, ...]]) -> str:
    """What the factors outside of the product do to the ratio that is spoken of most."""
    ratios = {
        one: " / ".join(f"{means['sjf-bsbf', at].mean() / means[other, at].mean():.2f}" for other in OTHERS)
        for at, one in cells.items()
    }
    changed = "; ".join(f"{one[0]} {text}" for one, text in ratios.items() if len(one) == 1)
    return (
        f"{jobs} jobs, sjf-bsbf over {' / over '.join(OTHERS)}: base cell {ratios[BASE]}; "
        f"with one other value: {changed}"
    )


OTHERS = ("sjf", "sjf:head=skip", "sjf-ffs")


def _most(jobs: int, verdicts: Sequence[Verdict]) -> Row:
    """In how many cells all published orders hold at once."""
    mine = [one.holds for one in verdicts if one.jobs == jobs and not np.isnan(one.paper)]
    held = np.all(mine, axis=0)
    return printed(f"{jobs} jobs: cells in which all {len(mine)} hold, of {len(held)}", float(held.sum()))


def _picture(play: Play, verdicts: Sequence[Verdict]) -> list[Path]:
    """A row an order, a dot a cell in which it is another number: the ratio of the two average completion times."""
    base = [float(one.ratios[one.cells.index(BASE)]) for one in verdicts]
    every = [ratio for one in verdicts for ratio in (*one.ratios.tolist(), one.paper) if ratio == ratio]
    x, look = axes.log_ratios(0.97 * min(every), 1.03 * max(every)), looks(("a cell", "base cell", "published"))
    kinds = zip(("seed", "mean", "dot"), look.values(), strict=True)
    cell, at_base, published_at = (f"{kind} {style.classes}" for kind, style in kinds)
    shapes = [charts.grid(x, None), Shape("one", [upright(float(x.at(1.0)), 0.0, 1.0)])]
    rows = []
    for row, (one, mine) in enumerate(zip(verdicts, base, strict=True)):
        y = 1.0 - (row + 0.5) / len(verdicts)
        shift = np.random.default_rng(row).uniform(-0.25, 0.25, len(one.different)) / len(verdicts)
        places = zip(x.at(one.ratios[list(one.different)]).tolist(), shift.tolist(), strict=True)
        shapes.append(Shape(cell, [segment(at, at, y + by) for at, by in places]))
        for ratio, classes in ((mine, at_base), (one.paper, published_at)):
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
    return picture(play.options, "bsbf-orders", [chart])
