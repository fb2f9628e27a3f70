"""What the code of a function is made from: its bytecode, the values of the names in it, and all functions it may call.

Code is kept by this, so an edit of a kernel or of a constant compiles the kernels anew that it is part of, and no
others; an edit that changes no bytecode, of a comment say, compiles nothing.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numba.core.dispatcher import Dispatcher

from .code_files import key_of

CONSTANTS = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), np.generic)
NAMED_BY_VERSION = ("builtins", "math", "numba", "numpy")  # what is theirs has a name; versions have other folders
_OWN: WeakKeyDictionary[Any, tuple[str, tuple[Any, ...]]] = WeakKeyDictionary()  # by function


def named_by(function: Any) -> dict[str, Any]:
    """What the names in a function mean: globals, what it encloses, and "module.name" of the modules among them."""
    names = dict.fromkeys(_names(function.__code__))
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    found = {name: function.__globals__[name] for name in names if name in function.__globals__}
    found |= {name: cell.cell_contents for name, cell in cells}
    modules = {name: value for name, value in found.items() if isinstance(value, ModuleType)}
    while modules:
        inside = {
            f"{path}.{name}": vars(module)[name]
            for path, module in modules.items()
            for name in names
            if name in vars(module)
        }
        modules = {path: value for path, value in inside.items() if isinstance(value, ModuleType) and path not in found}
        found |= inside
    return found


def made_from(function: Any) -> str:
    """Hash of all that the code of a function is made from."""
    return key_of(_own(function)[0], *sorted(_own(one)[0] for one in reached_by(function)))


def reached_by(function: Any) -> set[Any]:
    """The function and all that it may call."""
    found, left = set(), [function]
    while left:
        one = left.pop()
        if one not in found:
            found.add(one)
            left += _own(one)[1]
    return found


def _own(function: Any) -> tuple[str, tuple[Any, ...]]:
    """Hash of what is its own, and the functions that it names."""
    known = _OWN.get(function)
    if known is None:
        named = named_by(function)
        values = [f"{name} {_said(named[name])}" for name in sorted(named)]
        text = key_of(
            _title(function), _code_said(function.__code__, function.__doc__), _said(function.__defaults__), *values
        )
        known = _OWN[function] = text, tuple(v.py_func for v in named.values() if isinstance(v, Dispatcher))
    return known


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _title(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}.{value.__name__}"


def _code_said(code: CodeType, doc: str | None) -> str:
    constants = [constant for place, constant in enumerate(code.co_consts) if place or constant != doc]
    parts = (
        code.co_code, code.co_exceptiontable, code.co_flags, code.co_argcount, code.co_kwonlyargcount,
        code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars,
    )  # fmt: skip
    return f"{parts} {[_said(constant) for constant in constants]}"


def _said(value: Any) -> str:
    """A value in words: equal only where the code that it gets into is."""
    if isinstance(value, CONSTANTS):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, tuple | frozenset):
        members = [_said(member) for member in value]
        names = getattr(value, "_fields", "")  # of a named tuple: kernels read its members by them
        return f"{type(value).__name__} {names} {members if isinstance(value, tuple) else sorted(members)}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype.descr} {value.shape} {value.tobytes()!r}"
    if isinstance(value, CodeType):
        return _code_said(value, None)
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, Dispatcher):  # what it calls follows by itself; `answer_by_type`: see `jit.known`
        function = value.py_func
        enclosed = _own(function)[0] if function.__closure__ else ""  # many have one title: which of them is it?
        return f"{_title(function)} {enclosed} {value.targetoptions} {hasattr(value, 'answer_by_type')}"
    if not hasattr(value, "__qualname__"):
        return f"{type(value)} {value!r}"
    return f"{_title(value)} {_text_of(value.__module__)}"


@cache
def _text_of(module: str) -> str:
    """Hash of the source that something is from which is neither a value nor a kernel."""
    path = Path(getattr(sys.modules.get(module), "__file__", None) or "")
    if module.partition(".")[0] in NAMED_BY_VERSION or path.suffix != ".py" or not path.is_file():
        return ""
    return hashlib.sha256(path.read_bytes()).hexdigest()
