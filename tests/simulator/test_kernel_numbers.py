"""Every number that a kernel knows stands in a file whose edit gives another cache of kernels."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path

from clustergym.simulator.compiler import jit

PACKAGE = jit.PACKAGE
COMPILED = {"kernel", "entry", "known"}  # decorators


def sources() -> dict[str, ast.Module]:
    """Modules whose text is in the key."""
    return {name_of(path): ast.parse(text) for path, text in jit.sources()}


def name_of(path: Path) -> str:
    return ".".join(("clustergym", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


def imported(module: str, tree: ast.Module) -> dict[str, tuple[str, str]]:
    """What a source imports from clustergym: name there -> (module, name in it)."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), module.rpartition(".")[0])
            found |= {one.asname or one.name: (base, one.name) for one in node.names}
    return found


def names_in(node: ast.AST) -> Iterator[str]:
    return (one.id for one in ast.walk(node) if isinstance(one, ast.Name))


def test_numbers_of_kernels_are_in_files_that_name_the_cache():
    """Else old machine code would go on with the old number: numba sees edits to the file of a function only."""
    trees = sources()
    kernels = [
        (module, name)
        for module, tree in trees.items()
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and COMPILED & {one for mark in node.decorator_list for one in names_in(mark)}
        for name in names_in(node)
    ]
    left, seen, outside = list(dict.fromkeys(kernels)), set[tuple[str, str]](), set[str]()
    while left:
        module, name = left.pop()
        if (module, name) in seen:
            continue
        seen.add((module, name))
        known = imported(module, trees[module])
        if name in known:
            base, there = known[name]
            value = getattr(importlib.import_module(base), there, None)  # None: a module
            if base in trees:
                left.append((base, there))
            elif isinstance(value, int | float | str | tuple):
                outside.add(f"{base}.{there}")
        for node in trees[module].body:
            if isinstance(node, ast.Assign) and any(name in names_in(target) for target in node.targets):
                left += [(module, one) for one in names_in(node.value)]
    assert len(seen) > 1000 and outside == set()
