"""Copies for workloads that no region can run: "MAST will start data replication" (paper mast, Sec. 4.3).

The target is our choice: of the regions that are up and could hold the workload, the one with the fewest missing bytes
that are not on the way; then with the least load of the first part's type, then the lowest number. Without room there,
the next one; if none has room, one makes it: replicas without readers there are dropped, then homes of other tables
move to where the fewest of their bytes are missing, the largest first. A workload that is bound to a region (`Binding`,
`bind=any`) gets copies, or homes, there only.

For a workload that needs fresh data homes move, to where the fewest bytes are missing and there is room, else to the
first region that can make room. A home that a waiting workload needs where it is stays, and a moving one is not moved
on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import numpy as np

from ...simulator.base.codes import DROP, MOVE, REPLICATE
from ...simulator.base.decisions import Drop, Move, Replicate
from ...simulator.engine.view import ClusterView
from ...simulator.record.field_axes import JOB, Axis
from ...simulator.record.solver_records import SolverFields
from ...simulator.record.state import Capacity
from .copies_plan import copies_fields, plan_copies

TableDecision = Replicate | Move | Drop
KINDS = {REPLICATE: Replicate, MOVE: Move, DROP: Drop}


def write_sizes(p: np.void, sizes: np.ndarray) -> None:
    """Modify `p`, fields by item: tables by their bytes, int64 (tables,)."""
    p["tables_by_size"][: len(sizes)] = np.argsort(-sizes, kind="stable")


def lacking(view: ClusterView) -> list[int]:
    """Waiting and held jobs that no region can run now, in order of arrival."""
    return [job for job in sorted([*view.queue.tolist(), *view.held.tolist()]) if not view.regions_of(job)]


def on_demand(
    view: ClusterView, jobs: Iterable[int] | None = None, bound: Mapping[int, int] | None = None
) -> list[TableDecision]:
    """Decisions about tables now, in a legal order, for `jobs`, or for all that are `lacking`.

    `bound`: the one region of jobs that are bound, whatever their data.
    """
    s = view.record
    plans = _plans(Capacity(s["status"].size, 0, regions=s["stored_bytes"].size, tables=s["table_size"].size))
    p: Any = plans[0]
    write_sizes(p, s["table_size"][: s["n_tables"]])
    p.bound_to[:] = 0
    for job, region in (bound or {}).items():
        p.bound_to[job] = 1 + region
    view.read_by(plan_copies, plans, np.array(lacking(view) if jobs is None else list(jobs), np.int64))
    return [KINDS[kind](table, region) for kind, table, region in p.table_decisions[: p.n_table_decisions].tolist()]


@cache
def _plans(capacity: Capacity) -> np.recarray:
    """An array of one plan, of which nothing outlasts a call, beside records of this capacity."""
    return PLAN.empty(capacity)


PLAN = SolverFields(
    lambda capacity: copies_fields(Axis(JOB, capacity.jobs), capacity.tables, capacity.regions), lambda extent: {}
)
