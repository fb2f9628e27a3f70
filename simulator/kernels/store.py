"""Files of compiled code: one for each kernel and each entry, by the hash of what it was made from."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # not a POSIX system: two processes may then compile the same code, which is only slower
    fcntl = None  # type: ignore[assignment]


def key_of(*words: str) -> str:
    """A name for what `words` describe."""
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:32]


class Store:
    """What lies in a folder that may go at any time.

    Args:
        folder: says where it is.
    """

    def __init__(self, folder: Callable[[], Path]) -> None:
        self.folder = folder

    def read(self, key: str) -> bytes | None:
        """What was written as `key`."""
        try:
            return self._path(key).read_bytes()
        except OSError:
            return None

    def write(self, key: str, data: bytes) -> None:
        """Keep it, unless the folder cannot be written; whoever reads it meanwhile finds all or nothing."""
        path = self._path(key)
        unfinished = path.with_suffix(f".{uuid.uuid4().hex[:12]}")
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished.write_bytes(data)
            os.replace(unfinished, path)

    @contextmanager
    def alone(self, key: str, waiting: AbstractContextManager[None]) -> Iterator[None]:
        """No other process is inside with the same key; as long as one is, `waiting` is entered."""
        path = self._path(key).with_suffix(".lock")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = open(path, "w")
        except OSError:
            yield
            return
        with lock:
            if fcntl is not None:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    with waiting:
                        fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _path(self, key: str) -> Path:
        return self.folder() / key[:2] / f"{key}.code"
