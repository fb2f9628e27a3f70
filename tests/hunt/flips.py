"""Flips single bits of stored runs, saved workloads and compiled code: none is read as another, none is a traceback.

`python tests/hunt/flips.py 4000` prints what became of so many flips of each kind; `make hunt` runs it.
"""

from __future__ import annotations

import contextlib
import io
import pickle
import random
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from clustergym.experiments.cli import run
from clustergym.experiments.playing import evaluation
from clustergym.experiments.settings.evaluation_setting import Setting
from clustergym.experiments.storing import store
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.compiler.code_files import Store, key_of
from clustergym.simulator.jobs.workload import COLUMNS, Workload
from clustergym.simulator.workloads import open_workload, read_trace

SETTING = Setting.of("clustergym/Delay-v0", "dally:racks=2,machines=4", "poisson:jobs=40,backlog=20", "none")
WORDS = ["fifo", "random"]


def stored_runs(count: int, seed: int = 0) -> Counter[str]:
    """What became of `count` flips in the files of an evaluation, each in a folder that is whole otherwise.

    Raises:
        AssertionError: a run was read as another.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        evaluation.evaluate(SETTING, WORDS, [0, 1], store=store.open_store(folder, SETTING, WORDS), record="first")
        paths = [*sorted((folder / store.RUNS).iterdir()), folder / store.SUMMARY]
        right = store.read(folder)
        runs = {(run.policy, run.seed): pickle.dumps(run) for run in right.runs}
        assert len(runs) == 4

        def look() -> str:
            found = store.read(folder)
            assert found.setting == right.setting
            for run in found.runs:
                assert pickle.dumps(run) == runs[run.policy, run.seed], "another run was read"
            return "harmless" if len(found.runs) == len(runs) else "played anew"

        return _flipped(paths, count, seed, look)


def commands(count: int, seed: int = 0) -> Counter[str]:
    """What `evaluate --json` gave after one flip in every file of its folder at once, `count` flips in all.

    Raises:
        AssertionError: other numbers, or a status that is no sentence's.
    """
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder, draw = Path(name), random.Random(seed)
        arguments = ["evaluate", "Delay", "--policies", "fifo random", "--seeds", "0-9", "--workload", SETTING.workload]
        arguments += ["--topology", SETTING.topology, "--json", "--quiet", "--logdir", name]
        right = _said(arguments)
        while found.total() < count:
            for path in [*sorted((folder / store.RUNS).iterdir()), folder / store.SUMMARY]:
                data = bytearray(path.read_bytes())
                data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
                path.write_bytes(data)
                found["flips"] += 1
            outcome = _said(arguments)
            if outcome != right:
                status, out, err = outcome
                assert (status, out) == (1, "") or (status, out) == (2, ""), outcome
                assert err.count("\n") == 1 and "Traceback" not in err, outcome
                assert _said([*arguments, "--fresh"]) == right or not (folder / store.SUMMARY).unlink()
            found["commands refused" if outcome != right else "commands right"] += 1
    return found


def _said(arguments: list[str]) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run(arguments)
    return status, out.getvalue(), err.getvalue()


def workloads(count: int, seed: int = 0) -> Counter[str]:
    """What became of `count` flips in parquet files that `Workload.save` wrote: the half of them over regions.

    Raises:
        AssertionError: a workload was read as another.
    """
    with tempfile.TemporaryDirectory() as name:
        found: Counter[str] = Counter()
        for number, word in enumerate(("poisson:jobs=60", "mast-like:jobs=60")):
            path = Path(name) / f"{number}.parquet"
            workload = open_workload(word)
            workload.save(path)
            right: str = _content(workload)

            def look(path: Path = path, right: str = right) -> str:
                assert _content(read_trace(path, "parquet")) == right, "another workload was read"
                return "harmless"

            found += _flipped([path], count // 2, seed, look)
        return found


def compiled_code(count: int, seed: int = 0) -> Counter[str]:
    """What became of `count` flips in a package's object code, of the size that an environment's step has.

    Raises:
        AssertionError: a damaged file was used, not told of, or removed from the package.
    """
    with tempfile.TemporaryDirectory() as name:
        folder, told = Path(name), list[str]()
        key, code = key_of("a step"), random.Random(seed).randbytes(300_000)
        Store(lambda: folder).write(key, code)
        (path,) = folder.rglob("*.code")

        def look() -> str:
            found = Store(lambda: folder, told.append, is_ours=False).read(key)
            assert found is None and path.exists() and told.pop().endswith("is damaged; it is compiled anew")
            return "refused"

        return _flipped([path], count, seed, look)


def _content(workload: Workload) -> str:
    geo = workload.geo
    columns: list[Any] = [workload.name, *(getattr(workload, name).tolist() for name in COLUMNS)]
    return repr([*columns, None if geo is None else [geo.part_type.tolist(), geo.part_units.tolist()]])


def _flipped(paths: list[Path], count: int, seed: int, look: Callable[[], str]) -> Counter[str]:
    draw, found, whole = random.Random(seed), Counter[str](), {path: path.read_bytes() for path in paths}
    for _ in range(count):
        path = draw.choice(paths)
        damaged = bytearray(whole[path])
        place, bit = draw.randrange(len(damaged)), draw.randrange(8)
        damaged[place] ^= 1 << bit
        path.write_bytes(damaged)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found[look()] += 1
        except InputError:
            found["refused"] += 1
        except BaseException as error:
            error.add_note(f"{path.name}: bit {bit} of byte {place} of {len(damaged)}, seed {seed}")
            raise
        finally:
            path.write_bytes(whole[path])
    return found


if __name__ == "__main__":
    flips = int(sys.argv[1])
    for what in (stored_runs, commands, workloads, compiled_code):
        print(f"{flips} flipped bits in {what.__name__}: {dict(what(flips))}; 0 other numbers, 0 tracebacks")
