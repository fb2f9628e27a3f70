"""Compiled code that came with the package: used where it fits, told of where it does not, never trusted if damaged."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from clustergym.simulator.compiler import jit, prebuilt, toolchain
from clustergym.simulator.compiler.code_files import SEAL
from clustergym.tests.support.paths import ROOT

HOST = "x86_64-unknown-linux-gnu", "skylake", "+cx16,+popcnt,+sahf,+sse3,+sse4.1,+sse4.2,+ssse3,-avx2"
pytestmark = pytest.mark.skipif(
    numba.config.DISABLE_JIT or jit.compiler() == jit.PLAIN or prebuilt.maker()["machine"] != "x86_64",
    reason="nothing of ours compiles, or for another kind of processor",
)

PROGRAM = """
import sys
from pathlib import Path
import numba
{before}
from clustergym.simulator.compiler import jit, prebuilt, toolchain
prebuilt.FOLDER = Path(sys.argv[1])
prebuilt.MADE_BY = prebuilt.FOLDER / "made_by.json"

@jit.kernel
def inner(x):
    return x * 3 + 1

@jit.entry
def outer(x):
    return inner(x) + {plus}

print(outer(4), sum(outer.stats.cache_misses.values()), jit.source_key())
"""
V2 = {"NUMBA_CPU_NAME": "x86-64-v2", "NUMBA_CPU_FEATURES": ""}


def run(folder: Path, before: str = "", plus: int = 2, **environ: str) -> tuple[list[str], str]:
    """Result, how many were compiled and the folder's name; and what was said."""
    (folder / "program.py").write_text(PROGRAM.format(before=before, plus=plus))
    done = subprocess.run(
        [sys.executable, str(folder / "program.py"), str(folder / "ready")],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache"), "NUMBA_DISABLE_JIT": "0"} | environ,
        timeout=300,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.split(), done.stderr


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A folder as a wheel has it, of a program's kernels for an older processor, beside an empty cache."""
    (_, misses, name), _ = run(tmp_path, **V2)
    assert misses == "1"
    entries = list((tmp_path / "cache" / name).glob("*/*_entry.code"))
    assert len(entries) == 1
    for path in entries:
        place = tmp_path / "ready" / path.relative_to(tmp_path / "cache")
        place.parent.mkdir(parents=True)
        shutil.copy(path, place)
    (tmp_path / "ready" / "made_by.json").write_text(json.dumps(prebuilt.maker()))
    shutil.rmtree(tmp_path / "cache")
    return tmp_path


def test_what_fits_is_not_compiled(made):
    """Nor is anything kept; another function is compiled as ever, without a word about the package."""
    assert run(made)[0][:2] == ["15", "0"]
    assert not list((made / "cache").rglob("*.code"))
    (result, misses, _), said = run(made, plus=3)
    assert (result, misses) == ("16", "1") and "this package" not in said


def test_a_processor_that_lacks_something_gets_its_own(made):
    """It is said once, for what processor the code was."""
    (result, misses, _), said = run(made, NUMBA_CPU_FEATURES="+sse3,-popcnt", NUMBA_CPU_NAME="nocona")
    assert (result, misses) == ("15", "1")
    assert said.count("the compiled kernels of this package are for processor x86-64-v2, here nocona") == 1


def test_another_numba_compiles_after_one_sentence(made):
    (result, misses, _), said = run(made, before="numba.__version__ = '0.62.9'", CLUSTERGYM_COMPILER="own")
    assert (result, misses) == ("15", "1")
    assert f"are for numba {numba.__version__}, here 0.62.9: they are compiled anew, once\n" in said


def test_a_flipped_bit_is_told_and_nothing_of_the_package_is_removed(made):
    (path,) = (made / "ready").glob("*/*/*.code")
    content = bytearray(path.read_bytes())
    content[SEAL + len(content) // 2] ^= 4
    path.write_bytes(content)
    (result, misses, _), said = run(made)
    assert (result, misses) == ("15", "1") and path.exists()
    assert said.count("is damaged; it is compiled anew") == 1
    assert run(made)[0][:2] == ["15", "0"]  # from the user's cache now


def test_what_a_processor_must_have():
    """All of a kind's features."""
    assert prebuilt.fitting(HOST) == [(HOST[0], "x86-64-v2", "")]
    assert prebuilt.fitting((*HOST[:2], HOST[2].replace("+popcnt", "-popcnt"))) == []
    assert prebuilt.fitting((*HOST[:2], "")) == prebuilt.fitting(("riscv64-linux", *HOST[1:])) == []


def test_another_patch_release_of_python_uses_the_same_code(monkeypatch):
    keys = set()
    for version in (sys.version_info[:3], (*sys.version_info[:2], 99), (3, 99, 0)):
        monkeypatch.setattr(toolchain.sys, "version_info", version)
        keys.add(jit.source_key.__wrapped__())
    assert len(keys) == 2
