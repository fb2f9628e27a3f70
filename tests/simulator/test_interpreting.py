"""What Python runs before it is compiled: the same results, for so long, and in one go."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import numpy as np
import pytest

from clustergym.simulator.compiler import interpreting
from clustergym.simulator.compiler.jit import direct, entry, kernel, search
from clustergym.simulator.numerics import instructions
from clustergym.tests.support.uncompiled import anew

compiled = pytest.mark.skipif(bool(os.environ.get("NUMBA_DISABLE_JIT")), reason="nothing is compiled")


@kernel
def grow(s, by):
    s.total += by
    s.cells[1] = s.total / 0.0 if by > 5 else s.total
    return s.cells.size


@entry
def play(states, row, by):
    return grow(states[row], by) + instructions.trailing_zeros(states[row].words[0])


@search
def last(states, row):
    return grow(states[row], 1)


@entry
def interrupted(states, row, process, number):
    kill(process, number)
    for _ in range(1000):
        states[row].total += 1
    return states[row].total


kill = os.kill


def records(cells: int = 4) -> Any:
    fields = [("total", "i8"), ("words", "i8", (2,)), ("cells", "f8", (cells,))]
    made = np.zeros(1, np.dtype(fields, align=True)).view(np.recarray)
    made["words"][0] = 0b1000
    return made


@pytest.fixture
def here(monkeypatch, tmp_path):
    """This module with nothing compiled, in a process that has compiled nothing yet."""
    monkeypatch.setattr(interpreting, "_patience_s", [1.0])
    return anew(__name__, monkeypatch, tmp_path)


@compiled
def test_python_runs_what_no_cache_holds_and_later_the_code_does(here):
    """4 cells, and bit 3 of 0b1000 is its first: 7. Numbers that are divided by 0 are infinite either way."""
    made, expected = records(), records()
    assert here.play(made, 0, 2) == 7
    code = direct(here.play, made, 0, 2)
    assert code(made, 0, 7) == 7
    assert not here.play.signatures and not here.grow.signatures
    interpreting.compile_at_once()
    assert here.play(expected, 0, 2) == code(expected, 0, 7) == 7
    assert here.play.signatures and here.grow.signatures
    assert made.tobytes() == expected.tobytes()
    assert made["total"][0] == 9 and np.isinf(made["cells"][0, 1])


@compiled
def test_records_of_two_sizes_have_code_of_their_own(here):
    """6 cells: 9."""
    small, large = records(), records(6)
    codes = direct(here.play, small, 0, 1), direct(here.play, large, 0, 1)
    assert [code(made, 0, 1) for code, made in zip(codes, (small, large), strict=True)] == [7, 9]
    interpreting.compile_at_once()
    assert [code(made, 0, 1) for code, made in zip(codes, (small, large), strict=True)] == [7, 9]
    assert len(here.play.signatures) == 2


@compiled
def test_it_lasts_a_third_of_what_compiling_takes(here, monkeypatch):
    monkeypatch.setattr(interpreting, "_patience_s", [1e-12])
    assert here.play(records(), 0, 1) == here.play(records(), 0, 1) == 7
    assert here.play.signatures


@compiled
def test_a_search_is_compiled_at_once_and_so_is_what_a_debugger_looks_at(here, monkeypatch):
    assert here.last(records(), 0) == 4 and here.last.signatures
    monkeypatch.setattr(sys, "gettrace", lambda: print)
    assert here.play(records(), 0, 1) == 7 and here.play.signatures


@compiled
def test_ctrl_c_waits_until_a_record_is_whole(here):
    made = records()
    with pytest.raises(KeyboardInterrupt):
        here.interrupted(made, 0, os.getpid(), signal.SIGINT)
    assert made["total"][0] == 1000
