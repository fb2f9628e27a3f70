"""The statistics of a workload: numbers (`summary`), text (`print_report`), and one picture (`draw`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...simulator.base.durations import duration
from ...simulator.base.errors import InputError
from ...simulator.base.names import numbered
from ...simulator.jobs.ps_jobs import GIGABYTE, PsJobs
from ...simulator.warehouse.demands import MOST_PARTS, Demands
from ...simulator.workloads import Workload
from ..charts import axes, plots
from ..charts.chart import Chart, Shape, segment, staircase
from ..charts.chart_files import KINDS, expect_installed, save
from ..charts.drawing import PANEL_PX, laid_out, stacked
from ..charts.marks import Style, styles, variables_of
from ..comparing.intervals import Estimate
from ..console.terminal import plain_table, styled

if TYPE_CHECKING:
    from rich.console import Console

QUANTILES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
OF_PS, OF_REGIONS = (0.05, 0.5, 0.95), (0.5, 0.9, 0.99)
_DAY_S = 86400.0
_HOUR_S = 3600.0
_TERABYTE = 1e12
_MOST_ROWS = 12  # of a text table; the rest is summed up in one row
_BAR = 24
Table = tuple[str, Sequence[str], Sequence[Sequence[str]]]  # its title, header and rows
OF_JOBS, OF_TIME = "of jobs", "of GPU time"
EMPTY = axes.Axis(0.0, 1.0, False, ())  # of a panel that has nothing to show


def summary(workload: Workload) -> dict[str, Any]:
    """A workload in plain numbers (JSON-ready).

    Returns:
        `name`, `jobs`, `span_s` (first to last arrival), `gpu_hours`, `mean_gpus`, `busy_gpus` (GPU-seconds over the
        time from the first arrival to the last end, if each job starts at its arrival), `offered_gpus` (see
        `Workload.offered_load`; None for a batch), `gpus` (list of {"gpus", "jobs", "job_share", "gpu_time_share"},
        ascending), `duration_s` and `gap_s` (min, p5 .. p99, max, mean; `gap_s` also `cv`; None for one job), `models`
        (share of jobs by name, falling), `hours` (24 relative arrival rates, 1 = mean; hour 0 is that of time 0),
        `users`, `tenants` (number), `deadlines`, `backlog` (share of jobs), of a log with dates `time_0` (the date of
        time 0). Over regions GPUs are units of all types,
        and `regions` is there (`region_facts`); of PS jobs GPUs are machines, GPU time is COMP, and `ps` is there
        (`ps_facts`).
    """
    gpu_s = workload.gpus * workload.duration_s if workload.ps is None else workload.work_s()
    first_s = float(workload.arrival_s[0])
    span_s = float(workload.arrival_s[-1]) - first_s
    gaps_s = np.diff(workload.arrival_s)
    sizes, index = np.unique(workload.gpus, return_inverse=True)
    jobs_of = np.bincount(index)
    time_of = np.bincount(index, weights=gpu_s)
    n = len(workload)
    all_s = gpu_s.sum()
    by_size = [
        {"gpus": int(size), "jobs": int(jobs), "job_share": float(jobs / n), "gpu_time_share": float(time / all_s)}
        for size, jobs, time in zip(sizes, jobs_of, time_of, strict=True)
    ]
    more = {} if workload.geo is None else {"regions": region_facts(workload, workload.geo)}
    more |= {} if workload.ps is None else {"ps": ps_facts(workload, workload.ps)}
    busy_s = (workload.arrival_s - first_s + workload.duration_s).max()
    backlog = float((workload.arrival_s == workload.arrival_s[0]).mean()) if n > 1 else 0.0
    facts = {"name": workload.name, "jobs": n, "span_s": span_s, "gpu_hours": float(all_s / _HOUR_S)}
    facts |= {"mean_gpus": float(workload.gpus.mean()), "busy_gpus": float(all_s / busy_s)}
    facts |= {"offered_gpus": offered_gpus(workload), "gpus": by_size, "duration_s": _spread(workload.duration_s)}
    facts |= {"gap_s": _gaps(gaps_s), "models": _shares(workload.model), "hours": _hours(workload.arrival_s)}
    facts |= {} if workload.origin_s is None else {"time_0": _date(workload.origin_s)}
    facts |= {"users": _distinct(workload.user), "tenants": _distinct(workload.tenant)}
    return facts | {"deadlines": float(np.isfinite(workload.deadline_s).mean()), "backlog": backlog} | more


def _date(since_1970_s: float) -> str:
    return (
        f"{datetime(1970, 1, 1) + timedelta(seconds=since_1970_s):%Y-%m-%dT%H:%M:%S.%f}".rstrip("0").rstrip(".") + "Z"
    )


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
    return row | _points(values, QUANTILES) | {"max": float(values.max()), "mean": float(values.mean())}


def _points(values: np.ndarray, shares: Sequence[float]) -> dict[str, float]:
    held = values if len(values) else np.zeros(1)
    return {f"p{100 * q:g}": float(value) for q, value in zip(shares, np.quantile(held, shares), strict=True)}


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


def region_facts(workload: Workload, geo: Demands) -> dict[str, Any]:
    """The facts of `workload inspect` about regions (JSON-ready).

    Returns:
        `regions` (number), `types` (list of {"type", several accepted ones as `A100|H100`, "jobs", "job_share", "units"
        (p50, p90, p99 of the jobs that ask for it), "unit_hours"}), `parts` (share of jobs with 1, 2, ... of them),
        `levels` (share of jobs, from the highest), `recurring` (share of jobs), `container_s` (p50, p90, p99),
        `tables` (number, "tb" in all, p50, p90, p99 of "size_tb" and of "readers": jobs of a table that is read;
        "per_job", mean), `history` (jobs that the slow path knows), `tenants` (that have a quota or a job).
    """
    hours = workload.duration_s / _HOUR_S
    types = []
    sets = np.unique(geo.accepts[geo.accepts != 0]).tolist()
    for bits in sorted(sets, key=lambda bits: (bits & bits - 1 != 0, bits)):
        name = "|".join(kind for code, kind in enumerate(geo.gpu_types) if bits >> code & 1)
        units = np.where(geo.accepts == bits, geo.part_units, 0).sum(axis=1)
        asks = units > 0
        row = {"type": name, "jobs": int(asks.sum()), "job_share": float(asks.mean())}
        types.append({**row, "units": _points(units[asks], OF_REGIONS), "unit_hours": float((units * hours).sum())})
    readers = np.bincount(geo.table, minlength=len(geo.tables))
    size = geo.tables.size_bytes
    tables: dict[str, Any] = {"tables": len(geo.tables), "tb": float(size.sum() / _TERABYTE)}
    tables |= {"size_tb": _points(size / _TERABYTE, OF_REGIONS), "readers": _points(readers[readers > 0], OF_REGIONS)}
    tables |= {"per_job": float(np.diff(geo.first).mean())}
    parts, levels = _by_code((geo.part_units > 0).sum(axis=1) - 1, MOST_PARTS), _by_code(geo.level, len(geo.slo_s))
    facts = {"regions": len(geo.regions), "types": types, "parts": parts, "levels": levels}
    facts |= {"recurring": float(geo.recurring.mean()), "container_s": _points(geo.container_s, OF_REGIONS)}
    return facts | {"tables": tables, "history": len(geo.history), "tenants": len(geo.quota)}


def region_tables(facts: dict[str, Any]) -> list[Table]:
    """The tables that `workload inspect` prints of regions."""
    names = [f"p{100 * q:g}" for q in OF_REGIONS]
    tables = facts["tables"]
    types = []
    for row in facts["types"]:
        counts = f"{row['jobs']:,}", f"{row['job_share']:.1%}", *_words(row["units"]), f"{row['unit_hours']:,.0f}"
        types.append((row["type"], *counts))
    spreads = [
        ("set-up of containers, s", *_words(facts["container_s"])),
        ("size of a table, TB", *_words(tables["size_tb"])),
        ("jobs that read a table", *_words(tables["readers"])),
    ]
    levels = [(str(level), f"{share:.1%}") for level, share in enumerate(facts["levels"])]
    return [
        ("Units by type (CPU: machines)", ("", "jobs", "of jobs", *names, "unit-hours"), types),
        ("Levels (0 is the highest)", ("level", "of jobs"), levels),
        ("Data and set-up", ("", *names), spreads),
    ]


def region_line(facts: dict[str, Any]) -> str:
    """One line about regions and tables."""
    tables = facts["tables"]
    several = 1.0 - facts["parts"][0]
    return (
        f"over {facts['regions'] or 'any'} regions: {tables['tables']:,} tables of {tables['tb']:,.1f} TB, "
        f"{tables['per_job']:.2f} read by a job; {several:.0%} of several parts, {facts['recurring']:.0%} recurring; "
        f"{facts['history']:,} jobs in the slow path's history"
    )


def _words(points: dict[str, float]) -> list[str]:
    return [f"{value:,.3g}" if value < 1000 else f"{value:,.0f}" for value in points.values()]


def _by_code(values: np.ndarray, kinds: int) -> list[float]:
    return [float(share) for share in np.bincount(values, minlength=kinds) / len(values)]


def ps_facts(workload: Workload, ps: PsJobs) -> dict[str, Any]:
    """The facts of `workload inspect` about PS jobs (JSON-ready), with run times on their `gpus` machines.

    Returns:
        `machines` (fewest and most), `comp_machine_hours`, `comm_hours` (of all iterations of all jobs), `summed_ratio`
        (COMP over COMM time, each summed over an iteration of each job), `ratio` and `iteration_s` (p5, p50, p95 over
        the jobs), `iterations` and `epoch_iterations` (mean), `input_gb` and `model_gb` (of all jobs), `models` (see
        `_facts_of`; falling by machine-hours of COMP).
    """
    ratio, iteration_s = ps.ratio(workload.gpus), ps.iteration_s(workload.gpus)
    code = numbered(workload.model.tolist())
    models = [_facts_of(workload, ps, np.flatnonzero(code == one)) for one in range(int(code.max()) + 1)]
    comp_h, comm_h = workload.work_s().sum() / _HOUR_S, (workload.iterations * ps.comm_s).sum() / _HOUR_S
    facts: dict[str, Any] = {"machines": [int(workload.gpus.min()), int(workload.gpus.max())]}
    facts |= {"comp_machine_hours": float(comp_h), "comm_hours": float(comm_h)}
    facts |= {"summed_ratio": ps.summed_ratio(workload.gpus), "ratio": _points(ratio, OF_PS)}
    facts |= {"iteration_s": _points(iteration_s, OF_PS), "iterations": float(workload.iterations.mean())}
    facts |= {"epoch_iterations": float(ps.epoch_iterations.mean())}
    facts |= _sizes_gb(ps.input_bytes.sum(), ps.model_bytes.sum())
    return facts | {"models": sorted(models, key=lambda row: -row["comp_machine_hours"])}


def _sizes_gb(input_bytes: np.floating, model_bytes: np.floating) -> dict[str, float]:
    return {"input_gb": float(input_bytes / GIGABYTE), "model_gb": float(model_bytes / GIGABYTE)}


def _facts_of(workload: Workload, ps: PsJobs, jobs: np.ndarray) -> dict[str, Any]:
    """The jobs of a model: number, sizes of a job and COMM seconds of an iteration (means), ratio, work."""
    some = ps.take(jobs)
    sizes_gb = _sizes_gb(some.input_bytes.mean(), some.model_bytes.mean())
    row = {"model": workload.model[jobs[0]] or "unknown", "jobs": len(jobs), **sizes_gb}
    row |= {"comm_s": float(some.comm_s.mean()), "summed_ratio": some.summed_ratio(workload.gpus[jobs])}
    return row | {"comp_machine_hours": float(workload.work_s()[jobs].sum() / _HOUR_S)}


def ps_line(facts: dict[str, Any]) -> str:
    """One line about COMP and COMM, and one about sizes."""
    low, high = facts["machines"]
    machines = f"{low} machines" if low == high else f"{low} to {high} machines"
    ratio = facts["ratio"]
    return (
        f"PS jobs: {facts['comp_machine_hours']:,.0f} machine-hours of COMP, {facts['comm_hours']:,.0f} h of COMM; on "
        f"{machines} COMP is {facts['summed_ratio']:.3g} of COMM (P5 {ratio['p5']:.3g}, P95 {ratio['p95']:.3g})\n"
        f"input {facts['input_gb']:,.4g} GB, models {facts['model_gb']:,.4g} GB, {facts['iterations']:,.0f} iterations "
        f"a job, a checkpoint every {facts['epoch_iterations']:,.4g}"
    )


def ps_tables(facts: dict[str, Any]) -> list[Table]:
    """The table that `workload inspect` prints of PS jobs."""
    shown, rest = facts["models"][:_MOST_ROWS], facts["models"][_MOST_ROWS:]
    formats = {"jobs": ",", "input_gb": ",.4g", "model_gb": ",.4g", "comm_s": ".3g", "summed_ratio": ".3g"}
    formats |= {"comp_machine_hours": ",.0f"}
    rows = [(row["model"], *(format(row[key], how) for key, how in formats.items())) for row in shown]
    if rest:
        jobs, hours = (sum(row[key] for row in rest) for key in ("jobs", "comp_machine_hours"))
        rows.append((f"{len(rest)} more", f"{jobs:,}", "", "", "", "", f"{hours:,.0f}"))
    header = ("", "jobs", "input GB", "model GB", "COMM s", "COMP / COMM", "COMP machine-hours")
    return [("What a PS job asks (means)", header, rows)]


def print_report(workload: Workload, console: Console) -> None:
    """Print the summary as tables with bars."""
    facts = summary(workload)
    unit = "unit" if "regions" in facts else "machine" if "ps" in facts else "GPU"
    offered = "machines" if "ps" in facts else "GPUs"
    busy = f"{facts['busy_gpus']:,.1f} {unit}s busy if each starts as it comes"
    lines = [
        f"{facts['name']}: {facts['jobs']:,} jobs over {duration(facts['span_s'])}, "
        f"{facts['gpu_hours']:,.0f} {unit}-hours, {busy}, {_load(facts['offered_gpus'], offered)}, "
        f"{facts['mean_gpus']:.2f} {unit}s a job"
    ]
    extras = [f"{facts[key]:,} {key}" for key in ("users", "tenants") if facts[key]]
    extras += [f"{facts['deadlines']:.0%} with a deadline"] if facts["deadlines"] else []
    extras += [f"coefficient of variation of the gaps {facts['gap_s']['cv']:.2f}"] if facts["gap_s"] else []
    lines += [", ".join(extras)] if extras else []
    lines += [f"time 0 is {facts['time_0']}"] if "time_0" in facts else []
    lines += [region_line(facts["regions"])] if "regions" in facts else []
    lines += [ps_line(facts["ps"])] if "ps" in facts else []
    console.print("\n".join(lines), highlight=False, markup=False)

    mark = "█" if console.encoding.lower().startswith("utf") else "#"
    gaps = facts["gap_s"] or dict.fromkeys(facts["duration_s"], float("nan"))
    most = max(facts["models"].values())
    demand = [
        (label, f"{jobs:,}", f"{of_jobs:.1%}", _bar(of_jobs, mark), f"{of_time:.1%}", _bar(of_time, mark))
        for label, jobs, of_jobs, of_time in _demand_rows(facts["gpus"])
    ]
    times = [(key, duration(value), duration(gaps[key])) for key, value in facts["duration_s"].items()]
    models = [(name, f"{share:.1%}", _bar(share / most, mark)) for name, share in _top(facts["models"]).items()]
    tables = region_tables(facts["regions"]) if "regions" in facts else []
    tables += ps_tables(facts["ps"]) if "ps" in facts else []
    tables += [
        (f"{unit[0].upper()}{unit[1:]} demand", (f"{unit}s", "jobs", "of jobs", "", f"of {unit} time", ""), demand),
        ("Times", ("", "duration", "gap between arrivals"), times),
        ("Models", ("", "of jobs", ""), models),
    ]
    if facts["span_s"] >= _DAY_S:
        rates = facts["hours"]
        hours = [(f"{hour:02d}", f"{rate:.2f}", _bar(rate / max(rates), mark)) for hour, rate in enumerate(rates)]
        tables.append(("Arrivals by hour (1 = mean; hour 0 is that of time 0)", ("hour", "rate", ""), hours))
    for table in tables:
        print_table(console, *table)


def print_table(console: Console, title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A titled table; columns without a header (words or bars) are left-aligned, the others hold numbers."""
    table = plain_table()
    for name in header:
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    for row in rows:
        table.add_row(*map(styled, row))
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
        (str(2**power) if power == 0 else f"{2**power}-{2 ** (power + 1) - 1}", int(jobs), job_share, time_share)
        for power, (jobs, job_share, time_share) in sorted(rows.items())
    ]


def _top(shares: Mapping[str, float]) -> dict[str, float]:
    names = list(shares)
    top = {name: shares[name] for name in names[:_MOST_ROWS]}
    if len(names) > _MOST_ROWS:
        top[f"{len(names) - _MOST_ROWS} more"] = sum(shares[name] for name in names[_MOST_ROWS:])
    return top


def _bar(share: float, mark: str) -> str:
    return mark * round(min(share, 1.0) * _BAR) or ("." if share > 0 else "")


def draw(workload: Workload, path: Path) -> None:
    """Draw GPU demand, durations, arrivals and gaps as one 2 x 2 picture, svg, pdf or png by its ending."""
    kind = path.suffix[1:].lower()
    if kind not in KINDS:
        raise InputError(f"{path}: the picture cannot be written (expected a name in .{', .'.join(KINDS)})")
    expect_installed([kind], "drawings")
    looks = styles([], (OF_JOBS, OF_TIME))
    charts = (
        _demand(summary(workload)["gpus"], looks),
        _distribution(workload.duration_s, looks, "Duration", "duration", "jobs"),
        _arrivals(workload.arrival_s, looks),
        _distribution(np.diff(workload.arrival_s), looks, "Gap between arrivals", "gap", "gaps"),
    )
    days = duration(float(workload.arrival_s[-1] - workload.arrival_s[0]))
    drawn = [laid_out(chart, variables_of(looks), PANEL_PX) for chart in charts]
    try:
        save(stacked(drawn, f"{workload.name}: {len(workload):,} jobs over {days}", columns=2), path)
    except OSError as error:
        raise InputError(f"{path}: the picture cannot be written ({error.strerror or error})") from None


def _demand(gpus: Sequence[Mapping[str, Any]], looks: Mapping[str, Style]) -> Chart:
    rows = _demand_rows(gpus)
    shares = {OF_JOBS: [100.0 * row[2] for row in rows], OF_TIME: [100.0 * row[3] for row in rows]}
    series = {label: [Estimate(one, one, one) for one in some] for label, some in shares.items()}
    most = max(one.mean for values in series.values() for one in values)
    y = axes.linear(0.0, 1.03 * most, "{:g} %".format)
    return plots.bars([row[0] for row in rows], series, looks, y, title="GPU demand", x_label="GPUs of a job")


def _distribution(values: np.ndarray, looks: Mapping[str, Style], title: str, what: str, shares_of: str) -> Chart:
    """A cumulative distribution on a log axis; its starting height is the share of zeros."""
    about: dict[str, Any] = {"title": title, "x_label": f"{what} (log scale)", "y_label": f"share of {shares_of}"}
    found = plots.distribution({OF_JOBS: values}, looks, **about)
    if found is None:
        said = "all jobs arrive together" if len(values) else "one job"
        return plots.curves({}, looks, EMPTY, EMPTY, note=said, **about)
    half, most = (float(np.quantile(values, share)) for share in (0.5, 0.9))
    note = f"Dots: half within {duration(half)}, 90 % within {duration(most)}."
    dots = [segment(at, at, share) for share, at in ((0.5, float(found.x.at(half))), (0.9, float(found.x.at(most))))]
    return replace(found, legend=(), note=note).with_shapes(Shape(f"mean {looks[OF_TIME].classes}", dots))


def _arrivals(arrival_s: np.ndarray, looks: Mapping[str, Style]) -> Chart:
    """Jobs per hour over time, in at most 240 bins of whole hours (60 equal ones below three days)."""
    begin_s, span_s = float(arrival_s[0]), float(arrival_s[-1] - arrival_s[0])
    about: dict[str, Any] = {"title": "Arrivals", "y_label": "jobs per hour"}
    if span_s <= 0:
        note = f"{len(arrival_s):,} at {duration(begin_s)}"
        return plots.curves({}, looks, EMPTY, EMPTY, note=note, **about)
    width_s = span_s / 60 if span_s < 3 * _DAY_S else _HOUR_S * max(1.0, np.ceil(span_s / _HOUR_S / 240))
    bins = int(np.floor(span_s / width_s)) + 1
    counts, edges_s = np.histogram(arrival_s, bins=bins, range=(begin_s, begin_s + bins * width_s))
    rate = counts / (width_s / _HOUR_S)
    x, y = axes.durations(begin_s, float(edges_s[-1])), axes.linear(0.0, 1.03 * float(rate.max()))
    found = plots.curves({OF_JOBS: (edges_s, rate)}, looks, x, y, x_label="time", legend=(), **about)
    steps = staircase(x.at(edges_s), y.at(rate))
    area = np.vstack([[0.0, 0.0], steps, [1.0, 0.0]])
    return found.with_shapes(Shape(f"band {looks[OF_JOBS].classes}", [area], True))
