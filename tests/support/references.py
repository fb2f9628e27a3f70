"""The papers that the project names, as CITATION.cff lists them, and what else in the tree says where they appeared.

That file is the list: venue, year, DOI or arXiv number of each, and what is not sure of it. docs/papers.md is made from
it (paper_page.py); README, the pages, the registry and the docstrings repeat venues, and a test holds each of these
mentions (`mentions`) to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from clustergym.tests.support.paths import ROOT

CITATION = ROOT / "CITATION.cff"
FOLDERS = ("agents", "benchmarks", "docs", "envs", "experiments", "policies", "simulator", "tests")
OWN_TESTS = ROOT / "tests" / "project" / "test_references.py"  # has wrong ones
KINDS = {".py", ".md", ".csv", ".json", ".yaml"}
# Of the field, before a year of two or four digits; others are seen before two, as in X'24.
VENUES = (
    r"ASPLOS|ATC|Big\sData|CLUSTER|EuroSys|HPDC|HotNets|ICDCS|ICDE|ICPP|INFOCOM|IPDPS|IWQoS|MLSys|Middleware|NSDI|OSDI|SC|"
    "SIGCOMM|SOSP|SoCC|TPDS|VLDB"
)
_VENUE = re.compile(rf"\b(?:({VENUES})(?:\s?'|\s20)|([A-Z]\w*[A-Z]\w*)')(\d\d)\b")
_NUMBER = re.compile(r"\barXiv[: ]\s*(\d{4}\.\d{4,5})|\b(10\.\d{4,}/[\w.]*\w)")
_MARKS = re.compile(r"\s*\n[ \t]*(?:#|//)?\s*")  # of the next line, in a docstring, a comment or a page


@dataclass(frozen=True)
class Reference:
    """A paper.

    Attributes:
        names: what we call what it describes: a system, or two.
        title: as printed. authors: family names in order, all or the first few; more: whether there are others.
        venue: its short name. year: 2021. doi, arxiv: numbers; empty: none, or none that we know.
        note: what is not sure, or not read; empty: nothing.
    """

    names: tuple[str, ...]
    title: str
    authors: tuple[str, ...]
    more: bool
    venue: str
    year: int
    doi: str
    arxiv: str
    note: str

    @property
    def short(self) -> str:
        """Venue and year as pages have them: the venue, an apostrophe, two digits."""
        return f"{self.venue}'{self.year % 100:02}"

    def cited(self) -> str:
        """Authors, title, venue and year, DOI and arXiv number; then what is not sure, in Markdown."""
        authors = ", ".join(self.authors) + (" et al." if self.more else "")
        doi = f"[doi:{self.doi}](https://doi.org/{self.doi})" if self.doi else ""
        arxiv = f"[arXiv:{self.arxiv}](https://arxiv.org/abs/{self.arxiv})" if self.arxiv else ""
        told = ", ".join(filter(None, (authors, f"*{self.title}*", self.short, doi, arxiv)))
        return f"{told}. {self.note}" if self.note else told


@cache
def references() -> tuple[Reference, ...]:
    """All of them, as listed."""
    return tuple(map(_read, yaml.safe_load(CITATION.read_text())["references"]))


def reference(name: str) -> Reference:
    """That of a name, whatever the case."""
    (found,) = (one for one in references() if name.lower() in map(str.lower, one.names))
    return found


def _read(row: dict) -> Reference:
    identifiers = [one["value"].removeprefix("arXiv:") for one in row.get("identifiers", ())]
    return Reference(
        names=tuple(row["abbreviation"].split(" and ")),
        title=row["title"],
        authors=tuple(one["family-names"] for one in row["authors"] if "family-names" in one),
        more=any("name" in one for one in row["authors"]),
        venue=row["conference"]["alias"],
        year=row["year"],
        doi=row.get("doi", ""),
        arxiv=identifiers[0] if identifiers else "",
        note=row.get("notes", ""),
    )


@dataclass(frozen=True)
class Mention:
    """A venue with a year, somewhere; `about`: the papers that the text before it names last, none if it names none."""

    venue: str
    year: int
    about: tuple[Reference, ...]

    @property
    def is_right(self) -> bool:
        """Whether one of these papers appeared there and then."""
        return any((self.venue, self.year) == (one.venue, one.year) for one in self.about)


def mentions(text: str) -> Iterator[Mention]:
    """All venues with years of a text, in order.

    A paper is named by a name of its system, its title or its first author; of several the one that ends nearest before
    the venue. A paper with an author or name in common with another may be either.
    """
    flat = _MARKS.sub(" ", text)
    venues = list(_VENUE.finditer(flat))
    if not venues:
        return
    named = [(found.end(), one) for one in references() for found in _named(one).finditer(flat)]
    for found in venues:
        before = [(end, one) for end, one in named if end <= found.start()]
        last = max((end for end, _ in before), default=0)
        yield Mention(found[1] or found[2], 2000 + int(found[3]), tuple(one for end, one in before if end == last))


def numbers(text: str) -> list[str]:
    """All DOIs and arXiv numbers of a text."""
    return [found[1] or found[2] for found in _NUMBER.finditer(text)]


def told() -> Iterator[tuple[str, str]]:
    """The files that may name venues, relative to the project, with their texts."""
    for path in (*sorted(ROOT.glob("*.md")), *_files(FOLDERS)):
        yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def _files(folders: Sequence[str]) -> Iterator[Path]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in KINDS and path != OWN_TESTS:
                yield path


@cache
def _named(one: Reference) -> re.Pattern[str]:
    words = (*map(re.escape, (*one.names, one.title)), rf"{re.escape(one.authors[0])}(?=[ ,])")
    return re.compile(rf"(?<!\w)(?:{'|'.join(words)})(?!\w)", re.IGNORECASE)
