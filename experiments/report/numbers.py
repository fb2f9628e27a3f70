"""Numbers in the page and the terminal, and the rows of the table of a section."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...simulator.engine.metric_registry import Metric, columns
from ..comparing.heads import note_of_heads
from ..comparing.intervals import FEWEST_TO_TELL, Estimate
from ..comparing.table import best_of
from ..playing.runs import twins
from .load import Entry, Section


@dataclass(frozen=True)
class Cell:
    """A number of the table; no interval: ""."""

    text: str
    interval: str
    is_best: bool


@dataclass(frozen=True)
class Row:
    """One policy of the table."""

    entry: Entry
    ratio: Cell | None
    cells: tuple[Cell, ...]


def headers(section: Section, metrics: Sequence[Metric] | None = None) -> list[tuple[str, str]]:
    """(header, unit) of the columns: metrics, then the share of finished jobs and the number of seeds.

    `metrics`: None: those that tables of such runs have.
    """
    shown = metrics_of(section) if metrics is None else metrics
    found = [(metric.header or metric.name.replace("_", " "), metric.shown_unit) for metric in shown]
    found += [("finished", "% of jobs")] if section.is_unfinished else []
    return found + ([] if section.one_set_of_seeds else [("seeds", "")])


def rows(section: Section, metrics: Sequence[Metric] | None = None) -> list[Row]:
    """The table, best mean JCT first; `metrics` as for `headers`."""
    shown = metrics_of(section) if metrics is None else metrics
    values = {one: {entry.label: entry.estimate(one.name) for entry in section.entries} for one in shown}
    best = {metric: best_of(metric, row) for metric, row in values.items()}
    table = []
    for entry in section.entries:
        ratio = section.ratio(entry) if len(section.entries) > 1 else None
        cells = [_cell(metric, row[entry.label], entry.label in best[metric]) for metric, row in values.items()]
        if section.is_unfinished:
            done, jobs = entry.values("jobs_finished").sum(), sum(run.jobs for run in entry.runs)
            cells.append(Cell(f"{100.0 * done / jobs:.1f}", "", False))
        if not section.one_set_of_seeds:
            cells.append(Cell(str(len(entry.seeds)), "", False))
        first = None if ratio is None else _ratio_cell(ratio, entry.label == section.baseline)
        table.append(Row(entry, first, tuple(cells)))
    return table


def metrics_of(section: Section) -> list[Metric]:
    """Those that tables of such runs have, from left to right."""
    return columns({name for entry in section.entries for run in entry.runs for name in run.metrics})


def _cell(metric: Metric, value: Estimate, is_best: bool) -> Cell:
    if math.isnan(value.mean):
        return Cell("-", "", False)
    low, mean, high = (metric.factor * number for number in (value.low, value.mean, value.high))
    interval = "" if value.is_sure else f"{_rounded(low, mean)} to {_rounded(high, mean)}"
    return Cell(_rounded(mean, mean), interval, is_best)


def _ratio_cell(ratio: Estimate, is_baseline: bool) -> Cell:
    if is_baseline:
        return Cell("1", "", False)
    interval = "" if ratio.is_sure else f"{ratio.low:.3f} to {ratio.high:.3f}"
    return Cell(f"{ratio.mean:.3f}", interval, False)


def _rounded(value: float, size: float) -> str:
    return f"{value:,.0f}" if abs(size) >= 100.0 or size == 0.0 else f"{value:,.1f}"


def warnings(section: Section) -> list[str]:
    """Warnings about the comparison, a sentence each."""
    found = []
    if section.place:
        found.append("Another setting has the same words, but they name another content there.")
    if section.is_unfinished:
        found += ["Jobs that had not finished are in no JCT: compare policies that finished different jobs with care."]
    if not section.one_set_of_seeds:
        found.append("Policies were played on different seeds: compare their ratios, which are over common seeds.")
    heads = note_of_heads(section.words, section.setting)
    return found + [f"{line}." for line in (heads, *section.same_runs) if line]


def verdict(section: Section) -> str:
    """The result of the best policy, in one sentence."""
    if not section.entries:
        return "Nothing was played."
    first = section.entries[0]
    mean = first.estimate("jct_mean").mean
    if math.isnan(mean):
        return "No job finished under any policy."
    count = first.estimate("jct_mean").runs
    over = f"over {count} seeds" if count > 1 else "in one run" if first.seeds[1:] else f"on seed {first.seeds[0]}"
    says = f"{first.label} has the shortest mean JCT: {mean:,.0f} s {over}"
    if len(section.entries) == 1:
        return f"{first.label} has a mean JCT of {mean:,.0f} s {over}."
    ratio = section.ratio(first)
    if ratio is None or first.label == section.baseline:
        second = section.entries[1]
        paired = section.ratio(second) if ratio is not None else None
        behind = second.estimate("jct_mean").mean / mean if paired is None else paired.mean
        if behind == 1.0:
            return f"{first.label} and {second.label} have the shortest mean JCT: {mean:,.0f} s {over}."
        return f"{says}; {second.label}, the next, needs {behind:.3f} times as long{_how_sure(paired)}."
    return f"{says}, {ratio.mean:.3f} of {section.baseline}'s{_how_sure(ratio)}."


def _how_sure(ratio: Estimate | None) -> str:
    """The interval of a paired ratio, and a doubt."""
    if ratio is None or ratio.is_sure:
        return ""
    doubt = ""
    if ratio.low <= 1.0 <= ratio.high:
        doubt = ", so the two cannot be told apart"
    elif ratio.runs < FEWEST_TO_TELL:
        doubt = f"; fewer than {FEWEST_TO_TELL} seeds show nothing"
    return f" (paired 95 % interval {ratio.low:.3f} to {ratio.high:.3f}{doubt})"


def as_json(section: Section) -> dict[str, Any]:
    """A section in the types of JSON (nan and infinities still in it)."""
    twin = twins(section.labelled)
    return {
        "setting": section.setting.words(),
        "folders": [str(folder) for folder in section.folders],
        "baseline": section.baseline,
        "policies": [_entry_as_json(section, entry, twin.get(entry.label)) for entry in section.entries],
    }


def _entry_as_json(section: Section, entry: Entry, twin: str | None) -> dict[str, Any]:
    names, ratio = dict.fromkeys(name for run in entry.runs for name in run.metrics), section.ratio(entry)
    row: dict[str, Any] = {"label": entry.label, "policy": entry.policy, "agent": entry.is_agent}
    row |= {"knows_run_times": entry.knows_run_times, "same_as": twin, "seeds": entry.seeds}
    row["metrics"] = {name: vars(entry.estimate(name)) for name in names}
    return row | {"ratio": None if ratio is None else vars(ratio)}
