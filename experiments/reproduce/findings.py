"""What a reproduction is run with, and what it finds."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ..playing.executors import Executor
from .rows import Row

MACHINE_ORDERS = 10


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
