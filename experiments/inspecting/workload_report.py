"""What a workload looks like: numbers (`summary`), text (`print_report`), and one picture (`draw`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...simulator.base.errors import InputError
from ...simulator.workloads import Workload
from ..matplotlib_style import expect_installed
from .ps_report import ps_facts, ps_line, ps_tables
from .regions_report import region_facts, region_line, region_tables

if TYPE_CHECKING:
    from rich.console import Console

QUANTILES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
_DAY_S = 86400.0
_HOUR_S = 3600.0
_MOST_ROWS = 12  # of a text table; the rest is summed up in one row
_BAR = 24


def summary(workload: Workload) -> dict[str, Any]:
    """A workload in plain numbers (JSON-ready).

    Returns:
        `name`, `jobs`, `span_s` (first to last arrival), `gpu_hours`, `mean_gpus`, `busy_gpus` (GPU-seconds /
        span; None for a batch), `offered_gpus` (the offered load in GPUs, see `Workload.offered_load`; None for a
        batch), `gpus` (list of {"gpus", "jobs", "job_share", "gpu_time_share"}, ascending),
        `duration_s` and `gap_s` (min, p5 .. p99, max, mean; `gap_s` also `cv`; None for one job), `models`
        (share of jobs by name, falling), `hours` (24 relative arrival rates, 1 = mean; hour 0 is that of time
        0), `users`, `tenants` (how many), `deadlines` and `backlog` (share of jobs); over regions, where GPUs are units
        of all types, also `regions` (see `region_facts`); of PS jobs, where GPUs are machines and GPU time is their
        COMP, also `ps` (see `ps_facts`).
    """
    gpu_s = workload.gpus * workload.duration_s if workload.ps is None else workload.work_s()
    span_s = float(workload.arrival_s[-1] - workload.arrival_s[0])
    gaps_s = np.diff(workload.arrival_s)
    sizes, index = np.unique(workload.gpus, return_inverse=True)
    jobs_of = np.bincount(index)
    time_of = np.bincount(index, weights=gpu_s)
    n = len(workload)
    more = {} if workload.geo is None else {"regions": region_facts(workload, workload.geo)}
    more |= {} if workload.ps is None else {"ps": ps_facts(workload, workload.ps)}
    return {
        "name": workload.name,
        "jobs": n,
        "span_s": span_s,
        "gpu_hours": float(gpu_s.sum() / _HOUR_S),
        "mean_gpus": float(workload.gpus.mean()),
        "busy_gpus": float(gpu_s.sum() / span_s) if span_s > 0 else None,
        "offered_gpus": offered_gpus(workload),
        "gpus": [
            {
                "gpus": int(size),
                "jobs": int(count),
                "job_share": float(count / n),
                "gpu_time_share": float(time / gpu_s.sum()),
            }
            for size, count, time in zip(sizes, jobs_of, time_of, strict=True)
        ],
        "duration_s": _spread(workload.duration_s),
        "gap_s": _gaps(gaps_s),
        "models": _shares(workload.model),
        "hours": _hours(workload.arrival_s),
        "users": _distinct(workload.user),
        "tenants": _distinct(workload.tenant),
        "deadlines": float(np.isfinite(workload.deadline_s).mean()),
        "backlog": float((workload.arrival_s == workload.arrival_s[0]).mean()) if n > 1 else 0.0,
        **more,
    }


def offered_gpus(workload: Workload) -> float | None:
    """The GPUs that the jobs would keep busy as they arrive; None where all arrive at once."""
    busy = workload.offered_load(1)
    return busy if np.isfinite(busy) else None


def size(workload: Workload) -> str:
    """Jobs, work and offered load in a line."""
    hours = float(workload.work_s().sum() / _HOUR_S)
    work, unit = ("GPU-hours", "GPUs") if workload.ps is None else ("machine-hours of COMP", "machines")
    return f"{len(workload):,} jobs, {hours:,.0f} {work}, {_load(offered_gpus(workload), unit)}"


def _load(busy: float | None, unit: str) -> str:
    return "all jobs at once" if busy is None else f"offered load {busy:,.4g} {unit}"


def _spread(values: np.ndarray) -> dict[str, float]:
    row = {"min": float(values.min())}
    row |= {f"p{100 * q:g}": float(value) for q, value in zip(QUANTILES, np.quantile(values, QUANTILES), strict=True)}
    return row | {"max": float(values.max()), "mean": float(values.mean())}


def _gaps(gaps_s: np.ndarray) -> dict[str, float] | None:
    if not len(gaps_s):
        return None
    mean = float(gaps_s.mean())
    return _spread(gaps_s) | {"cv": float(gaps_s.std() / mean) if mean > 0 else 0.0}


def _shares(words: np.ndarray) -> dict[str, float]:
    ranked = sorted(Counter(words.tolist()).items(), key=lambda item: (-item[1], item[0]))
    return {name or "unknown": count / len(words) for name, count in ranked}


def _distinct(words: np.ndarray) -> int:
    return len(set(words) - {""})


def _hours(arrival_s: np.ndarray) -> list[float]:
    hour = (arrival_s % _DAY_S // _HOUR_S).astype(np.int64)
    counts = np.bincount(np.minimum(hour, 23), minlength=24)
    return [float(value) for value in counts / counts.mean()]


def print_report(workload: Workload, console: Console) -> None:
    """Print the summary as tables with bars."""
    facts = summary(workload)
    unit = "unit" if "regions" in facts else "machine" if "ps" in facts else "GPU"
    offered = "machines" if "ps" in facts else "GPUs"
    busy = "" if facts["busy_gpus"] is None else f", {facts['busy_gpus']:,.1f} {unit}s busy on average"
    lines = [
        f"{facts['name']}: {facts['jobs']:,} jobs over {seconds(facts['span_s'])}, "
        f"{facts['gpu_hours']:,.0f} {unit}-hours{busy}, {_load(facts['offered_gpus'], offered)}, "
        f"{facts['mean_gpus']:.2f} {unit}s a job"
    ]
    extras = [f"{facts[key]:,} {key}" for key in ("users", "tenants") if facts[key]]
    extras += [f"{facts['deadlines']:.0%} with a deadline"] if facts["deadlines"] else []
    extras += [f"coefficient of variation of the gaps {facts['gap_s']['cv']:.2f}"] if facts["gap_s"] else []
    lines += [", ".join(extras)] if extras else []
    lines += [region_line(facts["regions"])] if "regions" in facts else []
    lines += [ps_line(facts["ps"])] if "ps" in facts else []
    console.print("\n".join(lines), highlight=False, markup=False)

    tables = region_tables(facts["regions"]) if "regions" in facts else []
    tables += ps_tables(facts["ps"]) if "ps" in facts else []
    for title, header, rows in tables:
        _print_table(console, title, header, rows)
    mark = "█" if console.encoding.lower().startswith("utf") else "#"
    _print_table(
        console,
        f"{unit[0].upper()}{unit[1:]} demand",
        (f"{unit}s", "jobs", "of jobs", "", f"of {unit} time", ""),
        [
            (label, f"{jobs:,}", f"{of_jobs:.1%}", _bar(of_jobs, mark), f"{of_time:.1%}", _bar(of_time, mark))
            for label, jobs, of_jobs, of_time in _demand_rows(facts["gpus"])
        ],
    )
    gaps = facts["gap_s"] or dict.fromkeys(facts["duration_s"], float("nan"))
    _print_table(
        console,
        "Times",
        ("", "duration", "gap between arrivals"),
        [(key, seconds(value), seconds(gaps[key])) for key, value in facts["duration_s"].items()],
    )
    most = max(facts["models"].values())
    _print_table(
        console,
        "Models",
        ("", "of jobs", ""),
        [(name, f"{share:.1%}", _bar(share / most, mark)) for name, share in _top(facts["models"]).items()],
    )
    if facts["span_s"] >= _DAY_S:
        most = max(facts["hours"])
        _print_table(
            console,
            "Arrivals by hour (1 = mean; hour 0 is that of time 0)",
            ("hour", "rate", ""),
            [(f"{hour:02d}", f"{rate:.2f}", _bar(rate / most, mark)) for hour, rate in enumerate(facts["hours"])],
        )


def _print_table(console: Console, title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A titled table; a column without a header is left-aligned (words or bars), the others hold numbers."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in header:
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(f"\n{title}", style="bold", highlight=False)
    console.print(table)


def _demand_rows(gpus: Sequence[Mapping[str, Any]]) -> list[tuple[str, int, float, float]]:
    """(label, jobs, share of jobs, share of GPU time); ranges of powers of two where there are many sizes."""
    if len(gpus) <= _MOST_ROWS:
        return [(str(row["gpus"]), row["jobs"], row["job_share"], row["gpu_time_share"]) for row in gpus]
    rows: dict[int, list[float]] = {}
    for row in gpus:
        total = rows.setdefault(int(row["gpus"]).bit_length() - 1, [0, 0, 0])
        for i, key in enumerate(("jobs", "job_share", "gpu_time_share")):
            total[i] += row[key]
    return [
        (
            str(2**power) if power == 0 else f"{2**power}-{2 ** (power + 1) - 1}",
            int(jobs),
            job_share,
            time_share,
        )
        for power, (jobs, job_share, time_share) in sorted(rows.items())
    ]


def _top(shares: Mapping[str, float]) -> dict[str, float]:
    names = list(shares)
    top = {name: shares[name] for name in names[:_MOST_ROWS]}
    if len(names) > _MOST_ROWS:
        top[f"{len(names) - _MOST_ROWS} more"] = sum(shares[name] for name in names[_MOST_ROWS:])
    return top


def _bar(share: float, mark: str) -> str:
    """A share of 1 as _BAR marks; anything above 0 shows."""
    return mark * round(min(share, 1.0) * _BAR) or ("." if share > 0 else "")


def seconds(value: float) -> str:
    """Seconds in the unit that a person would use: 0.5 s, 12 s, 3.1 min, 2.4 h, 5.0 d."""
    if np.isnan(value):
        return "-"
    for limit, size, unit in ((120, 1, "s"), (7200, 60, "min"), (172800, 3600, "h")):
        if value < limit:
            return f"{value / size:.3g} {unit}"
    return f"{value / 86400:,.3g} d" if value < 86400 * 1000 else f"{value / 86400:,.0f} d"


def draw(workload: Workload, path: str | Path) -> None:
    """Draw GPU demand, durations, arrivals and gaps as one 2 x 2 picture (its ending chooses the format).

    Raises:
        MissingExtra: matplotlib is not installed.
        InputError: the picture cannot be written there.
    """
    expect_installed("drawings")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7), layout="constrained")
    FigureCanvasAgg(figure)  # no pyplot: no window, no global state
    axes = figure.subplots(2, 2)
    _draw_demand(axes[0, 0], summary(workload)["gpus"])
    _draw_cdf(axes[0, 1], workload.duration_s, "Duration", "duration", "jobs")
    _draw_arrivals(axes[1, 0], workload.arrival_s)
    _draw_cdf(axes[1, 1], np.diff(workload.arrival_s), "Gap between arrivals", "gap", "gaps")
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
        axis.title.set_fontweight("bold")
    days = seconds(float(workload.arrival_s[-1] - workload.arrival_s[0]))
    figure.suptitle(f"{workload.name}: {len(workload):,} jobs over {days}".replace("$", r"\$"))
    try:
        figure.savefig(path, dpi=120)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise InputError(f"{path}: the picture cannot be written ({reason})") from None


_BLUE, _ORANGE, _GREY = "#3b6fb6", "#e08a3c", "#8a8a8a"


def _draw_demand(axis: Any, gpus: Sequence[Mapping[str, Any]]) -> None:
    rows = _demand_rows(gpus)
    place = np.arange(len(rows))
    axis.bar(place - 0.2, [100 * row[2] for row in rows], 0.4, color=_BLUE, label="of jobs")
    axis.bar(place + 0.2, [100 * row[3] for row in rows], 0.4, color=_ORANGE, label="of GPU time")
    axis.set_xticks(place, [row[0] for row in rows], rotation=30 if max(len(row[0]) for row in rows) > 4 else 0)
    axis.set(title="GPU demand", xlabel="GPUs of a job", ylabel="share [%]")
    axis.legend(frameon=False)


def _draw_cdf(axis: Any, values: np.ndarray, title: str, what: str, shares_of: str) -> None:
    """A cumulative distribution on a logarithmic axis of seconds; zeros appear as its starting height."""
    axis.set(title=title, xlabel=f"{what} [s]", ylabel=f"share of {shares_of} [%]", ylim=(0, 101))
    positive = np.sort(values[values > 0])
    if not len(positive):
        axis.text(
            0.5,
            0.5,
            "all jobs arrive together" if len(values) else "one job",
            ha="center",
            transform=axis.transAxes,
            color=_GREY,
        )
        axis.set_xticks([])
        return
    level = 100 * (len(values) - len(positive) + np.arange(1, len(positive) + 1)) / len(values)
    if len(positive) > 5000:  # the curve of a million points looks the same
        pick = np.unique(np.linspace(0, len(positive) - 1, 5000).astype(np.int64))
        positive, level = positive[pick], level[pick]
    axis.step(positive, level, where="post", color=_BLUE)
    axis.set_xscale("log")
    axis.grid(True, which="major", color="0.9")
    for share in (50, 90):
        value = float(np.quantile(values, share / 100))
        if value > 0:
            axis.plot([value], [share], "o", color=_ORANGE, markersize=5)
            axis.annotate(
                f"P{share} {seconds(value)}",
                (value, share),
                xytext=(7, -12),
                textcoords="offset points",
                fontsize=9,
            )


def _draw_arrivals(axis: Any, arrival_s: np.ndarray) -> None:
    """Jobs per hour over time, in at most 240 bins of whole hours (60 equal ones below three days)."""
    span_s = float(arrival_s[-1] - arrival_s[0])
    axis.set(title="Arrivals", ylabel="jobs per hour")
    if span_s <= 0:
        axis.text(
            0.5,
            0.5,
            f"{len(arrival_s):,} at {seconds(float(arrival_s[0]))}",
            ha="center",
            transform=axis.transAxes,
            color=_GREY,
        )
        axis.set(xticks=[], yticks=[], ylabel="")
        return
    width_s = span_s / 60 if span_s < 3 * _DAY_S else _HOUR_S * max(1.0, np.ceil(span_s / _HOUR_S / 240))
    bins = int(np.floor(span_s / width_s)) + 1
    counts, edges = np.histogram(
        arrival_s, bins=bins, range=(float(arrival_s[0]), float(arrival_s[0]) + bins * width_s)
    )
    unit_s, unit = (_DAY_S, "d") if span_s >= 3 * _DAY_S else (_HOUR_S, "h") if span_s >= 3 * _HOUR_S else (60.0, "min")
    axis.stairs(counts / (width_s / _HOUR_S), edges / unit_s, fill=True, color=_BLUE)
    axis.set(xlabel=f"time [{unit}]", xlim=(edges[0] / unit_s, edges[-1] / unit_s))
