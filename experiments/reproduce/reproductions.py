"""Reproductions by name: whose, what kind their rows are, and who runs them.

They are listed in reproductions.csv, in the order of the papers; a paper's modules are loaded when one of its own runs.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from . import named
from .findings import Findings, Options

LIST = Path(__file__).with_suffix(".csv")


@dataclass(frozen=True)
class Reproduction:
    """One published table or figure.

    Attributes:
        name: as on the command line.
        paper: whose.
        kind: of its rows; "ours": an experiment of ours, nothing is published.
        place: `module:function` in this folder, which plays what is needed and compares.
        summary: one line.
    """

    name: str
    paper: str
    kind: Literal["table", "ratio", "order", "ours"]
    place: str
    summary: str

    def run(self, options: Options) -> Findings:
        """Play what is needed, and compare."""
        return cast(Findings, named(self.place)(options))


def reproductions() -> Mapping[str, Reproduction]:
    """Every reproduction by name, in the order of the papers."""
    with open(LIST, encoding="utf-8", newline="") as file:
        return {row["name"]: Reproduction(**cast(dict, row)) for row in csv.DictReader(file)}
