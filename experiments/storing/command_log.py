"""The commands that filled a folder: `command.json`, a list with one entry a command, oldest first.

Keys of an entry: `command` (one line, as typed), `date` (start, ISO 8601, UTC), `wall_s` (seconds; null if it did not
end well, or runs still), `processes`, `versions` (name -> version).
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

from ..console.terminal import typed, written_whole
from ..console.versions import LEARNING_LIBRARIES, LIBRARIES, versions
from .run_files import StoredRunWarning

NAME = "command.json"
MOST_S = 1e12
KEYS = {"command", "date", "wall_s", "processes", "versions"}


@contextmanager
def recorded(folder: Path, processes: int = 1) -> Iterator[None]:
    """Add the running command to the log of `folder`; its seconds follow when the block ends well."""
    command, date = typed.get() or shlex.join(sys.argv), datetime.now(UTC).isoformat(timespec="milliseconds")
    entry: dict[str, Any] = {"command": command, "date": date, "wall_s": None, "processes": processes}
    entry["versions"] = versions(*LIBRARIES, "gymnasium", *LEARNING_LIBRARIES)
    began_s = time.monotonic()
    read(folder)  # to say it where it cannot be
    _add(folder, entry)
    yield
    ended = entry | {"wall_s": round(time.monotonic() - began_s, 3)}
    _add(folder, ended, instead_of=entry)


def read(folder: Path) -> list[dict[str, Any]]:
    """The entries of a folder's log; none, with a warning, if it is damaged or no log."""
    entries = _read(folder)
    if entries is None:
        what = "it is no log of commands, or damaged; it is left as it is, and no command is noted in it"
        warnings.warn(f"{folder / NAME}: {what}", StoredRunWarning, stacklevel=2)
    return entries or []


def _read(folder: Path) -> list[dict[str, Any]] | None:
    """The entries, [] where there is no log yet; None where another file stands in its place."""
    path = folder / NAME
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except (ValueError, RecursionError, OSError):
        return None
    return entries if isinstance(entries, list) and all(map(_is_entry, entries)) else None


def _is_entry(entry: Any) -> bool:
    if not (isinstance(entry, dict) and entry.keys() >= KEYS and isinstance(entry["versions"], dict)):
        return False
    texts = (entry["command"], entry["date"], *entry["versions"], *entry["versions"].values())
    took, processes = entry["wall_s"], entry["processes"]
    return (
        all(isinstance(text, str) for text in texts)
        and (took is None or (type(took) in (int, float) and 0.0 <= took <= MOST_S))
        and (processes is None or type(processes) is int)
    )


def _add(folder: Path, entry: dict[str, Any], instead_of: dict[str, Any] | None = None) -> None:
    """Write the log with one more entry, or with one changed; a file that is no log stays."""
    entries = _read(folder)
    if entries is None:
        return
    if instead_of is None:
        entries.append(entry)
    else:
        entries = [entry if other == instead_of else other for other in entries]
    with written_whole(folder / NAME) as draft:
        draft.write_text(json.dumps(entries, indent=2) + "\n", encoding="utf-8")
