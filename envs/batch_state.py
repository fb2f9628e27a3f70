"""The state of a batch as arrays and JSON data, to go on bit for bit in another process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple
from typing import Any

import numpy as np

from ..simulator.errors import InputError
from .batch import Batch

STRUCTURED = ("records", "windows")
PLAIN = ("outcomes", "features", "masks", "references")


def state_of(batch: Batch) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays by name (the structured ones as bytes, uint8 (n, size)), and the rest as what JSON can hold."""
    rows, capacity = batch.rows, batch.rows.capacity
    if rows.records is None or capacity is None:
        raise InputError("state: the environments have no state yet; reset them first")
    arrays = {name: np.asarray(getattr(rows, name)).view(np.uint8).reshape(batch.num_envs, -1) for name in STRUCTURED}
    arrays |= {name: getattr(rows, name) for name in PLAIN}
    data = {
        "capacity": list(astuple(capacity)),
        "rows": [env.played() for env in batch.envs],
    }
    return {name: array.copy() for name, array in arrays.items()}, data


def restore(batch: Batch, arrays: Mapping[str, np.ndarray], data: Mapping[str, Any]) -> None:
    """Modify the rows of `batch`: go on where `state_of` of a batch that was made alike stood."""
    rows = batch.rows
    if len(data["rows"]) != batch.num_envs:
        raise InputError(f"state: it has {len(data['rows'])} environments; expected {batch.num_envs}")
    batch.stepper.make_room(type(batch.envs[0].simulator.capacity)(*data["capacity"]))
    rows.references = np.zeros(arrays["references"].shape)
    for name in STRUCTURED + PLAIN:
        own = np.asarray(getattr(rows, name))
        flat = own.view(np.uint8).reshape(batch.num_envs, -1) if name in STRUCTURED else own
        if arrays[name].shape != flat.shape or arrays[name].dtype != flat.dtype:
            raise InputError(
                f"state: {name} of shape {arrays[name].shape}, {arrays[name].dtype}; expected {flat.shape}, "
                f"{flat.dtype}: it is that of other environments or of another version"
            )
        flat[:] = arrays[name]
    for env, played in zip(batch.envs, data["rows"], strict=True):
        env.resume(played)
