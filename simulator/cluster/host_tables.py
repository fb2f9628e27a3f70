"""A topology from a table of hosts and their switches, as operators publish them: Alibaba's Lingjun is one.

A csv: the first column names the host, each further one its switch in a layer, outermost first. Options, printed in
`Topology.about`, add the rest. A switch of the table may stand for several (Lingjun has three PSW for 847 hosts): here
it is one, never full by itself, and `uplinks` says in how many cables its capacity comes.
"""

from __future__ import annotations

import csv
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Literal

from ..base.errors import InputError
from ..files.file_marks import A_FILE
from ..files.regular_files import read_text
from .fabrics import CABLE_GBPS, add_server, check_capacity, check_counts, new_graph
from .graph_files import topology_from_graph
from .links import check_routes
from .topology import Topology, check_gpu_count, preset

if TYPE_CHECKING:
    import networkx

MOST_BYTES = 64 * 2**20
MOST_LAYERS = 8
MOST_CABLES = 64  # from a switch to the next one
MOST_RATIO = 1e6
LONGEST = 200  # characters of a name
A_TABLE = "a csv table of hosts and their switches: ip,DSW,PSW,ASW"
Naming = Literal["nested", "unique"]
Switches = tuple[str, ...]  # of a host, the outermost first


@preset("hosts")
def hosts(
    gpus: int = 8,
    nics: int = 1,
    nic_gbps: float | None = None,
    oversubscription: tuple[float, ...] = (1.0,),
    uplinks: int = 1,
    names: Naming = "nested",
    file: Annotated[str, A_FILE] = "",
) -> Topology:
    """Hosts and their switches from a table: a Clos of as many layers as it has columns; `file=PATH` comes last.

    Args:
        gpus, nics: of each host; GPU i is on NIC i mod nics, and all NICs go to the host's innermost switch.
        nic_gbps: of the cable of a NIC; None: 50.
        oversubscription: capacity below over capacity above a switch, >= 1, from the innermost layer on; default 1.
        uplinks: cables from a switch to each one above it, which share the capacity evenly.
        names: nested: a switch is named within the one above it (P8's S1 is not P10's S1); unique: they are one.
        file: the table; the rest of the word, commas included.

    Raises:
        InputError: a number out of range, or a table that cannot be used: line, column, value and what was expected.
    """
    what, gbps = "topology hosts", CABLE_GBPS if nic_gbps is None else nic_gbps
    check_capacity("hosts", "nic_gbps", gbps)
    _check_options(gpus, nics, uplinks, names, file)
    layers, table = read_hosts(file)
    ratios = _ratios(oversubscription, len(layers) - 1)
    check_gpu_count(len(table) * gpus, what)
    placed = {host: _nodes(switches, names) for host, switches in table.items()}
    counts = [len({nodes[layer] for nodes in placed.values()}) for layer in range(len(layers))]
    check_routes(len(placed) * nics + sum(counts), len(placed) * nics, what)
    graph = _graph(placed, gpus, [gbps] * nics, ratios, uplinks)
    read = [f"{count:,} {layer}" for count, layer in zip(counts, layers, strict=True)]
    assumed = [f"{ratio:g}:1 at {layer}" for ratio, layer in zip(ratios, layers[:0:-1], strict=True)]
    about = (
        f"{len(placed):,} hosts, {', '.join(read)}, {2 * graph.number_of_edges():,} links; assumed: {gpus} GPUs and "
        f"{nics} NIC{'s' * (nics > 1)} of {gbps:g} Gbps a host, {''.join(f'{part}, ' for part in assumed)}"
        f"{uplinks} cable{'s' * (uplinks > 1)} from switch to switch, names of switches {names}"
    )
    words = {"nic_gbps": nic_gbps is not None, "oversubscription": max(ratios, default=1.0) > 1.0}
    return topology_from_graph(
        graph,
        "hosts",
        source=f"{what}: {file}",
        capacities=" and ".join(word for word, is_given in words.items() if is_given),
        about=about,
    )


def _check_options(gpus: int, nics: int, uplinks: int, names: str, file: str) -> None:
    check_counts("hosts", gpus=gpus, nics=nics, uplinks=uplinks)
    for key, count, most in ("nics", nics, gpus), ("uplinks", uplinks, MOST_CABLES):
        if count > most:
            raise InputError(f"topology hosts: {key} = {count}, expected at most {most}{' GPUs' * (key == 'nics')}")
    if names not in ("nested", "unique"):
        raise InputError(f"topology hosts: names = {names!r}, expected nested or unique")
    if not file:
        raise InputError("topology hosts: file is missing; write it last, as in hosts:gpus=8,nic_gbps=100,file=PATH")


def _ratios(given: Sequence[float], layers: int) -> list[float]:
    for ratio in given:
        if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 1.0 <= ratio <= MOST_RATIO:
            expected = f"at least 1 and at most {MOST_RATIO:g}"
            raise InputError(f"topology hosts: oversubscription = {ratio!r}, expected {expected}")
    if len(given) > max(1, layers):
        shown = "/".join(f"{ratio:g}" for ratio in given)
        raise InputError(
            f"topology hosts: oversubscription = {shown}, expected at most {layers}, one a layer below the outermost"
        )
    return [*map(float, given), *[1.0] * layers][:layers]


def _nodes(switches: Switches, names: Naming) -> Switches:
    if names == "unique":
        return switches
    return tuple("/".join(switches[: layer + 1]) for layer in range(len(switches)))


def _graph(
    placed: Mapping[str, Switches], gpus: int, nics_gbps: Sequence[float], ratios: Sequence[float], uplinks: int
) -> networkx.MultiGraph:
    """Hosts in the order in which their switches come first, the outermost deciding; then the cables between these."""
    graph = new_graph()
    rank = {node: i for i, node in enumerate(dict.fromkeys(node for nodes in placed.values() for node in nodes))}
    below: defaultdict[str, float] = defaultdict(float)  # Gbps
    above: dict[str, dict[str, None]] = {}
    for host, nodes in sorted(placed.items(), key=lambda one: [rank[node] for node in one[1]]):
        add_server(graph, host, gpus, [nodes[-1]] * len(nics_gbps), nics_gbps[0])
        below[nodes[-1]] += sum(nics_gbps)
        for up, down in pairwise(nodes):
            above.setdefault(down, {})[up] = None
    layer = list(dict.fromkeys(nodes[-1] for nodes in placed.values()))
    for ratio in ratios:
        for switch in layer:
            each = below[switch] / ratio / len(above[switch])
            for up in above[switch]:
                below[up] += each
                for _ in range(uplinks):
                    graph.add_edge(switch, up, capacity_gbps=each / uplinks)
        layer = list(dict.fromkeys(up for switch in layer for up in above[switch]))
    return graph


def read_hosts(path: str | os.PathLike[str]) -> tuple[list[str], dict[str, Switches]]:
    """The layers of a table, outermost first, and the switches of each host; InputError names place and value."""
    place = f"table of hosts {os.fspath(path)!r}"
    reader = csv.reader(read_text(path, A_TABLE, place, MOST_BYTES).splitlines(), strict=True)
    found: dict[str, Switches] = {}
    line_of: dict[str, int] = {}
    layer_of: dict[str, tuple[str, int]] = {}
    try:
        columns = _header(next(reader, []), place)
        for row in reader:
            if not row:
                continue
            line = f"{place}, line {reader.line_num}"
            host, *switches = _cells(row, columns, line)
            if host in found:
                raise InputError(
                    f"{line}, column {columns[0]}: host {host!r} is in line {line_of[host]}; expected once"
                )
            found[host], line_of[host] = tuple(switches), reader.line_num
            for column, switch in zip(columns[1:], switches, strict=True):
                first, at = layer_of.setdefault(switch, (column, reader.line_num))
                if first != column:
                    raise InputError(
                        f"{line}, column {column}: {switch!r} is in column {first} in line {at}; expected a switch of "
                        "one layer"
                    )
    except csv.Error as error:
        raise InputError(f"{place}, line {reader.line_num}: not csv ({error}); expected {A_TABLE}") from None
    if not found:
        raise InputError(f"{place}: a header but no rows; expected at least one host")
    if twice := next((host for host in found if host in layer_of), None):
        column, line_num = layer_of[twice]
        raise InputError(
            f"{place}, line {line_of[twice]}, column {columns[0]}: {twice!r} is a switch of column {column} in line "
            f"{line_num}; expected another name"
        )
    return columns[1:], found


def _header(cells: Sequence[str], place: str) -> list[str]:
    columns = [cell.strip() for cell in cells]
    if not 2 <= len(columns) <= MOST_LAYERS + 1:
        raise InputError(f"{place}, line 1: {len(columns)} columns; expected a host and 1 to {MOST_LAYERS} switches")
    for number, column in enumerate(columns, start=1):
        if not column or len(column) > LONGEST or not column.isprintable() or columns.index(column) != number - 1:
            raise InputError(
                f"{place}, line 1, column {number}: {column[:LONGEST]!r}, expected a name that is there once"
            )
    return columns


def _cells(row: Sequence[str], columns: Sequence[str], line: str) -> Iterator[str]:
    if len(row) != len(columns):
        raise InputError(f"{line}: {len(row)} values; expected {len(columns)}, one a column")
    for cell, column in zip(row, columns, strict=True):
        name = cell.strip()
        if not 1 <= len(name) <= LONGEST or not name.isprintable() or "/" in name:
            expected = f"a name of 1 to {LONGEST} characters, without /"
            raise InputError(f"{line}, column {column}: {name[:LONGEST]!r}, expected {expected}")
        yield name
