"""The bytes of every table in every region and over links: `evaluate --copies-table`, a row for each copy.

A copy that is sent anew, from another region or after an outage, has a row each time. Rows without a source: room that
is taken while no region can send the copy, the copies at the first arrival, and the rest of a copy when partitions that
no job reads are deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...simulator.base.errors import InputError
from ...simulator.regions.copy_log import ARRIVED, FREED, GIVEN_UP, SENDS, SENT, TAKEN

COPY_COLUMNS = ("table", "from", "to", "bytes", "stored_bytes", "start_s", "end_s", "dropped_s")


@dataclass
class _Copy:
    """A row: `sent` bytes came from `source` (None: nowhere) until `end_s`; `stored` lie there until `dropped_s`."""

    table: int
    source: int | None
    target: int
    stored: float
    start_s: float
    sent: float = 0.0
    end_s: float | None = None
    dropped_s: float | None = None


class CopyRows:
    """The copies of a run of regions; turns on the simulator's log of copies at its first decision point."""

    def __init__(self, simulator: Any) -> None:
        self._simulator = simulator
        self._rows: list[_Copy] = []
        self._coming: dict[tuple[int, int], _Copy] = {}
        self._there: dict[tuple[int, int], list[_Copy]] = {}
        s, start_s = simulator.raw.record, float(simulator.raw.record["start_s"])
        s["copy_log_on"] = 1
        for table in range(int(s["n_tables"])):
            for region in simulator.view.copies(table):
                is_whole = int(s["table_whole"][table]) >> region & 1
                size = float(s["table_size" if is_whole else "replica_size"][table])
                self._there[table, region] = [self._new(table, None, region, size, start_s, end_s=start_s)]

    def _new(self, *values: Any, **more: Any) -> _Copy:
        self._rows.append(_Copy(*values, **more))
        return self._rows[-1]

    def take(self) -> None:
        """Move the entries of the log to the rows; to be called at every instant."""
        s = self._simulator.raw.record
        count = int(s["copy_log_count"])
        if count == 0:
            return
        if s["copy_log_overflow"]:
            raise InputError("--copies-table: between two decision points more happened to copies than their log holds")
        for kind, time_s, table, source, target, size in s["copy_log"][:count].tolist():
            self._follow(int(kind), time_s, (int(table), int(target)), int(source), size)
        s["copy_log_count"] = 0

    def _follow(self, kind: int, time_s: float, place: tuple[int, int], source: int, size: float) -> None:
        table, target = place
        if kind == TAKEN:
            self._coming[place] = self._new(table, None, target, size, time_s)
        elif kind == SENDS:
            row = self._coming[place]
            if row.source is None and row.start_s == time_s:
                row.source = source
            else:
                row.dropped_s = time_s
                self._coming[place] = self._new(table, source, target, row.stored, time_s)
        elif kind == SENT:
            self._coming[place].sent, self._coming[place].end_s = size, time_s
        elif kind == ARRIVED:
            self._there.setdefault(place, []).append(self._coming.pop(place))
        elif kind == GIVEN_UP:
            self._coming.pop(place).dropped_s = time_s
        else:
            assert kind == FREED
            self._free(self._there[place], time_s, size)

    def _free(self, there: list[_Copy], time_s: float, size: float) -> None:
        """Drop the last copies; the rest of a partly dropped copy is a row of its own."""
        while size > 0.0:
            row = there.pop()
            row.dropped_s = time_s
            if row.stored > size:
                rest = row.stored - size
                there.append(self._new(row.table, None, row.target, rest, time_s, end_s=time_s))
            size -= row.stored

    def rows(self) -> tuple[tuple[str, ...], ...]:
        """The rows of `COPY_COLUMNS` at the end of the run, as text; empty: it has not happened."""
        self.take()
        for table, source, target, left in self._simulator.view.transfers:
            row = self._coming[table, target]
            if source is not None:
                row.sent = row.stored - left
        geo = self._simulator.workload.geo
        found = []
        for row in self._rows:
            places = (geo.table_names[row.table], "" if row.source is None else geo.regions[row.source])
            times = ("" if time_s is None else repr(time_s) for time_s in (row.start_s, row.end_s, row.dropped_s))
            found.append((*places, geo.regions[row.target], _number(row.sent), _number(row.stored), *times))
        return tuple(found)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
