"""The referee: whether this checkout plays as another commit does, to the last bit, and if not, what differs first.

    python tests/support/digests.py --against COMMIT                        all parts
    python tests/support/digests.py --against COMMIT --part Delay-drawn     one of them
    python tests/support/digests.py --against COMMIT --play "Delay drawn setting=fifo-none 0"   one play, with values

Both checkouts are played on this machine, by this interpreter, at the same time, in a process each, from a temporary
folder: the files of the working tree as they are now, and those of COMMIT, with our tests, so that the same lines
(digest_plays.py) ask both. Compared are, step by step, observations, masks, infos, rewards and decisions, and by name
the metrics. What only this checkout has (a new policy, a new metric) is named, and is no difference.

What was played is kept in build/digests: a run that was killed goes on where it was, and a commit is played once.
The exit status is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import distributions
from itertools import zip_longest
from pathlib import Path

from llvmlite import binding

from clustergym.tests.support.digest_plays import DRAWN, EPISODES, PARTS, POLICIES, STEPPED, Record, kept
from clustergym.tests.support.paths import DATA, ROOT, SUPPORT

KEPT = ROOT / "build" / "digests"
PLAYER = "clustergym.tests.support.digest_plays"
# What the plays of both come from beside their own files.
ASKING = [SUPPORT / name for name in ("digest_plays.py", "face.py", "settings.py", "jobs.csv")]
ASKING += [DATA / name for name in ("unit_speeds.csv", "prices.csv")]
UNPLAYED = (":!tests", ":!docs", ":!benchmarks", ":!*.md")  # of a checkout: the rest is
# Two processes on two cores; and sums of several threads may be rounded otherwise.
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
TOLD_S = 20.0  # between two lines about a part
SHOWN = 8  # numbers of a value that differ


@dataclass(frozen=True)
class Side:
    """A checkout.

    Attributes:
        name: for people.
        folder: its root, called as the package that it is.
        plays: where its plays are kept.
    """

    name: str
    folder: Path
    plays: Path

    def start(self, part: str, out: Path, *options: str) -> subprocess.Popen[bytes]:
        """Play a part into a file, with what is said beside it."""
        out.parent.mkdir(parents=True, exist_ok=True)
        above = self.folder.parent
        # Before what is installed; processes of a process inherit it.
        paths = os.pathsep.join(filter(None, (str(above), os.environ.get("PYTHONPATH"))))
        environ = {**os.environ, **ONE_THREAD, "PYTHONPATH": paths}
        words = [sys.executable, "-m", PLAYER, part, str(out), "--of", str(self.folder), *options]
        with out.with_suffix(".log").open("wb") as log:
            return subprocess.Popen(words, cwd=above, env=environ, stdout=log, stderr=log)


def git(*words: str) -> bytes:
    """What git says in the repository; SystemExit with its last line where it refuses."""
    outcome = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=False)
    if outcome.returncode:
        raise SystemExit(f"git {words[0]}: {outcome.stderr.decode().strip().splitlines()[-1]}")
    return outcome.stdout


def ours(*specs: str) -> list[Path]:
    """The files of this checkout that git tracks or would, by pathspecs."""
    names = git("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *specs).decode().split("\0")
    return [ROOT / name for name in sorted(names) if (ROOT / name).is_file()]


@contextmanager
def sides(commit: str) -> Iterator[tuple[Side, Side]]:
    """This checkout and that of a commit, both in a folder that goes with the context."""
    sha = git("rev-parse", "--verify", f"{commit}^{{commit}}").decode().strip()
    asking = identity(ASKING, sys.version, binding.get_host_cpu_name(), *versions())
    played = ours(".", *UNPLAYED)
    with tempfile.TemporaryDirectory() as name:
        here, there = (Path(name).resolve() / side / "clustergym" for side in ("here", "there"))
        for path in (*played, *ours("tests/support", "tests/data")):
            copy = here / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
        with tarfile.open(fileobj=io.BytesIO(git("archive", sha, "--", ".", *UNPLAYED))) as archive:
            archive.extractall(there, filter="data")
        (there / "tests").symlink_to(here / "tests")
        yield (
            Side("here", here, KEPT / f"here-{identity(played)}-{asking}"),
            Side("there", there, KEPT / f"{sha[:12]}-{asking}"),
        )


def identity(paths: Sequence[Path], *words: str) -> str:
    """Of files, by name and content, and of words."""
    made = hashlib.sha256("\0".join(words).encode())
    for path in paths:
        made.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes() + b"\0")
    return made.hexdigest()[:12]


def versions() -> list[str]:
    """Of all that is installed."""
    return sorted(f"{one.name} {one.version}" for one in distributions())


@dataclass(frozen=True)
class Difference:
    """Where a play first differs in one kind of thing: at which step, or which metric; and what it is on both sides."""

    kind: str
    at: str
    there: str
    here: str

    def __str__(self) -> str:
        """As the list has it."""
        if self.kind in STEPPED:
            return f"{self.kind} at step {self.at}"
        return f"{self.kind} {self.at}".rstrip() + f": {self.there or 'none'} there, {self.here or 'none'} here"


def differences(here: Record, there: Record) -> list[Difference]:
    """Where a play differs, in each kind first, in the order of steps; then metrics, then how it ended."""
    found: list[tuple[int, Difference]] = []
    for kind in STEPPED:
        for step, (old, new) in enumerate(zip_longest(there[kind], here[kind], fillvalue="")):
            if old != new:
                found.append((step, Difference(kind, str(step), old, new)))
                break
    rest = [
        Difference("metric", name, value, here["metric"].get(name, ""))
        for name, value in there["metric"].items()
        if here["metric"].get(name) != value
    ]
    if here["error"] != there["error"]:
        rest.append(Difference("error", "", there["error"], here["error"]))
    return [one for _, one in sorted(found, key=lambda pair: pair[0])] + rest


def values(difference: Difference) -> str:
    """The values of a play that was written whole: of two of one length the numbers that differ."""
    old, new = difference.there.split(", "), difference.here.split(", ")
    if len(old) != len(new):
        return f"\n    there {difference.there[:400]}\n    here  {difference.here[:400]}"
    apart = [f"\n    {i}: {a} there, {b} here" for i, (a, b) in enumerate(zip(old, new, strict=True)) if a != b]
    return "".join(apart[:SHOWN]) + (f"\n    and {len(apart) - SHOWN} more" if len(apart) > SHOWN else "")


@dataclass
class Count:
    """What a comparison has come to so far."""

    plays: int = 0
    differ: int = 0
    here_s: float = 0.0
    there_s: float = 0.0

    def __iadd__(self, other: Count) -> Count:
        """Modify self: of both."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)
        return self

    def __str__(self) -> str:
        """In words."""
        cpu = f"{self.here_s:.0f} + {self.there_s:.0f} CPU s here and there"
        return f"{self.plays:,} plays, {self.differ} differ ({cpu})"


def compared(here: Mapping[str, Record], there: Mapping[str, Record], whole: bool = False) -> Count:
    """Print what differs, what is new, and what ends in the same error in both."""
    count = Count(len(here.keys() & there.keys()))
    count.here_s, count.there_s = (sum(one["seconds"] for one in side.values()) for side in (here, there))
    new_metrics: set[str] = set()
    for name, old in there.items():
        if name not in here:
            count.differ += 1
            print(f"DIFFERS {name}: is not played here")
            continue
        found = differences(here[name], old)
        if found:
            count.differ += 1
            print(f"DIFFERS {name}: " + "; ".join(f"{one}{values(one) if whole else ''}" for one in found), flush=True)
        elif old["error"]:
            print(f"ends so in both: {name}: {old['error']}")
        new_metrics |= here[name]["metric"].keys() - old["metric"].keys()
    for what, names in (("plays", here.keys() - there.keys()), ("metrics", new_metrics)):
        if names:
            print(f"new {what}, not compared: {', '.join(sorted(names))}")
    return count


def play(both: Sequence[Side], part: str, outs: Sequence[Path], *options: str) -> list[str]:
    """Play a part on both sides; returns a sentence for each process that did not come to its end."""
    running = [side.start(part, out, *options) for side, out in zip(both, outs, strict=True)]
    told_s = began_s = time.monotonic()
    try:
        while any(process.poll() is None for process in running):
            time.sleep(0.2)
            if time.monotonic() - told_s > TOLD_S:
                told_s = time.monotonic()
                say(part, both, outs, told_s - began_s)
    finally:
        for process in running:
            process.kill()
            process.wait()
    say(part, both, outs, time.monotonic() - began_s)
    failed = []
    for side, out, process in zip(both, outs, running, strict=True):
        if process.returncode:
            said = out.with_suffix(".log").read_text(errors="replace").strip().rpartition("\n")[2]
            done = len(kept(out))
            failed.append(f"FAILED {part} {side.name}: exit status {process.returncode} after {done} plays: {said}")
    return failed


def say(part: str, both: Sequence[Side], outs: Sequence[Path], seconds: float) -> None:
    """Tell on stderr how far a part is."""
    done = ", ".join(
        f"{out.read_bytes().count(10) if out.exists() else 0} {side.name}" for side, out in zip(both, outs, strict=True)
    )
    print(f"{part}: plays {done}; {seconds:.0f} s", file=sys.stderr, flush=True)


def one_play(both: Sequence[Side], name: str) -> int:
    """Play one again on both sides, and print the values that differ."""
    env, how, *_ = name.split()
    part = f"{env}-{how if how == DRAWN else POLICIES}"
    with tempfile.TemporaryDirectory() as folder:
        outs = [Path(folder) / side.name / "play.jsonl" for side in both]
        failed = play(both, part, outs, "--only", name)
        here, there = map(kept, outs)
    if not (here or there or failed):
        raise SystemExit(f"no play {name!r}; the list of what differs has their names")
    count = compared(here, there, whole=True)
    print("\n".join([*failed, str(count)]))
    return int(bool(failed) or count.differ > 0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare; 1 if something differs."""
    parser = argparse.ArgumentParser(description="Whether this checkout plays as another commit does.")
    parser.add_argument("--against", required=True, metavar="COMMIT", help="the commit to compare with")
    parser.add_argument("--part", action="append", choices=PARTS, help="this one; may be repeated (default: all)")
    parser.add_argument("--episodes", type=int, default=EPISODES, help=f"drawn, an environment (default {EPISODES})")
    parser.add_argument("--play", metavar="NAME", help="this one alone, with its values")
    given = parser.parse_args(arguments)
    began_s, total, broken = time.monotonic(), Count(), 0
    with sides(given.against) as both:
        if given.play is not None:
            return one_play(both, given.play)
        for part in given.part or PARTS:
            outs = [side.plays / f"{part}-{given.episodes}.jsonl" for side in both]
            failed = play(both, part, outs, "--episodes", str(given.episodes))
            here, there = map(kept, outs)
            if failed:  # the other side has what this one did not come to
                there = {name: one for name, one in there.items() if name in here}
            count = compared(here, there)
            print("\n".join([*failed, f"{part}: {count}"]), flush=True)
            total += count
            broken += len(failed)
    print(f"{total}, in {(time.monotonic() - began_s) / 60:.1f} min")
    return int(total.differ > 0 or broken > 0)


if __name__ == "__main__":
    sys.exit(main())
