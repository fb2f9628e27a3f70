"""`clustergym reproduce`: a published table or figure, ours, and the difference, side by side."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ..console.interrupt import leaving
from ..console.terminal import BadArgument, arguments, out, plain_table, print_json, say, typed, warnings_on_one_line
from .options import MOST_PROCESSES, Json, Quiet, Ray, Seed, argument, cluster, option, whole

if TYPE_CHECKING:
    from ..reproduce.reproductions import Reproduction
    from ..reproduce.rows import Findings

MOST_ORDERS = 1000


Traces = Annotated[Path | None, option("--traces", "DIR", "The authors' own jobs: a clone of their repository.")]
Orders = Annotated[
    int | None,
    option(
        "--orders",
        "N",
        "Machine orders (dally, 10) or sampled workloads (bsbf, 40) to average over.",
        whole(1, MOST_ORDERS),
    ),
]


def reproduce(
    name: Annotated[str | None, argument("NAME", "Which; a paper's are listed; without it, all.")] = None,
    list_: Annotated[bool, option("--list", None, "List them.")] = False,
    orders: Orders = None,
    traces: Traces = None,
    generated: Annotated[
        bool, option("--generated", None, "Generated job sets, even where the real traces are.")
    ] = False,
    out_: Annotated[Path | None, option("--out", "DIR", "Write the pictures there.")] = None,
    logdir: Annotated[
        Path | None, option("--logdir", "DIR", "Keep the finished runs there; default: the cache.")
    ] = None,
    all_: Annotated[bool, option("--all", None, "Rows too that the paper has nothing of.")] = False,
    quick: Annotated[
        bool, option("--quick", None, "Two machine orders or workloads, few sizes: does it run at all.")
    ] = False,
    jobs: Annotated[
        int | None, option("--jobs -j", "N", "Processes; default: cores.", whole(1, MOST_PROCESSES))
    ] = None,
    ray: Ray = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Print a published table or figure beside ours; a miss is printed as a miss, and is no failure."""
    from ..reproduce.reproductions import reproductions
    from ..reproduce.rows import Options

    known = reproductions()
    if (of_paper := _of_paper(name, known)) or name is None or list_:
        _list(of_paper or list(known.values()), json)
        return
    from ...simulator.base.names import choose
    from ...simulator.compiler.interpreting import compile_at_once
    from ..reproduce.dally.dally_jobs import default_cache, traces_folder

    with arguments():
        entry = known[choose(name, known, "reproduction")]
    compile_at_once()  # these last
    if generated and traces is not None:
        raise BadArgument("--traces and --generated: expected one of the two")
    if out_ is not None:
        _prepare_pictures(out_)
    with warnings_on_one_line(quiet):
        with arguments():
            folder = None if generated else traces_folder(traces)
        options = Options(
            cache=default_cache() if logdir is None else logdir,
            traces=folder,
            orders=orders,
            seed=seed,
            quick=quick,
            processes=jobs or os.cpu_count() or 1,
            executor=cluster(ray),
            out=out_,
            quiet=quiet,
        )
        with leaving(f"interrupted; the runs that were over are kept in {options.cache}. Go on with: {typed.get()}"):
            findings = entry.run(options)
        _print(entry, findings, json, quiet, all_)


def _prepare_pictures(folder: Path) -> None:
    from ..charts.chart_files import expect_installed

    expect_installed(["png"], "these pictures")
    folder.mkdir(parents=True, exist_ok=True)


def _of_paper(name: str | None, known: Mapping[str, Reproduction]) -> list[Reproduction]:
    """All of the paper of that name, as `sjf-bsbf` or `bsbf`."""
    return [entry for key, entry in known.items() if name in (entry.paper, key.partition("-")[0])]


def _list(entries: list[Reproduction], json: bool) -> None:
    if json:
        keys = ("name", "paper", "kind", "summary")
        print_json([{key: getattr(entry, key) for key in keys} for entry in entries])
        return
    table = plain_table()
    table.add_column("name", style="bold", no_wrap=True)
    table.add_column("kind", no_wrap=True)
    table.add_column("compares", overflow="fold")
    table.add_column("CPU time, about", no_wrap=True)
    table.add_column("needs", overflow="fold")
    for entry in entries:
        table.add_row(entry.name, entry.kind, entry.summary, entry.entry.about.cpu, entry.entry.about.trace)
    out().print(table)


def _print(entry: Reproduction, findings: Findings, json: bool, quiet: bool, everything: bool) -> None:
    if json:
        print_json([row.document() for row in findings.rows])
        for note in [*findings.jobs, *findings.notes] if not quiet else ():
            say(note)
    else:
        from ..reproduce.show import print_findings

        print_findings(out(), entry, findings, everything)
    if findings.pictures and not quiet:
        say(f"pictures: {', '.join(str(path) for path in findings.pictures)}")
