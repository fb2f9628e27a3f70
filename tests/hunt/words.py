"""Draws specifications (words of policies, workloads, topologies, networks, --set): refused in a sentence, or played.

`python tests/hunt/words.py 1000` evaluates so many random command lines, without compiling; `make hunt` runs it.
"""

from __future__ import annotations

import os

from clustergym.tests.hunt import mutants

os.environ["NUMBA_DISABLE_JIT"] = "1"  # what is new in a kernel would be compiled for most of the time

import contextlib
import io
import random
import re
import resource
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping

from clustergym import policies
from clustergym.envs.registration import ENVIRONMENTS
from clustergym.experiments.cli import run
from clustergym.simulator.base.errors import ClustergymError
from clustergym.simulator.cluster.presets import list_topologies
from clustergym.simulator.configuration.network_choice import list_networks
from clustergym.simulator.workloads import list_workloads
from clustergym.tests.support.paths import DATA

MEMORY = 6 * 2**30
SMALL = {"jobs": ("1", "3", "8"), "days": ("0.01",), "hours": ("1",), "racks": ("1", "2"), "machines": ("2", "4")}
VALUES = (
    *("0", "1", "2", "3", "8", "0.5", "1e3", "-1", "nan", "inf", "-inf", "1e308", "1e-320", "9" * 30, "1e30", "0x10"),
    *(
        "",
        " ",
        "x",
        "on",
        "off",
        "none",
        "None",
        "true",
        "1/2",
        "2/1",
        "1/2/3",
        "//",
        "1_000",
        "a=b",
        "🙂",
        "'",
        "\x1b[31m",
    ),
    *("nowhere.csv", "/", ".", "/dev/zero", "/dev/null", "py:nowhere.py:f", "py:", "\u202e", "x" * 3000, "[1]", "{}"),
)
WORDS = (
    "",
    ":",
    "=",
    ",",
    "fifo:",
    "nobody",
    "🙂",
    "x" * 3000,
    "/dev/zero",
    "/",
    "..",
    "\0",
    "py::",
    "a b",
    "--help",
    "-",
)
SET = ("horizon_s", "checkpoint_s", "mttr_s", "mtbf_s", "jobs_per_gpu", "memory_gb", "interference", "estimates")
SET += ("window", "semantics", "region_mtbf_s", "tables_every_s", "gpu", "elastic", "colour", "")


def words(count: int, seed: int = 0) -> Counter[str]:
    """What became of `count` random lines of `evaluate`."""
    found, draw = Counter[str](), random.Random(seed)
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        for number in range(count):
            line = _line(draw)
            mutants.outcome(lambda line=line: _evaluate(line), f"{number}: {line!r:.2000}", found)
    return found


def _evaluate(line: list[str]) -> None:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run(["evaluate", *line])
    said = err.getvalue().strip()
    if status:
        assert status in (1, 2) and not out.getvalue(), (status, out.getvalue())
        assert "\x1b" not in said, said
        raise ClustergymError(said)


def _line(draw: random.Random) -> list[str]:
    environment = draw.choice([*ENVIRONMENTS, "clustergym/Delay-v0"])
    line = [environment, "--seeds", "0", "--quiet", "--json"]
    known = PLAY_IN[environment] if draw.random() < 0.9 and PLAY_IN[environment] else POLICIES
    line += ["--policies", _word(draw, known)]
    line += ["--workload", _word(draw, WORKLOADS)]
    if draw.random() < 0.4:
        line += ["--topology", _word(draw, TOPOLOGIES)]
    if draw.random() < 0.4:
        line += ["--network", _word(draw, NETWORKS)]
    keys = draw.sample(SET, draw.choice((0, 0, 0, 1, 2)))
    for key in keys:
        line += ["--set", f"{key}={draw.choice(VALUES)}"]
    if "horizon_s" not in keys:
        line += ["--set", "horizon_s=2000"]
    return line


def _word(draw: random.Random, known: Mapping[str, Mapping[str, str]]) -> str:
    if draw.random() < 0.05:
        return draw.choice(WORDS)
    name = draw.choice(list(known))
    given = {key: draw.choice(SMALL[key]) for key in known[name] if key in SMALL}
    for key in draw.sample(list(known[name]), min(len(known[name]), draw.choice((0, 0, 0, 1, 2)))):
        given[key] = draw.choice(VALUES) if draw.random() < 0.35 else known[name][key]
    if draw.random() < 0.05:
        given[draw.choice(("", "jbos", "x"))] = draw.choice(VALUES)
    return name + ":" * bool(given) + ",".join(f"{key}={value}" for key, value in given.items())


def _parameters(rows: list[dict]) -> dict[str, dict[str, str]]:
    return {row["name"]: _shown(row["parameters"]) for row in rows}


def _shown(parameters: str | Mapping[str, object]) -> dict[str, str]:
    if isinstance(parameters, str):
        return dict(re.findall(r"(\w+)=([^,]*)", parameters))
    return {
        key: "/".join(map(str, value)) if isinstance(value, tuple) else str(value) for key, value in parameters.items()
    }


AGENTS = ("ppo", "maskable-ppo", "zoo")
ROWS = [row for row in policies.describe() if row["name"] not in AGENTS]
POLICIES = _parameters(ROWS)
PLAY_IN = {
    name: {row["name"]: POLICIES[row["name"]] for row in ROWS if name in row["environments"]} for name in ENVIRONMENTS
}
WORKLOADS = _parameters([row for row in list_workloads() if row["kind"] == "generator"])
TOPOLOGIES, NETWORKS = _parameters(list_topologies()), _parameters(list_networks())
TOPOLOGIES["hosts"]["file"], TOPOLOGIES["nodes"]["file"] = str(DATA / "hosts.csv"), str(DATA / "nodes.csv")

if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    sys.exit(not mutants.tell("specifications", words(int(sys.argv[1]), int((sys.argv[2:] or ["0"])[0]))))
