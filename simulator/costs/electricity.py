"""Price and carbon intensity of electricity by region and hour, from a csv.

Its columns are `region`, `hour`, `price_per_mwh` ($/MWh, perhaps below 0) and `carbon_g_per_kwh` (gCO2/kWh, >= 0). Hour
0 begins at time 0 of the workload; regions of other topologies are ignored. Every region has the same hours, 0 to the
last without a gap; a table that ends before the run begins again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..base.errors import InputError
from ..files.regular_files import Stamp, stamp_of
from ..jobs.trace_columns import Table, read_csv
from ..record.region_fields import MOST_HOURS

MOST_PER_MWH, MOST_G_PER_KWH = 1e6, 1e5
COLUMNS = ("region", "hour", "price_per_mwh", "carbon_g_per_kwh")


@dataclass(frozen=True, eq=False)
class Electricity:
    """$/MWh and gCO2/kWh of every hour, float64 (regions, hours), read-only."""

    price_per_mwh: np.ndarray
    carbon_g_per_kwh: np.ndarray

    def __post_init__(self) -> None:
        for array in (self.price_per_mwh, self.carbon_g_per_kwh):
            array.setflags(write=False)

    @property
    def hours(self) -> int:
        """How many there are before the table begins again."""
        return int(self.price_per_mwh.shape[1])

    @classmethod
    def load(cls, word: str, regions: Sequence[str]) -> Electricity:
        """The table for these regions, from the csv at `word`, each hour of each once; InputError names the place."""
        return _read(word, tuple(regions), stamp_of(word))


@lru_cache(maxsize=8)
def _read(path: str, regions: tuple[str, ...], _stamp: Stamp) -> Electricity:
    table = read_csv(path, keep=COLUMNS, expected="a csv of price and carbon by region and hour")
    place = {name: number for number, name in enumerate(regions)}
    names = table.text("region")
    numbers = table.numbers(
        {
            "hour": {"low": 0, "high": MOST_HOURS - 1, "whole": True},
            "price_per_mwh": {"low": -MOST_PER_MWH, "high": MOST_PER_MWH},
            "carbon_g_per_kwh": {"low": 0.0, "high": MOST_G_PER_KWH},
        }
    )
    region = np.array([place.get(name, -1) for name in names], np.int64)
    missing = [name for name in regions if place[name] not in set(region.tolist())]
    if missing:
        raise InputError(f"{path}: no row of region {missing[0]!r}; expected rows of {', '.join(regions)}")
    row = _rows(table, regions, region, numbers["hour"])
    return Electricity(numbers["price_per_mwh"][row], numbers["carbon_g_per_kwh"][row])


def _rows(table: Table, regions: tuple[str, ...], region: np.ndarray, hour: np.ndarray) -> np.ndarray:
    """The row of each hour of each region, int64 (regions, hours)."""
    hours = int(hour[region >= 0].max()) + 1
    row = np.full((len(regions), hours), -1, np.int64)
    for number in np.flatnonzero(region >= 0).tolist():
        before = int(row[region[number], hour[number]])
        if before >= 0:
            also = f"{table.unit} {table.places[before]}"
            raise table.error(number, "hour", f"each hour of a region once ({also} has it too)")
        row[region[number], hour[number]] = number
    for place, name in enumerate(regions):
        gaps = np.flatnonzero(row[place] < 0)
        if len(gaps):
            later = row[place][gaps[0] :]
            at = int(later[later >= 0][0] if (later >= 0).any() else row[place].max())
            lacking = f"hour {gaps[0]} of region {name!r} too: each has the hours 0 to {hours - 1}"
            raise table.error(at, "hour", lacking)
    return row


def sums_of(values: np.ndarray) -> np.ndarray:
    """From hour 0 to the beginning of each hour, and to the end of the last: float64 (regions, hours + 1)."""
    return np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1)], axis=1)
