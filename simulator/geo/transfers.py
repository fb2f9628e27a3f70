"""Copying tables over wide-area links, and deleting what is no longer wanted: in that order, so that no data is lost.

Paper mast, Sec. 3.4: "Tetris replicates the table to the new home region before deleting its data in the old home
region." A region holds the copies that are being written and those not yet deleted, so a copy begins only once there
is room for it. Each link serves its copies one after the other, in the order of the plan, so that what gains most is
there first; the paper's migration service allots bandwidth to soft deadlines that it does not give.

A copy is deleted only while as many others are complete as the table should have: two where the plan wants two or
more.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from .warehouse import Tables
from .world import World

SAFE_COPIES = 2  # complete ones that a deletion leaves, where the plan has as many


@dataclass
class Copy:
    """A copy under way: a table from a region to another."""

    table: int
    source: int
    target: int
    left_bytes: float


class Transfers:
    """Carries out a plan of copies in simulated time.

    Args:
        world: storage and links.
        tables: sizes, homes, and the copies that are complete now.
        wanted: bool (tables, regions): the copies of the plan; at least one for each table.
        order: tables in the order in which their copies are begun; None: by number.

    Attributes:
        copies: bool (tables, regions), complete ones.
        now_s: seconds since the beginning.
        moved_bytes: over all links, of complete copies.
        lost: tables without any complete copy, ascending: only an outage can bring that about.
    """

    def __init__(self, world: World, tables: Tables, wanted: np.ndarray, order: np.ndarray | None = None) -> None:
        if wanted.shape != tables.copies.shape or not wanted.any(axis=1).all():
            raise InputError(
                f"plan of copies of shape {wanted.shape}: expected {tables.copies.shape}, one a table or more"
            )
        self.world = world
        self.size = tables.size_bytes
        self.wanted = wanted.copy()
        self.copies = tables.copies.copy()
        self.now_s = 0.0
        self.moved_bytes = 0.0
        self.up = np.ones(len(world), bool)
        self._running: dict[tuple[int, int], Copy] = {}
        rows = np.arange(len(tables)) if order is None else np.asarray(order, np.int64)
        lacking = self.wanted & ~self.copies
        self._waiting = deque((int(row), int(region)) for row in rows for region in np.flatnonzero(lacking[row]))
        self._begin()

    @property
    def lost(self) -> list[int]:
        """Tables without a complete copy."""
        return np.flatnonzero(~self.copies.any(axis=1)).tolist()

    @property
    def done(self) -> bool:
        """Whether nothing is under way and nothing that waits can begin."""
        return not self._running

    def room_bytes(self) -> np.ndarray:
        """Storage that is free, int64 (regions,): neither held nor being written."""
        held = (self.copies * self.size[:, None]).sum(axis=0)
        for copy in self._running.values():
            held[copy.target] += self.size[copy.table]
        return self.world.storage_bytes - held

    def advance(self, until_s: float) -> None:
        """Copy until a time, seconds, not before `now_s`, or until nothing is under way."""
        if until_s < self.now_s:
            raise InputError(f"advance to {until_s} s: it is {self.now_s} s already")
        while self._running and self.now_s < until_s:
            ends = {link: copy.left_bytes / self.world.wan_bytes_per_s[link] for link, copy in self._running.items()}
            step_s = min(*ends.values(), until_s - self.now_s)
            for link, copy in list(self._running.items()):
                if ends[link] <= step_s:
                    self._finish(link, copy)
                else:
                    copy.left_bytes -= step_s * self.world.wan_bytes_per_s[link]
            self.now_s += step_s
            self._begin()
        self.now_s = max(self.now_s, until_s) if np.isfinite(until_s) else self.now_s

    def outage(self, region: int) -> None:
        """A region with all that lies there is gone; copies from it start again from another one, if there is one."""
        self.up[region] = False
        self.copies[:, region] = False
        self.wanted[:, region] = False
        for link, copy in list(self._running.items()):
            if region in link:
                del self._running[link]
                if copy.target != region:
                    self._waiting.appendleft((copy.table, copy.target))
        self._begin()

    def _finish(self, link: tuple[int, int], copy: Copy) -> None:
        del self._running[link]
        self.copies[copy.table, copy.target] = True
        self.moved_bytes += float(self.size[copy.table])

    def _delete(self) -> None:
        """What the plan does not want, where enough complete copies that it does want stay."""
        kept = self.copies & self.wanted
        enough = kept.sum(axis=1) >= np.minimum(self.wanted.sum(axis=1), SAFE_COPIES)
        enough &= kept.any(axis=1)
        reading = {copy.table for copy in self._running.values()}
        enough[list(reading)] = False  # its source may be what would go
        self.copies[enough] &= self.wanted[enough]

    def _begin(self) -> None:
        self._delete()
        room = self.room_bytes()
        later: deque[tuple[int, int]] = deque()
        while self._waiting:
            table, target = self._waiting.popleft()
            if not self.up[target] or self.copies[table, target]:
                continue
            sources = [int(region) for region in np.flatnonzero(self.copies[table])]
            free = [source for source in sources if (source, target) not in self._running]
            if not free or room[target] < self.size[table]:
                if sources:  # of a table without a source nothing can be copied any more
                    later.append((table, target))
                continue
            source = max(free, key=lambda region: (self.world.wan_bytes_per_s[region, target], -region))
            self._running[source, target] = Copy(table, source, target, float(self.size[table]))
            room[target] -= self.size[table]
        self._waiting = later
