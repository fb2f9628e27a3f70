"""The sources of clustergym and the files that words name, for work on another machine.

Words are looked for in an item of work: dataclasses, mappings, sequences and text. A file below the present folder has
the same relative path there; one that lies elsewhere goes to `outside/`, and words that name it are changed on the way
there and changed back on the way home.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from ...policies import PolicyObject
from ...simulator.base.errors import ClustergymError, InputError
from ...simulator.files.user_code import PREFIX, own
from ...simulator.jobs.region_columns import siblings

PACKAGE = Path(__file__).resolve().parents[2]
ROOMS = ("agents", "envs", "experiments", "policies", "simulator")
OUTSIDE = "outside"
AGENT = "agent.json"  # in the folder of a saved agent
BESIDE_ZIP = (".json", ".pkl", ".yaml", ".yml")  # files of other libraries beside an agent in a .zip file


@dataclass(frozen=True)
class Named:
    """A file that is needed there."""

    place: str  # its path there, relative to the folder of work
    path: Path  # here
    stamp: tuple[int, int]  # time of writing, nanoseconds, and bytes


def write_package(folder: Path) -> None:
    """Copy the files of an installed clustergym into `folder`/clustergym."""
    place = folder / "clustergym"
    place.mkdir(parents=True)
    for name in ("__init__.py", "__main__.py", "py.typed"):
        shutil.copy(PACKAGE / name, place / name)
    for room in ROOMS:
        shutil.copytree(PACKAGE / room, place / room, ignore=shutil.ignore_patterns("__pycache__", "*.pyc", ".*"))


def needed(item: Any) -> tuple[list[Named], dict[str, str]]:
    """The files that the words in an item name, and words that change -> their text there (InputError: no access)."""
    here = os.getcwd()
    found: dict[str, Named] = {}
    moved: dict[str, str] = {}
    for part, paths in _named_in(item):
        if part and (os.path.isabs(part) or _place(part, here).startswith(OUTSIDE)):
            moved[part] = _place(part, here)
        for path in paths:
            try:
                stat = path.stat()
            except OSError as error:
                raise InputError(f"{path}: {error.strerror}") from None
            place = _place(str(path), here)
            found[place] = Named(place, path, (stat.st_mtime_ns, stat.st_size))
    longest_first = sorted(moved, key=len, reverse=True)  # one may be the beginning of another
    return [found[place] for place in sorted(found)], {part: moved[part] for part in longest_first}


def changed(value: Any, moved: Mapping[str, str]) -> Any:
    """A value with the words in it that name moved files changed."""
    if not moved:
        return value
    if isinstance(value, str):
        for before, after in moved.items():
            value = value.replace(before, after)
        return value
    if is_dataclass(value) and not isinstance(value, type | PolicyObject):
        parts = {one.name: getattr(value, one.name) for one in fields(value) if one.init}
        other = {name: new for name, part in parts.items() if (new := changed(part, moved)) is not part}
        return replace(value, **other) if other else value
    if isinstance(value, Mapping):
        return {changed(key, moved): changed(part, moved) for key, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)(changed(part, moved) for part in value)
    return value


def forget() -> None:
    """Look anew which words name files."""
    _named_by.cache_clear()


def _named_in(item: Any) -> Iterator[tuple[str, list[Path]]]:
    """Parts of words that name files or folders, and the files; a user's own code with its imports."""
    words, objects = list[str](), list[PolicyObject]()
    _look_into(item, words, objects)
    for word in dict.fromkeys(words):
        yield from _named_by(word)
    for one in objects:
        yield "", _not_ours(one.files)


def _look_into(value: Any, words: list[str], objects: list[PolicyObject]) -> None:
    if isinstance(value, str):
        words.append(value)
    elif isinstance(value, PolicyObject):
        objects.append(value)
    elif is_dataclass(value) and not isinstance(value, type):
        for one in fields(value):
            _look_into(getattr(value, one.name), words, objects)
    elif isinstance(value, Mapping | list | tuple):
        for part in value.values() if isinstance(value, Mapping) else value:
            _look_into(part, words, objects)


@functools.lru_cache(maxsize=4096)
def _named_by(word: str) -> tuple[tuple[str, list[Path]], ...]:
    found: list[tuple[str, list[Path]]] = []
    if word.startswith(PREFIX):
        with suppress(ClustergymError):  # it is said where the word is used
            files = own(word, "work").files
            beside = [path for one in files for path in one.parent.glob("*.py")]  # for later imports
            found.append(("", _not_ours(dict.fromkeys((*files, *beside)))))
    for part in dict.fromkeys((word, *re.split("[:,=]", word)[1:])):
        path = Path(part)
        try:
            if path.is_file():
                is_zip = path.suffix == ".zip"
                more = [one for one in path.parent.iterdir() if is_zip and one.suffix in BESIDE_ZIP]
                found.append((part, [one for one in (path, *siblings(path).values(), *more) if one.is_file()]))
            elif part and (path / AGENT).is_file():
                found.append((part, [one for one in path.rglob("*") if one.is_file()]))
        except (OSError, ValueError):  # too long for a name, or a NUL byte
            continue
    return tuple(found)


def _place(path: str, here: str) -> str:
    whole = os.path.abspath(path)
    if whole.startswith(here.rstrip(os.sep) + os.sep):
        return os.path.relpath(whole, here)
    return f"{OUTSIDE}/{whole.lstrip(os.sep)}"


def _not_ours(paths: Iterable[Path]) -> list[Path]:
    """Files outside the package, which goes there as a whole."""
    return [path for path in paths if not any(path.is_relative_to(PACKAGE / room) for room in ROOMS)]
