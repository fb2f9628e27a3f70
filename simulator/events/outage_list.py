"""Fault groups and listed outages, from two csv files; docs/concepts/failures.md has the formats.

After overlapping rows a thing is up when all are over. Without `notice_s` an outage is a failure; with it, 0 too, it is
maintenance: state is saved when it begins, and so many seconds before no job starts there. Racks and machines go by
their number in the whole topology, from 0, machines also by `Topology.machine_numbers`. Either file has at most
MOST_ROWS rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..base.codes import BROKEN, MAINTAINED, NOTICED, OVER, OVER_NOTICED
from ..cluster.topology import Topology
from ..files.regular_files import Stamp, stamp_of
from ..jobs.trace_columns import Table, read_csv

COLUMNS = ("start_s", "duration_s", "what", "name", "notice_s")
GROUP_COLUMNS = ("group", "what", "name")
PLACES = ("region", "cluster", "rack", "machine")
MOST_ROWS = 100_000


class FaultGroup(NamedTuple):
    """Regions, and machines outside them, that fail together, ascending."""

    machines: tuple[int, ...]
    regions: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class OutageList:
    """Groups and their outages. Arrays are read-only.

    Attributes:
        groups: the first `failing` ones fail at random.
        time_s: float64 (rows,), ascending.
        group: int64 (rows,), index of `groups`. kind: int64 (rows,), codes of base/codes.py.
    """

    groups: tuple[FaultGroup, ...]
    failing: int
    time_s: np.ndarray
    group: np.ndarray
    kind: np.ndarray

    @classmethod
    def load(cls, outages: str, fault_groups: str, topology: Topology, are_random: bool) -> OutageList:
        """The list of the two files, "": none; `fault_groups` also `racks` or `regions`.

        `are_random`: the groups fail at random. InputError: no such file, or file, line and value of a bad row.
        """
        return _read(outages, fault_groups, topology, are_random, stamp_of(outages), stamp_of(fault_groups))

    @property
    def gives_notice(self) -> bool:
        """Whether any outage is announced before it begins."""
        return bool((self.kind == NOTICED).any())

    def size(self, topology: Topology, has_regions: bool) -> int:
        """Room that a record needs: rows, groups, or machines of all groups, of which it needs most."""
        return max(2, len(self.time_s), len(self.groups), len(_members_of(self, topology, has_regions)[1]))

    def write_into(self, s: np.void, topology: Topology, has_regions: bool) -> None:
        """Write it into a record with room for it; nothing has come yet."""
        sizes, machines = _members_of(self, topology, has_regions)
        count, rows = len(self.groups), len(self.time_s)
        s["group_first"][:count], s["group_machines"][:count] = np.cumsum(sizes) - sizes, sizes
        s["group_machine"][: len(machines)] = machines
        if has_regions:
            s["group_regions"][:count] = [sum(1 << region for region in group.regions) for group in self.groups]
        s["failing_groups"], s["n_outages"] = self.failing, rows
        s["outage_s"][:rows], s["outage_group"][:rows], s["outage_kind"][:rows] = self.time_s, self.group, self.kind


def read_outages(path: str) -> tuple[Table, np.ndarray, np.ndarray, np.ndarray]:
    """The rows of a csv of outages, as text, and their start_s, duration_s and notice_s, float64, nan: without notice.

    InputError: no such file, or file, line and value of a bad row.
    """
    expected = "a csv of outages: start_s, duration_s, what, name, and perhaps notice_s"
    table = read_csv(path, keep=COLUMNS, most=MOST_ROWS, may_be_empty=True, expected=expected)
    seconds = table.numbers(
        {
            "start_s": {"low": 0.0},
            "duration_s": {"low": 0.0, "above": True},
            **({"notice_s": {"low": 0.0, "blank": np.nan}} if "notice_s" in table else {}),
        }
    )
    notice_s = seconds.get("notice_s", np.full(len(table), np.nan))
    return table, seconds["start_s"], seconds["duration_s"], notice_s


@lru_cache(maxsize=8)
def _members_of(listed: OutageList, topology: Topology, has_regions: bool) -> tuple[np.ndarray, np.ndarray]:
    """How many machines each group has, and which, int64; without regions in a simulation those in its regions too."""
    found = [np.array(group.machines, np.int64) for group in listed.groups]
    if not has_regions:
        region = topology.cluster_region[topology.rack_cluster[topology.machine_rack]]
        inside = [np.flatnonzero(np.isin(region, group.regions)) for group in listed.groups]
        found = [np.union1d(own, more) for own, more in zip(found, inside, strict=True)]
    return np.array([len(one) for one in found], np.int64), np.concatenate([np.zeros(0, np.int64), *found])


@lru_cache(maxsize=8)
def _read(outages: str, fault_groups: str, topology: Topology, are_random: bool, *_stamps: Stamp) -> OutageList:
    named = _groups(fault_groups, topology)
    groups = list(named.values()) if are_random else []
    failing, empty = len(groups), np.zeros(0)
    if not outages:
        return _frozen(groups, failing, empty, empty, empty)
    table, start_s, duration_s, notice_s = read_outages(outages)
    end_s, has_notice = start_s + duration_s, notice_s > 0.0
    kinds = np.where(np.isnan(notice_s), BROKEN, MAINTAINED), np.where(has_notice, OVER_NOTICED, OVER)
    time_s = np.concatenate([start_s, end_s, (start_s - notice_s)[has_notice]])
    kind = np.concatenate([*kinds, np.full(int(has_notice.sum()), NOTICED)])
    members = _members(table, topology, named)
    if not members:
        table.warn("a header but no rows: there are no outages")
        return _frozen(groups, failing, empty, empty, empty)
    distinct = sorted(set({id(member): member for member in members}.values()))
    place = {member: number for number, member in enumerate(distinct)}
    place_of = {id(member): place[member] for member in members}
    row = np.array([place_of[id(member)] for member in members])
    row = np.concatenate([row, row, row[has_notice]])
    order = np.lexsort((row, kind, time_s))  # whatever the order of the rows
    number = {group: one for one, group in reversed(list(enumerate(groups)))}
    for one in dict.fromkeys(row[order].tolist()):
        if number.setdefault(distinct[one], len(groups)) == len(groups):
            groups.append(distinct[one])
    numbers = np.array([number[member] for member in distinct])
    return _frozen(groups, failing, time_s[order], numbers[row[order]], kind[order])


def _frozen(
    groups: list[FaultGroup], failing: int, time_s: np.ndarray, group: np.ndarray, kind: np.ndarray
) -> OutageList:
    columns = time_s.astype(np.float64), group.astype(np.int64), kind.astype(np.int64)
    for column in columns:
        column.setflags(write=False)
    return OutageList(tuple(groups), failing, *columns)


def _groups(word: str, topology: Topology) -> dict[str, FaultGroup]:
    if word == "racks":
        return {str(rack): FaultGroup(_machines_of(topology, "rack", rack), ()) for rack in range(topology.num_racks)}
    if word == "regions":
        own = (
            range(topology.num_regions)
            if topology.region_network is None
            else topology.region_network.fault_group.tolist()
        )
        members: dict[str, list[int]] = {}
        for region, group in enumerate(own):
            members.setdefault(str(group), []).append(region)
        return {name: FaultGroup((), tuple(regions)) for name, regions in members.items()}
    if not word:
        return {}
    expected = "racks, regions, or a csv of fault groups: group, what, name"
    table = read_csv(word, keep=GROUP_COLUMNS, most=MOST_ROWS, expected=expected)
    names = table.text("group")
    found: dict[str, dict[int, FaultGroup]] = {}
    for row, member in enumerate(_members(table, topology, None)):
        if not names[row].strip():
            raise table.error(row, "group", "a name")
        found.setdefault(names[row], {})[id(member)] = member
    return {name: _joined(members.values(), topology) for name, members in found.items()}


def _joined(members: Iterable[FaultGroup], topology: Topology) -> FaultGroup:
    members = list(members)
    regions = sorted({region for member in members for region in member.regions})
    machines = np.array(sorted({machine for member in members for machine in member.machines}), np.int64)
    region_of = topology.cluster_region[topology.rack_cluster[topology.machine_rack[machines]]]
    return FaultGroup(tuple(machines[~np.isin(region_of, regions)].tolist()), tuple(regions))


def _machines_of(topology: Topology, what: str, index: int) -> tuple[int, ...]:
    if what == "machine":
        return (index,)
    rack = topology.machine_rack
    where = rack if what == "rack" else topology.rack_cluster[rack]
    return tuple(np.flatnonzero(where == index).tolist())


def _members(table: Table, topology: Topology, groups: dict[str, FaultGroup] | None) -> list[FaultGroup]:
    whats, names = table.text("what"), table.text("name")
    allowed = PLACES if groups is None else (*PLACES, "group")
    known: dict[str, dict[str, int]] = {
        "region": {name: place for place, name in enumerate(topology.region_names)},
        "cluster": _cluster_names(topology),
        "rack": {str(rack): rack for rack in range(topology.num_racks)},
        "machine": topology.machine_numbers,
    }
    found = []
    seen: dict[tuple[str, str], FaultGroup] = {}
    for row, (what, name) in enumerate(zip(whats, names, strict=True)):
        if (what, name) in seen:
            found.append(seen[what, name])
            continue
        if what not in allowed:
            raise table.error(row, "what", f"{', '.join(allowed[:-1])} or {allowed[-1]}")
        if what == "group":
            assert groups is not None
            if name not in groups:
                there = f"one of {_listed(groups)}" if groups else "no group, as fault_groups names none"
                raise table.error(row, "name", there)
            found.append(groups[name])
        elif name not in known[what]:
            noun = f"the number of a {what}" if what in ("rack", "machine") else f"a {what}"
            more = "; machines of topology hosts:file=FILE have names" * (what == "machine" and topology.links is None)
            raise table.error(row, "name", f"{noun} of topology {topology.name!r}: {_listed(known[what])}{more}")
        elif what == "region":
            found.append(FaultGroup((), (known[what][name],)))
        else:
            found.append(FaultGroup(_machines_of(topology, what, known[what][name]), ()))
        seen[what, name] = found[-1]
    return found


def _cluster_names(topology: Topology) -> dict[str, int]:
    own = list(topology.cluster_names)
    full = [f"{topology.region_names[r]}.{name}" for r, name in zip(topology.cluster_region, own, strict=True)]
    known = {name: place for place, name in enumerate(full)}
    return known | {name: place for place, name in enumerate(own) if own.count(name) == 1}


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join(names[:4]) + (f", ... {names[-1]}" if len(names) > 4 else "")
