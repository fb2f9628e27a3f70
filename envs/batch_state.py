"""The state of a batch as arrays and JSON data, to continue bit for bit in another process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple
from typing import Any

import numpy as np

from ..simulator.base.errors import InputError
from ..simulator.record.packed_records import packed, unpack
from ..simulator.record.solver_records import SolverRecord
from .batch import Batch

PLAIN = ("outcomes", "features", "masks", "references")


def state_of(batch: Batch) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays by name (the structured ones as bytes, uint8 (n, size)), and the rest as JSON data."""
    rows, capacity = batch.rows, batch.rows.capacity
    if rows.records is None or capacity is None:
        raise InputError("state: the environments have no state yet; reset them first")
    raw_records = [env.simulator.raw for env in batch.envs]
    extent = _extent(raw_records)
    arrays = {name: getattr(rows, name) for name in PLAIN}
    arrays["windows"] = _bytes_of(rows.windows, batch.num_envs)
    data = {"capacity": list(astuple(capacity)), "extent": list(extent)}
    data["rows"] = [env.state_dict() for env in batch.envs]
    copies = {name: array.copy() for name, array in arrays.items()}
    copies["records"] = np.stack([packed(raw, extent) for raw in raw_records])
    solvers = _solvers_of(batch)
    if solvers:
        copies["solvers"] = np.stack([packed(solver, extent) for solver in solvers])
    return copies, data


def restore(batch: Batch, arrays: Mapping[str, np.ndarray], data: Mapping[str, Any]) -> None:
    """Modify the rows of `batch`: continue where a batch of the same making was at `state_of`."""
    rows = batch.rows
    missing = [name for name in ("capacity", "rows") if name not in data]
    wanted = (*PLAIN, "windows", "records", *(() if batch.stepper.solver is None else ("solvers",)))
    missing += [name for name in wanted if name not in arrays]
    if missing:
        raise InputError(f"state: it has no {missing[0]}; expected the arrays and data that get_state gave")
    if len(data["rows"]) != batch.num_envs:
        raise InputError(f"state: it has {len(data['rows'])} environments; expected {batch.num_envs}")
    batch.stepper.make_room(type(batch.envs[0].simulator.capacity)(*data["capacity"]))
    rows.references = np.zeros(arrays["references"].shape)
    for name in PLAIN:
        _expect_like(name, arrays[name], getattr(rows, name))
        getattr(rows, name)[:] = arrays[name]
    windows = _bytes_of(rows.windows, batch.num_envs)
    _expect_like("windows", arrays["windows"], windows)
    windows[:] = arrays["windows"]
    raw_records = [env.simulator.raw for env in batch.envs]
    extent = type(raw_records[0].extent)(*data.get("extent", ()))
    _expect_like("records", arrays["records"], np.stack([packed(raw, extent) for raw in raw_records]))
    for raw, data_of in zip(raw_records, arrays["records"], strict=True):
        unpack(raw, extent, data_of)
    solvers = _solvers_of(batch)
    if solvers:
        _expect_like("solvers", arrays["solvers"], np.stack([packed(solver, extent) for solver in solvers]))
        for solver, data_of in zip(solvers, arrays["solvers"], strict=True):
            unpack(solver, extent, data_of)
    for env, played in zip(batch.envs, data["rows"], strict=True):
        env.resume(played)


def _bytes_of(records: np.ndarray, n: int) -> np.ndarray:
    return np.asarray(records).view(np.uint8).reshape(n, -1)


def _solvers_of(batch: Batch) -> list[SolverRecord]:
    found = (batch.stepper.solver_of(row) for row in range(batch.num_envs))
    return [solver for solver in found if solver is not None]


def _expect_like(name: str, given: np.ndarray, own: np.ndarray) -> None:
    if given.shape != own.shape or given.dtype != own.dtype:
        expected = f"{own.shape}, {own.dtype}: it is that of other environments or of another version"
        raise InputError(f"state: {name} of shape {given.shape}, {given.dtype}; expected {expected}")


def _extent(raw_records: list[Any]) -> Any:
    extents = [raw.extent for raw in raw_records]
    return type(extents[0])(*map(max, *extents, extents[0]))
