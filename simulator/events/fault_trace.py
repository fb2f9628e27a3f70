"""Faults of servers as they were: InfiniteHBD's published list, or a list of outages, and what they say of the servers.

Source: stepfun-ai/InfiniteHBD-Trace on GitHub, a JSON list of events: `node_id`, `event_time` in days,
`event_type` (fault_start or fault_end) and `fault_type`. An end belongs to the earliest open start of its server and
type. A server without a fault is not in it: how many there are has to be said.
"""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..base.errors import InputError
from ..files.regular_files import read_text
from ..jobs.trace_columns import Table, cell, read_json_list
from ..jobs.workload import WorkloadWarning
from .outage_list import MOST_ROWS, read_outages

DAY_S = 86400.0
START, END = "fault_start", "fault_end"
FIELDS = ("node_id", "event_time", "event_type", "fault_type")


class Faults(NamedTuple):
    """Faults in the order of their start: names of servers, start_s and duration_s >= 0, float64 (faults,)."""

    path: str
    server: list[str]
    start_s: np.ndarray
    duration_s: np.ndarray


def read_faults(path: str | Path) -> Faults:
    """The faults of InfiniteHBD's list, or of machines in a csv of outages; InputError: neither, none, or a bad row."""
    if read_text(path, "a list of faults, JSON or csv").lstrip()[:1] in ("[", "{"):
        return read_events(path)
    table, start_s, duration_s, notice_s = read_outages(str(path))
    is_fault = np.isnan(notice_s) & (np.array(table.text("what"), dtype=str) == "machine")
    if not is_fault.all():
        table.warn(f"{(~is_fault).sum():,} of {len(is_fault):,} rows are left out: maintenance, or not of one machine")
    names = [name for name, kept in zip(table.text("name"), is_fault, strict=True) if kept]
    return _by_start(str(path), names, start_s[is_fault], duration_s[is_fault])


def read_events(path: str | Path) -> Faults:
    """The faults of InfiniteHBD's list; warns of events without a partner; InputError: file, event, field and value."""
    items = read_json_list(path, "event")
    columns = {name: [cell(item.get(name)) for item in items] for name in FIELDS}
    table = Table(str(path), columns, np.arange(1, len(items) + 1), "event")
    time_s = table.number("event_time", low=0.0) * DAY_S
    server, kind = table.text("node_id"), table.text("event_type")
    table.mark_bad(np.array([not name.strip() for name in server]), "node_id", "the name of a server")
    table.mark_bad(~np.isin(kind, (START, END)), "event_type", f"{START} or {END}")
    start, end = _pairs(table, np.argsort(time_s, kind="stable"))
    return _by_start(str(path), [server[row] for row in start], time_s[start], time_s[end] - time_s[start])


def _pairs(table: Table, order: np.ndarray) -> np.ndarray:
    """The rows of starts and those of their ends, int64 (2, faults)."""
    keys = list(zip(table.text("node_id"), table.text("fault_type"), strict=True))
    opened: dict[tuple[str, str], list[int]] = {}
    pairs, ends = [], 0
    for row in order.tolist():
        before = opened.setdefault(keys[row], [])
        if table.columns["event_type"][row] == START:
            before.append(row)
        elif before:
            pairs.append((before.pop(0), row))
        else:
            ends += 1
    starts = sum(map(len, opened.values()))
    if starts or ends:
        table.warn(f"events are left out: {starts:,} {START} without a {END}, {ends:,} {END} without a {START}")
    return np.array(pairs, np.int64).reshape(-1, 2).T


def _by_start(path: str, server: list[str], start_s: np.ndarray, duration_s: np.ndarray) -> Faults:
    if not server:
        raise InputError(f"{path}: no fault; expected at least one, with its start and its end")
    order = np.argsort(start_s, kind="stable")
    return Faults(path, [server[row] for row in order], start_s[order], duration_s[order])


def summary(faults: Faults, servers: int | None) -> dict[str, Any]:
    """What a list says; times in seconds, from 0 to the last end (`period_s`), shares from 0 to 1.

    `down_share` (of the servers' time; overlaps count once), `between_faults_s` (the servers' time over the faults) and
    `worst_tenth_share` (of the faults, on a tenth of the servers, rounded up) are None where `servers` are not known.
    InputError: fewer than the list has.
    """
    end_s = faults.start_s + faults.duration_s
    period_s, count, hit = float(end_s.max()), len(faults.server), len(set(faults.server))
    total = _expect_enough(faults, hit if servers is None else servers)
    down_s, until_s = 0.0, dict.fromkeys(faults.server, 0.0)
    for name, one_start_s, one_end_s in zip(faults.server, faults.start_s.tolist(), end_s.tolist(), strict=True):
        down_s += max(0.0, one_end_s - max(until_s[name], one_start_s))
        until_s[name] = max(until_s[name], one_end_s)
    by_server = np.sort(np.unique(np.array(faults.server), return_counts=True)[1])
    shares = {
        "down_share": down_s / (total * period_s) if period_s else 0.0,
        "between_faults_s": total * period_s / count,
        "worst_tenth_share": float(by_server[-math.ceil(total / 10) :].sum() / count),
    }
    return {
        "path": faults.path,
        "faults": count,
        "of_no_duration": int((faults.duration_s == 0.0).sum()),
        "servers": servers,
        "servers_hit": hit,
        "period_s": period_s,
        "repair_p50_s": float(np.median(faults.duration_s)),
        "repair_mean_s": float(faults.duration_s.mean()),
        "repair_longest_s": float(faults.duration_s.max()),
        **(dict.fromkeys(shares) if servers is None else shares),
    }


def _expect_enough(faults: Faults, servers: int) -> int:
    hit = len(set(faults.server))
    if servers < hit:
        raise InputError(f"{servers:,} servers: {faults.path} has faults of {hit:,}; expected at least as many")
    return servers


def machines_of(faults: Faults, servers: int) -> list[int]:
    """The machine of each fault: the server's own number where all are numbers below `servers`.

    Names say nothing of places, so servers in the order of their first faults are spread evenly over the machines.
    """
    names = list(dict.fromkeys(faults.server))
    numbers = [int(name) if name.isascii() and name.isdigit() and len(name) < 9 else servers for name in names]
    if max(numbers) >= servers or len(set(numbers)) < len(names):
        numbers = [rank * servers // len(names) for rank in range(len(names))]
    place = dict(zip(names, numbers, strict=True))
    return [place[name] for name in faults.server]


def as_outages(faults: Faults, servers: int | None) -> str:
    """A csv of outages of machines, of as many as there are servers, by default those of the list.

    Warns of faults of no duration, which are left out. InputError: none is left, too many are, or too few servers.
    """
    lasts = faults.duration_s > 0.0
    if not lasts.all():
        said = f"{faults.path}: {(~lasts).sum():,} of {len(lasts):,} faults are left out, as they last no time"
        warnings.warn(said, WorkloadWarning, stacklevel=2)
    if not 0 < lasts.sum() <= MOST_ROWS:
        raise InputError(f"{faults.path}: {lasts.sum():,} faults last some time; expected from 1 to {MOST_ROWS:,}")
    machines = machines_of(faults, _expect_enough(faults, len(set(faults.server)) if servers is None else servers))
    rows = zip(faults.start_s.tolist(), faults.duration_s.tolist(), machines, strict=True)
    kept = [f"{start_s:.10g},{lasts_s:.10g},machine,{machine}" for start_s, lasts_s, machine in rows if lasts_s > 0.0]
    return "\n".join(["start_s,duration_s,what,name", *kept, ""])
