"""Do the published orders of paper sjf-bsbf hold, whatever the paper leaves open? Every order in every cell of a grid.

An order is a pair of policies of Table III or IV of which one is more than 10 % below the other in average JCT over all
jobs. It holds in a cell if its mean over the cell's workloads is below the other's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import product

import numpy as np

from . import bsbf_plots
from . import bsbf_published as published
from .bsbf_runs import Cell, Experiment, Runs, jct_h, play, said
from .registry import Findings, Options, Reproduction
from .rows import Row, printed

FACTORS: Mapping[str, tuple] = {
    "gpu": ("2080ti", "t4"),
    "interference": ("measured", "light", "constant:xi=1.25", "constant:xi=1.5"),
    "head": ("strict", "skip"),
    "thresholds": ("3250/7200", "57600"),
    "cost_s": (0, 30),
}
SHORT = {"constant:xi=1.25": "xi 1.25", "constant:xi=1.5": "xi 1.5", 0: "0 s", 30: "30 s"}


@dataclass(frozen=True)
class Verdict:
    """One published order over the grid.

    Attributes:
        jobs, better, worse: whose.
        paper: published ratio of the two average JCTs.
        ratios: ours, float64 (cells,).
    """

    jobs: int
    better: str
    worse: str
    paper: float
    ratios: np.ndarray

    @property
    def name(self) -> str:
        """In words."""
        return f"{self.jobs} jobs: {self.better} below {self.worse}"

    @property
    def holds(self) -> np.ndarray:
        """In which cells it holds, bool (cells,)."""
        return self.ratios < 1.0

    def row(self) -> Row:
        """Reproduced if it holds everywhere."""
        return Row(
            f"{self.name} ({self.paper:.2f})", "everywhere", 100.0 * float(self.holds.mean()), (100.0, 100.0), unit="%"
        )

    def note(self, cells: list[Cell]) -> str:
        """Where it holds, by each factor alone."""
        parts = [
            ", ".join(
                f"{SHORT.get(value, value)} {sum(self.holds[chosen])}/{len(chosen)}"
                for value in values
                if (chosen := [i for i, cell in enumerate(cells) if getattr(cell, factor) == value])
            )
            for factor, values in FACTORS.items()
        ]
        return (
            f"{self.name}: ours {self.ratios.min():.2f} to {self.ratios.max():.2f} (paper {self.paper:.2f}); "
            f"holds in {'; '.join(parts)}"
        )


def orders(options: Options) -> Findings:
    """Every published order of Tables III and IV in every cell."""
    cells = grid(options)
    sizes = (240,) if options.quick else tuple(published.JCT)
    runs = play("bsbf-orders", options, [Experiment(jobs, cell) for jobs in sizes for cell in cells])
    verdicts = [verdict for jobs in sizes for verdict in _verdicts(runs, jobs, cells)]
    rows = [verdict.row() for verdict in verdicts]
    rows += [_most(jobs, [one for one in verdicts if one.jobs == jobs], cells) for jobs in sizes]
    notes = [
        f"in how many of {len(cells)} cells it holds: "
        + "; ".join(
            f"{factor} {', '.join(SHORT.get(value, str(value)) for value in FACTORS[factor])}" for factor in FACTORS
        ),
        said(options),
        "in parentheses the published ratio; head is that of all but pollux; interference is of those that share, "
        "thresholds and cost are tiresias'",
        *(verdict.note(cells) for verdict in verdicts if not verdict.holds.all()),
    ]
    return Findings(rows, notes, bsbf_plots.of_orders(options, verdicts, cells))


def grid(options: Options) -> list[Cell]:
    """All cells; the quick ones have T4 and 30 s alone."""
    quick = {"gpu": ("t4",), "thresholds": ("3250/7200",), "cost_s": (30,)} if options.quick else {}
    names = [field.name for field in fields(Cell)]
    return [Cell(*values) for values in product(*(quick.get(name, FACTORS[name]) for name in names))]


def _verdicts(runs: Runs, jobs: int, cells: list[Cell]) -> list[Verdict]:
    return [
        Verdict(
            jobs,
            better,
            worse,
            paper,
            np.array([runs.ratio(jct_h(), better, worse, Experiment(jobs, cell)).mean for cell in cells]),
        )
        for better, worse, paper in published.orders(jobs)
    ]


def _most(jobs: int, verdicts: list[Verdict], cells: list[Cell]) -> Row:
    """The cell in which most orders hold."""
    held = np.sum([verdict.holds for verdict in verdicts], axis=0)
    best = int(np.argmax(held))
    where = ", ".join(SHORT.get(value, str(value)) for value in (getattr(cells[best], name) for name in FACTORS))
    return printed(f"{jobs} jobs: of {len(verdicts)} orders, most that hold in one cell ({where})", float(held[best]))


REPRODUCTIONS = (
    Reproduction(
        "bsbf-orders",
        "sjf-bsbf",
        "order",
        "Tables III, IV: every published order above 10 %, over all that the paper leaves open",
        orders,
    ),
)
