"""Two episodes in words: sentences, tables, and JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...simulator.base.durations import duration
from .episodes import Decision, Episodes, Instant, JobDifference

FIRST_ROWS, MOST_ROWS, MOST_AT_ONCE = 8, 80, 5
MOST_JOBS = 12


class Row(NamedTuple):
    """A time of differences: the words and reasons of each policy's decisions, and a note on both."""

    time: str
    first: Sequence[tuple[str, str]]
    second: Sequence[tuple[str, str]]
    common: str


def clock(time_s: float) -> str:
    """Hours, minutes and seconds since the first arrival: `27:05:03`; hundredths where they are not 0."""
    whole = math.floor(time_s)
    part = f"{time_s - whole:.2f}"[1:] if 0.005 <= time_s - whole < 0.995 else ""
    return f"{whole // 3600}:{whole % 3600 // 60:02d}:{whole % 60:02d}{part}"


def parting(found: Episodes) -> str:
    """The first difference, in one or two sentences."""
    one, other = found.labels
    at = found.parting
    if at is None:
        return f"{one} and {other} decided the same: all {found.same_for:,} decisions of seed {found.seed}."
    before = "From the first decision on they differ" if not found.same_for else _same(found.same_for)
    return f"{before}; at {clock(at.time_s)} {one} decides {_text_of(at.first)}, {other} {_text_of(at.second)}."


def _same(count: int) -> str:
    return "The first decision is the same" if count == 1 else f"The first {count:,} decisions are the same"


def _text_of(decisions: Sequence[Decision]) -> str:
    shown = ", ".join(one.words for one in decisions[:2])
    more = f" and {len(decisions) - 2} more" if decisions[2:] else ""
    return f"{shown}{more}" if shown else "nothing"


def outcome(found: Episodes) -> str:
    """How many jobs end sooner under each policy, in one sentence."""
    one, other = found.labels
    sooner, later, same = found.sooner
    means = [run.metrics.get("jct_mean", math.nan) for run in found.runs]
    ends = f"{_jobs(sooner)} sooner under {one}, {later:,} under {other}, {same:,} at the same time"
    if not all(map(math.isfinite, means)):
        return f"{ends}."
    return f"{ends}; the mean JCT of this seed is {means[0]:,.0f} s and {means[1]:,.0f} s."


def _jobs(count: int) -> str:
    return "1 job ends" if count == 1 else f"{count:,} jobs end"


def rows(found: Episodes) -> list[Row]:
    """The first MOST_ROWS times of differences."""
    return [_row(instant) for instant in found.instants[:MOST_ROWS]]


def _row(instant: Instant) -> Row:
    common = f"and {instant.common} in common" if instant.common else ""
    return Row(clock(instant.time_s), _cells(instant.first), _cells(instant.second), common)


def _cells(decisions: Sequence[Decision]) -> list[tuple[str, str]]:
    more = len(decisions) - MOST_AT_ONCE
    cells = [(one.words, one.why) for one in decisions[:MOST_AT_ONCE]]
    return [*cells, (f"and {more} more", "")] if more > 0 else cells


def most_changed(found: Episodes) -> list[JobDifference]:
    """The jobs whose times differ most."""
    return list(found.jobs[:MOST_JOBS])


def gain_of(value_s: float) -> str:
    """A difference of completion times, with its sign."""
    return f"{'+' * (0.0 < value_s < math.inf)}{duration(value_s)}"


def as_json(found: Episodes) -> dict[str, Any]:
    """In the types of JSON (nan and infinities still in it)."""
    return {
        "policies": list(found.labels),
        "seed": found.seed,
        "decisions": [len(run.decisions) for run in found.runs],
        "same_until": found.same_for,
        "parting_s": None if found.parting is None else found.parting.time_s,
        "kinds": [one._asdict() for one in found.kinds],
        "jobs_sooner": list(found.sooner),
        "jobs": [one._asdict() for one in found.jobs],
        "differences": [
            vars(at) | {name: [one._asdict() for one in getattr(at, name)] for name in ("first", "second")}
            for at in found.instants
        ],
    }
