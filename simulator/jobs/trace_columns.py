"""Table: the columns of a trace file with the place of every row, to name a bad value where it stands.

Readers ask for whole columns (`number`, `date_s`, `text`), converted and checked in one go; only after a failure are
bad rows looked for. A bad row is an InputError with file, place, column and value, or left out (left_out.py).
"""

from __future__ import annotations

import csv
import difflib
import io
import json
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import InputError
from ..files.csv_cells import unguarded
from ..files.regular_files import read_text
from .left_out import BadRows, LeftOut, Share, warn_of_unread, whole_gpus
from .workload import LONGEST_S, RANGES, Workload, WorkloadWarning, bad_texts, bad_values, clip, first_duplicate

_DATE = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?")
_JSON_KINDS = {dict: "object", str: "string", int: "number", float: "number", bool: "boolean"}
A_TRACE = "a trace file"
LONGEST_LINE = 2**22  # characters: a line of commas alone is a list of as many cells, which fill the memory
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_BLANKS = frozenset({"", "nan", "NaN", "None", "null", "NA", "N/A"})


def read_csv(
    path: str | Path,
    *,
    header: Sequence[str] | None = None,
    keep: Collection[str] | None = None,
    harmless: Collection[str] = (),
    bad_rows: BadRows | None = None,
    most: int | None = None,
    may_be_empty: bool = False,
    is_guarded: bool = False,
    expected: str = A_TRACE,
) -> Table:
    """A file of columns between `SEPARATORS` as a Table of text, without leading "#" and empty lines.

    Between bars, as Slurm writes them, a quote is a character as any other.

    Args:
        header: the column names of a file without a header line.
        keep: the columns that are read, if there; a warning names others; default all.
        harmless: columns that are not read, without a warning.
        bad_rows: rows that do not fit are left out as bad, or the first is refused when all are known; None: at once.
        most: the largest number of rows; None: any.
        may_be_empty: whether a header without rows will do.
        is_guarded: take off the apostrophes that guard text from spreadsheets (csv_cells.py).
        expected: what the file should be, for errors.

    Raises:
        InputError: unreadable, no rows or too many, a row of another length than the header, broken quoting, a cell
            above 128 KiB, a line above 4 MiB.
    """
    stream, skipped = _opened(read_text(path, expected), header is None)
    begin = stream.tell()
    mark = separator_of(stream.readline())
    stream.seek(begin)
    reader = _reader(_lines(path, stream, skipped), mark)
    lines: list[int] = []
    rows: list[tuple[str, ...]] = []
    lost: list[tuple[int, str]] | None = None if bad_rows is None else []
    try:
        names = list(header) if header is not None else [name.strip() for name in next(reader, [])]
        _check_header(path, skipped + 1, names)
        chosen = [i for i, name in enumerate(names) if keep is None or name in keep]
        for line, row in _rows(path, reader, skipped, len(names), lost):
            if len(rows) == most:
                raise InputError(f"{path}, line {line}: one row too many; expected at most {most:,}")
            rows.append(tuple([unguarded(row[i]) if is_guarded else row[i] for i in chosen]))
            lines.append(line)
    except csv.Error as error:
        said = f"not readable as csv ({error}); expected fields separated by {SEPARATORS[mark]}"
        raise InputError(f"{path}, line {skipped + reader.line_num}: {said}") from None
    if not (rows or lost or may_be_empty):
        raise InputError(f"{path}: a header but no rows; expected at least one job")
    if keep is not None:
        warn_of_unread(str(path), names, keep, harmless)
    cells = map(list, zip(*rows, strict=True)) if rows else ([] for _ in chosen)
    columns = dict(zip((names[i] for i in chosen), cells, strict=True))
    left_out = None if lost is None or bad_rows is None else LeftOut(str(path), len(rows), bad_rows, lost)
    return Table(str(path), columns, np.asarray(lines, np.int64), "line", tuple(names), left_out=left_out)


def _opened(text: str, has_header: bool) -> tuple[io.StringIO, int]:
    stream, skipped, begin = io.StringIO(text, newline=""), 0, 0
    while has_header and (begin := stream.tell()) >= 0 and (line := stream.readline()):
        if line.strip() and not line.startswith("#"):
            break
        skipped += 1
    stream.seek(begin)
    return stream, skipped


def _reader(lines: Iterator[str], mark: str) -> Any:
    quoting: Any = csv.QUOTE_NONE if mark == "|" else csv.QUOTE_MINIMAL
    return csv.reader(lines, strict=True, skipinitialspace=True, delimiter=mark, quoting=quoting)


def _rows(
    path: str | Path, reader: Any, before: int, width: int, lost: list[tuple[int, str]] | None
) -> Iterator[tuple[int, list[str]]]:
    """The rows of a csv and their lines, after `before` lines; rows of another length go to `lost`, else InputError."""
    for row in filter(None, reader):
        line = before + reader.line_num
        if len(row) == width:
            yield line, row
            continue
        said = f"{len(row)} fields; expected {width}, as in the header"
        if lost is None:
            raise InputError(f"{path}, line {line}: {said}")
        lost.append((line, said))


def separator_of(header: str) -> str:
    """What separates the columns of a file that begins with this line: what it has most of, in doubt commas."""
    return max(SEPARATORS, key=header.count)


def _lines(path: str | Path, stream: io.StringIO, before: int) -> Iterator[str]:
    for number, line in enumerate(stream, start=before + 1):
        if len(line) > LONGEST_LINE:
            raise InputError(f"{path}, line {number}: {len(line):,} characters; expected at most {LONGEST_LINE:,}")
        yield line


def _check_header(path: str | Path, line: int, names: list[str]) -> None:
    if not any(names):
        raise InputError(f"{path}: no header line; expected column names separated by commas")
    if (twice := first_duplicate(names)) is not None:
        raise InputError(f"{path}, line {line}: column {clip(names[twice[1]])} is given twice in the header")


def read_json_list(path: str | Path, of: str = "job") -> list[dict[str, Any]]:
    """A JSON file that is a list of objects; InputError: not JSON (with line and column), or something else.

    `of`: what an object is, in errors, which name it by its number from 1.
    """
    text = read_text(path, A_TRACE)
    with json_errors(path):
        items = json.loads(text)
    if not isinstance(items, list):
        kind = _JSON_KINDS.get(type(items), "null")
        raise InputError(f"{path}: a JSON {kind} at the top; expected a list of {of}s")
    if not items:
        raise InputError(f"{path}: an empty list; expected at least one {of}")
    for i, item in enumerate(items):
        if not isinstance(item, dict):
            raise InputError(f"{path}, {of} {i + 1}: {clip(item)} is not an object; expected named fields")
    return items


@contextmanager
def json_errors(path: str | Path) -> Iterator[None]:
    """Errors of JSON as InputErrors that name the file, and line and column where they are known."""
    try:
        yield
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {error.lineno}, column {error.colno}: not valid JSON ({error.msg})") from None
    except RecursionError:
        raise InputError(f"{path}: JSON nested too deeply; expected a list of jobs") from None
    except ValueError as error:
        raise InputError(f"{path}: not valid JSON ({clip(str(error))})") from None


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
    """Columns of equal length (lists of str, or numeric arrays) and the place of each row."""

    path: str  # the file, as the user named it
    columns: Mapping[str, list[str] | np.ndarray]  # by name
    places: np.ndarray  # (n,) 1-based numbers of the rows in the file
    unit: str  # what `places` counts: "line", "row", "job" or "event"
    header: tuple[str, ...] = ()  # every column name of the file, also those not kept
    shown: Mapping[str, str] = field(default_factory=dict)  # the file's names of columns, where they differ
    left_out: LeftOut | None = None  # rows that are left out; None: bad rows are refused

    def __len__(self) -> int:
        return len(self.places)

    def __contains__(self, column: str) -> bool:
        return column in self.columns

    def error(self, row: int, column: str, expected: str, value: object = None) -> BadCell:
        """The error for one cell; `value` defaults to what the file holds there."""
        return BadCell(f"{self.path}, {self._said(row, column, expected, value)}", row)

    def _said(self, row: int, column: str, expected: str, value: object = None) -> str:
        held = self.columns[column][row] if value is None else value
        shown = clip(held if isinstance(held, str) else held.item() if isinstance(held, np.generic) else held)
        noun = "field" if self.unit in ("job", "event") else "column"
        name = self.shown.get(column, column)
        return f"{self.unit} {self.places[row]}, {noun} {name!r}: {shown}; expected {expected}"

    def mark_bad(self, rows: np.ndarray, column: str, expected: str, values: Any = None) -> None:
        """Leave out the rows of a mask, whose cells of `column`, or `values`, do not fit; or raise a BadCell."""
        rows = np.asarray(rows, bool)  # also of no rows, which numpy takes for float64
        found = np.flatnonzero(rows if self.left_out is None else rows & ~self.left_out.gone)
        if not len(found):
            return
        first = int(found[0])
        value = None if values is None else values[first]
        if self.left_out is None:
            raise self.error(first, column, expected, value)
        self.left_out.mark_bad(found, int(self.places[first]), self._said(first, column, expected, value))

    def drop(self, rows: np.ndarray, why: str) -> None:
        """Leave out the rows of a mask for a reason that is none of a mistake, "without a GPU"."""
        assert self.left_out is not None
        self.left_out.drop(rows, why)

    def only(self, rows: np.ndarray) -> Table:
        """A table of the rows of a mask; others were no jobs and do not count as left out."""
        columns = {name: _pick(values, np.flatnonzero(rows)) for name, values in self.columns.items()}
        left_out = None if self.left_out is None else self.left_out.only(rows)
        return replace(self, columns=columns, places=self.places[rows], left_out=left_out)

    def numbers(self, wanted: Mapping[str, Mapping[str, Any]]) -> dict[str, np.ndarray]:
        """Columns by name, each with the arguments of `number`; BadCell names the first mistake of each bad column."""
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
            there = (self.header or tuple(self.columns))[:20]
            close = "".join(f"did you mean {clip(one)}? " for one in difflib.get_close_matches(name, there, 1))
            raise InputError(f"{self.path}: column {name!r} is missing; {close}it has: {clip(', '.join(there), 200)}")
        return self.columns[name]

    def text(self, name: str, default: str | None = None) -> list[str]:
        """A column as str; `default` fills a column that the file lacks."""
        if name not in self.columns and default is not None:
            return [default] * len(self)
        values = self.column(name)
        words = [str(value) for value in values] if isinstance(values, np.ndarray) else values
        if len(bad := bad_texts(words)):
            self.mark_bad(_mask(bad, len(words)), name, "plain text on one line")
            words = [*words]
            for row in bad.tolist():
                words[row] = ""
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

        Where rows are left out, a bad cell becomes a number that fits. `default` fills a missing column, `blank`
        (unchecked) empty, nan or None cells; without them these are errors.
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
        expected = _range_words(low, above, high, whole) + ", in seconds" * name.endswith("_s")
        fits = min(max(low, 0.0) + above, high)
        array = _fast_numbers(values, whole)
        if array is None:
            wrong = np.array([_fast_numbers([str(value)], whole) is None for value in values])
            self.mark_bad(wrong, name, expected)
            values = [str(int(fits)) if is_wrong else str(value) for is_wrong, value in zip(wrong, values, strict=True)]
            array = _fast_numbers(values, whole)
            assert array is not None
        bad = ~((array > low if above else array >= low) & (array <= high)) & ~empty
        if bad.any():
            self.mark_bad(bad, name, expected)
            array[bad] = fits
        if blank is not None and empty.any():
            array[empty] = blank
        return array

    def iterations(self, *names: str) -> np.ndarray | None:
        """The column of iterations, under the first of its names that the file has; nan where it says 0: not known."""
        name = next((name for name in names if name in self.columns), None)
        if name is None:
            return None
        found = self.number(name, low=0)
        return np.where(found > 0, found, np.nan)

    def date_s(self, name: str, *, blanks: bool = False) -> np.ndarray:
        """A column of dates as float64 seconds since 1970; with `blanks`, nan for empty cells."""
        values = self.text(name)
        try:
            return dates_to_s(values, blanks)
        except ValueError:
            wrong = np.array([not _is_date(value, blanks) for value in values])
            self.mark_bad(wrong, name, "a date YYYY-MM-DD HH:MM:SS")
            return dates_to_s(["" if is_wrong else value for is_wrong, value in zip(wrong, values, strict=True)], True)

    def workload(
        self,
        job_id: str | Sequence[str],
        arrival_s: np.ndarray,
        gpus: np.ndarray,
        duration_s: np.ndarray,
        *,
        from_start: bool = False,
        share: Share | None = None,
        order: np.ndarray | None = None,
        iterations: np.ndarray | None = None,
        **optional: Any,
    ) -> Workload:
        """The Workload of the rows that are not left out.

        Args:
            job_id: a column name (ids are then checked and located), or the ids.
            from_start: subtract the earliest arrival, a date in seconds since 1970, which becomes `origin_s`.
            share: how `gpus`, float64 of which some are shares, become whole; rows without a GPU are dropped by then.
            order: of the rows, indices; default as they are.
            iterations: nan where they are not known.
            optional: optional columns of the schema, full length.

        Raises:
            InputError: no row is left, too many are bad, or one is where none may be.
        """
        ids = self.text(job_id) if isinstance(job_id, str) else job_id
        if isinstance(job_id, str):
            self._check_ids(job_id, ids)
        asked, small = gpus, np.zeros(len(self), bool)
        if share is not None:
            gpus = whole_gpus(asked, share)
            small = self._drop_small(gpus, asked * duration_s / 3600.0)
        optional = {key: values for key, values in optional.items() if values is not None}
        columns = {"gpus": gpus, "duration_s": duration_s, **optional}
        columns |= {} if from_start else {"arrival_s": arrival_s}
        for name, bad, expected in bad_values({key: values for key, values in columns.items() if key in RANGES}):
            self.mark_bad(bad, name, expected, columns[name])
        held = np.where(small, asked, gpus)
        kept = np.arange(len(self)) if self.left_out is None else self.left_out.kept_rows(held, duration_s)
        kept = kept if order is None else order[np.isin(order, kept)]
        if share is not None and self.left_out is not None:
            asked_h, read_h = (one * duration_s / 3600.0 for one in (asked, gpus))
            self.left_out.warn_of_shares(share, float(asked_h[kept].sum() + asked_h[small].sum()), read_h[kept].sum())
        arrival_s, gpus, duration_s = np.asarray(arrival_s, np.float64)[kept], gpus[kept], duration_s[kept]
        first_s = float(arrival_s.min()) if from_start else None
        if first_s is not None:
            arrival_s = arrival_s - first_s
            optional = {**optional, **{key: optional[key] - first_s for key in ("start_s",) if key in optional}}
        rest = {key: _pick(values, kept) for key, values in optional.items()}
        unknown = np.isnan(iterations[kept]) if iterations is not None else np.ones(len(kept), bool)
        if not unknown.all():
            assert iterations is not None
            rest["iterations"] = np.where(unknown, duration_s, iterations[kept])
        try:
            named = [ids[row] for row in kept.tolist()]
            read = Workload.from_arrays(Path(self.path).stem, arrival_s, gpus, duration_s, job_id=named, **rest)
        except InputError as error:
            raise InputError(f"{self.path}: {error}") from None
        return replace(read, iterations_known=not unknown.any(), origin_s=first_s)

    def _drop_small(self, gpus: np.ndarray, asked_h: np.ndarray) -> np.ndarray:
        """Leave out the rows that are rounded to no GPU, and say how many GPU-hours they ask; which, bool (rows,)."""
        small = (gpus == 0) if self.left_out is None else (gpus == 0) & ~self.left_out.gone
        if small.any():
            self.drop(small, f"below half a GPU ({float(asked_h[small].sum()):,.6g} GPU-hours)")
        return small

    def _check_ids(self, column: str, ids: Sequence[str]) -> None:
        there = np.ones(len(ids), bool) if self.left_out is None else ~self.left_out.gone
        self.mark_bad(np.array([not one for one in ids], bool) & there, column, "a job id")
        first: dict[str, int] = {}
        again = [row for row in np.flatnonzero(there).tolist() if ids[row] and first.setdefault(ids[row], row) != row]
        if again:
            place = self.places[first[ids[again[0]]]]
            self.mark_bad(_mask(again, len(ids)), column, f"an id of its own ({self.unit} {place} has it too)")


def _mask(rows: Any, length: int) -> np.ndarray:
    mask = np.zeros(length, bool)
    mask[rows] = True
    return mask


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
        are_whole = np.all((np.abs(numbers) < 2.0**53) & (np.floor(numbers) == numbers))
        return numbers.astype(np.int64) if are_whole else None
    except (ValueError, OverflowError):
        return None


def _range_words(low: float, above: bool, high: float, whole: bool) -> str:
    noun = "a whole number" if whole else "a number"
    if high == np.inf:
        return f"{noun} above {low:g}" if above else f"{noun} of at least {low:g}"
    return f"{noun} above {low:g}, up to {high:g}" if above else f"{noun} from {low:g} to {high:g}"


def _is_date(value: str, blanks: bool) -> bool:
    try:
        dates_to_s([value], blanks)
    except ValueError:
        return False
    return True


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
