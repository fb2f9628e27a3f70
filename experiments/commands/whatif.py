"""`clustergym whatif`: what another policy would do with a log: the log itself, a table, and the report, in one go."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from ..console import terminal
from ..console.terminal import out, print_json, print_lines
from . import options as opt
from .compare import PAGE, write_page
from .evaluate import Fresh, Jobs, Options, played, print_runs, rows, shown_names
from .options import Format, Json, Network, Quiet, argument, option

REPLAY = "replay"
POLICIES = f"{REPLAY} fifo:head=reserve greedy dally"
UNEQUAL = (
    f"{REPLAY}: its jobs wait for others of the log, which {{}} do not hold: compare other policies with each other"
)
_LOG = "A trace in any known format; or slices:file=TRACE or resampled:file=TRACE, for intervals."
_POLICIES = f'In one quoted value, as for `evaluate`; default "{POLICIES}".'
_LOGDIR = "Runs, pictures and report; default whatif-LOG. The same command goes on where it was stopped."


def whatif(
    log: Annotated[str, argument("LOG", _LOG)],
    topology: Annotated[str, option("--topology", "NAME|PATH", "The cluster: a preset with parameters, or a file.")],
    policies: Annotated[list[str] | None, option("--policies", "NAMES", _POLICIES)] = None,
    network: Network = "none",
    seeds: Annotated[str | None, option("--seeds", "LIST", "Default: all slices, 0-9 of resampled:, or 0.")] = None,
    set_: opt.Assignments = None,
    format: Format = None,
    oversize: opt.Oversize = "error",
    logdir: Annotated[Path | None, option("--logdir", "DIR", _LOGDIR)] = None,
    jobs: Jobs = 1,
    fresh: Fresh = False,
    seed: opt.NoSeed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show what other policies would have made of a log: waits as they were and would be, as a table and a page.

    It is `workload inspect`, `evaluate Delay --network none --baseline replay --set by=gpus/user/hour` and `compare`.
    """
    from ...simulator.cluster.topology import Topology
    from ...simulator.workloads.log_samples import Slices, is_sampled, samples_of
    from ..inspecting.log_report import log_facts, print_log
    from ..inspecting.workload_report import size
    from ..report.load import load
    from ..settings.evaluation_setting import workload_of

    with terminal.warnings_on_one_line(quiet):
        given: Any = {"format": format, "oversize": oversize, "assignments": tuple(set_ or ())}
        setting = opt.described_setting("Delay", log, topology, network, **given, assume=True)
        about = (setting.environment, setting.config.semantics.describe(), setting.config.estimates.describe())
        words = opt.chosen_policies(policies or [POLICIES], *about, labels=True)
        names = shown_names(words)
        opt.open_setting(setting)
        samples = samples_of(log)[0] if is_sampled(log) else None
        workload = workload_of(setting, 0) if samples is None else samples.log
        count = len(samples) if isinstance(samples, Slices) else 10 if setting.is_drawn else 1
        chosen = opt.parse_seeds(seeds) if seeds is not None else list(range(count))
        if setting.by is None:
            has_hours = samples is None or samples.has_hours
            setting = setting.copy_with(by="gpus" + "/user" * any(workload.user) + "/hour" * has_hours)
        facts = log_facts(workload, Topology.load(setting.topology))
        if not json:
            print_lines(f"{workload.name}: {size(workload)}")
            print_log(facts, out())
        folder = logdir or Path(f"whatif-{workload.name}")
        runs, notes = played(setting, words, chosen, folder, Options(jobs, None, fresh, False, quiet))
        others = [name for word, name in names.items() if word != REPLAY]
        baseline = names[REPLAY] if REPLAY in names and (samples is None or not others) else (*others, None)[0]
        write_page(load([folder], baseline), folder / PAGE)
    if json:
        print_json({"log": facts, "runs": rows(runs, setting), "report": str(folder / PAGE)})
        return
    if samples is not None and REPLAY in names:
        notes.append(UNEQUAL.format(samples.parts))
    notes.append(f"report, with waits by {setting.by}: {folder / PAGE}")
    print_runs(setting.copy_with(by=None), words, chosen, runs, baseline, notes, json)
