"""`clustergym outages` and `clustergym prices`: files of `--set outages=` and `--set prices=`, from published ones."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from ..console import terminal
from ..console.terminal import BadArgument, print_json, print_lines, warnings_on_one_line, word_or_file
from .options import Json, NoSeed, Quiet, Topology, argument, option, pairs, whole


def _show_help(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


outages = typer.Typer(
    help="Inspect lists of faults; convert InfiniteHBD's, and lists with dates.",
    callback=_show_help,
    invoke_without_command=True,
)
prices = typer.Typer(
    help="Convert published prices and carbon intensity of electricity.",
    callback=_show_help,
    invoke_without_command=True,
)
_SERVERS = "How many servers the list is about, those without a fault included."
Servers = Annotated[int | None, option("--servers", "N", _SERVERS, whole(1, 10_000_000))]
To = Annotated[Path, option("--to", "OUT.csv", "The file to write.")]
Pairs = list[str] | None


@outages.command()
def inspect(
    path: Annotated[Path, argument("FILE", "InfiniteHBD's list (JSON), or a csv of outages.")],
    servers: Servers = None,
    json: Json = False,
    seed: NoSeed = 0,
    quiet: Quiet = False,
) -> None:
    """Show how often servers fail, for how long, and how unevenly."""
    from ...simulator.events.fault_trace import read_faults, summary

    with warnings_on_one_line(quiet):
        found = summary(read_faults(path), servers)
        if json:
            print_json(found)
        else:
            print_lines(*_summary_lines(found))


def _summary_lines(found: dict[str, Any]) -> list[str]:
    from ...simulator.base.durations import duration

    servers, none = found["servers"], found["of_no_duration"]
    hit = f"{found['servers_hit']:,}{'' if servers is None else f' of {servers:,}'} servers"
    p50, mean, longest = (duration(found[f"repair_{name}_s"]) for name in ("p50", "mean", "longest"))
    lines = [
        f"{found['path']}: {found['faults']:,} faults of {hit} in {duration(found['period_s'])}",
        f"repair: P50 {p50}, mean {mean}, longest {longest}{f'; {none:,} take no time' if none else ''}",
    ]
    if servers is None:
        return [*lines, "shares of the servers and of their time: give --servers N"]
    return [
        *lines,
        f"down: {100 * found['down_share']:.1f} % of the servers' time",
        f"between faults of a server: {duration(found['between_faults_s'])}",
        f"the worst tenth of the servers has {100 * found['worst_tenth_share']:.0f} % of the faults",
    ]


@outages.command("convert")
def convert_outages(
    path: Annotated[Path, argument("FILE", "InfiniteHBD's list (JSON), or with --origin a csv: start,end,what,name.")],
    to: To,
    servers: Servers = None,
    topology: Topology = None,
    origin: Annotated[
        str | None, option("--origin", "DATE", "Time 0 of the workload, as workload inspect prints it of a log.")
    ] = None,
    json: Json = False,
    seed: NoSeed = 0,
    quiet: Quiet = False,
) -> None:
    """Rewrite a list for `--set outages=`.

    Faulty servers become machines: by number, else spread evenly. With --origin dates become seconds.
    """
    from ...simulator.cluster.topology import Topology as Cluster
    from ...simulator.events.fault_trace import as_outages, read_events

    with warnings_on_one_line(quiet):
        _expect_csv(to, path)
        if origin is not None:
            for name, given in (("--servers", servers), ("--topology", topology)):
                if given is not None:
                    raise BadArgument(f"{name} goes without --origin: a csv with dates names what is down")
            from ...simulator.workloads.dated_outages import from_dates

            text = from_dates(str(path), origin)
            rows = text.count("\n") - 1
            _write(to, text, {"path": str(to), "outages": rows}, [_to_use(to, rows)], json)
            return
        if topology is not None:
            with word_or_file(topology):
                machines = Cluster.load(topology).num_machines
            servers = machines if servers is None else servers
            if servers > machines:
                raise BadArgument(f"--servers {servers}: expected at most the {machines:,} machines of {topology}")
        text = as_outages(read_events(path), servers)
        rows = text.count("\n") - 1
        facts = {"path": str(to), "outages": rows, "servers": servers}
        _write(to, text, facts, [_to_use(to, rows)], json)


def _to_use(to: Path, rows: int) -> str:
    return f"{to}: {rows:,} outages; to use it: --set outages={to}"


@prices.command("convert")
def convert_prices(
    files: Annotated[list[str], argument("REGION=FILE...", "Hourly prices of each region of the topology.")],
    to: To,
    carbon: Annotated[Pairs, option("--carbon", "REGION=FILE", "Hourly carbon intensity; 0 without it.")] = None,
    zone: Annotated[Pairs, option("--zone", "REGION=ZONE", "Of times without an offset: Europe/Madrid.")] = None,
    currency: Annotated[Pairs, option("--currency", "REGION=CODE", "Where the header names none: EUR.")] = None,
    rate: Annotated[Pairs, option("--rate", "CODE=DOLLARS", "$ for 1 of a currency: EUR=1.08.")] = None,
    json: Json = False,
    seed: NoSeed = 0,
    quiet: Quiet = False,
) -> None:
    """Rewrite hourly prices, and carbon intensity, of all regions for `--set prices=`, in $ and from one hour on."""
    from ...simulator.costs import price_files

    with warnings_on_one_line(quiet):
        prices_of, carbon_of = pairs(files, "REGION=FILE"), pairs(carbon or [], "--carbon")
        _expect_csv(to, *prices_of.values(), *carbon_of.values())
        rates = {code: _rate(code, text) for code, text in pairs(rate or [], "--rate").items()}
        text, facts = price_files.convert(
            prices_of,
            carbon_of,
            pairs(zone or [], "--zone"),
            pairs(currency or [], "--currency"),
            rates,
        )
        said = [f"{to}: {facts['hours']:,} hours from {facts['first']}; to use it: --set prices={to}"]
        for one in facts["columns"]:
            code = one["currency"]
            unit = "g/kWh" if code is None else f"$/MWh{f' at ${rates[code]:g} for 1 {code}' if code in rates else ''}"
            said.append(f"{one['region']}: {one['column']!r}, times of {one['zone']}, mean {one['mean']:.4g} {unit}")
        _write(to, text, {"path": str(to), **facts}, said, json)


def _rate(code: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 1e-6 <= value <= 1e6:
        raise BadArgument(f"--rate {code}={text}: expected $ for 1 {code}, from 0.000001 to 1,000,000")
    return value


def _expect_csv(to: Path, *sources: str | Path) -> None:
    if to.suffix.lower() != ".csv":
        raise BadArgument(f"--to {to}: expected a name that ends in .csv")
    terminal.expect_writable(to, "--to", *sources)


def _write(to: Path, text: str, facts: dict[str, Any], said: list[str], json: bool) -> None:
    with terminal.written_whole(to) as draft:
        draft.write_text(text, encoding="utf-8")
    if json:
        print_json(facts)
    else:
        print_lines(*said)
