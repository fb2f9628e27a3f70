"""Compiled code that came with the package, asked before the user's cache: entries, for processors of a portable kind.

Building a wheel with CLUSTERGYM_PREBUILT=1 puts it there (setup.py); a clone has none. It lies in a folder of the
same name as that of the user's cache, so what another numba or another Python has made is not found at all.
"""

from __future__ import annotations

import json
import platform
import sys
from functools import cache
from pathlib import Path

import llvmlite
import numba

from . import compile_messages
from .code_files import Store
from .toolchain import source_key

FOLDER = Path(__file__).with_name("ready")
MADE_BY = FOLDER / "made_by.json"
# By machine: the processors that code is made for, best first, and what one must have to run it, by LLVM's names.
# Code for x86-64-v3 was no faster (Delay-v0's steps, the event loop), and would double a wheel.
PROCESSORS = {
    "x86_64": {"x86-64-v2": "cx16 popcnt sahf sse3 sse4.1 sse4.2 ssse3"},
    "aarch64": {"generic": ""},
}
STORE = Store(lambda: FOLDER / source_key(), compile_messages.remark, is_ours=False)


@cache
def came() -> bool:
    """Whether the package has compiled code at all."""
    return MADE_BY.exists()


@cache
def fitting(host: tuple[str, str, str]) -> list[tuple[str, str, str]]:
    """As numba names them, the portable processors whose code runs on this one, best first.

    Args:
        host: triple, name and features ("+avx,-avx2") of this processor, or what numba was set to take it for.
    """
    triple, _, features = host
    has = {name[1:] for name in features.split(",") if name.startswith("+")}
    known = PROCESSORS.get(triple.partition("-")[0], {})
    return [(triple, name, "") for name, needs in known.items() if has.issuperset(needs.split())]


def maker() -> dict[str, str]:
    """What makes code here, as MADE_BY has it."""
    python = "{}.{}".format(*sys.version_info[:2])
    return {
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "python": python,
        "machine": platform.machine(),
    }


@cache
def say_if_unfit(host: tuple[str, str, str]) -> None:
    """Something is compiled: say once why what came with the package is not used at all, if it is not."""
    if not came() or ((FOLDER / source_key()).exists() and fitting(host)):
        return
    try:
        theirs = json.loads(MADE_BY.read_text())
    except ValueError:
        theirs = {}
    differing = [f"{name} {theirs.get(name)}, here {own}" for name, own in maker().items() if theirs.get(name) != own]
    if not differing:
        processors = " or ".join(PROCESSORS.get(platform.machine(), ["another"]))
        differing = [f"processor {processors}, here {host[1]}" if not fitting(host) else "other settings"]
    compile_messages.remark(
        f"the compiled kernels of this package are for {', '.join(differing)}: they are compiled anew, once"
    )
