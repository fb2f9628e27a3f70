"""Folders that are whole or not there: written beside, put on the disk, and renamed, so that a kill tears nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...simulator.base.errors import InputError


@contextmanager
def replaced_whole(folder: Path) -> Iterator[Path]:
    """A new folder to write files into; when the block ends well it takes the place of `folder`, else it vanishes.

    What stood there before is kept beside until the new one is in place; `standing` finds it after a kill between the
    two. One process at a time may write the same folder; any number may read it.

    Raises:
        InputError: the folder cannot be written, or a file stands in its place.
    """
    draft, previous = _beside(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _settle(folder)
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder}: this is a file; expected a folder, or nothing yet")
        draft.mkdir()
    except OSError as error:
        raise InputError(f"{folder}: it cannot be written: {error.strerror}") from None
    try:
        yield draft
        for path in (*draft.iterdir(), draft):
            _flush(path)
        if folder.exists():
            os.rename(folder, previous)
        os.rename(draft, folder)
        _flush(folder.parent)
    except OSError as error:  # a full disk does not say of what file
        raise InputError(f"{folder}: it cannot be written: {error.strerror}") from None
    finally:
        _settle(folder)


def standing(folder: Path) -> Path:
    """Where to read: `folder`, or the one before it, if a writer was killed while it put the new one in place."""
    _, previous = _beside(folder)
    return previous if previous.is_dir() and not folder.exists() else folder


def stamp_of(path: Path) -> tuple[Any, ...]:
    """When the file, or those in the folder, were written last, and how large they are."""
    try:
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        return tuple((file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files)
    except OSError:
        return ()


def _settle(folder: Path) -> None:
    """Clear up after a writer that was killed or failed: the folder before it is back, and its drafts are gone."""
    draft, previous = _beside(folder)
    if standing(folder) == previous:
        os.rename(previous, folder)
    for left in (draft, previous):
        if left.exists():
            shutil.rmtree(left)


def _beside(folder: Path) -> tuple[Path, Path]:
    """Where the new folder is written, and where the old one waits."""
    return folder.with_name(f".{folder.name}.part"), folder.with_name(f".{folder.name}.before")


def _flush(path: Path) -> None:
    """Have the system put a file, or the names in a folder, on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
