"""Common parts of the benchmarks: arguments, tables, separate processes, CPU seconds."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from clustergym.experiments.console.terminal import out, plain_table, print_json, say
from clustergym.simulator.compiler.interpreting import compile_at_once

Row = dict[str, Any]


def bench(summary: str, argv: list[str] | None, *tables: Callable[[Any], Iterable[Row]], **more: str) -> int:
    """Measure, and print the tables or the JSON document; returns the exit status.

    A function of `tables` yields its rows from the parsed arguments. Its name is the key in the document, its docstring
    the title; the keys of a row are the columns. `more` are further whole-number options: name, and help.
    """
    compile_at_once()
    parser = argparse.ArgumentParser(description=summary, allow_abbrev=False)
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it run at all; the numbers mean little")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the workloads (default: 0)")
    for name, text in more.items():
        parser.add_argument(f"--{name}", type=int, default=0, metavar="N", help=text)
    options = parser.parse_args(argv)
    document: dict[str, list[Row]] = {}
    for table in tables:
        rows = document[table.__name__] = []
        for row in table(options):
            rows.append(row)
            if not options.quiet:
                say(f"{table.__name__}: {len(rows)} measured")
    if options.json:
        print_json({"machine": machine(), **document})
        return 0
    for table in tables:
        if document[table.__name__]:
            print_table(table.__doc__ or "", document[table.__name__])
    return 0


def machine() -> Row:
    """The machine of the benchmark, in general terms."""
    here = {"cores": os.cpu_count(), "architecture": platform.machine(), "system": platform.system()}
    return here | {"python": platform.python_version(), "numba": version("numba"), "numpy": version("numpy")}


def print_table(title: str, rows: Sequence[Row]) -> None:
    """Print a table; numbers stand on the right."""
    table = plain_table(title=title, title_justify="left", title_style="bold")
    for key, value in rows[0].items():
        table.add_column(key.replace("_", " "), justify="left" if isinstance(value, str) else "right")
    for row in rows:
        table.add_row(*map(_cell, row.values()))
    out().print(table)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if type(value) is int else "-" if value is None else str(value)


def cpu_seconds(work: Callable[[], Any]) -> float:
    """CPU seconds of one call."""
    began_s = time.process_time()
    work()
    return time.process_time() - began_s


def in_process(arguments: Sequence[str], cache_home: Path | None = None) -> Any:
    """Run this Python with `arguments`; returns the JSON on the last line that it prints.

    Linear algebra has one thread: others would only wait, and waiting counts as CPU time. `cache_home` is the folder of
    compiled kernels; None: that of this process.
    """
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    if cache_home is not None:
        environment |= {"XDG_CACHE_HOME": str(cache_home), "NUMBA_CACHE_DIR": ""}
    outcome = subprocess.run([sys.executable, *arguments], check=False, capture_output=True, text=True, env=environment)
    if outcome.returncode != 0:
        raise RuntimeError(f"a measuring process failed with status {outcome.returncode}: {outcome.stderr.strip()}")
    return json.loads(outcome.stdout.splitlines()[-1])
