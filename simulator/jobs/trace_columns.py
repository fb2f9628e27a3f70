"""Table: the columns of a trace file with the place of every row, to name a bad value where it stands.

Readers ask it for whole columns (`number`, `date_s`, `text`); each is converted and checked in one go, and
only when that fails is the first bad row looked for. All errors are InputError, one sentence: file, place,
column, value, expectation.
"""

from __future__ import annotations

import csv
import io
import json
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import InputError
from ..files.csv_cells import unguarded
from ..files.regular_files import read_text
from .workload import LONGEST_S, Workload, WorkloadWarning, clip, first_bad_text, first_duplicate

_DATE = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?")
_JSON_KINDS = {dict: "object", str: "string", int: "number", float: "number", bool: "boolean"}
A_TRACE = "a trace file"
LONGEST_LINE = 2**22  # characters: a line of commas alone is a list of as many cells, which fill the memory
_BLANKS = frozenset({"", "nan", "NaN", "None", "null", "NA", "N/A"})


def read_csv(
    path: str | Path,
    *,
    header: Sequence[str] | None = None,
    keep: Collection[str] | None = None,
    may_be_empty: bool = False,
    is_guarded: bool = False,
    expected: str = A_TRACE,
) -> Table:
    """A comma-separated file as a Table of text, without "#" lines before the header and empty lines.

    Args:
        path: the file.
        header: the column names of a file without a header line.
        keep: the columns to keep in memory (names that are not there do no harm); default all.
        may_be_empty: whether a header without rows will do.
        is_guarded: take off the apostrophes that guard text from spreadsheets (csv_cells.py).
        expected: what the file should be, for errors.

    Raises:
        InputError: unreadable, no rows, a row of another length than the header, broken quoting, a cell above
            128 KiB, a line above 4 MiB.
    """
    text = read_text(path, expected)
    skipped = 0
    stream = io.StringIO(text, newline="")
    while header is None and (position := stream.tell()) >= 0 and (line := stream.readline()):
        if line.strip() and not line.startswith("#"):
            stream.seek(position)
            break
        skipped += 1
    reader = csv.reader(_lines(path, stream, skipped), strict=True, skipinitialspace=True)
    rows: list[tuple[str, ...]] = []
    lines: list[int] = []
    try:
        names = list(header) if header is not None else [name.strip() for name in next(reader, [])]
        _check_header(path, skipped + 1, names)
        chosen = [i for i, name in enumerate(names) if keep is None or name in keep]
        for row in reader:
            if len(row) != len(names):
                if not row:
                    continue
                raise InputError(
                    f"{path}, line {skipped + reader.line_num}: {len(row)} fields; "
                    f"expected {len(names)}, as in the header"
                )
            rows.append(tuple([unguarded(row[i]) if is_guarded else row[i] for i in chosen]))
            lines.append(reader.line_num)
    except csv.Error as error:
        raise InputError(
            f"{path}, line {skipped + reader.line_num}: not readable as csv ({error}); expected comma-separated fields"
        ) from None
    if not rows and not may_be_empty:
        raise InputError(f"{path}: a header but no rows; expected at least one job")
    cells = map(list, zip(*rows, strict=True)) if rows else ([] for _ in chosen)
    columns = dict(zip((names[i] for i in chosen), cells, strict=True))
    return Table(str(path), columns, np.asarray(lines, np.int64) + skipped, "line", tuple(names))


def _lines(path: str | Path, stream: io.StringIO, before: int) -> Iterator[str]:
    """The lines of a csv file that follow the first `before`."""
    for number, line in enumerate(stream, start=before + 1):
        if len(line) > LONGEST_LINE:
            raise InputError(f"{path}, line {number}: {len(line):,} characters; expected at most {LONGEST_LINE:,}")
        yield line


def _check_header(path: str | Path, line: int, names: list[str]) -> None:
    if not any(names):
        raise InputError(f"{path}: no header line; expected column names separated by commas")
    if (twice := first_duplicate(names)) is not None:
        raise InputError(f"{path}, line {line}: column {clip(names[twice[1]])} is given twice in the header")


def read_json_list(path: str | Path) -> list[dict[str, Any]]:
    """A JSON file that is a list of objects.

    Raises:
        InputError: not JSON (with line and column), not a list, or an item that is not an object.
    """
    text = read_text(path, A_TRACE)
    try:
        items = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {error.lineno}, column {error.colno}: not valid JSON ({error.msg})") from None
    except RecursionError:
        raise InputError(f"{path}: JSON nested too deeply; expected a list of jobs") from None
    except ValueError as error:
        raise InputError(f"{path}: not valid JSON ({clip(str(error))})") from None
    if not isinstance(items, list):
        kind = _JSON_KINDS.get(type(items), "null")
        raise InputError(f"{path}: a JSON {kind} at the top; expected a list of jobs")
    if not items:
        raise InputError(f"{path}: an empty list; expected at least one job")
    for i, item in enumerate(items):
        if not isinstance(item, dict):
            raise InputError(f"{path}, job {i + 1}: {clip(item)} is not an object; expected a job with named fields")
    return items


def cell(value: Any) -> str:
    """A JSON value as the text a csv would hold."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return repr(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else json.dumps(value)


class BadCell(InputError):
    """A cell that holds what it must not; `row` is its index in the table."""

    def __init__(self, message: str, row: int) -> None:
        super().__init__(message)
        self.row = row


@dataclass(frozen=True)
class Table:
    """Columns of equal length (lists of str, or numeric arrays) and the place of each row.

    Attributes:
        path: the file, as the user named it.
        columns: by name.
        places: (n,) 1-based numbers of the rows in the file.
        unit: what `places` counts: "line", "row" or "job".
        header: every column name of the file, also those not kept.
        shown: what the file calls a column, where that differs.
    """

    path: str
    columns: Mapping[str, list[str] | np.ndarray]
    places: np.ndarray
    unit: str
    header: tuple[str, ...] = ()
    shown: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.places)

    def __contains__(self, column: str) -> bool:
        return column in self.columns

    def error(self, row: int, column: str, expected: str, value: object = None) -> BadCell:
        """The error for one cell; `value` defaults to what the file holds there."""
        held = self.columns[column][row] if value is None else value
        shown = clip(held if isinstance(held, str) else held.item() if isinstance(held, np.generic) else held)
        noun = "field" if self.unit == "job" else "column"
        name = self.shown.get(column, column)
        place = f"{self.path}, {self.unit} {self.places[row]}"
        return BadCell(f"{place}, {noun} {name!r}: {shown}; expected {expected}", row)

    def numbers(self, wanted: Mapping[str, Mapping[str, Any]]) -> dict[str, np.ndarray]:
        """Columns by name, each with the arguments of `number`.

        Raises:
            BadCell: of the columns that hold a mistake the one whose first mistake stands first; it names where the
                first ones of the others stand too.
        """
        found: dict[str, np.ndarray] = {}
        mistakes: list[tuple[BadCell, str]] = []
        for name, how in wanted.items():
            try:
                found[name] = self.number(name, **how)
            except BadCell as mistake:
                mistakes.append((mistake, self.shown.get(name, name)))
        if not mistakes:
            return found
        (first, _), *others = sorted(mistakes, key=lambda mistake: mistake[0].row)
        also = [f"{self.unit} {self.places[other.row]}, {name!r}" for other, name in others]
        raise BadCell(f"{first}{'; also wrong: ' if also else ''}{'; '.join(also)}", first.row)

    def warn(self, what: str) -> None:
        """Say something about the file that does not keep it from being read."""
        warnings.warn(f"{self.path}: {what}", WorkloadWarning, stacklevel=3)

    def column(self, name: str) -> list[str] | np.ndarray:
        """A column as it is; InputError if the file has none of that name."""
        if name not in self.columns:
            there = ", ".join((self.header or tuple(self.columns))[:20])
            raise InputError(f"{self.path}: column {name!r} is missing; it has: {clip(there, 200)}")
        return self.columns[name]

    def text(self, name: str, default: str | None = None) -> list[str]:
        """A column as str; `default` fills a column that the file lacks."""
        if name not in self.columns and default is not None:
            return [default] * len(self)
        values = self.column(name)
        words = [str(value) for value in values] if isinstance(values, np.ndarray) else values
        if (bad := first_bad_text(words)) is not None:
            raise self.error(bad, name, "plain text on one line")
        return words

    def number(
        self,
        name: str,
        *,
        low: float = -LONGEST_S,
        above: bool = False,
        high: float = LONGEST_S,
        whole: bool = False,
        default: float | None = None,
        blank: float | None = None,
    ) -> np.ndarray:
        """A column as float64 (int64 with `whole`), all within [low, high] ((low, high] with `above`).

        Args:
            default: fills a column that the file lacks (else that is an error).
            blank: stands for empty, nan or None cells, unchecked (else those are errors).
        """
        kind = np.int64 if whole else np.float64
        if name not in self.columns and default is not None:
            return np.full(len(self), default, dtype=kind)
        values = self.column(name)
        empty = np.zeros(len(self), dtype=bool)
        if blank is not None:
            empty = _blank_cells(values)
            if empty.any():
                values = ["0" if gone else str(value) for gone, value in zip(empty, values, strict=True)]
        expected = _range_words(low, above, high, whole)
        array = _fast_numbers(values, whole)
        if array is None:
            row = next(i for i, value in enumerate(values) if _fast_numbers([str(value)], whole) is None)
            raise self.error(row, name, expected)
        bad = ~((array > low if above else array >= low) & (array <= high)) & ~empty
        if bad.any():
            raise self.error(int(np.argmax(bad)), name, expected)
        if blank is not None and empty.any():
            array[empty] = blank
        return array

    def date_s(self, name: str, *, blanks: bool = False) -> np.ndarray:
        """A column of dates as float64 seconds since 1970; with `blanks`, nan for empty cells."""
        values = self.text(name)
        try:
            return dates_to_s(values, blanks)
        except ValueError:
            for row, value in enumerate(values):
                try:
                    dates_to_s([value], blanks)
                except ValueError:
                    raise self.error(row, name, "a date YYYY-MM-DD HH:MM:SS") from None
            raise

    def where(self, keep: np.ndarray, why: str) -> np.ndarray:
        """The indices of the rows to keep; says in one warning how many are dropped, and why.

        Raises:
            InputError: none is kept.
        """
        kept = np.flatnonzero(keep)
        if not len(kept):
            raise InputError(f"{self.path}: all {len(self)} jobs are dropped ({why}); expected at least one GPU job")
        if len(kept) < len(self):
            self.warn(f"dropped {len(self) - len(kept)} of {len(self)} jobs ({why})")
        return kept

    def workload(
        self,
        *,
        job_id: str | Sequence[str],
        arrival_s: np.ndarray,
        gpus: np.ndarray,
        duration_s: np.ndarray,
        kept: np.ndarray | None = None,
        from_start: bool = False,
        **optional: Any,
    ) -> Workload:
        """The Workload of the rows `kept` (default all).

        Args:
            job_id: a column name (ids are then checked and located), or the ids.
            from_start: subtract the earliest kept arrival (for dates and absolute clocks).
            optional: optional columns of the schema, full length.
        """
        kept = np.arange(len(self)) if kept is None else kept
        ids = self.text(job_id) if isinstance(job_id, str) else job_id
        ids = [ids[i] for i in kept.tolist()]
        if isinstance(job_id, str):
            self._check_ids(job_id, ids, kept)
        arrival_s = np.asarray(arrival_s, dtype=np.float64)[kept]
        if from_start:
            arrival_s = arrival_s - arrival_s.min()
        rest = {key: _pick(values, kept) for key, values in optional.items() if values is not None}
        try:
            return Workload.from_arrays(
                Path(self.path).stem, arrival_s, gpus[kept], duration_s[kept], job_id=ids, **rest
            )
        except InputError as error:
            raise InputError(f"{self.path}: {error}") from None

    def _check_ids(self, column: str, ids: list[str], kept: np.ndarray) -> None:
        if "" in ids:
            raise self.error(int(kept[ids.index("")]), column, "a job id")
        if (twice := first_duplicate(ids)) is not None:
            first = self.places[kept[twice[0]]]
            expected = f"an id of its own ({self.unit} {first} has it too)"
            raise self.error(int(kept[twice[1]]), column, expected)


def _pick(values: Any, kept: np.ndarray) -> Any:
    return values[kept] if isinstance(values, np.ndarray) else [values[i] for i in kept]


def _blank_cells(values: list[str] | np.ndarray) -> np.ndarray:
    if isinstance(values, np.ndarray):
        return np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)
    return np.fromiter((value.strip() in _BLANKS for value in values), bool, len(values))


def _fast_numbers(values: list[str] | np.ndarray, whole: bool) -> np.ndarray | None:
    """All values as float64 or int64, or None where some value is no (whole) number; no ranges."""
    if isinstance(values, np.ndarray):
        if not whole or values.dtype.kind == "i":
            return values.astype(np.int64 if whole else np.float64)
        values = values.tolist()
    elif any("_" in value for value in values):  # Python reads 1_000, no trace means it
        return None
    try:
        if not whole:
            return np.fromiter(map(float, values), np.float64, len(values))
        try:
            return np.fromiter(map(int, values), np.int64, len(values))
        except ValueError:
            numbers = np.fromiter(map(float, values), np.float64, len(values))  # "4.0" is whole too
        return (
            numbers.astype(np.int64) if np.all((np.abs(numbers) < 2.0**53) & (np.floor(numbers) == numbers)) else None
        )
    except (ValueError, OverflowError):
        return None


def _range_words(low: float, above: bool, high: float, whole: bool) -> str:
    noun = "a whole number" if whole else "a number"
    if high == np.inf:
        return f"{noun} above {low:g}" if above else f"{noun} of at least {low:g}"
    return f"{noun} above {low:g}, up to {high:g}" if above else f"{noun} from {low:g} to {high:g}"


def dates_to_s(values: Iterable[str], blanks: bool = False) -> np.ndarray:
    """Dates `YYYY-MM-DD HH:MM:SS[.ffffff]` as float64 seconds since 1970 (blanks: nan), or ValueError."""
    words = []
    for value in values:
        value = value.strip()
        if _DATE.fullmatch(value):
            words.append(value)
        elif blanks and value in _BLANKS:
            words.append("NaT")
        else:
            raise ValueError(value)
    times = np.array(words, dtype="datetime64[us]")
    return np.where(np.isnat(times), np.nan, times.astype(np.int64) / 1e6)
