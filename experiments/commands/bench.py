"""`clustergym bench`: runs the programs of the source tree's benchmarks/."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from typing import Annotated, Any

import typer

from ..console.terminal import arguments, out, plain_table, print_json
from .options import Json, Quiet, argument, option, whole

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


def bench(
    context: typer.Context,
    name: Annotated[str | None, argument("NAME", "Which; without it, they are listed.")] = None,
    list_: Annotated[bool, option("--list", None, "List them.")] = False,
    json: Json = False,
    seed: Annotated[int | None, option("--seed", "N", "Seed of the benchmark's workloads.", whole(0))] = None,
    quiet: Quiet = False,
) -> None:
    """Run a benchmark; options that are not named here are the benchmark's own."""
    from ...simulator.base.errors import InputError
    from ...simulator.base.names import choose

    programs = _programs()
    if not programs:
        raise InputError(
            "the benchmarks are not part of an installed package; run this from a clone of the repository "
            "that is installed with: pip install -e ."
        )
    if name is None or list_:
        heads = {key: ast.get_docstring(ast.parse(path.read_text())) or "" for key, path in programs.items()}
        rows = [{"name": key, "summary": head.partition("\n")[0]} for key, head in heads.items()]
        _list(rows, json)
        return
    with arguments():
        path = programs[choose(name, programs, "benchmark")]
    flags = ["--json"] * json + ["--quiet"] * quiet + ([f"--seed={seed}"] if seed is not None else [])
    outcome = _load(path).main([*context.args, *flags])
    if isinstance(outcome, int) and outcome:
        raise typer.Exit(outcome)


def _programs() -> dict[str, Path]:
    """Name -> file of every benchmark; files that begin with `_` are common parts."""
    found = sorted(FOLDER.glob("*.py"))
    return {path.stem: path for path in found if not path.stem.startswith("_") and "def main(" in path.read_text()}


def _list(rows: list[dict[str, str]], json: bool) -> None:
    if json:
        print_json(rows)
        return
    table = plain_table()
    table.add_column("name", style="bold", no_wrap=True)
    table.add_column("measures", overflow="fold")
    for row in rows:
        table.add_row(row["name"], row["summary"])
    out().print(table)


def _load(path: Path) -> Any:
    import sys

    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # for what benchmarks share
    spec = importlib.util.spec_from_file_location(f"clustergym_bench_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
