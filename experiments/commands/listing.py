"""`clustergym envs`, `options`, `policies`, `topologies`, `networks`, `workloads`: what can be chosen by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any

from ...simulator.base.names import short_name
from ..console import terminal
from ..console.terminal import BadArgument, arguments, out, plain_table, print_json, print_lines, styled
from .options import Env, Json, NoSeed, Quiet, argument, option, options_of_set


def envs(
    env: Annotated[str | None, argument("ENV", "Only this one, with its decisions and columns.")] = None,
    json: Json = False,
    seed: NoSeed = 0,
    quiet: Quiet = False,
) -> None:
    """List the environments, or the decisions and columns of one."""
    from ...envs.registration import ENVIRONMENTS, resolve

    if env is not None:
        with arguments():
            _print_environment(resolve(env), json)
        return
    rows = []
    for env_id, one in ENVIRONMENTS.items():
        rows.append({"id": env_id, "summary": one.summary, "paper": one.paper, "defaults": dict(one.defaults)})
    if json:
        print_json(rows)
    else:
        _print(("id", "paper", "summary", "defaults"), rows)


def _print_environment(env_id: str, json: bool) -> None:
    from ...agents.playing.windows import interface_of
    from ...envs.columns import described
    from ...envs.registration import ENVIRONMENTS

    interface = interface_of(env_id, {})
    columns = {part: described(one) for part, one in interface.columns.items()}
    families = interface.described_families()
    if json:
        fields = {part: {name: asdict(one) for name, one in own.items()} for part, own in columns.items()}
        print_json({"id": env_id, "summary": ENVIRONMENTS[env_id].summary, "decisions": families, "columns": fields})
        return
    print_lines(f"{env_id}: {ENVIRONMENTS[env_id].summary}", "")
    if families:
        _print(tuple(families[0]), families)
        print_lines("")
    rows = [
        {"part": part, "name": name, "is": one.text, "unit": one.unit, "from": one.low, "to": one.high}
        for part, own in columns.items()
        for name, one in own.items()
    ]
    _print(("part", "name", "is", "unit", "from", "to"), rows)


def options(env: Env, json: Json = False, seed: NoSeed = 0, quiet: Quiet = False) -> None:
    """List what --set takes in an environment, with the defaults there."""
    from ...envs.registration import resolve

    with arguments():
        rows = options_of_set(resolve(env))
    if json:
        print_json(rows)
    else:
        _print(("name", "default", "summary"), rows)


def policies(
    env: Annotated[str | None, argument("ENV", "Only those that play in this environment.")] = None,
    option: Annotated[str | None, option("--env", "ENV", None, hidden=True)] = None,
    json: Json = False,
    seed: NoSeed = 0,
    quiet: Quiet = False,
) -> None:
    """List the policies, where each plays, and their parameters; those of installed packages too."""
    from ... import policies as registry
    from ...envs.registration import resolve

    if env is not None and option is not None and env != option:
        raise BadArgument(f"ENV {env!r} and --env {option!r}: one of them is enough")
    wanted = env if env is not None else option
    with terminal.warnings_on_one_line(quiet):
        with arguments():
            env_id = resolve(wanted) if wanted is not None else None
        agents = [row for row in registry.shipped() if env_id is None or env_id in row["environments"]]
        rows = [dict(row) for row in (*registry.describe(env_id), *agents)]
    if json:
        print_json(rows)
    else:
        for row in rows:
            row["plays in"] = " ".join(map(short_name, row["environments"])) or "-"
            row["knows run times"] = "yes" if row["knows_run_times"] else "no"
        where = ("plays in",) if env_id is None else ()
        _print(("name", *where, "knows run times", "summary", "parameters"), rows)
        _print_own("policy")
        trained = "maskable-ppo:DIR/best of `clustergym train`, sb3:FILE.zip of stable-baselines3"
        print_lines(f"an agent of your own: {trained} (docs/tutorials/agents.md)")


def topologies(json: Json = False, seed: NoSeed = 0, quiet: Quiet = False) -> None:
    """List the topologies and their parameters."""
    from ...simulator.cluster.presets import list_topologies

    rows = list_topologies()
    shown = [row if json or row["gpus"] is not None else {**row, "gpus": "file"} for row in rows]
    _list(shown, json, "topology", "name", "gpus", "summary", "parameters")


def networks(json: Json = False, seed: NoSeed = 0, quiet: Quiet = False) -> None:
    """List the network models and their parameters."""
    from ...simulator.configuration.network_choice import list_networks

    _list(list_networks(), json, "network", "name", "summary", "parameters")


def workloads(json: Json = False, seed: NoSeed = 0, quiet: Quiet = False) -> None:
    """List the generators of workloads and the trace formats, and their parameters."""
    from ...simulator.workloads import list_workloads

    _list(list_workloads(), json, "generator", "name", "kind", "summary", "parameters")


def _list(rows: Sequence[Mapping[str, Any]], json: bool, what: str, *columns: str) -> None:
    if json:
        print_json(rows)
    else:
        _print(columns, rows)
        _print_own(what)


def _print_own(what: str) -> None:
    how = "py:FILE.py:NAME[,key=value...] (docs/tutorials/write-a-policy.md)"
    out().print(f"a {what} of your own: {how}", markup=False)


def _print(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    table = plain_table(padding=(0, 2, 0, 0), show_lines=False)
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column in ("name", "id", "kind"))
    for row in rows:
        table.add_row(*(styled(_words(row[one]), "bold" if one in ("name", "id") else "") for one in columns))
    out().print(table)


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={_words(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return "/".join(map(_words, value)) or "none"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)
