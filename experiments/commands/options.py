"""Options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ..playing.executors import Executor


def whole(low: int, high: int = 2**62) -> Callable[[str | int], int]:
    """A parser of whole numbers from `low` to `high` whose complaint names the value."""

    def parse(text: str | int) -> int:
        word = str(text).strip()
        if not (word.isascii() and word.removeprefix("-").isdigit() and len(word) < 20 and low <= int(word) <= high):
            limit = f"from {low} to {high:,}" if high < 2**62 else f"of at least {low}"
            raise typer.BadParameter(f"{word!r} is not a whole number {limit}")
        return int(word)

    return parse


def _trust_zip(wanted: bool) -> bool:
    """By the environment, so that worker processes, which load agents for themselves, know it too."""
    if wanted:
        os.environ["CLUSTERGYM_TRUST_SB3_ZIP"] = "1"
    return wanted


def _trust_py(wanted: bool) -> bool:
    """By the environment, for the same reason."""
    if wanted:
        os.environ["CLUSTERGYM_TRUST_PY"] = "1"
    return wanted


def cluster(address: str | None, quiet: bool) -> Executor | None:
    """The Ray cluster that `--ray` names; None: this machine does the work.

    Raises:
        MissingExtra, InputError: see `RayCluster`.
    """
    if address is None:
        return None
    from ..playing.on_ray import RayCluster

    return RayCluster(address, quiet)


Ray = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="auto|local|HOST:PORT",
        help="Work on the machines of a Ray cluster: the one that this machine belongs to, one of this machine alone, "
        "or the one there. Files that words name go along; -j means nothing then.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout, nothing else there.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no warnings on stderr.")]
Seed = Annotated[int, typer.Option("--seed", metavar="N", parser=whole(0), help="Seed of whatever is random.")]
NoSeed = Annotated[
    int,
    typer.Option("--seed", parser=whole(0), hidden=True, help="Accepted everywhere; nothing is random here."),
]
TrustZip = Annotated[
    bool,
    typer.Option(
        "--trust-sb3-zip",
        callback=_trust_zip,
        help="Also open agents in .zip files of stable-baselines3. Opening one can run any code: only those you trust.",
    ),
]
TrustPy = Annotated[
    bool,
    typer.Option(
        "--trust-py",
        callback=_trust_py,
        help="Also run code that words py:... in the folder of an agent name: only in folders that you trust.",
    ),
]
Format = Annotated[
    str | None,
    typer.Option("--format", metavar="NAME[:key=value,...]", help="Trace format; recognised by default."),
]

Workload = Annotated[
    str | None,
    typer.Option(
        "--workload", metavar="NAME|PATH", help="Generator with parameters, or a trace; your own: py:FILE.py:NAME."
    ),
]
Topology = Annotated[
    str | None,
    typer.Option(
        "--topology", metavar="NAME|PATH", help="Preset with parameters, or a file; your own: py:FILE.py:NAME."
    ),
]
Network = Annotated[
    str | None,
    typer.Option(
        "--network", metavar="NAME", help="Network model with parameters, as penalty:table=...; `networks` lists them."
    ),
]
Oversize = Annotated[str, typer.Option("--oversize", metavar="error|drop|cap", help="Jobs larger than the cluster.")]
