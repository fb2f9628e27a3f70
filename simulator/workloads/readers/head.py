"""The beginning of a file: enough to tell the formats apart without reading it all."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from ...errors import InputError
from ..table import read_bytes

HEAD_BYTES = 1 << 16


@dataclass(frozen=True)
class Head:
    """The first 64 KiB of a file.

    Attributes:
        data: the raw bytes.
        text: the same as text, undecodable bytes replaced.
        columns: the fields of the first line that is neither empty nor a "#" comment, split at commas.
    """

    data: bytes
    text: str
    columns: tuple[str, ...]

    @property
    def is_json(self) -> bool:
        """Whether it can be JSON."""
        return self.text.lstrip()[:1] in ("[", "{")

    def has(self, *columns: str) -> bool:
        """Whether the header names all of `columns`."""
        return set(columns) <= set(self.columns)


def read_head(path: str | Path) -> Head:
    """Raises InputError where the file is missing, a directory, unreadable or empty."""
    data = read_bytes(path, HEAD_BYTES)
    if not data.strip():
        raise InputError(f"{path}: the file is empty; expected a trace with at least one job")
    text = data.decode("utf-8-sig", errors="replace")
    first = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
    try:
        columns = tuple(name.strip() for name in next(csv.reader([first]), []))
    except csv.Error:
        columns = ()
    return Head(data, text, columns)
