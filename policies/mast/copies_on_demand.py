"""Copies for workloads that no region can run: "MAST will start data replication" (paper mast, Sec. 4.3).

The target is our choice: of the regions that are up and could hold the workload, the one with the fewest missing bytes
that are not on the way; then with the least load of the first part's type, then the lowest number. Without room there,
the next one; if none has room, one makes it: replicas without readers there are dropped, then homes of other tables
move to where the fewest of their bytes are missing, the largest first. A workload that is bound to a region (`Binding`,
`bind=any`) gets copies, or homes, there only.

For a workload that needs fresh data homes move, to where the fewest bytes are missing and there is room, else to the
first region that can make room. A home that a waiting workload needs where it is stays, and a moving one is not moved
on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ...simulator.base.decisions import Drop, Move, Replicate
from ...simulator.engine.view import ClusterView

TableDecision = Replicate | Move | Drop


def lacking(view: ClusterView) -> list[int]:
    """Waiting and held jobs that no region can run now, in order of arrival."""
    return [job for job in _pending(view) if not view.regions_of(job)]


def _pending(view: ClusterView) -> list[int]:
    return sorted([*view.queue.tolist(), *view.held.tolist()])


def on_demand(
    view: ClusterView, jobs: Iterable[int] | None = None, bound: Mapping[int, int] | None = None
) -> list[TableDecision]:
    """Decisions about tables now, in a legal order, for `jobs`, or for all that are `lacking`.

    `bound`: the one region of jobs that are bound, whatever their data.
    """
    storage = _Storage(view, bound or {})
    for job in lacking(view) if jobs is None else jobs:
        storage.serve(job)
    return storage.decisions


@dataclass
class _Storage:
    """The regions' storage after the decisions so far: `room`, free bytes, int64 (regions,); `coming`: copies."""

    view: ClusterView
    bound: Mapping[int, int] = field(default_factory=dict)
    decisions: list[TableDecision] = field(default_factory=list)

    def __post_init__(self) -> None:
        view, s = self.view, self.view.record
        count = int(s["n_tables"])
        self.room = view.storage_bytes - view.stored_bytes
        self.coming = {(table, target) for table, _, target, _ in view.transfers}
        # Sets of regions as bits, by table: where copies lie, and where they stay.
        copies = s["table_copies"][:count]
        self._copies, self._stays = copies.tolist(), (copies & ~s["table_doomed"][:count]).tolist()
        self._sizes, self._up = s["replica_size"][:count].tolist(), int(s["up_regions"])
        self._gone: set[tuple[int, int]] = set()
        self._moved: dict[int, int] = {}  # table -> region

    def serve(self, job: int) -> None:
        """Add the decisions for a job."""
        needs: list[tuple[int, float, int, list[int]]] = []
        hosts = [region for region in self._hosts(job) if self._up >> region & 1]
        if self.view.needs_home(job):
            self._bring_home(job, sorted(hosts))
            return
        read = self.view.tables_of(job).tolist()
        for region in hosts:
            tables = [table for table in read if not self._is_there(table, region)]
            if all(self._copies[table] & self._up for table in tables):
                missing = sum(self._bytes(table, region) for table in tables)
                needs.append((missing, self._load(job, region), region, tables))
        needs.sort(key=lambda need: need[:3])
        for needed, _, region, tables in needs:
            if needed <= self.room[region]:
                self._copy(region, tables)
                return
        if all(tables for *_, tables in needs):  # else one waits only for copies on the way
            for needed, _, region, tables in needs:
                if self._make_room(job, region, needed):
                    if needed <= self.room[region]:
                        self._copy(region, tables)
                    return

    def _hosts(self, job: int) -> Iterable[int]:
        return (self.bound[job],) if job in self.bound else self.view.hosts_of(job)

    def _bring_home(self, job: int, regions: list[int]) -> None:
        """Move the homes of all tables of a job with fresh data to one region, unless others need them in place."""
        view, tables = self.view, self.view.tables_of(job).tolist()
        moving = any(view.moving_to(table) is not None or table in self._moved for table in tables)
        if moving or self._settled & set(tables):
            return
        needs = sorted(
            (sum(self._missing(table, region) for table in tables), self._load(job, region), region)
            for region in regions
        )
        for makes_room in (False, True):
            for needed, _, region in needs:
                away = [table for table in tables if view.home(table) != region]
                if any(region in view.doomed(table) for table in away):
                    continue
                if makes_room and not self._make_room(job, region, needed):
                    continue
                if needed <= self.room[region]:
                    self.decisions += [Move(table, region) for table in away]
                    self.room[region] -= needed
                    self._moved |= dict.fromkeys(away, region)
                    self._settled |= set(tables)
                    return
                if makes_room:
                    return  # there is room once homes have moved

    def _missing(self, table: int, region: int) -> int:
        """Bytes of a table that are neither in a region nor on the way to it, after the decisions so far."""
        whole = (table, region) in self._gone
        return int(self.view.record["table_size"][table]) if whole else self.view.missing_bytes(table, region)

    def _load(self, job: int, region: int) -> float:
        """Share of busy units in a region, of the types that a job's first part accepts."""
        accepts = int(self.view.record["part_accepts"][job, 0])
        free, units = self._units[0][region], self._units[1][region]
        kinds = [kind for kind in range(len(free)) if accepts >> kind & 1]
        return 1.0 - float(sum(free[kind] for kind in kinds)) / max(float(sum(units[kind] for kind in kinds)), 1.0)

    @cached_property
    def _units(self) -> list[list[list[int]]]:
        """Free and all units, each by region and type."""
        s = self.view.record
        clusters = int(s["n_clusters"])
        region, kind = s["cluster_region"][:clusters], s["cluster_type"][:clusters]
        found = np.zeros((2, int(s["n_regions"]), int(s["n_types"]) + 1), np.int64)  # the last: other types
        np.add.at(found[0], (region, kind), s["cluster_free"][:clusters])
        np.add.at(found[1], (region, kind), s["cluster_gpus"][:clusters])
        return found.tolist()

    @cached_property
    def _settled(self) -> set[int]:
        """Tables whose homes stay, as a waiting job that needs fresh data can run there."""
        view = self.view
        content = [
            job
            for job in _pending(view)
            if view.needs_home(job) and not set(self._hosts(job)).isdisjoint(view.regions_of(job))
        ]
        return {table for job in content for table in view.tables_of(job).tolist()}

    def _copy(self, region: int, tables: list[int]) -> None:
        for table in tables:
            self.decisions.append(Replicate(table, region))
            self.room[region] -= self._bytes(table, region)
            self.coming.add((table, region))

    def _is_there(self, table: int, region: int) -> bool:
        if (table, region) in self.coming:
            return True
        return bool(self._stays[table] >> region & 1) and (table, region) not in self._gone

    def _bytes(self, table: int, region: int) -> int:
        """Bytes of a copy; 0 where one lies that is about to be deleted."""
        lies = self._copies[table] >> region & 1 and (table, region) not in self._gone
        return 0 if lies else self._sizes[table]

    def _make_room(self, job: int, region: int, needed: int) -> bool:
        """Drop and move tables for enough room, now or once the moves are over; False, and no change, if impossible."""
        view, s = self.view, self.view.record
        kept = self._kept(job, region)
        here = [table for table in range(int(s["n_tables"])) if region in view.copies(table) and table not in kept]
        here.sort(key=lambda table: (-int(s["table_size"][table]), table))
        short = needed - int(self.room[region])
        short -= sum(
            int(s["table_size"][table]) for table in range(int(s["n_tables"])) if self._is_leaving(table, region)
        )
        done: list[TableDecision] = []
        room = self.room.copy()
        for table in here:
            if short > 0 and self._may_go(table, region):
                done.append(Drop(table, region))
                held = "table_size" if int(s["table_whole"][table]) >> region & 1 else "replica_size"
                room[region] += int(s[held][table])
                short -= int(s[held][table])
        for table in here:
            if short <= 0 or not self._may_move(table, region):
                continue
            sent, target = self._refuge(table, region, room)
            if target is None or sent > room[target]:
                continue
            done.append(Move(table, target))
            room[target] -= sent
            short -= int(s["table_size"][table])
        if short > 0:
            return False
        self.room = room
        self.decisions += done
        self._gone |= {(one.table, region) for one in done if isinstance(one, Drop)}
        self._moved |= {one.table: one.region for one in done if isinstance(one, Move)}
        return True

    def _kept(self, job: int, region: int) -> set[int]:
        """Tables that must stay in a region: of the job, of those that wait for it alone, and tables in use."""
        view = self.view
        readers = [job, *(other for other in _pending(view) if self._needs(other, region))]
        readers += [other for other in view.running.tolist() if view.region_of(other) == region]
        kept = {table for reader in readers for table in view.tables_of(reader).tolist()}
        return kept | {table for table, source, target, _ in view.transfers if region in (source, target)}

    def _needs(self, job: int, region: int) -> bool:
        """Whether a waiting job has its tables in a region, or coming, and can run nowhere else now."""
        view, hosts = self.view, self._hosts(job)
        tables = view.tables_of(job).tolist()
        if region not in hosts or not all(self._is_there(table, region) for table in tables):
            return False
        others = [other for other in view.regions_of(job) if other != region and other in hosts]
        return not any(self._gone.isdisjoint((table, other) for table in tables) for other in others)

    def _is_leaving(self, table: int, region: int) -> bool:
        view = self.view
        moves = view.moving_to(table) is not None or table in self._moved
        return view.home(table) == region and moves

    def _may_go(self, table: int, region: int) -> bool:
        """Whether a copy is a replica that can be deleted at once."""
        view = self.view
        others = set(view.copies(table)) - set(view.doomed(table)) - {region}
        others -= {elsewhere for gone, elsewhere in self._gone if gone == table}
        stays = region in (view.home(table), view.moving_to(table), self._moved.get(table), *view.doomed(table))
        return not stays and (table, region) not in self._gone and bool(others & set(view.up_regions))

    def _may_move(self, table: int, region: int) -> bool:
        view = self.view
        if view.home(table) != region or table in self._settled:
            return False
        return view.moving_to(table) is None and table not in self._moved

    def _refuge(self, table: int, region: int, room: np.ndarray) -> tuple[int, int | None]:
        """The fewest missing bytes of a table in another region, then with most room, and that region."""
        others = [
            (self.view.missing_bytes(table, other), -int(room[other]), other)
            for other in self.view.up_regions
            if other != region and (table, other) not in self._gone
        ]
        sent, _, target = min(others, default=(0, 0, None))
        return sent, target
