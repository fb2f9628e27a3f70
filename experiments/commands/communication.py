"""`clustergym communication`: one iteration of a model at one placement, per tier and per layer."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..console import terminal
from ..console.terminal import BadArgument, arguments, out, plain_table, print_json, print_lines, styled, word_or_file
from .options import Json, NoSeed, Quiet, Topology, argument, option

if TYPE_CHECKING:
    from ...simulator.network.allreduce import AllReduce
    from ..inspecting.placement_explained import Communication, LayerUse, Units

UNITS = "slot,slots,machines,racks"
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
TIMES = ("compute_ns", "forward_end_ns", "backward_end_ns", "duration_ns")
WHOLE = ("compute_fraction", "exposed_over_compute", "model", "units", *TIMES)
TIER = ("kind", "units", "links", "busy_ns")
MOST_GPUS = 1_000_000
LAYER_WIDTH, SPAN_WIDTH = 72, 17  # columns that the table of layers takes, and each tier in it


def communication(
    model: Annotated[str, argument("MODEL", "A model of the calibration.")],
    topology: Topology = None,
    gpus: Annotated[str | None, option("--gpus", "I,J,...", "GPUs of --topology by number; ranges are I-J.")] = None,
    units: Annotated[
        str | None, option("--units", UNITS.upper(), "The shape itself: members on each tier, 0: it is not spanned.")
    ] = None,
    calibration: Annotated[str, option("--calibration", "artist|measured|PATH", "Tiers and layer tables.")] = "artist",
    tiers: Annotated[str | None, option("--tiers", "PATH", "Another tiers file.")] = None,
    layers: Annotated[str | None, option("--layers", "PATH", "Another layer table.")] = None,
    picture: Annotated[
        Path | None, option("--out", "FILE.png", "Draw compute and collectives over time there.")
    ] = None,
    json: Json = False,
    seed: NoSeed = 0,
    quiet: Quiet = False,
) -> None:
    """Explain the exposed communication of one placement, per tier and per layer."""
    from ..inspecting.placement_explained import explain

    if picture is not None:
        _expect_picture(picture)
    network = _network(calibration, tiers, layers)
    with terminal.warnings_on_one_line(quiet), arguments():
        network, shape = _placed(network, topology, gpus, units)
        found = explain(network, model, shape)
    if picture is not None:
        from ..inspecting.placement_explained import draw

        with terminal.written_whole(picture) as draft:
            draw(found, draft)
    if json:
        print_json(_document(found) | {"extrapolated": network.is_extrapolated(model), "notes": list(network.notes)})
    else:
        _print(found)
        print_lines(*network.notes, *_extrapolated(network, model))
        if picture is not None and not quiet:
            print_lines(f"picture: {picture}")


def _expect_picture(picture: Path) -> None:
    from ..charts.chart_files import expect_installed

    if picture.suffix.lower() != ".png":
        raise BadArgument(f"--out {str(picture)!r}: expected a name that ends in .png")
    terminal.expect_writable(picture, "--out")
    expect_installed(["png"], "these pictures")


def _network(calibration: str, tiers: str | None, layers: str | None) -> AllReduce:
    from ...simulator.network.allreduce import allreduce

    with word_or_file(layers or tiers or calibration):
        return allreduce(calibration, tiers, layers)


def _extrapolated(network: AllReduce, model: str) -> list[str]:
    layers = network.layers_of(model)
    if layers is None or not network.is_extrapolated(model):
        return []
    tiers = network.calibration.fabric.measured_on
    return [f"extrapolated: compute of {layers.model} was measured on {layers.measured_on}, the tiers on {tiers}"]


def _placed(network: AllReduce, topology: str | None, gpus: str | None, units: str | None) -> tuple[AllReduce, Units]:
    """The network with the topology's own link numbers, and the shape of the placement."""
    from ...simulator.cluster.topology import Topology as Cluster
    from ...simulator.network.allreduce import AllReduce
    from ...simulator.network.written import on_topology
    from ..inspecting.placement_explained import shape_of

    if (gpus is None) == (units is None):
        raise BadArgument("expected either --topology and --gpus, or --units, to say where the job lies")
    if units is not None:
        if topology is not None:
            raise BadArgument("--topology goes with --gpus; --units is the shape itself")
        return network, _units(units)
    if topology is None or gpus is None:
        raise BadArgument("--gpus needs the --topology that its numbers belong to")
    with word_or_file(topology):
        cluster = Cluster.load(topology)
    placed = on_topology(network, cluster)
    assert isinstance(placed, AllReduce)
    return placed, shape_of(placed, cluster, _gpu_numbers(gpus))


def _units(text: str) -> Units:
    words = [word.strip() for word in text.split(",")]
    if len(words) != 4 or not all(word.isascii() and word.isdigit() and len(word) < 8 for word in words):
        raise BadArgument(f"--units {text!r}: expected {UNITS}, four whole numbers of at least 0 such as 4,2,0,0")
    slot, machine, rack, network = (int(word) for word in words)
    return slot, machine, rack, network


def _gpu_numbers(text: str) -> list[int]:
    numbers: list[int] = []
    for word in text.split(","):
        match = _RANGE.fullmatch(word.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not first <= last < first + MOST_GPUS:
            raise BadArgument(f"--gpus {text!r}: {word.strip()!r} is not the number of a GPU, nor a range such as 0-7")
        numbers.extend(range(first, last + 1))
    return numbers


def _document(found: Communication) -> dict[str, Any]:
    """The JSON document; times are ns from the start of the forward pass."""
    names = [tier.name for tier in found.tiers]
    tiers = [
        {"tier": tier.name, **{key: getattr(tier, key) for key in TIER}, "share": tier.busy_ns / found.duration_ns}
        for tier in found.tiers
    ]
    layers = []
    for one in found.layers:
        spans = {name: list(span) for name, span in zip(names, one.spans_ns, strict=False)}
        row = {"layer": one.name, "bytes": one.gradient_bytes, "ready_ns": one.ready_ns, "tiers": spans}
        layers.append(row | {"done_ns": one.done_ns, "exposed_ns": one.exposed_ns})
    return {**{key: getattr(found, key) for key in WHOLE}, "tiers": tiers, "layers": layers}


def _print(found: Communication) -> None:
    console = out()
    shape = ", ".join(f"{tier.units} on {tier.name}" for tier in found.tiers) or "one GPU, nothing to exchange"
    console.print(styled(f"{found.model}: {shape}", "bold"))
    console.print(
        f"compute {_ms(found.compute_ns)} ms, iteration {_ms(found.duration_ns)} ms; exposed communication is "
        f"{found.exposed_over_compute:.6g} of compute: compute is {100 * found.compute_fraction:.6g} % of an iteration",
        soft_wrap=True,
    )
    if not found.tiers:
        return
    table = plain_table()
    for column in ("tier", "kind", "members", "links", "busy [ms]", "of the iteration [%]"):
        table.add_column(styled(column), justify="left" if column in ("tier", "kind") else "right")
    for tier in found.tiers:
        share = 100 * tier.busy_ns / found.duration_ns
        table.add_row(tier.name, tier.kind, str(tier.units), str(tier.links), _ms(tier.busy_ns), f"{share:.1f}")
    console.print(table)
    is_wide = console.width >= LAYER_WIDTH + SPAN_WIDTH * len(found.tiers)
    console.print(_layer_table(found, is_wide))
    if not is_wide:
        console.print("A wider terminal, or --json, shows when each tier begins and ends each layer.", soft_wrap=True)


def _layer_table(found: Communication, with_spans: bool) -> Any:
    table = plain_table()
    table.add_column("layer", overflow="fold")
    names = [f"{tier.name} [ms]" for tier in found.tiers] if with_spans else []
    for column in ("bytes", "ready [ms]", *names, "done [ms]", "exposed [ms]"):
        table.add_column(styled(column), justify="right", overflow="fold")
    decimals = max(0, 4 - len(str(found.duration_ns // 1_000_000)))

    def ms(time_ns: int) -> str:
        return f"{time_ns / 1e6:,.{decimals}f}"

    for *others, layer in _folded(found):
        spans = [f"{ms(start)}-{ms(end)}" for start, end in layer.spans_ns[: len(names)]] or [""] * len(names)
        cells = (f"{layer.gradient_bytes:,}", ms(layer.ready_ns), *spans, ms(layer.done_ns), ms(layer.exposed_ns))
        name = f"{others[0].name} to {layer.name}: {1 + len(others)} that exchange nothing" if others else layer.name
        table.add_row(styled(name), *cells)
    total = sum(layer.exposed_ns for layer in found.layers)
    table.add_section()
    size = sum(layer.gradient_bytes for layer in found.layers)
    ends = [""] * len(names)
    table.add_row("all", f"{size:,}", "", *ends, ms(found.duration_ns), ms(total))
    return table


def _folded(found: Communication) -> Iterator[list[LayerUse]]:
    for _, group in itertools.groupby(reversed(found.layers), key=lambda layer: layer.gradient_bytes and layer.name):
        yield list(group)


def _ms(time_ns: int) -> str:
    return f"{time_ns / 1e6:,.3f}"
