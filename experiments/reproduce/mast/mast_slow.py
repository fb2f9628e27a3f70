"""Paper mast's slow path: weeks of Tetris, copies of tables that take hours, and what there is to win by data.

A week: a version of Tetris runs daily on `mast-like` data, within QUOTA_SHARE of all bytes a day across regions. How
many tables a family reads is fitted to two figures of V1 (`mast-families-fit`); other generated data has the
generators' own default. Jobs that read several tables lose their home as one of them moves, so `reads`, tables of a
family of jobs, and `size_reads`, how GPU-hours go with the number of tables, decide what one table at a time can do.

Copies: they take drawn times (`copy_time=published`), those on demand and for high priority go first
(`copy_order=urgent`), and a region sends and receives no more than its caps allow. `mast` schedules; V0, V1 and V2
place tables, twice a day, beginning with the homes that users chose.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from ....policies.tetris import VERSIONS, Tetris
from ....simulator.regions.copy_times import BULK, HIGH, HOURS, KINDS, ON_DEMAND, SHARES
from ....simulator.regions.region_metrics import seconds_within
from ....simulator.table_placement.placement_metrics import PlacementState, placement_state_of
from ....simulator.warehouse import mast_statistics
from ....simulator.warehouse.mast_data import mast_like
from ..case import Case
from ..engine import Play, RowContext
from ..rows import Row, bounded, order, printed, ratio
from ..schema import Line

REGIONS = 20
QUOTA_SHARE = 0.1  # of all tables' bytes in a day
FREE = "V1 without Expression 6"  # not of the paper: what the constraint costs
V1 = VERSIONS["tetris-v1"]
PLAYED = {**VERSIONS, FREE: replace(V1, name=FREE, objective=replace(V1.objective, home_share=0.0))}
HOUR_S = 3600.0
PUBLISHED = [(f"P{round(100 * share)}", share, hours) for share, hours in zip(SHARES, HOURS, strict=True)][1:-1]
MOST = 0.7  # of the best baseline, that the bound is to be in the default settings


def week(case: Case, **given: Any) -> Mapping[str, Any]:
    """Play it: the fields of `PlacementState` at its end, as metrics."""
    return {"metrics": asdict(play_week(case.policy, case.seed, **given))}


def play_week(
    version: str, seed: int, tables: int, days: int, reads: float, size_reads: float, remote: float = 1.0
) -> PlacementState:
    """So many days of a version on the data of a seed. V0's data has its copies for disasters and stranded jobs.

    Args:
        version: a key of `PLAYED`; V0 changes nothing.
        seed, tables, reads, size_reads: of the data, see `mast_like`.
        days: of Tetris. remote: its w_1, what tables that are read across regions cost.
    """
    start = mast_like(tables, REGIONS, reads, size_reads, seed)
    start = Tetris(VERSIONS["static"], math.inf).plan(start).applied(start)
    quota = QUOTA_SHARE * float(start.tables.size_bytes.sum())
    played = PLAYED[version]
    planned = Tetris(replace(played, objective=replace(played.objective, remote=remote)), quota)
    for _ in range(days if version != "static" else 0):
        start = planned.plan(start).applied(start)
    return placement_state_of(start)


def transfer(case: Case) -> Mapping[str, Any]:
    """Play a case: its metrics; `fullest`, of what regions might have sent by their caps the most that one did.

    And `copies_0` to `copies_2`, how many complete copies of a kind (regions/copy_times.py) took how long, by bin.
    """
    simulator, policy = case.begun()
    metrics = simulator.run(policy)
    s, n = simulator.state, simulator.topology.num_regions
    sent = s.wan_bytes[:n, :n].sum(axis=1) / (float(s.now_s - s.start_s) * s.egress_rate[:n])
    times = {f"copies_{kind}": s.copy_times[kind].astype(np.float64) for kind in range(len(KINDS))}
    return {"metrics": {**metrics, "fullest": float(sent.max())}, **times}


def miss(play: Play, line: Line, here: RowContext) -> Iterator[Row]:
    """How far a point is from V1's published worst region and deviation."""
    published = {"worst": mast_statistics.OVERLOAD["V1"], "deviation": mast_statistics.OVERLOAD_DEVIATION["V1"]}
    means = {name: play.runs.mean(play.number(name), "V1", here.at).mean for name in published}
    logs = np.log(np.array([means[name] / paper for name, paper in published.items()]))
    yield printed(f"{play.label(here.at)}: miss", float(np.sqrt((logs**2).sum())))


def fitted(play: Play, line: Line, here: RowContext) -> Iterator[Row]:
    """The point with the least miss among those inside both ranges, if there are any."""
    points = [play.made[i : i + 3] for i in range(0, len(play.made) - 2, 3)]
    best = min(points, key=lambda rows: (not all(row.ok for row in rows[:2]), rows[2].ours))
    name = best[2].quantity.partition(":")[0]
    for key, value in (one.split("=") for one in name.split(", ")):
        yield printed(f"fitted {key}", float(value))


def with_all(play: Play, line: Line, here: RowContext) -> Iterator[Row]:
    """How many points have all figures."""
    points: dict[str, list[Row]] = {}
    for row in play.made:
        points.setdefault(row.quantity.partition(": ")[0], []).append(row)
    whole = [name for name, rows in points.items() if all(row.ok for row in rows if row.ok is not None)]
    most = [name for name, rows in points.items() if rows[0].ok and rows[1].ok and (rows[2].ok or rows[3].ok)]
    yield printed("points of the sweep that have all figures", float(len(whole)), "", "1")
    play.notes.append(
        f"points with worst region and deviation, and training at home or what V2 collocates more: "
        f"{'; '.join(most) or 'none'}; points that have all figures: {'; '.join(whole) or 'none'}"
    )


def room(play: Play, line: Line, here: RowContext) -> Iterator[Row]:
    """The mean JCT of the bound over that of the best baseline; the default's is held to `MOST`."""
    *players, bound = line.policies
    take = play.number("jct_mean")
    for at in play.group(line.at):
        best = min(players, key=lambda policy: play.runs.mean(take, policy, at).mean)
        over, what = play.runs.ratio(take, bound, best, at), f"{at}: everywhere / {best}"
        usual = play.label(at) == "by default"
        yield bounded(what, "at most 0.7", over, (0.0, MOST)) if usual else printed(what, over, "x")


def copies(play: Play, line: Line, here: RowContext) -> Iterator[Row]:
    """Times of copies by kind beside the published ones, and how full the caps of regions are."""
    (at,), v2 = play.group(line.at), line.policies[-1]
    runs = play.runs.of(v2, at)

    def hours(kinds: Sequence[int], share: float) -> float:
        counts = sum(run[f"copies_{kind}"] for kind in kinds for run in runs)
        return seconds_within(np.asarray(counts), [share])[0] / HOUR_S

    for what, kinds in (("all copies", (ON_DEMAND, HIGH, BULK)), ("high priority", (HIGH,)), ("bulk", (BULK,))):
        for name, share, paper in PUBLISHED:
            yield replace(ratio(f"{what}, {name}", paper, hours(kinds, share), "h"), cell=("copies", what, name))
    for name, share, _ in PUBLISHED:
        yield printed(f"on demand, {name}", hours((ON_DEMAND,), share), "h")
    first = hours((ON_DEMAND,), 0.9) / hours((BULK,), 0.5)
    yield order("on demand, P90 / bulk, P50", "below 1: those on demand go first", first)
    fullest = max(run.metrics["fullest"] for policy in line.policies for run in play.runs.of(policy, at))
    yield bounded("most that a region sent / its cap", "at most 1", fullest, (0.0, 1.0))
    counts = ", ".join(
        f"{int(sum(run[f'copies_{kind}'].sum() for run in runs))} {name}" for kind, name in enumerate(KINDS)
    )
    play.notes.append(f"percentiles are of all copies under V2 that are complete ({counts}), from the decision on")
