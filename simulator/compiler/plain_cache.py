"""Numba's own files of compiled code, with a checksum: for where it compiles by itself (`jit.PLAIN`).

They are pickles that numba reads as they are. So ours read nothing whose checksum was not verified, and where a file
cannot be used or written, numba compiles.
"""

from __future__ import annotations

import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any

from .code_files import Store, sealed

try:
    from numba.core.caching import IndexDataCacheFile
except ImportError:  # a numba that keeps its code otherwise: it does so as it does
    IndexDataCacheFile = object


class SealedFile(IndexDataCacheFile):
    """Numba's index of one function, and its data.

    Attributes:
        store: of the folder; it says what is wrong there.
    """

    store: Store

    def load(self, key: Any) -> Any:
        """Numba's hook."""
        name = self._load_index().get(key)
        return None if name is None else self._read(Path(self._data_path(name)))

    def save(self, key: Any, data: Any) -> None:
        """Numba's hook."""
        try:
            super().save(key, data)
        except OSError as error:
            self.store.unwritable(error)

    def _load_index(self) -> dict[Any, str]:
        found = self._read(Path(self._index_path))
        if found is None or found[:2] != (self._version, self._source_stamp):
            return {}
        return dict(found[2])

    def _save_index(self, overloads: dict[Any, str]) -> None:
        self._write(Path(self._index_path), (self._version, self._source_stamp, overloads))

    def _save_data(self, name: str, data: Any) -> None:
        self._write(Path(self._data_path(name)), data)

    def _write(self, path: Path, data: Any) -> None:
        with self._open_for_write(str(path)) as file:
            file.write(sealed(path.name, self._dump(data)))

    def _read(self, path: Path) -> Any:
        data = self.store.content(path, path.name)
        return None if data is None else pickle.loads(data)


def seal(dispatcher: Any, store: Store) -> None:
    """Modify what numba made of a function: its files are sealed ones. Nothing happens where numba has other ones."""
    with suppress(AttributeError):
        file = dispatcher._cache._cache_file
        if type(file) is IndexDataCacheFile:
            file.__class__ = SealedFile
            file.store = store
