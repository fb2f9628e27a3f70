"""What TimeShift-v0 remembers of a run, as one record: the stage of an instant, its offers, and where jobs meet."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np

from ...policies.cassini.compatibility import BUCKETS
from ...simulator.contention.circle import MOST_ITERATIONS
from ...simulator.record.contention_fields import MOST_PHASES
from ...simulator.record.field_axes import CALL, GPU, JOB, LINK, Axis, Field
from ...simulator.record.solver_records import SolverFields
from .columns import CANDIDATES

PLACING, PLACED, SHIFTING, THROUGH = range(4)  # stages of an instant
OF_AN_OFFER = 2  # decisions about a job: it stops, and starts elsewhere


@cache
def fields_for(plans: int) -> SolverFields:
    """Its fields where so many placements are offered at most."""
    return SolverFields(partial(_fields, plans), _used)


def _used(extent: Any) -> dict[str, int]:
    return {JOB: extent.jobs, GPU: extent.gpus, LINK: extent.links}


def _fields(plans: int, capacity: Any) -> list[Field]:
    most = max(1, min(capacity.jobs, capacity.gpus * capacity.berths))
    placed, links = Axis(JOB, most), Axis(LINK, max(1, capacity.links))
    decided, gpus = plans * OF_AN_OFFER * most, Axis(GPU, plans * capacity.gpus * capacity.berths)
    return (
        _stage() + _offers(plans, decided, gpus.length, placed) + place_fields(links, placed) + _meetings(placed, links)
    )


def _stage() -> list[Field]:
    return [
        ("looked", "i8"),  # number of the instant that was looked at last; -1 = none
        ("is_new_run", "i8"),  # no instant of this run was looked at
        ("stage", "i8"),  # PLACING, PLACED (decisions were carried out), SHIFTING or THROUGH
        ("has_acted", "i8"),  # at this instant
        ("taken", "i8"),  # the candidate that was carried out last
        ("left_to_python", "i8"),  # the first of its decisions that the simulator checks; -1 = none
        ("has_moved", "i8"),  # jobs have other GPUs than `job` and `phases` know
        ("has_left", "i8"),  # the decisions at the end of the instant are made
        ("turned", "i8"),  # number of shifts chosen
        ("padding", "f8"),  # most by which a period may exceed an iteration, a fraction
    ]


def _offers(plans: int, decisions: int, gpus: int, placed: Axis) -> list[Field]:
    return [
        ("n_offers", "i8"),
        ("offer_features", "f4", (plans, len(CANDIDATES))),
        ("offer_first", "i8", (plans + 1,)),  # the first decision of each
        ("decision_kind", "i4", (decisions,)),  # codes.START and so on
        ("decision_job", "i4", (decisions,)),
        ("decision_sub_batch", "i4", (decisions,)),  # of these three -1: the simulator's own choice
        ("decision_batch", "i4", (decisions,)),
        ("decision_tier", "i4", (decisions,)),
        ("decision_until_s", "f8", (decisions,)),  # of a hold; inf: until GPUs are freed
        ("decision_first", "i4", (decisions + 1,)),  # its first GPU
        ("decision_gpu", "i4", (gpus,)),
        ("expert_offer", "i8"),  # the candidate with the placements of the policy that is played; 0: it has none
        ("is_expert_only", "i8"),  # it is a candidate only on its account
        ("n_seconds", "i8"),  # shifts that this policy decides on at this instant: of whom, and by how much
        ("second_job", "i8", (placed,)),
        ("second_s", "f8", (placed,)),  # -1 = it runs free
        ("n_turning", "i8"),  # jobs whose shift is still to be chosen
        ("turning", "i8", (placed,)),  # ascending
    ]


def place_fields(links: Axis | int, *jobs: Axis | int) -> list[Field]:
    """Phases and links of each job alone on its GPUs; see `Phases`."""
    phases = (*jobs, MOST_PHASES)
    return [
        *[(name, "f8", jobs) for name in ("iteration_s", "up_s", "bytes", "peak")],
        ("n_phases", "i8", jobs),
        *[(name, "f8", phases) for name in ("start_s", "duration_s", "rate")],
        ("n_links", "i8", jobs),
        ("flows", "f8", (*jobs, links)),  # of each link
    ]


def _meetings(placed: Axis, links: Axis) -> list[Field]:
    """Where the jobs meet that run as they are placed now; while offers are looked at, as they would be placed."""
    return [
        ("capacity", "f8", (links,)),  # bytes per second
        ("n_placed", "i8"),
        ("n_used", "i8"),  # their GPUs
        ("job", "i8", (placed,)),  # ascending
        ("n_shared", "i8"),  # links that several jobs use
        ("shared_links", "i8", (placed,)),  # of each job
        ("n_components", "i8"),  # jobs that are joined by such links; in the order of their first jobs
        ("component", "i8", (placed,)),  # of each job; -1 = it meets no other
        ("iterations", "i8", (placed,)),  # once around the unified circle of its component
        ("perimeter_s", "f8", (placed,)),  # of that circle
        ("n_vertices", "i8"),  # links that the same jobs share are one vertex: the most loaded of them
        ("vertex_link", "i8", (links,)),
        ("vertex_load", "f8", (links,)),  # largest rates of all flows, as a fraction of the capacity
        ("vertex_excess", "f8", (links,), CALL),
        ("vertex_good", "f8", (links,), CALL),
        ("n_known", "i8"),  # components when the last instant ended,
        ("known", "i8", (placed, 2)),  # by their signature
        ("signature", "i8", (placed, 2)),  # of each component
        ("turned_by", "i8", (placed,), CALL),  # angles by which each job is turned
        ("demand", "f8", (placed, BUCKETS * MOST_ITERATIONS), CALL),  # bytes per second of a flow at each angle
        ("total", "f8", (BUCKETS * MOST_ITERATIONS,), CALL),
        ("excess", "f8", (BUCKETS,), CALL),
        ("gathered", "f8", (links,), CALL),
        ("worst", "f8", (placed,), CALL),
    ]


@cache
def place_dtype(links: int) -> np.dtype:
    """A place of a job by itself, on a network of so many links."""
    return np.dtype(place_fields(max(1, links)), align=True)
