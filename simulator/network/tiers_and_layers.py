"""What network allreduce computes from: the tiers of a cluster and the layers of models, from files.

docs/concepts/network.md has the schema of a tiers file, YAML or JSON. Latency (ns) and bandwidth (1e9 bytes a second)
are those of one link; a message passes two links of a switch, else one. `links` is how many a member has; left out, as
many as the tier has members (a ring of two: four). `nominal_gbps` (gigabits per second) belongs to an effective
bandwidth, which a topology's scales by its ratio to this; any other bandwidth is replaced.

A layer table is a csv, one row per layer in order of the forward pass, with the columns `LAYER_COLUMNS`; lines that
start with "#" are remarks. Times are ns, gradient_bytes is what is all-reduced, update_ns passes between the end of the
all-reduce and the layer's completion. A column `measured_on` may name the GPU of the compute times: on tiers of another
one slowdowns are extrapolated.
"""

from __future__ import annotations

import csv
import functools
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np

from ..base.errors import InputError
from ..base.names import choose
from ..base.tiers import TIER_NAMES
from ..files.file_marks import path_mark, path_unless
from ..files.yaml_files import load_mapping, read_text, validated
from ..profiles.model_names import normalised, plain
from .collectives import FULLY_CONNECTED, RING, SWITCH

if TYPE_CHECKING:
    from ..cluster.topology import Tier

KINDS = {"fully_connected": FULLY_CONNECTED, "ring": RING, "switch": SWITCH}
HOPS = {"fully_connected": 1, "ring": 1, "switch": 2}
_TIMES = ("forward_ns", "input_gradient_ns", "weight_gradient_ns")
LAYER_COLUMNS = ("model", "layer", *_TIMES, "gradient_bytes", "update_ns")
MEASURED_ON = "measured_on"
# Limits that keep the sum of all collectives of 1,024 layers within whole numbers of 64 bits.
MOST_NS = 1e14
MOST_BYTES = 1e11
MOST_PASS_NS = 1e17  # of all gradients of a model over one link, twice
DATA = Path(__file__).resolve().parent / "data"
CALIBRATIONS = {path.stem: path for path in sorted(DATA.glob("*.yaml"))}


@dataclass(frozen=True)
class Link:
    """One tier: GB/s and latency of one link; links of each member, 0: as many as members; Gbps on paper."""

    name: str
    kind: str
    latency_ns: float
    bandwidth_gb_s: float
    links: int
    nominal_gbps: float | None = None

    def written_over(self, tier: Tier) -> Link:
        """With the numbers of `tier` that are known: its latency is a whole message's, its oversubscription divides."""
        bandwidth, latency_ns = self.bandwidth_gb_s, self.latency_ns
        if not math.isnan(tier.bandwidth_gbps):
            bandwidth = tier.bandwidth_gbps / 8
            if self.nominal_gbps is not None:
                bandwidth = self.bandwidth_gb_s * tier.bandwidth_gbps / self.nominal_gbps
        if not math.isnan(tier.oversubscription):
            bandwidth /= tier.oversubscription
        if not math.isnan(tier.latency_s):
            latency_ns = round(tier.latency_s * 1e9, 6) / HOPS[self.kind]
        return replace(self, bandwidth_gb_s=bandwidth, latency_ns=latency_ns)

    @property
    def message_latency_ns(self) -> float:
        """What a message waits besides its transmission."""
        return HOPS[self.kind] * self.latency_ns


@dataclass(frozen=True)
class Fabric:
    """The tiers of a cluster, slot to network, and the rules of their use; see the module's text."""

    tiers: tuple[Link, ...]
    order: str
    uneven: str
    endpoint_ns: int
    memory_gb_s: float
    step_ns: int
    single_precision: bool
    measured_on: str = ""


@dataclass(frozen=True, eq=False)
class ModelLayers:
    """A model's layers in forward order: names, int64 (layers,); measured_on: the GPU of compute times, "": unknown."""

    model: str
    names: tuple[str, ...]
    forward_ns: np.ndarray
    input_gradient_ns: np.ndarray
    weight_gradient_ns: np.ndarray
    gradient_bytes: np.ndarray
    update_ns: np.ndarray
    measured_on: str = ""

    @property
    def compute_ns(self) -> int:
        """Compute of one iteration; the first layer has no input gradient."""
        return int(self.forward_ns.sum() + self.weight_gradient_ns.sum() + self.input_gradient_ns[1:].sum())

    def issue_ns(self, step_ns: int) -> np.ndarray:
        """When the gradient of each layer is ready, from the start of the forward pass; `step_ns` per operation."""
        backward = self.weight_gradient_ns + self.input_gradient_ns + 2 * step_ns
        after = np.append(np.cumsum(backward[::-1])[::-1][1:], 0)  # of the layers behind, which come first
        return self.forward_ns.sum() + len(self.names) * step_ns + after + self.weight_gradient_ns


@dataclass(frozen=True, eq=False)
class Calibration:
    """Tiers and layer tables."""

    fabric: Fabric
    models: tuple[ModelLayers, ...]

    def model_names(self) -> list[str]:
        """The models it lists, as the source spells them."""
        return [layers.model for layers in self.models]

    def find(self, model: str) -> ModelLayers | None:
        """The layers of a model in any spelling or alias (profiles/model_names.py); None if it is not listed."""
        return self._by_name.get(plain(model)) or self._by_alias.get(normalised(model))

    def is_extrapolated(self, layers: ModelLayers) -> bool:
        """Whether the compute times of a model are another GPU's than the tiers were measured on."""
        gpu = self.fabric.measured_on
        return bool(gpu and layers.measured_on) and layers.measured_on != gpu

    @functools.cached_property
    def _by_name(self) -> dict[str, ModelLayers]:
        return {plain(layers.model): layers for layers in self.models}

    @functools.cached_property
    def _by_alias(self) -> dict[str, ModelLayers]:
        return {normalised(layers.model): layers for layers in reversed(self.models)}  # the first listed counts


def load_calibration(
    calibration: str = "measured", tiers: str | None = None, layers: str | None = None, uneven: str | None = None
) -> Calibration:
    """A calibration by name or from files.

    Args:
        calibration: measured, artist, or the path of a tiers file that names its layer table.
        tiers: path of a tiers file, in place of the calibration's; its layer table counts too, if it names one.
        layers: path of a layer table, in place of any other.
        uneven: flattened or largest, in place of what the tiers file says.

    Raises:
        InputError: no such name or file, or one that cannot be used: one sentence with the place and the value.
    """
    if tiers is not None:
        fabric, named = load_fabric(tiers)
        if layers is None and named is None:
            layers = _layers_of(calibration)
    else:
        fabric, named = load_fabric(_path_of(calibration))
        if layers is None and named is None:
            raise InputError(f"calibration {calibration!r}: layers is missing, expected the path of its layer table")
    if uneven is not None:
        fabric = replace(fabric, uneven=uneven)
    return Calibration(fabric, load_layers(layers if layers is not None else str(named)))


def _path_of(calibration: str) -> str:
    if calibration in CALIBRATIONS:
        return str(CALIBRATIONS[calibration])
    if not (os.sep in calibration or "/" in calibration or calibration.lower().endswith((".yaml", ".yml", ".json"))):
        try:
            choose(calibration, CALIBRATIONS, "calibration")
        except InputError as error:
            raise InputError(f"{error}; or the path of a yaml file") from None
    return calibration


def _layers_of(calibration: str) -> str:
    named = load_fabric(_path_of(calibration))[1]
    if named is None:
        raise InputError(f"calibration {calibration!r}: layers is missing, expected the path of its layer table")
    return named


def load_fabric(path: str) -> tuple[Fabric, str | None]:
    """The tiers of a file, and the path of the layer table that it names; InputError if the file cannot be used."""
    place = f"tiers file {path!r}"
    schema = _schema()
    spec = validated(schema.Tiers, load_mapping(path, "tiers file"), place)
    by_name = {tier.name: tier for tier in spec.tiers}
    for name in TIER_NAMES:
        count = sum(tier.name == name for tier in spec.tiers)
        if count != 1:
            raise InputError(f"{place}: tiers names {name!r} {count} times, expected {', '.join(TIER_NAMES)} once each")
    links = tuple(
        Link(name, tier.kind, float(tier.latency_ns), float(tier.bandwidth_gb_s), tier.links or 0, tier.nominal_gbps)
        for name, tier in ((name, by_name[name]) for name in TIER_NAMES)
    )
    memory = math.inf if spec.memory_gb_s is None else float(spec.memory_gb_s)
    rules = (spec.order, spec.uneven, spec.endpoint_ns, memory, spec.step_ns, spec.single_precision)
    fabric = Fabric(links, *rules, measured_on=spec.measured_on)
    return fabric, None if spec.layers is None else str(Path(path).parent / spec.layers)


def _named_in(path: str) -> tuple[str, ...]:
    named = load_fabric(path)[1]
    return () if named is None else (named,)


A_TIERS_FILE = path_mark(beside=_named_in)
A_CALIBRATION = path_unless(CALIBRATIONS.keys(), beside=_named_in)


@functools.cache
def _schema() -> SimpleNamespace:
    from typing import Annotated, Literal

    from pydantic import BaseModel, ConfigDict, Field

    Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
    Whole = Annotated[int, Field(ge=0, le=1_000_000_000, strict=True)]
    Bandwidth = Annotated[Number, Field(ge=1e-3, le=1e9)]

    class Strict(BaseModel):
        model_config = ConfigDict(extra="forbid", frozen=True)

    class TierSpec(Strict):
        name: Literal["slot", "machine", "rack", "network"]
        kind: Literal["fully_connected", "ring", "switch"]
        latency_ns: Annotated[Number, Field(ge=0, le=1e9)]
        bandwidth_gb_s: Bandwidth
        links: Annotated[int, Field(ge=1, le=1_000_000, strict=True)] | None = None
        nominal_gbps: Bandwidth | None = None

    class Tiers(Strict):
        tiers: Annotated[list[TierSpec], Field(min_length=1)]
        layers: Annotated[str, Field(strict=True, min_length=1, max_length=1000)] | None = None
        order: Literal["lifo", "fifo"] = "lifo"
        uneven: Literal["flattened", "largest"] = "largest"
        endpoint_ns: Whole = 0
        memory_gb_s: Bandwidth | None = None
        step_ns: Whole = 0
        single_precision: Annotated[bool, Field(strict=True)] = False
        measured_on: Annotated[str, Field(strict=True, max_length=100)] = ""

    return SimpleNamespace(Tiers=Tiers)


def load_layers(path: str) -> tuple[ModelLayers, ...]:
    """The models of a layer table, in its order; InputError if the file cannot be used."""
    place = f"layer table {path!r}"
    # Remarks become empty lines, so that lines keep their numbers.
    lines = ["" if line.startswith("#") else line for line in read_text(path, "layer table").splitlines()]
    header = next((i for i, line in enumerate(lines) if line.strip()), len(lines))
    reader = csv.reader(lines[header:], strict=True)
    rows: dict[str, list[tuple[str, list[int]]]] = {}
    spelling: dict[str, str] = {}
    gpus: dict[str, str] = {}
    line_of: dict[tuple[str, str], int] = {}
    try:
        columns = [name.strip() for name in next(reader, [])]
        if sorted({*columns, MEASURED_ON}) != sorted((*LAYER_COLUMNS, MEASURED_ON)) or len(columns) > len(set(columns)):
            raise InputError(_column_sentence(columns, f"{place}, line {header + 1}"))
        for row in reader:
            number = header + reader.line_num
            line = f"{place}, line {number}"
            if not row:
                continue
            if len(row) != len(columns):
                raise InputError(f"{line}: {len(row)} values, expected {len(columns)}, one per column")
            cells = dict(zip(columns, row, strict=True))
            model, key = cells["model"].strip(), plain(cells["model"])
            if not key:
                raise InputError(f"{line}, column model: {_shown(model)}, expected a model's name")
            if spelling.setdefault(key, model) != model:
                raise InputError(f"{line}, column model: {_shown(model)}, an earlier line spells it {spelling[key]!r}")
            gpu = cells.get(MEASURED_ON, "").strip()
            if gpus.setdefault(model, gpu) != gpu:
                raise InputError(f"{line}, column {MEASURED_ON}: {_shown(gpu)}, an earlier line has {gpus[model]!r}")
            layer = cells["layer"].strip()
            if layer and (first := line_of.setdefault((model, layer), number)) != number:
                raise InputError(f"{line}: layer {_shown(layer)} of model {_shown(model)} is in line {first} too")
            rows.setdefault(model, []).append((layer, _numbers(cells, line)))
    except csv.Error as error:
        raise InputError(f"{place}, line {header + reader.line_num}: not readable as csv ({error})") from None
    if not rows:
        raise InputError(f"{place} has a header and no rows, expected at least one layer")
    return tuple(_model_layers(model, layers, gpus[model], place) for model, layers in rows.items())


def _column_sentence(columns: list[str], line: str) -> str:
    expected = f"expected exactly {', '.join(LAYER_COLUMNS)}, and {MEASURED_ON} if you like"
    for name in columns:
        if columns.count(name) > 1:
            return f"{line}: column {_shown(name)} is given twice; {expected}"
        if name not in (*LAYER_COLUMNS, MEASURED_ON):
            return f"{line}: unknown column {_shown(name)}; {expected}"
    missing = next(name for name in LAYER_COLUMNS if name not in columns)
    return f"{line}: column {missing!r} is missing; {expected}"


def _numbers(cells: Mapping[str, str], line: str) -> list[int]:
    numbers = []
    for column in LAYER_COLUMNS[2:]:
        most = MOST_BYTES if column == "gradient_bytes" else MOST_NS
        try:
            number = float(cells[column])
        except ValueError:
            number = math.nan
        if not 0.0 <= number <= most:  # also refuses nan
            text = _shown(cells[column])
            raise InputError(f"{line}, column {column}: {text}, expected a number from 0 to {most:g}")
        numbers.append(int(number))
    return numbers


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")


def _model_layers(model: str, layers: list[tuple[str, list[int]]], gpu: str, place: str) -> ModelLayers:
    columns = np.array([numbers for _, numbers in layers], dtype=np.int64).T.copy()
    columns.flags.writeable = False
    built = replace(ModelLayers(model, tuple(name for name, _ in layers), *columns), measured_on=gpu)
    if built.compute_ns <= 0:
        raise InputError(f"{place}: the layers of model {model!r} compute for 0 ns in all, expected more")
    return built
