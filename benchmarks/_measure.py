"""What the benchmarks share: workloads at a load, the timed run, processes of their own, arguments, tables."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from clustergym.experiments.console.terminal import out, plain_table, print_json
from clustergym.policies.loop import loop_calls
from clustergym.simulator.compiler.interpreting import compile_at_once
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.workloads import Workload, open_workload

ROOT = Path(__file__).resolve().parents[1]
ALL_EVENTS = 1 << 62


@dataclass(frozen=True)
class Spread:
    """CPU seconds of several runs of the same work. The machine is noisy, so the best is the nearest to its cost."""

    runs_s: tuple[float, ...]

    @property
    def best_s(self) -> float:
        """The fastest run."""
        return min(self.runs_s)

    @property
    def median_s(self) -> float:
        """The middle run."""
        return statistics.median(self.runs_s)


def at_load(word: str, load: float, gpus: int, seed: int) -> Workload:
    """The generator's workload with its arrivals stretched to a load.

    The load is GPU-seconds of all jobs / (GPUs x time from the first to the last arrival), so it is met exactly, with
    whatever durations were drawn.
    """
    workload = open_workload(word, seed=seed)
    since_s = workload.arrival_s - workload.arrival_s[0]
    wanted_s = float((workload.gpus * workload.duration_s).sum()) / (load * gpus)
    return Workload.from_arrays(
        workload.name,
        since_s * (wanted_s / since_s[-1]),
        workload.gpus,
        workload.duration_s,
        model=workload.model,
        batch_size=workload.batch_size,
    )


def play(simulator: Simulator, max_events: int = ALL_EVENTS) -> None:
    """The compiled rule to the end, or for about `max_events` more events; nothing else, so no metrics."""
    loop_calls.schedule(simulator.records, 0)
    simulator.note(int(loop_calls.run(simulator.records, 0, max_events)))


def cpu_seconds(work: Callable[[], Any]) -> float:
    """CPU seconds of one call."""
    began_s = time.process_time()
    work()
    return time.process_time() - began_s


def run_times(simulator: Simulator, workload: Workload, seed: int, runs: int) -> Spread:
    """CPU seconds of the compiled run alone, `reset` outside, after one run that is not counted (it may compile)."""
    taken_s = []
    for _ in range(runs + 1):
        simulator.reset(workload, seed)
        taken_s.append(cpu_seconds(lambda: play(simulator)))
    return Spread(tuple(taken_s[1:]))


def in_process(arguments: Sequence[str], cache_home: Path | None = None) -> tuple[dict[str, Any], float]:
    """Run this Python with `arguments`; returns the JSON document on the last line that it prints, and wall seconds.

    With one thread for linear algebra: others would only wait, and waiting counts as CPU time.

    Args:
        arguments: of the interpreter.
        cache_home: where it keeps its compiled kernels; None: where this process does.
    """
    environment = {key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR" or cache_home is None}
    environment |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    if cache_home is not None:
        environment["XDG_CACHE_HOME"] = str(cache_home)
    began_s = time.perf_counter()
    outcome = subprocess.run([sys.executable, *arguments], check=False, capture_output=True, text=True, env=environment)
    wall_s = time.perf_counter() - began_s
    if outcome.returncode != 0:
        raise RuntimeError(f"a measuring process failed with status {outcome.returncode}: {outcome.stderr.strip()}")
    return json.loads(outcome.stdout.splitlines()[-1]), wall_s


def phases(clock_s: Sequence[float]) -> dict[str, float]:
    """CPU seconds of a process that read, laid and played, from its clock before and after each; and all so far."""
    imported, read, laid, played = clock_s
    parts = {"import_s": imported, "read_s": read - imported, "reset_s": laid - read, "run_s": played - laid}
    return {**parts, "cpu_s": time.process_time()}


def resident_bytes(peak: bool = False) -> int:
    """Memory of this process that is resident now, or was at most; 0 where the system does not say."""
    key = "VmHWM:" if peak else "VmRSS:"
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return _peak_by_getrusage() if peak else 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(key)), 0)


def _peak_by_getrusage() -> int:
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def arguments_of(
    summary: str, argv: list[str] | None, extra: Callable[[Any], None] | None = None, at_once: bool = True
) -> Any:
    """The parsed arguments: those that all benchmarks take, and what `extra` adds to the parser.

    Args:
        at_once: whether code is compiled when it is first called, so that Python's runs are not measured.
    """
    if at_once:
        compile_at_once()
    parser = argparse.ArgumentParser(description=summary, allow_abbrev=False)
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it run at all; the numbers mean little")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the workloads (default: 0)")
    if extra is not None:
        extra(parser)
    return parser.parse_args(argv)


def machine() -> dict[str, Any]:
    """What ran the benchmark, in general terms."""
    return {
        "cores": os.cpu_count(),
        "architecture": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "numba": version("numba"),
        "numpy": version("numpy"),
    }


def print_table(title: str, columns: Sequence[str], body: Sequence[Sequence[object]], words: int = 1) -> None:
    """One table; the first `words` columns are text, the others numbers. None is shown as a dash."""
    table = plain_table(title=title, title_justify="left", title_style="bold")
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place < words else "right", no_wrap=place < words)
    for row in body:
        table.add_row(*("-" if cell is None else str(cell) for cell in row))
    out().print(table)


def verdict(ok: bool | None) -> str:
    """A word for whether a target is met; None where there is no target."""
    return "" if ok is None else "met" if ok else "[red]MISSED[/red]"


def print_document(document: dict[str, Any]) -> None:
    """`document` with the machine in front, as JSON on stdout."""
    print_json({"machine": machine(), **document})
