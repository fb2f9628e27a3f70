"""Paper dally's network: every placement of a table of the real ASTRA-sim, and Table I."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ....simulator.base.errors import InputError
from ....simulator.network.allreduce import AllReduce, allreduce
from ...inspecting.placement_explained import Units, explain
from ..findings import Findings, Options
from ..rows import Row, table
from . import dally_published as published
from .dally_jobs import dally_file

GOLDEN = "astra_golden.csv"
UNITS = ("units_gpus_in_slot", "units_slots", "units_machines", "units_racks")
EACH, MEDIAN_PERCENT = 0.01, 0.05
BYTES_OF_CONSTANT = 1.073741824  # 1e9 bytes a second of one unit of a bandwidth constant: 2^30 bytes


def network(options: Options) -> Findings:
    """Compute fractions of the calibration `artist` against the real ASTRA-sim's."""
    path = dally_file(options, GOLDEN)
    reference = list(published.ASTRA_SIM if path is None else _golden(path))
    model = allreduce("artist")
    rows, errors = [], []
    for name, units, fraction in reference:
        ours = explain(model, name, units).compute_fraction
        errors.append(100.0 * abs(ours / fraction - 1.0))
        shown = ",".join(map(str, units))
        rows.append(table(f"{name} {shown}: compute fraction", fraction, ours, unit="", tolerance=EACH))
    middle = float(np.median(errors))
    rows.append(Row("median error of the compute fraction", 0.0, middle, (0.0, MEDIAN_PERCENT), unit="%"))
    rows.append(Row("largest error of the compute fraction", 0.0, max(errors), (0.0, 100.0 * EACH), unit="%"))
    note = "units: GPUs in a slot, slots in a machine, machines in a rack, racks; calibration artist"
    where = f"reference: {len(reference)} rows of {GOLDEN}" + (
        "" if path is not None else "; the whole table is not here"
    )
    return Findings(rows, [note, where])


def _golden(path: Path) -> Iterator[tuple[str, Units, float]]:
    with open(path, encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file)):
            try:
                slot, machine, rack, whole = (int(row[name]) for name in UNITS)
                yield row["model"], (slot, machine, rack, whole), float(row["compute_fraction"])
            except (KeyError, TypeError, ValueError):
                expected = f"model, {', '.join(UNITS)}, compute_fraction"
                raise InputError(f"{path}, row {number + 1}: expected numbers under {expected}") from None


@dataclass(frozen=True)
class Configuration:
    """One way in which the authors' tools can have been set up for a cell of Table I.

    Attributes:
        says: what differs from the calibration `artist`.
        units: the shape of 8 GPUs.
        tiers: tier -> fields of `calibration.Link` that differ.
    """

    says: str
    units: Units
    tiers: dict[str, dict[str, Any]] = field(default_factory=dict)

    def network(self) -> AllReduce:
        """The calibration `artist` with these tiers."""
        plain = allreduce("artist")
        fabric = plain.calibration.fabric
        tiers = tuple(replace(tier, **self.tiers.get(tier.name, {})) for tier in fabric.tiers)
        return AllReduce(replace(plain.calibration, fabric=replace(fabric, tiers=tiers)), plain.words)


_CONSTANT_1600 = {"network": {"bandwidth_gb_s": 1600 * BYTES_OF_CONSTANT}}
# One setting a column, of those found in the authors' repository: the one that gives most of its cells.
CONFIGURATIONS = {
    "machine": Configuration(
        "4 and 2 links, of the static network file", (4, 2, 0, 0), {"slot": {"links": 4}, "machine": {"links": 2}}
    ),
    "rack": Configuration("as shipped, 2 machines x 4 GPUs", (4, 0, 2, 0)),
    "network": Configuration("bandwidth constant 1600, 2 racks x 4 GPUs", (4, 0, 0, 2), _CONSTANT_1600),
}
LISTED_AS = {"VGG11": "VGG", "BERT-large": "BERT"}  # the authors' layer files are called so


def table1(options: Options) -> Findings:
    """Exposed communication of 8 GPUs as % of compute, a column by one configuration."""
    rows = []
    for model, cells in published.TABLE_1.items():
        for place, paper in zip(CONFIGURATIONS, cells, strict=True):
            rows.append(_cell(model, place, paper))
    given = sum(row.ok is True for row in rows)
    settings = "; ".join(f"{place}: {configuration.says}" for place, configuration in CONFIGURATIONS.items())
    notes = [
        settings,
        f"{given} of {len(rows)} cells, each column by a setting found in the authors' repository; no known setting "
        "gives a whole table",
        "the table prints whole percents, some rounded and some cut: a cell counts from half a percent below to one "
        "above, or within 1 % of it",
    ]
    return Findings(rows, notes)


def _cell(model: str, place: str, paper: int) -> Row:
    low, high = min(paper - 0.5, (1.0 - EACH) * paper), max(np.nextafter(paper + 1.0, 0.0), (1.0 + EACH) * paper)
    configuration = CONFIGURATIONS[place]
    found = explain(configuration.network(), LISTED_AS.get(model, model), configuration.units)
    what = f"{model}, 8 GPUs, {place}"
    return Row(what, float(paper), 100.0 * found.exposed_over_compute, (low, float(high)), unit="%")
