"""docs/papers.md: which function does what of which paper, from tags in docstrings.

    python tests/support/paper_page.py            prints the page
    python tests/support/paper_page.py --write    writes it
    python tests/support/paper_page.py --counts   prints the files of each paper

A tag ends a docstring of a module, a class or a function, after other text or as a line; a docstring may have several:

    Paper: dally, Algorithm 1, line 4; Sec. IV-B2.
    Setting: mast, Figure 2.

`Paper` says that this is a part of the algorithm that bears the paper's name, `Setting` that it is what the paper's
experiments play on: speeds, jobs, clusters, other schedulers as its authors have them. A reader of an algorithm against
its paper reads the files with tags of the first kind; these are counted. Places go by `;`.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from clustergym.tests.support.paths import ROOT
from clustergym.tests.support.references import reference

PAGE = ROOT / "docs" / "papers.md"
ROOMS = ("policies", "simulator", "envs")
ALGORITHM, SETTING = "Paper", "Setting"


@dataclass(frozen=True)
class Source:
    """A paper of CITATION.cff: which part of it, or whose words of it, are meant."""

    remark: str = ""


PAPERS = {
    "dally": Source(),
    "sjf-bsbf": Source(),
    "gandiva": Source("as papers dally and sjf-bsbf describe it"),
    "tiresias": Source("as papers dally and sjf-bsbf describe it"),
    "themis": Source("as paper cassini describes it"),
    "cassini": Source(),
    "crux": Source(),
    "mltcp": Source(),
    "pollux": Source(),
    "harmony": Source(),
    "mast": Source("its fast path (Sec. 4)"),
    "tetris": Source("its slow path (Sec. 3)"),
}
ORDER = ("Algorithm", "Theorem", "Table", "Figure", "Expression", "Eq", "Sec")  # of places on the page


@dataclass(frozen=True)
class Tag:
    """One place of a paper, and where it is.

    Attributes:
        kind: `ALGORITHM` or `SETTING`.
        paper: a key of `PAPERS`, if it is a right one.
        place: in the paper.
        file: relative to the project.
        name: of the function or class, with that of its class; empty: the module.
    """

    kind: str
    paper: str
    place: str
    file: str
    name: str


def tags(root: Path = ROOT, rooms: Sequence[str] = ROOMS) -> list[Tag]:
    """All tags of the rooms."""
    return [tag for room in rooms for path in sorted((root / room).rglob("*.py")) for tag in tags_of(path, root)]


def tags_of(path: Path, root: Path = ROOT) -> Iterator[Tag]:
    """Those of one file, in order."""
    file = path.relative_to(root).as_posix()
    for name, node in documented(ast.parse(path.read_text())):
        for line in (ast.get_docstring(node) or "").splitlines():
            found = re.search(rf"(?:^| )({ALGORITHM}|{SETTING}): (.*)", line)
            if found is not None:
                paper, _, places = found[2].removesuffix(".").partition(", ")
                for place in places.split("; "):
                    yield Tag(found[1], paper, place, file, name)


Documented = ast.Module | ast.ClassDef | ast.FunctionDef


def documented(node: Documented, name: str = "") -> Iterator[tuple[str, Documented]]:
    """A module, class or function, and those inside, with their names."""
    yield name, node
    for child in node.body:
        if isinstance(child, ast.ClassDef | ast.FunctionDef):
            yield from documented(child, f"{name}.{child.name}".lstrip("."))


def files(found: Sequence[Tag], paper: str) -> list[str]:
    """The files to read against a paper, most tags first."""
    count: dict[str, int] = defaultdict(int)
    for tag in found:
        if tag.paper == paper and tag.kind == ALGORITHM:
            count[tag.file] += 1
    return sorted(count, key=lambda file: (-count[file], file))


def page(found: Sequence[Tag]) -> str:
    """The text of docs/papers.md."""
    read = {key: files(found, key) for key in PAPERS}
    rows = [f"| [{_name(key)}](#{key}) | {len(of)} | {_code(of)} |" for key, of in read.items()]
    parts = [
        "# Papers",
        "Which function does what of which paper. Made by `python tests/support/paper_page.py --write` from the tags "
        "`Paper: dally, Algorithm 1.` at the end of docstrings and from `CITATION.cff`, which has "
        "the full citations; a test holds the page to them. "
        "What the papers leave open, and what is read otherwise than printed, stands at the head of these files.",
        "| paper | files to read against it | |\n| --- | ---: | --- |\n" + "\n".join(rows),
        *(_section(key, found) for key in PAPERS),
    ]
    return "\n\n".join(parts) + "\n"


def _section(key: str, found: Sequence[Tag]) -> str:
    parts = [f"## {_name(key)} {{ #{key} }}", f"{_short(key)}."]
    own = [tag for tag in found if tag.paper == key]
    algorithm = [tag for tag in own if tag.kind == ALGORITHM]
    if algorithm:
        parts.append(_table(algorithm))
    setting = [tag for tag in own if tag.kind == SETTING]
    if setting:
        parts += ["What its experiments play on:", _table(setting)]
    return "\n\n".join(parts)


def _short(key: str) -> str:
    """First author, venue and year, and which part of the paper; CITATION.cff has the rest."""
    paper = reference(key)
    return ", ".join(filter(None, (f"{paper.authors[0]} et al.", paper.short, PAPERS[key].remark)))


def _name(key: str) -> str:
    return next(name for name in reference(key).names if name.lower() == key)


def _table(found: Sequence[Tag]) -> str:
    """A row a place and file, with all functions there; the module itself has no name."""
    grouped = groupby(sorted(found, key=_order), key=lambda tag: (tag.place, tag.file))
    rows = [f"| {place} | `{file}` | {_code([tag.name for tag in of if tag.name])} |" for (place, file), of in grouped]
    return "| in the paper | file | here |\n| --- | --- | --- |\n" + "\n".join(rows)


def _order(tag: Tag) -> tuple[int, list[str], str, str]:
    kind = next((i for i, word in enumerate(ORDER) if tag.place.startswith(word)), len(ORDER))
    natural = [part.zfill(4) if part.isdigit() else part for part in re.findall(r"\d+|\D+", tag.place)]
    return kind, natural, tag.file, tag.name


def _code(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def main() -> None:
    """Print or write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--counts", action="store_true")
    asked = parser.parse_args()
    found = tags()
    if asked.counts:
        for key in PAPERS:
            print(f"{_name(key):9} {len(files(found, key))}  {', '.join(files(found, key))}")
    elif asked.write:
        PAGE.write_text(page(found))
    else:
        sys.stdout.write(page(found))


if __name__ == "__main__":
    main()
