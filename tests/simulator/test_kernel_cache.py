"""Whatever lies in the cache of compiled kernels, what is computed is right; what is damaged goes, and is told of."""

from __future__ import annotations

import errno
import os
import pickle
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from clustergym.simulator.compiler import jit
from clustergym.simulator.compiler.code_files import SEAL, Store, sealed, unsealed
from clustergym.simulator.compiler.jit import entry, kernel
from clustergym.tests.support.uncompiled import anew

compiled = pytest.mark.skipif(
    numba.config.DISABLE_JIT or jit.compiler() == jit.PLAIN, reason="nothing of ours compiles"
)


@kernel
def twice(values):
    total = 0.0
    for i in range(values.size):
        total += 2.0 * values[i]
    return total


@entry
def answer(values, plus):
    return twice(values) + plus


def flipped(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


DAMAGES: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "empty": lambda data, rng: b"",
    "cut": lambda data, rng: data[: rng.randrange(1, len(data))],
    "zeroed": lambda data, rng: bytes(len(data)),
    "flipped": flipped,
    "longer": lambda data, rng: data + b"\0",
    "foreign": lambda data, rng: b"#!/bin/sh\necho hello\n",
    "a pickle that would run": lambda data, rng: pickle.dumps(Harmful()),
}


class Harmful:
    def __reduce__(self) -> Any:
        return os._exit, (3,)


def played(monkeypatch: Any, folder: Path) -> tuple[float, list[str]]:
    """What the kernels give in a process that knows nothing yet, and what it tells."""
    told: list[str] = []
    here = anew(__name__, monkeypatch, folder)
    store = Store(lambda: folder, told.append)
    for function in (here.twice, here.answer, here.answer.kernel):
        function._store = store
    return here.answer(np.array([1.0, 2.5]), 3), told


@compiled
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_are_removed_and_compiled_anew(damage: str, monkeypatch, tmp_path):
    assert played(monkeypatch, tmp_path) == (10.0, [])
    rng = random.Random(0)
    files = sorted(tmp_path.rglob("*.code"))
    for path in files:
        path.write_bytes(DAMAGES[damage](path.read_bytes(), rng))
    found, told = played(monkeypatch, tmp_path)
    assert found == 10.0
    assert told == [f"removed a damaged file of compiled kernels in {tmp_path}; it is compiled anew"]
    assert played(monkeypatch, tmp_path) == (10.0, [])  # it has healed


@compiled
def test_files_that_are_whole_but_of_something_else_are_compiled_anew(monkeypatch, tmp_path):
    """Sealed, but by a version that kept other things; and that of another kernel under this one's name."""
    played(monkeypatch, tmp_path)
    files = sorted(tmp_path.rglob("*.code"))
    for path in files:
        path.write_bytes(sealed(path.stem, pickle.dumps({"of": "another version"})))
    found, told = played(monkeypatch, tmp_path)
    assert (found, len(told)) == (10.0, 1)
    contents = [path.read_bytes() for path in files]
    for path, content in zip(files, contents[1:] + contents[:1], strict=True):
        path.write_bytes(content)
    found, told = played(monkeypatch, tmp_path)
    assert (found, len(told)) == (10.0, 1)


@compiled
def test_what_is_no_file_is_no_reason_to_wait_or_to_stop(monkeypatch, tmp_path):
    played(monkeypatch, tmp_path)
    first, *rest = sorted(tmp_path.rglob("*.code"))
    first.unlink()
    first.mkdir()
    for path in rest:
        path.unlink()
        os.mkfifo(path)
        path.with_suffix(".lock").unlink(missing_ok=True)
        os.mkfifo(path.with_suffix(".lock"))
    found, told = played(monkeypatch, tmp_path)
    assert found == 10.0 and any(str(tmp_path) in sentence for sentence in told)


@compiled
def test_a_full_disk_is_told_of_once_and_costs_only_time(monkeypatch, tmp_path):
    def full(path: Path, data: bytes) -> int:
        with open(path, "wb") as file:
            file.write(data[:7])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    found, told = played(monkeypatch, tmp_path)
    assert found == 10.0
    assert told == [
        f"compiled kernels cannot be kept in {tmp_path} (No space left on device); every process compiles them anew"
    ]
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".lock"]


def test_every_flip_of_a_bit_is_noticed():
    content = sealed("key", b"machine code")
    assert unsealed("key", content) == b"machine code"
    assert unsealed("other", content) is None
    for bit in range(8 * len(content)):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        assert unsealed("key", bytes(changed)) is None
    assert unsealed("key", content[:SEAL]) is None


PROGRAM = """
import numpy as np
from clustergym.simulator.compiler.jit import entry, kernel

@kernel
def twice(values):
    total = 0.0
    for i in range(values.size):
        total += 2.0 * values[i]
    return total

@entry
def answer(values, plus):
    return twice(values) + plus

print(answer(np.array([1.0, 2.5]), 3))
"""


def started(folder: Path, compiler: str) -> subprocess.Popen[str]:
    script = folder / "program.py"
    if not script.exists():
        script.write_text(PROGRAM)
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "CLUSTERGYM_COMPILER": compiler}
    environment.pop("NUMBA_CACHE_DIR", None)
    return subprocess.Popen(
        [sys.executable, str(script)], env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


@pytest.mark.parametrize("compiler", [jit.OWN, jit.PLAIN])
def test_two_processes_that_begin_with_an_empty_cache_both_work(compiler: str, tmp_path):
    for process in [started(tmp_path, compiler) for _ in range(2)]:
        status, out, err = ended(process)
        assert (status, out) == (0, "10.0\n") and "damaged" not in err and "Traceback" not in err


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing compiles")
@pytest.mark.parametrize("damage", ["empty", "flipped", "cut"])
def test_numbas_own_files_heal_too(damage: str, tmp_path):
    assert ended(started(tmp_path, jit.PLAIN))[:2] == (0, "10.0\n")
    files = [path for path in (tmp_path / "cache").rglob("*") if path.suffix in (".nbi", ".nbc")]
    assert files
    for path in files:
        path.write_bytes(DAMAGES[damage](path.read_bytes(), random.Random(1)))
    status, out, err = ended(started(tmp_path, jit.PLAIN))
    assert (status, out) == (0, "10.0\n")
    assert err.startswith(f"clustergym: removed a damaged file of compiled kernels in {tmp_path}")
    assert ended(started(tmp_path, jit.PLAIN)) == (0, "10.0\n", "")


@pytest.mark.slow
@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing compiles")
def test_commands_with_damaged_caches_give_the_same_figures(tmp_path):
    """200 files in ten commands: empty, cut, zeroed, flipped, foreign; those that are read among them."""
    rng, kinds = random.Random(3), ["empty", "cut", "zeroed", "flipped", "foreign"]
    words = ["evaluate", "Delay", "--workload", "poisson:jobs=20", "--policies", "fifo", "--seeds", "0", "--json", "-q"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}

    def told() -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, "-m", "clustergym", *words], check=False, env=environment, capture_output=True, text=True
        )
        return done.returncode, done.stdout, done.stderr

    first = told()
    assert first[0] == 0
    for _ in range(10):
        files = sorted(tmp_path.rglob("*.code"), key=lambda path: -path.stat().st_size)
        for path in [*files[:4], *rng.sample(files[4:], 16)]:  # the largest are entries, which every command reads
            path.write_bytes(DAMAGES[rng.choice(kinds)](path.read_bytes(), rng))
        status, out, err = told()
        assert (status, out) == first[:2]
        assert "removed a damaged file" in err and "Traceback" not in err
