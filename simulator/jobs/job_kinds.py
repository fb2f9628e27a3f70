"""Kinds of jobs: what a table of interference tells apart, as rows of the slowdowns that a record holds.

Most tables know models only: a kind is a model then. Others (GPUs, batch, sub-batch: `tells_apart`) have a kind for
every row and column that differs. A job's kind changes with its sub-batch alone. Its GPUs and batch are those that the
workload asks, also of an elastic job; its sub-batch is the largest of batch, batch / 2, ..., 1 not above the present
one, as far as STEPS goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from ..base.errors import InputError
from ..record.sharing_fields import SHARED_MODELS, STEPS
from .workload import Workload

SUB_BATCH = "sub_batch"
MOST_LOADS = 4096  # the table is asked for the square of them


class Load(NamedTuple):
    """What a job puts on a GPU, as far as a table may tell it apart; 0: the table does not ask."""

    model: str
    gpus: int = 0
    batch: int = 0  # samples a GPU and iteration
    sub_batch: int = 0  # samples in one pass


class Slowdowns(Protocol):
    """The source of xi, like `sharing.interference.Interference`.

    Optional are `tells_apart`, the fields of `Load` that its table asks for beside the model, and `load_matrix`, which
    takes loads as `matrix` takes models.
    """

    def matrix(self, models: Sequence[str]) -> np.ndarray:
        """(n, n): how many times longer an iteration of models[i] takes beside models[j], >= 1."""


def write_kinds(s: np.void, workload: Workload, models: Sequence[str], slowdowns: Slowdowns) -> None:
    """Write the slowdowns, and each job's, into a record with models; InputError: too many kinds, an unknown model."""
    n = len(workload)
    columns = frozenset(getattr(slowdowns, "tells_apart", ()))
    s["kinds_by_pass"] = SUB_BATCH in columns
    if not columns:
        matrix = slowdowns.matrix(models)
        kind_model, kind = np.arange(len(models)), s["model"][:n, None]
    else:
        loads, load_of = _loads(s, workload, columns)
        if len(loads) > MOST_LOADS:  # before a square of them is made
            raise InputError(
                f"workload {workload.name!r} has {len(loads)} different jobs by model, {', '.join(sorted(columns))}, "
                f"which the interference tells apart; expected at most {MOST_LOADS}"
            )
        whole = slowdowns.load_matrix(loads)  # type: ignore[attr-defined]
        number = {model: i for i, model in enumerate(models)}
        of_model = np.array([number[load.model] for load in loads])
        first, kind_of_load = _merged(whole, of_model)
        matrix, kind_model, kind = whole[np.ix_(first, first)], of_model[first], kind_of_load[load_of]
    count = len(matrix)
    if count > SHARED_MODELS:
        raise InputError(
            f"workload {workload.name!r} has {count} kinds of jobs that the interference tells apart by model, "
            f"{', '.join(sorted(columns))}; a simulator holds at most {SHARED_MODELS}: leave a column out, or numbers "
            "that are close"
        )
    s["n_kinds"], s["kind_model"][:count], s["kind"][:n] = count, kind_model, kind
    s["xi"][:count, :count] = matrix


def first_kinds(s: np.void, n: int) -> np.ndarray:
    """int64 (n,): the kind of every job in passes of its whole batch."""
    return s["kind"][:n, 0].astype(np.int64)


def _loads(s: np.void, workload: Workload, columns: frozenset[str]) -> tuple[list[Load], np.ndarray]:
    """Different loads of all jobs, and the place of each job's among them, by how often its batch is halved."""
    n = len(workload)
    steps = STEPS if SUB_BATCH in columns else 1
    batch = s["own_batch"][:n]
    place: dict[Load, int] = {}
    found = np.empty((n, steps), np.int64)
    for job, model in enumerate(workload.model.tolist()):
        gpus = int(workload.gpus[job]) if "gpus" in columns else 0
        own = int(batch[job]) if "batch" in columns else 0
        for halvings in range(steps):
            sub_batch = max(1, int(batch[job]) >> halvings) if SUB_BATCH in columns else 0
            load = Load(model, gpus, own, sub_batch)
            found[job, halvings] = place.setdefault(load, len(place))
    return list(place), found


def _merged(whole: np.ndarray, of_model: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Merge loads of one model with equal slowdowns: (a load of every kind, by first load; the kind of every load)."""
    both = np.column_stack([of_model, whole, whole.T])
    _, first, kind = np.unique(both, axis=0, return_index=True, return_inverse=True)
    order = first.argsort()
    return first[order], order.argsort()[kind.reshape(-1)]
