"""Text as csv files hold it, so that no spreadsheet runs it and every cell comes back as it was.

A spreadsheet takes a cell that begins with one of = + - @ for a formula, quoted or not. Such a cell, unless it is a
number, gets an apostrophe before it; so does one that has apostrophes before such a character already, and `unguarded`
takes one off again. A cell that begins with a space is quoted, as spaces after a comma are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import IO, Any

_FORMULA = re.compile(r"'*[=+\-@]")
_GUARDED = re.compile(r"'+[=+\-@]")
_QUOTED = re.compile(r'[",\r\n]|^[ \t]')


def guarded(cell: str) -> str:
    """The cell, with an apostrophe before it where a spreadsheet would run it."""
    return f"'{cell}" if _FORMULA.match(cell) and not _is_number(cell) else cell


def unguarded(cell: str) -> str:
    """What `guarded` was given."""
    return cell[1:] if _GUARDED.match(cell) else cell


def write_csv(file: IO[str], header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a csv file; text is guarded, and numbers are the shortest text that gives the same number back."""
    for row in chain([header], rows):
        file.write(",".join([_cell(value) for value in row]) + "\n")


def _cell(value: Any) -> str:
    if not isinstance(value, str):
        return "" if value is None else str(value)
    text = guarded(value)
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell
