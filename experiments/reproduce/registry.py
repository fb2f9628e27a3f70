"""Reproductions by name: what each compares, what kind its rows are, and what it is run with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ..executors import Executor
from .rows import Row

MACHINE_ORDERS = 10

Kind = Literal["table", "ratio", "order", "ours"]


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
        executor: who plays, in place of processes of this machine.
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
        return self.seeds(MACHINE_ORDERS)

    def seeds(self, usual: int) -> tuple[int, ...]:
        """So many seeds as were asked for, else `usual`; disjoint for different `seed`s."""
        count = usual if self.orders is None else self.orders
        count = min(count, 2) if self.quick else count
        return tuple(range(10_000 * self.seed, 10_000 * self.seed + count))


@dataclass(frozen=True)
class Findings:
    """The rows of a reproduction, what must be said with them, and the pictures that were written."""

    rows: list[Row]
    notes: list[str] = field(default_factory=list)
    pictures: list[Path] = field(default_factory=list)


@dataclass(frozen=True)
class Reproduction:
    """One published table or figure.

    Attributes:
        name: as on the command line.
        paper: whose.
        kind: of its rows; "ours": an experiment of ours, nothing is published.
        summary: one line.
        run: plays what is needed and compares.
    """

    name: str
    paper: str
    kind: Kind
    summary: str
    run: Callable[[Options], Findings]


def reproductions() -> Mapping[str, Reproduction]:
    """Every reproduction by name, in the order of the papers."""
    from . import bsbf, bsbf_calibration, cassini, dally, harmony, harmony_headroom, mast, mast_fast, mast_speed

    return {
        entry.name: entry
        for module in (dally, bsbf, bsbf_calibration, cassini, mast, mast_fast, mast_speed, harmony, harmony_headroom)
        for entry in module.REPRODUCTIONS
    }
