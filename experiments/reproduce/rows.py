"""A row of a reproduction: what was published, what we get, what counts as reproduced. A miss stays a miss.

Three kinds, as in the list of published results: a *table* row is a number for the same workload, with a relative
tolerance; a *ratio* row is an improvement, reproduced inside the published range widened by a quarter of its width, or
25 % of a single value; an *order* row says which is better, as the ratio of the two, reproduced below or above 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..comparing.intervals import Estimate
from ..playing.executors import Executor

TABLE_TOLERANCE = 0.05  # relative, where the source of a table states none
RANGE_WIDENING = 0.25  # of a published range's width on either side, or of a single value


@dataclass(frozen=True)
class Row:
    """One published quantity and ours, both in `unit`.

    Attributes:
        quantity: what it is, with the setting that it holds for.
        paper: the published number, a range (low, high), or the words of an order; None: nothing is published.
        ours: our number; nan where there is none.
        within: bounds of ours, inclusive, that count as reproduced; None: ours is only printed.
        low, high: 95 % interval of ours; None: one run, or nothing to vary.
        unit: "s", "%", "x" or "".
        clear: whether the interval must lie within, too.
        cell: the table, row and column in which it stands in the paper's shape; None: in none.
    """

    quantity: str
    paper: float | tuple[float, float] | str | None
    ours: float
    within: tuple[float, float] | None = None
    low: float | None = None
    high: float | None = None
    unit: str = ""
    clear: bool = False
    cell: tuple[str, str, str] | None = None

    @property
    def ok(self) -> bool | None:
        """Whether it is reproduced; None where nothing was claimed."""
        if self.within is None:
            return None
        bounds = [self.ours] if not self.clear or self.low is None or self.high is None else [self.low, self.high]
        return all(self.within[0] <= number <= self.within[1] for number in bounds)

    @property
    def difference(self) -> float | None:
        """Ours over the published number, minus 1; None where that is no number."""
        if not isinstance(self.paper, float | int) or not self.paper:
            return None
        return self.ours / float(self.paper) - 1.0

    def document(self) -> dict[str, Any]:
        """The row as `clustergym reproduce --json` prints it."""
        interval = {} if self.low is None else {"low": self.low, "high": self.high}
        fixed = {"quantity": self.quantity, "paper": self.paper, "ours": self.ours, "within": self.within}
        return {**fixed, "ok": self.ok, "unit": self.unit, **interval}


def table(quantity: str, paper: float, ours: float | Estimate, unit: str = "s", tolerance: float = 0.0) -> Row:
    """A number for the same workload; `tolerance` is relative, 0 stands for TABLE_TOLERANCE."""
    allowed = (tolerance or TABLE_TOLERANCE) * abs(paper)
    return Row(quantity, float(paper), *_mean(ours, (paper - allowed, paper + allowed)), unit)


def ratio(quantity: str, paper: float | tuple[float, float], ours: float | Estimate, unit: str = "%") -> Row:
    """An improvement, published as a range or as one value."""
    low, high = paper if isinstance(paper, tuple) else (paper, paper)
    slack = RANGE_WIDENING * (high - low if isinstance(paper, tuple) else abs(paper))
    return Row(quantity, paper, *_mean(ours, (low - slack, high + slack)), unit)


def order(quantity: str, paper: str, ours: float | Estimate, *, below: bool = True) -> Row:
    """Which of two is better, as the first's number over the second's: below 1, or above."""
    within = (-math.inf, math.nextafter(1.0, 0.0)) if below else (math.nextafter(1.0, 2.0), math.inf)
    return Row(quantity, paper, *_mean(ours, within), "x")


def clear_order(quantity: str, paper: str, ours: Estimate) -> Row:
    """Which of two is better beyond doubt: the whole interval of the first's number over the second's is below 1."""
    return replace(order(quantity, paper, ours), clear=True)


def bounded(quantity: str, paper: Any, ours: float | Estimate, within: tuple[float, float], unit: str = "x") -> Row:
    """What was published in words, as bounds of ours."""
    return Row(quantity, paper, *_mean(ours, within), unit)


def printed(quantity: str, ours: float | Estimate, unit: str = "", paper: Any = None) -> Row:
    """Ours alone: there is nothing that it could meet or miss."""
    return Row(quantity, paper, *_mean(ours, None), unit)


def _mean(
    ours: float | Estimate, within: tuple[float, float] | None
) -> tuple[float, tuple[float, float] | None, float | None, float | None]:
    if not isinstance(ours, Estimate):
        return float(ours), within, None, None
    return (ours.mean, within, None, None) if ours.is_sure else (ours.mean, within, ours.low, ours.high)


@dataclass(frozen=True)
class Options:
    """What a reproduction is run with.

    Attributes:
        cache: folder of the finished runs; a run that is there is not played again.
        traces: folder of the real traces; None: generated job sets of the same statistics.
        orders: machine orders or sampled workloads that means and intervals are over, >= 1; None: as many as each
            reproduction takes by itself.
        seed: of the machine orders, of drawn job sets and of random placers.
        quick: few orders and cluster sizes: does it run at all.
        processes: to use, >= 1.
        executor: what plays, in place of processes of this machine.
        out: folder for pictures; None: none.
        quiet: no progress on stderr.
    """

    cache: Path
    traces: Path | None = None
    orders: int | None = None
    seed: int = 0
    quick: bool = False
    processes: int = 1
    executor: Executor | None = None
    out: Path | None = None
    quiet: bool = False

    @property
    def order_seeds(self) -> tuple[int, ...]:
        """The seeds of the machine orders, disjoint for different `seed`s."""
        return self.seeds(10)

    def seeds(self, usual: int) -> tuple[int, ...]:
        """So many seeds as were asked for, else `usual`; disjoint for different `seed`s."""
        count = usual if self.orders is None else self.orders
        count = min(count, 2) if self.quick else count
        return tuple(range(10_000 * self.seed, 10_000 * self.seed + count))


@dataclass(frozen=True)
class Findings:
    """The rows of a reproduction, what must be said before and with them, and the pictures that were written.

    Attributes:
        jobs: which job sets were played, where it depends on what is at hand.
    """

    rows: list[Row]
    notes: list[str] = field(default_factory=list)
    pictures: list[Path] = field(default_factory=list)
    jobs: list[str] = field(default_factory=list)
