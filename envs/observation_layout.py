"""Layout of a flat observation and of a candidate action space, as networks need it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import Any


def places_of(sizes: Mapping[str, int]) -> dict[str, slice]:
    """The slices of consecutive parts of an array, by their sizes."""
    ends = list(accumulate(sizes.values()))
    return dict(zip(sizes, map(slice, [0, *ends], ends), strict=False))


@dataclass(frozen=True)
class Table:
    """Rows of jobs (or of other subjects of decisions), each with its candidates."""

    rows: int
    columns: int  # features of a row; the first is 1 where the row is taken
    kinds: int  # candidates of a row


@dataclass(frozen=True)
class Part:
    """A part of the action after the candidate."""

    size: int  # number of its values
    column: int  # of the candidates' features, 1 where the part has an effect
    features: int = 0  # of each of its values; 0: none


@dataclass(frozen=True)
class Tables:
    """A flat observation: the cluster's features, the tables, features of the parts' values, then a row a candidate.

    Candidate 0 advances; `plans` that belong to no row follow, then those of the first table's rows, and so on. The
    first column of a candidate is 1 where it is legal; `hold_column` is 1 where it holds a job, None where no candidate
    does. For a saved agent it is the column of its training.
    """

    cluster: int
    tables: tuple[Table, ...]
    candidate_columns: int
    parts: tuple[Part, ...]
    plans: int = 0
    hold_column: int | None = None

    @property
    def candidates(self) -> int:
        """Length of the first part of the action space."""
        return 1 + self.plans + sum(table.rows * table.kinds for table in self.tables)

    @property
    def size(self) -> int:
        """Length of the flat observation."""
        rows = sum(table.rows * table.columns for table in self.tables)
        values = sum(part.size * part.features for part in self.parts)
        return self.cluster + rows + values + self.candidates * self.candidate_columns

    def to_json(self) -> dict[str, Any]:
        """As plain dicts and lists."""
        return {**asdict(self), "tables": [asdict(t) for t in self.tables], "parts": [asdict(p) for p in self.parts]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Tables:
        """Tables from the data of `to_json`."""
        tables = tuple(Table(**table) for table in data["tables"])
        parts = tuple(Part(**part) for part in data["parts"])
        return cls(**{**data, "tables": tables, "parts": parts, "hold_column": data["hold_column"]})
