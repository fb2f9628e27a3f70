"""`clustergym warm`: compile kernels before their first use."""

from __future__ import annotations

from typing import Annotated, Any

from ..console.terminal import arguments, out, plain_table, print_json, progress, warnings_on_one_line
from .evaluate import Jobs
from .options import Json, Quiet, argument, option


def warm(
    environments: Annotated[
        list[str] | None, argument("ENV", "Environments by id or short name; default: all.")
    ] = None,
    large: Annotated[
        bool, option("--large", None, "Also for workloads of up to 16,392 jobs on up to 8,200 GPUs.")
    ] = False,
    jobs: Jobs = 1,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compile what environments and their policies need, so that later runs start at once."""
    from ...envs.registration import ENVIRONMENTS, resolve
    from ..playing.executors import elsewhere
    from ..playing.warming import cache_bytes, parts_of, warm_environment

    with arguments():
        chosen = [resolve(name) for name in environments] if environments else list(ENVIRONMENTS)
    # Environments with most policies come first, so that no process is left with them at the end.
    order = sorted(chosen, key=lambda env_id: -len(parts_of([env_id])))
    items = [(env_id, size) for env_id in order for size in ((False, True) if large else (False,))]
    executor = elsewhere(None, jobs, len(items))
    rows: dict[str, dict[str, Any]] = {name: {"environment": name, "parts": 0, "seconds": 0.0} for name in chosen}
    with warnings_on_one_line(quiet), progress("warming", sum(len(parts_of([e])) for e, _ in items), quiet) as show:
        ended = executor.each(warm_environment, items) if executor else map(warm_environment, items)
        for env_id, parts, seconds in ended:
            rows[env_id]["parts"] += parts
            rows[env_id]["seconds"] += seconds
            show(sum(row["parts"] for row in rows.values()))
    found = {"environments": list(rows.values()), "cache_bytes": cache_bytes()}
    if json:
        print_json(found)
        return
    table = plain_table(caption=f"compiled code: {cache_bytes() / 1e6:.0f} MB", caption_justify="left")
    for column in ("environment", "with its policies, s"):
        table.add_column(column, justify="left" if column == "environment" else "right")
    for row in rows.values():
        table.add_row(row["environment"], f"{row['seconds']:.1f}")
    out().print(table)
