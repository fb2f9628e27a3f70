"""Cells of schedulers' logs: durations, times and their zones, job states, GPUs among resources, lists of hosts.

Sources: the manual pages sacct(1), gres(5) and hostlist of scontrol(1) of Slurm; RFC 3339 for times. Each function of a
Table reads a column: every distinct text once, a text that is not understood makes its row a bad one.
"""

from __future__ import annotations

import itertools
import re
import zoneinfo
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np

from ...base.errors import InputError
from ...jobs.trace_columns import Table

MOST_HOSTS = 2**16  # of one job

_UNKNOWN = dict.fromkeys(("", "UNKNOWN", "NONE", "N/A", "INVALID", "NOT_SET", "PARTITION_LIMIT", "NULL", "NAN"), np.nan)
_WORDS = _UNKNOWN | {"UNLIMITED": np.inf, "INFINITE": np.inf}
_DURATION = re.compile(r"(?:([0-9]{1,7})-)?([0-9]{1,11}(?::[0-5]?[0-9]){0,2}(?:\.[0-9]{1,9})?)")
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)?"
)
_IN_HOUR = {f":{second // 60:02d}:{second % 60:02d}": second for second in range(3600)}
_SINCE_1970 = re.compile(r"[0-9]{1,10}(?:\.[0-9]{1,9})?")  # milliseconds have more digits
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)
_ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REQUEUED"} | {
    *("BOOT_FAIL", "DEADLINE", "REVOKED", "LAUNCH_FAILED", "RECONFIG_FAIL"),
}
_GOING_ON = {"PENDING", "RUNNING", "SUSPENDED", "CONFIGURING", "COMPLETING", "RESIZING", "STOPPED", "SIGNALING"} | {
    *("STAGE_OUT", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD", "UNKNOWN"),
}
_GPU = re.compile(r"(?:gres[/:])?gpu(?::([^:=,]*[^:=,0-9][^:=,]*))?(?:[:=]([0-9]{1,9}))?")
_IS_GPU = re.compile(r"(?:gres[/:])?gpu(?:[:=]|$)")
_HOSTS = re.compile(r"(?:[^,\[\]]|\[[^\[\]]*\])+")


def durations_s(table: Table, name: str) -> np.ndarray:
    """A column of durations as float64 seconds (n,): nan where unknown, inf where there is no limit.

    All of Slurm's forms: `D-HH[:MM[:SS]]`, `HH:MM:SS`, `MM:SS`, `SS`, each with decimals of the last part.
    """
    texts = table.text(name)
    known = {text: _duration_s(text.strip()) for text in set(texts)}
    return _looked_up(table, name, texts, known, "a duration such as 1-02:03:04, 02:03:04 or 03:04")


def _duration_s(text: str) -> float | None:
    if (found := _DURATION.fullmatch(text)) is None:
        return _WORDS.get(text.upper())
    days, parts = found[1], found[2].split(":")
    scales = (3600, 60, 1)[: len(parts)] if days else (3600, 60, 1)[-len(parts) :]
    clock_s = sum(float(part) * scale for part, scale in zip(parts, scales, strict=True))
    return 86400 * int(days or 0) + clock_s


def times_s(table: Table, name: str, zone: str = "UTC", after_s: np.ndarray | None = None) -> np.ndarray:
    """A column of times as float64 seconds since 1970 (n,): nan where unknown; `Clock` says in which forms.

    An hour that clocks repeat or leave out is read as if they were not changed yet, but where it would lie before
    `after_s`, as changed; a sentence says how many such times there are. InputError: an unknown zone.
    """
    clock, bad = Clock(zone), (np.inf, np.inf)
    read_s, again_s = np.array([clock.read(text) or bad for text in table.text(name)]).reshape(-1, 2).T
    table.mark_bad(np.isinf(read_s), name, "a date YYYY-MM-DD HH:MM:SS")
    read_s = np.where(np.isinf(read_s), np.nan, read_s)
    if changed := int((np.abs(again_s - read_s) > 0).sum()):
        table.warn(
            f"column {name!r}: {changed:,} times lie in an hour that the clocks of {zone} repeat or leave out; they "
            f"are read as before the change{'' if after_s is None else ' where that fits'}"
        )
    if after_s is None:
        return read_s
    return np.where((read_s < after_s) & (again_s >= after_s), again_s, read_s)


class Clock:
    """Reads times `YYYY-MM-DD HH:MM:SS[.ffffff]`, or with T between, and seconds since 1970, up to the year 2286.

    Args:
        zone: where times without an offset or Z behind them were written. InputError: an unknown one.
    """

    def __init__(self, zone: str) -> None:
        try:
            self._zone = zoneinfo.ZoneInfo(zone)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            raise InputError(f"zone {zone!r} is not known; expected one such as America/Los_Angeles or UTC") from None
        self._hours: dict[str, float] = {}  # times in them are read without asking the zone

    def read(self, text: str) -> tuple[float, float] | None:
        """Seconds since 1970 as before and as after a change of clocks, the same but in its hour; nan: unknown.

        None: no time.
        """
        hour_s, rest_s = self._hours.get(text[:13]), _IN_HOUR.get(text[13:])
        if hour_s is not None and rest_s is not None:
            return hour_s + rest_s, hour_s + rest_s
        text = text.strip()
        if _SINCE_1970.fullmatch(text):
            return float(text), float(text)
        if _TIME.fullmatch(text):
            try:
                if (at := datetime.fromisoformat(text)).tzinfo is None:
                    self._keep_hour(text[:13])
                    return self._both_s(at)
                at_s = (at - _EPOCH) / _SECOND
                return at_s, at_s
            except (ValueError, OverflowError):
                return None
        return (np.nan, np.nan) if text.upper() in _UNKNOWN else None

    def _keep_hour(self, text: str) -> None:
        """Keep when an hour `2024-03-01T10` begins, seconds since 1970, of a day without a change of clocks."""
        at = datetime.fromisoformat(text)
        day = datetime(at.year, at.month, at.day, tzinfo=self._zone)
        if day.utcoffset() == (day + timedelta(days=1)).utcoffset():
            self._hours[text] = self._both_s(at)[0]

    def _both_s(self, at: datetime) -> tuple[float, float]:
        both = [at.replace(tzinfo=self._zone, fold=fold) for fold in (0, 1)]
        first_s, second_s = ((one - _EPOCH) / _SECOND for one in both)
        return first_s, second_s


def have_ended(table: Table, name: str) -> np.ndarray:
    """Whether jobs in the states of a column have ended, bool (n,); those that failed or were stopped held GPUs too."""
    texts = table.text(name)
    known: dict[str, float | None] = {}
    for text in set(texts):
        word = (text.upper().split() or ["UNKNOWN"])[0].rstrip("+")  # CANCELLED by 1000
        known[text] = 1.0 if word in _ENDED else 0.0 if word in _GOING_ON else None
    return _looked_up(table, name, texts, known, "a state of Slurm such as COMPLETED") == 1.0


def gpus_of(text: str) -> tuple[int, str] | None:
    """GPUs of a list of resources and their types, `|` between: `gres/gpu=8,gres/gpu:a100=8` or `gpu:a100:4(IDX:0-3)`.

    A list may count them once without a type and once with: the larger sum counts. None: a number is not understood.
    """
    count, typed = 0, 0
    types: list[str] = []
    text = re.sub(r"\([^()]*\)", "", text) if "(" in text else text
    for entry in text.split(",") if "gpu" in text else ():
        if (found := _GPU.fullmatch(entry := entry.strip())) is None:
            if _IS_GPU.match(entry):
                return None
        elif found[1]:
            typed, types = typed + int(found[2] or 1), [*types, found[1]]
        else:
            count += int(found[2] or 1)
    return max(count, typed), "|".join(dict.fromkeys(types))


def gpus(table: Table, name: str, rows: np.ndarray | None = None) -> tuple[np.ndarray, list[str]]:
    """GPUs int64 (n,) and their types in a column of resources (`gpus_of`), none but in the `rows` of a mask."""
    texts = table.text(name)
    if rows is not None:
        texts = [text if is_asked else "" for text, is_asked in zip(texts, rows.tolist(), strict=True)]
    found = {text: gpus_of(text) for text in set(texts)}
    known = {text: None if one is None else float(one[0]) for text, one in found.items()}
    count = _looked_up(table, name, texts, known, "resources such as cpu=8,gres/gpu=4 or gpu:a100:4")
    return np.nan_to_num(count).astype(np.int64), [(found[text] or (0, ""))[1] for text in texts]


def hosts_of(text: str) -> str | None:
    """A list of hosts, `gn[01-03,07],login`, as their names with spaces between; "": none; None: not understood."""
    if text.strip().upper() in _UNKNOWN | {"NONE ASSIGNED": np.nan, "(NULL)": np.nan}:
        return ""
    if re.search(r"[\[\]]", re.sub(r"\[[^\[\]]*\]", "", text)):  # a bracket without its partner
        return None
    names: list[str] = []
    for one in _HOSTS.findall(text):
        choices = []
        for position, part in enumerate(re.split(r"\[([^\[\]]*)\]", one.strip())):
            within = _numbers_of(part) if position % 2 else [part]
            if not within:
                return None
            choices.append(within)
        if np.prod([float(len(within)) for within in choices]) + len(names) > MOST_HOSTS:
            return None
        names += map("".join, itertools.product(*choices))
    return " ".join(names)


def _numbers_of(text: str) -> list[str]:
    """The numbers of `01-03,07`; none: not understood."""
    found: list[str] = []
    for part in text.split(","):
        ends = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", part.strip())
        if ends is None or not 0 <= (last := int(ends[2] or ends[1])) - int(ends[1]) < MOST_HOSTS:
            return []
        found += [f"{number:0{len(ends[1])}d}" for number in range(int(ends[1]), last + 1)]
    return found


def _looked_up(
    table: Table, name: str, texts: Sequence[str], known: Mapping[str, float | None], expected: str
) -> np.ndarray:
    if None in known.values():
        table.mark_bad(np.array([known[text] is None for text in texts]), name, expected)
    return np.array([known[text] for text in texts], np.float64)  # None becomes nan
