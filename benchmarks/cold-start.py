"""What the first use costs: CPU seconds, memory and cache of each environment, with nothing compiled before."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

from _measure import arguments_of, print_document, print_table

from clustergym.envs.registration import ENVIRONMENTS
from clustergym.experiments.console.terminal import progress
from clustergym.experiments.playing.warming import Part, cache_bytes, use, warm
from clustergym.simulator.compiler import prebuilt

# As whoever tries it has it; compiled at once, each environment with a cache of its own; all with one, in the order of
# the list; the large class after them; again.
FIRST, ALONE, TOGETHER, LARGE, READY = KINDS = ("first", "alone", "together", "large", "ready")


def main(argv: list[str] | None = None) -> int:
    """Measure, and print the tables or the JSON document."""
    options = arguments_of(__doc__.splitlines()[0], argv, _own_arguments, at_once=False)
    if options.only:
        print(json.dumps(used(*options.only.split())))
        return 0
    names = list(ENVIRONMENTS)[-1:] if options.quick else list(ENVIRONMENTS)
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        packages = {"wheel" if prebuilt.came() else "clone": ""}
        if options.wheel:
            packages["wheel"] = str(Path(folder) / "package")
            zipfile.ZipFile(options.wheel).extractall(packages["wheel"])
        with progress("bench cold-start", len(packages) * len(KINDS) * len(names), options.quiet) as show:
            for case, package in packages.items():
                for kind in KINDS:
                    for name in names:
                        own = name.replace("/", "-") if kind in (FIRST, ALONE) else ""
                        row = _in_folder(f"{folder}/{case}{kind if own else ''}{own}", package, name, kind)
                        found.append({"case": case, "environment": name, "kind": kind, **row})
                        show(len(found))
    document = {"runs": found, "cpu_s": sum(row["cpu_s"] for row in found if row["kind"] == ALONE)}
    (print_document if options.json else _print_tables)(document)
    return 0


def _own_arguments(parser: Any) -> None:
    parser.add_argument("--only", metavar="ENV", help="use one environment in this process, as JSON")
    parser.add_argument(
        "--wheel", metavar="FILE", help="a wheel to measure beside this installation, as of `make wheel`"
    )


def used(name: str, kind: str) -> dict[str, Any]:
    """Make it, reset it, and play 60 legal steps."""
    began = time.monotonic()
    (use if kind == FIRST else warm)(Part(name, None), kind == LARGE)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "wall_s": time.monotonic() - began,
        "peak_bytes": usage.ru_maxrss * 1024,
        "cache_bytes": cache_bytes(),
    }


def _in_folder(cache: str, package: str, name: str, kind: str) -> dict[str, Any]:
    environ = {**os.environ, "XDG_CACHE_HOME": cache, "NUMBA_CACHE_DIR": ""}
    command = [sys.executable, "-P", __file__, f"--only={name} {kind}"]
    path = os.pathsep.join(filter(None, [package, str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]))
    outcome = subprocess.run(command, check=True, stdout=subprocess.PIPE, env={**environ, "PYTHONPATH": path})
    found: dict[str, Any] = json.loads(outcome.stdout)
    return found


def _print_tables(document: dict[str, Any]) -> None:
    for case in dict.fromkeys(row["case"] for row in document["runs"]):
        rows = {(row["environment"], row["kind"]): row for row in document["runs"] if row["case"] == case}
        names = list(dict.fromkeys(name for name, _ in rows))
        sums = [sum(rows[name, kind]["cpu_s"] for name in names) for kind in KINDS]
        print_table(
            f"first use, {case}: CPU seconds of the process",
            (
                "environment",
                "first look",
                "compiled alone",
                "one after the other",
                "then the large class",
                "all ready",
                "peak MiB",
                "cache MB",
            ),
            [
                (
                    name,
                    *(f"{rows[name, kind]['cpu_s']:.1f}" for kind in KINDS),
                    f"{rows[name, ALONE]['peak_bytes'] / 2**20:.0f}",
                    f"{rows[name, ALONE]['cache_bytes'] / 1e6:.0f}",
                )
                for name in names
            ]
            + [("together", *(f"{sum_s:.1f}" for sum_s in sums), "", "")],
        )


if __name__ == "__main__":
    raise SystemExit(main())
