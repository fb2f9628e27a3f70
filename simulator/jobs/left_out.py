"""Left out parts of a file: rows, each for one reason, the first given, and columns that are not read.

A bad row has a cell that is not what its column holds, or is no row. A log has some such rows (a line that was cut, a
clock that went back), so they are left out and a warning shows the first; many of them mean another kind of file.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Collection, Iterable, Sequence
from typing import Literal

import numpy as np

from ..base.errors import InputError
from .workload import WorkloadWarning, clip

BadRows = Literal["drop", "error"]  # what readers do with bad rows: leave them out, or refuse the first
Share = Literal["whole", "round"]  # what readers make of a job that asks shares of a GPU: up, or to the nearest
_SHARES = {"whole": "up to whole ones", "round": "to the nearest whole one"}
MOST_BAD, MOST_BAD_SHARE = 10, 0.01  # bad rows that a file may have, whichever is more


class LeftOut:
    """The rows of a file that are left out, and why.

    Args:
        rows: how many the table has that was read from it.
        bad_rows: whether bad rows are left out, or the first is refused.
        lost: bad rows of the file outside the table: their lines, and what is bad there.

    Attributes:
        gone: bool (rows,), those that are left out.
    """

    def __init__(self, path: str, rows: int, bad_rows: BadRows, lost: Sequence[tuple[int, str]] = ()) -> None:
        self.path = path
        self.gone = np.zeros(rows, bool)
        self._refuses = bad_rows == "error"
        self._reasons: dict[str, int] = {}
        self._bad = self._lost = len(lost)
        self._first = (lost[0][0], f"line {lost[0][0]}: {lost[0][1]}") if lost else None

    def drop(self, rows: np.ndarray, why: str) -> None:
        """Leave out the rows of a mask; `why` goes on after how many there are: "without a GPU"."""
        new = rows & ~self.gone
        if new.any():
            self._reasons[why] = self._reasons.get(why, 0) + int(new.sum())
        self.gone |= rows

    def mark_bad(self, rows: np.ndarray, place: int, said: str) -> None:
        """Leave out rows, given by index, not yet left out; the first is at `place` and `said` tells what is bad."""
        self.gone[rows] = True
        self._bad += len(rows)
        if self._first is None or place < self._first[0]:
            self._first = place, said

    def of_groups(self, group: np.ndarray, groups: int) -> LeftOut:
        """The same of groups of rows, int (rows,): a group goes with any of its rows, all of which are bad."""
        found = LeftOut(self.path, groups, "error" if self._refuses else "drop")
        found.gone[group[self.gone]] = True
        found._lost, found._first = self._lost, self._first
        found._bad = self._lost + int(found.gone.sum())
        return found

    def only(self, rows: np.ndarray) -> LeftOut:
        """The same of the rows of a mask alone."""
        found = copy.copy(self)
        found.gone = self.gone[rows]
        return found

    def kept_rows(self, gpus: np.ndarray | None = None, duration_s: np.ndarray | None = None) -> np.ndarray:
        """The indices of the rows that stay; warns of others; InputError: none stays, too many or refused bad ones.

        With GPUs and run times of all rows, (rows,), it says how many GPU-hours are read and dropped, where both are
        known: a row without a run time or GPUs has none.
        """
        total, first = len(self.gone) + self._lost, self._first[1] if self._first else ""
        most = max(MOST_BAD, int(MOST_BAD_SHARE * total))
        kept = np.flatnonzero(~self.gone)
        if self._bad and self._refuses:
            raise InputError(f"{self.path}, {first}")
        reasons = [f"{count:,} {why}" for why, count in self._reasons.items()]
        reasons += [f"{self._bad:,} bad, the first at {first}"] if self._bad else []
        if not len(kept):
            raise InputError(f"{self.path}: all {total:,} jobs are dropped: {', '.join(reasons)}")
        if self._bad > most:
            raise InputError(
                f"{self.path}: {self._bad:,} of {total:,} rows are bad, the first at {first}; such a file may have "
                f"{most:,}"
            )
        if len(kept) < total:
            hours = "" if gpus is None or duration_s is None else self._hours(gpus * duration_s / 3600.0)
            self._warn(f"dropped {total - len(kept):,} of {total:,} jobs: {', '.join(reasons)}{hours}")
        return kept

    def _hours(self, held: np.ndarray) -> str:
        known = np.where(np.isfinite(held), held, 0.0).clip(min=0.0)
        read, dropped = float(known[~self.gone].sum()), float(known[self.gone].sum())
        return f"; {read:,.6g} GPU-hours are read, {dropped:,.6g} dropped"

    def warn_of_shares(self, share: Share, asked_h: float, read_h: float) -> None:
        """Say how many GPU-hours are asked, and how many are read of the jobs that stay."""
        self._warn(
            f"shares of a GPU are summed over a job and rounded {_SHARES[share]}: {asked_h:,.6g} GPU-hours are asked, "
            f"{read_h:,.6g} are read"
        )

    def _warn(self, what: str) -> None:
        warnings.warn(f"{self.path}: {what}", WorkloadWarning, stacklevel=4)


def whole_gpus(asked: np.ndarray, share: Share) -> np.ndarray:
    """GPUs of jobs that ask so many, shares included, int64: rounded up, or to the nearest, halves up.

    What binary sums add (.1 + .2) is no GPU more.
    """
    exact = np.round(asked, 6)
    return np.asarray(np.ceil(exact) if share == "whole" else np.floor(exact + 0.5)).astype(np.int64)


def warn_of_unread(path: str, columns: Iterable[str], known: Collection[str], harmless: Collection[str] = ()) -> None:
    """Say in one warning which columns of a file are not read, because they are not known, but for harmless ones."""
    unread = [name for name in dict.fromkeys(columns) if name not in known and name not in harmless]
    if unread:
        which = f"column {clip(unread[0])} is" if len(unread) == 1 else f"columns {clip(', '.join(unread), 200)} are"
        warnings.warn(
            f"{path}: {which} not read; those that are: {clip(', '.join(known), 200)}", WorkloadWarning, stacklevel=3
        )
