"""Every number that a kernel knows stands in a file whose edit gives another cache of kernels."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path

from clustergym.simulator.kernels import jit

PACKAGE = Path(jit.__file__).parents[2]


def in_the_key(path: Path) -> bool:
    text = path.read_bytes()
    return b"@kernel" in text or b"@entry" in text or path.name in (*jit.UNMARKED, *jit.HOW)


def imported(tree: ast.Module, package: str) -> dict[str, tuple[str, str]]:
    """What a source imports from clustergym: name there -> (module, name in it)."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            found |= {one.asname or one.name: (base, one.name) for one in node.names}
    return found


def used(tree: ast.Module) -> Iterator[str]:
    """Names in kernels, and in the values of a module, which kernels may know."""
    for node in tree.body:
        is_kernel = isinstance(node, ast.FunctionDef) and node.decorator_list
        if is_kernel or isinstance(node, ast.Assign | ast.AnnAssign):
            yield from (one.id for one in ast.walk(node) if isinstance(one, ast.Name))


def test_numbers_of_kernels_are_in_files_that_name_the_cache():
    """Else old machine code would go on with the old number: numba sees edits to the file of a function only."""
    outside = set()
    for room in jit.COMPILED_ROOMS:
        for path in filter(in_the_key, sorted((PACKAGE / room).rglob("*.py"))):
            tree = ast.parse(path.read_text())
            package = ".".join(("clustergym", *path.relative_to(PACKAGE).parts[:-1]))
            known = imported(tree, package)
            for module, name in {known[one] for one in used(tree) if one in known}:
                value = getattr(importlib.import_module(module), name, None)  # None: a module
                file = Path(importlib.import_module(module).__file__ or "")
                if isinstance(value, int | float | str | tuple) and not in_the_key(file):
                    outside.add((path.name, f"{module}.{name}"))
    assert outside == set()
