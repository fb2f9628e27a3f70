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
from ..engine import Play, RowContext
from ..rows import Row, table
from ..schema import Line
from .dally_jobs import dally_file

GOLDEN = "astra_golden.csv"
UNITS = ("units_gpus_in_slot", "units_slots", "units_machines", "units_racks")
EACH, MEDIAN_PERCENT = 0.01, 0.05
# The real ASTRA-sim's compute fraction, as the authors' simulator ran it (a few rows of traces/dally/astra_golden.csv):
# model, units on slot, machine, rack and network, compute / (compute + exposed communication)
ASTRA_SIM = (
    ("AlexNet", (4, 0, 0, 0), 0.9997017379424019),
    ("AlexNet", (0, 4, 2, 0), 0.9872956355063449),
    ("AlexNet", (0, 0, 2, 4), 0.1906807488729358),
    ("BERT", (2, 0, 0, 0), 0.997815624378376),
    ("BERT", (0, 4, 8, 0), 0.2973393539553673),
    ("BERT", (0, 0, 4, 3), 0.06185661388404465),
    ("MobileNetV3", (4, 0, 0, 0), 0.9956696914364607),
    ("MobileNetV3", (0, 4, 8, 0), 0.014418172834910111),
    ("MobileNetV3", (0, 0, 8, 3), 0.0025313256585934012),
    ("ResNet18", (4, 0, 0, 0), 0.9985637367031361),
    ("ResNet18", (0, 2, 2, 0), 0.4891536654358252),
    ("ResNet18", (0, 0, 2, 2), 0.03471269187580387),
    ("ResNet50", (4, 0, 0, 0), 0.8902553978866881),
    ("ResNet50", (0, 2, 8, 0), 0.8854796819961223),
    ("ResNet50", (0, 0, 8, 4), 0.33023954743800427),
    ("VGG", (4, 2, 0, 0), 0.9996848234139534),
    ("VGG", (0, 4, 2, 0), 0.9963952154530548),
    ("VGG", (0, 0, 4, 2), 0.8099491260948741),
)
BYTES_OF_CONSTANT = 1.073741824  # 1e9 bytes a second of one unit of a bandwidth constant: 2^30 bytes


def network(play: Play) -> Iterator[Row]:
    """Compute fractions of the calibration `artist` against the real ASTRA-sim's."""
    path = dally_file(play.options, GOLDEN)
    reference = list(ASTRA_SIM if path is None else _golden(path))
    model, errors = allreduce("artist"), []
    for name, units, fraction in reference:
        ours = explain(model, name, units).compute_fraction
        errors.append(100.0 * abs(ours / fraction - 1.0))
        shown = ",".join(map(str, units))
        yield table(f"{name} {shown}: compute fraction", fraction, ours, unit="", tolerance=EACH)
    yield Row("median error of the compute fraction", 0.0, float(np.median(errors)), (0.0, MEDIAN_PERCENT), unit="%")
    yield Row("largest error of the compute fraction", 0.0, max(errors), (0.0, 100.0 * EACH), unit="%")
    play.notes += [
        "units: GPUs in a slot, slots in a machine, machines in a rack, racks; calibration artist",
        f"reference: {len(reference)} rows of {GOLDEN}" + "; the whole table is not here" * (path is None),
    ]


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


def table1(play: Play, line: Line, here: RowContext) -> Iterator[Row]:
    """Exposed communication of 8 GPUs as % of compute, a column by one configuration."""
    settings = "; ".join(f"{place}: {configuration.says}" for place, configuration in CONFIGURATIONS.items())
    play.notes.append(settings)
    for model, cells in line.paper.items():
        for (place, configuration), paper in zip(CONFIGURATIONS.items(), cells, strict=True):
            low, high = (
                min(paper - 0.5, (1.0 - EACH) * paper),
                max(np.nextafter(paper + 1.0, 0.0), (1.0 + EACH) * paper),
            )
            found = explain(configuration.network(), LISTED_AS.get(model, model), configuration.units)
            ours, what = 100.0 * found.exposed_over_compute, f"{model}, 8 GPUs, {place}"
            yield Row(
                what, float(paper), ours, (low, float(high)), unit="%", cell=("exposed communication", model, place)
            )
