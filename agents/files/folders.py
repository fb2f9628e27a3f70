"""Folders that are whole or absent: written beside, flushed to disk, and renamed, so that a kill tears nothing."""

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
    """A new folder to write files into; after the block it replaces `folder`, after an error it vanishes.

    The old one is kept beside until the new one is in place; `complete_folder` finds it after a kill between the two.
    One process at a time may write a folder; any number may read it.

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


def complete_folder(folder: Path) -> Path:
    """The folder to read: `folder`, or the one before it, if a kill interrupted a replacement."""
    _, previous = _beside(folder)
    return previous if previous.is_dir() and not folder.exists() else folder


def stamp_of(path: Path) -> tuple[Any, ...]:
    """Names, times of the last writing and sizes of the file, or of those in the folder."""
    try:
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        return tuple((file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files)
    except OSError:
        return ()


def _settle(folder: Path) -> None:
    """Clear up after a killed or failed writer: restore the old folder, remove drafts."""
    draft, previous = _beside(folder)
    if complete_folder(folder) == previous:
        os.rename(previous, folder)
    for left in (draft, previous):
        if left.exists():
            shutil.rmtree(left)


def _beside(folder: Path) -> tuple[Path, Path]:
    """The places of the new folder while it is written, and of the old one until it is replaced."""
    return folder.with_name(f".{folder.name}.part"), folder.with_name(f".{folder.name}.before")


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
