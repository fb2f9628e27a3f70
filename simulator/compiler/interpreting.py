"""Python in place of code that is not compiled yet: a few steps wait for no compiler.

Kernels give the same bits either way (`NUMBA_DISABLE_JIT=1` runs all of them so). What no cache holds is compiled when
Python has spent a third of the time on it that compiling takes. So a look at an environment costs a second, and work
that lasts loses no more than that third. Callers of long work call `compile_at_once`, or set
`CLUSTERGYM_COMPILER=own`.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import CellType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

from .function_keys import reached_by
from .toolchain import OWN

PATIENCE_S = 33e-6  # CPU seconds for a byte of bytecode, of which some 100 us go into compiling it
_patience_s = [0.0 if os.environ.get("CLUSTERGYM_COMPILER") == OWN else PATIENCE_S]
_SPACES: dict[int, dict[str, Any]] = {}  # by what they are copies of


def compile_at_once() -> None:
    """From now on Python runs nothing in this process in place of code that can be compiled."""
    _patience_s[0] = 0.0


class Interpreted:
    """A function as Python runs it."""

    def __init__(self, function: Any) -> None:
        self._function = in_python(function)
        self._bytes, self._spent_s = sum(len(one.__code__.co_code) for one in reached_by(function)), 0.0

    @property
    def may_wait(self) -> bool:
        """Whether it need not be compiled yet; a debugger that looks at each line would look at kernels too."""
        return self._spent_s < _patience_s[0] * self._bytes and sys.gettrace() is None

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """What it returns."""
        began_s = time.thread_time()
        try:
            with np.errstate(all="ignore"), _in_one_go():
                return self._function(*map(_quick, arguments), **named)
        finally:
            self._spent_s += time.thread_time() - began_s

    def until(self, compiled: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
        """What calls it as long as that may wait, and then the machine code that `compiled` gives."""
        code: Callable[..., Any] | None = None

        def call(*arguments: Any) -> Any:
            nonlocal code
            if code is None:
                if self.may_wait:
                    return self(*arguments)
                code = compiled()
            return code(*arguments)

        return call


def in_python(function: Any) -> Any:
    """A copy of a function that calls copies of its kernels, as Python runs them."""
    closure = function.__closure__ and tuple(CellType(_for_python(cell.cell_contents)) for cell in function.__closure__)
    space = _space_of(function.__globals__)
    return FunctionType(function.__code__, space, function.__name__, function.__defaults__, closure)


def _space_of(names: dict[str, Any]) -> dict[str, Any]:
    if id(names) not in _SPACES:
        space = _SPACES[id(names)] = {}
        space.update((name, _for_python(value)) for name, value in names.items())
    return _SPACES[id(names)]


def _for_python(value: Any) -> Any:
    if isinstance(value, Dispatcher):
        return in_python(value.py_func)
    if isinstance(value, ModuleType) and any(isinstance(member, Dispatcher) for member in vars(value).values()):
        return _Names(_space_of(vars(value)))
    return value


class _Names:
    """The names of a module as attributes."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.__dict__ = names


@contextmanager
def _in_one_go() -> Iterator[None]:
    """Keep Ctrl-C until the end, as machine code does: in the midst a record is neither as before nor as after."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is None:
        yield
        return
    heard: list[Any] = []
    before = signal.signal(signal.SIGINT, lambda *arguments: heard.append(arguments))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if heard and callable(before):
            before(*heard[0])


def _quick(argument: Any) -> Any:
    """An array of records whose fields Python finds ten times as fast; anything else as it is."""
    if not isinstance(argument, np.recarray):
        return argument
    return argument.view(np.ndarray).view(np.dtype((_row_type(argument.dtype), argument.dtype)))


@cache
def _row_type(dtype: np.dtype) -> type:
    """A record whose fields are attributes of the class; np.record looks each up in Python."""
    fields: Any = dtype.fields
    return type("Row", (np.void,), {name: _field(name, *place[:2]) for name, place in fields.items()})


def _field(name: str, kind: np.dtype, offset: int) -> Any:
    if kind.shape:
        return _Array(name, kind, offset)
    return property(
        lambda row: row.getfield(kind, offset),
        lambda row, value: row.setfield(value, kind, offset),
    )


class _Array:
    """A field with an array, which a record makes once."""

    def __init__(self, name: str, kind: np.dtype, offset: int) -> None:
        self._name, self._kind, self._offset = name, kind, offset

    def __get__(self, row: Any, _owner: type) -> Any:
        row.__dict__[self._name] = found = row.getfield(self._kind, self._offset)
        return found
