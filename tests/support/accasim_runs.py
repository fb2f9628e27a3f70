"""What accasim 1.1.3 reads from made logs, and when its strict FIFO starts jobs: tests/data/accasim/README.md."""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
import tempfile
from pathlib import Path

import swf_logs
from accasim.base.allocator_class import FirstFit
from accasim.base.scheduler_class import FirstInFirstOut
from accasim.base.simulator_class import Simulator
from accasim.utils.reader_class import DefaultWorkloadParser

SEEDS = (1, 2, 3)
COLUMNS = (
    *("job_number", "queued_time", "wait_time", "duration", "total_processors", "allocated_processors"),
    *("requested_time", "status", "user_id", "group_id"),
)
MACHINE = {"groups": {"all": {"core": 256}}, "resources": {"all": 1}, "equivalence": {"processor": {"core": 1}}}
OUTPUT = {"format": "{job},{start}", "attributes": {"job": ("id", "str"), "start": ("start_time", "int")}}


def parsed(text):
    """Its jobs of a log, by column; it names no allocated processors where it takes them for the total."""
    jobs = [job for job in map(DefaultWorkloadParser().parse_line, text.splitlines()) if job]
    return {column: [job.get(column, job["total_processors"]) for job in jobs] for column in COLUMNS}


def starts(text, folder):
    """(job number, start) of its strict FIFO on one node of 256 cores, of which a processor is one."""
    (folder / "log.swf").write_text(text)
    (folder / "machine.json").write_text(json.dumps(MACHINE))
    given = [str(folder / name) for name in ("log.swf", "machine.json")]
    results = {"RESULTS_FOLDER_PATH": str(folder / "results"), "SCHEDULE_OUTPUT": OUTPUT}
    Simulator(*given, FirstInFirstOut(FirstFit()), statistics_output=False, **results).start_simulation()
    text = (folder / "results" / "sched-log.swf").read_text()
    return sorted([int(part) for part in line.split(",")] for line in text.split())


def main(folder, *lublin):
    lines = []
    for seed in SEEDS:
        for column, values in parsed(swf_logs.archive_log(seed)).items():
            lines.append(",".join(map(str, [seed, column, *values])))
    (folder / "parsed.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode(), 9, mtime=0))
    with tempfile.TemporaryDirectory() as name:
        played = starts(swf_logs.full_log(1), Path(name))
    (folder / "fifo_starts.csv").write_text("".join(f"{job},{start}\n" for job, start in [("job", "start_s"), *played]))
    for path in lublin:
        for column, values in parsed(path.read_text()).items():
            print(column, hashlib.sha256(",".join(map(str, values)).encode()).hexdigest())


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
