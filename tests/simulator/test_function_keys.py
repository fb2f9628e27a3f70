"""Compiled code is kept by all that it is made from: an edit compiles what it is part of, and nothing old runs."""

from __future__ import annotations

import importlib
import os
import pkgutil
import random
import subprocess
import sys
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numba
import pytest

import clustergym
from clustergym.simulator.compiler import function_keys, jit, toolchain
from clustergym.simulator.compiler.code_files import Store
from clustergym.simulator.compiler.function_keys import made_from
from clustergym.tests.support.paths import ROOT

compiled = pytest.mark.skipif(
    numba.config.DISABLE_JIT or jit.compiler() == jit.PLAIN, reason="nothing of ours compiles"
)


# Kernels of the package


def kernels() -> dict[str, FunctionType]:
    """The functions of all kernels, by module and name."""
    found = {}
    for room in toolchain.COMPILED_ROOMS:
        for info in pkgutil.walk_packages([str(ROOT / room)], f"clustergym.{room}."):
            for value in vars(importlib.import_module(info.name)).values():
                function = getattr(value, "py_func", None)
                if function is not None and function.__module__.startswith(clustergym.__name__):
                    found[f"{function.__module__}.{function.__qualname__}"] = function
    return found


def compiled_anew(monkeypatch: Any, edits: dict[str, CodeType]) -> set[str]:
    """The kernels whose code is another one, once these have other bytecode."""
    functions = kernels()
    before = {name: made_from(function) for name, function in functions.items()}
    monkeypatch.setattr(function_keys, "_OWN", {})
    for name, code in edits.items():
        monkeypatch.setattr(functions[name], "__code__", code)
    return {name for name, function in functions.items() if made_from(function) != before[name]}


def edited(name: str) -> dict[str, CodeType]:
    """One more number in the bytecode's table."""
    code = kernels()[name].__code__
    return {name: code.replace(co_consts=(*code.co_consts, 4711))}


@compiled
@pytest.mark.parametrize(
    ("name", "at_least", "at_most", "rooms"),
    [
        ("policies.cassini.overlap._write_amounts", 2, 5, {"policies"}),
        ("policies.mast.auction._serve", 3, 20, {"policies", "envs"}),
        ("policies.dally._timer_of", 40, 110, {"policies", "envs"}),  # Delay-v0 shows its timers
        ("envs.delay.observation._observe_cluster", 3, 12, {"envs"}),
        ("simulator.groups.kernels.group_life.begin", 3, 60, {"simulator", "envs"}),
        ("simulator.lifecycle.lifecycle.start", 30, 100, {"simulator", "envs", "policies"}),
    ],
)
def test_an_edit_of_a_kernel_compiles_those_that_it_is_part_of(name, at_least, at_most, rooms, monkeypatch):
    """Of some 1,350; its callers, and theirs."""
    changed = compiled_anew(monkeypatch, edited(f"clustergym.{name}"))
    assert f"clustergym.{name}" in changed
    assert at_least <= len(changed) <= at_most
    assert {one.split(".")[1] for one in changed} == rooms


@compiled
def test_what_reaches_the_edit_is_compiled_anew(monkeypatch):
    """By the names in the code, asked of Python by itself."""
    functions = kernels()

    def called(function: FunctionType) -> set[str]:
        names, found = set(function.__code__.co_names), set()
        modules = [v for k, v in function.__globals__.items() if k in names and isinstance(v, ModuleType)]
        for scope in (function.__globals__, *map(vars, modules)):
            for value in [v for k, v in scope.items() if k in names and hasattr(v, "py_func")]:
                found.add(f"{value.py_func.__module__}.{value.py_func.__qualname__}")
        return found

    calls = {name: called(function) for name, function in functions.items()}
    for name in random.Random(3).sample(sorted(functions), 12):
        reached, grown = {name}, True
        while grown:
            more = {one for one, others in calls.items() if others & reached} - reached
            reached, grown = reached | more, bool(more)
        with monkeypatch.context() as inside:
            assert compiled_anew(inside, edited(name)) == reached


SAID = """
import numpy as np
from clustergym.envs.delay.delay_transition import KERNELS
from clustergym.envs.geo.geo_transition import step_rows as of_geo
from clustergym.simulator.compiler.function_keys import made_from
print(made_from(KERNELS.step_rows.py_func), made_from(of_geo.py_func))
"""


@compiled
def test_every_process_has_the_same_keys():
    """Whatever order Python gives to the members of a set."""
    said = {
        subprocess.run(
            [sys.executable, "-c", SAID],
            check=True,
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": seed},
        ).stdout
        for seed in "123"
    }
    assert len(said) == 1


# Random programs, edited at random


PROGRAM = {
    "numbers": "A, B, TABLE = {a}, {b}, ({c}, {d}, {a})\n",
    "deep": """
import numbers_ as numbers
from compiler_ import entry, kernel
from numbers_ import A

@kernel
def first(x):
    return x {plus} A

@kernel
def second(x):
    return x * numbers.B - {e}
""",
    "deeper": """
from typing import Any, NamedTuple
import deep_
from compiler_ import entry, kernel
from deep_ import {which} as chosen
from numbers_ import TABLE

class Pair(NamedTuple):
    {left}: Any
    {right}: Any

def made(number):
    @kernel
    def enclosing(x, more={f}):
        return number * x + more
    return enclosing

enclosed = made({g})

@kernel
def difference(pair, i):
    return pair.one[i] - {h} * pair.two[i]

@entry
def play(pair, x):
    total = enclosed(x) + TABLE[x % 3]
    for number in ({i}, {j}):
        total += chosen(number) + deep_.second(x) * number
    return total + difference(pair, 0)
""",
}
NUMBERS = "abcdefghij"


def loaded(slots: dict[str, Any], compiler: ModuleType) -> ModuleType:
    """The program with these edits, in modules of its own."""
    modules = {"compiler_": compiler}
    for name, text in PROGRAM.items():
        module = ModuleType(f"{name}_")
        modules[module.__name__] = module
        before = {one: sys.modules.get(one) for one in modules}
        sys.modules.update(modules)
        try:
            exec(compile(text.format(**slots), f"{name}_.py", "exec"), vars(module))
        finally:
            for one, was in before.items():
                sys.modules.pop(one)
                if was is not None:
                    sys.modules[one] = was
    return module


def compiler_of(decorator: Any) -> ModuleType:
    found = ModuleType("compiler_")
    found.kernel = found.entry = decorator  # type: ignore[attr-defined]
    return found


def edit(slots: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    kind = rng.choice([*NUMBERS, "plus", "which", "fields"])
    if kind == "plus":
        return slots | {"plus": rng.choice("+-*")}
    if kind == "which":
        return slots | {"which": rng.choice(["first", "second"])}
    if kind == "fields":
        return slots | {"left": slots["right"], "right": slots["left"]}
    return slots | {kind: rng.choice([0, 1, 2, 7, -3])}


@compiled
def test_random_edits_give_what_is_computed_without_a_cache(monkeypatch, tmp_path):
    """One cache for all; what was there before, in another process, is found again and not compiled."""
    import numpy as np

    monkeypatch.setattr(jit, "_store", lambda: Store(lambda: tmp_path))
    both = ModuleType("compiler_")
    both.kernel, both.entry = jit.kernel, jit.entry  # type: ignore[attr-defined]
    arrays = np.array([5.0]), np.array([11.0])
    rng, seen, misses = random.Random(5), set(), 0
    slots: dict[str, Any] = dict.fromkeys(NUMBERS, 1) | {"plus": "+", "which": "first", "left": "one", "right": "two"}
    for turn in range(40):
        module, plain = loaded(slots, both), loaded(slots, compiler_of(lambda function: function))
        found = [module.play(module.Pair(*arrays), x) for x in (0, 1, 5)]
        assert found == [plain.play(plain.Pair(*arrays), x) for x in (0, 1, 5)], (turn, slots)
        was = tuple(slots.values())
        missed = sum(module.play.stats.cache_misses.values())
        assert missed == (was not in seen), "what was compiled is found again, and nothing else is"
        misses += missed
        seen.add(was)
        slots = edit(slots, rng) if rng.random() < 0.8 else slots
    assert 15 < misses < 40


def test_a_comment_and_a_docstring_change_no_code():
    texts = ["def f(x):\n    return x + 1\n", 'def f(x):\n    """Says."""\n    # why\n    return x + 1\n']
    keys = set()
    for text in [*texts, "def f(x):\n    return x + 2\n"]:
        scope: dict[str, Any] = {"__name__": "some"}
        exec(text, scope)
        keys.add(made_from(scope["f"]))
    assert len(keys) == 2
