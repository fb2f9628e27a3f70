"""The kernels against the reference simulator, compiled, interpreted and bounds-checked; and their building blocks."""

from __future__ import annotations

import importlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np
import pytest

from clustergym.envs.delay.delay_interface import window_dtype
from clustergym.simulator.compiler.code_files import Store, sealed
from clustergym.simulator.compiler.jit import entry, kernel
from clustergym.simulator.groups.group_fields import GroupCapacity, group_dtype
from clustergym.simulator.numerics import bitset, heap
from clustergym.simulator.numerics.random import exponential, random_word, uniform
from clustergym.simulator.record.feature_groups import has_links
from clustergym.simulator.record.state import Capacity, empty_state, state_dtype
from clustergym.tests.support import random_workloads
from clustergym.tests.support.drawn import some
from clustergym.tests.support.paths import ROOT, SUPPORT
from clustergym.tests.support.reference import simulate
from clustergym.tests.support.uncompiled import anew

PINNED_WORDS = [1106484830, 3555472974, 771341616, 1428240877, 2472892396]
# By path: with --import-mode=importlib the folder of the tests is not importable.
CASES = 200


@cache
def references() -> list[dict[str, Any]]:
    return [random_workloads.random_case(seed).reference(simulate) for seed in range(CASES)]


def differing(outcomes: list[dict[str, Any]]) -> list[int]:
    """Of the first seeds those whose finish times are not the reference's bit for bit, or whose preemptions differ."""
    return [
        seed
        for seed, (ours, theirs) in enumerate(zip(outcomes, references()[: len(outcomes)], strict=True))
        if (ours["finish_s"], ours["preemptions"]) != (theirs["finish_s"], theirs["preemptions"])
    ]


def played_here(count: int) -> list[dict[str, Any]]:
    return [random_workloads.play(random_workloads.random_case(seed)) for seed in range(count)]


def played_with(count: int, **flags: str) -> list[dict[str, Any]]:
    """What random_workloads.py prints when Python starts with these flags of numba."""
    quiet = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA_") or key.endswith("_DIR")}
    command = [sys.executable, "-P", str(SUPPORT / "random_workloads.py"), str(count)]
    outcome = subprocess.run(
        command, check=False, capture_output=True, text=True, env=quiet | flags, cwd=ROOT, timeout=900
    )
    assert outcome.returncode == 0, outcome.stderr[-2000:]
    return json.loads(outcome.stdout)


def test_compiled_kernels_give_the_references_finish_times_bit_for_bit():
    assert differing(played_here(CASES)) == []


def test_a_third_of_the_random_workloads_have_preemptions():
    """So the equality says something about preemption, too."""
    counts = [reference["preemptions"] for reference in references()]
    assert (sum(count > 0 for count in counts), sum(counts)) == (63, 397)


@pytest.mark.parametrize(
    "flags",
    [
        {"NUMBA_DISABLE_JIT": "1"},
        pytest.param({"NUMBA_BOUNDSCHECK": "1"}, marks=pytest.mark.slow),
        pytest.param({"CLUSTERGYM_COMPILER": "plain"}, marks=pytest.mark.slow),
    ],
)
def test_interpreted_bounds_checked_and_plainly_compiled_kernels_give_the_same_bit_for_bit(flags):
    """Finish times and preemptions are the reference's, and every metric is that of the compiled run."""
    count = some(CASES, 40)
    outcomes = played_with(count, **flags)
    assert len(outcomes) == count and differing(outcomes) == []
    assert [o["metrics"] for o in outcomes] == [o["metrics"] for o in played_here(count)]


def plain(function: Any) -> Any:
    """The Python function that a kernel was compiled from."""
    return getattr(function, "py_func", function)


def both(function: Any) -> list[Any]:
    return [pytest.param(function, id="compiled"), pytest.param(plain(function), id="python")]


def test_every_whole_number_of_a_record_has_64_bits():
    """So that shifts and products of kernels mean the same compiled (always int64) and interpreted (numpy's width).

    But for what is only compared, or an index, and large.
    """
    records = (state_dtype(Capacity(512, 512)), window_dtype(), group_dtype(GroupCapacity(40, 40)))
    fields = [field for record in records for field in record.fields.items()]
    kinds = {name: dtype.base for name, (dtype, *_) in fields if dtype.base.kind in "iu"}
    logged = {"log_kind", "log_job", "log_first", "log_size", "log_gpu"}
    waits = {"wait_list", "wait_after", "waits_first", "waits_last", "waits_count", "waits_summed", "waits_known"}
    narrow = {name for name, kind in kinds.items() if kind != np.int64}
    compared = {"legal", "known_job", "kind", "is_untimed", "hold_tier", "hold_over", "victim_moves"}
    assert narrow <= compared | logged | waits


@pytest.mark.parametrize("integer", [int, np.int64])
@pytest.mark.parametrize("interpreted", [False, True])
def test_a_bit_set_is_a_set_compiled_and_interpreted(interpreted, integer):
    """31 and 63 are the last items of their words. Words never leave [0, 2**32)."""
    include, exclude, members = (
        plain(kernel) if interpreted else kernel for kernel in (bitset.include, bitset.exclude, bitset.members)
    )
    rng = random.Random(1)
    low, mid, top = (np.zeros(size, np.int64) for size in bitset.words(2100))
    expected: set[int] = set()
    for item in [31, 63, 1023, 1024, 2099, *(rng.randrange(2100) for _ in range(600))]:
        change, kernel = (expected.discard, exclude) if item in expected else (expected.add, include)
        change(item)
        kernel(low, mid, top, integer(item))
        assert all(level.min() >= 0 and level.max() < 2**32 for level in (low, mid, top))
    assert members(low, mid, top, len(expected)).tolist() == sorted(expected)
    for item in sorted(expected):
        exclude(low, mid, top, integer(item))
    assert (low.any(), mid.any(), top.any(), bitset.next_member(low, mid, top, 0)) == (False, False, False, -1)


@pytest.mark.parametrize("next_member", both(bitset.next_member))
def test_next_member_crosses_words_and_groups(next_member):
    low, mid, top = (np.zeros(size, np.int64) for size in bitset.words(70_000))
    for item in (0, 31, 32, 40_000, 69_999):
        bitset.include(low, mid, top, item)
    answers = [next_member(low, mid, top, start) for start in (0, 1, 32, 33, 40_001, 70_000, 10**6)]
    assert answers == [0, 31, 32, 40_000, 69_999, -1, -1]


def test_a_heap_gives_the_smallest_key_then_the_smallest_item():
    """Two heaps share the arrays; 500 random pushes, moves and removals each, against a dict."""
    rng = random.Random(2)
    key, item, place = np.zeros(200), np.zeros(200, np.int64), np.full(200, -1, np.int64)
    for base, names in ((0, range(100)), (100, range(100, 200))):
        known: dict[int, float] = {}
        for _ in range(500):
            name, new = rng.choice(names), float(rng.randrange(20))
            if name not in known:
                heap.push(key, item, place, base, len(known), new, name)
                known[name] = new
            elif rng.random() < 0.5:
                heap.change(key, item, place, base, len(known), name, new)
                known[name] = new
            else:
                heap.remove(key, item, place, base, len(known), name)
                del known[name]
            if known:
                assert (key[base], item[base]) == min((k, n) for n, k in known.items())
            assert [n for n in names if place[n] >= 0] == sorted(known)


@pytest.mark.parametrize("word", both(random_word))
def test_random_words_are_the_same_compiled_and_interpreted(word):
    """Pinned, so that a seed means the same run for ever: large seeds and negative streams (machines) included."""
    triples = [(0, 0, 0), (1, 0, 0), (2**31, -1, 5), (7, -64, 2), (2**40 + 3, 8 << 8, 1)]
    assert [int(word(*triple)) for triple in triples] == PINNED_WORDS


def test_random_numbers_are_uniform_and_exponential():
    """2,000 draws: mean of the uniform 0.5 (its standard error is 0.0065), of the exponential 100 (2.2)."""
    draws = [uniform(3, 5, i) for i in range(2000)]
    assert min(draws) > 0.0 and max(draws) < 1.0
    assert np.mean(draws) == pytest.approx(0.5, abs=0.025)
    assert np.mean([exponential(3, 5, i, 100.0) for i in range(2000)]) == pytest.approx(100.0, abs=9.0)


@pytest.fixture
def package_copy(tmp_path: Path) -> Path:
    """A copy of the folders that hold kernels, whose jit.py can be run by path."""
    for room in ("simulator", "envs", "policies"):
        shutil.copytree(ROOT / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def jit_of(package: Path) -> dict[str, Any]:
    """What `simulator/compiler/jit.py` of a copy of the package defines, imported anew."""
    room = ModuleType(f"kernels{uuid.uuid4().hex}")
    room.__path__ = [str(package / "simulator" / "compiler")]
    sys.modules[room.__name__] = room
    return vars(importlib.import_module(f"{room.__name__}.jit"))


@pytest.mark.parametrize("compiler", ["own", "plain"])
@pytest.mark.parametrize(
    "edited",
    [
        "simulator/compiler/extensions/type_queries.py",
        "simulator/compiler/extensions/linking.py",
        "simulator/compiler/jit.py",
        "simulator/lifecycle/lifecycle.py",
        "simulator/base/codes.py",
        "envs/families/start.py",
    ],
)
def test_editing_the_compiler_gives_another_folder(package_copy, edited, compiler, monkeypatch):
    """For numba's own way editing any source does: it looks at the file of a function only."""
    monkeypatch.setenv("CLUSTERGYM_COMPILER", compiler)
    before = jit_of(package_copy)["source_key"]()
    with (package_copy / edited).open("a") as file:
        file.write("\n# edited\n")
    changes = compiler == "plain" or "compiler" in edited
    assert (jit_of(package_copy)["source_key"]() != before) == changes


def test_bounds_checked_code_has_a_cache_of_its_own(monkeypatch):
    keys = set()
    for flag in (0, 1):
        monkeypatch.setattr(numba.config, "BOUNDSCHECK", flag)
        keys.add(jit_of(ROOT)["source_key"]())
    assert len(keys) == 2


KERNELS = """
import numba
from clustergym.simulator.compiler.code_files import Store, sealed
from clustergym.simulator.compiler.jit import entry, kernel

@kernel
def inner(x):
    return x + 1

@kernel
def middle(x):
    return 2 * inner(x)

@entry
def first(x):
    return middle(x)

@entry
def second(x):
    return first(x) + middle(x) + inner(x)

@numba.njit
def theirs(x):
    return second(x) + middle(x)

def read():
    return [sum(function.stats.cache_hits.values()) for function in (inner, middle, first, second)]
"""


def test_what_one_process_has_compiled_the_kernels_of_another_are_linked_with(tmp_path):
    """Kernels of kernels, entries that kernels call, and both in another's compiled function."""
    (tmp_path / "some_kernels.py").write_text(KERNELS)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    environ = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": path, "NUMBA_DISABLE_JIT": "0"}

    def said(code: str) -> Any:
        command = [sys.executable, "-c", f"from some_kernels import *\nprint({code}, read())"]
        outcome = subprocess.run(command, check=False, capture_output=True, text=True, env=environ, timeout=300)
        assert outcome.returncode == 0, outcome.stderr[-2000:]
        return outcome.stdout.strip()

    assert said("first(1)") == "4 [0, 0, 0, 0]"
    assert said("second(1)") == "10 [1, 1, 0, 0]"  # what Python calls of `first` is not what kernels call of it
    assert said("second(1)") == "10 [0, 0, 0, 1]"
    assert said("theirs(1)") == "14 [1, 1, 1, 0]"


def doubled(x):
    return 2 * x


def test_the_users_own_cache_folder_is_used_and_put_back(monkeypatch, tmp_path):
    """Kernels go to a folder of ours inside the user's, and numba's setting is the user's afterwards, errors or not."""
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 0)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    jit = jit_of(ROOT)
    assert jit["entry"](doubled)(21) == 42
    assert tmp_path.as_posix() == numba.config.CACHE_DIR
    ours = tmp_path / jit["source_key"]()
    assert [path.name for path in tmp_path.iterdir()] == [ours.name]
    assert list(ours.rglob("*.code"))
    with pytest.raises(TypeError):
        jit["kernel"]("no function")
    assert tmp_path.as_posix() == numba.config.CACHE_DIR


def test_code_that_was_used_longest_ago_goes_once_a_day(monkeypatch, tmp_path):
    """Down to so many bytes, whatever folder it is in; so does what a killed process left. Nothing else is touched."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    home, now = tmp_path / "clustergym", time.time()
    runs, *files = [home / "reproduce" / "run", *(home / f"{n % 3:016x}" / f"{n:02}" / "some.code" for n in range(12))]
    for days, path in [(100, runs), *enumerate(files)]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(100))
        os.utime(path, (now - 86_400.0 * days - 60.0,) * 2)

    def used(most_bytes: int) -> set[Path]:
        jit = jit_of(ROOT)
        jit["MOST_BYTES"] = most_bytes
        ours = jit["cache_folder"]()
        assert ours.is_dir() and (home / "swept").exists() and runs.exists()
        return {path for path in files if path.exists()}

    assert used(700) == set(files[:7])
    assert not files[9].parent.exists() and files[0].parent.exists()
    assert used(300) == set(files[:7])  # today's check is done
    os.utime(home / "swept", (now - 1e5,) * 2)
    assert Store(lambda: files[6].parents[1]).content(files[6], "some") is None  # no seal: it goes
    found = files[5]
    found.write_bytes(sealed("some", b"code"))
    os.utime(found, (now - 1e6,) * 2)
    assert Store(lambda: found.parents[1]).content(found, "some") == b"code"  # now it was used
    assert used(300) == {found, *files[:2]}


def test_a_process_whose_folder_of_kernels_is_gone_goes_on(monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 0)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    jit = jit_of(ROOT)
    function = jit["entry"](doubled)
    assert function(21) == 42
    folder = jit["cache_folder"]()
    shutil.rmtree(folder)
    assert function(1.5) == 3.0 and list(folder.rglob("*.code"))


def test_a_cache_that_cannot_be_written_is_replaced_by_a_temporary_one(monkeypatch, tmp_path):
    blocked = tmp_path / "a file, not a folder"
    blocked.write_text("")
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(blocked))
    folder = jit_of(ROOT)["cache_folder"]()
    assert folder.is_dir() and blocked not in folder.parents
    shutil.rmtree(folder)


def test_where_no_folder_can_be_made_nothing_is_kept(monkeypatch, tmp_path):
    """A name in the system's temporary folder could be made by others first, with code of theirs in it."""
    blocked = tmp_path / "a file, not a folder"
    blocked.write_text("")
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 0)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(blocked))
    monkeypatch.setattr(tempfile, "tempdir", str(blocked))
    for compiler in ("own", "plain"):
        monkeypatch.setenv("CLUSTERGYM_COMPILER", compiler)
        jit = jit_of(ROOT)
        folder = jit["cache_folder"]()
        with pytest.raises(OSError):
            folder.mkdir(parents=True)
        assert tmp_path not in folder.parents and not folder.is_relative_to("/tmp")
        assert jit["entry"](doubled)(21) == 42
    assert list(tmp_path.iterdir()) == [blocked]
    assert not list(Path(__file__).parent.rglob("*doubled*.nb*"))


@kernel
def _count_links(s):
    return s.n_links


@entry
def _links_of(s):
    if has_links(s) and s.n_links >= 0:
        return _count_links(s)
    return -1


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_what_a_record_has_no_room_for_is_not_compiled(monkeypatch, tmp_path):
    here = anew(__name__, monkeypatch, tmp_path)
    plain, linked = empty_state(Capacity(136, 72))[0], empty_state(Capacity(136, 72, links=104))[0]
    assert here._links_of(plain) == -1 and not here._count_links.signatures
    assert here._links_of(linked) == 0 and len(here._count_links.signatures) == 1
