"""A week of paper mast's slow path on generated data: a version of Tetris runs daily, within a quota of bytes.

Nothing of the paper's own data is published. The data is `mast-like`, fitted to V0's figures among others, with as many
bytes a day across regions as `QUOTA_SHARE` says. How many tables a family reads is fitted to two figures of V1
(`mast_families.fit`); other generated data has the generators' own default.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from ....policies.tetris import VERSIONS, Tetris
from ....simulator.table_placement.placement_metrics import Standing, standing_of
from ....simulator.warehouse.mast_data import mast_like
from ...settings.evaluation_setting import Setting
from ..case import Case

REGIONS = 20
WHOLE, QUICK = (4000, 7), (4000, 2)  # tables and days; a week takes up to half a CPU second
QUOTA_SHARE = 0.1  # of all tables' bytes in a day: "hundreds of petabytes" of a warehouse of exabytes
V0, V1, V2 = "static", "tetris-v1", "tetris-v2"
FREE = "V1 without Expression 6"  # not of the paper: what the constraint costs
PLAYED = {**VERSIONS, FREE: replace(VERSIONS[V1], name=FREE, objective=replace(VERSIONS[V1].objective, home_share=0.0))}
READS, SIZE_READS = 1.22, 0.0  # what `mast-families-fit` comes to
REMOTE = 1.0  # w_1, what tables that are read across regions cost; its values are not published


def size_of(quick: bool) -> tuple[int, int]:
    """Tables and days of a week."""
    return QUICK if quick else WHOLE


def week_case(
    version: str,
    seed: int,
    tables: int,
    days: int,
    reads: float = READS,
    size_reads: float = SIZE_READS,
    remote: float = REMOTE,
) -> Case:
    """One week of `week`, as a run of a sweep; no simulator takes part, so the setting says nothing of it."""
    given = {"tables": tables, "days": days, "reads": reads, "size_reads": size_reads, "remote": remote}
    setting = Setting.of("clustergym/DataPlacement-v0")
    return Case(version, setting, seed, "mast.mast_week:week", tuple(given.items()))


def week(case: Case, **given: Any) -> Mapping[str, Any]:
    """Play it: the fields of `Standing` at its end, as metrics."""
    return {"metrics": asdict(play_week(case.policy, case.seed, **given))}


def play_week(
    version: str, seed: int, tables: int, days: int, reads: float, size_reads: float, remote: float = REMOTE
) -> Standing:
    """So many days of a version on the data of a seed. V0's data has its copies for disasters and stranded jobs.

    Args:
        version: a key of `PLAYED`; V0 changes nothing.
        seed, tables, reads, size_reads: of the data, see `mast_like`.
        days: of Tetris. remote: its w_1, what tables that are read across regions cost.
    """
    start = mast_like(tables, REGIONS, reads, size_reads, seed)
    start = Tetris(VERSIONS[V0], math.inf).plan(start).applied(start)
    quota = QUOTA_SHARE * float(start.tables.size_bytes.sum())
    played = PLAYED[version]
    planned = Tetris(replace(played, objective=replace(played.objective, remote=remote)), quota)
    for _ in range(days if version != V0 else 0):
        start = planned.plan(start).applied(start)
    return standing_of(start)
