"""The table of a reproduction in the terminal: paper, ours, difference, verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..console.terminal import plain_table
from .rows import Findings, Row

if TYPE_CHECKING:
    from rich.console import Console

TINY = 1e-300  # a bound that excludes 0
VERDICTS = {True: "ok", False: "MISS", None: ""}


def print_findings(console: Console, entry: Any, findings: Findings, everything: bool) -> None:
    """Print whose it is and of which jobs, the paper's table in its shape with ours beside, a line a row, the notes.

    Args:
        console: where to.
        entry: the reproduction.
        findings: what it found.
        everything: rows of ours too that the paper has nothing of.
    """
    of = entry.of
    console.print(f"{entry.name}: {entry.summary}", markup=False)
    for line in (f"{of.authors}: {of.title}. {of.venue} {of.year}", *findings.jobs):
        console.print(line, markup=False)
    shown = [
        row
        for row in findings.rows
        if everything or entry.kind == "ours" or row.paper is not None or row.ok is not None
    ]
    for name, cells in _tables(shown).items():
        _print_table(console, name, cells)
    print_rows(console, shown)
    if left := len(findings.rows) - len(shown):
        console.print(f"{left} more rows, of ours alone: --all", markup=False)
    for note in findings.notes:
        console.print(note, markup=False)


def _tables(rows: Sequence[Row]) -> dict[str, dict[tuple[str, str], Row]]:
    """The published cells by table, row and column; tables of one row or of one column are none."""
    tables: dict[str, dict[tuple[str, str], Row]] = {}
    for row in rows:
        if row.cell is not None and isinstance(row.paper, float | int | tuple):
            tables.setdefault(row.cell[0], {})[row.cell[1:]] = row
    return {
        name: cells for name, cells in tables.items() if all(len(set(axis)) > 1 for axis in zip(*cells, strict=True))
    }


def _print_table(console: Console, name: str, cells: Mapping[tuple[str, str], Row]) -> None:
    """One table: the published number and ours in each cell."""
    columns = dict.fromkeys(column for _, column in cells)
    units = {row.unit for row in cells.values()}
    grid = plain_table(padding=(0, 1, 0, 0))
    grid.add_column(f"{name or 'published and ours'}{f' [{units.pop()}]' if len(units) == 1 and units != {''} else ''}")
    for column in columns:
        grid.add_column(f"{column}: paper", justify="right")
        grid.add_column("ours", justify="right")
    for line in dict.fromkeys(line for line, _ in cells):
        texts = [line]
        for column in columns:
            row = cells.get((line, column))
            texts += ["", ""] if row is None else [_paper(row, ""), _number(row.ours)]
        grid.add_row(*texts)
    console.print(grid, markup=False)


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


def _paper(row: Row, unit: str | None = None) -> str:
    if row.paper is None:
        return "-"
    if isinstance(row.paper, str):
        return row.paper
    unit = row.unit if unit is None else unit
    number = _range(*row.paper) if isinstance(row.paper, tuple) else _number(row.paper)
    return f"{number} {unit}".strip()


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
