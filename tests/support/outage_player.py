"""Outages at random for the regions of geo_small, and runs through them.

The script is for the modes chosen when Python starts: `NUMBA_DISABLE_JIT=1 python outage_player.py FOLDER` prints what
`played` returns as JSON.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import numpy as np

from clustergym.policies import make
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.events.initialise import Failures
from clustergym.tests.support import geo_small
from clustergym.tests.support.geo_player import Anything

HEADER = "start_s,duration_s,what,name,notice_s"


def written(folder, rows):
    """The path of a list of outages in a folder."""
    path = Path(folder) / "outages.csv"
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    return str(path)


def random_rows(rng, span_s):
    """Rows of a list of outages of the small regions."""
    rows = []
    for _ in range(int(rng.integers(1, 9))):
        names = {"region": geo_small.REGIONS, "cluster": ["east.a", "west.b"], "rack": range(4), "machine": range(14)}
        what = str(rng.choice(list(names)))
        name = rng.choice(np.array(names[what], str))
        notice = ["", "0", str(int(rng.integers(1, 900)))][int(rng.integers(3))]
        rows.append(f"{int(rng.integers(0, span_s))},{int(rng.integers(1, 900))},{what},{name},{notice}")
    return rows


def random_run(seed, folder, span_s=3600):
    """A simulator of the small regions in which much fails, at its first decision point."""
    rng = np.random.default_rng(seed)
    random = {"mtbf_s": 90_000.0, "mttr_s": 500.0, "region_mtbf_s": 9000.0, "region_mttr_s": 300.0} if seed % 2 else {}
    together = {"fault_groups": str(rng.choice(["racks", "regions"])), "group_mtbf_s": 20_000.0, "group_mttr_s": 400.0}
    failures = Failures(outages=written(folder, random_rows(rng, span_s)), checkpoint_s=200.0, **together, **random)
    simulator = Simulator(geo_small.small_topology(), failures=failures, tables_every_s=2000.0)
    simulator.reset(geo_small.random_workload(seed, jobs=15, span_s=span_s), seed)
    return simulator


def played(folder):
    """What came of some runs: digests of the times of all jobs."""
    found = []
    for seed in range(2):
        simulator = random_run(seed, folder)
        if seed:
            simulator.run(make("mast:slow=none"))
        else:
            Anything(seed).play(simulator)
        found.append(hashlib.sha256(simulator.state.finish_s.tobytes()).hexdigest())
    return found


if __name__ == "__main__":
    print(json.dumps(played(sys.argv[1])))
