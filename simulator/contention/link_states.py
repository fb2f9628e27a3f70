"""Links that are down or carry less for a while: what a user's file says of them, and the ways that are left.

A csv with a row for every change: `time_s`, on the clock of the workload's arrivals, `scale`, from 0 (down) to 1
(whole), and which: `link`, by its name ("leaf0->agg1", one way, of parallel ones "leaf0->agg1#2"), or `from` and `to`,
all links from one node to another. What is not named is whole; a scale holds until the next row of the link.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..base.errors import InputError
from ..cluster.links import LinkGraph, detours
from ..cluster.routes import EqualPaths
from ..jobs.trace_columns import Table, read_csv

MOST_ROWS = 100_000


@dataclass(frozen=True, eq=False)
class Outage:
    """Which links are up, where some are not.

    Attributes:
        links: all there are.
        up: bool (L,).
    """

    links: LinkGraph
    up: np.ndarray

    @cached_property
    def key(self) -> bytes:
        """The same for the same links."""
        return np.packbits(self.up).tobytes()

    @cached_property
    def table(self) -> np.ndarray:
        """On which link each node sends what goes to each NIC, int32 (N, M C), -1: no way is left."""
        return detours(self.links, self.up)

    @cached_property
    def paths(self) -> EqualPaths:
        """The shortest ways left between NICs, for flows whose path is drawn."""
        return EqualPaths(self.links, self.up)


@dataclass(frozen=True, eq=False)
class Degraded:
    """Scales of the capacities of links over time, as a file has them (k rows).

    Attributes:
        path: of the file.
        time_s, scale: float64 (k,).
        link, start, end: k words each; empty where the file names the links of a row the other way.
        line: int64 (k,), where in the file.
    """

    path: str
    time_s: np.ndarray
    scale: np.ndarray
    link: tuple[str, ...]
    start: tuple[str, ...]
    end: tuple[str, ...]
    line: np.ndarray

    @classmethod
    def read(cls, path: str) -> Degraded:
        """The rows of a file; InputError: one sentence with file, line, column, value and what was expected."""
        expected = "a csv of time_s, link (or from and to) and scale"
        table = read_csv(path, most=MOST_ROWS, may_be_empty=True, is_guarded=True, expected=expected)
        if not len(table):
            raise InputError(f"{path}: a header but no rows; expected {expected}")
        numbers = table.numbers({"time_s": {"low": 0}, "scale": {"low": 0, "high": 1}})
        if "link" in table:
            link, start, end = table.text("link"), [""] * len(table), [""] * len(table)
        elif "from" in table or "to" in table:
            link, start, end = [""] * len(table), table.text("from"), table.text("to")
        else:
            table.column("link")
        link, start, end = (list(map(str.strip, column)) for column in (link, start, end))
        return cls(path, numbers["time_s"], numbers["scale"], tuple(link), tuple(start), tuple(end), table.places)

    def on(self, links: LinkGraph, what: str) -> LinkChanges:
        """The rows as changes of the links of a network; `what`: how errors call it.

        Raises:
            InputError: a link or node that is not there, or one that has two scales at one time.
        """
        columns = {"link": list(self.link), "from": list(self.start), "to": list(self.end)}
        table = Table(self.path, columns, self.line, "line")
        place = {name: link for link, name in enumerate(links.link_names)}
        nodes = {name: node for node, name in enumerate(links.node_names)}
        between: dict[tuple[int, int], list[int]] = {}
        for link, ends in enumerate(zip(links.source.tolist(), links.target.tolist(), strict=True)):
            between.setdefault(ends, []).append(link)
        rows: list[int] = []
        found: list[int] = []
        for number, name in enumerate(self.link):
            if name:
                if name not in place:
                    raise table.error(number, "link", f"a link of {what}{_hint(name, place)}")
                named = [place[name]]
            else:
                for column in ("from", "to"):
                    if columns[column][number] not in nodes:
                        hint = _hint(columns[column][number], nodes)
                        raise table.error(number, column, f"a node of {what}{hint}")
                named = between.get((nodes[self.start[number]], nodes[self.end[number]]), [])
                if not named:
                    expected = f"a node to which a link leads from {self.start[number]!r}"
                    raise table.error(number, "to", expected)
            rows += [number] * len(named)
            found += named
        row, changed = np.array(rows), np.array(found)
        order = np.lexsort((row, changed, self.time_s[row]))
        row, changed = row[order], changed[order]
        twice = np.flatnonzero((np.diff(self.time_s[row]) == 0) & (np.diff(changed) == 0))
        if len(twice):
            first, second = self.line[row[twice[0]]], int(row[twice[0] + 1])
            column = "link" if self.link[second] else "to"
            raise table.error(second, column, f"one scale of a link at one time (line {first} has one too)")
        return LinkChanges(links.num_links, self.time_s[row], changed, self.scale[row])


@dataclass(frozen=True, eq=False)
class LinkChanges:
    """Scales of the capacities of links over time, ascending (k changes).

    Attributes:
        num_links: L. time_s, scale: float64 (k,). link: int64 (k,).
    """

    num_links: int
    time_s: np.ndarray
    link: np.ndarray
    scale: np.ndarray

    def scales(self, now_s: float) -> np.ndarray:
        """The scale of every link at a time, float64 (L,)."""
        past = int(np.searchsorted(self.time_s, now_s, "right"))
        found = np.ones(self.num_links)
        found[self.link[:past]] = self.scale[:past]  # of several of a link the last one stays
        return found

    def next_s(self, now_s: float) -> float:
        """When the next change comes; infinity: none does."""
        past = int(np.searchsorted(self.time_s, now_s, "right"))
        return float(self.time_s[past]) if past < len(self.time_s) else math.inf


def _hint(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f", perhaps {close[0]!r}" if close else ""
