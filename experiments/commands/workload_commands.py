"""`clustergym workload`: look at a workload, convert a trace, generate one; a model's profile from measurements."""

from __future__ import annotations

import shutil
import sys
import tempfile
import warnings
from dataclasses import asdict
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from ..console import terminal
from ..console.terminal import BadArgument, arguments, out, print_json, print_lines, warnings_on_one_line, word_or_file
from .options import Format, Json, Network, NoSeed, Quiet, Seed, Speeds, Topology, argument, option, whole

if TYPE_CHECKING:
    from ...simulator.cluster.topology import Topology as Cluster
    from ...simulator.profiles.fitting import Fitted
    from ...simulator.workloads import Workload

app = typer.Typer(help="Inspect, convert and generate workloads; fit a model's profile.")
To = Annotated[Path, option("--to", "OUT.{csv,parquet}", "The file to write.")]
MaybeTo = Annotated[Path | None, option("--to", "OUT.{csv,parquet}", "The file to write; csv on stdout by default.")]


@app.callback(invoke_without_command=True)
def workload(context: typer.Context) -> None:
    """Inspect, convert and generate workloads; fit a model's profile."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
def inspect(
    source: Annotated[str, argument("PATH|GENERATOR", "A trace, or a generator with parameters.")],
    format: Format = None,
    picture: Annotated[Path | None, option("--picture", "FILE.svg|pdf|png", "Draw the distributions there.")] = None,
    topology: Topology = None,
    network: Network = None,
    speeds: Speeds = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show demand, durations, arrivals and models of a workload; of a log waits as they were.

    With --topology also the load that it offers there, by week and type, and what does not fit.
    """
    from ...simulator.workloads import open_workload

    with warnings_on_one_line(quiet):
        if picture is not None:
            terminal.expect_writable(picture, "--picture")
        with word_or_file(source):
            jobs = open_workload(source, format=format, seed=seed)
        cluster = _cluster(topology)
        load = _offered(jobs, cluster, network, speeds)
        from ..inspecting.log_report import log_facts, print_log
        from ..inspecting.workload_report import draw, print_report, summary

        log = log_facts(jobs, cluster)
        if picture is not None:
            draw(jobs, picture)
        if json:
            print_json(summary(jobs) | load | log)
            return
        print_report(jobs, out())
        print_log(log, out())
        if load:
            where = f"({topology}, {load['network']})"
            said = f"offered load, {'as jobs run alone' if jobs.ps is None else 'of COMP'}: {_shown_load(load)} {where}"
            print_lines(said)


def _shown_load(load: dict[str, Any]) -> str:
    least, most = load["offered_load"], load.get("offered_load_slowest", load["offered_load"])
    if least is None:
        return "none, as all jobs arrive at once"
    if least == most:
        return f"{least:.4g}"
    return f"{least:.4g} on the fastest types that they accept to {most:.4g} on the slowest"


def _cluster(topology: str | None) -> Cluster | None:
    from ...simulator.cluster.topology import Topology as Cluster

    if topology is None:
        return None
    with word_or_file(topology):
        return Cluster.load(topology)


def _offered(jobs: Workload, cluster: Cluster | None, network: str | None, speeds: str | None) -> dict[str, Any]:
    """The load that the jobs offer to a cluster, on the fastest and slowest types; nothing without a cluster."""
    from ...simulator.configuration.network_choice import load_network
    from ...simulator.configuration.offered_load import offered_load
    from ...simulator.configuration.unit_speeds import UnitSpeeds

    if cluster is None:
        for option, value in (("--network", network), ("--speeds", speeds)):
            if value is not None:
                raise BadArgument(f"{option}: the load depends on the cluster too; give --topology")
        return {}
    with arguments():
        fidelity = load_network("none" if network is None else network)
    if speeds is None:
        return {"offered_load": offered_load(jobs, cluster, fidelity), "network": fidelity.describe()}
    with word_or_file(speeds):
        table = UnitSpeeds.load(speeds, cluster)
    fastest, slowest = (offered_load(jobs, cluster, fidelity, table, slowest=one) for one in (False, True))
    return {"offered_load": fastest, "offered_load_slowest": slowest, "network": fidelity.describe()}


@app.command()
def convert(
    path: Annotated[Path, argument("PATH", "A trace in any known format.")],
    to: To,
    format: Format = None,
    oversize: Annotated[
        str | None, option("--oversize", "error|drop|cap", "Jobs larger than the cluster of --topology.")
    ] = None,
    topology: Topology = None,
    json: Json = False,
    seed: NoSeed = 0,
    quiet: Quiet = False,
) -> None:
    """Rewrite a trace in clustergym's own schema."""
    from ...simulator.base.names import choose
    from ...simulator.cluster.topology import Topology as Cluster
    from ...simulator.workloads import open_workload

    with warnings_on_one_line(quiet):
        _expect_suffix(to, path)
        action = oversize if oversize is not None else "error"
        with arguments():
            choose(action, ("error", "drop", "cap"), "value of --oversize")
        if oversize is not None and topology is None:
            raise BadArgument("--oversize: larger than which cluster? give --topology too")
        cluster_gpus = None
        if topology is not None:
            with word_or_file(topology):
                there = Cluster.load(topology)
            cluster_gpus = there.num_gpus - there.num_cpu_machines or there.num_machines
        jobs = open_workload(path, format=format, cluster_gpus=cluster_gpus, oversize=action)  # type: ignore[arg-type]
        _save(jobs, to)
        _print_written(jobs, to, json)


@app.command()
def generate(
    kind: Annotated[str, argument("KIND", "A generator, with parameters: poisson:load=0.9.")],
    jobs: Annotated[int | None, option("--jobs", "N", "How many.", whole(1))] = None,
    seed: Annotated[int | None, option("--seed", "N", "Same seed, same workload; default 0.", whole(0))] = None,
    to: MaybeTo = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Draw a workload from published distributions."""
    with warnings_on_one_line(quiet):
        if to is not None:
            _expect_suffix(to)
        with arguments():
            drawn = _drawn(kind, jobs, seed)
        if to is not None:
            _save(drawn, to)
            _print_written(drawn, to, json)
        elif json:
            print_json(_as_rows(drawn))
        else:
            _print_csv(drawn)
            if not quiet:
                from ..inspecting.workload_report import size

                terminal.say(f"{drawn.name}: {size(drawn)}")


@app.command("fit-profile")
def fit_profile(
    csv: Annotated[list[Path], argument("CSV...", "Measured iteration times of one model or more.")],
    to: Annotated[Path, option("--to", "OUT.json", "The profile file to write.")],
    model: Annotated[str | None, option("--model", "NAME", "For files without the column.")] = None,
    gpu: Annotated[str | None, option("--gpu", "TYPE", "For files without the column.")] = None,
    source: Annotated[
        str | None, option("--source", "TEXT", "Written beside the numbers; default the file names.")
    ] = None,
    json: Json = False,
    seed: NoSeed = 0,
    quiet: Quiet = False,
) -> None:
    """Fit a model's iteration time to measurements, and write its profile."""
    from ...simulator.profiles.fitting import fit_profiles, profile_file
    from ...simulator.profiles.measurements import read_measurements

    with warnings_on_one_line(quiet):
        if to.suffix.lower() != ".json":
            raise BadArgument(f"--to {to}: expected a name that ends in .json")
        terminal.expect_writable(to, "--to")
        groups = read_measurements(csv, model, gpu)
        named = source if source else "measured: " + ", ".join(dict.fromkeys(path.name for path in csv))
        fitted, profiles = fit_profiles(groups, named)
        with terminal.written_whole(to) as draft:
            draft.write_text(dumps(profile_file(profiles), indent=1) + "\n", encoding="utf-8")
        if json:
            print_json([{"model": one.model, "gpu": one.gpu, "rows": one.rows, **asdict(one.fit)} for one in fitted])
        else:
            _print_fits(fitted, to)


def _print_fits(fitted: list[Fitted], to: Path) -> None:
    table = terminal.plain_table()
    for name in ("model", "gpu", "rows", "MAPE %", "median %", "P95 %"):
        table.add_column(name, justify="left" if name in ("model", "gpu") else "right")
    for one in fitted:
        shown = [f"{one.fit.error[name]:.1f}" for name in ("mape", "median", "p95")]
        table.add_row(escape(one.model), escape(one.gpu), str(one.rows), *shown)
    out().print(table)
    print_lines(f"{to}: use it as network allreduce:calibration=measured,profiles={to}")


def _expect_suffix(to: Path, *sources: Path) -> None:
    if to.suffix.lower() not in (".csv", ".parquet"):
        raise BadArgument(f"--to {to}: expected a name that ends in .csv or .parquet")
    terminal.expect_writable(to, "--to", *sources)


def _save(jobs: Workload, to: Path) -> None:
    """Write beside `to`, then rename, the workload last: an existing file is never half a workload."""
    with tempfile.TemporaryDirectory(dir=to.parent, prefix=f".{to.stem}.part") as folder:
        draft = Path(folder) / to.name
        jobs.save(draft)
        for path in sorted(Path(folder).iterdir(), key=lambda path: path == draft):
            path.replace(to.parent / path.name)


def _print_csv(jobs: Workload) -> None:
    from ...simulator.workloads import WorkloadWarning

    if jobs.geo is not None:
        said = f"{jobs.name}: tables, quotas and history are not printed; --to OUT.csv writes them to files beside it"
        warnings.warn(said, WorkloadWarning, stacklevel=2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "workload.csv"
        jobs.save(path)
        with open(path, encoding="utf-8", newline="") as file:
            shutil.copyfileobj(file, sys.stdout)


def _as_rows(jobs: Workload) -> list[dict[str, object]]:
    from ...simulator.jobs import ps_jobs
    from ...simulator.jobs.region_columns import columns_of
    from ...simulator.jobs.workload import COLUMNS

    columns = {column: getattr(jobs, column).tolist() for column in COLUMNS}
    if jobs.geo is not None:
        columns |= columns_of(jobs.geo)
    if jobs.ps is not None:
        columns |= {column: values.tolist() for column, values in ps_jobs.columns_of(jobs.ps).items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _print_written(jobs: Workload, to: Path, json: bool) -> None:
    from ..inspecting.workload_report import offered_gpus, size

    gpu_hours = float(jobs.work_s().sum() / 3600.0)
    if json:
        facts = {"path": str(to), "name": jobs.name, "jobs": len(jobs), "gpu_hours": gpu_hours}
        print_json({**facts, "offered_gpus": offered_gpus(jobs)})
    else:
        print_lines(f"{to}: {size(jobs)}")


def _drawn(kind: str, jobs: int | None, seed: int | None) -> Workload:
    from ...simulator.base.names import choose, parse_name
    from ...simulator.files.user_code import is_user_code
    from ...simulator.workloads import NAMED, open_workload

    if is_user_code(kind):
        return open_workload(kind if jobs is None else f"{kind},jobs={jobs}", seed=seed or 0)
    name, given = parse_name(kind, "workload")
    choose(name, NAMED, "workload")
    for key, value in (("jobs", jobs), ("seed", seed)):
        if value is not None and key in given:
            raise BadArgument(f"workload {kind!r}: --{key} and {key}= are both given; one of them is enough")
        if value is not None:
            given[key] = str(value)
    return open_workload(f"{name}:" + ",".join(f"{key}={value}" for key, value in given.items()))
