"""How kernels are compiled: once for records of any size; what is told meanwhile; and numba's own way instead."""

from __future__ import annotations

import copy
import io
import json
import os
import pickle
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

from clustergym.experiments.cli import run as cli
from clustergym.policies import list as policies_of
from clustergym.simulator.compiler import compile_messages, jit
from clustergym.simulator.compiler.code_files import Store
from clustergym.simulator.compiler.extensions.bundle import Bundle
from clustergym.simulator.compiler.jit import entry, kernel, known
from clustergym.simulator.numerics import bitset
from clustergym.tests.support.paths import ROOT
from clustergym.tests.support.uncompiled import anew

compiled = pytest.mark.skipif(
    numba.config.DISABLE_JIT or jit.compiler() == jit.PLAIN, reason="nothing of ours compiles"
)


def records(length: int, rows: int, wide: int = 1) -> np.recarray:
    """Two zeroed records of one outline."""
    dtype = [
        ("n", "i8"),
        ("a", "f8", (length,)),
        ("grid", "i8", (rows, 4)),
        ("x", "f8"),
        ("small", "i1", (length,)),
        ("wide", "i8", (wide,)),
    ]
    return np.zeros(2, np.dtype(dtype, align=True)).view(np.recarray)


@known
def is_wide(s):
    return s.wide.size > 1


@kernel
def total(array):
    found = 0.0
    for i in range(array.size):
        found += array[i]
    return found


@kernel
def change(s, i):
    s.a[i] = 4.5
    s.a[i] += 1
    s.a[-1] = 2.0
    s.n += s.grid[1, i] + s.grid[-1][-2]
    s.grid[1, i] *= 2
    s.grid[0][:2] = 7
    s.small[i] = 300
    s.x = total(s.a) + total(s.a[1:3]) + s.a.size + s.grid.size


@kernel
def answer(s):
    return 1 if is_wide(s) else 0


@entry
def play(states, row, i):
    s = states[row]
    change(s, i)
    return answer(s)


def plainly(states: np.recarray, row: int, i: int) -> None:
    """What `play` does to a record, in numpy."""
    s = states[row]
    s.a[i] = 5.5
    s.a[-1] = 2.0
    s.n += s.grid[1, i] + s.grid[-1, -2]
    s.grid[1, i] *= 2
    s.grid[0, :2] = 7
    s.small[i] = 300 - 256
    s.x = s.a.sum() + s.a[1:3].sum() + s.a.size + s.grid.size


def test_a_kernel_reads_and_writes_records_of_several_sizes():
    """One size after the other, and again: no code is taken for that of another size."""
    for length, rows in ((5, 3), (9, 2), (5, 3), (6, 8)):
        ours, expected = records(length, rows), records(length, rows)
        for states in (ours, expected):
            states["grid"] = np.arange(8 * rows).reshape(2, rows, 4)
        assert play(ours, 1, 2) == 0
        plainly(expected, 1, 2)
        assert ours.tobytes() == expected.tobytes()


class Arrays(NamedTuple):
    """Arrays of several kinds."""

    count: Any  # int64 (n,)
    grid: Any  # float64 (2, n)
    flag: Any  # bool (n,)


@kernel
def add(arrays, i):
    arrays.flag[i] = not arrays.flag[i]
    arrays.count[i] += int(arrays.grid[1, i]) + arrays.count[-1]
    arrays.grid[0][i] = total(arrays.grid[1]) + arrays.grid.shape[1]


@entry
def add_often(arrays, i, times):
    for _ in range(times):
        add(arrays, i)
    return arrays.count[i]


@pytest.mark.parametrize("step", [1, 2])
def test_kernels_read_and_write_the_arrays_of_a_tuple(step):
    """1 + 3 x (20 + 5) = 76, whether the arrays lie in one piece or every second entry is theirs."""
    count, grid, flag = np.zeros(3 * step, np.int64), np.zeros((2, 3 * step)), np.zeros(3 * step, np.bool_)
    arrays = Arrays(count[::step], grid[:, ::step], flag[::step])
    arrays.count[:], arrays.grid[1], arrays.flag[1] = (9, 1, 5), (10, 20, 30), True
    assert add_often(arrays, 1, 3) == 76
    assert arrays.count.tolist() == [9, 76, 5]
    assert arrays.grid.tolist() == [[0, 63, 0], [10, 20, 30]]
    assert arrays.flag.tolist() == [False, False, False]
    assert count.sum() == 90 and grid.sum() == 123


@compiled
def test_a_kernel_gets_a_tuple_of_arrays_as_one_pointer(monkeypatch, tmp_path):
    here = anew(__name__, monkeypatch, tmp_path)
    arrays = Arrays(np.zeros(3, np.int64), np.zeros((2, 3)), np.zeros(3, np.bool_))
    here.add_often(arrays, 1, 1)
    assert any(isinstance(signature[0], Bundle) for signature in here.add.overloads)


@compiled
def test_a_kernel_is_compiled_once_for_all_sizes_and_again_for_another_answer(monkeypatch, tmp_path):
    """`total` takes an array, `change` asks nothing: once; `answer` asks whether a record is wide."""
    here = anew(__name__, monkeypatch, tmp_path)
    for length, wide in ((5, 1), (7, 1), (7, 2), (9, 3)):
        assert here.play(records(length, 3, wide), 0, 1) == (wide > 1)
    assert [len(function.signatures) for function in (here.total, here.change, here.answer)] == [1, 1, 2]
    assert len(here.play.signatures) >= 4


def test_a_copy_of_an_entry_is_the_entry():
    assert copy.deepcopy(play) is play
    assert pickle.loads(pickle.dumps(bitset.include)) is bitset.include


@compiled
def test_what_python_cannot_call_says_so():
    with pytest.raises(TypeError, match="change is a kernel for other kernels"):
        change(records(5, 3)[0], 1)


# What else a process does with numba


def account(*words: str) -> dict[str, Any]:
    command = [sys.executable, str(ROOT / "tests" / "support" / "untouched.py"), *words]
    environ = {key: value for key, value in os.environ.items() if key != "NUMBA_DISABLE_JIT"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environ, timeout=300)
    return json.loads(done.stdout)


def test_numba_is_as_it_was_after_an_import_a_kernel_and_one_that_fails():
    """Everything that its modules and classes hold; what it has learned is about types and functions of ours only."""
    assert account()["changes"] == [[], [], []]


def test_functions_of_others_come_out_as_they_do_without_us():
    """Results, signatures, events and the text of an error: before the import, after it, after kernels."""
    alone, beside = account("alone")["theirs"], account()["theirs"]
    assert alone == beside and beside.count(beside[0]) == 4


# Numba's own way

PROGRAM = """
import warnings
{before}
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    from clustergym.simulator.compiler import jit
    from clustergym.simulator.numerics import bitset
    from clustergym.simulator.compiler.jit import entry, kernel

@kernel
def inner(s, i):
    return s.a[i]

@entry
def outer(states, row, i):
    return inner(states[row], i)

import numpy as np
states = np.zeros(2, np.dtype([("a", "f8", (3,))], align=True)).view(np.recarray)
states["a"] = 2.5
level = [np.zeros(1, np.int64) for _ in range(3)]
bitset.include(*level, 5)
print(outer(states, 1, 2), jit.direct(outer, states, 0, 0)(states, 0, 0), bitset.next_member(*level, 0))
print(jit.compiler(), type(outer).__name__, [str(one.message) for one in said])
"""


def run(tmp_path: Path, before: str = "", **environ: str) -> list[str]:
    (tmp_path / "program.py").write_text(PROGRAM.format(before=before))
    known = {key: value for key, value in os.environ.items() if key not in ("NUMBA_DISABLE_JIT", "CLUSTERGYM_COMPILER")}
    outcome = subprocess.run(
        [sys.executable, str(tmp_path / "program.py")],
        check=False,
        capture_output=True,
        text=True,
        env=known | {"XDG_CACHE_HOME": str(tmp_path), "NUMBA_CACHE_DIR": ""} | environ,
        timeout=300,
        cwd=ROOT,
    )
    assert outcome.returncode == 0, outcome.stderr[-2000:]
    return outcome.stdout.splitlines()


def test_numba_compiles_by_itself_where_that_is_asked(tmp_path):
    """And the files go to our folder all the same."""
    assert run(tmp_path, CLUSTERGYM_COMPILER="plain") == ["2.5 2.5 5", "plain CPUDispatcher []"]
    assert list(tmp_path.glob("clustergym/*/**/*.nbi"))


def test_an_unknown_numba_compiles_by_itself_with_one_warning(tmp_path):
    result, told = run(tmp_path, before="import numba; numba.__version__ = '0.99.1'")
    assert result == "2.5 2.5 5"
    assert told.startswith('plain CPUDispatcher ["numba 0.99.1 is none of those') and told.count("numba 0.99.1") == 1


def test_our_compiler_can_be_asked_for_whatever_the_version(tmp_path):
    before = "import numba; numba.__version__ = '0.99.1'"
    assert run(tmp_path, before, CLUSTERGYM_COMPILER="own") == ["2.5 2.5 5", "own Entry []"]


# What is told


class Terminal(io.StringIO):
    """A stream that takes itself for a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def quick(monkeypatch):
    """Patience is short, and so is a second."""
    monkeypatch.setattr(compile_messages, "PATIENCE_S", 0.05)
    monkeypatch.setattr(compile_messages, "TICK_S", 0.02)
    monkeypatch.setattr(compile_messages, "LINE_S", 0.1)


def wait(about: str, seconds: float = 0.3) -> None:
    with compile_messages.about(about), compile_messages.waiting_message():
        time.sleep(seconds)


def test_on_a_terminal_one_line_is_refreshed_and_goes(quick, monkeypatch):
    monkeypatch.setattr(sys, "stderr", said := Terminal())
    wait("a thing for up to 3 jobs")
    lines = said.getvalue().split("\r\x1b[2K")
    assert lines[1] == "clustergym: compiling a thing for up to 3 jobs (once): 0 s"
    assert len(lines) > 4 and lines[-1] == "" and "\n" not in said.getvalue()


def test_elsewhere_a_line_says_it_and_others_how_long_it_takes(quick, monkeypatch):
    monkeypatch.setattr(sys, "stderr", said := io.StringIO())
    wait("another thing")
    wait("another thing")
    first, *others = said.getvalue().splitlines()
    assert first == "clustergym: compiling another thing (once) ..."
    assert others and all(re.fullmatch(r"clustergym: compiling another thing: \d s so far", line) for line in others)


def test_what_is_soon_over_is_not_worth_a_word(quick, monkeypatch):
    monkeypatch.setattr(sys, "stderr", said := io.StringIO())
    wait("a little", 0.0)
    assert said.getvalue() == ""


def test_a_bar_says_it_instead(quick, monkeypatch):
    monkeypatch.setattr(sys, "stderr", said := io.StringIO())
    told: list[str | None] = []
    with compile_messages.messages_to(told.append):
        wait("a third thing")
    assert told[0] == "compiling a third thing (once): 0 s" and told[-1] is None and said.getvalue() == ""


@compiled
def test_what_other_kernels_need_later_is_told_too(quick, monkeypatch, tmp_path):
    """Something of the same size was compiled before: nothing is taken for ready because of that."""
    monkeypatch.setattr(jit, "_store", lambda: Store(lambda: tmp_path))
    monkeypatch.setattr(sys, "stderr", said := io.StringIO())
    for name, addend in (("one", 1), ("two", 2)):
        function = entry(eval(f"lambda x: x + {addend}"))
        with compile_messages.about(f"{name} thing"):
            slow(function, monkeypatch)
            assert function(1) == 1 + addend
    assert "compiling one thing" in said.getvalue() and "compiling two thing" in said.getvalue()


def slow(function: Any, monkeypatch: Any) -> None:
    """Let its compiling take a while."""
    compile_it = function._compile

    def compile_slowly(*arguments: Any) -> Any:
        time.sleep(0.2)
        return compile_it(*arguments)

    monkeypatch.setattr(function, "_compile", compile_slowly)


def test_one_process_compiles_and_others_wait(tmp_path):
    """Here threads: a lock of a file is its opener's."""
    store, order = Store(lambda: tmp_path), []
    entered = threading.Event()

    def first() -> None:
        with store.alone("key", compile_messages.waiting_message()):
            entered.set()
            time.sleep(0.2)
            order.append("first")

    thread = threading.Thread(target=first)
    thread.start()
    entered.wait()
    with store.alone("key", compile_messages.waiting_message()):
        order.append("second")
    thread.join()
    assert order == ["first", "second"]


# Ahead of time


def test_warm_plays_an_environment_and_its_policies(capsys):
    assert cli(["warm", "Grouping", "--json", "--quiet"]) == 0
    found = json.loads(capsys.readouterr().out)
    (row,) = found["environments"]
    assert (row["environment"], row["parts"]) == (
        "clustergym/Grouping-v0",
        1 + len(policies_of("clustergym/Grouping-v0")),
    )
    assert found["cache_bytes"] > 0 or jit.compiler() == jit.PLAIN or numba.config.DISABLE_JIT


def test_warm_of_an_unknown_environment_is_a_mistake(capsys):
    assert cli(["warm", "Grupping"]) == 2
    assert "Grouping" in capsys.readouterr().err
