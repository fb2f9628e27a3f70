"""What the first use costs: CPU seconds, memory and cache of each environment in turn, with nothing compiled before."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _measure import arguments_of, print_document, print_table

from clustergym.envs.registration import ENVIRONMENTS
from clustergym.experiments.console.terminal import progress
from clustergym.experiments.playing.warming import Part, cache_bytes, warm

LARGE = "large"


def main(argv: list[str] | None = None) -> int:
    """Measure, and print the table or the JSON document."""
    options = arguments_of(__doc__.splitlines()[0], argv, _own_arguments)
    if options.only:
        print(json.dumps(used(*options.only.partition(" ")[::2])))
        return 0
    names = list(ENVIRONMENTS)[-1:] if options.quick else list(ENVIRONMENTS)
    # In the order of the list; the large class comes after all of them, and a last round finds everything ready.
    rounds = [("", "cold"), (LARGE, "large"), ("", "warm")]
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, progress("bench cold-start", 3 * len(names), options.quiet) as show:
        for size, kind in rounds:
            for name in names:
                found.append({"environment": name, "kind": kind, **_in_folder(folder, name, size)})
                show(len(found))
    document = {"runs": found, "cpu_s": sum(row["cpu_s"] for row in found if row["kind"] == "cold")}
    (print_document if options.json else _print_table)(document)
    return 0


def _own_arguments(parser: Any) -> None:
    parser.add_argument("--only", metavar="ENV", help="use one environment in this process, as JSON")


def used(name: str, size: str) -> dict[str, Any]:
    """Make it, reset it, and play 60 legal steps."""
    began = time.monotonic()
    warm(Part(name, None), size == LARGE)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "wall_s": time.monotonic() - began,
        "peak_bytes": usage.ru_maxrss * 1024,
        "cache_bytes": cache_bytes(),
    }


def _in_folder(folder: str, name: str, size: str) -> dict[str, Any]:
    environ = {**os.environ, "XDG_CACHE_HOME": folder, "NUMBA_CACHE_DIR": ""}
    command = [sys.executable, "-P", __file__, f"--only={name} {size}"]
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    outcome = subprocess.run(command, check=True, stdout=subprocess.PIPE, env={**environ, "PYTHONPATH": path})
    found: dict[str, Any] = json.loads(outcome.stdout)
    return found


def _print_table(document: dict[str, Any]) -> None:
    names = list(dict.fromkeys(row["environment"] for row in document["runs"]))
    by_kind = {(row["environment"], row["kind"]): row for row in document["runs"]}
    print_table(
        "first use, one environment after the other with one cache: CPU seconds of the process",
        ("environment", "nothing ready", "then the large class", "all ready", "peak MiB", "cache MB after all"),
        [
            (
                name,
                *(f"{by_kind[name, kind]['cpu_s']:.1f}" for kind in ("cold", "large", "warm")),
                f"{by_kind[name, 'cold']['peak_bytes'] / 2**20:.0f}",
                f"{by_kind[name, 'large']['cache_bytes'] / 1e6:.0f}",
            )
            for name in names
        ],
    )
    print(f"together, nothing ready: {document['cpu_s']:.1f} CPU seconds")


if __name__ == "__main__":
    raise SystemExit(main())
