"""`clustergym compare`: agents and heuristics of several runs side by side, as a table and as one HTML page."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ...simulator.base.errors import InputError
from ..console import terminal
from ..console.terminal import (
    BadArgument,
    arguments,
    out,
    plain_table,
    print_json,
    print_lines,
    styled,
    typed,
    written_whole,
)
from .options import Json, Quiet, argument, option, whole

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from ..report.episodes import Episodes
    from ..report.load import Material, Section
    from ..report.numbers import Cell

PAGE = "report.html"
TITLE = "Scheduling policies compared"
FEW = 4  # pictures that are named one by one
_TWO = (
    "Lay an episode of these two policies side by side, decision by decision; default: of the best and the "
    "baseline, on the page alone."
)
_TABLE = "Print the table so, and nothing else on stdout: for a paper."
_COLUMNS = 'Of --table: metrics, "ratio", spaces between; default the terminal\'s. "user" of by=user: that table alone.'
Two = Annotated[tuple[str, str] | None, option("--episodes", "A B", _TWO)]
Seed = Annotated[int | None, option("--seed", "N", "Of the episodes; default: the first that both recorded.", whole(0))]


def compare(
    folders: Annotated[list[Path], argument("DIR", "Folders of evaluate --logdir and train --logdir.")],
    baseline: Annotated[
        str | None, option("--baseline", "P", "Policy that ratios are to; default greedy, or the best heuristic.")
    ] = None,
    file: Annotated[Path | None, option("--out", "FILE", f"The page; default {PAGE} in the first DIR.")] = None,
    pictures: Annotated[
        Path | None, option("--pictures", "DIR", "Write every chart as a file of its own, there.")
    ] = None,
    kinds: Annotated[str, option("--as", "KINDS", "Of --pictures: svg, pdf, png, or several.")] = "svg",
    size: Annotated[
        str | None, option("--size", "WIDTH", "Of --pictures: their width, as 3.3in or 84mm; default 7.9in.")
    ] = None,
    table: Annotated[str | None, option("--table", "latex|markdown|csv", _TABLE)] = None,
    columns: Annotated[str | None, option("--columns", "NAMES", _COLUMNS)] = None,
    title: Annotated[str, option("--title", "TEXT", "Of the page.")] = TITLE,
    episodes: Two = None,
    seed: Seed = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare what was evaluated and trained into folders: print the table, write one HTML page that shows it all."""
    from ..charts.chart_files import expect_installed, kinds_of, width_px
    from ..report import load
    from ..report.paper_table import table_text
    from ..report.pictures import of_material

    if size is not None and pictures is None:
        raise BadArgument("--size: it is that of --pictures DIR, which is not given")
    _expect_fitting(table, columns, {"--json": json, "--episodes": episodes, "--seed": seed is not None})
    with terminal.warnings_on_one_line(quiet):
        with arguments():
            wanted, width = kinds_of(kinds), width_px(size or "760px")
        if pictures is not None:
            expect_installed(wanted)
        material = load.load(folders, baseline)
        with arguments():
            text = "" if table is None else table_text(material, table, (columns or "").split())
        to = folders[0] / PAGE if file is None else file
        terminal.expect_writable(to, "--out" if file is not None else "the page")
        pairs = _pairs(material, episodes, seed)
        write_page(material, to, title, pairs)
        drawn = of_material(material, pictures, wanted, pairs, width) if pictures is not None else []
    if json:
        files = {"pictures": [str(path) for path in drawn]} if drawn else {}
        print_json({"report": str(to), **_as_json(material, pairs), **files})
        return
    if table is not None:
        sys.stdout.write(text)
        if not quiet:
            terminal.say(f"report: {to}" + (f"; pictures: {pictures}" if drawn else ""))
        return
    for number, section in enumerate(material.sections):
        _print(out(), section)
        if (pair := pairs[number]) is not None and (episodes is not None or seed is not None):
            _print_episodes(out(), pair)
    print_lines(f"report: {to}")
    if drawn:
        names = ", ".join(path.name for path in drawn[:FEW]) + (" and more" if drawn[FEW:] else "")
        print_lines(f"pictures: {pictures}: {names}")


def _expect_fitting(table: str | None, columns: str | None, others: Mapping[str, Any]) -> None:
    if columns is not None and not columns.split():
        raise BadArgument("--columns: no name is given; leave the option out for those of the terminal")
    if table is None and columns is not None:
        raise BadArgument("--columns: it says what --table prints; give --table latex, markdown or csv")
    for name, given in others.items():
        if table is not None and given:
            raise BadArgument(f"--table goes without {name}: it prints the table alone")


def write_page(
    material: Material, to: Path, title: str = TITLE, pairs: Mapping[int, Episodes | None] | None = None
) -> None:
    """Write the page of some runs; `pairs` as for `page.render`."""
    from ..report import page

    html = page.render(material, page.made_by(typed.get()), title, pairs)
    with written_whole(to) as draft:
        draft.write_text(html, encoding="utf-8", errors="backslashreplace")  # of words that were no UTF-8


def _pairs(material: Material, wanted: tuple[str, str] | None, seed: int | None) -> dict[int, Episodes | None]:
    """By number of the section, the two episodes that are compared there."""
    from ..report.episodes import chosen

    pairs = {number: chosen(section, wanted, seed) for number, section in enumerate(material.sections)}
    if wanted is not None and not any(pairs.values()):
        played = dict.fromkeys(entry.label for section in material.sections for entry in section.entries)
        raise InputError(
            f"--episodes {' '.join(wanted)}: expected two policies of one setting; these were played: "
            f"{', '.join(played) or 'none'}"
        )
    return pairs


def _as_json(material: Material, pairs: Mapping[int, Episodes | None]) -> dict[str, Any]:
    from ..report import numbers

    settings = [numbers.as_json(section) | _episodes(pairs[number]) for number, section in enumerate(material.sections)]
    read = material.trainings
    trained = [{"folder": str(one.folder), "agent": one.agent, "heuristics": one.heuristics} for one in read]
    return {"settings": settings, "training": trained}


def _episodes(pair: Episodes | None) -> dict[str, Any]:
    from ..report.episode_words import as_json

    return {} if pair is None else {"episodes": as_json(pair)}


def _print_episodes(console: Console, found: Episodes) -> None:
    from ..report import episode_words

    one, other = found.labels
    console.print(styled(f"{one} and {other} on seed {found.seed}:", "bold"))
    for sentence in (episode_words.parting(found), episode_words.outcome(found)):
        console.print(styled(sentence))
    if not found.instants:
        console.print()
        return
    table = plain_table()
    table.add_column("decision")
    for header in ("the same", "other time", "other place", "both", f"only {one}", f"only {other}"):
        table.add_column(styled(header), justify="right", overflow="fold")
    for kind in found.kinds:
        table.add_row(kind.kind, *(f"{count:,}" for count in kind[1:]))
    console.print(table)
    table = plain_table()
    for header in ("time", one, other):
        table.add_column(styled(header), overflow="fold")
    for row in episode_words.rows(found)[: episode_words.FIRST_ROWS]:
        table.add_row(row.time, *(_lines(cells) for cells in (row.first, row.second)))
    console.print(table)
    more = len(found.instants) - episode_words.FIRST_ROWS
    if more > 0:
        console.print(styled(f"and {more:,} more times at which they differ: the page and --json have them", "dim"))
    console.print()


def _lines(cells: Sequence[tuple[str, str]]) -> Text:
    from rich.text import Text

    if not cells:
        return Text("nothing", style="dim")
    lines = [Text.assemble(words, (f"\n{why}", "dim")) if why else Text(words) for words, why in cells]
    return Text("\n").join(lines)


def _print(console: Console, section: Section) -> None:
    from rich.text import Text

    from ..comparing.table import MARK, policy_table, print_fitting, print_groups
    from ..report import numbers, page

    for name, value in page.facts(section).items():
        console.print(Text.assemble((f"{name:<12} ", "bold"), value))
    rows = numbers.rows(section)

    has_ratio = section.baseline is not None
    headers = [f"{header}\n[{unit}]" if unit else header for header, unit in numbers.headers(section)]
    knows = {row.entry.label: row.entry.knows_run_times for row in rows}

    def drawn(intervals: bool) -> Table:
        lines = {
            row.entry.label: [_cell(row.ratio, True)] * has_ratio + [_cell(cell, intervals) for cell in row.cells]
            for row in rows
        }
        return policy_table(["JCT ratio"] * has_ratio + headers, lines, knows)

    is_wide, needed = print_fitting(console, drawn, knows)
    console.print(styled(numbers.verdict(section), "bold"))
    notes = [f"{MARK} best of its column"]
    notes += [f"ratios to {section.baseline}'s mean, paired by seed"] if has_ratio else []
    notes += ["below: 95 % intervals"] if is_wide or has_ratio else []
    notes += [] if is_wide else [f"{needed} columns have room for all intervals"]
    console.print(styled("; ".join(notes), "dim"))
    for warning in numbers.warnings(section):
        console.print(styled(warning))
    for by in section.setting.groupings:
        print_groups(console, section.labelled, by)
    console.print()


def _cell(cell: Cell | None, interval: bool) -> Text:
    from ..comparing.table import marked

    if cell is None:
        return styled("- ")
    text = marked(cell.text, cell.is_best)
    if cell.interval and interval:
        text.append(f"\n{cell.interval.replace(',', '').replace(' to ', '-')} ", style="dim not bold")
    return text
