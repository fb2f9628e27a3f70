"""Where the CPU seconds of the tests go: by folder, file, test, and by the functions compiled for them.

    pytest -p clustergym.tests.support.cpu_times --cpu-times FILE ...
    python tests/support/cpu_times.py FILE [FILE ...]

The first adds a line to FILE for each test and each function that was compiled there, whichever worker ran it; the
second prints the sums of such files. Seconds of CPU, not of the clock: those of the test's process and of the processes
that it started and waited for. What a started process compiles counts among the seconds of that process.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

LONGEST = 30  # lines of a table
_running = ["collection"]
_inside: list[float] = []  # seconds of what was compiled inside each function that is being compiled


def _spent() -> tuple[float, float]:
    """CPU seconds of this process, and of those that it started and that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    own, children = (one.ru_utime + one.ru_stime for one in used)
    return own, children


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--cpu-times FILE`."""
    parser.addoption("--cpu-times", metavar="FILE", help="add CPU seconds of tests and of what they compile to FILE")


def pytest_configure(config: pytest.Config) -> None:
    """Watch what is compiled."""
    if config.getoption("--cpu-times") is None:
        return
    path = Path(config.getoption("--cpu-times"))
    config.pluginmanager.register(_Watch(path), "watch of cpu times")
    from clustergym.simulator.compiler import compiling

    compile_one = compiling._Compiled._compile

    def watched(self: Any, key: str, arguments: tuple[Any, ...]) -> Any:
        _inside.append(0.0)
        before = _spent()[0]
        try:
            return compile_one(self, key, arguments)
        finally:
            whole = _spent()[0] - before
            own = whole - _inside.pop()
            if _inside:
                _inside[-1] += whole
            name = f"{self.py_func.__module__}.{self.py_func.__qualname__}"
            _write(path, {"test": _running[0], "kernel": name, "entry": self.runs, "own": own, "children": 0.0})

    compiling._Compiled._compile = watched  # type: ignore[method-assign]


class _Watch:
    def __init__(self, path: Path) -> None:
        self._path = path

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """One test, with the fixtures that are made for it first."""
        _running[0], before = item.nodeid, _spent()
        try:
            return (yield)  # type: ignore[misc]
        finally:
            own, children = (after - first for after, first in zip(_spent(), before, strict=True))
            _write(self._path, {"test": item.nodeid, "own": own, "children": children})


def _write(path: Path, line: dict[str, Any]) -> None:
    with path.open("a") as file:  # one write: workers do not mix their lines
        file.write(json.dumps(line) + "\n")


def tables(lines: list[dict[str, Any]]) -> Iterator[str]:
    """The sums, the largest first."""
    tests = [line for line in lines if "kernel" not in line]
    kernels = [line for line in lines if "kernel" in line]
    yield from _table("folder", tests, lambda line: os.path.dirname(line["test"].split("::")[0]))
    yield from _table("file", tests, lambda line: line["test"].split("::")[0])
    yield from _table("test", tests, lambda line: line["test"].split("[")[0])
    yield from _table("case", tests, lambda line: line["test"])
    yield from _table("compiled: entry or kernel", kernels, lambda line: ("kernel", "entry")[line["entry"]])
    yield from _table("compiled: function", kernels, lambda line: line["kernel"])
    yield from _table("compiled: by which test", kernels, lambda line: line["test"])


def _table(head: str, lines: list[dict[str, Any]], by: Any) -> Iterator[str]:
    sums: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0.0])
    for line in lines:
        for place, value in enumerate((1, line["own"], line["children"])):
            sums[by(line)][place] += value
    whole = [sum(column) for column in zip(*sums.values(), strict=True)] or [0, 0.0, 0.0]
    yield f"\n{'number':>7} {'here':>8} {'started':>8}  {head}"
    most = sorted(sums.items(), key=lambda one: -sum(one[1][1:]))[:LONGEST]
    for name, (number, own, children) in [("all", whole), *most]:
        yield f"{number:7.0f} {own:8.1f} {children:8.1f}  {name}"


if __name__ == "__main__":
    read = [json.loads(line) for name in sys.argv[1:] for line in Path(name).read_text().splitlines()]
    print("\n".join(tables(read)))
