"""Paper sjf-bsbf: what Sec. VI says of SJF-BSBF in one number each, and Figure 6a.

The jobs are sampled, as the paper's own were not published: every number is a mean over sampled workloads with its
interval. bsbf_tables.py has the tables and how their workloads were found, bsbf_runs.py what the paper leaves open,
bsbf_orders.py goes through it all, bsbf_injected.py has Figure 6b.
"""

from __future__ import annotations

from ..case_runs import Runs
from ..findings import Findings, Options
from ..rows import Row, order, printed, ratio
from . import bsbf_plots
from . import bsbf_published as published
from .bsbf_runs import (
    PASSED,
    POLICIES,
    WITHOUT_POLLUX,
    Experiment,
    jct_h,
    offered,
    play,
    queue_of_model_s,
    said,
    shortest_jct_h,
)
from .bsbf_tables import BASE, HEADLINE, HEAVIEST, PROTOCOL, READING, TESTBED, gain_over

LIGHTEST = 120
LOADS = (LIGHTEST, 180, BASE, 360, HEAVIEST)


def gains(options: Options) -> Findings:
    """What the paper claims of SJF-BSBF in one number each."""
    base, heavy = Experiment(BASE), Experiment(HEAVIEST)
    runs = play("bsbf-gains", options, [base, heavy], (*POLICIES, PASSED))
    testbed = play("bsbf-gains, testbed", options, [TESTBED], ("tiresias", "sjf-bsbf"))
    rows = [
        *(_gain(runs, base, other, value) for other, value in published.JCT_240.items()),
        *(_gain(runs, heavy, other, value) for other, value in published.JCT_480.items()),
        ratio(
            f"average JCT of pollux over sjf-bsbf, {HEAVIEST} jobs",
            published.POLLUX_480,
            runs.ratio(jct_h(), "pollux", "sjf-bsbf", heavy),
            "x",
        ),
        ratio(
            f"average JCT of the shortest 40 % below pollux, {BASE} jobs",
            published.SHORTEST_40_POLLUX,
            runs.improvement(shortest_jct_h(0.4), "sjf-bsbf", "pollux", base),
        ),
        ratio(
            "queueing time of bert below tiresias, testbed",
            published.PHYSICAL_BERT_QUEUE,
            testbed.improvement(queue_of_model_s("bert"), "sjf-bsbf", "tiresias", TESTBED),
        ),
        *(gain_over(runs, other, one, f", {one.jobs} jobs") for one in (base, heavy) for other in ("sjf", PASSED)),
    ]
    return Findings(rows, [said(options), *offered(options, [base, heavy, TESTBED]), PROTOCOL, READING, HEADLINE])


def _gain(runs: Runs, experiment: Experiment, other: str, value: float) -> Row:
    found = runs.improvement(jct_h(), "sjf-bsbf", other, experiment)
    return ratio(f"average JCT below {other}, {experiment.jobs} jobs", value, found)


def load(options: Options) -> Findings:
    """Average JCT from 120 to 480 jobs within the same hours: Pollux ahead when there are few, SJF-BSBF from 240 on."""
    loads = (LIGHTEST, BASE) if options.quick else LOADS
    experiments = {jobs: Experiment(jobs) for jobs in loads}
    played = (*POLICIES, PASSED)
    runs = play("bsbf-load", options, list(experiments.values()), played)
    rows = [_behind(runs, experiments[LIGHTEST], "pollux", other) for other in WITHOUT_POLLUX]
    rows += [
        _behind(runs, experiments[jobs], "sjf-bsbf", other)
        for jobs in loads
        if jobs >= BASE
        for other in POLICIES
        if other != "sjf-bsbf"
    ]
    behind = [runs.ratio(jct_h(), "sjf-bsbf", "pollux", one).mean for one in experiments.values()]
    rows.append(_crossing(loads, behind))
    rows += [gain_over(runs, PASSED, one, f", {jobs} jobs") for jobs, one in experiments.items()]
    rows += [
        printed(f"{policy}: average JCT, {jobs} jobs", runs.mean(jct_h(), policy, one), "h")
        for jobs, one in experiments.items()
        for policy in played
    ]
    notes = [said(options), *offered(options, list(experiments.values())), PROTOCOL, READING, HEADLINE]
    return Findings(rows, notes, bsbf_plots.of_load(options, runs, experiments, played))


def _behind(runs: Runs, experiment: Experiment, policy: str, other: str) -> Row:
    found = runs.ratio(jct_h(), policy, other, experiment)
    return order(f"average JCT, {policy} / {other}, {experiment.jobs} jobs", "below 1", found)


def _crossing(loads: tuple[int, ...], behind: list[float]) -> Row:
    """From how many jobs on SJF-BSBF is below Pollux, on a straight line between the loads that were played."""
    at = float("nan")
    for (few, above), (many, below) in zip(
        zip(loads, behind, strict=True), zip(loads[1:], behind[1:], strict=True), strict=False
    ):
        if above >= 1.0 > below:
            at = few + (many - few) * (above - 1.0) / (above - below)
    paper = (float(LIGHTEST), float(BASE))
    return Row("jobs from which sjf-bsbf is below pollux", paper, at, paper)
