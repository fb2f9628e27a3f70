"""`clustergym compare`: agents and heuristics of several runs side by side, as a table and as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..terminal import (
    arguments,
    expect_writable,
    out,
    plain_table,
    print_json,
    typed,
    warnings_on_one_line,
    written_whole,
)
from .options import Json, NoSeed, Quiet

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from ..report.load import Section
    from ..report.numbers import Cell

PAGE = "report.html"
MARK = "*"
FEW = 4  # pictures that are named one by one


def compare(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Folders of evaluate --logdir and train --logdir.")
    ],
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline", metavar="P", help="Policy that ratios are to; default greedy, or the best heuristic."
        ),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help=f"The page; default {PAGE} in the first DIR.")
    ] = None,
    pictures: Annotated[
        Path | None, typer.Option("--pictures", metavar="DIR", help="Write every chart as a file of its own, there.")
    ] = None,
    kinds: Annotated[
        str, typer.Option("--as", metavar="KINDS", help="Of --pictures: svg, pdf, png, or several.")
    ] = "svg",
    title: Annotated[
        str, typer.Option("--title", metavar="TEXT", help="Of the page.")
    ] = "Scheduling policies compared",
    json: Json = False,
    seed: NoSeed = 0,
    quiet: Quiet = False,
) -> None:
    """Compare what was evaluated and trained into folders: print the table, write one HTML page that shows it all."""
    from ..report import load, numbers, page
    from ..report.pictures import expect_installed, kinds_of, of_material

    with warnings_on_one_line(quiet):
        with arguments():
            wanted = kinds_of(kinds)
        if pictures is not None:
            expect_installed(wanted)
        material = load.load(folders, baseline)
        to = folders[0] / PAGE if file is None else file
        expect_writable(to, "--out" if file is not None else "the page")
        html = page.render(material, page.made_by(typed.get()), title)
        with written_whole(to) as draft:
            draft.write_text(html, encoding="utf-8")
        drawn = of_material(material, pictures, wanted) if pictures is not None else []
    if json:
        trained = [
            {"folder": str(one.folder), "agent": one.agent, "heuristics": one.heuristics} for one in material.trainings
        ]
        settings = [numbers.as_json(section) for section in material.sections]
        told = {"report": str(to), "settings": settings, "training": trained}
        print_json(told | ({"pictures": [str(path) for path in drawn]} if drawn else {}))
        return
    for section in material.sections:
        _print(out(), section)
    out().print(f"report: {to}", markup=False, soft_wrap=True)
    if drawn:
        names = ", ".join(path.name for path in drawn[:FEW]) + (" and more" if drawn[FEW:] else "")
        out().print(f"pictures: {pictures}: {names}", markup=False, soft_wrap=True)


def _print(console: Console, section: Section) -> None:
    """Print one section: what was played, the table, and what it says."""
    from rich.text import Text

    from ..report import numbers, page
    from ..table import KNOWS, WIDTH_WITH_INTERVALS

    for name, value in page.facts(section.setting, section.seeds).items():
        console.print(Text.assemble((f"{name:<12} ", "bold"), value))
    is_wide = console.width >= WIDTH_WITH_INTERVALS
    table = plain_table(padding=(0, 1, 0, 0))
    table.add_column("policy", overflow="fold", min_width=10)
    table.add_column(Text(KNOWS), overflow="fold", min_width=5)
    if section.baseline is not None:
        table.add_column(Text("JCT ratio"), justify="right", no_wrap=True)
    for header, unit in numbers.headers(section):
        table.add_column(Text(f"{header}\n[{unit}]" if unit else header), justify="right", no_wrap=True)
    for row in numbers.rows(section):
        ratio = [_cell(row.ratio, True)] if section.baseline is not None else []
        table.add_row(
            Text(row.entry.label),
            Text(row.entry.knows_run_times),
            *ratio,
            *(_cell(cell, is_wide) for cell in row.cells),
        )
    console.print(table)
    console.print(Text(numbers.verdict(section), style="bold"))
    notes = [f"{MARK} best of its column"]
    notes += [f"ratios to {section.baseline}'s mean, paired by seed"] if section.baseline is not None else []
    notes += ["below: 95 % intervals"] if is_wide or section.baseline is not None else []
    console.print(Text("; ".join(notes), style="dim"))
    for warning in numbers.warnings(section):
        console.print(Text(warning))
    console.print()


def _cell(cell: Cell | None, interval: bool) -> Text:
    from rich.text import Text

    if cell is None:
        return Text("- ")
    text = Text(cell.text + (MARK if cell.is_best else " "), style="bold green" if cell.is_best else "")
    if cell.interval and interval:
        text.append(f"\n{cell.interval.replace(',', '').replace(' to ', '-')} ", style="dim not bold")
    return text
