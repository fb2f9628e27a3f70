"""Published prices and carbon intensity of electricity, made into the table of `prices=` (electricity.py), in $.

Sources: HewlettPackard/green-dcc and sustain-cluster, data/electricity_prices: `Datetime` (local) or `Datetime (UTC)`
and `Price (EUR/MWh)`, whose header alone says the currency. Electricity Maps' exports, also in their
data/carbon_intensity: `Datetime (UTC)` and `Carbon Intensity gCO₂eq/kWh (direct)`, which is read, beside `(LCA)` or
`(Life cycle)`. Rows within an hour are averaged.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from ..base.errors import InputError
from ..jobs.trace_columns import Table, read_csv
from ..jobs.workload import WorkloadWarning
from ..record.region_fields import MOST_HOURS
from .electricity import COLUMNS, MOST_G_PER_KWH, MOST_PER_MWH

EPOCH, HOUR = datetime(1970, 1, 1, tzinfo=UTC), timedelta(hours=1)
MOST_MISSING = 0.1  # of a file's hours: one that lacks more is no hourly table
_UNIT = re.compile(r"(?:([A-Z]{3})\s?)?/\s?(\wWh)")


class Hourly(NamedTuple):
    """A column of a file by hour, float64: `first` counts from 1970, UTC; `missing` hours have the value before."""

    column: str
    currency: str | None
    zone: str
    missing: int
    first: int
    values: np.ndarray


def read_prices(path: str, zone: str | None, currency: str | None, rates: Mapping[str, float]) -> Hourly:
    """The prices of a file, in $/MWh.

    Args:
        zone: of times without an offset, in a column that is not of UTC.
        currency: of prices whose header names none.
        rates: $ for 1 of each currency but USD, > 0.

    Raises:
        InputError: a bad row; a zone, a currency or a rate that is lacking or contradicted.
    """
    table, name = _column(path, "price")
    match = _UNIT.search(name)
    found, unit = (None, "MWh") if match is None else match.groups()
    if unit != "MWh":
        raise InputError(f"{path}: column {name!r}; expected prices per MWh")
    if not (found or currency) or (found and currency not in (None, found)):
        said = f"it is said to be {currency}" if currency else "its currency is not said"
        raise InputError(f"{path}: column {name!r}, and {said}; expected one currency, as in 'Price (EUR/MWh)'")
    code = found or str(currency)
    rate = {"USD": 1.0, **rates}.get(code)
    if rate is None:
        raise InputError(f"{path}: column {name!r} is in {code}, the table in $; expected a rate, $ for 1 {code}")
    values = table.number(name, low=-MOST_PER_MWH / rate, high=MOST_PER_MWH / rate, blank=np.nan)
    return _hourly(table, name, code, zone, values * rate)


def read_carbon(path: str, zone: str | None) -> Hourly:
    """The carbon intensity of a file, in gCO2/kWh; `zone` and InputError as `read_prices`."""
    table, name = _column(path, "carbon intensity")
    return _hourly(table, name, None, zone, table.number(name, low=0.0, high=MOST_G_PER_KWH, blank=np.nan))


def _column(path: str, words: str) -> tuple[Table, str]:
    """A file and its column with these words, the direct one of several."""
    table = read_csv(path, may_be_empty=True, expected="a csv of hourly prices or carbon intensity")
    found = [name for name in table.columns if words in name.casefold()]
    found = [name for name in found if "direct" in name.casefold()] or found
    if len(found) != 1:
        raise InputError(f"{path}: columns {', '.join(table.header)}; expected one with {words!r} in its name")
    return table, found[0]


def _hourly(table: Table, name: str, currency: str | None, zone: str | None, values: np.ndarray) -> Hourly:
    time_h, used = _times_h(table, zone)
    known = ~np.isnan(values) & ~np.isnan(time_h)
    there, row = np.unique(np.floor(time_h[known]).astype(np.int64), return_inverse=True)
    span = int(there[-1] - there[0]) + 1 if len(there) else 0
    missing = span - len(there)
    if not len(there) or missing > MOST_MISSING * span:
        have = f"{len(there):,} of {span:,} hours have a value in column {name!r}"
        raise InputError(f"{table.path}: {have}; expected one for each hour")
    every = np.arange(there[0], there[-1] + 1)
    if missing:
        gap = EPOCH + int(np.setdiff1d(every, there)[0]) * HOUR
        said = f"hours have no {name!r}, the first {gap:%Y-%m-%d %H:%M} UTC; they get that of the hour before"
        table.warn(f"{missing:,} of {span:,} {said}")
    mean = np.bincount(row, values[known]) / np.bincount(row)
    return Hourly(name, currency, used, missing, int(there[0]), mean[np.searchsorted(there, every, side="right") - 1])


def _times_h(table: Table, zone: str | None) -> tuple[np.ndarray, str]:
    """The time of each row, float64 hours since 1970, each once, nan where the zone has none such; and the zone."""
    names = [name for name in table.columns if name.casefold().startswith(("datetime", "timestamp"))]
    name = next((name for name in names if "utc" in name.casefold()), names[0] if names else "Datetime")
    zone = "UTC" if "utc" in name.casefold() else zone
    found = np.full(len(table), np.nan)
    seen: set[datetime] = set()
    for row, text in enumerate(map(str, table.column(name))):
        try:
            found[row] = _time_h(datetime.fromisoformat(text.strip()), zone, seen)
        except (ValueError, OverflowError):
            offset = "" if zone else ", with its offset, as +01:00, or a zone to be said"
            raise table.error(row, name, f"a time YYYY-MM-DD HH:MM{offset}") from None
    again = np.ones(len(table), bool)
    again[np.unique(found, return_index=True, equal_nan=False)[1]] = False
    table.mark_bad(again, name, "each time once")
    if np.isnan(found).any():
        table.warn(f"left out: {np.isnan(found).sum():,} of {len(found):,} rows, whose times zone {zone} skips")
    return found, zone or "offsets"


def _time_h(time: datetime, zone: str | None, seen: set[datetime]) -> float:
    """Hours since 1970; nan: the zone skips the time. A clock that is set back shows it twice. ValueError: no zone."""
    if time.tzinfo is None:
        if zone is None:
            raise ValueError
        local = time
        time = local.replace(tzinfo=ZoneInfo(zone), fold=int(local in seen))
        seen.add(local)
        if time.astimezone(UTC).astimezone(time.tzinfo).replace(tzinfo=None) != local:
            return math.nan
    return (time - EPOCH) / HOUR


def convert(
    prices: Mapping[str, str],
    carbon: Mapping[str, str],
    zones: Mapping[str, str],
    currencies: Mapping[str, str],
    rates: Mapping[str, float],
) -> tuple[str, dict[str, Any]]:
    """The csv of `prices=` for the hours that all files have, and what it holds, JSON-ready, means in $/MWh and g/kWh.

    Args:
        prices, carbon, zones, currencies: by region, see `read_prices`; without carbon intensity it is written as 0.
        rates: $ for 1 of each currency but USD, > 0.

    Raises:
        InputError: as `read_prices`; a region without prices, a rate without use, no hour or too many in common.
    """
    for what, named in (("carbon intensity", carbon), ("a zone", zones), ("a currency", currencies)):
        for region in named.keys() - prices.keys():
            raise InputError(f"{what} of region {region!r}, which has no prices; expected {', '.join(prices)}")
    for zone in zones.values():
        _expect_zone(zone)
    read = {("price", key): read_prices(prices[key], zones.get(key), currencies.get(key), rates) for key in prices}
    read |= {("carbon", key): read_carbon(carbon[key], zones.get(key)) for key in carbon}
    for code in rates.keys() - {column.currency for column in read.values()}:
        raise InputError(f"a rate of {code}, but no prices are in {code}")
    first = max(column.first for column in read.values())
    hours = min(column.first + len(column.values) for column in read.values()) - first
    if not 0 < hours <= MOST_HOURS:
        raise InputError(f"the files have {max(hours, 0):,} hours in common; expected from 1 to {MOST_HOURS:,}")
    cut = {key: column.values[first - column.first :][:hours] for key, column in read.items()}
    for region in [region for region in prices if region not in carbon]:
        warnings.warn(f"region {region!r} has no carbon intensity: it is 0", WorkloadWarning, stacklevel=2)
        cut["carbon", region] = np.zeros(hours)
    rows = [
        f"{region},{hour},{cut['price', region][hour]:.10g},{cut['carbon', region][hour]:.10g}"
        for region in prices
        for hour in range(hours)
    ]
    facts = {"hours": hours, "first": f"{EPOCH + first * HOUR:%Y-%m-%d %H:%M} UTC"}
    columns = [
        {"region": key[1], "column": one.column, "currency": one.currency, "zone": one.zone}
        | {"missing_hours": one.missing, "mean": float(cut[key].mean())}
        for key, one in read.items()
    ]
    return "\n".join([",".join(COLUMNS), *rows, ""]), {**facts, "columns": columns}


def _expect_zone(zone: str) -> None:
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        raise InputError(f"zone {zone!r}: there is none; expected a name as Europe/Madrid or UTC") from None
