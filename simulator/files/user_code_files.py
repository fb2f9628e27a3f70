"""The files of a user's own code: the named one, and its imports from the user's folder.

Stored results compare their content, so the sources' imports count: `from numbers_of_mine import MARGIN` leaves only a
number. Imports during a run count too, under their future name.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from ..base.errors import InputError

PACKAGE = Path(__file__).resolve().parents[1]
SITES = ("site-packages", "dist-packages")

_imported_as: dict[Path, tuple[tuple[int, int], str]] = {}  # files that are not loaded again: as they were at first


def files_of(thing: Any) -> tuple[Path, ...]:
    """The file of a user's class or function, and what it imports from its folder; None: a notebook, this package."""
    module = sys.modules.get(getattr(thing, "__module__", None) or "")
    return () if module is None else files_with(module)


def files_with(module: ModuleType) -> tuple[Path, ...]:
    """The files of a module and of its imports from its own folder or package, its own first; none of clustergym's."""
    first = _file_of(module)
    if first is None:
        return ()
    home = _home_of(module, first)
    found: dict[Path, None] = {}
    left: list[tuple[Path, ModuleType | None]] = [(first, module)]
    while left:
        path, one = left.pop()
        if path in found or not path.is_relative_to(home) or path.is_relative_to(PACKAGE):
            continue
        if not path.is_file() or (found and _is_site(path, home)):
            continue
        found[path] = None
        package = "" if one is None else getattr(one, "__package__", None) or ""
        for name in (*_imports(path, stamp_of(path), package), *_origins(one)):
            other = sys.modules.get(name)
            file = _meant(home, name, other)
            if file is not None:
                left.append((file, other))
    return tuple(found)


def expect_own_imports(path: Path, files: Iterable[Path], said: str) -> None:
    """InputError where a user's file means one beside it, and gets a module of that name from elsewhere.

    Two folders may have a `helpers.py` each; a process imports one. Copies are one. `files`: it and its imports.
    """
    for file in files:
        for name in _imports(file, stamp_of(file), ""):
            beside, module = _beside(path.parent, name), sys.modules.get(name)
            if beside is None or module is None or name in sys.stdlib_module_names:
                continue
            found = _file_of(module)
            if found is None or _is_copy(found, beside):
                continue
            if beside.is_relative_to(PACKAGE) or found.is_relative_to(PACKAGE):
                continue
            raise InputError(
                f"{said}: {file.name} imports {name}, which this process has from {found} already, not from {beside}; "
                "rename one of them"
            )


def expect_unchanged(files: Iterable[Path], said: str, shown: Any) -> None:
    """InputError where a file has changed since its import; `files`: not reloaded; `said`, `shown`: in the sentence."""
    for path in files:
        stamp = stamp_of(path)
        if path in _imported_as and _imported_as[path][0] == stamp:
            continue
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if _imported_as.setdefault(path, (stamp, digest))[1] != digest:
            raise InputError(f"{said}: {shown(path)} has changed since it was imported; start this process anew")
        _imported_as[path] = (stamp, digest)


def stamp_of(path: Path) -> tuple[int, int]:
    """When a file was written, nanoseconds, and its bytes."""
    about = path.stat()
    return about.st_mtime_ns, about.st_size


def _file_of(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return None if file is None else Path(file).resolve()


def _home_of(module: ModuleType, path: Path) -> Path:
    depth = module.__name__.count(".") - (path.name != "__init__.py")
    return path.parents[max(0, depth)]


def _is_site(path: Path, home: Path) -> bool:
    return home.name in SITES or any(site in path.relative_to(home).parts for site in SITES)


def _origins(module: ModuleType | None) -> Iterator[str]:
    for value in [] if module is None else list(vars(module).values()):
        name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        if isinstance(name, str):
            yield name


def _beside(folder: Path, name: str) -> Path | None:
    whole = folder.joinpath(*name.split("."))
    return next((path for path in (whole / "__init__.py", whole.with_suffix(".py")) if path.is_file()), None)


def _meant(home: Path, name: str, module: ModuleType | None) -> Path | None:
    """The file that stands for a module: that beside the others where it is a copy of the one that was imported."""
    beside, found = _beside(home, name), None if module is None else _file_of(module)
    if beside is None or (module is not None and (found is None or not _is_copy(found, beside))):
        return found
    return beside


def _is_copy(one: Path, other: Path) -> bool:
    try:
        return one == other or one.read_bytes() == other.read_bytes()
    except OSError:
        return False


@functools.lru_cache(maxsize=4096)
def _imports(path: Path, _stamp: tuple[int, int], package: str) -> tuple[str, ...]:
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, RecursionError, OSError):  # extension modules too
        return ()
    found: dict[str, None] = {}
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            names = [] if base is None else [base, *(f"{base}.{one.name}" for one in node.names)]
        for name in names:
            parts = name.split(".")
            found |= dict.fromkeys(".".join(parts[: end + 1]) for end in range(len(parts)))
    return tuple(found)


def _absolute(node: ast.ImportFrom, package: str) -> str | None:
    """What a statement imports from; None: nothing can be said of it."""
    if node.level == 0:
        return node.module
    try:
        return importlib.util.resolve_name("." * node.level + (node.module or ""), package)
    except ImportError:
        return None
