"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout, nothing else there.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no warnings on stderr.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of whatever is random.")]
NoSeed = Annotated[int, typer.Option("--seed", min=0, hidden=True, help="Accepted everywhere; nothing is random here.")]
Format = Annotated[
    str | None,
    typer.Option("--format", metavar="NAME[:key=value,...]", help="Trace format; recognised by default."),
]
