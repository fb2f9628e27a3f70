"""Where shifts have most to win: whole gangs whose iterations all take 0.8 s alone, and what each reading does to it.

The paper takes periods with a small common multiple for granted (Sec. 3); those of measured models have none, and then
jobs meet at every offset in turn (cassini-interleaving). Here every job has one period, a contended link carries 0.88
of its 50 Gbps, which is the "roughly 22 Gbps" for each of two jobs of Sec. 2.2, gangs are whole, and GPT2 and GPT3,
whose gradients fill whole seconds, are left out. Each other reading changes one of these alone.

Themis' candidates are looked at by CASSINI for their scores, by `least-shared` for shared links alone: what CASSINI is
ahead of it is due to phases.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ....simulator.profiles.cassini_models import cassini_models
from ..case import Case
from ..case_runs import Runs
from ..findings import Findings, Options
from ..rows import Row, clear_order, printed
from ..sweep import sweep_by
from .cassini_on_links import ON_LINKS, mean_s, p99_s, slowdown
from .cassini_traces import CASSINI, IDEAL, LEAST, POLICIES, QUICK_JOBS, RANDOM, THEMIS, conditions

SEEDS = 10
LOAD, PERIOD_S, CARRIED = 0.9, 0.8, 0.88
LEFT_OUT = ("GPT2", "GPT3")
MODELS = "/".join(name for name in cassini_models() if name not in LEFT_OUT)
WORKLOAD = f"cassini-poisson:load={LOAD:g},models={MODELS}"


@dataclass(frozen=True)
class Reading:
    """How one run is read.

    Attributes:
        name: what is other than in the first reading.
        workload, topology, network: words.
        options: of Themis, and what is built on it.
    """

    name: str
    workload: str = f"{WORKLOAD},iteration_s={PERIOD_S:g}"
    topology: str = "cassini-testbed"
    network: str = f"contention:carried={CARRIED:g}"
    options: str = "workers=fixed"

    def case(self, policy: str, seed: int, quick: bool) -> Case:
        """One run; with `quick` of few jobs."""
        word = policy if policy == RANDOM else f"{policy}:{self.options}"
        if policy == IDEAL:
            word = word.replace(",equal=locality", "")
        workload = f"{self.workload},jobs={QUICK_JOBS}" if quick else self.workload
        return ON_LINKS.on(word, seed, topology=self.topology, workload=workload, network=self.network)


FIRST = Reading(f"one period, {CARRIED:g} carried, whole gangs, 50 Gbps")
READINGS = (
    FIRST,
    replace(FIRST, name="a full link carries all", network="contention"),
    replace(FIRST, name="cables of 45 Gbps", topology="cassini-testbed:link_gbps=45"),
    replace(FIRST, name="periods spread by 20 %", workload=f"{FIRST.workload},spread=0.2"),
    replace(FIRST, name="periods of the models", workload=WORKLOAD),
    replace(FIRST, name="elastic workers", options="workers=elastic"),
    replace(FIRST, name="candidates equal in locality", options="workers=fixed,equal=locality"),
)


def equal_periods(options: Options) -> Findings:
    """Ratios and their intervals, reading by reading."""
    seeds = options.seeds(SEEDS)
    cases = {
        (policy, reading.name): [reading.case(policy, seed, options.quick) for seed in seeds]
        for reading in READINGS
        for policy in POLICIES
    }
    runs = Runs(sweep_by("cassini-equal-periods", cases, options))
    rows = [row for reading in READINGS for row in _rows(reading.name, runs)]
    notes = [
        f"cassini-poisson without {' and '.join(LEFT_OUT)}, every iteration {PERIOD_S:g} s alone, load {LOAD:g}, seeds "
        f"{seeds[0]} to {seeds[-1]}; the readings after the first change one thing each"
        + (f"; --quick: {QUICK_JOBS} jobs" if options.quick else ""),
        "ratios are of means over the same traces, in pairs; judged is the first reading alone, in which CASSINI is to "
        "be ahead of least-shared with its whole interval",
    ]
    return Findings(rows, notes)


def _rows(name: str, runs: Runs) -> list[Row]:
    rows = []
    for what, number in (
        ("mean iteration time", mean_s),
        ("P99 iteration time", p99_s),
        ("slowdown of jobs", slowdown),
    ):
        for policy in (RANDOM, LEAST, CASSINI, IDEAL):
            plain, better = (policy, THEMIS) if policy == RANDOM else (THEMIS, policy)
            over = runs.ratio(number, plain, better, name)
            rows.append(printed(f"{name}: {what}, {plain} / {better}", over, "x"))
        ahead, quantity = runs.ratio(number, CASSINI, LEAST, name), f"{name}: {what}, {CASSINI} / {LEAST}"
        judged = name == FIRST.name and number is not p99_s
        rows.append(clear_order(quantity, "clearly below 1", ahead) if judged else printed(quantity, ahead, "x"))
    rows.append(printed(f"{name}: slowdown of jobs, {THEMIS}", runs.mean(slowdown, THEMIS, name), "x"))
    return [*rows, *conditions(runs, name)]
