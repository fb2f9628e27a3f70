"""Reading a user's file: all of it, or one sentence that says why not. Pipes and devices are refused."""

from __future__ import annotations

import os

from ..base.errors import InputError

Stamp = tuple[int, int] | None  # of a file: when it was written, ns, and its bytes; None: it is not there


def expect_plain_file(path: str | os.PathLike[str], expected: str = "a file", place: str = "") -> None:
    """InputError, naming `place` or the path and what was `expected`: a folder, a pipe, a device or a socket."""
    place = place or str(path)
    if os.path.isdir(path):
        raise InputError(f"{place}: is a folder; expected {expected}")
    if os.path.exists(path) and not os.path.isfile(path):
        raise InputError(f"{place}: is a pipe or a device, which can be read only once; expected {expected}")


def read_bytes(
    path: str | os.PathLike[str], expected: str = "a file", place: str = "", size: int = -1, most: int | None = None
) -> bytes:
    """The first `size` bytes of a file, -1: all; None in `most`: a file of any size is read.

    `expected`, `place`: the words of errors, by default the path. `most`: the largest size that is read. InputError: no
    such file, no plain one, too large, or unreadable.
    """
    place = place or str(path)
    try:
        expect_plain_file(path, expected, place)
        if most is not None and os.path.getsize(path) > most:
            raise InputError(f"{place} has {os.path.getsize(path)} bytes, expected at most {most}")
        with open(path, "rb") as file:
            return file.read(size)
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{place}: there is no such file; expected {expected}") from None
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL character
        raise InputError(f"{place}: cannot be read ({getattr(error, 'strerror', None) or error})") from None


def read_text(path: str | os.PathLike[str], expected: str = "a file", place: str = "", most: int | None = None) -> str:
    """The whole of a UTF-8 file; as `read_bytes`, and InputError where it is empty, binary, or not UTF-8."""
    data, place = read_bytes(path, expected, place, most=most), place or str(path)
    if not data.strip():
        raise InputError(f"{place}: the file is empty; expected {expected}")
    if (position := data.find(b"\0")) >= 0:
        line = data.count(b"\n", 0, position) + 1
        raise InputError(f"{place}, line {line}: a NUL byte is not text; expected {expected}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, byte = data.count(b"\n", 0, error.start) + 1, data[error.start]
        said = f"{place}, line {line}: byte 0x{byte:02x} is not UTF-8; this is not text, expected {expected}"
        raise InputError(said) from None


def stamp_of(path: str | os.PathLike[str]) -> Stamp:
    """What tells whether a file was written anew since it was read."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size
