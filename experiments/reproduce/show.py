"""The table of a reproduction in the terminal: paper, ours, difference, verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..console.terminal import plain_table
from .rows import Row

if TYPE_CHECKING:
    from rich.console import Console

TINY = 1e-300  # a bound that excludes 0
VERDICTS = {True: "ok", False: "MISS", None: ""}


def print_rows(console: Console, rows: Sequence[Row]) -> None:
    """Print one line a row, and how many are reproduced."""
    from rich.text import Text

    intervals = any(row.low is not None for row in rows)
    grid = plain_table(padding=(0, 1, 0, 0))
    grid.add_column("quantity", overflow="fold")
    for header in ("paper", "ours", *["95 % interval"] * intervals, "difference", "accepted"):
        grid.add_column(header, justify="right", no_wrap=True)
    grid.add_column("", no_wrap=True)
    for row in rows:
        interval = [_range(row.low, row.high)] if intervals else []
        accepted = "" if row.within is None else _range(*row.within)
        cells = [row.quantity, _paper(row), f"{_number(row.ours)} {row.unit}".strip(), *interval]
        cells += [_difference(row), accepted, VERDICTS[row.ok]]
        style = "bold red" if row.ok is False else ""
        grid.add_row(*map(Text, cells[:-1]), Text(cells[-1], style))
    console.print(grid)
    claimed = [row for row in rows if row.ok is not None]
    if claimed:
        met = sum(row.ok is True for row in claimed)
        console.print(f"{met} of {len(claimed)} reproduced, {len(claimed) - met} missed", markup=False)


def _paper(row: Row) -> str:
    if row.paper is None:
        return "-"
    if isinstance(row.paper, str):
        return row.paper
    if isinstance(row.paper, tuple):
        return f"{_range(*row.paper)} {row.unit}".strip()
    return f"{_number(row.paper)} {row.unit}".strip()


def _difference(row: Row) -> str:
    if row.difference is None:
        return ""
    return f"{100 * row.difference:+.3g} %"


def _range(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return ""
    if math.isinf(low):
        return f"< {_number(high)}"
    if math.isinf(high):
        return f"> {_number(low)}"
    return f"{_number(low)} to {_number(high)}"


def _number(value: float) -> str:
    if math.isnan(value):
        return "-"
    size = abs(value)
    if size < TINY:
        return "0"
    if size >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"
