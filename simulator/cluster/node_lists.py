"""A topology from a list of machines and their GPUs, as operators publish it: Alibaba's openb and spot lists are two.

A csv with a row a machine. Columns are known by the names below, others are not read. Such a list names no switches:
the machines with one type of GPU are a cluster of one rack, in the order of the file.
"""

from __future__ import annotations

import csv
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import numpy as np

from ..base.errors import InputError
from ..files.file_marks import A_FILE
from ..files.regular_files import read_text
from .topology import NATURAL, Topology, preset

MOST_BYTES = 64 * 2**20
MOST_GPUS = 1024  # of a machine
A_LIST = "a csv list of machines with their GPUs and type: sn,gpu,model"
NAMES = {  # of a column: what lists call it
    "machine": ("sn", "node_name", "machine", "host"),
    "gpus": ("gpu", "gpu_capacity_num", "cap_gpu", "gpus"),
    "gpu_type": ("model", "gpu_model", "gpu_type"),
}


@preset("nodes")
def nodes(machine_order: str = NATURAL, file: Annotated[str, A_FILE] = "") -> Topology:
    """Machines of several sizes and types of GPU from a list, one rack for each type; `file=PATH` comes last.

    `machine_order`: as of `flat`. `Topology.about` counts what was read. InputError: a list that cannot be used: line,
    column, value and what was expected.
    """
    if not file:
        raise InputError("topology nodes: file is missing; write it last, as in nodes:file=PATH")
    sizes: defaultdict[str, list[int]] = defaultdict(list)
    without = 0
    for gpus, kind in read_nodes(file):
        if gpus:
            sizes[kind].append(gpus)
        without += not gpus
    if not sizes:
        raise InputError(f"topology nodes: {file}: none of {without:,} machines has a GPU")
    machines = np.concatenate([np.array(own, np.int64) for own in sizes.values()])
    topology = Topology.from_counts(
        "nodes",
        slot_gpus=machines,
        machine_slots=np.ones_like(machines),
        rack_machines=[len(own) for own in sizes.values()],
        cluster_racks=[1] * len(sizes),
        cluster_gpu_type=list(sizes),
        cluster_names=[kind or "unknown" for kind in sizes],
        machine_order=machine_order,
    )
    listed = ", ".join(f"{sum(own):,} {kind or 'of unknown type'} in {len(own):,}" for kind, own in sizes.items())
    left = f"; machines without GPUs, left out: {without:,}" if without else ""
    return replace(topology, about=f"{listed}{left}; racks are not listed: one for each type")


def read_nodes(path: str | os.PathLike[str]) -> list[tuple[int, str]]:
    """GPUs and their type of each machine of a list, in order; InputError names place and value."""
    place = f"list of machines {os.fspath(path)!r}"
    reader = csv.reader(read_text(path, A_LIST, place, MOST_BYTES).splitlines(), strict=True)
    line_of: dict[str, int] = {}
    found = []
    try:
        header = [cell.strip() for cell in next(reader, [])]
        machine, gpus, kind = (_column(header, what, place) for what in NAMES)
        for row in filter(None, reader):
            line = f"{place}, line {reader.line_num}"
            if len(row) != len(header):
                raise InputError(f"{line}: {len(row)} values; expected {len(header)}, one a column")
            if (first := line_of.setdefault(row[machine], reader.line_num)) != reader.line_num:
                raise InputError(f"{line}, column {header[machine]}: {row[machine][:60]!r} is in line {first} too")
            if not (row[gpus].isascii() and row[gpus].isdigit() and int(row[gpus][:9]) <= MOST_GPUS):
                said = f"{row[gpus][:60]!r}, expected a whole number of GPUs up to {MOST_GPUS}"
                raise InputError(f"{line}, column {header[gpus]}: {said}")
            found.append((int(row[gpus]), row[kind].strip()))
    except csv.Error as error:
        raise InputError(f"{place}, line {reader.line_num}: not csv ({error}); expected {A_LIST}") from None
    return found


def _column(header: Sequence[str], what: str, place: str) -> int:
    there = [header.index(name) for name in NAMES[what] if name in header]
    if len(there) != 1:
        raise InputError(f"{place}, line 1: {len(there)} columns of {what}; expected one of {', '.join(NAMES[what])}")
    return there[0]
