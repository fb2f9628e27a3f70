"""Changes one line of the code and sees whether a test falls: which changes do the tests of two commits miss?

    python tests/hunt/code_mutants.py 91a2b5df HEAD --minutes 60     a part of the run; the next one goes on behind it
    python tests/hunt/code_mutants.py 91a2b5df HEAD --table          what has come out so far, survivors by name

A change is a comparison, a sign, a constant or a dropped branch, drawn by a seed in functions that read the same in
all commits: a third of them in kernels, the others equally in all rooms. Of each commit those test files are run that
import the changed module (where none does, those that import an importer; at most `FILES`, the most particular
ones), up to the first failure; where a kernel was changed, kernels are Python functions. Before that each file is run
unchanged for at most `PATIENCE_S`: what did not pass by then is left out, on both sides. Nothing changes
simulator/compiler: everything would be compiled anew.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import random
import re
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "build" / "mutants"
ROOMS = ("simulator", "policies", "envs", "agents", "experiments")
UNTOUCHED = ("simulator/compiler/", "experiments/reproduce/")  # the other: hours of published figures
COUNT, IN_KERNELS = 60, 20
FILES = 3
PATIENCE_S = 30  # CPU seconds of a test file
SPARE_S = 30  # that a change may cost beside what its tests take
COMPILED = ("kernel", "entry", "search", "known")
ORDERS = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "=="}
SIGNS = {ast.Add: "-", ast.Sub: "+"}
PASSED = re.compile(r"^(tests/\S+\.py::.*) PASSED +\[", re.MULTILINE)


@dataclass(frozen=True)
class Mutant:
    """One change: `old` becomes `new` at a place of a function.

    Attributes:
        path, function: where; `line` and `column` count from the function's first line, in bytes.
        kind: comparison, sign, constant or branch.
        compiled: the function is a kernel.
    """

    path: str
    function: str
    line: int
    column: int
    old: str
    new: str
    kind: str
    compiled: bool

    @property
    def name(self) -> str:
        """For people, and for the list of results."""
        return f"{self.path} {self.function}+{self.line}: {self.old} -> {self.new}"

    def text(self, source: str) -> str:
        """A module's text with it."""
        node = functions(source)[self.function]
        lines = source.encode().split(b"\n")
        at, old = node.lineno - 1 + self.line, self.old.encode()
        assert lines[at][self.column : self.column + len(old)] == old, self.name
        lines[at] = lines[at][: self.column] + self.new.encode() + lines[at][self.column + len(old) :]
        return b"\n".join(lines).decode()


def functions(source: str) -> dict[str, ast.FunctionDef]:
    """Functions of a module and methods of its classes, by name."""
    found: dict[str, ast.FunctionDef] = {}
    for node in ast.parse(source).body:
        for each in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(each, ast.FunctionDef):
                found[f"{node.name}.{each.name}" if each is not node else each.name] = each  # type: ignore[attr-defined]
    return found


def mutants_of(path: str, lines: list[bytes], name: str, node: ast.FunctionDef) -> Iterator[Mutant]:
    """All changes of one function's body that lie in one line."""
    compiled = any(isinstance(each, ast.Name) and each.id in COMPILED for each in node.decorator_list)

    def said(part: ast.expr) -> str:
        return lines[part.lineno - 1][part.col_offset : part.end_col_offset].decode()

    for part in (inner for statement in node.body for inner in ast.walk(statement)):
        kind, changed, new = _change(said, part)
        if kind and changed.lineno == changed.end_lineno:
            line = changed.lineno - node.lineno
            yield Mutant(path, name, line, changed.col_offset, said(changed), new, kind, compiled)


def _change(said: Callable[[ast.expr], str], node: ast.AST) -> tuple[str, ast.expr, str]:
    """The kind of a node's change, what is replaced, and by what; "": there is none. `said`: a node's text."""

    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in ORDERS:
            return "comparison", node, f"{said(left)} {ORDERS[type(op)]} {said(right)}"
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right) if not _is_text(left, right):
            return "sign", node, f"{said(left)} {SIGNS[type(op)]} {said(right)}"
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return "sign", node, said(operand)
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return "constant", node, repr(value + 1 if isinstance(value, int) else 2 * value + 1)
        case ast.If(test=test) | ast.IfExp(test=test):
            return "branch", test, "False"
    return "", ast.Constant(None), ""


def _is_text(*operands: ast.expr) -> bool:
    """Whether a sum is surely one of texts or lists."""
    kinds = (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp)
    return any(isinstance(o, kinds) or (isinstance(o, ast.Constant) and isinstance(o.value, str)) for o in operands)


def _texts(source: bytes) -> dict[str, list[bytes]]:
    """The lines of each function of a module."""
    lines = source.split(b"\n")
    return {name: lines[node.lineno - 1 : node.end_lineno] for name, node in functions(source.decode()).items()}


def drawn(trees: list[Path], count: int, seed: int) -> list[Mutant]:
    """So many changes of functions that read the same in all trees, kinds and rooms mixed."""
    found: dict[tuple[str, str], list[Mutant]] = defaultdict(list)
    for file in sorted(path for room in ROOMS for path in (trees[0] / room).rglob("*.py")):
        path = file.relative_to(trees[0]).as_posix()
        others = [tree / path for tree in trees[1:]]
        if path.startswith(UNTOUCHED) or not all(other.exists() for other in others):
            continue
        sources = [each.read_bytes() for each in (file, *others)]
        texts, lines = [_texts(source) for source in sources], sources[0].split(b"\n")
        for name, node in functions(sources[0].decode()).items():
            if all(each.get(name) == texts[0][name] for each in texts):
                for mutant in mutants_of(path, lines, name, node):
                    found["kernels" if mutant.compiled else path.partition("/")[0], mutant.kind].append(mutant)
    rng, chosen = random.Random(seed), []
    kernels = count * IN_KERNELS // COUNT
    rooms = ["kernels"] * kernels + [ROOMS[turn % len(ROOMS)] for turn in range(count - kernels)]
    for room in [room for room in rooms if any(where == room for where, _ in found)]:
        kind = rng.choice(sorted(kind for where, kind in found if where == room))
        chosen.append(rng.choice(sorted(found[room, kind], key=lambda mutant: mutant.name)))
    chosen = list(dict.fromkeys(chosen))
    rng.shuffle(chosen)  # so that a part of the run is a fair sample
    return chosen


def imports(tree: Path) -> dict[str, set[str]]:
    """The files of the project that each of its files imports, by their paths; of a package its __init__.py."""
    files = {path.relative_to(tree).as_posix() for room in (*ROOMS, "tests") for path in (tree / room).rglob("*.py")}
    known: dict[str, set[str]] = {}
    for path in files:
        base, wanted = path.split("/")[:-1], set()
        for node in ast.walk(ast.parse((tree / path).read_text())):
            if isinstance(node, ast.Import):
                wanted |= {tuple(alias.name.split(".")[1:]) for alias in node.names if alias.name[:11] == "clustergym."}
            elif isinstance(node, ast.ImportFrom):
                words = node.module.split(".") if node.module else []
                if node.level == 0 and words[:1] != ["clustergym"]:
                    continue
                words = [*base[: len(base) - node.level + 1], *words] if node.level else words[1:]
                wanted |= {tuple(words), *((*words, alias.name) for alias in node.names)}
        names = {f"{'/'.join(words)}{end}" for words in wanted for end in (".py", "/__init__.py")}
        known[path] = names & files - {path}
    return known


def tests_of(path: str, graph: dict[str, set[str]]) -> list[str]:
    """The test files that import a file, or else those that import its importers, and so on."""
    seen, now = {path}, {path}
    while now:
        now = {other for other, wanted in graph.items() if wanted & now} - seen
        seen |= now
        tests = [other for other in now if Path(other).name.startswith("test_")]
        if tests:
            return sorted(tests, key=lambda other: (len(graph[other]), other))[:FILES]
    return []


def run_tests(tree: Path, words: list[str], plain: bool, most_s: float) -> tuple[int, str, float]:
    """Status, what was printed and CPU seconds of pytest; status -24 or -9: it took more than `most_s`."""
    modes = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")} | {"NUMBA_DISABLE_JIT": str(int(plain))}
    command = [sys.executable, "-P", "-m", "pytest", "-p", "no:xdist", "-p", "no:cacheprovider", "-rN", *words]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        command,
        cwd=tree,
        env={**os.environ, **modes, "PYTHONPATH": str(tree.parent)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        preexec_fn=partial(resource.setrlimit, resource.RLIMIT_CPU, (int(most_s), int(most_s) + 2)),
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.returncode, done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def unchanged(tree: Path, kept: Path, test: str, plain: bool) -> dict[str, object]:
    """Which tests of a file pass without a change, within `PATIENCE_S`, and their seconds; looked up or found out."""
    path = kept / f"{test.replace('/', '-')}{'-plain' if plain else ''}.json"
    if not path.exists():
        _, printed, seconds = run_tests(tree, ["-v", test], plain, PATIENCE_S)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"passed": PASSED.findall(printed), "seconds": seconds}))
    return json.loads(path.read_text())  # type: ignore[no-any-return]


def tried(tree: Path, kept: Path, mutant: Mutant, tests: list[str]) -> dict[str, object]:
    """Whether the tests notice a change, and which one did."""
    before = [unchanged(tree, kept, test, mutant.compiled) for test in tests]
    chosen = [name for each in before for name in each["passed"]]  # type: ignore[attr-defined]
    most_s = 2 * sum(float(each["seconds"]) for each in before) + SPARE_S  # type: ignore[arg-type]
    (tree.parent / "chosen").write_text("\n".join(chosen))
    source = (tree / mutant.path).read_text()
    (tree / mutant.path).write_text(mutant.text(source))
    try:
        status, printed, seconds = run_tests(tree, ["-x", "-v", f"@{tree.parent / 'chosen'}"], mutant.compiled, most_s)
    finally:
        (tree / mutant.path).write_text(source)
    failed = re.findall(r"^(tests/\S+\.py::.*) (?:FAILED|ERROR)", printed, re.MULTILINE)
    by = (failed or ["an error" if status > 0 else "its time" if status else ""])[0] if chosen else ""
    return {
        "mutant": mutant.name,
        "killed": bool(chosen) and status != 0,
        "by": by,
        "tests": len(chosen),
        "cpu_s": round(seconds),
    }


def table(results: list[dict[str, object]], mutants: list[Mutant], sides: list[str]) -> Iterator[str]:
    """Killed of all by side, and the survivors."""
    for side in sides:
        own = {each["mutant"]: each for each in results if each["side"] == side}
        killed = sum(bool(each["killed"]) for each in own.values())
        yield f"{side}: {killed} of {len(own)} killed, {len(mutants) - len(own)} to come"
        yield from (f"  survived: {m.name}" for m in mutants if m.name in own and not own[m.name]["killed"])


def main() -> None:
    """A part of the run, or the table."""
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("commits", nargs="+")
    asked.add_argument("--count", type=int, default=COUNT)
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--minutes", type=float, default=60.0)
    asked.add_argument("--table", action="store_true")
    words = asked.parse_args()
    git = partial(subprocess.check_output, cwd=ROOT)
    shas = [git(["git", "rev-parse", "--short=12", f"{each}^{{commit}}"], text=True).strip() for each in words.commits]
    with tempfile.TemporaryDirectory() as name:
        trees = [Path(name).resolve() / sha / "clustergym" for sha in shas]
        for sha, tree in zip(shas, trees, strict=True):
            with tarfile.open(fileobj=io.BytesIO(git(["git", "archive", sha]))) as archive:
                archive.extractall(tree, filter="data")
        mutants = drawn(trees, words.count, words.seed)
        kept = KEPT / f"{'-'.join(shas)}-{words.seed}.jsonl"
        results = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
        done, graphs = {(each["mutant"], each["side"]) for each in results}, [imports(tree) for tree in trees]
        end = time.monotonic() + 60.0 * words.minutes
        for mutant in [] if words.table else mutants:
            for sha, tree, graph in zip(shas, trees, graphs, strict=True):
                if (mutant.name, sha) not in done and time.monotonic() < end:
                    found = {"side": sha, **tried(tree, KEPT / sha, mutant, tests_of(mutant.path, graph))}
                    results.append(found)
                    with kept.open("a") as file:
                        file.write(json.dumps(found) + "\n")
                    print(json.dumps(found), flush=True)
        print("\n".join(table(results, mutants, shas)))


if __name__ == "__main__":
    main()
