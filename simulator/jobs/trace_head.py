"""The beginning of a file: enough to tell the formats apart without reading it all."""

from __future__ import annotations

import csv
import os
import re
from dataclasses import dataclass
from pathlib import Path

from ..base.errors import InputError
from ..files.regular_files import read_bytes
from .trace_columns import A_TRACE, separator_of

HEAD_BYTES = 1 << 16
_PARQUET = b"PAR1"
_CONTENT = re.compile(rb"^[ \t]*[^#\s]", re.M)


@dataclass(frozen=True)
class Head:
    """The first 64 KiB of a file, or more if comments fill them: raw, as text, and the columns of its first line.

    Of parquet there is no text, and the columns are those of its schema.
    """

    data: bytes
    text: str
    columns: tuple[str, ...]

    @property
    def is_json(self) -> bool:
        """Whether it can be JSON."""
        return self.text.lstrip()[:1] in ("[", "{")

    @property
    def is_parquet(self) -> bool:
        """Whether it is parquet, perhaps a damaged one, which has no columns."""
        return self.data.startswith(_PARQUET)

    def has(self, *columns: str) -> bool:
        """Whether the header of a text names all of `columns`."""
        return not self.is_parquet and set(columns) <= set(self.columns)


def _is_comment(data: bytes) -> bool:
    whole = data[: data.rfind(b"\n") + 1].removeprefix(b"\xef\xbb\xbf")
    begins = data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    return begins in (b"", b"#") and not _CONTENT.search(whole)


def read_head(path: str | Path) -> Head:
    """Raises InputError where the file is missing, unreadable or empty, or a folder without parquet files."""
    if os.path.isdir(path):  # of parts of one table
        path = min(Path(path).rglob("*.parquet"), default=path)
    data, size = read_bytes(path, A_TRACE, size=HEAD_BYTES), HEAD_BYTES
    while len(data) == size and _is_comment(data):  # the header follows, however long that is
        size *= 4
        data = read_bytes(path, A_TRACE, size=size)
    if not data.strip():
        raise InputError(f"{path}: the file is empty; expected a trace with at least one job")
    if data.startswith(_PARQUET):
        return Head(data, "", _parquet_columns(path))
    text = data.decode("utf-8-sig", errors="replace")
    first = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
    try:
        columns = tuple(name.strip() for name in next(csv.reader([first], delimiter=separator_of(first)), []))
    except csv.Error:
        columns = ()
    return Head(data, text, columns)


def _parquet_columns(path: str | Path) -> tuple[str, ...]:
    import pyarrow.parquet as pq

    try:
        return tuple(pq.read_schema(path).names)
    except Exception:  # of a dozen kinds on a broken file, which its reader names
        return ()
