"""What the first use costs: CPU seconds, memory and cache of each environment, with nothing compiled before."""

from __future__ import annotations

import json
import resource
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _measure import Row, bench, in_process

from clustergym.envs.registration import ENVIRONMENTS
from clustergym.experiments.playing.warming import Part, cache_bytes, use, warm


def main(argv: list[str] | None = None) -> int:
    """Measure and print."""
    return bench(__doc__.splitlines()[0], argv, first_use)


def first_use(options: Any) -> Iterator[Row]:
    """CPU seconds of a process: with an empty cache, all compiled at once, then the large class, then all ready."""
    names = list(ENVIRONMENTS)[-1:] if options.quick else list(ENVIRONMENTS)
    rows = []
    for name in names:
        with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as own:
            look = in_process([__file__, name, "look"], Path(first))
            compiled, large, ready = (in_process([__file__, name, kind], Path(own)) for kind in ("", "large", ""))
        seconds = {"first_look_s": look, "compiled_alone_s": compiled, "then_large_s": large, "ready_s": ready}
        rows.append({key: used["cpu_s"] for key, used in seconds.items()})
        sizes = {"peak_mib": compiled["peak_bytes"] / 2**20, "cache_mb": compiled["cache_bytes"] / 1e6}
        yield {"environment": name.removeprefix("clustergym/"), **rows[-1], **sizes}
    sums = {key: sum(row[key] for row in rows) for key in rows[0]}
    yield {"environment": "together", **sums, "peak_mib": None, "cache_mb": None}


def used(name: str, kind: str) -> Row:
    """Make an environment ready in this process; its CPU seconds, peak memory and cache."""
    (use if kind == "look" else warm)(Part(name, None), kind == "large")
    usage = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = usage.ru_utime + usage.ru_stime
    return {"cpu_s": cpu_s, "peak_bytes": usage.ru_maxrss * 1024, "cache_bytes": cache_bytes()}


if __name__ == "__main__":
    print(json.dumps(used(*sys.argv[1:])))
