"""Our own experiment: where waiting for a better tier pays. Delay timers x load x how much the network matters.

Dally's order on 2 racks; only the timers differ. The average JCT is compared with that of `dally-nowait` on the same
jobs. How leases end matters as much as the timers, so all is played twice: under `artist-sim`, where every lease ends
and a job starves anew, and under `events`, where that is so only while others wait, and who gets the same GPUs back
goes on. Jobs are drawn with the statistics of the authors' set (`dally-like`), with the durations of the trace on its
own GPUs, taken for computing alone as its authors do (`duration=compute`) under both semantics, and
Poisson arrivals at a load.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...charts import axes, plots
from ...charts.chart import Chart, Shape, segment, upright
from ...comparing.intervals import Estimate, paired_ratio
from ..case import Case
from ..case_runs import improvement
from ..findings import Findings, Options
from ..loads import offered_load_note
from ..paper_pictures import if_asked, looks, picture
from ..rows import Row, printed
from ..sweep import sweep_by
from .dally_grid import NATIVE

RACKS, GPUS = 2, 128
JOBS = 400
GPU_SECONDS = 596_354.0  # of a mean job of the authors' set: 82,827 GPU-hours, 500 jobs
SEMANTICS = ("artist-sim", "events")
LOADS = (0.6, 0.9, 1.2)
HOURS = (1, 3, 6, 12, 24)  # of the machine timer; the rack timer is twice as long, as in the paper's 12 and 24

# How its columns are called: the policy.
WAITS: Mapping[str, str] = {
    "0": "dally-nowait",
    **{f"{hours} h": f"dally-manual:timers={3600 * hours}/{7200 * hours}" for hours in HOURS},
    "for ever": "dally-consolidated",
    "tuned": "dally",
}

LOWEST, HIGHEST = 0.25, 4.0  # of the pictures

Columns = Mapping[str, list[float]]  # wait -> average JCT, one a job set
Curves = Mapping[str, Mapping[str, Mapping[float, Columns]]]  # by semantics, mix and load


@dataclass(frozen=True)
class Mix:
    """How much the network matters: in words, the models that are drawn, and the network that they meet."""

    says: str
    models: str
    network: str


# Measured slowdowns over several machines: 1.1 to 3.8 (Chronus: five models, 8 GPUs on 4 nodes), 1.0 to 8.4 (Gavel).
_ANY = "BERT/ResNet18/ResNet50"  # which the penalty table does not list, so that its default holds for all
MIXES: Mapping[str, Mix] = {
    "none": Mix("no slowdown anywhere", "", "none"),
    "mild": Mix("1.1x in a rack, 1.25x beyond", _ANY, "penalty:table=chronus,default=1/1.1/1.25,duration=compute"),
    "strong": Mix("2x in a rack, 4x beyond", _ANY, "penalty:table=chronus,default=1/2/4,duration=compute"),
    "three models": Mix(
        "VGG, AlexNet, ResNet50 on artist", "VGG/AlexNet/ResNet50", "allreduce:calibration=artist,duration=compute"
    ),
    "six models": Mix("all six models on artist", "", "allreduce:calibration=artist,duration=compute"),
    "measured": Mix("all six models on measured", "", "allreduce:calibration=measured,duration=compute"),
}


def waiting(options: Options) -> Findings:
    """Average JCT by semantics, mix, load and timer, against not waiting."""
    loads = LOADS[1:2] if options.quick else LOADS
    cases = {
        (semantics, name, load, wait): [_case(semantics, mix, load, policy, seed) for seed in options.order_seeds]
        for semantics in SEMANTICS
        for name, mix in MIXES.items()
        for load in loads
        for wait, policy in WAITS.items()
    }
    outcomes = sweep_by("dally-waiting", cases, options)
    curves: Curves = {
        semantics: {
            name: {
                load: {
                    wait: [one.metrics["jct_mean"] for one in outcomes[semantics, name, load, wait]] for wait in WAITS
                }
                for load in loads
            }
            for name in MIXES
        }
        for semantics in SEMANTICS
    }
    notes = [
        "by how much the average JCT is below that of dally-nowait; "
        + "; ".join(f"{name}: {mix.says}" for name, mix in MIXES.items()),
        f"{RACKS} racks ({GPUS} GPUs), {JOBS} jobs of dally-like with Poisson arrivals, duration=compute; timers of "
        "the machine, the rack's are twice as long",
        f"mean and 95 % interval over {len(options.order_seeds)} drawn job sets (and machine orders), the same for all "
        "timers",
        offered_load_note({f"at load {load:g}": _words(cases, load) for load in loads}, GPUS),
    ]
    return Findings(_rows(curves), notes, _pictures(options, curves))


def _case(semantics: str, mix: Mix, load: float, policy: str, seed: int) -> Case:
    per_day = load * GPUS * 86400.0 / GPU_SECONDS
    models = f",models={mix.models}" if mix.models else ""
    return NATIVE.on(
        policy,
        seed,
        topology=f"dally:racks={RACKS},machine_order={seed}",
        workload=f"dally-like:jobs={JOBS},arrivals=poisson,jobs_per_day={per_day:.6g}{models},seed={seed}",
        network=mix.network,
        semantics=semantics,
    )


def _words(cases: Mapping[tuple[str, str, float, str], list[Case]], load: float) -> list[str]:
    return sorted({case.setting.workload for (_, _, at, _), some in cases.items() if at == load for case in some})


def _rows(curves: Curves) -> list[Row]:
    return [
        printed(f"{semantics}, {name}, load {load:g}, wait {wait}", improvement(jct, columns["0"]), "%")
        for semantics, mixes in curves.items()
        for name, loads in mixes.items()
        for load, columns in loads.items()
        for wait, jct in columns.items()
        if wait != "0"
    ]


@if_asked
def _pictures(options: Options, curves: Curves) -> list[Path]:
    """A picture a semantics, a panel a mix: average JCT over that of not waiting by wait, a curve a load."""
    paths = []
    for semantics, mixes in curves.items():
        charts = [_panel(f"{name}: {MIXES[name].says}", loads) for name, loads in mixes.items()]
        title = f"Where waiting for a better tier pays: below 1 (semantics={semantics})"
        paths += picture(options, f"dally-waiting-{semantics}", charts, title, columns=3)
    return paths


def _panel(title: str, loads: Mapping[float, Columns]) -> Chart:
    """Fixed timers are joined by a line; the tuned one, the last, stands apart."""
    lines: dict[str, list[Estimate | None]] = {
        f"load {load:g}": [paired_ratio(jct, columns["0"]) for jct in columns.values()]
        for load, columns in loads.items()
    }
    y = axes.log_ratios(LOWEST, HIGHEST)
    joined = {label: [*line[:-1], None] for label, line in lines.items()}
    about: dict[str, Any] = {
        "title": title,
        "x_label": "machine timer",
        "y_label": "JCT / not waiting (log scale)",
    }
    chart = plots.means(list(WAITS), joined, looks(lines), y, "{:.3f}".format, **about)
    tuned = []
    for number, (label, line) in enumerate(lines.items()):
        last, classes = line[-1], looks(lines)[label].classes
        assert last is not None
        x, (low, mean, high) = 1.0 - 0.01 * number, y.at(np.array([last.low, last.mean, last.high])).tolist()
        tuned += [Shape(f"whisker {classes}", [upright(x, low, high)]), Shape(f"dot {classes}", [segment(x, x, mean)])]
    return replace(chart, ends=()).with_shapes(Shape("one", [segment(0.0, 1.0, float(y.at(1.0)))]), *tuned)
