"""What decides how functions are compiled: the compiler, the versions, the flags, and our compiler's own text."""

from __future__ import annotations

import hashlib
import os
import sys
import warnings
from functools import cache
from pathlib import Path

import llvmlite
import numba

PACKAGE = Path(__file__).resolve().parents[2]
COMPILED_ROOMS = ("simulator", "envs", "policies")
FITS = (0, 62), (0, 68)  # first and last version of numba that our way of compiling has been tried with
OWN, PLAIN = "own", "plain"


@cache
def compiler() -> str:
    """How kernels are compiled: OWN, or PLAIN, as numba does by itself, which takes ten times as long.

    Ours leans on the inside of numba, so it is for the versions that it has been tried with; with others nothing of it
    is even imported. `CLUSTERGYM_COMPILER` (`own`, `plain`) decides otherwise.
    """
    wanted = os.environ.get("CLUSTERGYM_COMPILER", "")
    if wanted in (OWN, PLAIN):
        return wanted
    first, last = FITS
    if first <= tuple(map(int, numba.__version__.split(".")[:2])) <= last:
        return OWN
    warnings.warn(
        f"numba {numba.__version__} is none of those that clustergym's compiler is known to work with "
        f"({first[0]}.{first[1]} to {last[0]}.{last[1]}): numba compiles the kernels by itself, which gives the same "
        "results and takes minutes where ours takes seconds",
        RuntimeWarning,
        stacklevel=2,
    )
    return PLAIN


@cache
def source_key() -> str:
    """Hash of what decides how a function is compiled: versions, flags, our compiler; for numba's, all our sources."""
    flags = sys.version_info[:2], numba.config.BOUNDSCHECK, compiler()
    digest = hashlib.sha256(f"{numba.__version__} {llvmlite.__version__} {flags}".encode())
    rooms = ("simulator/compiler",) if compiler() == OWN else COMPILED_ROOMS
    for path in sorted(path for room in rooms for path in (PACKAGE / room).rglob("*.py")):
        digest.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
