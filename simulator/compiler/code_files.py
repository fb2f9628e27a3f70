"""Files of compiled code: one for each kernel and each entry, by the hash of what it was made from.

A file holds a checksum of what it is and of what it is for, and nothing of it is looked at before that was verified: a
power cut, a full disk or a failing one leaves files behind that would be run as machine code. What cannot be used is
removed, said once, and made anew.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # not a POSIX system: two processes may then compile the same code, which is only slower
    fcntl = None  # type: ignore[assignment]

SEAL = 32  # bytes of the checksum, which come first
# No directory and no file at all: no warning.
ABSENT = (errno.ENOENT, errno.ENOTDIR)
DAY_S = 86_400.0


def key_of(*words: str) -> str:
    """A name for what `words` describe."""
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:32]


def sealed(key: str, data: bytes) -> bytes:
    """A file's content: `data`, which is for `key`."""
    return _seal_of(key, data) + data


def unsealed(key: str, content: bytes) -> bytes | None:
    """What a file of `key` holds; None: it is not as it was written, or for something else."""
    data = content[SEAL:]
    return data if len(content) > SEAL and content[:SEAL] == _seal_of(key, data) else None


def _seal_of(key: str, data: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\0" + data).digest()


class Store:
    """What lies in a folder that may go at any time.

    Args:
        folder: says where it is.
        warn: called with one sentence where something in the folder is not as it should be, once for each kind.
        is_ours: what is damaged is removed.
    """

    def __init__(
        self, folder: Callable[[], Path], warn: Callable[[str], None] = lambda sentence: None, is_ours: bool = True
    ) -> None:
        self.folder, self._warn, self._is_ours = folder, warn, is_ours
        self._reported: set[str] = set()

    def read(self, key: str) -> bytes | None:
        """What was written as `key`."""
        return self.content(self._path(key), key)

    def content(self, path: Path, key: str) -> bytes | None:
        """What was written into a file for `key`; one that cannot be used is removed."""
        try:
            content = _content_of(path)
        except OSError as error:
            if error.errno in ABSENT:
                return None
            content = b""
        data = unsealed(key, content)
        if data is None:
            self._remove(path)
        return data

    def discard(self, key: str) -> None:
        """What lies there as `key` cannot be used: remove it."""
        self._remove(self._path(key))

    def _remove(self, path: Path) -> None:
        if not self._is_ours:
            self._say("damaged", f"a file of compiled kernels in {self.folder()} is damaged; it is compiled anew")
            return
        try:
            path.unlink(missing_ok=True)
            self._say("damaged", f"removed a damaged file of compiled kernels in {self.folder()}; it is compiled anew")
        except OSError as error:
            self._say("damaged", f"a file of compiled kernels in {self.folder()} is damaged ({error.strerror})")

    def write(self, key: str, data: bytes) -> None:
        """Keep it, unless the folder cannot be written; a reader meanwhile finds all or nothing."""
        path = self._path(key)
        unfinished = path.with_suffix(f".{uuid.uuid4().hex[:12]}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished.write_bytes(sealed(key, data))
            os.replace(unfinished, path)
        except OSError as error:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
            self.unwritable(error)

    def unwritable(self, error: OSError) -> None:
        """Something could not be kept: say so."""
        self._say(
            "unwritable",
            f"compiled kernels cannot be kept in {self.folder()} ({error.strerror}); every process compiles them anew",
        )

    @contextmanager
    def alone(self, key: str, waiting: AbstractContextManager[None]) -> Iterator[None]:
        """No other process is inside with the same key; as long as one is, `waiting` is entered."""
        path = self._path(key).with_suffix(".lock")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Whatever is there, this does not wait for another process to open it too.
            lock = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NONBLOCK", 0), 0o666)
        except OSError:
            yield
            return
        try:
            if fcntl is not None:
                _hold(lock, waiting)
            yield
        finally:
            os.close(lock)

    def _say(self, kind: str, sentence: str) -> None:
        if kind not in self._reported:
            self._reported.add(kind)
            self._warn(sentence)

    def _path(self, key: str) -> Path:
        return self.folder() / key[:2] / f"{key}.code"


def _hold(lock: int, waiting: AbstractContextManager[None]) -> None:
    """Wait until no other process has the lock; file systems without locks let all in."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with waiting, suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
    except OSError:
        return


def _content_of(path: Path) -> bytes:
    """Of a file; what is none (a pipe, a device) holds nothing.

    Raises:
        OSError: it is not there, or cannot be read.
    """
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)), "rb") as file:
        found = os.fstat(file.fileno())
        if time.time() - found.st_mtime > DAY_S:
            with suppress(OSError):
                os.utime(path)  # for `sweep_daily`: it is in use
        return file.read() if stat.S_ISREG(found.st_mode) else b""


def sweep_daily(home: Path, most_bytes: int) -> None:
    """Once a day, remove the files in the folders of code in `home` that were used longest ago, down to `most_bytes`.

    A process that still uses one loses only time: its code is in memory, and what is missing is made anew.
    """
    stamp = home / "swept"
    with suppress(OSError):
        if stamp.exists() and time.time() - stamp.stat().st_mtime < DAY_S:
            return
        stamp.touch()
    used = []
    for path in home.glob("[0-9a-f]" * 16 + "*/**/*"):
        with suppress(OSError):  # another process was faster
            found = path.lstat()
            if not stat.S_ISDIR(found.st_mode):
                used.append((found.st_mtime, found.st_size, path))
    left = most_bytes
    for _, size, path in sorted(used, reverse=True):
        left -= size
        if left < 0:
            with suppress(OSError):
                path.unlink()
                path.parent.rmdir()  # if it was the last
                path.parent.parent.rmdir()
