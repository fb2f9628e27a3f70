"""Walks of a reader: which files one passes when something is done, traced.

    python tests/support/walks.py                 prints the table
    python tests/support/walks.py --files start   and the files of a walk, in the order of first visits
    python tests/support/walks.py --compiled      with kernels as the compiler made them: those are not seen then
    python tests/support/walks.py --again         each walk for the second time in its process, with its caches full

Every walk is a process of its own. All modules of the package are imported first, so nothing that an import runs is
counted, and kernels are Python functions (NUMBA_DISABLE_JIT=1), but for `train`, which would take too long: its kernels
are compiled and not seen, and `train_short` is there for them. Counted are calls of functions in files of this
project; of each file the lines; and the changes of rooms, in the sequence in which functions are called the first time.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("simulator", "policies", "envs", "agents", "experiments")
SLOTS = {"slots": 32, "running_slots": 16}  # of Delay-v0
STARTS = (0, 1, 2)  # of the five candidates of a waiting slot there: inside a machine, inside a rack, across racks
MOST_STEPS = 200
SMALL_RUN = {
    "name": "small",
    "topology": "dally:racks=2,machines=2",
    "network": "penalty:table=chronus",
    "workloads": ["poisson:jobs=12,backlog=6,load=1.2,median_s=600"],
}
SMALL_TRAINING = {
    "training": [SMALL_RUN],
    "validation": [SMALL_RUN],
    "env": {"slots": 4, "running_slots": 2},
    **{
        "validation_seeds": 2,
        "replicas": 2,
        "num_envs": 2,
        "n_steps": 32,
        "batch_size": 64,
        "n_epochs": 2,
        "evaluations": 2,
        "imitate": None,
    },
}


@dataclass
class Trace:
    """What was called; a context in which everything is.

    Attributes:
        functions: in the order of first visits, `file:line name` with the file's path in the project.
        calls: how many there were; of a generator each time that it goes on.
    """

    functions: list[str] = field(default_factory=list)
    calls: int = 0
    _seen: dict[CodeType, bool] = field(default_factory=dict)  # whether it is of this project

    def __enter__(self) -> Trace:
        """Begin."""
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        sys.setprofile(None)
        threading.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        code = frame.f_code
        if code not in self._seen:
            self._seen[code] = self._is_new(code)
        self.calls += self._seen[code]

    def _is_new(self, code: CodeType) -> bool:
        """Whether it is of this project; if so it is kept."""
        place = within(code.co_filename)
        if place is None or code.co_name == "<module>":
            return False
        self.functions.append(f"{place}:{code.co_firstlineno} {code.co_qualname}")
        return True


def within(filename: str) -> str | None:
    """The path of a file inside the rooms; None: it is elsewhere."""
    try:
        path = Path(filename).resolve().relative_to(ROOT)
    except (ValueError, OSError):
        return None
    return str(path) if path.parts[0] in (*ROOMS, "__init__.py") else None


@dataclass(frozen=True)
class Walk:
    """What a trace comes to.

    Attributes:
        calls, functions, lines: how many; the lines are those of the files.
        files: in the order of first visits.
        rooms: how often the next function that is called the first time lies in another room; `folders`, `changes`:
            in another folder, in another file.
    """

    calls: int
    functions: int
    lines: int
    files: list[str]
    rooms: int
    folders: int
    changes: int

    @classmethod
    def of(cls, trace: Trace) -> Walk:
        """Counted."""
        visited = [name.partition(":")[0] for name in trace.functions]
        files = list(dict.fromkeys(visited))
        lines = sum(len((ROOT / file).read_text().splitlines()) for file in files)
        rooms, folders = [file.split("/")[0] for file in visited], [file.rpartition("/")[0] for file in visited]
        return cls(trace.calls, len(visited), lines, files, turns(rooms), turns(folders), turns(visited))


def turns(names: Sequence[str]) -> int:
    """How often one differs from that before it."""
    return sum(one != other for one, other in pairwise(names))


def legal(env: Any, choose: Callable[[int], bool]) -> int | None:
    """The first legal candidate that `choose` takes; None: there is none."""
    sizes = getattr(env.action_space, "nvec", [getattr(env.action_space, "n", 0)])
    mask = env.get_wrapper_attr("action_masks")()[: int(sizes[0])]
    return next((one for one, allowed in enumerate(mask) if allowed and choose(one)), None)


def action(env: Any, candidate: int) -> Any:
    """A candidate with all other parts 0."""
    parts = len(getattr(env.action_space, "nvec", [0]))
    return candidate if parts == 1 else [candidate, *[0] * (parts - 1)]


def is_start(candidate: int) -> bool:
    """Whether a candidate of Delay-v0 starts a waiting job."""
    return 0 < candidate <= 5 * SLOTS["slots"] and (candidate - 1) % 5 in STARTS


def begun(name: str, **options: Any) -> Any:
    """An environment at its first decision."""
    import gymnasium

    env = gymnasium.make(f"clustergym/{name}-v0", **options).unwrapped
    env.reset(seed=0)
    return env


def start() -> Trace:
    """A step of Delay-v0 that starts a job, the second one of its episode."""
    env = begun("Delay", **SLOTS)
    for _ in range(2):
        candidate = legal(env, is_start)
        assert candidate is not None, "no job can be started"
        chosen = action(env, candidate)
        with Trace() as trace:
            _, _, _, _, info = env.step(chosen)
        assert not info["invalid_action"] and not info["forced_action"]
    return trace


def arrival() -> Trace:
    """A step of Delay-v0 that advances to a decision point before which a job arrives."""
    env = begun("Delay", **SLOTS)
    _, _, _, _, info = env.step(action(env, legal(env, is_start) or 0))
    for _ in range(MOST_STEPS):
        known = info["active_jobs"] + info["finished_jobs"]
        chosen = action(env, 0 if legal(env, lambda one: one == 0) == 0 else legal(env, is_start) or 0)
        with Trace() as trace:
            _, _, _, _, info = env.step(chosen)
        if info["active_jobs"] + info["finished_jobs"] > known:
            return trace
    raise AssertionError("no job arrives")


def move() -> Trace:
    """A step of DataPlacement-v0 that moves the home of a table."""
    env = begun("DataPlacement")
    for _ in range(MOST_STEPS):
        candidate = legal(env, lambda one: one >= 2 and (one - 2) % 3 == 0)
        chosen = action(env, 1 if candidate is None else candidate)
        with Trace() as trace:
            env.step(chosen)
        if candidate is not None:
            return trace
    raise AssertionError("no table can move")


def command(*words: str) -> Trace:
    """A command of `clustergym`, without what it prints."""
    from clustergym.experiments import cli

    with contextlib.redirect_stdout(io.StringIO()), Trace() as trace:
        status = cli.run([*words, "--quiet"])
    assert status == 0, f"{' '.join(words)}: exit status {status}"
    return trace


def evaluate() -> Trace:
    """`clustergym evaluate Delay --policies dally`, one seed."""
    return command("evaluate", "Delay", "--policies", "dally", "--seed", "0")


def train() -> Trace:
    """`clustergym train Delay`, 2,048 steps of PPO alone."""
    with tempfile.TemporaryDirectory() as folder:
        return command("train", "Delay", "--timesteps", "2048", "--imitate", "none", "--logdir", folder)


def train_short() -> Trace:
    """`clustergym train Delay`, 128 steps of small episodes: quick with kernels in Python."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "small.yaml"
        config.write_text(json.dumps(SMALL_TRAINING))
        small = ("--timesteps", "128", "--config", str(config))
        return command("train", "Delay", *small, "--logdir", f"{folder}/run")


WALKS = {one.__name__: one for one in (start, arrival, evaluate, move, train_short, train)}
ALWAYS_COMPILED = ("train",)  # in Python 2,048 steps and their validation take the better part of an hour


def import_all() -> list[str]:
    """Import every module of the rooms; those that need what is not installed are returned."""
    left = []
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(("clustergym", *parts)).removesuffix(".__init__")
            try:
                importlib.import_module(name)
            except ImportError:
                left.append(name)
    return left


def walked(name: str, again: bool) -> Walk:
    """A walk in this process; `again`: for the second time."""
    warnings.simplefilter("ignore")
    import_all()
    if again:
        WALKS[name]()
    return Walk.of(WALKS[name]())


def elsewhere(name: str, compiled: bool, again: bool) -> Walk:
    """A walk in a process of its own."""
    environ = {**os.environ, "NUMBA_DISABLE_JIT": "0" if compiled or name in ALWAYS_COMPILED else "1"}
    words = [sys.executable, __file__, "--one", name, *["--again"][:again]]
    outcome = subprocess.run(words, env=environ, capture_output=True, text=True, check=False)
    if outcome.returncode:
        raise RuntimeError(f"{name}: {outcome.stderr.strip().splitlines()[-1:]}")
    return Walk(**json.loads(outcome.stdout.splitlines()[-1]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Which files a reader passes when something is done.")
    parser.add_argument("walks", nargs="*", choices=[[], *WALKS], metavar="WALK", help=f"of {', '.join(WALKS)}")
    parser.add_argument("--files", action="store_true", help="print the files too")
    parser.add_argument("--compiled", action="store_true", help="leave kernels compiled")
    parser.add_argument("--again", action="store_true", help="do it once before, untraced")
    parser.add_argument("--one", choices=WALKS, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.one:
        print(json.dumps(asdict(walked(given.one, given.again))))
        return 0
    print("| walk | files | lines | functions | calls | changes of room, folder, file |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in given.walks or WALKS:
        walk = elsewhere(name, given.compiled, given.again)
        said = " ".join((WALKS[name].__doc__ or "").split()).rstrip(".")
        print(
            f"| {name}: {said} | {len(walk.files)} | {walk.lines:,} | {walk.functions:,} | {walk.calls:,} | "
            f"{walk.rooms}, {walk.folders}, {walk.changes} |",
            flush=True,
        )
        if given.files:
            print("\n".join(f"    {file}" for file in walk.files), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
