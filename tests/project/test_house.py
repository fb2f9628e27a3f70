"""The rules of the house: what imports what, how long things may be, what an import costs and what ships."""

from __future__ import annotations

import ast
import collections
import functools
import importlib.util
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from clustergym.tests.support import face_docs, house
from clustergym.tests.support.paths import ROOT

ROOMS = ("simulator", "policies", "envs", "agents", "experiments")
MORE = ("tests", "benchmarks", "docs")
MODULES = [ROOT / "__init__.py", *sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))]
MODULE_LINES = 600
FUNCTION_LINES = 60
ELSEWHERE = """ActionMask DummyVecEnv EvalCallback FIELD GymEnv GymWrapper MaskableEvalCallback MultiBinary REGION
RecordEpisodeStatistics SessionLog SubprocVecEnv SyncVectorEnv TransformReward VecMonitor clustergym final_observation
node_link_data norm_obs_keys t_share
agent.py dqn.py helpers.py mine.py mysched.py ppo.py"""  # of other libraries, of papers and in examples
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
NAMELIKE = r"(?=[A-Za-z_]\w*[._(]|[A-Z]\w*[a-z][A-Z])[A-Za-z_][\w.]*"
HEAVY = ("torch", "matplotlib", "pandas", "stable_baselines3", "pyarrow", "tensorboard")


def run(*arguments: str, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
    """Run this Python with `arguments` in the repository; -P: its folders are not top-level packages."""
    command = [sys.executable, "-P", *arguments]
    return subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=timeout_s)


@functools.cache
def nodes() -> list[tuple[Path, ast.AST]]:
    """All of the package, each with its module."""
    return [(path, node) for path in MODULES for node in ast.walk(ast.parse(path.read_text()))]


@functools.cache
def the_house() -> house.House:
    """The package."""
    return house.House()


@functools.cache
def functions() -> list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """(path:line name, node) of every function of the package."""
    return [
        (f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", node)
        for path, node in nodes()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def test_rooms_import_one_way():
    """The contracts stand in pyproject.toml under [tool.importlinter]."""
    outcome = run("-c", "from importlinter.cli import lint_imports_command as main; main(['--no-cache'])")
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


@pytest.mark.parametrize("room", ["simulator", "policies", "agents"])
def test_no_modules_and_no_folders_of_a_room_import_each_other(room):
    """By whatever import: at the top, in a function, or for types; of `simulator` the contract has the folders."""
    found = the_house()
    assert [cycle for cycle in found.cycles() if cycle[0].startswith(room)] == []
    assert room == "simulator" or found.both_ways(room) == []


def test_import_pulls_nothing_heavy():
    code = f"import sys, clustergym; print([name for name in {HEAVY} if name in sys.modules])"
    outcome = run("-c", code)
    assert outcome.stdout.strip() == "[]", outcome.stdout + outcome.stderr


def test_importing_the_engine_pulls_nothing_heavy():
    names = HEAVY
    outcome = run(
        "-c",
        f"import sys, clustergym.simulator.engine.simulator; print([name for name in {names} if name in sys.modules])",
    )
    assert outcome.stdout.strip() == "[]", outcome.stdout + outcome.stderr


def test_no_module_is_longer_than_600_lines():
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in MODULES}
    assert {name: lines for name, lines in lengths.items() if lines > MODULE_LINES} == {}


def test_no_function_is_longer_than_60_lines():
    lengths = {name: (node.end_lineno or 0) - node.lineno + 1 for name, node in functions()}
    assert {name: lines for name, lines in lengths.items() if lines > FUNCTION_LINES} == {}


def test_no_module_name_occurs_twice():
    """But for those that say what they are by their folder: an environment's class and columns."""
    names = collections.Counter(path.stem for path in MODULES)
    by_folder = {"__init__", "columns", "env", "observation"}
    assert {name for name, times in names.items() if times > 1} <= by_folder


def test_no_retired_name_is_back():
    """CONTRIBUTING.md lists words that the field's own have replaced: for modules and classes, and for all names."""
    section = (ROOT / "CONTRIBUTING.md").read_text().partition("## Retired names")[2].partition("\n## ")[0]
    large, small = (re.findall(r"`([\w*]+)`", part) for part in section.split("Nothing at all"))
    classes = {node.name for _, node in nodes() if isinstance(node, ast.ClassDef)}
    assert {"lookout", "Mirror", "agenda"} <= set(large) and {"told", "lay_*"} <= set(small)
    assert set(large) & ({path.stem for path in MODULES} | classes) == set()
    retired = "|".join(small).replace("*", r"\w*")
    assert [name for name in sorted(identifiers()) if re.fullmatch(f"_?({retired})", name)] == []


@functools.cache
def identifiers() -> set[str]:
    """All names of the package: variables, attributes, parameters, functions, classes, modules as they are imported."""
    found = {getattr(node, field, None) for _, node in nodes() for field in ("id", "attr", "arg", "name", "asname")}
    return {word for name in found if isinstance(name, str) for word in name.split(".")}


@functools.cache
def known_names() -> set[str]:
    """Identifiers of the package, words of its strings but docstrings, of its data, and its files' names."""
    docs = {id(node.body[0].value) for _, node in nodes() if isinstance(node, DOCUMENTED) and ast.get_docstring(node)}
    found = [node.value for _, node in nodes() if isinstance(node, ast.Constant) and id(node) not in docs]
    found += [
        path.read_text() for room in ROOMS for path in (ROOT / room).rglob("*") if path.suffix in (".yaml", ".j2")
    ]
    found += [str(path.relative_to(ROOT)) for path in [*MODULES, *ROOT.iterdir()]]
    files = {path.relative_to(ROOT) for room in (*ROOMS, *MORE) for path in (ROOT / room).rglob("*.py")}
    ends = {"/".join(path.parts[start:]) for path in files for start in range(len(path.parts))}
    return (
        identifiers()
        | ends
        | {word for text in (*found, ELSEWHERE) if isinstance(text, str) for word in re.findall(r"\w+", text)}
    )


def exists(name: str) -> bool:
    """Whether a file does, or all parts of a dotted name; `copy_bytes` also if the code puts `copy_` before `bytes`."""
    if name.endswith(".py"):
        return name in known_names() or name in ELSEWHERE.split()
    head, _, tail = name.partition("_")
    return (head != "" and {f"{head}_", tail} <= known_names()) or known_names().issuperset(name.split("."))


def test_names_in_backticks_exist():
    """Names of Python in docstrings, comments and pages: with an underscore, a dot, a call or capitals inside."""
    stale = set()
    for path in [*MODULES, ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        text = re.sub(r"(?ms)^```.*?^```", "", path.read_text())
        names = [found[1] for found in re.finditer(rf"`((?:{NAMELIKE})|[\w/]+\.py)(?:\(.*?\))?`", text)]
        stale |= {f"{path.relative_to(ROOT)}: {name}" for name in names if not exists(name)}
    assert sorted(stale) == []


def test_the_face_says_what_it_takes_and_gives():
    """Args for every parameter of its classes and functions, Returns for every result."""
    assert face_docs.lacking() == []


def test_nothing_raises_not_implemented():
    raising = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, node in nodes()
        if isinstance(node, ast.Raise) and "NotImplementedError" in ast.dump(node)
    ]
    assert raising == []


def _decorated(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    return {name.id for name in node.decorator_list if isinstance(name, ast.Name)}


def _outside_kernels(node: ast.AST) -> Iterator[ast.AST]:
    """What Python runs of a function: not the kernels that it makes."""
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.FunctionDef) and _decorated(child) & {"kernel", "entry", "search"}):
            yield child
            yield from _outside_kernels(child)


def test_python_calls_entries_only():
    """A `@kernel` has no way in from Python; outside compiled code only an `@entry` or a `@search` may be called."""
    kernels = {node.name for _, node in functions() if "kernel" in _decorated(node)}
    entries = {node.name for _, node in functions() if not _decorated(node) & {"kernel"}}
    wrong = [
        f"{name} calls {call.func.id}"
        for name, node in functions()
        if not _decorated(node) & {"kernel", "entry", "search"}
        for call in _outside_kernels(node)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in kernels - entries
    ]
    assert "occupy" in kernels and wrong == []


def test_every_folder_of_code_is_packaged():
    """pyproject.toml lists the packages by name; setuptools leaves a forgotten one out without a word."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = {path.parent.relative_to(ROOT) for path in MODULES}
    assert sorted(listed) == sorted(".".join(("clustergym", *folder.parts)) for folder in folders)


def test_every_package_has_an_init_with_a_docstring():
    """Without one, type checker and import contracts do not see the folder."""
    bare = [
        str(folder.relative_to(ROOT))
        for folder in sorted({path.parent for path in MODULES})
        if not (folder / "__init__.py").exists()
        or not ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))
    ]
    assert bare == []


def test_every_command_of_the_readme_exists():
    if importlib.util.find_spec("clustergym.experiments.cli") is None:
        pytest.skip("there is no command line yet")
    blocks = re.findall(r"^```(?:bash|sh|console)\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
    used = {word for block in blocks for word in re.findall(r"^\$? ?clustergym ([a-z]+)", block, re.M)}
    outcome = run("-c", "from clustergym.experiments.cli import main; main()", "--help")
    assert used, "the README shows no command"
    assert [word for word in sorted(used) if not re.search(rf"\b{word}\b", outcome.stdout)] == []
