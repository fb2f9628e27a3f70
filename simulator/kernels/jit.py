"""`kernel` and `entry`: the decorators of compiled code, and the cache that it is kept in.

Numba's file cache notices an edit to the file of a function, but not to a file that it calls into, and it does not
distinguish bounds-checked code: it would silently run old or unchecked machine code. So the cache folder's name
carries a hash of every kernel source and of the flags. A folder holds 100 MB, and every edit makes another, so old ones
go when a new one is made. Only our own kernels are redirected there: the setting is put
back after each decoration, so a user's own cached functions stay where they are.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from .compiling import Entry, Kernel
from .known import ANSWER
from .store import Store

F = TypeVar("F", bound=Callable[..., Any])

PACKAGE = Path(__file__).resolve().parents[2]
COMPILED_ROOMS = ("simulator", "envs", "policies")
UNMARKED = ("codes.py", "tiers.py")  # constants,
HOW = ("compiling.py", "inference.py", "known.py", "linking.py", "lowering.py", "outline.py", "store.py")
KEPT_FOLDERS = 20  # those used last, whatever their age
KEPT_S = 86_400.0  # and those used within a day


@cache
def source_key() -> str:
    """Hash of all sources that compiled code is made of, of the versions that compile it and of the flags."""
    digest = hashlib.sha256(f"{numba.__version__} {sys.version_info[:3]} {numba.config.BOUNDSCHECK}".encode())
    for room in COMPILED_ROOMS:
        for path in sorted((PACKAGE / room).rglob("*.py")):
            text = path.read_bytes()
            if b"@kernel" in text or b"@entry" in text or path.name in (*UNMARKED, *HOW):
                digest.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0" + text)
    return digest.hexdigest()[:16]


@cache
def cache_folder() -> Path:
    """Where compiled kernels are kept; a temporary folder if the user's cache cannot be written."""
    own = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "clustergym"
    home = Path(numba.config.CACHE_DIR or own)
    folder = home / source_key()
    try:
        is_new = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            os.utime(folder)  # when it was last used
    except OSError:
        return Path(tempfile.mkdtemp(prefix="clustergym-kernels-"))
    if is_new and home == own:
        _remove_old(home)
    return folder


def _remove_old(home: Path) -> None:
    """Remove the folders of kernels that were not used lately.

    Who still has one in use loses nothing but time: its code is in memory, and what it compiles next is kept anew.
    """
    used = []
    for folder in home.glob("[0-9a-f]" * 16 + "*"):  # with what was about to be removed when a process was killed
        with suppress(OSError):  # another process was faster
            used.append((folder.stat().st_mtime, folder))
    for used_s, folder in sorted(used, reverse=True)[KEPT_FOLDERS:]:
        if used_s < time.time() - KEPT_S:
            with suppress(OSError):
                # All at once, so that nobody finds it half empty.
                shutil.rmtree(folder.rename(f"{folder}.{os.getpid()}"), ignore_errors=True)


_STORE = Store(cache_folder)


def kernel(function: F) -> F:
    """Compile `function` when compiled code first calls it: cached on disk, without the GIL, division as in numpy.

    It can make no arrays. In return nobody counts references to them, two atomic operations for every slice, which
    also keep a processor from looking ahead.

    Python cannot call it: what that takes is a fifth of the time that compiling costs. See `entry`.
    """
    return function if numba.config.DISABLE_JIT else cast(F, Kernel(function, _STORE))


def entry(function: F) -> F:
    """A `kernel` that Python calls too."""
    return function if numba.config.DISABLE_JIT else cast(F, Entry(function, _STORE))


def known(function: F) -> F:
    """A `kernel` that asks one record for sizes of its fields only: its type answers when callers are compiled."""
    compiled = kernel(function)
    setattr(compiled, ANSWER, function)
    return compiled


def direct(function: Callable[..., Any], *examples: Any) -> Callable[..., Any]:
    """The machine code of an entry for arguments of exactly the types of `examples`.

    It skips numba's look at the types of the arguments, 3 us a call where large records are among them; the caller sees
    to it that they never change.
    """
    return function.for_types_of(*examples) if isinstance(function, Entry) else function
