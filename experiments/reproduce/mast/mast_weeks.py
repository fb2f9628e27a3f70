"""Paper mast, Sec. 5.6 and 3.5: what V1 and V2 of Tetris change in where data and demand lie.

Every number is a mean over generated weeks (mast_week.py).
"""

from __future__ import annotations

from dataclasses import replace

from ....policies.tetris import VERSIONS
from ....simulator.base.codes import HIGH_LEVELS
from ....simulator.warehouse import mast_statistics
from ...comparing.intervals import Estimate, estimate, paired_difference
from ..case import Case
from ..findings import Findings, Options
from ..rows import Row, bounded, order, printed, ratio
from ..sweep import sweep_by
from .mast_week import FREE, QUOTA_SHARE, READS, REGIONS, V0, V1, V2, size_of, week_case

WEEKS = 10
CANDIDATES: dict[int, float | tuple[float, float]] = {2: (50.0, 100.0), 4: 40.0}  # Figure 7: %, of so many or more
MOST_WAITING = 0.1  # %, Figure 6
SINGLE = "V1, jobs that train on one table each"  # what the data that is assumed costs
NAMES = {V0: "V0", V1: "V1", V2: "V2"}
WHY = (
    "how far V1 comes depends on how many tables a family of jobs reads, which is not published: moving one table "
    "leaves the jobs that also read others without a home, and the start's rate of training at home may not fall "
    f"(Expression 6), so few tables can move alone. Here it is {READS:g}, fitted to V1's worst region and deviation "
    "on other weeks (mast-families-fit); mast-families has other numbers. Single weeks differ much, as a few large "
    "jobs decide the worst region. No placement can have a worst region below all regions together"
)


class _Weeks:
    """The weeks of all versions."""

    def __init__(self, name: str, options: Options, versions: tuple[str, ...] = tuple(NAMES)) -> None:
        self.seeds = options.seeds(WEEKS)
        self._size = size_of(options.quick)
        self._of = sweep_by(
            name, {version: [self._case(version, seed) for seed in self.seeds] for version in versions}, options
        )

    def _case(self, version: str, seed: int) -> Case:
        if version == SINGLE:
            return week_case(V1, seed, *self._size, reads=1.0)
        return week_case(version, seed, *self._size)

    def mean(self, field: str, version: str) -> Estimate:
        """A field of `Standing` under a version."""
        return estimate(self._each(field, version))

    def change(self, field: str, version: str, base: str) -> Estimate:
        """A field under a version over that under another, week by week."""
        pairs = zip(self._each(field, version), self._each(field, base), strict=True)
        return estimate([ours / theirs for ours, theirs in pairs])

    def points(self, field: str, version: str, base: str) -> Estimate:
        """By how much a field is higher under a version than under another."""
        return paired_difference(self._each(field, version), self._each(field, base))

    def _each(self, field: str, version: str) -> list[float]:
        return [week.metrics[field] for week in self._of[version]]

    def said(self) -> str:
        """What was played, for a note."""
        tables, days = self._size
        return (
            f"means and 95 % intervals over {len(self.seeds)} generated weeks of {days} days: {tables} tables in "
            f"{REGIONS} regions, {100 * QUOTA_SHARE:g} % of all bytes a day across regions; V0's figures are what the "
            "data was fitted to, not a result"
        )


def overload(options: Options) -> Findings:
    """Demand over supply of high-priority jobs by region: the worst, and the standard deviation."""
    weeks = _Weeks("mast-overload", options, (*NAMES, FREE, SINGLE))
    rows: list[Row] = []
    for field, what, paper in (
        ("worst", "worst region", mast_statistics.OVERLOAD),
        ("deviation", "standard deviation", mast_statistics.OVERLOAD_DEVIATION),
    ):
        rows += [
            printed(f"{what}, V0 (fitted)", weeks.mean(field, V0), "", f"{paper['V0']:g}"),
            ratio(f"{what}, V1", paper["V1"], weeks.mean(field, V1), ""),
            printed(f"{what}, V2", weeks.mean(field, V2)),
            printed(f"{what}, {FREE}", weeks.mean(field, FREE)),
            printed(f"{what}, {SINGLE}", weeks.mean(field, SINGLE)),
            ratio(f"{what}, V1 / V0", paper["V1"] / paper["V0"], weeks.change(field, V1, V0), "x"),
            order(f"{what}, V2 / V1", "below 1: overload costs more", weeks.change(field, V2, V1)),
        ]
    rows.append(printed("all regions together", weeks.mean("least", V0)))
    levels = f"high priority: levels 0 to {HIGH_LEVELS - 1}; GPU-hours of a day, jobs that recur"
    return Findings(rows, [weeks.said(), levels, WHY])


def home(options: Options) -> Findings:
    """Training jobs whose tables have one home, with their GPUs."""
    weeks = _Weeks("mast-home", options, (*NAMES, FREE))
    gain = mast_statistics.HOME_RATE["V1"] - mast_statistics.HOME_RATE["V0"]
    rows = [
        printed("training at home, V0 (fitted)", weeks.mean("home", V0), "%", f"{mast_statistics.HOME_RATE['V0']:g} %"),
        ratio("training at home, V1", mast_statistics.HOME_RATE["V1"], weeks.mean("home", V1)),
        ratio("training at home, V1 - V0, points", gain, weeks.points("home", V1, V0), ""),
        order("training at home, V1 / V0", "above 1", weeks.change("home", V1, V0), below=False),
        printed("training at home, V2", weeks.mean("home", V2), "%"),
        printed(f"training at home, {FREE}", weeks.mean("home", FREE), "%"),
    ]
    return Findings(rows, [weeks.said(), "of all training jobs that recur, each counted once"])


def colocation(options: Options) -> Findings:
    """GPU-hours of high-priority jobs that find their tables and GPUs in one region."""
    weeks = _Weeks("mast-colocation", options, (*NAMES, FREE))
    gain = mast_statistics.COLLOCATED["V2"] - mast_statistics.COLLOCATED["V1"]
    judged: list[Row] = []
    for field, what in (("collocated", "with replicas"), ("collocated_at_home", "by homes alone")):
        judged += [
            ratio(f"high-priority GPU-hours collocated {what}, {NAMES[version]}", paper, weeks.mean(field, version))
            for version, paper in ((V1, mast_statistics.COLLOCATED["V1"]), (V2, mast_statistics.COLLOCATED["V2"]))
        ]
        change = weeks.points(field, V2, V1)
        judged.append(ratio(f"high-priority GPU-hours collocated {what}, V2 - V1, points", gain, change, ""))
    rows = [one if "with replicas" in one.quantity else replace(one, within=None) for one in judged]
    words = f"high-priority GPU-hours collocated by homes alone, {FREE}"
    rows.append(printed(words, weeks.mean("collocated_at_home", FREE), "%"))
    words = "training jobs that wait for data, first-time ones too"
    rows += [printed(f"{words}, {NAMES[version]}", weeks.mean("waiting", version), "%") for version in (V0, V1)]
    rows.append(bounded(f"{words}, V2", "below 0.1", weeks.mean("waiting", V2), (0.0, MOST_WAITING), "%"))
    for field, (least, paper) in zip(("two", "four"), CANDIDATES.items(), strict=True):
        rows.append(ratio(f"training jobs with {least} candidate regions or more, V2", paper, weeks.mean(field, V2)))
    measure = (
        "judged with replicas, as Sec. 3.1 has it: a table may be replicated to other regions, and one of its regions "
        "has to have the GPUs; by homes alone is another quantity. With replicas ours is 100 %: nothing but the quota "
        "and storage limits the replicas of stranded jobs, and neither binds here. By homes V1 loses to V2 only what "
        "Expression 6 lets it: that holds the start's rate by number of jobs. Here a job's size has nothing to do with "
        "how many tables it reads, as the fit has it; where who asks more GPU-hours reads more tables, V2 is ahead "
        "(mast-families)"
    )
    return Findings(rows, [weeks.said(), measure])


def storage(options: Options) -> Findings:
    """Bytes of replicas over those of the tables themselves."""
    weeks = _Weeks("mast-storage", options)
    rows = [
        ratio("extra storage for replicas, V2", mast_statistics.EXTRA_STORAGE, weeks.mean("extra", V2)),
        ratio("extra storage for replicas, V1", mast_statistics.EXTRA_STORAGE, weeks.mean("extra", V1)),
    ]
    note = (
        "one copy for disasters of every table is 100 % by itself; the paper's lower end is below that, so some of its "
        f"tables have none or only some partitions; hot tables get {100 * VERSIONS[V2].hot_share:g} % of a region"
    )
    return Findings(rows, [weeks.said(), note])
