"""Reproductions by name: each stands in the file of its paper, PAPER/PAPER.yaml of this folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ...simulator.files.yaml_files import load_mapping, validated
from .rows import Findings, Options
from .schema import Entry, Paper

FOLDERS = ("dally", "bsbf", "cassini", "mast", "harmony")


@dataclass(frozen=True)
class Reproduction:
    """One published table or figure, or an experiment of ours.

    Attributes:
        name: as on the command line.
        of: whose it is. entry: what it is.
    """

    name: str
    of: Paper
    entry: Entry

    @property
    def paper(self) -> str:
        """Whose, in short."""
        return self.of.paper

    @property
    def kind(self) -> str:
        """Of its rows."""
        return self.entry.about.kind

    @property
    def summary(self) -> str:
        """One line."""
        return self.entry.summary

    def run(self, options: Options) -> Findings:
        """Play what is needed, and compare."""
        from .engine import findings_of

        return findings_of(self.of, self.name, options)


@cache
def paper_of(folder: str) -> Paper:
    """The file of a paper, checked."""
    path = Path(__file__).with_name(folder) / f"{folder}.yaml"
    paper: Paper = validated(Paper, load_mapping(path), str(path))
    return paper


def reproductions() -> Mapping[str, Reproduction]:
    """Every reproduction by name, in the order of the papers."""
    papers = map(paper_of, FOLDERS)
    return {name: Reproduction(name, paper, entry) for paper in papers for name, entry in paper.reproductions.items()}
