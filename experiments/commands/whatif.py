"""`clustergym whatif`: what another policy would do with a log: the log itself, a table, and the report, in one go."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ..console import terminal
from ..console.terminal import out, print_json, print_lines
from . import options as opt
from .compare import PAGE, write_page
from .evaluate import Jobs, Options, played, print_runs, rows, shown_names
from .options import Format, Json, Network, Quiet, argument, option

REPLAY = "replay"
POLICIES = f"{REPLAY} fifo:head=reserve greedy dally"
_POLICIES = f'In one quoted value, as for `evaluate`; default "{POLICIES}".'
_LOGDIR = "Runs, pictures and report; default whatif-LOG. The same command goes on where it was stopped."


def whatif(
    log: Annotated[str, argument("LOG", "A trace in any known format, or another workload.")],
    topology: Annotated[str, option("--topology", "NAME|PATH", "The cluster: a preset with parameters, or a file.")],
    policies: Annotated[list[str] | None, option("--policies", "NAMES", _POLICIES)] = None,
    network: Network = "none",
    seeds: Annotated[str, option("--seeds", "LIST", "Where a word draws the log, or failures are drawn.")] = "0",
    set_: opt.Assignments = None,
    format: Format = None,
    oversize: opt.Oversize = "error",
    logdir: Annotated[Path | None, option("--logdir", "DIR", _LOGDIR)] = None,
    jobs: Jobs = 1,
    seed: opt.NoSeed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show what other policies would have made of a log: waits as they were and would be, as a table and a page.

    It is `workload inspect`, `evaluate Delay --baseline replay` and `compare`, with --network none.
    """
    from ...simulator.cluster.topology import Topology
    from ..inspecting.log_report import log_facts, print_log
    from ..inspecting.workload_report import size
    from ..report.load import load
    from ..settings.evaluation_setting import workload_of

    with terminal.warnings_on_one_line(quiet):
        chosen = opt.parse_seeds(seeds)
        given = {"format": format, "oversize": oversize, "assignments": tuple(set_ or ())}
        setting = opt.described_setting("Delay", log, topology, network, **given, assume=True)
        told = (setting.environment, setting.config.semantics.describe(), setting.config.estimates.describe())
        words = opt.chosen_policies(policies or [POLICIES], *told, labels=True)
        opt.open_setting(setting, chosen[0])
        workload = workload_of(setting, chosen[0] if setting.is_drawn else 0)
        facts = log_facts(workload, Topology.load(setting.topology))
        if not json:
            print_lines(f"{workload.name}: {size(workload)}")
            print_log(facts, out())
        folder = logdir or Path(f"whatif-{Path(log).stem}")
        runs, notes = played(setting, words, chosen, folder, Options(jobs, None, False, False, quiet))
        baseline = shown_names(words).get(REPLAY)
        write_page(load([folder], baseline), folder / PAGE)
    if json:
        print_json({"log": facts, "runs": rows(runs, setting), "report": str(folder / PAGE)})
        return
    print_runs(setting, words, chosen, runs, baseline, [*notes, f"report: {folder / PAGE}"], json)
