"""Slowdowns by model, gang size and tier: the published and measured tables, and a user's own.

A table lists, per model, the slowdown on slot, machine, rack and network for every gang size that was measured (or for
all sizes at once). A size in between takes the nearest measured one in log2, the smaller on ties.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..base.errors import InputError
from ..base.names import choose
from ..cluster.topology import MAX_GPUS
from ..files.yaml_files import read_text
from .model_names import normalised

Factors = tuple[float, float, float, float]  # slot, machine, rack, network; each >= 1
ANY_SIZE = 0

MAX_FACTOR = 1e6


@dataclass(frozen=True)
class PenaltyTable:
    """rows: model as the source spells it -> gang size (or ANY_SIZE) -> slowdowns."""

    name: str
    rows: Mapping[str, Mapping[int, Factors]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {normalised(model): model for model in self.rows})
        object.__setattr__(self, "_found", {})

    def models(self) -> list[str]:
        """The models it lists, as the source spells them."""
        return list(self.rows)

    def factors(self, model: str, gpus: int) -> Factors | None:
        """Slowdowns of a gang, or None if the table does not list the model (any spelling of it)."""
        found: dict[tuple[str, int], Factors | None] = self.__dict__["_found"]
        if (model, gpus) not in found:
            found[model, gpus] = self._nearest(model, gpus)
        return found[model, gpus]

    def _nearest(self, model: str, gpus: int) -> Factors | None:
        by_name: dict[str, str] = self.__dict__["_by_name"]
        key = normalised(model)
        if key not in by_name:
            return None
        sizes = self.rows[by_name[key]]
        # max / min orders sizes as the distance in log2 does, without its rounding.
        return sizes[min(sizes, key=lambda size: (max(size, gpus) / max(1, min(size, gpus)), size))]


def load_table(source: str) -> PenaltyTable:
    """A table by name, or from a csv file; InputError names the line, the column and the value.

    Columns: model, machine, rack, network, optionally gpus (missing or empty: every gang size) and slot (default
    machine's). Slowdowns are numbers from 1 to 1e6.
    """
    if source in TABLES:
        return TABLES[source]
    if not (os.sep in source or "/" in source or source.lower().endswith(".csv") or os.path.exists(source)):
        try:
            choose(source, TABLES, "penalty table")
        except InputError as error:
            raise InputError(f"{error}; or the path of a csv file") from None
    return _read_table(source)


def _read_table(path: str) -> PenaltyTable:
    place = f"penalty table {path!r}"
    reader = csv.DictReader(read_text(path, "penalty table").splitlines(), strict=True)
    rows: dict[str, dict[int, Factors]] = {}
    spelling: dict[str, str] = {}
    try:
        columns = list(reader.fieldnames or [])
        _check_header(columns, place)
        for row in reader:
            line = f"{place}, line {reader.line_num}"
            if None in row or None in row.values():
                raise InputError(f"{line}: expected {len(columns)} values, one per column")
            model = row["model"].strip()
            if not normalised(model):
                raise InputError(f"{line}, column model: {model!r}, expected a model's name")
            sizes = rows.setdefault(spelling.setdefault(normalised(model), model), {})
            gpus = _gang_size(row.get("gpus", ""), line)
            if gpus in sizes:
                size = "every gang size" if gpus == ANY_SIZE else f"{gpus} GPUs"
                raise InputError(f"{line}: model {model!r} has a second row for {size}")
            if sizes and (gpus == ANY_SIZE or ANY_SIZE in sizes):
                raise InputError(f"{line}: model {model!r} has rows with and without gpus, expected one or the other")
            sizes[gpus] = _row_factors(row, line)
    except csv.Error as error:
        raise InputError(f"{place}, line {reader.line_num}: not csv, {error}") from None
    if not rows:
        raise InputError(f"{place} has a header and no rows")
    return PenaltyTable(path, rows)


def _check_header(names: Sequence[str], place: str) -> None:
    for name in names:
        try:
            choose(name, ("model", "gpus", "slot", "machine", "rack", "network"), "column")
        except InputError as error:
            raise InputError(f"{place}, line 1: {error}") from None
        if names.count(name) > 1:
            raise InputError(f"{place}, line 1: column {name!r} is given twice")
    missing = [name for name in ("model", "machine", "rack", "network") if name not in names]
    if missing:
        raise InputError(f"{place}, line 1: column {missing[0]!r} is missing, found {', '.join(names)}")


def _gang_size(text: str, line: str) -> int:
    if not text.strip():
        return ANY_SIZE
    try:
        gpus = int(text)
    except ValueError:
        gpus = -1
    if not 1 <= gpus <= MAX_GPUS:
        raise InputError(f"{line}, column gpus: {_shorten(text)}, expected a whole number from 1 to {MAX_GPUS}")
    return gpus


def _row_factors(row: Mapping[str, str], line: str) -> Factors:
    values: dict[str, float] = {}
    for tier in ("slot", "machine", "rack", "network"):
        text = row.get(tier, "")
        if tier == "slot" and not text.strip():
            continue
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 1.0 <= value <= MAX_FACTOR:  # also refuses nan
            raise InputError(f"{line}, column {tier}: {_shorten(text)}, expected a slowdown from 1 to {MAX_FACTOR:g}")
        values[tier] = value
    machine = values["machine"]
    return values.get("slot", machine), machine, values["rack"], values["network"]


def _shorten(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")


def _from_percent(machine: float, rack: float, network: float) -> dict[int, Factors]:
    """Exposed communication in percent of compute: an iteration takes 1 + percent / 100 of its compute."""
    on_machine = 1.0 + machine / 100.0
    return {ANY_SIZE: (on_machine, on_machine, 1.0 + rack / 100.0, 1.0 + network / 100.0)}


def _from_speeds(speeds: Mapping[int, Mapping[int, float]]) -> dict[int, Factors]:
    """{gpus: {nodes: speed}} to slowdowns: 1 node is slot and machine, 2 nodes rack, the most network."""

    def slowdown(speed: float) -> float:
        return max(1.0, 1.0 / speed)

    return {gpus: (1.0, 1.0, slowdown(of[2]), slowdown(of.get(4, of[2]))) for gpus, of in speeds.items()}


def _two_tiers(slowdowns: Mapping[int, float]) -> dict[int, Factors]:
    return {gpus: (1.0, 1.0, max(1.0, value), max(1.0, value)) for gpus, value in slowdowns.items()}


# Paper dally, Table I: "Communication latency as a % of compute time", 8 GPUs on one machine, one rack,
# across racks. It has no slot column (slot = machine) and one gang size (used for all).
DALLY_TABLE1 = PenaltyTable(
    "dally-table1",
    {
        "VGG11": _from_percent(1, 6, 7),
        "AlexNet": _from_percent(2, 13, 100),
        "MobileNetV3": _from_percent(42, 940, 19592),
        "ResNet18": _from_percent(7, 116, 2749),
        "ResNet50": _from_percent(12, 12, 38),
        "BERT-large": _from_percent(8, 23, 715),
    },
)

# Chronus (SoCC 2021), S-Lab-System-Group/ChronusArtifact, code/data/model_info.json (MIT): measured speed
# relative to one node, {model: {gpus: {nodes: speed}}}. Assumed here: one node = slot and machine, 2 nodes =
# rack, 4 nodes = network; jobs of 2 and 6 GPUs were not run on 4 nodes, their 2-node speed stands for
# network too.
CHRONUS_SPEEDS: dict[str, dict[int, dict[int, float]]] = {
    "alexnet": {
        2: {2: 0.7450686884120468},
        4: {2: 0.3972922047776267, 4: 0.325340860506144},
        6: {2: 0.3309909296079203},
        8: {2: 0.5083145152293351, 4: 0.26836765904968457},
    },
    "vgg16": {
        2: {2: 0.8958242243287142},
        4: {2: 0.576427514971673, 4: 0.3178085793082509},
        6: {2: 0.6566101887325483},
        8: {2: 0.5724854767061701, 4: 0.2608913299672127},
    },
    "resnet101": {
        2: {2: 0.9905392627895291},
        4: {2: 0.969122665600673, 4: 0.9538214155581849},
        6: {2: 0.9494155472302157},
        8: {2: 0.9476815436874315, 4: 0.8025198551591541},
    },
    "mobilenet_v2": {
        2: {2: 0.9956322189032849},
        4: {2: 0.972020944828447, 4: 0.7935638731175636},
        6: {2: 0.9582250811064315},
        8: {2: 0.9297908377905936, 4: 0.6271480154852589},
    },
    "inception_v3": {
        2: {2: 1.0025492563926262},
        4: {2: 0.9826097698009885, 4: 0.9640798255933825},
        6: {2: 0.9513560244529581},
        8: {2: 0.9227832420295228, 4: 0.8791396895657881},
    },
}
CHRONUS = PenaltyTable("chronus", {model: _from_speeds(speeds) for model, speeds in CHRONUS_SPEEDS.items()})

# Gavel (OSDI 2020), stanford-futuredata/gavel (MIT): measured steps per second on V100, consolidated over
# unconsolidated, median over the batch sizes measured, by number of GPUs. Two tiers: inside the machine 1,
# beyond it this number.
GAVEL_SLOWDOWNS: dict[str, dict[int, float]] = {
    "ResNet-18": {2: 2.355, 4: 2.495, 8: 4.051},
    "ResNet-50": {2: 1.1805, 4: 1.0035, 8: 0.965},
    "Transformer": {2: 1.595, 4: 1.821, 8: 2.919},
    "LM": {2: 4.343, 4: 3.212, 8: 8.445},
}
GAVEL = PenaltyTable("gavel", {model: _two_tiers(slowdowns) for model, slowdowns in GAVEL_SLOWDOWNS.items()})

TABLES: dict[str, PenaltyTable] = {table.name: table for table in (CHRONUS, GAVEL, DALLY_TABLE1)}
