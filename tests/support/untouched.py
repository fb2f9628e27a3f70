"""Whether numba is as it was after clustergym was imported, has compiled kernels, and has failed at one.

    python tests/support/untouched.py alone   what becomes of others' functions without clustergym
    python tests/support/untouched.py         the same, between our kernels; and what of numba is another one

Prints JSON: {"theirs": [[text]] by moment, "changes": [[place or rule]] by moment}.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys
from types import BuiltinFunctionType, FunctionType, ModuleType, NoneType
from typing import Any

import numba
import numpy as np
from numba.core import errors, event, imputils
from numba.core.typing import templates

VALUES = (FunctionType, BuiltinFunctionType, ModuleType, NoneType, type, property, classmethod, staticmethod)
VALUES += (str, int, float, bool, tuple)


def places() -> dict[str, Any]:
    """What the modules and classes of numba and llvmlite hold: functions, classes and settings, by name."""
    found: dict[str, Any] = {}
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] not in ("numba", "llvmlite"):
            continue
        for one, value in list(vars(module).items()):
            if isinstance(value, VALUES):
                found[f"{name}.{one}"] = value
            if isinstance(value, type) and value.__module__ == name:
                members = {key: member for key, member in vars(value).items() if isinstance(member, VALUES)}
                found |= {f"{name}.{one}.{key}": member for key, member in members.items()}
    return found


def rules() -> list[list[tuple[Any, ...]]]:
    """The functions and types of which numba has been told how calls, attributes and casts are compiled."""
    typing, lowering = templates.builtin_registry, imputils.builtin_registry
    found = [[(called, *kinds) for _, called, kinds in lowering.functions], [kinds for _, kinds in lowering.casts]]
    found += [[kinds for _, _, kinds in rules] for rules in (lowering.getattrs, lowering.setattrs)]
    found += [[(rule.key,) for rule in rules] for rules in (typing.functions, typing.attributes)]
    return [*found, [(value,) for value, _ in typing.globals]]


def is_ours(value: Any) -> bool:
    """Whether a function or a type is clustergym's."""
    return "clustergym" in (getattr(value, "__module__", None) or type(value).__module__)


class Account:
    """What numba was when this was made."""

    def __init__(self) -> None:
        self.places, self.known = places(), [len(kind) for kind in rules()]

    def changes(self) -> list[str]:
        """Places that hold something else or nothing, and new rules that are about nothing of clustergym's."""
        now = places()
        changed = [name for name, value in self.places.items() if now.get(name, self) is not value]
        new = [rule for kind, known in zip(rules(), self.known, strict=True) for rule in kind[known:]]
        return sorted(changed) + [repr(rule) for rule in new if not any(map(is_ours, rule))]


def theirs() -> list[str]:
    """What becomes of others' functions that are compiled now, and of one that cannot be."""

    @numba.njit
    def add(values: Any) -> Any:
        total = 0.0
        for value in values:
            total += value
        return total

    @numba.njit
    def of_records(records: Any) -> Any:
        return add(records[1].a) + records[0].a[-1]

    @numba.njit
    def wrong(x: Any) -> Any:
        return x.nothing + 1

    records = np.zeros(2, np.dtype([("a", "f8", (3,)), ("n", "i8")], align=True)).view(np.recarray)
    records.a[:] = [[1.5, 2.5, 3.5], [0.1, 0.2, 0.3]]
    with event.install_recorder("numba:compile") as heard:
        said = [repr(add(np.arange(5.0))), repr(add((1.0, 2.5))), repr(of_records(records))]
    said += [f"{len(heard.buffer)} events", str(add.nopython_signatures), str(of_records.nopython_signatures)]
    try:
        wrong(1)
    except errors.TypingError as error:
        said.append(str(error))
    return said


def kernels() -> Any:
    """Compile an entry, its kernel and another's function that it calls; then try one that cannot be."""
    from clustergym.simulator.compiler.interpreting import compile_at_once
    from clustergym.simulator.compiler.jit import entry, kernel

    compile_at_once()

    @numba.njit
    def half(x: Any) -> Any:
        return 0.5 * x

    @kernel
    def inner(s: Any, i: Any) -> Any:
        return half(s.a[i])

    @entry
    def outer(states: Any, row: Any, i: Any) -> Any:
        return inner(states[row], i)

    @entry
    def wrong(states: Any, row: Any) -> Any:
        return inner(states[row], row.nothing)

    states = np.full(2, 3.0, np.dtype([("a", "f8", (3,))], align=True)).view(np.recarray)
    assert outer(states, 1, 2) == half(3.0) == 1.5
    try:
        wrong(states, 0)
    except errors.TypingError:
        return
    raise AssertionError("what cannot be compiled was")


def everything() -> None:
    """Import all of the simulator, and an environment."""
    for room in map(importlib.import_module, ("clustergym.simulator", "clustergym.envs.delay")):
        for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            importlib.import_module(module.name)


if __name__ == "__main__":
    said, changes = [theirs()], []
    account = Account()
    for step in (everything, kernels, everything):
        if sys.argv[1:] != ["alone"]:
            step()
        changes.append(account.changes())
        said.append(theirs())
    print(json.dumps({"theirs": said, "changes": changes}))
