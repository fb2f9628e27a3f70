"""Which commands filled a folder: `command.json`, a list with one entry a command, oldest first.

Columns of an entry: `command` (one line, as it would be typed), `date` (start, ISO 8601, UTC), `wall_s` (seconds it
took; null if it did not end well, or runs still), `processes`, `versions` (name -> version).
"""

from __future__ import annotations

import json
import shlex
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .identity import LEARNING_LIBRARIES, LIBRARIES, versions
from .run_files import StoredRunWarning
from .terminal import typed, written_whole

NAME = "command.json"


@contextmanager
def recorded(folder: Path, processes: int = 1) -> Iterator[None]:
    """Add the running command to the log of `folder`; its seconds follow when the block ends well."""
    entry = {
        "command": typed.get() or shlex.join(sys.argv),
        "date": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "wall_s": None,
        "processes": processes,
        "versions": versions(*LIBRARIES, "gymnasium", *LEARNING_LIBRARIES),
    }
    began_s = time.monotonic()
    _write(folder, [*read(folder), entry])
    yield
    ended = entry | {"wall_s": round(time.monotonic() - began_s, 3)}
    _write(folder, [ended if other == entry else other for other in read(folder)])


def read(folder: Path) -> list[dict[str, Any]]:
    """The entries of a folder's log; none, with a warning, if it cannot be read."""
    path = folder / NAME
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise ValueError("expected a list of objects")
    except FileNotFoundError:
        return []
    except ValueError as error:
        warnings.warn(f"{path}: {error}; it is begun anew", StoredRunWarning, stacklevel=2)
        return []
    return entries


def _write(folder: Path, entries: list[dict[str, Any]]) -> None:
    with written_whole(folder / NAME) as draft:
        draft.write_text(json.dumps(entries, indent=2) + "\n", encoding="utf-8")
