"""The mark "may be a file" on a declaration, and the split of a value into files and word.

A field of a dataclass carries it in its metadata (`file`), a parameter in its annotation (`Annotated[str, A_FILE]`).
Stored runs, comparisons and resumed trainings find here what a run reads.
"""

from __future__ import annotations

import functools
import hashlib
import os
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from ..base.errors import InputError
from ..base.names import parse_name
from . import user_code
from .regular_files import Stamp, stamp_of

MARK = "file"  # key of the metadata of a field
HERE = "<file>"  # what stands for a path in a word without its files

Beside = Callable[[str], Iterable[str]]  # path -> those of the files that are read with it
See = Callable[[str, Beside], str]  # a path of a word -> what stands in its place


def alone(_path: str) -> Iterable[str]:
    """No further files."""
    return ()


def within(path: str) -> Iterable[str]:
    """Those in a folder, and in the folders there; no deeper, as a path may be the root of a disk."""
    found = (one for depth in ("*", "*/*") for one in Path(path).glob(depth))
    return map(str, sorted(one for one in found if os.path.isfile(one)))


@dataclass(frozen=True, eq=False)
class MayBeFile:
    """The mark.

    Attributes:
        replaced: of a word and a replacement for each path in it: the word with that.
        known: the names that are no paths; of a mapping, name -> the function that takes the parameters of the word.
    """

    replaced: Callable[[str, See], str]
    known: Collection[str] = ()


def path_mark(beside: Beside = alone) -> MayBeFile:
    """Of what is a path; "" names nothing."""
    return MayBeFile(lambda word, see: see(word, beside) if word else word)


def path_unless(known: Collection[str], beside: Beside = alone, last: str = "") -> MayBeFile:
    """Of what is a path unless its name is known.

    Args:
        known: names; of a mapping, name -> the function that takes the parameters of the word, which may be marked.
        beside: which files are read with one. last: see `parse_name`.
    """

    def replaced(word: str, see: See) -> str:
        name = word.strip().partition(":")[0]
        if name not in known:
            return see(word, beside) if word else word
        marks = marks_of(known[name]) if isinstance(known, Mapping) else {}
        if not marks:
            return word
        params = parse_name(word, last=last)[1]
        parts = (f"{key}={marks[key].replaced(text, see) if key in marks else text}" for key, text in params.items())
        return f"{name}:{','.join(parts)}"

    return MayBeFile(replaced, known)


A_FILE = path_mark()
A_FOLDER = path_mark(within)


@functools.cache
def marks_of(thing: Any) -> Mapping[str, MayBeFile]:
    """The marked fields of a dataclass, or parameters of a function."""
    if is_dataclass(thing):
        return {one.name: one.metadata[MARK] for one in fields(thing) if MARK in one.metadata}
    if not callable(thing):
        return {}
    hints = typing.get_type_hints(thing, include_extras=True)
    found = {name: getattr(hint, "__metadata__", ()) for name, hint in hints.items()}
    return {name: marks[0] for name, marks in found.items() if marks and isinstance(marks[0], MayBeFile)}


def marked(value: Any) -> Iterator[tuple[str, MayBeFile, Any]]:
    """The marked fields of a dataclass, and of those in it, that have a value: name, mark, value."""
    kind: Any = type(value)
    marks = marks_of(kind)
    for one in fields(value):
        held = getattr(value, one.name)
        if one.name in marks:
            if held is not None:
                yield one.name, marks[one.name], held
        elif is_dataclass(held) and not isinstance(held, type):
            yield from marked(held)


def without_files(word: str, mark: MayBeFile) -> str:
    """A word with `HERE` in place of every path; nothing is opened, and the files need not be there."""
    if user_code.is_user_code(word):
        place, name, params = user_code.parsed(word, "word")
        there = HERE if place.endswith(".py") else place
        return f"{user_code.PREFIX}{there}:{name},{params}"
    return mark.replaced(word, lambda _path, _beside: HERE)


@dataclass(frozen=True)
class Read:
    """A word with `HERE` for paths, and its files in order; of a folder its files by their names in it."""

    text: str
    files: tuple[tuple[str, Path], ...]

    @property
    def content(self) -> str:
        """A hash of the word and of what stands in the files; where these lie makes no difference."""
        parts = (f"{name}\0{_hash(file)}" for name, file in self.files)
        return hashlib.sha256("\0".join((self.text, *parts)).encode()).hexdigest()[:20]

    @property
    def stamps(self) -> tuple[tuple[str, Stamp], ...]:
        """The files, and what tells whether they were written anew."""
        return tuple((str(file), stamp_of(file)) for _, file in self.files)


def read_by(word: str | os.PathLike[str], mark: MayBeFile, what: str) -> Read:
    """The files that a word names, those beside them, those of own code; InputError: own code that cannot be opened."""
    files: list[tuple[str, Path]] = []

    def see(place: str, beside: Beside) -> str:
        files.extend(_files_of(Path(place), beside))
        return HERE

    if not user_code.is_user_code(word):
        return Read(mark.replaced(os.fspath(word), see), tuple(files))
    assert isinstance(word, str)
    found = user_code.own(word, what)
    for file in found.files:
        see(str(file), alone)
    params = {key: see(text, within) if os.path.exists(text) else text for key, text in found.params.items()}
    return Read(f"{user_code.parsed(word, what)[1]},{params}", tuple(files))


def _files_of(place: Path, beside: Beside) -> list[tuple[str, Path]]:
    try:
        found = [Path(one) for one in beside(str(place))] if os.path.exists(place) else []
    except InputError:  # the reader of the file says what is wrong with it
        found = []
    if os.path.isdir(place):
        return [(one.relative_to(place).as_posix() if one.is_relative_to(place) else "", one) for one in found]
    return [("", one) for one in (place, *found)]


def _hash(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except (OSError, ValueError):
        return ""
