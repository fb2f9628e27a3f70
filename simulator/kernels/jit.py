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
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core.registry import CPUDispatcher

from .known import ANSWER
from .linking import EntryCompiler, KernelCache, KernelCompiler

F = TypeVar("F", bound=Callable[..., Any])

PACKAGE = Path(__file__).resolve().parents[2]
COMPILED_ROOMS = ("simulator", "envs", "policies")
UNMARKED = ("codes.py", "tiers.py", "known.py", "linking.py")  # hold no kernels, but constants or how to compile
KEPT_FOLDERS = 20  # those used last, whatever their age
KEPT_S = 86_400.0  # and those used within a day


class _Inner(CPUDispatcher):
    """A kernel that only compiled code can call."""

    def __call__(self, *_arguments: Any, **_named: Any) -> Any:
        raise TypeError(f"{self.py_func.__qualname__} is a kernel for other kernels; what Python calls is an @entry")


@cache
def source_key() -> str:
    """Hash of all sources that compiled code is made of, of the versions that compile it and of the flags."""
    digest = hashlib.sha256(f"{numba.__version__} {sys.version_info[:3]} {numba.config.BOUNDSCHECK}".encode())
    for room in COMPILED_ROOMS:
        for path in sorted((PACKAGE / room).rglob("*.py")):
            text = path.read_bytes()
            if b"@kernel" in text or b"@entry" in text or path.name in UNMARKED:
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


@contextmanager
def _our_cache() -> Iterator[None]:
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(cache_folder())
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before


def kernel(function: F) -> F:
    """Compile `function` when compiled code first calls it: cached on disk, without the GIL, division as in numpy.

    It can make no arrays. In return nobody counts references to them, two atomic operations for every slice, which
    also keep a processor from looking ahead.

    Python cannot call it: what that takes is a fifth of the time that compiling costs. See `entry`.
    """
    compiled = _compiled(function, KernelCompiler, no_cpython_wrapper=True, no_cfunc_wrapper=True)
    if compiled is not function:
        compiled.__class__ = _Inner  # else a call from Python would be the end of the process
    return compiled


def entry(function: F) -> F:
    """A `kernel` that Python calls too."""
    return _compiled(function, EntryCompiler)


def known(function: F) -> F:
    """A `kernel` that asks one record for sizes of its fields only: its type answers when callers are compiled."""
    compiled = kernel(function)
    setattr(compiled, ANSWER, function)
    return compiled


def _compiled(function: F, compiler: type, **options: bool) -> F:
    if numba.config.DISABLE_JIT:
        return function
    with _our_cache():
        compiled = numba.njit(nogil=True, error_model="numpy", _nrt=False, pipeline_class=compiler, **options)(function)
        compiled._cache = KernelCache(function)
    # Numba compiles a function anew for every constant that a call hands it; once for any integer is enough, and a
    # third less to compile.
    template = compiled.get_call_template
    compiled.get_call_template = lambda args, kws: template(tuple(map(numba.types.unliteral, args)), kws)
    return compiled


def direct(function: Callable[..., Any], *examples: Any) -> Callable[..., Any]:
    """The machine code of a kernel for arguments of exactly the types of `examples`.

    It skips numba's look at the types of the arguments, 3 us a call where large records are among them; the caller sees
    to it that they never change.
    """
    if numba.config.DISABLE_JIT:
        return function
    signature = tuple(numba.typeof(example) for example in examples)
    function.compile(signature)  # type: ignore[attr-defined]
    return function.get_overload(signature)  # type: ignore[attr-defined]
