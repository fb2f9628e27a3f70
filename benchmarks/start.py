"""CPU seconds until what somebody waits for is there: an import, the help, large topologies and workloads.

Each is timed in processes of their own, the least of some, with all that the process itself takes.
"""

from __future__ import annotations

from typing import Any

from _measure import arguments_of, in_process, print_document, print_table, verdict

from clustergym.experiments.console.terminal import progress

SAY_S = "import json, time; print(json.dumps(time.process_time()))"
OPEN = "from clustergym.simulator.workloads import open_workload"
# (what, what the process does, with the numbers of a quick run, target in seconds)
CASES = (
    ("import clustergym", "import clustergym", 1.5),
    ("clustergym --help", "from clustergym.experiments.cli import run; run(['--help'])", 2.0),
    (
        "a topology of {racks} racks",
        "from clustergym.simulator.cluster.topology import Topology; Topology.load('dally:racks={racks}')",
        2.0,
    ),
    ("{jobs} jobs, poisson", OPEN + "; open_workload('poisson:jobs={jobs}')", 10.0),
    ("{jobs} jobs, philly-like", OPEN + "; open_workload('philly-like:jobs={jobs}')", 10.0),
)
WHOLE, QUICK = {"racks": 1563, "jobs": 1_000_000}, {"racks": 4, "jobs": 100}


def main(argv: list[str] | None = None) -> int:
    """Measure, and print the table or the JSON document; a missed target is printed as missed, the status is 0."""
    options = arguments_of(__doc__.splitlines()[0], argv)
    sizes = QUICK if options.quick else WHOLE
    rows: list[dict[str, Any]] = []
    with progress("bench start", len(CASES), options.quiet) as show:
        for name, code, goal_s in CASES:
            words = ["-P", "-c", f"{code.format(**sizes)}; {SAY_S}"]
            cpu_s = min(in_process(words)[0] for _ in range(1 if options.quick else 3))
            row = {"name": name.format(**sizes), "cpu_s": cpu_s, "target_s": goal_s}
            rows.append(row | {"met": None if options.quick else cpu_s < goal_s})
            show(len(rows))
    document = {"start": rows, "missed": [row["name"] for row in rows if row["met"] is False]}
    (print_document if options.json else _print_table)(document)
    return 0


def _print_table(document: dict[str, Any]) -> None:
    print_table(
        "CPU seconds of a process",
        ("until there is", "seconds", "target", ""),
        [
            (row["name"], f"{row['cpu_s']:.2f}", f"{row['target_s']:.1f}", verdict(row["met"]))
            for row in document["start"]
        ],
    )


if __name__ == "__main__":
    raise SystemExit(main())
