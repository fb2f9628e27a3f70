"""`clustergym warm`: compile now what would be compiled when it is first used."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from ..console.terminal import arguments, out, plain_table, print_json, progress, warnings_on_one_line
from .options import Json, Quiet


def warm(
    environments: Annotated[
        list[str] | None, typer.Argument(metavar="ENV", help="Environments by id or short name; default: all.")
    ] = None,
    large: Annotated[
        bool, typer.Option("--large", help="Also for workloads of up to 16,392 jobs on up to 8,200 GPUs.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compile what environments and their policies need, so that nobody waits for it later."""
    from ...envs.registration import ENVIRONMENTS, resolve
    from ..playing.warming import cache_bytes, parts_of
    from ..playing.warming import warm as play

    with arguments():
        chosen = [resolve(name) for name in environments] if environments else list(ENVIRONMENTS)
    rows: list[dict[str, object]] = []
    parts = parts_of(chosen)
    sizes = (False, True) if large else (False,)
    with warnings_on_one_line(quiet), progress("warming", len(sizes) * len(parts), quiet) as show:
        for env_id in chosen:
            began = time.monotonic()
            own = [part for part in parts if part.environment == env_id]
            for number, (is_large, part) in enumerate((size, part) for size in sizes for part in own):
                play(part, is_large)
                show(len(rows) and sum(int(str(row["parts"])) for row in rows) + number + 1)
            rows.append({"environment": env_id, "parts": len(sizes) * len(own), "seconds": time.monotonic() - began})
    found = {"environments": rows, "cache_bytes": cache_bytes()}
    if json:
        print_json(found)
        return
    table = plain_table(caption=f"compiled code: {cache_bytes() / 1e6:.0f} MB", caption_justify="left")
    for column in ("environment", "with its policies, s"):
        table.add_column(column, justify="left" if column == "environment" else "right")
    for row in rows:
        table.add_row(str(row["environment"]), f"{row['seconds']:.1f}")
    out().print(table)
