"""The table of a sweep in the terminal: a row a value, a column a policy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from ..console.terminal import plain_table
from ..playing.runs import Run, same_as
from .intervals import FEWEST_TO_TELL, Estimate, against, by_policy

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

COLUMN, FIRST_COLUMN = 19, 14  # characters that a policy's numbers and a value need


def print_sweep(console: Console, name: str, runs: Mapping[str, Sequence[Run]], baseline: str | None) -> None:
    """Print the mean JCT of each policy at each value, and its ratio to the baseline's if there is one.

    Args:
        console: where to.
        name: of what is swept.
        runs: value -> what was played there.
        baseline: a policy, or None.
    """
    means = {value: {word: row["jct_mean"] for word, row in by_policy(mine).items()} for value, mine in runs.items()}
    console.print(_text("mean JCT [s], 95 % interval", "bold"))
    _print(console, name, means, _seconds, _least)
    notes = ["* least of its row"] if any(_least(row) for row in means.values()) else []
    if baseline is not None:
        ratios = {
            value: {word: row.ratio for word, row in against(mine, baseline).items()} for value, mine in runs.items()
        }
        console.print(_text(f"ratio to {baseline}'s mean JCT on the same workloads, 95 % interval", "bold"))
        _print(console, name, ratios, _ratio, _below)
        if any(_below(row) for row in ratios.values()):
            notes.append(f"of ratios *: interval wholly below 1, on {FEWEST_TO_TELL} seeds or more")
    if notes:
        console.print("; ".join(notes), style="dim", markup=False)
    for line in same_as(run for run in _everywhere(runs)):
        console.print(line, style="dim", markup=False)


def _everywhere(runs: Mapping[str, Sequence[Run]]) -> list[Run]:
    """The runs of all values, each with a seed of its own: policies that go alike everywhere are found by them."""
    from dataclasses import replace

    return [
        replace(run, seed=number)
        for policy in dict.fromkeys(run.policy for mine in runs.values() for run in mine)
        for number, run in enumerate(run for mine in runs.values() for run in mine if run.policy == policy)
    ]


def _print(
    console: Console,
    name: str,
    cells: Mapping[str, Mapping[str, Estimate]],
    shown: Callable[[float], str],
    marked: Callable[[Mapping[str, Estimate]], set[str]],
) -> None:
    words = list(next(iter(cells.values())))
    at_once = max(1, (console.width - FIRST_COLUMN) // COLUMN)
    for first in range(0, len(words), at_once):
        table = plain_table(padding=(0, 1, 0, 0))
        table.add_column(_text(name), justify="right", overflow="fold")
        for word in words[first : first + at_once]:
            table.add_column(_text(word), justify="right", overflow="fold")
        for value, row in cells.items():
            best = marked(row)
            drawn = [_cell(row[word], shown, word in best) for word in words[first : first + at_once]]
            table.add_row(_text(value), *drawn)
        console.print(table)


def _cell(value: Estimate, shown: Callable[[float], str], is_best: bool) -> Text:
    if math.isnan(value.mean):
        return _text("- ")
    cell = _text(shown(value.mean) + ("*" if is_best else " "), "bold green" if is_best else "")
    if not value.is_sure:
        cell.append(f"\n{shown(value.low)}-{shown(value.high)} ".replace(",", ""), style="dim not bold")
    return cell


def _seconds(value: float) -> str:
    return f"{value:,.{1 if abs(value) < 1000 else 0}f}"


def _ratio(value: float) -> str:
    return f"{value:.3f}"


def _least(row: Mapping[str, Estimate]) -> set[str]:
    means = [value.mean for value in row.values() if not math.isnan(value.mean)]
    if len(set(means)) < 2:
        return set()
    return {word for word, value in row.items() if value.mean == min(means)}


def _below(row: Mapping[str, Estimate]) -> set[str]:
    return {word for word, value in row.items() if value.is_below(1.0)}


def _text(content: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(content, style)
