"""Small settings of every environment, and what tests of several of them do there."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

# As the defaults, but with less to do: what CI has the time for.
SMALL: dict[str, dict[str, Any]] = {
    "clustergym/Delay-v0": {
        "topology": "dally:racks=2,machines=2",
        "workload": "poisson:jobs=30,backlog=10",
        "slots": 8,
        "running_slots": 4,
    },
    "clustergym/Sharing-v0": {"workload": "philly-sample:jobs=20,hours=1", "slots": 8, "running_slots": 4},
    "clustergym/TimeShift-v0": {"workload": "cassini-poisson:jobs=8,load=1.5", "slots": 4, "running_slots": 6},
    "clustergym/Geo-v0": {
        "topology": "mast:regions=4,gpus=256",
        "workload": "mast-like:jobs=30,days=0.2,tables=20",
        "slots": 4,
        "running_slots": 4,
        "tables_every_s": 7200.0,
    },
    "clustergym/DataPlacement-v0": {
        "topology": "mast:regions=4,gpus=256",
        "workload": "mast-like:jobs=30,days=0.2,tables=20",
        "tables_every_s": 7200.0,
        "slots": 4,
        "running_slots": 4,
    },
    "clustergym/Grouping-v0": {
        "workload": "harmony-like:jobs=12,length_sigma=0.6,ratio_sigma=0.4,gap_min=15",
        "slots": 4,
        "running_slots": 6,
        "group_slots": 3,
    },
}


def same(a: Any, b: Any) -> bool:
    """Whether two observations or infos are equal to the last bit, types and shapes included."""
    if isinstance(a, dict):
        return isinstance(b, dict) and set(a) == set(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, np.ndarray) and a.dtype == object:
        return all((x is None and y is None) or same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, np.ndarray):
        equal = np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape and equal
    return type(a) is type(b) and (a == b or (a != a and b != b))


def random_actions(rng: np.random.Generator, masks: np.ndarray, space: gymnasium.Space[Any]) -> np.ndarray:
    """Legal actions drawn from masks (n, M), int64 (n, parts), or (n,) of a Discrete; now and then an illegal one."""
    parts = getattr(space, "nvec", [getattr(space, "n", 0)])
    ends = np.cumsum(parts)
    columns = [
        [rng.choice(np.flatnonzero(row[end - size : end])) for row in masks]
        for size, end in zip(parts, ends, strict=True)
    ]
    actions = np.array(columns, np.int64).T
    if rng.random() < 0.02:
        row = rng.integers(len(actions))
        illegal = np.flatnonzero(masks[row, : parts[0]] == 0)[-1:]
        actions[row] = [max([0, *illegal]), *([-3] * (len(parts) - 1))]
    return actions if hasattr(space, "nvec") else actions[:, 0]
