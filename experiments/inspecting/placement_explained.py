"""One placement explained by the kernels of collectives.py: layers and tiers over an iteration, and their picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...simulator.base.errors import InputError
from ...simulator.base.tiers import TIERS
from ...simulator.cluster.region_network import CPU_TYPE
from ...simulator.cluster.topology import Topology
from ...simulator.events.initialise import cluster_of, write_cluster
from ...simulator.network import collectives
from ...simulator.network.allreduce import AllReduce
from ...simulator.network.collectives import collective_ns, finish_ns, fraction_of, is_alone, issue, measure_gang, serve
from ...simulator.network.tiers_and_layers import KINDS, ModelLayers
from ...simulator.record.raw_record import RawRecord
from ...simulator.record.state import LAYERS, Capacity, empty_state
from ..charts import axes
from ..charts.chart import Chart, Label, Shape, box, upright
from ..charts.chart_files import save
from ..charts.drawing import laid_out, shortened
from ..charts.marks import styles, variables_of

Units = tuple[int, int, int, int]  # members of the ring on slot, machine, rack, network; 0 or 1: not spanned
Spans = tuple[tuple[int, int], ...]  # (start, end)
MOST_UNITS = 1_000_000
WIDTH, ROW_PX = 1000.0, 44
# Neighbouring collectives differ, so that one sees where each ends.
PARTS = ("forward", "update", "backward", "collectives of layers", "in turn", "exposed")
LETTER_PX = 7.5  # of a name in a bar
LABELLED = 12  # layers whose name is written, if their bar is long enough


@dataclass(frozen=True)
class TierUse:
    """A tier that the gang spans."""

    name: str
    kind: str
    units: int
    links: int  # that one message has at once
    busy_ns: int  # with collectives, of the iteration


@dataclass(frozen=True)
class LayerUse:
    """A layer, in ns from the start of the forward pass."""

    name: str
    gradient_bytes: int  # that are all-reduced
    ready_ns: int  # its gradient is computed
    spans_ns: Spans  # of its collective on each tier of the gang, innermost first
    done_ns: int  # it is complete, after its update
    exposed_ns: int  # the part of the time after the backward pass that ends with its completion


@dataclass(frozen=True)
class Communication:
    """One iteration of a model at one placement."""

    model: str  # as the layer table spells it
    units: Units  # the shape of the placement
    compute_ns: int  # forward and backward pass
    forward_end_ns: int
    backward_end_ns: int  # later than compute_ns if the tiers file has a `step_ns`
    duration_ns: int  # until the last layer is complete
    compute_fraction: float  # compute over duration, in (0, 1], rounded as the tiers file says
    exposed_over_compute: float  # 1 / compute_fraction - 1
    tiers: tuple[TierUse, ...]  # those that the gang spans, innermost first
    layers: tuple[LayerUse, ...]  # in order of the forward pass


def shape_of(network: AllReduce, topology: Topology, gpus: Sequence[int]) -> Units:
    """The shape of a gang on `gpus` (indices, in any order); InputError for none, unknown ones, or one twice."""
    if not gpus:
        raise InputError("a placement of no GPU, expected at least one")
    for gpu in gpus:
        if not 0 <= gpu < topology.num_gpus:
            raise InputError(f"GPU {gpu}: topology {topology.name!r} has GPUs 0 to {topology.num_gpus - 1}")
        if topology.cluster_gpu_type[topology.gpu_cluster[gpu]] == CPU_TYPE:
            raise InputError(f"GPU {gpu}: in topology {topology.name!r} that is a CPU machine, no member of a gang")
    if len(set(gpus)) < len(gpus):
        twice = next(gpu for gpu in gpus if list(gpus).count(gpu) > 1)
        raise InputError(f"GPU {twice} is given twice")
    capacity = Capacity.fitting(1, topology.num_gpus, layered=True)
    records = empty_state(capacity)
    write_cluster(RawRecord(records, capacity), cluster_of(topology))
    s = records[0]
    s["gang_size"] = len(gpus)
    s["gang"][: len(gpus)] = gpus
    s["net_flattened"] = network.calibration.fabric.uneven == "flattened"
    measure_gang(s)
    slot, machine, rack, whole = (int(units) for units in s["units"])
    return slot, machine, rack, whole


def explain(network: AllReduce, model: str, units: Units) -> Communication:
    """One iteration of `model` at the shape `units`; InputError for an unknown model or invalid units."""
    layers = network.layers_of(model)
    if layers is None:
        known = ", ".join(network.calibration.model_names())
        raise InputError(f"model {model!r}: the layer table lists {known}")
    if len(layers.names) > LAYERS:
        raise InputError(f"model {model!r} has {len(layers.names)} layers, expected at most {LAYERS}")
    if len(units) != TIERS or not all(0 <= number <= MOST_UNITS for number in units):
        shown = ",".join(map(str, units))
        raise InputError(
            f"units {shown!r}: expected four whole numbers from 0 to {MOST_UNITS}, those of slot, machine, rack and "
            "network (0: the tier is not spanned)"
        )
    gpus = math.prod(max(1, number) for number in units)
    if gpus > MOST_UNITS:
        raise InputError(f"units {','.join(map(str, units))!r} are {gpus} GPUs, expected at most {MOST_UNITS}")
    s = empty_state(Capacity.fitting(1, 1, layered=True))[0]
    network.write_models(s, [layers])
    s["units"] = units
    duration = int(finish_ns(s, 0))
    fraction = float(fraction_of(s, s.model_compute_ns[0], duration))
    alone = bool(is_alone(s))
    tiers, spans = _walk(network, s, layers)
    step_ns = 0 if alone else network.calibration.fabric.step_ns
    forward_end = int(layers.forward_ns.sum()) + step_ns * len(layers.names)
    end = layers.compute_ns if alone else int(s["model_end_ns"][0])
    done = [layer_spans[-1][1] if layer_spans else 0 for layer_spans in spans]
    ready = layers.issue_ns(step_ns)
    complete = [max(int(r), t) + int(u) * (t > 0) for r, t, u in zip(ready, done, layers.update_ns, strict=True)]
    exposed = _exposed(complete, end)
    columns = zip(layers.names, layers.gradient_bytes, ready, spans, complete, exposed, strict=True)
    uses = tuple(LayerUse(name, int(size), int(r), span, at, part) for name, size, r, span, at, part in columns)
    ratio = 1.0 / fraction - 1.0
    passes = (layers.compute_ns, forward_end, end)
    return Communication(layers.model, units, *passes, duration, fraction, ratio, tiers, uses)


def _walk(network: AllReduce, s: np.record, layers: ModelLayers) -> tuple[tuple[TierUse, ...], list[Spans]]:
    """The tiers that the shape of `s` spans, and (start, end) on each of them per layer."""
    uses: list[TierUse] = []
    spans: list[list[tuple[int, int]]] = [[] for _ in layers.names]
    count = int(issue(s, 0))
    for tier, link in enumerate(network.calibration.fabric.tiers):
        units = int(s["units"][tier])
        if units <= 1:
            continue
        serve(s, tier, count)
        busy = 0
        for layer in s["layer_order"][:count].tolist():
            end = int(s["layer_done_ns"][layer])
            took = int(collective_ns(s, tier, units, s.layer_bytes[layer]))
            spans[layer].append((end - took, end))
            busy += took
        links = int(collectives.parallel_links(KINDS[link.kind], link.links, units))
        uses.append(TierUse(link.name, link.kind, units, links, busy))
    return tuple(uses), [tuple(layer) for layer in spans]


def _exposed(complete: Sequence[int], end: int) -> list[int]:
    """The time after `end` divided among the layers, each from the completion before its own."""
    parts = [0] * len(complete)
    before = end
    for layer in sorted(range(len(complete)), key=complete.__getitem__):
        if complete[layer] > before:
            parts[layer] = complete[layer] - before
            before = complete[layer]
    return parts


def draw(found: Communication, path: Path) -> None:
    """Write the picture of `found` to `path`, png."""
    save(laid_out(chart_of(found), variables_of(styles([], PARTS)), WIDTH), path)


def chart_of(found: Communication) -> Chart:
    """A row for compute, one for each tier that the gang spans, and one for updates if there are any."""
    unit_ns, unit = (1e6, "ms") if found.duration_ns >= 1e6 else (1e3, "us")
    x = axes.linear(0.0, found.duration_ns / unit_ns)
    rows = ["compute", *(f"{tier.name}, {tier.kind.replace('_', ' ')} of {tier.units}" for tier in found.tiers)]
    updates = [layer for layer in found.layers if layer.spans_ns and layer.done_ns > layer.spans_ns[-1][1]]
    rows += ["update"] if updates else []
    bars: list[tuple[int, int, int, str, str]] = [
        (0, 0, found.forward_end_ns, "forward", "forward"),
        (0, found.forward_end_ns, found.backward_end_ns, "backward", "backward"),
    ]
    for number in range(len(found.tiers)):
        spans = sorted((*layer.spans_ns[number], layer.name) for layer in found.layers if layer.spans_ns)
        longest = sorted(range(len(spans)), key=lambda at: spans[at][0] - spans[at][1])[:LABELLED]
        for at, (start_ns, end_ns, name) in enumerate(spans):
            bars.append((number + 1, start_ns, end_ns, PARTS[3 + at % 2], name if at in longest else ""))
    bars += [(len(rows) - 1, layer.spans_ns[-1][1], layer.done_ns, "update", "") for layer in updates]
    shapes: dict[str, list[np.ndarray]] = {}
    inside = []
    for row, start_ns, end_ns, part, name in bars:
        left, right = x.at(np.array([start_ns, end_ns]) / unit_ns).tolist()
        middle = 1.0 - (row + 0.5) / len(rows)
        shapes.setdefault(part, []).append(box(left, right, middle - 0.35 / len(rows), middle + 0.35 / len(rows)))
        room = (right - left) * 0.8 * WIDTH
        if name and room > 5 * LETTER_PX:
            inside.append(((left + right) / 2.0, middle, shortened(name, room, LETTER_PX * 1.5)))
    looks = styles([], PARTS)
    after = float(x.at(found.backward_end_ns / unit_ns))
    keys = [part for part in PARTS if part in shapes and part != "in turn"]
    title = f"{found.model}: exposed communication is {found.exposed_over_compute:.4g} of compute (shaded)"
    summary = f"{len(found.layers)} layers; compute {found.backward_end_ns:,} ns of {found.duration_ns:,} ns"
    drawn = [Shape(f"band {looks['exposed'].classes}", [box(after, 1.0, 0.0, 1.0)], closed=True)]
    drawn += [Shape(f"bar {looks[part].classes}", some, closed=True) for part, some in shapes.items()]
    drawn += [Shape("one", [upright(after, 0.0, 1.0)])]
    labels = [Label("", 100.0 * (row + 0.5) / len(rows), name) for row, name in enumerate(rows)]
    legend = [(f"bar {looks[part].classes}", part) for part in keys]
    x_label = f"time since the forward pass began [{unit}]"
    about: Any = {"shapes": drawn, "rows": labels, "legend": legend, "inside": inside}
    return Chart(title, summary, ROW_PX * len(rows), x, None, x_label, **about)
