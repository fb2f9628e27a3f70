"""Counts of the house, on the graph of its imports: modules a folder, cycles, arrows that run back, small modules.

    python tests/support/house.py                            prints all figures
    python tests/support/house.py --lists                    and what they count
    python tests/support/house.py --order simulator=base,numerics,cluster,...
                                                             the folders of `simulator`, lowest first; repeatable

An import is any: at the top of a module, in a function, or under `if TYPE_CHECKING`. Names that are imported as text
(`"clustergym.envs.delay.env:DelayEnv"`) are none. An import of a name that is a module leads to that module, of any
other name to the module that is named, not through packages on the way. The face of the project, its root
`__init__.py`, hands everything on, and is left out.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import networkx as nx

ROOT = Path(__file__).resolve().parents[2]
NAME = "clustergym"
ORDER = ("simulator", "policies", "envs", "agents", "experiments")  # lowest first
MANY, FEW_LINES = 12, 40  # modules a folder; lines of a module that ought to have more than one importer
MAY_RECUR = ("__init__", "columns", "env", "observation")
KINDS = ("top", "function", "typing")  # of imports
MAY_BE_SMALL = {
    "simulator.rules.rule_calls": "what Python calls of a folder's compiled code is a module of its own, everywhere",
    "simulator.workloads.readers.simple_trace": "a format of traces is a module",
}


@dataclass(frozen=True)
class Arrow:
    """One import: which module, by which, of which kind, in which line."""

    importer: str
    imported: str
    kind: str
    line: int


@dataclass(frozen=True)
class Found:
    """A figure: what it counts, how many, and which."""

    what: str
    count: int
    which: list[str]


class House:
    """The modules of a folder and the imports between them; names are relative to the project, with dots.

    Args:
        root: where the rooms are.
        rooms: their names; what else lies there is not looked at.
        name: of the package that `root` is.
    """

    def __init__(self, root: Path = ROOT, rooms: Sequence[str] = ORDER, name: str = NAME) -> None:
        self.name = name
        self.paths = {dotted(path, root): path for room in rooms for path in sorted((root / room).rglob("*.py"))}
        self.packages = {module for module, path in self.paths.items() if path.name == "__init__.py"}

    @cached_property
    def lines(self) -> dict[str, int]:
        """How long each module is."""
        return {module: len(path.read_text().splitlines()) for module, path in self.paths.items()}

    @cached_property
    def arrows(self) -> list[Arrow]:
        """All imports between modules."""
        return [arrow for module in self.paths for arrow in self._of(module)]

    def _of(self, module: str) -> Iterator[Arrow]:
        tree = ast.parse(self.paths[module].read_text())
        for node, kind in imports(tree, "top"):
            for imported in dict.fromkeys(self._meant(module, node)):
                if imported != module:
                    yield Arrow(module, imported, kind, node.lineno)

    def _meant(self, module: str, node: ast.Import | ast.ImportFrom) -> Iterator[str]:
        """The modules of the house that a statement leads to."""
        if isinstance(node, ast.Import):
            named = [alias.name.removeprefix(f"{self.name}.") for alias in node.names]
            yield from (name for name in named if name in self.paths)
            return
        base = self._base(module, node)
        if base is None:
            return
        for alias in node.names:
            inner = f"{base}.{alias.name}".lstrip(".")
            if inner in self.paths:
                yield inner
            elif base in self.paths:
                yield base

    def _base(self, module: str, node: ast.ImportFrom) -> str | None:
        """What `from` names, relative to the project, "" being its face; None: something else."""
        named = node.module or ""
        if node.level == 0:
            if named != self.name and not named.startswith(f"{self.name}."):
                return None
            return named.removeprefix(self.name).lstrip(".")
        parts = module.split(".")
        up = node.level - (module in self.packages)
        return ".".join([*parts[: len(parts) - up], *([named] if named else [])])

    def graph(self, kinds: Sequence[str] = KINDS) -> nx.DiGraph[str]:
        """Modules and their imports of some kinds."""
        graph: nx.DiGraph[str] = nx.DiGraph()
        graph.add_nodes_from(self.paths)
        graph.add_edges_from((one.importer, one.imported) for one in self.arrows if one.kind in kinds)
        return graph

    def cycles(self, kinds: Sequence[str] = KINDS) -> list[list[str]]:
        """The strongly connected components of more than one module, largest first."""
        return knots(self.graph(kinds))

    def folder_of(self, module: str) -> str:
        """The folder in which a module lies, with dots; a package's own `__init__` lies in it."""
        return module if module in self.packages else module.rpartition(".")[0]

    def part_of(self, module: str, folder: str) -> str | None:
        """The first folder inside `folder` in which a module lies; "" is `folder` itself, None elsewhere."""
        inside = self.folder_of(module)
        if inside == folder or not folder:
            return inside.split(".")[0] if not folder else ""
        return inside.removeprefix(f"{folder}.").split(".")[0] if inside.startswith(f"{folder}.") else None

    def folders(self) -> dict[str, int]:
        """How many modules lie directly in each folder, `__init__` not counted."""
        counts = Counter({self.folder_of(module): 0 for module in self.paths})
        counts.update(self.folder_of(module) for module in self.paths if module not in self.packages)
        return dict(counts)

    def against(self, order: Sequence[str], folder: str = "") -> list[Arrow]:
        """Imports of what comes later in an order of the folders inside `folder`, lowest first.

        Modules directly in `folder`, its face, are left out where `order` does not name them as "".

        Raises:
            ValueError: a folder that the order does not name.
        """
        parts = {module: self.part_of(module, folder) for module in self.paths}
        unnamed = sorted({part for part in parts.values() if part} - set(order))
        if unnamed:
            raise ValueError(f"the order of {folder or self.name} leaves out {', '.join(unnamed)}")
        rank = {part: number for number, part in enumerate(order)}
        ranks = {module: rank[part] for module, part in parts.items() if part in rank}
        return [
            one
            for one in self.arrows
            if one.importer in ranks and one.imported in ranks and ranks[one.imported] > ranks[one.importer]
        ]

    def both_ways(self, folder: str, kinds: Sequence[str] = KINDS) -> list[tuple[str, str]]:
        """Pairs of folders inside `folder` that import each other; `(root)` are the modules directly in it."""
        graph = self.of_folders(folder, kinds)
        return sorted((a, b) for a, b in graph.edges if a < b and graph.has_edge(b, a))

    def of_folders(self, folder: str, kinds: Sequence[str] = KINDS) -> nx.DiGraph[str]:
        """The folders inside `folder` and what imports what."""
        graph: nx.DiGraph[str] = nx.DiGraph()
        for one in self.arrows:
            parts = self.part_of(one.importer, folder), self.part_of(one.imported, folder)
            if one.kind in kinds and parts[0] != parts[1] and None not in parts:
                graph.add_edge(parts[0] or "(root)", parts[1] or "(root)")
        return graph

    def importers(self) -> dict[str, set[str]]:
        """The importers of each module."""
        found: dict[str, set[str]] = {module: set() for module in self.paths}
        for one in self.arrows:
            found[one.imported].add(one.importer)
        return found

    def lonely(self, lines: int = FEW_LINES) -> list[str]:
        """Modules of fewer lines that one other module alone imports: `module (lines) <- importer`."""
        return [
            f"{module} ({self.lines[module]}) <- {next(iter(by))}"
            for module, by in self.importers().items()
            if module not in self.packages | MAY_BE_SMALL.keys() and self.lines[module] < lines and len(by) == 1
        ]

    def recurring(self) -> dict[str, list[str]]:
        """Names that several modules have, but for those that may: name -> modules."""
        named: dict[str, list[str]] = {}
        for module in self.paths:
            if module not in self.packages:
                named.setdefault(module.rpartition(".")[2], []).append(module)
        return {name: found for name, found in sorted(named.items()) if len(found) > 1 and name not in MAY_RECUR}


def dotted(path: Path, root: Path) -> str:
    """The name of a module, relative to the project."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(node: ast.AST, kind: str) -> Iterator[tuple[ast.Import | ast.ImportFrom, str]]:
    """All import statements below a node, with their kind."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, kind
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from imports(child, "function")
        elif isinstance(child, ast.If) and is_typing(child.test):
            for inner in child.body:
                yield from imports(ast.Module([inner], []), "typing")
            for inner in child.orelse:
                yield from imports(ast.Module([inner], []), kind)
        else:
            yield from imports(child, kind)


def is_typing(test: ast.expr) -> bool:
    """Whether a condition is `TYPE_CHECKING`, or `typing.TYPE_CHECKING`."""
    return getattr(test, "id", getattr(test, "attr", "")) == "TYPE_CHECKING"


def knots(graph: nx.DiGraph[str]) -> list[list[str]]:
    """The strongly connected components of more than one node, largest first."""
    found = [sorted(part) for part in nx.strongly_connected_components(graph) if len(part) > 1]
    return sorted(found, key=lambda part: (-len(part), part))


def figures(house: House, orders: dict[str, list[str]]) -> Iterator[Found]:
    """All figures of the house."""
    folders = house.folders()
    yield Found("modules", sum(folders.values()), [f"{folder} {count}" for folder, count in folders.items()])
    many = [f"{folder} {count}" for folder, count in folders.items() if count > MANY]
    yield Found(f"folders of more than {MANY} modules", len(many), many)
    for said, kinds in (("top-level", KINDS[:1]), ("and function-level", KINDS[:2]), ("and typing", KINDS)):
        cycles = house.cycles(kinds)
        which = [f"{len(one)}: {' '.join(one)}" for one in cycles]
        yield Found(f"cycles of modules by {said} imports", len(cycles), which)
    for folder, order in orders.items():
        against = house.against(order, folder)
        which = [f"{one.importer}:{one.line} -> {one.imported} ({one.kind})" for one in against]
        yield Found(f"imports against the order {' < '.join(part or '(root)' for part in order)}", len(against), which)
        if folder:
            direct = [module for module in house.paths if house.part_of(module, folder) == "" and module != folder]
            yield Found(f"modules directly in {folder}", len(direct), direct)
    for folder in ORDER:
        for said, kinds in (("top-level", KINDS[:1]), ("all", KINDS)):
            pairs = [" - ".join(pair) for pair in house.both_ways(folder, kinds)]
            if pairs:
                yield Found(f"pairs of folders of {folder} that import each other by {said} imports", len(pairs), pairs)
    lonely = house.lonely()
    yield Found(f"modules of less than {FEW_LINES} lines that one module alone imports", len(lonely), lonely)
    exempt = [f"{module}: {why}" for module, why in MAY_BE_SMALL.items()]
    yield Found("exceptions from that", len(exempt), exempt)
    recurring = house.recurring()
    which = [f"{name}: {' '.join(found)}" for name, found in recurring.items()]
    yield Found("names that several modules have", len(recurring), which)


def ordered(words: Sequence[str]) -> dict[str, list[str]]:
    """`FOLDER=a,b,c` as an order of its folders; that of the rooms comes first."""
    pairs = (word.partition("=") for word in words)
    return {"": list(ORDER), **{folder: order.split(",") for folder, _, order in pairs}}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description="Counts of the house, on the graph of its imports.")
    parser.add_argument("--lists", action="store_true", help="print what is counted too")
    parser.add_argument("--order", action="append", default=[], metavar="FOLDER=A,B,...", help="lowest first")
    given = parser.parse_args(arguments)
    try:
        for found in figures(House(), ordered(given.order)):
            print(f"{found.count:5d}  {found.what}")
            if given.lists:
                print("".join(f"         {one}\n" for one in found.which), end="")
    except ValueError as error:  # an order that leaves a folder out
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
