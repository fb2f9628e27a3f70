"""`kernel`, `entry` and `search`: the decorators of compiled code, and the cache that it is kept in.

Numba's file cache notices an edit to the file of a function, but not to a file that it calls into, and it does not
distinguish bounds-checked code: it would silently run old or unchecked machine code. Ours keeps every function by all
that it is made from (function_keys.py), in a folder whose name says what made the code: versions, flags, our compiler.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from . import compile_messages
from .code_files import Store, sweep_daily
from .toolchain import OWN, PLAIN, compiler, source_key

F = TypeVar("F", bound=Callable[..., Any])

MOST_BYTES = 500_000_000  # of compiled code in the user's cache; what was used last stays
NOWHERE = Path(os.devnull) / "clustergym-kernels"  # where no folder can be made: nothing is kept, and nothing found


@cache
def cache_folder() -> Path:
    """Where compiled kernels are kept; a temporary folder if the user's cache cannot be written."""
    own = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "clustergym"
    folder = Path(numba.config.CACHE_DIR or own) / source_key()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError:
        return _folder_of_this_process()
    if folder.parent == own:
        sweep_daily(own, MOST_BYTES)
    return folder


def _folder_of_this_process() -> Path:
    """A folder that goes with the process; where there is no room even for that, NOWHERE."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="clustergym-kernels-"))
    except OSError:
        return NOWHERE
    atexit.register(_leave, folder, os.getpid())
    return folder


def _leave(folder: Path, process: int) -> None:
    if os.getpid() == process:  # those that it has forked use it too
        shutil.rmtree(folder, ignore_errors=True)


def kernel(function: F) -> F:
    """Compile `function` when compiled code first calls it: cached on disk, without the GIL, division as in numpy.

    It can make no arrays. In return references to them are not counted, two atomic operations for every slice, which
    also keep a processor from looking ahead.

    Python cannot call it: what that takes is a fifth of the time that compiling costs. See `entry`.
    """
    return _compiled(function, "Kernel")


def entry(function: F) -> F:
    """A `kernel` that Python calls too."""
    return _compiled(function, "Entry")


def search(function: F) -> F:
    """An `entry` of which one call may last: other than these it is never run by Python first, see interpreting.py."""
    return _compiled(function, "Search")


def _compiled(function: F, kind: str) -> F:
    if numba.config.DISABLE_JIT:
        return function
    if compiler() == PLAIN:
        return _plain(function)
    from . import compiling

    return cast(F, getattr(compiling, kind)(function, _store()))


def known(function: F) -> F:
    """A `kernel` that asks one record for sizes of its fields only: its type answers when callers are compiled."""
    compiled = kernel(function)
    if compiled is not function and compiler() == OWN:
        compiled.answer_by_type = function  # type: ignore[attr-defined]  # see type_queries.py
    return compiled


def direct(function: Callable[..., Any], *examples: Any) -> Callable[..., Any]:
    """The machine code of an entry for arguments of exactly the types of `examples`.

    It skips numba's look at the types of the arguments, 3 us a call where large records are among them; the caller sees
    to it that they never change.
    """
    if numba.config.DISABLE_JIT or compiler() == PLAIN:
        return function
    code: Callable[..., Any] = function.for_types_of(*examples)  # type: ignore[attr-defined]
    return code


@cache
def _store() -> Store:
    return Store(cache_folder, compile_messages.remark)


def _plain(function: F) -> F:
    """Numba's own way, with its files in our folder; the setting is put back, so a user's own functions stay away."""
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(cache_folder())
    try:
        compiled = numba.njit(nogil=True, error_model="numpy", cache=cache_folder() != NOWHERE)(function)
        from .plain_cache import seal

        seal(compiled, _store())
        return cast(F, compiled)
    finally:
        numba.config.CACHE_DIR = before
