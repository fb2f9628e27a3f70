"""CPU seconds until a user can go on: an import, the help, large topologies and workloads.

Each is timed in processes of their own, the least of some, with all that the process itself takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from _measure import Row, bench, in_process

OPEN = "from clustergym.simulator.workloads import open_workload; open_workload"
TOPOLOGY = "from clustergym.simulator.cluster.topology import Topology; Topology.load"


def main(argv: list[str] | None = None) -> int:
    """Measure and print."""
    return bench(__doc__.splitlines()[0], argv, start)


def start(options: Any) -> Iterator[Row]:
    """CPU seconds of a process."""
    racks, jobs = (4, 100) if options.quick else (1563, 1_000_000)
    cases = {
        "import clustergym": "import clustergym",
        "clustergym --help": "from clustergym.experiments.cli import run; run(['--help'])",
        f"a topology of {racks} racks": f"{TOPOLOGY}('dally:racks={racks}')",
        f"{jobs} jobs, poisson": f"{OPEN}('poisson:jobs={jobs}')",
        f"{jobs} jobs, philly-like": f"{OPEN}('philly-like:jobs={jobs}')",
    }
    for name, code in cases.items():
        words = ["-P", "-c", f"{code}; import time; print(time.process_time())"]
        yield {"name": name, "cpu_s": min(in_process(words) for _ in range(1 if options.quick else 3))}
