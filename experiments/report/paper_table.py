"""The table of `compare` as text for a paper: LaTeX with booktabs, Markdown, or csv."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Iterable, Sequence

from ...simulator.base.errors import InputError
from ...simulator.base.names import choose
from ...simulator.engine.metric_registry import METRICS
from ...simulator.files.csv_cells import write_csv
from ..comparing.intervals import Estimate
from ..playing.by_group import means_of, metrics_of, table_of
from . import numbers, page
from .load import Entry, Material, Section
from .numbers import Cell

KINDS = ("latex", "markdown", "csv")
RATIO = "ratio"
LATEX = {character: f"\\{character}" for character in "&%$#_{}"}
LATEX |= {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
LATEX |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}", "--": "-{}-"}
_SPECIAL = re.compile("|".join(map(re.escape, LATEX)))
Heads = Sequence[tuple[str, str]]  # (header, unit)
Lines = Sequence[tuple[Sequence[str], Sequence[Cell]]]  # names at the left, and cells


def table_text(material: Material, kind: str, names: Sequence[str] = ()) -> str:
    """The tables of all settings as text of one of KINDS.

    Args:
        material: at least one setting.
        kind: `latex`, `markdown`, or `csv`, which holds one table of unrounded numbers in the units of its header.
        names: metrics, and `ratio` for that of mean JCTs, from left to right; none: those of the terminal's tables.
            Each table has those that it knows, and one that knows none is left out. The name of a grouping (`by=`)
            leaves its tables alone.

    Raises:
        InputError: an unknown kind or column, no setting, no baseline that ratios are to, or several tables as csv.
    """
    choose(kind, KINDS, "value of --table")
    if not material.sections:
        raise InputError("--table: the folders hold trainings alone; expected one of evaluate --logdir")
    tables = _asked(material.sections, names)
    if RATIO in names and any(section.baseline is None for section in material.sections):
        raise InputError("--columns ratio: there is no baseline; name a policy that was played by --baseline")
    if kind != "csv":
        return "\n".join(_written(*one, _latex if kind == "latex" else _markdown) for one in tables)
    if len(tables) > 1:
        groupings = [by for _, by, _ in tables if by is not None]
        one = f", or groups alone: --columns {groupings[0]}" if groupings else ""
        raise InputError(
            f"--table csv holds one table, and these are {len(tables)} (settings, or by=): give latex or markdown{one}"
        )
    ((section, by, chosen),) = tables
    return _csv(section, chosen) if by is None else _csv_of_groups(section, by, chosen)


def _asked(sections: Sequence[Section], names: Sequence[str]) -> list[tuple[Section, str | None, list[str]]]:
    """The tables, of policies (None) or of groups, each with those of the names that are its columns."""
    groupings = dict.fromkeys(by for section in sections for by in section.setting.groupings)
    alone = [by for by in groupings if by in names]
    there = [(section, by) for section in sections for by in (*([] if alone else [None]), *section.setting.groupings)]
    known = [(section, by, _columns(section, by)) for section, by in there if not alone or by in alone]
    for name in names:
        choose(name, (*(one for _, _, columns in known for one in columns), *groupings), "column")
        if names.count(name) > 1:
            raise InputError(f"--columns: {name!r} is given twice")
    chosen = [(section, by, [one for one in names if one in columns]) for section, by, columns in known]
    return [one for one in chosen if one[2] or one[1] in alone or not names]


def _columns(section: Section, by: str | None) -> list[str]:
    if by is not None:
        return list(metrics_of(section.labelled, by))
    had = {name for entry in section.entries for run in entry.runs for name in run.metrics}
    return [RATIO, *(name for name in METRICS if name in had)]


def _written(section: Section, by: str | None, names: Sequence[str], write: Callable[..., str]) -> str:
    facts = [f"{name}: {value}" for name, value in page.facts(section).items()]
    if by is None:
        return write(["policy"], *_cells(section, names), facts)
    headers, rows, note = table_of(section.labelled, by, names)
    split = [(name, unit.strip("[]")) for name, _, unit in (header.rpartition("[") for header in headers[2:])]
    heads = [(name.strip(), unit) if name else (unit, "") for name, unit in split]
    grouped = [(row[:2], [Cell(text, "", False) for text in row[2:]]) for row in rows]
    return write(headers[:2], heads, grouped, [note], facts)


def _cells(section: Section, names: Sequence[str]) -> tuple[Heads, Lines, list[str]]:
    """Headers, lines and notes of a setting's table."""
    at = names.index(RATIO) if RATIO in names else 0 if not names and section.baseline is not None else None
    metrics = [METRICS[name] for name in names if name != RATIO] if names else None
    heads, rows = numbers.headers(section, metrics), numbers.rows(section, metrics)
    lines = [([row.entry.label], list(row.cells)) for row in rows]
    if at is not None:
        heads.insert(at, ("JCT ratio", ""))
        for row, (_, cells) in zip(rows, lines, strict=True):
            cells.insert(at, row.ratio or Cell("-", "", False))
    notes = [f"JCT ratio: to the mean of {section.baseline}, paired by seed"] if at is not None else []
    every = [cell for _, cells in lines for cell in cells]
    notes += ["best of a column in bold"] if any(cell.is_best for cell in every) else []
    notes += ["with 95 % intervals over seeds"] if any(cell.interval for cell in every) else []
    return heads, lines, [*notes, *(warning.rstrip(".") for warning in numbers.warnings(section))]


def _latex(left: Sequence[str], heads: Heads, lines: Lines, notes: Sequence[str], facts: Sequence[str]) -> str:
    said = ["in the preamble: \\usepackage{booktabs,textcomp}", *facts]
    text = [f"% {' '.join(one.split())}" for one in said]
    text += [rf"\begin{{tabular}}{{{'l' * len(left)}{'r' * len(heads)}}}", r"\toprule"]
    text.append(_row([*map(escaped, left), *(escaped(" ".join(name.split())) for name, _ in heads)]))
    if any(unit for _, unit in heads):
        text.append(_row([*("" for _ in left), *(f"[{escaped(unit)}]" if unit else "" for _, unit in heads)]))
    text.append(r"\midrule")
    for number, (names, cells) in enumerate(lines):
        has_intervals = any(cell.interval for cell in cells)
        text += [r"\addlinespace"] if has_intervals and number else []
        shown = [escaped(cell.text) for cell in cells]
        bold = (rf"\textbf{{{one}}}" if cell.is_best else one for one, cell in zip(shown, cells, strict=True))
        text.append(_row([*map(escaped, names), *bold]))
        if has_intervals:
            intervals = (cell.interval.replace(" to ", "--") for cell in cells)
            text.append(_row([*("" for _ in left), *(rf"{{\scriptsize {one}}}" if one else "" for one in intervals)]))
    text += [r"\bottomrule", r"\end{tabular}"]
    text += [rf"\par\smallskip{{\footnotesize {escaped('; '.join(notes))}.\par}}"] if notes else []
    return "\n".join(text) + "\n"


def escaped(text: str) -> str:
    """Text as LaTeX sets it."""
    return _SPECIAL.sub(lambda found: LATEX[found[0]], text)


def _row(cells: Iterable[str]) -> str:
    return rf"{' & '.join(cells)} \\"


def _markdown(left: Sequence[str], heads: Heads, lines: Lines, notes: Sequence[str], facts: Sequence[str]) -> str:
    titles = [" ".join(f"{name} [{unit}]".split()) if unit else " ".join(name.split()) for name, unit in heads]
    rows = [[*left, *titles], [*("---" for _ in left), *("---:" for _ in heads)]]
    for names, cells in lines:
        shown = (f"**{cell.text}**" if cell.is_best else cell.text for cell in cells)
        each = (f"{one} ({cell.interval})" if cell.interval else one for one, cell in zip(shown, cells, strict=True))
        rows.append([*(re.sub(r"([\\|*`<])", r"\\\1", name) for name in names), *each])
    below = [*facts, *notes]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + f"\n\n{'; '.join(below)}.\n"


def _csv(section: Section, names: Sequence[str]) -> str:
    usual = [RATIO] * (section.baseline is not None) + [metric.name for metric in numbers.metrics_of(section)]
    shown = names or usual
    header = ["policy", "label", "seeds", "finished"]
    header += [f"{name}{part}{_unit(name)}" for name in shown for part in ("", "_low", "_high")]
    file = io.StringIO()
    write_csv(file, header, (_csv_row(section, entry, shown) for entry in section.entries))
    return file.getvalue()


def _unit(name: str) -> str:
    return "_s" if name in METRICS and METRICS[name].unit == "s" else ""


def _csv_of_groups(section: Section, by: str, names: Sequence[str]) -> str:
    shown = names or list(metrics_of(section.labelled, by))
    rows = (
        [section.words[label], label, group, *(None if math.isnan(mean) else mean for mean in means.values())]
        for label, group, means in means_of(section.labelled, by, shown)
    )
    file = io.StringIO()
    write_csv(file, ["policy", "label", by, *(f"{name}{_unit(name)}" for name in shown)], rows)
    return file.getvalue()


def _csv_row(section: Section, entry: Entry, names: Sequence[str]) -> list[object]:
    found = [section.ratio(entry) if name == RATIO else entry.estimate(name) for name in names]
    finished = sum(run.metrics["jobs_finished"] for run in entry.runs) / sum(run.jobs for run in entry.runs)
    about = [entry.policy, entry.label, len(entry.seeds), finished]
    return [*about, *(number for one in found for number in _numbers(one))]


def _numbers(one: Estimate | None) -> list[float | None]:
    """Mean and interval; None: there is none."""
    if one is None or math.isnan(one.mean):
        return [None] * 3
    return [one.mean, None, None] if one.is_sure else [one.mean, one.low, one.high]
